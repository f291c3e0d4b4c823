"""Assay's engines behind servers: MLServer (assay.serving.mlserver), KServe (.kserve), Ray Serve (.ray), any ASGI server.

    python -m assay.serving MODEL...        serves models by HTTP and gRPC
"""
from __future__ import annotations

from .errors import (Failed, Malformed, NotFound, Overloaded, RequestError, TimedOut, TooLarge, TooSlow, Unavailable)
from .model import ServedModel
from .repository import Repository
from .settings import Settings

__all__ = ["Failed", "Malformed", "NotFound", "Overloaded", "Repository", "RequestError", "ServedModel", "Settings",
           "TimedOut", "TooLarge", "TooSlow", "Unavailable"]
