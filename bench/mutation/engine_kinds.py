"""Faults of engines: what `assay check --inject NODE:FAULT` (src/backends/emu/inject.h) may do at a node.

A kind is a function (graph, node, rng, precision) -> the fault's text, or None if it does not fit the node.
"""
import numpy as np

from . import export_kinds

KINDS = {}


def kind(name):
    def register(function):
        KINDS[name] = function
        return function
    return register


def attribute_kind(name, source):
    """The attribute that an export's kind would write, set in the engine instead."""
    def find(graph, node, rng, precision):
        before = {a.name: a.SerializeToString() for a in node.attribute}
        saved = [type(a).FromString(a.SerializeToString()) for a in node.attribute]
        inputs, op = list(node.input), node.op_type
        found = source(graph, node, rng)
        changed = [a for a in node.attribute if before.get(a.name) != a.SerializeToString()]
        same = list(node.input) == inputs and node.op_type == op
        del node.attribute[:]
        node.attribute.extend(saved)
        if not found or len(changed) != 1 or not same:
            return None
        value = graph.attribute_value(changed[0])
        return f"set={changed[0].name}={value}"
    KINDS[name] = find


attribute_kind("epsilon", export_kinds.epsilon)
attribute_kind("alpha", export_kinds.alpha)
attribute_kind("axis", export_kinds.axis)
attribute_kind("flag", export_kinds.flag)
attribute_kind("padding", export_kinds.padding)
attribute_kind("mode", export_kinds.mode)
attribute_kind("permutation", export_kinds.permutation)


SUMS = ("MatMul", "Gemm", "Conv")


def constants(graph, node, least=2):
    return export_kinds.float_inputs(graph, node, least)


@kind("swapped inputs")
def swapped(graph, node, rng, precision):
    if node.op_type not in ("Sub", "Div", "Pow", "Where", "MatMul", "Concat"):
        return None
    a, b = (1, 2) if node.op_type == "Where" else (0, 1)
    if len(node.input) <= b or node.input[a] == node.input[b]:
        return None
    return f"swap={a},{b}"


@kind("constant off by 1 %")
def scaled(graph, node, rng, precision):
    places = constants(graph, node)
    if not places:
        return None
    i, _ = places[int(rng.integers(len(places)))]
    return f"scale={i},{rng.choice(['1.01', '0.99'])}"


@kind("one element off by one")
def one_element(graph, node, rng, precision):
    places = constants(graph, node)
    if not places:
        return None
    i, array = places[int(rng.integers(len(places)))]
    return f"add={i},{int(rng.integers(array.size))},1"


@kind("stale row")
def stale(graph, node, rng, precision):
    places = [(i, a) for i, a in constants(graph, node, 4) if a.ndim and a.shape[0] > 1]
    if not places:
        return None
    i, array = places[int(rng.integers(len(places)))]
    return f"stale={i},{int(rng.integers(array.shape[0]))}"


@kind("constant of another layer")
def other_constant(graph, node, rng, precision):
    found = export_kinds.pick_alike(graph, node, rng)
    if not found or "," in found[2] or ":" in found[2]:
        return None
    return f"constant={found[0]},{found[2]}"


@kind("transposed constant")
def transposed(graph, node, rng, precision):
    places = [(i, a) for i, a in constants(graph, node, 4) if sum(d > 1 for d in a.shape) > 1]
    if not places:
        return None
    return f"transpose={places[int(rng.integers(len(places)))][0]}"


@kind("terms left out")
def terms(graph, node, rng, precision):
    sums = node.op_type in SUMS or node.op_type in ("ReduceMean", "ReduceSum", "GlobalAveragePool", "ReduceL2")
    return f"terms={int(rng.choice([1, 2, 4]))}" if sums else None


@kind("accumulated in fp16")
def accumulate_fp16(graph, node, rng, precision):
    return "accumulate=fp16" if node.op_type in SUMS else None


@kind("accumulated in bf16")
def accumulate_bf16(graph, node, rng, precision):
    return "accumulate=bf16" if node.op_type in SUMS else None


COMPUTES = SUMS + ("Add", "Sub", "Mul", "Div", "Sigmoid", "Tanh", "Softmax", "LayerNormalization", "BatchNormalization",
                   "ReduceMean", "Sqrt", "Erf", "Exp", "HardSwish", "Elu", "Softplus", "InstanceNormalization",
                   "GlobalAveragePool", "AveragePool", "Pow", "Gelu", "LSTM", "GRU")


@kind("rounded towards zero")
def round_zero(graph, node, rng, precision):
    return "round=zero" if node.op_type in COMPUTES else None


@kind("stored in a lower format")
def store(graph, node, rng, precision):
    if node.op_type not in COMPUTES:
        return None
    return "store=" + str(rng.choice({"fp32": ["tf32", "fp16", "bf16"], "fp16": ["bf16", "fp8e5m2"],
                                      "bf16": ["fp8e5m2"]}[precision]))


@kind("read in a lower format")
def enter(graph, node, rng, precision):
    if node.op_type not in COMPUTES:
        return None
    return "enter=" + str(rng.choice({"fp32": ["tf32", "fp16", "bf16"], "fp16": ["bf16", "fp8e5m2"],
                                      "bf16": ["fp8e5m2"]}[precision]))


@kind("subnormals flushed")
def flush(graph, node, rng, precision):
    return "flush=1" if precision == "fp16" and node.op_type in COMPUTES else None


@kind("tail left out")
def tail(graph, node, rng, precision):
    return f"tail={int(rng.choice([1, 3, 7]))}" if node.op_type in COMPUTES + ("Transpose", "Slice", "Concat") else None


@kind("shifted by one")
def shift(graph, node, rng, precision):
    return "shift=1" if node.op_type in COMPUTES + ("Transpose", "Reshape", "Slice", "Concat") else None


@kind("another kernel")
def other_kernel(graph, node, rng, precision):
    others = export_kinds.OTHERS.get(node.op_type)
    if not others or node.op_type in ("MaxPool", "AveragePool"):
        return None
    other = str(rng.choice(others))
    return None if other == "Mish" and graph.opset < 18 else f"op={other}"


# As in export_kinds: operators that a kind takes at all.
OPERATORS = {"swapped inputs": ("Sub", "Div", "Pow", "Where", "MatMul", "Concat"),
             "terms left out": SUMS + ("ReduceMean", "ReduceSum", "GlobalAveragePool", "ReduceL2"),
             "accumulated in fp16": SUMS, "accumulated in bf16": SUMS, "rounded towards zero": COMPUTES,
             "stored in a lower format": COMPUTES, "read in a lower format": COMPUTES, "subnormals flushed": COMPUTES,
             "another kernel": tuple(export_kinds.OTHERS)}
ATTRIBUTES = ("epsilon", "alpha", "axis", "flag", "padding", "mode", "permutation")


def may_fit(name, node):
    if name in ATTRIBUTES:
        return export_kinds.may_fit(name, node)
    return name not in OPERATORS or node.op_type in OPERATORS[name]
