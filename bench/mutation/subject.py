"""A healthy model with its inputs and golden tensors, made once and kept in the work folder."""
import glob
import hashlib
import os
import resource
import subprocess
import time

import numpy as np
import onnx
from onnx import numpy_helper

from . import model as models

# Threads that wait sleep: others may be using the machine.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive", **os.environ}

QUANTIZES = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul")


class TooSlow(Exception):
    pass


class Failed(Exception):
    pass


def run(program, *arguments, limit=600, codes=(0,)):
    """Runs the program; gives the seconds it took: of the clock, but no more than of the processors, since others
    may be using them."""
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run([program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=5 * limit, env=ENVIRONMENT)
    except subprocess.TimeoutExpired:
        raise TooSlow(f"{arguments[0]} took longer than {5 * limit} s")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = min(time.monotonic() - started, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    if done.returncode not in codes:
        raise Failed(f"exit code {done.returncode}: {done.stderr.strip()[:400]}")
    if seconds > limit:
        raise TooSlow(f"{arguments[0]} took {seconds:.0f} s")
    return seconds


def as_saved(array):
    """As frameworks save it: float32, unless that would overflow."""
    if array.dtype != np.float64:
        return array
    with np.errstate(over="ignore"):
        short = array.astype(np.float32)
    return short if np.array_equal(np.isfinite(short), np.isfinite(array)) else array


def moved(array, rng):
    """Each element that may have been rounded, moved by one unit roundoff; one with few bits means what it says, as in
    src/diagnose/export.c."""
    rounded = np.frexp(array)[0] * 2.0**12 % 1 != 0
    step = 2.0**-24 * rng.choice(np.array([-1, 1], np.float64), array.shape)
    return np.where(rounded, array * (1 + step), array).astype(np.float32)


class Subject:
    def __init__(self, program, path, work, rows, side=0):
        self.program, self.path, self.side = program, path, side
        self.name = models.base_name(path)
        key = f"{os.path.abspath(path)} {rows} {side}"
        digest = hashlib.sha256(key.encode()).hexdigest()[:10]
        self.folder = os.path.join(work, f"{self.name.replace('/', '-')}-{digest}")
        self.model = f"{self.folder}/model.onnx"
        self.inputs = f"{self.folder}/inputs.npz"
        self.values = f"{self.folder}/values.npz"    # golden of every node, but of constants
        self.outputs = f"{self.folder}/outputs.npz"  # golden of the outputs
        self.rows = rows
        self._proto = self._noise = None
        self.is_small = False

    def ready(self):
        if os.path.exists(f"{self.folder}/ready"):
            return self
        os.makedirs(self.folder, exist_ok=True)
        proto = self.proto
        onnx.save(proto, self.model)
        given = os.path.join(os.path.dirname(self.path), "inputs.npz")
        if os.path.exists(given):
            models.cut_inputs(proto, given, self.rows, self.inputs)
        self.prepare()
        open(f"{self.folder}/ready", "w").close()
        return self

    def prepare(self):
        everything = f"{self.folder}/everything.npz"
        run(self.program, "run", self.model, *self.input_options(), "--mode", "truth", "--all-values", "--save-outputs", everything)
        arrays = dict(np.load(everything))
        os.remove(everything)
        constants = {name for n in self.proto.graph.node if n.op_type == "Constant" for name in n.output}
        names = [o.name for o in self.proto.graph.output]
        np.savez(self.outputs, **{n: arrays[n] for n in names if n in arrays})
        values = {n: a for n, a in arrays.items() if n not in constants and a.dtype.kind in "fiub"}
        np.savez(self.values, **{n: as_saved(a) for n, a in values.items()})

    @property
    def proto(self):
        if self._proto is None:
            self._proto = models.load(self.path)
            small = models.shrunk(self._proto, self.side) if self.side else None
            self.is_small = small is not None and self.runs(small)
            if self.is_small:
                self._proto = small
        return self._proto

    def runs(self, proto):
        """Whether a model of another input size runs; asked once."""
        path, yes, no = (f"{self.folder}/{n}" for n in ("small.onnx", "small", "whole"))
        if os.path.exists(yes) or os.path.exists(no):
            return os.path.exists(yes)
        os.makedirs(self.folder, exist_ok=True)
        onnx.save(proto, path)
        try:
            run(self.program, "run", path, "--seed", "1", "--mode", "truth", "--save-outputs", f"{self.folder}/small.npz")
            open(yes, "w").close()
        except Failed:
            open(no, "w").close()
        os.remove(path)
        return os.path.exists(yes)

    def nodes(self):
        return models.Graph(self.proto).nodes()

    def graph(self):
        """A graph that may be changed."""
        return models.Graph(models.copy(self.proto))

    def input_options(self):
        """Inputs, and what golden of a quantized model is: the network before it was quantized."""
        quantized = any(n.op_type in QUANTIZES for n in self.proto.graph.node)
        inputs = ["--inputs", self.inputs] if os.path.exists(self.inputs) else ["--seed", "1"]
        return inputs + (["--truth", "unquantized"] if quantized else [])

    def truth_outputs(self, path, limit=300, mode="truth"):
        out = f"{self.folder}/got.npz"
        run(self.program, "run", path, *self.input_options(), "--mode", mode, "--save-outputs", out, limit=limit)
        arrays = dict(np.load(out))
        os.remove(out)
        return arrays

    def golden(self):
        return dict(np.load(self.outputs))

    def noise(self):
        """Golden's relative RMS difference from the model with every float constant moved by one unit roundoff, and
        everything computed in float32: what says nothing about the export."""
        if self._noise is None:
            from .judge import difference
            proto = models.copy(self.proto)
            rng = np.random.default_rng(1)
            tensors = list(proto.graph.initializer)
            tensors += [a.t for n in proto.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"]
            for t in tensors:
                array = numpy_helper.to_array(t)
                if array.dtype == np.float32:
                    t.CopyFrom(numpy_helper.from_array(moved(array.astype(np.float64), rng), t.name))
            path = f"{self.folder}/noisy.onnx"
            onnx.save(proto, path)
            try:
                self._noise = difference(self.truth_outputs(path, mode="native"), self.golden())
            except Failed:
                self._noise = 1.0  # a choice that rounding decides: it does not even run
            os.remove(path)
        return self._noise

    def local_change(self, path, label):
        """How much a node's outputs change in truth between this model and another one, on golden inputs, relative to
        what float32 arithmetic does there; None if the node cannot be taken out, or is not in both."""
        from .judge import difference
        values = dict(np.load(self.values))
        known = {**values, **(dict(np.load(self.inputs)) if os.path.exists(self.inputs) else {})}
        results = []
        for source, mode in ((self.model, "truth"), (path, "truth"), (self.model, "native")):
            graph = models.Graph(models.load(source))
            node = next((n for n in graph.graph.node if n.name == label), None)
            if node is None:
                return None
            try:
                results.append(self.single(graph, node, known, mode))
            except (Failed, KeyError):
                return float("inf") if source == path else None
        right, wrong, rounded = results
        noise = difference(rounded, right)
        return difference(wrong, right) / max(noise, 2.0**-24)

    def single(self, graph, node, known, mode):
        inputs, initializers, feed = [], [], {}
        for name in dict.fromkeys(n for n in node.input if n):
            array = graph.constant(name)
            if array is not None:
                initializers.append(numpy_helper.from_array(array, name))
                continue
            array = known[name]
            if array.dtype == np.float64:
                array = array.astype(np.float32)
            feed[name] = array
            inputs.append(onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        outputs = [onnx.helper.make_empty_tensor_value_info(n) for n in node.output if n]
        proto = onnx.helper.make_model(onnx.helper.make_graph([node], "single", inputs, outputs, initializers),
                                       opset_imports=graph.proto.opset_import, ir_version=graph.proto.ir_version)
        path, fed, out = (f"{self.folder}/single.{e}" for e in ("onnx", "in.npz", "out.npz"))
        onnx.save(proto, path)
        np.savez(fed, **feed)
        run(self.program, "run", path, *(["--inputs", fed] if feed else []), "--mode", mode, "--save-outputs", out)
        return dict(np.load(out))


def find_models(folders, biggest):
    """Models of folders: FOLDER/model.onnx, FOLDER/*/model.onnx, or FOLDER/*.onnx."""
    found = []
    for folder in folders:
        if os.path.isfile(folder):
            found.append(folder)
            continue
        here = [os.path.join(folder, "model.onnx")] if os.path.exists(os.path.join(folder, "model.onnx")) else []
        here = here or sorted(glob.glob(os.path.join(folder, "*", "model.onnx"))) + sorted(glob.glob(os.path.join(folder, "*.onnx")))
        found += here
    return [path for path in found if os.path.getsize(path) <= biggest]
