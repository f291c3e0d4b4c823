"""Tests of the seventh generation's healthy models; `test_strangers.py` runs them.

Healthy is what differs by nothing but what it says: forms are the same in double precision, and golden in fewer bits is nearer with each bit.
"""
import unittest
import warnings

import numpy as np

import cases
import forms7_golden
import healthy
import healthy7
import variants
from architectures import SEVENTH, build
from data import draw
from forms4 import f32
from golden import Runner, difference, double_values

SAME_SUMS = ("winograd", "double sums", "fast functions", "blocks of attention", "places of filters", "parts of sums")  # of golden: as many bits as the model has


def with_bits(s, at, x, out, bits):
    """x with so many bits before and after its point together: a product pushes the others out (Veltkamp)."""
    names = [s.fresh("bits") for _ in range(2)]
    s.insert(at, "Mul", [x, s.constant(f32(2 ** (24 - bits) + 1), "push")], [names[0]])
    s.insert(at + 1, "Sub", [names[0], x], [names[1]])
    s.insert(at + 2, "Sub", [names[0], names[1]], [out])
    return 3


def decibels(given, want):
    pairs = [(np.float64(given[k]), np.float64(v)) for k, v in want.items() if v.dtype == np.float32]
    return 10 * np.log10(sum((w ** 2).sum() for _, w in pairs) / (sum(((g - w) ** 2).sum() for g, w in pairs) + 1e-300))


