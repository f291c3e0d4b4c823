// How far an engine's outputs may lie from truth at all: the rows' guaranteed bounds carried
// through the whole network, from node to node, with every value rounded to where it is stored.
#include "certify/reach.h"

#include <math.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "ops/bound.h"

struct assay_reach {
  const assay_layers_t* layers;
  assay_evaluator_t* truth;  // whose hook carries the limits along
  assay_evaluator_t* aside;  // evaluates for the bounds
  bool coarse;               // of the evaluation in progress
  assay_limits_t* limits;    // by value id
  int* readers;              // by value id: how often it is read; of outputs once more
  int* left;                 // the same, in this run
};

static void configure(void* user, const assay_node_t* node, assay_eval_t* c) {
  (void)node;
  c->coarse = ((const assay_reach_t*)user)->coarse;
}

typedef struct evaluation {
  assay_reach_t* r;
  const assay_node_t* node;
} evaluation_t;

static assay_status_t evaluate(assay_bound_t* b, bool coarse, assay_tensor_t* const* in,
                               assay_tensor_t** out) {
  const evaluation_t* e = b->driver;
  e->r->coarse = coarse;
  assay_status_t st = assay_evaluator_node(e->r->aside, e->node, b->n_in, in, b->n_out, out);
  e->r->coarse = false;
  return st;
}

static bool holds_floats(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

// Adds to limits (NULL: 0) what rounding the value to a format does; past its range nothing limits.
static assay_status_t add_rounding(const assay_tensor_t* t, assay_format_t format,
                                   assay_limits_t* limits) {
  const assay_format_info_t* f = assay_format_info(format);
  const double u = f->unit_roundoff, tiny = f->min_subnormal / 2;
  assay_tensor_t* sum = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, t->rank, t->dims, &sum));
  const double* e = limits->guaranteed ? assay_f64(limits->guaranteed) : NULL;
  bool any = false;
  for (int64_t k = 0; k < t->size; k++) {
    const double x = fabs(assay_f64(t)[k]), before = e ? e[k] : 0;
    const bool fits = before == 0 && assay_format_round(format, x, ASSAY_OVERFLOW_IEEE) == x;
    const double after = fits ? 0 : before + u * (x + before) + tiny;
    assay_f64(sum)[k] = x + after <= f->max ? after : (double)INFINITY;
    any |= !(assay_f64(sum)[k] == 0);
  }
  assay_limits_deinit(limits);
  if (!any) return assay_tensor_release(sum), NULL;
  *limits = (assay_limits_t){.guaranteed = sum, .probable = assay_tensor_retain(sum)};
  return NULL;
}

// Nothing limits this value.
static assay_status_t give_up(const assay_tensor_t* t, assay_limits_t* limits) {
  assay_limits_deinit(limits);
  if (!t || t->kind != ASSAY_KIND_TENSOR) return NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, t->rank, t->dims, &limits->guaranteed));
  for (int64_t k = 0; k < t->size; k++) assay_f64(limits->guaranteed)[k] = (double)INFINITY;
  limits->probable = assay_tensor_retain(limits->guaranteed);
  return NULL;
}

// ---- one node -----------------------------------------------------------------------------------

typedef struct job {
  assay_reach_t* r;
  const assay_layer_t* layer;
  const assay_node_t* node;
  assay_tensor_t** in;  // canonical
  assay_limits_t* in_error;
  assay_limits_t* out_error;
} job_t;

// What enters: with what came along, or, from outside, as it is rounded on entering.
static assay_status_t enter(const job_t* j, size_t i, assay_tensor_t* in) {
  const assay_value_t* v = j->node->inputs[i];
  if (!in || !v) return NULL;
  ASSAY_TRY(assay_tensor_widen(in, &j->in[i]));
  const assay_limits_t* l = &j->r->limits[v->id];
  j->in_error[i].guaranteed = assay_tensor_retain(l->guaranteed);
  j->in_error[i].probable = assay_tensor_retain(l->probable);
  const assay_format_t format = assay_layer_operand(j->r->layers, j->layer, j->node, i, j->in[i]);
  if (format == ASSAY_FORMAT_NONE || !holds_floats(j->in[i])) return NULL;
  return add_rounding(j->in[i], format, &j->in_error[i]);
}

static assay_rounding_t rounding_of(const job_t* j, size_t n_in) {
  assay_format_t acc = j->layer ? j->layer->accumulator : ASSAY_FORMAT_FP32;
  if (assay_layer_is_double(n_in, j->in)) acc = ASSAY_FORMAT_FP64;
  return assay_rounding_unknown(acc == ASSAY_FORMAT_FP64 ? acc : ASSAY_FORMAT_FP32, acc);
}

