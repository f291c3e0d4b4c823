"""Devices, memory and threads as ONNX Runtime describes them: what scripts ask about where values are."""
from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

from .. import engine
from ..errors import AssayError
from . import wire
from .enums import OrtAllocatorType, OrtDeviceMemoryType, OrtDeviceVendorId, OrtHardwareDeviceType, OrtMemType

CPU_PROVIDER, CUDA_PROVIDER = "CPUExecutionProvider", "CUDAExecutionProvider"
TARGETS = {CPU_PROVIDER: "cpu", CUDA_PROVIDER: "cuda"}
# Providers that ONNX Runtime knows; a script may ask for any, and gets the CPU where there is none.
ALL_PROVIDERS = ("NvTensorRTRTX", "Tensorrt", "CUDA", "MIGraphX", "OpenVINO", "Dnnl", "VitisAI", "QNN", "Nnapi", "VSINPU",
                 "Js", "CoreML", "ACL", "Dml", "Rknpu", "WebNN", "WebGpu", "Xnnpack", "CANN", "Azure", "CPU")
_TYPES = {"cpu": 0, "cuda": 1, "gpu": 1, "dml": 1, "webgpu": 1, "npu": 3, "cann": 3}
_VENDORS = {"cuda": OrtDeviceVendorId.NVIDIA, "dml": OrtDeviceVendorId.MICROSOFT, "cann": OrtDeviceVendorId.HUAWEI}


def cuda_is_here() -> bool:
    """Whether engines for a GPU can be built and run on this machine."""
    return runs_here("cuda")


@functools.lru_cache(maxsize=None)
def runs_here(target: str) -> bool:
    """Whether engines for a target, such as "cuda:1", can be built and run on this machine: a small one is."""
    if target.split(":")[0] not in engine.targets():
        return False
    value = wire.bytes_field(2, wire.bytes_field(1, wire.number_field(1, 1) + wire.bytes_field(2, wire.bytes_field(
        1, wire.number_field(1, 1)))))
    node = b"".join(wire.bytes_field(n, t) for n, t in ((1, b"x"), (2, b"y"), (4, b"Relu")))
    graph = (wire.bytes_field(1, node) + wire.bytes_field(2, b"g") + wire.bytes_field(11, wire.bytes_field(1, b"x") + value)
             + wire.bytes_field(12, wire.bytes_field(1, b"y") + value))
    model = wire.number_field(1, 8) + wire.bytes_field(7, graph) + wire.bytes_field(8, wire.number_field(2, 17))
    try:
        engine.build(model, target=target).run(np.ones(1, np.float32))
    except AssayError:
        return False
    return True


def get_all_providers() -> list[str]:
    """The providers that ONNX Runtime knows by name, the first preferred."""
    return ["%sExecutionProvider" % name for name in ALL_PROVIDERS]


def get_available_providers() -> list[str]:
    """Those that sessions can use on this machine, the first preferred."""
    return [CUDA_PROVIDER, CPU_PROVIDER] if cuda_is_here() else [CPU_PROVIDER]


def get_device() -> str:
    """"GPU" where sessions can use one, else "CPU"."""
    return "GPU" if cuda_is_here() else "CPU"


class OrtDevice:
    """A kind of device, the number of one, and a kind of memory."""

    def __init__(self, *numbers: Any) -> None:
        if len(numbers) == 1 and isinstance(numbers[0], OrtDevice):
            numbers = numbers[0]._numbers
        elif len(numbers) == 3:
            numbers = (numbers[0], numbers[1], 0, numbers[2])
        if len(numbers) != 4:
            raise ValueError("an OrtDevice is of type, memory type, (vendor) and number")
        self._numbers: tuple[int, int, int, int] = (int(numbers[0]), int(numbers[1]), int(numbers[2]), int(numbers[3]))

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: Union[int, OrtDeviceVendorId] = -1) -> OrtDevice:
        """A device by the name of its kind, such as "cpu" or "cuda"."""
        if ort_device_name not in _TYPES:
            raise Exception("Unsupported device type: " + str(ort_device_name))
        vendor = _VENDORS.get(ort_device_name, 0) if vendor_id < 0 else vendor_id
        return OrtDevice(_TYPES[ort_device_name], 0, int(vendor), device_id)

    def _get_c_device(self) -> OrtDevice:
        return self

    def device_id(self) -> int:
        """The number of the device among those of its kind."""
        return self._numbers[3]

    def device_type(self) -> int:
        """0: CPU, 1: GPU, 3: NPU."""
        return self._numbers[0]

    def device_vendor_id(self) -> int:
        """The vendor's PCI number; 0: not told."""
        return self._numbers[2]

    def device_mem_type(self) -> int:
        """The kind of memory."""
        return self._numbers[1]

    mem_type, vendor_id = device_mem_type, device_vendor_id

    @staticmethod
    def cpu() -> int:
        """The type of CPUs."""
        return 0

    @staticmethod
    def cuda() -> int:
        """The type of GPUs."""
        return 1

    gpu = cuda

    @staticmethod
    def npu() -> int:
        """The type of NPUs."""
        return 3

    @staticmethod
    def default_memory() -> int:
        """The usual kind of memory."""
        return 0


@dataclass(frozen=True)
class OrtMemoryInfo:
    """Where a value is, by the name of the allocator."""

    name: str = "Cpu"
    allocator_type: OrtAllocatorType = OrtAllocatorType.ORT_ARENA_ALLOCATOR
    device_id: int = 0
    mem_type: OrtMemType = OrtMemType.DEFAULT
    device_mem_type: OrtDeviceMemoryType = OrtDeviceMemoryType.DEFAULT
    device_vendor_id: int = 0


@dataclass(frozen=True)
class OrtHardwareDevice:
    """A device of this machine."""

    type: OrtHardwareDeviceType = OrtHardwareDeviceType.CPU
    vendor_id: int = 0
    vendor: str = ""
    device_id: int = 0
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OrtEpDevice:
    """A provider and the device that it uses."""

    ep_name: str
    ep_vendor: str = "Assay"
    ep_metadata: dict[str, str] = field(default_factory=dict)
    ep_options: dict[str, str] = field(default_factory=dict)
    device: OrtHardwareDevice = field(default_factory=OrtHardwareDevice)


def get_ep_devices() -> list[OrtEpDevice]:
    """The available providers with their devices."""
    kinds = {CPU_PROVIDER: OrtHardwareDeviceType.CPU, CUDA_PROVIDER: OrtHardwareDeviceType.GPU}
    return [OrtEpDevice(name, device=OrtHardwareDevice(kinds[name])) for name in get_available_providers()]
