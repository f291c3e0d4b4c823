#!/usr/bin/env python3
"""Links a build again, so that it runs on any x86-64 Linux with glibc 2.28 or later: link_portable.py BUILD ZIG MHD OUT.

    BUILD  a build folder with gcc; its objects are taken as they are, so that every number is the build's
    ZIG    python with the package ziglang, which writes the C library of 2.28 for a linker (names and versions, no code)
    MHD    libmicrohttpd.a without TLS: Debian's needs GnuTLS
    OUT    gets lib/libassay.so.0, bin/assay and licenses/

The C library's functions are bound to the versions that 2.28 has; everything else but OpenMP's runtime and oneDNN comes from
Debian's static libraries, which is the code that the build has in shared ones. The OpenMP runtime and oneDNN are found where
the wheel puts them (auditwheel).
"""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parents[1]
GLIBC = "2.28"
ARCHIVES = ["z", "jpeg", "png16", "tiff", "xxhash", "jansson", "pcre2-8", "webp", "openjp2", "protobuf-c", "zstd", "lzma",
            "Lerc", "deflate", "stdc++"]
OPENBLAS = pathlib.Path("openblas-openmp/libopenblas.a")
STREAMS = ("stdin", "stdout", "stderr")


def run(*command: object) -> str:
    """The output of a command, which has to succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{words[0]} failed; its arguments end with {' '.join(words[-6:])}\n{done.stdout}")
    return done.stdout


def found(name: str) -> pathlib.Path:
    """A file of the compiler's or the system's, where gcc looks."""
    path = pathlib.Path(run("gcc", f"-print-file-name={name}").strip())
    if not path.is_absolute():
        sys.exit(f"gcc finds no {name}: run scripts/setup")
    return pathlib.Path(os.path.normpath(path))


def old_glibc(zig: pathlib.Path, work: pathlib.Path) -> dict[str, str]:
    """Files of the old C library by name, as zig hands them to its own linker."""
    cache = zig.parents[1] / "zig-cache"
    env = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(work)}
    source = work / "nothing.c"
    source.write_text("int main(void) { return 0; }\n")
    done = subprocess.run([zig, "-m", "ziglang", "cc", "-target", f"x86_64-linux-gnu.{GLIBC}", "-fPIE", "-pie", "-v", source,
                           "-o", work / "nothing"], env=env, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    line = next((ln for ln in reversed(done.stdout.splitlines()) if ln.startswith("ld.lld")), "")
    files = {pathlib.Path(word).name: str(work / word) for word in line.split() if word.endswith((".o", ".a")) or ".so" in word}
    wanted = ("Scrt1.o", "libc_nonshared.a", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libld.so.2")
    if done.returncode or any(name not in files for name in wanted):
        sys.exit(f"zig did not make a C library:\n{done.stdout}")
    return {name: files[name] for name in wanted}


def renamed(file: pathlib.Path, names: tuple[str, ...], folder: pathlib.Path) -> pathlib.Path:
    """A copy of an object or an archive in which names have become those of portable/library.c."""
    copy = folder / file.name
    run("objcopy", *[f"--redefine-sym={name}=assay_inside_{name}" for name in names], file, copy)
    return copy


def objects_of(build: pathlib.Path, folder: pathlib.Path) -> list[pathlib.Path]:
    """The build's objects. The one with main() was made for a program, and main() becomes a function like others."""
    objects = [build / line for line in (build / "objects.txt").read_text().split()]
    missing = [path for path in objects if not path.exists()]
    if missing:
        sys.exit(f"{missing[0]} is not there: build the target assay_wheel first")
    (main,) = [path for path in objects if path.name == "main.c.o" and path.parent.name == "assay_cli.dir"]
    copy = renamed(main, ("main", *STREAMS), folder)
    return [copy if path == main else path for path in objects]


def licenses(files: list[pathlib.Path], folder: pathlib.Path) -> None:
    """The terms of the packages that files are of."""
    folder.mkdir()
    for package in sorted({run("dpkg", "-S", path).split(":")[0] for path in files}):
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", folder / f"{package}.txt")


def link(build: pathlib.Path, zig: pathlib.Path, mhd: pathlib.Path, out: pathlib.Path, work: pathlib.Path) -> None:
    glibc = old_glibc(zig, work)
    shared = [glibc[n] for n in ("libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libc_nonshared.a", "libc.so.6", "libld.so.2")]
    runtime = [found("libgcc.a"), found("libgcc_s.so.1")]
    cache = (build / "CMakeCache.txt").read_text()
    dnnl = next(line.split("=")[1] for line in cache.splitlines() if line.startswith("ASSAY_ONEDNN_LIBRARY:"))
    archives = [found(f"lib{name}.a") for name in ARCHIVES] + [found(f"{OPENBLAS}")]
    begin, end = [found("crti.o"), found("crtbeginS.o")], [found("crtendS.o"), found("crtn.o")]
    for name in ("library", "program"):
        run("gcc", "-std=gnu17", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c", PROJECT / f"scripts/portable/{name}.c", "-o", work / f"{name}.o")
    (out / "lib").mkdir(parents=True)
    (out / "bin").mkdir()
    library, program = out / "lib/libassay.so.0", out / "bin/assay"
    run("gcc", "-shared", "-nostdlib", "-o", library, "-Wl,-soname,libassay.so.0", "-Wl,--no-undefined", "-Wl,--fatal-warnings",
        f"-Wl,--version-script={PROJECT}/cmake/libassay.map", "-Wl,-rpath,$ORIGIN", "-Wl,-s", *begin, *objects_of(build, work),
        work / "library.o", "-Wl,--start-group", *[renamed(a, STREAMS, work) for a in [*archives, mhd]], "-Wl,--end-group",
        "-Wl,--as-needed", dnnl, found("libgomp.so.1"), *shared, *runtime, *shared, *end)
    run("gcc", "-pie", "-nostdlib", "-o", program, "-Wl,-rpath,$ORIGIN/../lib", "-Wl,-s", "-Wl,--allow-shlib-undefined", glibc["Scrt1.o"],
        *begin, work / "program.o", library, *shared, *runtime, *end)
    licenses([*archives, found("libgcc.a")], out / "licenses")


def main(build: str, zig: str, mhd: str, out: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        link(pathlib.Path(build).resolve(), pathlib.Path(zig).absolute(), pathlib.Path(mhd).resolve(), pathlib.Path(out).resolve(), pathlib.Path(folder))


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
