// Constants that their format cannot hold and that outputs' errors begin at: both ends of the
// chain, and what the constant could be instead.
#include "diagnose/constants/lost_constants.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/culprits.h"
#include "formats/format.h"

void assay_lost_constants_deinit(assay_lost_constants_t* c) {
  assay_free(c->at);
  *c = (assay_lost_constants_t){0};
}

// ---- the chain ----------------------------------------------------------------------------------

static double relative(const assay_error_sum_t* e) {
  return e->sum_ref2 > 0 ? sqrt(e->sum_err2 / e->sum_ref2) : 0;
}

// What the outputs suffer from: elements that are not finite, else the largest relative error.
typedef struct harm {
  bool unfinite;
  double error;
} harm_t;

static harm_t harm_of(const assay_output_check_t* outputs, size_t n) {
  harm_t h = {0};
  for (size_t i = 0; i < n; i++) {
    if (outputs[i].error.mismatched) h.unfinite = true;
    h.error = fmax(h.error, relative(&outputs[i].error));
  }
  return h;
}

static bool reads_reached(const assay_node_t* n, const bool* reached) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && reached[n->inputs[i]->id]) return true;
  return false;
}

// Whether a layer shows it: as an element that is not finite, or an error as large as the outputs'.
static bool shows(const assay_layer_account_t* a, const harm_t* harm) {
  if (harm->unfinite) return a->total.mismatched > 0;
  return relative(&a->total) >= 0.5 * harm->error && harm->error > 0;
}

// A value past the range in truth, too, is infinite as it is stored: what reads it shows the harm.
static bool only_stores(const assay_layer_account_t* a, const harm_t* harm) {
  return harm->unfinite && a->truth_max > assay_culprit_range(a);
}

static void find_end(const assay_account_t* account, const assay_graph_t* g, const harm_t* harm,
                     bool* reached, assay_lost_constant_t* c) {
  const assay_layer_account_t *first = NULL, *harmful = NULL;
  bool begun = false;
  for (size_t k = 0; k < g->n_nodes && !harmful; k++) {
    const assay_node_t* n = g->nodes[k];
    const bool here = n == c->odd->node;
    begun |= here;
    if (!begun || (!here && !reads_reached(n, reached))) continue;
    for (size_t i = 0; i < n->n_outputs; i++)
      if (n->outputs[i]) reached[n->outputs[i]->id] = true;
    const assay_layer_account_t* a = assay_account_of_node(account, n);
    if (!a || !shows(a, harm)) continue;
    if (!first) first = a;
    if (!only_stores(a, harm)) harmful = a;
  }
  c->shows = harmful ? harmful : first;
  if (!c->shows) return;
  c->unfinite = c->shows->total.mismatched;
  c->error = relative(&c->shows->total);
}

// The layer's account is that of its last node.
static const assay_layer_account_t* layer_of(const assay_layers_t* l, const assay_account_t* a,
                                             const assay_node_t* n) {
  const int at = l->layer_of_node[n->id];
  if (at < 0) return assay_account_of_node(a, n);
  const assay_layer_t* layer = &l->layers[at];
  return assay_account_of_node(a, layer->nodes[layer->n_nodes - 1]);
}

// A node of the model as it was given that reads a constant of that name.
static void find_node(const assay_plan_t* plan, assay_lost_constant_t* c) {
  if (!c->odd->value) return;
  const assay_origins_t o = assay_plan_origins(plan, &c->odd->node);
  for (size_t k = 0; k < o.n && !c->node; k++)
    for (size_t i = 0; i < o.nodes[k]->n_inputs; i++) {
      const assay_value_t* v = o.nodes[k]->inputs[i];
      if (!v || !assay_value_constant(v) || strcmp(v->name, c->odd->value->name) != 0) continue;
      c->node = o.nodes[k];
      c->input = i;
    }
}

static assay_status_t add(assay_lost_constants_t* all, const assay_lost_constant_t* c) {
  ASSAY_TRY(assay_grow(&all->at, &all->capacity, all->n + 1, sizeof *all->at));
  size_t at = all->n++;
  for (; at > 0 && all->at[at - 1].odd->node->id > c->odd->node->id; at--)
    all->at[at] = all->at[at - 1];
  all->at[at] = *c;
  return NULL;
}

