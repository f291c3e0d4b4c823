// Whether a quantized model's error is of near ties alone: truth that takes over the engine's
// steps.
#include "account/verdict/near_ties.h"

#include <math.h>

#include "account/shares.h"
#include "base/alloc.h"
#include "eval/evaluator.h"

// How near to the middle of two integers, in steps: many times what sums in float32 differ by, and
// far less than a step.
static const double TIE = 1. / 64;

typedef struct follower {
  const assay_taken_t* engine;
  assay_evaluator_t* real;  // truth without rounding, for single nodes
  const assay_graph_t* graph;
  bool* seen;  // by node id: some element was a step off
  assay_near_ties_t* found;
} follower_t;

// Whether a number behind truth's integer may be the engine's, too. What is not finite is a
// quotient by 0, whose sign or NaN is that of the last bit of what was divided.
static bool may_be(double real, int64_t engine, int64_t truth) {
  if (!isfinite(real)) return true;
  const bool next = engine - truth == 1 || truth - engine == 1;
  return next && fabs(real - 0.5 * (double)(engine + truth)) <= TIE;
}

// The engine's integers where one is a step from truth's and the number behind it is next to a tie.
static assay_status_t take_steps(follower_t* f, const assay_node_t* n, const assay_tensor_t* real,
                                 const assay_tensor_t* engine, assay_tensor_t** out) {
  assay_tensor_t* followed = NULL;
  for (int64_t i = 0; i < engine->size; i++) {
    const int64_t e = assay_i64(engine)[i], t = assay_i64(*out)[i];
    if (e == t || !may_be(assay_f64(real)[i], e, t)) continue;
    if (!followed) ASSAY_TRY(assay_tensor_copy(*out, &followed));
    assay_i64(followed)[i] = e;
    f->found->elements++;
  }
  if (!followed) return NULL;
  f->found->quantizers += !f->seen[n->id];
  f->seen[n->id] = true;
  assay_tensor_release(*out);
  *out = followed;
  return NULL;
}

// What the node makes of truth's inputs before it rounds; *out NULL: that is not known.
static assay_status_t unrounded(follower_t* f, const assay_node_t* n, size_t n_in,
                                assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_tensor_t** made = NULL;
  *out = NULL;
  ASSAY_TRY(assay_new_array(n_out, sizeof *made, &made));
  assay_status_t st = assay_evaluator_node(f->real, n, n_in, in, n_out, made);
  if (!st && made[0] && made[0]->kind == ASSAY_KIND_TENSOR && made[0]->store == ASSAY_STORE_F64)
    *out = assay_tensor_retain(made[0]);
  for (size_t i = 0; !st && i < n_out; i++) assay_tensor_release(made[i]);
  assay_free(made);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}

static bool holds_steps(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_I64;
}

static assay_status_t follow(void* user, const assay_node_t* n, size_t n_in,
                             assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  follower_t* f = user;
  assay_tensor_t *engine = NULL, *real = NULL;
  if (n->graph != f->graph || !n_out || !n->op || !(n->op->flags & ASSAY_OP_QUANTIZES) ||
      !holds_steps(out[0]) || !n->outputs[0])
    return NULL;
  assay_tensor_t* taken = assay_taken_get(f->engine, n->outputs[0]);
  if (!taken) return NULL;
  ASSAY_TRY(assay_tensor_widen(taken, &engine));
  assay_status_t st = NULL;
  if (holds_steps(engine) && assay_tensor_alike(engine, out[0]))
    st = unrounded(f, n, n_in, in, n_out, &real);
  if (!st && real && real->size == engine->size) st = take_steps(f, n, real, engine, &out[0]);
  assay_tensor_release(real);
  assay_tensor_release(engine);
  return st;
}

static assay_status_t compare(const assay_taken_t* engine, const assay_evaluator_t* truth,
                              const assay_graph_t* g, assay_output_check_t* outputs) {
  for (size_t i = 0; i < g->n_outputs; i++) {
    assay_tensor_t *e = assay_taken_get(engine, g->outputs[i]), *wide = NULL, *t = NULL;
    assay_tensor_t* made = assay_evaluator_get(truth, g->outputs[i]);
    if (!e || !made) continue;
    assay_status_t st = assay_tensor_widen(e, &wide);
    if (!st) st = assay_tensor_widen(made, &t);
    if (!st) st = assay_output_add(&outputs[i], wide, t);
    assay_tensor_release(wide);
    assay_tensor_release(t);
    if (st) return st;
  }
  return NULL;
}

static assay_status_t run_sample(follower_t* f, const assay_plan_t* plan,
                                 const assay_backend_t* backend, assay_evaluator_t* truth,
                                 assay_tensor_t* const* inputs, assay_output_check_t* outputs) {
  assay_taken_t* taken = NULL;
  ASSAY_TRY(assay_taken_create(plan, &taken));
  assay_status_t st = assay_taken_run(taken, backend, inputs);
  f->engine = taken;
  if (!st) st = assay_evaluator_run_on(truth, inputs);
  if (!st) st = compare(taken, truth, f->graph, outputs);
  assay_taken_destroy(taken);
  return st;
}

assay_status_t assay_near_ties_run(const assay_plan_t* plan, const assay_backend_t* backend,
                                   const assay_samples_t* inputs, uint64_t seed,
                                   assay_output_check_t* outputs, assay_near_ties_t* out) {
  const assay_model_t* m = assay_plan_layers(plan)->model;
  assay_evaluator_t* truth = NULL;
  follower_t f = {.graph = m->graph, .found = out};
  const assay_evaluator_config_t follows = {
      .mode = ASSAY_MODE_TRUTH, .seed = seed, .hooks = {.after = follow, .user = &f}};
  const assay_evaluator_config_t real = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = true, .seed = seed};
  *out = (assay_near_ties_t){0};
  assay_status_t st = assay_new_array((size_t)m->n_node_ids, sizeof *f.seen, &f.seen);
  if (!st) st = assay_evaluator_create(m, &real, &f.real);
  if (!st) st = assay_evaluator_create(m, &follows, &truth);
  for (size_t k = 0; !st && k < inputs->n; k++) {
    assay_outputs_note_inputs(outputs, m->graph->n_outputs, m->graph->n_inputs,
                              assay_samples_get(inputs, k));
    st = run_sample(&f, plan, backend, truth, assay_samples_get(inputs, k), outputs);
  }
  assay_evaluator_destroy(truth);
  assay_evaluator_destroy(f.real);
  assay_free(f.seen);
  return st;
}
