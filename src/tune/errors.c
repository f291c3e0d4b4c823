// What the units of a plan do to its outputs when they run in one low format.
#include "tune/errors.h"

#include <math.h>
#include <string.h>

#include "account/account.h"
#include "account/shares.h"
#include "base/alloc.h"
#include "diagnose/search_predict.h"
#include "formats/format.h"

// Of what rounding a unit's outputs does in truth, its own error has at least so much.
static const double MIN_STORED = 0.5;

typedef struct job {
  const assay_tune_errors_setting_t* s;
  const assay_tune_problem_t* p;
  const assay_layers_t* layers;
  assay_tune_errors_t* out;
  float** own;  // by value of the problem: own errors of the sample at hand; NULL: none
  assay_status_t failed;
  assay_tensor_t** engine;  // by output
  assay_evaluator_t* evaluator;
  assay_forecast_t *units, *links;  // of one pass
  assay_forecast_t* stored;         // by unit: of rounding what it makes in truth
  bool* seen;                       // by unit: has an error of its own
} job_t;

// ---- own errors ---------------------------------------------------------------------------------

static void watch(void* user, const assay_layer_account_t* layer, const assay_value_t* value,
                  const assay_tensor_t* engine, const assay_tensor_t* local,
                  const assay_tensor_t* truth) {
  job_t* j = user;
  const int at = value ? j->s->layout->value_of_id[value->id] : -1;
  (void)layer;
  (void)truth;
  if (j->failed || at < 0 || value->graph != j->layers->model->graph) return;
  float* to = NULL;
  bool any = false;
  j->failed = assay_new_array((size_t)engine->size, sizeof *to, &to);
  for (int64_t i = 0; !j->failed && i < engine->size; i++) {
    const double d = assay_f64(engine)[i] - assay_f64(local)[i];
    to[i] = isfinite(d) ? (float)d : 0;
    any |= to[i] != 0;
  }
  if (!any) assay_free(to), to = NULL;
  assay_free(j->own[at]);
  j->own[at] = to;
}

static void forget(job_t* j) {
  for (size_t v = 0; v < j->p->n_values; v++) {
    assay_free(j->own[v]);
    j->own[v] = NULL;
  }
  for (size_t o = 0; o < j->p->n_outputs; o++) {
    assay_tensor_release(j->engine[o]);
    j->engine[o] = NULL;
  }
}

static assay_status_t run_engine(job_t* j, assay_account_t* account, size_t sample) {
  forget(j);
  assay_status_t st = assay_account_run(account, assay_samples_get(j->s->inputs, sample));
  st = assay_status_join(st, j->failed);
  j->failed = NULL;
  for (size_t o = 0; !st && o < j->p->n_outputs; o++)
    j->engine[o] = assay_tensor_retain(assay_account_engine_output(account, o));
  return st;
}

static assay_status_t run_truth(job_t* j, size_t sample) {
  assay_tensor_t* const* inputs = assay_samples_get(j->s->inputs, sample);
  assay_evaluator_reset(j->evaluator);
  ASSAY_TRY(assay_evaluator_set_inputs_widened(j->evaluator, inputs));
  return assay_evaluator_run(j->evaluator);
}

// ---- one pass -----------------------------------------------------------------------------------

static assay_status_t truth_of(const job_t* j, const assay_value_t* v, assay_tensor_t** out) {
  assay_tensor_t* t = assay_evaluator_get(j->evaluator, v);
  *out = NULL;
  if (!t || t->kind != ASSAY_KIND_TENSOR) return NULL;
  return assay_tensor_widen(t, out);
}

// A value that is off by its own error.
static assay_status_t ask_own(job_t* j, const assay_predict_t* p, const assay_value_t* v,
                              size_t at) {
  assay_tensor_t *was = NULL, *now = NULL;
  const size_t unit = j->p->values[at].maker;
  if (!j->own[at] || unit == ASSAY_TUNE_OUTSIDE) return NULL;
  j->seen[unit] = true;
  ASSAY_TRY(truth_of(j, v, &was));
  assay_status_t st = was ? assay_tensor_copy(was, &now) : NULL;
  if (!st && now) {
    for (int64_t i = 0; i < now->size; i++) assay_f64(now)[i] += (double)j->own[at][i];
    assay_predict_add(p, v, now, was, &j->units[unit]);
  }
  assay_tensor_release(now);
  assay_tensor_release(was);
  return st;
}

// Where a reader is the only one, rounding for it is rounding the value.
static const assay_tune_link_t* only_reader(const job_t* j, size_t at) {
  const assay_tune_value_t* v = &j->p->values[at];
  const assay_tune_link_t* l = &j->p->links[v->first];
  return v->n == 1 && v->maker != ASSAY_TUNE_OUTSIDE && l->reader != ASSAY_TUNE_OUTSIDE ? l : NULL;
}

