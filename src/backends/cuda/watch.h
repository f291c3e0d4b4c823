// Integers of a run (indices, lengths) that the host looks at as well: where one is not valid, the
// run fails as on the CPU, and kernels go on as if it were.
//
// They are fetched in the queue's order, and looked at when that has been waited for: a call of the
// host within the queue would hold up what comes after it by some 40 us. Only where a run follows
// that was not waited for is there such a call, before they are fetched again.
#ifndef ASSAY_BACKENDS_CUDA_WATCH_H_
#define ASSAY_BACKENDS_CUDA_WATCH_H_

#include "exec/device.h"

typedef struct cuda_watch_place cuda_watch_place_t;

typedef struct cuda_watch {
  // Possibly in a thread of the driver's: it may not call the driver.
  assay_status_t (*look)(const void* user, const void* integers);
  const void* user;  // outlives it
  cuda_watch_place_t* places;
  size_t bytes;  // of the integers that were fetched last
} cuda_watch_t;

// Fetches so many bytes and has them looked at.
assay_status_t cuda_watch_enqueue(cuda_watch_t* w, assay_queue_t* q, assay_device_ptr_t integers,
                                  size_t bytes) ASSAY_MUST_USE;
void cuda_watch_deinit(cuda_watch_t* w);

#endif  // ASSAY_BACKENDS_CUDA_WATCH_H_
