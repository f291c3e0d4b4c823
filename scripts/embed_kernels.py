#!/usr/bin/env python3
"""Makes C of the sources of kernels: embed_kernels.py OUT FILE...

OUT is included by src/backends/cuda/kernels.c: an array of the files, by their names, and a digest of them all.
"""
import hashlib
import pathlib
import sys


def main(out, *files):
    digest, lines, rows = hashlib.sha256(), [], []
    for i, path in enumerate(sorted(map(pathlib.Path, files), key=lambda p: p.name)):
        data = path.read_bytes()
        digest.update(path.name.encode() + b"\0" + data + b"\0")
        lines.append(f"static const char kernel_file_{i}[] = {{")
        lines += ["    " + ", ".join(map(str, data[k:k + 32])) + "," for k in range(0, len(data), 32)]
        lines.append("    0};")
        rows.append(f"    {{\"{path.name}\", kernel_file_{i}, sizeof kernel_file_{i} - 1}},")
    lines += ["static const cuda_kernel_file_t kernel_files[] = {", *rows, "};",
              f"static const char kernel_files_digest[] = \"{digest.hexdigest()[:32]}\";"]
    pathlib.Path(out).write_text("\n".join(lines) + "\n")


main(*sys.argv[1:])
