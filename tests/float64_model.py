"""A model in float64, for onnx.reference: what truth is compared with.

float64_model(model) gives a copy in which every float32, float16 and bfloat16 has become float64: weights
and constants keep their stored values exactly; types that attributes name (Cast's `to`, `dtype` ...) and declared
types change with them. Formats of 8 bits and fewer, integers and quantization stay as written, as they
do in truth: QuantizeLinear rounds the float64 quotient to its integer.

Where the reference stands in the way of that, it is mended here: its Erf returns float32 whatever it is given (here
math.erf in float64); it calculates with float attributes in float32 (here float64, of the same value); it has no
DequantizeLinear below version 19; its Loop takes a condition that is left out for false, and lays scan outputs end
to end where the standard stacks them.
"""
import math

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator, op_run
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_erf, op_loop

WIDENED = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
# Attributes whose number is an element type, and the operators that make float32 without being told so.
TYPE_ATTRIBUTES = {"to", "dtype", "output_dtype", "output_datatype", "stash_type", "softmax_precision"}
FLOAT_BY_DEFAULT = {**dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"), "output_datatype"),
                    **dict.fromkeys(("RandomNormal", "RandomUniform", "SequenceEmpty"), "dtype")}


def _widen_tensor(t):
    if t.data_type in WIDENED:
        t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name))


def _widen_type(t):
    kind = t.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        leaf = getattr(t, kind)
        if leaf.elem_type in WIDENED:
            leaf.elem_type = TensorProto.DOUBLE
    elif kind in ("sequence_type", "optional_type"):
        _widen_type(getattr(t, kind).elem_type)
    elif kind == "map_type":
        _widen_type(t.map_type.value_type)


def _widen_constant(a):
    """Constant's value_float and value_floats are float32 by definition: they become tensors."""
    if a.name not in ("value_float", "value_floats") or a.ref_attr_name:
        return
    value = np.array(a.f if a.name == "value_float" else list(a.floats), np.float64)
    a.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(value)))


def _widen_node(n):
    if n.op_type == "Constant" and n.domain in ("", "ai.onnx"):
        for a in n.attribute:
            _widen_constant(a)
    given = {a.name for a in n.attribute}
    if n.op_type == "ConstantOfShape" and "value" not in given:
        n.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))
    if n.op_type in FLOAT_BY_DEFAULT and FLOAT_BY_DEFAULT[n.op_type] not in given:
        n.attribute.append(helper.make_attribute(FLOAT_BY_DEFAULT[n.op_type], int(TensorProto.DOUBLE)))
    for a in n.attribute:
        if a.name in TYPE_ATTRIBUTES and a.type == AttributeProto.INT and a.i in WIDENED:
            a.i = TensorProto.DOUBLE
        for t in [a.t, *a.tensors]:
            _widen_tensor(t)
        for s in [a.sparse_tensor, *a.sparse_tensors]:
            _widen_tensor(s.values)
        for t in [a.tp, *a.type_protos]:
            _widen_type(t)
        for g in [a.g, *a.graphs]:
            _widen_graph(g)


def _widen_graph(g):
    for t in g.initializer:
        _widen_tensor(t)
    for s in g.sparse_initializer:
        _widen_tensor(s.values)
    for v in [*g.input, *g.output, *g.value_info]:
        _widen_type(v.type)
    for n in g.node:
        _widen_node(n)


def _densify(g):
    """ONNX's evaluator knows no sparse initializers."""
    for s in g.sparse_initializer:
        dense = np.zeros(list(s.dims), numpy_helper.to_array(s.values).dtype)
        at = numpy_helper.to_array(s.indices)
        dense[tuple(at.T) if at.ndim == 2 else np.unravel_index(at, dense.shape)] = numpy_helper.to_array(s.values)
        g.initializer.append(numpy_helper.from_array(dense, s.values.name))
    del g.sparse_initializer[:]


