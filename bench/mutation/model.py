"""An ONNX model as the bench changes it: constants, consumers, labels, inputs."""
import os

import numpy as np
import onnx
from onnx import helper, numpy_helper

class Graph:
    """A model that may be changed in place. Every node has a name (load sees to it)."""

    def __init__(self, proto):
        self.proto = proto
        self.graph = proto.graph
        self.initializers = {t.name: t for t in self.graph.initializer}
        self.makers = {name: node for node in self.graph.node for name in node.output if name}
        self.readers = {}
        for node in self.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.opset = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), 0)

    def label(self, node):
        return node.name

    def nodes(self):
        return [n for n in self.graph.node if n.op_type != "Constant" and n.domain in ("", "ai.onnx")]

    def constant(self, name):
        """The array of an initializer or of a Constant node; None if the value is neither."""
        if name in self.initializers and not self.is_input(name):
            tensor = self.initializers[name]
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                return None
            return numpy_helper.to_array(tensor)
        maker = self.makers.get(name)
        if maker is not None and maker.op_type == "Constant":
            for attribute in maker.attribute:
                if attribute.name == "value":
                    return numpy_helper.to_array(attribute.t)
        return None

    def is_input(self, name):
        return any(i.name == name for i in self.graph.input)

    def constant_size(self, name):
        if name in self.initializers:
            return int(np.prod(self.initializers[name].dims)) if self.initializers[name].dims else 1
        array = self.constant(name)
        return array.size if array is not None else 0

    def set_constant(self, node, i, array):
        """Input i of a node becomes this constant; other readers keep the old one."""
        name = node.input[i]
        tensor = numpy_helper.from_array(np.ascontiguousarray(array), name)
        if name in self.initializers and len(self.readers[name]) == 1:
            self.initializers[name].CopyFrom(tensor)
            return
        tensor.name = f"{name}_mutant"
        self.graph.initializer.append(tensor)
        node.input[i] = tensor.name

    def attribute(self, node, name, otherwise=None):
        for a in node.attribute:
            if a.name == name:
                return helper.get_attribute_value(a)
        return otherwise

    def set_attribute(self, node, name, value):
        self.drop_attribute(node, name)
        if value is not None:
            node.attribute.append(helper.make_attribute(name, value))

    @staticmethod
    def attribute_value(attribute):
        """As the command line takes it."""
        value = helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, (list, tuple)):
            return ",".join(str(v) for v in value)
        return repr(value)

    @staticmethod
    def drop_attribute(node, name):
        for a in list(node.attribute):
            if a.name == name:
                node.attribute.remove(a)

    def insert_after(self, node, op_type, **attributes):
        """A node behind the first output of another, for all its readers."""
        old = node.output[0]
        inner = f"{old}_before_mutant"
        node.output[0] = inner
        new = helper.make_node(op_type, [inner], [old], name=f"{self.label(node)}_mutant_{op_type}", **attributes)
        at = next(i for i, n in enumerate(self.graph.node) if n is node or n.output[:1] == [inner])
        self.graph.node.insert(at + 1, new)
        return new.name


def load(path):
    """The model of a file, with a name of its own for every node."""
    proto = onnx.load(path)
    seen = set()
    for i, node in enumerate(proto.graph.node):
        if not node.name or node.name in seen:
            node.name = f"{node.op_type}_{i}"
        seen.add(node.name)
    return proto


def copy(proto):
    other = onnx.ModelProto()
    other.CopyFrom(proto)
    return other


def shrunk(proto, side):
    """The model for smaller images and shorter texts, where its weights do not fix the size; None: there is nothing to
    shrink. Whether it runs is for the caller to see."""
    small, any_input = copy(proto), False
    for i in small.graph.input:
        kind, dims = i.type.tensor_type.elem_type, i.type.tensor_type.shape.dim
        of_size = dims[2:] if len(dims) == 4 else dims[1:] if len(dims) == 2 and kind == onnx.TensorProto.INT64 else []
        for d in of_size:
            if d.dim_value >= 2 * side:
                d.dim_value, any_input = side, True
    for o in small.graph.output:
        o.type.tensor_type.ClearField("shape")
    del small.graph.value_info[:]
    return small if any_input else None


def cut_inputs(proto, path, rows, out):
    """The first rows of a case's inputs, for the inputs whose leading dimension the model leaves open, and the corner of
    images that the model takes smaller ones of."""
    known = dict(np.load(path))
    kept = {}
    for i in proto.graph.input:
        if i.name not in known:
            continue
        array = known[i.name]
        dims = i.type.tensor_type.shape.dim
        if dims and not dims[0].HasField("dim_value") and array.ndim:
            array = array[:rows]
        elif dims and array.ndim and dims[0].dim_value and array.shape[0] > dims[0].dim_value:
            array = array[:dims[0].dim_value]
        if dims and array.ndim == len(dims):
            array = array[tuple([slice(None)] + [slice(d.dim_value or None) for d in dims[1:]])]
        kept[i.name] = array
    np.savez(out, **kept)


def base_name(path):
    stem = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return folder if stem == "model" else f"{folder}/{stem}" if stem.startswith("model") else stem
