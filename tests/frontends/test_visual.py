#!/usr/bin/env python3
"""The page of a model: assay inspect --report and --serve, polygraphy inspect model --visual and its kin.

    test_visual.py ASSAY MODELS

tests/report/test_page.py looks at the page in a browser.
"""
import html.parser
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from test_cli import Failures, assay  # noqa: E402
from test_polygraphy_models import info, save, write_models

OK, FAILED, USAGE = 0, 1, 2


def run(program, line):
    return assay(program, "polygraphy", *line.split())


# ---- the page -------------------------------------------------------------------------------------------------------

VOID = {"meta", "link", "input", "br"}


class Page(html.parser.HTMLParser):
    """Elements that end where they should, what is loaded, the scripts."""

    def __init__(self, path):
        super().__init__()
        self.open, self.wrong, self.loads, self.scripts, self.title = [], [], [], [], ""
        self.text = pathlib.Path(path).read_text()
        self.feed(self.text)
        self.close()
        self.wrong += [f"<{tag}> is not ended" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        self.loads += [value for name, value in attrs if name in ("src", "href", "action") and not value.startswith("data:")]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> ends another element")

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        if self.open and self.open[-1] == "title":
            self.title += data

    @property
    def data(self):
        return json.loads(self.scripts[0])


def check_page(path, failures, where):
    """Well-formed, and nothing in it is to be fetched."""
    page = Page(path)
    failures.check(not page.wrong, f"{where}: {page.wrong}")
    failures.check(not page.loads and len(page.scripts) == 2, f"{where}: loads {page.loads}, {len(page.scripts)} scripts")
    code = page.text.replace(page.scripts[0], "").replace("http://www.w3.org/2000/svg", "")
    found = re.findall(r"\w+://\S+|url\(|@import|fetch\(|XMLHttpRequest|WebSocket", code)
    failures.check(not found, f"{where}: {found}")
    failures.check("default-src 'none'" in page.text and "{{" not in code, f"{where}: no policy, or a slot")
    return page


def names_of(graph):
    """Names of all nodes, bodies too; those without are told by their operator."""
    for n in graph.node:
        for a in n.attribute:
            for g in ([a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs):
                yield from names_of(g)
        yield n.name, n.op_type


def check_nodes(data, model, failures, where):
    """All nodes are there, in order, with what they read and make, and attributes. A name that comes twice is numbered."""
    want = list(names_of(model.graph))
    got = [(l["name"], l["op"]) for l in data["layers"]]
    same = len(want) == len(got) and all(o == p and (not n or m.startswith(n)) for (n, o), (m, p) in zip(want, got))
    failures.check(same, f"{where}: nodes {got}, {want} expected")
    names = lambda list: [data["values"][k]["name"] if k is not None else "" for k in list]
    tops = iter([l for k, l in enumerate(data["layers"]) if k not in {i for o in data["layers"] for b in o["bodies"] for i in b["layers"]}])
    for n, l in zip(model.graph.node, tops):
        failures.check(names(l["reads"]) == list(n.input) and names(l["makes"]) == list(n.output), f"{where}: {l} of {n}")
        plain = [a for a in n.attribute if a.type not in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)]
        if data["attrs"]:
            failures.check([a[0] for a in l["attrs"]] == [a.name for a in plain], f"{where}: {l['attrs']}")
        failures.check([b["name"] for b in l["bodies"]] == [a.name for a in n.attribute if a.type == onnx.AttributeProto.GRAPH],
                       f"{where}: {l['bodies']}")
    failures.check(names(data["outputs"]) == [o.name for o in model.graph.output], f"{where}: outputs {data['outputs']}")


def test_pages(program, models, failures):
    paths = sorted(pathlib.Path().glob("*.onnx")) + sorted(pathlib.Path(models).glob("*.onnx"))
    failures.check(len(paths) > 12, f"{paths}")
    for path in paths:
        code, out, err = run(program, f"inspect model {path} --visual --save-visual page.html")
        if path.name == "junk.onnx":
            failures.check(code == FAILED, f"{path}: exit code {code}")
            continue
        failures.check(code == OK and out.endswith("[I] Viewer HTML saved to page.html\n") and "Graph Input" not in out and not err,
                       f"{path}: {code}, {out}, {err}")
        page = check_page("page.html", failures, path.name)
        check_nodes(page.data, onnx.load(path, load_external_data=False), failures, path.name)
        failures.check(page.title == f"{path.name} | Assay", f"{path.name}: {page.title}")

    data = Page(make(program, "tiny.onnx")).data
    by_name = {v["name"]: v for v in data["values"]}
    failures.check(by_name["e"]["type"] == "float[N, 4, 4, 4]" and by_name["fc"].get("constant"), f"types: {by_name}")
    fc = np.array(eval(re.sub(r"(?<=[\d.])\s+(?=[-\d])", ",", by_name["fc"]["elements"].replace("]\n", "],\n"))))
    failures.check(np.allclose(fc, nh.to_array(onnx.load("tiny.onnx").graph.initializer[2])), f"elements: {by_name['fc']}")
    failures.check(data["layers"][0]["attrs"] == [["pads", "[1, 1, 1, 1]"]], f"attributes: {data['layers'][0]}")
    text = run(program, "inspect model tiny.onnx --save-visual p.html")[1]
    failures.check("---- 5 Node(s) ----" in text and "Viewer HTML saved to p.html" in text, f"--save-visual alone: {text}")


def make(program, path, *options):
    run(program, " ".join(["inspect model", path, "--visual --save-visual made.html", *options]))
    return "made.html"


# What --show asks for, whether attributes and elements are there.
SHOWN = [("", True, True), ("layers", False, False), ("layers attrs", True, False), ("layers weights", False, True),
         ("layers attrs weights", True, True)]


def test_shown(program, failures):
    for show, attrs, elements in SHOWN:
        data = Page(make(program, "tiny.onnx", f"--show {show}" if show else "")).data
        failures.check(any(l["attrs"] for l in data["layers"]) == attrs, f"--show {show}: attributes")
        failures.check(any("elements" in v for v in data["values"]) == elements, f"--show {show}: elements")
        failures.check(len(data["layers"]) == 5, f"--show {show}: {data['layers']}")


def test_plans(program, failures):
    assay(program, "build", "tiny.onnx", "-o", "tiny.plan", "--profile", "x=1x3x4x4:2x3x4x4:4x3x4x4")
    for line in ("inspect model tiny.plan --save-visual plan.html", "inspect model tiny.onnx --display-as trt --save-visual plan.html"):
        code, out, err = run(program, line)
        data = check_page("plan.html", failures, line).data
        failures.check(code == OK and data["kind"] == "plan", f"{line}: {code}, {out}, {err}")
        origins = [n for l in data["layers"] for n in l["nodes"]]
        failures.check(origins == "conv0 elu0 mean0 fc0 softmax0".split(), f"{line}: {origins}")
        failures.check(all(l["format"] == "fp32" and l["tactic"] for l in data["layers"]), f"{line}: {data['layers']}")
        made = [data["values"][k]["name"] for l in data["layers"] for k in l["makes"]]
        failures.check(made[-1] == "prob" and len(made) == len(set(made)), f"{line}: {made}")
    code, out, err = assay(program, "inspect", "plan", "tiny.plan", "--report", "native.html")
    data = check_page("native.html", failures, "inspect plan --report").data
    failures.check(code == OK and re.match(r"plan +\d layers on cpu", out) and ["profile 0", "x: 1x3x4x4 to 4x3x4x4, best 2x3x4x4"] in data["about"],
                   f"inspect plan --report: {code}, {out}, {data['about']}")


def test_native(program, failures):
    save("awkward.onnx", [h.make_node("Relu", ["x"], ["</script>"], name="<!-- <b>&amp;\"'"), h.make_node("Neg", ["</script>"], ["y"])],
         [info("x", T.FLOAT, [2])], [info("y", T.FLOAT, [2])], doc="</title><script>")
    code, out, err = assay(program, "inspect", "model", "awkward.onnx", "--report", "awkward.html")
    data = check_page("awkward.html", failures, "awkward names").data
    failures.check(code == OK and "2 nodes" in out and not err, f"inspect model --report: {code}, {out}, {err}")
    check_nodes(data, onnx.load("awkward.onnx"), failures, "awkward names")
    # What cannot be run can be looked at.
    code, out, err = assay(program, "inspect", "model", "bad_op.onnx", "--report", "bad.html")
    check_nodes(check_page("bad.html", failures, "bad_op").data, onnx.load("bad_op.onnx"), failures, "bad_op")
    for words, want in ((["data", "tiny.plan", "--report", "x.html"], "models and plan files"),
                        (["plan", "tiny.onnx", "--serve", "0"], "models and plan files"), (["model", "tiny.onnx", "--serve", "-1"], "'-1' is not a port"), (["model", "tiny.onnx", "--serve", "65536"], "is not a port")):
        code, out, err = assay(program, "inspect", *words)
        failures.check(code == USAGE and want in err and not os.path.exists("x.html"), f"inspect {words}: {code}, {out}, {err}")


# ---- the server -----------------------------------------------------------------------------------------------------

# Method, path, Host header (None: none), status.
REQUESTS = [("GET", "/", "localhost", 200), ("GET", "/", "127.0.0.1:{port}", 200), ("GET", "/", "LOCALHOST:1", 200), ("HEAD", "/", "127.0.0.1", 200),
            ("GET", "/?x=1", "localhost", 200), ("GET", "/favicon.ico", "localhost", 404), ("GET", "//", "localhost", 404),
            ("GET", "/../etc/passwd", "localhost", 404), ("POST", "/", "localhost", 405), ("PUT", "/", "localhost", 405),
            ("DELETE", "/", "localhost", 405), ("OPTIONS", "/", "localhost", 405), ("POST", "/x", "localhost", 405),
            ("GET", "/", "evil.example", 403), ("GET", "/", "127.0.0.1.evil.example", 403), ("GET", "/", "localhost.", 403),
            ("GET", "/", "localhost:80@evil.example", 403), ("GET", "/", "127.0.0.10", 403), ("GET", "/", "[::1]", 403),
            ("POST", "/", "evil.example", 403)]


def start(program, *words):
    process = subprocess.Popen([program, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line)
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        if found:
            return process, int(found[1]), "".join(lines)
    raise AssertionError(f"{words}: no address in {lines}")


def ask(port, method, path, host):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    c.putrequest(method, path, skip_host=True)
    if host is not None:
        c.putheader("Host", host.format(port=port))
    if method in ("POST", "PUT"):
        c.putheader("Content-Length", "3")
    c.endheaders(b"abc" if method in ("POST", "PUT") else None)
    answer = c.getresponse()
    body = answer.read()
    c.close()
    return answer, body


def raw(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        return s.makefile("rb").read()


def refuses(address, port):
    try:
        socket.create_connection((address, port), timeout=5).close()
    except OSError:
        return True
    return False


def test_server(program, failures):
    want = pathlib.Path(make(program, "tiny.onnx")).read_bytes()
    process, port, out = start(program, *"polygraphy inspect model tiny.onnx --visual --visual-port 0".split())
    failures.check(f"[I] Viewer available at http://127.0.0.1:{port}/  (press Ctrl+C to exit)\n" in out and "Graph Input" not in out,
                   f"--visual: {out}")
    for method, path, host, status in REQUESTS:
        answer, body = ask(port, method, path, host)
        where = f"{method} {path} of {host}"
        failures.check(answer.status == status, f"{where}: {answer.status}, {status} expected")
        if status == 200:
            failures.check(body == (b"" if method == "HEAD" else want) and int(answer.getheader("Content-Length")) == len(want),
                           f"{where}: another page, of {len(body)} bytes")
            failures.check(answer.getheader("Content-Type") == "text/html; charset=utf-8" and answer.getheader("Cache-Control") == "no-store"
                           and answer.getheader("X-Content-Type-Options") == "nosniff", f"{where}: {answer.headers}")
        else:
            failures.check(len(body) < 200 and b"<" not in body, f"{where}: {body}")
        if status == 405:
            failures.check(answer.getheader("Allow") == "GET, HEAD", f"{where}: {answer.headers}")
    for data in (b"GET / HTTP/1.0\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x00\xff nonsense\r\n\r\n"):
        answer = raw(port, data)
        failures.check(b" 200 " not in answer and b"<html" not in answer, f"{data}: {answer[:100]}")
    failures.check(ask(port, "GET", "/", "localhost")[0].status == 200, "it does not answer any more")
    failures.check(refuses("127.0.0.2", port) and refuses("::1", port), "it listens elsewhere, too")

    for line in (f"polygraphy inspect model tiny.onnx --visual --visual-port {port}", f"inspect model tiny.onnx --serve {port}"):
        code, out, err = assay(program, *line.split())
        failures.check(code and f"port {port} of 127.0.0.1 is taken" in out + err, f"{line}: {code}, {out}, {err}")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    failures.check(process.returncode == 0 and not out, f"SIGTERM: {process.returncode}, {out}")
    failures.check(refuses("127.0.0.1", port), "it still listens")

    # The port can be had again at once; a plan, whose run has started threads; Ctrl-C.
    for words, end in ((f"inspect model tiny.onnx --serve {port}", signal.SIGINT), (f"inspect plan tiny.plan --serve {port}", signal.SIGTERM),
                       (f"polygraphy inspect model tiny.plan --visual --visual-port {port}", signal.SIGINT)):
        process, _, out = start(program, *words.split())
        failures.check(ask(port, "GET", "/", "localhost")[0].status == 200, f"{words}: {out}")
        process.send_signal(end)
        process.communicate(timeout=20)
        failures.check(process.returncode == 0, f"{words}: {end.name} ends it with {process.returncode}")


# ---- statistics -----------------------------------------------------------------------------------------------------

def numbers_of(x):
    f = x.astype(np.float64)
    return {"mean": f.mean(), "std-dev": f.std(), "min": f.min(), "max": f.max(), "median": np.median(f), "avg-magnitude": np.abs(f).mean(),
            "variance": f.var(), "p90": np.quantile(f, 0.9), "p95": np.quantile(f, 0.95), "p99": np.quantile(f, 0.99)}


def test_statistics(program, failures):
    rng = np.random.default_rng(3)
    arrays = {"c": rng.normal(2, 3, (2, 4, 4, 4)).astype(np.float32), "prob": rng.random((2, 5)).astype(np.float32),
              "x": rng.normal(size=(2, 3, 4, 4)).astype(np.float32), "m": np.float32([[1, np.nan, 2, 3]]), "other": np.float32([1])}
    np.savez("all.npz", **arrays)
    code, out, err = run(program, "inspect model tiny.onnx --show layers --combine-tensor-info all.npz --save-visual stats.html")
    failures.check(code == OK and not err, f"statistics: {code}, {out}, {err}")
    failures.check("[W] --combine-tensor-info: 1 of 5 tensors of all.npz are not a value of the model: other\n" in out, f"another's tensor: {out}")
    by_name = {v["name"]: v for v in check_page("stats.html", failures, "statistics").data["values"]}
    for name in ("c", "prob", "x"):
        stats = by_name[name]["stats"]
        failures.check(stats["shape"] == list(arrays[name].shape) and stats["type"] == "float32", f"{name}: {stats}")
        for what, want in numbers_of(arrays[name]).items():
            failures.check(np.isclose(float(stats[what]), want, rtol=1e-5, atol=1e-6), f"{name}: {what} {stats[what]}, {want} expected")
        line = next(l for l in out.split("\n") if re.match(r"\s+(-> )?\{" + name + r"\b.*Stats: ", l))
        for what in ("mean", "std-dev", "min", "max", "median"):
            said = float(re.search(rf"[ ,:]{what}=(\S+?)(?=,| at)", line)[1])
            failures.check(np.isclose(said, numbers_of(arrays[name])[what], rtol=1e-4), f"{line}: {what}")
    failures.check(by_name["m"]["stats"]["max"] == "nan" and not by_name["e"].get("stats"), f"NaN: {by_name['m']}")

    # Polygraphy's own file, of runs of this model: what all layers made.
    run(program, "run tiny.onnx --onnxrt --onnx-outputs mark all --iterations 2 --input-shapes x:[2,3,4,4] --save-outputs runs.json")
    code, out, err = run(program, "inspect model tiny.onnx --show layers --combine-tensor-info runs.json")
    failures.check(code == OK and out.count("| Stats: mean=") == 9 and "Statistics are of the first of 2 iterations in runs.json" in out,
                   f"{code}, {out}")
    code, out, err = run(program, "inspect model tiny.plan --show layers --combine-tensor-info runs.json --save-visual stats.html")
    stats = [v for v in Page("stats.html").data["values"] if "stats" in v]
    failures.check(code == OK and "| Stats: mean=" in out and len(stats) >= 2, f"of a plan: {code}, {out}, {err}")
    code, out, err = run(program, "inspect model tiny.onnx --combine-tensor-info runs.json")
    failures.check(code == OK and "[W] --combine-tensor-info is shown beside layers" in out, f"without layers: {out}")

    np.savez("strange.npz", p=np.zeros(3), q=np.zeros(2))
    np.savez("empty.npz")
    for model, whose in (("tiny.onnx", "a value of the model"), ("tiny.plan", "a value between the plan's layers")):
        code, out, err = run(program, f"inspect model {model} --show layers --combine-tensor-info strange.npz")
        failures.check(code == FAILED and f"no tensor of 'strange.npz' is {whose}: it has p, q" in out,
                       f"{model}, none in common: {code}, {out}, {err}")
    code, out, err = run(program, "inspect model tiny.onnx --show layers --combine-tensor-info empty.npz")
    failures.check(code == FAILED and "'empty.npz' holds no tensors" in out, f"nothing: {code}, {out}")


def main(program, models):
    program, models = os.path.abspath(program), os.path.abspath(models)
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_models()
        test_pages(program, models, failures)
        test_shown(program, failures)
        test_plans(program, failures)
        test_native(program, failures)
        test_server(program, failures)
        test_statistics(program, failures)
        os.chdir("/")
    print(f"{len(REQUESTS)} requests, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
