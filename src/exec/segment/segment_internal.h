// What the two halves of making a segment share: the survey, which tells what layers are in it,
// makes their kernels and assigns layouts, and the laying out of moves and memory.
#ifndef ASSAY_EXEC_SEGMENT_SEGMENT_INTERNAL_H_
#define ASSAY_EXEC_SEGMENT_SEGMENT_INTERNAL_H_

#include "eval/evaluator.h"
#include "exec/segment/segment.h"

// The kernels that could run a layer. Option 0 is the one that layers one behind the other would
// take.
typedef struct surveyed {
  struct {
    assay_kernel_t* kernel;
    assay_candidate_t candidates[ASSAY_MAX_CANDIDATES];
    int n_candidates;
  } options[ASSAY_LAYOUT_OPTIONS];
  assay_layout_told_t told[ASSAY_LAYOUT_OPTIONS];
  int n, chosen;   // n 0: the emulated engine runs it, or nothing does
  int in_problem;  // its layer there
} surveyed_t;

typedef struct builder {
  const assay_setting_t* in;
  assay_segment_t* s;
  int span;                  // the first layer of the kernel span
  assay_evaluator_t* truth;  // for contents that follow from sizes; NULL: not needed yet
  surveyed_t* layers;        // from the segment's first one on
  // By value id: the layouts in which layers one behind the other would have it, as bits; its value
  // in the problem, -1.
  int *lies, *in_problem;
  assay_layout_problem_t problem;
} builder_t;

// All layers: sets the segment's end, its places, the steps that are known, and b->layers.
assay_status_t segment_survey(builder_t* b);
void segment_survey_end(builder_t* b);
// Behind it: the row pipelines (segment_pipelines.c).
assay_status_t segment_find_pipelines(builder_t* b);

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
