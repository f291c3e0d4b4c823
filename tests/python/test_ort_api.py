"""assay.onnxruntime in what ort_scripts/ do not show: every name there is, odd models, broken files, threads, plans."""
import contextlib
import copy
import gc
import io
import os
import random
import threading
import unittest
import warnings
import weakref
from unittest import mock

import onnxruntime as theirs
from api_case import ApiCase, F, T, assay, chain, draw, h, model, np, onnx, unary, value

import assay.onnxruntime as ours
from assay.onnxruntime import devices, pool, source
from assay.onnxruntime.capi import onnxruntime_pybind11_state as state
from assay.onnxruntime.providers import Providers

theirs.set_default_logger_severity(4)
# Of ONNX Runtime's names: what belongs to other devices, to its own file formats, or to training.
LEFT_OUT = {
    "AdapterFormat", "LoraAdapter", "ModelCompiler", "OrtArenaCfg", "OrtCompileApiFlags", "OrtEpContextData",
    "OrtEpContextDataBuffer", "OrtExecutionProviderDevicePolicy", "OrtExternalInitializerInfo", "OrtMemoryInfoDeviceType",
    "OrtSyncStream", "contextlib", "cuda_version", "import_capi_exception", "onnxruntime_validation", "package_name", "version",
    # of SessionOptions
    "clear_ep_context_data_read_func", "set_ep_context_data_read_func", "set_provider_selection_policy_delegate"}


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


class TestNames(unittest.TestCase):
    def test_of_the_module_and_its_classes(self):
        self.assertEqual(public(theirs) - public(ours) - LEFT_OUT, set())
        for name in ("InferenceSession", "IOBinding", "OrtValue", "RunOptions", "SessionOptions", "SparseTensor", "NodeArg",
                     "ModelMetadata", "OrtDevice", "OrtMemoryInfo"):
            missing = public(getattr(theirs, name)) - public(getattr(ours, name)) - LEFT_OUT - {"create_v2"}
            self.assertEqual(missing, set(), name)

    def test_of_exceptions(self):
        import onnxruntime.capi.onnxruntime_pybind11_state as their_state
        for name in public(their_state):
            thing = getattr(their_state, name)
            if isinstance(thing, type) and issubclass(thing, Exception):
                kind = getattr(state, name)
                self.assertTrue(issubclass(kind, Exception) and not issubclass(kind, (ValueError, RuntimeError)), name)
                self.assertEqual(kind.__module__, state.__name__)


