#!/usr/bin/env python3
"""What quantizers cost against the float network: test_quantizers.py ASSAY

A small convolutional network is quantized by hand, healthy and with one fault in its scales. check, given golden of the float
network, calls the healthy one faithful and blames no export; of the others it names the quantizer, says what is the matter
with it, and its fix, run by ONNX Runtime on samples that check has not seen, loses no more than a quarter of what the given one does.
Golden of the intact quantized model shows wrong scales, too, by outputs alone, and tune and debug precision know its kind.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(5)
WIDTHS = [3, 16, 16, 8]
WEIGHTS = [(R.normal(size=(b, a, 3, 3)) / np.sqrt(9 * a)).astype(np.float32) for a, b in zip(WIDTHS, WIDTHS[1:])]
BIASES = [R.normal(size=b).astype(np.float32) * np.float32(0.1) for b in WIDTHS[1:]]
FAULTS = ["outlier", "clips", "large", "zero", "weight", "channels"]
PATTERN = {"outlier": "too_large", "clips": "too_small", "large": "too_large", "zero": "zero_point", "weight": "channels", "channels": "channels"}


def model(nodes, constants, output_shape, path, input_shape=("n", 3, 8, 8)):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, input_shape)], [h.make_tensor_value_info("y", T.FLOAT, output_shape)],
                         constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def weights_of(fault):
    """With channels of unlike size, where the fault is about these; a factor for each channel makes up for it."""
    weights = [w.copy() for w in WEIGHTS]
    if fault == "weight":
        weights[1][::2] /= 1000
    return weights


def restore(i, fault, constants):
    """The factors behind convolution i, and the value after them."""
    if fault != "weight" or i != 1:
        return [], f"c{i}"
    constants.append(nh.from_array(np.where(np.arange(16) % 2 == 0, 1000, 1).astype(np.float32).reshape(1, 16, 1, 1), "factors"))
    return [h.make_node("Mul", [f"c{i}", "factors"], [f"f{i}"], name="factor")], f"f{i}"


def float_model(path, fault):
    nodes, constants, at = [], [], "x"
    for i, (w, b) in enumerate(zip(weights_of(fault), biases_of(fault))):
        constants += [nh.from_array(w, f"w{i}"), nh.from_array(b, f"b{i}")]
        nodes.append(h.make_node("Conv", [at, f"w{i}", f"b{i}"], [f"c{i}"], name=f"conv{i}", pads=[1] * 4))
        more, at = restore(i, fault, constants)
        nodes += more
        if i < 2:
            nodes.append(h.make_node("Relu", [at], [f"r{i}"], name=f"relu{i}"))
            at = f"r{i}"
    nodes += tail(at, fault, constants)
    model(nodes, constants, None, path)


def biases_of(fault):
    biases = [b.copy() for b in BIASES]
    if fault == "weight":
        biases[1][::2] /= 1000
    return biases


def tail(at, fault, constants):
    """The output; with channels of unlike size, where the fault is about these."""
    if fault != "channels":
        return [h.make_node("Identity", [at], ["y"], name="out")]
    constants.append(nh.from_array(np.float32([1000] * 4 + [0.5] * 4).reshape(1, 8, 1, 1), "sizes"))
    return [h.make_node("Mul", [at, "sizes"], ["y"], name="out")]


def range_scale(low, high):
    low, high = min(low, 0), max(high, 0)
    scale = np.float32((high - low) / 255)
    return scale, np.uint8(np.clip(np.rint(-low / scale), 0, 255))


def quantized_model(path, values, fault):
    nodes, constants, at = [], [], "x"

    def pair(value, name, damage=None):
        scale, zero = range_scale(float(values[value].min()), float(values[value].max()))
        if damage == "outlier" or damage == "large":
            scale *= np.float32(20)
        if damage == "clips":
            scale *= np.float32(0.25)
        if damage == "zero":
            zero = np.uint8(230)
        constants.extend([nh.from_array(scale, f"s_{name}"), nh.from_array(zero, f"z_{name}")])
        nodes.append(h.make_node("QuantizeLinear", [value, f"s_{name}", f"z_{name}"], [f"q_{name}"], name=f"quantize_{name}"))
        nodes.append(h.make_node("DequantizeLinear", [f"q_{name}", f"s_{name}", f"z_{name}"], [f"d_{name}"], name=f"dequantize_{name}"))
        return f"d_{name}", scale

    damaged = {"outlier": None, "clips": "r0", "large": "r1", "zero": "x"}.get(fault)
    for i, (w, b) in enumerate(zip(weights_of(fault), biases_of(fault))):
        value = at
        d, s = pair(value, f"a{i}", fault if value == damaged else None)
        per_tensor = fault == "weight" and i == 1
        peaks = np.abs(w).max(axis=(1, 2, 3))
        ws = (np.float32(peaks.max() / 127) if per_tensor else (peaks / 127)).astype(np.float32)
        wz = np.zeros(ws.shape, np.int8)
        bs = (s * ws).astype(np.float32)
        constants.extend([nh.from_array(w, f"w{i}"), nh.from_array(ws, f"ws{i}"), nh.from_array(wz, f"wz{i}"), nh.from_array(bs, f"bs{i}"),
                          nh.from_array(np.rint(b / bs).astype(np.int32), f"b{i}")])
        axis = {} if per_tensor else {"axis": 0}
        nodes += [h.make_node("QuantizeLinear", [f"w{i}", f"ws{i}", f"wz{i}"], [f"wq{i}"], name=f"quantize_w{i}", **axis),
                  h.make_node("DequantizeLinear", [f"wq{i}", f"ws{i}", f"wz{i}"], [f"wd{i}"], name=f"dequantize_w{i}", **axis),
                  h.make_node("DequantizeLinear", [f"b{i}", f"bs{i}"], [f"bd{i}"], name=f"dequantize_b{i}", **axis),
                  h.make_node("Conv", [d, f"wd{i}", f"bd{i}"], [f"c{i}"], name=f"conv{i}", pads=[1] * 4)]
        more, at = restore(i, fault, constants)
        nodes += more
        if i < 2:
            nodes.append(h.make_node("Relu", [at], [f"r{i}"], name=f"relu{i}"))
            at = f"r{i}"
    last = tail(at, fault, constants)
    if fault == "channels":
        last[0].output[0] = "big"
        nodes += last
        d, _ = pair("big", "out")
        last = [h.make_node("Identity", [d], ["y"], name="end")]
    model(nodes + last, constants, None, path)


def run(path, x, every=()):
    proto = onnx.load(path)
    have = [o.name for o in proto.graph.output]
    for name in every:
        if name not in have:
            proto.graph.output.add().name = name
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, {"x": x})))


def loss(got, want):
    """The largest part of a channel's energy that is lost."""
    return max(float(((got[:, c] - want[:, c]) ** 2).sum() / (want[:, c] ** 2).sum()) for c in range(want.shape[1]))


