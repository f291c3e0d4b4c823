// Culprits: the layers that the error of outputs comes from, most to blame first, and why.
#include "diagnose/culprits.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "formats/format.h"

void assay_culprits_deinit(assay_culprits_t* c) {
  assay_free(c->at);
  *c = (assay_culprits_t){0};
}

double assay_culprit_range(const assay_layer_account_t* a) {
  return a->layer && a->storage ? assay_format_info(a->storage)->max : (double)INFINITY;
}

static void why_defect(const assay_layer_account_t* a, char* why, size_t capacity_) {
  const assay_judgement_t* j = &a->judged;
  if (j->beyond)
    snprintf(why, capacity_,
             "defect: %lld of %lld elements off by more than rounding can do; %.9g where truth is "
             "%.9g and rounding explains %.2g",
             (long long)j->beyond, (long long)j->elements, j->worst_engine, j->worst_truth,
             j->worst_limit);
  else if (a->shape_mismatches)
    snprintf(why, capacity_, "defect: another shape than the operator gives, of %lld elements",
             (long long)a->shape_mismatches);
  else
    snprintf(why, capacity_,
             "defect: RMS error %.3g, %.1f times what rounding in other orders shows",
             assay_error_sum_rms(&a->own), a->outlying_by);
}

static void why_amplified(const assay_layer_account_t* a, char* why, size_t capacity_) {
  const assay_perturbation_t* p = a->perturbations.n ? &a->perturbations.at[0] : NULL;
  if (p)
    snprintf(
        why, capacity_,
        "amplified: '%s' comes in with an error of %.2g of its values and leaves with %.2g, %.0f "
        "times as much",
        p->value->name, p->in, p->out, p->condition);
  else
    snprintf(why, capacity_, "amplified: errors that come in leave %.0f times larger",
             a->condition);
}

static assay_status_t add(assay_culprits_t* c, const assay_layer_account_t* a,
                          assay_verdict_t verdict, bool seen) {
  ASSAY_TRY(assay_grow(&c->at, &c->capacity, c->n + 1, sizeof *c->at));
  assay_culprit_t* u = &c->at[c->n++];
  *u = (assay_culprit_t){.account = a, .verdict = verdict, .seen = seen};
  const assay_format_info_t* f = assay_format_info(a->storage ? a->storage : ASSAY_FORMAT_FP32);
  double value = fmax(a->truth_max, a->local_max);
  switch (verdict) {
    case ASSAY_VERDICT_OVERFLOW:
      if (!(value > f->max)) value = fmax(value, a->truth_max_in);
      snprintf(u->why, sizeof u->why, "overflow: %.3g, %s ends at %.6g", value, f->name, f->max);
      break;
    case ASSAY_VERDICT_INVALID:
      snprintf(u->why, sizeof u->why, "invalid: NaN arises here in %lld elements",
               (long long)a->judged.born_nan);
      break;
    case ASSAY_VERDICT_UNDERFLOW:
      snprintf(u->why, sizeof u->why,
               "underflow: %lld of %lld elements vanish, %s begins at %.3g; RMS error %.3g",
               (long long)a->judged.underflowed, (long long)a->judged.elements, f->name,
               f->min_subnormal, assay_error_sum_rms(&a->own));
      break;
    case ASSAY_VERDICT_AMPLIFIED:
      why_amplified(a, u->why, sizeof u->why);
      break;
    case ASSAY_VERDICT_DEFECT:
      why_defect(a, u->why, sizeof u->why);
      break;
    default:
      snprintf(u->why, sizeof u->why, "error: RMS %.3g of values up to %.3g",
               assay_error_sum_rms(&a->own), value);
  }
  return NULL;
}

assay_status_t assay_culprits_add(assay_culprits_t* c, const assay_layer_account_t* layer,
                                  assay_verdict_t verdict, const char* why) {
  ASSAY_TRY(assay_grow(&c->at, &c->capacity, c->n + 1, sizeof *c->at));
  assay_culprit_t* u = &c->at[c->n++];
  *u = (assay_culprit_t){.account = layer, .verdict = verdict};
  snprintf(u->why, sizeof u->why, "%s", why);
  return NULL;
}

assay_status_t assay_culprits_put(assay_culprits_t* c, size_t at,
                                  const assay_layer_account_t* layer, assay_verdict_t verdict,
                                  const struct assay_lost_constant* constant, const char* why) {
  size_t from = 0;
  while (from < c->n && c->at[from].account != layer) from++;
  if (from == c->n) ASSAY_TRY(assay_culprits_add(c, layer, verdict, why));
  assay_culprit_t u = c->at[from];
  u.seen = true;
  u.constant = constant;
  snprintf(u.why, sizeof u.why, "%s", why);
  for (; from > at; from--) c->at[from] = c->at[from - 1];
  c->at[from] = u;
  return NULL;
}

