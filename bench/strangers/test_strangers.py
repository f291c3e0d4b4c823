#!/usr/bin/env python3
"""Tests of the bench: test_strangers.py ASSAY. Models load and run, faults have places and are where they are said to be, draws repeat."""
import hashlib
import itertools
import sys
import tempfile
import types
import unittest
import pathlib

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases
import faults
import healthy
import run
import variants
from architectures import ARCHITECTURES, build, held_out
from data import draw
from golden import Runner, difference, double_values

ASSAY = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None


def first_wrong(model, fault, feed):
    """Names of the first node whose output is not the intact model's, with the new nodes before it."""
    right, wrong = Runner(model.proto, every=True)(feed), Runner(fault.proto, every=True)(feed)
    graph, known = fault.proto.graph, set(right) | set(feed)
    first = next((n for n in graph.node if any(o in right and difference(wrong[o], right[o]) > 1e-6 for o in n.output if o)), None)
    if first is None:
        return None
    names, new = faults.names_of(graph, [first]), [x for x in first.input if x and x not in known]
    while new:
        value = new.pop()
        for n in graph.node:
            if value in n.output:
                names |= faults.names_of(graph, [n])
                new += [x for x in n.input if x and x not in known]
    return names


class Architectures(unittest.TestCase):
    def test_every_architecture_loads_runs_and_is_small(self):
        self.assertGreaterEqual(len(ARCHITECTURES), 40)
        for name, seed in itertools.product(ARCHITECTURES, range(2)):
            with self.subTest(name=name, seed=seed):
                model = build(name, seed)
                onnx.checker.check_model(model.proto, full_check=True)
                outputs = Runner(model.proto)(draw(model, np.random.default_rng(1)))
                self.assertTrue(all(np.isfinite(v).all() for v in outputs.values()))
                self.assertLess(model.proto.ByteSize(), 1 << 20)

    def test_drawn_again_it_is_the_same(self):
        digest = [[hashlib.sha256(build(n, 4).proto.SerializeToString(deterministic=True)).digest() for n in ARCHITECTURES] for _ in range(2)]
        self.assertEqual(*digest)

    def test_a_third_is_held_out(self):
        for names in (list(ARCHITECTURES), [k for k in faults.KINDS]):
            share = sum(held_out(n) if n in ARCHITECTURES else faults.KINDS[n].held_out for n in names) / len(names)
            self.assertTrue(0.2 < share < 0.47, share)

    def test_float64_golden_agrees_and_differs_by_rounding_only(self):
        for name in ("unet", "bert", "pointnet"):
            model = build(name, 1)
            feed = draw(model, np.random.default_rng(2))
            single = Runner(model.proto, every=True)(feed)
            double = double_values(model.proto, feed, single)
            self.assertIsNotNone(double, name)
            for output in model.proto.graph.output:
                self.assertEqual(double[output.name].dtype, np.float64)
                self.assertTrue(0 < difference(single[output.name], double[output.name]) < 1e-4)


class Faults(unittest.TestCase):
    def test_every_kind_has_a_place_changes_outputs_and_is_where_it_is_said_to_be(self):
        self.assertGreaterEqual(len(faults.KINDS), 60)
        models = {}

        def model(name, seed):
            if (name, seed) not in models:
                models[name, seed] = build(name, seed)
            return models[name, seed]
        quantized = [variants.quantize(build(n, s), np.random.default_rng(1), True) for n in ("resnet", "unet") for s in range(4)]
        for kind in faults.KINDS.values():
            with self.subTest(kind=kind.name):
                self.assertRegex(kind.source, r"^[\w.-]+/[\w.-]+#\d+$")
                places = (m for m in quantized if m) if kind.quantized else (model(n, s) for s in range(12) for n in ARCHITECTURES)
                found = ((m, faults.inject(m, kind.name, 3)) for m in places)
                for m, fault in found:
                    if not fault:
                        continue
                    feed = draw(m, np.random.default_rng(5))
                    names = first_wrong(m, fault, feed)
                    if names is None:  # these inputs do not show it
                        continue
                    self.assertGreater(fault.effect, faults.LEAST)
                    self.assertTrue(names & fault.blamed, (m.name, m.style, names, fault.blamed))
                    break
                else:
                    self.fail("no architecture has a place for it")

    def test_drawn_again_it_is_the_same(self):
        for number in range(4):
            a, b = cases.draw_fault(7, number), cases.draw_fault(7, number)
            self.assertEqual(a.model.SerializeToString(deterministic=True), b.model.SerializeToString(deterministic=True))
            self.assertEqual((a.kind, a.blamed, a.column), (b.kind, b.blamed, b.column))
            self.assertEqual(a.column, cases.COLUMNS[number])
            self.assertEqual(cases.column_of(a.kind, a.architecture), a.column)

    def test_the_intact_model_counts_as_repaired_and_the_faulty_one_does_not(self):
        case = cases.draw_fault(7, 1)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            for proto, right in ((case.intact, True), (case.model, False)):
                onnx.save(proto, path)
                self.assertEqual(cases.repaired(case, path) == "", right)


class Healthy(unittest.TestCase):
    @unittest.skipIf(ASSAY is None, "no assay given")
    def test_every_row_is_drawn(self):
        for number, row in enumerate(healthy.ROWS):
            case = cases.draw_healthy(3, number, ASSAY)
            self.assertEqual(case.kind, row[0])
            self.assertEqual("int8" in case.kind, any(n.op_type == "QuantizeLinear" for n in case.model.graph.node))

    def test_what_is_an_alarm(self):
        rows = [("fp32, golden fp32", "faithful", "none", False), ("fp32, golden fp32", "unfaithful", "precision", True),
                ("--precision bf16", "unfaithful", "precision", False), ("--precision bf16", "unfaithful", "export", True)]
        for kind, verdict, blame, expected in rows:
            self.assertEqual(bool(healthy.alarm({"kind": kind}, {"verdict": verdict, "blame": blame})), expected)


class Runs(unittest.TestCase):
    @unittest.skipIf(ASSAY is None, "no assay given")
    def test_a_case_is_checked_and_judged(self):
        with tempfile.TemporaryDirectory() as folder:
            options = types.SimpleNamespace(assay=ASSAY.resolve(), work=pathlib.Path(folder), search_time=2, limit=60)
            rows = run.examine("F7-2", options) + run.examine("H7-0", options)
            self.assertEqual([r["error"] for r in rows], [""] * 3)
            self.assertEqual([r["mode"] for r in rows], [run.INNER, run.OUTPUTS, run.INNER])
            self.assertIn("first", rows[0])
            self.assertIn("alarm", rows[2])
            self.assertEqual({r["program"] for r in rows}, {run.program(ASSAY.resolve())})


if __name__ == "__main__":
    unittest.main()
