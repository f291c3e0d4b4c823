// A stretch of a plan: consecutive layers whose sizes are all known when the first one starts, with
// everything prepared for a run: kernels, the forms in which each reads its operands, and where in
// memory each value lies.
//
// A model whose sizes follow from those of its inputs is one stretch. It ends early behind a layer
// that makes a value whose sizes only its contents tell (NonZero); the next one is prepared when
// that has run.
#ifndef ASSAY_BACKENDS_CPU_STRETCH_H_
#define ASSAY_BACKENDS_CPU_STRETCH_H_

#include "backends/cpu/choice.h"
#include "backends/cpu/describe.h"
#include "backends/cpu/lifetimes.h"
#include "backends/cpu/move.h"
#include "backends/cpu/values.h"
#include "backends/memory_plan.h"

typedef enum cpu_slot_kind {
  CPU_SLOT_ARENA = 0,
  CPU_SLOT_HELD,      // the tensor of a value of the run
  CPU_SLOT_CONSTANT,  // memory of the stretch
  CPU_SLOT_OUTPUT,    // a tensor that the caller gets
} cpu_slot_kind_t;

// A piece of memory that kernels read and write.
typedef struct cpu_slot {
  cpu_slot_kind_t kind;
  assay_block_t block;         // ARENA: in steps of the plan
  const assay_value_t* value;  // HELD, OUTPUT
  const void* constant;        // CONSTANT: in the store, or of
  assay_tensor_t* held;
} cpu_slot_t;

typedef struct cpu_stretch_move {
  cpu_move_t move;
  int from, to;  // slots; from -1: the value that `to` holds is fetched from the run
} cpu_stretch_move_t;

typedef struct cpu_step {
  cpu_kernel_t* kernel;  // NULL: the emulated engine runs the layer
  bool known;            // nothing runs: contents of the outputs follow from sizes
  int in[CPU_MAX_OPERANDS], out[CPU_MAX_OPERANDS];  // slots; -1: none
  int n_in, n_out;
  cpu_candidate_t candidates[CPU_MAX_CANDIDATES];
  int n_candidates;
  size_t moves, outputs, end;  // [moves, outputs) come before the kernel, [outputs, end) behind it
} cpu_step_t;

// Where a value lies as it was made.
typedef struct cpu_place {
  const assay_value_t* value;
  int rank;
  int64_t dims[CPU_MAX_RANK];
  int64_t size;
  assay_tensor_t* known;  // its contents, where they follow from sizes
  struct {
    cpu_form_t form;
    assay_type_t through;
    int slot;
  } forms[4];  // as made first
  int n_forms;
} cpu_place_t;

typedef struct cpu_stretch {
  int first, end;     // layers
  cpu_sizes_t sizes;  // those it was prepared for, and
  size_t* key;        // places of values that were held then, in these shapes
  size_t n_key, cap_key;
  cpu_place_t* places;
  size_t n_places, cap_places;
  int* place_of;  // by value id; -1
  cpu_slot_t* slots;
  size_t n_slots, cap_slots;
  cpu_stretch_move_t* moves;
  size_t n_moves, cap_moves;
  cpu_step_t* steps;  // [end - first]
  size_t arena_bytes, scratch_bytes;
  uint64_t used;
} cpu_stretch_t;

// What a stretch is prepared from. Values are those of the run, by id.
typedef struct cpu_setting {
  const assay_layers_t* layers;
  const cpu_lifetimes_t* lifetimes;
  const cpu_sizes_t* sizes;
  cpu_value_t* values;
  cpu_shared_t* shared;
} cpu_setting_t;

assay_status_t cpu_stretch_create(const cpu_setting_t* s, int first, cpu_stretch_t** out);
void cpu_stretch_destroy(cpu_stretch_t* s);  // NULL is allowed
// Whether it starts at this layer and is for what the run holds now.
bool cpu_stretch_fits(const cpu_stretch_t* s, int first, const cpu_setting_t* setting);
// The place of a value; NULL: not in this stretch.
const cpu_place_t* cpu_stretch_place(const cpu_stretch_t* s, const assay_value_t* v);

#endif  // ASSAY_BACKENDS_CPU_STRETCH_H_
