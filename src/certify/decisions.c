// Which predictions cannot flip: the largest element of each row of scores, or on which side of a
// threshold each element lies.
#include "certify/decisions.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "certify/reach.h"
#include "eval/evaluator.h"

// ---- what is asked ------------------------------------------------------------------------------

static assay_status_t parse_threshold(const assay_model_t* m, const char* text,
                                      assay_decision_request_t* out) {
  const assay_graph_t* g = m->graph;
  const char* colon = strrchr(text, ':');
  char* end = NULL;
  errno = 0;
  const double value = colon ? strtod(colon + 1, &end) : 0;
  if (!colon || colon == text || end == colon + 1 || *end || errno || !isfinite(value))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "threshold '%s' is not OUTPUT:VALUE, such as score:0.5", text);
  for (size_t i = 0; i < g->n_outputs; i++) {
    const char* name = g->outputs[i]->name;
    if (strlen(name) != (size_t)(colon - text) || strncmp(name, text, (size_t)(colon - text)) != 0)
      continue;
    *out = (assay_decision_request_t){i, ASSAY_DECISION_THRESHOLD, value};
    return NULL;
  }
  char name[256];
  snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
  const char* near = ASSAY_VALUES_NEAR_TEXT(g->outputs, g->n_outputs, name);
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "threshold '%s': the model has no such output (such as '%s')%s", text,
                     g->n_outputs ? g->outputs[0]->name : "", near);
}

static bool has_scores(const assay_value_t* v) {
  return v->type && v->type->kind == ASSAY_KIND_TENSOR && v->type->elem == ASSAY_TYPE_FLOAT &&
         v->type->has_shape && v->type->rank == 2;
}

assay_status_t assay_decisions_ask(const assay_model_t* model, size_t n_thresholds,
                                   const char* const* thresholds, assay_decision_request_t** out,
                                   size_t* out_n) {
  const assay_graph_t* g = model->graph;
  assay_decision_request_t* at = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_new_array(n_thresholds + g->n_outputs, sizeof *at, &at));
  for (; n < n_thresholds; n++) {
    assay_status_t st = parse_threshold(model, thresholds[n], &at[n]);
    if (st) return assay_free(at), st;
  }
  for (size_t i = 0; i < g->n_outputs; i++) {
    bool asked = !has_scores(g->outputs[i]);
    for (size_t k = 0; k < n_thresholds; k++) asked |= at[k].output == i;
    if (!asked) at[n++] = (assay_decision_request_t){i, ASSAY_DECISION_TOP1, 0};
  }
  *out = at;
  *out_n = n;
  return NULL;
}

// ---- deciding -----------------------------------------------------------------------------------

static int64_t columns_of(const assay_tensor_t* t) { return t->dims[t->rank - 1]; }

size_t assay_decisions_count(assay_decision_kind_t kind, const assay_tensor_t* t) {
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->store != ASSAY_STORE_F64) return 0;
  if (kind == ASSAY_DECISION_THRESHOLD) return (size_t)t->size;
  if (t->rank != 2 || columns_of(t) < 2) return 0;
  return (size_t)t->dims[0];
}

int64_t assay_decision_of(assay_decision_kind_t kind, double threshold, const assay_tensor_t* t,
                          size_t i) {
  if (kind == ASSAY_DECISION_THRESHOLD) {
    const double x = assay_f64(t)[i];
    return isnan(x) ? -1 : x > threshold;
  }
  const int64_t n = columns_of(t);
  const double* row = assay_f64(t) + (int64_t)i * n;
  int64_t best = 0;
  for (int64_t k = 0; k < n; k++) {
    if (isnan(row[k])) return -1;
    if (row[k] > row[best]) best = k;
  }
  return best;
}

// ---- collecting ---------------------------------------------------------------------------------

typedef struct item {
  double margin;  // NaN: it is not decided by truth
  double error;   // largest mean square of what moves it, over the runs
  bool proven, flipped;
} item_t;

// All decisions of one request.
typedef struct tally {
  const assay_decision_request_t* request;
  item_t* items;
  size_t n, capacity;
  uint64_t choices;
  bool other;  // in some sample the output is not of this kind
} tally_t;

