#!/usr/bin/env python3
"""The runners of python/runners: test_runners.py PYTHON_FOLDER.

ONNX Runtime is run. Of OpenVINO, PyTorch and TensorRT, which tests do not install, small modules stand in: they have the
calls that the runners make, and fail on any other. What they compute is y = relu(x) + 1 with the inner value 'r'.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper

FAKES = {}

FAKES["openvino.py"] = '''
import numpy as np

class Port:
    def __init__(self, name, value=None):
        self.name, self.value = name, value
    def get_names(self):
        return {self.name}

class Op:
    def __init__(self, kind, *names):
        self.kind, self.ports = kind, [Port(n) for n in names]
    def get_type_name(self):
        return self.kind
    def outputs(self):
        return self.ports

class Model:
    def __init__(self):
        self.outputs = [Port("y")]
    def get_ordered_ops(self):
        return [Op("Parameter", "x"), Op("Constant", "one"), Op("Relu", "r"), Op("Add", "y"), Op("Result", "y")]
    def add_outputs(self, name):
        assert isinstance(name, str)
        self.outputs.append(Port(name))

class Compiled:
    def __init__(self, model):
        self.inputs, self.outputs = [Port("x")], model.outputs
    def __call__(self, feeds):
        x = feeds[self.inputs[0]]
        r = np.maximum(x, 0)
        return {o: {"r": r, "y": r + 1}[o.name] for o in self.outputs}

class Core:
    def read_model(self, path):
        assert path.endswith(".onnx")
        return Model()
    def compile_model(self, model, device, config):
        print(device, config)
        return Compiled(model)
'''

FAKES["torch/__init__.py"] = '''
import numpy as np
from . import backends, cuda, export, jit, nn

class dtype:
    def __init__(self, name, numpy):
        self.name, self.numpy = name, numpy
float32, float16 = dtype("float32", np.float32), dtype("float16", np.float16)
bfloat16 = dtype("bfloat16", np.float32)  # as near as NumPy comes

class Tensor:
    def __init__(self, a, dtype=float32):
        self.a, self.dtype = a, dtype
    def to(self, what):
        return self if isinstance(what, device) else Tensor(self.a.astype(what.numpy), what)
    def is_floating_point(self):
        return self.a.dtype.kind == "f"
    def detach(self):
        return self
    def cpu(self):
        return self
    def float(self):
        return Tensor(self.a.astype(np.float32))
    def numpy(self):
        assert self.dtype is not bfloat16, "NumPy has no bfloat16"
        return self.a

class device:
    def __init__(self, name):
        self.name = name

class no_grad:
    def __enter__(self):
        pass
    def __exit__(self, *e):
        pass

def from_numpy(a):
    return Tensor(a)
'''
FAKES["torch/cuda.py"] = "def is_available():\n    return False\n"
FAKES["torch/backends.py"] = '''
class Flags:
    allow_tf32 = None
class cuda:
    matmul = Flags()
cudnn = Flags()
'''
FAKES["torch/nn.py"] = '''
class Module:
    def __init__(self):
        self.hooks = []
    def eval(self):
        return self
    def to(self, device=None, dtype=None):
        return self
    def register_forward_hook(self, hook):
        self.hooks.append(hook)
    def named_modules(self):
        yield "", self
        for name, m in vars(self).items():
            if isinstance(m, Module):
                yield name, m
    def __call__(self, *a):
        out = self.forward(*a)
        for hook in self.hooks:
            hook(self, a, out)
        return out
'''
FAKES["torch/export.py"] = '''
class Program:
    def module(self):
        import network
        return network.make("exported")
def load(path):
    return Program()
'''
FAKES["torch/jit.py"] = '''
def load(path, map_location=None):
    import network
    return network.make("scripted")
'''
FAKES["network.py"] = '''
import numpy as np
import torch

class Relu(torch.nn.Module):
    def forward(self, x):
        return torch.Tensor(np.maximum(x.a, 0), x.dtype)

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = Relu()
    def forward(self, x):
        print("input", x.dtype.name)
        y = self.relu(x)
        return torch.Tensor(y.a + 1, y.dtype)

def make(path):
    return Network()

def by_name(path):
    return lambda x: {"y": make(path)(x)}

def two(path):
    return lambda x: (x, x)
'''

FAKES["tensorrt.py"] = '''
import numpy as np
import cuda.bindings.runtime as rt

__version__ = VERSION
bfloat16 = object()
float32 = object()

class Logger:
    WARNING = 1
    def __init__(self, level):
        pass

def init_libnvinfer_plugins(logger, namespace):
    return True

def nptype(t):
    assert t is float32
    return np.float32

class NetworkDefinitionCreationFlag:
    if WEAK:
        EXPLICIT_BATCH = 0

class BuilderFlag:
    TF32 = "TF32"
    if WEAK:
        FP16, BF16, INT8 = "FP16", "BF16", "INT8"

class MemoryPoolType:
    WORKSPACE = 1

class TensorIOMode:
    INPUT, OUTPUT = 1, 2

class TensorLocation:
    HOST, DEVICE = 1, 2

class Tensor:
    is_shape_tensor = False
    def __init__(self, name):
        self.name = name

class Layer:
    def __init__(self, kind, *names):
        self.type, self.outputs = "LayerType." + kind, [Tensor(n) for n in names]
        self.num_outputs = len(names)
    def get_output(self, i):
        return self.outputs[i]

class Network:
    num_inputs = 1
    def __init__(self):
        self.layers = [Layer("CONSTANT", "one"), Layer("ACTIVATION", "r"), Layer("ELEMENTWISE", "y")]
        self.outputs = [Tensor("y")]
    num_layers = property(lambda self: len(self.layers))
    num_outputs = property(lambda self: len(self.outputs))
    def get_layer(self, i):
        return self.layers[i]
    def get_output(self, i):
        return self.outputs[i]
    def get_input(self, i):
        return Tensor("x")
    def mark_output(self, t):
        self.outputs.append(t)

class OnnxParser:
    num_errors = 1
    def __init__(self, network, logger):
        pass
    def parse_from_file(self, path):
        return "bad" not in path
    def get_error(self, i):
        return "no plugin"

class Profile:
    def set_shape(self, name, low, best, high):
        assert low == best == high

class Cache:
    def serialize(self):
        return b"cache"

class Config:
    def __init__(self):
        self.flags = {"TF32"}
    def set_flag(self, f):
        self.flags.add(f)
    def clear_flag(self, f):
        self.flags.discard(f)
    def set_memory_pool_limit(self, pool, n):
        assert n == 64 << 20
    def add_optimization_profile(self, p):
        pass
    def create_timing_cache(self, data):
        return Cache()
    def set_timing_cache(self, cache, ignore):
        pass

class Builder:
    def __init__(self, logger):
        pass
    def create_network(self, flags):
        return Network()
    def create_builder_config(self):
        return Config()
    def create_optimization_profile(self):
        return Profile()
    def build_serialized_network(self, network, config):
        print("flags", sorted(config.flags))
        return ",".join(o.name for o in network.outputs).encode()

class IOutputAllocator:
    def __init__(self):
        pass

class Context:
    def __init__(self, names):
        self.names, self.allocators = names, {}
    def set_input_shape(self, name, shape):
        self.shape = tuple(shape)
        return True
    def set_tensor_address(self, name, address):
        self.address = address
        return True
    def set_output_allocator(self, name, a):
        self.allocators[name] = a
        return True
    def execute_async_v3(self, stream):
        x = rt.memory[self.address].view(np.float32).reshape(self.shape)
        r = np.maximum(x, 0)
        for name, a in self.allocators.items():
            y = {"r": r, "y": r + 1}[name]
            block = a.reallocate_output_async(name, None, y.nbytes, 256, stream)
            rt.memory[block][:] = y.reshape(-1).view(np.uint8)
            a.notify_shape(name, y.shape)
        return True

class Engine:
    def __init__(self, names):
        self.names = ["x"] + names
    num_io_tensors = property(lambda self: len(self.names))
    def get_tensor_name(self, i):
        return self.names[i]
    def get_tensor_mode(self, name):
        return TensorIOMode.INPUT if name == "x" else TensorIOMode.OUTPUT
    def get_tensor_dtype(self, name):
        return float32
    def get_tensor_location(self, name):
        return TensorLocation.DEVICE
    def create_execution_context(self):
        return Context(self.names)

class Runtime:
    def __init__(self, logger):
        pass
    def deserialize_cuda_engine(self, plan):
        return Engine(plan.decode().split(","))
'''
FAKES["cuda/__init__.py"] = ""
FAKES["cuda/bindings/__init__.py"] = ""
FAKES["cuda/bindings/runtime.py"] = '''
import ctypes
import numpy as np
memory = {}

class cudaMemcpyKind:
    cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost = 1, 2

def cudaMalloc(n):
    block = 1000 + len(memory)
    memory[block] = np.zeros(n, np.uint8)
    return 0, block

def cudaMemcpy(to, source, n, kind):
    if kind == 1:
        ctypes.memmove(memory[to].ctypes.data, source, n)
    else:
        ctypes.memmove(to, memory[source].ctypes.data, n)
    return (0,)

def cudaFree(block):
    del memory[block]
    return (0,)

def cudaStreamCreate():
    return 0, 7

def cudaStreamSynchronize(stream):
    return (0,)
'''


class Failures(list):
    def check(self, ok, what):
        if not ok:
            self.append(what)
            print("FAIL", what)


def write_fakes(folder, version):
    for name, text in FAKES.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text.replace("VERSION", repr(version)).replace("WEAK", repr(int(version.split(".")[0]) < 11)))


def write_model():
    info = lambda n: helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 3])
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "one"], ["y"])]
    one = onnx.numpy_helper.from_array(np.float32([1]), "one")
    graph = helper.make_graph(nodes, "g", [info("x")], [info("y")], [one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, "model.onnx")
    onnx.save(model, "bad.onnx")
    # Weights in a file of their own, which is found beside the model.
    os.makedirs("apart", exist_ok=True)
    onnx.save(model, "apart/model.onnx", save_as_external_data=True, location="model.data", size_threshold=0)


def run(python, fakes, engine, *arguments):
    if os.path.exists("out.npz"):
        os.remove("out.npz")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([python] + ([fakes] if fakes else []))}
    done = subprocess.run([sys.executable, "-m", f"runners.{engine}", *arguments], capture_output=True, text=True, env=env,
                          timeout=300)
    made = None
    if os.path.exists("out.npz"):
        with np.load("out.npz") as npz:
            made = {k: npz[k] for k in npz.files}
    return done.returncode, done.stdout, done.stderr, made


# Engine, arguments behind OUTPUTS, the values that must come, text of stdout.
RUNS = (
    ("onnxruntime", "fp32", "y", ""),
    ("onnxruntime", "", "y", ""),
    ("onnxruntime", "fp32 --all", "r y", ""),
    ("onnxruntime", "fp32 --all --optimizations all --threads 1", "r y", ""),
    ("onnxruntime", "fp16 --all", "r y", ""),
    ("openvino", "fp32", "y", "CPU {'INFERENCE_PRECISION_HINT': 'f32'}"),
    ("openvino", "bf16 --all --device GPU", "r y", "GPU {'INFERENCE_PRECISION_HINT': 'bf16'}"),
    ("torch", "fp32 --from network:make", "y", "input float32"),
    ("torch", "fp16 --from network:make --taps taps.json --all", "r y", "input float16"),
    ("torch", "bf16 --from network:make --taps taps.json", "r y", "input bfloat16"),
    ("torch", "tf32 --from network:by_name", "y", ""),
    ("torch", "fp32 --from program.pt2 --outputs y", "y", ""),
    ("torch", "fp32 --from program.pt --device cpu", "y", ""),
    ("tensorrt", "fp32", "y", "flags []"),
    ("tensorrt", "tf32 --all", "r y", "flags ['TF32']"),
    ("tensorrt", "fp16 --all --workspace 64", "r y", "flags ['FP16']"),
    ("tensorrt", "int8 --timing-cache cache", "y", "flags ['INT8']"),
)

# Engine, model, arguments, exit code, message.
FAILS = (
    ("onnxruntime", "model.onnx", "bf16", 1, "onnxruntime runs fp32, fp16 here, not bf16"),
    ("onnxruntime", "nothing.onnx", "fp32", 1, "nothing.onnx"),
    ("onnxruntime", "model.onnx", "fp32 --provider NoSuchProvider", 1, "NoSuchProvider"),
    ("onnxruntime", "model.onnx", "fp32 --inputs", 2, "unrecognized arguments"),
    ("openvino", "model.onnx", "tf32", 1, "openvino runs fp32, bf16, fp16 here, not tf32"),
    ("torch", "model.onnx", "fp32 --from nothing:make", 1, "--from 'nothing:make'"),
    ("torch", "model.onnx", "fp32 --from network:nothing", 1, "--from 'network:nothing'"),
    ("torch", "model.onnx", "fp32 --from nothing", 1, "is neither a file nor module:function"),
    ("torch", "model.onnx", "fp32 --from network:two", 1, "it returned 2 values for the outputs y"),
    ("torch", "model.onnx", "fp32 --from network:make --all", 1, "--all needs --taps"),
    ("torch", "model.onnx", "fp32 --from network:make --taps wrong.json", 1, "there is no module 'sigmoid'"),
    ("tensorrt", "bad.onnx", "fp32", 1, "TensorRT cannot read the model: no plugin"),
)


def test_runs(python, fakes, failures):
    x = np.load("in.npz")["x"]
    expected = {"r": np.maximum(x, 0), "y": np.maximum(x, 0) + 1}
    for engine, words, values, text in RUNS:
        where = f"runners.{engine} {words}"
        code, out, err, made = run(python, fakes, engine, "model.onnx", "in.npz", "out.npz", *words.split())
        failures.check(code == 0 and made is not None, f"{where}: exit code {code}, {err}")
        if made is None:
            continue
        failures.check(sorted(made) == values.split() or (engine == "onnxruntime" and set(values.split()) <= set(made)),
                       f"{where}: {sorted(made)}")
        failures.check(text in out, f"{where}: printed {out!r}")
        for name in values.split():
            close = np.allclose(made[name].astype(np.float64), expected[name], atol=1e-2 if "fp16" in words else 1e-6)
            failures.check(made[name].dtype.kind == "f" and close, f"{where}: {name} = {made[name]}")
    code, _, err, made = run(python, None, "onnxruntime", "apart/model.onnx", "in.npz", "out.npz", "fp32", "--all")
    failures.check(code == 0 and sorted(made) == ["r", "y"], f"external data: exit code {code}, {err}")


def test_fails(python, fakes, failures):
    for engine, model, words, want, message in FAILS:
        where = f"runners.{engine} {model} {words}"
        code, _, err, made = run(python, fakes, engine, model, "in.npz", "out.npz", *words.split())
        failures.check(code == want and message in err and "Traceback" not in err, f"{where}: exit code {code}, {err!r}")
        failures.check(made is None, f"{where}: outputs")
    for engine in ("onnxruntime", "openvino", "torch", "tensorrt"):
        words = ["--from", "network:make"] if engine == "torch" else []
        code, _, err, made = run(python, fakes, engine, "model.onnx", "other.npz", "out.npz", "fp32", *words)
        failures.check(code == 1 and made is None and "Traceback" not in err, f"{engine}, other inputs: {code}, {err!r}")
        code, _, err, _ = run(python, fakes, engine, "model.onnx", "in.npz", "nowhere/out.npz", "fp32", *words)
        failures.check(code == 1 and "nowhere" in err and "Traceback" not in err, f"{engine}, no folder: {code}, {err!r}")


def test_missing(python, failures):
    """Without its package a runner says what to install."""
    os.makedirs("none", exist_ok=True)
    for engine in ("onnxruntime", "openvino", "torch", "tensorrt"):
        package = f"none/{engine}.py"
        with open(package, "w") as f:
            f.write("raise ImportError('hidden by the test')\n")
        words = ["--from", "network:make"] if engine == "torch" else []
        code, _, err, made = run(python, os.path.abspath("none"), engine, "model.onnx", "in.npz", "out.npz", "fp32", *words)
        failures.check(code == 2 and f"pip install {engine}" in err and made is None, f"{engine} missing: {code}, {err!r}")


def test_strong_types(python, fakes, failures):
    """From TensorRT 11 on there are no flags for precisions."""
    write_fakes(fakes, "11.0.0")
    code, _, err, _ = run(python, fakes, "tensorrt", "model.onnx", "in.npz", "out.npz", "fp32")
    failures.check(code == 0, f"TensorRT 11 in fp32: {code}, {err}")
    code, _, err, _ = run(python, fakes, "tensorrt", "model.onnx", "in.npz", "out.npz", "fp16")
    failures.check(code == 1 and "TensorRT 11.0.0 takes formats from the model" in err, f"TensorRT 11 in fp16: {code}, {err}")


def test_arrays(python, failures):
    """Names and types that an npz may not like."""
    sys.path.insert(0, python)
    from runners import common
    import ml_dtypes
    arrays = {"file": np.float32([1]), "a/b": np.int64([2]), "c": np.array([0.5, 3], ml_dtypes.bfloat16),
              "d": np.array([True]), "e": np.array(["text"], object), "f": np.float16(1), "g": np.zeros((0, 3))}
    common.write_arrays("odd.npz", arrays)
    back = common.read_arrays("odd.npz")
    failures.check(list(back) == list(arrays), f"names: {list(back)}")
    failures.check(back["c"].dtype == np.float32 and back["c"][1] == 3 and back["e"][0] == "text" and back["f"].shape == (),
                   f"types: { {k: v.dtype for k, v in back.items()} }")
    failures.check(not [n for n in os.listdir() if n.startswith(".outputs.")], "half a file is left")


def main(python):
    python = os.path.abspath(python)
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        fakes = os.path.join(folder, "fakes")
        write_fakes(fakes, "10.3.0")
        write_model()
        x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
        np.savez("in.npz", x=x)
        np.savez("other.npz")
        for name, text in (("taps.json", '{"relu": "r"}'), ("wrong.json", '{"sigmoid": "r"}'), ("program.pt2", ""),
                           ("program.pt", "")):
            with open(name, "w") as f:
                f.write(text)
        test_runs(python, fakes, failures)
        test_fails(python, fakes, failures)
        test_missing(python, failures)
        test_strong_types(python, fakes, failures)
        test_arrays(python, failures)
        os.chdir("/")
    print(f"{len(RUNS) + len(FAILS)} runs, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
