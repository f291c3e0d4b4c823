// Plans on a device: what is the same for all backends with memory of their own.
//
// The arena lies on the device, and constants are put there once. At the first layer of a kernel
// span (segment.h) what it reads is copied in, all of its layers are put into the context's queue,
// and what the caller gets is copied out after them; layers that follow find that they have run. A
// layer that is emulated waits for what it reads. A run of the same sizes and addresses is captured
// the second time, and from then on launched as a whole.
//
// A backend on a device is a file with a driver, a kind, tactics, and one row:
//
//   static assay_status_t share(...) { return assay_device_share(&kind, layers, options, out); }
//   static assay_status_t open(...) { return assay_device_open(&kind, layers, shared, tap, out); }
//   static assay_status_t open_on(...) {
//     return assay_device_open_on(&kind, layers, device, tap, out);
//   }
//   const assay_backend_t assay_backend_x = {.name = "x", .driver = &driver, .share = share,
//                                            .open = open, .open_on = open_on, ASSAY_DEVICE_ROWS};
#ifndef ASSAY_EXEC_DEVICE_DEVICE_RUN_H_
#define ASSAY_EXEC_DEVICE_DEVICE_RUN_H_

#include "exec/choice/choice.h"
#include "exec/device/resident.h"
#include "exec/device/run_clock.h"
#include "exec/runner.h"

// What a backend brings besides its driver.
typedef struct assay_device_kind {
  const assay_device_driver_t* driver;
  // Of those that take a layer the fastest runs it, as on the CPU (choice.h); they are timed by
  // events. `own` of the layers that they see is what share made.
  const assay_tactic_t* const* tactics;
  size_t n_tactics;
  // What all contexts of an engine share besides constants: modules of compiled kernels, handles of
  // libraries. store: what a plan file keeps, such as compiled kernels; it outlives what is made,
  // and is filled from a plan file only after this. NULL: nothing; own is NULL.
  assay_status_t (*share)(assay_device_t* d, const assay_layers_t* layers,
                          const assay_backend_options_t* options, assay_weights_t* store,
                          void** out_own);
  void (*unshare)(void* own);
  // From the first to the second, kernels are made that are never run: what they need of code can
  // be had all at once at the end, and faster. Both NULL: it is had where a kernel is made.
  void (*rehearse)(void* own);
  assay_status_t (*rehearsed)(void* own);
  // As in assay_target_t.
  bool (*takes)(void* own, const assay_layer_t* l);
  bool (*can_move)(void* own, const assay_reformat_t* m);
  size_t (*move_scratch)(void* own, const assay_reformat_t* m);
  // Puts a move into a queue. Other layouts of one type have to be possible without scratch memory.
  assay_status_t (*move)(void* own, const assay_reformat_t* m, assay_queue_t* q,
                         assay_device_ptr_t from, assay_device_ptr_t to,
                         assay_device_ptr_t scratch);
} assay_device_kind_t;

assay_status_t assay_device_share(const assay_device_kind_t* kind, const assay_layers_t* layers,
                                  const assay_backend_options_t* options, void** out_shared);
void assay_device_unshare(void* shared);
assay_status_t assay_device_saved(void* shared, size_t i, const char** out_key,
                                  const void** out_data, size_t* out_bytes);
assay_status_t assay_device_restore(void* shared, const char* key, const void* data, size_t bytes);
assay_status_t assay_device_timings(void* shared, assay_str_t* out, bool* out_measured);
void assay_device_freeze(void* shared);

assay_status_t assay_device_open(const assay_device_kind_t* kind, const assay_layers_t* layers,
                                 void* shared, const assay_tap_t* tap, void** out_state);
assay_status_t assay_device_open_on(const assay_device_kind_t* kind, const assay_layers_t* layers,
                                    int device, const assay_tap_t* tap, void** out_state);
void assay_device_close(void* state);
assay_status_t assay_device_step(void* state, size_t i);
void assay_device_reset(void* state);
size_t assay_device_planned(void* state);
void assay_device_stepwise(void* state, bool on);
void assay_device_timed(void* state, bool on);
assay_status_t assay_device_times(void* state, assay_run_times_t* out);
assay_status_t assay_device_set(void* state, const assay_value_t* v, const assay_device_view_t* at);
assay_status_t assay_device_bind(void* state, const assay_value_t* v, assay_device_ptr_t at,
                                 size_t bytes);
uint64_t assay_device_stream(void* state);
assay_status_t assay_device_deliver(void* state, const assay_value_t* v, int* out_rank,
                                    int64_t* out_dims);

// ---- for tests and reports ----------------------------------------------------------------------

typedef struct assay_device_counts {
  size_t captures, launches;  // made; and launched
  size_t spans;               // put into the queue layer by layer
  size_t uploads, downloads;
} assay_device_counts_t;
assay_device_counts_t assay_device_counts(const void* state);

#define ASSAY_DEVICE_ROWS                                                                        \
  .unshare = assay_device_unshare, .saved = assay_device_saved, .restore = assay_device_restore, \
  .timings = assay_device_timings, .freeze = assay_device_freeze, .close = assay_device_close,   \
  .set = assay_runner_set, .get = assay_runner_get, .bind = assay_runner_bind,                   \
  .packed = assay_runner_packed, .step = assay_device_step, .reset = assay_device_reset,         \
  .tactic = assay_runner_tactic, .executed = assay_runner_executed,                              \
  .explain = assay_runner_explain, .planned = assay_device_planned,                              \
  .rounding = assay_runner_rounding, .stepwise = assay_device_stepwise,                          \
  .timed = assay_device_timed, .times = assay_device_times, .set_on_device = assay_device_set,   \
  .bind_on_device = assay_device_bind, .stream = assay_device_stream,                            \
  .deliver = assay_device_deliver

#endif  // ASSAY_EXEC_DEVICE_DEVICE_RUN_H_
