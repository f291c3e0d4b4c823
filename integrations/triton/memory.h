// Memory of hosts and devices: buffers that grow, and copies between the two.
#ifndef ASSAY_TRITON_MEMORY_H_
#define ASSAY_TRITON_MEMORY_H_

#include "errors.h"

// A buffer of the host that grows and is used again.
typedef struct buffer {
  uint8_t* data;
  size_t capacity;
} buffer_t;

// Makes it `bytes` or more large; what was in it is lost. data is not NULL afterwards.
TRITONSERVER_Error* buffer_reserve(buffer_t* buffer, uint64_t bytes);
void buffer_deinit(buffer_t* buffer);

// Where bytes lie.
typedef struct place {
  void* data;
  TRITONSERVER_MemoryType memory;
  int64_t device;  // of GPU memory
} place_t;

// Copies between the host and a GPU, or within the host; complete when it returns.
// Errors: UNAVAILABLE there is no driver, or it fails
TRITONSERVER_Error* memory_copy(place_t to, place_t from, size_t bytes);
// Lets go of the driver.
void memory_close(void);

static inline place_t host_place(const void* data) {
  return (place_t){(void*)(uintptr_t)data, TRITONSERVER_MEMORY_CPU, 0};
}

#endif  // ASSAY_TRITON_MEMORY_H_
