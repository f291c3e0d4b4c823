#!/usr/bin/env python3
"""Files of tensors, both ways between Assay and those whose formats they are.

    against_tools.py ASSAY

A model that hands its inputs on reads files that safetensors, Polygraphy, onnx and NumPy wrote, and
writes ones that they read again. Torch's files are put together here, without torch; what else a
pickle may hold must be refused. Exit code 77: Polygraphy or safetensors is not installed.
"""
import base64
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import types
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

try:
    import safetensors.numpy
    from polygraphy.comparator import Comparator, CompareFunc, IterationResult, RunResults
    from polygraphy.json import save_json
    from polygraphy.logger import G_LOGGER
except ImportError as e:
    print(f"skipped: {e}; scripts/requirements-test.txt has the packages")
    sys.exit(77)

DTYPES = ["float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]
failures, count = [], 0


def expect(ok, what):
    global count
    count += 1
    if not ok:
        failures.append(what)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def hand_on(path, values):
    """A model that gives every input again: name to (type, shape)."""
    nodes = [helper.make_node("Identity", [n], [f"{n}_out"]) for n in values]
    make = helper.make_tensor_value_info
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [make(n, *v) for n, v in values.items()],
                                                  [make(f"{n}_out", *v) for n, v in values.items()]),
                                opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def arrays(seed):
    """An array of every type, of random bytes (floats: numbers), and their shapes' corners."""
    rng = np.random.default_rng(seed)
    made = {}
    for i, name in enumerate(DTYPES):
        shape = [(2, 3), (), (0, 2), (5,)][i % 4]
        kind = np.dtype(name).kind
        made[name] = (rng.standard_normal(shape) if kind == "f" else rng.integers(0, 2, shape) if kind == "b" else
                      np.frombuffer(rng.bytes(64), name)[:int(np.prod(shape, dtype=int))].reshape(shape))
        made[name] = np.asarray(made[name], name)
    return made


class Tools:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, model, *options):
        done = subprocess.run([self.program, "run", model, *options], capture_output=True, text=True)
        return done.returncode, done.stderr

    def through(self, model, inputs, output):
        code, err = self.run(model, "--inputs", inputs, "-o", self.path(output))
        expect(code == 0, f"{inputs} to {output}: exit code {code}: {err}")
        return self.path(output) if code == 0 else None


def check_safetensors(t, model, feed):
    safetensors.numpy.save_file(feed, t.path("in.safetensors"), {"format": "np"})
    path = t.through(model, t.path("in.safetensors"), "out.safetensors")
    if path:
        back = safetensors.numpy.load_file(path)
        for n, a in feed.items():
            expect(same(a, back[f"{n}_out"]), f"safetensors {n}")


def check_polygraphy(t, model, feeds):
    save_json(feeds, t.path("in.json"))
    os.makedirs(t.path("in_folder"))
    for i, feed in enumerate(feeds):
        save_json(feed, t.path(f"in_folder/{i:010}.json"))
    want = RunResults()
    want.append(("them", [IterationResult({f"{n}_out": a for n, a in f.items()}, runner_name="them") for f in feeds]))
    for source in ("in.json", "in_folder"):
        path = t.through(model, t.path(source), f"out_{source.split('.')[0]}.json")
        if not path:
            continue
        got = RunResults.load(path)
        runner, iterations = list(got.items())[0]
        expect(len(iterations) == len(feeds), f"polygraphy {source}: {len(iterations)} iterations")
        for it, feed in zip(iterations, feeds):
            for n, a in feed.items():
                expect(same(a, np.asarray(it[f"{n}_out"])), f"polygraphy {source} {n}")
        both = RunResults()
        both.extend([list(want.items())[0], (runner, iterations)])
        expect(bool(Comparator.compare_accuracy(both, compare_func=CompareFunc.simple())), f"polygraphy {source}: compared")
    # Results as inputs; as golden.
    want.save(t.path("results.json"))
    code, err = t.run(model, "--inputs", t.path("results.json"))
    expect(code == 3 and "data merge" in err, f"results as inputs: {code} {err}")
    done = subprocess.run([t.program, "check", model, "--inputs", t.path("in.json"), "--golden", t.path("results.json")],
                          capture_output=True, text=True)
    expect(done.returncode == 0 and "golden" in done.stdout, f"results as golden: {done.returncode} {done.stdout}{done.stderr}")
    # What old versions wrote.
    def old(name, **rest):
        return {**rest, f"__polygraphy_encoded_{name}": "polygraphy_serialized_json_type"}
    for save in (np.save, lambda f, a: np.savez(f, a)):
        def text(a):
            f = io.BytesIO()
            save(f, a)
            return f.getvalue().decode("latin-1")
        with open(t.path("old.json"), "w", encoding="utf-8") as f:
            json.dump([{n: old("ndarray", array=text(a)) for n, a in feed.items()} for feed in feeds], f)
        path = t.through(model, t.path("old.json"), "old_out.json")
        got = list(RunResults.load(path).items())[0][1] if path else []
        expect(len(got) == len(feeds) and all(same(a, np.asarray(it[f"{n}_out"])) for it, f in zip(got, feeds) for n, a in f.items()),
               "polygraphy: Latin-1")


