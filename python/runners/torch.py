"""PyTorch for `assay check --exec`: the network that the ONNX model was exported from, or a saved program.

    python -m runners.torch MODEL INPUTS OUTPUTS PRECISION --from SOURCE [--taps FILE] [--device cpu]

SOURCE is one of
    package.module:function   called with MODEL; returns an nn.Module or another callable
    program.pt2               what torch.export.save wrote
    program.pt                TorchScript, what torch.jit.save wrote
It is called with the inputs in the order of INPUTS (that of the ONNX model). What it returns - a tensor, a tuple, or a
dict by name - are the outputs, in the ONNX model's order (or under the names of --outputs A,B).

--taps FILE names inner values: JSON, {"path.of.a.module": "ONNX value name"}. The output of each of these modules is
written, too. (Values of an ONNX model have no names in PyTorch, so --all needs the file.)
"""
import importlib
import json
import os
import sys

from . import common


def options(p):
    p.add_argument("--from", dest="source", required=True, metavar="SOURCE",
                   help="module:function, a .pt2 or a TorchScript file")
    p.add_argument("--taps", metavar="FILE", help="JSON: path of a module -> ONNX value name")
    p.add_argument("--outputs", dest="names", metavar="A,B", help="names of what is returned")
    p.add_argument("--device", help="cpu, cuda ... (default: cuda if there is one)")


def load(torch, args, device):
    if args.source.endswith(".pt2"):
        return torch.export.load(args.source).module()
    if os.path.isfile(args.source):
        return torch.jit.load(args.source, map_location=device)
    module, colon, function = args.source.rpartition(":")
    if not colon or not module:
        raise common.RunnerError(f"--from '{args.source}' is neither a file nor module:function")
    sys.path.insert(0, os.getcwd())
    try:
        make = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as e:
        raise common.RunnerError(f"--from '{args.source}': {e}") from e
    return make(args.model)


def prepare(torch, program, args, device):
    """The program on its device and in its precision; the type that floats are given to it in."""
    torch.backends.cuda.matmul.allow_tf32 = args.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(args.precision, torch.float32)
    # An exported program has neither mode nor weights to convert.
    exported = args.source.endswith(".pt2")
    if isinstance(program, torch.nn.Module):
        if not exported:
            program.eval()
        program.to(device=device, dtype=dtype) if dtype != torch.float32 else program.to(device)
    return program, dtype


def output_names(args):
    if args.names:
        return args.names.split(",")
    onnx = common.need("onnx", "onnx", ", or give --outputs")
    return [o.name for o in onnx.load(args.model, load_external_data=False).graph.output]


def to_array(torch, x):
    x = x.detach().cpu()
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy()


def tap(torch, program, path, made):
    """Hooks that keep the outputs of the modules that the file names."""
    if not path:
        return
    with open(path, encoding="utf-8") as f:
        names = json.load(f)
    modules = dict(program.named_modules()) if hasattr(program, "named_modules") else {}

    def keep(name):
        def hook(_module, _inputs, output):
            made[name] = to_array(torch, output[0] if isinstance(output, (tuple, list)) else output)
        return hook

    for where, name in names.items():
        if where not in modules:
            raise common.RunnerError(f"{path}: there is no module '{where}'")
        modules[where].register_forward_hook(keep(name))


def name_outputs(torch, args, result):
    if isinstance(result, dict):
        return {name: to_array(torch, x) for name, x in result.items()}
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    names = output_names(args)
    if len(names) != len(results):
        raise common.RunnerError(f"it returned {len(results)} values for the outputs {', '.join(names)}")
    return {name: to_array(torch, x) for name, x in zip(names, results)}


def run(args, inputs):
    torch = common.need("torch", "torch")
    if args.all and not args.taps:
        raise common.RunnerError("--all needs --taps FILE: modules have no ONNX names")
    device = torch.device(args.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    program, dtype = prepare(torch, load(torch, args, device), args, device)
    made = {}
    tap(torch, program, args.taps, made)
    tensors = [torch.from_numpy(x.copy()).to(device) for x in inputs.values()]
    tensors = [t.to(dtype) if t.is_floating_point() and dtype != torch.float32 else t for t in tensors]
    with torch.no_grad():
        made.update(name_outputs(torch, args, program(*tensors)))
    return made


def main(argv=None):
    return common.main("torch", options, run, ("fp32", "tf32", "bf16", "fp16"), argv)


if __name__ == "__main__":
    sys.exit(main())
