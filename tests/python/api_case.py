"""What the tests of the Python API share: small models made with onnx, and a case that has them."""
import os
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

import assay

F = T.FLOAT


def value(name, elem, shape):
    """A tensor's description; shape None: unknown rank."""
    return h.make_tensor_value_info(name, elem, shape)


def model(nodes, inputs, outputs, initializers=(), opset=20, functions=()):
    """A model of opset 20, checked."""
    graph = h.make_graph(list(nodes), "test", list(inputs), list(outputs),
                         [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in dict(initializers).items()])
    made = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=10, functions=list(functions))
    onnx.checker.check_model(made)
    return made


def unary(op="Relu", elem=F, shape=("N", 3), out=None, opset=20, **attributes):
    """x -> op -> y."""
    return model([h.make_node(op, ["x"], ["y"], **attributes)], [value("x", elem, list(shape))],
                 [value("y", out or elem, list(shape))], opset=opset)


def chain(layers=6, width=64, batch="N", seed=0):
    """A perceptron of layers of MatMul, Add and Relu; x float[batch, width] -> y."""
    draw = np.random.default_rng(seed)
    nodes, weights, at = [], {}, "x"
    for i in range(layers):
        weights["w%d" % i] = (draw.standard_normal((width, width)) / width ** 0.5).astype(np.float32)
        weights["b%d" % i] = draw.standard_normal(width).astype(np.float32)
        nodes += [h.make_node("MatMul", [at, "w%d" % i], ["m%d" % i], name="matmul%d" % i),
                  h.make_node("Add", ["m%d" % i, "b%d" % i], ["a%d" % i], name="add%d" % i)]
        at = "y" if i == layers - 1 else "r%d" % i
        nodes.append(h.make_node("Relu", ["a%d" % i], [at], name="relu%d" % i))
    return model(nodes, [value("x", F, [batch, width])], [value("y", F, [batch, width])], weights)


class ApiCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def assertSays(self, error, *words):
        """That an exception's message has all of the words."""
        for word in words:
            self.assertIn(word, str(error.exception))


def draw(*shape, seed=0):
    """Normal float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


__all__ = ["ApiCase", "F", "T", "assay", "chain", "draw", "h", "model", "np", "onnx", "unary", "value"]
