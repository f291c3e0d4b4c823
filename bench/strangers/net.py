"""Builds ONNX graphs in the style of an exporter, with weights as training leaves them."""
import contextlib
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from styles import EIGHTH, FIFTH, FOURTH, LATER, SEVENTH, SIXTH, STYLES, THIRD

BATCH = "B"  # stands for the batch in shapes


@dataclass
class Input:
    name: str
    dims: list     # BATCH or numbers
    kind: str      # a row of data.KINDS
    options: dict = field(default_factory=dict)


@dataclass
class Model:
    name: str
    style: str
    opset: int
    batch: object  # a number, or "N": open
    proto: onnx.ModelProto
    inputs: list


def trained(rng, shape, fan_in, gain=1.0):
    """Rows of unlike scale, heavy tails and a few strong directions, which independent normal numbers do not have."""
    w = rng.standard_normal(shape) * np.exp(0.3 * rng.standard_normal(shape))
    if len(shape) > 1:
        flat = w.reshape(shape[0], -1)
        flat += 0.7 * rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, flat.shape[1]))
        flat *= np.exp(0.3 * rng.standard_normal((shape[0], 1)))
        w = flat.reshape(shape)
    return (w * gain / np.sqrt(fan_in) / (np.sqrt(np.mean(w * w)) + 1e-12)).astype(np.float32)


