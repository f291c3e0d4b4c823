"""Sizes that models leave open: check, tune, audit, certify, edit and calibrate take them as the program does."""
import json
import os
import subprocess
import unittest
import warnings

from api_case import ApiCase, F, T, assay, chain, draw, h, model, np, onnx, value


def sequence():
    """ids int64[N, S], mask float[N, S], scale float[3] -> y float[N, S, 8]: names that inputs share, and a function."""
    def of(*nodes, **more):
        return h.make_function("test", nodes=list(nodes), opset_imports=[h.make_opsetid("", 20)], **more)
    weigh = of(h.make_node("Unsqueeze", ["m", "k"], ["u"]), h.make_node("Mul", ["e", "u"], ["o"]), fname="Weigh",
               inputs=["e", "m", "k"], outputs=["o"])
    nodes = [h.make_node("Gather", ["table", "ids"], ["e"], name="look_up"),
             h.make_node("Weigh", ["e", "mask", "last"], ["w"], domain="test", name="weigh"),
             h.make_node("ReduceSum", ["scale"], ["s"], keepdims=0, name="total"), h.make_node("Mul", ["w", "s"], ["y"], name="scaled")]
    graph = h.make_graph(nodes, "test", [value("ids", T.INT64, ["N", "S"]), value("mask", F, ["N", "S"]), value("scale", F, [3])],
                         [value("y", F, ["N", "S", 8])],
                         [onnx.numpy_helper.from_array(draw(5, 8), "table"), onnx.numpy_helper.from_array(np.array([-1]), "last")])
    made = h.make_model(graph, opset_imports=[h.make_opsetid("", 20), h.make_opsetid("test", 1)], ir_version=10, functions=[weigh])
    onnx.checker.check_model(made)
    return made


def unnamed():
    """image float[?, 3, H, W] -> convolution -> y: a leading dimension without a name."""
    return model([h.make_node("Conv", ["image", "w"], ["y"], name="conv", pads=[1, 1, 1, 1])],
                 [value("image", F, [None, 3, "H", "W"])], [value("y", F, [None, 4, "H", "W"])], {"w": draw(4, 3, 3, 3)})


# Models, sizes, and with them the shapes of inputs.
CASES = [
    (lambda: chain(3, 16), {"batch": 5}, {"x": (5, 16)}),
    (lambda: chain(3, 16), {"dims": {"N": 4}}, {"x": (4, 16)}),
    (lambda: chain(3, 16), {"shapes": {"x": [3, None]}}, {"x": (3, 16)}),
    (lambda: chain(3, 16), {"shapes": {"x": [3, 16]}, "batch": 9}, {"x": (3, 16)}),
    (sequence, {}, {"ids": (1, 1), "mask": (1, 1), "scale": (3,)}),
    (sequence, {"batch": 2, "dims": {"S": 7}}, {"ids": (2, 7), "mask": (2, 7), "scale": (3,)}),
    (sequence, {"shapes": {"mask": (3, 4)}}, {"ids": (3, 4), "mask": (3, 4), "scale": (3,)}),
    (unnamed, {"batch": np.int64(2), "dims": {"H": 6, "W": 5}}, {"image": (2, 3, 6, 5)}),
    (unnamed, {"shapes": {"image": [2, -1, 6, 5]}}, {"image": (2, 3, 6, 5)}),
]


def as_options(batch=None, dims=None, shapes=None):
    """The sizes on the program's command line."""
    words = ["--batch", str(batch)] if batch else []
    for name, size in (dims or {}).items():
        words += ["--dim", "%s=%d" % (name, size)]
    for name, shape in (shapes or {}).items():
        words += ["--shape", "%s=%s" % (name, "x".join("?" if d in (None, -1) else str(d) for d in shape))]
    return words


