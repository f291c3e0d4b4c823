"""assay.debug: what each experiment finds in models with faults is what the program finds, field by field of its JSON."""
import json
import math
import os
import re
import subprocess
import threading
import unittest

from api_case import ApiCase, F, assay, chain, draw, h, model, np, onnx, value

# What is another number in each run.
TIMES = {"seconds", "microseconds"}


def overflowing():
    """x -> relu -> * 300 * 300 (past fp16 in the middle) -> / 90000 -> relu."""
    return model([h.make_node("Relu", ["x"], ["p"], name="before"), h.make_node("Mul", ["p", "k"], ["a"], name="up1"),
                  h.make_node("Mul", ["a", "k"], ["b"], name="up2"), h.make_node("Mul", ["b", "d"], ["c"], name="down"),
                  h.make_node("Relu", ["c"], ["y"], name="after")], [value("x", F, ["N", 8])], [value("y", F, ["N", 8])],
                 {"k": np.float32(300), "d": np.float32(1 / 90000)})


def across_the_batch(axis=0):
    """A softmax over the samples; with axis 1 over each sample, as it should be."""
    return model([h.make_node("Mul", ["x", "k"], ["a"], name="scale"), h.make_node("Softmax", ["a"], ["b"], axis=axis, name="soft"),
                  h.make_node("Relu", ["b"], ["y"], name="relu")], [value("x", F, ["N", 8])], [value("y", F, ["N", 8])],
                 {"k": np.float32(2)})


def normalized():
    """A convolution and its normalization, which fp16 holds one by one; put together their weights pass 65504."""
    ones = np.ones(4, np.float32)
    return model([h.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
                  h.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"], name="norm"),
                  h.make_node("Relu", ["n"], ["y"], name="relu")], [value("x", F, ["N", 3, 8, 8])], [value("y", F, ["N", 4, 8, 8])],
                 {"w": draw(4, 3, 3, 3) * np.float32(1000), "s": ones * np.float32(500), "b": ones, "m": 0 * ones, "v": ones})


class DebugCase(ApiCase):
    def saved(self, proto):
        onnx.save(proto, self.path("m.onnx"))
        return self.path("m.onnx")

    def inputs(self, **arrays):
        np.savez(self.path("in.npz"), **arrays)
        return self.path("in.npz")

    def program(self, verb, *words):
        """The JSON and the exit code of `assay debug VERB`."""
        out = self.path("program.json")
        ran = subprocess.run([os.environ["ASSAY_PROGRAM"], "debug", verb, *words, "--json", out], capture_output=True, text=True,
                             cwd=self.folder)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        with open(out, encoding="utf-8") as f:
            return json.load(f), ran.returncode

    def agree(self, result, report):
        """That a result's JSON is the program's, but for times; it is given back."""
        mine = json.loads(result.json)
        self.assertEqual(self.without_times(mine), self.without_times(report))
        self.assertTrue(str(result) and result.text == str(result))
        return mine

    def without_times(self, value):
        if isinstance(value, dict):
            return {k: self.without_times(v) for k, v in value.items() if k not in TIMES}
        return [self.without_times(v) for v in value] if isinstance(value, list) else value


