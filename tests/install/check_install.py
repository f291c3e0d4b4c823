#!/usr/bin/env python3
"""Installs a build into a folder, moves that folder, and uses what is in it as others would.

    check_install.py BUILD CMAKE CC MODELS

The program and the libraries run from the new place; libassay exports assay_* only; one OpenMP runtime
is loaded; each project in examples/ is built against the tree with pkg-config (shared and static) and
with CMake, and run.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    """The output of a command, which has to succeed."""
    command = [str(c) for c in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\nexit code {done.returncode}")
    return done.stdout


def exported(*nm_options):
    """Global symbols that a library defines."""
    lines = run("nm", "--defined-only", *nm_options).splitlines()
    return {m.group(1) for m in (re.match(r"[0-9a-f]* ?[A-Z] (\S+)$", line) for line in lines) if m}


def check_symbols(lib):
    shared = exported("-D", lib / "libassay.so")
    static = exported("-g", lib / "libassay.a")
    for name, symbols in (("libassay.so", shared), ("libassay.a", static)):
        strange = sorted(s for s in symbols if not s.startswith("assay_"))
        if strange or not symbols:
            sys.exit(f"{name} exports {len(symbols)} symbols, among them {strange[:5]}")
    declared = set()
    for header in (PROJECT / "include/assay").glob("*.h"):
        declared |= set(re.findall(r"^ASSAY_API[^;(]*?(assay_\w+)\(", header.read_text(), re.M))
    for name, symbols in (("libassay.so", shared), ("libassay.a", static)):
        if symbols != declared:
            sys.exit(f"{name}: not declared {sorted(symbols - declared)}, not defined {sorted(declared - symbols)}")
    print(f"libassay exports {len(shared)} functions, as declared")


def check_loading(tree, cc):
    for file in (tree / "bin/assay", tree / "lib/libassay.so"):
        loaded = run("ldd", file)
        if "not found" in loaded:
            sys.exit(f"{file.name} does not load:\n{loaded}")
        runtimes = set(re.findall(r"lib(?:gomp|omp|iomp5)\.so\S*", loaded))
        # clang's own comes beside the one that OpenBLAS needs.
        if len(runtimes) != 1 and "clang" not in run(cc, "--version"):
            sys.exit(f"{file.name} loads {len(runtimes)} OpenMP runtimes: {sorted(runtimes)}")
        path = run("readelf", "-d", file)
        if "$ORIGIN" not in path or str(PROJECT) in path:
            sys.exit(f"{file.name}: run path is not relative:\n{path}")
    run(tree / "bin/assay", "--version")
    run(tree / "bin/assay", "--help")


def check_share(tree):
    """Each verb has its manual page, and each shell its completion."""
    verbs = re.findall(r"ASSAY_VERB\((\w+)\)", (PROJECT / "src/cli/verbs.inc").read_text())
    wanted = ["man/man1/assay.1", *(f"man/man1/assay-{v.replace('_', '-')}.1" for v in verbs),
              "bash-completion/completions/assay", "zsh/site-functions/_assay", "fish/vendor_completions.d/assay.fish"]
    lacking = [f for f in wanted if not (tree / "share" / f).is_file() or not (tree / "share" / f).stat().st_size]
    if lacking:
        sys.exit(f"not installed: {', '.join(lacking)}")


def check_headers_shown():
    """Each public header that declares functions has an example that calls one of them."""
    used = set()
    for source in (PROJECT / "examples").glob("*/*.c"):
        used |= set(re.findall(r"\bassay_\w+", source.read_text()))
    lacking = []
    for header in sorted((PROJECT / "include/assay").glob("*.h")):
        functions = set(re.findall(r"^ASSAY_API[^;(]*?(assay_\w+)\(", header.read_text(), re.M))
        if functions and not functions & used:
            lacking.append(header.name)
    if lacking:
        sys.exit(f"no example calls a function of {', '.join(lacking)}")


def build_examples(tree, work, cmake, cc, models, platform):
    """platform: the CUDA platform without a GPU, on which examples for GPUs run."""
    with_gpu = {**os.environ, "ASSAY_CUDA_PATH": str(platform)}
    environment = {**os.environ, "PKG_CONFIG_PATH": str(tree / "lib/pkgconfig")}

    def arguments_of(example):
        """The words of arguments.txt, which may name the models for tests and a folder to write to."""
        file = example / "arguments.txt"
        return file.read_text().replace("@MODELS@", models).replace("@WORK@", str(work)).split() if file.exists() else []

    def pkg_config(*options):
        return run("pkg-config", *options, "assay", env=environment).split()

    for example in sorted(p for p in (PROJECT / "examples").iterdir() if (p / "CMakeLists.txt").exists()):
        name = example.name
        arguments = arguments_of(example)
        strict = ["-std=c17", "-Wall", "-Wextra", "-pedantic", "-Werror"]
        sources = sorted(example.glob("*.c"))
        shared, static = work / f"{name}_shared", work / f"{name}_static"
        run(cc, *strict, *sources, *pkg_config("--cflags", "--libs"), "-lm", f"-Wl,-rpath,{tree}/lib", "-o", shared)
        others = [w for w in pkg_config("--static", "--libs") if w != "-lassay"]
        run(cc, *strict, *sources, *pkg_config("--cflags"), tree / "lib/libassay.a", *others, "-o", static)
        if "libassay" in run("ldd", static):
            sys.exit(f"{static} is not linked with the static library")
        run(cmake, "-G", "Ninja", "-S", example, "-B", work / name, f"-DCMAKE_PREFIX_PATH={tree}", f"-DCMAKE_C_COMPILER={cc}")
        run(cmake, "--build", work / name)
        outputs = {run(program, *arguments, env=with_gpu) for program in (shared, static, work / name / name)}
        if len(outputs) != 1:
            sys.exit(f"example {name}: builds of it disagree:\n" + "\n".join(outputs))
        print(f"example {name}: built with pkg-config, statically and with CMake; {len(outputs.pop().splitlines())} lines")


def check_static_package(tree, work, cmake, cc):
    source = work / "static_package"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user C)\nfind_package(assay 0.2 REQUIRED COMPONENTS static)\n"
        f"add_executable(user {PROJECT}/tests/test_headers.c)\ntarget_link_libraries(user PRIVATE assay::static)\n")
    run(cmake, "-G", "Ninja", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={tree}", f"-DCMAKE_C_COMPILER={cc}")
    run(cmake, "--build", source / "build")
    run(source / "build/user")


def check_triton(tree, work, cmake, cc):
    """The backend exports what Triton looks for and finds Assay beside it; its project builds against the tree."""
    place = "lib/triton/backends/assay/libtriton_assay.so"
    run(cmake, "-G", "Ninja", "-S", PROJECT / "integrations/triton", "-B", work / "triton", f"-DCMAKE_PREFIX_PATH={tree}",
        f"-DCMAKE_C_COMPILER={cc}", "-DCMAKE_C_FLAGS=-Werror", f"-DCMAKE_INSTALL_PREFIX={work}/triton_tree", "-DCMAKE_INSTALL_LIBDIR=lib")
    run(cmake, "--build", work / "triton")
    run(cmake, "--install", work / "triton")
    names = set(re.findall(r"^BACKEND_EXPORT .*?(TRITONBACKEND_\w+)\(", (PROJECT / "integrations/triton/api.h").read_text(), re.M | re.S))
    for file in (tree / place, work / "triton_tree" / place):
        if exported("-D", file) != names or not names:
            sys.exit(f"{file} exports {sorted(exported('-D', file))}, not {sorted(names)}")
    if "libassay.so.0 => not found" in run("ldd", tree / place):
        sys.exit(f"{tree / place} does not find libassay")
    print(f"the backend for Triton exports {len(names)} functions")


def main(build, cmake, cc, models):
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        first, tree = work / "first", work / "moved/assay"
        run(cmake, "--install", build, "--prefix", first)
        tree.parent.mkdir()
        first.rename(tree)
        check_symbols(tree / "lib")
        check_loading(tree, cc)
        check_share(tree)
        check_headers_shown()
        build_examples(tree, work, cmake, cc, models, pathlib.Path(build) / "tests/libcuda")
        check_static_package(tree, work, cmake, cc)
        check_triton(tree, work, cmake, cc)
        print("installed:", ", ".join(sorted(str(p.relative_to(tree)) for p in tree.rglob("*") if p.is_file())))


if __name__ == "__main__":
    main(*sys.argv[1:])
