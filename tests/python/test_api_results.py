"""check, compare, tune, audit, certify, edit and quantize: what they find is what the library's reports say."""
import io
import json
import math
import sys
import unittest
from contextlib import redirect_stderr

from api_case import ApiCase, F, assay, chain, draw, h, model, np, onnx, value


def overflowing():
    """x -> x * 300 * 300 (past fp16 in the middle) -> / 90000."""
    return model([h.make_node("Mul", ["x", "k"], ["a"], name="up1"), h.make_node("Mul", ["a", "k"], ["b"], name="up2"),
                  h.make_node("Mul", ["b", "d"], ["y"], name="down")], [value("x", F, ["N", 8])], [value("y", F, ["N", 8])],
                 {"k": np.float32(300), "d": np.float32(1 / 90000)})


class TestCheck(ApiCase):
    def test_overflow_is_found_and_mended(self):
        x = np.abs(draw(4, 8)) + 1
        r = assay.check(overflowing(), precision="fp16", inputs={"x": x})
        self.assertFalse(r.faithful)
        self.assertEqual((r.blame, r.culprits[0].layer, r.culprits[0].verdict), ("precision", "up2", "overflow"))
        self.assertEqual([l.name for l in r.layers], ["up1", "up2", "down"])
        self.assertGreater(r.layers[1].overflowed, 0)
        self.assertTrue(r.fix.verified and r.fix.outputs[0].faithful)
        self.assertIn("up2", r.fix.nodes)
        report = json.loads(r.json)
        self.assertEqual((report["blame"], len(report["layers"])), (r.blame, 3))
        self.assertTrue(r.text.startswith("UNFAITHFUL") and str(r) == r.text)
        r.write_model(self.path("fixed.onnx"))
        np.testing.assert_allclose(assay.load(self.path("fixed.onnx")).run(x)[0], x, rtol=1e-2)
        r.write_options(self.path("fix.txt"))
        for end, begin in (("json", "{"), ("html", "<!"), ("txt", "UNFAITHFUL")):
            r.save(self.path("r." + end))
            with open(self.path("r." + end), encoding="utf-8") as f:
                self.assertTrue(f.read().lstrip().startswith(begin))
        with self.assertRaises(assay.InvalidArgument):
            r.save(self.path("r.pdf"))

    def test_notebooks_get_the_page_in_a_frame(self):
        r = assay.check(overflowing(), precision="fp16", inputs=np.ones((1, 8), np.float32))
        frame = r._repr_html_()
        inner = frame[frame.index('srcdoc="') + 8:]
        inner = inner[:inner.index('"')]  # the page has no quote left that ends the attribute
        import html
        self.assertEqual(html.unescape(inner), r.html)
        self.assertNotIn("<script", inner)

    def test_inputs_and_golden(self):
        proto = chain(3, 8)
        m = assay.load(proto)
        x = draw(4, 8)
        np.savez(self.path("in.npz"), x=x)
        golden = m.run(x)
        np.savez(self.path("gold.npz"), **golden.asdict())
        onnx.save(proto, self.path("m.onnx"))
        for inputs, gold in ((self.path("in.npz"), self.path("gold.npz")), ({"x": x}, golden), ([{"x": x}], [golden.asdict()]),
                             (x, golden.asdict()), ([x], self.path("m.onnx"))):
            r = assay.check(m, precision="fp16", inputs=inputs, golden=gold)
            self.assertTrue(r.faithful, r.text)
            self.assertLess(r.outputs[0].golden_max_abs, 1e-4)
        r = assay.check(m, inputs=x, golden={"y": golden["y"] + 1}, search_seconds=1)
        self.assertEqual((r.faithful, r.blame), (False, "export"))
        many = [{"x": draw(1, 8, seed=i)} for i in range(3)]
        self.assertEqual(assay.check(m, inputs=many).layers[0].runs, 3)
        self.assertIsNone(assay.check(m, inputs=many).outputs[0].golden_max_abs)
        for wrong in ({"z": x}, {"x": x[:, :4]}, [], [{"x": x}, {"y": x}], {"x": "text"}):
            with self.assertRaises(assay.AssayError):
                assay.check(m, inputs=wrong)
        with self.assertRaises(assay.NotFound):
            assay.check(m, inputs="missing.npz")

    def test_golden_of_another_shape_than_what_reads_it_takes(self):
        """An inner value of golden that the nodes after it cannot read is a fault where it is, not an error of those."""
        nodes = [h.make_node("MatMul", ["x", "w"], ["a"], name="product"), h.make_node("Reshape", ["a", "s"], ["r"], name="heads"),
                 h.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 1, 3], name="turn"), h.make_node("Add", ["t", "b"], ["c"], name="bias"),
                 h.make_node("Relu", ["c"], ["y"], name="relu")]
        m = assay.load(model(nodes, [value("x", F, ["N", "S", 8])], [value("y", F, ["N", 4, "S", 2])],
                             {"w": draw(8, 8), "s": np.array([0, 0, 4, 2]), "b": draw(2, 4, 3, 1)}))
        x = draw(2, 3, 8)
        y = m.run([x])["y"]
        for name, node, shape in (("t", "turn", (2, 5, 4, 2)), ("c", "bias", (2, 5, 4, 2)), ("t", "turn", (2, 3, 8))):
            r = assay.check(m, inputs={"x": x}, golden={"y": y, name: np.zeros(shape, np.float32)}, fix=None, search_seconds=2)
            self.assertEqual((r.blame, r.faults[0].node), ("export", node), r.text)
            self.assertIn("'%s' has another shape than golden" % name, r.text)

    def test_options(self):
        proto = chain(3, 8)
        self.assertFalse(assay.check(proto, precision="fp16", require="snr_db >= 200", fix=None).faithful)
        self.assertTrue(assay.check(proto, precision="fp16", require=["snr_db >= 30", "y: max_abs <= 1"]).faithful)
        r = assay.check(proto, precision="fp16", layer_precision={"matmul1": "fp32"})
        self.assertEqual([l.format for l in r.layers if l.name == "matmul1"], ["fp32"])
        self.assertTrue(assay.check(proto, target="cpu").faithful)
        for wrong in ({"precision": "fp9"}, {"target": "x"}, {"fix": "some"}, {"require": "nonsense"}, {"fp32": "x"}):
            with self.assertRaises(assay.InvalidArgument):
                assay.check(proto, **wrong)
        with self.assertRaises(assay.NotFound):
            assay.check(proto, layer_precision="nothing*:fp32")

    def test_progress(self):
        seen = []
        assay.check(chain(3, 8), precision="fp16", progress=lambda what, part: seen.append((what, part)))
        self.assertTrue(seen and all(isinstance(w, str) and 0 <= p <= 1 for w, p in seen))

        class Terminal(io.StringIO):
            def isatty(self):
                return True
        for stream, shown in ((io.StringIO(), False), (Terminal(), True)):
            with redirect_stderr(stream):
                assay.check(chain(3, 8), precision="fp16")
            self.assertEqual("%|" in stream.getvalue(), shown)
        self.assertEqual(stream.getvalue()[-1], "\r")  # the line is cleared
        with redirect_stderr(Terminal()) as quiet:
            assay.check(chain(3, 8), precision="fp16", progress=False)
        self.assertEqual(quiet.getvalue(), "")

        def fail(what, part):
            raise LookupError("mine")
        with self.assertRaisesRegex(LookupError, "mine"):
            assay.check(chain(3, 8), precision="fp16", progress=fail)

    def test_pandas(self):
        r = assay.check(overflowing(), precision="fp16")
        if sys.modules.get("pandas") is None:
            try:
                import pandas  # noqa: F401
            except ImportError:
                with self.assertRaisesRegex(ImportError, "pip install assay-engine"):
                    r.to_pandas()
                self.assertEqual([row["name"] for row in r._table()], ["up1", "up2", "down"])
                return
        self.assertEqual(list(r.to_pandas()["name"]), ["up1", "up2", "down"])