class SeventhGeneration(unittest.TestCase):
    assay = None  # the program, whose quantizer makes some healthy models

    def test_names_are_new(self):
        names = [row[0] for row in healthy7.SEVENTH]
        self.assertGreaterEqual(len(names), 100)
        self.assertEqual(len(set(names)), len(names))
        earlier = (healthy.ROWS, healthy.LATER, healthy.THIRD, healthy.FOURTH, healthy.FIFTH, healthy.SIXTH)
        self.assertFalse(set(names) & {row[0] for rows in earlier for row in rows})
        self.assertFalse({row[1] for row in healthy7.SEVENTH} - {"float", "int8 U8U8"} & {row[1] for rows in earlier for row in rows})

    def test_every_row_is_drawn(self):
        drawn = [cases.draw_healthy(3, number, self.assay, 7) for number in range(len(healthy7.SEVENTH))]
        for case, row in zip(drawn, healthy7.SEVENTH):
            with self.subTest(kind=row[0]):
                self.assertEqual((case.kind, case.column), (row[0], cases.SEVENTH))
                own = row[1] == "float" or row[1] in healthy7.OTHER or row[1].startswith("int8 ")
                self.assertEqual(case.model.SerializeToString() == case.intact.SerializeToString(), own)
                if not own:
                    feed = cases.feeds(case, "given", 1)[0]
                    given, want = Runner(case.model)(feed), Runner(case.intact)(feed)
                    worst = max(difference(given[k], want[k]) for k in want)
                    few = row[1].endswith("of float") or any(word in row[0] for word in healthy7.LOW) and not row[2]
                    self.assertLess(worst, 0.3 if few else 1e-4, (case.architecture, case.style))
        self.assertGreater(len({c.architecture for c in drawn}), len(drawn) // 2)

    def test_forms_are_the_same_in_double_precision(self):
        """But for constants, which single precision holds; and where onnx's reference does not know an operator, to single precision's last bits."""
        models = [build(name, seed) for seed in range(2) for name in SEVENTH]
        for form, change in {**healthy7.SAME, **{k: healthy7.GOLDEN[k] for k in SAME_SUMS}}.items():
            found = 0
            for k in np.random.default_rng(len(form)).permutation(len(models)):
                try:
                    made = change(models[k], np.random.default_rng(k))
                except Exception:  # noqa: BLE001: an operator that the set does not have
                    continue
                if made is None:
                    continue
                feed = draw(models[k], np.random.default_rng(7))
                given, want = Runner(made.proto)(feed), Runner(models[k].proto)(feed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    exact = [double_values(m.proto, feed, v) for m, v in ((made, given), (models[k], want))] if found == 0 else [None]
                with self.subTest(form=form, architecture=models[k].name, style=models[k].style):
                    self.assertLess(max(difference(given[k], want[k]) for k in want), 1e-4)
                    if all(exact):
                        self.assertLess(max(difference(exact[0][k], exact[1][k]) for k in want), 1e-6)
                found += 1
                if found == 3:
                    break
            self.assertGreaterEqual(found, 1, form)

    def test_golden_in_few_bits_is_nearer_with_each_bit(self):
        """Six decibels a bit: what it differs by is rounding, and nothing else."""
        models = [build(name, 5) for name in ("response_blocks", "gated_reader", "held_weather", "even_citations", "reversible_series", "curved_sphere")]
        usual = forms7_golden.in_few_bits, forms7_golden.brain
        for change in (healthy7.GOLDEN["brain products"], healthy7.GOLDEN["all brain"]):
            levels = []
            try:
                for bits in (8, 11, 14):
                    forms7_golden.in_few_bits = lambda s, at, x, out, half: with_bits(s, at, x, out, bits)  # noqa: B023
                    forms7_golden.brain = lambda c: f32(f32(c) * f32(2 ** (24 - bits) + 1) - (f32(c) * f32(2 ** (24 - bits) + 1) - f32(c)))  # noqa: B023
                    feeds = [draw(m, np.random.default_rng(3)) for m in models]
                    levels.append(np.median([decibels(Runner(change(m, np.random.default_rng(4)).proto)(f), Runner(m.proto)(f)) for m, f in zip(models, feeds)]))
            finally:
                forms7_golden.in_few_bits, forms7_golden.brain = usual
            for step in np.diff(levels):
                self.assertTrue(13 < step < 23, levels)  # of three bits

    def test_golden_of_other_sums_is_as_near_as_rounding(self):
        least = {"winograd": 110, "half sums": 45, "half products": 35, "half weights": 40, "all half": 28, "brain products": 22, "all brain": 18, "brain weights": 22,
                 "three brains": 80}
        for form, change in healthy7.GOLDEN.items():
            for k, name in enumerate(SEVENTH):
                if k % 6 or name in variants.FLOAT_INDICES or any(n.op_type in ("ArgMax", "Hardmax", "Greater", "Less") for n in build(name, 9).proto.graph.node):
                    continue  # a choice between two that are nearly alike may be another one
                model = build(name, 9)
                made = change(model, np.random.default_rng(k))
                if made:
                    feed = draw(model, np.random.default_rng(8))
                    self.assertGreater(decibels(Runner(made.proto)(feed), Runner(model.proto)(feed)), least.get(form, 100), (form, name))

    def test_fake_quantization_is_near_the_quantized_model(self):
        """A step here and there, where a number lies between two."""
        for name in ("response_segments", "gated_sensors", "binned_gaze"):
            given = variants.quantize(build(name, 1), np.random.default_rng(1), False, types="S8S8")
            seen, feed = healthy7.fake_quantized(given, np.random.default_rng(2)), draw(given, np.random.default_rng(3))
            known = {n.output[0] for n in seen.proto.graph.node if n.op_type == "Constant"}  # stay as they are
            self.assertFalse(any(n.op_type == "QuantizeLinear" and n.input[0] not in known for n in seen.proto.graph.node), name)
            a, b = Runner(seen.proto)(feed), Runner(given.proto)(feed)
            self.assertLess(max(difference(a[k], b[k]) for k in b), 0.05, name)

    def test_what_is_below_single_precision_is_flushed(self):
        x = np.array([1.0, 2e-39, -1e-40, 1.2e-38], np.float32)
        self.assertEqual(cases.flushed(x).tolist(), np.array([1.0, 0, 0, 1.2e-38], np.float32).tolist())
