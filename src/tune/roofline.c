// What units do, and how long that takes on a device that is not here (plan/roofline.h).
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/search.h"
#include "eval/evaluator.h"
#include "formats/format.h"
#include "ops/cost.h"
#include "tune/times.h"

// ---- work ---------------------------------------------------------------------------------------

typedef struct survey {
  const assay_plan_t* plan;
  const assay_layers_t* layers;
  const assay_tune_layout_t* layout;
  assay_tune_works_t* works;
} survey_t;

// Elements that keep their order need not be moved at all.
static bool is_view(const assay_node_t* n) {
  static const char* const views[] = {"Reshape",  "Flatten", "Squeeze", "Unsqueeze",
                                      "Identity", "Dropout", "Shape",   "Size"};
  for (size_t i = 0; i < sizeof views / sizeof *views; i++)
    if (strcmp(views[i], n->op_type) == 0) return true;
  return false;
}

static double size_of(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR ? (double)t->size : 0;
}

static void add_tensor(assay_tune_work_t* w, const assay_tensor_t* t, double elems) {
  if (!t || t->kind != ASSAY_KIND_TENSOR) return;
  if (t->type == ASSAY_TYPE_FLOAT)
    w->floats += elems;
  else
    w->other_bytes += elems * assay_type_bits(t->type) / 8;
}

// What a node reads and writes of what is not hidden within its layer; one that moves elements
// reads as many as it writes.
static void add_traffic(const survey_t* s, const assay_node_t* n, size_t n_in,
                        assay_tensor_t* const* in, size_t n_out, assay_tensor_t* const* out,
                        assay_tune_work_t* w) {
  double written = 0;
  for (size_t i = 0; i < n_out; i++) {
    written += size_of(out[i]);
    if (n->outputs[i] && !s->layers->hidden_value[n->outputs[i]->id])
      add_tensor(w, out[i], size_of(out[i]));
  }
  const bool moves = n->op && n->op->flags & ASSAY_OP_MOVES;
  for (size_t i = 0; i < n_in; i++) {
    if (!n->inputs[i] || s->layers->hidden_value[n->inputs[i]->id]) continue;
    add_tensor(w, in[i], moves ? fmin(size_of(in[i]), written) : size_of(in[i]));
  }
}

static assay_status_t survey(void* user, const assay_node_t* n, size_t n_in,
                             assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  survey_t* s = user;
  const size_t unit = assay_tune_unit_of(s->plan, n);
  assay_cost_t cost = {0};
  if (unit == ASSAY_TUNE_OUTSIDE) return NULL;
  ASSAY_TRY(assay_cost_of_tensors(n, n_in, in, n_out, out, &cost));
  assay_tune_work_t* w = &s->works->unit[unit];
  if (n->op && n->op->flags & ASSAY_OP_CONTRACTS)
    w->products += cost.flops;
  else
    w->others += cost.flops;
  w->runs |= !is_view(n) && s->layout->floats[unit];
  if (w->runs) add_traffic(s, n, n_in, in, n_out, out, w);
  for (size_t i = 0; i < n_out; i++) {
    const int at = n->outputs[i] ? s->layout->value_of_id[n->outputs[i]->id] : -1;
    if (at >= 0) s->works->elems[at] = size_of(out[i]);
  }
  return NULL;
}

static assay_status_t run(survey_t* s, assay_tensor_t* const* inputs, bool unquantized) {
  const assay_graph_t* g = s->layers->model->graph;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = unquantized,
                                           .seed = s->layers->seed,
                                           .hooks = {.after = survey, .user = s}};
  assay_evaluator_t* m = NULL;
  for (size_t i = 0; i < g->n_inputs; i++) {
    const int at = s->layout->value_of_id[g->inputs[i]->id];
    if (inputs[i] && at >= 0) s->works->elems[at] = size_of(inputs[i]);
  }
  ASSAY_TRY(assay_evaluator_create(s->layers->model, &config, &m));
  assay_status_t st = assay_evaluator_set_inputs_widened(m, inputs);
  if (!st) st = assay_evaluator_run(m);
  assay_evaluator_destroy(m);
  return st;
}

