"""`python -m assay` and the command `assay` of a wheel: the program, in place of Python.

Its process is this one (exec), so that its exit code, its signals and its terminal are the caller's.
"""
from __future__ import annotations

import os
import sys

from . import _places


def main() -> None:
    """Runs the program with this process's arguments; does not return unless there is none."""
    try:
        program = _places.program()
    except FileNotFoundError as error:
        sys.exit("assay: %s" % error)
    _places.use_nvidia_packages()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(program, ["assay", *sys.argv[1:]])
    except OSError as error:
        sys.exit("assay: '%s' cannot be run: %s" % (program, error.strerror))


if __name__ == "__main__":
    main()