// Truth's margin of decision i, and whether limits (NULL: exact) leave it alone.
static void judge_top1(const assay_tensor_t* t, const assay_tensor_t* limits, size_t i,
                       int64_t choice, item_t* out) {
  const int64_t n = columns_of(t);
  const double *row = assay_f64(t) + (int64_t)i * n, top = row[choice];
  const double* e = limits ? assay_f64(limits) + (int64_t)i * n : NULL;
  out->margin = (double)INFINITY;
  out->proven = true;
  for (int64_t k = 0; k < n; k++) {
    if (k == choice) continue;
    out->margin = fmin(out->margin, top - row[k]);
    out->proven &= top - row[k] > (e ? e[choice] + e[k] : 0);
  }
}

static void judge_threshold(const assay_tensor_t* t, const assay_tensor_t* limits, size_t i,
                            double threshold, item_t* out) {
  out->margin = fabs(assay_f64(t)[i] - threshold);
  out->proven = out->margin > (limits ? assay_f64(limits)[i] : 0);
}

static assay_status_t add_truth(tally_t* y, const assay_tensor_t* t, const assay_tensor_t* limits,
                                bool limited) {
  const assay_decision_request_t* r = y->request;
  const size_t n = assay_decisions_count(r->kind, t);
  if (!n) return y->other = true, NULL;
  ASSAY_TRY(assay_grow(&y->items, &y->capacity, y->n + n, sizeof *y->items));
  for (size_t i = 0; i < n; i++) {
    item_t* item = &y->items[y->n++];
    *item = (item_t){.margin = (double)NAN};
    const int64_t choice = assay_decision_of(r->kind, r->threshold, t, i);
    y->choices = assay_hash(&choice, sizeof choice, y->choices);
    if (choice < 0) continue;
    if (r->kind == ASSAY_DECISION_TOP1)
      judge_top1(t, limits, i, choice, item);
    else
      judge_threshold(t, limits, i, r->threshold, item);
    item->proven &= limited;
  }
  return NULL;
}

// What moves decision i from truth t to an engine's e: mean square over the rivals.
static double moved(const assay_decision_request_t* r, const assay_tensor_t* e,
                    const assay_tensor_t* t, size_t i) {
  if (r->kind == ASSAY_DECISION_THRESHOLD) {
    const double d = assay_f64(e)[i] - assay_f64(t)[i];
    return d * d;
  }
  const int64_t n = columns_of(t), choice = assay_decision_of(r->kind, 0, t, i);
  const double *x = assay_f64(e) + (int64_t)i * n, *y = assay_f64(t) + (int64_t)i * n;
  if (choice < 0) return (double)INFINITY;
  double sum = 0;
  for (int64_t k = 0; k < n; k++) {
    const double d = (x[choice] - x[k]) - (y[choice] - y[k]);
    sum += d * d;
  }
  return sum / (double)(n - 1);
}

static void add_run(tally_t* y, size_t first, const assay_tensor_t* e, const assay_tensor_t* t) {
  const assay_decision_request_t* r = y->request;
  const bool same = e && e->kind == t->kind && e->store == t->store && e->size == t->size;
  for (size_t i = 0; first + i < y->n; i++) {
    item_t* item = &y->items[first + i];
    const double square = same ? moved(r, e, t, i) : (double)INFINITY;
    item->error = isfinite(square) ? fmax(item->error, square) : (double)INFINITY;
    item->flipped |= !same || assay_decision_of(r->kind, r->threshold, e, i) !=
                                  assay_decision_of(r->kind, r->threshold, t, i);
  }
}