// The value and what it is rounded to; *now NULL: nothing is rounded.
static assay_status_t rounded(const job_t* j, const assay_value_t* v, assay_tensor_t** was,
                              assay_tensor_t** now) {
  *now = NULL;
  ASSAY_TRY(truth_of(j, v, was));
  if (!*was || (*was)->store != ASSAY_STORE_F64) return NULL;
  return assay_round_tensor(*was, j->s->format, now);
}

// Whether a unit's outputs are among the numbers that it reads, or follow from them without
// rounding: in the low format nothing is left to round.
static bool hands_on(const job_t* j, size_t unit) {
  const assay_layer_t* l = &j->layers->layers[unit];
  for (size_t k = 0; k < l->n_nodes; k++) {
    const assay_op_t* op = l->nodes[k]->op;
    if (!op || !(op->flags & ASSAY_OP_MOVES || op->bound == assay_bound_exact)) return false;
  }
  return true;
}

// What rounding does to a unit's outputs in truth. After layers whose values vanish in the format
// the engine has nothing left to round, and shows less.
static assay_status_t ask_stored(job_t* j, const assay_predict_t* p, const assay_value_t* v,
                                 size_t at) {
  assay_tensor_t *was = NULL, *now = NULL;
  const size_t unit = j->p->values[at].maker;
  if (unit == ASSAY_TUNE_OUTSIDE || hands_on(j, unit) ||
      j->layers->layers[unit].format != j->s->format)
    return NULL;
  assay_status_t st = rounded(j, v, &was, &now);
  if (!st && now) assay_predict_add(p, v, now, was, &j->stored[unit]);
  assay_tensor_release(now);
  assay_tensor_release(was);
  return st;
}

static assay_status_t ask_rounding(job_t* j, const assay_predict_t* p, const assay_value_t* v,
                                   size_t at) {
  assay_tensor_t *was = NULL, *now = NULL;
  const assay_tune_link_t* l = only_reader(j, at);
  if (!l) return NULL;
  assay_status_t st = rounded(j, v, &was, &now);
  if (!st && now) assay_predict_add(p, v, now, was, &j->links[l - j->p->links]);
  assay_tensor_release(now);
  assay_tensor_release(was);
  return st;
}

static assay_tune_link_t* link_of(const job_t* j, size_t at, size_t reader) {
  const assay_tune_value_t* v = &j->p->values[at];
  for (size_t l = v->first; l < v->first + v->n; l++)
    if (j->p->links[l].reader == reader) return &j->p->links[l];
  return NULL;
}

// One of several readers: by what the node makes of it.
static assay_status_t ask_input(job_t* j, const assay_predict_t* p, size_t position, size_t input) {
  const assay_node_t* n = j->layers->model->graph->nodes[position];
  const assay_value_t* v = n->inputs[input];
  const int at = v ? j->s->layout->value_of_id[v->id] : -1;
  double* derivatives = NULL;
  assay_tensor_t *was = NULL, *now = NULL;
  if (at < 0 || j->p->values[at].maker == ASSAY_TUNE_OUTSIDE || only_reader(j, (size_t)at))
    return NULL;
  const assay_tune_link_t* l = link_of(j, (size_t)at, assay_tune_unit_of(j->s->plan, n));
  if (!l) return NULL;
  assay_status_t st = rounded(j, v, &was, &now);
  if (!st && now && now != was) st = assay_predict_constant(p, position, input, &derivatives);
  if (derivatives) assay_predict_products(p, derivatives, now, was, &j->links[l - j->p->links]);
  assay_free(derivatives);
  assay_tensor_release(now);
  assay_tensor_release(was);
  return st;
}

static bool rounds_stored(const job_t* j) {
  return assay_format_info(j->s->format)->type != ASSAY_TYPE_UNDEFINED;
}

static assay_status_t ask_node(job_t* j, assay_predict_t* p, size_t position) {
  const assay_node_t* n = j->layers->model->graph->nodes[position];
  for (size_t i = 0; i < n->n_outputs; i++) {
    const int at = n->outputs[i] ? j->s->layout->value_of_id[n->outputs[i]->id] : -1;
    if (at < 0) continue;
    ASSAY_TRY(ask_own(j, p, n->outputs[i], (size_t)at));
    if (rounds_stored(j)) ASSAY_TRY(ask_rounding(j, p, n->outputs[i], (size_t)at));
    if (rounds_stored(j)) ASSAY_TRY(ask_stored(j, p, n->outputs[i], (size_t)at));
  }
  for (size_t i = 0; rounds_stored(j) && i < n->n_inputs; i++)
    ASSAY_TRY(ask_input(j, p, position, i));
  return assay_predict_pass(p, position);
}

