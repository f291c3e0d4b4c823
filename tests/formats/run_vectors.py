#!/usr/bin/env python3
"""Number formats against ml_dtypes: run_vectors.py CHECK_VECTORS COUNT, with COUNT float32 inputs a format."""
import pathlib
import subprocess
import sys
import tempfile

program, count = sys.argv[1:]
with tempfile.TemporaryDirectory(dir=".") as folder:
    make = pathlib.Path(__file__).with_name("make_vectors.py")
    subprocess.run([sys.executable, make, folder, "--count", count], check=True)
    sys.exit(subprocess.run([program, folder]).returncode)
