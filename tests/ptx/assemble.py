#!/usr/bin/env python3
"""assemble.py HALFULP: has ptxas assemble every conversion of the catalog, as the program spells it, for every target,
and compares what it accepts with what the catalog says. Exits 77 where ptxas is missing or older than the catalog.

Strict with PTX ISA 9.0, from which the catalog was read. A later ptxas must accept what the catalog says, and may accept
more."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

CATALOG_ISA = (9, 0)
CANDIDATE_ISAS = [(major, minor) for major in range(12, 6, -1) for minor in range(9, -1, -1)]
ELEMENT_BITS = {"f32": 32, "tf32": 32, "f16": 16, "bf16": 16, "e2m1": 4}  # the others have 8


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def describe_verb(halfulp, *words):
    run = subprocess.run([halfulp, *words, "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(run.stdout)


def describe(halfulp, *words):
    return describe_verb(halfulp, "formats", *words)


def catalog_rows(halfulp):
    """What the program says of each instruction, by catalog position."""
    names = [row["name"] for row in describe(halfulp)["instructions"]]
    return [row for name in names for row in describe(halfulp, name)["found"] if row["kind"] == "instruction"]


def targets_of(row):
    return set(re.findall(r"sm_(\w+)", row["targets"]))


def find_ptxas():
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    if not ptxas:
        skip("no ptxas on PATH or in /usr/local/cuda/bin")
    return ptxas


def source_bits(row):
    packed = "a;" in row["syntax"] or "a, rbits;" in row["syntax"]
    return ELEMENT_BITS.get(row["source"], 8) * (len(row["lanes"]) if packed else 1)


def statement(row):
    """The instruction in front of the registers that it names, on a line of its own."""
    registers = [f".reg {row['destination']} d;", f".reg .b{source_bits(row)} a, b, e, f;", ".reg .b32 rbits;"]
    return " ".join(["{", *registers, row["syntax"], "}"])


class Assembler:
    """Runs ptxas with the newest PTX ISA that it knows; isa is None where it knows none."""

    def __init__(self, ptxas, folder):
        self.ptxas = ptxas
        self.path = os.path.join(folder, "k.ptx")
        self.isa = next((isa for isa in CANDIDATE_ISAS if self.knows("80", isa)), None)

    def run(self, lines, target, isa=None):
        """ptxas's answer, and the lines (from 0) in which it found fault."""
        major, minor = isa or self.isa
        head = [f".version {major}.{minor}", f".target sm_{target}", ".address_size 64", ".entry k() {"]
        with open(self.path, "w") as file:
            file.write("\n".join([*head, *lines, "ret; }", ""]))
        command = [self.ptxas, "-arch", f"sm_{target}", self.path, "-o", os.devnull]
        answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return answer, {int(number) - len(head) - 1 for number in re.findall(r"line (\d+);", answer.stdout)}

    def knows(self, target, isa=None):
        return self.run([], target, isa)[0].returncode == 0

    def accepted(self, rows, target):
        """The names of the rows that ptxas assembles together, after those in which it found fault were taken out."""
        while True:
            answer, faults = self.run([statement(row) for row in rows], target)
            if answer.returncode == 0:
                return {row["name"] for row in rows}
            if not faults:
                sys.exit(f"sm_{target}: {answer.stdout}")
            rows = [row for line, row in enumerate(rows) if line not in faults]


def disagreements(assembler, rows):
    """Yields a sentence for each target of each row where ptxas and the catalog differ, given that ptxas knows it."""
    claimed = {row["name"]: targets_of(row) for row in rows}
    targets = sorted(target for target in set.union(*claimed.values()) if assembler.knows(target))
    print(f"{len(rows)} instructions, PTX ISA {assembler.isa[0]}.{assembler.isa[1]}, targets {' '.join(targets)}")
    for target in targets:
        accepted = assembler.accepted(rows, target)
        for name in sorted(claimed):
            expected = target in claimed[name]
            newer = assembler.isa > CATALOG_ISA and name in accepted
            if (name in accepted) != expected and not newer:
                yield f"{name}: sm_{target}: {'accepted' if name in accepted else 'rejected'}, against the catalog"


def main():
    halfulp = sys.argv[1]
    ptxas = find_ptxas()
    rows = catalog_rows(halfulp)
    with tempfile.TemporaryDirectory() as folder:
        assembler = Assembler(ptxas, folder)
        if assembler.isa is None or assembler.isa < CATALOG_ISA:
            skip(f"{ptxas} is older than PTX ISA {CATALOG_ISA[0]}.{CATALOG_ISA[1]}")
        faults = list(disagreements(assembler, rows))
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
