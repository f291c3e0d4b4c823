// What the two halves of making a stretch share: the survey, which tells what layers are in it,
// makes their kernels and assigns layouts, and the laying out of moves and memory.
#ifndef ASSAY_EXEC_SEGMENT_STRETCH_INTERNAL_H_
#define ASSAY_EXEC_SEGMENT_STRETCH_INTERNAL_H_

#include "eval/machine.h"
#include "exec/segment/stretch.h"

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
  assay_stretch_t* s;
  int segment;             // the first layer of the segment
  assay_machine_t* truth;  // for contents that follow from sizes; NULL: not needed yet
  surveyed_t* layers;      // from the stretch's first one on
  // By value id: the layouts in which layers one behind the other would have it, as bits; its value
  // in the problem, -1.
  int *lies, *in_problem;
  assay_layout_problem_t problem;
} builder_t;

// All layers: sets the stretch's end, its places, the steps that are known, and b->layers.
assay_status_t stretch_survey(builder_t* b);
void stretch_survey_end(builder_t* b);
// Behind it: the row pipelines (stretch_pipelines.c).
assay_status_t stretch_find_pipelines(builder_t* b);

// The place of a value that a layer reads; *out NULL: nothing is known of it.
assay_status_t stretch_place_of(builder_t* b, const assay_value_t* v, assay_place_t** out);
// Layer i as it would be described to tactics; *out_described false: not for them.
assay_status_t stretch_describe(builder_t* b, int i, assay_sized_layer_t* out, bool* out_described);
// Whether all inputs can be had in the forms that the kernel reads.
assay_status_t stretch_check_inputs(builder_t* b, const assay_sized_layer_t* d,
                                    const assay_kernel_t* kernel, bool* out_ok);
// A form as a value can have it: some shapes have one order in all layouts.
assay_form_t stretch_form_of(const assay_place_t* p, assay_form_t form);

#endif  // ASSAY_EXEC_SEGMENT_STRETCH_INTERNAL_H_
