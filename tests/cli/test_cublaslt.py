#!/usr/bin/env python3
"""Kernels of a library beside ours, on the CUDA platform without a GPU (tests/cuda/fake/cublaslt.c).

    test_cublaslt.py ASSAY PLATFORM

A build takes cuBLASLt's where it is faster and has the bits of our kernels, and leaves out what has others; a plan runs with
the same bits where the library is another one or is missing; an error of the library is one line that names the layer.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

failures = []
SAME, TURNED, PARTS = "cublaslt/13.1.0-66.", "cublaslt/13.1.0-67.", "cublaslt/13.1.0-68."


def assay(program, path, has, *arguments, times=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_CUDA", "CUDA_", "ASSAY_FAKE_CUBLASLT"))}
    if times:
        env["ASSAY_FAKE_TIMES"] = times
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
                          env={**env, "ASSAY_CUDA_PATH": path, "ASSAY_FAKE_CUBLASLT": has, "ASSAY_KERNEL_CACHE": os.path.abspath("kernels")})


def expect(what, ok, said):
    if not ok:
        failures.append(f"{what}: exit code {said.returncode}\n{said.stdout}{said.stderr}")


def make_model(name):
    """A product with a bias and Relu, one alone, and one that ends with what cuBLASLt has no like of."""
    draw = np.random.default_rng(5)
    weights = [numpy_helper.from_array(draw.standard_normal(s).astype(np.float32), n)
               for n, s in {"w": (96, 64), "b": (64,), "v": (64, 40), "u": (40, 32)}.items()]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], "first"), helper.make_node("Add", ["m", "b"], ["a"], "bias"),
             helper.make_node("Relu", ["a"], ["r"], "relu"), helper.make_node("MatMul", ["r", "v"], ["s"], "second"),
             helper.make_node("MatMul", ["s", "u"], ["t"], "third"), helper.make_node("Tanh", ["t"], ["y"], "tanh")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 96])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 32])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), name)


def tactics(text):
    """By layer, of `inspect plan`."""
    table = [line.split() for line in text.splitlines() if line.startswith(("fp16", "bf16", "tf32", "fp32   "))]
    return {words[4]: words[2] for words in table if len(words) > 4}


def library(by):
    return {layer: tactic for layer, tactic in by.items() if tactic.startswith("cublaslt")}


def run(program, path, has, plan, inputs="x.npz"):
    said = assay(program, path, has, "run", plan, "-i", inputs, "-o", "out.npz")
    if said.returncode != 0:
        return said, None
    with np.load("out.npz") as z:
        return said, z["y"].tobytes()


def check_build(program, platform):
    build = ["build", "m.onnx", "--target", "cuda", "--precision", "fp16", "--batch", "9"]
    said = assay(program, platform, "turned,same,parts", *build, "-o", "with.plan", "--timing-cache", "cache")
    expect("build", said.returncode == 0, said)
    said = assay(program, platform, "turned,same,parts", "inspect", "plan", "with.plan")
    by = tactics(said.stdout)
    expect("those of the same bits win", by.get("first", "").startswith(SAME) and by.get("second", "").startswith(SAME)
           and by.get("third", "").startswith("product_"), said)
    for layer in ("first", "second"):
        said = assay(program, platform, "turned,same,parts", "inspect", "plan", "with.plan", "--explain", layer)
        other = [line for line in said.stdout.splitlines() if TURNED in line]
        expect("other bits are left out", len(other) == 1 and "left out: its bits are not those of" in other[0]
               and PARTS not in said.stdout, said)
    with open("cache", encoding="utf-8") as f:
        text = f.read()
    expect("the cache", text.count(SAME) == 2 and text.count(TURNED) == 2, said)
    # A build with the cache makes the same of it, also one that was made without the library.
    said = assay(program, platform, "", *build, "-o", "again.plan", "--timing-cache", "before")
    for cache in ("cache", "before"):
        said = assay(program, platform, "turned,same,parts", *build, "-o", "again.plan", "--timing-cache", cache)
        said = assay(program, platform, "turned,same,parts", "inspect", "plan", "again.plan")
        expect(f"build with {cache}", library(tactics(said.stdout)) == library(by), said)
    for words in (["--tactic-sources", "assay"], ["--tactic-sources=-cublaslt"]):
        said = assay(program, platform, "same", *build, *words, "-o", "without.plan")
        expect("build without", said.returncode == 0, said)
        said = assay(program, platform, "same", "inspect", "plan", "without.plan")
        expect(f"{words} leaves it out", "cublaslt" not in said.stdout, said)
    return run(program, platform, "same", "without.plan")[1], run(program, platform, "same,turned", "with.plan")[1]


def check_plans(program, platform, without, want):
    """Where the library is not the one of the plan, our kernels run, which the plan has."""
    there = [(platform, "same,older"), (platform, "")]
    # Unless the loader finds one.
    if "no cuBLASLt, which is optional: libcublasLt.so.13 was not found" in assay(program, without, "", "--version").stdout:
        there.append((without, "same"))
    for path, has in there:
        said, got = run(program, path, has, "with.plan")
        expect(f"a plan with '{has}'", got == want, said)
        said = assay(program, path, has, "inspect", "plan", "with.plan")
        expect(f"inspect a plan with '{has}'", "cublaslt" not in said.stdout and "product_" in said.stdout, said)


def check_other_ways(program, platform):
    build = ["build", "m.onnx", "--target", "cuda", "--batch", "9", "-o", "other.plan"]
    # Nobody looks at bits where these do not matter, and what was measured so says nothing about them.
    said = assay(program, platform, "parts", *build, "--precision", "fp16", "--no-batch-invariant", "--timing-cache", "any")
    expect("build of any bits", said.returncode == 0, said)
    said = assay(program, platform, "parts", "inspect", "plan", "other.plan")
    expect("any bits", tactics(said.stdout).get("second", "").startswith(PARTS), said)
    # What was measured where bits mattered does not keep others out.
    said = assay(program, platform, "parts", *build, "--precision", "fp16", "--timing-cache", "mattered")
    said = assay(program, platform, "parts", *build, "--precision", "fp16", "--no-batch-invariant", "--timing-cache", "mattered")
    said = assay(program, platform, "parts", "inspect", "plan", "other.plan")
    expect("any bits behind times of some", tactics(said.stdout).get("second", "").startswith(PARTS), said)
    said = assay(program, platform, "parts", *build, "--precision", "fp16", "--timing-cache", "any")
    said = assay(program, platform, "parts", "inspect", "plan", "other.plan")
    expect("times of any bits", "cublaslt" not in said.stdout and "product_" in said.stdout, said)
    # The tests' library cuts float32 as ours does, but adds in another order than tensor cores.
    for precision, has in (("tf32", False), ("bf16", True), ("fp32", True)):
        said = assay(program, platform, "same", *build, "--precision", precision)
        said = assay(program, platform, "same", "inspect", "plan", "other.plan")
        expect(precision, ("cublaslt" in said.stdout) == has, said)
    said = assay(program, platform, "fails", *build, "--precision", "fp16")
    words = ("layer 'first .. relu'", "cublasLtMatmul of cuBLASLt 13.1.0 gave CUBLAS_STATUS_EXECUTION_FAILED (13)", "--tactic-sources assay")
    expect("an error", said.returncode not in (0, 1) and all(w in said.stderr for w in words) and len(said.stderr.splitlines()) == 1, said)
    said = assay(program, platform, "same", "--version")
    expect("--version", "cuBLASLt 13.1.0" in said.stdout, said)


def check_times(program, platform):
    """A kernel's time is none of its launch, whatever that takes the host: of one of ours 8 us, of the library's call 40 or 1."""
    # Not the last layer: what a caller gets is stored as float32 by kernels of ours alone.
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"], "short"), helper.make_node("Softmax", ["s"], ["y"], "last")]
    graph = helper.make_graph(nodes, "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 16])], [numpy_helper.from_array(np.eye(16, dtype=np.float32), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "short.onnx")
    # A library's kernel counts 1 us more: the layer behind it cannot begin before its end.
    for times, took, fastest in (("8000,40000,80000,60000", "61.00 us", SAME), ("8000,1000,60000,65000", "66.00 us", "product_"), ("8000,1000,60000,59500", "60.50 us", "product_")):
        said = assay(program, platform, "same", "build", "short.onnx", "--target", "cuda", "--precision", "fp16", "-o", "short.plan", times=times)
        expect(f"build with times {times}", said.returncode == 0, said)
        said = assay(program, platform, "same", "inspect", "plan", "short.plan", "--explain", "short")
        expect(f"times {times}", any(SAME in line and took in line for line in said.stdout.splitlines()), said)
        said = assay(program, platform, "same", "inspect", "plan", "short.plan")
        expect(f"choice by times {times}", tactics(said.stdout).get("short", "").startswith(fastest), said)


def check_trtexec(program, platform):
    for words, has in ((["--tacticSources=-CUBLAS_LT"], False), (["--tacticSources=-CUBLAS_LT,-CUBLAS"], False),
                       (["--tacticSources=+CUBLAS_LT,+OWN"], True), ([], True)):
        said = assay(program, platform, "same", "trtexec", "--onnx=m.onnx", "--fp16", "--shapes=x:9x96", "--saveEngine=trt.plan", "--skipInference",
                     "--device=0", *words)
        expect(f"trtexec {words}", said.returncode == 0 and "has no effect" not in said.stdout + said.stderr.replace("-CUBLAS has", ""), said)
        made = assay(program, platform, "same", "inspect", "plan", "trt.plan")
        expect(f"trtexec {words}", ("cublaslt" in made.stdout) == has, said)


def main():
    program, platform = sys.argv[1], sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_model("m.onnx")
        np.savez("x.npz", x=np.random.default_rng(7).standard_normal((9, 96)).astype(np.float32))
        os.mkdir("driver")
        os.mkdir("kernels")
        shutil.copy(os.path.join(platform, "libcuda.so.1"), "driver")
        want, got = check_build(program, platform)
        if want is None or want != got:
            failures.append("bits with the library are not those without it")
        check_plans(program, platform, os.path.abspath("driver"), want)
        check_other_ways(program, platform)
        check_times(program, platform)
        check_trtexec(program, platform)
    print("\n".join(failures) or "ok")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
