"""A model that is served: an engine, a pool of its contexts, and requests run together where that is possible."""
from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

from .. import Cancelled, Context, Engine, InvalidArgument, NotFound, Range, build
from .. import load as load_any
from . import trial
from .batching import Batch, Pending, Queue
from .errors import Failed, Malformed, RequestError, TimedOut, Unavailable
from .metrics import Metrics
from .settings import Settings
from .signature import DEFAULT_BATCH, Signature

log = logging.getLogger("assay.serving")
FILES = ("model.plan", "model.onnx")


def find(path: Union[str, "os.PathLike[str]"]) -> str:
    """The file of a model: the path itself, or what is in the folder. Errors: assay.NotFound."""
    text = os.fspath(path)
    for candidate in [text] if not os.path.isdir(text) else [os.path.join(text, name) for name in FILES]:
        if os.path.isfile(candidate):
            return candidate
    raise NotFound("'%s' is neither a model nor a folder with %s" % (text, " or ".join(FILES)))


def _engine(path: str, settings: Settings) -> Engine:
    model = load_any(path)
    if isinstance(model, Engine):
        if settings.build:
            raise InvalidArgument("'%s' is a plan, which has been built: setting 'build' is for ONNX models" % path)
        return model
    options = dict(settings.build)
    opens = [i for i in model.inputs if any(not isinstance(d, int) for d in i.shape or ())]
    leading = all(all(isinstance(d, int) for d in (i.shape or ())[1:]) for i in opens)
    if opens and leading and not options.get("shapes") and not options.get("batch"):
        # Nothing is open but the batch: then kernels can be chosen for it now.
        most = settings.max_batch or DEFAULT_BATCH
        sizes = (1, most, max(most, DEFAULT_BATCH))  # a request may have more rows than are put together
        shapes: Any = {i.name: [(n,) + tuple(i.shape or ())[1:] for n in sizes] for i in opens}
        options["shapes"] = {name: Range(*each) for name, each in shapes.items()}
    return build(model, **options)