class TestLikeOnnxRuntime(unittest.TestCase):
    """On the models of ONNX's operator tests: the same types and shapes are told, the same outputs come."""

    def test_operators(self):
        from onnx.backend.test.loader import load_model_tests
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cases = [case for case in load_model_tests(kind="node") if case.data_sets and "training_dropout" not in case.name]
        if not os.environ.get("ASSAY_FULL"):
            cases = random.Random(3).sample(cases, 80)
        compared = 0
        for case in cases:
            data = case.model.SerializeToString()
            try:
                their_session = theirs.InferenceSession(data)
            except Exception:
                continue
            with self.subTest(case.name):
                session = ours.InferenceSession(data)
                for of in ("get_inputs", "get_outputs", "get_overridable_initializers"):
                    self.assertEqual([(a.name, a.type, a.shape) for a in getattr(session, of)()],
                                     [(a.name, a.type, a.shape) for a in getattr(their_session, of)()])
                given = case.data_sets[0][0]
                feed = {a.name: v if isinstance(v, (list, dict, type(None))) else np.asarray(v)
                        for a, v in zip(session.get_inputs(), given)}
                try:
                    expected = their_session.run(None, feed)
                except Exception:
                    continue
                for mine, other in zip(session.run(None, feed), expected):
                    self.assertEqual(self.form(mine), self.form(other))
                compared += 1
        self.assertGreater(compared, len(cases) // 2)

    def form(self, out):
        if isinstance(out, list):
            return [self.form(item) for item in out]
        return (out.dtype.char, out.shape) if isinstance(out, np.ndarray) else out


class TestWhatModelsDoNotDeclare(ApiCase):
    def test_scalar_as_vector(self):
        session = ours.InferenceSession(unary("Neg", shape=()).SerializeToString())
        np.testing.assert_array_equal(session.run(None, {"x": np.array([2], np.float32)})[0], [-2])
        self.assertEqual(session.run(None, {"x": np.array(2, np.float32)})[0].shape, ())

    def test_sizes_of_one_name_that_differ(self):
        proto = model([h.make_node("Add", ["a", "b"], ["y"])], [value("a", F, ["N"]), value("b", F, ["N"])],
                      [value("y", F, ["N"])])
        session = ours.InferenceSession(proto.SerializeToString())
        for n in (3, 5):
            out = session.run(None, {"a": np.ones(n, np.float32), "b": np.ones(1, np.float32)})[0]
            np.testing.assert_array_equal(out, np.full(n, 2))

    def test_sizes_that_are_expressions(self):
        proto = model([h.make_node("Add", ["a", "b"], ["y"])], [value("a", F, ["N", 3]), value("b", F, [None, 3])],
                      [value("y", F, [None, None])])
        self.assertEqual(assay.build(proto).outputs[0].shape[1:], (3,))
        for package in (theirs, ours):
            self.assertEqual(package.InferenceSession(proto.SerializeToString()).get_outputs()[0].shape, [None, 3])

    def test_inputs_that_are_shapes(self):
        proto = model([h.make_node("Reshape", ["x", "s"], ["y"])], [value("x", F, [6]), value("s", T.INT64, [2])],
                      [value("y", F, [None, None])])
        session = ours.InferenceSession(proto.SerializeToString())
        for shape in ((2, 3), (3, 2), (1, 6)):
            self.assertEqual(session.run(None, {"x": np.ones(6, np.float32), "s": np.array(shape)})[0].shape, shape)

    def test_constants_before_ir_4(self):
        proto = model([h.make_node("Add", ["x", "w"], ["y"])], [value("x", F, [2]), value("w", F, [2])], [value("y", F, [2])],
                      {"w": np.ones(2, np.float32)})
        x = np.zeros(2, np.float32)
        session = ours.InferenceSession(proto.SerializeToString())
        self.assertEqual([i.name for i in session.get_overridable_initializers()], ["w"])
        np.testing.assert_array_equal(session.run(None, {"x": x, "w": x})[0], [0, 0])
        proto.ir_version = 3
        session = ours.InferenceSession(proto.SerializeToString())
        self.assertEqual(session.get_overridable_initializers(), [])
        with self.assertRaises(state.InvalidArgument) as error:
            session.run(None, {"x": x, "w": x})
        self.assertSays(error, "Invalid input name: w")

    def test_missing_tensor(self):
        session = ours.InferenceSession(unary().SerializeToString())
        with self.assertRaises(state.Fail) as error:
            session.run(None, {"x": None})
        self.assertSays(error, "Missing Input: x")


class TestFiles(ApiCase):
    def test_broken_files_are_refused(self):
        data = bytearray(chain(2, 4).SerializeToString())
        rng = random.Random(5)
        for i in range(300):
            broken = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                broken[rng.randrange(len(broken))] = rng.randrange(256)
            if i % 3 == 0:
                del broken[rng.randrange(len(broken)):]
            try:
                session = ours.InferenceSession(bytes(broken))
                session.run(None, {name.name: draw(2, 4) for name in session.get_inputs()})
            except (state.Fail, state.InvalidGraph, state.InvalidArgument, state.InvalidProtobuf, state.NotImplemented):
                pass

    def test_large_files_are_mapped(self):
        onnx.save(chain(2, 4), self.path("m.onnx"))
        x, before = {"x": draw(2, 4)}, source.MAPPED_BYTES
        expected = ours.InferenceSession(self.path("m.onnx")).run(None, x)[0]
        try:
            source.MAPPED_BYTES = 1
            np.testing.assert_array_equal(ours.InferenceSession(self.path("m.onnx")).run(None, x)[0], expected)
        finally:
            source.MAPPED_BYTES = before

    def test_plan_file(self):
        proto, x = chain(2, 4), draw(3, 4)
        assay.build(proto).save(self.path("m.plan"))
        session = ours.InferenceSession(self.path("m.plan"))
        self.assertEqual([(i.name, i.type, i.shape) for i in session.get_inputs()], [("x", "tensor(float)", ["N", 4])])
        np.testing.assert_array_equal(session.run(None, {"x": x})[0],
                                      ours.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0])
        self.assertEqual(session.get_modelmeta().producer_name, "")

    def test_ort_format(self):
        with open(self.path("m.ort"), "wb") as file:
            file.write(b"ORTM")
        with self.assertRaises(state.NotImplemented) as error:
            ours.InferenceSession(self.path("m.ort"))
        self.assertSays(error, "give the ONNX model")

    def test_numbers_are_those_of_the_engine(self):
        proto, x = chain(4, 16), draw(5, 16)
        np.testing.assert_array_equal(ours.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0],
                                      assay.build(proto).run({"x": x})[0])


