"""readme.py HALFULP DEMO_TENSORS README [--update]: runs the commands of sections of the README and compares what they
print with what it says.

The sections are those of SECTIONS. In their code blocks lines that begin with "$ " are commands, and so are those
after them that are indented by four spaces; what follows, up to the next command, is their output. They run in one
folder with tensors.safetensors and capture.safetensors, the demo's, s.npy, and the sources' tests; assignments of variables hold for the
commands after them. --update writes the outputs anew.
"""

import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

SECTIONS = re.compile(r"(?ms)^## (?:Ask about a matrix product|Ask what stays)\n.*?(?=^## )")


def write_sixteenths(path):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 32768), }"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117) + b"\n" + struct.pack("<f", 1 / 16) * 32768)


def commands_of(block):
    """(command lines, output lines) of a block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(([line], []))
        elif line.startswith("    ") and found and not found[-1][1]:
            found[-1][0].append(line)
        elif found:
            found[-1][1].append(line)
    return found


def output_of(lines, folder, programs, variables):
    command = "\n".join([lines[0][2:], *lines[1:]])
    if command.startswith("python3 "):  # makes s.npy with NumPy, which may be missing here
        return []
    if re.fullmatch(r"\w+=\S+", command):
        variables.append(command)
        return []
    command = "; ".join([*variables, command])
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.stderr:
        sys.exit(f"{command}\nwrites to stderr: {done.stderr}")
    return done.stdout.splitlines()


def main():
    halfulp, demo_tensors, readme = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    text = readme.read_text()
    section = "".join(SECTIONS.findall(text))
    wrong, count = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([demo_tensors, folder / "tensors.safetensors", folder / "capture.safetensors"], check=True)
        write_sixteenths(folder / "s.npy")
        (folder / "tests").symlink_to(readme.parent / "tests")
        updated, variables = text, []
        for language, block in re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", section):
            if language:
                continue
            written = ""
            for lines, expected in commands_of(block):
                got, count = output_of(lines, folder, halfulp.parent, variables), count + 1
                written += "\n".join([*lines, *got]) + "\n"
                if got != expected:
                    wrong += 1
                    print("\n".join([f"README.md says otherwise than the program: {lines[0]}", "--- README.md", *expected, "--- program", *got]))
            updated = updated.replace(f"```\n{block}```", f"```\n{written}```")
    if "--update" in sys.argv:
        readme.write_text(updated)
    print(f"{count} commands, {wrong} print something else")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
