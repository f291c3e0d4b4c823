#!/usr/bin/env python3
"""Packs a build with its tests for a machine that has neither Debian's packages nor PyPI.

    bench/pack.py pack [BUILD] [-o FILE]     build/pack/assay.tar.xz from build/release
    bench/pack.py unpack FILE [BUILD]        there, in a checkout of the same commit: links all programs

Test programs are 30 MB each and nearly the same, so objects travel and are linked again there: the
other machine needs gcc, CMake (ctest) and python3 with numpy and onnx, which stand in for
those of build/venv. Shared libraries travel too, but for the C library's own: run tests with
LD_LIBRARY_PATH=build/pack/lib."""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What each machine has for itself: these belong to its C library and compiler.
OWN = re.compile(r"lib(c|m|pthread|dl|rt|gcc_s|stdc\+\+)\.(so|a)|ld-linux|linux-vdso")
PLACE = "@ROOT@"


def links(build):
    """(command, output) of each program and library that ninja links."""
    text = subprocess.run(["ninja", "-C", build, "-t", "commands", "all"], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        match = re.search(r" -o (\S+) ", line)
        if match and " -c " not in line and line.startswith(": && ") and not match[1].endswith(".o"):
            yield line[5:].removesuffix(" && :"), match[1]


def copy(file, to, strip=False):
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)
    to.chmod(0o755)
    if strip:
        subprocess.run(["strip", "--strip-debug", to], check=True)


def copy_once(file, folder, name):
    """One library has several names: the others are links to the first."""
    contents = hashlib.sha256(file.read_bytes()).hexdigest()
    for other in folder.glob("*"):
        if not other.is_symlink() and hashlib.sha256(other.read_bytes()).hexdigest() == contents:
            if other.name != name and not (folder / name).exists():
                (folder / name).symlink_to(other.name)
            return
    copy(file, folder / name)


def pack_libraries(tree, build, commands):
    """Shared libraries that commands name, and what those need, by file name."""
    wanted = {pathlib.Path(word) for command in commands for word in command.split()
              if word.startswith("/") and re.search(r"\.so(\.\d+)*$|\.a$", word)}
    for file in sorted(wanted):
        if not OWN.search(file.name):
            copy_once(file, tree / "build/pack/lib", file.name)
    needed = subprocess.run(["ldd", build / "src/cli/assay", build / "tests/ops_test_double_double"], check=True, capture_output=True, text=True).stdout
    for name, path in re.findall(r"(\S+) => (/\S+)", needed):
        if not OWN.search(name):
            copy_once(pathlib.Path(path), tree / "build/pack/lib", name)


def pack(build, out):
    tree = out.parent / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    there = tree / build.relative_to(ROOT)
    rows = list(links(build))
    made = {output for _, output in rows}
    pack_libraries(tree, build, [command for command, _ in rows])
    objects = {word for command, _ in rows for word in command.split() if word.endswith((".o", ".a")) and not word.startswith("/")}
    for name in sorted(objects):
        copy(build / name, there / name, strip=True)
    keep = re.compile(r"^(models|share|tests(?!/tmp))/|CTestTestfile\.cmake$|^libassay|^assay-config|^assay\.pc")
    for file in build.rglob("*"):
        name = file.relative_to(build).as_posix()
        if not file.is_file() or name in made or name in objects or "CMakeFiles" in name or not keep.search(name):
            continue
        if file.is_symlink():
            (there / name).parent.mkdir(parents=True, exist_ok=True)
            (there / name).symlink_to(os.readlink(file))
        elif name.endswith("CTestTestfile.cmake"):
            (there / name).parent.mkdir(parents=True, exist_ok=True)
            (there / name).write_text(file.read_text().replace(str(ROOT), PLACE))
        elif file.stat().st_size < 1 << 20 or not file.read_bytes().startswith(b"\x7fELF"):
            copy(file, there / name, strip=name.endswith(".a"))
    (there / "link.txt").write_text("".join(
        f"{command.replace(str(ROOT), PLACE)}\n" for command, _ in rows))
    if (ROOT / "build/cases").exists():
        shutil.copytree(ROOT / "build/cases", tree / "build/cases")
    subprocess.run(["tar", "-C", tree, "-cJf", out, "."], check=True, env={**os.environ, "XZ_OPT": "-T0 -6"})
    shutil.rmtree(tree)
    print(f"{out.relative_to(ROOT)}: {out.stat().st_size / 1e6:.1f} MB")


def relinked(command):
    """The command with libraries of the pack instead of the first machine's."""
    words = []
    for word in command.replace(PLACE, str(ROOT)).split():
        name = pathlib.Path(word).name
        if word.startswith("-Wl,-rpath,"):
            words.append(f"-Wl,-rpath,{ROOT}/build/pack/lib")
        elif word.startswith("/") and re.search(r"\.so(\.\d+)*$|\.a$", word):
            words.append("-lpthread" if name.startswith("libpthread") else
                         f"{ROOT}/build/pack/lib/{name}" if not OWN.search(name) else word)
        else:
            words.append("cc" if word == "/usr/bin/cc" else "c++" if word == "/usr/bin/c++" else word)
    return " ".join(words) + f" -Wl,-rpath-link,{ROOT}/build/pack/lib"


def unpack(file, build):
    with tarfile.open(file) as archive:
        archive.extractall(ROOT, filter="fully_trusted")
    for tests in build.rglob("CTestTestfile.cmake"):
        tests.write_text(tests.read_text().replace(PLACE, str(ROOT)))
    python = ROOT / "build/venv/bin/python"
    if not python.exists():
        python.parent.mkdir(parents=True, exist_ok=True)
        for name in ("python", "python3"):
            (python.parent / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            (python.parent / name).chmod(0o755)
    commands = [relinked(line) for line in (build / "link.txt").read_text().splitlines()]
    # A library that others are linked to comes first.
    commands.sort(key=lambda command: "-shared" not in command)
    first = sum("-shared" in command for command in commands)

    for command in commands:
        (build / re.search(r" -o (\S+) ", command)[1]).parent.mkdir(parents=True, exist_ok=True)

    def run(command):
        done = subprocess.run(command, shell=True, cwd=build, capture_output=True, text=True)
        return f"{command}\n{done.stderr}" if done.returncode else ""

    failed = [text for text in map(run, commands[:first]) if text]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed += [text for text in pool.map(run, commands[first:]) if text]
    print(f"{len(commands)} programs linked, {len(failed)} failed")
    print("\n".join(failed[:3]))
    return bool(failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("pack", "unpack"))
    parser.add_argument("words", nargs="*")
    parser.add_argument("-o", default=ROOT / "build/pack/assay.tar.xz", type=pathlib.Path)
    args = parser.parse_args()
    if args.verb == "pack":
        build = ROOT / (args.words[0] if args.words else "build/release")
        args.o.parent.mkdir(parents=True, exist_ok=True)
        return pack(build, args.o.resolve())
    if not args.words:
        parser.error("unpack wants the file")
    return unpack(pathlib.Path(args.words[0]).resolve(), ROOT / (args.words[1] if len(args.words) > 1 else "build/release"))


if __name__ == "__main__":
    sys.exit(main())
