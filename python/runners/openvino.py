"""OpenVINO for `assay check --exec`.

    python -m runners.openvino MODEL INPUTS OUTPUTS PRECISION [--all] [--device CPU]

PRECISION becomes the plugin's inference precision; that is a hint: a device computes some operators in fp32 all the
same. With --all every value that the ONNX front end gives a name is an output, which keeps it from being fused away.
Written for OpenVINO 2023.1 and newer (`import openvino`).
"""
import sys

from . import common

TYPES = {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}


def options(p):
    p.add_argument("--device", default="CPU", help="CPU (default), GPU, NPU ...")


def mark_all(model):
    """Adds every named value that is computed and no output yet."""
    known = {name for o in model.outputs for name in o.get_names()}
    for op in model.get_ordered_ops():
        if op.get_type_name() in ("Parameter", "Constant", "Result"):
            continue
        for output in op.outputs():
            names = output.get_names()
            if names and not known & set(names):
                model.add_outputs(min(names))
                known |= set(names)


def run(args, inputs):
    ov = common.need("openvino", "openvino")
    core = ov.Core()
    model = core.read_model(args.model)
    if args.all:
        mark_all(model)
    compiled = core.compile_model(model, args.device, {"INFERENCE_PRECISION_HINT": TYPES[args.precision]})
    feeds = {}
    for i in compiled.inputs:
        name = next((n for n in i.get_names() if n in inputs), None)
        if name is None:
            raise common.RunnerError(f"no array for input '{min(i.get_names(), default='?')}'")
        feeds[i] = inputs[name]
    results = compiled(feeds)
    # A value may have several names, as behind an Identity: it is written under each.
    return {name: results[o] for o in compiled.outputs for name in sorted(o.get_names())}


def main(argv=None):
    return common.main("openvino", options, run, tuple(TYPES), argv)


if __name__ == "__main__":
    sys.exit(main())
