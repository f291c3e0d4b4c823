"""What is done before a model takes requests: runs that prepare kernels, and a trial whether its rows are independent."""
from __future__ import annotations

import logging
import time
from typing import Any, List, Optional, Sequence

import numpy as np

from .. import AssayError, Context
from .signature import Signature

log = logging.getLogger("assay.serving")
OPEN_SIZES = (8, 32, 64, 224, 1)  # tried for dimensions that are open and have no range
WARM_S = 20.0


def prepare(contexts: Sequence[Context], signature: Signature, batching: Optional[bool], name: str) -> bool:
    """Warms all contexts. Returns whether requests are put together: if the settings do not say it (batching), where a
    trial gives each row of a batch the bits that it has alone."""
    size = next((s for s in OPEN_SIZES if _runs(contexts[0], signature, s)), None)
    if size is None:
        log.warning("model '%s' does not run with made-up inputs: it is warmed by the first requests%s", name,
                    "" if batching else ", which are run alone")
        return bool(batching) and signature.batch is not None
    together = batching is not False and signature.batch is not None
    limit = signature.limit(signature.key(signature.made_up(1, size, 0))) if together else 1
    if together and batching is None and limit > 1 and not _independent(contexts[0], signature, limit, size):
        log.warning("model '%s': rows of a batch depend on each other: requests are run alone", name)
        together, limit = False, 1
    _warm(contexts, signature, limit, size)
    return together and limit > 1


def _runs(context: Context, signature: Signature, size: int) -> bool:
    try:
        context.run(signature.made_up(1, size, 0))
    except (AssayError, MemoryError):
        return False
    return True


def _same(a: Any, b: Any) -> bool:
    if a.dtype == object:
        return bool(a.shape == b.shape and (a == b).all())
    return bool(a.shape == b.shape and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes())


def _independent(context: Context, signature: Signature, rows: int, size: int) -> bool:
    """Whether the first and the last row of a full batch have the bits that they have alone."""
    inputs = signature.made_up(rows, size, 1)
    try:
        together: List[Any] = [np.array(o) for o in _served(context, signature, inputs)]
        if any(o.ndim < 1 or o.shape[0] != rows for o in together):
            return False
        for row in (0, rows - 1):
            alone = _served(context, signature, [a[row:row + 1] for a in inputs])
            if not all(_same(o[row:row + 1], a) for o, a in zip(together, alone)):
                return False
    except (AssayError, MemoryError):
        return False
    return True


def _served(context: Context, signature: Signature, inputs: Sequence[Any]) -> List[Any]:
    outputs = context.run(list(inputs))
    return [outputs[t.place] for t in signature.outputs]


def _warm(contexts: Sequence[Context], signature: Signature, limit: int, size: int) -> None:
    """Runs each context with each number of rows, the full batch first, as long as that takes little time."""
    end = time.monotonic() + WARM_S
    for rows in range(limit, 0, -1):
        for context in contexts:
            if rows < limit and time.monotonic() > end:
                return
            try:
                context.run(signature.made_up(rows, size, 0))
            except (AssayError, MemoryError):
                return
