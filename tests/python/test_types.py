"""The package's core is typed: mypy --strict finds nothing."""
import pathlib
import subprocess
import sys
import tempfile

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python" / "assay"
# Those that go by another package's classes are typed as far as that package is.
CORE = ("__init__", "_audit", "_calls", "_certify", "_check", "_check_parts", "_compare", "_dlpack", "_edit", "_library", "_plans",
        "_results", "_samples", "_sizes", "_slots", "_taps", "_tensors", "_tune", "_types", "context", "device", "engine", "errors", "model",
        "session", "values", "debug/__init__", "debug/_batch", "debug/_environment", "debug/_passes", "debug/_precision", "debug/_reduce",
        "debug/_run", "debug/_tactics")

with tempfile.TemporaryDirectory() as cache:
    files = [str(PACKAGE / (name + ".py")) for name in CORE]
    ran = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", cache, *files], cwd=PACKAGE.parent)
sys.exit(ran.returncode)
