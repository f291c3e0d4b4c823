"""Wheels and environments for tests of the installed package."""
from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import zipfile
from importlib import metadata

PROJECT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT_S = 300


def clean_environment() -> dict[str, str]:
    """A user's: nothing says where Assay or a GPU's libraries are."""
    leave = ("ASSAY_", "PYTHON", "CUDA_", "LD_")
    return {name: value for name, value in os.environ.items() if not name.startswith(leave)}


def run(*command: object, code: int | None = 0, **options: object) -> subprocess.CompletedProcess[str]:
    """Runs a command; its exit code has to be `code` (None: any)."""
    words = [str(word) for word in command]
    options = {"env": clean_environment(), "timeout": TIMEOUT_S, "stdin": subprocess.DEVNULL, **options}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]
    if code is not None and done.returncode != code:
        raise AssertionError(f"{' '.join(words)}\nends with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    return done


def repacked(name: str, python_packages: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """An installed package as the wheel that it came from, so that it can be installed elsewhere without a download."""
    found = next(iter(metadata.distributions(name=name, path=[str(python_packages)])), None)
    if found is None:
        raise AssertionError(f"{python_packages} has no {name}: run scripts/setup")
    info = f"{name}-{found.version}.dist-info"
    tag = next(line.split()[1] for line in (found.read_text("WHEEL") or "").splitlines() if line.startswith("Tag:"))
    out = folder / f"{name}-{found.version}-{tag}.whl"
    record = []
    with zipfile.ZipFile(out, "w") as wheel:
        for file in found.files or ():
            path = str(file)
            if path.startswith("..") or "__pycache__" in path or file.name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                continue
            data = pathlib.Path(str(found.locate_file(file))).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
            wheel.writestr(path, data)
        wheel.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
    return out


class Environment:
    """A new environment of Python's, without any package."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        self.python, self.assay = folder / "bin/python", folder / "bin/assay"

    def pip(self, *words: object) -> None:
        """pip that knows no index: packages come from the files that are named."""
        run(sys.executable, "-m", "pip", "--python", self.python, "--quiet", "--disable-pip-version-check", "--no-input", *words)

    def files(self) -> set[str]:
        """All that is in it."""
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}
