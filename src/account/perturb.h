// Ill-conditioned layers: which of the errors that come in is it that leaves so much larger?
//
// Truth of the layer is evaluated on true inputs with one of them at a time as the engine has it.
#ifndef ASSAY_ACCOUNT_PERTURB_H_
#define ASSAY_ACCOUNT_PERTURB_H_

#include "account/local.h"

// One input's error by itself.
typedef struct assay_perturbation {
  const assay_value_t* value;
  double in;         // RMS of the error that comes in over the RMS of the value
  double out;        // the same of the output that it changes most
  double condition;  // out / in
} assay_perturbation_t;

enum { ASSAY_PERTURBATIONS = 8 };

typedef struct assay_perturbations {
  assay_perturbation_t at[ASSAY_PERTURBATIONS];  // the one that changes most first
  size_t n;
} assay_perturbations_t;

// Inputs are those of all nodes of the layer as a tap has them, twice: the engine's and true ones.
// Those that truth has in another shape, or that are not floats, are left out; of many inputs
// only those with the largest errors are tried.
assay_status_t assay_perturb(assay_locals_t* locals, const assay_layer_t* layer,
                             const assay_node_t* node, size_t n_in, assay_tensor_t* const* engine,
                             assay_tensor_t* const* truth,
                             assay_perturbations_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_PERTURB_H_
