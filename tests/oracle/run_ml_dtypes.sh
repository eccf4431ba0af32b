#!/bin/sh
# run_ml_dtypes.sh SOURCE_DIR WORK_DIR CODES_OF: compares with ml_dtypes in a virtual environment of its own. Exits 77,
# which CTest reports as skipped, where ml_dtypes cannot be had.
set -eu
source=$1 work=$2 codes_of=$3
python=$work/venv/bin/python
if ! "$python" -c 'import ml_dtypes, sys; sys.exit(ml_dtypes.__version__ != "0.6.0")' 2>/dev/null; then
  mkdir -p "$work"
  python3 -m venv "$work/venv" && "$python" -m pip install --quiet ml_dtypes==0.6.0 numpy || {
    echo "SKIPPED: ml_dtypes 0.6.0 could not be installed into $work/venv" >&2
    exit 77
  }
fi
exec "$python" "$source/tests/oracle/ml_dtypes_oracle.py" "$codes_of"
