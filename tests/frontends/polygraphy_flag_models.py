"""Models and files for the lines of polygraphy_flag_rows.py: one folder, of which each line gets a copy."""
import base64
import io
import json
import os
import subprocess

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

info = h.make_tensor_value_info


def array(a):
    b = io.BytesIO()
    np.save(b, a)
    return {"array": base64.b64encode(b.getvalue()).decode(), "polygraphy_class": "ndarray"}


def read_array(j):
    return np.load(io.BytesIO(base64.b64decode(j["array"])))


def inputs_of(path):
    return [{k: read_array(v) for k, v in feed.items()} for feed in json.load(open(path))]


def outputs_of(path):
    """Of each runner its iterations."""
    return [(name, [{k: read_array(v["values"]) for k, v in i["outputs"].items()} for i in iterations]) for name, iterations in
            json.load(open(path))["lst"]]


def write_inputs(path, *feeds):
    with open(path, "w") as f:
        json.dump([{k: array(v) for k, v in feed.items()} for feed in feeds], f, indent=4)


def write_results(path, *iterations, runner="golden-runner"):
    lazy = [{"outputs": {k: {"values": array(v), "polygraphy_class": "LazyArray"} for k, v in i.items()}, "runtime": 0.5,
             "runner_name": runner, "polygraphy_class": "IterationResult"} for i in iterations]
    with open(path, "w") as f:
        json.dump({"lst": [[runner, lazy]], "polygraphy_class": "RunResults"}, f, indent=4)


def save(name, nodes, inputs, outputs, constants=(), **more):
    g = h.make_graph(nodes, os.path.basename(name).split(".")[0], inputs, outputs, [nh.from_array(a, n) for n, a in constants])
    m = h.make_model(g, opset_imports=[h.make_opsetid("", 18)], ir_version=9)
    onnx.save(m, name, **more)
    return m


def external(name, m, folder):
    """The model with its weights in a folder that is not its own."""
    onnx.save(m, name, save_as_external_data=True, location="weights.data", size_threshold=64)
    os.makedirs(folder, exist_ok=True)
    os.replace(os.path.join(os.path.dirname(name), "weights.data"), os.path.join(folder, "weights.data"))


def net(name, elu="Elu", declared=False):
    r = np.random.default_rng(5)
    w = (r.standard_normal((8, 16, 3, 3)) * 0.1).astype(np.float32)
    fc = (r.standard_normal((8, 64)) * 0.5).astype(np.float32)
    fc[:4] *= 1e-9  # float16 has no such numbers: half of each row becomes 0
    nodes = [h.make_node("Conv", ["x", "w"], ["c"], "conv0", pads=[1] * 4), h.make_node(elu, ["c"], ["e"], "elu0"),
             h.make_node("ReduceMean", ["e", "axes"], ["m"], "mean0", keepdims=0), h.make_node("MatMul", ["m", "fc"], ["l"], "fc0"),
             h.make_node("Softmax", ["l"], ["prob"], "softmax0")]
    return save(name, nodes, [info("x", T.FLOAT, ["N", 16, 8, 8])], [info("prob", T.FLOAT, ["N", 64])], [("w", w), ("fc", fc), ("axes", np.int64([2,
        3]))])