static assay_status_t bound(const job_t* j, size_t n_in, size_t n_out, assay_tensor_t* const* out) {
  const assay_rounding_t rounding = rounding_of(j, n_in);
  evaluation_t e = {j->r, j->node};
  assay_bound_t b = {.node = j->node,
                     .rounding = &rounding,
                     .n_in = n_in,
                     .n_out = n_out,
                     .in = j->in,
                     .in_error = j->in_error,
                     .out = out,
                     .out_error = j->out_error,
                     .flips = true,
                     .evaluate = evaluate,
                     .driver = &e};
  bool bounded = !(j->node->op && j->node->op->flags & ASSAY_OP_CONTROL);
  assay_status_t st = bounded ? assay_bound_node(&b) : NULL;
  if (st && assay_status_code(st) == ASSAY_UNSUPPORTED) {
    assay_status_free(st);
    st = NULL;
    bounded = false;
  }
  for (size_t i = 0; !st && !bounded && i < n_out; i++) st = give_up(out[i], &j->out_error[i]);
  return st;
}

static assay_status_t run_node(const job_t* j, size_t n_in, assay_tensor_t* const* in, size_t n_out,
                               assay_tensor_t* const* out) {
  for (size_t i = 0; i < n_in; i++) ASSAY_TRY(enter(j, i, in[i]));
  ASSAY_TRY(bound(j, n_in, n_out, out));
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = j->node->outputs[i];
    if (!v || !out[i]) continue;
    if (holds_floats(out[i]))
      ASSAY_TRY(
          add_rounding(out[i], assay_layer_storage(j->layer, out[i]->type), &j->out_error[i]));
    j->r->limits[v->id] = j->out_error[i];
    j->out_error[i] = (assay_limits_t){0};
  }
  return NULL;
}

static void let_go(assay_reach_t* r, const assay_node_t* node, size_t n_in) {
  for (size_t i = 0; i < n_in; i++) {
    const assay_value_t* v = node->inputs[i];
    if (v && v->producer && --r->left[v->id] == 0) assay_limits_deinit(&r->limits[v->id]);
  }
}

static assay_status_t after(void* user, const assay_node_t* node, size_t n_in,
                            assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_reach_t* r = user;
  if (node->graph != r->layers->model->graph) return NULL;  // bodies: their node gives up
  const int l = r->layers->layer_of_node[node->id];
  job_t j = {.r = r, .layer = l < 0 ? NULL : &r->layers->layers[l], .node = node};
  assay_status_t st = assay_new_array(n_in, sizeof *j.in, &j.in);
  if (!st) st = assay_new_array(n_in, sizeof *j.in_error, &j.in_error);
  if (!st) st = assay_new_array(n_out, sizeof *j.out_error, &j.out_error);
  if (!st) st = run_node(&j, n_in, in, n_out, out);
  for (size_t i = 0; i < n_in; i++) {
    if (j.in) assay_tensor_release(j.in[i]);
    if (j.in_error) assay_limits_deinit(&j.in_error[i]);
  }
  for (size_t i = 0; j.out_error && i < n_out; i++) assay_limits_deinit(&j.out_error[i]);
  assay_free(j.in);
  assay_free(j.in_error);
  assay_free(j.out_error);
  if (!st) let_go(r, node, n_in);
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

assay_status_t assay_reach_create(const assay_plan_t* plan, bool unquantized, assay_reach_t** out) {
  assay_reach_t* r = NULL;
  ASSAY_TRY(ASSAY_NEW(&r));
  r->layers = assay_plan_layers(plan);
  const assay_model_t* m = r->layers->model;
  const assay_graph_t* g = m->graph;
  const assay_evaluator_config_t aside = {.mode = ASSAY_MODE_TRUTH,
                                          .unquantized = unquantized,
                                          .seed = r->layers->seed,
                                          .hooks = {.configure = configure, .user = r}};
  assay_evaluator_config_t truth = aside;
  truth.hooks = (assay_evaluator_hooks_t){.after = after, .user = r};
  assay_status_t st = assay_evaluator_create(m, &truth, &r->truth);
  if (!st) st = assay_evaluator_create(m, &aside, &r->aside);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *r->limits, &r->limits);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *r->readers, &r->readers);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *r->left, &r->left);
  if (st) return assay_reach_destroy(r), st;
  for (size_t k = 0; k < g->n_nodes; k++)
    for (size_t i = 0; i < g->nodes[k]->n_inputs; i++)
      if (g->nodes[k]->inputs[i]) r->readers[g->nodes[k]->inputs[i]->id]++;
  for (size_t i = 0; i < g->n_outputs; i++) r->readers[g->outputs[i]->id]++;
  *out = r;
  return NULL;
}

static void forget_limits(assay_reach_t* r) {
  for (int i = 0; r->limits && i < r->layers->model->n_values; i++)
    assay_limits_deinit(&r->limits[i]);
}

void assay_reach_destroy(assay_reach_t* r) {
  if (!r) return;
  forget_limits(r);
  assay_evaluator_destroy(r->truth);
  assay_evaluator_destroy(r->aside);
  assay_free(r->limits);
  assay_free(r->readers);
  assay_free(r->left);
  assay_free(r);
}

assay_status_t assay_reach_run(assay_reach_t* r, assay_tensor_t* const* inputs) {
  const assay_model_t* m = r->layers->model;
  forget_limits(r);
  for (int i = 0; i < m->n_values; i++) r->left[i] = r->readers[i];
  return assay_evaluator_run_on(r->truth, inputs);
}

const assay_tensor_t* assay_reach_output(const assay_reach_t* r, size_t i) {
  return r->limits[r->layers->model->graph->outputs[i]->id].guaranteed;
}
