#!/usr/bin/env python3
"""`assay certify` on real models: sizes and times, predictions that cannot flip, engine mutants, code paths.

    certify.py ASSAY [--cases DIR] [--zoo DIR] [--mutants N] [--parts sizes,decisions,mutants,paths] [--results FILE]

Exit code 1 if a clean engine does not hold, a certificate takes more than 1 % of its model (or 512 bytes), a prediction that was
certified as stable flips, a mutant is not found by its bits in its node, or another node is blamed for one.
"""
import argparse
import datetime
import glob
import importlib.machinery
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PART, FLOOR = 0.01, 512
# Labelled sets: how an input is made of the bytes that are kept, and the models of a case that take it.
SETS = {"digits_cnn": (255, ["model"]), "digits_transformer": (255, ["model"]), "elu_tf2onnx": (None, ["model"]),
        "near_zero_rel": (1, ["model"]),
        "sandglass_mish_int8": (255, ["model", "model_mish_op", "model_int8_a_nothing_between", "model_int8_b_between",
                                      "model_mish_op_int8_a_nothing_between", "model_mish_op_int8_b_between"])}
# Engines that a certificate of emu, node by node, is held against.
ENGINES = {"emu": ["--target", "emu", "--unfused"], "emu fused": ["--target", "emu", "--fused"], "cpu": ["--target", "cpu"],
           "cpu unfused": ["--target", "cpu", "--unfused"]}
# What oneDNN may use, and the CPU feature that it takes; our own kernels follow the CPU.
PATHS = {"AVX2": ("AVX2", "avx2"), "AVX-512": ("AVX512_CORE", "avx512f"), "AVX-512 BF16": ("AVX512_CORE_BF16", "avx512_bf16"),
         "AMX": ("AVX512_CORE_AMX", "amx_tile")}


