#!/usr/bin/env python3
"""hot_kernels.py HALFULP REPORT FILE.ptx...: reads hot_kernels.cu as compiled for each target. A kernel must hold the
conversions of the catalog that its recipe asks for where the target has them, as often as a thread's elements say, and
none elsewhere; and ptxas must assemble it without a warning, a spill or memory of its own. Prints a table of kernels and
targets, and writes it to REPORT."""

import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Sequence, Tuple

from assemble import catalog_rows, describe_verb, find_ptxas, skip, targets_of


class Hot(NamedTuple):
    """A kernel of hot_kernels.cu, and what its recipe converts with: its code has so many elements and scales at a time,
    those of a run of a row, and in kernels for columns of the thread's columns too."""

    kernel: str
    recipe: str
    source: str
    variant: str  # "rows", or what a kernel makes beside them
    elements: int
    scales: int
    element: str
    scale: Sequence[Tuple[str, ...]]  # instructions of one scale, those in a tuple where a target has all of them
    also: Sequence[Tuple[str, int]] = ()  # what elements are converted to before that, and how many

    def key(self):
        return self[:4]

    def label(self):
        return f"{self.recipe} of {self.source.upper()}, {self.variant}"

    def expected(self, target, rows):
        """Instruction -> how often."""
        counts = Counter()
        for name, elements in [(self.element, self.elements), *self.also]:
            if target in targets_of(rows[name]):
                counts[name] = elements // len(rows[name]["lanes"])
        for together in self.scale:
            if all(target in targets_of(rows[name]) for name in together):
                counts.update({name: self.scales for name in together})
        return counts


E4M3, E5M2, E2M1, E2M1_STOCHASTIC, UE8M0, BF16 = (
    "cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.satfinite.e5m2x2.f32", "cvt.rn.satfinite.e2m1x2.f32",
    "cvt.rs.satfinite.e2m1x4.f32", "cvt.rp.satfinite.ue8m0x2.f32", "cvt.rn.bf16x2.f32")
MX_SCALE = [(UE8M0,)]
NV_SCALE = [(E4M3,), ("cvt.rn.f16x2.e4m3x2", "cvt.f32.f16")]  # to UE4M3, without a sign that E4M3 would need, and back
STOCHASTIC = "nvfp4/te+rounding=stochastic+random=te"
HOT = [
    Hot("quantize_kernel", "mxfp8/te", "Bf16", "rows", 32, 1, E4M3, MX_SCALE),
    Hot("quantize_kernel", "mxfp8/te-e5m2", "Bf16", "rows", 32, 1, E5M2, MX_SCALE),
    Hot("quantize_kernel", "nvfp4/te", "Bf16", "rows", 16, 1, E2M1, NV_SCALE),
    Hot("quantize_kernel", "nvfp4/te", "F32", "rows", 16, 1, E2M1, NV_SCALE),
    Hot("quantize_kernel", "nvfp4/te-2d", "Bf16", "rows", 16, 1, E2M1, NV_SCALE),
    Hot("quantize_kernel", STOCHASTIC, "Bf16", "rows", 16, 1, E2M1_STOCHASTIC, NV_SCALE),
    Hot("quantize_in_place_kernel", "mxfp8/te", "Bf16", "rows and columns", 16 + 4 * 32, 5, E4M3, MX_SCALE),
    Hot("quantize_both_kernel", "nvfp4/te", "Bf16", "rows and columns", 16 + 2 * 16, 3, E2M1, NV_SCALE),
    Hot("quantize_both_kernel", "nvfp4/te", "Bf16", "rows and rotated columns", 16 + 2 * 16, 3, E2M1, NV_SCALE,
        [(BF16, 2 * 16)]),
]


