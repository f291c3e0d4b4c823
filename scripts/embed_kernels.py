#!/usr/bin/env python3
"""Makes C of the sources of kernels: embed_kernels.py OUT FILE...

OUT is included by src/backends/cuda/kernels.c: an array of the files, by the names by which they include each other, and a
digest of them all. Files below a folder "kernels" are named alone, others by their path below src/.
"""
import hashlib
import pathlib
import sys


# Those that only the CPU's functions include.
LEFT_OUT = {"arrays.h", "vmath.h", "lanes_plain.h", "lanes_avx2.h", "lanes_avx512.h", "reduce.h"}


def name_of(path):
    below = path.as_posix().rpartition("/src/")[2]
    return path.name if "kernels" in below.split("/")[:-1] else below


def main(out, *files):
    digest, lines, rows = hashlib.sha256(), [], []
    paths = [p for p in map(pathlib.Path, files) if p.suffix != ".md" and (p.parent.name != "vmath" or p.name not in LEFT_OUT)]
    names = [name_of(p) for p in paths]
    if twice := {n for n in names if names.count(n) > 1}:
        sys.exit(f"two kernels' files are named alike: {', '.join(sorted(twice))}")
    for i, path in enumerate(sorted(paths, key=name_of)):
        data = path.read_bytes()
        digest.update(name_of(path).encode() + b"\0" + data + b"\0")
        lines.append(f"static const char kernel_file_{i}[] = {{")
        lines += ["    " + ", ".join(map(str, data[k:k + 32])) + "," for k in range(0, len(data), 32)]
        lines.append("    0};")
        rows.append(f"    {{\"{name_of(path)}\", kernel_file_{i}, sizeof kernel_file_{i} - 1}},")
    lines += ["static const cuda_kernel_file_t kernel_files[] = {", *rows, "};",
              f"static const char kernel_files_digest[] = \"{digest.hexdigest()[:32]}\";"]
    pathlib.Path(out).write_text("\n".join(lines) + "\n")


main(*sys.argv[1:])
