#!/usr/bin/env python3
"""Makes the Debian packages of a build, and looks at what is in them.

    check_packages.py BUILD CMAKE CC MODELS

Control files, paths and permissions are Debian's; extracted into a folder, the program runs, and a program is compiled against
the library by pkg-config and by CMake. With ASSAY_FULL=1 lintian finds neither errors nor warnings, and the packages are
installed, used and purged in a bare Debian (bare_root.py; as root).
"""
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

import bare_root
from check_install import PROJECT, exported, run

PACKAGES = ("assay", "libassay0", "libassay-dev")


def need(true, message):
    if not true:
        sys.exit(message)


def fields(deb):
    text = run("dpkg-deb", "--field", deb)
    return dict(re.findall(r"^(\S+): *(.*(?:\n .*)*)", text, re.M))


def check_control(deb, tree, control):
    """What dpkg reads: dependencies, checksums of all files, no scripts."""
    about = fields(deb)
    name = about["Package"]
    scripts = [s for s in ("preinst", "postinst", "prerm", "postrm") if (control / s).exists()]
    need(not scripts, f"{name} has scripts: {scripts}")
    sums = {path: digest for digest, path in (line.split(None, 1) for line in (control / "md5sums").read_text().splitlines())}
    files = {str(p.relative_to(tree)): p for p in tree.rglob("*") if p.is_file() and not p.is_symlink()}
    need(sums.keys() == files.keys(), f"{name}: md5sums is of other files: {sorted(sums.keys() ^ files.keys())}")
    wrong = [path for path, file in files.items() if hashlib.md5(file.read_bytes()).hexdigest() != sums[path]]
    need(not wrong, f"{name}: md5sums has other sums of {wrong}")
    changelog = gzip.decompress((tree / f"usr/share/doc/{name}/changelog.Debian.gz").read_bytes()).decode()
    need(changelog.startswith(f"assay ({about['Version']}) "), f"{name} {about['Version']}: the changelog begins with {changelog[:40]!r}")
    need("Apache-2.0" in (tree / f"usr/share/doc/{name}/copyright").read_text(), f"{name}: the copyright names no license")
    return about


def check_modes(name, tree):
    """All is readable for all, and can be written by root only; programs alone can be executed."""
    for path in [tree / "usr", *(tree / "usr").rglob("*")]:
        if path.is_symlink():
            continue
        expected = 0o755 if path.is_dir() or "/usr/bin/" in str(path) else 0o644
        mode = stat.S_IMODE(path.stat().st_mode)
        need(mode == expected, f"{name}: {path.relative_to(tree)} has mode {mode:o}, not {expected:o}")


def check_library(tree, control, about):
    soname = re.search(r"SONAME\s+(\S+)", run("objdump", "-p", next(tree.glob("usr/lib/*/libassay.so.0.*")))).group(1)
    need(soname == "libassay.so.0" and about["Package"] == "libassay0", f"{about['Package']} has {soname}")
    library = next(tree.glob(f"usr/lib/*/{soname}"))
    lines = (control / "symbols").read_text().splitlines()
    need(lines[0] == f"{soname} libassay0 #MINVER#", f"symbols begins with {lines[0]!r}")
    listed = {line.split("@")[0].strip() for line in lines[2:]}
    need(listed == exported("-D", library), f"symbols has others than the library: {sorted(listed ^ exported('-D', library))[:5]}")
    need((control / "shlibs").read_text().startswith("libassay 0 libassay0 (>= "), "shlibs does not name libassay 0")
    need((control / "triggers").read_text() == "activate-noawait ldconfig\n", "no trigger of ldconfig")
    private = library.parent / "assay"
    need({p.name for p in private.iterdir()} <= {"libdnnl.so.3", "libopenblas.so.0"}, f"{private} has other files")
    need("libopenblas0-openmp" in about["Depends"], "libassay0 does not depend on libopenblas0-openmp, to which it has a link")


def check_program(tree, about):
    need(f"libassay0 (= {about['Version']})" in about["Depends"], "assay does not depend on the library of its version")
    pages = {p.name for p in (tree / "usr/share/man/man1").iterdir()}
    verbs = re.findall(r"ASSAY_VERB\((\w+)\)", (PROJECT / "src/cli/verbs.inc").read_text())
    wanted = {"assay.1.gz", *(f"assay-{v.replace('_', '-')}.1.gz" for v in verbs)}
    need(wanted <= pages, f"no manual pages: {sorted(wanted - pages)}")
    for path in ("bash-completion/completions/assay", "zsh/vendor-completions/_assay", "fish/vendor_completions.d/assay.fish"):
        need((tree / "usr/share" / path).stat().st_size, f"{path} is empty")


