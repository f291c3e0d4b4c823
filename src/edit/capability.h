// Which nodes of a model this build cannot run, and why.
#ifndef ASSAY_EDIT_CAPABILITY_H_
#define ASSAY_EDIT_CAPABILITY_H_

#include "edit/part.h"

typedef struct assay_capability {
  assay_arena_t* arena;
  size_t n;              // nodes of the main graph, in its order
  const char** reasons;  // of each; NULL: it can be run
  size_t n_unsupported;
  assay_model_t* typed;  // with the types that are known; NULL: the model as a whole is wrong
} assay_capability_t;

// Each node is looked at by itself. The model is not changed.
assay_status_t assay_capability_find(assay_model_t* m, assay_capability_t* out) ASSAY_MUST_USE;
void assay_capability_deinit(assay_capability_t* c);

// The nodes from..to-1 as a model of their own: outputs are what others read of them, and what
// nobody does.
assay_status_t assay_capability_cut(const assay_capability_t* c, const assay_model_t* m,
                                    size_t from, size_t to, assay_model_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_CAPABILITY_H_
