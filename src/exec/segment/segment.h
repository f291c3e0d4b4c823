// A segment of a plan: consecutive layers whose sizes are all known when the first one starts, with
// everything prepared for a run: kernels, the forms in which each reads its operands, and where in
// memory each value lies.
//
// A model whose sizes follow from those of its inputs is one segment. It ends early after a layer
// that makes a value whose sizes only its contents tell (NonZero); the next one is prepared when
// that has run.
//
// Where dimensions grow from run to run, a segment is prepared once: memory is planned for their
// capacity, and before each run kernels are given the sizes at hand
// (docs/adr/0022-growing-extents.md).
//
// It is prepared for a target: the host, whose kernels read what the run holds where it lies, or a
// device, into whose memory that is copied first. Layers that have no kernel are emulated, on the
// host; those between two of them are a *kernel span*, which a device can be given as a whole.
#ifndef ASSAY_EXEC_SEGMENT_SEGMENT_H_
#define ASSAY_EXEC_SEGMENT_SEGMENT_H_

#include "exec/append.h"
#include "exec/choice/describe.h"
#include "exec/segment/layouts.h"
#include "exec/segment/lifetimes.h"
#include "exec/segment/memory_plan.h"
#include "exec/segment/reformat.h"
#include "exec/segment/row_pipeline.h"
#include "exec/segment/value_slot.h"

typedef enum assay_slot_kind {
  ASSAY_SLOT_ARENA = 0,
  ASSAY_SLOT_VALUE,     // the tensor of a value of the run; a device: its copy in the arena
  ASSAY_SLOT_CONSTANT,  // memory of the segment
  ASSAY_SLOT_OUTPUT,    // a tensor that the caller gets; a device: what is copied there
} assay_slot_kind_t;

// A piece of memory that kernels read and write.
typedef struct assay_slot {
  assay_slot_kind_t kind;
  assay_block_t block;         // in the arena, in steps of the plan
  const assay_value_t* value;  // HELD, OUTPUT
  uint64_t constant;           // CONSTANT: its address, the host's or the device's; 0: not yet
  assay_tensor_t* held;        // CONSTANT: the elements it is made of; HELD: what is copied there
  bool passes;                 // ARENA: handed on within a row pipeline; it is nowhere as a whole
  int stays;                   // no layer before this one may write over it
} assay_slot_t;

typedef struct assay_segment_reformat {
  assay_reformat_t move;
  int from, to;  // slots; from -1: the value that `to` holds is fetched from the run
} assay_segment_reformat_t;

// A layout in which a layer could work.
typedef struct assay_layout_report {
  bool followed;          // that of its inputs, whatever it is
  assay_layout_t layout;  // else this one
  double microseconds;    // of the kernel
  bool measured;          // else by bytes
  double reorders;        // around it, while the other layers are as they are
} assay_layout_report_t;

// What slots and moves of a layer follow from.
typedef struct assay_step_forms {
  assay_storage_t in[ASSAY_KERNEL_OPERANDS], out[ASSAY_KERNEL_OPERANDS];
  int in_place;
  bool views;  // the kernel only gives its input another shape
} assay_step_forms_t;

typedef struct assay_step {
  assay_kernel_t* kernel;    // NULL: the emulated engine runs the layer
  assay_step_forms_t forms;  // of the kernel that it was laid out for
  bool known;                // nothing runs: contents of the outputs follow from sizes
  int in[ASSAY_KERNEL_OPERANDS], out[ASSAY_KERNEL_OPERANDS];  // slots; -1: none
  int n_in, n_out;
  assay_candidate_t candidates[ASSAY_MAX_CANDIDATES];
  int n_candidates;
  // Those that were assigned among; none: there was nothing to choose.
  assay_layout_report_t layouts[ASSAY_LAYOUT_OPTIONS];
  int n_layouts, layout;
  assay_accuracy_gates_t gates;
  size_t moves, outputs, end;  // [moves, outputs) come before the kernel, [outputs, end) after it
  int pipeline;                // 1 + its number; 0: it runs by itself
  // Runs this layer and a second one, the next that is no view, where both are put into a queue at
  // once; NULL: each its own.
  assay_kernel_t* pair;
  int second;
  // Runs this layer and others before it, which are run by no kernel of their own; NULL: none.
  assay_kernel_t* joint;
  int joins[ASSAY_JOINT_LAYERS], n_joins;  // this step first, as the kernel reads them
  bool is_joined;                          // it runs in the launch of a later step
  // Runs this layer and others after it, which read the same; NULL: none.
  assay_kernel_t* siblings;
  int with[ASSAY_SIBLINGS], n_with;  // this step first, as the kernel writes them
  bool is_sibling;                   // it runs in the launch of an earlier step
} assay_step_t;

// Where a value lies as it was made.
typedef struct assay_place {
  const assay_value_t* value;
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK];
  int64_t size;
  int64_t capacity;       // elements, where dimensions grow; else size
  bool grows;             // its sizes follow from growing dimensions
  bool changed;           // while the segment is given other sizes: its own, or what is known
  assay_tensor_t* known;  // its contents, where they follow from sizes
  struct {
    assay_storage_t form;
    assay_type_t through;
    int slot;
  } forms[4];  // as made first
  int n_forms;
} assay_place_t;

