// The repair that a site's numbers are: new nodes behind or in front of a node, or another
// constant.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/outputs/folded.h"
#include "diagnose/outputs/sides.h"
#include "diagnose/outputs/site_fit.h"

enum { SUMMANDS = ASSAY_SITE_SUMMANDS };

// Of the numbers that a site has fitted those that do something: factors that are all 1 are none.
static int effective(const assay_site_t* site, const double* factor) {
  static const double SEEN = 1e-4;
  double far = 0;
  for (int64_t c = 0; c < site->channels; c++) far = fmax(far, fabs(factor[c] - 1));
  return far > SEEN || !(site->family & SUMMANDS) ? site->family : SUMMANDS;
}

// The repair: output times factors, plus summands.
static assay_status_t make_chains(const assay_search_t* s, const assay_site_t* site,
                                  const double* factor, const double* summand,
                                  assay_repair_t* out) {
  static const char* const causes[] = {"", "scale of each channel", "bias of each channel",
                                       "scale and bias of each channel"};
  static const char* const operators[] = {"Mul", "Add"};
  static const char* const words[] = {" times", " plus"};
  const assay_tensor_t* y = assay_site_sketch_truth(s, s->nodes[site->position]->outputs[0]);
  const int family = effective(site, factor);
  int64_t dims[ASSAY_MAX_RANK];
  *out = (assay_repair_t){.node = s->nodes[site->position], .cause = causes[family]};
  for (int i = 0; i < y->rank; i++) dims[i] = i == site->axis ? site->channels : 1;
  size_t used = (size_t)snprintf(out->text, sizeof out->text, "what comes out");
  for (int k = 0; k < 2; k++) {
    if (!(family >> k & 1)) continue;
    const double* number = k ? summand : factor;
    double low = HUGE_VAL, high = -HUGE_VAL;
    assay_repair_edit_t* e = &out->edits[out->n_edits];
    *e = (assay_repair_edit_t){.kind = ASSAY_EDIT_CHAIN, .n_chain = 1, .type = y->type};
    e->chain[0] = (assay_chain_step_t){
        .op_type = operators[k],
        .of = {{ASSAY_OPERAND_START, 0, 0, NULL}, {ASSAY_OPERAND_TENSOR, 0, 0, NULL}}};
    assay_status_t st = assay_tensor_create(y->type, y->rank, dims, &e->tensor);
    if (st) return assay_repair_deinit(out), st;
    out->n_edits++;
    for (int64_t c = 0; c < site->channels; c++) {
      assay_f64(e->tensor)[c] = (double)(float)number[c];
      low = fmin(low, number[c]), high = fmax(high, number[c]);
    }
    used += (size_t)snprintf(out->text + used, sizeof out->text - used, "%s %.4g to %.4g", words[k],
                             low, high);
  }
  snprintf(out->text + used, sizeof out->text - used, ", by channel");
  return NULL;
}

// A constant with other elements, or with one for each channel in place of one.
static assay_status_t make_constant(const assay_search_t* s, const assay_site_t* site,
                                    const double* change, assay_repair_t* out) {
  const assay_node_t* n = s->nodes[site->position];
  assay_tensor_t *x = NULL, *y = NULL;
  ASSAY_TRY(assay_tensor_widen(assay_evaluator_get(s->evaluator, n->inputs[site->input]), &x));
  assay_status_t st = NULL;
  double most = 0;
  if (site->kind == ASSAY_SITE_SLOPES) {
    const assay_tensor_t* like = assay_site_sketch_truth(s, n->outputs[0]);
    int64_t dims[ASSAY_MAX_RANK] = {site->channels};
    for (int i = 1; i + 1 < like->rank; i++) dims[i] = 1;
    st = assay_tensor_create(x->type, like->rank - 1, dims, &y);
    for (int64_t c = 0; !st && c < site->channels; c++) assay_f64(y)[c] = assay_f64(x)[0];
  } else {
    st = assay_tensor_copy(x, &y);
  }
  assay_tensor_release(x);
  if (st) return st;
  for (size_t i = 0; i < site->columns; i++) {
    double* to = &assay_f64(y)[site->at ? site->at[i] : (int64_t)i];
    *to = (double)(float)(*to + change[i]);
    if (site->taken) to[-site->taken] = (double)(float)(to[-site->taken] - change[i]);
    most = fmax(most, fabs(change[i]));
  }
  const bool slopes = site->kind == ASSAY_SITE_SLOPES;
  *out = (assay_repair_t){.node = n,
                          .cause = slopes                           ? "slope of each channel"
                                   : site->kind == ASSAY_SITE_SCALE ? "scale of a normalization"
                                                                    : "numbers of a constant",
                          .n_edits = 1};
  out->edits[0] =
      (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = site->input, .tensor = y};
  snprintf(out->text, sizeof out->text, "'%.120s' with %zu other numbers, by up to %.3g%s",
           n->inputs[site->input]->name, site->columns, most,
           slopes ? ": one for each channel in place of one" : "");
  return NULL;
}

