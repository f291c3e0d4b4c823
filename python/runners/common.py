"""What all runners share: arguments, arrays in and out, errors of one line."""
import argparse
import importlib
import os
import sys
import tempfile
import zipfile

import numpy as np

PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "int8")


class RunnerError(Exception):
    """The engine cannot do it; the message says what to do."""


class MissingPackage(RunnerError):
    """A package that is not installed."""


def parser(engine, precisions):
    p = argparse.ArgumentParser(prog=f"python -m runners.{engine}", description=f"Runs a model with {engine}.")
    p.add_argument("model", metavar="MODEL", help="the ONNX file")
    p.add_argument("inputs", metavar="INPUTS", help="arrays by input name (npz)")
    p.add_argument("outputs", metavar="OUTPUTS", help="where the outputs go (npz)")
    p.add_argument("precision", metavar="PRECISION", nargs="?", default="fp32",
                   help=f"{', '.join(precisions)} (default: fp32, as the model declares)")
    p.add_argument("--all", action="store_true", help="write inner values, too")
    return p


def need(module, package, why=""):
    """Imports a module; tells which package it is in if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise MissingPackage(f"{module} cannot be imported ({e}): pip install {package}{why}") from e


def read_arrays(path):
    with np.load(path, allow_pickle=False) as npz:
        return {name: npz[name] for name in npz.files}


def as_numpy(x):
    """An array that NumPy can save: bfloat16 and float8 become float32, which holds them exactly."""
    x = np.asarray(x)
    if x.dtype.kind == "V" or x.dtype.name.startswith(("bfloat16", "float8", "float4", "float6")):
        return x.astype(np.float32)
    if x.dtype.name.startswith(("int4", "int2")):
        return x.astype(np.int8)
    if x.dtype.name.startswith(("uint4", "uint2")):
        return x.astype(np.uint8)
    if x.dtype.kind == "O":  # strings
        return x.astype(np.str_)
    return x


def write_arrays(path, arrays):
    """Writes an npz under another name and renames it, so that nobody sees half of one. (numpy.savez takes names as
    keyword arguments: an array may not be called 'file' there.)"""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=".outputs.", suffix=".npz", dir=folder)
    try:
        with os.fdopen(handle, "wb") as f, zipfile.ZipFile(f, "w", zipfile.ZIP_STORED, allowZip64=True) as z:
            for name, array in arrays.items():
                with z.open(name + ".npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, as_numpy(array), allow_pickle=False)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def check_precision(engine, precision, allowed):
    if precision not in allowed:
        raise RunnerError(f"{engine} runs {', '.join(allowed)} here, not {precision}")


def main(engine, add_options, run, precisions, argv=None):
    """Parses arguments, calls run(args, inputs) -> {name: array}, writes the outputs; returns the exit code."""
    p = parser(engine, precisions)
    add_options(p)
    args = p.parse_args(argv)
    try:
        check_precision(engine, args.precision, precisions)
        write_arrays(args.outputs, run(args, read_arrays(args.inputs)))
    except MissingPackage as e:
        print(f"runners.{engine}: {e}", file=sys.stderr)
        return 2
    except Exception as e:  # whatever the engine throws: its text is what the user needs
        text = str(e).strip() or type(e).__name__
        print(f"runners.{engine}: {text}", file=sys.stderr)
        return 1
    return 0
