"""The page docs/serving.md: its servers serve, its clients get answers, its programs run."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(PROJECT, "docs", "serving.md")
MODEL = os.path.join(os.environ["ASSAY_TEST_MODELS"], "classifier", "model.onnx")
BLOCK = re.compile(r"^<!-- (\w+)(?:: (\S+))? -->\n```(\w+)\n(.*?)^```$", re.M | re.S)
PORTS = (8080, 8081, 8082)


def blocks():
    with open(PAGE, encoding="utf-8") as page:
        return BLOCK.findall(page.read())


class TestPage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.makedirs(os.path.join(self.folder, "models", "classifier"))
        for place in ("model.onnx", os.path.join("models", "classifier", "model.onnx")):
            shutil.copy(MODEL, os.path.join(self.folder, place))
        # Commands find this Python and its tools.
        self.env = {**os.environ, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}

        if not shutil.which("curl"):
            self.write_curl()

    def write_curl(self):
        """What the page needs of curl, where it is not installed."""
        path = os.path.join(self.folder, "curl")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!%s\nimport sys, urllib.request\n"
                    "print(urllib.request.urlopen('http://' + sys.argv[2]).read().decode())\n" % sys.executable)
        os.chmod(path, 0o755)
        self.env["PATH"] = self.folder + os.pathsep + self.env["PATH"]

    def ported(self, text):
        """With ports that nobody else has."""
        for port, mine in zip(PORTS, self.ports):
            text = text.replace(str(port), str(mine))
        return text

    def start(self, command):
        from serving_case import free_ports
        self.ports = free_ports(3)
        env = {**self.env, "MLSERVER_HTTP_PORT": str(self.ports[0]), "MLSERVER_GRPC_PORT": str(self.ports[1]),
               "MLSERVER_METRICS_PORT": str(self.ports[2])}
        if "assay.serving" in command:
            command += " --http-port %d --grpc-port %d --metrics-port %d" % tuple(self.ports)
        with open(os.path.join(self.folder, "log"), "wb") as log:
            server = subprocess.Popen("exec " + command, shell=True, cwd=self.folder, env=env, stdout=log,
                                      stderr=subprocess.STDOUT)
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen("http://localhost:%d/v2/models/classifier/ready" % self.ports[0], timeout=5).close()
                return server
            except OSError:
                if time.monotonic() > end or server.poll() is not None:
                    server.kill()
                    server.wait()
                    with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
                        raise AssertionError("the server is not ready:\n" + log.read()[-3000:]) from None
            time.sleep(.1)

    def run_block(self, language, text):
        """What it prints."""
        command = ["sh", "-ec", text] if language == "sh" else [sys.executable, "-c", text]
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_blocks(self):
        found = blocks()
        for kind, name, language, text in found:
            if kind == "file":
                with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
                    f.write(text)
        clients = [(language, text) for kind, _, language, text in found if kind == "client"]
        servers = [text for kind, _, _, text in found if kind == "server"]
        self.assertEqual((len(servers), len(clients)), (2, 2))
        for command in servers:
            server = self.start(command.strip())
            try:
                printed = [self.run_block(language, self.ported(text)) for language, text in clients]
            finally:
                server.terminate()
                code = server.wait(60)
            self.assertEqual(printed[0].strip(), "(1, 10)")
            self.assertIn('"FP32"', printed[1])
            if "assay.serving" in command:
                self.assertEqual(code, 0)
        for kind, name, language, text in found:
            if kind == "program":
                self.assertEqual(self.run_block(language, text).strip(), "32 (1, 10)")
            if kind == "needs":
                compile(text, PAGE, "exec")

    @unittest.skipUnless(importlib.util.find_spec("kserve"), "KServe is not installed")
    def test_kserve(self):
        from serving_case import free_ports
        text = next(t for kind, name, _, t in blocks() if name == "kserve")
        ports = free_ports(2)
        text = text.replace("ModelServer()", "ModelServer(http_port=%d, grpc_port=%d)" % tuple(ports))
        server = subprocess.Popen([sys.executable, "-c", text], cwd=self.folder, env=self.env)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        self.ports = [*ports, 0]
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen("http://localhost:%d/v2/health/ready" % ports[0], timeout=5).close()
                break
            except OSError:
                self.assertLess(time.monotonic(), end)
                time.sleep(.1)
        language, text = next((lang, t) for kind, _, lang, t in blocks() if kind == "client")
        self.assertEqual(self.run_block(language, self.ported(text)).strip(), "(1, 10)")

    @unittest.skipUnless(importlib.util.find_spec("ray") and importlib.util.find_spec("starlette"),
                         "Ray Serve is not installed")
    def test_ray(self):
        from serving_case import free_ports
        self.ports = free_ports(3)
        text = next(t for kind, name, _, t in blocks() if name == "ray")
        client = next(t for kind, _, language, t in blocks() if kind == "client" and language == "python")
        text = text.replace("num_replicas=2", "ray_actor_options={'num_cpus': 0.1}")
        again = text.splitlines()[-1].replace(".bind({'classifier': 'model.onnx'})", "").replace(
            "'num_cpus': 0.1}", "'num_cpus': 0.1}, user_config={'models': {'second': 'model.onnx'}}")
        program = ("import ray\nfrom ray import serve\nray.init(num_cpus=2, include_dashboard=False)\n"
                   "serve.start(http_options={'port': %d})\n" % self.ports[0] + text + self.ported(client) + again + "\n"
                   + self.ported(client).replace('"classifier"', '"second"') + "serve.shutdown()\n")
        printed = self.run_block("python", program.replace('"model.onnx"', repr(os.path.join(self.folder, "model.onnx")))
                                 .replace("'model.onnx'", repr(os.path.join(self.folder, "model.onnx"))))
        self.assertEqual(printed.count("(1, 10)"), 2)


if __name__ == "__main__":
    unittest.main()
