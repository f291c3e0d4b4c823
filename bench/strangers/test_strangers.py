#!/usr/bin/env python3
"""Tests of the bench: test_strangers.py ASSAY. Models load and run, faults have places and are where they are said to be, draws repeat."""
import hashlib
import itertools
import json
import subprocess
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
import forms
import healthy
import report
import run
import test_strangers7
import test_strangers8
import variants
from architectures import ARCHITECTURES, EIGHTH, FIFTH, FIRST, FOURTH, SECOND, SEVENTH, SIXTH, THIRD, build, held_out
from data import draw
from golden import Runner, difference, double_values, reference_values
from surgery import Surgery

BENCH = pathlib.Path(__file__).resolve().parents[1]
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


class Places:
    """Models, each with the values of one run; whether a kind of fault has a place in one costs little to ask, to inject it more."""

    def __init__(self):
        self.models, self.values = {}, {}

    def model(self, name, seed):
        if (name, seed) not in self.models:
            self.models[name, seed] = build(name, seed)
        return self.models[name, seed]

    def has(self, model, kind):
        if id(model) not in self.values:
            rng, run = np.random.default_rng(3), Runner(model.proto, every=True)
            feeds = [draw(model, rng) for _ in range(2)]
            try:
                self.values[id(model)] = [{**run(feed), **feed} for feed in feeds]
            except Exception:  # noqa: BLE001: an index beyond a table
                self.values[id(model)] = None
        if not self.values[id(model)]:
            return False
        values, traced = self.values[id(model)]
        surgeon = Surgery(onnx.ModelProto.FromString(model.proto.SerializeToString()), values, np.random.default_rng(4))
        surgeon.traced = traced
        return bool(kind.apply(surgeon))


class Architectures(unittest.TestCase):
    def test_every_architecture_loads_runs_and_is_small(self):
        self.assertGreaterEqual(len(FIRST), 40)
        self.assertGreaterEqual(len(SECOND), 20)
        self.assertGreaterEqual(len(THIRD), 30)
        self.assertGreaterEqual(len(FOURTH), 45)
        self.assertGreaterEqual(len(FIFTH), 50)
        self.assertGreaterEqual(len(SIXTH), 60)
        self.assertGreaterEqual(len(SEVENTH), 100)
        self.assertGreaterEqual(len(EIGHTH), 50)
        self.assertEqual(len(ARCHITECTURES), len(FIRST) + len(SECOND) + len(THIRD) + len(FOURTH) + len(FIFTH) + len(SIXTH) + len(SEVENTH) + len(EIGHTH))  # no name is used twice
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
        for names in (list(FIRST), [k for k in faults.KINDS if faults.KINDS[k].generation == 1]):
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
            other = reference_values(model.proto, feed, single)
            self.assertEqual({np.asarray(v).dtype for v in other.values()} - {np.dtype(np.int64), np.dtype(bool)}, {np.dtype(np.float32)})


