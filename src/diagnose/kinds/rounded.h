// What whoever made a model rounded, in a type that does not say so. Weights: float32 numbers on a
// grid, of a palette, of a few bits, or with the smallest ones put to 0, and what a graph decodes
// of constants so. Values: of quantizers that a graph spells out. Golden may be of the network
// before; then it differs by what half a step of each explains.
#ifndef ASSAY_DIAGNOSE_KINDS_ROUNDED_H_
#define ASSAY_DIAGNOSE_KINDS_ROUNDED_H_

#include "diagnose/kinds/rounded_numbers.h"
#include "ir/ir.h"

typedef struct assay_rounded_weights {
  // By value id: how far each number may have been from where it is, an array like it; NULL: it is
  // not rounded, or what is lost of it is in another one that is added.
  assay_tensor_t** reach;
  bool* steps;                   // by value id: made in steps of 1 at run
  const assay_value_t** before;  // by value id: what was to be rounded (rounded_steps.h)
  size_t n_values, n_before;
  size_t n, n_steps;        // weights that are rounded; values in steps
  size_t n_left;            // weights of which the file has what they were (rounded_left.h)
  assay_rounded_way_t way;  // of the first weight; STEPS: there are only values
} assay_rounded_weights_t;

void assay_rounded_deinit(assay_rounded_weights_t* r);

// Lists the weights of products that are rounded. None (n 0) where most weights of the same
// operators are not: whoever rounds weights rounds all of them, and a single one looks so by
// chance. Values in steps are listed whatever weights are.
assay_status_t assay_rounded_list(const assay_model_t* model,
                                  assay_rounded_weights_t* out) ASSAY_MUST_USE;

// Moves the numbers of a constant, or of a value in steps, by up to `part` of as far as they may
// have been moved, up or down by chance, each draw another way. *t is replaced; nothing happens to
// others.
assay_status_t assay_rounded_move(const assay_rounded_weights_t* r, const assay_value_t* v,
                                  uint64_t draw, double part, assay_tensor_t** t) ASSAY_MUST_USE;

// "weights on a grid": after "the rounding of".
const char* assay_rounded_text(const assay_rounded_weights_t* r);
const char* assay_rounded_name(const assay_rounded_weights_t* r);  // "grid"; "none": for programs

#endif  // ASSAY_DIAGNOSE_KINDS_ROUNDED_H_
