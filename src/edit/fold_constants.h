// Constants computed once and written down, as a runtime would compute them: each result rounded to
// the type that it has.
#ifndef ASSAY_EDIT_FOLD_CONSTANTS_H_
#define ASSAY_EDIT_FOLD_CONSTANTS_H_

#include "ir/ir.h"

typedef struct assay_fold_requests {
  bool no_shapes;      // shapes that are known before running are left to be computed
  bool has_threshold;  // nodes that make a tensor of more than `max_bytes` stay
  int64_t max_bytes;
} assay_fold_requests_t;

// One round over a prepared model: nodes that read only constants become constants, and what
// nobody needs any more goes. The result is a prepared model of its own. Not folded: what is
// random, has bodies or quantizes, what the graph hands out, and what fails.
assay_status_t assay_fold_constants(assay_model_t* prepared, const assay_fold_requests_t* requests,
                                    assay_model_t** out) ASSAY_MUST_USE;
// Nodes of all graphs.
size_t assay_model_count_nodes(const assay_model_t* m);

#endif  // ASSAY_EDIT_FOLD_CONSTANTS_H_