typedef struct assay_segment {
  int first, end;       // layers
  assay_sizes_t sizes;  // those it was prepared for, and
  bool apart;           // as its setting was
  size_t* key;          // places of values that were held then, in these shapes
  size_t n_key, cap_key;
  assay_place_t* places;
  size_t n_places, cap_places;
  int* place_of;  // by value id; -1
  assay_slot_t* slots;
  size_t n_slots, cap_slots;
  assay_segment_reformat_t* moves;
  size_t n_moves, cap_moves;
  assay_step_t* steps;  // [end - first]
  assay_pipeline_t* pipelines;
  size_t n_pipelines, cap_pipelines;
  size_t arena_bytes, scratch_bytes;
  uint64_t used;
  bool appends;                   // its kernels append to the setting's values in place
  bool grows;                     // it can be given other sizes of growing dimensions
  size_t made;                    // kernels, in all
  struct assay_evaluator* truth;  // for contents that follow from sizes; NULL: not needed yet
  // What whoever runs it keeps with it; dropped with the segment. NULL: nothing.
  void* kept;
  void (*drop)(void* kept);
} assay_segment_t;

// What segments are prepared for. All functions are called with the setting's user.
typedef struct assay_target {
  bool apart;  // its memory is not the host's
  // Whether kernels may compute in the layer's format and with its accumulator.
  bool (*takes)(void* user, const assay_layer_t* l);
  // Makes the kernel of a layer; *out NULL: none takes it. candidates: room for
  // ASSAY_MAX_CANDIDATES of those that were looked at.
  assay_status_t (*choose)(void* user, const assay_sized_layer_t* l, assay_kernel_t** out,
                           assay_candidate_t* candidates, int* n_candidates);
  // Before a segment is prepared its layers' kernels are chosen once for nothing, if `rehearse`
  // says so: that is faster where what kernels need takes long by one, and less by many. NULL:
  // never.
  bool (*rehearse)(void* user);
  assay_status_t (*rehearsed)(void* user);
  // Gives a kernel the sizes of the layer, if `choose` would make one of the same bits for them;
  // *out_ok false: it has to be made anew. NULL: kernels keep their sizes.
  assay_status_t (*resize)(void* user, const assay_sized_layer_t* l, assay_kernel_t* k,
                           bool* out_ok);
  bool (*can_move)(void* user, const assay_reformat_t* m);
  // How long a kernel and a move take; NAN: not known. NULL: never.
  assay_status_t (*cost)(void* user, const assay_sized_layer_t* l, assay_kernel_t* k,
                         double* out_microseconds);
  assay_status_t (*move_cost)(void* user, const assay_reformat_t* m, double* out_microseconds);
  size_t (*move_scratch)(void* user,
                         const assay_reformat_t* m);  // bytes that the move needs besides
  // Settles how a row pipeline of kernels will run; *out false: they run one by one, which is
  // faster. NULL: they always do.
  bool (*couple)(void* user, assay_kernel_t* const* kernels, assay_pipeline_t* pipeline);
  // The kernel that runs two layers in one launch; *out NULL: each runs by its own. NULL: they
  // always do.
  assay_status_t (*choose_pair)(void* user, const assay_layer_pair_t* p, assay_kernel_t** out);
  // Whether a layer may end a launch of several, and the kernel of one; *out NULL: there is none.
  // NULL: they never do.
  bool (*may_join)(void* user, const assay_layer_t* l);
  assay_status_t (*choose_joint)(void* user, assay_joint_layers_t* j, assay_kernel_t** out);
  // Whether two layers may run in one launch if they read the same, or one with some other; and the
  // kernel of several. NULL: they never do.
  bool (*are_siblings)(void* user, const assay_layer_t* a, const assay_layer_t* b);
  assay_status_t (*choose_siblings)(void* user, const assay_siblings_t* s, assay_kernel_t** out);
  // The address of a constant of the model, moved so, for all segments; from: where it lies on the
  // host.
  assay_status_t (*constant)(void* user, const assay_value_t* v, const assay_reformat_t* m,
                             const void* from, uint64_t* out);
} assay_target_t;

// What a segment is prepared from. Values are those of the run, by id.
typedef struct assay_setting {
  const assay_layers_t* layers;
  const assay_lifetimes_t* lifetimes;
  assay_sizes_t* sizes;  // of the run; the model is asked where they do not say enough
  assay_value_slot_t* values;
  assay_weights_t* store;
  struct assay_resident* resident;  // as in assay_sized_layer_t
  void* own;
  const assay_target_t* target;
  bool any_bits;     // layouts may change them
  bool apart;        // each layer runs by itself: there are no row pipelines, nor pairs
  size_t alignment;  // of what lies in the arena
  const assay_growth_t* growth;
  size_t n_growth;
  assay_append_t* const* appends;  // values that grow in place
  size_t n_appends;
  void* user;
} assay_setting_t;

assay_status_t assay_segment_create(const assay_setting_t* s, int first, assay_segment_t** out);
void assay_segment_destroy(assay_segment_t* s);  // NULL is allowed
// After the last layer of the kernel span that layer i is in: the segment's end, or a layer that
// is emulated.
int assay_segment_span_end(const assay_segment_t* s, int i);
// The row pipeline that layer i is in; NULL: none.
static inline const assay_pipeline_t* assay_segment_pipeline(const assay_segment_t* s, int i) {
  const int pipeline = s->steps[i - s->first].pipeline;
  return pipeline ? &s->pipelines[pipeline - 1] : NULL;
}
// Whether it starts at this layer and is for what the run holds now.
bool assay_segment_fits(const assay_segment_t* s, int first, const assay_setting_t* setting);
// Whether it starts at this layer and is for what the run holds now but for growing dimensions.
bool assay_segment_may_grow(const assay_segment_t* s, int first, const assay_setting_t* setting);
// Gives it the sizes that the run has now. *out_ok false: it cannot have them, and is to be
// destroyed.
assay_status_t assay_segment_resize(assay_segment_t* s, const assay_setting_t* setting,
                                    bool* out_ok);
// The place of a value; NULL: not in this segment.
const assay_place_t* assay_segment_place(const assay_segment_t* s, const assay_value_t* v);

#endif  // ASSAY_EXEC_SEGMENT_SEGMENT_H_
