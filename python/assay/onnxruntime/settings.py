"""What holds for the whole process: the seed of random operators, and settings that have no effect here."""
from __future__ import annotations

import operator
from typing import Any

_state = {"seed": 0}


def set_seed(value: int) -> None:
    """The seed of random operators, of sessions that are made from now on."""
    _state["seed"] = operator.index(value)


def seed() -> int:
    """The seed that set_seed() gave; 0 before."""
    return _state["seed"] & 0xFFFFFFFFFFFFFFFF


def set_default_logger_severity(severity: int) -> None:
    """No effect: nothing is logged."""
    if not 0 <= operator.index(severity) <= 4:
        raise RuntimeError("Invalid logging severity. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal")


def set_default_logger_verbosity(level: int) -> None:
    """No effect: nothing is logged."""
    operator.index(level)


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """No effect: sessions have threads of their own."""
    operator.index(intra_op_num_threads)
    operator.index(inter_op_num_threads)


def enable_telemetry_events() -> None:
    """No effect: there is no telemetry."""


def disable_telemetry_events() -> None:
    """No effect: there is no telemetry."""


def has_collective_ops() -> bool:
    """There are none."""
    return False


def create_and_register_allocator(*arguments: Any) -> None:
    """No effect: memory is planned."""


create_and_register_allocator_v2 = create_and_register_allocator


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: Any = None) -> None:
    """No effect: what a GPU needs is loaded when it is first used."""


def register_execution_provider_library(name: str, path: str) -> None:
    """Providers of ONNX Runtime cannot be loaded."""
    raise RuntimeError("'%s' (%s): providers of ONNX Runtime cannot be loaded; 'assay check --exec' checks ONNX Runtime "
                       "with them" % (name, path))


def unregister_execution_provider_library(name: str) -> None:
    """Providers of ONNX Runtime cannot be loaded."""
    raise RuntimeError("'%s' is not registered" % name)