assay_status_t assay_tune_works_measure(const assay_plan_t* plan, const assay_tune_layout_t* layout,
                                        assay_tensor_t* const* inputs, bool unquantized,
                                        assay_tune_works_t* out) {
  assay_tune_works_t w = {0};
  survey_t s = {.plan = plan, .layers = assay_plan_layers(plan), .layout = layout, .works = &w};
  ASSAY_TRY(assay_new_array(layout->n_units, sizeof *w.unit, &w.unit));
  assay_status_t st = assay_new_array(layout->problem.n_values, sizeof *w.elems, &w.elems);
  if (!st) st = run(&s, inputs, unquantized);
  if (st) return assay_tune_works_deinit(&w), st;
  *out = w;
  return NULL;
}

void assay_tune_works_deinit(assay_tune_works_t* w) {
  assay_free(w->unit);
  assay_free(w->elems);
  *w = (assay_tune_works_t){0};
}

// ---- times --------------------------------------------------------------------------------------

// tf32 is a way to multiply: its values are stored as fp32's are.
static double bytes_of(assay_format_t f) {
  return f == ASSAY_FORMAT_TF32 ? 4 : assay_format_info(f)->bits / 8.0;
}

static double unit_seconds(const assay_device_roofline_t* d, assay_format_t f,
                           const assay_tune_work_t* w) {
  const double products = w->products / (1e12 * assay_device_roofline_rate(d, f));
  const double others = w->others / (1e12 * d->fp32);
  const double memory = (w->floats * bytes_of(f) + w->other_bytes) / (1e9 * d->gigabytes);
  return w->runs ? fmax(fmax(products, others), memory) + 1e-6 * d->microseconds : 0;
}

static void fill_casts(assay_tune_layout_t* l, const assay_format_t* formats,
                       const assay_tune_works_t* works, double bytes_a_second, double start) {
  const size_t n = l->problem.n_formats;
  for (size_t v = 0; v < l->problem.n_values; v++)
    for (size_t a = 0; a < n; a++)
      for (size_t b = 0; b < n; b++) {
        const double bytes = works->elems[v] * (bytes_of(formats[a]) + bytes_of(formats[b]));
        const bool same = bytes_of(formats[a]) >= 4 && bytes_of(formats[b]) >= 4;
        l->problem.values[v].cast[a * n + b] = a == b || same ? 0 : bytes / bytes_a_second + start;
      }
}

void assay_tune_times_roofline(const assay_device_roofline_t* device, const assay_format_t* formats,
                               const assay_tune_works_t* works, assay_tune_layout_t* layout) {
  const size_t n = layout->problem.n_formats;
  for (size_t u = 0; u < layout->n_units; u++)
    for (size_t f = 0; f < n; f++)
      layout->problem.time[u * n + f] = unit_seconds(device, formats[f], &works->unit[u]);
  fill_casts(layout, formats, works, 1e9 * device->gigabytes, 1e-6 * device->microseconds);
}

// ---- casts of this machine ----------------------------------------------------------------------

assay_status_t assay_tune_times_casts(const assay_format_t* formats,
                                      const assay_tune_works_t* works,
                                      assay_tune_layout_t* layout) {
  enum { BYTES = 1 << 24, TIMES = 4 };
  char *from = NULL, *to = NULL;
  double fastest = (double)INFINITY;
  assay_status_t st = assay_new_array(BYTES, 1, &from);
  if (!st) st = assay_new_array(BYTES, 1, &to);
  for (int k = 0; !st && k < TIMES; k++) {
    const double start = assay_clock_seconds();
    from[k] = (char)k;
    memcpy(to, from, BYTES);
    fastest = fmin(fastest, assay_clock_seconds() - start);
  }
  assay_free(from);
  assay_free(to);
  if (st) return st;
  // A copy reads and writes.
  fill_casts(layout, formats, works, 2.0 * BYTES / fmax(fastest, 1e-6), 1e-6);
  return NULL;
}
