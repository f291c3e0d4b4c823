"""InferenceSession: a model built for a target, run with numpy arrays, OrtValues or bindings, by any number of threads."""
from __future__ import annotations

import os
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np

from .._edit import edit
from ..device import DeviceArray
from ..errors import AssayError
from . import feeds as feeding
from .binding import IOBinding
from .devices import CPU_PROVIDER, OrtEpDevice, OrtMemoryInfo, get_ep_devices
from .elements import as_told, element_of, lies_on_gpus, numpy_of
from .errors import EPFail, Fail, InvalidArgument, OrtException
from .meta import ModelMetadata, NodeArg, assignment
from .modelfile import Value
from .options import RunOptions, SessionOptions
from .pool import Pool
from .providers import Providers
from .rewrite import Changes
from .settings import seed
from .source import Source, described
from .trace import Trace
from .values import OrtValue, memory_on

_WRONG_CALL = ("%s(): incompatible function arguments. The following argument types are supported: (output_names: "
               "Sequence[str], input_feed: Mapping[str, object], run_options: RunOptions)")


class Session:
    """What sessions do with a model."""

    def __init__(self, enable_fallback: bool = True) -> None:
        self._enable_fallback = enable_fallback
        self._pools: dict[Any, Pool] = {}
        self._lock = threading.Lock()
        self._executor: Optional[ThreadPoolExecutor] = None
        self._trace: Optional[Trace] = None
        self._sess_options: SessionOptions
        self._source: Source
        self._providers: Providers

    # ---- making ---------------------------------------------------------------------------------

    def _make(self, providers: Any, provider_options: Any) -> None:
        """Builds the engine, for the first of the providers that can be used."""
        if providers is None and self._sess_options.has_providers():
            providers = list(self._sess_options.providers)
        self._providers = Providers(providers, provider_options)
        options = self._sess_options
        self._trace = Trace(options.profile_file_prefix, self._providers.names[0]) if options.enable_profiling else None
        if self._trace:
            weakref.finalize(self, self._trace.write)  # a session that is not asked for it writes it at its end
        self._pools = {}
        pool = self._pool(Changes())
        if self._trace:
            self._trace.session("model_loading_uri" if self._source.path else "model_loading_array", 0, 0)
            self._trace.session("session_initialization", 0, self._trace.now())
        engine, source = pool.engine, self._source
        self._inputs = {v.name: source.declared(v) for v in source.file.required}
        self._overridable = {v.name: source.declared(v) for v in source.file.overridable}
        given = {v.name: source.declared(v) for v in source.file.outputs}
        values = [source.declared(v) for v in (*source.file.inputs, *source.file.outputs)]
        names = {size for v in values for size in v.shape or () if isinstance(size, str)}
        self._outputs = {o.name: described(o, given.get(o.name), names) for o in engine.outputs}
        self._declared = {**self._inputs, **self._overridable}

    def _pool(self, changes: Changes) -> Pool:
        """Contexts of an engine of the model with changes; engines are built when they are first wanted."""
        key = (changes.inputs, changes.without_shape, changes.without_names)
        with self._lock:
            if key not in self._pools:
                self._pools[key] = Pool(self._build(changes), min(max(self._sess_options.intra_op_num_threads, 0), 1024),
                                        self._trace is not None, {n.name for n in self._source.file.nodes},
                                        self._trace.run if self._trace else None)
            return self._pools[key]

    def _build(self, changes: Changes) -> Any:
        try:
            return self._source.build(self._providers.target, seed(), changes)
        except EPFail as e:
            if self._providers.target == "cpu":
                raise
            warnings.warn("Failed to create %s: %s" % (self._providers.names[0], e.detail), stacklevel=6)
            self._providers = Providers([CPU_PROVIDER])
            return self._source.build(self._providers.target, seed(), changes)

    def __getstate__(self) -> Any:
        raise TypeError("cannot pickle '%s' object" % type(self).__name__)

    # ---- what it is -----------------------------------------------------------------------------

    def get_session_options(self) -> SessionOptions:
        """The options that it was made with."""
        return self._sess_options

    def get_inputs(self) -> list[NodeArg]:
        """Inputs that a run must be given."""
        return [NodeArg.of(value) for value in self._inputs.values()]

    def get_outputs(self) -> list[NodeArg]:
        """Outputs, in the model's order."""
        return [NodeArg.of(value) for value in self._outputs.values()]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs that have an initializer; a run may give them."""
        return [NodeArg.of(value) for value in self._overridable.values()]

    def get_modelmeta(self) -> ModelMetadata:
        """Where the model comes from."""
        return ModelMetadata(self._source.file)

    _inputs_meta, _outputs_meta = property(get_inputs), property(get_outputs)  # which scripts reach for

    def declared_input(self, name: str) -> Optional[Value]:
        """An input or an initializer that can be overridden."""
        return self._declared.get(name)

    def declared_output(self, name: str) -> Optional[Value]:
        """An output, as it is told by get_outputs()."""
        return self._outputs.get(name)

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Inputs are read from the memory of the host."""
        return [OrtMemoryInfo() for _ in self._inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Outputs are written to the memory of the host."""
        return [OrtMemoryInfo() for _ in self._outputs]

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        """Inputs are read from the memory of the host."""
        return [device for device in get_ep_devices() if device.ep_name == CPU_PROVIDER] * len(self._inputs)

    def get_providers(self) -> list[str]:
        """The providers that it was made with; the CPU's is always among them."""
        return list(self._providers.names)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider."""
        return self._providers.told()

    def get_provider_graph_assignment_info(self) -> list[Any]:
        """Which provider has which nodes: the first has all."""
        return assignment(self._providers.names[0], self._source.file)

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """Builds the model anew for other providers."""
        self._make(providers, provider_options)

    def disable_fallback(self) -> None:
        """A run that fails on a device fails."""
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        """A run that fails on a device is repeated on the CPU, with a word about it."""
        self._enable_fallback = True

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """No effect."""

    def get_tuning_results(self) -> list[Any]:
        """There are none of ONNX Runtime's kind: see assay.build(timing_cache=...)."""
        return []

    def set_tuning_results(self, results: Sequence[Any], *, error_on_invalid: bool = False) -> None:
        """No effect."""

    # ---- profiling ------------------------------------------------------------------------------

    def end_profiling(self) -> str:
        """Writes the trace, if the session takes one, and gives its path; "" if it does not, or was written."""
        return self._trace.write() if self._trace else ""

    def get_profiling_start_time_ns(self) -> int:
        """When the trace began; 0: there was none."""
        return self._trace.start_ns if self._trace else 0

    # ---- running --------------------------------------------------------------------------------

    def _names(self, output_names: Optional[Sequence[str]], call: str) -> list[str]:
        """The outputs that are wanted, whether there are such or not; None and nothing mean all."""
        if isinstance(output_names, (str, bytes)):
            raise TypeError(_WRONG_CALL % call)
        names = list(output_names or self._outputs)
        if not all(isinstance(name, str) for name in names):
            raise TypeError(_WRONG_CALL % call)
        return names

    def _check_names(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._outputs:
                raise InvalidArgument.of("Invalid output name:%s" % name)
        if not names:
            raise InvalidArgument.of("At least one output should be requested.")

    def _checked(self, input_feed: Mapping[str, Any], run_options: Any, call: str) -> None:
        """Fails where required inputs are missing, or arguments are of wrong types."""
        given = list(input_feed.keys())
        missing = [v.name for v in self._inputs.values() if v.name not in given and not v.type.startswith("optional")]
        if missing:
            raise ValueError("Required inputs (%s) are missing from input feed (%s)." % (missing, given))
        if not all(isinstance(name, str) for name in given) or not isinstance(run_options, (RunOptions, type(None))):
            raise TypeError(_WRONG_CALL % call)

    def _values(self, input_feed: Mapping[str, Any]) -> dict[str, OrtValue]:
        values: dict[str, OrtValue] = {}
        for name, value in input_feed.items():
            if name not in self._declared:
                raise InvalidArgument.of("Invalid input name: %s" % name)
            values[name] = feeding.value_of(name, self._declared[name].type, value)
        return values

    def _execute(self, names: Sequence[str], values: Mapping[str, OrtValue], outputs: Optional[Mapping[str, Any]],
                 options: Optional[RunOptions]) -> Any:
        """Outputs of a run, of which these names are wanted, by an engine that takes what is given."""
        feeding.checked(self._declared, values)
        self._check_names(names)
        shapes, differ = feeding.unusual(self._declared, values)
        pool = self._pool(Changes(frozenset(n for n in values if n in self._overridable), without_shape=shapes,
                                  without_names=differ))
        given = {name: self._here(value._value) for name, value in values.items()}
        given.update({name: None for name in self._inputs if name not in given})
        try:
            return pool.run(given, outputs, options)
        except EPFail as e:
            if not self._enable_fallback or self._providers.target == "cpu":
                raise
            print("EP Error: %s using %s" % (e, self._providers.names))
            print("Falling back to %s and retrying." % self._providers.fallback)
            self.set_providers(self._providers.fallback)
            self.disable_fallback()
            return self._execute(names, values, outputs, options)

    def _here(self, value: Any) -> Any:
        """A value where the engine can read or write it: on its own GPU, or in the host's memory."""
        if isinstance(value, DeviceArray) and not self._providers.is_gpu(value.device_id):
            return value.numpy()
        return value

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
            run_options: Optional[RunOptions] = None) -> list[Any]:
        """The outputs of these names (None: all), as arrays, lists or maps. Any number of threads may call it."""
        self._checked(input_feed, run_options, "run")
        names = self._names(output_names, "run")
        out = self._execute(names, self._values(input_feed), None, run_options)
        return [as_told(out[name]) for name in names]

    def run_async(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
                  callback: Callable[[list[Any], Any, str], Any], user_data: Any,
                  run_options: Optional[RunOptions] = None) -> None:
        """run() in another thread, which then calls callback(outputs, user_data, error text or "")."""
        self._checked(input_feed, run_options, "run_async")
        if self._sess_options.intra_op_num_threads == 1:
            raise InvalidArgument.of("intra op thread pool must have at least one thread for RunAsync")
        names, values = self._names(output_names, "run_async"), self._values(input_feed)

        def work() -> None:
            results: list[Any] = []
            error = ""
            try:
                out = self._execute(names, values, None, run_options)
                results = [as_told(out[name]) for name in names]
            except Exception as e:  # whatever it is, the callback is told
                error = e.detail if isinstance(e, OrtException) else str(e)
            callback(results, user_data, error)

        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(os.cpu_count() or 1, "assay-run-async")
        self._executor.submit(work).add_done_callback(_complain)

    def run_with_ort_values(self, output_names: Optional[Sequence[str]], input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: Optional[RunOptions] = None) -> list[OrtValue]:
        """run() with OrtValues in and out."""
        self._checked(input_dict_ort_values, run_options, "run_with_ort_values")
        names = self._names(output_names, "run_with_ort_values")
        values = {name: value._get_c_value() for name, value in input_dict_ort_values.items()}
        out = self._execute(names, values, None, run_options)
        return [self._output(name, out[name]) for name in names]

    def run_with_ortvaluevector(self, run_options: Any, feed_names: Sequence[str], feeds: Sequence[OrtValue],
                                fetch_names: Sequence[str], fetches: list[OrtValue], fetch_devices: Any) -> None:
        """run_with_ort_values() whose outputs are appended to `fetches`."""
        fetches.extend(self.run_with_ort_values(fetch_names, dict(zip(feed_names, feeds)), run_options))

    def _output(self, name: str, value: Any) -> OrtValue:
        declared = self._outputs[name].type
        if isinstance(value, (np.ndarray, DeviceArray)) and declared.startswith("optional("):
            declared = declared[len("optional("):-1]
        return OrtValue.of(value, declared)

    def io_binding(self) -> IOBinding:
        """A binding of inputs and outputs, for run_with_iobinding()."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        """Runs with what is bound: inputs are read and outputs written where they lie."""
        if iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        try:
            if not iobinding.bound_outputs:
                raise Fail.of("At least one output should be requested.")
            for name, value in self._inputs.items():
                if name not in iobinding.bound_inputs and not value.type.startswith("optional"):
                    raise Fail.of("Missing Input: %s" % name)
            arrays = {**self._rooms(iobinding), **iobinding.check_outputs()}
            here = {name: array for name, array in arrays.items() if self._here(array) is array}
            out = self._execute(list(iobinding.bound_outputs), iobinding.bound_inputs, here, run_options)
        except OrtException as e:
            raise RuntimeError("Error in execution: " + e.detail) from None
        iobinding.results = []
        for name, bound in iobinding.bound_outputs.items():
            if bound is not None and name in arrays:
                if name not in here:
                    bound.update_inplace(out[name])
                iobinding.results.append(bound)
            else:
                iobinding.results.append(self._output(name, out[name]).on(iobinding.devices.get(name, "cpu")))

    def _rooms(self, iobinding: IOBinding) -> dict[str, Any]:
        """Memory on the engine's GPU for outputs that are wanted there, where sizes of inputs say how much."""
        sizes = feeding.sizes(self._declared, iobinding.bound_inputs)
        rooms: dict[str, Any] = {}
        for name, bound in iobinding.bound_outputs.items():
            target, declared = iobinding.devices.get(name, "cpu"), self._outputs.get(name)
            if bound is not None or target == "cpu" or target != self._providers.target or declared is None:
                continue
            shape = [sizes.get(d, -1) if isinstance(d, str) else -1 if d is None else d for d in declared.shape or [-1]]
            if declared.type.startswith("tensor(") and lies_on_gpus(element_of(declared.type)) and min(shape, default=0) >= 0:
                rooms[name] = memory_on(target, shape, numpy_of(element_of(declared.type)))
        return rooms

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], element_type: Any, device_type: str,
                                            device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        """OrtValue.ortvalue_from_shape_and_type(): memory belongs to no session."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """No effect: nothing is captured."""


class InferenceSession(Session):
    """A model, ready to run."""

    def __init__(self, path_or_bytes: Union[str, bytes, os.PathLike[str]], sess_options: Optional[SessionOptions] = None,
                 providers: Any = None, provider_options: Any = None, **kwargs: Any) -> None:
        """
        path_or_bytes     an ONNX file, its bytes, or a plan file
        sess_options      SessionOptions
        providers         names, or (name, options): the first that is available is used
        provider_options  options for each of the names
        enable_fallback   0: what is wrong with the providers is an error
        """
        super().__init__(int(kwargs.get("enable_fallback", 1)) == 1)
        if isinstance(path_or_bytes, (str, os.PathLike)):
            path_or_bytes = os.fspath(path_or_bytes)
        elif not isinstance(path_or_bytes, bytes):
            raise TypeError("Unable to load from type '%s'" % type(path_or_bytes))
        if not isinstance(sess_options, (SessionOptions, type(None))):
            raise TypeError("__init__(): incompatible constructor arguments: sess_options is a SessionOptions, not %r"
                            % (sess_options,))
        self._sess_options = sess_options or SessionOptions()
        self._source = Source(path_or_bytes, self._sess_options)
        try:
            self._make(providers, provider_options)
        except (ValueError, RuntimeError) as e:
            if not self._enable_fallback:
                raise
            print("*************** EP Error ***************")
            print("EP Error %s when using %s" % (e, providers))
            print("Falling back to %s and retrying." % [CPU_PROVIDER])
            print("****************************************")
            self._make([CPU_PROVIDER], None)
            self.disable_fallback()
        self._write_optimized()

    def _write_optimized(self) -> None:
        path = self._sess_options.optimized_model_filepath
        if path and not self._source.engine:
            try:
                edit(self._source.load(Changes()), "sanitize", proof=False, progress=False).write_model(path)
            except AssayError as e:
                raise Fail.of("the optimized model cannot be written to %s: %s" % (path, e)) from None


def _complain(future: Any) -> None:
    """What a callback raises is told, as it is of other threads."""
    error = future.exception()
    if error is not None:
        threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread())))
