"""libassay through ctypes: loading, prototypes, errors."""
import ctypes
import os
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p


class AssayError(Exception):
    """What libassay reported; `code` is an assay_code_t."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


INVALID_ARGUMENT, UNSUPPORTED, NOT_FOUND, CORRUPT, NO_MEMORY, DEVICE, INTERNAL = range(1, 8)
TENSOR, SEQUENCE, OPTIONAL, MAP = range(4)


class SessionOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("mode", c_int), ("precision", c_int), ("accumulator", c_int),
                ("layer_precision", c_char_p), ("seed", c_uint64), ("unquantized", c_bool)]


def _candidates():
    if os.environ.get("ASSAY_LIBRARY"):
        yield os.environ["ASSAY_LIBRARY"]
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, "libassay.so")
    yield os.path.join(here, "..", "..", "build", "release", "libassay.so")
    yield "libassay.so.0"


def _load():
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise ImportError("libassay.so was not found: install it, or set ASSAY_LIBRARY to its path")


lib = _load()

_STATUS = c_void_p
_PROTOTYPES = {
    "assay_status_code": (c_int, [_STATUS]),
    "assay_status_message": (c_char_p, [_STATUS]),
    "assay_status_free": (None, [_STATUS]),
    "assay_model_load": (_STATUS, [c_char_p, POINTER(c_void_p)]),
    "assay_model_load_bytes": (_STATUS, [c_char_p, c_size_t, c_char_p, POINTER(c_void_p)]),
    "assay_model_release": (None, [c_void_p]),
    "assay_model_input_count": (c_size_t, [c_void_p]),
    "assay_model_input_name": (c_char_p, [c_void_p, c_size_t]),
    "assay_model_input_type": (_STATUS, [c_void_p, c_size_t, c_char_p, c_size_t]),
    "assay_model_input_elem": (c_int, [c_void_p, c_size_t]),
    "assay_model_output_count": (c_size_t, [c_void_p]),
    "assay_model_output_name": (c_char_p, [c_void_p, c_size_t]),
    "assay_session_create": (_STATUS, [c_void_p, POINTER(SessionOptions), POINTER(c_void_p)]),
    "assay_session_destroy": (None, [c_void_p]),
    "assay_session_run": (_STATUS, [c_void_p, c_size_t, POINTER(c_void_p), c_size_t, POINTER(c_void_p)]),
    "assay_tensor_make": (_STATUS, [c_int, c_int, POINTER(c_int64), c_char_p, c_size_t, POINTER(c_void_p)]),
    "assay_tensor_make_strings": (_STATUS, [c_int, POINTER(c_int64), POINTER(c_char_p), POINTER(c_size_t),
                                            POINTER(c_void_p)]),
    "assay_tensor_make_container": (_STATUS, [c_int, c_int, c_int64, POINTER(c_void_p), POINTER(c_void_p)]),
    "assay_tensor_release": (None, [c_void_p]),
    "assay_tensor_kind": (c_int, [c_void_p]),
    "assay_tensor_type": (c_int, [c_void_p]),
    "assay_tensor_rank": (c_int, [c_void_p]),
    "assay_tensor_dims": (POINTER(c_int64), [c_void_p]),
    "assay_tensor_size": (c_int64, [c_void_p]),
    "assay_tensor_bytes": (c_size_t, [c_void_p]),
    "assay_tensor_read": (_STATUS, [c_void_p, c_void_p, c_size_t]),
    "assay_tensor_read_f64": (_STATUS, [c_void_p, POINTER(c_double), c_size_t]),
    "assay_tensor_string": (c_void_p, [c_void_p, c_int64, POINTER(c_size_t)]),
    "assay_tensor_item_count": (c_int64, [c_void_p]),
    "assay_tensor_item": (c_void_p, [c_void_p, c_int64]),
}
for _name, (_result, _arguments) in _PROTOTYPES.items():
    _function = getattr(lib, _name)
    _function.restype, _function.argtypes = _result, _arguments


def check(status):
    """Raises AssayError unless a status is OK."""
    if not status:
        return
    code, message = lib.assay_status_code(status), lib.assay_status_message(status).decode("utf-8", "replace")
    lib.assay_status_free(status)
    raise AssayError(code, message)