class TestThreads(ApiCase):
    def test_one_session_many_threads_many_forms(self):
        proto = model([h.make_node("Add", ["x", "w"], ["y"])], [value("x", F, ["N"]), value("w", F, [1])], [value("y", F, ["N"])],
                      {"w": np.ones(1, np.float32)})
        session, wrong = ours.InferenceSession(proto.SerializeToString()), []

        def work(number):
            for i in range(40):
                x, w = np.full(1 + i % 5, number, np.float32), np.array([number + i], np.float32)
                out = session.run(None, {"x": x, "w": w} if i % 2 else {"x": x})[0]
                if not np.array_equal(out, x + (w if i % 2 else 1)):
                    wrong.append((number, i))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_terminate_ends_a_run(self):
        session = ours.InferenceSession(chain(20, 512, batch=512).SerializeToString())
        options, x = ours.RunOptions(), draw(512, 512)
        threading.Timer(0.1, setattr, (options, "terminate", True)).start()
        with self.assertRaises(state.Fail) as error:
            for _ in range(1000):
                session.run(None, {"x": x}, options)
        self.assertSays(error, "terminate flag")

    def test_an_interrupted_run_leaves_the_session_usable(self):
        session, x = ours.InferenceSession(unary("Neg").SerializeToString()), draw(2, 3)

        def interrupted(this, *arguments):
            raise KeyboardInterrupt

        with mock.patch.object(pool.Context, "run", interrupted), self.assertRaises(KeyboardInterrupt):
            session.run(None, {"x": x})
        self.assertEqual(session._pool(ours.session.Changes())._free, [])
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], -x)

    def test_terminate_between_begin_and_run(self):
        session, options = ours.InferenceSession(unary().SerializeToString()), ours.RunOptions()
        run = pool.Context.run

        def late(this, *arguments):
            options.terminate = True
            return run(this, *arguments)

        with mock.patch.object(pool.Context, "run", late), self.assertRaises(state.Fail):
            session.run(None, {"x": draw(1, 3)}, options)

    def test_a_callback_that_raises_is_told(self):
        session, told, done = ours.InferenceSession(unary().SerializeToString()), [], threading.Event()
        hook = threading.excepthook
        threading.excepthook = lambda args: (told.append(args.exc_type), done.set())
        try:
            session.run_async(None, {"x": draw(1, 3)}, lambda *results: 1 / 0, None)
            self.assertTrue(done.wait(30))
        finally:
            threading.excepthook = hook
        self.assertEqual(told, [ZeroDivisionError])

    def test_a_session_dies_when_it_is_let_go(self):
        session = ours.InferenceSession(unary().SerializeToString())
        out = session.run(None, {"x": draw(2, 3)})[0]
        gone = weakref.ref(session)
        gc.disable()
        try:
            del session
            self.assertIsNone(gone())
        finally:
            gc.enable()
        self.assertEqual(out.shape, (2, 3))