class TestOthers(ApiCase):
    def test_compare(self):
        x = draw(5, 7)
        self.assertTrue(assay.compare({"a": x, "b": x[0]}, {"a": x, "b": x[0]}))
        r = assay.compare({"a": x + np.float32(0.5)}, {"a": x})
        self.assertFalse(r.passed)
        self.assertAlmostEqual(r.pairs[0].statistics["max_abs"], 0.5, places=5)
        self.assertIn("outside", r.pairs[0].why)
        self.assertTrue(assay.compare(x + np.float32(0.5), x, atol=1))
        self.assertFalse(assay.compare(x, x + np.float32(0.5), tolerance=False, limits={"max_abs": (None, 0.1)}))
        self.assertTrue(assay.compare([x, x], [x, x], limits={"0:cosine": (0.9, None)}))
        np.savez(self.path("a.npz"), a=x)
        self.assertTrue(assay.compare(self.path("a.npz"), self.path("a.npz")))
        self.assertEqual(json.loads(r.json)["schema"], "assay.compare/1")
        self.assertTrue(math.isnan(assay.compare({"s": np.array(["a"])}, {"s": np.array(["a"])}).pairs[0].statistics["max_abs"]))
        for wrong in (lambda: assay.compare(self.path("a.npz"), x), lambda: assay.compare(x, x, atol=-1),
                      lambda: assay.compare(x, x, limits={"size": (0, 1)})):
            with self.assertRaises(assay.InvalidArgument):
                wrong()

    def test_tune(self):
        r = assay.tune(chain(4, 32), precision=["fp16", "bf16"], require="snr_db >= 40")
        self.assertTrue(r.met and r.chosen.met and r.chosen.seconds <= r.assignments[0].seconds)
        self.assertEqual(r.formats, ["fp16", "bf16", "fp32"])
        self.assertEqual(sum(len(n) for n in r.nodes.values()), 12)
        r.write_model(self.path("mixed.onnx"))
        self.assertEqual(assay.load(self.path("mixed.onnx")).run(draw(2, 32))[0].shape, (2, 32))
        impossible = assay.tune(chain(2, 8), require="snr_db >= 500")
        self.assertFalse(impossible.met)
        with self.assertRaises(assay.NotFound):
            impossible.write_model(self.path("none.onnx"))
        self.assertIn("h200", assay.devices())

    def test_audit(self):
        r = assay.audit(overflowing(), precision="fp16", box={"x": (0, 5)}, seconds=5)
        self.assertEqual((r.verdict, r.safe, r.box), ("overflow", False, {"x": (0.0, 5.0)}))
        self.assertEqual(r.findings[0].node, "up2")
        out = assay.build(overflowing(), target="emu", precision="fp16", fusion=False).run(r.witness)[0]
        self.assertFalse(np.isfinite(out).all())
        low, high = r.range_of("a")
        self.assertTrue(low <= 0 and 1499 < high < 1501)
        self.assertIsNone(r.range_of("nothing"))
        self.assertTrue(assay.audit(chain(1, 4), precision="fp16", box=1).safe)
        self.assertIn("broadcasts", r.tell("broadcasts"))

    def test_certify(self):
        proto = chain(3, 16)
        onnx.save(proto, self.path("m.onnx"))
        assay.certify(proto, precision="fp16").save(self.path("m.cert"))
        c = assay.Certificate.load(self.path("m.cert"))
        self.assertEqual((c.precision, c.target, c.values), ("fp16", "emu", 9))
        self.assertTrue(c.verify(self.path("m.onnx")))
        v = c.verify(chain(3, 16, seed=7))
        self.assertFalse(v.holds)
        self.assertTrue(v.changes and v.changes[0].kind)
        with self.assertRaises(assay.Corrupt):
            assay.Certificate.load(self.path("m.onnx"))

    def test_edit_and_quantize(self):
        proto = model([h.make_node("Gelu", ["x"], ["y"], name="g")], [value("x", F, ["N", 4])], [value("y", F, ["N", 4])])
        r = assay.edit(proto, "decompose", op="Gelu")
        self.assertTrue(r.kept_promise and r.may_write and r.changes >= 1)
        x = draw(3, 4)
        np.testing.assert_allclose(r.model.run(x)[0], assay.load(proto).run(x)[0], rtol=1e-5, atol=1e-6)
        r.write_model(self.path("plain.onnx"))
        self.assertNotIn("Gelu", [n.op_type for n in onnx.load(self.path("plain.onnx")).graph.node])
        q = assay.quantize(chain(2, 16), inputs={"x": draw(32, 16)})
        self.assertTrue(q.model.quantizes)
        e = assay.build(q.model, precision="int8")
        got, want = e.run(draw(4, 16))[0], assay.load(chain(2, 16)).run(draw(4, 16))[0]
        self.assertGreater(float(assay.compare(got, want, atol=9).pairs[0].statistics["cosine"]), 0.99)
        for wrong in ({"name": "nothing"}, {"name": "decompose", "of": 3}, {"name": "cast", "to": "fp99"}):
            with self.assertRaises(assay.InvalidArgument):
                assay.edit(proto, **wrong)
        self.assertIn("to", assay.edits()["cast"])

    def test_results_outlive_what_they_came_from(self):
        import gc
        m = assay.load(overflowing())
        r = assay.check(m, precision="fp16")
        del m
        gc.collect()
        self.assertEqual(json.loads(r.json)["blame"], "precision")
        r.write_model(self.path("f.onnx"))


if __name__ == "__main__":
    unittest.main()
