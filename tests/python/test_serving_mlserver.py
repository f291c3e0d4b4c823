"""Models served by MLServer to tritonclient: bits, types, bad requests, changes of models, the end."""
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
from tritonclient.utils import InferenceServerException

from serving_case import GrpcClient, HttpClient, Server, ServingCase, free_ports, infer, np, th

TYPES = {"FLOAT": ("FP32", "float32"), "DOUBLE": ("FP64", "float64"), "FLOAT16": ("FP16", "float16"),
         "BFLOAT16": ("BF16", ml_dtypes.bfloat16), "INT8": ("INT8", "int8"), "INT16": ("INT16", "int16"),
         "INT32": ("INT32", "int32"), "INT64": ("INT64", "int64"), "UINT8": ("UINT8", "uint8"),
         "UINT16": ("UINT16", "uint16"), "UINT32": ("UINT32", "uint32"), "UINT64": ("UINT64", "uint64"),
         "BOOL": ("BOOL", "bool"), "STRING": ("BYTES", object)}


def draw(rows, width=64, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


class TestCommand(ServingCase):
    """python -m assay.serving."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = cls.path("net.plan")
        subprocess.run([os.environ["ASSAY_PROGRAM"], "build", cls.path("net.onnx"), "-o", cls.plan, "--profile",
                        "x=1x64:8x64:24x64"], check=True, stdout=subprocess.DEVNULL)
        cls.server = cls.serve("net=" + cls.plan, "slow=" + cls.path("slow.onnx"), "--max-delay-ms", "2",
                               "--max-request-mib", "1", "--timeout-ms", "5000").wait("net", "slow")
        cls.x = draw(24)
        cls.expected = cls.run_by_program(cls.plan, cls.x)

    def storm(self, requests, clients=32):
        """Clients of both kinds, half each, that ask all at once for rows of x; returns how many answers were right."""
        def work(k):
            client = (HttpClient if k % 2 else GrpcClient)(self.server)
            right = 0
            for n in range(k, requests, clients):
                at, rows = n % 20, 1 + n % 3
                right += infer(client, "net", self.x[at:at + rows]).tobytes() == self.expected[at:at + rows].tobytes()
            return right
        with ThreadPoolExecutor(clients) as pool:
            return sum(pool.map(work, range(clients)))

    def test_answers_have_the_bits_of_assay_run(self):
        before = self.server.metric("assay_batch_rows_count", model="net")
        self.assertEqual(self.storm(320), 320)
        runs = self.server.metric("assay_batch_rows_count", model="net") - before
        self.assertLess(runs, 300)
        self.assertGreaterEqual(self.server.metric("assay_requests_total", model="net", version="1"), 320)

    def test_bad_requests_disturb_nobody(self):
        x, results = self.x, []
        good = threading.Thread(target=lambda: results.append(self.storm(160, 8)))
        good.start()
        for client, number, name in ((HttpClient(self.server), "400", "404"),
                                     (GrpcClient(self.server), "INVALID_ARGUMENT", "NOT_FOUND")):
            for status, model, value, datatype in (
                    (number, "net", x[:, :3], "FP32"), (number, "net", x.astype("f8"), "FP64"), (name, "none", x, "FP32"),
                    ("413" if number == "400" else "RESOURCE_EXHAUSTED", "net", draw(9000), "FP32"),
                    (number, "net", x[:0], "FP32")):
                with self.assertRaises(InferenceServerException) as error:
                    infer(client, model, value, datatype)
                self.assertIn(status, str(error.exception))
        for body, headers in ((b"", {}), (b"{", {}), (b"[]", {"Content-Type": "application/json"}),
                              (b"\x00" * 100, {"Inference-Header-Content-Length": "-3"}),
                              (b"{}" * 10, {"Inference-Header-Content-Length": "99"}),
                              (b"zz", {"Content-Encoding": "gzip"})):
            self.assertEqual(self.post("net", body, headers), 400)
        # A body of which the rest never comes, and one that trickles in: only they wait.
        slow = [socket.create_connection(("127.0.0.1", self.server.http)) for _ in range(4)]
        for s in slow:
            s.sendall(b"POST /v2/models/net/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n{")
        good.join()
        self.assertEqual(results, [160])
        for s in slow:
            s.settimeout(20)
            self.assertIn(b" 408 ", s.recv(100))
            s.close()

    def post(self, model, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.http, timeout=30)
        connection.request("POST", "/v2/models/%s/infer" % model, body, headers)
        response = connection.getresponse()
        self.assertIn("error", json.loads(response.read()))
        connection.close()
        return response.status

    def test_deadlines_and_clients_that_go(self):
        x = draw(8, 1536)
        for client in (HttpClient(self.server), GrpcClient(self.server)):
            with self.assertRaises(InferenceServerException) as error:
                infer(client, "slow", x, timeout=1000)  # microseconds
            self.assertTrue(any(w in str(error.exception) for w in ("504", "DEADLINE_EXCEEDED")), error.exception)
        with self.assertRaises(InferenceServerException):
            infer(GrpcClient(self.server), "slow", x, client_timeout=.002)
        head = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [8, 1536],
                                       "parameters": {"binary_data_size": x.nbytes}}]}).encode()
        before = self.server.metric("assay_request_failures_total", reason="cancelled")
        for _ in range(4):
            s = socket.create_connection(("127.0.0.1", self.server.http))
            s.sendall(b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n"
                      b"Inference-Header-Content-Length: %d\r\n\r\n" % (len(head) + x.nbytes, len(head)) + head + x.tobytes())
            time.sleep(.002)
            s.close()
        end = time.monotonic() + 10
        while self.server.metric("assay_request_failures_total", reason="cancelled") == before:
            self.assertLess(time.monotonic(), end)
            time.sleep(.02)
        self.assertEqual(infer(HttpClient(self.server), "slow", x).shape, x.shape)

    def test_models_are_unloaded_and_loaded_while_requests_come(self):
        stop, wrong = threading.Event(), []
        client = HttpClient(self.server).client

        def ask():
            mine = HttpClient(self.server)
            while not stop.is_set():
                if infer(mine, "net", self.x[:2]).tobytes() != self.expected[:2].tobytes():
                    wrong.append(1)
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for t in threads:
            t.start()
        for _ in range(3):
            client.load_model("net")
        stop.set()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])
        self.assertEqual({(m["name"], m["state"]) for m in client.get_model_repository_index()},
                         {("net", "READY"), ("slow", "READY")})
        with self.assertRaises(InferenceServerException):
            client.load_model("none")

    def test_usage(self):
        for arguments in (["none.onnx", "--instances", "0"], ["--settings", self.path("none"), "m"], []):
            done = subprocess.run([sys.executable, "-m", "assay.serving", *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("error", done.stderr)


class TestEnd(ServingCase):
    def test_term_answers_what_runs(self):
        server = self.serve(self.path("slow.onnx"), "--max-batch", "1").wait("slow")
        x, began = draw(8, 1536), threading.Barrier(7)
        expected = infer(HttpClient(server), "slow", x).tobytes()

        def ask(k):
            client = (HttpClient if k % 2 else GrpcClient)(server)
            began.wait()
            return infer(client, "slow", x).tobytes() == expected
        with ThreadPoolExecutor(6) as pool:
            answers = [pool.submit(ask, k) for k in range(6)]
            began.wait()
            while server.metric("assay_requests_total", model="slow") < 7:
                time.sleep(.002)
            self.assertEqual(server.end(), 0)
            self.assertEqual([a.result() for a in answers], [True] * 6)

    def test_a_model_that_cannot_be_loaded(self):
        server = self.serve(self.path("none.onnx"))
        self.assertEqual(server.process.wait(60), 3)
        with open(server.log, encoding="utf-8") as log:
            self.assertIn("none.onnx", log.read())


class TestFolder(ServingCase):
    """mlserver start FOLDER, with a model-settings.json each, and MLServer's own settings."""

    def settings(self, name, version, source, **more):
        folder = os.path.join(self.root, name + version)
        os.makedirs(folder, exist_ok=True)
        shutil.copy(self.path(source + ".onnx"), os.path.join(folder, "model.onnx"))
        with open(os.path.join(folder, "model-settings.json"), "w", encoding="utf-8") as f:
            json.dump({"name": name, "implementation": "assay.serving.mlserver.AssayRuntime", "max_batch_size": 4,
                       "max_batch_time": .002, "parameters": {"uri": "./model.onnx", "version": version, **more}}, f)

    def test_types_versions_and_a_new_model_in_place(self):
        self.root = self.path("models")
        ports = free_ports(3)
        os.makedirs(self.root)
        with open(os.path.join(self.root, "settings.json"), "w", encoding="utf-8") as f:
            json.dump({"host": "127.0.0.1", "debug": False, **dict(zip(("http_port", "grpc_port", "metrics_port"), ports))}, f)
        for name in TYPES:
            self.settings(name, "1", name)
        self.settings("net", "1", "net", extra={"instances": 2, "threads": 1})
        self.settings("net", "2", "other")
        server = Server([sys.executable, "-c", "from mlserver.cli import main; main()", "start", self.root], ports,
                        self.path("log"), cwd=self.folder)
        self.addCleanup(server.end)
        server.wait("net", *TYPES)
        self.types(server)
        x = draw(3)
        first, second = (self.run_by_program(self.path(n + ".onnx"), x) for n in ("net", "other"))
        for client in (HttpClient(server), GrpcClient(server)):
            # By default the engine; its bits are not the interpreter's.
            np.testing.assert_allclose(infer(client, "net", x, model_version="1"), first, atol=1e-5)
            np.testing.assert_allclose(infer(client, "net", x), second, atol=1e-5)
        self.settings("net", "2", "net")
        GrpcClient(server).client.load_model("net")
        np.testing.assert_allclose(infer(HttpClient(server), "net", x), first, atol=1e-5)
        self.assertGreater(server.metric("assay_requests_total", model="net", version="2"), 0)

    def types(self, server):
        for name, (datatype, dtype) in TYPES.items():
            with self.subTest(name):
                x = np.array([[b"a\xc3\xa9", b""]] if dtype is object else [[1, 0]], dtype)
                for client in (HttpClient(server), GrpcClient(server)):
                    y = infer(client, name, x, datatype)
                    self.assertEqual(y.tolist(), x.tolist())
                    self.assertEqual(y.dtype, x.dtype)
                metadata = HttpClient(server).client.get_model_metadata(name)
                self.assertEqual(metadata["inputs"], [{"name": "x", "datatype": datatype, "shape": [-1, 2]}])
                self.assertEqual(GrpcClient(server).client.get_model_metadata(name).inputs[0].datatype, datatype)
                if datatype in ("BF16", "FP16"):
                    continue
                given = th.InferInput("x", [1, 2], datatype)
                given.set_data_from_numpy(x, binary_data=False)
                answer = HttpClient(server).client.infer(name, [given],
                                                         outputs=[th.InferRequestedOutput("y", binary_data=False)])
                expected = ["a\u00e9", ""] if datatype == "BYTES" else x[0].tolist()
                self.assertEqual(answer.get_output("y")["data"], expected)


APP = """
import sys, uvicorn
from assay.serving import Repository, Settings
from assay.serving.app import App
repository = Repository()
repository.load("net", sys.argv[1], "1")
repository.load("net", sys.argv[2], "2")
uvicorn.run(App(repository, Settings(max_request_bytes=1 << 20)), port=int(sys.argv[3]))
"""


class TestApp(ServingCase):
    """The application for servers that bring no protocol, in uvicorn."""

    def test_protocol(self):
        ports = free_ports(1) * 3
        server = Server([sys.executable, "-c", APP, self.path("net.onnx"), self.path("other.onnx"), str(ports[0])], ports,
                        self.path("log")).wait("net")
        self.addCleanup(server.end)
        client, x = HttpClient(server), draw(3)
        first, second = (self.run_by_program(self.path(n + ".onnx"), x) for n in ("net", "other"))
        np.testing.assert_allclose(infer(client, "net", x, model_version="1"), first, atol=1e-5)
        np.testing.assert_allclose(infer(client, "net", x), second, atol=1e-5)
        triton = client.client
        self.assertTrue(triton.is_server_live() and triton.is_server_ready())
        self.assertEqual(triton.get_server_metadata()["name"], "assay")
        self.assertEqual(triton.get_model_metadata("net")["versions"], ["2"])
        for status, model, value in (("400", "net", x[:, :3]), ("404", "none", x), ("400", "net", draw(9))):
            with self.assertRaises(InferenceServerException) as error:
                infer(client, model, value)
            self.assertIn(status, str(error.exception))
        triton.unload_model("net")
        self.assertFalse(triton.is_model_ready("net"))
        triton.load_model("net")
        self.assertEqual({(m["version"], m["state"]) for m in triton.get_model_repository_index()},
                         {("1", "READY"), ("2", "READY")})
        self.assertEqual(server.metric("assay_request_failures_total", reason="malformed"), 2)
        self.assertEqual(server.end(), -15)  # uvicorn's own way: it ends, and then kills itself by the signal


if __name__ == "__main__":
    unittest.main()
