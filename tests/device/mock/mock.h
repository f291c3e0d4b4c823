// A device for tests: memory at addresses that the host cannot read, a thread for each queue, and
// captures. It is a backend like any other ("mock"), in test builds only: its row is in
// exec/targets.inc beside this file.
//
// What it checks, and answers with a failure of the queue:
//   - kernels, copies and fills stay within one allocation that is there when they are done;
//   - nothing is waited for, allocated or copied from or to the host in a capture.
// What it does so that mistakes show: memory is full of NaN when it is allocated and when it was
// freed; each queue pauses now and then, by chance; host memory is read and written in the queue's
// thread only, so that address sanitizer sees what was freed too early, and thread sanitizer what
// was not waited for.
#ifndef TESTS_DEVICE_MOCK_MOCK_H_
#define TESTS_DEVICE_MOCK_MOCK_H_

#include "exec/backend.h"
#include "exec/device.h"

enum { MOCK_ALIGNMENT = 256 };  // that kernels insist on

extern const assay_device_driver_t mock_driver;

typedef enum mock_fault {
  MOCK_NO_FAULT = 0,
  MOCK_FAULT_ALLOC,     // the device has no memory left: told at once
  MOCK_FAULT_QUEUE,     // no queue can be made
  MOCK_FAULT_UPLOAD,    // fails in the queue
  MOCK_FAULT_DOWNLOAD,  // fails in the queue
  MOCK_FAULT_KERNEL,    // fails in the queue
  MOCK_FAULT_CAPTURE,   // fails as it ends
  MOCK_FAULT_LAUNCH,    // fails in the queue
  MOCK_FAULT_LOST,      // a kernel, and from then on everything, until the device is opened anew
} mock_fault_t;

// The nth of its kind from now on fails; 0: none. Behind it none does, but for LOST.
void mock_fail(mock_fault_t what, int nth);
// Pauses of up to so many microseconds, by chance of this seed; 0: none. Before queues are made.
void mock_delay(unsigned seed, int microseconds);
// Whether captures are there; else functions of the driver say UNSUPPORTED.
void mock_captures(bool on);
// Bytes of memory that all allocations of a device may have; 0: what the host has.
void mock_memory(size_t bytes);
// Allocations, queues, events and captures that are there.
int64_t mock_live(void);

// Puts a function into a queue: work(user) is called in its thread, or, in a capture, in each
// launch; forget(user) when nothing can call it any more.
typedef struct mock_work {
  assay_status_t (*work)(void* user);
  void (*forget)(void* user);
  void* user;
} mock_work_t;
assay_status_t mock_enqueue(assay_queue_t* q, const mock_work_t* take_work);
// For work, in a queue's thread: where so many bytes of the device lie. Errors: DEVICE they do not.
assay_status_t mock_at(assay_device_ptr_t p, size_t bytes, void** out);

// ---- memory without a queue, for tests; nothing of the device may be under way ------------------

assay_status_t mock_alloc(size_t bytes, assay_device_ptr_t* out);
void mock_free(assay_device_ptr_t p);
assay_status_t mock_write(assay_device_ptr_t p, const void* from, size_t bytes);
assay_status_t mock_read(assay_device_ptr_t p, void* to, size_t bytes);

// ---- the backend --------------------------------------------------------------------------------

// Kernels: each layer as the emulated engine computes it (the default: it takes any layer), or as
// the CPU's kernels do, where one takes the layer with its weights as operands.
void mock_prefer_cpu_kernels(bool on);

// One layer in `every` (by its name; 0: none) is not for the CPU's kernels; declined: nor for any
// other, so that it is emulated on the host.
void mock_decline(unsigned every, bool declined);

// Products have variants that keep their sums in different formats, and predictions by which
// another one would be the fastest for few rows than for many.
void mock_offer_tiles(bool on);

// How often the code of a kernel was compiled: once in a process, and never for a plan that has it.
int mock_compiled(void);

extern const assay_backend_t assay_backend_mock;

#endif  // TESTS_DEVICE_MOCK_MOCK_H_
