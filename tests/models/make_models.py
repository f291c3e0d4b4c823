#!/usr/bin/env python3
"""Writes the small models of tests/models/small: a few KB each, one for each way a model can be built.

    make_models.py [FOLDER]

They are in the tree, so that tests need nothing to make them; this says what they are.
"""
import os
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

HEAD = '<ir_version: 8, opset_import: ["" : 17], producer_name: "assay tests">\n'

LOOP = """
loop (float[2,3] x) => (float[2,3] y, float[4,2,3] steps)
<int64 trips = {4}, bool yes = {1}, float[3] gain = {0.5, 1.5, -0.75}> {
  scaled = Mul(x, gain)
  y, steps = Loop(trips, yes, scaled) <body = turn (int64 i, bool go, float[2,3] state)
      => (bool again, float[2,3] next, float[2,3] step) {
    again = Identity(go)
    n = Cast<to = 1>(i)
    moved = Add(state, n)
    squashed = Tanh(moved)
    next = Add(squashed, scaled)
    step = Relu(next)
  }>
}
"""

EXTERNAL = """
external (float[n,16] x) => (float[n,8] y) {
  a = MatMul(x, w1)
  b = Add(a, b1)
  c = Relu(b)
  shape = Shape(c)
  d = Reshape(c, shape)
  y = Gemm(d, w2, b2)
}
"""

QUANTIZED = """
quantized (float[1,3,8,8] x) => (float[1,4,8,8] y)
<float sx = {0.02}, uint8 zx = {128}, float sy = {0.05}, uint8 zy = {3}, int8[4] zw = {0, 0, 0, 0}> {
  xq = QuantizeLinear(x, sx, zx)
  xd = DequantizeLinear(xq, sx, zx)
  wd = DequantizeLinear<axis = 0>(w, sw, zw)
  c = Conv<pads = [1, 1, 1, 1]>(xd, wd, b)
  r = Relu(c)
  yq = QuantizeLinear(r, sy, zy)
  y = DequantizeLinear(yq, sy, zy)
}
"""

IF_SEQUENCE = """
if_sequence (float[2,3] x) => (float[rows,3] y, seq(float[2,3]) parts, int64 count) <int64 last = {-1}> {
  twice = Add(x, x)
  sum = ReduceSum<keepdims = 0>(x)
  zero = Constant<value_float = 0.0>()
  positive = Greater(sum, zero)
  start = SequenceConstruct(x, twice)
  parts = If(positive) <then_branch = longer () => (seq(float[2,3]) more) {
    both = Mul(x, twice)
    more = SequenceInsert(start, both)
  }, else_branch = other () => (seq(float[2,3]) same) {
    neg = Neg(twice)
    front = Constant<value_int = 0>()
    same = SequenceInsert(start, neg, front)
  }>
  count = SequenceLength(parts)
  tail = SequenceAt(parts, last)
  all = ConcatFromSequence<axis = 0>(parts)
  y = Concat<axis = 0>(all, tail)
}
"""

# Its squares pass 65504: unfaithful in fp16, mended by a few nodes in fp32.
CNN = """
cnn (float[1,3,8,8] image) => (float[1,5] scores) <float eps = {1e-3}, float scale = {400}> {
  [conv] c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(image, w)
  [bn] n = BatchNormalization(c, gamma, beta, mean, var)
  [relu] r = Relu(n)
  [pool] p = GlobalAveragePool(r)
  [flat] f = Flatten(p)
  [norm_scale] z = Mul(f, scale)
  [norm_square] q = Mul(z, z)
  [norm_mean] m = ReduceMean<axes = [-1]>(q)
  [norm_eps] e = Add(m, eps)
  [norm_root] s = Sqrt(e)
  [norm_div] d = Div(z, s)
  [head] h = MatMul(d, head)
  [softmax] scores = Softmax<axis = -1>(h)
}
"""

# Constants in all the places where they can be; `sizes` are floats that a shape is made of. places() adds
# `sparse`, which is sparse, and gives what `named` holds a name of its own.
PLACES = """
places (float[2,12] x) => (float[n,m] y) <float[12] sizes = {9, 9, 9, 9, 9, 9, 9, 9, 4, 6, 9, 9}, int64[1] from = {8}, int64[1] to = {10}> {
  picked = Slice(sizes, from, to)
  target = Cast<to = 7>(picked)
  listed = Constant<value_floats = [0.5, 0.25, -1.0, 2.0, 0.125, 1.5, -0.5, 3.0, 1.0, 0.75, -2.0, 4.0]>()
  named = Constant()
  a = Mul(x, listed)
  b = Add(a, sparse)
  shaped = Reshape(b, target)
  zero = Constant<value_float = 0.0>()
  sum = ReduceSum<keepdims = 0>(x)
  positive = Greater(sum, zero)
  y = If(positive) <then_branch = up () => (float[n,m] more) {
    step = Constant<value = float[4,6] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 0.5, 0.25, 0.125, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}>()
    more = Add(shaped, step)
  }, else_branch = down () => (float[n,m] less) {
    less = Mul(shaped, named)
  }>
}
"""


def places():
    m = model(PLACES)
    named = next(n for n in m.graph.node if n.output[0] == "named")
    named.attribute.append(helper.make_attribute("value", numpy_helper.from_array(draw(13, 4, 6), "inner name")))
    full = draw(14, 12)
    full[[0, 3, 4, 8]] = 0
    at = np.flatnonzero(full)
    values = numpy_helper.from_array(full[at], "sparse")
    m.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(at.astype(np.int64)), full.shape))
    return m


def model(text, **weights):
    m = parser.parse_model(HEAD + text.strip())
    for node in m.graph.node:  # the text form has no '/' in names
        node.name = node.name.replace("_", "/")
    m.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in weights.items())
    return m


def draw(seed, *shape, scale=0.5):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def models():
    yield "loop", model(LOOP), False
    yield "external", model(EXTERNAL, w1=draw(1, 16, 12), b1=draw(2, 12), w2=draw(3, 12, 8), b2=draw(4, 8)), True
    weights = np.random.default_rng(5).integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    yield "quantized", model(QUANTIZED, w=weights, b=draw(6, 4),
                             sw=np.array([0.004, 0.002, 0.003, 0.005], np.float32)), False
    yield "if_sequence", model(IF_SEQUENCE), False
    yield "cnn", model(CNN, w=draw(7, 6, 3, 3, 3), gamma=draw(8, 6) + 1, beta=draw(9, 6) + 1, mean=draw(10, 6),
                       var=np.abs(draw(11, 6)) + 0.5, head=draw(12, 6, 5)), False
    yield "places", places(), False


def main(folder):
    for name, m, external in models():
        path = os.path.join(folder, name + ".onnx")
        data = name + ".onnx.data"
        if external:
            if os.path.exists(os.path.join(folder, data)):
                os.remove(os.path.join(folder, data))
            onnx.save(m, path, save_as_external_data=True, location=data, size_threshold=64)
        else:
            onnx.save(m, path)
        # ONNX infers no shapes of what is computed from a sparse tensor.
        onnx.checker.check_model(path, full_check=not m.graph.sparse_initializer)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "small"))