// The error of a single decision is told from few numbers: it counts for no less than that of all.
static assay_status_t grade(tally_t* y, assay_decisions_t* out) {
  double sum = 0;
  size_t n = 0;
  for (size_t i = 0; i < y->n; i++) {
    if (!isfinite(y->items[i].error)) continue;
    sum += y->items[i].error;
    n++;
  }
  const double all = n ? sum / (double)n : 0;
  *out = (assay_decisions_t){.output = (uint32_t)y->request->output,
                             .kind = y->request->kind,
                             .threshold = y->request->threshold,
                             .n = y->n,
                             .choices = (uint32_t)y->choices};
  ASSAY_TRY(assay_new_array(y->n, 1, &out->grades));
  for (size_t i = 0; i < y->n; i++) {
    const item_t* item = &y->items[i];
    const double sigma = sqrt(fmax(item->error, all));
    const bool apart = item->margin > ASSAY_DECISION_SIGMAS * sigma && !item->flipped;
    const assay_grade_t g = item->flipped  ? ASSAY_GRADE_OPEN
                            : item->proven ? ASSAY_GRADE_PROVEN
                            : apart        ? ASSAY_GRADE_PROBABLE
                                           : ASSAY_GRADE_OPEN;
    out->grades[i] = (uint8_t)g;
    out->count[g]++;
  }
  return NULL;
}

// ---- runs ---------------------------------------------------------------------------------------

assay_status_t assay_outputs_of(const assay_plan_t* plan, const assay_backend_t* backend,
                                void** state, assay_tensor_t* const* inputs, assay_tensor_t** out) {
  const assay_layers_t* l = assay_plan_layers(plan);
  const assay_graph_t* g = l->model->graph;
  if (*state)
    backend->reset(*state);
  else
    ASSAY_TRY(assay_backend_open(backend, l, NULL, NULL, state));
  ASSAY_TRY(assay_backend_set_inputs(backend, *state, g, inputs));
  for (size_t i = 0; i < l->n_layers; i++) ASSAY_TRY(backend->step(*state, i));
  for (size_t i = 0; i < g->n_outputs; i++) {
    assay_tensor_t* t = NULL;
    ASSAY_TRY(assay_backend_output(backend, *state, g->outputs[i], &t));
    if (t) ASSAY_TRY(assay_tensor_widen(t, &out[i]));
  }
  return NULL;
}

assay_status_t assay_truth_outputs(assay_evaluator_t* evaluator, const assay_graph_t* g,
                                   assay_tensor_t* const* inputs, assay_tensor_t** out) {
  ASSAY_TRY(assay_evaluator_run_on(evaluator, inputs));
  for (size_t i = 0; i < g->n_outputs; i++) {
    assay_tensor_t* t = assay_evaluator_get(evaluator, g->outputs[i]);
    if (t) ASSAY_TRY(assay_tensor_widen(t, &out[i]));
  }
  return NULL;
}

void assay_outputs_release(size_t n, assay_tensor_t** t) {
  for (size_t i = 0; t && i < n; i++) assay_tensor_release(t[i]);
  assay_free(t);
}

// Engines whose errors are looked at: as certified; the emulated one with every node by itself, and
// fused, whose errors of storing are others; both with what is stored rounded by chance.
typedef struct variant {
  bool certified, fused;
  uint64_t draws;
} variant_t;
static const variant_t variants[] = {{.certified = true},
                                     {.fused = false, .draws = 2},
                                     {.fused = true},
                                     {.fused = true, .draws = 3}};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

typedef struct collector {
  const assay_decisions_job_t* job;
  size_t n_outputs, n_requests;
  tally_t* tallies;
  assay_plan_t* plans[N_VARIANTS];
  void* states[N_VARIANTS];  // of their backends
  assay_evaluator_t* truth;
  assay_plan_t* plain;  // of the nodes, for reach
  assay_reach_t* reach;
} collector_t;

static assay_status_t make_plans(collector_t* c) {
  const assay_decisions_job_t* j = c->job;
  for (int i = 0; i < N_VARIANTS; i++) {
    assay_plan_options_t o = *j->plan;
    if (!variants[i].certified)
      o = (assay_plan_options_t){.fused = variants[i].fused, .draws = variants[i].draws};
    ASSAY_TRY(assay_plan_create(j->model, j->precision, &o, j->seed, &c->plans[i]));
  }
  const assay_evaluator_config_t truth = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = j->unquantized, .seed = j->seed};
  ASSAY_TRY(assay_evaluator_create(j->model, &truth, &c->truth));
  ASSAY_TRY(assay_plan_create(j->model, j->precision, NULL, j->seed, &c->plain));
  return assay_reach_create(c->plain, j->unquantized, &c->reach);
}