def key_of(symbol, recipes):
    """Hot.key() of a kernel's name in PTX."""
    match = re.match(r"_ZN7halfulp3gpu\d+(quantize\w*_kernel)ILi(\d+)ENS0_\d(F32|F16|Bf16)E", symbol)
    if not match:
        return symbol
    variant = "rows" if match[1] == "quantize_kernel" else "rows and columns"
    if "ColumnValuesE1" in symbol:
        variant = "rows and rotated columns"
    return match[1], recipes[int(match[2])], match[3], variant


def kernels(ptx, recipes):
    """Key -> the conversions in the kernel's body."""
    parts = re.split(r"^\s*(?:\.visible |\.weak )?\.entry (\w+)\(", ptx, flags=re.MULTILINE)
    return {key_of(symbol, recipes): re.findall(r"\bcvt\.[\w.]+", body)
            for symbol, body in zip(parts[1::2], parts[2::2])}


def wrong_instructions(target, held, rows):
    known = {hot.key(): hot for hot in HOT}
    for key in {**known, **held}:
        if key not in known or key not in held:
            yield f"sm_{target}: {key} is in one of hot_kernels.cu and hot_kernels.py only"
            continue
        got, expected = Counter(name for name in held[key] if name in rows), known[key].expected(target, rows)
        if got != expected:
            yield f"sm_{target}: {known[key].label()}: holds {dict(got)}, not {dict(expected)}"


class Assembly(NamedTuple):
    registers: int
    spilled: int
    stack: int  # bytes of local memory


def assembled(ptxas, target, path, recipes):
    """Key -> Assembly, and what ptxas complains of."""
    command = [ptxas, "-v", "-arch", f"sm_{target}", path, "-o", os.devnull]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = {}
    for part in run.stdout.split("Compiling entry function ")[1:]:
        stack, stores, loads = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+)", part).groups()
        registers = re.search(r"Used (\d+) registers", part)[1]
        found[key_of(part.split("'")[1], recipes)] = Assembly(int(registers), int(stores) + int(loads), int(stack))
    complaints = [f"sm_{target}: ptxas: {line}" for line in run.stdout.splitlines() if re.search("warning|error", line)]
    return found, complaints or ([f"sm_{target}: ptxas failed"] if run.returncode else [])


def check(ptxas, path, rows, recipes):
    """The target, a table's cell for each of HOT, and what is wrong."""
    with open(path) as file:
        ptx = file.read()
    target = re.search(r"^\.target sm_(\w+)", ptx, flags=re.MULTILINE)[1]
    held = kernels(ptx, recipes)
    assemblies, faults = assembled(ptxas, target, path, recipes)
    faults += wrong_instructions(target, held, rows)
    cells = []
    for hot in HOT:
        assembly = assemblies.get(hot.key(), Assembly(0, 0, 0))
        native = sum(name in rows for name in held.get(hot.key(), []))
        cells.append(f"{assembly.registers} {assembly.spilled} {native}")
        if assembly.registers == 0 or assembly.spilled or assembly.stack:
            faults.append(f"sm_{target}: {hot.label()}: {assembly}")
    return target, cells, faults


def table(columns):
    """Kernels down, targets across."""
    lines = [["registers, bytes spilled, native conversions", *(f"sm_{target}" for target, _, _ in columns)]]
    lines += [[hot.label(), *(cells[i] for _, cells, _ in columns)] for i, hot in enumerate(HOT)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    rows = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
    return "\n".join(["Hot kernels as ptxas assembles them:", *rows, ""])


def main():
    halfulp, report, *paths = sys.argv[1:]
    ptxas, rows = find_ptxas(), {row["name"]: row for row in catalog_rows(halfulp)}
    recipes = [kernel["recipe"] for kernel in describe_verb(halfulp, "doctor")["kernels"]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        columns = list(pool.map(lambda path: check(ptxas, path, rows, recipes), paths))
    text = table(columns)
    with open(report, "w") as file:
        file.write(text)
    faults = [fault for _, _, some in columns for fault in some]
    print(text + "\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