class TestProviders(ApiCase):
    """Where a GPU can be used. Target emu takes its place: what providers mean needs no GPU."""

    def setUp(self):
        super().setUp()
        for patch in (mock.patch.object(devices, "runs_here", lambda target: True),
                      mock.patch.dict(devices.TARGETS, {devices.CUDA_PROVIDER: "emu"})):
            patch.start()
            self.addCleanup(patch.stop)
        self.data, self.x = chain(2, 4).SerializeToString(), {"x": draw(2, 4)}

    def test_the_first_is_used(self):
        self.assertEqual(ours.get_available_providers(), ["CUDAExecutionProvider", "CPUExecutionProvider"])
        self.assertEqual(ours.get_device(), "GPU")
        for asked, names, target in ((None, ["CUDAExecutionProvider", "CPUExecutionProvider"], "emu"),
                                     (["CUDAExecutionProvider"], ["CUDAExecutionProvider", "CPUExecutionProvider"], "emu"),
                                     (["CPUExecutionProvider"], ["CPUExecutionProvider"], "cpu"),
                                     (["CPUExecutionProvider", "CUDAExecutionProvider"],
                                      ["CPUExecutionProvider", "CUDAExecutionProvider"], "cpu")):
            session = ours.InferenceSession(self.data, providers=asked)
            self.assertEqual((session.get_providers(), session._providers.target), (names, target))
            self.assertEqual(session.run(None, self.x)[0].shape, (2, 4))
        options = ours.InferenceSession(self.data, providers=[("CUDAExecutionProvider", {"do_copy": True})]).get_provider_options()
        self.assertEqual(options, {"CUDAExecutionProvider": {"device_id": "0", "do_copy": "True"}, "CPUExecutionProvider": {}})
        self.assertEqual(Providers([("CUDAExecutionProvider", {"device_id": 1})]).target, "emu:1")
        session.set_providers(["CUDAExecutionProvider"])
        self.assertEqual(session._providers.target, "emu")

    def test_options_name_providers(self):
        options = ours.SessionOptions()
        options.add_provider("CPUExecutionProvider", {})
        self.assertEqual(ours.InferenceSession(self.data, options).get_providers(), ["CPUExecutionProvider"])

    def test_a_device_that_fails(self):
        run = pool.Pool.run

        def fails_on_a_device(this, *arguments):
            if this is first:
                raise state.EPFail.of("the device is lost")
            return run(this, *arguments)

        with mock.patch.object(pool.Pool, "run", fails_on_a_device):
            session = ours.InferenceSession(self.data)
            first = session._pool(ours.session.Changes())
            with contextlib.redirect_stdout(io.StringIO()) as said:
                out = session.run(None, self.x)[0]
            self.assertIn("EP Error: [ONNXRuntimeError] : 11 : EP_FAIL : the device is lost", said.getvalue())
            self.assertEqual((out.shape, session.get_providers()), ((2, 4), ["CPUExecutionProvider"]))
            session = ours.InferenceSession(self.data)
            first = session._pool(ours.session.Changes())
            session.disable_fallback()
            with self.assertRaises(state.EPFail):
                session.run(None, self.x)

    def test_a_device_that_cannot_be_used(self):
        build = source.engines.build

        def no_device(model, target, **options):
            if target != "cpu":
                raise assay.DeviceError("no driver")
            return build(model, target=target, **options)

        with mock.patch.object(source.engines, "build", no_device), self.assertWarnsRegex(UserWarning, "CUDA.*no driver"):
            session = ours.InferenceSession(self.data, providers=["CUDAExecutionProvider"])
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])


