"""libassay by ctypes: where it is, the prototypes of its functions, and statuses as exceptions."""
from __future__ import annotations

import ctypes
import sys
from ctypes import (CFUNCTYPE, POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64,
                    c_void_p)
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import _places
from .errors import BY_CODE, InternalError

TENSOR, SEQUENCE, OPTIONAL, MAP = range(4)  # assay_kind_t
TEXT, JSON, PAGE = range(3)                 # assay_report_kind_t

# Functions of Python's that the library calls.
PROGRESS_FN = CFUNCTYPE(None, c_void_p, c_char_p, c_double)
TAP_FN = CFUNCTYPE(c_void_p, c_void_p, c_void_p)


class Options(ctypes.Structure):
    """A struct that begins with struct_size: the library is told how much of it this package knows."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


def _load() -> ctypes.CDLL:
    why = ""
    _places.use_nvidia_packages()
    for path in _places.libraries():
        try:
            return ctypes.CDLL(path)
        except OSError as e:
            why = why or str(e)
    raise ImportError("libassay.so cannot be loaded (%s): install it, or set ASSAY_LIBRARY to its path" % why)


lib = _load()
STATUS = c_void_p


def declare(prototypes: Dict[str, Tuple[Any, Sequence[Any]]]) -> None:
    """Gives functions of the library their types: name -> (result, arguments)."""
    for name, (result, arguments) in prototypes.items():
        function = getattr(lib, name, None)
        if function is None:
            raise ImportError("the libassay.so that was loaded (%s) is older than this package: it has no %s()"
                              % (lib._name, name))
        function.restype, function.argtypes = result, list(arguments)


def brief(name: str) -> Callable[..., Any]:
    """A declared function that ends at once, called without letting other threads of Python run meanwhile.

    To give up the interpreter's lock and to get it back costs more than such a function where threads compete for it.
    """
    function = getattr(lib, name)
    called: Callable[..., Any] = ctypes.PYFUNCTYPE(function.restype, *function.argtypes)((name, lib))
    return called


declare({
    "assay_status_create": (STATUS, [c_int, c_char_p]),
    "assay_status_code": (c_int, [STATUS]),
    "assay_status_message": (c_char_p, [STATUS]),
    "assay_status_cause": (c_char_p, [STATUS]),
    "assay_version": (c_char_p, []),
    "assay_status_free": (None, [STATUS]),
    "assay_text_free": (None, [c_void_p]),
    "assay_format_parse": (c_int, [c_char_p]),
    "assay_format_name": (c_char_p, [c_int]),
    "assay_type_name": (c_char_p, [c_int]),
})


def check(status: Optional[int]) -> None:
    """Raises the exception of a status, unless it is OK."""
    if status:
        raise error_of(status)


def error_of(status: int) -> Exception:
    """A status as an exception; the status is freed."""
    code = lib.assay_status_code(status)
    message, cause = text(lib.assay_status_message(status)), text(lib.assay_status_cause(status))
    lib.assay_status_free(status)
    note = message[:len(message) - len(cause)]
    return BY_CODE.get(code, InternalError)(message, [note[:-2]] if note else [])


def text(data: Optional[bytes]) -> str:
    """Text of the library; names in models need not be UTF-8."""
    return data.decode("utf-8", "surrogateescape") if data else ""


def encode(value: Optional[str]) -> Optional[bytes]:
    """Text for the library; None stays None."""
    return None if value is None else str(value).encode("utf-8", "surrogateescape")


def strings(values: Sequence[str]) -> Any:
    """An array of C strings, which lives as long as the result."""
    return (c_char_p * len(values))(*[encode(v) for v in values])


def format_of(name: Optional[str]) -> int:
    """assay_format_t of a name such as "fp16"; None: as declared."""
    if name is None:
        return 0
    code: int = lib.assay_format_parse(encode(name))
    if not code:
        from .errors import InvalidArgument
        raise InvalidArgument("%r is not a format; use fp32, tf32, bf16, fp16, fp8e4m3, fp8e5m2, int8 ..." % (name,))
    return code


def format_name(code: int) -> str:
    """The name of an assay_format_t."""
    return text(lib.assay_format_name(code))


def choice(what: str, value: Any, choices: Sequence[str]) -> int:
    """The number of a word among the choices of an enum."""
    if value not in choices:
        from .errors import InvalidArgument
        raise InvalidArgument("%s is %r; use one of %s" % (what, value, ", ".join(map(repr, choices))))
    return list(choices).index(value)


def fusion_of(value: Optional[bool]) -> int:
    """assay_fusion_t: None lets the target decide."""
    return 0 if value is None else 1 if value else 2


class Handle:
    """Owns one thing of the library, and frees it when it dies; whatever order things die in is right."""

    __slots__ = ("value", "_free")

    def __init__(self, value: Any, free: Callable[[Any], None]) -> None:
        self.value = value
        self._free = free

    def close(self) -> None:
        value, self.value = self.value, None
        if value:
            self._free(value)

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # At the interpreter's end the process frees everything, and modules (sys, too) may be gone.
        if not ending():
            self.close()


def collect(call: Callable[[Any, Any], Optional[int]]) -> str:
    """A report: call(write, user) is to hand the two to a ..._report() function."""
    out = c_void_p()
    check(call(lib.assay_report_collect, ctypes.byref(out)))
    try:
        return text(ctypes.string_at(out.value)) if out.value else ""
    finally:
        lib.assay_text_free(out)


def names_of(count: int, name: Callable[[int], Optional[bytes]]) -> List[str]:
    """The texts of a function of an index."""
    return [text(name(i)) for i in range(count)]


__all__ = ["CFUNCTYPE", "POINTER", "c_bool", "c_char_p", "c_double", "c_int", "c_int64", "c_size_t", "c_uint64",
           "c_void_p"]
