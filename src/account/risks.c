// Values of a plan that its formats cannot hold, though no layer stores them: those that fused
// layers hide, and constants that passes made.
#include "account/risks.h"

#include <math.h>

#include "base/alloc.h"
#include "formats/format.h"

void assay_risks_deinit(assay_risks_t* r) {
  assay_free(r->at);
  *r = (assay_risks_t){0};
}

static assay_status_t add(assay_risks_t* r, const assay_risk_t* risk) {
  ASSAY_TRY(assay_grow(&r->at, &r->cap, r->n + 1, sizeof *r->at));
  r->at[r->n++] = *risk;
  return NULL;
}

// ---- hidden values ------------------------------------------------------------------------------

void assay_risk_add_hidden(const assay_layer_t* layer, const assay_value_t* v,
                           const assay_tensor_t* t, const assay_limits_t* limits,
                           assay_risk_t* risk) {
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->store != ASSAY_STORE_F64 ||
      t->type != ASSAY_TYPE_FLOAT)
    return;
  const double range = assay_format_info(layer->format)->max;
  const double *x = assay_f64(t), *e = limits->guaranteed ? assay_f64(limits->guaranteed) : NULL;
  double max = 0;
  int64_t n = 0;
#pragma omp parallel for schedule(static) reduction(+ : n) reduction(max : max) if (t->size > 100000)
  for (int64_t i = 0; i < t->size; i++) {
    double m = fabs(x[i]) + (e && isfinite(e[i]) ? e[i] : 0);
    bool past = m > range && m <= 0x1.fffffffffffffp1023;
    n += past;
    if (past && m > max) max = m;
  }
  risk->count += n;
  if (max <= risk->max) return;
  risk->max = max;
  risk->value = v;
  risk->layer = layer;
  risk->format = layer->format;
}

// A run with taps.
typedef struct run {
  const assay_layers_t* layers;
  const assay_backend_t* backend;
  void* state;
  assay_locals_t* locals;
  assay_risks_t* out;
} run_t;

static bool is_short(assay_format_t f) {
  return assay_format_info(f)->max < assay_format_info(ASSAY_FORMAT_BF16)->max;
}

static bool hides(const assay_layer_t* l) { return l && l->n_nodes > 1 && is_short(l->format); }

static void on_hidden(void* user, const assay_layer_t* layer, const assay_value_t* v,
                      const assay_tensor_t* t, const assay_limits_t* limits) {
  assay_risk_add_hidden(layer, v, t, limits, user);
}

static assay_status_t on_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  const run_t* r = user;
  assay_rounding_t rounding = {0};
  assay_local_t local = {0};
  assay_risk_t risk = {0};
  const assay_hidden_tap_t tap = {.value = on_hidden, .user = &risk};
  (void)n_out;
  (void)out;
  if (!hides(layer)) return NULL;
  assay_locals_set_iteration(r->locals, iteration);
  r->backend->rounding(r->state, layer, n_in, in, &rounding);
  ASSAY_TRY(assay_locals_run(r->locals, layer, node, n_in, in, &rounding, &tap, &local));
  assay_local_deinit(&local);
  return risk.value ? add(r->out, &risk) : NULL;
}

assay_status_t assay_risks_run(const assay_plan_t* plan, const assay_backend_t* backend,
                               void* shared, assay_tensor_t* const* inputs, assay_risks_t* out) {
  run_t r = {.layers = assay_plan_layers(plan), .backend = backend, .out = out};
  const assay_tap_t tap = {.layer = on_layer, .user = &r};
  bool any = false;
  for (size_t i = 0; i < r.layers->n_layers; i++) any |= hides(&r.layers->layers[i]);
  if (!any) return NULL;
  ASSAY_TRY(assay_locals_create(r.layers, false, &r.locals));
  assay_status_t st = assay_backend_open(backend, r.layers, shared, &tap, &r.state);
  if (!st) st = assay_backend_set_inputs(backend, r.state, r.layers->model->graph, inputs);
  for (size_t i = 0; !st && i < r.layers->n_layers; i++) st = backend->step(r.state, i);
  if (r.state) backend->close(r.state);
  assay_locals_destroy(r.locals);
  return st;
}

// ---- constants ----------------------------------------------------------------------------------

static bool reads(const assay_layer_t* l, const assay_value_t* v) {
  for (size_t k = 0; k < l->n_nodes; k++)
    for (size_t i = 0; i < l->nodes[k]->n_inputs; i++)
      if (l->nodes[k]->inputs[i] == v) return true;
  return false;
}

// The layer that reads a value in the format that ends first; NULL: none reads it.
static const assay_layer_t* reader_of(const assay_layers_t* layers, const assay_value_t* v) {
  const assay_layer_t* found = NULL;
  for (size_t i = 0; i < layers->n_all_layers; i++) {
    const assay_layer_t* l = &layers->layers[i];
    const bool shorter =
        !found || assay_format_info(l->format)->max < assay_format_info(found->format)->max;
    if (shorter && reads(l, v)) found = l;
  }
  return found;
}

// What float32 holds of a constant past a format's range.
static assay_status_t measure(assay_tensor_t* constant, double range, assay_risk_t* risk) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(constant, &wide));
  for (int64_t k = 0; k < wide->size; k++) {
    const double x = fabs(assay_f64(wide)[k]);
    const bool past = x > range && x <= 0x1.fffffep127;
    risk->count += past;
    if (past) risk->max = fmax(risk->max, x);
  }
  assay_tensor_release(wide);
  return NULL;
}

assay_status_t assay_risks_of_constants(const assay_plan_t* plan, assay_risks_t* out) {
  const assay_rewrite_t* rewrite = assay_plan_rewrite(plan);
  for (size_t i = 0; rewrite && i < rewrite->n_made; i++) {
    const assay_value_t* v = rewrite->made[i].value;
    if (!v->constant || v->constant->kind != ASSAY_KIND_TENSOR ||
        v->constant->type != ASSAY_TYPE_FLOAT)
      continue;
    const assay_layer_t* layer = reader_of(assay_plan_layers(plan), v);
    if (!layer) continue;
    assay_risk_t risk = {
        .layer = layer, .value = v, .pass = rewrite->made[i].pass, .format = layer->format};
    ASSAY_TRY(measure(v->constant, assay_format_info(layer->format)->max, &risk));
    if (risk.count) ASSAY_TRY(add(out, &risk));
  }
  return NULL;
}

void assay_risk_print(const assay_risk_t* r, assay_str_t* out) {
  const assay_format_info_t* f = assay_format_info(r->format);
  if (r->pass)
    assay_str_printf(out, "layer '%s' reads '%s', made by %s, up to %.3g; %s ends at %.6g",
                     r->layer->name, r->value->name, r->pass, r->max, f->name, f->max);
  else
    assay_str_printf(out, "layer '%s' hides '%s' up to %.3g; %s ends at %.6g", r->layer->name,
                     r->value->name, r->max, f->name, f->max);
}
