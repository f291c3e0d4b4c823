"""Checks, calibration, tuning and conformance on the machines of a Ray cluster, with one machine's result to the bit.

    import ray, assay.ray
    ray.init()
    result = assay.ray.check("/shared/model.onnx", "/shared/images", precision="fp16", folder="/shared/run-1")

The data are cut into shards, which Ray's workers take one by one; what they find is put together here in the order of
the shards. `folder` keeps what is finished: the same call goes on where a killed one ended.
"""
from __future__ import annotations

from importlib import import_module as _import_module

try:
    _import_module("ray")
except ImportError:
    raise ImportError("assay.ray needs Ray: pip install assay-engine[ray]") from None

from .calibrate import calibrate
from .check import check
from .conformance import ConformanceResult, conformance
from .tune import tune

__all__ = ["ConformanceResult", "calibrate", "check", "conformance", "tune"]
