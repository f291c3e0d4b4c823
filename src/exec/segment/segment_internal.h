// What the two halves of making a segment share: the survey, which tells what layers are in it,
// makes their kernels and assigns layouts, and the laying out of moves and memory.
#ifndef ASSAY_EXEC_SEGMENT_SEGMENT_INTERNAL_H_
#define ASSAY_EXEC_SEGMENT_SEGMENT_INTERNAL_H_

#include "eval/evaluator.h"
#include "exec/segment/implied.h"
#include "exec/segment/segment.h"

// The kernels that could run a layer. Option 0 is the one that layers one after the other would
// take.
typedef struct surveyed {
  struct {
    assay_kernel_t* kernel;
    assay_candidate_t candidates[ASSAY_MAX_CANDIDATES];
    int n_candidates;
  } options[ASSAY_LAYOUT_OPTIONS];
  assay_layout_report_t reports[ASSAY_LAYOUT_OPTIONS];
  int n, chosen;   // n 0: the emulated engine runs it, or nothing does
  int in_problem;  // its layer there
} surveyed_t;

typedef struct builder {
  const assay_setting_t* in;
  assay_segment_t* s;
  bool conflict;              // values cannot grow in place here: it is prepared without
  int span;                   // the first layer of the kernel span
  assay_sizes_t at_capacity;  // of growing dimensions, if the segment grows
  assay_sizes_t beyond;       // one more of each: sizes that differ there from those at hand grow
  surveyed_t* layers;         // from the segment's first one on
  // By value id: the layouts in which layers one after the other would have it, as bits; its value
  // in the problem, -1.
  int *lies, *in_problem;
  assay_layout_problem_t problem;
  assay_implied_t implied;
} builder_t;

// All layers: sets the segment's end, its places, the steps that are known, and b->layers.
assay_status_t segment_survey(builder_t* b);
void segment_survey_end(builder_t* b);
// The segment for the setting's sizes, with nothing in it, and the survey.
assay_status_t segment_begin(builder_t* b);
// All of it: that, row pipelines, slots and moves, places in memory (segment.c).
assay_status_t segment_build(builder_t* b);
// After the survey: the row pipelines (segment_pipelines.c).
assay_status_t segment_find_pipelines(builder_t* b);

static inline assay_step_t* segment_step_of(const builder_t* b, int i) {
  return &b->s->steps[i - b->s->first];
}
// In a launch of several layers that is no pair's: pairs are found last.
static inline bool segment_runs_with_others(const assay_step_t* s) {
  return s->joint || s->is_joined || s->siblings || s->is_sibling;
}

// Once layers are laid out: those that run two at a time; and in a rehearsal, of what is surveyed,
// all that may (segment_pairs.c).
assay_status_t segment_find_pairs(builder_t* b);
assay_status_t segment_rehearse_pairs(builder_t* b);

// Before those: layers that run in the launch of a later one (segment_joints.c). At a layer that a
// kernel was surveyed for; NULL: none.
assay_status_t segment_find_joints(builder_t* b);
assay_status_t segment_rehearse_joints(builder_t* b);
assay_kernel_t* segment_kernel_of(const builder_t* b, int i);

// Between those: layers that read the same and run in one launch (segment_siblings.c).
assay_status_t segment_find_siblings(builder_t* b);
assay_status_t segment_rehearse_siblings(builder_t* b);

// A place for a value, which has none yet.
assay_status_t segment_add_place(builder_t* b, const assay_value_t* v, int rank,
                                 const int64_t* dims, assay_place_t** out);
// Whether a layer needs not run, as its outputs follow from sizes (segment_known.c); then they have
// places. again: it was so in other sizes, and places of what it reads say whether they changed.
assay_status_t segment_know_layer(builder_t* b, const assay_layer_t* l, bool again,
                                  bool* out_known);
// Values that grow in place (segment_append.c). The room of a layer's operands is put into its
// description; notes a conflict where a kernel, or the lack of one, cannot do with it, or where the
// slots that its step was given are not those of the value.
void segment_describe_rooms(const builder_t* b, assay_sized_layer_t* d);
bool segment_keeps_rooms(const builder_t* b, const assay_sized_layer_t* d,
                         const assay_kernel_t* kernel);
void segment_check_emulated(builder_t* b, int i);
void segment_check_slots(builder_t* b, const assay_sized_layer_t* d, const assay_step_t* step);
// Whether values have room for the sizes at hand.
bool segment_has_capacity(const builder_t* b);
// What a kernel's step is laid out for.
void segment_read_forms(const assay_kernel_t* k, assay_step_forms_t* out);
// Gives the segment the setting's sizes (segment_resize.c); at_capacity: those, whatever the run
// holds. *out_ok false: it cannot have them, and is good for nothing until it is given others.
assay_status_t segment_give_sizes(builder_t* b, bool at_capacity, bool* out_ok);
// The place of a value that a layer reads; *out NULL: nothing is known of it.
assay_status_t segment_place_of(builder_t* b, const assay_value_t* v, assay_place_t** out);
// Layer i as it would be described to tactics; *out_described false: not for them.
assay_status_t segment_describe(builder_t* b, int i, assay_sized_layer_t* out, bool* out_described);
// Whether all inputs can be had in the forms that the kernel reads.
assay_status_t segment_check_inputs(builder_t* b, const assay_sized_layer_t* d,
                                    const assay_kernel_t* kernel, bool* out_ok);
// A form as a value can have it: some shapes have one order in all layouts.
assay_storage_t segment_form_of(const assay_place_t* p, assay_storage_t form);

#endif  // ASSAY_EXEC_SEGMENT_SEGMENT_INTERNAL_H_
