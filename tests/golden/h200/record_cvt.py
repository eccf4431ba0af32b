#!/usr/bin/env python3
"""Records what the conversion instructions of formats/ptx_cvt.h answer on the GPU present, over every input.

The names come from the catalog, the answers from the instructions alone: no model takes part.
Default: compile, run, write JSON. Where the GPU's machine has no compiler, --build there and --run here.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
CATALOG = ROOT / "formats" / "ptx_cvt.h"
TARGET = "sm_90a"
NATIVE = ("sm_80", "sm_89", "sm_90")  # the catalog's Since values that TARGET has

LANE_BITS = {"f32": 32, "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8}
CONSTRAINT = {8: "h", 16: "h", 32: "r"}  # of an inline-asm operand, by register bits; f32 is "f"

CHECKSUM = (
    "one per chunk of 2^24 consecutive inputs (the source's bits from 0 up; one chunk where the source has 16 or 8 "
    "bits): sum mod 2^64 of splitmix64((input << 32) | answer), answer = storage bits of one lane"
)

PRELUDE = r"""
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

// Steele, Lea and Flood, OOPSLA 2014.
__device__ uint64_t splitmix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

constexpr uint64_t kChunk = uint64_t{1} << 24;
constexpr unsigned kThreads = 256, kBlocks = 4096, kBlocksPerChunk = 32;

template <class Op>
__device__ uint32_t lane(uint32_t packed, int index) {
  return packed >> (index * Op::kToBits) & uint32_t((uint64_t{1} << Op::kToBits) - 1);
}

