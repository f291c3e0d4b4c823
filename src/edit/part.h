// A part of a model as it stands, without a proof: between named values, or with a node put there.
#ifndef ASSAY_EDIT_PART_H_
#define ASSAY_EDIT_PART_H_

#include "base/str.h"
#include "edit/types.h"

// An input or output of a part, by its name in the main graph.
typedef struct assay_part_end {
  const char* name;
  assay_given_type_t type;  // what is not given is looked up
} assay_part_end_t;

typedef struct assay_part {
  const assay_part_end_t *in, *out;
  size_t n_in, n_out;
  bool keep_in, keep_out;  // inputs, outputs stay what they are; in, out are empty
  bool untyped;            // inputs may be of types that are not known
} assay_part_t;

// The part as a model of its own. Inputs of the model that it depends on all the same stay inputs,
// which `notes` says in lines; what it does not depend on goes.
//   types   a model that was prepared, with types of the same values; NULL: those declared are
//   known
// Errors: NOT_FOUND no value has that name; UNSUPPORTED an input's type is not known.
assay_status_t assay_part_take(const assay_model_t* m, const assay_part_t* part,
                               const assay_model_t* types, assay_str_t* notes,
                               assay_model_t** out) ASSAY_MUST_USE;

// A node to be put into a model.
typedef struct assay_part_node {
  const char *op_type, *name;  // name "": none
  const char* const* inputs;   // "": left out
  const char* const* outputs;  // values that it makes from now on; one that is also an input: its
  size_t n_inputs, n_outputs;  //   readers read a new value instead
  const assay_attr_t* attrs;   // borrowed as long as the result lives
  size_t n_attrs;
} assay_part_node_t;

// A copy with the node in the place of what made its outputs; what nobody needs any more goes.
// Errors: NOT_FOUND no value has that name; CORRUPT the node would depend on itself.
assay_status_t assay_part_insert(const assay_model_t* m, const assay_part_node_t* node,
                                 assay_model_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_PART_H_
