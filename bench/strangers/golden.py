"""What a framework would have given: runs of the intact model by ONNX Runtime in fp32, or by onnx's reference in float64."""
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from architectures import session


def in_brain(node):
    """Whether a cast gives brain floats, which NumPy does not have."""
    return node.op_type == "Cast" and any(a.name == "to" and a.i == TensorProto.BFLOAT16 for a in node.attribute)


def all_values(proto):
    """The model with every value as an output."""
    every = onnx.ModelProto.FromString(proto.SerializeToString())
    have = {o.name for o in every.graph.output}
    for node in every.graph.node:
        for name in node.output:
            if name and name not in have and not in_brain(node):
                every.graph.output.add().name = name
                have.add(name)
    return every


class Runner:
    """Runs a model; every: gives inner values, too; optimized: as ONNX Runtime does by itself, with everything fused."""

    def __init__(self, proto, every=False, optimized=False):
        self.session = session(all_values(proto) if every else proto, optimized)
        self.names = [o.name for o in self.session.get_outputs()]
        self.inputs = {i.name: i.type for i in self.session.get_inputs()}

    def __call__(self, feed):
        feed = {k: v.astype(np.float16) if self.inputs[k] == "tensor(float16)" else v for k, v in feed.items() if k in self.inputs}
        return dict(zip(self.names, self.session.run(None, feed)))


def to_double(proto):
    """Every float of the model as float64."""
    proto = onnx.ModelProto.FromString(proto.SerializeToString())

    def tensor(t):
        if t.data_type == TensorProto.FLOAT:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name))
    for t in proto.graph.initializer:
        tensor(t)
    for node in proto.graph.node:
        for a in node.attribute:
            if a.name == "value":
                tensor(a.t)
            if a.name == "to" and node.op_type == "Cast" and a.i == TensorProto.FLOAT:
                a.i = TensorProto.DOUBLE
    for v in [*proto.graph.input, *proto.graph.output]:
        if v.type.tensor_type.elem_type == TensorProto.FLOAT:
            v.type.tensor_type.elem_type = TensorProto.DOUBLE
    del proto.graph.value_info[:]
    return proto


def double_values(proto, feed, fp32):
    """Values in float64, or None where the reference cannot, or disagrees with ONNX Runtime by more than rounding."""
    double = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in feed.items()}
    return reference_values(to_double(proto), double, fp32)


def reference_values(proto, feed, fp32):
    """Values by onnx's reference, or None as above."""
    try:
        every = all_values(proto)
        values = ReferenceEvaluator(every).run(None, feed)
    except Exception:  # noqa: BLE001: whatever the reference does not know
        return None
    values = dict(zip([o.name for o in every.graph.output], values))
    if any(difference(values[k], v) > 1e-3 for k, v in fp32.items() if k in values):
        return None
    return {k: np.asarray(values[k]) for k in fp32 if k in values}


def difference(a, b):
    """Largest difference over the largest magnitude of b; of integers, and of other shapes or NaN in one only: infinity."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return np.inf
    if b.dtype.kind not in "f" or b.size == 0:
        return 0.0 if np.array_equal(a, b) else np.inf
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return np.inf
    good = np.isfinite(b)
    if not good.any():
        return 0.0
    return float(np.abs(a - b)[good].max() / (np.abs(b[good]).max() + 1e-30))
