// Shapes that mean something by accident: operands that are stretched, batch sizes that are written
// into the model.
#ifndef ASSAY_RANGES_BROADCASTS_H_
#define ASSAY_RANGES_BROADCASTS_H_

#include "ir/ir.h"

// An operand that a node stretches to its output's shape without saying so.
typedef struct assay_broadcast {
  const assay_node_t* node;
  size_t input;
  bool number;            // a constant of one element: nobody is surprised
  bool both;              // another operand is stretched, too: an outer product
  bool unsure;            // sizes of two names: stretched only if one of them is 1
  bool aligned;           // it has fewer dimensions, which line up on the right
  char from[96], to[96];  // shapes
} assay_broadcast_t;

typedef enum assay_baked_kind {
  ASSAY_BAKED_RESHAPE = 0,  // to a shape whose first size is a number
  ASSAY_BAKED_EXPAND,
  ASSAY_BAKED_CONSTANT,  // a constant shaped like a batch
  ASSAY_BAKED_SQUEEZE,   // of all sizes that are 1
} assay_baked_kind_t;
const char* assay_baked_name(assay_baked_kind_t kind);

typedef struct assay_baked {
  const assay_node_t* node;
  assay_baked_kind_t kind;
  int64_t size;  // the batch that is written there; Squeeze: 0
  bool silent;   // at another batch it gives wrong numbers, not an error
  char why[200];
} assay_baked_t;

typedef struct assay_broadcasts {
  assay_broadcast_t* at;
  size_t n, cap, n_plain;  // n_plain: of one number
  assay_baked_t* baked;
  size_t n_baked, cap_baked;
} assay_broadcasts_t;
void assay_broadcasts_deinit(assay_broadcasts_t* b);

// A resolved and inferred model, with the sizes open that it declares open.
assay_status_t assay_broadcasts_find(const assay_model_t* model,
                                     assay_broadcasts_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_RANGES_BROADCASTS_H_
