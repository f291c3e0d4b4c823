"""PyTorch's exporters to ONNX, and which layer each value of what they make belongs to."""
from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import InvalidArgument
from ._common import ExportError, first_reason, need
from ._scopes import Step
from ._torch_run import Arguments, is_tensor, to_numpy

EXPORTERS = ("dynamo", "torchscript")


@dataclasses.dataclass
class Exported:
    """A module as ONNX.

    proto    the model
    feed     what a call's arguments are as inputs of the model: leaves by name; others are baked in
    steps    nodes with the layers that they are of
    program  the exporter's own graph, whose values the model's are called after; torchscript: None
    """

    proto: Any
    feed: Callable[[Arguments], dict[str, Any]]
    steps: list[Step]
    program: Any = None


def choose(exporter: str | None) -> str:
    """The exporter to use: dynamo, where this PyTorch has it."""
    import inspect

    torch = need("torch", "torch")
    has_dynamo = hasattr(torch.onnx, "ONNXProgram") and "dynamo" in inspect.signature(torch.onnx.export).parameters
    if exporter is None:
        return "dynamo" if has_dynamo else "torchscript"
    if exporter not in EXPORTERS:
        raise InvalidArgument(f"exporter is '{exporter}'; it is one of {', '.join(EXPORTERS)}")
    if exporter == "dynamo" and not has_dynamo:
        raise InvalidArgument(f"PyTorch {torch.__version__} has no dynamo exporter (2.5 and later do); pass exporter='torchscript'")
    return exporter


def export(module: Any, arguments: Arguments, exporter: str, options: Mapping[str, Any]) -> Exported:
    """Exports a module that is in eval mode. options: of torch.onnx.export."""
    torch = need("torch", "torch")
    need("onnx", "torch")
    if exporter == "dynamo":
        need("onnxscript", "torch")
    with quiet():
        try:
            if exporter == "dynamo":
                with torch.no_grad():
                    return _dynamo(module, arguments.copies(), options)
            # With gradients off, attention takes a fused path that this exporter does not know.
            with torch.enable_grad(), _no_dump():
                return _torchscript(module, arguments.copies(), options)
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:
            raise ExportError(_reason(module, exporter, error)) from error


