#!/bin/sh
# recipes_run.sh SOURCE_DIR WORK_DIR HALFULP [RECIPE...]: compares the program with recipes_numpy.py in a virtual
# environment of its own. Exits 77, which CTest reports as skipped, where NumPy cannot be had.
set -eu
source=$1 work=$2 halfulp=$3
shift 3
python=$work/venv/bin/python
if ! "$python" -c 'import numpy' 2>/dev/null; then
  mkdir -p "$work"
  python3 -m venv "$work/venv" && "$python" -m pip install --quiet numpy || {
    echo "SKIPPED: NumPy could not be installed into $work/venv" >&2
    exit 77
  }
fi
export PYTHONDONTWRITEBYTECODE=1
"$python" "$source/tests/oracle/recipes_self_test.py"
exec "$python" "$source/tests/oracle/recipes_oracle.py" "$halfulp" "$@"
