// What a certificate looks at: every value of a model, in truth and in an engine, as a sketch.
#ifndef ASSAY_CERTIFY_OBSERVE_H_
#define ASSAY_CERTIFY_OBSERVE_H_

#include "account/account.h"
#include "certify/certificate.h"
#include "certify/sketch.h"

// The values of a model that are looked at: what nodes of its top graph make of inputs, in order.
typedef struct assay_sources {
  const assay_value_t** at;
  size_t n;
  assay_map_t by_name;
  uint32_t names;  // hash of all names
} assay_sources_t;
assay_status_t assay_sources_of(const assay_model_t* model, assay_sources_t* out) ASSAY_MUST_USE;
void assay_sources_deinit(assay_sources_t* s);
// The number of a value of this or of a rewritten model; SIZE_MAX: it is none of these.
size_t assay_sources_find(const assay_sources_t* s, const assay_value_t* v);
uint16_t assay_source_name(const assay_value_t* v);  // hash

typedef struct assay_observed {
  bool seen;
  assay_sketch_t sketch;
  uint32_t bits;  // hash, not 0
  // Of the engine, about the layer that made it:
  const assay_layer_account_t* account;  // borrowed from the account; NULL: none
  double bound;                          // RMS of what its own error may be; 0: not known
  uint8_t odd;                           // ASSAY_ODD_...
} assay_observed_t;

// Runs truth on one sample; *out (assay_free) by number of the value. The machine holds the
// outputs.
assay_status_t assay_observe_truth(const assay_model_t* model, const assay_sources_t* s,
                                   assay_tensor_t* const* inputs, bool unquantized, uint64_t seed,
                                   assay_observed_t** out,
                                   assay_evaluator_t** out_evaluator) ASSAY_MUST_USE;
// Runs an engine, each layer judged by its own error.
assay_status_t assay_observe_engine(const assay_plan_t* plan, const assay_backend_t* backend,
                                    const assay_sources_t* s, assay_tensor_t* const* inputs,
                                    bool unquantized, assay_observed_t** out,
                                    assay_account_t** out_account) ASSAY_MUST_USE;

#endif  // ASSAY_CERTIFY_OBSERVE_H_