// Mean square of the finite differences.
static double mean_square(const assay_tensor_t* a, const assay_tensor_t* b) {
  double sum = 0;
  for (int64_t i = 0; i < a->size; i++) {
    const double d = assay_f64(a)[i] - assay_f64(b)[i];
    if (isfinite(d)) sum += d * d;
  }
  return a->size ? sum / (double)a->size : 0;
}

// With r = truth - engine: J d over |r|, squared, and its product with -r.
static double square_of(const assay_forecast_t* f) {
  double across = 0;
  for (int q = 0; q < ASSAY_PROBES - 1; q++) across += f->across[q] * f->across[q];
  return f->along * f->along + across / (ASSAY_PROBES - 1);
}

static void gather(job_t* j, size_t output, double base) {
  const size_t n = j->p->n_outputs;
  for (size_t u = 0; u < j->p->n_units; u++) {
    const assay_forecast_t *f = &j->units[u], *stored = &j->stored[u];
    const double min = stored->known && isfinite(square_of(stored)) ? square_of(stored) : 0;
    if (!j->seen[u]) {
      j->out->energy[u * n + output] += base * min;
      continue;
    }
    if (!f->known || !isfinite(square_of(f))) {
      j->out->unknown[u] = true;
      continue;
    }
    j->out->energy[u * n + output] += base * fmax(square_of(f), MIN_STORED * min);
    j->out->share[u * n + output] -= base * f->along;
  }
  for (size_t l = 0; l < j->p->n_links; l++)
    if (j->links[l].known && isfinite(square_of(&j->links[l])))
      j->out->link[l * n + output] += base * square_of(&j->links[l]);
}

static void clear(job_t* j) {
  for (size_t u = 0; u < j->p->n_units; u++) {
    j->units[u] = j->stored[u] = (assay_forecast_t){.known = true};
    j->seen[u] = false;
  }
  for (size_t l = 0; l < j->p->n_links; l++) j->links[l] = (assay_forecast_t){.known = true};
}

static bool comparable(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a && b && a->kind == ASSAY_KIND_TENSOR && b->kind == ASSAY_KIND_TENSOR &&
         a->store == ASSAY_STORE_F64 && b->store == ASSAY_STORE_F64 && a->size == b->size;
}

static assay_status_t pass(job_t* j, size_t output, const assay_search_t* search, double base) {
  assay_predict_t* p = NULL;
  ASSAY_TRY(assay_predict_create(search, &p));
  if (!p) return NULL;
  clear(j);
  assay_status_t st = NULL;
  for (size_t i = search->n_nodes; !st && i-- > 0;) st = ask_node(j, p, i);
  if (!st) gather(j, output, base);
  assay_predict_destroy(p);
  return st;
}

static assay_status_t passes(job_t* j, size_t output) {
  const assay_graph_t* g = j->layers->model->graph;
  assay_tensor_t* truth = NULL;
  ASSAY_TRY(truth_of(j, g->outputs[output], &truth));
  assay_status_t st = NULL;
  if (comparable(truth, j->engine[output])) {
    const assay_search_target_t target = {
        .value = g->outputs[output], .golden = j->engine[output], .truth = truth};
    assay_search_t search = {.model = j->layers->model,
                             .evaluator = j->evaluator,
                             .nodes = (const assay_node_t* const*)g->nodes,
                             .n_nodes = g->n_nodes,
                             .targets = &target,
                             .n_targets = 1};
    const double base = mean_square(truth, j->engine[output]);
    j->out->base[output] += base;
    for (; !st && search.draw < j->s->draws; search.draw++)
      st = pass(j, output, &search, base / (double)j->s->draws);
  }
  assay_tensor_release(truth);
  return st;
}

// ---- where there is no rule ---------------------------------------------------------------------