def float64_model(model):
    """The model with every float of 16 bits or more as float64."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    _densify(out.graph)
    _widen_graph(out.graph)
    for f in out.functions:
        for n in f.node:
            _widen_node(n)
    return out


def _make_erf(self, node, run_params):
    OpRun.__init__(self, node, run_params)
    self._erf = np.vectorize(math.erf, otypes=[np.float64])


_convert_attribute = op_run._attribute_conversion_function


def _widen_attribute(kind):
    if kind == AttributeProto.FLOAT:
        return lambda a: np.float64(a.f)
    if kind == AttributeProto.FLOATS:
        return lambda a: [np.float64(f) for f in a.floats]
    return _convert_attribute(kind)


# In place: what functions of the standard (Gelu, GroupNormalization) are made of is reached too.
op_erf.Erf.__init__ = _make_erf
op_run._attribute_conversion_function = _widen_attribute


class DequantizeLinear(OpRun):
    """Versions 10 and 13: (x - zero point) * scale, scale and zero point along an axis."""

    def _run(self, x, scale, zero_point=None, axis=1, **newer):
        shape = [1] * x.ndim
        if scale.ndim == 1:
            shape[axis] = -1
        zero = 0 if zero_point is None else zero_point.reshape(shape).astype(np.float64)
        return ((x.astype(np.float64) - zero) * scale.reshape(shape),)


class Loop(op_loop.Loop):
    def _run(self, trips, condition, *state, context=None, body=None, attributes=None, bindings=None):
        state, scans, count, goes = list(state), [[] for _ in range(self.K)], 0, condition
        while (trips is None or count < trips) and (condition is None or goes):
            given = [np.array(count, np.int64), np.array(condition is None or goes), *state]
            feeds = {**(context or {}), **dict(zip(self.body.input_names, given))}
            goes, *outputs = self._run_body(feeds, attributes=attributes, bindings=bindings)
            state, count = outputs[:self.N], count + 1
            for scan, output in zip(scans, outputs[self.N:]):
                scan.append(output)
        return (*state, *(np.stack(s) for s in scans))


def _widen_array(x):
    if isinstance(x, (list, tuple)):
        return [_widen_array(item) for item in x]
    if x is None:
        return None
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.name in ("float32", "float16", "bfloat16") else x


def run_float64(model, samples):
    """onnx.reference's outputs of the model in float64: {name: array}; samples are joined along the first axis."""
    old = any(o.domain in ("", "ai.onnx") and o.version < 19 for o in model.opset_import)
    reference = ReferenceEvaluator(float64_model(model), new_ops=[Loop, DequantizeLinear] if old else [Loop])
    with np.errstate(all="ignore"):
        runs = [reference.run(None, {k: _widen_array(v) for k, v in s.items()}) for s in samples]
    return {name: join([r[i] for r in runs]) for i, name in enumerate(reference.output_names)}


def join(parts):
    return parts[0] if len(parts) == 1 else np.concatenate([np.atleast_1d(p) for p in parts])


def split_samples(model, arrays):
    """Samples of an npz, as `assay run` takes them: several where a fixed first dimension divides the array's."""
    constants = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in constants]
    found = {i.name: arrays[i.name] for i in inputs if i.name in arrays}
    n = 1
    for i in inputs:
        dims = i.type.tensor_type.shape.dim
        if i.name in found and len(dims) and dims[0].dim_value:
            n = max(n, found[i.name].shape[0] // dims[0].dim_value)
    return [{k: v[s * len(v) // n:(s + 1) * len(v) // n] if n > 1 else v for k, v in found.items()} for s in range(n)]


def largest_difference(ours, theirs):
    """The largest difference over the largest finite magnitude; NaN and infinities must stand in the same places."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        raise AssertionError(f"shape {ours.shape} instead of {theirs.shape}")
    if theirs.dtype.kind not in "fc" or not theirs.size:
        return 0.0 if np.array_equal(ours, theirs) else float("inf")
    finite = np.isfinite(theirs)
    if not np.array_equal(np.where(finite, 0, ours), np.where(finite, 0, theirs), equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    distance, scale = np.abs(ours - theirs)[finite].max(), np.abs(theirs)[finite].max()
    return float(distance / scale) if scale else (0.0 if distance == 0 else float("inf"))
