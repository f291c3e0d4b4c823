// What the driver's files have in common: a GPU, its queues, and calls in its context.
#ifndef ASSAY_BACKENDS_CUDA_DRIVER_INTERNAL_H_
#define ASSAY_BACKENDS_CUDA_DRIVER_INTERNAL_H_

#include <stdatomic.h>

#include "backends/cuda/call.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/watch.h"

typedef struct cuda_gpu {
  assay_device_t base;
  const cuda_api_t* api;
  cuda_device_id_t id;
  int number;
  cuda_context_t context;
  cuda_pool_t pool;
  char name[96];
  int capability, multiprocessors, shared_bytes;  // 10 * major + minor; of a block
  atomic_bool lost;  // a kernel broke the context: nothing works any more
} cuda_gpu_t;

typedef struct cuda_staging {
  void* memory;
  size_t bytes;
} cuda_staging_t;

// Integers that are fetched in a queue, and looked at by the host (watch.c).
typedef struct cuda_watching {
  // What they are like, in a queue that has been waited for.
  assay_status_t (*look)(assay_queue_t* q);
  // Before a capture is launched that may fetch some.
  assay_status_t (*launch)(assay_queue_t* q);
  void (*end)(assay_queue_t* q);  // before it is destroyed
} cuda_watching_t;

typedef struct cuda_queue {
  assay_queue_t base;
  cuda_gpu_t* gpu;
  cuda_stream_t stream;
  uint32_t* mark;  // pinned; written by the stream
  cuda_pointer_t mark_at;
  bool marked, capturing;
  _Atomic(assay_status_t)
      failed;               // of the host's calls in it (call.h) the first since it was waited for
  cuda_staging_t* staging;  // the last one is in use
  size_t n_staging, cap_staging;
  const cuda_watching_t* watching;  // NULL: there are none
  _Atomic(cuda_watch_place_t*) watched;
  cuda_call_t look;
} cuda_queue_t;

// Fills in all of a GPU but its context (gpu.c). Errors: DEVICE: there is none of that number, or
// it cannot be used
assay_status_t cuda_gpu_find(int number, cuda_gpu_t* g) ASSAY_MUST_USE;
// Rows of the driver that need no context.
assay_status_t cuda_gpu_count(int* out) ASSAY_MUST_USE;
assay_status_t cuda_gpu_want(int number) ASSAY_MUST_USE;
assay_status_t cuda_gpu_describe_need(int number, assay_str_t* out) ASSAY_MUST_USE;
void cuda_describe_libraries(assay_str_t* out);

// Makes the context of a GPU current; and no longer. Errors: DEVICE: it was lost
assay_status_t cuda_enter(cuda_gpu_t* g) ASSAY_MUST_USE;
void cuda_leave(const cuda_gpu_t* g);
// What a call gave, as a status; notes where it means that the GPU is lost.
assay_status_t cuda_told(cuda_gpu_t* g, cuda_result_t r, const char* function) ASSAY_MUST_USE;
bool cuda_is_fatal(cuda_result_t r);

// One call in the context of a GPU.
#define CUDA_CALL(g, function, ...)                                      \
  do {                                                                   \
    cuda_gpu_t* gpu_called = (g);                                        \
    ASSAY_TRY(cuda_enter(gpu_called));                                   \
    const cuda_result_t result = gpu_called->api->function(__VA_ARGS__); \
    cuda_leave(gpu_called);                                              \
    ASSAY_TRY(cuda_told(gpu_called, result, #function));                 \
  } while (0)

// The same where nothing can be done about a failure: what is given back is gone in any case, also
// where the context could not be made current. That of a lost GPU took all with it.
#define CUDA_CALL_END(g, function, ...)                                  \
  do {                                                                   \
    cuda_gpu_t* gpu_called = (g);                                        \
    if (atomic_load(&gpu_called->lost)) break;                           \
    assay_status_t outside = cuda_enter(gpu_called);                     \
    const cuda_result_t result = gpu_called->api->function(__VA_ARGS__); \
    if (!outside) cuda_leave(gpu_called);                                \
    if (cuda_is_fatal(result)) atomic_store(&gpu_called->lost, true);    \
    assay_status_free(outside);                                          \
  } while (0)

#endif  // ASSAY_BACKENDS_CUDA_DRIVER_INTERNAL_H_
