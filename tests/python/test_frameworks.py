"""The front doors of frameworks without any framework: what layers gave is found in the model, and what is missing is said."""
import dataclasses
import subprocess
import sys
import unittest
from collections import OrderedDict, namedtuple

import numpy as np

import assay
from assay.frameworks._scopes import Call, Step, leaving, name_calls, without_nodes
from assay.frameworks._trees import flatten


def call(layer, *arrays, came_in=(), came_out=()):
    return Call(layer, list(arrays), frozenset(came_in), frozenset(came_out))


class TestTrees(unittest.TestCase):
    def flat(self, value):
        return flatten(value, lambda leaf: isinstance(leaf, np.ndarray))

    def test_containers(self):
        a, b = np.zeros(1), np.zeros(2)
        pair = namedtuple("pair", "first second")

        @dataclasses.dataclass
        class Out:
            logits: object
            rest: object = None

        rows = [(a, [""]), ((a, b), ["0", "1"]), ([a, [b, a]], ["0", "1.0", "1.1"]), (OrderedDict(z=a, y=(b,)), ["z", "y.0"]),
                (pair(a, b), ["first", "second"]), (Out(a, Out(b, 3)), ["logits", "rest.logits"]), (None, []), ("text", [])]
        for value, names in rows:
            self.assertEqual([name for name, _ in self.flat(value)], names)


class TestScopes(unittest.TestCase):
    STEPS = [Step("stem.0", ["x", "w"], ["conv"]), Step("stem.2", ["conv"], ["relu"]), Step("a", ["relu"], ["inner"]),
             Step("a.b", ["inner"], ["out"]), Step("", ["out", "relu"], ["sum"])]
    SHAPES = {"conv": (1, 2), "relu": (1, 2), "out": (1, None)}

    def test_what_leaves_a_layer(self):
        found = leaving(self.STEPS, ["sum"], ["stem", "stem.0", "a", "a.b", "c"])
        self.assertEqual(found, {"stem": ["relu"], "stem.0": ["conv"], "a": ["out"], "a.b": ["out"], "c": []})

    def test_folded_layers_stand_for_the_one_before(self):
        conv, norm, relu = np.full((1, 2), 1.0), np.full((1, 2), 2.0), np.full((1, 2), 3.0)
        calls = [call("stem.0", conv, came_in=[1], came_out=[2]), call("stem.1", norm, came_in=[2], came_out=[3]),
                 call("stem.2", relu, came_in=[3], came_out=[4])]
        folded = without_nodes(calls, self.STEPS)
        self.assertEqual(folded, {1: 0})
        values = leaving(self.STEPS, ["sum"], ["stem.0", "stem.1", "stem.2"])
        named = name_calls(calls, values, self.SHAPES, folded)
        self.assertEqual({name: float(array[0, 0]) for name, array in named.items()}, {"conv": 2, "relu": 3})

    def test_values_that_nothing_tells_apart_have_no_name(self):
        steps = [Step("rnn", ["x"], ["h", "c", "y"]), Step("", ["h", "c", "y"], ["sum"])]
        h, y = np.zeros((1, 4)), np.zeros((3, 4))
        values = leaving(steps, ["sum"], ["rnn"])
        named = name_calls([call("rnn", y, (h, h)[0], h)], values, {"h": (1, 4), "c": (1, 4), "y": (3, 4)}, {})
        self.assertEqual(list(named), ["y"])
        self.assertEqual(name_calls([call("rnn", y)], values, {}, {}), {})  # one array, three values
        self.assertEqual(name_calls([call("a", y)], {"a": ["v"]}, {"v": (4, 3)}, {}), {})  # another shape
        self.assertEqual(name_calls([call("a", y)], {"a": ["v"]}, {}, {}), {})  # a shape that nobody knows

    def test_calls_follow_each_other(self):
        steps = [Step("f", ["x"], ["one"]), Step("f", ["one2"], ["two"]), Step("", ["one", "two"], ["one2"])]
        values = leaving(steps, [], ["f"])
        named = name_calls([call("f", np.zeros(2)), call("f", np.ones(2))], values, {"one": (2,), "two": (2,)}, {})
        self.assertEqual({name: float(array[0]) for name, array in named.items()}, {"one": 0, "two": 1})


class TestMissing(unittest.TestCase):
    def test_what_is_missing_names_the_extra(self):
        rows = [("assay.check_torch(None, None)", "torch"), ("assay.from_torch(None, None)", "torch"),
                ("assay.check_keras(None, None)", "keras"), ("assay.check_huggingface('x')", "huggingface"),
                ("assay.from_onnxscript(None)", "onnxscript")]
        for code, extra in rows:
            block = "import sys; sys.modules.update(dict.fromkeys(['torch', 'tensorflow', 'keras', 'transformers', 'onnxscript']))\n"
            done = subprocess.run([sys.executable, "-c", f"{block}import assay\n{code}"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, code)
            last = done.stderr.strip().splitlines()[-1]
            self.assertTrue(last.startswith("ImportError: ") and f"pip install 'assay-engine[{extra}]'" in last, last)

    def test_nothing_is_imported_before_it_is_used(self):
        code = "import sys, assay; assay.check_torch; print(sorted({'torch', 'onnx', 'keras', 'transformers', 'onnxscript'} & set(sys.modules)))"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip(), "[]")

    def test_export_error_is_one_of_assays(self):
        self.assertTrue(issubclass(assay.ExportError, assay.AssayError))


if __name__ == "__main__":
    unittest.main()