def load_mutants():
    loader = importlib.machinery.SourceFileLoader("mutants", os.path.join(HERE, "mutants"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", loader))
    loader.exec_module(module)
    return module


def run(command, path=None):
    environment = {"OMP_WAIT_POLICY": "passive", **os.environ}
    if path:
        environment["ONEDNN_MAX_CPU_ISA"] = path
    started = time.monotonic()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout, done.stderr.strip().splitlines(), time.monotonic() - started


class Certify:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def make(self, model, name, *options):
        """The report of a certificate, its path and seconds."""
        path = os.path.join(self.folder, name + ".cert")
        code, out, err, seconds = run([self.program, "certify", model, "-o", path, "--json", "-", *options])
        if code:
            raise RuntimeError(f"certify {model} {options}: exit code {code}: {err[-1:]}")
        return json.loads(out), path, seconds

    def verify(self, path, model, *options, isa=None):
        code, out, err, seconds = run([self.program, "certify", "--verify", path, model, "--json", "-", *options], isa)
        if code not in (0, 1):
            raise RuntimeError(f"certify --verify {model} {options}: exit code {code}: {err[-1:]}")
        return json.loads(out), seconds


def cell(report):
    guilty = report["guilty"]
    return "holds" if not guilty else f"{guilty['what']} {guilty['node']}: {guilty['why']}"


# ---- sizes and times --------------------------------------------------------------------------------------


def sizes(certify, options, failures):
    lines = ["## Sizes and times", "", "Inputs drawn from the seed. Size in bytes, and of the model; seconds of the clock.", "",
             "| model | precision | bytes | part | values kept | numbers, bytes of bits each | certify | verify emu | verify cpu | "
             "cpu says |", "|---|---|---|---|---|---|---|---|---|---|"]
    models = sorted(glob.glob(os.path.join(options.cases, "*", "model.onnx"))) + sorted(glob.glob(os.path.join(options.zoo, "*.onnx")))
    for model in models:
        name = os.path.basename(os.path.dirname(model)) if model.endswith("/model.onnx") else os.path.basename(model)[:-5]
        for precision in options.precisions:
            try:
                report, path, made = certify.make(model, name, "--precision", precision)
                emu, on_emu = certify.verify(path, model)
                cpu, on_cpu = certify.verify(path, model, "--target", "cpu")
            except RuntimeError as e:
                failures.append(f"{name} in {precision}: {e}")
                continue
            part = report["bytes"] / report["model_bytes"]
            if report["bytes"] > max(PART * report["model_bytes"], FLOOR):
                failures.append(f"{name} in {precision}: {report['bytes']} bytes are {100 * part:.2f} %")
            for engine, held in (("emu", emu), ("cpu", cpu)):
                if held["verdict"] != "holds":
                    failures.append(f"{name} in {precision} on {engine}: {cell(held)}")
            lines.append(f"| {name} | {precision} | {report['bytes']} | {100 * part:.3g} % | {report['kept']} of {report['values']} | "
                         f"{report['sketches']}, {report['bits_bytes']} | {made:.1f} | {on_emu:.1f} | {on_cpu:.1f} | {cell(cpu)} |")
            print(lines[-1], flush=True)
    return lines


# ---- decisions ---------------------------------------------------------------------------------------------


def labelled(options, folder):
    """(name, model, inputs, precisions) of every labelled set."""
    for case, (scale, models) in SETS.items():
        source = os.path.join(options.cases, case)
        if not os.path.exists(f"{source}/testset.npz"):
            continue
        arrays = np.load(f"{source}/testset.npz")
        inputs = os.path.join(folder, f"{case}.npz")
        image = arrays["image"] if scale is None else arrays["image_u8"].astype(np.float32) / np.float32(scale)
        np.savez(inputs, image=image.astype(np.float32))
        for model in models:
            path = f"{source}/{model}.onnx"
            name = case if model == "model" else f"{case}/{model}"
            if "int8" in model:
                yield name, path, inputs, ["int8"]
                continue
            yield name, path, inputs, ["fp16", "bf16"]
            quantized = os.path.join(folder, f"{name.replace('/', '-')}-int8.onnx")
            calibration = f"{source}/calib.npz"
            few = os.path.join(folder, f"{case}-calibration.npz")
            from_file = np.load(calibration)["image_u8"][:32].astype(np.float32) / 255 if os.path.exists(calibration) else image[:32]
            np.savez(few, image=from_file.astype(np.float32))
            if run([options.assay, "edit", "quantize", path, "-o", quantized, "--inputs", few, "--force"])[0] in (0, 1):
                if os.path.exists(quantized):
                    yield name + ", quantized", quantized, inputs, ["int8"]


def decisions(certify, options, failures):
    lines = ["## Predictions that cannot flip", "", "Certified on emu, node by node, over each labelled set; then run by other engines: "
             "how many predictions flipped (of truth's), and how many of them were certified as stable.", "",
             "| model | precision | rows | proven | probable | may flip | " + " | ".join(ENGINES) + " | stable ones flipped | bytes |",
             "|---|---|---|---|---|---|" + "---|" * (len(ENGINES) + 2)]
    for name, model, inputs, precisions in labelled(options, certify.folder):
        for precision in precisions:
            try:
                report, path, _ = certify.make(model, "set", "--precision", precision, "--inputs", inputs)
                held = {e: certify.verify(path, model, "--inputs", inputs, *o)[0] for e, o in ENGINES.items()}
            except RuntimeError as e:
                failures.append(f"{name} in {precision}: {e}")
                continue
            for i, d in enumerate(report["decisions"]):
                rows = [h["decisions"][i] for h in held.values()]
                stable = sum(r["flipped_stable"] for r in rows)
                if stable or not all(r["compared"] for r in rows) or d["grades"] is None:
                    failures.append(f"{name} in {precision}: {stable} stable predictions flipped (or are not compared)")
                n = d["count"]
                lines.append(f"| {name} | {precision} | {sum(n.values())} | {n['proven']} | {n['probable']} | {n['open']} | "
                             + " | ".join(str(r["flipped"]) for r in rows) + f" | {stable} | {report['bytes']} |")
                print(lines[-1], flush=True)
    return lines


# ---- mutants -----------------------------------------------------------------------------------------------


def mutants_of(certify, options, failures):
    bench = load_mutants()

    class Certified(bench.Bench):
        """Engine mutants of bench/mutants, each held against the certificate of the engine without it."""

        def try_engine(self, subject, name, fault, precision, fused):
            found = super().try_engine(subject, name, fault, precision, fused)
            if not found or "past_limit" not in found:
                return None
            how = ["--precision", precision, *subject.input_options(), *(["--fused"] if fused else [])]
            _, path, _ = certify.make(subject.model, "healthy", *how)
            given = ["--inputs", subject.inputs] if os.path.exists(subject.inputs) else []
            healthy, _ = certify.verify(path, subject.model, *given, "--bits")
            plain, seconds = certify.verify(path, subject.model, *given, "--inject", f"{name}:{fault}")
            bits, _ = certify.verify(path, subject.model, *given, "--inject", f"{name}:{fault}", "--bits")
            return {**found, "node": name, "healthy": healthy["verdict"], "plain": plain, "bits": bits, "seconds": round(seconds, 2)}

    namespace = argparse.Namespace(assay=certify.program, models=options.models, seed=options.seed, biggest=200, rows=2, side=64, modes="E",
                                   kind=None, limit=300, search_time=None)
    lines = ["| # | model | fault | check says | certify --verify | with --bits | s |", "|---|---|---|---|---|---|---|"]
    count = dict.fromkeys(("n", "past", "plain", "weak_plain", "noted", "bits"), 0)
    with tempfile.TemporaryDirectory() as work:
        subjects = Certified(namespace, work)
        for index in range(options.mutants):
            row = subjects.one(index)
            if "node" not in row:
                print(index, row["verdict"], flush=True)
                continue
            located = {way: bool(row[way]["guilty"]) and row["node"] in row[way]["guilty"]["nodes"] for way in ("plain", "bits")}
            noted = any(f["what"] == "bits" and row["node"] in f["nodes"] for f in row["plain"]["found"])
            past = row["past_limit"] > 0
            count["n"] += 1
            count["past"] += past
            count["plain" if past else "weak_plain"] += located["plain"]
            count["noted"] += noted and not located["plain"]
            count["bits"] += located["bits"]
            if not located["bits"]:
                failures.append(f"mutant {index} ({row['what']}): --bits: {cell(row['bits'])}")
            if row["verdict"] == "right" and not located["plain"]:
                failures.append(f"mutant {index} ({row['what']}): {cell(row['plain'])}, where check finds it")
            if row["plain"]["guilty"] and not located["plain"]:
                failures.append(f"mutant {index} ({row['what']}): another node is blamed: {cell(row['plain'])}")
            if row["healthy"] != "holds":
                failures.append(f"mutant {index}: {row['model']} without the fault does not hold")
            told = cell(row["plain"]) + (" (its bits noted)" if noted and not located["plain"] else "")
            lines.append(f"| {index} | {row['model']} | {row['kind']}: {row['what']} | {row['verdict']} | {told} | "
                         f"{cell(row['bits'])} | {row['seconds']} |")
            print(lines[-1], flush=True)
    head = ["## Engine mutants", "",
            f"{count['n']} engine mutants of bench/mutants, seed {options.seed}, each verified by the certificate of the engine without the "
            f"fault. With --bits {count['bits']} are found, in their node. Without it {count['plain']} of the {count['past']} that move an element "
            f"past its guaranteed bound are found as faults, and {count['weak_plain']} of the {count['n'] - count['past']} others; "
            f"{count['noted']} hold, with a note of the node from which on the bits are others. Without the fault every engine holds.", ""]
    return head + lines


# ---- code paths --------------------------------------------------------------------------------------------


def paths(certify, options, failures):
    with open("/proc/cpuinfo") as f:
        features = set(next((line for line in f if line.startswith("flags")), "").split())
    lines = ["## Code paths", "", "Certificates of emu held against clean engines of the CPU backend, by what ONEDNN_MAX_CPU_ISA lets oneDNN "
             "use.", "", "| path | model | precision | says | same truth in | s |", "|---|---|---|---|---|---|"]
    models = [(os.path.basename(os.path.dirname(m)), m, "fp32 fp16 bf16".split())
              for m in sorted(glob.glob(os.path.join(options.cases, "*", "model.onnx")))]
    models += [(os.path.basename(m)[:-5], m, ["int8"]) for m in sorted(glob.glob(os.path.join(options.cases, "*", "*int8*.onnx")))]
    models += [(os.path.basename(m)[:-5], m, "fp32 bf16".split())
               for m in sorted(glob.glob(os.path.join(options.zoo, "resnet50.onnx")))]
    made = {}
    for path, (isa, feature) in PATHS.items():
        if feature not in features:
            lines.append(f"| {path} | skipped: this CPU has no {feature} | | | | |")
            print(lines[-1], flush=True)
            continue
        for name, model, precisions in models:
            for precision in precisions:
                try:
                    if (model, precision) not in made:
                        made[model, precision] = certify.make(model, f"path-{name}-{precision}", "--precision", precision)[1]
                    held, seconds = certify.verify(made[model, precision], model, "--target", "cpu", isa=isa)
                except RuntimeError as e:
                    failures.append(f"{path}: {name} in {precision}: {e}")
                    continue
                if held["verdict"] != "holds":
                    failures.append(f"{path}: {name} in {precision}: {cell(held)}")
                lines.append(f"| {path} | {name} | {precision} | {cell(held)} | {held['compared']} values | {seconds:.1f} |")
                print(lines[-1], flush=True)
    return lines


def cpu_name():
    with open("/proc/cpuinfo") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("assay")
    p.add_argument("--cases", default=os.path.join(HERE, "../../shared/cases"))
    p.add_argument("--zoo", default=os.path.join(HERE, "../build/zoo"))
    p.add_argument("--models", nargs="+", default=[os.path.join(HERE, "../tests/models/small")], help="of the mutants")
    p.add_argument("--mutants", type=int, default=60)
    p.add_argument("--seed", type=int, default=21)
    p.add_argument("--precisions", nargs="+", default=["fp32", "fp16"], help="of sizes")
    p.add_argument("--parts", default="sizes,decisions,mutants,paths")
    p.add_argument("--results")
    o = p.parse_args()
    o.assay = os.path.abspath(o.assay)
    parts = {"sizes": sizes, "decisions": decisions, "mutants": mutants_of, "paths": paths}
    failures, text = [], [f"# certify, {datetime.date.today()}", "", f"{cpu_name()}, {os.cpu_count()} cores (bench/certify.py).", ""]
    with tempfile.TemporaryDirectory() as folder:
        certify = Certify(o.assay, folder)
        for part in o.parts.split(","):
            text += parts[part](certify, o, failures) + [""]
    text += [f"{len(failures)} failures" + (":" if failures else "."), *[f"- {f}" for f in failures], ""]
    print("\n".join(failures))
    if o.results:
        with open(o.results, "w") as f:
            f.write("\n".join(text))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