// Units that a forecast does not know get the shares of their layer ranges.
static assay_status_t add_shares(job_t* j) {
  const assay_shares_options_t options = {.unquantized = j->s->unquantized};
  const size_t n = j->p->n_outputs;
  assay_shares_t shares = {0};
  bool any = false;
  for (size_t u = 0; u < j->p->n_units; u++) any |= j->out->unknown[u];
  if (!any) return NULL;
  ASSAY_TRY(assay_shares_run(j->s->plan, j->s->backend, assay_samples_get(j->s->inputs, 0),
                             &options, &shares));
  for (size_t i = 0; i < shares.n; i++) {
    const assay_layer_range_t* t = &shares.at[i];
    for (size_t u = t->first; u < t->end; u++)
      for (size_t o = 0; o < n && j->out->unknown[u]; o++) {
        const double part = j->out->base[o] * t->share[o] / (double)(t->end - t->first);
        j->out->energy[u * n + o] = fabs(part);
        j->out->share[u * n + o] = part;
      }
  }
  assay_shares_deinit(&shares);
  return NULL;
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t measure(job_t* j, assay_account_t* account) {
  for (size_t k = 0; k < j->s->samples; k++) {
    if (j->s->progress)
      j->s->progress(j->s->user, "errors of the layers", (double)k / (double)j->s->samples);
    ASSAY_TRY(run_engine(j, account, k));
    ASSAY_TRY(run_truth(j, k));
    for (size_t o = 0; o < j->p->n_outputs; o++) ASSAY_TRY(passes(j, o));
  }
  return NULL;
}

static void note_ratios(job_t* j, const assay_account_t* account) {
  for (size_t i = 0; i < assay_account_layer_count(account); i++) {
    const assay_layer_account_t* a = assay_account_layer(account, i);
    const size_t u = assay_tune_unit_of(j->s->plan, a->node);
    if (u == ASSAY_TUNE_OUTSIDE) continue;
    j->out->ratio[u] += a->own.sum_ref2 > 0 ? a->own.sum_err2 / a->own.sum_ref2 : 0;
    j->out->ratio[u] += a->flipped ? 1 : 0;
  }
}

static void divide(double* at, size_t n, size_t samples) {
  for (size_t i = 0; i < n; i++) at[i] /= (double)samples;
}

static assay_status_t reserve(job_t* j) {
  const assay_tune_problem_t* p = j->p;
  assay_tune_errors_t* e = j->out;
  const size_t n = p->n_outputs;
  ASSAY_TRY(assay_new_array(p->n_units * n, sizeof *e->energy, &e->energy));
  ASSAY_TRY(assay_new_array(p->n_units * n, sizeof *e->share, &e->share));
  ASSAY_TRY(assay_new_array(p->n_links * n, sizeof *e->link, &e->link));
  ASSAY_TRY(assay_new_array(n, sizeof *e->base, &e->base));
  ASSAY_TRY(assay_new_array(p->n_units, sizeof *e->ratio, &e->ratio));
  ASSAY_TRY(assay_new_array(p->n_units, sizeof *e->unknown, &e->unknown));
  ASSAY_TRY(assay_new_array(p->n_values, sizeof *j->own, &j->own));
  ASSAY_TRY(assay_new_array(n, sizeof *j->engine, &j->engine));
  ASSAY_TRY(assay_new_array(p->n_units, sizeof *j->units, &j->units));
  ASSAY_TRY(assay_new_array(p->n_units, sizeof *j->stored, &j->stored));
  ASSAY_TRY(assay_new_array(p->n_links, sizeof *j->links, &j->links));
  return assay_new_array(p->n_units, sizeof *j->seen, &j->seen);
}

static assay_status_t run(job_t* j) {
  const assay_account_options_t options = {.unquantized = j->s->unquantized,
                                           .watch = {.value = watch, .user = j}};
  const assay_evaluator_config_t truth = {.mode = ASSAY_MODE_TRUTH,
                                          .unquantized = j->s->unquantized,
                                          .seed = j->layers->seed,
                                          .keep_all = true};
  const size_t n = j->p->n_outputs;
  assay_account_t* account = NULL;
  ASSAY_TRY(reserve(j));
  assay_status_t st = assay_account_create(j->s->plan, j->s->backend, &options, &account);
  if (!st) st = assay_evaluator_create(j->layers->model, &truth, &j->evaluator);
  if (!st) st = measure(j, account);
  if (!st) note_ratios(j, account);
  forget(j);
  assay_account_destroy(account);
  assay_evaluator_destroy(j->evaluator);
  if (st) return st;
  divide(j->out->energy, j->p->n_units * n, j->s->samples);
  divide(j->out->share, j->p->n_units * n, j->s->samples);
  divide(j->out->link, j->p->n_links * n, j->s->samples);
  divide(j->out->base, n, j->s->samples);
  return add_shares(j);
}

assay_status_t assay_tune_errors_measure(const assay_tune_errors_setting_t* s,
                                         assay_tune_errors_t* out) {
  assay_tune_errors_t e = {0};
  job_t j = {.s = s, .p = &s->layout->problem, .layers = assay_plan_layers(s->plan), .out = &e};
  assay_status_t st = run(&j);
  assay_free(j.own);
  assay_free(j.engine);
  assay_free(j.units);
  assay_free(j.stored);
  assay_free(j.links);
  assay_free(j.seen);
  if (st) return assay_tune_errors_deinit(&e), st;
  *out = e;
  return NULL;
}

void assay_tune_errors_deinit(assay_tune_errors_t* e) {
  assay_free(e->energy);
  assay_free(e->share);
  assay_free(e->link);
  assay_free(e->base);
  assay_free(e->ratio);
  assay_free(e->unknown);
  *e = (assay_tune_errors_t){0};
}
