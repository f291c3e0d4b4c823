#!/usr/bin/env python3
"""The target "emu:sm_90": an emulated engine that sums as a GPU's tensor cores do.

    test_like.py ASSAY PLATFORM [SEED COUNT]

It and our kernels on the CUDA platform without a GPU (tests/cuda/fake) are two implementations of one model of the tensor
cores: outputs have to be equal, bit for bit, in fp16, bf16, tf32 and fp32 (plain). Models are products, convolutions and attention
with pointwise nodes around them: some by hand, COUNT (default 40) drawn from SEED. Then what a user sees.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

failures = []


def assay(program, platform, *arguments):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_CUDA", "CUDA_"))}
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600,
                          env={**env, "ASSAY_CUDA_PATH": platform} if platform else env)


def expect(what, ok, said=None):
    if not ok:
        failures.append(what + (f": exit code {said.returncode}\n{said.stdout}{said.stderr}" if said else ""))


class Model:
    """A graph that grows from one input to one output."""

    def __init__(self, draw, *shape, inputs=()):
        self.draw, self.nodes, self.weights, self.n = draw, [], [], 0
        self.inputs = [("x", shape)] + list(inputs)
        self.at, self.shape = "x", tuple(shape)

    def name(self):
        self.n += 1
        return f"v{self.n}"

    def constant(self, *shape, scale=1.0):
        name = self.name()
        self.weights.append(numpy_helper.from_array(np.float32(scale * self.draw.standard_normal(shape)), name))
        return name

    def number(self, value):
        name = self.name()
        self.weights.append(numpy_helper.from_array(np.float32(value), name))
        return name

    def integers(self, *values):
        name = self.name()
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def add(self, op, *more, shape=None, **attributes):
        out = self.name()
        self.nodes.append(helper.make_node(op, [self.at, *more], [out], out, **attributes))
        self.at = out
        if shape:
            self.shape = tuple(shape)
        return self

    def matmul(self, n):
        return self.add("MatMul", self.constant(self.shape[-1], n, scale=self.shape[-1]**-0.5), shape=self.shape[:-1] + (n,))

    def gemm(self, n):
        k = self.shape[-1]
        return self.add("Gemm", self.constant(n, k, scale=k**-0.5), self.constant(n), transB=1, shape=(self.shape[0], n))

    def conv(self, m, kernel, bias=True, group=1, **attributes):
        c, rank = self.shape[1], len(self.shape) - 2
        taps = [kernel] * rank
        w = self.constant(m, c // group, *taps, scale=(c // group * kernel**rank)**-0.5)
        self.add("Conv", w, *([self.constant(m)] if bias else []), group=group, kernel_shape=taps, **attributes)
        self.shape = (self.shape[0], m) + self.spatial()
        return self

    def deconv(self, m, kernel, group=1, **attributes):
        c, rank = self.shape[1], len(self.shape) - 2
        w = self.constant(c, m // group, *[kernel] * rank, scale=(c * kernel**rank / group)**-0.5)
        self.add("ConvTranspose", w, self.constant(m), group=group, **attributes)
        self.shape = (self.shape[0], m) + self.spatial()
        return self

    def spatial(self):
        model = onnx.shape_inference.infer_shapes(self.made())
        dims = model.graph.output[0].type.tensor_type.shape.dim
        return tuple(d.dim_value for d in dims[2:])

    def made(self):
        value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in self.inputs]
        graph = helper.make_graph(self.nodes, "g", value, [helper.make_tensor_value_info(self.at, TensorProto.FLOAT, None)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def products(draw):
    """By hand: what kernels tell apart."""
    yield "matmul", Model(draw, 37, 50).matmul(29)
    yield "long sums", Model(draw, 3, 700).matmul(5)
    yield "chain", Model(draw, 2, 9, 40).matmul(24).add("Relu").matmul(17)
    m = Model(draw, 33, 48).matmul(32)
    yield "epilogue", m.add("Add", m.constant(32)).add("Gelu").matmul(16).add("Sigmoid")
    yield "gemm", Model(draw, 7, 33).gemm(21).add("Tanh").gemm(8)
    m = Model(draw, 9, 40, inputs=[("c", (9, 12))])
    yield "factors", m.add("Gemm", m.constant(12, 40, scale=0.2), "c", transB=1, alpha=0.7, beta=1.3, shape=(9, 12)).add("Relu")
    yield "vector", Model(draw, 50).matmul(30)
    m = Model(draw, 4, 90).matmul(60)
    m.add("Slice", m.integers(20), m.integers(50), m.integers(1), shape=(4, 30))
    yield "slice", m.add("Sigmoid").matmul(11)
    m = Model(draw, 3, 1, 20, 16, inputs=[("z", (1, 2, 16, 24))])
    yield "batches", m.add("MatMul", "z", shape=(3, 2, 20, 24)).add("Mul", m.constant(24))
    yield "conv", Model(draw, 2, 5, 11, 9).conv(20, 3, pads=[1, 1, 1, 1]).add("Relu").conv(7, 1)
    yield "strides", Model(draw, 1, 16, 15, 15).conv(24, 3, strides=[2, 2], pads=[1, 0, 1, 0]).add("HardSwish")
    yield "dilated", Model(draw, 1, 8, 14, 14).conv(9, 3, dilations=[2, 2], bias=False)
    yield "groups", Model(draw, 2, 24, 8, 8).conv(48, 3, group=2, pads=[1, 1, 1, 1])
    yield "depthwise", Model(draw, 1, 16, 9, 9).conv(16, 3, group=16, pads=[1, 1, 1, 1]).add("Relu").conv(12, 1)
    yield "long sums of conv", Model(draw, 1, 40, 7, 6).conv(12, 3, pads=[1, 1, 1, 1])
    yield "long sums of few channels", Model(draw, 1, 16, 8, 8).conv(16, 6, group=2)
    yield "one axis", Model(draw, 2, 10, 40).conv(12, 5, pads=[2, 2])
    yield "three axes", Model(draw, 1, 6, 5, 6, 7).conv(10, 3, pads=[1] * 6)
    m = Model(draw, 1, 12, 10, 10).conv(12, 3, pads=[1, 1, 1, 1])
    m.at, sums = "x", m.at
    yield "residual", m.conv(12, 1).add("Add", sums).add("Relu")
    yield "transposed", Model(draw, 1, 18, 6, 7).deconv(10, 4, strides=[2, 2], pads=[1, 1, 1, 1]).add("LeakyRelu", alpha=0.1)
    yield "transposed groups", Model(draw, 2, 8, 5, 5).deconv(4, 3, group=4)
    yield "huge and tiny", huge(draw)
    # The last bits of sums, which the 16-bit formats round away, turn the sine around.
    for name, m in (("last bits", Model(draw, 40, 300).matmul(30)), ("last bits of conv", Model(draw, 1, 20, 9, 9).conv(16, 3))):
        yield name, m.add("Mul", m.number(2.0**15)).add("Sin")


def huge(draw):
    """Sums that go past fp16, infinities, and terms far apart."""
    m = Model(draw, 6, 64)
    return m.add("Mul", m.constant(64, scale=3e4)).add("Mul", m.constant(6, 64, scale=1e-3)).matmul(20)


def attention(draw, rows, keys, size, v_size, heads, mask=None, causal=0, **attributes):
    m = Model(draw, 2, heads, rows, size, inputs=[("k", (2, heads, keys, size)), ("v", (2, heads, keys, v_size))])
    more = ["k", "v"]
    if mask:
        m.inputs.append(("mask", mask))
        more.append("mask")
    return m.add("Attention", *more, is_causal=causal, **attributes)


def attentions(draw):
    yield "attention", attention(draw, 20, 33, 16, 16, 3)
    yield "odd heads", attention(draw, 9, 130, 20, 36, 2)
    yield "causal", attention(draw, 70, 70, 32, 32, 1, causal=1)
    yield "masked", attention(draw, 24, 65, 24, 24, 2, mask=(2, 1, 24, 65))
    yield "capped", attention(draw, 17, 17, 64, 64, 1, softcap=5.0)
    yield "large heads", attention(draw, 6, 40, 144, 144, 1)


def drawn(draw):
    """Some steps, one after the other."""
    if draw.integers(3) == 0:
        m = Model(draw, *(int(draw.integers(1, 40)) for _ in range(draw.integers(2, 4))))
        kinds = ["matmul", "function", "function", "constant"]
    else:
        m = Model(draw, int(draw.integers(1, 3)), int(draw.integers(1, 7)) * 4, *(int(draw.integers(4, 12)) for _ in range(draw.integers(1, 3))))
        kinds = ["conv", "conv", "deconv", "grouped", "function", "channel"]
    for _ in range(draw.integers(2, 6)):
        kind = kinds[draw.integers(len(kinds))]
        if kind == "matmul":
            m.matmul(int(draw.integers(1, 90)))
        elif kind == "constant":
            m.add(["Add", "Mul"][draw.integers(2)], m.constant(m.shape[-1]))
        elif kind == "channel":
            m.add(["Add", "Mul"][draw.integers(2)], m.constant(m.shape[1], *[1] * (len(m.shape) - 2)))
        elif kind == "function":
            m.add(["Relu", "Sigmoid", "Tanh", "Gelu", "Softplus", "HardSigmoid", "Elu", "Mish", "Erf"][draw.integers(9)])
        elif kind == "deconv":
            m.deconv(int(draw.integers(1, 20)), int(draw.integers(1, 4)), strides=[int(draw.integers(1, 3))] * (len(m.shape) - 2))
        else:
            k, rank = int(draw.choice([1, 3])), len(m.shape) - 2
            group = 1
            if kind == "grouped":
                group = [g for g in (2, 4, m.shape[1]) if m.shape[1] % g == 0][-1]
            m.conv(group * int(draw.integers(1, 40 // group + 2)), k, group=group, pads=[k // 2] * (2 * rank),
                   strides=[int(draw.integers(1, 3))] * rank)
    return m


def runs(program, platform, name, m, precision, fused):
    onnx.save(m.made(), "m.onnx")
    draw = np.random.default_rng(3)
    np.savez("x.npz", **{n: np.float32(draw.standard_normal(s)) for n, s in m.inputs})
    made = []
    for target in ("cuda", "emu:sm_90"):
        said = assay(program, platform, "run", "m.onnx", "-i", "x.npz", "--target", target, "--precision", precision, "-o", "y.npz",
                     *(["--fused"] if fused else []), *(["--fp32", "plain"] if precision == "fp32" else []))
        expect(f"{name} in {precision} by {target}", said.returncode == 0, said)
        if said.returncode:
            return
        with np.load("y.npz") as z:
            made.append([z[k] for k in z.files])
    for a, b in zip(*made):
        same = (a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))
        if not same.all():
            at = np.argwhere(~same)[0]
            failures.append(f"{name} in {precision}{' fused' if fused else ''}: {np.sum(~same)} of {same.size} differ, first {tuple(at)}: "
                            f"cuda {a[tuple(at)]!r}, emu {b[tuple(at)]!r}")


def check_bits(program, platform, seed, count):
    draw = np.random.default_rng(11)
    for k, (name, m) in enumerate(products(draw)):
        for precision in ("fp16", "bf16", "tf32", "fp32"):
            runs(program, platform, name, m, precision, k % 2 == 0)
            runs(program, platform, name, m, precision, k % 2 == 1)
    for name, m in attentions(draw):
        for precision in ("fp16", "bf16", "fp32"):
            runs(program, platform, name, m, precision, True)
    for k in range(count):
        m = drawn(np.random.default_rng((seed, k)))
        runs(program, platform, f"drawn {seed} {k}", m, ("fp16", "bf16", "tf32", "fp32")[k % 4], k % 8 != 7)


def check_models_differ(program):
    """Each generation has bits of its own where it has another model, and none of them the emulated engine's."""
    m = dict(products(np.random.default_rng(11)))["last bits"]
    onnx.save(m.made(), "m.onnx")
    np.savez("x.npz", x=np.float32(np.random.default_rng(3).standard_normal((40, 300))))
    made = {}
    for target in ("emu", "emu:sm_80", "emu:sm_86", "emu:sm_89", "emu:sm_90", "emu:sm_100", "emu:sm_120"):
        for precision in ("fp16", "tf32"):
            said = assay(program, None, "run", "m.onnx", "-i", "x.npz", "--target", target, "--precision", precision, "--fused", "-o", "y.npz")
            expect(f"{target} in {precision}", said.returncode == 0, said)
            with np.load("y.npz") as z:
                made[target, precision] = z[z.files[0]].tobytes()
    for precision in ("fp16", "tf32"):
        old, new = made["emu:sm_80", precision], made["emu:sm_90", precision]
        expect(f"bits of two generations in {precision}", len({made["emu", precision], old, new}) == 3)
        for like, bits in (("sm_86", old), ("sm_89", old), ("sm_100", new), ("sm_120", new)):
            expect(f"bits of {like} in {precision}", made[f"emu:{like}", precision] == bits)