class TestPrecision(DebugCase):
    def test_layers_that_need_more(self):
        path, files = self.saved(overflowing()), self.inputs(x=np.abs(draw(4, 8)) + 1)
        for options, words in (({}, []), ({"mode": "bisect"}, ["--mode", "bisect"]),
                               ({"mode": "linear", "from_end": True}, ["--mode", "linear", "--direction", "reverse"]),
                               ({"mode": "bisect", "rebuild": True}, ["--mode", "bisect", "--rebuild"]),
                               ({"as_asked": True, "fix": "best"}, ["--as-asked", "--fix", "best"]),
                               ({"layer_precision": {"up2": "fp32"}}, ["--layer-precision", "up2:fp32"]),
                               ({"require": "snr_db >= 20", "target": "cpu"}, ["--require", "snr_db >= 20", "--target", "cpu"])):
            with self.subTest(words):
                r = assay.debug.precision(path, precision="fp16", inputs=files, **options)
                report, code = self.program("precision", path, "--precision", "fp16", "--inputs", files, *words)
                mine = self.agree(r, report)
                self.assertEqual((r.found or r.enough, r.runs), (code == 0, mine["runs"]))
                self.assertEqual(r.nodes, mine["fix"]["nodes"] if mine["fix"] else [])
                self.assertEqual(r.enough, options.get("target") == "cpu")  # which fuses the three
                if not r.enough:
                    self.assertEqual(r.format, "fp32")
                    self.assertIn("down" if "layer_precision" in options else "up2", r.nodes)

    def test_files_and_enough(self):
        x = np.abs(draw(4, 8)) + 1
        r = assay.debug.precision(overflowing(), precision="fp16", inputs={"x": x})
        r.write_model(self.path("mixed.onnx"))
        self.assertTrue(assay.check(self.path("mixed.onnx"), inputs={"x": x}).faithful)
        r.write_options(self.path("fix.txt"))
        with open(self.path("fix.txt"), encoding="utf-8") as f:
            self.assertIn("up2:fp32", f.read())
        enough = assay.debug.precision(chain(2, 8), precision="fp16")
        self.assertEqual((enough.enough, enough.found, enough.nodes), (True, False, []))
        with self.assertRaises(assay.NotFound):
            enough.write_model(self.path("none.onnx"))

    def test_golden(self):
        proto, x = chain(2, 8), draw(4, 8)
        truth = assay.load(proto).run(x).asdict()
        r = assay.debug.precision(proto, precision="fp16", inputs=x, golden=truth, require="golden_snr_db >= 30")
        self.assertTrue(r.enough)
        with self.assertRaisesRegex(assay.InvalidArgument, "golden"):
            assay.debug.precision(proto, precision="fp16", inputs=x, require="golden_snr_db >= 30")


class TestReduce(DebugCase):
    def test_the_smallest_part(self):
        path, files = self.saved(overflowing()), self.inputs(x=np.abs(draw(4, 8)) + 1)
        r = assay.debug.reduce(path, precision="fp16", inputs=files)
        self.assertEqual((r.verdict, r.nodes, r.nodes_before), ("reduced", 1, 5))
        self.assertIn("overflow", r.why)
        self.assertEqual(r.write(self.path("part")), 1)
        self.assertEqual([n.name for n in onnx.load(self.path("part/model.onnx")).graph.node], ["up2"])
        again = assay.check(self.path("part/model.onnx"), precision="fp16", inputs=self.path("part/inputs.npz"), fix=None)
        self.assertEqual((again.faithful, again.culprits[0].verdict), (False, "overflow"))
        report, code = self.program("reduce", path, "--precision", "fp16", "--inputs", files, "-o", self.path("part"))
        self.assertEqual(code, 1)
        del report["command"]  # of the program
        mine = json.loads(r.json)
        self.assertEqual(self.without_times({k: v for k, v in mine.items() if k != "command"}), self.without_times(report))

    def test_a_fault_of_the_export(self):
        """A weight that the exporter lost is found by inner values of the original."""
        proto, x = chain(4, 8), draw(3, 8)
        inner = onnx.ModelProto()
        inner.CopyFrom(proto)
        inner.graph.output.extend([value(n, F, ["N", 8]) for n in ("r0", "r1", "r2")])
        np.savez(self.path("gold.npz"), **assay.load(inner).run(x).asdict())
        for t in proto.graph.initializer:
            if t.name == "b2":
                t.CopyFrom(onnx.numpy_helper.from_array(np.zeros(8, np.float32), "b2"))
        path, files = self.saved(proto), self.inputs(x=x)
        r = assay.debug.reduce(path, inputs=files, intermediates=self.path("gold.npz"))
        report, _ = self.program("reduce", path, "--inputs", files, "--golden-intermediates", self.path("gold.npz"),
                                 "-o", self.path("part"))
        self.assertEqual((r.verdict, r.nodes, r.tries), (report["verdict"], report["nodes"], report["tries"]))
        self.assertEqual(r.verdict, "reduced")
        r.write(self.path("mine"))
        self.assertIn("add2", [n.name for n in onnx.load(self.path("mine/model.onnx")).graph.node])
        same = assay.debug.reduce(path, inputs=files, golden=dict(np.load(self.path("gold.npz"))))
        self.assertEqual((same.verdict, same.nodes), (r.verdict, r.nodes))

    def test_a_judge_of_ones_own(self):
        """It fails as long as a MatMul is in the part."""
        judge = "! grep -q -a MatMul {model}"
        path = self.saved(chain(2, 8))
        r = assay.debug.reduce(path, judge=judge, seconds=30)
        report, _ = self.program("reduce", path, "--check", judge, "--time", "30", "-o", self.path("part"))
        self.assertEqual((r.verdict, r.nodes, r.tries), ("reduced", 1, report["tries"]))

    def test_nothing_fails(self):
        r = assay.debug.reduce(chain(2, 8), precision="fp16")
        self.assertEqual((r.verdict, r.why), ("sound", ""))
        with self.assertRaises(assay.NotFound):
            r.write(self.path("none"))
        self.assertFalse(os.path.exists(self.path("none")))


