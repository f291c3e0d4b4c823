"""Tests of the eighth generation, which has healthy models alone; `test_strangers.py` runs them.

What is healthy by construction is measured: forms give the same, whatever the file golden is in it has the same numbers, and no last bit decides.
"""
import json
import pathlib
import tempfile
import unittest

import numpy as np
import onnx

import cases
import forms8
import golden8
import healthy
import healthy7
import healthy8
from architectures import EIGHTH, build
from data import draw
from golden import Runner, difference


class EighthGeneration(unittest.TestCase):
    def test_names_are_new(self):
        names = [row[0] for row in healthy8.EIGHTH]
        self.assertGreaterEqual(len(names), 90)
        self.assertEqual(len(set(names)), len(names))
        earlier = (healthy.ROWS, healthy.LATER, healthy.THIRD, healthy.FOURTH, healthy.FIFTH, healthy.SIXTH, healthy7.SEVENTH)
        self.assertFalse(set(names) & {row[0] for rows in earlier for row in rows})
        self.assertFalse(set(healthy8.SAME) & set(healthy.SAME) or set(healthy8.OWN) & set(healthy.OTHER))

    def test_every_row_is_drawn_and_written(self):
        for number, row in enumerate(healthy8.EIGHTH):
            with self.subTest(kind=row[0]), tempfile.TemporaryDirectory() as folder:
                case = cases.draw_healthy(3, number, None, 8)
                self.assertEqual((case.kind, case.column), (row[0], cases.EIGHTH))
                cases.write(case, folder)
                files = sorted(p.name for p in (pathlib.Path(folder) / "golden").iterdir())
                self.assertEqual(len(files), 1 if "of one sample" in row[0] else cases.SAMPLES)
                onnx.checker.check_model(str(pathlib.Path(folder) / "model.onnx"))

    def test_forms_give_the_same(self):
        models = [build(name, seed) for seed in range(2) for name in EIGHTH]
        for form, change in forms8.SAME.items():
            found = 0
            for k in np.random.default_rng(len(form)).permutation(len(models)):
                made = change(models[k], np.random.default_rng(k))
                if made is None:
                    continue
                feed = draw(models[k], np.random.default_rng(7))
                given, want = Runner(made.proto)(feed), Runner(models[k].proto)(feed)
                with self.subTest(form=form, architecture=models[k].name, style=models[k].style):
                    self.assertLess(max(difference(given[x], want[x]) for x in want), 1e-4)
                found += 1
                if found == 4:
                    break
            self.assertGreaterEqual(found, 1, form)

    def test_a_case_that_last_bits_decide_is_not_healthy(self):
        """Of two labels that are alike but for the last bit of a weight."""
        case = cases.draw_healthy(3, 0, None, 8)
        x = onnx.helper.make_tensor_value_info("x", 1, [1, 4])
        w = np.ones((4, 2), np.float32)
        nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"]), onnx.helper.make_node("ArgMax", ["y"], ["k"], axis=1)]
        graph = onnx.helper.make_graph(nodes, "tie", [x], [onnx.helper.make_tensor_value_info("k", 7, [1, 1])], [onnx.numpy_helper.from_array(w, "w")])
        case.model = case.intact = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
        case.kind, case.options = "a tie", []
        feeds = [{"x": np.random.default_rng(k).random((1, 4), np.float32)} for k in range(8)]
        golden = [Runner(case.model)(f) for f in feeds]
        self.assertFalse(healthy8.fair(case, feeds, golden))

    def test_files_have_the_same_numbers(self):
        values = {"a": np.array([[1.5, -2e-19]], np.float32), "k": np.array([3, -1]), "t": np.array([True])}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "0.npz"
            for kind in ("golden in big endian", "golden in Fortran's order", "golden compressed"):
                golden8.saved(kind, path, golden8.kept(kind, values))
                read = np.load(path)
                self.assertTrue(all(np.array_equal(read[k], v) for k, v in values.items()), kind)
            golden8.saved("golden as JSON", path, values)
            read = json.loads(path.with_suffix(".json").read_text())
            self.assertTrue(all(np.array_equal(np.asarray(read[k], v.dtype), v) for k, v in values.items()))
            golden8.saved("golden as safetensors", path, values)
            raw = path.with_suffix(".safetensors").read_bytes()
            size = int.from_bytes(raw[:8], "little")
            head = json.loads(raw[8:8 + size])
            begin, end = (8 + size + at for at in head["a"]["data_offsets"])
            self.assertTrue(np.array_equal(np.frombuffer(raw[begin:end], np.float32).reshape(head["a"]["shape"]), values["a"]))

    def test_there_are_no_faults(self):
        with self.assertRaises(LookupError):
            cases.draw_fault(1, 0, 8)
