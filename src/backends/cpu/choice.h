// Which tactic runs a layer.
#ifndef ASSAY_BACKENDS_CPU_CHOICE_H_
#define ASSAY_BACKENDS_CPU_CHOICE_H_

#include "backends/cpu/tactic.h"
#include "backends/cpu/timings.h"

// What contexts of a plan share.
typedef struct cpu_shared {
  assay_weights_t* store;
  cpu_timings_t* timings;
  char* sources;     // of tactics, with ',' between; NULL: all
  bool measure;      // kernels that compete are timed where the timings do not know them
  bool measured;     // that has been done: weights of kernels that lost are in the store
  assay_str_t text;  // of the timings, as it is saved
} cpu_shared_t;

typedef assay_candidate_t cpu_candidate_t;
#define CPU_MAX_CANDIDATES ASSAY_MAX_CANDIDATES

assay_status_t cpu_shared_create(const assay_backend_options_t* options,
                                 cpu_shared_t** out) ASSAY_MUST_USE;
void cpu_shared_destroy(cpu_shared_t* s);  // NULL is allowed

// Makes the kernel of a layer: where several tactics take it and their times are known or may be
// measured, the fastest; else the first of the table. *out NULL: none takes it. candidates: room
// for CPU_MAX_CANDIDATES of those that were looked at, in the table's order.
assay_status_t cpu_choose(cpu_shared_t* shared, const cpu_layer_t* l, cpu_kernel_t** out,
                          cpu_candidate_t* candidates, int* n_candidates) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CPU_CHOICE_H_