class TestBatch(DebugCase):
    def test_the_model_is_to_blame(self):
        path, files = self.saved(across_the_batch()), self.inputs(x=draw(1, 8))
        for options, words in (({}, []), ({"axis": 0, "precision": "fp16"}, ["--axis", "0", "--precision", "fp16"]),
                               ({"axis": "N", "target": "cpu"}, ["--axis", "N", "--target", "cpu"])):
            r = assay.debug.batch(path, inputs=files, **options)
            mine = self.agree(r, self.program("batch", path, "--inputs", files, *words)[0])
            self.assertEqual((r.verdict, r.guilty.name, r.guilty.op), ("model", "soft", "Softmax"))
            self.assertEqual((r.runs, r.guilty.moved, r.guilty.why),
                             (len(mine["runs"]), mine["guilty"]["moved"], mine["guilty"]["why"]))
            self.assertTrue(r.guilty.in_truth and not r.guilty.declared)

    def test_another_engine_is_to_blame(self):
        # An engine that takes the softmax over the wrong axis.
        onnx.save(across_the_batch(), self.path("wrong.onnx"))
        command = "%s run %s --inputs {inputs} --save-outputs {outputs}" % (os.environ["ASSAY_PROGRAM"], self.path("wrong.onnx"))
        path = self.saved(across_the_batch(axis=1))
        r = assay.debug.batch(path, inputs={"x": draw(1, 8)}, command=command, seconds=60)
        report, code = self.program("batch", path, "--inputs", self.inputs(x=draw(1, 8)), "--exec", command)
        self.agree(r, report)
        self.assertEqual((r.verdict, code), ("engine", 1))
        self.assertFalse(r.guilty.in_truth)
        with self.assertRaisesRegex(assay.InvalidArgument, "from a file"):
            assay.debug.batch(chain(2, 8), command=command)

    def test_sound_models(self):
        r = assay.debug.batch(chain(2, 8))
        self.assertEqual((r.verdict, r.guilty), ("sound", None))
        with self.assertRaises(assay.InvalidArgument):
            assay.debug.batch(chain(2, 8), axis="M")
        with self.assertRaises(assay.AssayError):
            assay.debug.batch(model([h.make_node("Relu", ["x"], ["y"])], [value("x", F, [])], [value("y", F, [])]))


