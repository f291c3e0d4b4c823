// Which predictions cannot flip: the largest element of each row of scores, or on which side of a
// threshold each element lies.
//
// A decision is proven if its margin in truth is larger than what the guaranteed bounds leave open,
// carried through the whole network (reach.h). It is probable if the margin is at least
// ASSAY_DECISION_SIGMAS times the error that runs of the network show: as certified, fused, and
// with what is stored rounded by chance. Everything else may flip.
#ifndef ASSAY_CERTIFY_DECISIONS_H_
#define ASSAY_CERTIFY_DECISIONS_H_

#include "certify/certificate.h"
#include "data/samples.h"
#include "eval/evaluator.h"
#include "exec/backend.h"
#include "plan/plan.h"

enum { ASSAY_DECISION_SIGMAS = 8 };

typedef struct assay_decision_request {
  size_t output;
  assay_decision_kind_t kind;
  double threshold;
} assay_decision_request_t;

// Thresholds as texts "OUTPUT:VALUE"; besides, the rows of every float output of two dimensions
// that has none. *out is freed with assay_free. Errors: INVALID_ARGUMENT, also of an output
// that there is not.
assay_status_t assay_decisions_ask(const assay_model_t* model, size_t n_thresholds,
                                   const char* const* thresholds, assay_decision_request_t** out,
                                   size_t* out_n) ASSAY_MUST_USE;

typedef struct assay_decisions_job {
  assay_model_t* model;
  const assay_precision_t* precision;
  const assay_plan_options_t* plan;  // of the engine that is certified
  const assay_backend_t* backend;
  const assay_samples_t* inputs;
  bool unquantized;
  uint64_t seed;
  void (*progress)(void* user, const char* what, double fraction);
  void* user;
} assay_decisions_job_t;

// One for each request whose output is such a tensor in all samples; *out and the grades in it are
// the caller's.
assay_status_t assay_decisions_make(const assay_decisions_job_t* job,
                                    const assay_decision_request_t* requests, size_t n_requests,
                                    assay_decisions_t** out, size_t* out_n) ASSAY_MUST_USE;

// ---- deciding, for those who verify -------------------------------------------------------------

// How many decisions a tensor holds; 0: it is none of this kind.
size_t assay_decisions_count(assay_decision_kind_t kind, const assay_tensor_t* t);
// Decision i: the place of the largest element, or 0 and 1; -1: NaN leaves it open.
int64_t assay_decision_of(assay_decision_kind_t kind, double threshold, const assay_tensor_t* t,
                          size_t i);

// Runs a plan on one sample, for its outputs: retained in out, by graph output. *state is the
// backend's, opened where it is NULL; the caller closes it.
assay_status_t assay_outputs_of(const assay_plan_t* plan, const assay_backend_t* backend,
                                void** state, assay_tensor_t* const* inputs,
                                assay_tensor_t** out) ASSAY_MUST_USE;
// The same of truth, by a machine of the model without hooks.
assay_status_t assay_truth_outputs(assay_evaluator_t* evaluator, const assay_graph_t* g,
                                   assay_tensor_t* const* inputs,
                                   assay_tensor_t** out) ASSAY_MUST_USE;
void assay_outputs_release(size_t n, assay_tensor_t** t);  // the array, too; NULL is allowed

#endif  // ASSAY_CERTIFY_DECISIONS_H_
