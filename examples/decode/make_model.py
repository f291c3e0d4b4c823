#!/usr/bin/env python3
"""Writes a GPT-2 with a cache of keys and values, with random weights, in the form in which Hugging Face optimum exports
it: inputs input_ids, past_key_values.N.key and .value, attention_mask and position_ids; outputs logits, present.N.key
and .value. Beside it, with --whole, the same model without a cache. With --operator attention is ONNX's operator Attention
(operator set 23) in place of its nodes.

    make_model.py model.onnx [--layers 4] [--hidden 256] [--heads 4] [--vocabulary 1000] [--positions 1024] [--seed 0]
                             [--whole whole.onnx] [--operator]
"""
import argparse

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PAST, SEQUENCE = "past_sequence_length", "sequence_length"
LOWEST = np.float32(np.finfo(np.float32).min)


class Graph:
    """Nodes and weights under construction; each method that adds a node gives the name of its first output."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.names = [], [], set()

    def node(self, op, *inputs, name=None, outputs=None, **attributes):
        outputs = outputs or [self.fresh(name or op)]
        self.nodes.append(helper.make_node(op, inputs, outputs, name="/" + outputs[0], **attributes))
        return outputs[0]

    def fresh(self, hint):
        name, n = hint, 0
        while name in self.names:
            n += 1
            name = f"{hint}_{n}"
        self.names.add(name)
        return name

    def constant(self, value, hint="constant"):
        value = np.asarray(value)
        name = self.fresh(hint)
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64), "ints")

    def draw(self, name, *shape, scale=0.02):
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32), name)

    def size(self, value, axis):
        """One dimension of a value, as a vector of one element."""
        return self.node("Gather", self.node("Shape", value), self.ints(axis), axis=0)


def layer_norm(g, x, hidden, name):
    scale = g.constant((1 + 0.1 * g.random.standard_normal(hidden)).astype(np.float32), name + ".weight")
    return g.node("LayerNormalization", x, scale, g.draw(name + ".bias", hidden), axis=-1, epsilon=1e-5, name=name)


def conv1d(g, x, n_in, n_out, name):
    """GPT-2's Conv1D: addmm over all rows, with the weight as [in, out]."""
    flat = g.node("Reshape", x, g.ints(-1, n_in))
    y = g.node("Gemm", flat, g.draw(name + ".weight", n_in, n_out, scale=n_in**-0.5), g.draw(name + ".bias", n_out), name=name)
    shape = g.node("Concat", g.size(x, 0), g.size(x, 1), g.ints(n_out), axis=0)
    return g.node("Reshape", y, shape)


def heads_of(g, x, heads, width):
    shape = g.node("Concat", g.size(x, 0), g.size(x, 1), g.ints(heads, width), axis=0)
    return g.node("Transpose", g.node("Reshape", x, shape), perm=[0, 2, 1, 3])


def causal_mask(g, queries, keys, size):
    """Rows key length - query length to key length of a triangle of all positions."""
    triangle = g.constant(np.tril(np.ones((1, 1, size.positions, size.positions), bool)), "bias")
    rows = g.node("Slice", triangle, g.node("Sub", keys, queries), keys, g.ints(2), g.ints(1))
    return g.node("Slice", rows, g.ints(0), keys, g.ints(3), g.ints(1))


def operator(g, query, key, value, layer, mask, size):
    """ONNX's Attention, which has the caches as inputs and outputs of its own."""
    past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
    present = [f"present.{layer}.{part}" for part in ("key", "value")]
    queries = g.size(query, 2)
    causal = causal_mask(g, queries, g.node("Add", g.size(past[0], 2), queries), size)
    mask = g.node("Where", causal, mask, g.constant(LOWEST, "lowest"))
    y = g.fresh(f"transformer.h.{layer}.attn.attention")
    return g.node("Attention", query, key, value, mask, *past, outputs=[y, *present])


