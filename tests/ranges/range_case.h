// Ranges of small models, held against runs: boxes and points are drawn, and what the emulated
// engine and truth make of each point must lie where the ranges say.
#ifndef ASSAY_TESTS_ACCURACY_RANGE_CASE_H_
#define ASSAY_TESTS_ACCURACY_RANGE_CASE_H_

#include "passes/graph_case.h"
#include "ranges/ranges.h"
#include "runtime/executor.h"

typedef struct range_case {
  assay_model_t* model;
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_plan_t* plan;
  assay_box_t box;
  assay_executor_t *engine, *truth;
  assay_tap_t tap;
  const assay_ranges_t* ranges;  // that the values of a run are held against; NULL: they are not
  const char* what;              // of whom, for messages
  uint64_t seed;                 // that this point was drawn from
  bool rounds_truth;             // to fp32, before it is held against the ranges
  int faults;                    // points outside their range, or that broke without notice
  bool broken;                   // a number that is not finite was seen
} range_case_t;

// ---- numbers in a box ---------------------------------------------------------------------------

static inline double range_case_uniform(uint64_t* state) {
  return graph_case_random(state) / 2 + 0.5;
}

static inline double range_case_in(const assay_box_input_t* in, double x) {
  if (!in->is_float) return fmin(fmax(rint(x), ceil(in->lo)), floor(in->hi));
  const assay_format_t f = assay_type_format(in->value->declared->elem);
  double y = assay_format_round(f, x, ASSAY_OVERFLOW_SATURATE);
  if (y < in->lo) y = assay_format_next(f, y, 1);
  if (y > in->hi) y = assay_format_next(f, y, -1);
  return y;
}

// Kinds of points by turns: anywhere, corners, one number for all, one end for all, near the
// middle, corners with a few zeros.
static inline void range_case_point(range_case_t* c, int kind, uint64_t* state) {
  for (size_t i = 0; i < c->box.n; i++) {
    const assay_box_input_t* in = &c->box.inputs[i];
    if (!in->value) continue;
    const double one = in->lo + (in->hi - in->lo) * range_case_uniform(state);
    const double end = range_case_uniform(state) < 0.5 ? in->lo : in->hi;
    for (int64_t k = 0; k < c->in[i]->size; k++) {
      const double u = range_case_uniform(state), corner = u < 0.5 ? in->lo : in->hi;
      const double x = kind == 0   ? in->lo + (in->hi - in->lo) * u
                       : kind == 1 ? corner
                       : kind == 2 ? one
                       : kind == 3 ? end
                       : kind == 4 ? (in->lo + in->hi) / 2 + (in->hi - in->lo) * 1e-3 * (u - 0.5)
                                   : (u < 0.15 || u > 0.85 ? 0 : corner);
      if (c->in[i]->store == ASSAY_STORE_F64)
        assay_f64(c->in[i])[k] = range_case_in(in, fmin(fmax(x, in->lo), in->hi));
      else
        assay_i64(c->in[i])[k] = (int64_t)range_case_in(in, fmin(fmax(x, in->lo), in->hi));
    }
  }
}

// ---- runs ---------------------------------------------------------------------------------------

static inline void range_case_hold(range_case_t* c, const assay_value_t* v, assay_tensor_t* t) {
  assay_tensor_t* wide = NULL;
  if (!v || !t || t->kind != ASSAY_KIND_TENSOR || v->id >= c->model->n_values) return;
  op_case_ok(assay_tensor_widen(t, &wide));
  const bool is_float = wide->store == ASSAY_STORE_F64;
  const assay_value_range_t* r = c->ranges ? &c->ranges->values[v->id] : NULL;
  for (int64_t i = 0; (is_float || wide->store == ASSAY_STORE_I64) && i < wide->size; i++) {
    double x = is_float ? assay_f64(wide)[i] : (double)assay_i64(wide)[i];
    // What truth gives is not a number of the format: its neighbour in it is held.
    if (is_float && c->rounds_truth)
      x = assay_format_round(ASSAY_FORMAT_FP32, x, ASSAY_OVERFLOW_IEEE);
    c->broken |= !isfinite(x);
    if (!r || !r->known || (x >= r->lo && x <= r->hi)) continue;
    print_error("'%s' of the %s is %.17g, its range [%.17g, %.17g] (%s, seed %llu)\n", v->name,
                c->what, x, r->lo, r->hi, c->model->graph->name, (unsigned long long)c->seed);
    c->faults++;
    break;
  }
  assay_tensor_release(wide);
}

