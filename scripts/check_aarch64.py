#!/usr/bin/env python3
"""Whether the sources compile for AArch64: the same commands as another build's, by another compiler.

    scripts/check_aarch64.py [COMPILE_COMMANDS.json]

Checks syntax and types only; nothing is linked or run. Headers of libraries are those of this machine.
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

COMPILER = "aarch64-linux-gnu-gcc"
HEADERS = ["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"]


def command(entry):
    """The compiler's command, without what names an x86 machine or a result."""
    words = shlex.split(entry["command"])
    while not words[0].startswith("-"):  # ccache, compiler
        words.pop(0)
    kept = []
    for word, before in zip(words, [""] + words):
        if word != "-o" and before != "-o" and not word.startswith("-m"):
            kept.append(word)
    return [COMPILER, *kept, "-fsyntax-only", *HEADERS]


def check(entry):
    done = subprocess.run(command(entry), cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], done.returncode, done.stderr


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "build/release/compile_commands.json"
    with open(path) as f:
        entries = [e for e in json.load(f) if e["file"].endswith(".c") and "/src/" in e["file"]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [(file, text) for file, code, text in pool.map(check, entries) if code]
    for file, text in wrong:
        print(file, text, sep="\n")
    print(f"{len(entries) - len(wrong)} of {len(entries)} files compile for AArch64")
    return 1 if wrong or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
