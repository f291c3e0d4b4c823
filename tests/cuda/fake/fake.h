// What a test says to the CUDA platform without a GPU, by its function `fake_state` (README.md).
#ifndef TESTS_CUDA_FAKE_FAKE_H_
#define TESTS_CUDA_FAKE_FAKE_H_

#include <stdbool.h>

// Nanoseconds of a clock that is told, not measured, so that tests of times need no luck: what it
// takes the host to launch a kernel or a graph, and to have a library's function called; and what
// these take in the stream. No kernel time: events are measured.
typedef struct fake_times {
  int launching, calling, kernel, call;
} fake_times_t;

typedef struct fake_state {
  int version;         // of the driver: 1000 * major + 10 * minor
  int devices;         // that are there
  int capability;      // 10 * major + minor
  bool no_pools;       // a device without memory pools
  char without[64];    // a function that the driver does not have
  int fail_after;      // the nth call from now on gives `result`; 0: none
  int result;          // a number of cuda.h
  char failed[64];     // the function that did
  int breaks;          // what a kernel in the queue will give; 0: nothing
  int broken;          // what every call gives since then
  int calls;           // so far
  int live;            // contexts, allocations, streams, events, graphs and modules that are there
  bool paused;         // streams begin nothing
  bool quiet;          // launches that fail are not told on stderr
  bool dry;            // kernels are NVIDIA's compiler's, and do nothing (ASSAY_FAKE_DRY)
  int launches;        // of kernels that were done
  fake_times_t times;  // as ASSAY_FAKE_TIMES, "LAUNCHING,CALLING,KERNEL,CALL", says at cuInit
  char message[1024];  // of the launch that failed first
} fake_state_t;

typedef fake_state_t* fake_state_fn_t(void);
// Frees what is there, as a process that ends does for a context that was lost.
typedef void fake_end_fn_t(void);

#endif  // TESTS_CUDA_FAKE_FAKE_H_