def check_command_line(program, platform):
    m = Model(np.random.default_rng(5), 30, 200).matmul(40)
    onnx.save(m.made(), "m.onnx")
    np.savez("x.npz", x=np.float32(np.random.default_rng(6).standard_normal((30, 200))))
    assay(program, platform, "run", "m.onnx", "-i", "x.npz", "--target", "cuda", "--precision", "tf32", "--fused", "-o", "gpu.npz")
    like = ["check", "m.onnx", "-i", "x.npz", "--precision", "tf32", "--target", "emu", "--like"]
    said = assay(program, None, *like, "sm_90", "-g", "gpu.npz")
    expect("equal", said.returncode == 0 and "on emu:sm_90" in said.stdout and
           "golden is equal to what sm_90 computes, bit for bit, in all 1,200 elements" in said.stdout, said)
    said = assay(program, None, *like, "sm_80", "-g", "gpu.npz")
    expect("another GPU", "golden differs from what sm_80 computes in " in said.stdout and "ulps of fp32" in said.stdout, said)
    with np.load("gpu.npz") as z:
        y = z[z.files[0]]
    y[3, 4] = np.nextafter(y[3, 4], np.float32(9))
    np.savez("off.npz", **{m.at: y})
    said = assay(program, None, *like, "sm_90", "-g", "off.npz")
    expect("one ulp", "golden differs from what sm_90 computes in 1 of 1,200 elements, by at most 1 ulp of fp32" in said.stdout, said)
    y[3, 4] = np.inf
    np.savez("off.npz", **{m.at: y})
    said = assay(program, None, *like, "sm_90", "-g", "off.npz", "--json", "-")
    expect("an infinity", '"bits_against_golden"' in said.stdout and '"ulps": null' in said.stdout, said)
    said = assay(program, None, *like[:-1], "-g", "gpu.npz")
    expect("emu is like nothing", "computes, bit for bit" not in said.stdout and "on emu:" in said.stdout, said)
    for arguments, words in ((["--target", "emu", "--like", "sm_70"], "--like 'sm_70' is no GPU whose sums are known; use sm_80, "),
                             (["--target", "cpu", "--like", "sm_90"], "--like is for --target emu, not 'cpu'"),
                             (["--target", "emu:sm_70"], "unknown target 'emu:sm_70'")):
        for verb in ("check", "run"):
            said = assay(program, None, verb, "m.onnx", "-i", "x.npz", *arguments)
            expect(f"{verb} {arguments}", said.returncode == 2 and words in said.stderr and len(said.stderr.splitlines()) == 1, said)
    said = assay(program, None, "check", "m.onnx", "-i", "x.npz", "--precision", "fp8e4m3", "--like", "sm_90")
    expect("fp8", said.returncode and "multiplies in fp8e4m3: how sm_90 sums that is not known to the bit" in said.stderr and
           len(said.stderr.splitlines()) == 1, said)
    said = assay(program, None, "run", "m.onnx", "-i", "x.npz", "--like", "sm_90", "--precision", "tf32", "--fused", "-o", "y.npz")
    with np.load("y.npz") as a, np.load("gpu.npz") as b:
        expect("run --like", a[m.at].tobytes() == b[m.at].tobytes(), said)


def main():
    program, platform = map(os.path.abspath, sys.argv[1:3])
    seed, count = map(int, sys.argv[3:5]) if len(sys.argv) > 4 else (1, 40)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_bits(program, platform, seed, count)
        check_models_differ(program)
        check_command_line(program, platform)
    for f in failures:
        print(f)
    print(f"{len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