def check_test_data(t, model, feed):
    os.makedirs(t.path("data"))
    for i, (n, a) in enumerate(feed.items()):
        onnx.save_tensor(numpy_helper.from_array(a, n), t.path(f"data/input_{i}.pb"))
    path = t.through(model, t.path("data"), "data_out/")
    for i, (n, a) in enumerate(feed.items() if path else ()):
        expect(same(a, numpy_helper.to_array(onnx.load_tensor(f"{path}/output_{i}.pb"))), f"test data {n}")
    one = hand_on(t.path("seq.onnx"), {})
    m = onnx.load(one)
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    m.graph.node.append(helper.make_node("Identity", ["s"], ["s_out"]))
    m.graph.input.append(helper.make_value_info("s", kind))
    m.graph.output.append(helper.make_value_info("s_out", kind))
    onnx.save(m, one)
    items = [numpy_helper.from_array(np.array(x, np.float32)) for x in ([1, 2], [3, 4])]
    with open(t.path("s.pb"), "wb") as f:
        f.write(onnx.SequenceProto(elem_type=onnx.SequenceProto.TENSOR, tensor_values=items).SerializeToString())
    path = t.through(one, t.path("s.pb"), "s_out.pb")
    if path:
        back = onnx.SequenceProto()
        back.ParseFromString(open(path, "rb").read())
        expect([numpy_helper.to_array(x).tolist() for x in back.tensor_values] == [[1, 2], [3, 4]], "sequence")


def check_plain(t):
    """Text, raw and trtexec's JSON: one array, whose type is the model's."""
    model = hand_on(t.path("one.onnx"), {"x": (TensorProto.FLOAT, ["N", 3])})
    a = np.array([[1 / 3, -np.inf, 1e-30], [np.nan, 2**-140, 7]], np.float32)
    np.savetxt(t.path("x.txt"), a, header="three columns", fmt="%.9g")
    a.tofile(t.path("x.raw"))
    np.save(t.path("x.npy"), a)
    for source in ("x.txt", "x.raw", "x.npy"):
        for target in ("y.txt", "y.raw", "y.npy", "y.trtexec.json"):
            path = t.through(model, t.path(source), target)
            if not path:
                continue
            if target == "y.trtexec.json":
                [j] = json.load(open(path, encoding="utf-8"))
                expect((j["name"], j["dimensions"]) == ("x_out", "2x3"), f"{source} to {target}: {j}")
                back = np.array(j["values"], np.float32).reshape(2, 3)
            else:
                back = {"y.txt": lambda p: np.loadtxt(p, np.float32), "y.raw": lambda p: np.fromfile(p, np.float32).reshape(2, 3),
                        "y.npy": np.load}[target](path)
            expect(same(a, back) or np.array_equal(a, back, equal_nan=True), f"{source} to {target}")
    for name, data in (("short.raw", a.tobytes()[:-1]), ("odd.raw", a.tobytes()[:-4]), ("odd.txt", b"1 2 3 4")):
        open(t.path(name), "wb").write(data)
        code, err = t.run(model, "--inputs", t.path(name))
        expect(code == 3 and name in err, f"{name}: {code} {err}")


