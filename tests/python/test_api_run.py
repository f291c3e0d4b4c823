"""load, build, Engine, Context and Outputs: numbers, shapes, errors, lives of objects."""
import gc
import os
import subprocess
import sys
import threading
import unittest

import ml_dtypes

from api_case import ApiCase, F, T, assay, chain, draw, h, model, np, onnx, unary, value


def expect_chain(proto, x):
    weights = {i.name: onnx.numpy_helper.to_array(i) for i in proto.graph.initializer}
    for i in range(len(weights) // 2):
        x = np.maximum(x @ weights["w%d" % i] + weights["b%d" % i], 0)
    return x


class TestLoad(ApiCase):
    def test_path_bytes_and_proto_are_the_same_model(self):
        proto = chain(2, 4)
        onnx.save(proto, self.path("m.onnx"))
        x = draw(3, 4)
        for source in (self.path("m.onnx"), proto.SerializeToString(), proto):
            m = assay.load(source)
            self.assertEqual([i.name for i in m.inputs], ["x"])
            np.testing.assert_allclose(m.run({"x": x})["y"], expect_chain(proto, x), rtol=1e-5, atol=1e-6)

    def test_descriptions(self):
        m = assay.load(model([h.make_node("Identity", ["x"], ["y"])], [value("x", T.FLOAT16, ["N", 3, None])],
                             [value("y", T.FLOAT16, ["N", 3, None])]))
        x, y = m.inputs[0], m.outputs[0]
        self.assertEqual((x.name, x.elem, x.kind, x.dtype), ("x", 10, "tensor", np.dtype("float16")))
        self.assertEqual(x.shape[:2], ("N", 3))
        self.assertEqual((y.elem, len(y.shape)), (10, 3))
        e = assay.build(m)
        self.assertEqual((e.inputs[0].shape[:2], e.outputs[0].elem), (("N", 3), 10))

    def test_plan_file_gives_an_engine(self):
        proto = chain(2, 4)
        assay.build(proto).save(self.path("m.plan"))
        e = assay.load(self.path("m.plan"))
        self.assertIsInstance(e, assay.Engine)
        x = draw(2, 4)
        np.testing.assert_allclose(e.run(x)[0], expect_chain(proto, x), rtol=1e-5, atol=1e-6)
        with self.assertRaises(assay.InvalidArgument) as error:
            assay.build(self.path("m.plan"))
        self.assertSays(error, "plan file")

    def test_errors_have_codes(self):
        with self.assertRaises(assay.NotFound) as error:
            assay.load(self.path("missing.onnx"))
        self.assertEqual(error.exception.code, "not_found")
        with self.assertRaises(assay.Corrupt):
            assay.load(b"PK not a model")
        for wrong in (3, None, ["m.onnx"]):
            with self.assertRaises(ValueError):
                assay.load(wrong)

    def test_truth_is_float64(self):
        m = assay.load(unary("Exp"))
        x = draw(2, 3)
        out = m.run(x, mode="truth")[0]
        self.assertEqual(out.dtype, np.float64)
        np.testing.assert_allclose(out, np.exp(x.astype(np.float64)), rtol=1e-15)
        with self.assertRaises(assay.InvalidArgument):
            m.run(x, mode="other")


class TestRun(ApiCase):
    def test_inputs_by_name_place_and_alone(self):
        proto = chain(3, 8)
        c = assay.build(proto).context()
        x = draw(5, 8)
        for inputs in ({"x": x}, [x], (x,), x):
            out = c.run(inputs)
            np.testing.assert_allclose(out["y"], expect_chain(proto, x), rtol=1e-5, atol=1e-5)
        y, = out
        self.assertIs(y, out[0])
        self.assertIs(out["y"], out[-1])
        self.assertEqual((len(out), list(out.names), list(out.asdict()), dict(out)["y"] is y), (1, ["y"], ["y"], True))
        with self.assertRaises(KeyError):
            out["z"]

    def test_sizes_change_from_run_to_run(self):
        proto = chain(2, 8)
        c = assay.build(proto).context()
        results = []
        for n in (1, 3, 3, 3, 0, 7, 1, 1):
            x = draw(n, 8, seed=n)
            results.append((c.run({"x": x})["y"], x))
        for y, x in results:
            np.testing.assert_allclose(y, expect_chain(proto, x), rtol=1e-5, atol=1e-5)

    def test_a_mask_whose_size_is_not_known_makes_the_scores_larger(self):
        proto = model([h.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), h.make_node("MatMul", ["q", "kt"], ["s"]),
                       h.make_node("Add", ["s", "m"], ["sm"]), h.make_node("Softmax", ["sm"], ["p"]),
                       h.make_node("MatMul", ["p", "v"], ["y"])],
                      [value("q", T.FLOAT, ["a", "h", "q", "d"]), value("k", T.FLOAT, ["a", "h", "k", "d"]),
                       value("v", T.FLOAT, ["c", "h", "keys", "e"]), value("m", T.FLOAT, ["b", "heads", "rows", "columns"])],
                      [value("y", T.FLOAT, ["n", "h", "q", "e"])])
        c = assay.build(proto).context()
        for sizes in (((1, 2, 3, 8), (1, 2, 5, 8), (1, 2, 5, 6), (1, 1, 3, 5)),  # not here
                      ((1, 2, 3, 8), (1, 2, 5, 8), (1, 2, 5, 6), (2, 2, 3, 5)),
                      ((1, 2, 1, 8), (1, 2, 1, 8), (1, 2, 4, 6), (1, 1, 3, 4)),
                      ((1, 2, 1, 8), (1, 2, 5, 8), (1, 2, 5, 6), (1, 1, 1, 5))):
            q, k, v, m = (draw(*s, seed=i) for i, s in enumerate(sizes))
            scores = q.astype(np.float64) @ k.swapaxes(2, 3) + m
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            np.testing.assert_allclose(c.run([q, k, v, m])[0], weights @ v, rtol=1e-5, atol=1e-5)

    def test_a_large_matrix_that_is_read_the_other_way_round_is_turned_once(self):
        words = draw(4100, 2100)  # more than what is folded of other nodes
        proto = model([h.make_node("Gather", ["words", "ids"], ["x"]), h.make_node("Transpose", ["words"], ["turned"], perm=[1, 0]),
                       h.make_node("MatMul", ["x", "turned"], ["y"])],
                      [value("ids", T.INT64, ["N"])], [value("y", T.FLOAT, ["N", 4100])], {"words": words})
        c = assay.build(proto).context(profile=True)
        ids = np.array([7, 4099, 0])
        np.testing.assert_allclose(c.run(ids)[0], words[ids].astype(np.float64) @ words.T, rtol=1e-4, atol=1e-3)
        self.assertNotIn("Transpose", [layer.op for layer in c.layers()])

    def test_results_stay_when_the_next_run_comes(self):
        proto = chain(2, 8)
        c = assay.build(proto).context()
        kept = [(c.run(draw(2, 8, seed=i))[0], draw(2, 8, seed=i)) for i in range(12)]
        views = [c.run(draw(2, 8, seed=i))[0][1:] for i in range(4)]
        for y, x in kept:
            np.testing.assert_allclose(y, expect_chain(proto, x), rtol=1e-5, atol=1e-5)
        for i, view in enumerate(views):
            np.testing.assert_allclose(view, expect_chain(proto, draw(2, 8, seed=i))[1:], rtol=1e-5, atol=1e-5)

    def test_shapes_that_depend_on_numbers(self):
        proto = model([h.make_node("NonZero", ["x"], ["y"])], [value("x", F, ["N"])], [value("y", T.INT64, [1, "M"])])
        c = assay.build(proto).context()
        for x in ([0, 1, 2], [0, 0, 0], [3, 1, 2], [0, 0, 5]):
            x = np.array(x, np.float32)
            np.testing.assert_array_equal(c.run(x)[0], np.stack(np.nonzero(x)))

    def test_no_silent_casts(self):
        c = assay.build(chain(1, 4)).context()
        for wrong, words in ((draw(2, 4).astype(np.float64), "float64"), (draw(2, 5), "[2, 5]"), (draw(4), "[4]"),
                             ("text", "float32"), (object(), "x"), (draw(2, 4).astype(">f4"), "float32")):
            with self.assertRaises(assay.InvalidArgument) as error:
                c.run({"x": wrong})
            self.assertSays(error, "'x'", words)
        for wrong in ({}, {"z": draw(2, 4)}, {"x": draw(2, 4), "z": draw(2, 4)}, [], [draw(2, 4)] * 2):
            with self.assertRaises(assay.InvalidArgument) as error:
                c.run(wrong)
            self.assertSays(error, "x")
        self.assertEqual(c.run(draw(2, 4))[0].shape, (2, 4))

    def test_python_numbers_take_the_type(self):
        c = assay.build(unary("Neg", T.INT64, ())).context()
        self.assertEqual(c.run({"x": 3})["y"], -3)
        with self.assertRaises(assay.InvalidArgument):
            c.run({"x": 3.5})

    def test_memory_in_any_order(self):
        proto = chain(2, 8)
        c = assay.build(proto).context()
        x = draw(8, 6)
        for array in (np.asfortranarray(draw(6, 8)), draw(12, 8)[::2], draw(6, 16)[:, ::2], draw(6, 8)[::-1], x.T):
            np.testing.assert_allclose(c.run(array)[0], expect_chain(proto, array), rtol=1e-5, atol=1e-5)

    def test_types(self):
        plain = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "bool"]
        more = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int4", "uint4",
                "float4_e2m1fn"]
        from assay._types import code_of
        for name in plain + more:
            dtype = np.dtype(name if name in plain else getattr(ml_dtypes, name))
            x = np.arange(7).astype(np.float32).astype(dtype).reshape(1, 7)
            proto = unary("Identity", code_of(dtype), ("N", 7), opset=23)
            with self.subTest(name):
                for out in (assay.load(proto).run({"x": x})[0], assay.build(proto).run({"x": x})[0]):
                    self.assertEqual((out.dtype, out.shape), (dtype, x.shape))
                    self.assertEqual(out.tobytes(), x.tobytes())

    def test_strings_sequences_optionals(self):
        words = np.array([["a", "bc"], ["", "\u00e4\u4e2d"]], object)
        m = unary("Identity", T.STRING, ("N", 2))
        for run in (assay.load(m).run, assay.build(m).run):
            self.assertEqual(run({"x": words})[0].tolist(), words.tolist())
            self.assertEqual(run({"x": words.astype(str)})[0].tolist(), words.tolist())
        sequence = h.make_tensor_sequence_value_info("s", F, None)
        m = model([h.make_node("SequenceLength", ["s"], ["n"]), h.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)],
                  [sequence], [value("n", T.INT64, []), value("y", F, ["N"])])
        for run in (assay.load(m).run, assay.build(m).run):
            n, y = run({"s": [draw(2), draw(3)]})
            self.assertEqual((int(n), y.shape), (2, (5,)))
            n, y = run([[draw(1), draw(1), draw(4)]])
            self.assertEqual((int(n), y.shape), (3, (6,)))
            with self.assertRaises(assay.InvalidArgument):
                run({"s": draw(2)[0]})
        optional = h.make_value_info("o", h.make_optional_type_proto(h.make_tensor_type_proto(F, [2])))
        m = model([h.make_node("OptionalHasElement", ["o"], ["has"])], [optional], [value("has", T.BOOL, [])])
        for run in (assay.load(m).run, assay.build(m).run):
            self.assertEqual((bool(run({"o": None})[0]), bool(run({"o": draw(2)})[0])), (False, True))

    def test_two_inputs_with_the_same_open_size(self):
        proto = model([h.make_node("Add", ["a", "b"], ["y"])], [value("a", F, ["N"]), value("b", F, ["N"])],
                      [value("y", F, ["N"])])
        c = assay.build(proto).context()
        np.testing.assert_array_equal(c.run([draw(3), draw(3)])[0], draw(3) * 2)
        with self.assertRaises(assay.InvalidArgument) as error:
            c.run({"a": draw(3), "b": draw(4)})
        self.assertSays(error, "N")
        x = draw(5)
        np.testing.assert_array_equal(c.run({"b": x, "a": x})[0], x * 2)


    def test_quick_runs_leave_no_other_thread_behind(self):
        # Its OpenMP team would make those of the main thread fall asleep between layers.
        c = assay.build(chain(3, 8)).context(threads=2)
        x = draw(2, 8)
        self.assertIs(threading.current_thread(), threading.main_thread())
        first = c.run(x)[0]
        for _ in range(50):
            np.testing.assert_array_equal(c.run(x)[0], first)
            left = [t for t in threading.enumerate() if t.name == "assay"]
            if c._quick and not left:
                break
            for t in left:
                t.join(0.1)
        self.assertTrue(c._quick)
        self.assertEqual(left, [])
        # And a long call has a worker again.
        self.assertIsNotNone(assay.check(chain(2, 4)))
        np.testing.assert_array_equal(c.run(x)[0], first)


