"""assay.calibrate over the cluster."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from .._version import version
from ..calibration import Calibration, calibrate as calibrate_here
from ..errors import InvalidArgument
from .checkpoint import Checkpoint, digest
from .cluster import Task, model_here, parts_of, run, sources_of
from .shards import shards_of


def ranges(where: Any, key: str, inputs: List[str], options: Dict[str, Any]) -> bytes:
    """On a worker: the ranges over some samples."""
    return calibrate_here(model_here(where, key), inputs=inputs, **options).to_bytes()


def calibrate(model: Any, data: Any, *, mode: str = "native", unquantized: bool = False, seed: int = 0, folder: Any = None,
              shard: int = 16, in_flight: Optional[int] = None) -> Any:
    """assay.calibrate over the machines of a Ray cluster: the same Calibration, to the bit.

    model, data, folder, shard, in_flight  as of check(); a list of models gives a list
    mode, unquantized, seed                as of assay.calibrate()
    """
    if mode not in ("native", "truth"):
        raise InvalidArgument("mode is %r; use 'native' or 'truth'" % mode)
    sources, several = sources_of(model)
    options = {"mode": mode, "unquantized": unquantized, "seed": seed}
    keys: List[List[str]] = [[] for _ in sources]
    with Checkpoint(folder) as checkpoint:
        def tasks() -> Any:
            for s in shards_of(data, None, sources[0].model, shard, checkpoint):
                for i, source in enumerate(sources):
                    keys[i].append(digest("calibrate", version(), source.digest, options, s.digest))
                    yield Task(keys[i][-1], ranges, (source.where, source.digest, s.inputs, options))

        run(tasks(), checkpoint, in_flight)
        results = []
        for of_model in keys:
            whole = Calibration()
            for part in parts_of(of_model, checkpoint):
                whole.join(Calibration.from_bytes(part))
            results.append(whole)
    return results if several else results[0]