assay_status_t assay_lost_constants_find(const assay_plan_t* plan, const assay_account_t* account,
                                         const assay_odd_constants_t* odd,
                                         const assay_output_check_t* outputs,
                                         assay_lost_constants_t* out) {
  const assay_layers_t* l = assay_plan_layers(plan);
  const assay_graph_t* g = l->model->graph;
  const harm_t harm = harm_of(outputs, g->n_outputs);
  const size_t n_values = (size_t)l->model->n_values;
  assay_lost_constants_t all = {0};
  bool* reached = NULL;
  if (!odd->n) return NULL;
  assay_status_t st = assay_new_array(n_values, sizeof *reached, &reached);
  for (size_t i = 0; !st && i < odd->n; i++) {
    assay_lost_constant_t c = {.odd = &odd->at[i]};
    c.begins = layer_of(l, account, c.odd->node);
    if (!c.begins || c.odd->node->graph != g) continue;
    memset(reached, 0, n_values * sizeof *reached);
    find_end(account, g, &harm, reached, &c);
    find_node(plan, &c);
    if (c.shows) st = add(&all, &c);
  }
  assay_free(reached);
  if (st) return assay_lost_constants_deinit(&all), st;
  *out = all;
  return NULL;
}

// ---- words --------------------------------------------------------------------------------------

static const char* layer_name(const assay_layer_account_t* a) {
  return a->layer ? a->layer->name : a->node->label;
}

void assay_lost_constant_describe(const assay_lost_constant_t* c, char* out, size_t capacity) {
  const assay_odd_constant_t* o = c->odd;
  const assay_format_info_t* f = assay_format_info(o->format);
  char end[64] = "";
  if (!isfinite(o->becomes))
    snprintf(end, sizeof end, ", which ends at %.6g", f->max);
  else if (o->becomes == 0)
    snprintf(end, sizeof end, ", whose numbers begin at %.3g", f->min_subnormal);
  snprintf(out, capacity, "constant: '%.80s' is %.6g and becomes %.6g in %s%s",
           o->value ? o->value->name : o->attribute, o->example, o->becomes, f->name, end);
}

void assay_lost_constant_shown(const assay_lost_constant_t* c, char* out, size_t capacity) {
  const assay_layer_account_t* a = c->shows;
  if (c->unfinite)
    snprintf(out, capacity, "%.120s (%s): %lld of %lld elements are not finite", layer_name(a),
             a->node->op_type, (long long)c->unfinite, (long long)a->total.n);
  else
    snprintf(out, capacity, "%.120s (%s): an error of %.2g of its values", layer_name(a),
             a->node->op_type, c->error);
}

// ---- mending ------------------------------------------------------------------------------------

// The numbers next to 1 of a format: below for `toward` < 1.
static double beside_one(assay_format_t format, double x, int steps) {
  const double u = assay_format_info(format)->unit_roundoff;
  return copysign(fabs(x) < 1 ? 1 - steps * u : 1 + 2 * steps * u, x);
}

double assay_mended_number(assay_format_t format, double x, int attempt) {
  const assay_format_info_t* f = assay_format_info(format);
  const double y = assay_format_round(format, x, ASSAY_OVERFLOW_IEEE);
  if (!isfinite(x)) return x;
  // Half of the range leaves room for what is added to a mask.
  if (!isfinite(y)) return copysign(attempt ? f->max / 2 : f->max, x);
  // Units that flush make 0 of subnormal numbers, and some quotients by them are infinite.
  if (x != 0 && fabs(y) < f->min_normal)
    return attempt && y == 0
               ? copysign(f->min_subnormal, x)
               : assay_format_round(format, copysign(f->min_normal, x), ASSAY_OVERFLOW_IEEE);
  if (fabs(y) == 1 && y != x) return beside_one(format, x, attempt + 1);
  return x;
}

static assay_status_t mended_tensor(const assay_lost_constant_t* c, int attempt,
                                    assay_tensor_t** out) {
  assay_tensor_t *wide = NULL, *t = NULL;
  ASSAY_TRY(assay_tensor_widen(assay_value_constant(c->node->inputs[c->input]), &wide));
  assay_status_t st = assay_tensor_copy(wide, &t);
  assay_tensor_release(wide);
  if (st) return st;
  for (int64_t i = 0; i < t->size; i++)
    assay_f64(t)[i] = assay_mended_number(c->odd->format, assay_f64(t)[i], attempt);
  *out = t;
  return NULL;
}

assay_status_t assay_lost_constant_repair(const assay_lost_constant_t* c, int attempt,
                                          assay_repair_t* out) {
  assay_repair_t r = {.node = c->node, .cause = "constant", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = c->input};
  ASSAY_TRY(mended_tensor(c, attempt, &r.edits[0].tensor));
  snprintf(r.text, sizeof r.text, "'%.80s' = %.6g instead of %.6g", c->odd->value->name,
           assay_mended_number(c->odd->format, c->odd->example, attempt), c->odd->example);
  *out = r;
  return NULL;
}
