"""TensorRT for `assay check --exec`.

    python -m runners.tensorrt MODEL INPUTS OUTPUTS PRECISION [--all] [--workspace MIB] [--timing-cache FILE]

Builds an engine for exactly these input shapes and runs it once. TensorRT 8.5 to 10: weakly typed; PRECISION allows
the format beside fp32, and tf32 is off unless asked for. From TensorRT 11 on networks are strongly typed: PRECISION must
be fp32, and the model says the rest. With --all every tensor of the parsed network is an output, under its ONNX
name, which keeps layers from being fused.
Device memory comes from cuda-python (cuda.bindings.runtime, or the older cuda.cudart).
"""
import os
import sys

import numpy as np

from . import common

FLAGS = {"fp16": "FP16", "bf16": "BF16", "int8": "INT8", "tf32": "TF32"}


def options(p):
    p.add_argument("--workspace", type=int, metavar="MIB", help="limit of the workspace (default: TensorRT's)")
    p.add_argument("--timing-cache", metavar="FILE", help="read before the build, written after it")


# ---- the CUDA runtime ----------------------------------------------------------------------------

class Cuda:
    """The few calls that a run needs, over either generation of cuda-python."""

    def __init__(self):
        try:
            self.api = common.need("cuda.bindings.runtime", "cuda-python")
        except common.MissingPackage:
            self.api = common.need("cuda.cudart", "cuda-python")
        self.blocks = []

    def call(self, name, *arguments):
        error, *values = getattr(self.api, name)(*arguments)
        if int(error) != 0:
            raise common.RunnerError(f"{name} failed: {error}")
        return values[0] if values else None

    def allocate(self, n):
        block = int(self.call("cudaMalloc", max(int(n), 1)))
        self.blocks.append(block)
        return block

    def upload(self, array):
        block = self.allocate(array.nbytes)
        kind = self.api.cudaMemcpyKind.cudaMemcpyHostToDevice
        self.call("cudaMemcpy", block, array.ctypes.data, array.nbytes, kind)
        return block

    def download(self, block, array):
        kind = self.api.cudaMemcpyKind.cudaMemcpyDeviceToHost
        self.call("cudaMemcpy", array.ctypes.data, block, array.nbytes, kind)

    def free(self):
        for block in self.blocks:
            self.call("cudaFree", block)
        self.blocks.clear()


# ---- building ------------------------------------------------------------------------------------

def parse(trt, logger, builder, path):
    explicit = getattr(trt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH", None)  # the only way from 10 on
    network = builder.create_network(0 if explicit is None else 1 << int(explicit))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(os.path.abspath(path)):
        errors = "; ".join(str(parser.get_error(i)) for i in range(parser.num_errors))
        raise common.RunnerError(f"TensorRT cannot read the model: {errors}")
    return network, parser


def mark_all(network):
    outputs = {network.get_output(i).name for i in range(network.num_outputs)}
    for i in range(network.num_layers):
        layer = network.get_layer(i)
        if "CONSTANT" in str(layer.type):
            continue
        for k in range(layer.num_outputs):
            tensor = layer.get_output(k)
            if tensor is not None and tensor.name not in outputs and not tensor.is_shape_tensor:
                network.mark_output(tensor)
                outputs.add(tensor.name)


def set_precision(trt, config, precision):
    if hasattr(trt.BuilderFlag, "TF32"):
        config.clear_flag(trt.BuilderFlag.TF32)  # it is on by default
    if precision == "fp32":
        return
    flag = getattr(trt.BuilderFlag, FLAGS[precision], None)
    if flag is None:
        raise common.RunnerError(f"TensorRT {trt.__version__} takes formats from the model, not from a flag: convert the "
                                 f"model to {precision} and run it as fp32")
    config.set_flag(flag)


def add_profile(builder, network, config, inputs):
    profile = builder.create_optimization_profile()
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        if tensor.name not in inputs:
            raise common.RunnerError(f"no array for input '{tensor.name}'")
        x = inputs[tensor.name]
        if tensor.is_shape_tensor:
            values = [int(v) for v in np.atleast_1d(x)]
            profile.set_shape_input(tensor.name, values, values, values)
        else:
            profile.set_shape(tensor.name, x.shape, x.shape, x.shape)
    config.add_optimization_profile(profile)


def read_file(path):
    if not path or not os.path.exists(path):
        return b""
    with open(path, "rb") as f:
        return f.read()


def build(trt, logger, args, inputs):
    builder = trt.Builder(logger)
    network, _parser = parse(trt, logger, builder, args.model)  # the parser owns the weights
    if args.all:
        mark_all(network)
    config = builder.create_builder_config()
    set_precision(trt, config, args.precision)
    if args.workspace:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, args.workspace << 20)
    add_profile(builder, network, config, inputs)
    cache = None
    if args.timing_cache:
        cache = config.create_timing_cache(read_file(args.timing_cache))
        config.set_timing_cache(cache, False)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise common.RunnerError("TensorRT could not build an engine; its messages are above")
    if cache is not None:
        with open(args.timing_cache, "wb") as f:
            f.write(bytes(cache.serialize()))
    return plan