class TestBinding(ApiCase):
    def test_bound_inputs_and_outputs(self):
        proto = chain(2, 8)
        c = assay.build(proto).context()
        x, y = draw(4, 8), np.zeros((4, 8), np.float32)
        c.bind_input("x", x)
        c.bind_output("y", y)
        out = c.run()
        self.assertIs(out["y"], y)
        np.testing.assert_allclose(y, expect_chain(proto, x), rtol=1e-5, atol=1e-5)
        x[:] = draw(4, 8, seed=5)  # what is written between runs is read
        c.run()
        np.testing.assert_allclose(y, expect_chain(proto, x), rtol=1e-5, atol=1e-5)
        c.bind_output("y", None)
        self.assertIsNot(c.run()[0], y)
        other = np.zeros((4, 8), np.float32)
        self.assertIs(c.run(outputs={"y": other})[0], other)
        np.testing.assert_array_equal(other, y)

    def test_memory_is_shared_by_addresses(self):
        from assay._library import lib
        c = assay.build(chain(2, 8)).context()
        x, y = draw(4, 8), np.zeros((4, 8), np.float32)
        c.run({"x": x}, outputs={"y": y})
        tensor = lib.assay_context_output(c._c, 0)  # a view of what is bound
        self.addCleanup(lib.assay_tensor_release, tensor)
        self.assertEqual((c._inputs[0].address, lib.assay_tensor_data(tensor)), (x.ctypes.data, y.ctypes.data))
        self.assertFalse(c.output_copied("y"))
        for n in (4, 4, 4, 2, 2):  # arrays that the context makes, also for another shape
            out = c.run({"x": draw(n, 8)})
            made = lib.assay_context_output(c._c, 0)
            self.assertEqual(lib.assay_tensor_data(made), out["y"].ctypes.data)
            self.assertFalse(c.output_copied("y"))
            lib.assay_tensor_release(made)

    def test_dlpack(self):
        class Other:
            """An array of another package: DLPack and nothing else."""

            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()
        proto = chain(2, 8)
        c = assay.build(proto).context()
        x = draw(6, 8)
        np.testing.assert_array_equal(c.run(Other(x))[0], c.run(x)[0])
        np.testing.assert_array_equal(c.run(Other(x[::2]))[0], c.run(x[::2].copy())[0])
        c.bind_input("x", Other(x))
        x[:] = draw(6, 8, seed=3)  # the same memory
        np.testing.assert_allclose(c.run()[0], expect_chain(proto, x), rtol=1e-5, atol=1e-5)
        with self.assertRaises(assay.InvalidArgument):
            c.run(Other(x.astype(np.float64)))

    def test_outputs_that_do_not_fit(self):
        c = assay.build(chain(2, 8)).context()
        x = draw(4, 8)
        frozen = np.zeros((4, 8), np.float32)
        frozen.flags.writeable = False
        for wrong in (np.zeros((4, 8), np.float64), np.zeros((3, 8), np.float32), np.zeros((8, 4), np.float32),
                      np.zeros((4, 16), np.float32)[:, ::2], frozen, [0.0] * 32):
            with self.assertRaises(assay.InvalidArgument) as error:
                c.run(x, outputs={"y": wrong})
            self.assertSays(error, "y")
        with self.assertRaises(assay.InvalidArgument):
            c.run(x, outputs={"z": np.zeros((4, 8), np.float32)})
        self.assertEqual(c.run(x)[0].shape, (4, 8))

    def test_states(self):
        proto = model([h.make_node("Concat", ["past", "x"], ["now"], axis=0), h.make_node("ReduceSum", ["now"], ["sum"], keepdims=0)],
                      [value("past", F, ["P"]), value("x", F, [1])], [value("now", F, ["Q"]), value("sum", F, [])])
        c = assay.build(proto).context()
        c.bind_state("past", "now", capacity=8)
        sums = [float(c.run({"x": np.array([i], np.float32)})["sum"]) for i in (1, 2, 3)]
        self.assertEqual(sums, [1, 3, 6])
        np.testing.assert_array_equal(c.state("past"), [1, 2, 3])
        c.set_state("past", np.array([5], np.float32))
        self.assertEqual(float(c.run([np.array([1], np.float32)])["sum"]), 6)
        c.reset_states()
        self.assertEqual(float(c.run([np.array([1], np.float32)])["sum"]), 1)
        c.unbind_state("past")
        with self.assertRaises(assay.InvalidArgument):
            c.run([np.array([1], np.float32)])

    def test_profile_times_and_taps(self):
        e = assay.build(chain(3, 8), fusion=False)
        seen = []
        c = e.context(profile=True, times=True, tap=lambda v: seen.append((v.layer, v.op, v.outputs[0].copy(), v)))
        out = c.run(draw(2, 8))
        self.assertTrue(seen)
        np.testing.assert_array_equal(seen[-1][2], out[0])
        self.assertEqual(len(c.layers()), len(seen))
        self.assertTrue(all(l.duration_ns > 0 and l.tactic and l.format == "fp32" for l in c.layers()))
        self.assertGreater(c.times().compute, 0)
        with self.assertRaises(RuntimeError):
            seen[0][3].inputs  # only during the call

    def test_what_a_tap_raises_ends_the_run(self):
        def fail(values):
            raise ZeroDivisionError("mine")
        c = assay.build(chain(3, 8)).context(tap=fail)
        for _ in range(3):
            with self.assertRaisesRegex(ZeroDivisionError, "mine"):
                c.run(draw(2, 8))
            with self.assertRaisesRegex(ZeroDivisionError, "mine"):
                c.run_async(draw(2, 8)).result()


