"""OrtValue: a value with its type, in memory of the host or of a GPU that numpy, DLPack and sessions share."""
from __future__ import annotations

import warnings
from typing import Any, Optional, Sequence

import numpy as np

from .._dlpack import CUDA, View, device_number, on_stream
from .._types import dtype_of
from ..device import DeviceArray
from ..errors import AssayError
from .devices import OrtDevice, runs_here
from .elements import STRING, as_told, element_number, element_of, lies_on_gpus, number_of, numpy_of, tensor_type
from .memory import array_of_dlpack
from .sparse import SparseTensor

ONLY_NUMBERS = "Creation of OrtValues is currently only supported from non-string numpy arrays"
LEGACY_STREAM = 1  # as DLPack has it: the default one
NO_DEVICE = ("Can't allocate memory on the device using this package of OnnxRuntime. Please use the appropriate package of "
             "OnnxRuntime for your hardware to use this feature.")


def place(device_type: str, device_id: int, vendor_id: int = -1) -> str:
    """"cpu", or the target of a GPU that is here, such as "cuda:1"; RuntimeError for what is not."""
    kind = OrtDevice.make(device_type, device_id, vendor_id).device_type()
    if kind == OrtDevice.cpu():
        return "cpu"
    target = "cuda:%d" % device_id if device_id else "cuda"
    if kind != OrtDevice.cuda() or not runs_here(target):
        raise RuntimeError(NO_DEVICE)
    return target


def memory_on(target: str, shape: Sequence[int], dtype: Any, address: Optional[int] = None) -> DeviceArray:
    """An array on a GPU: new, or at an address that is the caller's. RuntimeError where there cannot be one."""
    try:
        return DeviceArray(shape, dtype, target, address)
    except AssayError as e:
        raise RuntimeError(str(e)) from None


def copied_to(target: str, array: Any) -> DeviceArray:
    """A copy of an array of the host on a GPU."""
    there = memory_on(target, array.shape, array.dtype)
    there.write(array)
    return there


