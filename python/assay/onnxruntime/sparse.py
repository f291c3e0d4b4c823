"""SparseTensor: values and indices in numpy arrays. Sessions take and give dense tensors only."""
from __future__ import annotations

from typing import Any, Union

import numpy as np

from .devices import OrtDevice
from .elements import ELEMENTS, number_of
from .enums import OrtSparseFormat


class SparseCooView:
    """The places of a tensor's values."""

    def __init__(self, indices: Any) -> None:
        self._indices = indices

    def indices(self) -> Any:
        """int64 [values], places in row-major order, or [values, 2], coordinates."""
        return self._indices


class SparseCsrView:
    """The columns of a matrix's values, and where its rows begin among them."""

    def __init__(self, inner: Any, outer: Any) -> None:
        self._inner, self._outer = inner, outer

    def inner(self) -> Any:
        """int64 [values]."""
        return self._inner

    def outer(self) -> Any:
        """int64 [rows + 1]."""
        return self._outer


class SparseTensor:
    """A tensor that is given by its values and their places."""

    _shape: list[int]
    _values: Any
    _view: Union[SparseCooView, SparseCsrView]
    _format: OrtSparseFormat

    def __init__(self, sparse_tensor: Any) -> None:
        if not isinstance(sparse_tensor, SparseTensor):
            raise ValueError("`Provided object` needs to be of type "
                             "`onnxruntime.capi.onnxruntime_pybind11_state.SparseTensor`")
        self.__dict__.update(sparse_tensor.__dict__)

    @classmethod
    def _make(cls, dense_shape: Any, values: Any, view: Any, form: OrtSparseFormat, device: OrtDevice) -> SparseTensor:
        if device.device_type() != OrtDevice.cpu():
            raise RuntimeError("sparse tensors are in the memory of the CPU only")
        tensor = cls.__new__(cls)
        tensor._shape = [int(d) for d in np.asarray(dense_shape).reshape(-1)]
        tensor._values, tensor._view, tensor._format = np.asarray(values), view, form
        if tensor._values.ndim != 1:
            raise RuntimeError("Expecting values 1-D array")
        return tensor

    @classmethod
    def sparse_coo_from_numpy(cls, dense_shape: Any, values: Any, coo_indices: Any, ort_device: OrtDevice) -> SparseTensor:
        """Of values and their places; the arrays' memory is shared."""
        indices = np.asarray(coo_indices)
        if indices.size not in (len(values), 2 * len(values)):
            raise RuntimeError("%d indices do not belong to %d values" % (indices.size, len(values)))
        return cls._make(dense_shape, values, SparseCooView(indices), OrtSparseFormat.ORT_SPARSE_COO, ort_device)

    @classmethod
    def sparse_csr_from_numpy(cls, dense_shape: Any, values: Any, inner_indices: Any, outer_indices: Any,
                              ort_device: OrtDevice) -> SparseTensor:
        """A matrix of values, their columns, and where rows begin; the arrays' memory is shared."""
        inner, outer = np.asarray(inner_indices), np.asarray(outer_indices)
        if len(inner) != len(values):
            raise RuntimeError("%d inner indices do not belong to %d values" % (len(inner), len(values)))
        if len(outer) != int(np.asarray(dense_shape).reshape(-1)[0]) + 1:
            raise RuntimeError("%d outer indices do not belong to these rows" % len(outer))
        return cls._make(dense_shape, values, SparseCsrView(inner, outer), OrtSparseFormat.ORT_SPARSE_CSRC, ort_device)

    def _get_c_tensor(self) -> SparseTensor:
        return self

    def values(self) -> Any:
        """The values that are not 0."""
        return self._values

    def as_coo_view(self) -> SparseCooView:
        """The places, of a tensor that was made of them."""
        if not isinstance(self._view, SparseCooView):
            raise RuntimeError("This sparse tensor does not contain COO format")
        return self._view

    def as_csrc_view(self) -> SparseCsrView:
        """Columns and rows, of a tensor that was made of them."""
        if not isinstance(self._view, SparseCsrView):
            raise RuntimeError("This sparse tensor does not contain CSR(C) format")
        return self._view

    def as_blocksparse_view(self) -> Any:
        """There are no tensors of blocks here."""
        raise RuntimeError("This sparse tensor does not contain BlockSparse format")

    get_coo_data, get_csrc_data, get_blocksparse_data = as_coo_view, as_csrc_view, as_blocksparse_view

    def to_cuda(self, ort_device: OrtDevice) -> Any:
        """Sparse tensors stay on the CPU."""
        raise RuntimeError("sparse tensors are in the memory of the CPU only")

    def format(self) -> OrtSparseFormat:
        """How places are stored."""
        return self._format

    def dense_shape(self) -> list[int]:
        """The shape of the tensor with its zeros."""
        return list(self._shape)

    def data_type(self) -> str:
        """Such as "sparse_tensor(float)"."""
        return "sparse_tensor(%s)" % ELEMENTS[number_of(self._values.dtype)]

    def device_name(self) -> str:
        """Always "cpu"."""
        return "cpu"
