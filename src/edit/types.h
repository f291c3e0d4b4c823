// Types of values as a file declares them: given anew, taken from another model, listed, forgotten.
#ifndef ASSAY_EDIT_TYPES_H_
#define ASSAY_EDIT_TYPES_H_

#include "ir/ir.h"

// A type that the user gives, or a part of one.
typedef struct assay_given_type {
  assay_type_t elem;  // UNDEFINED: as it is
  bool has_shape;     // false: as it is
  int rank;
  const char* const* dims;  // rank of them: a number, a name, or "" for one that is not known
} assay_given_type_t;

// Declares a value to be of this type; what is not given is as in `known`, which may be of another
// model, or as declared before. Errors: UNSUPPORTED no element type is known, or the value is no
// tensor; INVALID_ARGUMENT a size below 0.
assay_status_t assay_types_declare(assay_model_t* m, assay_value_t* v,
                                   const assay_given_type_t* given,
                                   const assay_valtype_t* known) ASSAY_MUST_USE;
// A type of another model, in this one. NULL stays NULL.
assay_status_t assay_types_copy(assay_model_t* m, const assay_valtype_t* from,
                                const assay_valtype_t** out) ASSAY_MUST_USE;
// What the file says of values that nodes make is forgotten: with other inputs it may be wrong.
void assay_types_forget(assay_model_t* m);
// Lists the inferred types of all values that nodes make, so that they are written; *added counts
// those that were not there.
assay_status_t assay_types_list(assay_model_t* m, size_t* added) ASSAY_MUST_USE;

// Runs a prepared model and gives every value of its main graph the type that it had, sizes and
// all. inputs: one for each graph input; NULL where an initializer stands in.
assay_status_t assay_types_measure(assay_model_t* prepared,
                                   assay_tensor_t* const* inputs) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_TYPES_H_
