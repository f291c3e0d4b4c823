"""assay.ray on a cluster of two raylets: one machine's results to the bit, also after workers and drivers were killed."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
HERE = pathlib.Path(__file__).resolve().parent
# Workers import this folder's modules, too.
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import ray  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import assay  # noqa: E402
import assay.ray  # noqa: E402
from api_case import ApiCase, F, T, chain, model, value  # noqa: E402
from onnx import helper as h  # noqa: E402

STORE = 80 << 20  # bytes of each raylet's object store
cluster = None


def setUpModule():
    global cluster
    cluster = Cluster(initialize_head=True, head_node_args={
        "num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False})
    cluster.add_node(num_cpus=1, object_store_memory=STORE)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="warning")


def tearDownModule():
    ray.shutdown()
    cluster.shutdown()
    if processes("raylet") or processes("gcs_server"):
        raise AssertionError("processes are left: %s" % (processes("raylet") + processes("gcs_server")))


def processes(word):
    """Ids of this user's processes below this one whose command line has a word."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            command = pathlib.Path("/proc", entry, "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            environment = pathlib.Path("/proc", entry, "environ").read_bytes()
        except (OSError, ValueError):
            continue
        if entry.isdigit() and word in command and str(HERE).encode() in environment and int(entry) != os.getpid():
            found.append(int(entry))
    return found


