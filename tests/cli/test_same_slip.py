#!/usr/bin/env python3
"""The same slip at several nodes: test_same_slip.py ASSAY

An exporter that takes SAME padding or an epsilon wrongly does so at two, three or four nodes of a residual network. All are
found together, with golden of inner values and of outputs only, within --search-time, and no innocent node is named.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from inner_values import inner_values

N = h.make_node
BLOCKS, WIDTH, SECONDS, SLACK = 5, 8, 20, 20


class Network:
    """Residual blocks as TensorFlow has them: strided convolutions have SAME padding."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], {}
        at = self.relu("stem", self.norm("stem.n", self.conv("stem.c", "x", 3, WIDTH, 1), WIDTH))
        width = WIDTH
        for b in range(BLOCKS):
            stride = 2 if b in (1, 3) else 1
            out = width * stride
            inner = self.relu(f"b{b}.in", self.norm(f"b{b}.n1", self.conv(f"b{b}.c1", at, width, out, stride), out))
            inner = self.norm(f"b{b}.n2", self.conv(f"b{b}.c2", inner, out, out, 1), out)
            if stride == 2:
                at = self.norm(f"b{b}.n3", self.conv(f"b{b}.down", at, width, out, 2), out)
            self.nodes.append(N("Add", [inner, at], [f"b{b}.sum"], f"b{b}.add"))
            at, width = self.relu(f"b{b}", f"b{b}.sum"), out
        self.constants["head.w"] = (self.rng.normal(size=(width, 10)) / 4).astype(np.float32)
        self.nodes += [N("GlobalAveragePool", [at], ["pool"], "pool"), N("Flatten", ["pool"], ["flat"], "flatten"),
                       N("MatMul", ["flat", "head.w"], ["y"], "head")]

    def conv(self, name, at, width, out, stride):
        self.constants[f"{name}.w"] = (self.rng.normal(size=(out, width, 3, 3)) / np.sqrt(9 * width)).astype(np.float32)
        padding = {"auto_pad": "SAME_UPPER"} if stride == 2 else {"pads": [1] * 4}
        self.nodes.append(N("Conv", [at, f"{name}.w"], [f"{name}.y"], name, strides=[stride] * 2, **padding))
        return f"{name}.y"

    def norm(self, name, at, width):
        numbers = {"scale": 1 + 0.2 * self.rng.normal(size=width), "bias": 0.2 * self.rng.normal(size=width),
                   "mean": 0.1 * self.rng.normal(size=width), "var": 0.5 + self.rng.random(size=width)}
        self.constants.update({f"{name}.{k}": v.astype(np.float32) for k, v in numbers.items()})
        self.nodes.append(N("BatchNormalization", [at] + [f"{name}.{k}" for k in numbers], [f"{name}.y"], name, epsilon=1e-3))
        return f"{name}.y"

    def relu(self, name, at):
        self.nodes.append(N("Relu", [at], [f"{name}.r"], f"{name}.relu"))
        return f"{name}.r"

    def model(self):
        graph = h.make_graph(self.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", 3, 32, 32])],
                             [h.make_tensor_value_info("y", T.FLOAT, ["n", 10])], [nh.from_array(v, k) for k, v in self.constants.items()])
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def with_slip(model, names, taken, **given):
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for node in made.graph.node:
        if node.name not in names:
            continue
        for attribute in [a for a in node.attribute if a.name == taken]:
            node.attribute.remove(attribute)
        node.attribute.extend(h.make_attribute(k, v) for k, v in given.items())
    return made


ROWS = [  # the nodes, which attribute becomes what
    (("b1.c1", "b3.c1"), "auto_pad", {"auto_pad": "SAME_LOWER"}),
    (("b1.c1", "b3.c1"), "auto_pad", {"pads": [1] * 4}),
    (("b1.c1", "b1.down"), "auto_pad", {"pads": [1] * 4}),
    (("b1.c1", "b1.down", "b3.c1"), "auto_pad", {"pads": [1] * 4}),
    (("b1.c1", "b1.down", "b3.c1", "b3.down"), "auto_pad", {"pads": [1] * 4}),
    (("b1.n1", "b3.n2"), "epsilon", {"epsilon": 1e-5}),
    (("b0.n1", "b2.n2", "b4.n1"), "epsilon", {"epsilon": 1e-5}),
]


def main(assay):
    failures = 0
    good = Network(3).model()
    x = np.random.default_rng(4).normal(size=(4, 3, 32, 32)).astype(np.float32)
    values = inner_values(good, {"x": x})
    np.savez("x.npz", x=x)
    np.savez("inner.npz", **values)
    np.savez("outputs.npz", y=values["y"])
    np.savez("rows.npz", y=values["y"][:3])  # golden of fewer samples than there are
    onnx.save(good, "good.onnx")
    models = [("good.onnx", ())]
    for i, (names, taken, given) in enumerate(ROWS):
        onnx.save(with_slip(good, names, taken, **given), f"{i}.onnx")
        models.append((f"{i}.onnx", names))
    for name, faulty in models:
        for golden in ("inner.npz", "outputs.npz") + ("rows.npz",) * (name == "0.onnx"):
            seconds = 1 if golden == "rows.npz" else SECONDS  # of that one only what is compared matters
            start = time.monotonic()
            run = subprocess.run([assay, "check", name, "-i", "x.npz", "--golden", golden, "--search-time", str(seconds), "--json", "-"],
                                 capture_output=True, text=True, timeout=120, check=False)
            took = time.monotonic() - start
            report = json.loads(run.stdout) if run.stdout.startswith("{") else {"culprits": []}
            blamed = sorted(n for culprit in report["culprits"] for n in culprit["nodes"])
            # Attributes that are no single number have none.
            numbers = {c["value"] for c in report["culprits"]} - {None}
            assert all(isinstance(v, float) for v in numbers), numbers
            verified = not faulty or (report["fix"] or {}).get("verified", {}).get("verdict") == "faithful"
            if golden == "rows.npz":  # too little to tell by; what there is is compared
                blamed, verified = sorted(faulty), True
            # The rest of the check, and a machine that is busy.
            if run.returncode != bool(faulty) or blamed != sorted(faulty) or not verified or took > SECONDS + SLACK:
                failures += 1
                print(f"{name}, {golden}: exit code {run.returncode}, blames {blamed}, not {sorted(faulty)}; verified: {verified}; {took:.1f} s\n{run.stderr}")
    print(f"{len(models)} models of {len(good.graph.node)} nodes, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
