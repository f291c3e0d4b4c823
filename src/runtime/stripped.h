// Plans without weights (docs/adr/0019-stripped-plans.md): which elements a plan file leaves out,
// and what is kept of them so that a refit knows them again.
#ifndef ASSAY_RUNTIME_STRIPPED_H_
#define ASSAY_RUNTIME_STRIPPED_H_

#include "io/json.h"
#include "plan/plan.h"

// A weight of the model that the plan was made of, whose elements are not in the plan.
typedef struct assay_missing {
  size_t place;      // among the model's constants (assay_constants_list)
  const char* name;  // for messages: bytes that are no UTF-8 are replaced
  uint64_t digest;   // of its elements (assay_stripped_digest)
  uint64_t bytes;    // that they take
} assay_missing_t;

// What a stripped plan says of itself.
typedef struct assay_stripped {
  bool refittable;           // weights other than those that it was built with may be put in
  bool packed;               // kernels had packed weights as it was written
  uint64_t form;             // of the compiled plan (assay_stripped_form)
  uint64_t data_bytes;       // that constants would take in the file
  assay_missing_t* weights;  // by place
  size_t n;
  uint64_t bytes;  // of all weights
  json_t* text;    // which the names lie in
} assay_stripped_t;

// All constants of a model, in an order that depends on its graphs only: initializers, and what
// Constant nodes hold; *out: assay_free.
assay_status_t assay_constants_list(const assay_model_t* m, assay_value_t*** out,
                                    size_t* out_n) ASSAY_MUST_USE;

// The constants whose elements can be left out without anything else being lost: a bool by value id
// (assay_free). What stays: strings; up to 8 elements; scales and zero points of quantizers; small
// integers; and what sizes depend on, which is tried. Makes tensors of the node's attribute, and
// dense, what was held otherwise.
assay_status_t assay_stripped_choose(assay_model_t* m, bool** out) ASSAY_MUST_USE;

assay_status_t assay_stripped_digest(assay_tensor_t* t, uint64_t* out) ASSAY_MUST_USE;
// A hash of all that a compiled plan is besides elements of constants: nodes, attributes, sizes,
// layers and their formats.
assay_status_t assay_stripped_form(const assay_plan_t* plan, uint64_t* out) ASSAY_MUST_USE;

// What is kept of the weights that are left out of a source, with s->weights not set yet.
assay_status_t assay_stripped_note(const assay_model_t* source, const bool* left_out,
                                   assay_stripped_t* s) ASSAY_MUST_USE;
json_t* assay_stripped_print(const assay_stripped_t* s);  // NULL: no memory
// Errors: CORRUPT.
assay_status_t assay_stripped_read(const json_t* j, assay_stripped_t** out) ASSAY_MUST_USE;
void assay_stripped_destroy(assay_stripped_t* s);  // NULL is allowed
// What is missing of a source that was read from the plan: a table by value id of borrowed entries,
// NULL where nothing is (assay_free). Errors: CORRUPT it does not fit the source.
assay_status_t assay_stripped_find(const assay_stripped_t* s, const assay_model_t* source,
                                   const assay_missing_t*** out) ASSAY_MUST_USE;

#endif  // ASSAY_RUNTIME_STRIPPED_H_
