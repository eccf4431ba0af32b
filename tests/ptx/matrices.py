#!/usr/bin/env python3
"""matrices.py FILE.ptx...: reads gemm_block_scaled.cu and scaled_matrix.cu as compiled for each target. A kernel must hold
Blackwell's matrix instructions as the PTX ISA spells them where the target has them, and none elsewhere; and ptxas must
assemble the file without a warning, and kernels with the instructions without a spill or memory of their own. Prints
registers for each file and target."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from assemble import find_ptxas, skip

MMA_SYNC_TARGETS = {"120a", "120f", "121a", "121f"}
TCGEN05_TARGETS = {"100a", "100f", "103a", "103f", "110a", "110f"}

# PTX ISA 9.0, 9.7.14.3, 9.7.14.5.14.
PAIRS = [("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e2m3", "e2m3"), ("e3m2", "e3m2"), ("e2m1", "e2m1"), ("e4m3", "e5m2"),
         ("e2m1", "e4m3")]
MX8 = "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.{}.{}.f32.ue8m0"
QMMA = "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.{}.{}.f32"
MX4 = "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0"
MX4_BY_NV4 = "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0"
NV4 = "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3"
# 9.7.16: kinds without scales, and with them.
PLAIN = {f"tcgen05.mma.cta_group::1.kind::{kind}" for kind in ("f16", "tf32", "f8f6f4")}
SCALED = {f"tcgen05.mma.cta_group::1.kind::{kind}" for kind in
          ("mxf8f6f4.block_scale.block32", "mxf4.block_scale.block32", "mxf4nvf4.block_scale.block16")}
AROUND = {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32",
          "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned",
          "tcgen05.dealloc.cta_group::1.sync.aligned.b32",
          "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64",
          "tcgen05.ld.sync.aligned.32x32b.x8.b32", "tcgen05.wait::ld.sync.aligned",
          "tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync"}
COPY = {"tcgen05.cp.cta_group::1.32x128b.warpx4"}
STORE = {"tcgen05.st.sync.aligned.32x32b.x8.b32", "tcgen05.wait::st.sync.aligned"}

# What the kernels of a file hold between them, by what stands in their names.
EXPECTED = {
    "multiply_by_mma_sync": {MX8.format(a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")} | {MX4, NV4},
    "run_mma_sync": {name.format(a, b) for name in (MX8, QMMA) for a, b in PAIRS} | {MX4, MX4_BY_NV4, NV4},
    "multiply_by_tcgen05": SCALED | AROUND | COPY,
    "run_tcgen05": PLAIN | SCALED | AROUND | COPY | STORE,
}


def kernels(ptx):
    """Symbol -> the matrix instructions in the kernel's body."""
    parts = re.split(r"^\s*(?:\.visible |\.weak )?\.entry (\w+)\(", ptx, flags=re.MULTILINE)
    return {symbol: set(re.findall(r"\b(?:tcgen05\.|mma\.sync\.|wgmma\.)[\w.:]+", body))
            for symbol, body in zip(parts[1::2], parts[2::2])}


def family(symbol):
    return next(name for name in EXPECTED if re.search(rf"\d{name}I", symbol))


def is_native(name, target):
    return target in (MMA_SYNC_TARGETS if name.endswith("mma_sync") else TCGEN05_TARGETS)


def wrong_kernel(symbol, held, target):
    """Why a kernel by itself is wrong: it holds one matrix instruction, and what that needs around it."""
    name = family(symbol)
    if not is_native(name, target):
        return f"holds {sorted(held)}, which the target has not" if held else ""
    products = {instruction for instruction in held if re.match(r"tcgen05\.mma|mma\.sync", instruction)}
    if len(products) != 1:
        return f"holds {len(products)} matrix instructions, not 1"
    if name.endswith("tcgen05"):
        needs = AROUND | (COPY if products <= SCALED else set()) | (STORE if name == "run_tcgen05" else set())
        if held != products | needs:
            return f"lacks {sorted(needs - held)} and has {sorted(held - needs - products)}"
    return ""


def wrong_instructions(target, held):
    for symbol, instructions in held.items():
        why = wrong_kernel(symbol, instructions, target)
        if why:
            yield f"sm_{target}: {symbol} {why}"
    for name in {family(symbol) for symbol in held}:
        together = set().union(*(held[symbol] for symbol in held if family(symbol) == name))
        expected = EXPECTED[name] if is_native(name, target) else set()
        if together != expected:
            yield (f"sm_{target}: kernels {name} lack {sorted(expected - together)} and have "
                   f"{sorted(together - expected)}")


def assembled(ptxas, target, path, symbols):
    """Registers of these kernels at most, and what is wrong. The build has assembled the others, which takes long."""
    command = [ptxas, "-v", "-arch", f"sm_{target}", "-e", ",".join(symbols), path, "-o", os.devnull]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    faults = [f"sm_{target}: ptxas: {line}" for line in run.stdout.splitlines() if re.search("warning|error", line)]
    registers = []
    for part in run.stdout.split("Compiling entry function ")[1:]:
        symbol = part.split("'")[1]
        stack, stores, loads = map(int, re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+)",
                                                  part).groups())
        registers.append(int(re.search(r"Used (\d+) registers", part)[1]))
        if stack or stores or loads:
            faults.append(f"sm_{target}: {symbol}: {stack} bytes of memory, {stores + loads} bytes spilled")
    if len(registers) != len(symbols):
        faults.append(f"sm_{target}: ptxas says nothing of some of {symbols}")
    return max(registers, default=0), faults or ([f"sm_{target}: ptxas failed"] if run.returncode else [])


def check(ptxas, path):
    with open(path) as file:
        ptx = file.read()
    target = re.search(r"^\.target sm_(\w+)", ptx, flags=re.MULTILINE)[1]
    held = kernels(ptx)
    native = [symbol for symbol in held if is_native(family(symbol), target)]
    registers, faults = assembled(ptxas, target, path, native) if native else (0, [])
    faults += wrong_instructions(target, held)
    print(f"sm_{target}: {os.path.basename(path)}: {len(native)} of {len(held)} kernels have Blackwell's instructions" +
          (f", at most {registers} registers" if native else ""))
    return faults if held else faults + [f"{path}: no kernels"]


def main():
    paths = sys.argv[1:]
    if not paths:
        skip("CMAKE_CUDA_ARCHITECTURES names no target")
    ptxas = find_ptxas()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for some in pool.map(lambda path: check(ptxas, path), paths) for fault in some]
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
