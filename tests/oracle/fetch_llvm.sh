#!/bin/sh
# fetch_llvm.sh DIR: prints the root of an LLVM 19 with headers and static libraries. Uses an installed one, else unpacks
# Debian's llvm-19-dev (43 MB) under DIR without installing it. Exits 77, which CTest reports as skipped, without either.
set -eu
dir=$1
if [ -f /usr/lib/llvm-19/lib/libLLVMSupport.a ]; then
  echo /usr/lib/llvm-19
  exit 0
fi
root=$dir/usr/lib/llvm-19
if [ ! -f "$root/lib/libLLVMSupport.a" ]; then
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || {
    echo "SKIPPED: no LLVM 19 installed, and this is not a Debian system to fetch llvm-19-dev on" >&2
    exit 77
  }
  mkdir -p "$dir"
  (cd "$dir" && apt-get download llvm-19-dev >&2 && dpkg -x llvm-19-dev_*.deb . && rm -f llvm-19-dev_*.deb) || {
    echo "SKIPPED: llvm-19-dev could not be fetched; 'apt-get update' may help, or install LLVM 19" >&2
    exit 77
  }
fi
echo "$root"