BLAMED = {"outlier": "quantize_a1", "clips": "quantize_a1", "large": "quantize_a2", "zero": "quantize_a0", "weight": "quantize_w1",
          "channels": "quantize_out"}


def examine(assay, fault, x, fresh):
    """What is wrong with what check says; []: nothing."""
    float_model("float.onnx", fault)
    names = ["r0", "r1"] + (["big"] if fault == "channels" else [])
    values = {"x": x, **run("float.onnx", x, [n for n in names if n != "big"])}
    values["big"] = values["y"]
    if fault == "outlier":
        values["r0"] = np.concatenate([values["r0"].ravel(), [values["r0"].max() * 25]])
    quantized_model("int8.onnx", values, fault)
    np.savez("x.npz", x=x)
    np.savez("golden.npz", y=values["y"])
    done = subprocess.run([assay, "check", "int8.onnx", "-i", "x.npz", "--golden", "golden.npz", "--json", "out.json", "-o", "fix"],
                          capture_output=True, text=True, timeout=120, check=False)
    report = json.loads(pathlib.Path("out.json").read_text())
    wrong = []
    if done.returncode != (1 if fault else 0) or report["blame"] != ("precision" if fault else "none"):
        wrong.append(f"exit code {done.returncode}, blame {report['blame']}")
    if fault and not wrong:
        first = report["culprits"][0]
        if BLAMED[fault] not in first["nodes"] or first["cause"] != PATTERN[fault]:
            wrong.append(f"first culprit {first['nodes']}: {first['cause']}")
        fix = report["fix"] or {"nodes": [], "verified": {"verdict": "none"}}
        if fix["verified"]["verdict"] != "faithful" or fix["nodes"] != [BLAMED[fault]]:
            wrong.append(f"fix {fix['verified']['verdict']}, of {fix['nodes']}")
        else:
            want = run("float.onnx", fresh)["y"]
            left, was = (loss(run(p, fresh)["y"], want) for p in ("fix/int8.repaired.onnx", "int8.onnx"))
            if not left < 0.01 or not left < was / 4:
                wrong.append(f"the repaired model loses {left:.3g} on fresh samples, the given one {was:.3g}")
    return [f"{fault}: {w}\n{done.stdout}{done.stderr}" for w in wrong]


