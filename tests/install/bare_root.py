#!/usr/bin/env python3
"""Installs the Debian packages in a bare Debian 12 (debootstrap), uses them as a user would, and purges them.

    bare_root.py MODELS PACKAGE.deb...      as root; ASSAY_BARE_ROOT: a folder with such a system, which is copied

Nothing stays behind: after the packages were purged, the tree has the files that it had with their dependencies alone.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parents[2]
# What apt, dpkg and ldconfig write whatever is installed.
OTHERS = ("var/cache", "var/log", "var/lib/apt", "var/lib/dpkg", "etc/ld.so.cache", "proc", "sys", "dev", "tmp", "root")
COMPILE = """
set -e
cd /tmp
cp -r /usr/share/doc/libassay-dev/examples/run_model .
cc -std=c17 -Wall -Wextra -Werror run_model/run_model.c $(pkg-config --cflags --libs assay) -lm -o by_pkg_config
cc -std=c17 run_model/run_model.c $(pkg-config --cflags assay) -Wl,-Bstatic -lassay -Wl,-Bdynamic \
  $(pkg-config --static --libs assay | sed 's/-lassay //') -o static
for path in /usr/bin:/bin /bin:/usr/bin; do
  rm -rf build
  PATH=$path cmake -S run_model -B build >/dev/null
  PATH=$path cmake --build build >/dev/null
done
for program in ./by_pkg_config ./static build/run_model; do
  $program ARGUMENTS >$(basename $program).out
done
cmp by_pkg_config.out run_model.out
cmp by_pkg_config.out static.out
! ldd static | grep libassay
"""


class Root:
    """A folder with a system in it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def run(self, *command, expected=(0,)):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        # /proc, by which the loader finds a program's own folder, in a namespace that ends with the command.
        inside = ["unshare", "--mount", "--pid", "--fork", f"--mount-proc={self.folder}/proc", "chroot", self.folder]
        done = subprocess.run([*inside, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        if done.returncode not in expected:
            sys.exit(f"in the bare root: {' '.join(command)}\n{done.stdout}\nexit code {done.returncode}")
        return done.stdout

    def apt(self, *words):
        return self.run("apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0", "--no-install-recommends", *words)

    def paths(self):
        found = set()
        for top, folders, files in os.walk(self.folder):
            relative = os.path.relpath(top, self.folder)
            folders[:] = [f for f in folders if os.path.normpath(os.path.join(relative, f)) not in OTHERS]
            found |= {os.path.normpath(os.path.join(relative, name)) for name in [*folders, *files]}
        return found - set(OTHERS)


def bootstrap(folder):
    ready = os.environ.get("ASSAY_BARE_ROOT")
    if ready:
        subprocess.run(["cp", "-a", ready, folder], check=True)
    else:
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", folder], check=True, stdout=subprocess.DEVNULL)
    return Root(folder)


def use(root, models):
    """The program on the model of the demo, and programs compiled with the library."""
    print(root.run("assay", "--version").splitlines()[0])
    said = root.run("assay", "check", "/root/nafnet/model.onnx", "--precision", "fp16", "--inputs", "/root/nafnet/inputs.npz",
                    "--golden", "/root/nafnet/golden.npz", expected=(1,))
    if "UNFAITHFUL" not in said or "36 nodes in fp32   verified" not in said:
        sys.exit(f"the demo's check says\n{said}")
    root.run("assay", "build", "/root/nafnet/model.onnx", "-o", "/root/model.plan", "--precision", "bf16")
    root.run("assay", "bench", "/root/model.plan", "--seconds", "0.2")
    root.run("bash", "-c", "source /usr/share/bash-completion/completions/assay && complete -p assay")
    arguments = (PROJECT / "examples/run_model/arguments.txt").read_text().replace("@MODELS@", "/root/models")
    root.run("sh", "-c", COMPILE.replace("ARGUMENTS", arguments.strip()))


def check(debs, work, models):
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode:
        print("bare root: skipped, only root can make one, where it may make namespaces")
        return
    root = bootstrap(str(work / "bare"))
    for name in ("debs", "nafnet", "models"):
        (root.folder / "root" / name).mkdir()
    for deb in debs:
        shutil.copy(deb, root.folder / "root/debs")
    for source, target in ((PROJECT / "tests/models/nafnet", "nafnet"), (models, "models")):
        shutil.copytree(source, root.folder / "root" / target, dirs_exist_ok=True)
    inside = [f"/root/debs/{pathlib.Path(d).name}" for d in debs]
    names = [pathlib.Path(d).name.split("_")[0] for d in debs]
    root.apt("update")
    # The program alone with what it depends on, then what programs are compiled with (the static library's suggestions, too).
    root.apt("install", *(d for d in inside if "-dev_" not in d))
    root.run("assay", "--help")
    suggested = root.run("dpkg-deb", "--field", *(d for d in inside if "-dev_" in d), "Suggests").replace(",", " ").split()
    root.apt("install", "gcc", "libc6-dev", "cmake", "make", "pkg-config", *suggested)
    root.apt("purge", *(n for n in names if not n.endswith("-dev")))
    before = root.paths()
    left = sorted(p for p in before if "assay" in p.lower())
    if left:
        sys.exit(f"purged, and still there: {left}")
    root.run("dpkg", "--install", *inside)
    listed = root.run("ldconfig", "-p")
    if "libassay.so.0" not in listed or "libdnnl" in listed:
        sys.exit(f"the loader's cache after installing:\n{listed}")
    use(root, models)
    root.run("dpkg", "--audit")
    root.run("dpkg", "--purge", *reversed(names))
    after = root.paths()
    if after != before or "libassay" in root.run("ldconfig", "-p"):
        sys.exit(f"purged: left {sorted(after - before)}, taken along {sorted(before - after)}")
    print(f"bare root: installed, used, purged; {len(after)} paths as before")


def main(models, *debs):
    with tempfile.TemporaryDirectory() as work:
        check(debs, pathlib.Path(work), models)


if __name__ == "__main__":
    main(*sys.argv[1:])
