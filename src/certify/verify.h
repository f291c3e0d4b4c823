// Holding a run against a certificate: what changed, and where.
//
// The run may be another version's, on another machine, of another engine. Truth is evaluated anew
// and held against the certificate's sketches: where it differs, the model or how it is read has
// changed. The engine is judged layer by layer on what entered each layer, so that a fault is found
// in the layer that has it, however far inherited errors have grown there. Where the engine is the
// one that was certified, its bits are compared, too.
#ifndef ASSAY_CERTIFY_VERIFY_H_
#define ASSAY_CERTIFY_VERIFY_H_

#include "certify/certificate.h"
#include "check/check.h"

typedef enum assay_change {
  ASSAY_CHANGE_MODEL = 0,  // it is another model
  ASSAY_CHANGE_INPUTS,     // other inputs were given
  ASSAY_CHANGE_TRUTH,      // a value of the same model is another one in float64
  ASSAY_CHANGE_FAULT,      // a layer's own error is more than rounding explains
  ASSAY_CHANGE_UNFINITE,   // NaN or infinities where there were none
  ASSAY_CHANGE_UNDERFLOW,  // elements became 0 in a layer where none did
  ASSAY_CHANGE_ERROR,      // a layer's own error is larger than the certified bound
  ASSAY_CHANGE_DRIFT,  // a value is further from truth than rounding ever was: a pass or a plan of
                       // another model, which layer by layer looks sound
  ASSAY_CHANGE_BITS,   // other bits than certified
  ASSAY_CHANGE_DECISION,  // a prediction that was certified as stable flipped
  ASSAY_CHANGE_COUNT,
} assay_change_t;
const char* assay_change_name(assay_change_t c);

typedef struct assay_change_found {
  assay_change_t what;
  bool note;  // worth saying, but the certificate holds
  const assay_node_t*
      node;  // the first where it shows; NULL: not of a node. Borrowed from the model
  const assay_node_t** nodes;  // of a layer of the engine's: all that it computes; NULL: `node`
  size_t n_nodes;
  const assay_node_t*
      since;  // with few values kept: it began at this node or after; NULL: at `node`
  size_t n;   // how many layers, values or decisions
  char why[256];
} assay_change_found_t;

// One output's decisions.
typedef struct assay_decisions_held {
  const char* output;  // borrowed from the model
  assay_decision_kind_t kind;
  double threshold;
  size_t n, count[3];
  size_t flipped, flipped_stable;  // of all; of those certified as stable (grades kept)
  bool compared;                   // the model gives as many
} assay_decisions_held_t;

typedef struct assay_verified {
  assay_change_found_t* at;  // by what changed
  size_t n, capacity;
  const assay_change_found_t* guilty;  // what explains the rest; NULL: it holds
  bool holds;
  size_t n_values, n_compared;  // of the certificate; sketches held against truth
  size_t n_layers;              // that were judged
  size_t n_bits, same_bits;     // values whose bits were compared; 0: they are another engine's
  assay_decisions_held_t* decisions;
  size_t n_decisions;
} assay_verified_t;
void assay_verified_deinit(assay_verified_t* v);

typedef struct assay_verify_job {
  assay_model_t* model;                // as given, prepared as the certificate says
  const assay_check_setting_t* check;  // as for assay_certify_job_t
  const assay_samples_t* inputs;
  const assay_plan_t* plan;  // run this one; NULL: made of the model
  bool bits;                 // other bits are a change, not a note
} assay_verify_job_t;

// Errors: INVALID_ARGUMENT bits are asked for that cannot be compared.
assay_status_t assay_certificate_verify(const assay_certificate_t* c, const assay_verify_job_t* job,
                                        assay_verified_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_CERTIFY_VERIFY_H_
