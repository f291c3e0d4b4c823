#!/usr/bin/env python3
"""The backend in a real Triton server, against runs of the engine itself: test_server.py BACKEND MODELS."""
import concurrent.futures
import os
import re
import shutil
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

import assay
from triton_server import ROOT, Server, ServerError, program

BACKEND, MODELS = sys.argv[1], sys.argv[2]
def relu():
    """float[N, 4] in and out."""
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in "xy")
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


class Repository:
    """A folder of models, each with a configuration."""

    def __init__(self, folder):
        self.models = os.path.join(folder, "models")
        self.backends = os.path.join(folder, "backends")
        os.makedirs(os.path.join(self.backends, "assay"))
        os.makedirs(self.models)
        os.symlink(BACKEND, os.path.join(self.backends, "assay/libtriton_assay.so"))

    def add(self, name, model, config="", file="model.onnx"):
        """model: a path, or a message of ONNX."""
        version = os.path.join(self.models, name, "1")
        os.makedirs(version)
        path = os.path.join(version, file)
        if isinstance(model, str):
            shutil.copy(model, path)
        else:
            onnx.save(model, path)
        with open(os.path.join(self.models, name, "config.pbtxt"), "w") as f:
            f.write('backend: "assay"\n' + config)
        return path


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.repository = Repository(cls.folder.name)
        cls.add = cls.repository.add
        cls.server = cls.enterClassContext(Server(cls.repository.models, cls.repository.backends,
                                                  os.path.join(cls.folder.name, "log"), ["--backend-config=assay,threads=2"]))
        cls.rng = np.random.default_rng(1)

    def same(self, got, wanted):
        """Outputs of the server and of the engine, to the bit."""
        self.assertEqual(set(got), set(wanted))
        for name, array in got.items():
            self.assertEqual(array.shape, np.shape(wanted[name]), name)
            self.assertEqual(array.tobytes(), np.asarray(wanted[name]).tobytes(), name)

    def fails(self, code, words, call, *arguments):
        with self.assertRaises(ServerError) as caught:
            call(*arguments)
        for word in words:
            self.assertIn(word, caught.exception.text)
        if code:
            self.assertEqual(caught.exception.code, code, caught.exception.text)

    def test_completed(self):
        """A model without a configuration of its own: batches of many clients have each one's bits."""
        path = self.add("completed", f"{MODELS}/classifier/model.onnx")
        self.server.load("completed")
        config = self.server.config("completed")
        self.assertEqual(config["max_batch_size"], 4)
        self.assertEqual([(v["name"], v["data_type"], v["dims"]) for v in config["input"] + config["output"]],
                         [("image", "TYPE_FP32", [3, 16, 16]), ("probabilities", "TYPE_FP32", [10])])
        self.assertIn("dynamic_batching", config)
        engine = assay.build(path)
        images = [self.rng.standard_normal((1 + k % 3, 3, 16, 16)).astype(np.float32) for k in range(60)]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            got = list(pool.map(lambda image: self.server.infer("completed", {"image": image}), images))
        for image, outputs in zip(images, got):
            self.same(outputs, engine.run({"image": image}).asdict())
        statistics = self.server.statistics("completed")
        self.assertEqual(statistics["inference_count"], sum(len(i) for i in images))
        self.assertEqual(statistics["inference_stats"]["success"]["count"], len(images))
        self.fails(400, ["batch-size"], self.server.infer, "completed", {"image": np.zeros((5, 3, 16, 16), np.float32)})
        self.fails(400, ["image"], self.server.infer, "completed", {"image": np.zeros((1, 3, 8, 8), np.float32)})

    def test_batches(self):
        """Requests that wait for each other are one run, and each has the bits of its own."""
        path = self.add("batches", f"{MODELS}/classifier/model.onnx",
                        "max_batch_size: 4\ndynamic_batching { max_queue_delay_microseconds: 300000 preferred_batch_size: [4] }\n")
        self.server.load("batches")
        engine = assay.build(path)
        images = [self.rng.standard_normal((1, 3, 16, 16)).astype(np.float32) for _ in range(16)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            got = list(pool.map(lambda image: self.server.infer("batches", {"image": image}), images))
        for image, outputs in zip(images, got):
            self.same(outputs, engine.run({"image": image}).asdict())
        self.assertLess(self.server.statistics("batches")["execution_count"], len(images))

    def test_settings(self):
        """Parameters reach the engine, a plan file brings its own, and both have the engine's bits."""
        fp16 = 'parameters { key: "precision" value { string_value: "fp16" } }\n'
        path = self.add("fp16", f"{MODELS}/transformer/model.onnx", fp16)
        engine = assay.build(path, precision="fp16")
        with tempfile.TemporaryDirectory() as folder:
            engine.save(f"{folder}/model.plan")
            self.add("plan", f"{folder}/model.plan", file="model.plan")
            self.add("plan_fp16", f"{folder}/model.plan", fp16, file="model.plan")
        tokens = np.arange(14).reshape(2, 7)
        wanted = engine.run({"tokens": tokens}).asdict()
        self.assertNotEqual(wanted["features"].tobytes(), assay.build(path).run({"tokens": tokens})[0].tobytes())
        for name in ("fp16", "plan"):
            self.server.load(name)
            self.same(self.server.infer(name, {"tokens": tokens}), wanted)
        self.fails(400, ["plan file", "'precision'"], self.server.load, "plan_fp16")

    def test_ranges(self):
        """A plan that was built for a range of batches is served with these."""
        sizes = assay.Range(min=(1, 3, 16, 16), best=(2, 3, 16, 16), max=(6, 3, 16, 16))
        engine = assay.build(f"{MODELS}/classifier/model.onnx", shapes={"image": sizes})
        with tempfile.TemporaryDirectory() as folder:
            engine.save(f"{folder}/model.plan")
            self.add("ranges", f"{folder}/model.plan", file="model.plan")
            self.add("ranges_of_8", f"{folder}/model.plan", "max_batch_size: 8\n", file="model.plan")
        self.server.load("ranges")
        self.assertEqual(self.server.config("ranges")["max_batch_size"], 6)
        image = self.rng.standard_normal((6, 3, 16, 16)).astype(np.float32)
        self.same(self.server.infer("ranges", {"image": image}), engine.run({"image": image}).asdict())
        self.fails(400, ["max_batch_size is 8", "up to 6"], self.server.load, "ranges_of_8")

    def test_one_bad_request(self):
        """Of requests that are a batch together only the one with a bad index fails."""
        path = self.add("indices", f"{MODELS}/transformer/model.onnx",
                        "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 50000 preferred_batch_size: [8] }\n")
        self.server.load("indices")
        engine = assay.build(path)
        tokens = [np.full((1, 5), 777 if k == 3 else k) for k in range(8)]

        def ask(x):
            try:
                return self.server.infer("indices", {"tokens": x})
            except ServerError as e:
                return e
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            got = list(pool.map(ask, tokens))
        for k, outputs in enumerate(got):
            if k == 3:
                self.assertIn("777", outputs.text)
                self.assertEqual(outputs.code, 400)
            else:
                self.same(outputs, engine.run({"tokens": tokens[k]}).asdict())

    def test_strings(self):
        self.add("strings", f"{MODELS}/serving/strings.onnx")
        self.server.load("strings")
        a = np.array([["x", ""], ["größer", "a\nb"]], object)
        b = np.array([["1", "2"], ["", "4" * 1000]], object)
        got = self.server.infer("strings", {"a": a, "b": b})["joined"]
        self.assertEqual([s.decode() for s in got.flat], [x + y for x, y in zip(a.flat, b.flat)])

    def test_shapes(self):
        """Scalars, sizes that only a run knows, and the outputs that a request names."""
        path = self.add("scalars", f"{MODELS}/serving/scalars.onnx")
        self.server.load("scalars")
        self.assertEqual(self.server.config("scalars")["max_batch_size"], 0)
        x = np.array([0, 1, 0, 2], np.float32)
        wanted = assay.build(path).run({"x": x, "s": np.float32(3)}).asdict()
        got = self.server.infer("scalars", {"x": x, "s": np.array([3], np.float32)})
        self.same(got, {**wanted, "total": wanted["total"].reshape(1)})
        self.assertEqual(list(self.server.infer("scalars", {"x": x, "s": np.array([3], np.float32)}, ["places"])), ["places"])
        self.add("rows", f"{MODELS}/serving/rows.onnx")
        self.server.load("rows")
        self.same(self.server.infer("rows", {"x": np.array([[1], [2]], np.float32)}), {"y": np.array([[-1], [-2]], np.float32)})

    def test_optional(self):
        """An input that a request may leave out."""
        self.add("optional", f"{MODELS}/serving/optional.onnx")
        self.server.load("optional")
        self.assertEqual([(v["dims"], v["optional"]) for v in self.server.config("optional")["input"]], [([-1, 2], True), ([-1, 2], False)])
        x, z = np.array([[1, 2]], np.float32), np.array([[3, 4], [5, 6]], np.float32)
        self.same(self.server.infer("optional", {"x": x, "z": z}), {"y": x})
        self.same(self.server.infer("optional", {"z": z}), {"y": -z})
        self.fails(400, ["'z'"], self.server.infer, "optional", {"x": x})

    def test_bad_configurations(self):
        """Each is refused when it is loaded, with a message that says what is wrong; the server lives on."""
        def value(kind, name, data_type, dims):
            return f'{kind} {{ name: "{name}" data_type: {data_type} dims: {dims} }}\n'
        parameter = 'parameters {{ key: "{}" value {{ string_value: "{}" }} }}\n'
        x, y = value("input", "x", "TYPE_FP32", "[-1, 4]"), value("output", "y", "TYPE_FP32", "[-1, 4]")
        rows = [
            ("type", value("input", "x", "TYPE_INT32", "[-1, 4]") + y, ["'x'", "TYPE_INT32", "TYPE_FP32"]),
            ("rank", value("input", "x", "TYPE_FP32", "[4]") + y, ["'x'", "[4]", "[-1,4]"]),
            ("size", value("input", "x", "TYPE_FP32", "[-1, 5]") + y, ["'x'", "[-1,5]"]),
            ("name", value("input", "z", "TYPE_FP32", "[-1, 4]") + y, ["no input 'z'"]),
            ("more", x + value("output", "w", "TYPE_FP32", "[4]"), ["no output 'w'"]),
            ("batch", "max_batch_size: 4\n" + x + y, ["max_batch_size", "'x'"]),
            ("parameter", parameter.format("precison", "fp16"), ["precison", "precision"]),
            ("format", parameter.format("precision", "fp17"), ["fp17"]),
            ("threads", parameter.format("threads", "many"), ["many", "threads"]),
            ("target", parameter.format("target", "tpu"), ["tpu"]),
            ("cuda", parameter.format("target", "cuda"), ["KIND_CPU"]),
            ("sequence", "max_batch_size: 4\nsequence_batching { }\n", ["sequence_batching"]),
            ("decoupled", "model_transaction_policy { decoupled: true }\n", ["decoupled"]),
            ("file", 'default_model_filename: "other.onnx"\n', ["other.onnx"]),
        ]
        model = relu()
        for name, config, words in rows:
            with self.subTest(name):
                self.add("bad_" + name, model, config)
                self.fails(None, words, self.server.load, "bad_" + name)
        path = self.add("bad_model", model)
        with open(path, "wb") as f:
            f.write(b"this is not ONNX")
        self.fails(None, [path], self.server.load, "bad_model")
        self.assertEqual(self.server.call("GET", "/v2/health/live")[0], 200)

    def test_sequences(self):
        self.add("states", f"{MODELS}/serving/rows.onnx")
        self.server.load("states")
        x = {"x": np.zeros((1, 1), np.float32)}
        self.fails(None, ["sequence"], self.server.infer, "states", x, None, {"sequence_id": 7, "sequence_start": True})
        self.server.infer("states", x)

    def test_instances(self):
        """Several instances at a time share an engine; after the model is unloaded it is gone, and comes back."""
        path = self.add("instances", f"{MODELS}/classifier/model.onnx", "instance_group { kind: KIND_CPU count: 3 }\n")
        image = self.rng.standard_normal((1, 3, 16, 16)).astype(np.float32)
        wanted = assay.build(path).run({"image": image}).asdict()
        for _ in range(2):
            self.server.load("instances")
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                for got in pool.map(lambda _: self.server.infer("instances", {"image": image}), range(30)):
                    self.same(got, wanted)
            self.server.unload("instances")
            self.fails(None, ["instances"], self.server.infer, "instances", {"image": image})

    def test_page(self):
        """The repository of docs/triton.md: its layout, its configuration, its request."""
        with open(f"{ROOT}/docs/triton.md") as f:
            page = f.read()
        config = re.search(r"```protobuf\n(.*?)```", page, re.S).group(1)
        name = re.search(r"^models/\n  (\w+)/\n    config\.pbtxt\n    1/\n      model\.onnx$", page, re.M).group(1)
        self.assertIn('backend: "assay"', config)
        path = self.add(name, f"{MODELS}/classifier/model.onnx", config.replace('backend: "assay"', ""))
        self.server.load(name)
        got = self.server.config(name)
        self.assertEqual(got["max_batch_size"], 16)
        self.assertTrue(os.path.exists(os.path.join(self.repository.models, name, got["parameters"]["timing_cache"]["string_value"])))
        image = self.rng.standard_normal((2, 3, 16, 16)).astype(np.float32)
        cache = os.path.join(self.repository.models, name, "times")
        engine = assay.build(path, precision="bf16", layer_precision="*/Softmax*:fp32", timing_cache=cache)
        self.same(self.server.infer(name, {"image": image}), engine.run({"image": image}).asdict())


if __name__ == "__main__":
    if not program():
        print("no server: scripts/setup installs it")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
