#!/usr/bin/env python3
"""Models served to tritonclient, beside `assay bench` and beside ONNX Runtime in MLServer, in one run.

    build/venv-serving/bin/python bench/serving.py PROGRAM MODEL.onnx... [--rounds N] [--seconds S] [--requests N] >> results

PROGRAM is build/release/src/cli/assay. Models have one float input with an open batch, and one output. Of each model:
bits of REQUESTS answers from 32 clients against `assay run`, while malformed, oversized and slow requests come; rounds
of `assay bench` at batch 8, of the server over HTTP and gRPC, and of the peer, in turns; and what TERM leaves of requests
that run. build/venv has onnxruntime and onnx. Prints Markdown.
"""
import argparse
import atexit
import http.client
import json
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(ROOT, "build", "venv", "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
BATCH, CLIENTS = 8, 32


def environment(program):
    library = os.path.join(os.path.dirname(program), "..", "..", "libassay.so")
    return {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python") + os.pathsep + HERE,
            "ASSAY_LIBRARY": os.environ.get("ASSAY_LIBRARY", library), "ASSAY_BENCH_PACKAGES": PACKAGES}


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Server:
    def __init__(self, command, ports, model, folder, env):
        self.http, self.grpc = ports[:2]
        self.log = os.path.join(folder, "log%d" % self.http)
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env, cwd=folder)
        atexit.register(self.process.kill)  # whatever happens, it does not stay
        end = time.time() + 120
        while True:
            try:
                urllib.request.urlopen("http://127.0.0.1:%d/v2/models/%s/ready" % (self.http, model), timeout=5).close()
                return
            except OSError:
                if time.time() > end or self.process.poll() is not None:
                    sys.exit("%s does not serve: see %s" % (" ".join(command), self.log))
                time.sleep(.1)

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.pid, encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


def serve(plan, model, folder, env, args):
    ports = free_ports(3)
    command = [sys.executable, "-m", "assay.serving", "%s=%s" % (model, plan), "--instances", str(args.instances),
               "--threads", str(args.threads)]
    for name, port in zip(("http", "grpc", "metrics"), ports):
        command += ["--%s-port" % name, str(port)]
    return Server(command, ports, model, folder, env)


def serve_peer(onnx, model, folder, env, args):
    ports = free_ports(3)
    repository = os.path.join(folder, "peer")
    os.makedirs(os.path.join(repository, model), exist_ok=True)
    with open(os.path.join(repository, "settings.json"), "w", encoding="utf-8") as f:
        json.dump({"host": "127.0.0.1", "debug": False, "parallel_workers": 0, "gzip_enabled": False,
                   "grpc_max_message_length": 64 << 20,
                   **dict(zip(("http_port", "grpc_port", "metrics_port"), ports))}, f)
    with open(os.path.join(repository, model, "model-settings.json"), "w", encoding="utf-8") as f:
        json.dump({"name": model, "implementation": "serving_ort.OrtRuntime", "max_batch_size": BATCH,
                   "max_batch_time": .002, "parameters": {"uri": onnx, "extra": {
                       "threads": args.threads * args.instances}}}, f)
    return Server([sys.executable, "-c", "from mlserver.cli import main; main()", "start", repository], ports, model,
                  folder, env)


def client(server, kind, model, samples, env, *options, clients=CLIENTS):
    """What serving_client.py prints, and the server's CPU time for it."""
    before = server.cpu_s()
    address = "127.0.0.1:%d" % (server.http if kind == "http" else server.grpc)
    done = subprocess.run([sys.executable, os.path.join(HERE, "serving_client.py"), kind, address, model, samples,
                           str(clients), *options], env=env, check=True, capture_output=True, text=True)
    result = json.loads(done.stdout)
    result["server_cpu_ms"] = 1e3 * (server.cpu_s() - before)
    return result