def _in_own_thread(work: Callable[[], None]) -> None:
    """Calls work in a thread that ends with it. OpenMP keeps helpers for each thread that has run layers, and while there
    are more of them than cores, all of them sleep at each end of a layer instead of waiting for the next: a thread that
    only loads must not leave any behind."""
    raised: List[BaseException] = []

    def call() -> None:
        try:
            work()
        except BaseException as e:
            raised.append(e)
    thread = threading.Thread(target=call, name="assay-load", daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


class ServedModel:
    """One version of a model, loaded and warmed; made by ServedModel(...), ended by close(). Threads: any.

    path      an ONNX model, a plan, or a folder with one of them as model.onnx or model.plan
    settings  a Settings, or a dict of its fields
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], name: str = "", version: str = "1",
                 settings: Union[None, Settings, Mapping[str, Any]] = None) -> None:
        self.settings = settings if isinstance(settings, Settings) else Settings.of(settings)
        self.path = find(path)
        self.name = name or os.path.splitext(os.path.basename(self.path))[0]
        self.version = version
        self._metrics = Metrics(self.name, self.version)
        self._contexts: List[Context] = []
        _in_own_thread(self._load)
        self._queue = Queue(self._limit, self.settings.max_delay_ms / 1e3, self.settings.max_queue)
        self._threads = [threading.Thread(target=self._work, args=(c,), name="assay-%s-%d" % (self.name, n), daemon=True)
                         for n, c in enumerate(self._contexts)]
        self.ready = True
        for thread in self._threads:
            thread.start()

    def _load(self) -> None:
        self.engine = _engine(self.path, self.settings)
        self.signature = Signature(self.engine, self.settings.max_batch)
        try:
            for _ in range(self.settings.instances):
                self._contexts.append(self.engine.context(threads=self.settings.threads_each))
            self.batching = trial.prepare(self._contexts, self.signature, self.settings.batching, self.name)
        except BaseException:
            self._end_contexts()
            raise

    # ---- what it is -----------------------------------------------------------------------------

    def metadata(self) -> Dict[str, Any]:
        """As the protocol has it."""
        return {"name": self.name, "versions": [self.version], "platform": "assay",
                "inputs": [t.metadata() for t in self.signature.inputs],
                "outputs": [t.metadata() for t in self.signature.outputs]}

    def _limit(self, key: Any) -> int:
        return self.signature.limit(key) if self.batching else 1

    # ---- requests -------------------------------------------------------------------------------

    def submit(self, inputs: Mapping[str, Any], timeout_s: Optional[float] = None) -> Pending:
        """Takes a request: arrays by name, which stay as they are until its future is done. The future gives the
        served outputs in the model's order. Errors: a RequestError, here or as the future's exception."""
        self._metrics.came()
        try:
            arrays = self.signature.checked(inputs)
            rows = self.signature.rows(arrays) if self.batching else 1
            seconds = min(self.settings.timeout_ms / 1e3, timeout_s if timeout_s else float("inf"))
            request = Pending(arrays, rows, self.signature.key(arrays) if self.batching else (),
                              time.monotonic() + seconds)
            self._queue.put(request)
        except RequestError as e:
            self._metrics.failed(e.reason)
            raise
        self._metrics.waiting(len(self._queue))
        return request

    async def infer(self, inputs: Mapping[str, Any], timeout_s: Optional[float] = None) -> List[Any]:
        """A request, waited for until its deadline. A caller that is cancelled takes its request along.
        Errors: RequestError."""
        request = self.submit(inputs, timeout_s)
        try:
            outputs: List[Any] = await asyncio.wait_for(asyncio.wrap_future(request.future),
                                                        max(0.0, request.deadline - time.monotonic()))
            return outputs
        except asyncio.TimeoutError:
            request.abandon()
            self._metrics.failed(TimedOut.reason)
            raise TimedOut("the answer was not there at the request's deadline") from None
        except asyncio.CancelledError:
            request.abandon()
            self._metrics.failed("cancelled")
            raise
        except RequestError as e:
            self._metrics.failed(e.reason)
            raise

    # ---- runs -----------------------------------------------------------------------------------

    def _work(self, context: Context) -> None:
        """Runs one batch after the other, until the queue is closed and empty."""
        room: Dict[Any, List[Any]] = {}
        while True:
            batch = self._queue.take()
            if batch is None:
                return
            began = time.monotonic()
            for request in batch.requests:
                self._metrics.waited(began - request.queued)
            self._metrics.waiting(len(self._queue))
            batch.run_by(context.cancel)
            try:
                self._run(context, batch, room)
            except BaseException as e:  # of ours: the requests must not wait for ever
                log.exception("a run of model '%s' failed", self.name)
                for request in batch.requests:
                    request.fail(Failed(str(e)))
            batch.ended()
            self._metrics.ran(batch.rows, time.monotonic() - began)
            del batch

    def _run(self, context: Context, batch: Batch, room: Dict[Any, List[Any]]) -> None:
        requests = batch.requests
        if len(requests) == 1:
            self._run_alone(context, requests[0])
            return
        try:
            outputs = self._outputs(context, self._together(batch, room))
        except Exception:
            # One of them may be at fault: each is run by itself, and has its own answer.
            self._each_alone(context, requests)
            return
        if any(o.ndim < 1 or o.shape[0] != batch.rows for o in outputs):
            log.warning("model '%s': an output does not have a row for each of the batch: requests are run alone from "
                        "now on", self.name)
            self.batching = False
            self._each_alone(context, requests)
            return
        at = 0
        for request in requests:
            request.answer([o[at:at + request.rows] for o in outputs])
            at += request.rows

    def _together(self, batch: Batch, room: Dict[Any, List[Any]]) -> List[Any]:
        """The inputs of a batch, one after the other in memory that the context's thread keeps for its shape."""
        key, rows = batch.requests[0].key, batch.rows
        buffers = room.get(key)
        if buffers is None or len(buffers[0]) < rows:
            if len(room) >= 4:
                room.clear()
            most = max(rows, self._limit(key))
            buffers = room[key] = [np.empty((most,) + a.shape[1:], a.dtype) for a in batch.requests[0].inputs]
        for i, buffer in enumerate(buffers):
            np.concatenate([r.inputs[i] for r in batch.requests], out=buffer[:rows])
        return [b[:rows] for b in buffers]

    def _outputs(self, context: Context, inputs: Sequence[Any]) -> List[Any]:
        outputs = context.run(list(inputs))
        return [outputs[t.place] for t in self.signature.outputs]

    def _each_alone(self, context: Context, requests: Sequence[Pending]) -> None:
        for request in requests:
            if not request.abandoned:
                self._run_alone(context, request)

    def _run_alone(self, context: Context, request: Pending) -> None:
        while True:
            try:
                request.answer(self._outputs(context, request.inputs))
            except Cancelled:
                if self.ready and not request.abandoned:
                    continue  # meant for the batch before, which had ended
                request.fail(Unavailable("the run was cancelled"))
            except InvalidArgument as e:
                request.fail(Malformed(str(e)))
            except Exception as e:
                request.fail(Failed(str(e)))
            return

    # ---- the end --------------------------------------------------------------------------------

    def close(self, drain_s: Optional[float] = None) -> None:
        """Takes no more requests, answers those that are there for so long at most, and frees the contexts. Blocks;
        may be called again."""
        self.ready = False
        end = time.monotonic() + (self.settings.drain_s if drain_s is None else drain_s)
        self._queue.close()
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        if any(t.is_alive() for t in self._threads):
            self._queue.refuse()
            for context in self._contexts:
                context.cancel()
            for thread in self._threads:
                thread.join()
        self._end_contexts()

    def _end_contexts(self) -> None:
        contexts, self._contexts = self._contexts, []
        for context in contexts:
            context.close()

    def __enter__(self) -> "ServedModel":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()
