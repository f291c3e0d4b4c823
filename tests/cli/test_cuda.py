#!/usr/bin/env python3
"""The target "cuda" on the command line, on the CUDA platform without a GPU (tests/cuda/fake).

    test_cuda.py ASSAY PLATFORM

What is here and what is missing is said in one line; numbers of devices; "auto"; plans run without a compiler, are
refused on another architecture, stripped and refitted, and give the same bits for fixed and for open sizes.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

failures = []


def assay(program, path, *arguments):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_CUDA", "CUDA_"))}
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
                          env={**env, "ASSAY_CUDA_PATH": path} if path else env)


def expect(what, ok, said):
    if not ok:
        failures.append(f"{what}: exit code {said.returncode}\n{said.stdout}{said.stderr}")


def arrays(path):
    if not os.path.exists(path):
        return None
    with np.load(path) as z:
        return {name: z[name].tobytes() for name in z.files}


def make_model(name, scale):
    """Layers of the GPU's kernels and of the host's, with an open batch."""
    draw = np.random.default_rng(5)
    weights = [numpy_helper.from_array((scale * draw.standard_normal(s)).astype(np.float32), n)
               for n, s in {"w": (24, 40), "b": (40,), "v": (40, 8)}.items()]
    weights.append(numpy_helper.from_array(np.array([5], np.int64), "k"))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], "first"), helper.make_node("Add", ["m", "b"], ["a"], "bias"),
             helper.make_node("Softplus", ["a"], ["s"], "soft"), helper.make_node("MatMul", ["s", "v"], ["y"], "second"),
             helper.make_node("TopK", ["y", "k"], ["top", "at"], "top", axis=1), helper.make_node("Einsum", ["y", "y"], ["low"], "low", equation="ij,ij->ij")]
    value = [helper.make_tensor_value_info(n, t, ["N", s]) for n, t, s in
             (("x", TensorProto.FLOAT, 24), ("y", TensorProto.FLOAT, 8), ("top", TensorProto.FLOAT, 5), ("at", TensorProto.INT64, 5),
              ("low", TensorProto.FLOAT, 8))]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), name)


def check_targets(program, platform, nothing):
    said = assay(program, platform, "--version")
    lines = [line for line in said.stdout.splitlines() if "cuda" in line]
    expect("--version", len(lines) == 1 and "0: A GPU for tests, compute capability 9.0" in lines[0] and "NVRTC 13.0" in lines[0], said)
    expect("--version has no other line of it", "\ndevice" not in said.stdout, said)
    said = assay(program, platform, "debug", "environment")
    expect("debug environment", "A GPU for tests" in said.stdout, said)
    assay(program, platform, "run", "m.onnx", "-i", "x.npz", "--target", "cpu", "-o", "cpu.npz")
    for target in ("cuda", "cuda:0", "auto"):
        said = assay(program, platform, "run", "m.onnx", "-i", "x.npz", "--target", target, "-o", "gpu.npz")
        expect(f"--target {target}", said.returncode == 0, said)
        with np.load("cpu.npz") as a, np.load("gpu.npz") as b:
            expect(f"numbers of {target}", np.allclose(a["y"], b["y"], 1e-5, 1e-5) and np.array_equal(a["at"], b["at"]), said)
        told = "assay: --target auto: cuda, A GPU for tests"
        expect(f"{target} is told once", said.stderr.count(told) == (target == "auto"), said)
    for target, code, words in (("cuda:5", 4, "there is no GPU 5: 1 is there"), ("cuda:x", 2, "behind ':' is the number of a device"),
                                ("cpu:1", 2, "unknown target 'cpu:1'; this build has cpu, emu, cuda"), ("cuda:99", 2, "unknown target")):
        said = assay(program, platform, "run", "m.onnx", "-i", "x.npz", "--target", target)
        expect(f"--target {target}", said.returncode == code and words in said.stderr and len(said.stderr.splitlines()) == 1, said)
    for device, ok in (("0", True), ("1", False)):
        said = assay(program, platform, "trtexec", "--onnx=m.onnx", f"--device={device}", "--shapes=x:2x24", "--iterations=1", "--duration=0",
                     "--warmUp=0")
        words = "Device 0: A GPU for tests" if ok else "--device=1: there is no such device"
        expect(f"trtexec --device={device}", (said.returncode == 0) == ok and words in said.stdout + said.stderr, said)
    # Where there is a driver of its own, nothing is missing.
    if "no libcuda.so.1 was found" not in assay(program, nothing, "--version").stdout:
        return
    said = assay(program, nothing, "run", "m.onnx", "-i", "x.npz", "--target", "cuda")
    expect("without a driver", said.returncode == 4 and len(said.stderr.splitlines()) == 1
           and f"no libcuda.so.1 was found (looked in ASSAY_CUDA_PATH ('{nothing}')" in said.stderr, said)
    said = assay(program, nothing, "run", "m.onnx", "-i", "x.npz", "--target", "auto")
    expect("auto without a driver", said.returncode == 0 and said.stderr.count("assay: --target auto: cpu (target 'cuda': no libcuda") == 1, said)
    said = assay(program, nothing, "conformance", ".", "--backend", "cuda")
    expect("conformance without a driver", said.returncode == 4 and len(said.stderr.splitlines()) == 1, said)


def check_account(program, platform):
    """Several plans one after the other, with a layer that the host evaluates in each."""
    said = assay(program, platform, "check", "m.onnx", "-i", "x.npz", "--precision", "fp16", "--target", "cuda")
    expect("check", said.returncode in (0, 1) and "in fp16 on cuda" in said.stdout, said)


def check_plans(program, platform, without_compiler):
    build = ["build", "m.onnx", "--target", "cuda"]
    said = assay(program, platform, *build, "--batch", "3", "-o", "fixed.plan")
    expect("build", said.returncode == 0, said)
    said = assay(program, platform, "inspect", "plan", "fixed.plan")
    expect("inspect plan", "on cuda" in said.stdout and " host " in said.stdout and "product_fma" in said.stdout and " emu " not in said.stdout, said)
    said = assay(program, platform, "run", "fixed.plan", "-i", "x.npz", "-o", "fixed.npz")
    expect("run a plan", said.returncode == 0, said)
    want = arrays("fixed.npz")
    # A plan brings its kernels.
    for words in ([], ["--target", "cuda:0"]):
        said = assay(program, without_compiler, "run", "fixed.plan", "-i", "x.npz", "-o", "again.npz", *words)
        expect(f"without a compiler {words}", said.returncode == 0 and arrays("again.npz") == want, said)
    said = assay(program, without_compiler, *build, "--batch", "3", "-o", "none.plan")
    # Unless the loader finds one.
    is_there = "libnvrtc.so.13 was not found" not in assay(program, without_compiler, "--version").stdout
    expect("no build without a compiler", is_there or said.returncode == 4 and "plans for a GPU can be run, not built: libnvrtc.so.13 was not found" in said.stderr
           and len(said.stderr.splitlines()) == 1, said)
    said = assay(program, f"{without_compiler}::{platform}", *build, "--batch", "3", "-o", "second.plan")
    expect("a compiler in the second folder", said.returncode == 0, said)
    for target, words in (("cpu", "the plan was built for target 'cuda', not for 'cpu'"), ("cuda:1", "there is no GPU 1")):
        said = assay(program, platform, "run", "fixed.plan", "-i", "x.npz", "--target", target)
        expect(f"a plan on {target}", said.returncode != 0 and words in said.stderr, said)
    with open("fixed.plan", "rb") as f:
        data = f.read()
    need = b"GPUs of compute capability 9.0"
    expect("what a plan needs is in it, and no more", data[:4096].count(need) == 1 and b"CUDA 13.0" not in data[:4096], said)
    with open("other.plan", "wb") as f:
        f.write(data.replace(need, b"GPUs of compute capability 8.0", 1))
    said = assay(program, platform, "run", "other.plan", "-i", "x.npz")
    expect("another architecture", said.returncode == 3 and len(said.stderr.splitlines()) == 1 and "built for another machine (GPUs of compute "
           "capability 8.0; here: GPUs of compute capability 9.0)" in said.stderr, said)
    # Open sizes give the bits of fixed ones.
    said = assay(program, platform, *build, "--profile", "x=1x24:3x24:9x24", "-o", "open.plan")
    expect("build for a range", said.returncode == 0, said)
    for rows in (1, 3, 9):
        np.savez("in.npz", x=np.random.default_rng(rows).standard_normal((rows, 24)).astype(np.float32))
        expect("build", assay(program, platform, *build, "--batch", str(rows), "-o", "rows.plan").returncode == 0, said)
        for plan in ("rows", "open"):
            said = assay(program, without_compiler, "run", f"{plan}.plan", "-i", "in.npz", "-o", f"{plan}.npz")
            expect(f"{plan} of {rows}", said.returncode == 0, said)
        expect(f"bits of {rows} rows", arrays("rows.npz") == arrays("open.npz") is not None, said)
    # Weights taken out, and put in again.
    said = assay(program, platform, *build, "--batch", "3", "--strip-weights", "--refittable", "-o", "thin.plan")
    expect("build stripped", said.returncode == 0, said)
    said = assay(program, platform, "run", "thin.plan", "-i", "x.npz")
    expect("a stripped plan does not run", said.returncode != 0 and "weights" in said.stderr, said)
    for model in ("m", "n"):
        assay(program, platform, "build", f"{model}.onnx", "--target", "cuda", "--batch", "3", "-o", "whole.plan")
        said = assay(program, without_compiler, "refit", "thin.plan", "-w", f"{model}.onnx", "-o", "fat.plan")
        expect(f"refit by {model}", said.returncode == 0, said)
        for plan in ("whole", "fat"):
            said = assay(program, without_compiler, "run", f"{plan}.plan", "-i", "x.npz", "-o", f"{plan}.npz")
            expect(f"run {plan}", said.returncode == 0, said)
        expect(f"bits of the refitted plan of {model}", arrays("whole.npz") == arrays("fat.npz") is not None, said)


def main(program, platform):
    program, platform = os.path.abspath(program), os.path.abspath(platform)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in ("driver", "nothing"):
            os.mkdir(name)
        os.symlink(f"{platform}/libcuda.so.1", "driver/libcuda.so.1")
        make_model("m.onnx", 0.3)
        make_model("n.onnx", 0.4)
        np.savez("x.npz", x=np.random.default_rng(3).standard_normal((3, 24)).astype(np.float32))
        check_targets(program, platform, f"{folder}/nothing")
        check_account(program, platform)
        check_plans(program, platform, f"{folder}/driver")
        os.chdir("/")
    for line in failures:
        print(f"FAIL {line}")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