// What comes in times factors.
static assay_status_t make_input(const assay_search_t* s, const assay_site_t* site,
                                 const double* factor, assay_repair_t* out) {
  const assay_value_t* v = s->nodes[site->position]->inputs[site->input];
  const assay_tensor_t* x = assay_evaluator_get(s->evaluator, v);
  int64_t dims[ASSAY_MAX_RANK];
  double low = HUGE_VAL, high = -HUGE_VAL;
  *out = (assay_repair_t){
      .node = s->nodes[site->position], .cause = "scale of what is read", .n_edits = 1};
  for (int i = 0; i < x->rank; i++) dims[i] = i == site->axis ? site->channels : 1;
  assay_repair_edit_t* e = &out->edits[0];
  *e = (assay_repair_edit_t){.kind = ASSAY_EDIT_CHAIN,
                             .at_input = true,
                             .input = site->input,
                             .n_chain = 1,
                             .type = x->type};
  e->chain[0] = (assay_chain_step_t){
      .op_type = "Mul",
      .of = {{ASSAY_OPERAND_START, 0, 0, NULL}, {ASSAY_OPERAND_TENSOR, 0, 0, NULL}}};
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, dims, &e->tensor));
  for (int64_t c = 0; c < site->channels; c++) {
    assay_f64(e->tensor)[c] = (double)(float)factor[c];
    low = fmin(low, factor[c]), high = fmax(high, factor[c]);
  }
  snprintf(out->text, sizeof out->text, "'%.120s' times %.4g to %.4g where it is read, by channel",
           v->name, low, high);
  return NULL;
}

// A weight whose scale stands at the channels that it reads, moved to those that it makes.
static assay_status_t make_moved(const assay_search_t* s, const assay_site_t* site,
                                 const double* factor, assay_repair_t* out) {
  const assay_node_t* n = s->nodes[site->position];
  const assay_value_t* v = n->inputs[site->input];
  assay_tensor_t *w = NULL, *y = NULL;
  assay_sides_t sides;
  int read = 0, made = 0;
  double low = HUGE_VAL, high = -HUGE_VAL;
  ASSAY_TRY(assay_tensor_widen(assay_evaluator_get(s->evaluator, v), &w));
  assay_status_t st = assay_tensor_copy(w, &y);
  assay_tensor_release(w);
  if (st) return st;
  if (assay_sides_of(n, &sides)) assay_sides_weight_axes(n, &sides, y, &read, &made);
  const int64_t c = site->channels, inner = assay_dims_product(y->dims, 2, y->rank);
  for (int64_t i = 0; i < y->size; i++) {
    const int64_t at[2] = {i / inner / c, i / inner % c};
    double* x = &assay_f64(y)[i];
    *x = (double)(float)(*x * factor[at[made]] / factor[at[read]]);
  }
  for (int64_t i = 0; i < c; i++) low = fmin(low, factor[i]), high = fmax(high, factor[i]);
  *out = (assay_repair_t){.node = n, .cause = "scale at the other channels", .n_edits = 1};
  out->edits[0] =
      (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = site->input, .tensor = y};
  snprintf(out->text, sizeof out->text,
           "'%.100s' with factors from %.4g to %.4g at the channels that it makes, not at those "
           "that it reads",
           v->name, low, high);
  return NULL;
}

assay_status_t assay_site_repair(const assay_search_t* s, const assay_site_t* site,
                                 const assay_site_fit_t* fit, assay_repair_t* out) {
  switch (site->kind) {
    case ASSAY_SITE_OUTPUT:
      return make_chains(s, site, fit->factor, fit->summand, out);
    case ASSAY_SITE_INPUT:
      return make_input(s, site, fit->factor, out);
    case ASSAY_SITE_MOVED:
      return make_moved(s, site, fit->factor, out);
    case ASSAY_SITE_AROUND:
    case ASSAY_SITE_BORDER:
      return assay_folded_repair(s, site, fit->summand, out);
    default:
      return make_constant(s, site, fit->summand, out);
  }
}
