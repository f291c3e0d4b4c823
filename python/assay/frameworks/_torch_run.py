"""Runs a PyTorch module as its exporter will see it, listens to its layers, and leaves it as it was."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ._common import need
from ._scopes import Call
from ._trees import flatten

# PyTorch's types that numpy lacks, and integers of their size, through which their bits go.
_BY_BITS = {"bfloat16": "int16", "float8_e4m3fn": "int8", "float8_e4m3fnuz": "int8", "float8_e5m2": "int8",
            "float8_e5m2fnuz": "int8", "float8_e8m0fnu": "int8"}


def is_tensor(value: Any) -> bool:
    return isinstance(value, need("torch", "torch").Tensor)


def to_numpy(tensor: Any) -> np.ndarray[Any, Any]:
    """A copy of a tensor, wherever and however it is stored; complex numbers as pairs, which ONNX models compute with."""
    torch = need("torch", "torch")
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    tensor = tensor.resolve_neg().cpu().contiguous()
    name = str(tensor.dtype).split(".")[1]
    if name in _BY_BITS:
        ml_dtypes = need("ml_dtypes", "torch")
        bits = tensor.view(getattr(torch, _BY_BITS[name])).numpy().copy()
        return bits.view(getattr(ml_dtypes, name))  # type: ignore[no-any-return]
    return np.array(tensor.numpy())


def _device(module: Any) -> Any:
    for tensor in (*module.parameters(), *module.buffers()):
        return tensor.device
    return need("torch", "torch").device("cpu")


class Arguments:
    """A call's positional and keyword arguments, these in the order of forward()'s parameters, on the module's device."""

    def __init__(self, module: Any, sample: Any) -> None:
        import inspect

        tree = need("torch.utils._pytree", "torch")
        device = _device(module)
        args: tuple[Any, ...] = ()
        kwargs: dict[str, Any] = {}
        if isinstance(sample, Mapping):
            kwargs = dict(sample)
        else:
            args = tuple(sample) if isinstance(sample, tuple) else (sample,)
        signature = inspect.signature(module.forward)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidArgument(f"the inputs do not fit {type(module).__name__}.forward{signature}: {error}; pass a tensor, a tuple "
                                  "of arguments, a dict of keyword arguments, or a list of these, one for each sample") from error
        order = [name for name in signature.parameters if name in kwargs]
        kwargs = {name: kwargs[name] for name in [*order, *(name for name in kwargs if name not in order)]}
        torch = need("torch", "torch")

        def move(leaf: Any) -> Any:
            if isinstance(leaf, np.ndarray):
                leaf = torch.from_numpy(np.ascontiguousarray(leaf))
            return leaf.detach().to(device) if is_tensor(leaf) else leaf

        self.args: tuple[Any, ...] = tree.tree_map(move, args)
        self.kwargs: dict[str, Any] = tree.tree_map(move, kwargs)
        self.leaves: list[Any] = tree.tree_flatten((self.args, self.kwargs))[0]

    def copies(self) -> Arguments:
        """Others with the same numbers: a module may write into what it is given."""
        tree = need("torch.utils._pytree", "torch")
        other = object.__new__(Arguments)
        other.args, other.kwargs = tree.tree_map(lambda leaf: leaf.clone() if is_tensor(leaf) else leaf, (self.args, self.kwargs))
        other.leaves = tree.tree_flatten((other.args, other.kwargs))[0]
        return other


@contextlib.contextmanager
def as_it_was(module: Any) -> Iterator[Callable[[], None]]:
    """Within: eval mode, random numbers that nobody misses. After: modes, buffers and generators as before.

    Gives a function that puts the buffers back at once.
    """
    torch = need("torch", "torch")
    modes = [(layer, layer.training) for layer in module.modules()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    attributes = [(layer, name, value) for layer in module.modules() for name, value in layer._buffers.items()]

    def restore() -> None:
        with torch.no_grad():
            for layer, name, value in attributes:
                layer._buffers[name] = value
            for buffer, value in buffers:
                if buffer.shape != value.shape or not torch.equal(buffer, value):
                    buffer.copy_(value)

    try:
        with torch.random.fork_rng():
            module.eval()
            yield restore
    finally:
        restore()
        for layer, training in modes:
            layer.training = training


@contextlib.contextmanager
def flat_outputs(module: Any, sample_output: Any) -> Iterator[None]:
    """Within: forward() gives a tuple of tensors where what it gives is of classes that the exporter does not know."""
    tree = need("torch.utils._pytree", "torch")
    if all(is_tensor(leaf) or leaf is None for leaf in tree.tree_flatten(sample_output)[0]):
        yield
        return
    forward = module.forward
    had_own = "forward" in module.__dict__

    @functools.wraps(forward)
    def flat(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return tuple(tensor for _, tensor in flatten(forward(*args, **kwargs), is_tensor))

    module.forward = flat
    try:
        yield
    finally:
        if had_own:
            module.forward = forward
        else:
            del module.forward


def run(module: Any, arguments: Arguments, listen: bool) -> tuple[Any, list[Call]]:
    """What the module gives, and what its layers gave in the order of their calls, if listen."""
    calls: list[Call] = []
    alive: list[Any] = []  # so that no two tensors have one identity

    def heard(path: str, given: Sequence[Any], result: Any) -> None:
        came_in = [tensor for _, tensor in flatten(given, is_tensor)]
        came_out = [tensor for _, tensor in flatten(result, is_tensor)]
        alive.extend((*came_in, *came_out))
        calls.append(Call(path, [to_numpy(tensor) for tensor in came_out], frozenset(map(id, came_in)), frozenset(map(id, came_out))))

    hooks = []
    try:
        for path, layer in module.named_modules():
            if path and listen and not _is_script(layer):
                hooks.append(layer.register_forward_hook(lambda _, given, result, path=path: heard(path, given, result)))
        arguments = arguments.copies()
        with need("torch", "torch").no_grad():
            return module(*arguments.args, **arguments.kwargs), calls
    finally:
        for hook in hooks:
            hook.remove()


def _is_script(layer: Any) -> bool:
    return isinstance(layer, need("torch", "torch").jit.ScriptModule)
