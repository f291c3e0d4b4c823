// Copies and fills. Pinned memory of the host is read and written when the stream comes to it,
// pageable memory as the real driver does (CUDA driver API, "API synchronization behavior"): what
// is uploaded is read before the call returns; what is downloaded is there when it does.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

cuda_result_t cuMemcpyHtoDAsync(cuda_pointer_t to, const void* from, size_t bytes,
                                cuda_stream_t stream) {
  CALLED(true);
  if (is_capturing(stream) && !is_pinned(from)) return CAPTURE_UNSUPPORTED;
  if (!device_memory(to, bytes)) return INVALID_VALUE;
  work_t w = {.kind = UPLOAD, .to = to, .bytes = bytes, .owns_host = !is_pinned(from)};
  if (w.owns_host) {
    w.host = malloc(bytes ? bytes : 1);
    if (!w.host) return CUDA_OUT_OF_MEMORY;
    memcpy(w.host, from, bytes);
  } else {
    w.host = (void*)(uintptr_t)from;
  }
  return put(stream, &w);
}

cuda_result_t cuMemcpyDtoHAsync(void* to, cuda_pointer_t from, size_t bytes, cuda_stream_t stream) {
  CALLED(true);
  if (is_capturing(stream) && !is_pinned(to)) return CAPTURE_UNSUPPORTED;
  if (!device_memory(from, bytes)) return INVALID_VALUE;
  const cuda_result_t r =
      put(stream, &(work_t){.kind = DOWNLOAD, .host = to, .from = from, .bytes = bytes});
  if (r || is_pinned(to)) return r;
  wait_for_stream(stream);
  return fake.state.broken;
}

cuda_result_t cuMemcpyAsync(cuda_pointer_t to, cuda_pointer_t from, size_t bytes,
                            cuda_stream_t stream) {
  CALLED(true);
  if (!device_memory(to, bytes) || !device_memory(from, bytes)) return INVALID_VALUE;
  return put(stream, &(work_t){.kind = COPY, .to = to, .from = from, .bytes = bytes});
}

cuda_result_t cuMemsetD8Async(cuda_pointer_t at, unsigned char byte, size_t n,
                              cuda_stream_t stream) {
  CALLED(true);
  if (!device_memory(at, n)) return INVALID_VALUE;
  return put(stream, &(work_t){.kind = FILL, .to = at, .value = byte, .bytes = n});
}