def _dynamo(module: Any, arguments: Arguments, options: Mapping[str, Any]) -> Exported:
    torch = need("torch", "torch")
    program = torch.onnx.export(module, arguments.args, kwargs=arguments.kwargs, dynamo=True, verbose=False, **options)
    proto, exported = program.model_proto, program.exported_program
    user = [spec.arg for spec in exported.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    names = [getattr(arg, "name", None) for arg in user]
    if "input_names" in options:  # they go to the first inputs, in order
        given = iter(options["input_names"])
        names = [next(given, name) for name in names]
    return Exported(proto, lambda sample: _by_name(proto, names, sample.leaves), list(_fx_steps(exported.graph)), exported)


def _by_name(proto: Any, names: Sequence[str | None], leaves: Sequence[Any]) -> dict[str, Any]:
    known = {value.name for value in proto.graph.input}
    return {name: leaf for name, leaf in zip(names, leaves) if name in known}  # type: ignore[misc]


def fx_values(program: Any, arguments: Arguments) -> dict[str, Any]:
    """What each node of an exported program gives in PyTorch: {value of the model: tensor}; the outputs under ""."""
    torch = need("torch", "torch")
    found: dict[str, Any] = {}

    class Listening(torch.fx.Interpreter):  # type: ignore[name-defined, misc]
        def run_node(self, n: Any) -> Any:
            result = super().run_node(n)
            if n.op == "call_function" and is_tensor(result):
                found[n.name] = to_numpy(result)  # a copy: nodes after it may write into it
            return result

    with torch.no_grad():
        found[""] = Listening(program.module()).run(*arguments.copies().leaves)
    return found


def _fx_steps(graph: Any) -> Iterator[Step]:
    """The exporter calls values by the nodes of the exported program's graph that made them."""
    for node in graph.nodes:
        if node.op == "call_function":
            stack = list((node.meta.get("nn_module_stack") or {}).values())
            layer = stack[-1][0] if stack else ""
            yield Step(layer, [source.name for source in node.all_input_nodes], [node.name])
        elif node.op == "output":
            yield Step("", [source.name for source in node.all_input_nodes], [])


def _torchscript(module: Any, arguments: Arguments, options: Mapping[str, Any]) -> Exported:
    import inspect

    torch = need("torch", "torch")
    onnx = need("onnx", "torch")
    keywords = dict(options)
    parameters = inspect.signature(torch.onnx.export).parameters
    if "dynamo" in parameters:
        keywords["dynamo"] = False
    args: Any = arguments.args
    if "kwargs" in parameters:
        keywords["kwargs"] = arguments.kwargs
    elif arguments.kwargs or (args and isinstance(args[-1], dict)):
        args = (*args, arguments.kwargs)  # older ones take them from there
    filled = _filled(module, arguments)
    keywords.setdefault("input_names", [name for name, _ in filled])
    file = io.BytesIO()
    torch.onnx.export(module, args, file, **keywords)
    proto = onnx.load_from_string(file.getvalue())
    names = list(keywords["input_names"])
    return Exported(proto, lambda sample: _by_name(proto, names, [leaf for _, leaf in _filled(module, sample)]),
                    list(onnx_steps(module, proto.graph)))


def _filled(module: Any, arguments: Arguments) -> list[tuple[str, Any]]:
    """The older exporter's inputs: tensors and numbers, those that are defaults among them; called by their parameters."""
    import inspect

    tree = need("torch.utils._pytree", "torch")
    bound = inspect.signature(module.forward).bind(*arguments.args, **arguments.kwargs)
    bound.apply_defaults()
    found = []
    for parameter, value in bound.arguments.items():
        leaves = [leaf for leaf in tree.tree_flatten(value)[0] if is_tensor(leaf) or type(leaf) in (int, float)]
        found += [(parameter if len(leaves) == 1 else f"{parameter}_{i}", leaf) for i, leaf in enumerate(leaves)]
    return found


def onnx_steps(module: Any, graph: Any) -> Iterator[Step]:
    """Nodes of the older exporter, which calls them by the layers around them: '/encoder/encoder.0/norm/Add_1'.

    It merges transpositions of a layer with those after it. What only these read is not shown to leave a layer.
    """
    readers: dict[str, set[str]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, set()).add(node.op_type)
    for node in graph.node:
        shown = [name for name in node.output if readers.get(name) != {"Transpose"}]
        yield Step(_layer_of(module, node.name), list(node.input), shown)


def _layer_of(module: Any, node: str) -> str:
    """'encoder.0.norm' of '/encoder/encoder.0/norm/Add_1'.

    A layer in a Sequential is called by its container as well ('encoder.0'), one in a ModuleList by both, in one word.
    """
    at, path, own = module, "", ""
    for word in node.strip("/").split("/")[:-1] if node.startswith("/") else []:
        step = word[len(own) + 1:] if own and word.startswith(own + ".") else word
        try:
            at = at.get_submodule(step)
        except AttributeError:
            break
        path, own = (f"{path}.{step}" if path else step), word
    return path


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Exporters' warnings and log lines are about themselves; what matters to the user is an error or a difference."""
    import logging

    loud: list[Any] = [*logging.getLogger("torch").handlers, *map(logging.getLogger, ("torch.onnx", "torch.utils.flop_counter"))]
    levels = [(noisy, noisy.level) for noisy in loud]
    try:
        for noisy in loud:
            noisy.setLevel(logging.CRITICAL)
        nowhere = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        for noisy, level in levels:
            noisy.setLevel(level)


@contextlib.contextmanager
def _no_dump() -> Iterator[None]:
    """The older exporter writes its whole graph to the process's standard output when it fails, past Python."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _reason(module: Any, exporter: str, error: BaseException) -> str:
    text = first_reason(error)
    other = [name for name in EXPORTERS if name != exporter][0]
    hint = f"; exporter='{other}' may do"
    if "data-dependent" in text:
        hint = ("; what forward() does depends on the numbers in a tensor: write it with torch.where or torch.cond"
                + (", or pass exporter='torchscript', which keeps the branch that these inputs take" if exporter == "dynamo" else ""))
    return f"{type(module).__name__} cannot be exported ({exporter}): {text}{hint}"
