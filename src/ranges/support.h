// Which nodes each backend runs, and which ones TensorRT's parser takes.
#ifndef ASSAY_RANGES_SUPPORT_H_
#define ASSAY_RANGES_SUPPORT_H_

#include "plan/plan.h"

typedef enum assay_support_level {
  ASSAY_SUPPORT_YES = 0,
  ASSAY_SUPPORT_SLOW,  // cpu: no kernel, the emulated engine runs it; TensorRT: with a restriction
                       // that holds
  ASSAY_SUPPORT_UNKNOWN,  // newer than the list
  ASSAY_SUPPORT_NO,
} assay_support_level_t;

typedef struct assay_node_support {
  const assay_node_t* node;
  assay_support_level_t emu, cpu, trt;
  const char* cpu_tactic;          // of the kernel; NULL: none
  char cpu_why[96], trt_why[160];  // "" where there is nothing to say
} assay_node_support_t;

typedef struct assay_support {
  assay_node_support_t* nodes;  // of all graphs, bodies included
  size_t n;
  size_t cpu_without, trt_without, trt_restricted, emu_without;
} assay_support_t;
void assay_support_deinit(assay_support_t* s);

// Node by node, as the plan has them: what fusion makes of them may be run by one kernel together.
assay_status_t assay_support_find(const assay_plan_t* plan, assay_support_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_RANGES_SUPPORT_H_
