#!/usr/bin/env bash
# format.sh: fails where clang-format 14 would change a source. Ends with 77 where it is missing; other versions differ.
set -euo pipefail
cd "$(dirname "$0")/.."
format=$(command -v clang-format-14 || command -v clang-format || true)
[[ -n $format && $("$format" --version) == *"version 14."* ]] || {
  echo "SKIPPED: no clang-format 14 (Debian: clang-format-14)"
  exit 77
}
find lib formats emulation cuda tools tests -name '*.h' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.cu' |
  sort | xargs "$format" --dry-run --Werror