def check_paths(tree, build):
    """Nothing of the build's own folders is in what was packed, and a loader looks in the private folder only."""
    for path in (p for p in tree.rglob("*") if p.is_file() and not p.is_symlink()):
        need(str(PROJECT).encode() not in path.read_bytes(), f"{path.relative_to(tree)} names {PROJECT}")
    for path in (tree / "usr/bin/assay", next(tree.glob("usr/lib/*/libassay.so.0"))):
        where = re.findall(r"RUNPATH\s+(\S+)", run("objdump", "-p", path))
        expected = "$ORIGIN/assay" if "lib/" in str(path.relative_to(tree)) else f"$ORIGIN/../lib/{os.path.basename(next(tree.glob('usr/lib/*')))}/assay"
        need(where == [expected], f"{path.relative_to(tree)} looks in {where}, not {expected}")


def use_extracted(tree, work, cmake, cc, models):
    """As users of a folder would: the program, and a program of their own."""
    usr = tree / "usr"
    program = usr / "bin/assay"
    library = next(usr.glob("lib/*/libassay.so.0"))
    for file in (program, library):
        loaded = run("ldd", file)
        found = re.search(r"libdnnl\.so\.3 => (\S+)", loaded)
        need("not found" not in loaded and (not found or pathlib.Path(found.group(1)).resolve().parent == (library.parent / "assay").resolve()),
             f"{file} loads\n{loaded}")
    version = run(program, "--version")
    run(program, "check", f"{models}/classifier/model.onnx", "--precision", "fp32", "--target", "cpu")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(library.parent / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "assay", env=environment).split()
    example = PROJECT / "examples/run_model"
    arguments = (example / "arguments.txt").read_text().replace("@MODELS@", models).split()
    run(cc, "-std=c17", "-Wall", "-Werror", example / "run_model.c", *flags, "-lm", f"-Wl,-rpath,{library.parent}", "-o", work / "by_pkg_config")
    # By /lib in place of /usr/lib, as a search path may have it.
    (tree / "lib").symlink_to("usr/lib")
    run(cmake, "-G", "Ninja", "-S", example, "-B", work / "cmake", f"-DCMAKE_PREFIX_PATH={tree}", f"-DCMAKE_C_COMPILER={cc}")
    run(cmake, "--build", work / "cmake")
    outputs = {run(p, *arguments) for p in (work / "by_pkg_config", work / "cmake/run_model")}
    need(len(outputs) == 1, "builds of an example disagree:\n" + "\n".join(outputs))
    print(f"extracted: {version.splitlines()[0]}; run_model by pkg-config and CMake")


def check_lintian(debs):
    need(shutil.which("lintian"), "lintian is missing: scripts/setup full")
    said = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", *debs], capture_output=True, text=True)
    need(said.returncode == 0, f"lintian:\n{said.stdout}{said.stderr}")
    print("lintian: no errors, no warnings")


def main(build, cmake, cc, models):
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        full = os.environ.get("ASSAY_FULL") == "1"
        run(PROJECT / "scripts/package", "--build", build, "--output", work / "debs", "--compression", "gzip" if full else "none")
        debs = {fields(d)["Package"]: d for d in (work / "debs").glob("*.deb")}
        need(sorted(debs) == sorted(PACKAGES), f"packages: {sorted(debs)}")
        every = work / "every"
        for name, deb in debs.items():
            tree, control = work / name, work / f"{name}.control"
            run("dpkg-deb", "--extract", deb, tree)
            run("dpkg-deb", "--control", deb, control)
            about = check_control(deb, tree, control)
            check_modes(name, tree)
            if name == "libassay0":
                check_library(tree, control, about)
            if name == "assay":
                check_program(tree, about)
            run("dpkg-deb", "--extract", deb, every)
            print(f"{deb.name}: {len(list(tree.rglob('*')))} paths, {deb.stat().st_size // 1000} kB")
        headers = {p.name for p in (every / "usr/include/assay").iterdir()}
        need(headers == {p.name for p in (PROJECT / "include/assay").iterdir()}, f"headers: {sorted(headers)}")
        check_paths(every, build)
        use_extracted(every, work, cmake, cc, models)
        if full:
            check_lintian(debs.values())
            bare_root.check(list(debs.values()), work, models)


if __name__ == "__main__":
    main(*sys.argv[1:])
