"""ONNX Runtime for `assay check --exec`.

    python -m runners.onnxruntime MODEL INPUTS OUTPUTS PRECISION [--all] [--optimizations LEVEL] [--provider NAME]

fp32 runs the model as it is; fp16 converts it with ONNX Runtime's own converter, inputs and outputs kept. With --all
every inner value is an output and graph optimizations are off, so that the names of the model survive;
--optimizations turns them on again (values that they take away are then computed all the same, as outputs must be).
"""
import os
import sys

from . import common

LEVELS = {"none": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
          "all": "ORT_ENABLE_ALL"}


def options(p):
    p.add_argument("--optimizations", choices=sorted(LEVELS),
                   help="graph optimizations (default: all; with --all: none)")
    p.add_argument("--provider", default="CPUExecutionProvider", metavar="NAME",
                   help="execution provider (default: CPUExecutionProvider)")
    p.add_argument("--threads", type=int, default=0, metavar="N", help="threads within an operator (default: all)")


def to_fp16(onnx, path):
    """The model in float16, its inputs and outputs as they were. Weights are loaded: they are converted."""
    converter = common.need("onnxruntime.transformers.float16", "onnxruntime")
    return converter.convert_float_to_float16(onnx.load(path), keep_io_types=True)


def mark_all(onnx, model):
    """Makes every value of the top graph that a node computes an output."""
    outputs = {o.name for o in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in outputs:
                model.graph.output.append(onnx.ValueInfoProto(name=name))
                outputs.add(name)


def session(ort, args):
    available = ort.get_available_providers()
    if args.provider not in available:  # it would run on the CPU instead, with a warning
        raise common.RunnerError(f"this onnxruntime has no {args.provider}; it has {', '.join(available)}")
    so = ort.SessionOptions()
    level = args.optimizations or ("none" if args.all else "all")
    so.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[level])
    so.intra_op_num_threads = args.threads
    so.log_severity_level = 3
    source = args.model
    if args.all or args.precision == "fp16":
        onnx = common.need("onnx", "onnx")
        if args.precision == "fp16":
            model = to_fp16(onnx, args.model)
        else:
            model = onnx.load(args.model, load_external_data=False)
            folder = os.path.dirname(os.path.abspath(args.model))
            so.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        if args.all:
            mark_all(onnx, model)
        source = model.SerializeToString()
    return ort.InferenceSession(source, so, providers=[args.provider])


def run(args, inputs):
    ort = common.need("onnxruntime", "onnxruntime")
    s = session(ort, args)
    wanted = {i.name for i in s.get_inputs()}
    feeds = {name: x for name, x in inputs.items() if name in wanted}
    missing = wanted - set(feeds)
    if missing:
        raise common.RunnerError(f"no array for input '{sorted(missing)[0]}'")
    names = [o.name for o in s.get_outputs()]
    values = s.run(names, feeds)
    # Sequences, maps and empty optionals have no place in an npz.
    return {n: v for n, v in zip(names, values) if v is not None and not isinstance(v, (list, dict))}


def main(argv=None):
    return common.main("onnxruntime", options, run, ("fp32", "fp16"), argv)


if __name__ == "__main__":
    sys.exit(main())
