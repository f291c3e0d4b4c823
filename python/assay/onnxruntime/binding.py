"""IOBinding: inputs and outputs that lie where the caller wants them, for runs without copies."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence

import numpy as np

from .devices import OrtDevice, runs_here
from .elements import element_number, numpy_of, tensor_type
from .feeds import check_shape, value_of
from .memory import array_at
from .values import OrtValue, memory_on, place

if TYPE_CHECKING:
    from .session import Session


class OrtValueVector(list):  # type: ignore[type-arg]
    """OrtValues of a run, in the order in which outputs were bound."""


class IOBinding:
    """What a run of a session reads and writes.

    bound_inputs   values by names
    bound_outputs  values that outputs are written to; None: to memory of their own
    devices        where outputs without a value say that they lie
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.bound_inputs: dict[str, OrtValue] = {}
        self.bound_outputs: dict[str, Optional[OrtValue]] = {}
        self.devices: dict[str, str] = {}
        self.results: list[OrtValue] = []

    @property
    def _iobinding(self) -> IOBinding:
        return self

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """An input is this array, as it is when a run begins."""
        declared = self._session.declared_input(name)
        if declared is None:
            raise RuntimeError("Failed to find NodeArg with name: %s in the def list" % name)
        if not isinstance(arr_on_cpu, (np.ndarray, OrtValue)):
            raise RuntimeError("Unable to create OrtValue from the given python object")
        self.bound_inputs[name] = value_of(name, declared.type, arr_on_cpu)

    def bind_input(self, name: str, device_type: Any, device_id: int = 0, element_type: Any = None,
                   shape: Optional[Sequence[int]] = None, buffer_ptr: Optional[int] = None) -> None:
        """An input lies at an address of the host or of a GPU."""
        if isinstance(device_type, (np.ndarray, OrtValue)):
            self.bind_cpu_input(name, device_type)
            return
        if element_type is None or shape is None or buffer_ptr is None:
            raise ValueError("`element_type`, `shape` and `buffer_ptr` of input '%s' are to be given" % name)
        self.bound_inputs[name] = _at(device_type, device_id, element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """An input is this value, as it is when a run begins."""
        self.bound_inputs[name] = OrtValue(ortvalue)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Optional[Sequence[int]] = None, buffer_ptr: Optional[int] = None) -> None:
        """An output is wanted: at an address of the host or of a GPU, or (without one) in new memory there, a run each."""
        self.devices[name] = _target(device_type, device_id)
        if buffer_ptr is None:
            self.bound_outputs[name] = None
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        self.bound_outputs[name] = _at(device_type, device_id, element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """An output is written to this value's memory."""
        self.bound_outputs[name] = OrtValue(ortvalue)

    def synchronize_inputs(self) -> None:
        """What is given has been written: the caller's streams are the caller's."""

    def synchronize_outputs(self) -> None:
        """A run that has returned has ended: there is nothing to wait for."""

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self.results)

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """The same as a vector."""
        return OrtValueVector(self.results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the last run as arrays (copies), lists or maps."""
        return [np.array(value.numpy()) if value.is_tensor() else value._value for value in self.results]

    def clear_binding_inputs(self) -> None:
        """No input is bound any more."""
        self.bound_inputs.clear()

    def clear_binding_outputs(self) -> None:
        """No output is bound any more."""
        self.bound_outputs.clear()
        self.results = []

    def check_outputs(self) -> dict[str, Any]:
        """The arrays that outputs are written to. RuntimeError where one does not fit what the model declares."""
        arrays: dict[str, Any] = {}
        for name, value in self.bound_outputs.items():
            declared = self._session.declared_output(name)
            if declared is None:
                raise RuntimeError("Error in execution: Invalid output name:%s" % name)
            if value is None or not value.is_tensor():
                continue
            if value.data_type() != declared.type:
                raise RuntimeError("Error in execution: Unexpected output data type. Actual: (%s) , expected: (%s)"
                                   % (value.data_type(), declared.type))
            check_shape(declared, value.shape(), "output")
            arrays[name] = value._value
        return arrays


def _target(device_type: str, device_id: int) -> str:
    """Where an output is wanted; the host where there is no such GPU."""
    kind = OrtDevice.make(device_type, device_id).device_type()
    target = "cuda:%d" % device_id if device_id else "cuda"
    return target if kind != OrtDevice.cpu() and runs_here(target) else "cpu"


def _at(device_type: str, device_id: int, element_type: Any, shape: Sequence[int], address: int) -> OrtValue:
    number = element_number(element_type)
    dtype, target = numpy_of(number), place(device_type, device_id)
    array = array_at(address, dtype, shape) if target == "cpu" else memory_on(target, shape, dtype, int(address))
    return OrtValue.of(array, tensor_type(number))
