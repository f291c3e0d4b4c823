"""SessionOptions and RunOptions: what ONNX Runtime's have, checked as there, and what of it has a meaning here.

docs/coming-from-onnxruntime.md says of each what it does.
"""
from __future__ import annotations

import operator
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Generic, Mapping, Optional, Sequence, TypeVar

from . import customops
from .enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel

if TYPE_CHECKING:
    from .values import OrtValue

_T = TypeVar("_T")


def _int(value: Any) -> int:
    return operator.index(value) if not isinstance(value, (str, bytes, float)) else _refuse("an int", value)


def _bool(value: Any) -> bool:
    return bool(value)


def _text(value: Any) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return value if isinstance(value, str) else _refuse("a str", value)


def _refuse(wanted: str, value: Any) -> Any:
    raise TypeError("incompatible function arguments: %r is not %s" % (value, wanted))


def _member(kind: type[_T]) -> Callable[[Any], _T]:
    return lambda value: value if isinstance(value, kind) else _refuse("a member of %s" % kind.__name__, value)


class _Option(Generic[_T]):
    """An attribute with a default whose values are checked when they are set."""

    def __init__(self, default: _T, convert: Callable[[Any], _T], doc: str) -> None:
        self.default, self.convert, self.__doc__ = default, convert, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Optional[type] = None) -> Any:
        return self if instance is None else instance._values.get(self.name, self.default)

    def __set__(self, instance: Any, value: Any) -> None:
        instance._values[self.name] = self.convert(value)


class _Options:
    """Attributes that are declared, and entries of texts."""

    __slots__ = ("_values", "_entries", "__weakref__")
    _what = ""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._entries: dict[str, str] = {}

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle '%s' object" % type(self).__name__)

    def _add_entry(self, key: str, value: str) -> None:
        self._entries[_text(key)] = _text(value)

    def _get_entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError("%s does not have configuration with key: %s" % (self._what, key))
        return self._entries[key]


