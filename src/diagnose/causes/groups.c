// Normalizations that take their statistics over the wrong elements: groups of another number, a
// sample's own in place of those that were learned.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

// ---- groups as instances -----------------------------------------------------------------------

// A vector of n elements that are all alike, as those of x are; *out NULL: they are not.
static assay_status_t resized(const assay_tensor_t* x, int64_t n, assay_tensor_t** out) {
  *out = NULL;
  if (!is_float(x) || x->rank != 1 || !x->size) return NULL;
  for (int64_t i = 1; i < x->size; i++)
    if (assay_f64(x)[i] != assay_f64(x)[0]) return NULL;
  ASSAY_TRY(assay_tensor_create(x->type, 1, &n, out));
  for (int64_t i = 0; i < n; i++) assay_f64(*out)[i] = assay_f64(x)[0];
  return NULL;
}

static assay_status_t offer_groups(const assay_suspect_t* s, const char* cause, int64_t groups,
                                   const assay_trial_t* t, bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_RESHAPE);
  r.edits[0].rank = 3;
  r.edits[0].dims[0] = 0;
  r.edits[0].dims[1] = groups;
  r.edits[0].dims[2] = -1;
  for (size_t i = 1; i <= 2; i++) {
    assay_tensor_t *x = NULL, *y = NULL;
    assay_status_t st = assay_suspect_constant(s, i, &x);
    if (!st) st = resized(x, groups, &y);
    assay_tensor_release(x);
    if (st || !y) return assay_repair_deinit(&r), st;
    r.edits[r.n_edits++] =
        (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = i, .tensor = y};
  }
  snprintf(r.text, sizeof r.text, "%lld groups instead of %lld", (long long)groups,
           (long long)s->in[0]->dims[1]);
  return assay_offer(t, &r, stop);
}

// The channels that a Reshape before the node makes groups of; 0: there is none.
static int64_t channels_before(const assay_suspect_t* s) {
  const assay_node_t* n = s->node->inputs[0] ? s->node->inputs[0]->producer : NULL;
  if (!n || strcmp(n->op_type, "Reshape") != 0) return 0;
  const assay_tensor_t* x = assay_around_tensor(s->around, n->inputs[0]);
  return x && x->rank >= 3 ? x->dims[1] : 0;
}

// A GroupNormalization that was written as an InstanceNormalization of its groups.
// Sources: pytorch/pytorch pull request 27071; groups that were lost: onnx/onnx-tensorrt pull
// request 1052.
static assay_status_t propose_groups(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  if (!is_float(s->in[0]) || s->in[0]->rank != 3) return NULL;
  const int64_t channels = channels_before(s), now = s->in[0]->dims[1];
  for (int64_t groups = 1; groups <= channels && !*stop; groups++)
    if (channels % groups == 0 && groups != now) ASSAY_TRY(offer_groups(s, cause, groups, t, stop));
  return NULL;
}

// ---- learned statistics ------------------------------------------------------------------------

static assay_status_t offer_learned(const assay_suspect_t* s, const char* cause,
                                    const assay_value_t* mean, const assay_value_t* variance,
                                    const assay_trial_t* t, bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_OPERATOR);
  r.edits[0].op_type = "BatchNormalization";
  r.n_edits = 3;
  r.edits[1] = (assay_repair_edit_t){.kind = ASSAY_EDIT_INPUT, .input = 3, .value = mean};
  r.edits[2] = (assay_repair_edit_t){.kind = ASSAY_EDIT_INPUT, .input = 4, .value = variance};
  snprintf(r.text, sizeof r.text,
           "BatchNormalization in place of InstanceNormalization, with '%.60s' and '%.60s', which "
           "nobody reads",
           mean->name, variance->name);
  return assay_offer(t, &r, stop);
}

static bool is_positive(const assay_tensor_t* x) {
  for (int64_t i = 0; i < x->size; i++)
    if (!(assay_f64(x)[i] >= 0)) return false;
  return true;
}

// Constants of a number for each channel that nobody reads: the statistics that were left behind.
// Source: torch.onnx in training mode, pytorch/pytorch issue 53887.
static assay_status_t propose_learned(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  enum { MAX = 12 };
  const assay_value_t* found[MAX];
  const assay_graph_t* g = s->model->graph;
  const assay_tensor_t* scale = s->n_in > 1 ? s->in[1] : NULL;
  size_t n = 0;
  if (!is_float(scale) || s->n_in != 3) return NULL;
  for (size_t i = 0; i < g->n_initializers && n < MAX; i++) {
    const assay_value_t* v = g->initializers[i];
    const assay_node_t* const* readers = NULL;
    if (!v->constant || v->constant->kind != ASSAY_KIND_TENSOR || v->constant->rank != 1 ||
        v->constant->size != scale->size || v->constant->type != scale->type)
      continue;
    if (!v->is_output && !assay_around_readers(s->around, v, &readers)) found[n++] = v;
  }
  for (size_t b = 0; b < n; b++) {
    assay_tensor_t* wide = NULL;
    ASSAY_TRY(assay_tensor_widen(found[b]->constant, &wide));
    const bool is_variance = is_positive(wide);
    assay_tensor_release(wide);
    for (size_t a = 0; is_variance && a < n && !*stop; a++)
      if (a != b) ASSAY_TRY(offer_learned(s, cause, found[a], found[b], t, stop));
  }
  return NULL;
}

assay_status_t assay_propose_statistics(const assay_suspect_t* s, const char* cause,
                                        const assay_trial_t* t, bool* stop) {
  if (!s->around || *s->node->domain || strcmp(s->node->op_type, "InstanceNormalization") != 0)
    return NULL;
  ASSAY_TRY(propose_groups(s, cause, t, stop));
  return propose_learned(s, cause, t, stop);
}
