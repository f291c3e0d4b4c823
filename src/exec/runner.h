// What runs a plan's layers, for every backend with kernels: each layer by the kernel that was
// prepared for its sizes (segment.h), or, where there is none, by the emulated engine in the same
// formats. Where values lie while kernels run is the backend's (assay_runner_memory_t).
//
// What is prepared for given sizes is kept for the next run: the last ones used. Where dimensions
// grow, it is given their new sizes.
#ifndef ASSAY_EXEC_RUNNER_H_
#define ASSAY_EXEC_RUNNER_H_

#include "exec/segment/segment.h"

typedef struct assay_runner assay_runner_t;

typedef struct assay_bound_output {
  void* data;  // NULL: none
  size_t bytes;
} assay_bound_output_t;

// What a backend brings.
typedef struct assay_runner_memory {
  // Makes room for what a segment needs; it is `now` from here on.
  assay_status_t (*begin)(assay_runner_t* r, assay_segment_t* s);
  // Runs layer i, which has a kernel, or sees to it that it runs: after it graph outputs that it
  // makes are among the run's values. *ok false, and nothing is done: the run holds a tensor of
  // another shape than was predicted.
  assay_status_t (*layer)(assay_runner_t* r, size_t i, bool* ok);
  // A tensor of its own with what lies at a place that has been made.
  assay_status_t (*read)(assay_runner_t* r, const assay_place_t* p, assay_tensor_t** out);
  // Sees to it that what the run holds of a value can be read here and now. NULL: it always can.
  assay_status_t (*reach)(assay_runner_t* r, const assay_value_t* v);
} assay_runner_memory_t;

// What ran a layer: a kernel's tactic and name (assay_kernel_t); NULL: the emulated engine.
// rounding: how; NULL: as the emulated engine does.
typedef struct assay_runner_ran {
  const assay_tactic_t* tactic;
  const char* name;
  const assay_rounding_t* rounding;
} assay_runner_ran_t;

// The first member of a backend's state.
struct assay_runner {
  const assay_layers_t* layers;
  const assay_tap_t* tap;
  const assay_runner_memory_t* memory;
  void* emu;
  assay_setting_t setting;  // of segments
  assay_lifetimes_t lifetimes;
  assay_value_slot_t* values;  // by value id: what the run holds as tensors
  assay_runner_ran_t* ran;     // by layer
  assay_sizes_t sizes;         // bound so far in this run
  assay_segment_t** segments;  // kept
  size_t n_segments, cap_segments;
  assay_segment_t* now;         // the segment that runs; NULL: none has begun
  size_t layer;                 // that runs now
  bool emulate;                 // for the rest of this run: sizes were not what inference had said
  assay_tensor_t** outputs;     // by value id: tensors for graph outputs, used again when sole
  assay_bound_output_t* bound;  // by value id: where the caller wants graph outputs
  uint64_t clock;
  assay_growth_t* growth;  // what setting.growth is
  size_t cap_growth;
  size_t made;               // kernels of segments that are gone
  assay_append_t** appends;  // what setting.appends is
  size_t cap_appends;
  bool appending;  // this run does so in place
};

// Fills in a zeroed runner; setting: target, user, store and resident. What it is given outlives
// it. On failure the caller deinits it.
assay_status_t assay_runner_init(assay_runner_t* r, const assay_layers_t* layers,
                                 const assay_tap_t* tap, const assay_runner_memory_t* memory,
                                 const assay_setting_t* setting) ASSAY_MUST_USE;
void assay_runner_deinit(assay_runner_t* r);

// ---- what backends call -------------------------------------------------------------------------

// Puts a tensor where the run holds the value, and binds sizes by its shape; one reference is
// taken.
assay_status_t assay_runner_put(assay_runner_t* r, const assay_value_t* v,
                                assay_tensor_t* take_tensor) ASSAY_MUST_USE;
// What the run holds of a value, in the form that a move of slot HELD reads: at m->from, packed;
// *out NULL: it has another shape than was predicted. Borrowed.
assay_status_t assay_runner_fetch(assay_runner_t* r, const assay_segment_reformat_t* m,
                                  assay_tensor_t** out) ASSAY_MUST_USE;
// The tensor that a graph output of `now` is written to: where the caller wants it, or that of the
// last run, if the caller let go of it. Borrowed.
assay_status_t assay_runner_output(assay_runner_t* r, const assay_value_t* v,
                                   assay_tensor_t** out) ASSAY_MUST_USE;
// What was prepared for layer i last; NULL: nothing. The accuracy gate that a tactic asked for in a
// step; NULL: none.
const assay_step_t* assay_runner_last_step(const assay_runner_t* r, size_t i);
const assay_accuracy_gate_t* assay_step_accuracy_gate(const assay_step_t* s,
                                                      const assay_tactic_t* tactic);
static inline const assay_step_t* assay_runner_step_of(const assay_runner_t* r, size_t i) {
  return &r->now->steps[i - (size_t)r->now->first];
}

// ---- what grows (runner_growth.c) ---------------------------------------------------------------

void assay_runner_drop_segment(assay_runner_t* r, size_t i);
// A segment of other sizes is given those at hand; *out NULL: none can be.
assay_status_t assay_runner_grow_segment(assay_runner_t* r, int first,
                                         assay_segment_t** out) ASSAY_MUST_USE;
// The value that grows in place of which v is what a run reads or makes; NULL: none.
assay_append_t* assay_runner_append_of(const assay_runner_t* r, const assay_value_t* v);
// Values that grow in place lie as the layers of this run want them.
void assay_runner_settle(assay_runner_t* r, bool in_place);

// ---- the rows of backend.h that are the same for all --------------------------------------------

assay_status_t assay_runner_set(void* runner, const assay_value_t* v, assay_tensor_t* t);
assay_tensor_t* assay_runner_get(void* runner, const assay_value_t* v);
void assay_runner_bind(void* runner, const assay_value_t* v, void* data, size_t bytes);
assay_status_t assay_runner_grow(void* runner, const assay_growth_t* growth);
size_t assay_runner_made(void* runner);
assay_status_t assay_runner_append(void* runner, assay_append_t* a, bool on);
assay_status_t assay_runner_packed(void* runner, const assay_value_t* v, assay_tensor_t** out);
assay_status_t assay_runner_step(void* runner, size_t i);
void assay_runner_reset(void* runner);
const char* assay_runner_tactic(void* runner, size_t i);
assay_format_t assay_runner_executed(void* runner, size_t i);
size_t assay_runner_scratch(void* runner, size_t i);
void assay_runner_explain(void* runner, size_t i, assay_str_t* out);
const assay_accuracy_gate_t* assay_runner_accuracy_gate(void* runner, size_t i);
void assay_runner_rounding(void* runner, const assay_layer_t* layer, size_t n_in,
                           assay_tensor_t* const* in, assay_rounding_t* out);

#endif  // ASSAY_EXEC_RUNNER_H_
