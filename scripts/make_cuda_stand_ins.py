#!/usr/bin/env python3
"""Lets PyTorch's wheel be imported without CUDA's libraries: make_cuda_stand_ins.py VENV.

The wheel on PyPI is built with CUDA and linked against libraries of 4 GB (cuBLAS, cuDNN, NCCL, ...), of which nothing is called
on a machine without a GPU. In the place of those that are missing, libraries are put beside PyTorch's own whose functions
end the program, should one be called after all. The CUDA runtime itself (0.8 MB) has to be there: it is called when
PyTorch is loaded. Does nothing where PyTorch or nothing is missing. For the tests' environments only.
"""
import pathlib
import re
import subprocess
import sys

LIBRARY = re.compile(r"lib(?:cu|nccl|nv)[\w.]*\.so\.\d+$")
# cuda* and __cuda* are the runtime's.
FUNCTION = re.compile(r"(?:cu(?!da)|nccl|nvrtc|nvshmem|nvtx)\w+$")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(venv):
    folders = list(pathlib.Path(venv).glob("lib/python3*/site-packages"))
    own = folders[0] / "torch/lib" if folders else pathlib.Path(venv, "torch/lib")
    if not own.is_dir():
        return
    present = {path.name for folder in (own, folders[0] / "nvidia") for path in folder.rglob("*.so*")}
    missing: set[str] = set()
    functions: dict[str, set[str]] = {}  # by the version of symbols; "": none
    for path in own.glob("*.so"):
        needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-dW", path))
        missing |= {name for name in needed if LIBRARY.match(name) and name not in present and name != "libcuda.so.1"}
        for line in output_of("nm", "-D", "--undefined-only", path).splitlines():
            name, _, version = line.split()[-1].partition("@")
            if FUNCTION.match(name):
                functions.setdefault(version, set()).add(name)
    if not missing:
        return
    source, versions, all_of_them = own / "cuda_stand_in.c", own / "cuda_stand_in.map", own / "libcuda_stand_in.so"
    names = sorted(set().union(*functions.values()))
    source.write_text("".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in names))
    versions.write_text("".join(f"{version} {{ global: {'; '.join(sorted(of))}; }};\n" for version, of in functions.items() if version))
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", f"-Wl,--version-script={versions}", "-o", all_of_them, source], check=True)
    for name in sorted(missing):
        (own / name).symlink_to(all_of_them.name)


if __name__ == "__main__":
    main(sys.argv[1])
