"""A model being run, numpy arrays in and out."""
import ctypes
import os
from ctypes import byref, c_char_p, c_int64, c_size_t, c_void_p

import numpy as np

from . import _library as L
from ._library import check, lib

MODES = {"native": 0, "truth": 1, "plan": 2}

# numpy's types by ONNX's numbers. Types that numpy lacks come from ml_dtypes where it is installed.
_PLAIN = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
          10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"}
_ML = {16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
       21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
       27: "float6_e2m3fn", 28: "float6_e3m2fn"}
_BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
STRING = 8


def dtype_of(code):
    """The numpy type for an ONNX element type."""
    if code in _PLAIN:
        return np.dtype(_PLAIN[code])
    if code == STRING:
        return np.dtype(object)
    import ml_dtypes
    return np.dtype(getattr(ml_dtypes, _ML[code]))


def code_of(dtype):
    """The ONNX element type for a numpy type."""
    for code, name in {**_PLAIN, **_ML}.items():
        if dtype.name == name:
            return code
    if dtype.kind in "OUS":
        return STRING
    raise TypeError("numpy type %s has no ONNX element type" % dtype)


def _pack(array, bits):
    """Elements of fewer than 8 bits, the first one lowest."""
    raw = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    each = 8 // bits
    raw = np.concatenate([raw, np.zeros(-len(raw) % each, np.uint8)]).reshape(-1, each)
    return np.bitwise_or.reduce(raw << (np.arange(each, dtype=np.uint8) * np.uint8(bits)), axis=1).astype(np.uint8)


def _unpack(raw, bits, n, dtype):
    each = 8 // bits
    out = (raw[:, None] >> (np.arange(each, dtype=np.uint8) * np.uint8(bits))) & np.uint8((1 << bits) - 1)
    out = out.reshape(-1)[:n].astype(np.uint8)
    if np.issubdtype(dtype, np.signedinteger) or dtype.name in ("int4", "int2"):
        out = np.where(out >> (bits - 1), out | np.uint8(0xFF << bits & 0xFF), out).astype(np.uint8)
    return out.view(dtype)


class _Tensor:
    """Owns one reference to an assay_tensor_t."""

    def __init__(self, handle):
        self.handle = handle

    def __del__(self):
        lib.assay_tensor_release(self.handle)


def to_tensor(value):
    """A numpy array (or number), list (sequence), or None (empty optional) as a tensor of Assay's."""
    out = c_void_p()
    if value is None:
        check(lib.assay_tensor_make_container(L.OPTIONAL, 0, 0, None, byref(out)))
        return _Tensor(out)
    if isinstance(value, (list, tuple)):
        items = [to_tensor(v) for v in value]
        handles = (c_void_p * len(items))(*[i.handle for i in items])
        code = lib.assay_tensor_type(items[0].handle) if items else 0
        check(lib.assay_tensor_make_container(L.SEQUENCE, code, len(items), handles, byref(out)))
        return _Tensor(out)
    array = np.asarray(value)
    code = code_of(array.dtype)
    dims = (c_int64 * array.ndim)(*array.shape)
    if code == STRING:
        texts = [t if isinstance(t, bytes) else str(t).encode() for t in array.reshape(-1)]
        check(lib.assay_tensor_make_strings(array.ndim, dims, (c_char_p * len(texts))(*texts),
                                            (c_size_t * len(texts))(*map(len, texts)), byref(out)))
        return _Tensor(out)
    array = np.asarray(array, order="C")
    data = (_pack(array, _BITS[code]) if code in _BITS else array).tobytes()
    check(lib.assay_tensor_make(code, array.ndim, dims, data, len(data), byref(out)))
    return _Tensor(out)


def _text(handle, i):
    length = c_size_t()
    pointer = lib.assay_tensor_string(handle, i, byref(length))
    return ctypes.string_at(pointer, length.value).decode("utf-8", "surrogateescape")


