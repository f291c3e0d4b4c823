"""A real Triton server with the backend, on a port of its own, and a client of its HTTP interface.

The server comes with the package nvidia-pytriton (scripts/requirements-python-triton.txt); of that package nothing else is used.
"""
import glob
import http.client
import json
import os
import socket
import subprocess
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TYPES = {"BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "INT8": np.int8,
         "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "FP16": np.float16, "FP32": np.float32, "FP64": np.float64}
NAMES = {np.dtype(t): name for name, t in TYPES.items()}


def program():
    """The server's path; None where it is not installed."""
    found = glob.glob(os.path.join(ROOT, "build/venv-triton/lib/python3*/site-packages/pytriton/tritonserver/bin/tritonserver"))
    return found[0] if found else None


class ServerError(Exception):
    """What the server answered with another code than 200."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text


def strings_to_bytes(array):
    return b"".join(len(s).to_bytes(4, "little") + s for s in (x if isinstance(x, bytes) else str(x).encode() for x in array.flat))


def strings_from_bytes(data):
    out, at = [], 0
    while at < len(data):
        n = int.from_bytes(data[at:at + 4], "little")
        out.append(data[at + 4:at + 4 + n])
        at += 4 + n
    return out


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """tritonserver with a repository in which models are loaded one by one; a context manager."""

    def __init__(self, repository, backends, log, options=()):
        self.port = free_port()
        self.log = log
        command = [program(), f"--model-repository={repository}", f"--backend-directory={backends}", "--allow-grpc=false",
                   "--allow-metrics=false", "--model-control-mode=explicit", "--http-address=127.0.0.1",
                   f"--http-port={self.port}", "--exit-timeout-secs=20", *options]
        with open(log, "w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

    def __enter__(self):
        for _ in range(300):
            if self.process.poll() is not None:
                break
            try:
                if self.call("GET", "/v2/health/ready")[0] == 200:
                    return self
            except OSError:
                pass
            time.sleep(0.1)
        self.__exit__()
        with open(self.log) as f:
            raise RuntimeError("the server does not start:\n" + f.read())

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def call(self, method, path, body=b"", headers=None):
        """Its code, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def json(self, method, path, value=None):
        code, _, body = self.call(method, path, json.dumps(value).encode() if value is not None else b"")
        if code != 200:
            raise ServerError(code, body.decode())
        return json.loads(body) if body else None

    def load(self, name):
        self.json("POST", f"/v2/repository/models/{name}/load", {})

    def unload(self, name):
        self.json("POST", f"/v2/repository/models/{name}/unload", {})

    def config(self, name):
        return self.json("GET", f"/v2/models/{name}/config")

    def statistics(self, name):
        return self.json("GET", f"/v2/models/{name}/stats")["model_stats"][0]

    def infer(self, name, inputs, outputs=None, parameters=None):
        """{name: array} of the outputs; strings are arrays of bytes."""
        described, data = [], b""
        for key, array in inputs.items():
            is_text = array.dtype.kind in "OSU"
            raw = strings_to_bytes(array) if is_text else np.ascontiguousarray(array).tobytes()
            described.append({"name": key, "shape": list(array.shape), "datatype": "BYTES" if is_text else NAMES[array.dtype],
                              "parameters": {"binary_data_size": len(raw)}})
            data += raw
        asked = {"inputs": described, "parameters": {"binary_data_output": True, **(parameters or {})}}
        if outputs is not None:
            asked["outputs"] = [{"name": o, "parameters": {"binary_data": True}} for o in outputs]
        header = json.dumps(asked).encode()
        code, headers, body = self.call("POST", f"/v2/models/{name}/infer", header + data,
                                        {"Inference-Header-Content-Length": str(len(header))})
        if code != 200:
            raise ServerError(code, body.decode(errors="replace"))
        n = int(headers["Inference-Header-Content-Length"])
        return self.read_outputs(json.loads(body[:n]), body[n:])

    @staticmethod
    def read_outputs(answer, data):
        out, at = {}, 0
        for o in answer.get("outputs", ()):
            raw = data[at:at + o["parameters"]["binary_data_size"]]
            at += len(raw)
            if o["datatype"] == "BYTES":
                array = np.array(strings_from_bytes(raw), object)
            else:
                array = np.frombuffer(raw, TYPES[o["datatype"]])
            out[o["name"]] = array.reshape(o["shape"])
        return out