// Whether all that a layer reads past its range comes from layers that held it: in fp32, say. Then
// it is lost here, and not before.
static bool is_first_to_lose(const assay_account_t* account, const assay_layer_account_t* a) {
  bool any = false;
  for (size_t k = 0; a->layer && k < a->layer->n_nodes; k++) {
    const assay_node_t* n = a->layer->nodes[k];
    for (size_t i = 0; i < n->n_inputs; i++) {
      const assay_node_t* maker = n->inputs[i] ? n->inputs[i]->producer : NULL;
      const assay_layer_account_t* m = maker ? assay_account_of_node(account, maker) : NULL;
      if (!m || m == a || !(m->truth_max > assay_culprit_range(a))) continue;
      if (m->truth_max > assay_culprit_range(m)) return false;
      any = true;
    }
  }
  return any;
}

assay_status_t assay_culprits_by_range(const assay_account_t* account, assay_culprits_t* c) {
  size_t n = assay_account_layer_count(account);
  for (size_t i = 0; i < n; i++) {
    const assay_layer_account_t* a = assay_account_layer(account, i);
    if (a->verdict == ASSAY_VERDICT_DEFECT) ASSAY_TRY(add(c, a, ASSAY_VERDICT_DEFECT, true));
  }
  for (size_t i = 0; i < n; i++) {
    const assay_layer_account_t* a = assay_account_layer(account, i);
    if (a->verdict == ASSAY_VERDICT_OVERFLOW) ASSAY_TRY(add(c, a, ASSAY_VERDICT_OVERFLOW, true));
  }
  for (size_t i = 0; i < n; i++) {
    const assay_layer_account_t* a = assay_account_layer(account, i);
    const bool out = a->truth_max > assay_culprit_range(a),
               in = a->truth_max_in > assay_culprit_range(a);
    const bool first = in ? is_first_to_lose(account, a) : out;
    if (first && a->verdict != ASSAY_VERDICT_OVERFLOW)
      ASSAY_TRY(add(c, a, ASSAY_VERDICT_OVERFLOW, false));
    c->n_behind += out && in && !first;
  }
  for (size_t i = 0; i < n; i++) {
    const assay_layer_account_t* a = assay_account_layer(account, i);
    if (a->verdict == ASSAY_VERDICT_INVALID) ASSAY_TRY(add(c, a, ASSAY_VERDICT_INVALID, true));
  }
  return NULL;
}

assay_status_t assay_culprits_by_share(const assay_plan_t* plan, const assay_account_t* account,
                                       const assay_shares_t* shares, assay_culprits_t* c) {
  enum { SHOWN = 5 };
  const assay_layers_t* layers = assay_plan_layers(plan);
  double limit = (double)INFINITY;
  for (int k = 0; k < SHOWN; k++) {
    const assay_layer_account_t* worst = NULL;
    double maximum = 0;
    for (size_t l = 0; l < layers->n_layers; l++) {
      const assay_layer_t* layer = &layers->layers[l];
      const double share = assay_shares_of_layer(shares, l);
      if (share <= maximum || share >= limit) continue;
      worst = assay_account_of_node(account, layer->nodes[layer->n_nodes - 1]);
      maximum = share;
    }
    if (!worst) break;
    limit = maximum;
    ASSAY_TRY(add(c, worst, worst->verdict, true));
    c->at[c->n - 1].share = maximum;
  }
  return NULL;
}

assay_status_t assay_culprits_by_error(const assay_account_t* account, assay_culprits_t* c) {
  enum { SHOWN = 5 };
  double limit = (double)INFINITY;
  for (int k = 0; k < SHOWN; k++) {
    const assay_layer_account_t* worst = NULL;
    double worst_ratio = 0;
    for (size_t i = 0; i < assay_account_layer_count(account); i++) {
      const assay_layer_account_t* a = assay_account_layer(account, i);
      double scale = sqrt(a->own.sum_ref2), ratio = scale > 0 ? sqrt(a->own.sum_err2) / scale : 0;
      if (ratio > worst_ratio && ratio < limit) {
        worst = a;
        worst_ratio = ratio;
      }
    }
    if (!worst) break;
    limit = worst_ratio;
    ASSAY_TRY(add(c, worst, worst->verdict, true));
  }
  return NULL;
}