class TestSizes(ApiCase):
    def setUp(self):
        super().setUp()
        quiet = warnings.catch_warnings()
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        warnings.simplefilter("ignore")  # of a batch beside a shape that goes before it

    def program(self, verb, proto, *words):
        """The JSON that a verb of the program writes of a model."""
        onnx.save(proto, self.path("m.onnx"))
        out = self.path("out.json")
        ran = subprocess.run([os.environ["ASSAY_PROGRAM"], verb, self.path("m.onnx"), *words, "--json", out], capture_output=True, text=True)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        with open(out, encoding="utf-8") as f:
            return json.load(f)

    def test_checks_are_those_of_the_program(self):
        for make, sizes, shapes in CASES:
            with self.subTest(sizes=sizes):
                proto = make()
                r = assay.check(proto, precision="fp16", **sizes)
                wanted = self.program("check", proto, "--precision", "fp16", *as_options(**sizes))
                got = json.loads(r.json)
                for key in ("outputs", "layers", "verdict", "blame"):
                    self.assertEqual(got[key], wanted[key], key)
                self.assertEqual(r.outputs[0].elements, assay.load(proto).run({n: self.zeros(n, s) for n, s in shapes.items()})[0].size)

    @staticmethod
    def zeros(name, shape):
        return np.zeros(shape, np.int64 if name == "ids" else np.float32)

    def test_a_model_in_other_sizes(self):
        for make, sizes, shapes in CASES:
            with self.subTest(sizes=sizes):
                m = assay.load(make())
                before = [i.type for i in m.inputs]
                other = m.resize(batch=3).resize(**sizes)
                open_as_1 = {i.name: tuple(d if isinstance(d, int) else 1 for d in i.shape) for i in other.inputs}
                self.assertEqual(open_as_1, shapes)
                self.assertEqual([i.type for i in m.inputs], before)
                self.assertEqual(other.run({n: self.zeros(n, s) for n, s in shapes.items()})[0].shape[0],
                                 next(iter(shapes.values()))[0])
        engine = assay.build(chain(2, 8), batch=4)
        self.assertEqual(engine.model.resize().inputs[0].shape, (4, 8))

    def test_the_other_questions(self):
        proto = sequence()
        sizes = {"batch": 2, "dims": {"S": 7}}
        tuned, wanted = assay.tune(proto, **sizes), self.program("tune", proto, "--precision", "fp16", *as_options(**sizes))
        self.assertEqual(json.loads(tuned.json)["trials"], wanted["trials"])
        self.assertNotEqual(json.loads(assay.tune(proto).json)["trials"], wanted["trials"])
        certificate = assay.certify(proto, **sizes)
        self.assertEqual(certificate.shapes, "ids=2x7;mask=2x7")
        onnx.save(proto, self.path("m.onnx"))
        self.assertTrue(certificate.verify(self.path("m.onnx")))
        self.assertTrue(certificate.verify(assay.load(proto).resize(**sizes)))
        with self.assertRaisesRegex(assay.InvalidArgument, "ids=2x7;mask=2x7"):
            certificate.verify(assay.load(proto))
        audit = assay.audit(proto, seconds=1, **sizes)
        self.assertEqual((audit.open_sizes, assay.audit(proto, seconds=1, batch=2).open_sizes), ("", "'S'"))
        edited = assay.edit(proto, "sanitize", **sizes)
        self.assertEqual(edited.verdict, "unchanged")
        self.assertEqual(edited.model.inputs[0].shape, ("N", "S"))
        self.assertEqual(assay.quantize(chain(2, 16), batch=8).model.inputs[0].shape, ("N", 16))

    def test_edits_make_inputs_in_these_sizes(self):
        """A reshape to rows of 4 elements: inputs of 1 cannot be run, those of 4 are a proof."""
        proto = model([h.make_node("Reshape", ["x", "s"], ["r"], name="rows"), h.make_node("Relu", ["r"], ["y"], name="relu")],
                      [value("x", F, ["N"])], [value("y", F, ["M", 4])], {"s": np.array([-1, 4])})
        self.assertEqual(assay.edit(proto, "sanitize").verdict, "not proven")
        for sizes in ({"batch": 8}, {"dims": {"N": 4}}, {"shapes": {"x": [12]}}):
            self.assertEqual(assay.edit(proto, "sanitize", **sizes).verdict, "unchanged", sizes)
            assay.check(proto, precision="fp16", **sizes)
        with self.assertRaises(assay.AssayError):
            assay.check(proto, precision="fp16")

    def test_a_batch_cuts_given_inputs_into_samples(self):
        x = draw(12, 16)
        for sizes, runs in (({"batch": 3}, 4), ({"dims": {"N": 6}}, 2), ({}, 1)):
            self.assertEqual(assay.check(chain(2, 16), inputs={"x": x}, **sizes).layers[0].runs, runs)
            self.assertEqual(assay.calibrate(chain(2, 16), inputs={"x": x}, **sizes).samples, runs)

    def test_what_cannot_be_is_refused(self):
        m = assay.load(sequence())
        calls = [m.resize] + [lambda f=f, **sizes: f(m, **sizes) for f in (
            assay.check, assay.tune, assay.certify, assay.audit, assay.quantize,
            lambda m, **sizes: assay.calibrate(m, inputs=[np.zeros((1, 1), np.int64), draw(1, 1), draw(3)], **sizes))]
        rows = [({"batch": 0}, "batch"), ({"batch": -2}, "1 or more"), ({"batch": 2.5}, "2.5 is not a size"), ({"batch": "4"}, "'4'"),
                ({"batch": 2 ** 63}, "below 2**63"), ({"dims": {"T": 3}}, "no input has an open dimension 'T'; there are 'N', 'S'"),
                ({"dims": {"N": 0}}, "dimension 'N'"), ({"dims": ["N"]}, "dict"), ({"dims": {1: 2}}, "dict"),
                ({"shapes": {"id": [1, 1]}}, "the model has no input 'id'"), ({"shapes": {"scale": [4]}}, "is fixed"),
                ({"shapes": {"ids": [1]}}, "has 1 dimensions"), ({"shapes": {"ids": "1x2"}}, "'1x2' is not a list"),
                ({"shapes": {"ids": [1, -2]}}, "shape of 'ids'"), ({"shapes": {"ids": [1, 1.5]}}, "1.5 is not a size"),
                ({"shapes": [1, 1]}, "dict"), ({"shapes": {"ids": [2, 3]}, "dims": {"S": 4}}, "'S'"),
                ({"shapes": {"ids": [2, 3], "mask": [3, 3]}}, "share dimension 'N'"), ({"shapes": {"ids": [1] * 99}}, "99")]
        for call in calls:
            for sizes, words in rows:
                with self.subTest(sizes=sizes), self.assertRaises(assay.InvalidArgument) as e:
                    call(**sizes)
                self.assertSays(e, words)
        with self.assertRaises((assay.NoMemory, assay.InvalidArgument)):
            assay.check(m, batch=2 ** 40)

    def test_a_batch_that_no_input_takes_is_told(self):
        m = assay.load(chain(2, 8, batch=1))
        for call in (lambda: m.resize(batch=3), lambda: assay.check(m, batch=3), lambda: assay.tune(m, batch=3),
                     lambda: assay.certify(m, batch=3), lambda: assay.audit(m, batch=3, seconds=1),
                     lambda: assay.edit(m, "sanitize", batch=3), lambda: assay.quantize(m, batch=3)):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                call()
            self.assertEqual([(str(w.message), w.filename) for w in told],
                             [("batch=3 sets nothing: no input leaves its leading dimension open", __file__)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            m.resize(batch=1)
            assay.load(chain(2, 8)).resize(batch=3)


if __name__ == "__main__":
    unittest.main()