def workers():
    """Ids of processes that have a shard of this cluster's: they show a title in place of their command line."""
    found, raylets = [], processes("raylet")
    for entry in os.listdir("/proc"):
        try:
            title = pathlib.Path("/proc", entry, "cmdline").read_bytes()
            parent = int(pathlib.Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
        if title.startswith(b"ray::_run") and parent in raylets:
            found.append(int(entry))
    return found


def images(n=23, shape=(1, 3, 8, 8), seed=0):
    """Samples whose sizes differ, so that no part of them is like another."""
    draw = np.random.default_rng(seed)
    return [(draw.standard_normal(shape) * (1 + i % 5)).astype(np.float32) for i in range(n)]


def net(seed=1, activation="Relu", change=None, inner=(), **attributes):
    """A small CNN: image float[1,3,8,8] -> scores float[1,5], which fp16 can hold, and the best of them.

    change: what is done to its weights {"w", "m"}; inner: more values as outputs
    """
    draw = np.random.default_rng(seed)
    weights = {"w": draw.standard_normal((8, 3, 3, 3)).astype(np.float32), "m": draw.standard_normal((8, 5)).astype(np.float32)}
    if change:
        change(weights)
    return model(
        [h.make_node("Conv", ["image", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
         h.make_node(activation, ["c"], ["r"], name="relu", **attributes),
         h.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"), h.make_node("Flatten", ["p"], ["f"], name="flatten"),
         h.make_node("MatMul", ["f", "m"], ["z"], name="fc"), h.make_node("Softmax", ["z"], ["scores"], name="softmax"),
         h.make_node("ArgMax", ["z"], ["best"], name="best", axis=1)],
        [value("image", F, [1, 3, 8, 8])],
        [value("scores", F, [1, 5]), value("best", T.INT64, [1, 1]), *[value(n, F, [1, 8, 8, 8]) for n in inner]], weights)


class RayCase(ApiCase):
    def net(self, name="net.onnx", **options):
        path = self.path(name)
        onnx.save(net(**options), path)
        return path

    def files(self, arrays, name="image", folder="images"):
        return self.sample_files([{name: array} for array in arrays], folder)

    def sample_files(self, samples, folder):
        os.makedirs(self.path(folder))
        paths = [os.path.join(self.path(folder), "%03d.npz" % i) for i in range(len(samples))]
        for path, sample in zip(paths, samples):
            np.savez(path, **sample)
        return paths

    def parts(self, folder):
        return sorted(pathlib.Path(folder, "parts").glob("*[0-9a-f]"))


class Check(RayCase):
    def test_of_files(self):
        path, files = self.net(), self.files(images())
        whole = assay.check(path, precision="bf16", inputs=files, pictures=False)
        for shard in (1, 4, 50):
            self.assertEqual(assay.ray.check(path, self.path("images"), precision="bf16", shard=shard).json, whole.json)

    def test_of_arrays_with_golden(self):
        made = net().SerializeToString()
        loaded, data = assay.load(made), [{"image": x} for x in images(11)]
        golden = [loaded.run(d, mode="truth").asdict() for d in data]
        options = {"precision": "fp16", "require": "snr_db >= 20"}
        whole = assay.check(made, inputs=data, golden=golden, pictures=False, **options)
        found = assay.ray.check(made, data, golden=golden, shard=3, **options)
        self.assertEqual(found.json, whole.json)
        self.assertTrue(found.outputs[0].golden_snr_db > 100)
        self.assertEqual(found.outputs, whole.outputs)

    def test_of_a_fix(self):
        """What fp16 cannot hold is found in some samples only, and mended on all."""
        path = self.path("wide.onnx")
        onnx.save(model([h.make_node("Mul", ["x", "k"], ["p"], name="up"), h.make_node("Mul", ["p", "l"], ["y"], name="down")],
                        [value("x", F, [4])], [value("y", F, [4])],
                        {"k": np.float32(2e4), "l": np.float32(1e-5)}), path)
        data = [{"x": x} for x in images(9, (4,))]
        whole = assay.check(path, precision="fp16", inputs=data, pictures=False)
        found = assay.ray.check(path, data, precision="fp16", shard=2)
        self.assertFalse(found.faithful)
        self.assertTrue(found.fix)
        self.assertEqual(found.json, whole.json)

    def test_of_several_models(self):
        paths = [self.net("a.onnx"), self.net("b.onnx", seed=5)]
        data = [{"image": x} for x in images(5)]
        found = assay.ray.check(paths, data, precision="fp16", shard=2)
        self.assertEqual([r.json for r in found],
                         [assay.check(p, precision="fp16", inputs=data, pictures=False).json for p in paths])

    def test_of_data_sets(self):
        path, arrays = self.net(), images(13)
        whole = assay.check(path, precision="bf16", inputs=[{"image": x} for x in arrays], pictures=False)
        rows = [{"image": x[0], "number": i} for i, x in enumerate(arrays)]
        dataset = ray.data.from_items(rows, override_num_blocks=4)
        self.assertEqual(assay.ray.check(path, dataset, precision="bf16", shard=4).json, whole.json)
        dataset.write_parquet(self.path("rows"))
        files = sorted(str(f) for f in pathlib.Path(self.path("rows")).glob("*.parquet"))
        self.assertEqual(assay.ray.check(path, files, precision="bf16", shard=5).json, whole.json)
        with self.assertRaisesRegex(assay.InvalidArgument, "no column 'image'"):
            assay.ray.check(path, dataset.drop_columns(["image"]))

    def test_what_makes_no_sense(self):
        path, files = self.net(), self.files(images(3))
        for words, call in {
                "shard has 1": lambda: assay.ray.check(path, files, shard=0),
                "in_flight is 1": lambda: assay.ray.check(path, files, in_flight=0),
                "takes no pictures": lambda: assay.ray.check(path, files, pictures=True),
                "golden has 2 files": lambda: assay.ray.check(path, files, golden=files[:2]),
                "there is no": lambda: assay.ray.check(path, self.path("nothing")),
                "not an input of": lambda: assay.ray.check(path, [{"picture": images(1)[0]}]),
                "not int": lambda: assay.ray.check(path, 3),
                "path or bytes": lambda: assay.ray.check(3, files),
                "precision|format": lambda: assay.ray.check(path, files, precision="fp17")}.items():
            with self.assertRaisesRegex(assay.AssayError, words):
                call()
        np.savez(files[1], image=np.zeros((2, 2), np.float32))  # an error of a worker's is raised here
        with self.assertRaises(assay.AssayError):
            assay.ray.check(path, files, shard=1)


def scale_a_channel(weights):
    weights["w"][3] *= 1.5


def exchange_rows(weights):
    weights["m"][[0, 1]] = weights["m"][[1, 0]]


# What an exporter did wrong, the node that does it, and golden that shows it soon.
FAULTS = [
    ({"change": scale_a_channel}, "conv", ["best", "scores", "c", "r"], np.float64),
    ({"change": exchange_rows}, "fc", ["scores"], np.float64),
    ({"activation": "LeakyRelu", "alpha": 0.1}, "relu", ["scores"], np.float32),
    ({"activation": "LeakyRelu", "alpha": 0.1}, "relu", ["scores", "c", "r"], np.float16),
    ({"activation": "Sigmoid"}, "relu", ["scores"], np.float64),
]


def report(result):
    """The JSON, but for how many repairs a search tried and what came next to the one it found, which depend on the clock."""
    return re.sub(r'"trials": \d+|"rivals": \[[^]]*\]', "", result.json)


class Golden(RayCase):
    """Golden outputs in shards: the report of one machine, with blame, cause and repair."""

    def setUp(self):
        super().setUp()
        self.data = [{"image": x} for x in images(7)]
        right = assay.load(net(inner=["c", "r"]).SerializeToString())
        self.right = [right.run(d, mode="truth").asdict() for d in self.data]

    def golden(self, names, kind=np.float64):
        return [{n: y[n].astype(kind) if y[n].dtype.kind == "f" else y[n] for n in names} for y in self.right]

    def same(self, made, data, golden, shards, **options):
        """One machine's result, which each division has to give as well."""
        whole = assay.check(made, inputs=data, golden=golden, pictures=False, precision="fp16", **options)
        for shard in shards:
            found = assay.ray.check(made, data, golden=golden, precision="fp16", shard=shard, **options)
            self.assertEqual(report(found), report(whole), shard)
            self.assertEqual(repr((found.faults, found.fix)), repr((whole.faults, whole.fix)))
        return whole

    def test_faults(self):
        inputs = self.sample_files(self.data, "inputs")
        for i, (change, node, names, kind) in enumerate(FAULTS):
            with self.subTest(change=change, names=names):
                made, golden = net(**change).SerializeToString(), self.golden(names, kind)
                whole = self.same(made, self.data, golden, [3])
                self.assertEqual((whole.blame, whole.faults[0].node, whole.faults[0].restored), ("export", node, True))
                files = self.sample_files(golden, "golden-%d" % i)
                found = assay.ray.check(made, inputs, golden=files, precision="fp16", shard=2)
                self.assertEqual(report(found), report(whole))

    def test_fault_and_fix(self):
        """fp16 cannot hold what truth can: the fix is verified on the samples of all shards, and so is golden."""
        made = model([h.make_node("Mul", ["x", "k"], ["p"], name="up"), h.make_node("Mul", ["p", "l"], ["y"], name="down")],
                     [value("x", F, ["N", 4])], [value("y", F, ["N", 4])], {"k": np.float32(2e4), "l": np.float32(1e-5)})
        draw = np.random.default_rng(2)
        data = [{"x": 3 * draw.standard_normal((n, 4)).astype(np.float32)} for n in (3, 1, 0, 2, 5)]
        right = [{"y": d["x"] * 0.2} for d in data]
        whole = self.same(made.SerializeToString(), data, right, (1, 2))
        self.assertEqual((whole.blame, whole.fix.verified), ("precision", True))
        whole = self.same(made.SerializeToString(), data, [{"y": g["y"] + 1} for g in right], (1, 2))
        self.assertEqual(whole.blame, "export")

    def test_types_that_differ(self):
        made, kinds = net(**FAULTS[2][0]).SerializeToString(), (np.float64, np.float16, np.float32)
        golden = [{"scores": y["scores"].astype(kinds[i % 3]), "best": y["best"].astype(np.int32)} for i, y in enumerate(self.right)]
        self.assertEqual(self.same(made, self.data, golden, (1, 3)).faults[0].node, "relu")
        del golden[5]["best"]
        inputs, told = self.sample_files(self.data, "i"), self.sample_files(golden, "g")
        self.same(made, inputs, told, (2,))  # a file may lack an output: there it is not compared
        with self.assertRaisesRegex(assay.InvalidArgument, "golden: sample 5 has .'scores'., the first one .'best', 'scores'."):
            assay.ray.check(made, self.data, golden=golden, shard=2)

    def test_what_only_one_machine_takes(self):
        made = net().SerializeToString()
        for words, golden in {
                "has 0 samples with the names and shapes": [{"scores": y["scores"][..., np.newaxis]} for y in self.right],
                "in shards each sample needs golden of its own": [{"probabilities": y["scores"]} for y in self.right]}.items():
            for shard in (1, 3):
                with self.assertRaisesRegex(assay.Unsupported, words):
                    assay.ray.check(made, self.data, golden=golden, shard=shard)
        none = [{"image": np.zeros((0, 3, 8, 8), np.float32)}] * 2
        with self.assertRaises(assay.InvalidArgument):
            assay.ray.check(made, none, golden=[{"scores": np.zeros((0, 5))}] * 2, shard=1)


class Others(RayCase):
    def test_calibration(self):
        path, files = self.net(), self.files(images(9))
        whole, found = assay.calibrate(path, inputs=files), assay.ray.calibrate(path, files, shard=2)
        self.assertEqual(found.to_bytes(), whole.to_bytes())
        self.assertEqual(found.json, whole.json)
        self.assertEqual(list(found)[:3], ["image", "c", "r"])
        arrays = np.concatenate([np.abs(x).ravel() for x in images(9)])
        image = found["image"]
        self.assertEqual((image.count, found.samples), (arrays.size, 9))
        self.assertEqual(image.largest, float(arrays.max()))
        for percent in (1, 50, 99, 99.9, 100):
            within = np.mean(arrays <= image.percentile(percent)) * 100
            self.assertGreaterEqual(within, percent)
            self.assertLess(image.percentile(percent), np.percentile(arrays, percent) * 17 / 16 + 1e-30)

    def test_tuning(self):
        """A perceptron with seeded weights whose layers cannot all be in fp16 with what is required."""
        path = self.path("layers.onnx")
        onnx.save(chain(layers=4, width=16, batch=1), path)
        files = self.files(images(10, (1, 16)), "x", "x")
        options = {"precision": "fp16", "require": "snr_db >= 69", "fewest_layers": True}
        whole = assay.tune(path, inputs=files, **options)
        found = assay.ray.tune(path, files, shard=3, folder=self.path("run"), **options)
        self.assertGreater(len(whole.assignments), 2)
        self.assertEqual(found.assignments, whole.assignments)
        self.assertEqual(found.nodes, whole.nodes)
        self.assertEqual(*[re.sub(r'"seconds": [^\n]*', "", r.json) for r in (found, whole)])
        done = self.parts(self.path("run"))
        self.assertEqual(len(done), 4 * len(whole.assignments))
        again = assay.ray.tune(path, files, shard=3, folder=self.path("run"), **options)
        self.assertEqual((again.assignments, self.parts(self.path("run"))), (found.assignments, done))
        for words, wrong in {"takes no shapes": {"shapes": {}}, "one machine": {"device": "here", "target": "cpu"}}.items():
            with self.assertRaisesRegex(assay.InvalidArgument, words):
                assay.ray.tune(path, files, **wrong)
        np.savez(files[1], x=np.zeros((2, 2), np.float32))  # an error of a worker's, or of reading, is raised here
        with self.assertRaises(assay.AssayError):
            assay.ray.tune(path, files, shard=3, **options)

    def test_tuning_of_rewritten_layers(self):
        """Truth is of the model as it is, also where a pass folds one constant into another."""
        draw, path = np.random.default_rng(1), self.path("folded.onnx")
        onnx.save(model([h.make_node("Conv", ["x", "w"], ["c"], name="conv"), h.make_node("Mul", ["c", "k"], ["y"], name="scale")],
                        [value("x", F, [1, 3, 8, 8])], [value("y", F, [1, 8, 6, 6])],
                        {"w": draw.standard_normal((8, 3, 3, 3)).astype(np.float32),
                         "k": draw.standard_normal((8, 1, 1)).astype(np.float32)}), path)
        data, options = [{"x": x} for x in images(4)], {"precision": "bf16", "fusion": True}
        whole, found = assay.tune(path, inputs=data, **options), assay.ray.tune(path, data, shard=3, **options)
        self.assertEqual(*[re.sub(r'"seconds": [^\n]*', "", r.json) for r in (found, whole)])

    def test_conformance(self):
        root = pathlib.Path(self.path("cases"))
        for i in range(7):
            data = root / "node" / ("test_relu_%d" % i) / "test_data_set_0"
            data.mkdir(parents=True)
            x = images(1, (2, 3), i)[0]
            y = np.maximum(x, 0) + (i == 4)  # one is wrong
            onnx.save(model([h.make_node("Relu", ["x"], ["y"])], [value("x", F, [2, 3])], [value("y", F, [2, 3])]),
                      data.parent / "model.onnx")
            for name, array in (("input_0", x), ("output_0", y)):
                (data / (name + ".pb")).write_bytes(numpy_helper.from_array(array.astype(np.float32)).SerializeToString())
        out = self.path("whole.json")
        subprocess.run([os.environ["ASSAY_PROGRAM"], "conformance", str(root), "-j", "1", "--json", out], stdout=subprocess.DEVNULL)
        found = assay.ray.conformance(root, shard=2)
        self.assertEqual(found.json, pathlib.Path(out).read_text())
        self.assertEqual(list(found.failed), ["node/test_relu_4"])
        self.assertIn("6 passed, 1 failed", str(found))
        with self.assertRaises(assay.NotFound):
            assay.ray.conformance(root, match="no_such*")


# What a driver of its own runs, which is killed.
DRIVER = """
import sys, ray, assay, assay.ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="warning")
assay.ray.check(sys.argv[2], sys.argv[3], precision="bf16", folder=sys.argv[4], shard=1, in_flight=2)
"""


class Killed(RayCase):
    def setUp(self):
        super().setUp()
        self.model = self.path("chain.onnx")
        onnx.save(chain(layers=6, width=192, batch=48), self.model)
        self.inputs = self.files(images(20, (48, 192)), "x", "x")
        self.run_folder = self.path("run")

    def whole(self):
        return assay.check(self.model, precision="bf16", inputs=self.inputs, pictures=False).json

    def wait_for_parts(self, n):
        deadline = time.time() + 60
        while len(self.parts(self.run_folder)) < n and time.time() < deadline:
            time.sleep(0.005)
        self.assertLess(time.time(), deadline)

    def test_driver(self):
        driver = subprocess.Popen([sys.executable, "-c", DRIVER, cluster.address, self.model, self.path("x"), self.run_folder])
        self.wait_for_parts(3)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        done = self.parts(self.run_folder)
        self.assertLess(len(done), len(self.inputs))
        times = [p.stat().st_mtime_ns for p in done]
        found = assay.ray.check(self.model, self.path("x"), precision="bf16", folder=self.run_folder, shard=1)
        self.assertEqual(found.json, self.whole())
        self.assertEqual([p.stat().st_mtime_ns for p in done], times)  # they were not run again
        self.assertEqual(len(self.parts(self.run_folder)), len(self.inputs))

    def test_worker(self):
        killed = []

        def kill():
            self.wait_for_parts(2)
            while not killed and len(self.parts(self.run_folder)) < len(self.inputs):
                for pid in workers()[:1]:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

        os.makedirs(os.path.join(self.run_folder, "parts"))
        killer = threading.Thread(target=kill)
        killer.start()
        found = assay.ray.check(self.model, self.inputs, precision="bf16", folder=self.run_folder, shard=1, in_flight=3)
        killer.join()
        self.assertTrue(killed)
        self.assertEqual(found.json, self.whole())


class Page(unittest.TestCase):
    def test_snippets(self):
        """The snippets of docs/ray.md run one after the other."""
        page = (HERE.parents[1] / "docs" / "ray.md").read_text(encoding="utf-8")
        snippets = re.findall(r"```python\n(.*?)```", page, re.S)
        self.assertGreater(len(snippets), 2)
        with tempfile.TemporaryDirectory() as folder:
            before = os.getcwd()
            os.chdir(folder)
            try:
                onnx.save(net(), "model.onnx")
                onnx.save(net(activation="LeakyRelu", alpha=0.1), "wrong.onnx")
                os.makedirs("images")
                for i, x in enumerate(images(6)):
                    np.savez("images/%d.npz" % i, image=x)
                names = {}
                for snippet in snippets:
                    exec(compile(snippet, "docs/ray.md", "exec"), names)
            finally:
                os.chdir(before)


if __name__ == "__main__":
    unittest.main()
