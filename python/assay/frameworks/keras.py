"""Keras and TensorFlow models: exported by tf2onnx, run, and checked against what TensorFlow itself gives."""
from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, List, Tuple

import numpy as np

from ..errors import InvalidArgument
from ._common import ExportError, check_export, first_reason, loaded, need, value_shapes
from ._result import Arrays, Export, FrameworkCheck
from ._scopes import Shape, fits
from ._trees import flatten

if TYPE_CHECKING:
    from .. import Model

# Calls of layers: (number of the layer, what it gave).
Calls = List[Tuple[int, Any]]


def check_keras(model: Any, inputs: Any, *, precision: str | None = None, target: str = "emu", opset: int | None = None,
                dynamic_batch: bool = False, inner: bool = True, **options: Any) -> FrameworkCheck:
    """Exports a Keras model and says whether the export is faithful, and whether the engine is.

    The model runs in TensorFlow with training=False, and what its layers give is golden for the check. Its variables are
    left as they were.

    model          keras.Model or keras.Layer (of Keras's TensorFlow backend), or a function of tensors
    inputs         an array, a tuple of them, or a dict by the inputs' names; a list of these is a sample each. Dimensions
                   that differ between samples are dynamic in the ONNX model.
    precision      of float32 values in the engine: "fp16", "bf16", ...; None: as the model has them
    target         "emu" (the format itself), "cpu", ... as in assay.check
    opset          of the ONNX model; None: tf2onnx's choice
    dynamic_batch  whether the first dimension of every input is dynamic
    inner          whether values within the model are compared, too
    options        those of assay.check

    Raises ExportError where the exporter cannot do it, InvalidArgument where the inputs do not fit.
    """
    return check_export(lambda: _export(model, inputs, opset, dynamic_batch, inner), precision=precision, target=target, **options)


def from_keras(model: Any, inputs: Any, *, opset: int | None = None, dynamic_batch: bool = False) -> Model:
    """A Keras model as an assay.Model; arguments as of check_keras."""
    return loaded(_export(model, inputs, opset, dynamic_batch, False).proto)


def _export(model: Any, inputs: Any, opset: int | None, dynamic_batch: bool, inner: bool) -> Export:
    tf = need("tensorflow", "keras")
    tf2onnx = need("tf2onnx", "keras")
    keras = need("keras", "keras")
    if keras.backend.backend() != "tensorflow":
        raise InvalidArgument(f"Keras runs on {keras.backend.backend()}, and tf2onnx reads TensorFlow's graphs: set KERAS_BACKEND=tensorflow "
                              "before keras is imported (models of its torch backend are modules: check_torch)")
    if not callable(model):
        raise InvalidArgument(f"model is a {type(model).__name__}; pass a keras.Model, a layer or a function of tensors")
    samples = [_Sample(model, sample) for sample in (list(inputs) if isinstance(inputs, list) else [inputs])]
    if not samples:
        raise InvalidArgument("inputs is an empty list; pass at least one sample")
    layers = _layers(model, keras) if inner else []
    with _as_it_was(model):
        ran = []
        for sample in samples:
            with _listening(layers) as calls:
                ran.append((_tensors(sample.call(model)), list(calls)))
        with _listening(layers) as traced:
            proto = _convert(model, samples, opset, dynamic_batch)
    names = [value.name for value in proto.graph.output]
    export = Export(f"Keras {keras.__version__} on TensorFlow {tf.__version__}", f"tf2onnx {tf2onnx.__version__}", proto,
                    [_fed(proto, sample) for sample in samples], [dict(zip(names, map(_numpy, tensors))) for tensors, _ in ran],
                    [{} for _ in ran])
    if inner:
        shapes = value_shapes(proto)
        taken = {*names, *export.inputs[0]}
        export.inner = [_inner(list(traced), calls, shapes, taken) for _, calls in ran]
    return export