class TestPassesAndTactics(DebugCase):
    def test_the_pass_that_changes_the_result(self):
        path, files = self.saved(normalized()), self.inputs(x=draw(2, 3, 8, 8) * np.float32(1e-4))
        for target in ("cpu", "emu"):
            r = assay.debug.passes(path, precision="fp16", target=target, inputs=files)
            report, code = self.program("passes", path, "--precision", "fp16", "--target", target, "--inputs", files)
            self.agree(r, report)
            self.assertEqual((code, r.guilty.name, r.guilty.effect), (1, "batchnorm_into_conv", "engine"), r.text)
            self.assertEqual(([s.faithful for s in r.steps[:2]], r.steps[0].name), ([True, False], None))
            self.assertTrue(r.nodes)
            self.assertIn("batchnorm_into_conv", r.tell())
        sound = assay.debug.passes(path, inputs=files)
        self.assertIsNone(sound.guilty)
        without = assay.debug.passes(path, precision="fp16", inputs=files, passes_off="batchnorm_into_conv")
        self.assertIsNone(without.guilty)
        self.assertNotIn("batchnorm_into_conv", [s.name for s in without.steps])

    def test_tactics(self):
        path, files = self.saved(normalized()), self.inputs(x=draw(2, 3, 8, 8))
        for options, words in (({}, []), ({"fusion": False, "layer": "conv"}, ["--unfused", "--layer", "conv"]),
                               ({"precision": "bf16"}, ["--precision", "bf16"])):
            r = assay.debug.tactics(path, inputs=files, timed=False, **options)
            mine = self.agree(r, self.program("tactics", path, "--inputs", files, "--untimed", *words)[0])
            rows = [(layer["name"], t["name"], t["source"], t["chosen"], t["rms"], t["max_abs"])
                    for layer in mine["layers"] for t in layer["tactics"]]
            self.assertEqual([(t.layer, t.tactic, t.source, t.chosen, t.rms, t.max) for t in r.trials], rows)
            self.assertTrue(all(t.fault == "sound" and math.isnan(t.seconds) for t in r.trials) and r.faults == 0)
            self.assertIn("conv", r.tell())
        self.assertTrue(all(t.seconds > 0 for t in assay.debug.tactics(path, inputs=files).trials))
        with self.assertRaises(assay.NotFound):
            assay.debug.tactics(path, inputs=files, layer="nothing")
        with self.assertRaises(assay.Unsupported):
            assay.debug.tactics(path, inputs=files, target="emu")


class TestEnvironment(DebugCase):
    @staticmethod
    def but_for_kernels(report):
        """On a CPU that is newer than its OpenBLAS the program begins again with other kernels, which a process of Python's cannot."""
        name = "$OPENBLAS_CORETYPE"
        entries = [{**e, "value": re.sub(r"\w+ (?=MAX_THREADS)", "", e["value"])} for e in report["entries"] if e["key"] != name]
        return {**report, "entries": entries}

    def test_here_and_elsewhere(self):
        here = assay.debug.environment()
        self.assertEqual(self.but_for_kernels(json.loads(here.json)), self.but_for_kernels(self.program("environment")[0]))
        self.assertTrue(str(here) and here.text == str(here))
        self.assertEqual(here.entries[0], assay.debug.Entry("assay", assay.__version__, True))
        here.save(self.path("here.json"))
        same = assay.debug.compare_environments(here, self.path("here.json"))
        self.assertEqual((same.changes_numbers, same.differences), (False, []))
        with open(self.path("there.json"), "w", encoding="utf-8") as f:
            f.write(here.json.replace('"%s"' % assay.__version__, '"0.0.1"', 1))
        other = assay.debug.compare_environments(self.path("here.json"), self.path("there.json"))
        self.agree(other, self.program("environment", "--compare", "here.json", "there.json")[0])
        self.assertTrue(other.changes_numbers)
        self.assertEqual(other.differences, [assay.debug.EntryDifference("assay", assay.__version__, "0.0.1", True)])
        with self.assertRaises(assay.NotFound):
            assay.debug.compare_environments(here, self.path("missing.json"))
        with self.assertRaises(assay.Corrupt):
            assay.debug.compare_environments(here, self.saved(chain(1, 4)))