# ---- running -------------------------------------------------------------------------------------

def numpy_type(trt, dtype):
    """NumPy's type of a tensor, and whether its elements are bfloat16, which NumPy lacks."""
    if dtype == getattr(trt, "bfloat16", None):
        return np.dtype(np.uint16), True
    return np.dtype(trt.nptype(dtype)), False


def output_allocator(trt, cuda):
    class Allocator(trt.IOutputAllocator):
        """Gives an output memory once its size is known, and keeps its shape."""

        def __init__(self):
            trt.IOutputAllocator.__init__(self)
            self.block, self.bytes, self.shape = 0, 0, ()

        def reallocate_output(self, tensor_name, memory, size, alignment):
            if size > self.bytes or not self.block:
                self.block, self.bytes = cuda.allocate(size), size
            return self.block

        def reallocate_output_async(self, tensor_name, memory, size, alignment, stream):
            return self.reallocate_output(tensor_name, memory, size, alignment)

        def notify_shape(self, tensor_name, shape):
            self.shape = tuple(shape)

    return Allocator()


def bind_input(trt, cuda, engine, context, name, x):
    dtype, is_bf16 = numpy_type(trt, engine.get_tensor_dtype(name))
    if is_bf16:
        raise common.RunnerError(f"input '{name}' is bfloat16, which npz does not hold")
    x = np.ascontiguousarray(x, dtype)
    if engine.get_tensor_location(name) == trt.TensorLocation.HOST:
        context.set_tensor_address(name, x.ctypes.data)
        return x
    context.set_input_shape(name, x.shape)
    context.set_tensor_address(name, cuda.upload(x))
    return x


def fetch(trt, cuda, engine, name, allocator):
    dtype, is_bf16 = numpy_type(trt, engine.get_tensor_dtype(name))
    out = np.empty(allocator.shape, dtype)
    if out.size:
        cuda.download(allocator.block, out)
    if is_bf16:
        return (out.astype(np.uint32) << 16).view(np.float32)
    return out


def execute(trt, cuda, engine, inputs):
    context = engine.create_execution_context()
    stream = cuda.call("cudaStreamCreate")
    held, allocators = [], {}
    for i in range(engine.num_io_tensors):
        name = engine.get_tensor_name(i)
        if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
            held.append(bind_input(trt, cuda, engine, context, name, inputs[name]))
        else:
            allocators[name] = output_allocator(trt, cuda)
            context.set_output_allocator(name, allocators[name])
    if not context.execute_async_v3(int(stream)):
        raise common.RunnerError("TensorRT could not run the engine; its messages are above")
    cuda.call("cudaStreamSynchronize", stream)
    return {name: fetch(trt, cuda, engine, name, a) for name, a in allocators.items()}


def run(args, inputs):
    trt = common.need("tensorrt", "tensorrt")
    cuda = Cuda()
    logger = trt.Logger(trt.Logger.WARNING)
    trt.init_libnvinfer_plugins(logger, "")
    plan = build(trt, logger, args, inputs)
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    if engine is None:
        raise common.RunnerError("TensorRT could not load the engine that it built")
    try:
        return execute(trt, cuda, engine, inputs)
    finally:
        cuda.free()


def main(argv=None):
    return common.main("tensorrt", options, run, ("fp32", "tf32", "bf16", "fp16", "int8"), argv)


if __name__ == "__main__":
    sys.exit(main())
