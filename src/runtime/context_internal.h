// What a context holds (include/assay/context.h).
#ifndef ASSAY_RUNTIME_CONTEXT_INTERNAL_H_
#define ASSAY_RUNTIME_CONTEXT_INTERNAL_H_

#include <assay/context.h>
#include <pthread.h>

#include "base/cancel/cancel.h"
#include "exec/append.h"
#include "runtime/executor.h"

typedef struct context_input {
  const assay_value_t* value;
  assay_tensor_t* tensor;  // NULL: not bound; on a device: for its shape only
  assay_device_ptr_t at;   // on the device; 0: not there
} context_input_t;

typedef struct context_output {
  const assay_value_t* value;
  void* data;             // the caller's; NULL: not bound
  assay_device_ptr_t at;  // the caller's, on the device; 0: not there
  size_t bytes;
  bool direct;  // the executor was told where it is
  bool copied;
  assay_tensor_t* result;  // of the last run
  int rank;                // of the last run; -1: not known
  int64_t dims[ASSAY_MAX_RANK];
} context_output_t;

// A state: what output `output` is after a run, input `input` is in the next.
typedef struct context_state {
  size_t input, output;
  int axis;          // along which it grows; -1: none
  int64_t capacity;  // along it
  bool known;        // it has a value:
  int64_t dims[ASSAY_MAX_RANK];
  char*
      memory[2];  // what the next run reads, at `now`, and what it writes, if not there; NULL: none
  size_t bytes;   // of each
  int now;
  assay_append_t* append;  // grows in place where it can; NULL: never
} context_state_t;

typedef enum context_phase {
  CONTEXT_IDLE = 0,
  CONTEXT_RUNNING,  // in the caller's thread, or queued or running in the context's own
  CONTEXT_ENDED,    // a run that was started, and not waited for
} context_phase_t;

struct assay_context {
  assay_engine_t* engine;
  assay_executor_t* executor;
  assay_context_options_t options;
  assay_tap_t tap;
  context_input_t* inputs;
  context_output_t* outputs;
  size_t n_inputs, n_outputs, n_layers;
  context_state_t* states;
  size_t n_states, cap_states;
  int64_t *start_ns, *duration_ns;  // by layer
  assay_run_times_t times;          // of the last run
  bool reserving;                   // the tap is not called
  assay_cancel_t cancel;            // the run that is under way
  // Under the lock.
  pthread_mutex_t lock;
  pthread_cond_t changed;
  context_phase_t phase;
  assay_status_t ended_with;  // ENDED
  bool queued, stop;          // for the thread
  bool has_thread;
  pthread_t thread;
};

// Runs once; the caller has made the state RUNNING.
assay_status_t assay_context_run_now(assay_context_t* c) ASSAY_MUST_USE;
// Fails while a run is under way.
assay_status_t assay_context_check_idle(assay_context_t* c) ASSAY_MUST_USE;

// ---- states (context_states.c) ------------------------------------------------------------------

// Fails where an input (or an output) belongs to a state.
assay_status_t assay_context_check_free(const assay_context_t* c, bool input,
                                        size_t i) ASSAY_MUST_USE;
// Before a run: inputs and outputs of states get the memory of those.
assay_status_t assay_context_begin_states(assay_context_t* c) ASSAY_MUST_USE;
// The state that an output belongs to, if the last run appended to it in place; its shape goes to
// the output. NULL: none.
const context_state_t* assay_context_appended(const assay_context_t* c, size_t output);
// Whether what a run made of an output can be the next value of a state.
assay_status_t assay_context_check_made(const assay_context_t* c, size_t output,
                                        const assay_tensor_t* made) ASSAY_MUST_USE;
// After a run: what was made is what the next one reads. Errors: NO_MEMORY; no state is changed.
assay_status_t assay_context_advance_states(assay_context_t* c) ASSAY_MUST_USE;
// The value of a state, or of the output that it was made of: a copy.
assay_status_t assay_context_read_state(const assay_context_t* c, const context_state_t* s,
                                        assay_tensor_t** out) ASSAY_MUST_USE;
void assay_context_drop_states(assay_context_t* c);

// Drops what the last run has left.
void assay_context_drop_results(assay_context_t* c);

#endif  // ASSAY_RUNTIME_CONTEXT_INTERNAL_H_
