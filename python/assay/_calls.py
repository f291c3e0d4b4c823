"""Long calls of the library that Ctrl-C ends, and reports of how far they are.

The library knows nothing of signals, and Python runs their handlers in the main thread, between its own
instructions. So a long call from the main thread is made in another thread, while the main thread waits where
signals reach it. A signal handler that raises ends the call: it is cancelled, what it held is freed in its own
thread, and the exception goes on. Calls from other threads are made where they are.
"""
from __future__ import annotations

import atexit
import ctypes
import os
import queue
import sys
import threading
from typing import Any, Callable, List, Optional, TypeVar, Union

from . import _library as L
from .errors import AssayError

L.declare({
    "assay_cancel_create": (L.STATUS, [ctypes.POINTER(ctypes.c_void_p)]),
    "assay_cancel_destroy": (None, [ctypes.c_void_p]),
    "assay_cancel_request": (None, [ctypes.c_void_p]),
    "assay_cancel_watch": (ctypes.c_void_p, [ctypes.c_void_p]),
})

T = TypeVar("T")
Progress = Union[None, bool, Callable[[str, float], Any]]

# How long a cancelled call is waited for. One that is in a long kernel ends in its own thread, later.
PATIENCE_S = 0.05
# A signal that comes just before the main thread falls asleep does not wake it: it looks again after so long.
GLANCE_S = 0.03


class Job:
    """A call in a thread of a worker."""

    __slots__ = ("work", "result", "error", "done")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work: Optional[Callable[[], Any]] = work
        self.result: Any = None
        self.error: Optional[BaseException] = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        work, self.work = self.work, None
        try:
            assert work is not None
            self.result = work()
        except BaseException as e:  # it is raised where the call was made
            self.error = e
        finally:
            del work
            self.done.release()


class Worker:
    """A thread that makes one call after the other."""

    def __init__(self) -> None:
        self.jobs: "queue.SimpleQueue[Optional[Job]]" = queue.SimpleQueue()  # None: no more
        self.job: Optional[Job] = None
        self.thread = threading.Thread(target=self._loop, name="assay", daemon=True)
        self.thread.start()

    def _loop(self) -> None:
        while True:
            job = self.jobs.get()
            if job is None:
                return
            self.job = job
            job.run()
            self.job = None
            _idle.append(self)
            del job


_idle: List[Worker] = []
_workers: List[Worker] = []
_main = threading.main_thread().ident


def _forget() -> None:
    """In the child of a fork there are no workers."""
    global _main
    _main = threading.get_ident()
    _idle.clear()
    _workers.clear()


os.register_at_fork(after_in_child=_forget)


@atexit.register
def _finish() -> None:
    """A cancelled call that goes on in a worker must not outlive the library."""
    for worker in list(_workers):
        job = worker.job
        if job and job.done.acquire(timeout=60):
            job.done.release()


def end_idle() -> None:
    """Ends the threads of workers that have nothing to do.

    Each thread that has called the library keeps a team of OpenMP's threads. While all teams together are more than
    there are CPUs, libgomp's threads fall asleep where they wait for each other, which costs a run of many short layers
    a third of its time and more: quick runs are made in one thread, and the one that made the first run is in the way.
    """
    while _idle:
        try:
            worker = _idle.pop()
        except IndexError:  # another thread was faster
            return
        if worker in _workers:
            _workers.remove(worker)
        worker.jobs.put(None)


def in_main_thread() -> bool:
    """Whether signals reach this thread."""
    return threading.get_ident() == _main


def start(work: Callable[[], Any]) -> Job:
    """Begins a call in a worker's thread."""
    job = Job(work)
    try:
        worker = _idle.pop()
    except IndexError:
        worker = Worker()
        _workers.append(worker)
    worker.jobs.put(job)
    return job


def wait_for(lock: threading.Lock) -> None:
    """Takes a lock; signal handlers run, and may raise, meanwhile."""
    while not lock.acquire(timeout=GLANCE_S):
        pass


def interruptible(work: Callable[[], T], cancel: Callable[[], None]) -> T:
    """work(), which a signal handler that raises ends: then cancel() is called, from this thread."""
    if not in_main_thread():
        return work()
    job = start(work)
    try:
        wait_for(job.done)
    except BaseException:
        cancel()
        job.done.acquire(timeout=PATIENCE_S)
        raise
    if job.error is not None:
        try:
            raise job.error
        finally:
            job.error = None
    result: T = job.result
    return result


class Bar:
    """A line on a terminal that shows how far a call is."""

    WIDTH = 24

    def __init__(self, stream: Any) -> None:
        self.stream, self.shown = stream, ""

    def __call__(self, what: str, fraction: float) -> None:
        full = int(max(0.0, min(1.0, fraction)) * self.WIDTH)
        line = "%3d%%|%s%s| %s" % (100 * fraction, "#" * full, " " * (self.WIDTH - full), what)
        if line != self.shown:
            self.stream.write("\r" + line[:100].ljust(len(self.shown)))
            self.stream.flush()
            self.shown = line[:100]

    def close(self) -> None:
        if self.shown:
            self.stream.write("\r" + " " * len(self.shown) + "\r")
            self.stream.flush()
            self.shown = ""


class Reports:
    """Reports of progress as the library calls for them: `address` is for its structs, which need this object alive.

    What the caller's function raises ends the call, and goes on where it was made.
    """

    def __init__(self, progress: Progress) -> None:
        self._function = reporter(progress)
        self.raised: Optional[BaseException] = None
        self.cancel: Callable[[], None] = lambda: None
        self._callback = L.PROGRESS_FN(self._call)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p) if self._function else None

    def _call(self, user: Any, what: bytes, fraction: float) -> None:
        if self.raised:
            return
        try:
            self._function(L.text(what), fraction)
        except BaseException as e:  # it goes on where the call was made
            self.raised = e
            self.cancel()

    def close(self) -> None:
        if isinstance(self._function, Bar):
            self._function.close()


def long_call(work: Callable[[], T], reports: Optional[Reports] = None) -> T:
    """work(), whose calls of the library Ctrl-C and what a progress function raises end."""
    out = ctypes.c_void_p()
    L.check(L.lib.assay_cancel_create(ctypes.byref(out)))
    token = L.Handle(out.value, L.lib.assay_cancel_destroy)

    def watched() -> T:
        before = L.lib.assay_cancel_watch(token.value)
        try:
            return work()
        finally:
            L.lib.assay_cancel_watch(before)

    def cancel() -> None:
        L.lib.assay_cancel_request(token.value)

    if reports:
        reports.cancel = cancel
    try:
        result = interruptible(watched, cancel)
    except AssayError:
        if reports and reports.raised:
            raise reports.raised from None
        raise
    finally:
        if reports:
            reports.close()
    if reports and reports.raised:
        raise reports.raised
    return result


def reporter(progress: Progress) -> Any:
    """What is told of progress: the caller's function, a bar on a terminal (None: only on one), or nothing."""
    if callable(progress):
        return progress
    if progress is False:
        return None
    stream = sys.stderr
    if progress or (stream is not None and stream.isatty()):
        return Bar(stream)
    return None