def from_tensor(handle, float64=False):
    """A borrowed tensor as a numpy array, list, dict, or None. float64: floats as they were computed."""
    kind = lib.assay_tensor_kind(handle)
    if kind != L.TENSOR:
        items = [from_tensor(lib.assay_tensor_item(handle, i), float64)
                 for i in range(lib.assay_tensor_item_count(handle))]
        if kind == L.OPTIONAL:
            return items[0] if items else None
        return dict(zip(items[0].tolist(), items[1].tolist())) if kind == L.MAP else items
    code, rank = lib.assay_tensor_type(handle), lib.assay_tensor_rank(handle)
    shape = tuple(lib.assay_tensor_dims(handle)[:rank]) if rank else ()
    n = lib.assay_tensor_size(handle)
    if code == STRING:
        return np.array([_text(handle, i) for i in range(n)], object).reshape(shape)
    dtype = dtype_of(code)
    if float64 and (dtype.kind == "f" or code in (16, 17, 18, 19, 20, 23, 24, 27, 28)):
        out = np.empty(shape, np.float64)
        check(lib.assay_tensor_read_f64(handle, out.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), n))
        return out
    raw = np.empty(lib.assay_tensor_bytes(handle), np.uint8)
    check(lib.assay_tensor_read(handle, raw.ctypes.data_as(c_void_p), raw.nbytes))
    return (_unpack(raw, _BITS[code], n, dtype) if code in _BITS else raw.view(dtype)).reshape(shape)


class Session:
    """A model, loaded from a path or from bytes, ready to run.

    mode             "native" (rounded to each declared type), "truth" (float64) or "plan" (the emu backend)
    layer_precision  plan: "PATTERN:FORMAT,..."
    """

    def __init__(self, model, mode="native", layer_precision=None, seed=0, folder=None):
        self._model, self._session, self._truth = c_void_p(), c_void_p(), mode == "truth"
        if isinstance(model, bytes):
            check(lib.assay_model_load_bytes(model, len(model), folder.encode() if folder else None,
                                             byref(self._model)))
        else:
            check(lib.assay_model_load(os.fsencode(model), byref(self._model)))
        options = L.SessionOptions(ctypes.sizeof(L.SessionOptions), MODES[mode], 0, 0,
                                   layer_precision.encode() if layer_precision else None, seed, False)
        check(lib.assay_session_create(self._model, byref(options), byref(self._session)))

    def __del__(self):
        lib.assay_session_destroy(self._session)
        lib.assay_model_release(self._model)

    @property
    def input_names(self):
        return [lib.assay_model_input_name(self._model, i).decode()
                for i in range(lib.assay_model_input_count(self._model))]

    @property
    def output_names(self):
        return [lib.assay_model_output_name(self._model, i).decode()
                for i in range(lib.assay_model_output_count(self._model))]

    def _input(self, i, value):
        """A tensor for input i; text declares which values are optional, plain lists are sequences."""
        text = ctypes.create_string_buffer(256)
        check(lib.assay_model_input_type(self._model, i, text, 256))
        tensor = value if isinstance(value, _Tensor) else to_tensor(value)
        if text.value.startswith(b"optional") and lib.assay_tensor_kind(tensor.handle) != L.OPTIONAL:
            out = c_void_p()
            check(lib.assay_tensor_make_container(L.OPTIONAL, lib.assay_tensor_type(tensor.handle), 1,
                                                  (c_void_p * 1)(tensor.handle), byref(out)))
            tensor = _Tensor(out)
        return tensor

    def run(self, inputs):
        """Runs once. inputs: {name: value}, or values in order. Returns the outputs in order."""
        if isinstance(inputs, dict):
            inputs = [inputs[name] for name in self.input_names]
        tensors = [self._input(i, v) for i, v in enumerate(inputs)]
        n = lib.assay_model_output_count(self._model)
        outputs = (c_void_p * n)()
        check(lib.assay_session_run(self._session, len(tensors),
                                    (c_void_p * len(tensors))(*[t.handle for t in tensors]), n, outputs))
        kept = [_Tensor(c_void_p(h)) if h else None for h in outputs]
        return [from_tensor(t.handle, self._truth) if t else None for t in kept]
