// Whether two models are the same but for the elements of their constants.
#ifndef ASSAY_IR_COMPARE_H_
#define ASSAY_IR_COMPARE_H_

#include "ir/ir.h"

typedef struct assay_compare {
  bool types;  // values must be of equal inferred types, open sizes by name
  // Called with each pair of constants of one type and shape; NULL: nobody wants them.
  assay_status_t (*constant)(void* user, assay_value_t* a, const assay_value_t* b);
  void* user;
} assay_compare_t;

// *out_difference gets the first difference, told as if b had come later: "node 'x' (Conv): ...";
// nothing is appended if there is none. Names of nodes, documentation and the like do not count.
assay_status_t assay_model_compare(const assay_model_t* a, const assay_model_t* b,
                                   const assay_compare_t* options,
                                   assay_str_t* out_difference) ASSAY_MUST_USE;
// Whether two tensors hold the same elements, bit by bit, in one type and shape.
assay_status_t assay_tensor_same(assay_tensor_t* a, assay_tensor_t* b, bool* out) ASSAY_MUST_USE;

#endif  // ASSAY_IR_COMPARE_H_
