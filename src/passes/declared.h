// The model as it was declared, for the passes that decide where values are rounded.
//
// What a plan computes must not depend on which sizes were known when it was built
// (docs/adr/0011-cuts-of-the-declared-model.md). So where the caller gave sizes to open dimensions,
// passes see the model without them; they are put back after the passes that fuse.
#ifndef ASSAY_PASSES_DECLARED_H_
#define ASSAY_PASSES_DECLARED_H_

#include "ir/ir.h"

// Whether sizes were given to some input, such that the model with them is one of those that the
// declared model stands for: one name of a dimension is one size.
bool assay_declared_is_open(const assay_model_t* m);
// Takes the sizes that were given away from a clone of `m`, or gives them back, and infers anew.
assay_status_t assay_declared_open(assay_model_t* clone) ASSAY_MUST_USE;
assay_status_t assay_declared_close(assay_model_t* clone, const assay_model_t* m) ASSAY_MUST_USE;

// Sizes of the dimensions of a model's inputs, from whoever knows them.
typedef struct assay_sizes_known {
  bool (*of)(const void* user, const assay_dim_t* d, int64_t* out);  // false: not known
  const void* user;
} assay_sizes_known_t;
// Gives all inputs of a clone their sizes, and infers anew; *out_all false: one is not known, and
// nothing has changed.
assay_status_t assay_declared_set(assay_model_t* clone, const assay_sizes_known_t* known,
                                  bool* out_all) ASSAY_MUST_USE;

// Marks the nodes of the top graph whose outputs follow from sizes and constants alone, by id:
// Shape and Size, and what reads only those and constants.
//   marks  room for all node ids of the model, all false
void assay_mark_of_sizes(const assay_model_t* m, bool* marks);

#endif  // ASSAY_PASSES_DECLARED_H_