class TestValues(ApiCase):
    def test_types_that_numpy_lacks(self):
        import ml_dtypes
        proto = model([h.make_node("Cast", ["x"], ["y"], to=T.FLOAT), h.make_node("Neg", ["x"], ["z"])],
                      [value("x", T.BFLOAT16, [3])], [value("y", F, [3]), value("z", T.BFLOAT16, [3])])
        session, x = ours.InferenceSession(proto.SerializeToString()), np.array([1, -2, 3], ml_dtypes.bfloat16)
        held = ours.OrtValue.ortvalue_from_numpy_with_onnx_type(x.view(np.uint16), T.BFLOAT16)
        self.assertEqual((held.data_type(), held.element_type()), ("tensor(bfloat16)", 16))
        y, z = session.run_with_ort_values(None, {"x": held})
        np.testing.assert_array_equal(y.numpy(), [1, -2, 3])
        self.assertEqual(z.data_type(), "tensor(bfloat16)")
        np.testing.assert_array_equal(session.run(None, {"x": x})[1], -x)

    def test_memory_is_shared(self):
        x = draw(2, 3)
        held = ours.OrtValue.ortvalue_from_numpy(x)
        self.assertEqual(held.data_ptr(), x.ctypes.data)
        bits = ours.OrtValue.from_dlpack(np.array([True, False]))
        self.assertEqual(bits.data_type(), "tensor(bool)")
        capsule = ours.OrtValue.from_dlpack(x.__dlpack__())
        del held
        gc.collect()
        np.testing.assert_array_equal(capsule.numpy(), x)
        with self.assertRaises(RuntimeError):
            ours.OrtValue.from_dlpack(np.ones((2, 3)).T)
        with self.assertRaises(RuntimeError):
            ours.OrtValue.ortvalue_from_numpy(x, "cuda", 0)

    def test_bound_memory(self):
        session, x, out = ours.InferenceSession(unary("Neg").SerializeToString()), draw(2, 3), np.zeros((2, 3), np.float32)
        binding = session.io_binding()
        binding.bind_input("x", "cpu", 0, np.float32, [2, 3], x.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, [2, 3], out.ctypes.data)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(out, -x)
        for bad in (dict(shape=[-1, 3], buffer_ptr=out.ctypes.data), dict(shape=[2, 3], buffer_ptr=0)):
            with self.assertRaises(RuntimeError):
                binding.bind_output("y", "cpu", 0, np.float32, **bad)
        binding.bind_ortvalue_output("y", ours.OrtValue.ortvalue_from_shape_and_type([3, 3], np.float32))
        with self.assertRaises(RuntimeError) as error:
            session.run_with_iobinding(binding)
        self.assertSays(error, "'y'", "[2, 3]", "[3, 3]")

    def test_numbers_of_threads(self):
        for threads in (-1, 0, 1, 5000):
            options = ours.SessionOptions()
            options.intra_op_num_threads = threads
            session = ours.InferenceSession(unary("Neg").SerializeToString(), options)
            self.assertEqual(session.run(None, {"x": draw(2, 3)})[0].shape, (2, 3))

    def test_options_are_not_copied(self):
        options = ours.SessionOptions()
        with self.assertRaises(TypeError):
            copy.deepcopy(options)
        with self.assertRaises(AttributeError):
            options.intra_op_threads = 3

    def test_libraries_of_operators(self):
        options = ours.SessionOptions()
        with open(self.path("no.so"), "w", encoding="utf-8") as file:
            file.write("nothing")
        for path in (self.path("no.so"), self.path("missing.so"), os.environ.get("ASSAY_LIBRARY", "missing.so")):
            with self.assertRaises(state.Fail) as error:
                options.register_custom_ops_library(path)
            self.assertSays(error, "Failed to load library " + path)


if __name__ == "__main__":
    unittest.main()
