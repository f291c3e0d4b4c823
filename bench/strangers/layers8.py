"""Layers of the eighth generation's networks: bodies of loops, and what amplifies last bits."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from blocks import activation, linear
from net import trained

TYPES = {"float": TensorProto.FLOAT, "bool": TensorProto.BOOL, "int": TensorProto.INT64}


def body(name, inputs, steps, outputs):
    """A subgraph: names and types of inputs; steps (output, kind, inputs or the constant itself, attributes); names and types of outputs."""
    full = lambda x: f"{name}/{x}" if x and not x.startswith("^") else x.lstrip("^")  # noqa: E731: ^ is a value of the graph around it
    nodes = []
    for out, kind, given, *more in steps:
        if kind == "Constant":
            nodes.append(helper.make_node(kind, [], [full(out)], value=numpy_helper.from_array(np.asarray(given))))
        else:
            nodes.append(helper.make_node(kind, [full(x) for x in given], [full(x) for x in out.split()], **(more[0] if more else {})))
    info = lambda pairs: [helper.make_tensor_value_info(full(x), TYPES[kind], [] if x in ("i", "go_on", "again") else None) for x, kind in pairs]  # noqa: E731
    return helper.make_graph(nodes, name, info(inputs), info(outputs))


def rounds(net, most, state, steps, last, n=1, stop=None, scanned=()):
    """A Loop whose state `x` becomes `last`; stop: steps' value that says whether to go on; scanned: values of each round."""
    turn = body(f"round_{len(net.nodes)}", [("i", "int"), ("go_on", "bool"), ("x", "float")], [*steps, ("again", "Identity", [stop or "go_on"])],
                [("again", "bool"), (last, "float"), *scanned])
    return net.op("Loop", net.const(most, np.int64), net.const(True, bool), state, n=n, body=turn)


def f32(x):
    return np.asarray(x, np.float32)


def two(net, x, a, b, c, act="relu", rank=2, hint="head", gain=1.0):
    with net.scope(hint):
        return linear(net, activation(net, linear(net, x, a, b, rank=rank, hint="fc1"), act), b, c, rank=rank, hint="fc2", gain=gain)


def wide_radius(net, n, radius):
    """A square matrix whose largest eigenvalue has this magnitude."""
    w = trained(net.rng, (n, n), n).astype(np.float64)
    return net.weight(f32(w * radius / np.abs(np.linalg.eigvals(w)).max()), "reservoir")


def table(net, rows, n, hint="table"):
    return net.weight(f32(net.rng.standard_normal((rows, n))), hint)
