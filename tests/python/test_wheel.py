#!/usr/bin/env python3
"""The Python wheel, made of a build and installed as a user does: test_wheel.py BUILD.

The wheel is that of `scripts/wheel --native`; what is said of it holds for the portable one, too, which test_portable_wheel.py
makes and runs on other systems.
"""
from __future__ import annotations

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

from wheel_case import PROJECT, TIMEOUT_S, Environment, clean_environment, repacked, run

PACKAGES = PROJECT / "build/venv/lib" / f"python3.{sys.version_info[1]}" / "site-packages"
IMPORT_S = 0.150  # numpy's part is most of it
BUILD = pathlib.Path()


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls._folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._folder.cleanup)
        cls.folder = pathlib.Path(cls._folder.name)
        run(PROJECT / "scripts/wheel", "--native", "--build", BUILD, "--output", cls.folder / "dist", env=dict(os.environ))
        (cls.wheel,) = (cls.folder / "dist").glob("*.whl")
        cls.numpy = repacked("numpy", PACKAGES, cls.folder)
        cls.user = Environment(cls.folder / "user")
        cls.user.pip("install", "--no-index", "--find-links", cls.folder, cls.wheel)

    def test_contents(self) -> None:
        self.assertRegex(self.wheel.name, r"^assay_engine-[0-9.]+-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
        for wanted in ("assay/py.typed", "assay/__main__.py", "assay/lib/libassay.so.0", "assay/bin/assay", "runners/onnxruntime.py"):
            self.assertIn(wanted, names)
        strange = [n for n in names if "__pycache__" in n or n.endswith((".a", ".c", ".h")) or "/test" in n]
        self.assertEqual(strange, [])
        self.assertLess(self.wheel.stat().st_size, 60e6)

    def test_version(self) -> None:
        """The package, the library, the program and the project have one."""
        version = re.search(r"project\(assay VERSION ([0-9.]+)", (PROJECT / "CMakeLists.txt").read_text())[1]
        packaged = run(self.user.python, "-c", "from importlib.metadata import version; print(version('assay-engine'))").stdout
        self.assertEqual(packaged.strip(), version)
        loaded = run(self.user.python, "-c", "import assay; print(assay.__version__)", cwd=self.folder).stdout
        self.assertEqual(loaded.strip(), version)
        for program in ([self.user.assay], [self.user.python, "-m", "assay"]):
            self.assertEqual(run(*program, "--version", cwd=self.folder).stdout.splitlines()[0], f"assay {version}")

    def test_import_is_quick(self) -> None:
        """With the library and NumPy, which are imported when they are needed. Of some runs the quickest, in this process's time: the machine does other work."""
        timed = "import time; t = time.process_time(); import assay; assay.Model; print(time.process_time() - t); assert assay.__file__.startswith(%r)"
        seconds, end = [], time.monotonic() + 20
        while not seconds or min(seconds) > IMPORT_S and time.monotonic() < end:
            seconds.append(float(run(self.user.python, "-c", timed % str(self.user.folder), cwd=self.folder).stdout))
        self.assertLess(min(seconds), IMPORT_S)

    def test_library_is_the_wheels(self) -> None:
        script = ("import assay\nassay.Model\nmaps = open('/proc/self/maps').read()\n"
                  "print(*sorted({line.split()[-1] for line in maps.splitlines() if 'libassay' in line or 'libdnnl' in line}), sep='\\n')")
        for path in run(self.user.python, "-c", script, cwd=self.folder).stdout.split():
            self.assertTrue(path.startswith(str(self.user.folder)), path)

    def test_program_runs_a_model(self) -> None:
        model = self.folder / "model.onnx"
        make_model = ("import sys, onnx\nfrom onnx import helper as h\n"
                      "x, y = (h.make_tensor_value_info(n, 1, [2, 3]) for n in 'xy')\n"
                      "m = h.make_model(h.make_graph([h.make_node('Exp', ['x'], ['y'])], 'g', [x], [y]), "
                      "opset_imports=[h.make_opsetid('', 17)], ir_version=8)\nonnx.save(m, sys.argv[1])\n"
                      "import numpy as np\nnp.savez(sys.argv[2], x=np.arange(6, dtype=np.float32).reshape(2, 3))")
        run(PROJECT / "build/venv/bin/python", "-c", make_model, model, self.folder / "x.npz")
        run(self.user.python, "-m", "assay", "run", model, "--inputs", self.folder / "x.npz", "--save-outputs", self.folder / "y.npz")
        same = ("import sys, numpy as np\nx, y = np.load(sys.argv[1])['x'], np.load(sys.argv[2])['y']\n"
                "np.testing.assert_allclose(y, np.exp(x.astype(np.float64)), rtol=1e-6)")
        run(self.user.python, "-c", same, self.folder / "x.npz", self.folder / "y.npz")
        # Another engine, whose runner is in the wheel.
        runner = f"env PYTHONPATH={PACKAGES} {self.user.python} -m runners.onnxruntime {{model}} {{inputs}} {{outputs}} {{precision}}"
        said = run(self.user.assay, "check", model, "--inputs", self.folder / "x.npz", "--exec", runner, cwd=self.folder)
        self.assertIn("FAITHFUL", said.stdout)

    def test_exit_codes(self) -> None:
        program = [self.user.python, "-m", "assay"]
        self.assertIn("--no-such-option", run(*program, "run", "--no-such-option", code=2).stderr)
        run(*program, "run", self.folder / "none.onnx", code=3)
        without = {**clean_environment(), "ASSAY_PROGRAM": str(self.folder / "none")}
        said = run(*program, "--version", code=1, env=without)
        self.assertIn("ASSAY_PROGRAM", said.stderr)
        self.assertEqual(len(said.stderr.splitlines()), 1)

    def test_signals(self) -> None:
        """The process becomes the program: a signal ends that, and is what the caller sees."""
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for command in ([self.user.python, "-m", "assay"], [self.user.assay]):
            with subprocess.Popen([str(word) for word in [*command, "inspect", "model", fifo]], env=clean_environment()) as process:
                end = time.monotonic() + TIMEOUT_S
                while os.path.basename(os.readlink(f"/proc/{process.pid}/exe")) != "assay" and time.monotonic() < end:
                    time.sleep(0.01)
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(TIMEOUT_S), -signal.SIGTERM)

    def test_nvidia_packages(self) -> None:
        """Libraries of NVIDIA's packages are found where pip puts them; a user's own folder is left alone."""
        packages = self.user.folder / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
        folders = [packages / "nvidia" / below for below in ("cu13/lib", "cuda_nvrtc/lib")]
        show = "import assay, os; assay.Model; print(os.environ.get('ASSAY_CUDA_PATH'))"
        self.assertEqual(run(self.user.python, "-c", show).stdout.strip(), "None")
        for folder in folders:
            folder.mkdir(parents=True)
        try:
            self.assertEqual(run(self.user.python, "-c", show).stdout.strip(), ":".join(map(str, folders)))
            self.assertIn(str(folders[0]), run(self.user.assay, "--version").stdout)
            own = {**clean_environment(), "ASSAY_CUDA_PATH": "/own"}
            self.assertEqual(run(self.user.python, "-c", show, env=own).stdout.strip(), "/own")
        finally:
            for folder in folders:
                os.removedirs(folder)

    def test_nvidia_compiler(self) -> None:
        """Building with a driver (of the tests: it needs no GPU, and loads no real code) finds the compiler of NVIDIA's package."""
        driver = self.folder / "driver"
        driver.mkdir()
        (driver / "libcuda.so.1").symlink_to(BUILD / "tests/libcuda/libcuda.so.1")
        package = self.user.folder / "lib" / f"python3.{sys.version_info[1]}" / "site-packages/nvidia"
        package.symlink_to(PACKAGES / "nvidia")
        script = (f"import assay\ntry:\n  assay.build({str(PROJECT / 'tests/models/small/cnn.onnx')!r}, target='cuda')\n"
                  "except assay.DeviceError:\n  pass\nmaps = open('/proc/self/maps').read()\n"
                  "print(*sorted({line.split()[-1] for line in maps.splitlines() if 'libnvrtc.so' in line}), sep='\\n')")
        loaded = run(self.user.python, "-c", script, env={**clean_environment(), "LD_LIBRARY_PATH": str(driver)}).stdout
        package.unlink()
        self.assertEqual(loaded.split(), [str(path.resolve()) for path in (PACKAGES / "nvidia/cu13/lib").glob("libnvrtc.so.13")])

    def test_examples(self) -> None:
        """The blocks of Python on each page, in order, where there is a model.onnx."""
        ran = 0
        for page in (PROJECT / "python/README.md", PROJECT / "docs/python.md", PROJECT / "docs/install.md"):
            blocks = re.findall(r"^```python\n(.*?)^```", page.read_text() if page.exists() else "", re.M | re.S)
            if blocks:
                with self.subTest(page=page.name), tempfile.TemporaryDirectory() as folder:
                    shutil.copyfile(PROJECT / "tests/models/small/cnn.onnx", f"{folder}/model.onnx")
                    run(self.user.python, "-c", "\n".join(blocks), cwd=folder)
                    ran += 1
        self.assertGreater(ran, 0)

    def test_uninstall_leaves_nothing(self) -> None:
        other = Environment(self.folder / "other")
        empty = other.files()
        other.pip("install", "--no-index", "--no-deps", self.wheel)
        self.assertTrue(other.assay.exists())
        (program,) = other.folder.rglob("assay/bin/assay")
        run(program, "--version")
        other.pip("uninstall", "--yes", "assay-engine")
        self.assertEqual(other.files() - empty, set())


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