def torch_file(storage, dtype, data, shape, strides=None, offset=0, extra=None):
    """What torch.save(tensor, file) writes; dtype: of the newer form, without storage types."""
    strides = strides or [int(np.prod(shape[i + 1:], dtype=int)) for i in range(len(shape))]
    torch, utils, store = types.ModuleType("torch"), types.ModuleType("torch._utils"), types.ModuleType("torch.storage")
    sys.modules.update({"torch": torch, "torch._utils": utils, "torch.storage": store})
    kind = type(storage, (), {"__module__": "torch.storage" if dtype else "torch"})
    setattr(store if dtype else torch, storage, kind)
    def rebuild(*_): ...
    rebuild.__name__ = rebuild.__qualname__ = "_rebuild_tensor_v3" if dtype else "_rebuild_tensor_v2"
    rebuild.__module__ = "torch._utils"
    setattr(utils, rebuild.__name__, rebuild)

    class Name:  # pickled as torch.<dtype>
        __module__ = "torch"

        def __reduce__(self):
            return dtype

    name_of_type = Name()
    if dtype:
        setattr(torch, dtype, name_of_type)

    class Tensor:
        def __reduce__(self):
            from collections import OrderedDict
            args = (Storage(), offset, tuple(shape), tuple(strides), False, OrderedDict())
            return (rebuild, args + ((name_of_type,) if dtype else ()))

    class Storage: ...

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return ("storage", kind, "0", "cpu", len(data)) if isinstance(obj, Storage) else None

    f = io.BytesIO()
    Pickler(f, protocol=2).dump(extra if extra is not None else Tensor())
    for name in ("torch", "torch._utils", "torch.storage"):
        del sys.modules[name]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("archive/data.pkl", f.getvalue())
        z.writestr("archive/byteorder", "little")
        z.writestr("archive/data/0", data)
        z.writestr("archive/version", "3\n")
    return out.getvalue()


def check_torch(t):
    model = hand_on(t.path("bf.onnx"), {"x": (TensorProto.FLOAT, [2, 2])})
    def feed(data):
        with open(t.path("torch.json"), "w", encoding="utf-8") as f:
            json.dump([{"x": {"tensor": base64.b64encode(data).decode(), "polygraphy_class": "Tensor"}}], f)
        return t.path("torch.json")
    half = np.array([1.5, -2, 3, 4, 5], np.float32).view(np.uint32) >> 16
    bits = half.astype(np.uint16).tobytes()
    rows = [("BFloat16Storage", None, bits, [2, 2], None, 0, [[1.5, -2], [3, 4]]),
            ("BFloat16Storage", None, bits, [2, 2], [1, 2], 1, [[-2, 4], [3, 5]]),
            ("FloatStorage", None, np.arange(4, dtype=np.float32).tobytes(), [2, 2], None, 0, [[0, 1], [2, 3]]),
            ("UntypedStorage", "float8_e4m3fn", bytes([0x38, 0x40, 0xb8, 0x00]), [2, 2], None, 0, [[1, 2], [-1, 0]])]
    for storage, dtype, data, shape, strides, offset, want in rows:
        path = t.through(model, feed(torch_file(storage, dtype, data, shape, strides, offset)), "torch.npy")
        expect(path and np.load(path).tolist() == want, f"torch {storage} {dtype} {strides}: {path and np.load(path).tolist()}")

    class Evil:
        def __reduce__(self):
            return (os.system, ("touch " + t.path("evil"),))

    bad = [(torch_file("BFloat16Storage", None, bits, [2, 2], extra=Evil()), "unpickled"),
           (torch_file("BFloat16Storage", None, bits, [2, 2], extra={"a": 1}), "unpickled"),
           (torch_file("BFloat16Storage", None, bits, [2, 3]), "past the end"),
           (torch_file("BFloat16Storage", None, bits, [2**62, 2**62]), "past the end"),
           (torch_file("BFloat16Storage", None, bits, [10**9], [0]), "expanded"),
           (torch_file("BFloat16Storage", None, bits, [2, 2])[:-30], "zip")]
    for data, says in bad:
        code, err = t.run(model, "--inputs", feed(data))
        expect(code == 3 and says in err, f"torch, '{says}': {code} {err}")
    expect(not os.path.exists(t.path("evil")), "a pickle was carried out")


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        G_LOGGER.module_severity = G_LOGGER.CRITICAL
        t, seed = Tools(program, folder), int.from_bytes(os.urandom(2), "little")
        print(f"seed {seed}")
        feeds = [arrays(seed), arrays(seed + 1)]
        model = hand_on(t.path("all.onnx"), {n: (helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds[0].items()})
        check_safetensors(t, model, feeds[0])
        check_polygraphy(t, model, feeds)
        check_test_data(t, model, feeds[0])
        check_plain(t)
        check_torch(t)
    for f in failures[:20]:
        print(f)
    print(f"{count} checks, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