class TestLives(ApiCase):
    def test_objects_die_in_any_order(self):
        proto = chain(2, 8)
        x = draw(2, 8)
        for order in ("engine model context", "context engine model", "model context engine"):
            objects = {"model": assay.load(proto)}
            objects["engine"] = assay.build(objects["model"])
            objects["context"] = objects["engine"].context()
            out = objects["context"].run(x)[0]
            for name in order.split():
                del objects[name]
                gc.collect()
            np.testing.assert_allclose(out, expect_chain(proto, x), rtol=1e-5, atol=1e-5)
        c = assay.build(assay.load(proto)).context()
        gc.collect()
        self.assertEqual(c.run(x)[0].shape, (2, 8))

    def test_use_after_close(self):
        with assay.build(chain(2, 8)).context() as c:
            out = c.run(draw(2, 8))[0]
        c.close()
        for call in (lambda: c.run(draw(2, 8)), lambda: c.bind_input("x", draw(2, 8)), c.layers, c.times, c.reset_states,
                     lambda: c.memory, lambda: c.run_async(draw(2, 8)), lambda: c.bind_output("y", None)):
            with self.assertRaises(assay.InvalidArgument) as error:
                call()
            self.assertSays(error, "closed")
        c.cancel()
        self.assertEqual(out.shape, (2, 8))

    def test_one_thread_at_a_time(self):
        inside, go = threading.Event(), threading.Event()

        def wait(values):
            inside.set()
            go.wait(20)
        c = assay.build(chain(3, 8)).context(tap=wait)
        future = c.run_async(draw(2, 8))
        self.assertTrue(inside.wait(20))
        for call in (lambda: c.run(draw(2, 8)), c.layers, lambda: c.bind_input("x", draw(2, 8))):
            with self.assertRaises(assay.InvalidArgument) as error:
                call()
            self.assertSays(error, "another thread")
        go.set()
        self.assertEqual(future.result(20)[0].shape, (2, 8))

    def test_cancel(self):
        inside = threading.Event()
        layers = []

        def slow(values):
            layers.append(values.layer)
            inside.set()
            cancelled.wait(20)
        cancelled = threading.Event()
        c = assay.build(chain(3, 8), fusion=False).context(tap=slow)
        future, later = c.run_async(draw(2, 8)), c.run_async(draw(2, 8))
        self.assertTrue(inside.wait(20))
        self.assertTrue(later.cancel())
        c.cancel()
        cancelled.set()
        with self.assertRaises(assay.Cancelled) as error:
            future.result(20)
        self.assertEqual((error.exception.code, len(layers)), ("cancelled", 1))
        self.assertEqual(c.run(draw(2, 8))[0].shape, (2, 8))

    def test_threads_with_contexts_of_their_own(self):
        proto = chain(3, 16)
        e = assay.build(proto)
        wrong = []

        def work(k):
            for i in range(50):
                x = draw(1 + i % 3, 16, seed=100 * k + i)
                if not np.allclose(e.run(x)[0], expect_chain(proto, x), rtol=1e-4, atol=1e-4):
                    wrong.append((k, i))
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


