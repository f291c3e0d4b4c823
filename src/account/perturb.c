// Ill-conditioned layers: which of the errors that come in is it that leaves so much larger?
#include "account/perturb.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/error_sum.h"

// ---- inputs -------------------------------------------------------------------------------------

// The value that input number i of the layer's nodes stands for.
static const assay_value_t* value_at(const assay_layer_t* layer, const assay_node_t* node,
                                     size_t i) {
  if (!layer) return node->inputs[i];
  size_t k = 0;
  for (; i >= layer->nodes[k]->n_inputs; k++) i -= layer->nodes[k]->n_inputs;
  return layer->nodes[k]->inputs[i];
}

// RMS of the difference over RMS of truth; 0 where there is none to speak of.
static assay_status_t relative_error(assay_tensor_t* got, assay_tensor_t* truth, double* out) {
  assay_tensor_t *a = NULL, *b = NULL;
  *out = 0;
  if (!got || !truth || got->kind != ASSAY_KIND_TENSOR || truth->kind != ASSAY_KIND_TENSOR)
    return NULL;
  if (got->rank != truth->rank ||
      memcmp(got->dims, truth->dims, (size_t)got->rank * sizeof *got->dims) != 0)
    return NULL;
  assay_status_t st = assay_tensor_widen(got, &a);
  if (!st) st = assay_tensor_widen(truth, &b);
  if (!st && a->store == ASSAY_STORE_F64 && b->store == ASSAY_STORE_F64) {
    assay_error_sum_t e = ASSAY_ERROR_SUM_INIT;
    assay_error_sum_add(&e, assay_f64(a), assay_f64(b), (size_t)a->size);
    if (!e.mismatched && e.sum_ref2 > 0) *out = sqrt(e.sum_err2 / e.sum_ref2);
  }
  assay_tensor_release(a);
  assay_tensor_release(b);
  return st;
}

// Puts one into its place, largest first; of too many the smallest is dropped.
static void insert(assay_perturbations_t* p, const assay_perturbation_t* next,
                   double (*size)(const assay_perturbation_t*)) {
  size_t at = p->n < ASSAY_PERTURBATIONS ? p->n++ : ASSAY_PERTURBATIONS;
  for (; at > 0 && size(&p->at[at - 1]) < size(next); at--)
    if (at < ASSAY_PERTURBATIONS) p->at[at] = p->at[at - 1];
  if (at < ASSAY_PERTURBATIONS) p->at[at] = *next;
}

static double size_in(const assay_perturbation_t* p) { return p->in; }
static double size_out(const assay_perturbation_t* p) { return p->out; }

static assay_status_t find_inputs(const assay_layer_t* layer, const assay_node_t* node, size_t n_in,
                                  assay_tensor_t* const* engine, assay_tensor_t* const* truth,
                                  assay_perturbations_t* out) {
  for (size_t i = 0; i < n_in; i++) {
    assay_perturbation_t next = {.value = value_at(layer, node, i)};
    bool known = !next.value || next.value->constant;
    for (size_t k = 0; k < out->n; k++) known |= out->at[k].value == next.value;
    if (known) continue;
    ASSAY_TRY(relative_error(engine[i], truth[i], &next.in));
    if (next.in > 0) insert(out, &next, size_in);
  }
  return NULL;
}

// ---- one at a time ------------------------------------------------------------------------------

static assay_status_t try_input(assay_locals_t* locals, const assay_layer_t* layer,
                                const assay_node_t* node, size_t n_in,
                                assay_tensor_t* const* engine, assay_tensor_t* const* truth,
                                const assay_local_t* base, assay_tensor_t** mixed,
                                assay_perturbation_t* p) {
  assay_local_t local = {0};
  for (size_t i = 0; i < n_in; i++)
    mixed[i] = truth[i] && value_at(layer, node, i) == p->value ? engine[i] : truth[i];
  ASSAY_TRY(assay_locals_run(locals, layer, node, n_in, mixed, NULL, NULL, &local));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < local.n_out; i++) {
    double out = 0;
    st = relative_error(local.truth[i], base->truth[i], &out);
    p->out = fmax(p->out, out);
  }
  p->condition = p->out / p->in;
  assay_local_deinit(&local);
  return st;
}

assay_status_t assay_perturb(assay_locals_t* locals, const assay_layer_t* layer,
                             const assay_node_t* node, size_t n_in, assay_tensor_t* const* engine,
                             assay_tensor_t* const* truth, assay_perturbations_t* out) {
  assay_perturbations_t found = {0}, ranked = {0};
  assay_local_t base = {0};
  assay_tensor_t** mixed = NULL;
  ASSAY_TRY(find_inputs(layer, node, n_in, engine, truth, &found));
  ASSAY_TRY(assay_new_array(n_in, sizeof *mixed, &mixed));
  assay_status_t st = assay_locals_run(locals, layer, node, n_in, truth, NULL, NULL, &base);
  for (size_t i = 0; !st && i < found.n; i++) {
    st = try_input(locals, layer, node, n_in, engine, truth, &base, mixed, &found.at[i]);
    if (!st) insert(&ranked, &found.at[i], size_out);
  }
  assay_local_deinit(&base);
  assay_free(mixed);
  if (!st) *out = ranked;
  return st;
}
