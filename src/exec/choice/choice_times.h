// Times of a choice: looked up, measured, and which kernels of a library may have one.
//
// Where bits matter, a library's kernels (assay_tactic_t.verify) are run beside one of ours on the
// same numbers before they are timed. Those that give other bits are left out, and the timings keep
// both: a plan, and a later build with the same cache, need not look again.
#ifndef ASSAY_EXEC_CHOICE_CHOICE_TIMES_H_
#define ASSAY_EXEC_CHOICE_CHOICE_TIMES_H_

#include "exec/choice/ways.h"

// Whether the timings know a way in this layer: how long it takes, or (*out_differs) that its bits
// are others.
bool assay_choice_knows(const assay_choice_t* c, const assay_way_t* w, const char* signature,
                        double* out_microseconds, bool* out_differs);

// Measures n kernels that compete, and finds the fastest. Those that are left out are destroyed,
// and NULL then; where one is left, it is not timed, and where none is, kernels[*out_fastest] is
// NULL.
assay_status_t assay_choice_time(assay_choice_t* c, const assay_sized_layer_t* l,
                                 const char* signature, assay_kernel_t** kernels,
                                 assay_candidate_t* candidates, int n,
                                 int* out_fastest) ASSAY_MUST_USE;

#endif  // ASSAY_EXEC_CHOICE_CHOICE_TIMES_H_
