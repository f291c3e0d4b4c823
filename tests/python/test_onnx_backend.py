"""assay.backend: the interface of onnx.backend.base, and all of ONNX's own tests by it.

What the tests may not pass is what the program may not pass on the CPU (conformance_expected.txt).
"""
import os
import re
import subprocess
import sys
import unittest

from api_case import ApiCase, F, T, chain, draw, h, model, np, onnx, unary, value

import assay.backend as backend

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# ONNX's runner takes the length of the list's elements, which are scalars: no backend passes it.
BY_THE_RUNNER = {"test_loop16_seq_none"}


def expected_failures():
    """Names of cases that may fail on the CPU."""
    with open(os.path.join(ROOT, "tests", "conformance_expected.txt"), encoding="utf-8") as file:
        return {case.split("/")[1] for kind, case in (line.split()[:2] for line in file if line.startswith("cpu "))
                if kind == "cpu"}


class TestInterface(ApiCase):
    def test_prepare_and_run(self):
        proto, x = chain(2, 4), draw(3, 4)
        prepared = backend.prepare(proto, "CPU")
        by_place, by_name = prepared.run([x])[0], prepared.run({"x": x}).y
        np.testing.assert_array_equal(by_place, by_name)
        np.testing.assert_array_equal(backend.run_model(proto.SerializeToString(), x)[0], by_place)
        half = backend.prepare(proto, precision="fp16").run(x).y
        self.assertGreater(np.abs(half - by_place).max(), 0)

    def test_several_outputs_have_names(self):
        proto = model([h.make_node("Split", ["x"], ["a", "b"], num_outputs=2)], [value("x", F, [4])],
                      [value("a", F, [2]), value("b", F, [2])])
        out = backend.run_model(proto, [np.arange(4, dtype=np.float32)])
        self.assertEqual(out._fields, ("a", "b"))
        np.testing.assert_array_equal(out.b, [2, 3])

    def test_nodes(self):
        x = draw(3, 2)
        np.testing.assert_array_equal(backend.run_node(h.make_node("Abs", ["x"], ["y"]), [x]).y, np.abs(x))
        # An input that is left out, an integer that decides a shape, an operator of another domain.
        np.testing.assert_array_equal(
            backend.run_node(h.make_node("Clip", ["x", "", "most"], ["y"]), [x, np.float32(0)])[0], np.minimum(x, 0))
        self.assertEqual(backend.run_node(h.make_node("Reshape", ["x", "s"], ["y"]), [x, np.array([6])])[0].shape, (6,))
        scaler = h.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[1.0], scale=[2.0])
        np.testing.assert_allclose(backend.run_node(scaler, [x])[0], (x - 1) * 2, rtol=1e-6)
        told = backend.run_node(h.make_node("Cast", ["x"], ["y"], to=T.INT32), [x], outputs_info=[(np.int32, (3, 2))])
        self.assertEqual(told.y.dtype, np.int32)
        with self.assertRaises(ValueError) as error:
            backend.run_node(h.make_node("Add", ["a", "b"], ["c"]), [x])
        self.assertSays(error, "2 inputs", "1 arrays")

    def test_devices(self):
        self.assertTrue(backend.supports_device("CPU"))
        for device in ("TPU", "cpu", "CUDA:x", ""):
            self.assertFalse(backend.supports_device(device), device)
        self.assertEqual(backend.supports_device("CUDA"), backend.supports_device("CUDA:0"))
        with self.assertRaises(ValueError) as error:
            backend.prepare(unary(), "TPU")
        self.assertSays(error, "TPU")

    def test_compatible(self):
        self.assertTrue(backend.is_compatible(unary()))
        graph = h.make_graph([h.make_node("Nothing", ["x"], ["y"])], "g", [value("x", F, [1])], [value("y", F, [1])])
        self.assertFalse(backend.is_compatible(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)))
        self.assertFalse(backend.is_compatible(b"nothing"))


class TestOfOnnx(unittest.TestCase):
    def test_what_the_program_passes(self):
        script = os.path.join(ROOT, "python", "run_onnx_backend_tests.py")
        done = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
        failed = {re.sub("_cpu$", "", name) for name in re.findall(r"^FAIL (\w+):", done.stdout, re.M)}
        counts = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped", done.stdout, re.M)
        self.assertIsNotNone(counts, done.stdout[-500:] + done.stderr[-2000:])
        self.assertGreater(int(counts.group(1)), 1900)
        self.assertEqual(int(counts.group(2)), len(failed))
        self.assertEqual(failed, expected_failures() | BY_THE_RUNNER, done.stdout[-3000:])


if __name__ == "__main__":
    unittest.main()