class Faults(unittest.TestCase):
    def test_every_kind_has_a_place_changes_outputs_and_is_where_it_is_said_to_be(self):
        counts = [sum(k.generation == g for k in faults.KINDS.values()) for g in (1, 2, 3, 4, 5, 6, 7)]
        self.assertTrue(counts[0] >= 60 and counts[1] >= 40 and counts[2] >= 60 and counts[3] >= 60 and counts[4] >= 65 and min(counts[5:]) >= 60, counts)
        self.assertEqual(sum(len(m.ROWS) for m in faults.MODULES + faults.LATER + faults.THIRD + faults.FOURTH + faults.FIFTH + faults.SIXTH + faults.SEVENTH), sum(counts))  # no name is used twice
        places = Places()
        quantized = {g: [m for m in (variants.quantize(places.model(n, s), np.random.default_rng(1), True) for n in names for s in range(4)) if m]
                     for g, names in ((1, ("resnet", "unet")), (2, ("alex_lrn", "segformer")), (3, ("pool_pyramid", "rep_vgg")))}
        quantized[4] = [m for m in (variants.quantize_further(places.model(n, s), np.random.default_rng(s)) for n in ("vgg_behind", "maxout_net")
                                    for s in range(5)) if m]
        quantized[5] = [m for m in (variants.quantize_further(places.model(n, s), np.random.default_rng(s)) for n in ("half_zero", "score_map")
                                    for s in range(3)) if m]
        quantized[6] = [m for m in (variants.quantize_further(places.model(n, s), np.random.default_rng(s)) for n in ("powered_search", "events_and_frames")
                                    for s in range(3)) if m]
        quantized[7] = [m for m in (variants.quantize_further(places.model(n, s), np.random.default_rng(s)) for n in ("response_segments", "equal_rate_judge")
                                    for s in range(3)) if m]
        for kind in faults.KINDS.values():
            with self.subTest(kind=kind.name):
                self.assertRegex(kind.source, r"^[\w.-]+/[\w.-]+#\d+$")
                names = {1: FIRST, 2: SECOND, 3: THIRD, 4: FOURTH, 5: FIFTH, 6: SIXTH, 7: SEVENTH}[kind.generation]
                models = ((m, 0) for m in quantized[kind.generation]) if kind.quantized else ((places.model(n, s), s) for s in range(12) for n in names)
                found = ((m, faults.inject(m, kind.name, 3 + s)) for m, s in models if places.has(m, kind))
                for m, fault in found:
                    if not fault:
                        continue
                    feed = draw(m, np.random.default_rng(5))
                    wrong = first_wrong(m, fault, feed)
                    if wrong is None:  # these inputs do not show it
                        continue
                    self.assertGreater(fault.effect, faults.LEAST)
                    self.assertTrue(wrong & fault.blamed, (m.name, m.style, wrong, fault.blamed))
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

    def test_later_generations_are_columns_of_their_own(self):
        for of, (column, names) in cases.GROUPS.items():
            if of not in cases.FAULTY:
                continue
            drawn = [cases.draw_fault(7, number, of) for number in range(6)]
            self.assertEqual({c.column for c in drawn}, {column})
            self.assertEqual(len({c.kind for c in drawn}), len(drawn))  # kinds take turns
            for c in drawn:
                self.assertTrue(faults.KINDS[c.kind].generation == of and c.architecture in names, (c.kind, c.architecture))
                self.assertEqual(cases.column_of(c.kind, c.architecture), column)
            again = cases.draw_case(drawn[1].id, None)
            self.assertEqual(again.model.SerializeToString(deterministic=True), drawn[1].model.SerializeToString(deterministic=True))

    def test_a_scalar_that_is_changed_stays_one(self):
        model = next(m for m in (build("gemma", s) for s in range(20)) if m.style == "mindspore" or m.style == "simplified")
        surgeon = Surgery(model.proto, {}, np.random.default_rng(1))
        node = next(n for n in surgeon.nodes("Div") if surgeon.const(n.input[1]) is not None and surgeon.const(n.input[1]).ndim == 0)
        surgeon.set_const(node, 1, np.float32(3))
        self.assertEqual((surgeon.const(node.input[1]).shape, float(surgeon.const(node.input[1]))), ((), 3.0))

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

    @unittest.skipIf(ASSAY is None, "no assay given")
    def test_every_row_of_the_second_generation_is_drawn(self):
        drawn = [cases.draw_healthy(3, number, ASSAY, 2) for number in range(len(healthy.LATER))]
        for case, row in zip(drawn, healthy.LATER):
            with self.subTest(kind=row[0]):
                self.assertEqual((case.kind, case.column), (row[0], cases.LATER))
                kinds = {n.op_type for n in case.model.graph.node}
                self.assertEqual("int8" in case.kind, bool(kinds & variants.QUANTIZED), kinds)
                self.assertEqual("operators" in case.kind, bool(kinds & {"QLinearConv", "QLinearMatMul"}), kinds)
        self.assertGreater(len({c.architecture for c in drawn}), len(drawn) * 3 // 4)

    @unittest.skipIf(ASSAY is None, "no assay given")
    def test_every_row_of_the_third_generation_is_drawn(self):
        drawn = [cases.draw_healthy(3, number, ASSAY, 3) for number in range(len(healthy.THIRD))]
        for case, row in zip(drawn, healthy.THIRD):
            with self.subTest(kind=row[0]):
                self.assertEqual((case.kind, case.column), (row[0], cases.THIRD))
                same = case.model.SerializeToString() == case.intact.SerializeToString()
                self.assertEqual(same, row[1] == "float" or row[1] in forms.OTHER or row[1].startswith("int8 ") and not row[1].endswith("of float"))
                if not same:  # another form of the same, but for few bits
                    feed = cases.feeds(case, "given", 1)[0]
                    given, want = Runner(case.model)(feed), Runner(case.intact)(feed)
                    worst = max(difference(given[k], want[k]) for k in want)
                    self.assertLess(worst, np.inf if "int" in row[1] else 1e-4, (case.architecture, case.style))
        self.assertGreater(len({c.architecture for c in drawn}), len(drawn) * 3 // 4)

    @unittest.skipIf(ASSAY is None, "no assay given")
    def test_every_row_of_the_fourth_generation_is_drawn(self):
        self.assertGreaterEqual(len(healthy.FOURTH), 20)
        drawn = [cases.draw_healthy(3, number, ASSAY, 4) for number in range(len(healthy.FOURTH))]
        for case, row in zip(drawn, healthy.FOURTH):
            with self.subTest(kind=row[0]):
                self.assertEqual((case.kind, case.column), (row[0], cases.FOURTH))
                own = row[1] == "float" or row[1] in healthy.OTHER or row[1].startswith("int8 ") and not row[1].endswith("of float")
                self.assertEqual(case.model.SerializeToString() == case.intact.SerializeToString(), own)
                if not own:  # another form of the same, but for few bits
                    feed = cases.feeds(case, "given", 1)[0]
                    given, want = Runner(case.model)(feed), Runner(case.intact)(feed)
                    worst = max(difference(given[k], want[k]) for k in want)
                    self.assertLess(worst, np.inf if "int" in row[1] else 0.1 if row[1] == "tf32" else 1e-4, (case.architecture, case.style))
        self.assertGreater(len({c.architecture for c in drawn}), len(drawn) * 3 // 4)

    @unittest.skipIf(ASSAY is None, "no assay given")
    def test_every_row_of_the_fifth_generation_is_drawn(self):
        self.assertGreaterEqual(len(healthy.FIFTH), 24)
        drawn = [cases.draw_healthy(3, number, ASSAY, 5) for number in range(len(healthy.FIFTH))]
        for case, row in zip(drawn, healthy.FIFTH):
            with self.subTest(kind=row[0]):
                self.assertEqual((case.kind, case.column), (row[0], cases.FIFTH))
                whole = row[1] in ("float", "row by row", "own half", "int16") or row[1].startswith("int8 ")
                own = whole or row[1] in healthy.OTHER
                self.assertEqual(case.model.SerializeToString() == case.intact.SerializeToString(), own)
                if not own:  # another form of the same, but for few bits
                    feed = cases.feeds(case, "given", 1)[0]
                    given, want = Runner(case.model)(feed), Runner(case.intact)(feed)
                    worst = max(difference(given[k], want[k]) for k in want)
                    limit = np.inf if row[1].endswith("of float") else 0.1 if row[1].startswith("half") else 1e-4
                    self.assertLess(worst, limit, (case.architecture, case.style))
        self.assertGreater(len({c.architecture for c in drawn}), len(drawn) * 3 // 5)

    @unittest.skipIf(ASSAY is None, "no assay given")
    def test_every_row_of_the_sixth_generation_is_drawn(self):
        self.assertGreaterEqual(len(healthy.SIXTH), 30)
        self.assertFalse({row[0] for row in healthy.SIXTH} & {row[0] for rows in (healthy.ROWS, healthy.LATER, healthy.THIRD, healthy.FOURTH, healthy.FIFTH) for row in rows})
        drawn = [cases.draw_healthy(3, number, ASSAY, 6) for number in range(len(healthy.SIXTH))]
        for case, row in zip(drawn, healthy.SIXTH):
            with self.subTest(kind=row[0]):
                self.assertEqual((case.kind, case.column), (row[0], cases.SIXTH))
                own = row[1] in ("float", "int8 alternate", "unsigned int16") or row[1] in healthy.OTHER
                self.assertEqual(case.model.SerializeToString() == case.intact.SerializeToString(), own)
                if not own:  # another form of the same, but for few bits
                    feed = cases.feeds(case, "given", 1)[0]
                    given, want = Runner(case.model)(feed), Runner(case.intact)(feed)
                    worst = max(difference(given[k], want[k]) for k in want)
                    limit = np.inf if row[1].endswith("of float") else 0.1 if row[1].startswith("autocast") else 1e-4
                    self.assertLess(worst, limit, (case.architecture, case.style))
        self.assertGreater(len({c.architecture for c in drawn}), len(drawn) * 3 // 5)

    def test_forms_of_the_sixth_generation_change_something_and_give_the_same(self):
        models = [build(name, seed) for seed in range(2) for name in SIXTH]
        for form, change in healthy.forms6.SAME.items():
            found = 0
            for k, model in enumerate(models):
                try:
                    made = change(model, np.random.default_rng(k))
                except Exception:  # noqa: BLE001: an operator that the set does not have
                    continue
                if made is None:
                    continue
                feed = draw(model, np.random.default_rng(7))
                given, want = Runner(made.proto)(feed), Runner(model.proto)(feed)
                self.assertLess(max(difference(given[k], want[k]) for k in want), 1e-4, (form, model.name, model.style))
                found += 1
                if found == 3:
                    break
            self.assertGreaterEqual(found, 2, form)

    def test_quantizers_that_are_written_out_give_what_they_gave(self):
        for name in ("score_map", "half_zero", "projection_shortcuts"):
            quantized = variants.quantize(build(name, 1), np.random.default_rng(1), False)
            written, feed = variants.quantizers_written_out(quantized, np.random.default_rng(2)), draw(quantized, np.random.default_rng(3))
            given, want = Runner(written.proto)(feed), Runner(quantized.proto)(feed)
            self.assertLess(max(difference(given[k], want[k]) for k in want), 1e-4)

    def test_golden_that_is_saved_in_parts(self):
        """Row by row, a few inner values, and inner values in half precision: each is what it says, and near what the model gives."""
        rows = {kind: number for number, (kind, *_) in enumerate(healthy.FIFTH)}
        for kind in ("golden row by row", "golden fp32, a few inner values", "golden fp32, inner values saved as fp16"):
            case = cases.draw_healthy(3, rows[kind], None, 5)
            with self.subTest(kind=kind), tempfile.TemporaryDirectory() as folder:
                cases.write(case, folder)
                golden, inner = (np.load(pathlib.Path(folder) / name) for name in ("golden/0.npz", "intermediates.npz"))
                want = Runner(case.intact, every=True)(cases.feeds(case, "given", 1)[0])
                self.assertTrue(all(golden[k].dtype == want[k].dtype and difference(golden[k], want[k]) < 1e-4 for k in golden.files))
                self.assertEqual({inner[k].dtype for k in inner.files if want[k].dtype == np.float32},
                                 {np.dtype(np.float16 if "fp16" in kind else np.float32)})
                few = len(inner.files) * 4 < len(want)
                self.assertEqual(few, "a few" in kind, (len(inner.files), len(want)))

    def test_golden_that_was_saved_in_few_bits_is_near(self):
        x = np.array([1 / 3, -2.7182818, 1e-3, 100.006], np.float32)
        worst = {word: float(np.max(np.abs(saved(x).astype(np.float32) / x - 1))) for word, saved in cases.SAVED.items()}
        self.assertTrue(0 < worst["saved as fp16"] < 2 ** -11 and 2 ** -11 < worst["saved as bf16"] < 2 ** -8, worst)
        self.assertEqual(cases.SAVED["four decimals"](np.float32([0.123456])).tolist(), np.float32([0.1235]).tolist())

    def test_printed_numbers_have_six_digits(self):
        self.assertEqual(cases.printed(np.array([1 / 3, 1e-9 / 3], np.float32)).tolist(), np.array([0.333333, 3.33333e-10], np.float32).tolist())

    def test_a_model_that_makes_nan_is_not_healthy(self):
        case = cases.draw_healthy(3, 3, None, 2)
        self.assertTrue(cases.runs(case))
        graph = case.model.graph  # of an output, 0 / 0
        graph.node.append(onnx.helper.make_node("Sub", [graph.output[0].name] * 2, ["zero_of_test"]))
        graph.node.append(onnx.helper.make_node("Div", ["zero_of_test"] * 2, ["nan_of_test"]))
        self.assertFalse(cases.runs(case))

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
            rows = run.examine("F7-2-2", options) + run.examine("H7-0", options)
            third = run.examine("F7-2-3", options)
            later = [r for g in (4, 5, 6, 7) for r in run.examine(f"F7-2-{g}", options)]
            self.assertEqual([r["error"] for r in rows + third + later], [""] * 13)
            columns = (cases.LATER, cases.THIRD, cases.FOURTH, cases.FIFTH, cases.SIXTH, cases.SEVENTH)
            self.assertEqual([r["column"] for r in rows[:2] + third + later], [c for c in columns for _ in range(2)])
            for row in rows[:2] + third:
                self.assertTrue(row["probability"] is None or 0 <= row["probability"] <= 1, row)
            path = pathlib.Path(folder) / "rows.jsonl"
            sure = {**third[1], "probability": 0.9, "first": True}
            path.write_text("".join(json.dumps(r) + "\n" for r in [*rows, third[0], sure]))
            line = [sys.executable, str(BENCH / "calibration.py"), str(path), "--column", cases.THIRD]
            text = subprocess.run(line, capture_output=True, text=True, check=True).stdout  # of rows of run.py, which runs nothing
            self.assertIn("| 0.85 to 0.94 | 1 | 0.90 | 1 (1.00) |", text)
            about = types.SimpleNamespace(seed=7, search_time=2, faults=1, healthy=1, generation="2", columns_only=True)
            text = report.tables(rows, 2, about)
            self.assertIn(f"| {' | '.join(columns)} |", text)
            self.assertNotIn(rows[0]["kind"], text)  # those who tune do not see it
            self.assertEqual([r["mode"] for r in rows], [run.INNER, run.OUTPUTS, run.INNER])
            self.assertIn("first", rows[0])
            self.assertIn("alarm", rows[2])
            self.assertEqual({r["program"] for r in rows}, {run.program(ASSAY.resolve())})


class SeventhGeneration(test_strangers7.SeventhGeneration):
    assay = ASSAY


class EighthGeneration(test_strangers8.EighthGeneration):
    pass


if __name__ == "__main__":
    unittest.main()
