"""Versions: of the API that this is, and of the library behind it."""
from __future__ import annotations

import platform

from .devices import get_available_providers

__version__ = "1.31.1"  # the release of ONNX Runtime whose API this is


def _library() -> str:
    from .. import __version__ as library
    return str(library)


def get_version_string() -> str:
    """The version of the API."""
    return __version__


def get_build_info() -> str:
    """What is behind the API."""
    return "Assay %s with ONNX Runtime's API %s" % (_library(), __version__)


def print_debug_info() -> None:
    """Prints versions, the platform and the providers."""
    print(get_build_info())
    print("platform:", platform.platform())
    print("providers:", ", ".join(get_available_providers()))
