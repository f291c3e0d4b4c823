"""What the tests of servers share: models made in the environment that has onnx, servers in processes of their own."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import numpy as np
import tritonclient.grpc as tg
import tritonclient.http as th

HERE = os.path.dirname(os.path.abspath(__file__))
ONNX_PYTHON = os.environ.get("ASSAY_ONNX_PYTHON", sys.executable)

MAKE = """
import sys
sys.path.insert(0, %r)
from api_case import *
folder = sys.argv[1]
def save(name, m):
    onnx.save(m, folder + "/" + name + ".onnx")
def typed(elem):
    return model([h.make_node("Identity", ["x"], ["y"])], [value("x", elem, ["N", 2])], [value("y", elem, ["N", 2])])
save("net", chain(4, 64))
save("other", chain(4, 64, seed=1))
save("slow", chain(24, 1536))
for name in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32",
             "UINT64", "BOOL", "STRING"):
    save(name, typed(getattr(T, name)))
""" % HERE


def free_ports(count):
    """Ports that nobody listens at now."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Server:
    """A server in a process of its own. http, grpc, metrics: its ports."""

    def __init__(self, command, ports, log, cwd=None, env=None):
        self.http, self.grpc, self.metrics = ports
        self.log = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=cwd,
                                            env={**os.environ, **(env or {})})

    def wait(self, *models, patience_s=60):
        """Until all models are ready."""
        end = time.monotonic() + patience_s
        client = th.InferenceServerClient("127.0.0.1:%d" % self.http)
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if all(client.is_model_ready(m) for m in models):
                    return self
            except OSError:
                pass
            time.sleep(.05)
        with open(self.log, encoding="utf-8", errors="replace") as f:
            text = f.read()[-4000:]
        self.process.kill()
        self.process.wait()
        raise AssertionError("the server is not ready:\n" + text)

    def end(self, patience_s=60):
        """TERM; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def metric(self, name, **labels):
        """The sum of a metric's values with these labels."""
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.metrics, timeout=10) as page:
            lines = page.read().decode().splitlines()
        wanted = ['%s="%s"' % pair for pair in labels.items()]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines
                   if line.startswith(name + "{") and all(w in line for w in wanted))


class HttpClient:
    module = th

    def __init__(self, server):
        self.client = th.InferenceServerClient("127.0.0.1:%d" % server.http, network_timeout=60, connection_timeout=60)


class GrpcClient:
    module = tg

    def __init__(self, server):
        self.client = tg.InferenceServerClient("127.0.0.1:%d" % server.grpc)


def infer(client, model, x, datatype="FP32", **options):
    """x -> y over a client."""
    given = client.module.InferInput("x", list(x.shape), datatype)
    given.set_data_from_numpy(x)
    return client.client.infer(model, [given], **options).as_numpy("y")


class ServingCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        subprocess.run([ONNX_PYTHON, "-c", MAKE, folder.name], check=True)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def run_by_program(cls, model, x):
        """What `assay run` gives for x."""
        np.savez(cls.path("in.npz"), x=x)
        subprocess.run([os.environ["ASSAY_PROGRAM"], "run", model, "--inputs", cls.path("in.npz"), "-o",
                        cls.path("out.npz")], check=True, stdout=subprocess.DEVNULL)
        with np.load(cls.path("out.npz")) as saved:
            return saved["y"]

    @classmethod
    def serve(cls, *arguments):
        """`python -m assay.serving` with these arguments; ended with the class."""
        ports = free_ports(3)
        command = [sys.executable, "-m", "assay.serving", *arguments]
        for name, port in zip(("http", "grpc", "metrics"), ports):
            command += ["--%s-port" % name, str(port)]
        server = Server(command, ports, cls.path("log%d" % ports[0]))
        cls.addClassCleanup(server.end)
        return server