static inline assay_status_t range_case_watch(void* user, const assay_layer_t* layer,
                                              const assay_node_t* node, uint64_t iteration,
                                              size_t n_in, assay_tensor_t* const* in, size_t n_out,
                                              assay_tensor_t* const* out) {
  (void)layer, (void)iteration, (void)n_in, (void)in;
  for (size_t i = 0; i < n_out; i++) range_case_hold(user, node->outputs[i], out[i]);
  return NULL;
}

static inline void range_case_run(range_case_t* c, assay_executor_t* e, const char* what) {
  const assay_graph_t* g = assay_executor_graph(e);
  c->what = what;
  assay_executor_reset(e);
  for (size_t i = 0; i < g->n_inputs; i++)
    if (c->in[i]) op_case_ok(assay_executor_set(e, g->inputs[i], c->in[i]));
  op_case_ok(assay_executor_run(e));
  for (size_t i = 0; i < g->n_outputs; i++)
    range_case_hold(c, g->outputs[i], assay_executor_get(e, g->outputs[i]));
}

// Takes over the model and its inputs.
static inline void range_case_take(range_case_t* c, assay_model_t* model, assay_tensor_t* const* in,
                                   assay_format_t format) {
  const assay_precision_t precision = {.format = format};
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH};
  *c = (range_case_t){.model = model, .tap = {.layer = range_case_watch}};
  c->tap.user = c;
  for (size_t i = 0; i < GRAPH_CASE_ROWS; i++) c->in[i] = in[i];
  const assay_graph_t* g = model->graph;
  op_case_ok(assay_plan_create(model, &precision, NULL, 0, &c->plan));
  op_case_ok(assay_executor_run_plan(c->plan, &assay_backend_emu, &c->tap, &c->engine));
  op_case_ok(assay_executor_evaluate(model, &config, &c->truth));
  op_case_ok(assay_new_array(g->n_inputs, sizeof *c->box.inputs, &c->box.inputs));
  c->box.n = g->n_inputs;
  for (size_t i = 0; i < g->n_inputs; i++)
    c->box.inputs[i] =
        (assay_box_input_t){.value = g->inputs[i],
                            .lo = -1,
                            .hi = 1,
                            .is_float = assay_type_is_float(g->inputs[i]->declared->elem),
                            .origin = ASSAY_BOX_GIVEN};
}

static inline void range_case_init(range_case_t* c, const graph_case_t* row,
                                   assay_format_t format) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* model = graph_case_model(row, in);
  range_case_take(c, model, in, format);
}

static inline void range_case_deinit(range_case_t* c) {
  assay_executor_destroy(c->engine);
  assay_executor_destroy(c->truth);
  assay_plan_destroy(c->plan);
  assay_model_release(c->model);
  graph_case_release(c->in);
  assay_box_deinit(&c->box);
}

static inline void range_case_find(const range_case_t* c, assay_ranges_t* out) {
  const assay_ranges_options_t options = {0};
  op_case_ok(assay_ranges_find(c->plan, &c->box, &options, out));
}

static inline bool range_case_is_point(const range_case_t* c) {
  for (size_t i = 0; i < c->box.n; i++)
    if (c->box.inputs[i].value && c->box.inputs[i].lo < c->box.inputs[i].hi) return false;
  return true;
}

// Points in the box against its ranges: with no hazard all are finite, and whatever is finite lies
// in its range. Truth is held against them only in formats that change nothing about the points.
static inline void range_case_points(range_case_t* c, const assay_ranges_t* r, int n, bool truth,
                                     uint64_t* state) {
  for (int k = 0; k < n; k++) {
    c->seed = *state;
    c->broken = false;
    range_case_point(c, k % 6, state);
    c->ranges = r->n_hazards ? NULL : r;
    range_case_run(c, c->engine, "engine");
    if (!r->n_hazards && c->broken) {
      print_error("%s: not finite, and nothing was announced (seed %llu)\n", c->model->graph->name,
                  (unsigned long long)c->seed);
      c->faults++;
    }
    c->rounds_truth = true;
    if (truth) range_case_run(c, c->truth, "truth");
    c->rounds_truth = false;
  }
}

#endif  // ASSAY_TESTS_ACCURACY_RANGE_CASE_H_