class TestEngine(ApiCase):
    def test_save_load_refit(self):
        proto, other = chain(2, 8), chain(2, 8, seed=9)
        e = assay.build(proto)
        x = draw(2, 8)
        refitted = e.refit(other)
        np.testing.assert_allclose(refitted.run(x)[0], expect_chain(other, x), rtol=1e-5, atol=1e-5)
        weights = {i.name: onnx.numpy_helper.to_array(i) for i in other.graph.initializer}
        np.testing.assert_array_equal(e.refit(weights).run(x)[0], refitted.run(x)[0])
        with self.assertRaises(assay.NotFound):
            e.refit({"nothing": draw(2)})
        with self.assertRaises(assay.InvalidArgument):
            e.refit({"w0": draw(2, 2)})
        np.testing.assert_allclose(e.run(x)[0], expect_chain(proto, x), rtol=1e-5, atol=1e-5)
        stripped = assay.build(proto, strip_weights=True, refittable=True)
        stripped.save(self.path("s.plan"))
        loaded = assay.Engine.load(self.path("s.plan"))
        self.assertGreater(loaded.missing_weights, 0)
        with self.assertRaises(assay.Unsupported):
            loaded.run(x)
        np.testing.assert_array_equal(loaded.refit(other).run(x)[0], refitted.run(x)[0])

    def test_profiles(self):
        proto = chain(2, 8)
        e = assay.build(proto, shapes=[{"x": assay.Range(min=(1, 8), best=(2, 8), max=(4, 8))},
                                       {"x": assay.Range(min=(16, 8), best=(16, 8), max=(32, 8))}])
        for n in (1, 4, 20):
            self.assertEqual(e.run(draw(n, 8))[0].shape, (n, 8))
        with self.assertRaises(assay.InvalidArgument):
            e.run(draw(8, 8))
        self.assertGreater(e.context(allocation="static").memory, 0)
        self.assertGreaterEqual(e.context(allocation="static").memory, e.context(allocation=0).memory)
        self.assertEqual(assay.build(proto, shapes={"x": (3, 8)}).inputs[0].shape, (3, 8))
        self.assertEqual(assay.build(proto, batch=5).inputs[0].shape, (5, 8))

    def test_precisions(self):
        proto = chain(2, 8)
        x = draw(2, 8)
        fp16 = assay.build(proto, target="emu", precision="fp16").run(x)[0]
        self.assertGreater(np.abs(fp16 - expect_chain(proto, x)).max(), 1e-5)
        kept = assay.build(proto, target="emu", precision="fp16", layer_precision={"*": "fp32"}).run(x)[0]
        np.testing.assert_allclose(kept, expect_chain(proto, x), rtol=1e-5, atol=1e-5)
        for wrong in ({"precision": "fp17"}, {"target": "tpu"}, {"fp32": "loose"}, {"tactic_sources": "x"},
                      {"shapes": {"x": (1,)}}, {"shapes": {"x": assay.Range((1, 8), (2,), (4, 8))}}):
            with self.assertRaises(assay.InvalidArgument):
                assay.build(proto, **wrong)
        with self.assertRaises(assay.Unsupported):
            assay.build(proto, precision="int8")
        self.assertIn("cpu", assay.targets())


