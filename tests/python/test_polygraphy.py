"""The plugin for Polygraphy, by the real `polygraphy run` with ONNX Runtime beside it."""
import os
import re
import subprocess
import sys
import unittest

from api_case import ApiCase, F, T, assay, chain, draw, h, model, np, onnx, unary, value

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GROUP = "polygraphy.run.plugins"


def entry_points():
    """What pyproject.toml declares for Polygraphy, as an installed package has it."""
    with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as file:
        section = re.search(r'^\[project\.entry-points\."%s"\]\n((?:\w.*\n)+)' % re.escape(GROUP), file.read(), re.M)
    return "[%s]\n%s" % (GROUP, section.group(1).replace('"', ""))


class TestPlugin(ApiCase):
    def setUp(self):
        super().setUp()
        info = self.path("packages/assay_engine-0.dist-info")
        os.makedirs(info)
        for name, text in (("entry_points.txt", entry_points()),
                           ("METADATA", "Metadata-Version: 2.1\nName: assay-engine\nVersion: 0\n")):
            with open(os.path.join(info, name), "w", encoding="utf-8") as file:
                file.write(text)
        onnx.save(chain(3, 8), self.path("chain.onnx"))

    def polygraphy(self, *arguments, succeeds=True):
        """The output of a command of the installed Polygraphy."""
        paths = os.pathsep.join((self.path("packages"), os.path.join(ROOT, "python")))
        tool = os.path.join(os.path.dirname(sys.executable), "polygraphy")
        done = subprocess.run([sys.executable, tool, *arguments], env={**os.environ, "PYTHONPATH": paths}, cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertEqual(done.returncode == 0, succeeds, done.stdout)
        return done.stdout

    def test_compares_with_onnx_runtime(self):
        said = self.polygraphy("run", "chain.onnx", "--onnxrt", "--assay", "--atol", "1e-5")
        self.assertRegex(said, r"onnxrt-runner-N0\S* *\S* vs\. assay-runner-N0")
        self.assertIn("PASSED | Output: 'y'", said)

    def test_precision_and_plan(self):
        said = self.polygraphy("run", "chain.onnx", "--onnxrt", "--assay", "--assay-precision", "fp16", "--assay-save-plan",
                               "chain.plan", "--atol", "1e-9", "--rtol", "1e-9", succeeds=False)
        self.assertIn("FAILED | Output: 'y'", said)
        self.assertIsInstance(assay.load(self.path("chain.plan")), assay.Engine)
        self.polygraphy("run", "chain.plan", "--assay")

    def test_all_values(self):
        said = self.polygraphy("run", "chain.onnx", "--onnxrt", "--onnx-outputs", "mark", "all", "--assay", "--atol", "1e-5")
        self.assertEqual(len(re.findall(r"PASSED \| Output: '", said)), 9)
        said = self.polygraphy("run", "chain.onnx", "--assay", "--assay-outputs", "m1", "y", "--save-outputs", "out.json")
        self.assertRegex(said, r"m1 \[dtype=float32")
        said = self.polygraphy("run", "chain.onnx", "--assay", "--assay-outputs", "mark", "all")
        self.assertRegex(said, r"r1 \[dtype=float32")

    def test_script(self):
        self.polygraphy("run", "chain.onnx", "--assay", "--assay-target", "emu", "--assay-unfused", "--gen", "script.py")
        with open(self.path("script.py"), encoding="utf-8") as file:
            text = file.read()
        self.assertRegex(text, r"EngineFromModel\('.*chain.onnx', target='emu', fusion=False\)")
        self.assertIn("AssayRunner(build_assay_engine)", text)

    def test_what_is_wrong_is_told(self):
        said = self.polygraphy("run", "chain.onnx", "--assay", "--assay-target", "moon", succeeds=False)
        self.assertRegex(said, r"assay: .*moon")
        said = self.polygraphy("run", "chain.onnx", "--assay", "--assay-precision", "fp7", succeeds=False)
        self.assertIn("fp7", said)


class TestRunner(ApiCase):
    def test_types_and_open_sizes(self):
        from polygraphy.datatype import DataType

        from assay.polygraphy import AssayRunner, EngineFromModel
        proto = model([h.make_node("Cast", ["x"], ["y"], to=T.FLOAT)], [value("x", T.BFLOAT16, ["N", None])],
                      [value("y", F, ["N", None])])
        with AssayRunner(EngineFromModel(proto)) as runner:
            meta = runner.get_input_metadata(use_numpy_dtypes=False)
            self.assertEqual(meta["x"].dtype, DataType.BFLOAT16)
            self.assertEqual(meta["x"].shape[0], "N")
        with AssayRunner(assay.build(unary("Neg"))) as runner:
            x = draw(2, 3)
            np.testing.assert_array_equal(runner.infer({"x": x})["y"], -x)
            self.assertGreater(runner.last_inference_time(), 0)


if __name__ == "__main__":
    unittest.main()