class TestAll(DebugCase):
    def experiments(self):
        """name -> a function of a model and options."""
        d = assay.debug
        return {"precision": lambda m, **o: d.precision(m, precision="fp16", **o), "reduce": lambda m, **o: d.reduce(m, precision="fp16", **o),
                "batch": d.batch, "passes": d.passes, "tactics": d.tactics}

    def test_progress(self):
        for name, experiment in self.experiments().items():
            seen = []
            experiment(overflowing(), progress=lambda what, part: seen.append((what, part)))
            self.assertTrue(seen and all(isinstance(w, str) and 0 <= p <= 1 for w, p in seen), name)

            def fail(what, part):
                raise LookupError("mine")
            with self.assertRaisesRegex(LookupError, "mine"):
                experiment(overflowing(), progress=fail)

    def test_results_in_notebooks_and_files(self):
        for name, experiment in self.experiments().items():
            r = experiment(overflowing())
            self.assertIn("<pre>", r.html, name)
            self.assertIn("<iframe", r._repr_html_())
            r.save(self.path("r.json"))
            with open(self.path("r.json"), encoding="utf-8") as f:
                self.assertEqual(json.load(f)["schema"], "assay.debug.%s/1" % name)
            rows = {"batch": "nodes", "passes": "steps", "tactics": "trials"}.get(name)
            self.assertEqual(len(r._table()), len(getattr(r, rows)) if rows else 1)

    def test_sizes(self):
        """A model that only runs in some sizes."""
        proto = model([h.make_node("Reshape", ["x", "s"], ["r"], name="rows"), h.make_node("Mul", ["r", "k"], ["a"], name="up"),
                       h.make_node("Relu", ["a"], ["y"], name="relu")], [value("x", F, ["N", "M"])], [value("y", F, ["K", 4])],
                      {"s": np.array([-1, 4]), "k": np.float32(3)})
        for name, experiment in self.experiments().items():
            experiment(proto, dims={"M": 4})
            with self.assertRaises(assay.AssayError):
                experiment(proto, dims={"X": 4})

    def test_what_cannot_be_is_refused(self):
        rows = [({"precision": "fp9"}, assay.InvalidArgument), ({"target": "x"}, assay.InvalidArgument), ({"fp32": "x"}, assay.InvalidArgument),
                ({"inputs": {"z": draw(1, 8)}}, assay.AssayError), ({"inputs": "missing.npz"}, assay.NotFound),
                ({"passes_off": "nothing"}, assay.NotFound), ({"layer_precision": "nothing*:fp32"}, assay.NotFound),
                ({"unknown": 1}, TypeError)]
        calls = {"precision": [({"mode": "x"}, assay.InvalidArgument), ({"fix": "x"}, assay.InvalidArgument),
                               ({"require": "nonsense"}, assay.InvalidArgument), ({"rebuild": True, "mode": "bisect"}, assay.InvalidArgument)],
                 "reduce": [({"judge": "true"}, assay.InvalidArgument), ({"command": "engine"}, assay.InvalidArgument),
                            ({"seconds": -1}, assay.InvalidArgument), ({"seconds": float("nan")}, assay.InvalidArgument)],
                 "batch": [({"axis": 7}, assay.AssayError), ({"seconds": -1}, assay.InvalidArgument)],
                 "passes": [({"require": "nonsense"}, assay.InvalidArgument)], "tactics": []}
        for name, own in calls.items():
            function = getattr(assay.debug, name)
            for options, error in rows + own:
                with self.subTest(name, **options), self.assertRaises(error):
                    function(overflowing(), **{"precision": "fp16", **options})
        with self.assertRaisesRegex(assay.InvalidArgument, "which precision"):
            assay.debug.precision(overflowing())

    def test_threads_wait_for_each_other(self):
        m, found, x = assay.load(overflowing()), [], np.abs(draw(4, 8)) + 1

        def work():
            for _ in range(5):
                found.append(assay.debug.precision(m, precision="fp16", inputs={"x": x}).nodes)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual((len(found), found), (20, [found[0]] * 20))

    def test_results_outlive_what_they_came_from(self):
        import gc
        for experiment in self.experiments().values():
            r = experiment(overflowing())
            gc.collect()
            self.assertTrue(json.loads(r.json)["schema"] and r.text)


if __name__ == "__main__":
    unittest.main()