class Net:
    def __init__(self, name, style, opset, batch, rng):
        self.name, self.style_name, self.style = name, style, {**STYLES, **LATER, **THIRD, **FOURTH, **FIFTH, **SIXTH, **SEVENTH, **EIGHTH}[style]
        self.opset, self.batch, self.rng = opset, batch, rng
        self.inputs, self.outputs, self.nodes, self.initializers = [], [], [], []
        self.counts, self.scopes, self.values, self.norms = {}, [], 0, []
        self.taken = set()  # names of values

    # ---- names ----

    @contextlib.contextmanager
    def scope(self, name):
        self.scopes.append(str(name))
        yield
        self.scopes.pop()

    def _name(self, pattern, op, **more):
        scope = "/".join(self.scopes) or "net"
        key = (scope, op)
        k = self.counts.get(key, 0)
        return pattern.format(op=op, low=op.lower(), scope=scope, dots=scope.replace("/", "."), k=k, _k=f"_{k}" if k else "",
                              n=len(self.nodes), m=self.values, **more)

    def _unique(self, name, taken):
        k, base = 1, name
        while name in taken:
            name, k = f"{base}_{k}", k + 1
        taken.add(name)
        return name

    # ---- values ----

    def input(self, name, dims, kind, **options):
        self.inputs.append(Input(name, list(dims), kind, options))
        return name

    def output(self, value, name):
        """The value becomes an output of this name."""
        for node in self.nodes:
            for names in (node.input, node.output):
                for i, x in enumerate(names):
                    if x == value:
                        names[i] = name
        self.outputs.append(name)

    def op(self, kind, *inputs, n=1, **attributes):
        outputs = []
        for i in range(n):
            outputs.append(self._unique(self._name(self.style.value, kind, i=i), self.taken))
            self.values += 1
        node = helper.make_node(kind, [x or "" for x in inputs], outputs, name=self._name(self.style.node, kind),
                                **{k: v for k, v in attributes.items() if v is not None})
        scope = "/".join(self.scopes) or "net"
        self.counts[scope, kind] = self.counts.get((scope, kind), 0) + 1
        self.nodes.append(node)
        return outputs[0] if n == 1 else outputs

    def const(self, value, dtype=np.float32):
        """A constant of the computation, as the exporter writes it."""
        array = np.asarray(value, dtype)
        if self.style.constants == "node":
            return self.op("Constant", value=numpy_helper.from_array(array))
        name = self._unique(f"const_{self.values}" if self.style_name != "dynamo" else f"val_{self.values}", self.taken)
        self.values += 1
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, *values):
        return self.const(values, np.int64)

    def weight(self, array, hint="weight"):
        name = self._unique(self._name(self.style.weight, "w", w=hint), self.taken)
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def trained(self, shape, fan_in, gain=1.0, hint="weight"):
        return self.weight(trained(self.rng, shape, fan_in, gain), hint)

    def vector(self, n, mean=0.0, std=0.1, hint="bias"):
        return self.weight((mean + std * self.rng.standard_normal(n)).astype(np.float32), hint)

    def pick(self, *options):
        return options[int(self.rng.integers(len(options)))]

    # ---- operators whose form depends on the operator set ----

    def _axes(self, kind, since, x, axes, **attributes):
        if axes is None:
            return self.op(kind, x, **attributes)
        if self.opset >= since:
            return self.op(kind, x, self.ints(*axes), **attributes)
        return self.op(kind, x, axes=list(axes), **attributes)

    def reduce(self, kind, x, axes, keep=1):
        return self._axes("Reduce" + kind, 13 if kind == "Sum" else 18, x, axes, keepdims=keep)

    def unsqueeze(self, x, *axes):
        return self._axes("Unsqueeze", 13, x, axes)

    def squeeze(self, x, *axes):
        return self._axes("Squeeze", 13, x, axes)

    def split(self, x, sizes, axis):
        if self.opset >= 13:
            return self.op("Split", x, self.ints(*sizes), n=len(sizes), axis=axis)
        return self.op("Split", x, n=len(sizes), axis=axis, split=list(sizes))

    def slice(self, x, axis, start, end, step=1):
        return self.op("Slice", x, self.ints(start), self.ints(end), self.ints(axis), self.ints(step))

    def pad(self, x, pads, mode="constant", value=0.0):
        return self.op("Pad", x, self.ints(*pads), self.const(value) if mode == "constant" else "", mode=mode)

    def clip(self, x, low, high):
        return self.op("Clip", x, self.const(low) if low is not None else "", self.const(high) if high is not None else "")

    def transpose(self, x, *perm):
        return self.op("Transpose", x, perm=list(perm))

    def concat(self, *xs, axis):
        return self.op("Concat", *xs, axis=axis)

    def add(self, a, b):
        return self.op("Add", a, b)

    def mul(self, a, b):
        return self.op("Mul", a, b)

    def topk(self, x, k, axis=-1, largest=1):
        return self.op("TopK", x, self.ints(k), n=2, axis=axis, largest=largest, sorted=1)

    def softmax(self, x, rank, axis=-1):
        """Before opset 13 an axis stands for all behind it: torch transposes, so do we."""
        if self.style.softmax == "decomposed":
            e = self.op("Exp", self.op("Sub", x, self.reduce("Max", x, [axis])))
            return self.op("Div", e, self.reduce("Sum", e, [axis]))
        if self.opset >= 13 or axis in (-1, rank - 1):
            return self.op("Softmax", x, axis=axis if self.opset >= 13 else rank - 1)
        perm = [i for i in range(rank) if i != axis % rank] + [axis % rank]
        y = self.op("Softmax", self.transpose(x, *perm), axis=rank - 1)
        return self.transpose(y, *np.argsort(perm).tolist())

    def reshape(self, x, dims, like=None):
        """dims: numbers, one -1, BATCH; `like` is a value whose first dimension is the batch (default: the first input)."""
        if BATCH not in dims or self.batch != "N":
            return self.op("Reshape", x, self.ints(*[self.batch if d == BATCH else d for d in dims]))
        form = self.style.shapes
        if form == "minus" and -1 in dims or form == "zero" and dims[0] != BATCH:
            form = "chain"
        if form == "minus":
            return self.op("Reshape", x, self.ints(*[-1 if d == BATCH else d for d in dims]))
        if form == "zero" and like is None:  # the caller says by `like` that x has no batch in front
            return self.op("Reshape", x, self.ints(*[0 if d == BATCH else d for d in dims]))
        shape = self.op("Shape", like or self.inputs[0].name)
        n = self.unsqueeze(self.op("Gather", shape, self.const(0, np.int64), axis=0), 0)
        return self.op("Reshape", x, self.concat(*[n if d == BATCH else self.ints(d) for d in dims], axis=0))

    # ---- the model ----

    def finish(self):
        def info(i):
            kind = TensorProto.INT64 if i.kind in ("tokens", "prompts", "lengths", "edges", "flags", "late_flags") else TensorProto.FLOAT
            return helper.make_tensor_value_info(i.name, kind, [self.batch if d == BATCH else d for d in i.dims])
        outputs = [onnx.ValueInfoProto(name=x) for x in self.outputs]
        graph = helper.make_graph(self.nodes, self.name, [info(i) for i in self.inputs], outputs, self.initializers)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], producer_name=self.style.producer,
                                  ir_version=8 if self.opset < 19 else 9 if self.opset < 21 else 10)
        inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
        for mine, its in zip(proto.graph.output, inferred.graph.output):
            mine.CopyFrom(its)
        return Model(self.name, self.style_name, self.opset, self.batch, proto, self.inputs)
