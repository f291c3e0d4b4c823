"""Contexts: runs of an engine, numpy arrays in and out."""
from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Union

import numpy as np

from . import _library as L
from ._calls import _idle, end_idle, in_main_thread, interruptible, wait_for
from ._library import STATUS, check, lib
from ._dlpack import device_number
from ._slots import Input, Output, Stream, numeric_array, writable_array, wrong_type
from ._taps import Tap
from ._tensors import address_of, shape_of, take, take_view, to_tensor
from .errors import AssayError, InvalidArgument, Unsupported
from .values import Outputs, in_order, place_of

if TYPE_CHECKING:
    from .engine import Engine

L.declare({
    "assay_context_create": (STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_context_destroy": (None, [c_void_p]),
    "assay_context_memory": (c_size_t, [c_void_p]),
    "assay_context_bind_input": (STATUS, [c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p, c_size_t]),
    "assay_context_set_input": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "assay_context_bind_output": (STATUS, [c_void_p, c_size_t, c_void_p, c_size_t]),
    "assay_context_bind_input_on_device": (STATUS, [c_void_p, c_size_t, c_int, c_int, c_void_p, c_uint64, c_size_t]),
    "assay_context_bind_output_on_device": (STATUS, [c_void_p, c_size_t, c_uint64, c_size_t]),
    "assay_context_stream": (STATUS, [c_void_p, POINTER(c_uint64), POINTER(c_int)]),
    "assay_context_output": (c_void_p, [c_void_p, c_size_t]),
    "assay_context_output_shape": (STATUS, [c_void_p, c_size_t, POINTER(c_int), POINTER(c_int64)]),
    "assay_context_output_copied": (c_bool, [c_void_p, c_size_t]),
    "assay_context_bind_state": (STATUS, [c_void_p, c_char_p, c_char_p, c_int64]),
    "assay_context_unbind_state": (STATUS, [c_void_p, c_char_p]),
    "assay_context_reset_states": (STATUS, [c_void_p]),
    "assay_context_state": (STATUS, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "assay_context_set_state": (STATUS, [c_void_p, c_char_p, c_void_p]),
    "assay_context_run": (STATUS, [c_void_p]),
    "assay_context_cancel": (None, [c_void_p]),
    "assay_context_times": (STATUS, [c_void_p, c_void_p]),
    "assay_context_layer_count": (c_size_t, [c_void_p]),
    "assay_context_layer": (STATUS, [c_void_p, c_size_t, c_void_p]),
})

_bind_input, _bind_output = L.brief("assay_context_bind_input"), L.brief("assay_context_bind_output")

ALLOCATIONS = ("runtime", "static", "profile")
# Runs that take less are made in the main thread: a signal waits for their end. They stay there until one takes longer by
# far, since a run that others disturb says little, and each thread has a team of OpenMP's.
QUICK_S, SLOW_S = 0.05, 0.15


class _ContextOptions(L.Options):
    _fields_ = [("struct_size", c_size_t), ("threads", c_int), ("profile", c_bool), ("tap", c_void_p),
                ("tap_user", c_void_p), ("allocation", c_int), ("allocation_profile", c_int), ("times", c_bool)]


class _LayerRun(L.Options):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("op", c_char_p), ("tactic", c_char_p),
                ("format", c_int), ("start_ns", c_int64), ("duration_ns", c_int64)]


class _Times(L.Options):
    _fields_ = [("struct_size", c_size_t), ("enqueue", c_double), ("upload", c_double), ("compute", c_double),
                ("download", c_double)]


class LayerRun(NamedTuple):
    """A layer of the last run. Times in nanoseconds; 0: it was not run, or the context takes no profile."""

    name: str
    op: str
    tactic: str
    format: str
    start_ns: int
    duration_ns: int


class RunTimes(NamedTuple):
    """The parts of the last run's time, in microseconds."""

    enqueue: float
    upload: float
    compute: float
    download: float


def _values(arrays: Any) -> List[Any]:
    """The arrays of a dict, a list, or of one array."""
    if hasattr(arrays, "keys"):
        return [arrays[name] for name in arrays.keys()]
    return list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]


