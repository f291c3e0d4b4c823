#!/usr/bin/env python3
"""The portable Python wheel, made of a build and run on this system and on others: test_portable_wheel.py BUILD CASES.

It has the build's numbers, to the bit, passes the operator tests, and runs on bare systems: Debian 12 and Debian 11 (glibc
2.31), which debootstrap makes (as root). With ASSAY_FULL=1 only: it takes minutes.
"""
from __future__ import annotations

import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
import zipfile

from wheel_case import PROJECT, Environment, clean_environment, repacked, run

TOOLS = PROJECT / "build/venv-portable/bin"
PACKAGES = PROJECT / "build/venv/lib" / f"python3.{sys.version_info[1]}" / "site-packages"
EXPECTED = PROJECT / "tests/conformance_expected.txt"
# Of each system its NumPy: by the version of its Python.
SYSTEMS = {"bookworm": ("3.11", "2.4.6"), "bullseye": ("3.9", "2.0.2")}
IN_SYSTEM = """
import sys, numpy as np, assay
model = assay.load(sys.argv[1])
inputs = {name: array for name, array in np.load(sys.argv[2]).items()}
for name, run in (("native", model.run), ("cpu", assay.build(model).run)):
    np.savez(sys.argv[3] + "/" + name + ".npz", **run(inputs).asdict())
"""
BUILD, CASES = pathlib.Path(), pathlib.Path()


