#!/usr/bin/env bash
# layering.sh [ROOT]: fails where a folder includes what it may not, where an intrinsic leaves cuda/arch/, and where a
# macro is defined outside lib/host_device.h. Prints FILE:LINE: RULE for each.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# What a folder may include of the project.
declare -A may_include=(
  [lib]="lib"
  [formats]="formats lib"
  [emulation]="emulation formats lib"
  [cuda]="cuda emulation formats lib"
  [tools]="tools cuda emulation formats lib"
  [tests]="tests tools cuda emulation formats lib"
)
# Which headers of others a folder may not include, as a pattern of what stands between < and >.
cuda_headers='cuda|cub/|thrust/|nv/|cutlass/|cute/|mma\.h|curand|cublas|nvrtc|cooperative_groups'
declare -A may_not_include=(
  [lib]="^(Eigen|$cuda_headers)"
  [formats]='[^a-z_]'  # only the standard library's are spelled without slash, dot and digit
  [emulation]="^($cuda_headers)"
  [cuda]='^(cuda_(fp|bf)[0-9]|mma\.h)'  # those are for cuda/arch/
  [tools]="^(Eigen|$cuda_headers)"
  [tests]='^(cuda_(fp|bf)[0-9]|mma\.h)'
)
# What is the machine's and not the model's. A word, so that strings and comments are taken out before it is looked for.
intrinsic='(^|[^A-Za-z0-9_])(asm|__asm|__asm__|__CUDA_ARCH[A-Z_0-9]*|__nv_[a-z0-9_]+|__(double|float|half|bfloat)[a-z0-9_]*2[a-z0-9_]+)([^A-Za-z0-9_]|$)'

faults=0
fault() {
  echo "$1"
  faults=$((faults + 1))
}

sources() {
  find "$1" -type f \( -name '*.h' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.cu' \) | sort
}

# FILE:LINE:TEXT of the lines of a folder that match.
lines() {
  sources "$1" | xargs -r -d '\n' awk -v pattern="$2" '$0 ~ pattern { print FILENAME ":" FNR ":" $0 }'
}

# As lines(), of the code alone: string literals and comments to the end of the line are blanked first.
code_lines() {
  sources "$1" | xargs -r -d '\n' awk -v pattern="$2" '
    { text = $0; gsub(/"([^"\\]|\\.)*"/, "\"\"", text); sub(/\/\/.*/, "", text) }
    text ~ pattern { print FILENAME ":" FNR ":" $0 }'
}

check_project_includes() {
  local folder=$1 file line text target
  while IFS=: read -r file line text; do
    target=${text#*\"} target=${target%%\"*}
    [[ $target == */* && -n ${may_include[${target%%/*}]:-} && $target != *../* ]] || {
      fault "$file:$line: \"$target\" does not begin with a folder of the project"
      continue
    }
    [[ " ${may_include[$folder]} " == *" ${target%%/*} "* ]] || fault "$file:$line: $folder/ may not include $target"
  done < <(lines "$folder" '^ *# *include *"')
}

check_other_includes() {
  local folder=$1 file line text target
  while IFS=: read -r file line text; do
    target=${text#*<} target=${target%%>*}
    case $file in
      cuda/arch/* | tests/oracle/* | tests/exhaustive/* | tests/bench/cuda_headers_bench.cpp) continue ;;
    esac
    ! [[ $target =~ ${may_not_include[$folder]} ]] || fault "$file:$line: $folder/ may not include <$target>"
  done < <(lines "$folder" '^ *# *include *<')
}

check_intrinsics() {
  local folder=$1 file line text
  while IFS=: read -r file line text; do
    case $file in
      cuda/arch/* | tests/oracle/* | tests/exhaustive/* | tests/bench/cuda_headers_bench.cpp) ;;
      *) fault "$file:$line: intrinsics belong in cuda/arch/: $text" ;;
    esac
  done < <(code_lines "$folder" "$intrinsic")
}

check_macros() {
  local folder=$1 file line text
  while IFS=: read -r file line text; do
    case $file in
      lib/host_device.h | cuda/arch/*) ;;
      *) fault "$file:$line: macros and #if belong in lib/host_device.h and cuda/arch/: $text" ;;
    esac
  done < <(code_lines "$folder" '^ *# *(define|if|ifdef|ifndef)([^a-z]|$)')
}

for folder in "${!may_include[@]}"; do
  [ -d "$folder" ] || continue
  check_project_includes "$folder"
  check_other_includes "$folder"
  check_intrinsics "$folder"
  check_macros "$folder"
done
[ "$faults" -eq 0 ] || { echo "$faults faults" >&2; exit 1; }
