#!/usr/bin/env python3
"""The report's page: sizes and load times in headless Chromium, as Markdown; pictures of it, too.

    bench/report_page.py --assay build/release/src/cli/assay --cases ../shared/cases --zoo build/zoo --out FILE [--screenshots FOLDER]

Reports of the case nafnet_fp16_nan and of bert_base_128 in fp16, of a made model of 2,000 layers, and of what else
--model names. Ends with exit code 1 if a page takes 2 s or more, asks for anything, or complains.
"""
import argparse
import json
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/report"))
import browser  # noqa: E402
import deep  # noqa: E402

LIMIT_MS, LOADS = 2000, 5


def make_report(assay, name, model, options, folder):
    page = folder / f"{name}.html"
    began = time.monotonic()
    result = subprocess.run([assay, "check", str(model), "--report", str(page), "-o", str(folder), *map(str, options)],
                            capture_output=True, text=True)
    if result.returncode not in (0, 1):
        sys.exit(f"{name}: {result.stderr}")
    return page, time.monotonic() - began


def measure(b, name, path, screenshots):
    url, times, asked, complaints = path.as_uri(), [], [], []
    for k in range(LOADS):
        page = b.open(url, 1280, 900)
        times.append(float(page.evaluate("document.body.dataset.ready")))
        asked += [u for u in page.requests() if u != url]
        complaints += page.complaints()
    if screenshots:
        for width, dark in ((1280, False), (1280, True), (400, False)):
            page = b.open(url, width, 900, dark=dark)
            height = page.evaluate("document.documentElement.scrollHeight")
            page.size(width, min(height, 4000))
            page.screenshot(screenshots / f"{name}-{width}{'-dark' if dark else ''}.png")
    data = json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.S)[1])
    return {"layers": len(data["layers"]), "bytes": path.stat().st_size, "median": statistics.median(times), "worst": max(times),
            "asked": asked, "complaints": complaints}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--assay", required=True)
    parser.add_argument("--cases", type=pathlib.Path)
    parser.add_argument("--zoo", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    a = parser.parse_args()
    program = browser.find()
    if not program:
        sys.exit("chromium is not installed (scripts/setup full installs it)")
    if a.screenshots:
        a.screenshots.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split(" built")[0].strip()
    with tempfile.TemporaryDirectory() as temporary, browser.Browser(program) as b:
        folder = pathlib.Path(temporary)
        deep.make(folder / "made_2000.onnx", 2000)
        rows = [("made_2000", folder / "made_2000.onnx", [])]
        if a.cases:
            case = a.cases / "nafnet_fp16_nan"
            rows.append(("nafnet_fp16_nan", case / "model.onnx", ["--inputs", case / "inputs.npz", "--golden", case / "golden.npz"]))
        if a.zoo:
            rows.append(("bert_base_128", a.zoo / "bert_base_128.onnx", []))
        rows += [(m.stem, m, []) for m in a.model]
        lines, bad = [], False
        for name, model, options in rows:
            path, seconds = make_report(a.assay, name, model, ["--precision", "fp16", *options], folder)
            r = measure(b, name, path, a.screenshots)
            bad |= r["median"] >= LIMIT_MS or bool(r["asked"] or r["complaints"])
            lines.append(f"| {name} | {r['layers']:,} | {r['bytes'] / 1e6:.2f} | {r['median']:.0f} | {r['worst']:.0f} | {len(r['asked'])} | "
                         f"{len(r['complaints'])} | {seconds:.1f} |")
            print(lines[-1], flush=True)
    text = "\n".join([
        "# The report's page", "",
        f"`bench/report_page.py`, {version}, headless, without a GPU; {platform.machine()}, 2 CPUs that other work shared. Ready: from the",
        f"request to the first drawing of everything, {LOADS} loads at 1280 x 900; the limit is {LIMIT_MS:,} ms. Each check is in fp16.", "",
        "| model | layers | page, MB | ready, ms (median) | (worst) | requests besides the page | console errors | check and page, s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |", *lines, ""])
    if a.out:
        a.out.write_text(text)
    return bad


sys.exit(main())