def arrays(path: pathlib.Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """What is in an npz, to the bit. Names alone say nothing of another numpy's header."""
    script = ("import sys, numpy as np\nfor name, a in np.load(sys.argv[1]).items():\n"
              "    print(name, a.dtype, 'x'.join(map(str, a.shape)), a.tobytes().hex())")
    lines = run(PROJECT / "build/venv/bin/python", "-c", script, path).stdout.splitlines()
    if not lines:
        raise AssertionError(f"{path} holds no arrays")
    return {line.rsplit(" ", 3)[0]: tuple(line.rsplit(" ", 3)[1:]) for line in lines}  # type: ignore[misc]


@unittest.skipUnless(os.environ.get("ASSAY_FULL") == "1", "only with ASSAY_FULL=1")
class PortableWheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls._folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._folder.cleanup)
        cls.folder = pathlib.Path(cls._folder.name)
        run(PROJECT / "scripts/setup", "wheel", env=dict(os.environ), timeout=1200)
        run(PROJECT / "scripts/wheel", "--build", BUILD, "--output", cls.folder / "dist", env=dict(os.environ), timeout=1200)
        (cls.wheel,) = (cls.folder / "dist").glob("*.whl")
        repacked("numpy", PACKAGES, cls.folder)
        cls.user = Environment(cls.folder / "user")
        cls.user.pip("install", "--no-index", "--find-links", cls.folder, cls.wheel)
        cls.built = BUILD / "src/cli/assay"

    def test_tag(self) -> None:
        self.assertIn("manylinux_2_28_x86_64", self.wheel.name)
        shown = run(TOOLS / "auditwheel", "show", self.wheel, env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"}).stdout
        self.assertRegex(shown.replace("\n", " "), r'consistent with the following platform tag: +"manylinux_2_2[78]_x86_64"')
        self.assertLess(self.wheel.stat().st_size, 60e6)
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
        for part in ("assay/licenses/libopenblas", "assay/licenses/LICENSE", "assay_engine.libs/libdnnl", "assay_engine.libs/libgomp"):
            self.assertTrue(any(name.startswith(part) for name in names), part)

    def test_same_bits(self) -> None:
        """Every mode and engine, on every model of the tests: the wheel's program writes the file that the build's does."""
        compared = 0
        for model in sorted([*(PROJECT / "tests/models/small").glob("*.onnx"), *(BUILD / "models").glob("*/*.onnx")]):
            for words in (["--mode", "native"], ["--mode", "truth"], ["--mode", "plan"], ["--target", "cpu"]):
                codes, outputs = [], [self.folder / f"{which}.npz" for which in ("built", "wheel")]
                for program, output in zip((self.built, self.user.assay), outputs):
                    output.unlink(missing_ok=True)
                    codes.append(run(program, "run", model, *words, "--save-outputs", output, code=None).returncode)
                self.assertEqual(codes[0], codes[1], f"{model} {words}")
                if codes[0] == 0:
                    self.assertEqual(*map(arrays, outputs), f"{model} {words}")
                    compared += 1
        self.assertGreaterEqual(compared, 20)

    def test_conformance(self) -> None:
        for backend in ("native", "emu", "cpu"):
            run(PROJECT / "build/venv/bin/python", PROJECT / "tests/check_conformance.py", self.user.assay, CASES, backend, EXPECTED, timeout=1800)

    def test_other_systems(self) -> None:
        if os.geteuid() != 0 or not shutil.which("debootstrap"):
            self.skipTest("not root, or no debootstrap")
        model = PROJECT / "tests/models/small/cnn.onnx"
        for system, (python, numpy) in SYSTEMS.items():
            with self.subTest(system=system):
                root = self.folder / system
                self.make_system(system, root, python, numpy)
                shutil.copyfile(model, root / "opt/model.onnx")
                make = "import sys, numpy as np; np.savez(sys.argv[1], image=np.random.default_rng(1).random((1, 3, 8, 8), np.float32))"
                run(PROJECT / "build/venv/bin/python", "-c", make, root / "opt/x.npz")
                version = run(self.user.assay, "--version").stdout.splitlines()[0]
                self.assertEqual(self.inside(root, "-m", "assay", "--version").splitlines()[0], version)
                self.inside(root, "-c", IN_SYSTEM, "/opt/model.onnx", "/opt/x.npz", "/opt")
                # Here the same, by the build's library.
                run(self.user.python, "-c", IN_SYSTEM, model, root / "opt/x.npz", self.folder,
                    env={**clean_environment(), "ASSAY_LIBRARY": str(BUILD / "libassay.so")})
                for name in ("native", "cpu"):
                    self.assertEqual(arrays(root / f"opt/{name}.npz"), arrays(self.folder / f"{name}.npz"))
                shutil.copytree(CASES / "node", root / "opt/cases/node")
                said = self.inside(root, "-m", "assay", "conformance", "/opt/cases", "--backend", "native", code=None)
                here = run(self.built, "conformance", root / "opt/cases", "--backend", "native", code=None).stdout
                self.assertEqual(re.findall(r"\d+ passed, \d+ failed", said), re.findall(r"\d+ passed, \d+ failed", here))

    def make_system(self, system: str, root: pathlib.Path, python: str, numpy: str) -> None:
        """A bare system with Python, and the wheel with NumPy in /opt/python."""
        sources = [path.read_text() for path in (pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("debian*")) if path.exists()]
        (mirror, *_) = re.findall(r"(?:^URIs: *|^deb +(?:\[.*?\] +)?)(\S+)", "\n".join(sources), re.M)
        run("debootstrap", "--variant=minbase", "--include=python3", system, root, mirror, timeout=1800, env=dict(os.environ))
        run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", root / "opt/python", "--python-version", python,
            "--only-binary", ":all:", f"numpy=={numpy}", self.wheel, env=dict(os.environ), timeout=1200)

    @staticmethod
    def inside(root: pathlib.Path, *words: str, code: int | None = 0) -> str:
        """What Python prints in a system, which has a /proc of its own as long as that runs."""
        script = 'mount -t proc proc "$0/proc" && exec chroot "$0" /usr/bin/env PYTHONPATH=/opt/python LC_ALL=C.UTF-8 python3 "$@"'
        done = run("unshare", "--mount", "--pid", "--fork", "sh", "-c", script, root, *words, code=code, timeout=1200)
        return done.stdout


if __name__ == "__main__":
    BUILD, CASES = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
    unittest.main()
