"""A graph to be damaged: finding nodes and constants, and changing them as an exporter's mistake would."""
import numpy as np
from onnx import helper, numpy_helper


class Surgery:
    """proto is changed in place; values: every value of the intact model on one feed."""

    def __init__(self, proto, values, rng):
        self.proto, self.graph, self.values, self.rng = proto, proto.graph, values, rng
        self.opset = next(o.version for o in proto.opset_import if o.domain in ("", "ai.onnx"))
        self.initializers = {t.name: t for t in self.graph.initializer}
        self.count = 0

    # ---- looking ----

    def nodes(self, *kinds):
        return [n for n in self.graph.node if n.op_type in kinds]

    def producer(self, value):
        return next((n for n in self.graph.node if value in n.output), None)

    def consumers(self, value):
        return [n for n in self.graph.node if value in n.input]

    def is_output(self, value):
        return any(o.name == value for o in self.graph.output)

    def made_by(self, value, *kinds):
        node = self.producer(value)
        return node if node is not None and node.op_type in kinds else None

    def attr(self, node, name, default=None):
        found = next((a for a in node.attribute if a.name == name), None)
        if found is None:
            return default
        value = helper.get_attribute_value(found)
        return value.decode() if isinstance(value, bytes) else value

    def shape(self, value):
        return np.shape(self.values[value]) if value in self.values else self.const(value).shape

    def const(self, value):
        """The array of an initializer or of a Constant; None: it is computed."""
        if value in self.initializers:
            return numpy_helper.to_array(self.initializers[value])
        node = self.made_by(value, "Constant") if value else None
        return numpy_helper.to_array(self.attr(node, "value")) if node is not None else None

    def choose(self, options):
        options = list(options)
        return options[int(self.rng.integers(len(options)))] if options else None

    def pick(self, kinds, where=lambda n: True):
        return self.choose([n for n in self.nodes(*([kinds] if isinstance(kinds, str) else kinds)) if where(n)])

    # ---- changing ----

    def set_attr(self, node, name, value):
        keep = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend(keep)
        if value is not None:
            node.attribute.append(helper.make_attribute(name, value))

    def fresh(self, hint):
        self.count += 1
        return f"{hint}_{self.count}x"

    def constant(self, array, hint="const"):
        name = self.fresh(hint)
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        self.initializers[name] = self.graph.initializer[-1]
        return name

    def set_const(self, node, i, array):
        """Input i of the node becomes this; others that share the constant keep theirs. Gives the nodes that are wrong now."""
        name, array = node.input[i], np.asarray(array, order="C")  # keeps a scalar one
        maker = self.made_by(name, "Constant")
        if sum(list(n.input).count(name) for n in self.graph.node) > 1 or self.const(name) is None:
            node.input[i] = self.constant(array, name)
            return [node]
        if maker is not None:
            self.set_attr(maker, "value", numpy_helper.from_array(array))
            return [maker, node]
        self.initializers[name].CopyFrom(numpy_helper.from_array(array, name))
        return [node]

    def place(self, node):
        return next(i for i, n in enumerate(self.graph.node) if n is node or n == node)

    def insert(self, at, kind, inputs, outputs, **attributes):
        node = helper.make_node(kind, inputs, outputs, name=self.fresh(kind) if self.graph.node[0].name else "", **attributes)
        self.graph.node.insert(at, node)
        return self.graph.node[at]

    def after(self, value, *steps):
        """value goes through these steps before anyone sees it: (kind, more inputs, attributes); the last keeps its name."""
        node = self.producer(value)
        raw = self.fresh(value + "_raw")
        at = self.place(node) + 1
        node.output[list(node.output).index(value)] = raw
        made, x = [node], raw
        for k, (kind, more, attributes) in enumerate(steps):
            out = value if k == len(steps) - 1 else self.fresh(value)
            made.append(self.insert(at + k, kind, [x if m == "." else m for m in more], [out], **attributes))
            x = out
        return made

    def before(self, node, i, *steps):
        """The same for what one node reads."""
        at, x, made = self.place(node), node.input[i], []
        for k, (kind, more, attributes) in enumerate(steps):
            out = self.fresh(x)
            made.append(self.insert(at + k, kind, [x if m == "." else m for m in more], [out], **attributes))
            x = out
        node = self.graph.node[at + len(steps)]
        node.input[i] = x
        return [*made, node]

    def bypass(self, node, value):
        """The node is gone; who read it reads `value`. Gives its neighbours: one of them has to be blamed."""
        out = node.output[0]
        readers = self.consumers(out)
        for reader in readers:
            for i, x in enumerate(reader.input):
                if x == out:
                    reader.input[i] = value
        before = self.producer(value)
        if self.is_output(out):
            if before is None or self.is_output(value):
                return None
            for n in self.graph.node:
                for names in (n.input, n.output):
                    for i, x in enumerate(names):
                        if x == value:
                            names[i] = out
        self.graph.node.remove(node)
        return ([before] if before is not None else []) + readers


def scalar(s, value):
    """The number of a constant that is one; None: it is not."""
    c = s.const(value)
    return float(c.reshape(-1)[0]) if c is not None and c.size == 1 and c.dtype == np.float32 else None


def gone(kinds, where=lambda s, n: True, keep=0):
    """A fault: a node of these kinds is not there."""
    def apply(s):
        node = s.pick(kinds, lambda n: s.const(n.input[keep]) is None and where(s, n))
        return s.bypass(node, node.input[keep]) if node is not None else None
    return apply
