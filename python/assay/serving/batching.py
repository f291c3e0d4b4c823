"""Requests that wait, and which of them run together."""
from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from typing import Any, Callable, Deque, Dict, Hashable, List, Optional, Sequence

from .errors import Overloaded, TimedOut, Unavailable

Clock = Callable[[], float]


class Pending:
    """A request on its way: its inputs, in the engine's order, and the future that gets its outputs.

    rows      of the batch that it takes; 1 where requests are run alone
    key       requests of one key may share a batch: all of their other sizes are the same
    deadline  of the clock, in seconds
    """

    __slots__ = ("inputs", "rows", "key", "deadline", "future", "queued", "abandoned", "batch")

    def __init__(self, inputs: Sequence[Any], rows: int, key: Hashable, deadline: float) -> None:
        self.inputs, self.rows, self.key, self.deadline = inputs, rows, key, deadline
        self.future: "Future[List[Any]]" = Future()
        self.queued = 0.0
        self.abandoned = False
        self.batch: Optional[Batch] = None  # that runs it

    def abandon(self) -> None:
        """Nobody waits for the answer any more: it is not run, and a run that has no other request ends."""
        self.abandoned = True
        batch = self.batch
        if batch is not None:
            batch.left()

    def answer(self, outputs: List[Any]) -> None:
        try:
            self.future.set_result(outputs)
        except InvalidStateError:  # cancelled meanwhile
            pass

    def fail(self, error: BaseException) -> None:
        try:
            self.future.set_exception(error)
        except InvalidStateError:
            pass


class Batch:
    """Requests that run together. cancel: ends the run, from any thread; None before it begins."""

    def __init__(self, requests: List[Pending]) -> None:
        self.requests = requests
        self.rows = sum(r.rows for r in requests)
        self.cancel: Optional[Callable[[], None]] = None
        for r in requests:
            r.batch = self

    def left(self) -> None:
        """A request was abandoned."""
        cancel = self.cancel
        if cancel is not None and all(r.abandoned for r in self.requests):
            cancel()

    def run_by(self, cancel: Callable[[], None]) -> None:
        """The run begins; it ends at once where all have gone already."""
        self.cancel = cancel
        self.left()

    def ended(self) -> None:
        self.cancel = None
        for r in self.requests:
            r.batch = None


class Queue:
    """Requests in the order in which they came, by key. Threads: any.

    limit(key)  rows that requests of a key may take together
    delay       seconds that a request waits for others, unless the batch is full before
    capacity    requests that wait at most
    """

    def __init__(self, limit: Callable[[Hashable], int], delay: float, capacity: int,
                 clock: Clock = time.monotonic) -> None:
        self._limit, self._delay, self._capacity, self._clock = limit, delay, capacity, clock
        self._groups: Dict[Hashable, Deque[Pending]] = {}
        self._rows: Dict[Hashable, int] = {}
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return self._count

    def put(self, request: Pending) -> None:
        """Errors: Overloaded, Unavailable."""
        with self._changed:
            if self._closed:
                raise Unavailable("the model is being unloaded")
            if self._count >= self._capacity:
                self._drop_dead()
            if self._count >= self._capacity:
                raise Overloaded("%d requests wait already" % self._count)
            request.queued = self._clock()
            self._groups.setdefault(request.key, deque()).append(request)
            self._rows[request.key] = self._rows.get(request.key, 0) + request.rows
            self._count += 1
            self._changed.notify()

    def take(self) -> Optional[Batch]:
        """The next batch, as soon as one is full or has waited long enough. None: the queue is closed and empty."""
        with self._changed:
            while True:
                key = self._due()
                if key is not None:
                    requests = self._pop(key)
                    if requests:
                        if self._count:
                            self._changed.notify()  # there may be work for another thread
                        return Batch(requests)
                    continue
                if self._closed and not self._count:
                    self._changed.notify_all()
                    return None
                self._changed.wait(self._patience())

    def close(self) -> None:
        """Nothing more comes in; what waits goes out without delay."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def refuse(self) -> None:
        """Ends what still waits."""
        with self._changed:
            for group in list(self._groups.values()):
                for request in group:
                    request.fail(Unavailable("the model was unloaded before the request was run"))
            self._groups.clear()
            self._rows.clear()
            self._count = 0
            self._changed.notify_all()

    def _due(self) -> Optional[Hashable]:
        """The key of the batch that is to run now: of those that are, the one with the oldest request."""
        now, best, oldest = self._clock(), None, 0.0
        for key, group in self._groups.items():
            queued = group[0].queued
            if self._closed or self._rows[key] >= self._limit(key) or now >= queued + self._delay:
                if best is None or queued < oldest:
                    best, oldest = key, queued
        return best

    def _patience(self) -> Optional[float]:
        """Seconds until a request will have waited long enough; None: there is none."""
        if not self._groups:
            return None
        return max(0.0, min(g[0].queued for g in self._groups.values()) + self._delay - self._clock())

    def _pop(self, key: Hashable) -> List[Pending]:
        """The first requests of a key, as many as may run together; those that nobody waits for are dropped."""
        group, limit, rows = self._groups[key], self._limit(key), 0
        requests: List[Pending] = []
        while group and (not requests or rows + group[0].rows <= limit):
            request = group.popleft()
            self._forget(request)
            if not self._dead(request):
                requests.append(request)
                rows += request.rows
        if not group:
            del self._groups[key], self._rows[key]
        return requests

    def _forget(self, request: Pending) -> None:
        self._rows[request.key] -= request.rows
        self._count -= 1

    def _dead(self, request: Pending) -> bool:
        """Whether it was abandoned, or has waited too long, which it is told."""
        if request.abandoned or request.future.cancelled():
            return True
        if self._clock() < request.deadline:
            return False
        request.fail(TimedOut("the request's time was over before it could be run"))
        return True

    def _drop_dead(self) -> None:
        """Takes away what nobody waits for any more."""
        for key, group in list(self._groups.items()):
            alive: Deque[Pending] = deque()
            for request in group:
                if self._dead(request):
                    self._forget(request)
                else:
                    alive.append(request)
            if alive:
                self._groups[key] = alive
            else:
                del self._groups[key], self._rows[key]
