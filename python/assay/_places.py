"""Where an installed package has what it is made of: the library, the program, NVIDIA's libraries.

In a wheel the library is lib/libassay.so.0 and the program bin/assay, both in this folder. In a source tree they are those
of build/release. ASSAY_LIBRARY and ASSAY_PROGRAM name other files.
"""
from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

_HERE = os.path.dirname(os.path.abspath(__file__))
_BUILD = os.path.join(_HERE, "..", "..", "build", "release")

# Below the folder 'nvidia' of Python packages: those for CUDA 13 share a folder, those for CUDA 12 have one each.
_NVIDIA = (("cu13", "lib"), ("cuda_nvrtc", "lib"), ("cublas", "lib"))


def libraries() -> Iterator[str]:
    """Files that may be libassay, the one to take first: a name without folder is found by the system's loader."""
    if os.environ.get("ASSAY_LIBRARY"):
        yield os.environ["ASSAY_LIBRARY"]
        return
    yield os.path.join(_HERE, "lib", "libassay.so.0")
    yield os.path.join(_BUILD, "libassay.so")
    yield "libassay.so.0"


def program() -> str:
    """The file of the program `assay`. FileNotFoundError: there is none."""
    given = os.environ.get("ASSAY_PROGRAM")
    places = [given] if given else [os.path.join(_HERE, "bin", "assay"), os.path.join(_BUILD, "src", "cli", "assay")]
    for path in places:
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    raise FileNotFoundError("the program 'assay' was not found (%s): install the wheel, or set ASSAY_PROGRAM to its path"
                            % ", ".join(os.path.normpath(path) for path in places))


def nvidia_folders() -> list[str]:
    """Folders of NVIDIA's Python packages (assay-engine[cuda]) that have the libraries that a GPU's plans are built with."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        spec = None
    tops = list(spec.submodule_search_locations or ()) if spec else []
    folders = [os.path.join(top, *below) for below in _NVIDIA for top in tops]
    return [folder for folder in folders if os.path.isdir(folder)]


def use_nvidia_packages() -> None:
    """Lets libassay look there, by ASSAY_CUDA_PATH: unless the user has set it."""
    if os.environ.get("ASSAY_CUDA_PATH"):
        return
    folders = nvidia_folders()
    if folders:
        os.environ["ASSAY_CUDA_PATH"] = os.pathsep.join(folders)
