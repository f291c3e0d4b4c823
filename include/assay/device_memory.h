// Memory of a device, for programs that bind inputs and outputs there (context.h) and have no other
// library that allocates it.
#ifndef ASSAY_DEVICE_MEMORY_H_
#define ASSAY_DEVICE_MEMORY_H_

#include <assay/export.h>
#include <assay/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Some bytes of a device's memory.
typedef struct assay_device_memory assay_device_memory_t;

// Memory of a target's device, at a multiple of 256; what is in it is not defined.
//   target   "cuda", "cuda:1", "auto"
//   bytes    0: an address all the same
// *out is destroyed by the caller, after the runs of contexts that it is bound to.
// Errors: INVALID_ARGUMENT no such target; UNSUPPORTED the target has no device with memory of its
// own; DEVICE there is none on this machine: what is missing; NO_MEMORY the host's or the device's
ASSAY_API assay_status_t assay_device_memory_create(const char* target, size_t bytes,
                                                    assay_device_memory_t** out);
// Memory of somebody else's on a target's device, such as cudaMalloc's: for copies to and from the
// host. It stays theirs, and has to be there as long as *out.
// Errors: as there, but for the device's NO_MEMORY; INVALID_ARGUMENT address 0
ASSAY_API assay_status_t assay_device_memory_wrap(const char* target, uint64_t address,
                                                  size_t bytes, assay_device_memory_t** out);
// NULL is allowed.
ASSAY_API void assay_device_memory_destroy(assay_device_memory_t* memory);

// Its address on the device (CUDA: a CUdeviceptr), its size, and the device's number.
ASSAY_API uint64_t assay_device_memory_address(const assay_device_memory_t* memory);
ASSAY_API size_t assay_device_memory_bytes(const assay_device_memory_t* memory);
ASSAY_API int assay_device_memory_device(const assay_device_memory_t* memory);

// The stream of the device in which it is copied, as assay_context_stream() (context.h) tells one.
// Errors: UNSUPPORTED the device has no streams that others know
ASSAY_API assay_status_t assay_device_memory_stream(const assay_device_memory_t* memory,
                                                    uint64_t* out);

// Copies `bytes` bytes from the host to `offset` bytes behind the beginning, or from there to the
// host; waits for the end. What other libraries do to the memory has to have ended before, or its
// stream to have been made to wait for it. Threads: one at a time.
// Errors: INVALID_ARGUMENT they lie beyond its end; DEVICE
ASSAY_API assay_status_t assay_device_memory_write(assay_device_memory_t* memory, size_t offset,
                                                   const void* data, size_t bytes);
ASSAY_API assay_status_t assay_device_memory_read(assay_device_memory_t* memory, size_t offset,
                                                  void* out, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif  // ASSAY_DEVICE_MEMORY_H_