def store_weights(path):
    """Weights as integers, as quantizers write them; those of the last layer read from axis 0 of a square."""
    proto = onnx.load(path)
    constants = {t.name: nh.to_array(t) for t in proto.graph.initializer}
    for n in [n for n in proto.graph.node if n.name.startswith("quantize_w")]:
        w, s = constants[n.input[0]], constants[n.input[1]]
        q = np.clip(np.rint(w / s.reshape((-1,) + (1,) * (w.ndim - 1))), -127, 127).astype(np.int8)
        proto.graph.initializer.append(nh.from_array(q, n.output[0]))
        proto.graph.node.remove(n)
    onnx.save(proto, path)


def damage(path, what):
    """One scale or zero point that the intact model had otherwise, or several; the first culprit's name."""
    proto = onnx.load(path)
    constants = {t.name: t for t in proto.graph.initializer}

    def times(name, by):
        put(name, (nh.to_array(constants[name]) * np.float32(by)).astype(np.float32))

    def put(name, array):
        constants[name].CopyFrom(nh.from_array(array, name))
    if what == "pair":
        zero = nh.to_array(constants["z_a1"])
        constants["z_other"] = proto.graph.initializer.add()
        put("z_other", np.array(zero + 3, zero.dtype))
        next(n for n in proto.graph.node if n.name == "dequantize_a1").input[2] = "z_other"
    elif what in ("bias", "bias and axis"):
        times("bs1", 1.6)
    elif what == "range of 127.5":
        times("ws1", 127 / 127.5)
    elif what == "twice":
        times("ws2", 2)
    elif what in ("without a sign", "zero point lost"):
        put("wq1", (nh.to_array(constants["wq1"]).view(np.uint8) if what == "without a sign" else nh.to_array(constants["wq1"]).astype(np.int16) + 128).astype(np.uint8))
        put("wz1", np.zeros(nh.to_array(constants["wz1"]).shape, np.uint8))
    elif what == "cut off":
        q = nh.to_array(constants["b1"])
        limit = int(np.sort(np.abs(q))[-3] * 0.9)
        put("b1", np.clip(q, -limit, limit))
    elif what == "largest one cut off":
        q = nh.to_array(constants["b1"])
        limit = int(np.sort(np.abs(q))[-2] * 1.01)
        put("b1", np.clip(q, -limit, limit))
    elif what == "reversed":
        put("ws1", nh.to_array(constants["ws1"])[::-1].copy())
    elif what == "one scale":
        put("ws1", np.full_like(nh.to_array(constants["ws1"]), nh.to_array(constants["ws1"])[0]))
    if what in ("axis", "bias and axis"):
        next(a for n in proto.graph.node if n.name == "dequantize_w1" for a in n.attribute if a.name == "axis").i = 1
    if what in ("large", "clips"):
        put("s_a1", (nh.to_array(constants["s_a1"]) * np.float32(6 if what == "large" else 0.4)).astype(np.float32))
    onnx.save(proto, "faulty.onnx")


STORED = {"bias": "dequantize_b1", "axis": "dequantize_w1", "range of 127.5": "dequantize_w1", "twice": "dequantize_w2", "reversed": "dequantize_w1",
          "cut off": "dequantize_b1", "without a sign": "dequantize_w1", "zero point lost": "dequantize_w1", "one scale": "dequantize_w1", "bias and axis": "dequantize_"}


