"""The enumerations of ONNX Runtime's API, with its numbers."""
from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any


class _Numbered(Enum):
    """Members that are not numbers, but convert to them and equal them; they have no order."""

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, _Numbered):
            return self is other
        return self.value == other if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return "%s.%s" % (type(self).__name__, self.name)


class GraphOptimizationLevel(_Numbered):
    """How far a graph is rewritten: nothing (all layers one by one), or all that does not change the numbers' bound."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Numbered):
    """Layers run in order in either mode."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Numbered):
    """The order is the plan's with each of them."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtSparseFormat(_Numbered):
    """How a SparseTensor stores its indices."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class OrtAllocatorType(_Numbered):
    """Kinds of allocators; Assay plans memory, and has one."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(_Numbered):
    """What memory is for."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(_Numbered):
    """Whose memory it is."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtHardwareDeviceType(_Numbered):
    """Kinds of devices."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtDeviceVendorId(IntEnum):
    """PCI numbers of vendors."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086
