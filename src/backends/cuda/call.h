// Work of the host in a queue's order: functions that it calls, and memory of the host that it
// reads and writes on its way there. All of it may be captured.
#ifndef ASSAY_BACKENDS_CUDA_CALL_H_
#define ASSAY_BACKENDS_CUDA_CALL_H_

#include <stdbool.h>

#include "exec/device.h"

typedef struct cuda_call {
  // In a thread of the driver's: it may not call the driver. A failure is that of the queue, which
  // cuda's queue_wait returns; calls behind it are told that something before them has failed, and
  // that nobody will look at what they make.
  assay_status_t (*function)(void* user, bool failed);
  void* user;
  assay_queue_t* queue;  // set by cuda_queue_call
} cuda_call_t;

// The call is the queue's until it has been waited for, and that of a capture as long as it lives.
assay_status_t cuda_queue_call(assay_queue_t* q, cuda_call_t* call) ASSAY_MUST_USE;

// So many bytes of the host's memory that a GPU reads and writes fast: one piece for all that is
// put into the queue, each in its turn. It stays as long as the queue does; whoever asks for more
// gets another one. Never more in a capture than before it.
assay_status_t cuda_queue_staging(assay_queue_t* q, size_t bytes, void** out) ASSAY_MUST_USE;
// Copies from the device to there, and back.
assay_status_t cuda_queue_fetch(assay_queue_t* q, assay_device_ptr_t from, void* to,
                                size_t bytes) ASSAY_MUST_USE;
assay_status_t cuda_queue_send(assay_queue_t* q, const void* from, assay_device_ptr_t to,
                               size_t bytes) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_CALL_H_