def attention(g, x, layer, mask, size, cached):
    hidden, heads = size.hidden, size.heads
    width = hidden // heads
    name = f"transformer.h.{layer}.attn"
    qkv = conv1d(g, x, hidden, 3 * hidden, name + ".c_attn")
    parts = [g.fresh(name + "." + part) for part in ("query", "key", "value")]
    g.node("Split", qkv, g.ints(hidden, hidden, hidden), outputs=parts, axis=2)
    query, key, value = (heads_of(g, part, heads, width) for part in parts)
    if size.operator and cached:
        y = operator(g, query, key, value, layer, mask, size)
        y = g.node("Transpose", y, perm=[0, 2, 1, 3])
        y = g.node("Reshape", y, g.node("Concat", g.size(y, 0), g.size(y, 1), g.ints(hidden), axis=0))
        return conv1d(g, y, hidden, hidden, name + ".c_proj")
    if cached:
        key = g.node("Concat", f"past_key_values.{layer}.key", key, outputs=[f"present.{layer}.key"], axis=-2)
        value = g.node("Concat", f"past_key_values.{layer}.value", value, outputs=[f"present.{layer}.value"], axis=-2)
    scores = g.node("MatMul", query, g.node("Transpose", key, perm=[0, 1, 3, 2]))
    scores = g.node("Div", scores, g.constant(np.float32(width**0.5), "scale"))
    causal = causal_mask(g, g.size(query, 2), g.size(key, 2), size)
    scores = g.node("Where", causal, scores, g.constant(LOWEST, "lowest"))
    scores = g.node("Softmax", g.node("Add", scores, mask), axis=-1)
    y = g.node("Transpose", g.node("MatMul", scores, value), perm=[0, 2, 1, 3])
    y = g.node("Reshape", y, g.node("Concat", g.size(y, 0), g.size(y, 1), g.ints(hidden), axis=0))
    return conv1d(g, y, hidden, hidden, name + ".c_proj")


def gelu(g, x):
    """GPT-2's 'gelu_new', as it is written there."""
    cube = g.node("Pow", x, g.constant(np.float32(3)))
    inner = g.node("Add", x, g.node("Mul", cube, g.constant(np.float32(0.044715))))
    tanh = g.node("Tanh", g.node("Mul", inner, g.constant(np.float32((2 / np.pi) ** 0.5))))
    half = g.node("Mul", x, g.constant(np.float32(0.5)))
    return g.node("Mul", half, g.node("Add", tanh, g.constant(np.float32(1))))


def make(size, cached):
    g = Graph(size.seed)
    total = f"{PAST} + {SEQUENCE}" if cached else SEQUENCE
    vocabulary = g.draw("transformer.wte.weight", size.vocabulary, size.hidden)
    x = g.node("Add", g.node("Gather", vocabulary, "input_ids"),
               g.node("Gather", g.draw("transformer.wpe.weight", size.positions, size.hidden), "position_ids"))
    mask = g.node("Unsqueeze", g.node("Unsqueeze", "attention_mask", g.ints(1)), g.ints(2))
    mask = g.node("Sub", g.constant(np.float32(1)), g.node("Cast", mask, to=TensorProto.FLOAT))
    mask = g.node("Mul", mask, g.constant(LOWEST, "lowest"))
    for layer in range(size.layers):
        name = f"transformer.h.{layer}"
        x = g.node("Add", attention(g, layer_norm(g, x, size.hidden, name + ".ln_1"), layer, mask, size, cached), x)
        y = conv1d(g, layer_norm(g, x, size.hidden, name + ".ln_2"), size.hidden, 4 * size.hidden, name + ".mlp.c_fc")
        x = g.node("Add", x, conv1d(g, gelu(g, y), 4 * size.hidden, size.hidden, name + ".mlp.c_proj"))
    x = layer_norm(g, x, size.hidden, "transformer.ln_f")
    g.node("MatMul", x, g.node("Transpose", vocabulary, perm=[1, 0]), outputs=["logits"])

    def value(name, elem, *dims):
        return helper.make_tensor_value_info(name, elem, dims)

    ids, floats = TensorProto.INT64, TensorProto.FLOAT
    inputs = [value("input_ids", ids, "batch_size", SEQUENCE)]
    outputs = [value("logits", floats, "batch_size", SEQUENCE, size.vocabulary)]
    width = size.hidden // size.heads
    for layer in range(size.layers if cached else 0):
        for part in ("key", "value"):
            inputs.append(value(f"past_key_values.{layer}.{part}", floats, "batch_size", size.heads, PAST, width))
            outputs.append(value(f"present.{layer}.{part}", floats, "batch_size", size.heads, total, width))
    inputs.append(value("attention_mask", ids, "batch_size", total))
    inputs.append(value("position_ids", ids, "batch_size", SEQUENCE))
    graph = helper.make_graph(g.nodes, "gpt2", inputs, outputs, g.weights)
    opset, ir = (23, 11) if size.operator else (17, 8)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    onnx.checker.check_model(model)
    return model


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    for name, default in (("layers", 4), ("hidden", 256), ("heads", 4), ("vocabulary", 1000), ("positions", 1024),
                          ("seed", 0)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--operator", action="store_true", help="ONNX's operator Attention")
    parser.add_argument("--whole", metavar="FILE", help="write the model without a cache, too")
    return parser.parse_args(arguments)


def main(arguments=None):
    size = parse(arguments)
    onnx.save(make(size, cached=True), size.output)
    if size.whole:
        onnx.save(make(size, cached=False), size.whole)


if __name__ == "__main__":
    main()