def write_models():
    external("ext.onnx", net("net.onnx"), "weights")
    external("extbad.onnx", net("bad.onnx", elu="Eluu"), "weights_bad")
    net("odd.plan")
    ends = [info("x", T.FLOAT, [2, 6])], [info("y", T.FLOAT, [2, 6])]
    save("id.onnx", [h.make_node("Identity", ["x"], ["y"], "id0")], *ends)
    save("pair.onnx", [h.make_node("Identity", ["x"], ["y"], "id0"), h.make_node("Neg", ["x"], ["z"], "neg0")], ends[0], [*ends[1], info("z",
        T.FLOAT, [2, 6])])
    save("log.onnx", [h.make_node("Log", ["x"], ["y"], "log0")], *ends)
    save("rows.onnx", [h.make_node("Relu", ["x"], ["a"], "relu0"), h.make_node("Exp", ["a"], ["b"], "exp0"), h.make_node("Neg", ["b"], ["y"],
        "neg0")], *ends)
    # Of which shapes and faults depend on the values of the inputs.
    save("pick.onnx", [h.make_node("Gather", ["data", "i"], ["y"], "pick0")], [info("i", T.INT64, [2])], [info("y", T.FLOAT, [2])], [("data",
        np.float32([1, 2, 3, 4]))])
    save("count.onnx", [h.make_node("Range", ["zero", "n", "one"], ["r"], "range0"), h.make_node("Cast", ["r"], ["f"], "cast0", to=T.FLOAT),
                        h.make_node("Exp", ["f"], ["y"], "exp0")],
         [info("n", T.INT64, [])], [info("y", T.FLOAT, ["K"])], [("zero", np.int64(0)), ("one", np.int64(1))])
    save("sizes.onnx", [h.make_node("Exp", ["x"], ["a"], "exp0"), h.make_node("Neg", ["a"], ["y"], "neg0")], [info("x", T.FLOAT, ["N", 3])],
        [info("y", T.FLOAT, ["N", 3])])
    # A product of two values of the run: no constant takes part.
    save("fold.onnx", [
        h.make_node("Constant", [], ["k"], "k0", value=nh.from_array(np.float32([1, 2, 3]))), h.make_node("Add", ["k", "w"], ["kw"], "add0"),
        h.make_node("Mul", ["x", "kw"], ["y"], "mul0"), h.make_node("Shape", ["y"], ["s"], "shape0"), h.make_node("Gather", ["s", "one"], ["d"],
        "gather0"),
        h.make_node("Concat", ["m1", "d"], ["target"], "concat0", axis=0), h.make_node("Reshape", ["y", "target"], ["z"], "reshape0"),
        h.make_node("Relu", ["y"], ["dead"], "dead0"), h.make_node("Expand", ["two", "big"], ["ex"], "expand0"),
        h.make_node("ReduceSum", ["ex"], ["exs"], "sum0", keepdims=0), h.make_node("Add", ["z", "exs"], ["out"], "add1")],
        [info("x", T.FLOAT, ["N", 3])], [info("out", T.FLOAT, ["N", 3])],
        [("w", np.float32([.5, .5, .5])), ("one", np.int64([1])), ("m1", np.int64([-1])), ("two", np.float32(2)), ("big", np.int64([100, 100]))])
    g = onnx.load("rows.onnx")
    nodes = list(g.graph.node)[::-1]
    del g.graph.node[:]
    g.graph.node.extend(nodes)
    onnx.save(g, "unsorted.onnx")
    save("dds.onnx", [h.make_node("ReduceMax", ["x"], ["most"], "max0", keepdims=0), h.make_node("Cast", ["most"], ["limit"], "cast0", to=T.INT64),
                      h.make_node("Range", ["zero", "limit", "step"], ["y"], "range0")], [info("x", T.FLOAT, ["N"])], [info("y", T.INT64, ["K"])],
         [("zero", np.int64(0)), ("step", np.int64(1))])
    # More than fp16 holds, in the middle.
    sizes = [(f"w{k}", np.full((4, 4), x, np.float32)) for k, x in enumerate((300, 300, 1e-3))]
    nodes = [h.make_node("MatMul", [a, f"w{k}"], [b], f"fc{k}") for k, (a, b) in enumerate((("x", "a"), ("a", "b"), ("b", "y")))]
    save("overflow.onnx", nodes, [info("x", T.FLOAT, [1, 4])], [info("y", T.FLOAT, [1, 4])], sizes)
    save("large.onnx", [h.make_node("Mul", ["x", "w"], ["y"], "mul0")], *ends, [("w", np.full(6, 1e5, np.float32))])


