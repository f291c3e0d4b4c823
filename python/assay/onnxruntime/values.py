"""OrtValue: a value with its type, in memory of the host that numpy, DLPack and sessions share.

Values "on" a GPU lie in the host's memory, too: sessions copy them. Their addresses are known, so that a binding to
one reads the host's memory, and a binding to any other address of a device is refused.
"""
from __future__ import annotations

import warnings
import weakref
from typing import Any, Optional, Sequence

import numpy as np

from .devices import OrtDevice, cuda_is_here
from .elements import STRING, as_told, element_number, element_of, number_of, numpy_of, tensor_type
from .memory import array_of_dlpack
from .sparse import SparseTensor

ONLY_NUMBERS = "Creation of OrtValues is currently only supported from non-string numpy arrays"
NO_DEVICE = ("Can't allocate memory on the device using this package of OnnxRuntime. Please use the appropriate package of "
             "OnnxRuntime for your hardware to use this feature.")


# Values on a GPU, by the addresses of their elements.
_on_device: weakref.WeakValueDictionary[int, OrtValue] = weakref.WeakValueDictionary()


def place(device_type: str, device_id: int, vendor_id: int = -1) -> str:
    """"cpu", or "cuda" where there is a GPU; RuntimeError for what is not here."""
    kind = OrtDevice.make(device_type, device_id, vendor_id).device_type()
    if kind == OrtDevice.cpu():
        return "cpu"
    if kind != OrtDevice.cuda() or not cuda_is_here():
        raise RuntimeError(NO_DEVICE)
    return "cuda"


def value_on_device(address: int, nbytes: int) -> OrtValue:
    """The value on a GPU that has this address. RuntimeError for memory that is somebody else's."""
    value = _on_device.get(int(address))
    if value is None or value.tensor_size_in_bytes() < nbytes:
        raise RuntimeError("address %#x is not that of an OrtValue of %d bytes: memory of a device is bound by "
                           "OrtValue.ortvalue_from_numpy(array, 'cuda', 0)" % (address, nbytes))
    return value


class OrtValue:
    """A tensor, a sequence, a map, an optional value or a sparse tensor.

    Tensors of numpy arrays share their memory. A tensor of a type that numpy lacks is held in its bits.
    """

    _value: Any
    _type: str
    _device = "cpu"

    def __init__(self, ortvalue: Any, numpy_obj: Any = None, session: Any = None) -> None:
        if not isinstance(ortvalue, OrtValue):
            raise ValueError("`Provided ortvalue` needs to be of type "
                             "`onnxruntime.capi.onnxruntime_pybind11_state.OrtValue`")
        self._value, self._type = ortvalue._value, ortvalue._type
        self.on(ortvalue._device)

    @classmethod
    def of(cls, value: Any, type_text: str) -> OrtValue:
        """A value of a type, such as "tensor(float)"."""
        made = cls.__new__(cls)
        made._value, made._type = value, type_text
        return made

    def on(self, device: str) -> OrtValue:
        """The value itself, which says that it lies there."""
        self._device = device
        if device != "cpu" and self.is_tensor() and self._value.nbytes:
            _on_device[self.data_ptr()] = self
        return self

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
            device_type = "cpu" if device_type.device_type() == OrtDevice.cpu() else "gpu"
        device = place(device_type, device_id, vendor_id)
        if not isinstance(numpy_obj, np.ndarray) or numpy_obj.dtype.kind in "OUST":
            raise RuntimeError(ONLY_NUMBERS)
        number = number_of(numpy_obj.dtype)
        take = np.asarray if device == "cpu" else np.array
        return cls.of(take(numpy_obj, numpy_of(number), order="C"), tensor_type(number)).on(device)

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
        return cls.of(np.zeros([int(size) for size in shape], numpy_of(number)), tensor_type(number)).on(device)

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """A tensor on an array that has __dlpack__, or on a DLPack capsule."""
        array = array_of_dlpack(data)
        return cls.of(array, tensor_type(number_of(array.dtype)))

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor) -> OrtValue:
        """A value that is a SparseTensor."""
        return cls.of(sparse_tensor, sparse_tensor.data_type())

    # ---- what it is -----------------------------------------------------------------------------

    def is_tensor(self) -> bool:
        """Whether it is a dense tensor."""
        return isinstance(self._value, np.ndarray)

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
        """"cpu", or "cuda" of a value that was made for a GPU."""
        return self._device

    def shape(self) -> list[int]:
        """The sizes of a tensor."""
        if self.is_sparse_tensor():
            return list(self._value.dense_shape())
        return list(self._tensor("Only OrtValues that are Tensors/SpareTensors are currently supported").shape)

    def data_ptr(self) -> int:
        """The address of a tensor's first element."""
        return int(self._tensor("Only OrtValues that are Tensors are currently supported").ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """What the elements of a tensor take."""
        return int(self._tensor("Only OrtValues that are Tensors are currently supported").nbytes)

    def _tensor(self, otherwise: str) -> Any:
        if not self.is_tensor():
            raise RuntimeError(otherwise)
        return self._value

    # ---- its elements ---------------------------------------------------------------------------

    def numpy(self) -> Any:
        """A tensor's elements; their memory is shared."""
        return as_told(self._tensor("Only OrtValues that are Tensors are convertible to Numpy objects").view())

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
        return self._tensor("Only tensor type is supported by DLPack").__dlpack__()

    to_dlpack = __dlpack__

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

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
        target.reshape(-1)[...] = flat if source.dtype == target.dtype else flat.view(target.dtype)


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copies each tensor of src into the one of dst."""
    if len(src) != len(dst):
        raise RuntimeError("there are %d tensors to copy, and %d to copy to" % (len(src), len(dst)))
    for source, target in zip(src, dst):
        target.update_inplace(source)