class OrtValue:
    """A tensor, a sequence, a map, an optional value or a sparse tensor.

    Tensors of numpy arrays share their memory. A tensor of a type that numpy lacks is held in its bits. One on a GPU is a
    DeviceArray.
    """

    _value: Any
    _type: str

    def __init__(self, ortvalue: Any, numpy_obj: Any = None, session: Any = None) -> None:
        if not isinstance(ortvalue, OrtValue):
            raise ValueError("`Provided ortvalue` needs to be of type "
                             "`onnxruntime.capi.onnxruntime_pybind11_state.OrtValue`")
        self._value, self._type = ortvalue._value, ortvalue._type

    @classmethod
    def of(cls, value: Any, type_text: str) -> OrtValue:
        """A value of a type, such as "tensor(float)"."""
        made = cls.__new__(cls)
        made._value, made._type = value, type_text
        return made

    def on(self, device: str) -> OrtValue:
        """The tensor on a GPU, "cuda:1", or in the host's memory; the value itself where it is there already."""
        if device == "cpu" or not isinstance(self._value, np.ndarray) or not lies_on_gpus(self.element_type()):
            return self
        return OrtValue.of(copied_to(device, self._value), self._type)

    @property
    def _ortvalue(self) -> OrtValue:
        return self

    def _get_c_value(self) -> OrtValue:
        return self

    # ---- making ---------------------------------------------------------------------------------

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: Any, /, device_type: Any = "cpu", device_id: int = 0,
                            vendor_id: int = -1) -> OrtValue:
        """A tensor on an array; for the CPU only one that is not contiguous is copied."""
        if isinstance(device_type, OrtDevice):
            device_id = device_type.device_id()
            device_type = "cpu" if device_type.device_type() == OrtDevice.cpu() else "gpu"
        device = place(device_type, device_id, vendor_id)
        if not isinstance(numpy_obj, np.ndarray) or numpy_obj.dtype.kind in "OUST":
            raise RuntimeError(ONLY_NUMBERS)
        number = number_of(numpy_obj.dtype)
        array = np.asarray(numpy_obj, numpy_of(number), order="C")
        return cls.of(array if device == "cpu" else copied_to(device, array), tensor_type(number))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Any, /, onnx_element_type: int) -> OrtValue:
        """A tensor on an array whose bits are elements of another type, such as bfloat16 in uint16."""
        number = element_number(int(onnx_element_type))
        dtype = numpy_of(number)
        if dtype.itemsize != data.dtype.itemsize:
            raise RuntimeError("Items size in the incoming array: %d specified by onnxtype: %d"
                               % (data.dtype.itemsize, dtype.itemsize))
        return cls.of(np.asarray(data, order="C").view(dtype), tensor_type(number))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                     device_id: int = 0, vendor_id: int = -1, memory_info: Any = None) -> OrtValue:
        """A tensor with memory of its own. element_type: a numpy type, or ONNX's number of one."""
        device = "cpu"
        if memory_info is None:
            device = place(device_type, device_id, vendor_id)
        elif (device_type, device_id, vendor_id) != ("cpu", 0, -1):
            warnings.warn("device_type, device_id, and vendor_id are ignored when memory_info is provided.", stacklevel=2)
        number = element_number(element_type)
        if number == STRING:
            raise RuntimeError(ONLY_NUMBERS)
        sizes = [int(size) for size in shape]
        array = np.zeros(sizes, numpy_of(number)) if device == "cpu" else memory_on(device, sizes, numpy_of(number))
        return cls.of(array, tensor_type(number))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """A tensor on an array that has __dlpack__, or on a DLPack capsule."""
        try:
            on_gpu = _on_gpu(data)
        except AssayError as e:
            raise RuntimeError(str(e)) from None
        array = array_of_dlpack(data) if on_gpu is None else on_gpu
        return cls.of(array, tensor_type(number_of(array.dtype)))

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor) -> OrtValue:
        """A value that is a SparseTensor."""
        return cls.of(sparse_tensor, sparse_tensor.data_type())

    # ---- what it is -----------------------------------------------------------------------------

    def is_tensor(self) -> bool:
        """Whether it is a dense tensor."""
        return isinstance(self._value, (np.ndarray, DeviceArray))

    def is_sparse_tensor(self) -> bool:
        """Whether it is a SparseTensor."""
        return isinstance(self._value, SparseTensor)

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence of tensors."""
        return isinstance(self._value, list) and not self._type.startswith("seq(map")

    def has_value(self) -> bool:
        """False of an optional value that is empty."""
        return self._value is not None

    def data_type(self) -> str:
        """Such as "tensor(int64)"."""
        return self._type

    def element_type(self) -> int:
        """ONNX's number of the type of its elements."""
        return element_of(self._type)

    def device_name(self) -> str:
        """"cpu", or "cuda" of a tensor on a GPU."""
        return "cuda" if isinstance(self._value, DeviceArray) else "cpu"

    def shape(self) -> list[int]:
        """The sizes of a tensor."""
        if self.is_sparse_tensor():
            return list(self._value.dense_shape())
        return list(self._tensor("Only OrtValues that are Tensors/SpareTensors are currently supported").shape)

    def data_ptr(self) -> int:
        """The address of a tensor's first element."""
        tensor = self._tensor("Only OrtValues that are Tensors are currently supported")
        return tensor.address if isinstance(tensor, DeviceArray) else int(tensor.ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """What the elements of a tensor take."""
        return int(self._tensor("Only OrtValues that are Tensors are currently supported").nbytes)

    def _tensor(self, otherwise: str) -> Any:
        if not self.is_tensor():
            raise RuntimeError(otherwise)
        return self._value

    # ---- its elements ---------------------------------------------------------------------------

    def numpy(self) -> Any:
        """A tensor's elements; their memory is shared, but for a tensor on a GPU, which is copied."""
        tensor = self._tensor("Only OrtValues that are Tensors are convertible to Numpy objects")
        return as_told(tensor.numpy() if isinstance(tensor, DeviceArray) else tensor.view())

    def as_sparse_tensor(self) -> SparseTensor:
        """The SparseTensor that it is."""
        if not isinstance(self._value, SparseTensor):
            raise RuntimeError("the OrtValue is not a sparse tensor")
        return self._value

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.numpy()
        if copy:
            return np.array(array, dtype=dtype)
        return array if dtype is None else np.asarray(array, dtype=dtype)

    def __dlpack__(self, *, stream: Any = None, **more: Any) -> Any:
        tensor = self._tensor("Only tensor type is supported by DLPack")
        return tensor.__dlpack__(**({"stream": stream} if isinstance(tensor, DeviceArray) else {}))

    to_dlpack = __dlpack__

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._value.device_id) if isinstance(self._value, DeviceArray) else (1, 0)

    def update_inplace(self, data: Any) -> None:
        """Copies elements into the tensor's memory, from an array or a tensor of as many bytes."""
        source = data.numpy() if isinstance(data, OrtValue) else data
        if not isinstance(source, np.ndarray):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        target = self._tensor("Only OrtValues that are Tensors are currently supported")
        if source.size != target.size:
            raise RuntimeError("The input size of numpy arrays does not match the size of the OrtValue.")
        if source.dtype != target.dtype and source.nbytes != target.nbytes:
            raise RuntimeError("the OrtValue is a %s, the array has elements of type %s" % (self._type, source.dtype))
        flat = np.ascontiguousarray(source).reshape(-1)
        flat = flat if source.dtype == target.dtype else flat.view(target.dtype)
        if isinstance(target, DeviceArray):
            target.write(flat.reshape(target.shape))
        else:
            target.reshape(-1)[...] = flat


def _on_gpu(data: Any) -> Optional[DeviceArray]:
    """What DLPack has on a GPU, its memory shared; None: it lies elsewhere. data: an array or a capsule."""
    if hasattr(data, "__dlpack__"):
        number = device_number(data)
        if number is None:
            return None
        view, owner = View(on_stream(data, LEGACY_STREAM)), data
    else:
        view = owner = View(data)
        number = view.device_id
        if view.device != CUDA:
            return None
    if not view.contiguous:
        raise RuntimeError("ORT only supports contiguous tensor for now.")
    return DeviceArray.at(view.address or 1, view.shape, dtype_of(view.elem), target=place("cuda", number), owner=owner)


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copies each tensor of src into the one of dst."""
    if len(src) != len(dst):
        raise RuntimeError("there are %d tensors to copy, and %d to copy to" % (len(src), len(dst)))
    for source, target in zip(src, dst):
        target.update_inplace(source)