def write_files():
    r = np.random.RandomState(3)
    feeds = [{"x": r.random_sample((1, 16, 8, 8)).astype(np.float32) * 3} for _ in range(2)]
    write_inputs("in.json", *feeds)
    write_inputs("n.json", {"n": np.int64(7)})
    write_inputs("i.json", {"i": np.int64([0, 9])})
    x = np.arange(1, 13, dtype=np.float32).reshape(2, 6)
    off = x.copy()
    off[1, 5] += 0.012
    inf = x.copy()
    inf[0, 0] = np.inf
    write_inputs("x.json", {"x": x})
    write_inputs("x2.json", {"x": x}, {"x": x + 1})
    write_inputs("inf.json", {"x": inf})
    write_results("off.json", {"y": off})
    write_results("off2.json", {"y": off}, {"y": x + 1.5})
    write_results("inf_out.json", {"y": inf})
    write_results("flat.json", {"y": x.reshape(12)})
    write_results("turned.json", {"y": x[:, ::-1].copy()})
    write_results("pair.json", {"y": off, "z": -off})
    write_results("one_of_two.json", {"y": x}, {"y": x + 1 + 1e-4})
    write_results("moved.json", {"y": np.float32([[2, 1, 4, 3, 6, 5], [8, 7, 10, 9, 12, 11]])})
    for name, key in (("feed_x.py", "'x': np.full((1, 16, 8, 8), 5, np.float32)"), ("feed_n.py", "'n': np.int64(7)"), ("feed_i.py",
        "'i': np.int64([0, 9])")):
        with open(name, "w") as f:
            f.write(f"import numpy as np\ndef load_data():\n    yield {{{key}}}\n")
    with open("post.py", "w") as f:
        f.write("def postprocess_outputs(result):\n    result['y'] = result['y'].round(1)\n    return result\n")
    with open("compare.py", "w") as f:
        f.write("def compare_outputs(first, second):\n    return {'y': abs(first['y'] - second['y']).max() < 1}\n")
    with open("keep.txt", "w") as f:
        f.write("fc\n")


CONVS = ("conv_few_channels", "direct_conv", "onednn_conv", "gemm_weights")


def write_made(program):
    """What the tool itself makes, for lines that read it."""
    def takes(line):
        return subprocess.run([program, "polygraphy", *line.split()], capture_output=True).returncode == 0

    def call(line):
        p = subprocess.run([program, "polygraphy", *line.split()], capture_output=True, text=True)
        if p.returncode:
            raise RuntimeError(f"{line}: exit {p.returncode}\n{p.stdout}{p.stderr}")
    call("convert net.onnx -o plan.onnx.plan --builder-optimization-level 1")
    os.rename("plan.onnx.plan", "plan.onnx")
    ends = (("min", 1), ("opt", 2), ("max", 4), ("min", 3), ("opt", 8), ("max", 16))
    call("convert net.onnx --builder-optimization-level 1 -o two.plan " + " ".join(f"--trt-{end}-shapes x:[{n},16,8,8]" for end, n in ends))
    call("run net.onnx --onnxrt --load-inputs in.json --save-outputs golden.json")
    call("surgeon weight-strip net.onnx -o stripped.onnx --exclude-list keep.txt")
    external("extstrip.onnx", onnx.load("stripped.onnx"), "weights_strip")
    call("convert net.onnx --fp-to-fp16 -o half.onnx")
    for more in ("", "--bf16"):
        call(f"run net.onnx --trt {more} --builder-optimization-level 5 --save-timing-cache times")
    call("convert net.onnx --builder-optimization-level 1 --save-tactics tactics.json -o t.plan")
    replay = json.load(open("tactics.json"))
    # The first other tactic that takes a layer; without wide vectors none does.
    for layer in replay["replay"].values():
        was = layer["assay"]
        for layer["assay"] in [t for t in CONVS if t != was and was in CONVS] + [was]:
            json.dump(replay, open("other_tactics.json", "w"))
            if takes("convert net.onnx --builder-optimization-level 1 --load-tactics other_tactics.json -o t.plan"):
                break
    os.makedirs("sorted/good"), os.makedirs("sorted/bad")
    os.replace("tactics.json", "sorted/good/0.json")
    json.dump(replay, open("sorted/bad/0.json", "w"))
    for name, line in (("acc.json", "off.json --check-error-stat max --atol 1 --rtol 1"), ("acc2.json",
        "off2.json --check-error-stat max --atol 1 --rtol 1"),
                       ("acc_l2.json", "off.json --compare l2 cosine_similarity psnr snr --l2-threshold 1")):
        feed = "x2.json" if name == "acc2.json" else "x.json"
        call(f"run id.onnx --onnxrt --load-inputs {feed} --load-outputs {line} --save-accuracy-results {name}")


def write_all(program, folder):
    here = os.getcwd()
    os.chdir(folder)
    try:
        write_models()
        write_files()
        write_made(program)
    finally:
        os.chdir(here)
