"""Options that checks, tuning, certificates and experiments share: how a model is run."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Union

from . import _library as L
from ._results import listed
from .engine import FP32, rules

Rules = Union[None, str, Mapping[str, str]]
Texts = Union[None, str, List[str]]


def plan_fields(target: Optional[str], layer_precision: Rules, fusion: Optional[bool], passes_off: Texts, fp32: str) -> Dict[str, Any]:
    """The fields that every options struct of a plan has."""
    off = listed(passes_off)
    return {"target": L.encode(target), "layer_precision": rules(layer_precision), "fusion": L.fusion_of(fusion),
            "passes_off": L.strings(off) if off else None, "n_passes_off": len(off),
            "fp32": L.choice("fp32", fp32, FP32)}


def require_fields(require: Texts) -> Dict[str, Any]:
    """The fields of requirements, such as "logits: top1 >= 0.99"."""
    wanted = listed(require)
    return {"requirements": L.strings(wanted) if wanted else None, "n_requirements": len(wanted)}