def examine_of_itself(assay, what, x, fresh):
    """Golden of the intact quantized model, outputs alone."""
    float_model("float.onnx", "")
    quantized_model("int8.onnx", {"x": x, **run("float.onnx", x, ["r0", "r1"])}, "")
    if what in STORED:
        store_weights("int8.onnx")
    damage("int8.onnx", what)
    np.savez("x.npz", x=x)
    np.savez("golden.npz", y=run("int8.onnx", x)["y"])
    done = subprocess.run([assay, "check", "faulty.onnx", "-i", "x.npz", "--golden", "golden.npz", "--json", "out.json", "-o", "fix"],
                          capture_output=True, text=True, timeout=120, check=False)
    report = json.loads(pathlib.Path("out.json").read_text())
    first = (report["culprits"] or [{"nodes": []}])[0]["nodes"]
    fix = report["fix"] or {"verified": {"verdict": "none"}}
    wrong = []
    if done.returncode != 1 or report["blame"] != "export" or not any(n.startswith(STORED.get(what, "quantize_a1")) for n in first):
        wrong.append(f"exit code {done.returncode}, blame {report['blame']}, first culprit {first}")
    elif fix["verified"]["verdict"] != "faithful":
        wrong.append(f"fix {fix['verified']['verdict']}")
    elif loss(run("fix/faulty.repaired.onnx", fresh)["y"], run("int8.onnx", fresh)["y"]) > 1e-4:
        wrong.append("the repaired model is not the intact one")
    return [f"of itself, {what}: {w}\n{done.stdout}{done.stderr}" for w in wrong]


def examine_attributed(assay, x, fresh):
    """One integer of many is wrong: several samples point at it, and tell what it was; ties point at nothing."""
    float_model("float.onnx", "")
    quantized_model("int8.onnx", {"x": x, **run("float.onnx", x, ["r0", "r1"])}, "")
    store_weights("int8.onnx")
    for folder_of in ("xs", "goldens"):
        pathlib.Path(folder_of).mkdir()
    for i in range(4):
        np.savez(f"xs/{i}.npz", x=x[4 * i:4 * i + 4])
        np.savez(f"goldens/{i}.npz", y=run("int8.onnx", x[4 * i:4 * i + 4])["y"])
    wrong = []
    for what in ("largest one cut off", "nothing"):
        damage("int8.onnx", what)
        done = subprocess.run([assay, "check", "faulty.onnx", "-i", "xs", "--golden", "goldens", "--search-time", "10", "--json", "out.json", "-o", "one"],
                              capture_output=True, text=True, timeout=120, check=False)
        report = json.loads(pathlib.Path("out.json").read_text())
        first = (report["culprits"] or [{"nodes": []}])[0]["nodes"]
        if what == "nothing":
            good = done.returncode == 0 and report["blame"] == "none"
        else:
            good = done.returncode == 1 and "dequantize_b1" in first and loss(run("one/faulty.repaired.onnx", fresh)["y"], run("int8.onnx", fresh)["y"]) < 1e-6
        if not good:
            wrong.append(f"{what}, from samples: exit code {done.returncode}, {first}\n{done.stdout}{done.stderr}")
    return wrong


def examine_kind(assay, x):
    """tune and debug precision hold golden against the truth that fits it."""
    float_model("float.onnx", "")
    quantized_model("int8.onnx", {"x": x, **run("float.onnx", x, ["r0", "r1"])}, "")
    wrong = []
    for kind, path in (("quantized", "int8.onnx"), ("float", "float.onnx")):
        np.savez("golden.npz", y=run(path, x)["y"])
        for verb in (["tune"], ["debug", "precision", "--precision", "fp16"]):
            done = subprocess.run([assay, *verb, "int8.onnx", "-i", "x.npz", "--golden", "golden.npz", "--require", "golden_snr_db >= 10", "--json", "-"],
                                  capture_output=True, text=True, timeout=120, check=False)
            report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
            outputs = (report.get("chosen") or report.get("fix") or {}).get("outputs") or report.get("before") or []
            off = [(o.get("truth_against_golden") or {}).get("snr_db") for o in outputs]
            # Truth is golden but for steps next to ties, and for the rounding of weights.
            if report.get("golden_quantized") != (kind == "quantized") or not off or not off[0] or off[0] < 40:
                wrong.append(f"{' '.join(verb)}, golden {kind}: golden_quantized {report.get('golden_quantized')}, truth {off} dB\n{done.stderr[-500:]}")
    return wrong


