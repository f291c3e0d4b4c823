"""How a model is served: a settings dict, read and checked."""
from __future__ import annotations

import dataclasses
import difflib
import os
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional

from ..errors import InvalidArgument

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Settings:
    """How a model is served.

    instances          contexts that run side by side; they share the weights
    threads            of each run; 0: all cores, divided among the instances
    max_batch          rows that are run together at most; None: as many as the plan's profile allows, or 8 where the
                       plan leaves that open. 1: requests are run alone
    max_delay_ms       how long a request waits for others to fill a batch; while all instances are busy requests
                       gather anyway
    batching           None: where a trial shows that rows of a batch do not depend on each other, to the bit; True:
                       without that trial; False: never
    max_queue          requests that wait; more are refused (429)
    timeout_ms         how long a request may take, from its arrival to its answer, unless it says less itself
    max_request_bytes  of a request's body (413)
    drain_s            how long what runs and waits may take when the model is unloaded; what is left is refused (503)
    build              options of assay.build() for an ONNX model, such as {"precision": "bf16"}
    """

    instances: int = 1
    threads: int = 0
    max_batch: Optional[int] = None
    max_delay_ms: float = 1.0
    batching: Optional[bool] = None
    max_queue: int = 256
    timeout_ms: float = 60000.0
    max_request_bytes: int = 64 * MIB
    drain_s: float = 30.0
    build: Dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("instances", 1), ("threads", 0), ("max_delay_ms", 0), ("max_queue", 1),
                            ("max_request_bytes", KIB), ("drain_s", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= least:
                raise InvalidArgument("setting '%s' is %r; it is a number from %d on" % (name, value, least))
        for name in ("instances", "threads", "max_queue", "max_request_bytes"):
            if not isinstance(getattr(self, name), int):
                raise InvalidArgument("setting '%s' is %r; it is a whole number" % (name, getattr(self, name)))
        if not isinstance(self.timeout_ms, (int, float)) or not self.timeout_ms > 0:
            raise InvalidArgument("setting 'timeout_ms' is %r; it is a number above 0" % (self.timeout_ms,))
        if self.max_batch is not None and (not isinstance(self.max_batch, int) or self.max_batch < 1):
            raise InvalidArgument("setting 'max_batch' is %r; it is a whole number from 1 on" % (self.max_batch,))
        if self.batching not in (None, True, False):
            raise InvalidArgument("setting 'batching' is %r; it is true, false or null" % (self.batching,))
        if not isinstance(self.build, Mapping):
            raise InvalidArgument("setting 'build' is %r; it has options of assay.build()" % (self.build,))

    @classmethod
    def of(cls, given: Optional[Mapping[str, Any]]) -> "Settings":
        """From a dict, such as JSON has it. Errors: InvalidArgument names a setting that does not exist."""
        names = [f.name for f in dataclasses.fields(cls)]
        for name in given or {}:
            if name not in names:
                near = difflib.get_close_matches(name, names, 1)
                raise InvalidArgument("there is no setting '%s'%s; there are %s"
                                      % (name, "; '%s'?" % near[0] if near else "", ", ".join(names)))
        return cls(**dict(given or {}))

    @property
    def threads_each(self) -> int:
        """Threads of each run."""
        if self.threads:
            return self.threads
        return max(1, len(os.sched_getaffinity(0)) // self.instances)
