"""Contexts for any number of threads: a run takes one that is free, or a new one."""
from __future__ import annotations

import threading
from typing import Any, Callable, Mapping, Optional

from .. import engine as engines
from ..context import Context
from ..errors import AssayError
from .errors import Fail
from .options import RunOptions
from .refusals import TERMINATED, failure


class Pool:
    """An engine's contexts.

    names  of the model's nodes, for messages
    after  called with a context when a run of it has ended well, before another thread can have it; None: nothing
    """

    def __init__(self, engine: engines.Engine, threads: int, profile: bool, names: set[str],
                 after: Optional[Callable[[Context], None]]) -> None:
        self.engine = engine
        self._threads, self._profile, self._names, self._after = threads, profile, names, after
        self._free: list[Context] = []
        self._lock = threading.Lock()

    def _take(self) -> Context:
        with self._lock:
            if self._free:
                return self._free.pop()
        context: Context = self.engine.context(threads=self._threads, profile=self._profile)
        return context

    def run(self, feeds: Mapping[str, Any], outputs: Optional[Mapping[str, Any]], options: Optional[RunOptions]) -> Any:
        """The outputs of a run, which ends early where the options' `terminate` is set meanwhile."""
        context = self._take()
        if options is not None and not options.begin(context):
            self._give(context)
            raise Fail.of(TERMINATED)
        ended = False
        try:
            result = context.run(feeds, outputs)
            ended = True
            if self._after:
                self._after(context)
        except AssayError as e:
            ended = True
            raise failure(e, self._names) from None
        finally:
            if options is not None:
                options.end(context)
            if ended:  # Ctrl-C leaves a context in its call for a while: another takes its place
                self._give(context)
        if options is not None and options.terminate:
            raise Fail.of(TERMINATED)  # it was set when the run had not quite begun, or was about to end
        return result

    def _give(self, context: Context) -> None:
        with self._lock:
            self._free.append(context)