def _convert(model: Any, samples: Sequence[_Sample], opset: int | None, dynamic_batch: bool) -> Any:
    tf = need("tensorflow", "keras")
    tf2onnx = need("tf2onnx", "keras")
    onnx = need("onnx", "keras")
    is_tensor = tf.is_tensor
    first = samples[0]
    signature = _signature(tf, samples, dynamic_batch)

    def flat(*given: Any) -> list[Any]:
        return [tensor for _, tensor in flatten(first.call(model, given), is_tensor)]

    logger = logging.getLogger("tf2onnx")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # what it cannot do is raised below
    try:
        proto, _ = tf2onnx.convert.from_function(tf.function(flat), input_signature=signature, opset=opset)
    except (KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        raise ExportError(f"{type(model).__name__} cannot be exported (tf2onnx): {first_reason(error)}") from error
    finally:
        logger.setLevel(level)
    unknown = {node.op_type: node.name for node in proto.graph.node if node.domain in ("", "ai.onnx") and not onnx.defs.has(node.op_type)}
    if unknown:
        raise ExportError(f"{type(model).__name__} cannot be exported: tf2onnx has no ONNX form of "
                          + ", ".join(f"{op} (node '{name}')" for op, name in sorted(unknown.items())))
    return proto


class _Sample:
    """What a model is called with: names and arrays, and the form in which it takes them."""

    def __init__(self, model: Any, sample: Any) -> None:
        self.form = dict if isinstance(sample, Mapping) else list if isinstance(sample, tuple) else None
        if isinstance(sample, Mapping):
            self.names, values = [str(name) for name in sample], list(sample.values())
        else:
            values = list(sample) if isinstance(sample, tuple) else [sample]
            declared = [str(value.name).split(":")[0] for value in getattr(model, "inputs", None) or []]
            self.names = declared if len(declared) == len(values) else [f"input_{i}" for i in range(len(values))]
        self.training = _takes_training(model)
        self.arrays = [np.asarray(value) for value in values]
        if any(array.dtype == object for array in self.arrays):
            raise InvalidArgument("inputs are not arrays; pass an array, a tuple of arrays, a dict by name, or a list of these, a sample each")
        declared_types = [str(value.dtype) for value in getattr(model, "inputs", None) or []]
        if len(declared_types) == len(self.arrays) and self.form is not dict:
            self.arrays = [array.astype(kind) if array.dtype.kind == np.dtype(kind).kind else array
                           for array, kind in zip(self.arrays, declared_types)]

    def call(self, model: Any, tensors: Sequence[Any] | None = None) -> Any:
        given = self.constants() if tensors is None else list(tensors)
        whole: Any = given[0]
        if self.form is not None:
            whole = dict(zip(self.names, given)) if self.form is dict else given
        return model(whole, training=False) if self.training else model(whole)

    def constants(self) -> list[Any]:
        tf = need("tensorflow", "keras")
        return [tf.constant(array) for array in self.arrays]


def _takes_training(model: Any) -> bool:
    keras = need("keras", "keras")
    return isinstance(model, keras.Model) or (isinstance(model, keras.Layer) and bool(getattr(model, "_call_has_training_arg", False)))


def _is_tensor(value: Any) -> bool:
    return bool(need("tensorflow", "keras").is_tensor(value))


def _tensors(result: Any) -> list[Any]:
    found = [tensor for _, tensor in flatten(result, _is_tensor)]
    if not found:
        raise InvalidArgument(f"the model gives no tensors, but {type(result).__name__}")
    return found


def _numpy(tensor: Any) -> np.ndarray[Any, Any]:
    return np.array(tensor.numpy())


def _signature(tf: Any, samples: Sequence[_Sample], dynamic_batch: bool) -> list[Any]:
    specs = []
    for i, (name, array) in enumerate(zip(samples[0].names, samples[0].arrays)):
        shapes = [sample.arrays[i].shape for sample in samples]
        if any(len(shape) != array.ndim for shape in shapes):
            raise InvalidArgument(f"input '{name}' has ranks {sorted({len(shape) for shape in shapes})} in its samples; one model has one rank")
        shape = [None if (k == 0 and dynamic_batch) or len({s[k] for s in shapes}) > 1 else array.shape[k] for k in range(array.ndim)]
        specs.append(tf.TensorSpec(shape, array.dtype, name=name))
    return specs


def _fed(proto: Any, sample: _Sample) -> Arrays:
    """tf2onnx keeps inputs' order, and drops those that nothing reads."""
    known = [value.name for value in proto.graph.input]
    by_name = dict(zip(sample.names, sample.arrays))
    if len(known) == len(sample.arrays):
        return dict(zip(known, sample.arrays))
    return {name: by_name[name.split(":")[0]] for name in known}


def _layers(model: Any, keras: Any) -> list[Any]:
    if not isinstance(model, keras.Layer):
        return []
    return [layer for layer in model._flatten_layers(include_self=False)]


@contextlib.contextmanager
def _listening(layers: Sequence[Any]) -> Iterator[Calls]:
    """Within: what each layer gives in each of its calls is noted, in order."""
    calls: Calls = []

    def wrap(number: int, call: Callable[..., Any]) -> Callable[..., Any]:
        def heard(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            if _is_tensor(result):
                calls.append((number, result))
            return result
        return heard

    try:
        for number, layer in enumerate(layers):
            object.__setattr__(layer, "call", wrap(number, layer.call))
        yield calls
    finally:
        for layer in layers:
            layer.__dict__.pop("call", None)


@contextlib.contextmanager
def _as_it_was(model: Any) -> Iterator[None]:
    kept = [(variable, np.array(variable)) for variable in getattr(model, "non_trainable_variables", [])]
    try:
        yield
    finally:
        for variable, value in kept:
            if not np.array_equal(np.array(variable), value):
                variable.assign(value)


def _inner(traced: Calls, calls: Calls, shapes: dict[str, Shape], taken: set[str]) -> Arrays:
    """What layers gave, by the tensors' names in the graph, which tf2onnx keeps; those that it turned are turned likewise.

    Layers that were not called as often in the graph (a cell within a loop) are left out, and so are values whose layout
    their shape does not show.
    """
    of_graph: dict[int, list[Any]] = defaultdict(list)
    of_run: dict[int, list[Any]] = defaultdict(list)
    for number, tensor in traced:
        of_graph[number].append(tensor)
    for number, tensor in calls:
        of_run[number].append(tensor)
    found: Arrays = {}
    for number, symbols in of_graph.items():
        if len(symbols) != len(of_run[number]):
            continue
        for symbol, tensor in zip(symbols, of_run[number]):
            array = _laid_out(_numpy(tensor), shapes.get(getattr(symbol, "name", "")))
            if array is not None and symbol.name not in taken:
                found[symbol.name] = array
    return found


def _laid_out(array: np.ndarray[Any, Any], shape: Shape | None) -> np.ndarray[Any, Any] | None:
    """The array with channels first if the model's value has them so; None if its shape does not tell."""
    as_is, turned = fits(shape, array.shape), np.moveaxis(array, -1, 1) if array.ndim > 2 else array
    if array.ndim < 3 or not fits(shape, turned.shape):
        return array if as_is else None
    return None if as_is else np.ascontiguousarray(turned)