static const assay_backend_t* backend_of(const collector_t* c, int variant) {
  return variants[variant].certified ? c->job->backend : &assay_backend_emu;
}

static assay_status_t add_variant(collector_t* c, int variant, assay_tensor_t* const* inputs,
                                  assay_tensor_t* const* truth, const size_t* first) {
  assay_tensor_t** out = NULL;
  ASSAY_TRY(assay_new_array(c->n_outputs, sizeof *out, &out));
  assay_status_t st =
      assay_outputs_of(c->plans[variant], backend_of(c, variant), &c->states[variant], inputs, out);
  for (size_t k = 0; !st && k < c->n_requests; k++) {
    const size_t o = c->tallies[k].request->output;
    if (!c->tallies[k].other) add_run(&c->tallies[k], first[k], out[o], truth[o]);
  }
  assay_outputs_release(c->n_outputs, out);
  return st;
}

static assay_status_t add_sample(collector_t* c, assay_tensor_t* const* inputs) {
  assay_tensor_t** truth = NULL;
  size_t* first = NULL;
  assay_status_t st = assay_new_array(c->n_outputs, sizeof *truth, &truth);
  if (!st) st = assay_new_array(c->n_requests, sizeof *first, &first);
  if (!st) st = assay_truth_outputs(c->truth, c->job->model->graph, inputs, truth);
  if (!st) st = assay_reach_run(c->reach, inputs);
  for (size_t k = 0; !st && k < c->n_requests; k++) {
    tally_t* y = &c->tallies[k];
    const size_t o = y->request->output;
    const assay_tensor_t* limits = assay_reach_output(c->reach, o);
    first[k] = y->n;
    if (!y->other) st = add_truth(y, truth[o], limits, !limits || limits->size == truth[o]->size);
  }
  for (int v = 0; !st && v < N_VARIANTS; v++) st = add_variant(c, v, inputs, truth, first);
  assay_outputs_release(c->n_outputs, truth);
  assay_free(first);
  return st;
}

static assay_status_t hand_over(collector_t* c, assay_decisions_t** out, size_t* out_n) {
  assay_decisions_t* d = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_new_array(c->n_requests, sizeof *d, &d));
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < c->n_requests; k++)
    if (!c->tallies[k].other) st = grade(&c->tallies[k], &d[n++]);
  if (!st) return *out = d, *out_n = n, NULL;
  for (size_t k = 0; k < n; k++) assay_free(d[k].grades);
  assay_free(d);
  return st;
}

assay_status_t assay_decisions_make(const assay_decisions_job_t* job,
                                    const assay_decision_request_t* requests, size_t n_requests,
                                    assay_decisions_t** out, size_t* out_n) {
  collector_t c = {.job = job, .n_outputs = job->model->graph->n_outputs, .n_requests = n_requests};
  *out = NULL;
  *out_n = 0;
  if (!n_requests) return NULL;
  ASSAY_TRY(assay_new_array(n_requests, sizeof *c.tallies, &c.tallies));
  for (size_t k = 0; k < n_requests; k++) c.tallies[k].request = &requests[k];
  assay_status_t st = make_plans(&c);
  for (size_t s = 0; !st && s < job->inputs->n; s++) {
    st = add_sample(&c, assay_samples_get(job->inputs, s));
    if (job->progress)
      job->progress(job->user, "deciding", (double)(s + 1) / (double)job->inputs->n);
  }
  if (!st) st = hand_over(&c, out, out_n);
  for (size_t k = 0; k < n_requests; k++) assay_free(c.tallies[k].items);
  assay_free(c.tallies);
  for (int i = 0; i < N_VARIANTS; i++) {
    if (c.states[i]) backend_of(&c, i)->close(c.states[i]);
    assay_plan_destroy(c.plans[i]);
  }
  assay_evaluator_destroy(c.truth);
  assay_reach_destroy(c.reach);
  assay_plan_destroy(c.plain);
  return st;
}