class Context:
    """Runs an engine. Of one context one thread at a time makes calls; contexts of an engine run side by side.

    threads     that a run uses; 0: as many as the thread that makes the context would
    profile     take each layer's time: layers()
    tap         called after each layer with a LayerValues, in the thread that runs; what it raises ends the run
    allocation  memory is taken "runtime": when a run needs it; "static": now, for all profiles; or the number of
                a profile: now, for that one
    times       take the parts of each run's time: times()

    A context manager: at its end, or by close(), memory is freed. Arrays that runs gave stay.
    """

    def __init__(self, engine: "Engine", threads: int = 0, profile: bool = False,
                 tap: Optional[Callable[[Any], Any]] = None, allocation: Union[str, int] = "runtime",
                 times: bool = False) -> None:
        self._tap = Tap(tap, self._give_up) if tap else None
        numbered = isinstance(allocation, int)
        options = _ContextOptions(
            threads=threads, profile=profile, tap=self._tap.address if self._tap else None, times=times,
            allocation=2 if numbered else L.choice("allocation", allocation, ALLOCATIONS),
            allocation_profile=allocation if numbered else 0)
        out = c_void_p()
        check(lib.assay_context_create(engine._handle.value, byref(options), byref(out)))
        self._engine = engine._handle  # weights outlive the context
        self._handle = L.Handle(out.value, lib.assay_context_destroy)
        self._c = out.value
        self._infos = engine.inputs
        self._inputs = [Input(i) for i in engine.inputs]
        self._outputs = [Output(o, engine.inputs) for o in engine.outputs]
        self._names = tuple(o.name for o in engine.outputs)
        self._by_name = {i.info.name: i for i in self._inputs}
        self._places = list(range(len(self._inputs)))
        self._lock = threading.Lock()
        self._quick = False
        self._left = False  # a run that nobody waits for any more has the context
        self._pool: Optional[ThreadPoolExecutor] = None
        self._stream: Optional[Stream] = None  # where it is known

    # ---- life -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Frees its memory; a run that is under way is cancelled and waited for."""
        if self._pool:
            self.cancel()
            self._pool.shutdown(wait=True)
            self._pool = None
        self._handle.close()
        self._c = None
        self._inputs_dropped()

    def _inputs_dropped(self) -> None:
        for i in self._inputs:
            i.held, i.bound, i.address = None, False, 0
        for o in self._outputs:
            o.array, o.pool = None, []

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _begin(self) -> None:
        """Takes the context for a call of this thread; fails at once where another has it."""
        if not self._lock.acquire(False):
            if not self._left:
                raise InvalidArgument("the context is in a call of another thread; give each thread a context of its "
                                      "own: engine.context()")
            wait_for(self._lock)  # a run that Ctrl-C has cancelled ends with its layer
        self._left = False
        if not self._c:
            self._lock.release()
            raise InvalidArgument("the context is closed")

    @contextmanager
    def _call(self) -> Iterator[None]:
        """This thread has the context meanwhile."""
        self._begin()
        try:
            yield
        finally:
            self._lock.release()

    def _give_up(self) -> None:
        """A tap or a signal ends the run."""
        if self._c:
            lib.assay_context_cancel(self._c)

    cancel = _give_up

    def _leave(self) -> None:
        """A signal ends the wait for a run, which may take the context a moment longer."""
        self._left = True
        self._give_up()

    # ---- inputs ---------------------------------------------------------------------------------

    def _bind(self, place: int, i: Input, value: Any) -> None:
        """The next run reads an input from an array; fails where it is of another type or shape."""
        if not i.numeric:
            self._bind_tensor(place, i, value)
            return
        if type(value) is not np.ndarray:
            if device_number(value) is not None:
                self._bind_on_device(place, i, value)
                return
            value = numeric_array(i, value)
        if value.dtype != i.dtype:
            raise wrong_type(i, value)
        if not value.flags.c_contiguous:
            value = np.ascontiguousarray(value).reshape(value.shape)
        address = address_of(value)
        i.held = value
        if address == i.address and value.shape == i.shape and not i.on_device:
            return
        shape = value.shape
        i.address, i.on_device = 0, False
        check(_bind_input(self._c, place, i.elem, len(shape), (c_int64 * len(shape))(*shape), address, value.nbytes))
        if shape != i.shape:
            self._new_shapes()
        i.address, i.shape = address, shape

    def _device_stream(self) -> Stream:
        """Where the context runs on a GPU, if it does."""
        if self._stream is None:
            handle, number = c_uint64(), c_int()
            try:
                check(lib.assay_context_stream(self._c, byref(handle), byref(number)))
                self._stream = Stream(handle.value, number.value)
            except Unsupported:
                self._stream = Stream(0, None)
        return self._stream

    def _bind_on_device(self, place: int, i: Input, value: Any) -> None:
        """The next run reads an input from an array on the GPU, after what its package still does to it."""
        view = self._device_stream().view("input", i.info, i.elem, value)
        i.held = value
        if i.on_device and view.address == i.address and view.shape == i.shape:
            return
        i.address = 0
        address, nbytes = self._place_of(view, i.dtype)
        check(lib.assay_context_bind_input_on_device(self._c, place, i.elem, len(view.shape),
                                                     (c_int64 * len(view.shape))(*view.shape), address, nbytes))
        if view.shape != i.shape:
            self._new_shapes()
        i.address, i.shape, i.on_device = address, view.shape, True

    @staticmethod
    def _place_of(view: Any, dtype: Any) -> Any:
        """Address and bytes of an array on the GPU. One without elements has an address, too."""
        nbytes = dtype.itemsize
        for size in view.shape:
            nbytes *= size
        return view.address or 1, nbytes

    def _bind_tensor(self, place: int, i: Input, value: Any) -> None:
        try:
            tensor = to_tensor(value, i.info.type if i.info.kind != "tensor" else "")
        except (AssayError, TypeError, ValueError) as e:
            raise InvalidArgument("input '%s' (%s): %s" % (i.info.name, i.info.type, e)) from None
        check(lib.assay_context_set_input(self._c, place, tensor.value))
        i.held = tensor
        self._new_shapes()

    def _new_shapes(self) -> None:
        """Outputs may have other shapes from now on."""
        for o in self._outputs:
            o.shape, o.pool = None, []
        self._quick = False

    def _bind_inputs(self, inputs: Any) -> None:
        if type(inputs) is np.ndarray and len(self._inputs) == 1 and not self._inputs[0].state:
            self._inputs[0].bound = False
            self._bind(0, self._inputs[0], inputs)
            return
        if type(inputs) is dict and len(inputs) == len(self._inputs):
            try:
                for place in self._places:
                    i = self._inputs[place]
                    self._bind(place, i, inputs[i.info.name])
                return
            except KeyError:
                pass
        wanted = [(p, i) for p, i in zip(self._places, self._inputs) if not i.state]
        if hasattr(inputs, "keys"):
            wanted = [(p, i) for p, i in wanted if not i.bound or i.info.name in inputs.keys()]
        elif isinstance(inputs, (list, tuple)) and len(inputs) != len(wanted):
            wanted = [(p, i) for p, i in wanted if not i.bound]
        given = in_order(inputs, [i.info for _, i in wanted])
        for place, i in zip(self._places, self._inputs):
            if i.bound and i.on_device:
                self._bind_on_device(place, i, i.held)  # its package may have written to it since the last run
        for (place, i), value in zip(wanted, given):
            i.bound = False
            self._bind(place, i, value)

    def bind_input(self, name: Union[str, int], array: Any) -> None:
        """An input is read from this array in every run, until it is bound or given again.

        The array's memory is used as it is where it is contiguous; what is written to it between runs is read. An
        array on the context's GPU (DLPack) is read there.
        """
        with self._call():
            place = place_of(name, self._infos, "input")
            self._bind(place, self._inputs[place], array)
            self._inputs[place].bound = True

    # ---- outputs --------------------------------------------------------------------------------

    def bind_output(self, name: Union[str, int], array: Optional[Any]) -> None:
        """An output is written to this array in every run, until it is bound again; None: to new ones.

        array: contiguous, writable, of the output's type and shape; numpy's, or one on the context's GPU (DLPack)
        """
        with self._call():
            o = self._outputs[place_of(name, [o.info for o in self._outputs], "output")]
            o.array = None if array is None else writable_array(o, array)

    def _place_outputs(self, outputs: Optional[Mapping[str, Any]]) -> List[Any]:
        """Tells the library where outputs go; None: to memory of its own."""
        given: Dict[int, Any] = {}
        if outputs:
            for name, array in outputs.items():
                place = place_of(name, [o.info for o in self._outputs], "output")
                given[place] = writable_array(self._outputs[place], array)
        arrays: List[Any] = []
        for place, o in enumerate(self._outputs):
            array = given.get(place) if given else None
            if array is None:
                array = o.array
            if array is None and o.shape is not None:
                array = o.room()
            if array is not None and not isinstance(array, np.ndarray):
                self._place_on_device(place, o, array)
            else:
                self._place_on_host(place, o, array)
            arrays.append(array)
        return arrays

    def _place_on_host(self, place: int, o: Output, array: Any) -> None:
        address = address_of(array) if array is not None else 0
        nbytes = array.nbytes if array is not None else 0
        if address != o.address or nbytes != o.bytes or o.on_device:
            o.address = 0
            check(_bind_output(self._c, place, address or None, nbytes))
            o.address, o.bytes, o.on_device = address, nbytes, False

    def _place_on_device(self, place: int, o: Output, array: Any) -> None:
        """An output goes to an array on the GPU, after what its package still does to it."""
        if o.dtype is None:
            raise InvalidArgument("output '%s' (%s) cannot be written to an array" % (o.info.name, o.info.type))
        view = self._device_stream().view("output", o.info, o.info.elem, array, writable=True)
        address, nbytes = self._place_of(view, o.dtype)
        if address != o.address or nbytes != o.bytes or not o.on_device:
            o.address = 0
            check(lib.assay_context_bind_output_on_device(self._c, place, address, nbytes))
            o.address, o.bytes, o.on_device = address, nbytes, True

    def _shape(self, place: int) -> Any:
        rank, dims = c_int(), (c_int64 * 32)()
        check(lib.assay_context_output_shape(self._c, place, byref(rank), dims))
        return tuple(dims[:rank.value])

    def _collect(self, arrays: List[Any]) -> Outputs:
        for place, o in enumerate(self._outputs):
            array = arrays[place]
            if array is None:
                handle = lib.assay_context_output(self._c, place)
                if o.follows and handle:
                    o.shape = shape_of(handle)
                arrays[place] = take_view(handle)
            elif o.shape is None or array.shape != o.shape:
                shape = self._shape(place)
                if shape != tuple(array.shape):
                    raise InvalidArgument("output '%s' (%s) has the shape %s; the array for it has %s"
                                          % (o.info.name, o.info.type, list(shape), list(array.shape)))
        return Outputs(self._names, arrays)

    # ---- running --------------------------------------------------------------------------------

    def run(self, inputs: Any = None, outputs: Optional[Mapping[str, Any]] = None) -> Outputs:
        """Runs once.

        inputs   {name: array}, arrays in the engine's order, or the only one. Arrays are those of numpy, DLPack or
                 the array interface; memory that is contiguous is read where it lies. A list is a sequence, None an
                 empty optional. Inputs that are bound, or states, may be left out.
        outputs  {name: array} for outputs to be written to; others are new arrays

        Arrays on the context's GPU (of PyTorch, CuPy, JAX, or assay.device_array()) are read and written there: the run
        comes after what their packages have begun to do to them, and has ended when this returns.
        """
        self._begin()
        held = True
        try:
            self._bind_inputs({} if inputs is None else inputs)
            arrays = self._place_outputs(outputs)
            if self._quick or not in_main_thread():
                if _idle:
                    end_idle()
                before = time.perf_counter()
                try:
                    check(lib.assay_context_run(self._c))
                except AssayError as e:
                    raise self._failure(e)
                self._quick = time.perf_counter() - before < (SLOW_S if self._quick else QUICK_S)
                return self._collect(arrays)
            held = False
            return interruptible(lambda: self._run_and_leave(arrays), self._leave)
        finally:
            if held:
                self._lock.release()

    def _run_and_leave(self, arrays: List[Any]) -> Outputs:
        """A run in a worker's thread, which has the context until it ends, whoever waits for it."""
        try:
            before = time.perf_counter()
            try:
                check(lib.assay_context_run(self._c))
            except AssayError as e:
                raise self._failure(e)
            self._quick = time.perf_counter() - before < QUICK_S
            return self._collect(arrays)
        finally:
            self._lock.release()

    def _failure(self, e: AssayError) -> BaseException:
        """What a run failed with: what the tap raised, if it did."""
        raised = self._tap.take() if self._tap else None
        return raised or e

    def run_async(self, inputs: Any = None, outputs: Optional[Mapping[str, Any]] = None) -> "Future[Outputs]":
        """Starts a run in the context's own thread; the future gives its Outputs. What is given must stay as it is
        until then. Runs that are started one after the other wait for each other. Future.cancel() takes back one
        that has not begun, Context.cancel() ends one that has."""
        if not self._c:
            raise InvalidArgument("the context is closed")
        # What has begun on a GPU in this thread's stream: the run's own thread has another one.
        for array in _values(inputs) + _values(outputs):
            if device_number(array) is not None:
                self._device_stream().follow(array)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "assay-context")
        return self._pool.submit(self.run, inputs, outputs)

    # ---- states ---------------------------------------------------------------------------------

    def bind_state(self, input: str, output: str, capacity: int = 0) -> None:
        """Makes a state: what a run makes of the output, the next one reads as the input.

        capacity  elements along the dimension that grows; 0: the state does not grow
        """
        with self._call():
            check(lib.assay_context_bind_state(self._c, L.encode(input), L.encode(output), capacity))
            self._by_name[input].state = True
            self._new_shapes()

    def unbind_state(self, input: str) -> None:
        """Ends a state: its input has to be given again."""
        with self._call():
            check(lib.assay_context_unbind_state(self._c, L.encode(input)))
            self._by_name[input].state, self._by_name[input].address = False, 0

    def reset_states(self) -> None:
        """All states begin anew."""
        with self._call():
            check(lib.assay_context_reset_states(self._c))

    def state(self, input: str) -> Any:
        """What the next run reads of a state: a copy."""
        with self._call():
            out = c_void_p()
            check(lib.assay_context_state(self._c, L.encode(input), byref(out)))
            return take(out.value)

    def set_state(self, input: str, array: Any) -> None:
        """What the next run reads of a state; copied. A shorter one takes back what runs have appended."""
        with self._call():
            tensor = to_tensor(array)
            check(lib.assay_context_set_state(self._c, L.encode(input), tensor.value))

    # ---- what ran -------------------------------------------------------------------------------

    @property
    def memory(self) -> int:
        """Bytes that the context has taken so far for values between layers and for scratch."""
        with self._call():
            return int(lib.assay_context_memory(self._c))

    def layers(self) -> List[LayerRun]:
        """The layers of the last run; with times if the context was made with profile=True."""
        with self._call():
            each = []
            for i in range(lib.assay_context_layer_count(self._c)):
                run = _LayerRun()
                check(lib.assay_context_layer(self._c, i, byref(run)))
                each.append(LayerRun(L.text(run.name), L.text(run.op), L.text(run.tactic), L.format_name(run.format),
                                     run.start_ns, run.duration_ns))
            return each

    def times(self) -> RunTimes:
        """The parts of the last run's time; zeros unless the context was made with times=True."""
        with self._call():
            out = _Times()
            check(lib.assay_context_times(self._c, byref(out)))
            return RunTimes(out.enqueue, out.upload, out.compute, out.download)

    def output_copied(self, name: Union[str, int]) -> bool:
        """Whether the last run made an output elsewhere and copied it to its array."""
        with self._call():
            place = place_of(name, [o.info for o in self._outputs], "output")
            return bool(lib.assay_context_output_copied(self._c, place))