def metric(server, name, model):
    """A metric's value. Its page has a port of its own; the log says which. 0: the server has none of that name."""
    with open(server.log, encoding="utf-8", errors="replace") as f:
        port = re.search(r"Metrics server running on http://[\d.]+:(\d+)", f.read()).group(1)
    with urllib.request.urlopen("http://127.0.0.1:%s/metrics" % port, timeout=10) as page:
        found = re.search(r'^%s\{model="%s".*\} (\S+)' % (name, model), page.read().decode(), re.M)
    return float(found.group(1)) if found else 0.0


def bench(program, plan, shape, args):
    """Samples a second of `assay bench`, and CPU time of a sample. shape: NAME=DIMS of a full batch."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, "bench", plan, "--shape", shape, "--contexts", str(args.instances), "--threads",
                           str(args.threads), "--seconds", str(args.seconds)], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rate, runs = re.search(r"throughput +([\d.]+) runs/s, (\d+) runs", done.stdout).groups()
    warm = .2 / args.seconds  # its warm-up counts as runs
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"rate": float(rate) * BATCH, "cpu_ms": 1e3 * cpu / (int(runs) * (1 + warm) * BATCH)}


class Nuisance(threading.Thread):
    """Sends malformed, oversized and slow requests until it is stopped; counts their statuses."""

    def __init__(self, server, model):
        super().__init__(daemon=True)
        self.address, self.path = ("127.0.0.1", server.http), "/v2/models/%s/infer" % model
        self.stopped, self.statuses = threading.Event(), {}

    def send(self, body, headers):
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        connection.request("POST", self.path, body, headers)
        status = connection.getresponse().status
        connection.close()
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def run(self):
        slow = []
        while not self.stopped.is_set():
            self.send(b"{", {})
            self.send(b'{"inputs": [{"name": "nothing", "datatype": "FP32", "shape": [1], "data": [1]}]}', {})
            self.send(b"\0" * (65 << 20), {})
            s = socket.create_connection(self.address)
            s.sendall(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{" % self.path.encode())
            slow.append(s)
            self.stopped.wait(.5)
        for s in slow:  # they go without having sent what they announced
            s.close()


def bits(server, model, samples, env, requests):
    nuisance = Nuisance(server, model)
    nuisance.start()
    lines = []
    for kind in ("http", "grpc"):
        r = client(server, kind, model, samples, env, "--requests", str(requests))
        lines.append("%d of %d over %s" % (r["requests"] - r["wrong"], requests, kind.upper().replace("GRPC", "gRPC")))
        if r["wrong"] or r["failed"]:
            print("WRONG: %s" % r, file=sys.stderr)
    nuisance.stopped.set()
    nuisance.join()
    return "%s; meanwhile %s" % (", ".join(lines), ", ".join("%d times %d" % (n, status) for status, n in
                                                            sorted(nuisance.statuses.items())))


def term(server, model, samples, env):
    """What became of requests of two clients' processes when TERM came amid them; the server's exit code."""
    kinds, results = ("http", "grpc"), []
    threads = [threading.Thread(target=lambda k=k: results.append(client(
        server, k, model, samples, env, "--requests", "16", clients=16))) for k in kinds]
    before = metric(server, "assay_requests_total", model)
    for t in threads:
        t.start()
    while metric(server, "assay_requests_total", model) < before + 16:
        time.sleep(.002)
    code = server.end()
    for t in threads:
        t.join()
    failed = sum(r["failed"] for r in results)
    return "%d requests under way or on their way: %d answered right, %d refused; exit code %d" % (
        32, sum(r["requests"] - r["wrong"] for r in results), failed, code)


def described(program, onnx):
    """The input's name and its sizes but the first, and the output's name."""
    text = subprocess.run([program, "inspect", "model", onnx], check=True, capture_output=True, text=True).stdout
    given, dims = re.search(r"input +'(.+?)' float\[(.+?)\]", text).groups()
    return given, [int(d) for d in dims.split(", ")[1:]], re.search(r"output +'(.+?)' float\[", text).group(1)


def samples_of(program, plan, given, sizes, made, folder):
    """Samples, and what `assay run` gives for them, as files."""
    x = np.random.default_rng(1).random([40] + sizes, dtype=np.float32)
    one, out = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
    y = []
    for at in range(0, len(x), BATCH):
        np.savez(one, **{given: x[at:at + BATCH]})
        subprocess.run([program, "run", plan, "--inputs", one, "-o", out], check=True, stdout=subprocess.DEVNULL)
        with np.load(out) as saved:
            y.append(saved[made])
    np.savez(os.path.join(folder, "samples.npz"), x=x, y=np.concatenate(y), names=[given, made])
    np.savez(os.path.join(folder, "inputs.npz"), x=x, names=[given, made])


def row(name, rates, busy, cpu, against):
    ratio = statistics.median(r / a for r, a in zip(rates, against))
    return "| %s | %.1f | %.2f | %s | %s |" % (name, statistics.median(rates), ratio, busy, cpu)


def measure(program, onnx, args, env):
    model = os.path.splitext(os.path.basename(onnx))[0]
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "model.plan")
        given, sizes, made = described(program, onnx)
        rest = "x".join(map(str, sizes))
        subprocess.run([program, "build", onnx, "-o", plan, "--profile", "%s=1x%s:%dx%s:%dx%s" % (
            given, rest, BATCH, rest, BATCH, rest)], check=True, stdout=subprocess.DEVNULL)
        samples_of(program, plan, given, sizes, made, folder)
        samples, inputs = os.path.join(folder, "samples.npz"), os.path.join(folder, "inputs.npz")
        server = serve(plan, model, folder, env, args)
        print("\n## %s\n" % model)
        print("- answers with the bits of `assay run`: %s" % bits(server, model, samples, env, args.requests), flush=True)
        peer = serve_peer(onnx, model, folder, env, args)
        kinds = [("assay.serving, HTTP", server, "http"), ("assay.serving, gRPC", server, "grpc"),
                 ("MLServer with ONNX Runtime, gRPC", peer, "grpc")]
        rates, cpu, busy = ({k[0]: [] for k in kinds} for _ in range(3))
        base, base_cpu = [], []
        for _ in range(args.rounds):
            b = bench(program, plan, "%s=%dx%s" % (given, BATCH, rest), args)
            base.append(b["rate"])
            base_cpu.append(b["cpu_ms"])
            for name, which, kind in kinds:
                before = metric(which, "assay_compute_seconds_sum", model)
                r = client(which, kind, model, inputs, env, "--seconds", str(args.seconds))
                busy[name].append((metric(which, "assay_compute_seconds_sum", model) - before) / r["seconds"]
                                  / args.instances)
                rates[name].append(r["requests"] / r["seconds"])
                cpu[name].append((r["server_cpu_ms"] / max(1, r["requests"]), r["cpu_ms"] / max(1, r["requests"])))
        json_peer = client(peer, "http", model, inputs, env, "--requests", str(CLIENTS), "--json")
        print("- at TERM: %s" % term(server, model, samples, env))
        peer.end()
        print("\n| | samples/s | of bench | contexts busy | CPU ms a sample: server, client |\n"
              "| --- | --- | --- | --- | --- |")
        print(row("`assay bench --batch %d --contexts %d --threads %d`" % (BATCH, args.instances, args.threads), base,
                  "-", "%.2f, -" % statistics.median(base_cpu), base))
        for name, *_ in kinds:
            share = "%.2f" % statistics.median(busy[name]) if any(busy[name]) else "-"
            print(row(name, rates[name], share, "%.2f, %.2f" % tuple(statistics.median(c[i] for c in cpu[name]) for i in (0, 1)),
                      base))
        print("| MLServer with ONNX Runtime, HTTP (JSON) | %.1f | %.2f | - | %.2f, %.2f |" % (
            json_peer["requests"] / json_peer["seconds"], json_peer["requests"] / json_peer["seconds"]
            / statistics.median(base), json_peer["server_cpu_ms"] / max(1, json_peer["requests"]),
            json_peer["cpu_ms"] / max(1, json_peer["requests"])), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    env = environment(args.program)
    print("\nload average at the start: %.1f" % os.getloadavg()[0])
    for model in args.models:
        measure(args.program, os.path.abspath(model), args, env)


if __name__ == "__main__":
    main()
