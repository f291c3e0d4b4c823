// How long each unit takes in each format, and each cast between them.
//
// On the CPU: measured, layer by layer, with every tactic that the plan takes, in a plan of one
// format each. Of a device that is not here: the most of what its arithmetic and its memory take
// (roofline: S. Williams, A. Waterman, D. Patterson, CACM 2009), and a launch.
#ifndef ASSAY_TUNE_TIMES_H_
#define ASSAY_TUNE_TIMES_H_

#include "data/samples.h"
#include "plan/roofline.h"
#include "runtime/engine.h"
#include "tune/layout.h"

// What a unit does, whatever its format.
typedef struct assay_tune_work {
  double products, others;  // operations: in sums of products, all else
  double floats;            // float32 elements that it reads and writes, constants included
  double other_bytes;
  bool runs;  // it computes or moves something
} assay_tune_work_t;

typedef struct assay_tune_works {
  assay_tune_work_t* unit;
  double* elems;  // by value of the layout
} assay_tune_works_t;

// By evaluating the plan's model once.
assay_status_t assay_tune_works_measure(const assay_plan_t* plan, const assay_tune_layout_t* layout,
                                        assay_tensor_t* const* inputs, bool unquantized,
                                        assay_tune_works_t* out) ASSAY_MUST_USE;
void assay_tune_works_deinit(assay_tune_works_t* w);

// Fills the layout's problem: times and casts.
void assay_tune_times_roofline(const assay_device_roofline_t* device, const assay_format_t* formats,
                               const assay_tune_works_t* works, assay_tune_layout_t* layout);

typedef struct assay_tune_timing {
  const assay_backend_t* backend;
  assay_tensor_t* const* inputs;  // of a sample
  const char* cache;              // a file of timings, read and written; NULL: none
  double seconds;                 // to measure each plan
} assay_tune_timing_t;
// Times the layers of a plan whose values are in formats[format]; `units` is the plan that the
// layout is of. Takes the plan over. out_total: of a run as a whole, in seconds.
assay_status_t assay_tune_times_measure(const assay_tune_timing_t* t, const assay_plan_t* units,
                                        assay_plan_t* take_plan, size_t format,
                                        assay_tune_layout_t* layout,
                                        double* out_total) ASSAY_MUST_USE;
// Casts on this machine, by the speed of its memory.
assay_status_t assay_tune_times_casts(const assay_format_t* formats,
                                      const assay_tune_works_t* works,
                                      assay_tune_layout_t* layout) ASSAY_MUST_USE;

#endif  // ASSAY_TUNE_TIMES_H_
