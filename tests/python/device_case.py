"""Another package on the CUDA platform without a GPU (ASSAY_CUDA_PATH): arrays and streams of its own, through the driver."""
import ctypes
import os
import threading
import time
from ctypes import (CFUNCTYPE, POINTER, PYFUNCTYPE, Structure, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8,
                    c_uint16, c_uint32, c_uint64, c_void_p, py_object)

import numpy as np

HOST_CALL = CFUNCTYPE(None, c_void_p)
NON_BLOCKING = 1

# ---- DLPack as its header has it (dlpack.h 1.0), apart from the library's own --------------------

KDL_CUDA = 2
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class DLManagedTensor(Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class DLManagedTensorVersioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("dl_tensor", DLTensor)]


new_capsule = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))


class Driver:
    """The functions of the driver that a package calls."""

    def __init__(self):
        self._library = ctypes.CDLL(os.path.join(os.environ["ASSAY_CUDA_PATH"], "libcuda.so.1"))
        self._here = threading.local()
        self._here.has_context = True
        self.cuInit(0)
        device = c_int()
        self._context = c_void_p()
        self.cuDeviceGet(byref(device), 0)
        self.cuDevicePrimaryCtxRetain(byref(self._context), device)
        self.cuCtxPushCurrent(self._context)

    def __getattr__(self, name):
        at, found = c_void_p(), c_int()
        code = self._library.cuGetProcAddress_v2(name.encode(), byref(at), c_int(12000), c_uint64(0), byref(found))
        if code or not at.value:
            raise AttributeError(name)
        function = CFUNCTYPE(c_int)(at.value)

        def call(*arguments):
            if not getattr(self._here, "has_context", False):
                self._here.has_context = True
                self.cuCtxPushCurrent(self._context)
            code = function(*arguments)
            if code:
                raise RuntimeError("%s: error %d" % (name, code))
        return call


class Stream:
    def __init__(self, driver):
        self.driver, self.handle, self._calls = driver, c_void_p(), []
        driver.cuStreamCreate(byref(self.handle), NON_BLOCKING)

    def sleep(self, seconds):
        """What comes behind it in the stream comes that late."""
        call = HOST_CALL(lambda _: time.sleep(seconds))
        self._calls.append(call)
        self.driver.cuLaunchHostFunc(self.handle, call, None)

    def wait(self):
        self.driver.cuStreamSynchronize(self.handle)

    def before(self, other):
        """What another stream does from now on comes after what this one was given so far."""
        event = c_void_p()
        self.driver.cuEventCreate(byref(event), 0)
        self.driver.cuEventRecord(event, self.handle)
        self.driver.cuStreamWaitEvent(c_void_p(other), event, 0)


class Array:
    """An array as a package has it, whose work on it is in the package's stream.

    old      of a package from before DLPack 1.0
    strides  in elements; offset: bytes before its first element
    """

    def __init__(self, stream, values, read_only=False, device=0, strides=None, old=False, offset=0):
        self.stream, self.host = stream, np.ascontiguousarray(values)
        self.shape, self.dtype, self.device, self.strides, self.old = self.host.shape, self.host.dtype, device, strides, old
        self.read_only, self.offset, self.streams, self._kept = read_only, offset, [], []
        memory = c_uint64()
        stream.driver.cuMemAllocAsync(byref(memory), c_size_t(self.host.nbytes + offset + 1), stream.handle)
        self.memory, self.address = memory.value, c_uint64(memory.value + offset)
        self.write(self.host)

    def write(self, values, late=0.0):
        """Puts a copy into the stream."""
        self.host = np.ascontiguousarray(values, self.dtype).reshape(self.shape)
        if late:
            self.stream.sleep(late)
        if self.host.nbytes:
            self.stream.driver.cuMemcpyHtoDAsync(self.address, c_void_p(self.host.ctypes.data), c_size_t(self.host.nbytes),
                                                 self.stream.handle)

    def read(self):
        out = np.empty(self.shape, self.dtype)
        if out.nbytes:
            self.stream.driver.cuMemcpyDtoHAsync(c_void_p(out.ctypes.data), self.address, c_size_t(out.nbytes), self.stream.handle)
        self.stream.wait()
        return out

    def __dlpack_device__(self):
        return KDL_CUDA, self.device

    def __dlpack__(self, *, stream=None, **more):
        if more and self.old:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.streams.append(stream)
        if stream not in (None, -1, 1, 2):  # the fake driver has no default streams
            self.stream.before(stream)
        sizes = (c_int64 * max(1, len(self.shape)))(*self.shape)
        strides = (c_int64 * len(self.strides))(*self.strides) if self.strides else None
        tensor = DLTensor(self.memory, KDL_CUDA, self.device, len(self.shape), CODES[self.dtype.kind], 8 * self.dtype.itemsize,
                          1, sizes, strides, self.offset)
        versioned = more.get("max_version", (0, 0))[0] >= 1
        whole = DLManagedTensorVersioned(1, 0, None, None, int(self.read_only), tensor) if versioned else \
            DLManagedTensor(tensor, None, None)
        self._kept.append((sizes, strides, whole))
        return new_capsule(ctypes.addressof(whole), b"dltensor_versioned" if versioned else b"dltensor", None)