class TestImport(unittest.TestCase):
    def python(self, code):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))

    def test_importing_imports_little(self):
        ran = self.python("import sys, assay; print(assay.__version__, [m for m in ('numpy', 'onnx', 'pandas', 'json') if m in sys.modules])")
        self.assertEqual(ran.stdout.split(" ", 1)[1].strip().replace(", 'json'", "").replace("'json'", ""), "[]", ran.stderr)
        program = subprocess.run([os.environ["ASSAY_PROGRAM"], "--version"], capture_output=True, text=True).stdout
        self.assertIn(ran.stdout.split()[0], program.splitlines()[0])

    def test_missing_library_says_what_to_do(self):
        code = "import os; os.environ['ASSAY_LIBRARY'] = '/nowhere/libassay.so'\nimport assay\nassay.load('x')"
        self.assertIn("ASSAY_LIBRARY", self.python(code).stderr)

    def test_ending_with_everything_alive(self):
        code = ("import sys; sys.path.insert(0, %r)\nfrom api_case import *\ne = assay.build(chain(2, 8))\nc = e.context()\n"
                "keep = [c.run(draw(2, 8)), c.run_async(draw(2, 8)), e]\nkeep.append(keep)\nprint('fine')" % os.path.dirname(os.path.abspath(__file__)))
        ran = self.python(code)
        self.assertEqual((ran.stdout.strip(), ran.returncode), ("fine", 0), ran.stderr)


if __name__ == "__main__":
    unittest.main()
