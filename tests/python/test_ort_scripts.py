"""Scripts written for ONNX Runtime's Python API run with the import exchanged, and print the same.

Each of ort_scripts/ is run by the real package and by assay.onnxruntime, all in one process per engine. Numbers are
compared within what float32 sums in another order differ by; all other words have to be equal.
"""
import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

import ort_models

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = sorted(glob.glob(os.path.join(HERE, "ort_scripts", "*.py")))
_NUMBER = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|\b(?:nan|inf))(?!\w)", re.I)
REL, ABS = 2e-4, 2e-5


def words(text):
    """The text between numbers, without differences of spaces, and the numbers."""
    between = re.sub(r"\s+", " ", _NUMBER.sub("#", text)).replace("[ ", "[").replace(" ]", "]")
    return between, [float(n) for n in _NUMBER.findall(text)]


def close(a, b):
    return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=REL, abs_tol=ABS)


class TestScripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.printed = {}
        with tempfile.TemporaryDirectory() as models:
            ort_models.save(models)
            for engine in ("onnxruntime", "assay"):
                done = subprocess.run([sys.executable, os.path.join(HERE, "ort_runner.py"), engine, models, *SCRIPTS],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
                if done.returncode:
                    raise AssertionError("%s ended with %d: %s" % (engine, done.returncode, done.stderr[-2000:]))
                cls.printed[engine] = json.loads(done.stdout)

    def test_there_are_many(self):
        self.assertGreaterEqual(len(SCRIPTS), 50)

    def test_they_print_the_same(self):
        for script in map(os.path.basename, SCRIPTS):
            theirs, ours = (self.printed[engine][script] for engine in ("onnxruntime", "assay"))
            with self.subTest(script):
                self.assertEqual(theirs["error"], "", "ONNX Runtime does not run it")
                self.assertEqual(ours["error"], "")
                self.assertTrue(theirs["out"].strip(), "it prints nothing")
                (text, numbers), (our_text, our_numbers) = words(theirs["out"]), words(ours["out"])
                self.assertEqual(our_text, text)
                differ = [(a, b) for a, b in zip(numbers, our_numbers) if not close(a, b)]
                self.assertEqual(differ, [])


if __name__ == "__main__":
    unittest.main()
