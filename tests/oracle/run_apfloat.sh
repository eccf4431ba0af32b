#!/bin/sh
# run_apfloat.sh SOURCE_DIR WORK_DIR CXX: builds apfloat_test.cpp against LLVM 19's APFloat and runs it. Not a CMake
# target, because the headers are fetched when the test runs, not when the project is configured.
set -eu
source=$1 work=$2 cxx=$3
mkdir -p "$work"
llvm=$("$source/tests/oracle/fetch_llvm.sh" "$work/llvm-19")
"$cxx" -std=c++20 -O2 -DNDEBUG -ffp-contract=off -I"$source" -isystem "$llvm/include" \
  "$source/tests/oracle/apfloat_test.cpp" -o "$work/apfloat_test" \
  -L"$llvm/lib" -lLLVMSupport -lLLVMDemangle -lgtest -lgtest_main -lpthread
exec "$work/apfloat_test"
