// Nodes that read nothing but constants are evaluated once, in float64, and rounded once to their
// declared types.
//
// Not folded: what is random, has bodies or quantizes (whether it is the identity depends on the
// run); results that are handed out of the graph; large results, but for a matrix that is stored
// and wanted the other way round, as the words' vectors before the last product of a decoder are;
// and what rounding would change more than truth allows: truth sees float16 and bfloat16 values
// unrounded, so they are folded only where rounding is exact.
#include <string.h>

#include "passes/float_types.h"
#include "passes/fold.h"
#include "passes/pass.h"

enum { MAX_TURNED = 1 << 28 };  // elements

// It is no larger than what the model stores, and would be made in each run.
static bool is_turned(const assay_node_t* n, int64_t elems) {
  return strcmp(n->op_type, "Transpose") == 0 && !*n->domain && elems <= MAX_TURNED;
}

static bool wants(const assay_pass_context_t* c, const assay_node_t* n) {
  int64_t elems;
  if (!assay_fold_allows(n) || assay_rewrite_rounds(c->rewrite, n)) return false;
  if (c->closed && !assay_rewrite_is_of_sizes(c->rewrite, n)) return false;
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] && (!assay_fold_elems(n->outputs[i]->type, &elems) ||
                          (!assay_fold_is_small(elems) && !is_turned(n, elems))))
      return false;
  return true;
}

static assay_status_t run(assay_pass_context_t* c) {
  return assay_fold_nodes(c, &(assay_folding_t){.config = &assay_fold_config, .wants = wants});
}

const assay_pass_t assay_pass_constant_folding = {
    .name = "constant_folding",
    .until_fixpoint = true,
    .after_shapes = true,
    .summary = "nodes that read only constants are computed once, in float64",
    .rounds_constants = true,
    .run = run,
};