def examine_mask(assay):
    """A quantizer behind a mask of -3.4e38 loses all else: it is named, and left out; the export is right."""
    n = 8
    w = [nh.from_array(R.normal(size=(n, n)).astype(np.float32), f"m{i}") for i in range(2)]
    mask = np.where(np.tril(np.ones((n, n))), 0, np.finfo(np.float32).min).astype(np.float32)
    constants = [*w, nh.from_array(mask, "mask"), nh.from_array(np.float32(-mask.min() / 127), "s"), nh.from_array(np.int8(127), "z")]
    def nodes(quantizes):
        pair = [h.make_node("QuantizeLinear", ["masked", "s", "z"], ["q"], name="quantize"), h.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], name="dequantize")]
        return [h.make_node("MatMul", ["x", "m0"], ["scores"], name="scores"), h.make_node("Add", ["scores", "mask"], ["masked"], name="add_mask"),
                *(pair if quantizes else []), h.make_node("Softmax", ["d" if quantizes else "masked"], ["p"], name="softmax", axis=-1),
                h.make_node("MatMul", ["p", "m1"], ["y"], name="out")]
    x = R.normal(size=(4, n, n)).astype(np.float32)
    for quantizes in (False, True):
        model(nodes(quantizes), constants, None, f"mask{int(quantizes)}.onnx", [None, n, n])
    np.savez("x.npz", x=x)
    want = run("mask0.onnx", x, ["p"])
    np.savez("golden.npz", y=want["y"])
    np.savez("inner.npz", p=want["p"])
    wrong = []
    for inner in ([], ["--golden-intermediates", "inner.npz"]):
        done = subprocess.run([assay, "check", "mask1.onnx", "-i", "x.npz", "--golden", "golden.npz", *inner, "--json", "out.json", "-o", "fix"], capture_output=True,
                              text=True, timeout=120, check=False)
        report = json.loads(pathlib.Path("out.json").read_text())
        first = (report["culprits"] or [{"nodes": []}])[0]["nodes"]
        good = report["blame"] == "precision" and "quantize" in first and report["quantization"]["verified"]
        if not good or loss(run("fix/mask1.repaired.onnx", x)["y"], want["y"]) > 1e-6:
            wrong.append(f"mask {inner}: blame {report['blame']}, first culprit {first}\n{done.stdout}{done.stderr}")
    return wrong


def examine_dead(assay):
    """A float model, all of whose small channel is lost in fp16; a channel that is dead in truth is none."""
    x = R.normal(size=(8, 3, 8, 8)).astype(np.float32)
    np.savez("x.npz", x=x)
    wrong = []
    for name, sizes, offset, dead in (("lost", [1000, 0.1, 1], [0, 4096, 0], True), ("dead in truth", [1000, 0, 1], [0, 4096, 0], False)):
        constants = [nh.from_array(np.float32(v).reshape(1, 3, 1, 1), n) for n, v in (("sizes", sizes), ("offset", offset))]
        nodes = [h.make_node("Mul", ["x", "sizes"], ["m"], name="mul"), h.make_node("Add", ["m", "offset"], ["a"], name="add"),
                 h.make_node("Sub", ["a", "offset"], ["y"], name="sub")]
        model(nodes, constants, ["n", 3, 8, 8], "dead.onnx")
        done = subprocess.run([assay, "check", "dead.onnx", "-i", "x.npz", "--precision", "fp16", "--json", "out.json", "--no-fix"], capture_output=True,
                              text=True, timeout=120, check=False)
        report = json.loads(pathlib.Path("out.json").read_text())
        slices = report["outputs"][0]["slices"] or {"dead": 0}
        if done.returncode != (1 if dead else 0) or slices["dead"] != int(dead) or report["outputs"][0]["cosine"] < 0.999:
            wrong.append(f"{name}: exit code {done.returncode}, {slices}\n{done.stdout}{done.stderr}")
    return wrong


def main(assay):
    x, fresh = (R.normal(size=(n, 3, 8, 8)).astype(np.float32) for n in (16, 8))
    wrong = [w for fault in ["", *FAULTS] for w in examine(assay, fault, x, fresh)]
    wrong += [w for what in ("pair", "large", "clips", *STORED) for w in examine_of_itself(assay, what, x, fresh)]
    wrong += examine_attributed(assay, x, fresh) + examine_kind(assay, x) + examine_dead(assay) + examine_mask(assay)
    print("\n".join(wrong) or f"{7 + len(FAULTS) + len(STORED)} quantized models, 2 of floats, 4 of tune and debug precision")
    return 1 if wrong else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
