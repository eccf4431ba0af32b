#!/usr/bin/env bash
# process_test.sh PROGRAM: what closed descriptors, signals and limits do to the program. No case may leave a wrong
# file, or a temporary one.
set -u
halfulp=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
expect_code() { [ "$1" -eq "$2" ] || fail "$3: exit code $1, expected $2"; }
expect_clean() { [ -z "$(find . -name '.*.halfulp-*')" ] || { fail "$1 leaves $(find . -name '.*.halfulp-*')"; rm -f .*.halfulp-*; }; }

# npy SHAPE ELEMENTS: an array of zero bytes under FP32, sparse, so that any size is quick; NaN in its first element.
npy() {
  local header="{'descr': '<f4', 'fortran_order': False, 'shape': $1, }"
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"
  printf '\x00\x00\xc0\x7f'
}
npy '(32,)' >small.npy && truncate -s $((128 + 32 * 4)) small.npy
npy '(268435456,)' >large.npy && truncate -s $((128 + 268435456 * 4)) large.npy
"$halfulp" quantize small.npy -r bf16 -o expected 2>notice || fail "quantize"
grep -q 'has 1 elements that are NaN' notice || fail "no notice of the NaN: $(cat notice)"

# Closed and full descriptors: the notice must not land in the output, nor cost it.
for redirection in '2>&-' '2>/dev/full' '<&- 2>&-' '<&- >&- 2>&-'; do
  eval "\"\$halfulp\" quantize small.npy -r bf16 -o out $redirection"
  expect_code $? 0 "quantize $redirection"
  cmp -s out expected || fail "quantize $redirection writes another file"
  rm -f out
done
"$halfulp" error small.npy -r bf16 >&- 2>error && fail "error with a closed stdout succeeds"
printf hello >appended
"$halfulp" quantize small.npy -r bf16 -o /dev/stdout >>appended 2>error
expect_code $? 4 "appending"
[ "$(cat appended)" = hello ] || fail "appending changes the file"

# Signals: 130 and nothing left, or death by the signal and nothing left.
for signal in INT TERM HUP; do
  "$halfulp" quantize large.npy -r nvfp4/te -o out --progress none &
  pid=$!
  while [ -z "$(find . -name '.out.halfulp-*')" ] && kill -0 $pid 2>/dev/null; do sleep 0.01; done
  # A background job of a script ignores SIGINT, and the program leaves it so.
  [ $signal = INT ] && signal=TERM
  kill -$signal $pid
  wait $pid
  expect_code $? 130 "SIG$signal"
  [ ! -e out ] || fail "SIG$signal leaves the output"
  expect_clean "SIG$signal"
done

# A limit on the size of files.
(ulimit -f 8; "$halfulp" quantize large.npy -r bf16 -o out 2>error)
expect_code $? 4 "a file size limit"
grep -q 'out: cannot be written: File too large' error || fail "no word of the file size limit: $(cat error)"
expect_clean "a file size limit"

# An input that becomes shorter while it is read.
"$halfulp" quantize large.npy -r nvfp4/te -o out --progress none 2>error &
pid=$!
while [ -z "$(find . -name '.out.halfulp-*')" ] && kill -0 $pid 2>/dev/null; do sleep 0.01; done
truncate -s 4096 large.npy
wait $pid
expect_code $? 3 "a truncated input"
grep -q 'became shorter' error || fail "no word of the truncated input: $(cat error)"
expect_clean "a truncated input"

[ $failures -eq 0 ] && echo "all good"
exit $((failures > 0))
