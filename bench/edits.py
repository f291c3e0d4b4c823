#!/usr/bin/env python3
"""Edits over whole models: what each does, what its proof says, and what others say of the file.

    bench/edits.py ASSAY OUT.md [--zoo FOLDER] [--cases FOLDER] [--models NAME ...] [--resume KEEP.jsonl] [--quick]

Every edit runs on every model; assemble on what decompose wrote. Each file that was written is checked by onnx.checker, and,
where this Python has onnxruntime, run there on random inputs beside the original: edits that promise to keep truth must agree to
fp32's rounding. --quick: a batch of 1 only, and no variants of the same edit, for the models of the zoo. Ends with exit code 1 if an edit broke its promise, failed, or wrote what the others do not take.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

try:
    import onnxruntime as ort
    ort.set_default_logger_severity(4)
except ImportError:
    ort = None

# Name, arguments, whether outputs must stay what they are in fp32.
EDITS = [("sanitize", [], True), ("broadcasts", [], True), ("broadcasts --numbers", ["--numbers"], True),
         ("decompose", [], True), ("assemble", [], True), ("cast --to fp16", ["--to", "fp16"], False),
         ("cast --to bf16", ["--to", "bf16"], False), ("quantize", [], False), ("extract", None, False),
         ("rename", None, True), ("set --type", None, False)]
VARIANTS = ("broadcasts --numbers", "cast --to bf16")
AGREE = 2e-3  # of the largest magnitude: fp32 in another order


def middle(path):
    """Two values a third and two thirds into the graph that every later value hangs on is not asked: any cut will do."""
    g = onnx.load(path, load_external_data=False).graph
    constants = {i.name for i in g.initializer}
    live = [n for n in g.node if n.op_type not in ("Constant", "Shape") and any(i and i not in constants for i in n.input)]
    return live[len(live) // 3].output[0], live[2 * len(live) // 3].output[0]


def arguments(name, args, path):
    if args is not None:
        return args
    g = onnx.load(path, load_external_data=False).graph
    constants = {i.name for i in g.initializer}
    inputs = [i for i in g.input if i.name not in constants]
    if name == "extract":
        a, b = middle(path)
        return ["--from", a, "--to", b]
    if name == "rename":
        return ["--value", f"{inputs[0].name}=renamed_input", "--value", f"{g.output[0].name}=renamed_output"]
    return ["--type", f"{g.output[0].name}=double"]


def check_file(path):
    try:
        onnx.checker.check_model(str(path))
    except Exception as e:  # noqa: BLE001  whatever it says is the result
        return str(e).splitlines()[0][:90]
    return "ok"


def session(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 2
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feeds(s):
    rng = np.random.default_rng(5)
    out = []
    for i in s.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in i.shape]
        kind = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}.get(i.type)
        out.append(rng.standard_normal(shape).astype(kind) if kind else
                   rng.integers(0, 2, shape).astype({"tensor(int64)": np.int64, "tensor(int32)": np.int32,
                                                     "tensor(bool)": bool}[i.type]))
    return out


def run_file(path, values):
    s = session(path)
    return [np.asarray(o, np.float64) for o in s.run(None, {i.name: v for i, v in zip(s.get_inputs(), values)})]


def beside(original, path, name, must_agree):
    """What onnxruntime says of the file: 'ok 1.2e-7' with the largest difference, 'loads', or its error."""
    if ort is None:
        return "-"
    try:
        if not must_agree:
            session(path)
            return "loads"
        values = feeds(session(original))
        was, now = run_file(original, values), run_file(path, values)
        if any(not np.array_equal(np.isfinite(a), np.isfinite(b)) for a, b in zip(was, now)):
            return "DIFFERS in what is finite"
        if not any(np.isfinite(a).any() for a in was):
            return "nothing but NaN, as the original"
        worst = max((float(np.nanmax(np.abs(np.where(np.isfinite(a), a - b, 0))) / max(np.max(np.abs(a[np.isfinite(a)]), initial=0), 1e-30))
                     if a.size else 0.0 for a, b in zip(was, now)), default=0.0)
        return f"{'ok' if worst <= AGREE else 'DIFFERS'} {worst:.1e}"
    except Exception as e:  # noqa: BLE001
        try:
            session(original)
        except Exception:  # noqa: BLE001
            return "not the original either"
        if "NOT_IMPLEMENTED" in str(e):
            return "lacks a kernel"
        return "ERROR " + str(e).splitlines()[0][:90]


def batch_of_one(path):
    """Arguments that give open sizes of the inputs as 1."""
    g = onnx.load(path, load_external_data=False).graph
    constants, out = {i.name for i in g.initializer}, []
    for i in g.input:
        dims = i.type.tensor_type.shape.dim
        if i.name not in constants and any(not d.HasField("dim_value") for d in dims):
            out += ["--input-shape", f"{i.name}=" + "x".join(str(d.dim_value or 1) for d in dims)]
    return out


def one(assay, model, name, args, keeps, folder, source, quick):
    out = folder / f"{name.split()[0]}.onnx"
    js = folder / "edit.json"
    js.unlink(missing_ok=True)
    out.unlink(missing_ok=True)
    command = [assay, "edit", *name.split()[:1], str(source), "-o", str(out), "--json", str(js), "--force",
               *arguments(name, args, source), *(batch_of_one(source) if quick else [])]
    inputs = model.parent / "inputs.npz"
    start = time.time()
    p = subprocess.run(command, capture_output=True, text=True)
    row = {"model": f"{model.parent.name}/{model.stem}" if inputs.exists() else model.stem, "edit": name,
           "seconds": round(time.time() - start, 1), "code": p.returncode, "error": p.stderr.strip().splitlines()[-1:]}
    if not js.exists():
        return row | {"verdict": "failed", "promise": False}
    j = json.loads(js.read_text())
    kind = "stored" if j["outputs"] and "stored" in j["outputs"][0] else "truth"
    figures = [(float(o[kind]["largest"]), float(o[kind]["scale"]), float(o[kind]["snr_db"])) for o in j["outputs"]]
    worst = max(figures, key=lambda f: f[0] / f[1] if f[1] else f[0], default=(0, 0, 0))
    row |= {"verdict": j["verdict"], "promise": j["kept_promise"], "done": j["done"], "samples": j["samples"],
            "sizes": j["sizes"], "largest": worst[0], "scale": worst[1], "snr": worst[2], "why": j["why_not_proven"]}
    if name == "quantize":
        row["unquantized"] = max((float(o["unquantized"]["largest"]) for o in j["outputs"] if "unquantized" in o), default=0)
    if out.exists():
        row |= {"checker": check_file(out), "ort": beside(model, out, name, keeps)}
    return row


def good(r):
    return (r.get("promise") or r["edit"].startswith("cast")) and r.get("checker") == "ok" and \
        not str(r.get("ort", "")).startswith(("DIFFERS", "ERROR"))


def report(rows, path):
    with open(path, "w") as f:
        f.write("# Edits over the zoo and the cases\n\n"
                "Made by bench/edits.py. 'largest' is the largest difference of an output that moved most, in truth (casts: as "
                "stored, against truth), with that output's scale; 'checker' is onnx.checker; 'ONNX Runtime' gives the largest "
                "difference of its outputs in fp32 from the original's, over their scale, or says that it loads the file.\n\n")
        f.write("| edit | models | unchanged | rounded | changed | not proven | as promised | checker ok | ONNX Runtime ok |\n"
                "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
        for name, _, _ in EDITS:
            mine = [r for r in rows if r["edit"] == name]
            if not mine:
                continue
            count = [sum(r["verdict"] == v for r in mine) for v in ("unchanged", "rounded", "changed", "not proven")]
            f.write(f"| {name} | {len(mine)} | " + " | ".join(map(str, count)) +
                    f" | {sum(bool(r.get('promise')) for r in mine)} | {sum(r.get('checker') == 'ok' for r in mine)} | "
                    f"{sum(not str(r.get('ort', 'ERROR')).startswith(('DIFFERS', 'ERROR')) for r in mine)} |\n")
        f.write("\n| model | edit | what | verdict | largest | of | SNR dB | s | checker | ONNX Runtime |\n"
                "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
        for r in rows:
            what = r.get("done") or " ".join(r["error"]) or "nothing to do"
            if "unquantized" in r:
                what += f"; without quantizers {r['unquantized']:.1e}"
            f.write(f"| {r['model']} | {r['edit']} | {what} | {r['verdict']} | {r.get('largest', 0):.2g} | {r.get('scale', 0):.3g} "
                    f"| {r.get('snr', 0):.1f} | {r['seconds']} | {r.get('checker', '-')} | {r.get('ort', '-')} |\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("assay")
    p.add_argument("out")
    p.add_argument("--zoo", type=pathlib.Path)
    p.add_argument("--cases", type=pathlib.Path)
    p.add_argument("--models", nargs="*", default=[], help="only models whose path has one of these in it")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--resume", type=pathlib.Path, help="rows that are there are kept, new ones added")
    a = p.parse_args()
    models = sorted(a.cases.glob("*/*.onnx")) if a.cases else []
    models += sorted(a.zoo.glob("*.onnx"), key=lambda m: m.stat().st_size) if a.zoo else []
    models = [m for m in models if not a.models or any(x in str(m) for x in a.models)]
    rows = [json.loads(line) for line in a.resume.read_text().splitlines()] if a.resume and a.resume.exists() else []
    known = {(r["model"], r["edit"]) for r in rows}
    for m in models:
        label = f"{m.parent.name}/{m.stem}" if (m.parent / "inputs.npz").exists() else m.stem
        quick = a.quick and not (m.parent / "inputs.npz").exists()
        with tempfile.TemporaryDirectory() as t:
            folder = pathlib.Path(t)
            for name, args, keeps in EDITS:
                if (label, name) in known or (quick and name in VARIANTS):
                    continue
                source = m
                if name == "assemble":
                    source = folder / "decompose.onnx"
                    if not source.exists():
                        subprocess.run([a.assay, "edit", "decompose", m, "-o", source, "--no-proof"], capture_output=True)
                r = one(a.assay, m, name, args, keeps, folder, source, quick)
                rows.append(r)
                print(f"{label}: {name}: {r['verdict']}, {r.get('done', '')} {r.get('ort', '')} {r['error']} "
                      f"{'' if good(r) else '<-- LOOK'} {r['seconds']} s", flush=True)
                if a.resume:
                    with open(a.resume, "a") as f:
                        f.write(json.dumps(r) + "\n")
                report(rows, a.out)
    sys.exit(0 if all(good(r) for r in rows) else 1)


if __name__ == "__main__":
    main()
