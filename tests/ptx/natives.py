#!/usr/bin/env python3
"""natives.py HALFULP FILE.ptx...: reads probe.cu as compiled for each target. The kernel of a conversion must hold that
instruction where the catalog gives it to the target, and no instruction of the catalog elsewhere; and ptxas must
assemble the file without a warning or a spill. Prints registers and spills for each target."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from assemble import catalog_rows, find_ptxas, skip, targets_of


def kernels(ptx):
    """Catalog position -> instructions cvt.* in the kernel's body."""
    parts = re.split(r"^\s*(?:\.visible )?\.entry \w*5probeILi(\d+)E\w*\(", ptx, flags=re.MULTILINE)
    return {int(position): re.findall(r"\bcvt\.[\w.]+", body) for position, body in zip(parts[1::2], parts[2::2])}


def wrong_instructions(target, ptx, rows):
    names = {row["name"] for row in rows}
    held = kernels(ptx)
    for position, row in enumerate(rows):
        expected = [row["name"]] if target in targets_of(row) else []
        got = None if position not in held else [name for name in held[position] if name in names]
        if got != expected:
            yield f"sm_{target}: the kernel of {row['name']} holds {got}, not {expected}"


def assembly_report(ptxas, target, path):
    """A line on registers and spills, and what is wrong."""
    command = [ptxas, "-v", "-arch", f"sm_{target}", path, "-o", os.devnull]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [line for line in run.stdout.splitlines() if re.search("warning|error", line)]
    registers = [int(count) for count in re.findall(r"Used (\d+) registers", run.stdout)]
    spilled = [int(count) for count in re.findall(r"(\d+) bytes spill stores", run.stdout)]
    report = f"at most {max(registers, default=0)} registers, {sum(spilled)} bytes spilled"
    if run.returncode or sum(spilled) or not registers:
        lines.append(report)
    return report, [f"sm_{target}: ptxas: {line}" for line in lines]


def check(ptxas, path, rows):
    with open(path) as file:
        ptx = file.read()
    target = re.search(r"^\.target sm_(\w+)", ptx, flags=re.MULTILINE).group(1)
    report, faults = assembly_report(ptxas, target, path)
    faults += wrong_instructions(target, ptx, rows)
    native = sum(target in targets_of(row) for row in rows)
    print(f"sm_{target}: {native} of {len(rows)} conversions are instructions; {report}")
    return faults


def main():
    halfulp, *paths = sys.argv[1:]
    if not paths:
        skip("CMAKE_CUDA_ARCHITECTURES names no target")
    ptxas, rows = find_ptxas(), catalog_rows(halfulp)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for part in pool.map(lambda path: check(ptxas, path, rows), paths) for fault in part]
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