class SessionOptions(_Options):
    """How a session is made."""

    __slots__ = ("initializers", "external_files", "free_by_name", "free_by_denotation", "providers", "custom_ops")
    _what = "SessionOptions"

    intra_op_num_threads = _Option(0, _int, "Threads of a run; 0: as many as the machine has cores.")
    inter_op_num_threads = _Option(0, _int, "No effect: layers run in order.")
    graph_optimization_level = _Option(GraphOptimizationLevel.ORT_ENABLE_ALL, _member(GraphOptimizationLevel),
                                       "ORT_DISABLE_ALL: nothing is fused. The other levels are one.")
    execution_mode = _Option(ExecutionMode.ORT_SEQUENTIAL, _member(ExecutionMode), "No effect: layers run in order.")
    execution_order = _Option(ExecutionOrder.DEFAULT, _member(ExecutionOrder), "No effect.")
    enable_profiling = _Option(False, _bool, "Take each layer's time; end_profiling() writes a trace.")
    profile_file_prefix = _Option("onnxruntime_profile_", _text, "What the name of the trace begins with.")
    optimized_model_filepath = _Option("", _text, "Where the cleaned model is written, as ONNX.")
    enable_cpu_mem_arena = _Option(True, _bool, "No effect: memory is planned.")
    enable_mem_pattern = _Option(True, _bool, "No effect: memory is planned.")
    enable_mem_reuse = _Option(True, _bool, "No effect: memory is planned.")
    log_severity_level = _Option(-1, _int, "No effect: nothing is logged.")
    log_verbosity_level = _Option(0, _int, "No effect: nothing is logged.")
    logid = _Option("", _text, "No effect: nothing is logged.")
    use_deterministic_compute = _Option(False, _bool, "No effect: results are deterministic.")
    use_per_session_threads = _Option(True, _bool, "No effect.")

    def __init__(self) -> None:
        super().__init__()
        self.initializers: dict[str, OrtValue] = {}
        self.external_files: dict[str, bytes] = {}
        self.free_by_name: dict[str, int] = {}
        self.free_by_denotation: dict[str, int] = {}
        self.providers: list[tuple[str, dict[str, str]]] = []
        self.custom_ops: list[str] = []

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an entry; docs/coming-from-onnxruntime.md has those that mean something here."""
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """An entry; RuntimeError if there is none."""
        return self._get_entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Dimensions that inputs call by this name have this size."""
        self.free_by_name[_text(name)] = _int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Open dimensions of inputs that have this denotation have this size."""
        self.free_by_denotation[_text(denotation)] = _int(size)

    def add_initializer(self, name: str, value: Any) -> None:
        """The initializer of this name has this value (an OrtValue) instead of the model's."""
        from .values import OrtValue
        if not isinstance(value, OrtValue):
            raise RuntimeError("The provided Python object must be an OrtValue")
        self.initializers[_text(name)] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """add_initializer for several."""
        if len(names) != len(values):
            raise RuntimeError("Expecting names and values to have equal length")
        for name, value in zip(names, values):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(self, names: Sequence[str], buffers: Sequence[Any],
                                                       lengths: Sequence[int]) -> None:
        """Files of external data, by the names that the model calls them, are these bytes."""
        if not len(names) == len(buffers) == len(lengths):
            raise RuntimeError("Expecting names, buffers and lengths to have equal length")
        for name, buffer, length in zip(names, buffers, lengths):
            self.external_files[_text(name)] = bytes(memoryview(buffer).cast("B")[:length])

    def register_custom_ops_library(self, path: str) -> None:
        """Loads operators of your own: a library for Assay (docs/custom-operators.md), not one for ONNX Runtime."""
        customops.load(_text(path))
        self.custom_ops.append(path)

    def has_providers(self) -> bool:
        """Whether add_provider() was called."""
        return bool(self.providers)

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """A provider that a session uses if none are given to it."""
        self.providers.append((_text(name), {str(k): str(v) for k, v in options.items()}))

    def add_provider_for_devices(self, devices: Sequence[Any], options: Mapping[str, str]) -> None:
        """The provider of these devices (get_ep_devices())."""
        for name in dict.fromkeys(device.ep_name for device in devices):
            self.add_provider(name, options)

    def set_provider_selection_policy(self, policy: Any) -> None:
        """No effect: without providers a session takes the first that is available."""

    def set_load_cancellation_flag(self, cancel: bool) -> None:
        """No effect: making a session cannot be canceled from elsewhere, but Ctrl-C ends it."""


class RunOptions(_Options):
    """How a run is made."""

    __slots__ = ("_running", "_lock", "_terminate", "adapters")
    _what = "RunOptions"

    log_severity_level = _Option(-1, _int, "No effect: nothing is logged.")
    log_verbosity_level = _Option(0, _int, "No effect: nothing is logged.")
    logid = _Option("", _text, "No effect: nothing is logged.")
    only_execute_path_to_fetches = _Option(False, _bool, "No effect: a plan runs as a whole.")

    def __init__(self) -> None:
        super().__init__()
        self._running: set[Any] = set()
        self._lock = threading.Lock()
        self._terminate = False

    @property
    def terminate(self) -> bool:
        """True ends the runs that go on with these options, in whatever threads, before their next layer."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        with self._lock:
            self._terminate = bool(value)
            if self._terminate:
                for context in self._running:
                    context.cancel()

    def begin(self, context: Any) -> bool:
        """A context begins a run with these options; False: it must not."""
        with self._lock:
            if not self._terminate:
                self._running.add(context)
            return not self._terminate

    def end(self, context: Any) -> None:
        """The run of a context has ended."""
        with self._lock:
            self._running.discard(context)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an entry; none has an effect."""
        self._add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """An entry; RuntimeError if there is none."""
        return self._get_entry(key)

    def add_active_adapter(self, adapter: Any) -> None:
        """LoRA adapters are files of ONNX Runtime's own."""
        raise RuntimeError("adapters of ONNX Runtime cannot be read: give their matrices as inputs of the model")
