// Devices: accelerators with memory of their own, queues that work behind the caller's back, and
// captures of what was put into a queue.
//
// A driver is one file with one row (assay_device_driver_t). What its functions are to CUDA stands
// beside each (docs/adr/0009-devices.md). Kernels are started by functions of the driver's own,
// which the backend's kernels call (assay_kernel_t, `enqueue`); everything else that the runner
// does to a device goes through this row.
//
// Whatever takes a queue is asynchronous: it returns when the work is noted, and the work is done
// after all that was put into this queue before. So it may fail later. Then
//   - what is in the queue after it is not done, and neither is what is put there from then on,
//     which is not a failure of its own;
//   - queue_wait returns the failure, once, and tells at which mark the queue was; a device that is
//     still good then works on;
//   - host memory that the queue reads or writes stays the queue's until queue_wait or event_wait
//     has returned.
//
// Threads: functions of one queue are called by one thread at a time; those of different queues,
// and alloc and free, by any.
#ifndef ASSAY_EXEC_DEVICE_H_
#define ASSAY_EXEC_DEVICE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

// An address in a device's memory, never one of the host's; 0: none. CUDA: CUdeviceptr.
typedef uint64_t assay_device_ptr_t;

typedef struct assay_device_driver assay_device_driver_t;

// Drivers make these structs the first member of their own.
typedef struct assay_device {
  const assay_device_driver_t* driver;
  size_t alignment;  // of what alloc gives, and of operands that kernels read without a copy
} assay_device_t;
typedef struct assay_queue {
  assay_device_t* device;
} assay_queue_t;
typedef struct assay_event {
  assay_device_t* device;
} assay_event_t;
typedef struct assay_capture {
  assay_device_t* device;
} assay_capture_t;

struct assay_device_driver {
  const char* name;  // "cuda"

  // ---- devices: cuInit, cuDevicePrimaryCtxRetain; cuDevicePrimaryCtxRelease -------------------
  // Device `number` of the machine. Opened twice, it is the same memory. Errors: DEVICE there is
  // none, or it cannot be used: says why.
  assay_status_t (*open)(int number, assay_device_t** out);
  void (*close)(assay_device_t* d);  // after all of its queues, events, captures and memory
  // How many devices there are. Errors: DEVICE none can be used: says why. CUDA: cuDeviceGetCount.
  assay_status_t (*count)(int* out);
  // Whether device `number` can be opened, without opening it. Errors: as open.
  assay_status_t (*want)(int number);
  // What times depend on: model, multiprocessors, the driver's version. What compiled kernels and
  // packed weights need, which is less: a plan that was made for anything else is refused. And what
  // there is besides devices, such as a compiler, or what is missing; NULL: nothing.
  void (*describe)(assay_device_t* d, assay_str_t* out);
  assay_status_t (*describe_need)(int number, assay_str_t* out);
  void (*describe_libraries)(assay_str_t* out);
  // Bytes of memory: cuMemGetInfo.
  assay_status_t (*memory)(assay_device_t* d, size_t* out_free, size_t* out_total);

  // ---- queues: cuStreamCreate, cuStreamSynchronize --------------------------------------------
  assay_status_t (*queue_create)(assay_device_t* d, assay_queue_t** out);
  void (*queue_destroy)(assay_queue_t* q);  // waits
  // Waits until all is done. Errors: what failed; out_mark (may be NULL) is set to the mark that
  // the queue was at, -1 where the device does not tell.
  assay_status_t (*queue_wait)(assay_queue_t* q, int64_t* out_mark);
  // What other libraries of the process know the queue by: CUDA: its CUstream. NULL: they do not.
  uint64_t (*queue_handle)(assay_queue_t* q);
  // What follows belongs to this mark, for messages. CUDA: cuStreamWriteValue32 into pinned memory
  // outside of captures, nothing within. NULL: the device never tells.
  assay_status_t (*mark)(assay_queue_t* q, int64_t mark);

  // ---- memory: cuMemAllocAsync, cuMemFreeAsync, cuMemcpyAsync, cuMemsetD8Async ----------------
  // Memory for what comes after it in the queue; for other queues after an event. Never in a
  // capture. Errors: NO_MEMORY, told at once.
  assay_status_t (*alloc)(assay_queue_t* q, size_t bytes, assay_device_ptr_t* out);
  void (*free)(assay_queue_t* q, assay_device_ptr_t p);  // after what is in the queue; 0 allowed
  assay_status_t (*upload)(assay_queue_t* q, const void* from, assay_device_ptr_t to, size_t bytes);
  assay_status_t (*download)(assay_queue_t* q, assay_device_ptr_t from, void* to, size_t bytes);
  // Within the device, or from another one of its driver.
  assay_status_t (*copy)(assay_queue_t* q, assay_device_ptr_t from, assay_device_ptr_t to,
                         size_t bytes);
  assay_status_t (*fill)(assay_queue_t* q, assay_device_ptr_t p, uint8_t byte, size_t bytes);
  // Host memory that a device reads and writes fast: cuMemHostAlloc. Copies from and to any other
  // are right, too.
  assay_status_t (*host_alloc)(assay_device_t* d, size_t bytes, void** out);
  void (*host_free)(assay_device_t* d, void* p);  // NULL is allowed

  // ---- events: cuEventRecord, cuStreamWaitEvent, cuEventSynchronize, cuEventElapsedTime --------
  assay_status_t (*event_create)(assay_device_t* d, assay_event_t** out);
  void (*event_destroy)(assay_event_t* e);  // NULL is allowed
  // The event has come when the queue gets here. An event that was never recorded has come.
  assay_status_t (*event_record)(assay_event_t* e, assay_queue_t* q);
  // What follows in q waits for the event as it was recorded last.
  assay_status_t (*event_order)(assay_event_t* e, assay_queue_t* q);
  assay_status_t (*event_wait)(assay_event_t* e);  // in the caller
  // Between two that have come.
  assay_status_t (*event_elapsed)(assay_event_t* from, assay_event_t* to, double* out_microseconds);

  // ---- captures: cuStreamBeginCapture, cuGraphInstantiate, cuGraphLaunch -----------------------
  // All NULL: the device has none. Between begin and end nothing is done: kernels, copies within
  // the device and fills are noted, with their addresses, and every launch does them all. Waits,
  // alloc, free and copies from and to the host fail there. Queues that are ordered after this one
  // by events, and it after them, are part of it.
  assay_status_t (*capture_begin)(assay_queue_t* q);
  // Ends it also where it fails, as it does if anything within has.
  assay_status_t (*capture_end)(assay_queue_t* q, assay_capture_t** out);
  // Which of its launches is under way is no matter: they are in the queue's order.
  assay_status_t (*capture_launch)(assay_capture_t* c, assay_queue_t* q);
  void (*capture_destroy)(assay_capture_t* c);  // waits for launches; NULL is allowed
};

#endif  // ASSAY_EXEC_DEVICE_H_