__device__ uint64_t first() { return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ uint64_t stride() { return uint64_t{gridDim.x} * blockDim.x; }

// blockIdx.y is the chunk.
template <class Op>
__global__ void add_checksums(uint64_t chunk_inputs, unsigned long long* sums) {
  unsigned long long sum = 0;
  for (uint64_t i = first(); i < chunk_inputs; i += stride()) {
    const uint64_t x = blockIdx.y * kChunk + i;
    sum += splitmix64(x << 32 | lane<Op>(Op::convert(uint32_t(x), uint32_t(x)), 0));
  }
  atomicAdd(&sums[blockIdx.y], sum);
}

// Operand a is the upper lane, b the lower. Of sources of 16 and 8 bits every pair; of f32 every value in each lane.
template <class Op>
__global__ void count_lane_faults(uint64_t count, unsigned long long* faults) {
  constexpr int kBits = Op::kFromBits;
  unsigned long long found = 0;
  for (uint64_t n = first(); n < count; n += stride()) {
    const uint32_t a = kBits == 32 ? uint32_t(n) : uint32_t(n >> kBits);
    const uint32_t b = kBits == 32 ? uint32_t(n) * 2654435761u + 12345u : uint32_t(n) & ((uint64_t{1} << kBits) - 1);
    const uint32_t both_a = Op::convert(a, a), both_b = Op::convert(b, b), mixed = Op::convert(a, b);
    found += lane<Op>(both_a, 0) != lane<Op>(both_a, 1) || lane<Op>(both_b, 0) != lane<Op>(both_b, 1) ||
             lane<Op>(mixed, 1) != lane<Op>(both_a, 1) || lane<Op>(mixed, 0) != lane<Op>(both_b, 0);
  }
  if (found != 0) atomicAdd(faults, found);
}

template <class Op>
__global__ void write_table(uint32_t* table) {
  const uint32_t x = threadIdx.x;
  table[x] = lane<Op>(Op::convert(x, x), 0);
}

template <class Op>
void record() {
  constexpr uint64_t kInputs = uint64_t{1} << Op::kFromBits;
  constexpr uint64_t kPairs = Op::kFromBits == 8 ? uint64_t{1} << 16 : uint64_t{1} << 32;
  constexpr uint64_t kChunkInputs = kInputs < kChunk ? kInputs : kChunk;
  constexpr unsigned kChunks = kInputs / kChunkInputs;
  unsigned long long* device = nullptr;
  check(cudaMalloc(&device, (kChunks + 1) * 8));
  check(cudaMemset(device, 0, (kChunks + 1) * 8));
  add_checksums<Op><<<dim3(kBlocksPerChunk, kChunks), kThreads>>>(kChunkInputs, device);
  if (Op::kLanes == 2) count_lane_faults<Op><<<kBlocks, kThreads>>>(kPairs, device + kChunks);
  std::vector<unsigned long long> host(kChunks + 1);
  check(cudaMemcpy(host.data(), device, host.size() * 8, cudaMemcpyDeviceToHost));
  check(cudaFree(device));
  std::printf("op %s", Op::kName);
  for (std::size_t i = 0; i < kChunks; ++i) std::printf(" %016llx", host[i]);
  if (Op::kLanes == 2) std::printf("\npairs %s %llu %llu", Op::kName, (unsigned long long)kPairs, host[kChunks]);
  std::printf("\n");
}

template <class Op>
void record_table() {
  uint32_t* device = nullptr;
  check(cudaMalloc(&device, 256 * 4));
  write_table<Op><<<1, 256>>>(device);
  uint32_t host[256];
  check(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  check(cudaFree(device));
  std::printf("table %s", Op::kName);
  for (const uint32_t answer : host) std::printf(" %u", answer);
  std::printf("\n");
}
"""


def split_type(word):
    """("e4m3", 2) of "e4m3x2"."""
    return (word[:-2], 2) if word.endswith("x2") else (word, 1)


def catalog_names():
    rows = re.findall(r'\{\.name = "(cvt[^"]*)", \.since = Since::(\w+)', CATALOG.read_text())
    return [name for name, since in rows if since in NATIVE]


def asm_body(name, source, destination, lanes):
    """The body of convert(a, b): packs the sources if the instruction takes them packed."""
    (from_type, from_lanes), to_bits = split_type(source), LANE_BITS[destination] * lanes
    from_bits = LANE_BITS[from_type]
    result = ("f", "float") if destination == "f32" else (CONSTRAINT[to_bits], f"uint{max(to_bits, 16)}_t")
    back = "__float_as_uint(d)" if destination == "f32" else "d"
    if from_type == "f32":
        inputs = [f'"f"(__uint_as_float({operand}))' for operand in "ab"[:lanes]]
    elif from_lanes == 1:
        inputs = ['"h"(uint16_t(a))']
    else:
        inputs = [f'"{CONSTRAINT[2 * from_bits]}"(uint{2 * from_bits}_t(a << {from_bits} | b))']
    slots = ", ".join(f"%{1 + i}" for i in range(len(inputs)))
    return f'{result[1]} d; asm("{name} %0, {slots};" : "={result[0]}"(d) : {", ".join(inputs)}); return {back};'


def instruction_struct(index, name):
    destination, source = name.split(".")[-2:]
    to_type, lanes = split_type(destination)
    return f"""
struct Op{index} {{
  static constexpr const char* kName = "{name}";
  static constexpr int kFromBits = {LANE_BITS[split_type(source)[0]]}, kToBits = {LANE_BITS[to_type]}, kLanes = {lanes};
  static __device__ uint32_t convert(uint32_t a, [[maybe_unused]] uint32_t b) {{
    {asm_body(name, source, to_type, lanes)}
  }}
}};
"""


def has_table(name):
    return LANE_BITS[split_type(name.split(".")[-1])[0]] == 8


def program_text(names):
    structs = "".join(instruction_struct(i, name) for i, name in enumerate(names))
    calls = "".join(f"  record<Op{i}>();\n" for i in range(len(names)))
    calls += "".join(f"  record_table<Op{i}>();\n" for i, name in enumerate(names) if has_table(name))
    main = """
int main() {
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0));
  std::printf("device %s\\ncuda %d.%d.%d\\n", device.name, __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__,
              __CUDACC_VER_BUILD__);
"""
    return PRELUDE + structs + main + calls + "}\n"


def build(program, nvcc):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "record_cvt.cu"
        source.write_text(program_text(catalog_names()))
        subprocess.run([nvcc, "-std=c++20", "-O2", "-arch", TARGET, source, "-o", program], check=True)


def driver_version():
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(query, check=True, capture_output=True, text=True).stdout.split("\n")[0]


def run(program):
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    record = {
        "script": "tests/golden/h200/record_cvt.py",
        "target": TARGET,
        "driver": driver_version(),
        "checksum": CHECKSUM,
        "ops": {},
        "tables": {},
        "lane_pairs": {},
    }
    for kind, rest in (line.split(" ", 1) for line in lines):
        name, *values = rest.split()
        if kind == "op":
            record["ops"][name] = values
        elif kind == "table":
            record["tables"][name] = [int(value) for value in values]
        elif kind == "pairs":
            record["lane_pairs"][name] = dict(zip(("checked", "differing"), map(int, values)))
        else:
            record[kind] = rest
    return record


def dump(record, stream):
    """One list a line, so that a difference between two recordings names its instruction."""
    def member(value):
        if not isinstance(value, dict):
            return json.dumps(value)
        return "{\n" + ",\n".join(f'  "{key}": {json.dumps(item)}' for key, item in value.items()) + "\n }"

    stream.write("{\n" + ",\n".join(f' "{key}": {member(value)}' for key, value in record.items()) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--build", metavar="PROGRAM", help="only compile the recording program")
    parser.add_argument("--run", metavar="PROGRAM", help="run a compiled recording program")
    args = parser.parse_args()
    if args.build:
        return build(args.build, args.nvcc)
    if args.run:
        return dump(run(args.run), sys.stdout)
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "record_cvt"
        build(program, args.nvcc)
        dump(run(program), sys.stdout)


if __name__ == "__main__":
    main()
