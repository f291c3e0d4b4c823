// Layouts chosen over the graph as a whole. This pass changes nothing in it: layouts depend on
// sizes and on the kernels of a machine, so backends do it as they prepare a run
// (exec/segment/layouts.h); the row is what turns it off by name.
#include "passes/pass.h"

static assay_status_t run(assay_pass_context_t* c) {
  (void)c;
  return NULL;
}

const assay_pass_t assay_pass_layout_assignment = {
    .name = "layout_assignment",
    .summary = "backends choose layouts over the graph as a whole, reorders included",
    .run = run,
};
