// Holding a run against a certificate: what changed, and where.
#include "certify/verify.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "certify/certify.h"
#include "certify/decisions.h"
#include "certify/observe.h"

// A sketch is rounded to a step; another machine's float64 may take it a step further.
static const double STEPS_OFF = 1.5;
// An engine's own error, RMS, over what it was certified with.
static const double OWN_GROWTH = 4;
// The whole error of a value over what it was certified with, and as a part of the value: past
// both, what the engine computes is not this model.
static const double DRIFT = 64, DRIFT_PART = 1.0 / 64;

const char* assay_change_name(assay_change_t c) {
  static const char* const names[ASSAY_CHANGE_COUNT] = {"model",    "inputs",    "truth", "fault",
                                                        "unfinite", "underflow", "error", "drift",
                                                        "bits",     "decision"};
  return names[c];
}

void assay_verified_deinit(assay_verified_t* v) {
  for (size_t i = 0; i < v->n; i++) assay_free(v->at[i].nodes);
  assay_free(v->at);
  assay_free(v->decisions);
  *v = (assay_verified_t){0};
}

typedef struct verification {
  const assay_certificate_t* c;
  const assay_verify_job_t* job;
  const assay_plan_t* plan;
  assay_sources_t sources;
  size_t* certified;  // by number of a value here: its number in the certificate; SIZE_MAX: none
  assay_observed_t *truth, *engine;
  assay_evaluator_t* evaluator;  // truth of the first sample
  assay_account_t* account;      // the engine's run of it
  assay_verified_t* out;
} verification_t;

// What changed of one kind, as the values are gone through in order: the first, and how many.
static assay_status_t add(assay_verified_t* v, const assay_change_found_t* found) {
  if (!found->n) return NULL;
  ASSAY_TRY(assay_grow(&v->at, &v->capacity, v->n + 1, sizeof *v->at));
  v->at[v->n++] = *found;
  return NULL;
}

// The same of a layer: with the nodes that it computes, of the model as it was given.
static assay_status_t add_layer(const verification_t* w, assay_change_found_t* found,
                                const assay_layer_account_t* acc) {
  if (!found->n) return NULL;
  const size_t n = acc && acc->layer ? acc->layer->n_nodes : 0;
  size_t space = 0;
  for (size_t k = 0; k < n; k++) space += assay_plan_origins(w->plan, &acc->layer->nodes[k]).n;
  ASSAY_TRY(assay_new_array(space, sizeof *found->nodes, &found->nodes));
  for (size_t k = 0; k < n; k++) {
    const assay_origins_t o = assay_plan_origins(w->plan, &acc->layer->nodes[k]);
    for (size_t i = 0; i < o.n; i++) found->nodes[found->n_nodes++] = o.nodes[i];
  }
  if (found->n_nodes) found->node = found->nodes[found->n_nodes - 1];
  assay_status_t st = add(w->out, found);
  if (st) assay_free(found->nodes);
  return st;
}

static void report(assay_change_found_t* f, const char* format, ...) ASSAY_PRINTF(2, 3);
static void report(assay_change_found_t* f, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(f->why, sizeof f->why, format, args);
  va_end(args);
}

// ---- the same model and inputs? -----------------------------------------------------------------

static assay_status_t compare_model(verification_t* w, bool* out_same) {
  const assay_certificate_t* c = w->c;
  assay_change_found_t f = {.what = ASSAY_CHANGE_MODEL, .n = 1};
  uint64_t hash, bytes;
  assay_certificate_model(w->job->model, &hash, &bytes);
  *out_same = hash == c->model && bytes == c->model_bytes;
  if (*out_same) return NULL;
  if (w->sources.n != c->n_values)
    report(&f, "it has %zu values, the certified one %zu", w->sources.n, c->n_values);
  else if (w->sources.names != c->names)
    report(&f, "its values have other names");
  else
    report(&f, "the same values by name, %llu bytes, the certified one %llu",
           (unsigned long long)bytes, (unsigned long long)c->model_bytes);
  return add(w->out, &f);
}

static assay_status_t compare_inputs(verification_t* w, bool* out_same) {
  assay_change_found_t f = {.what = ASSAY_CHANGE_INPUTS, .n = 1};
  uint64_t hash = 0;
  *out_same = true;
  if (!w->c->given) return NULL;
  ASSAY_TRY(assay_certificate_inputs(w->job->inputs, &hash));
  *out_same = hash == w->c->inputs;
  if (*out_same) return NULL;
  report(&f, "they are not the ones that were certified");
  return add(w->out, &f);
}

// Which value of the certificate each value here is: by its number where all names are the same,
// else by the hash of its name, after the one before it.
static assay_status_t match_values(verification_t* w) {
  const assay_certificate_t* c = w->c;
  const size_t n = w->sources.n;
  ASSAY_TRY(assay_new_array(n, sizeof *w->certified, &w->certified));
  const bool same = w->sources.names == c->names && n == c->n_values;
  for (size_t i = 0, next = 0; i < n; i++) {
    w->certified[i] = same ? i : SIZE_MAX;
    if (same || !c->form.names) continue;
    const uint16_t name = assay_source_name(w->sources.at[i]);
    for (size_t k = next; k < c->n_values && w->certified[i] == SIZE_MAX; k++)
      if (assay_certificate_keeps(c, k) && c->values[k].name == name) w->certified[i] = k;
    if (w->certified[i] != SIZE_MAX) next = w->certified[i] + 1;
  }
  return NULL;
}

static const assay_certified_value_t* certified(const verification_t* w, size_t i) {
  return w->certified[i] == SIZE_MAX ? NULL : &w->c->values[w->certified[i]];
}

static bool is_kept(const verification_t* w, size_t i) {
  return w->certified[i] != SIZE_MAX && assay_certificate_keeps(w->c, w->certified[i]);
}

// Sets the place of the first finding; `before`: the last value that was found right, SIZE_MAX:
// none.
static void place(const verification_t* w, assay_change_found_t* f, size_t i, size_t before) {
  f->node = w->sources.at[i]->producer;
  const size_t since = before == SIZE_MAX ? 0 : before + 1;
  if (since < i) f->since = w->sources.at[since]->producer;
}

// ---- truth --------------------------------------------------------------------------------------

// How many steps truth is off its sketches, at most.
static double steps_off(const verification_t* w, const assay_certified_value_t* v,
                        const assay_sketch_t* s) {
  const double step = assay_size_decode(v->step);
  double worst = 0;
  if (!isfinite(step)) return 0;  // the engine was off by more than numbers tell
  for (int j = 0; j < w->c->form.sketches; j++) {
    const double off = fabs(s->sum[j] - step * (double)v->sketch[j]);
    worst = fmax(worst, step > 0 ? off / step : off > 0 ? (double)INFINITY : 0);
  }
  return worst;
}

static assay_status_t compare_truth(verification_t* w) {
  assay_change_found_t f = {.what = ASSAY_CHANGE_TRUTH};
  size_t before = SIZE_MAX;
  for (size_t i = 0; i < w->sources.n; i++) {
    const assay_certified_value_t* v = certified(w, i);
    const assay_observed_t* t = &w->truth[i];
    if (!v || !is_kept(w, i) || !t->seen || !w->c->form.sketches) continue;
    w->out->n_compared++;
    const double off = steps_off(w, v, &t->sketch);
    const bool unfinite = (t->sketch.unfinite > 0) != ((v->odd & ASSAY_ODD_TRUTH) != 0);
    const bool same = off <= STEPS_OFF && !unfinite;
    if (same && !f.n) before = i;
    if (same) continue;
    if (!f.n++) {
      place(w, &f, i, before);
      if (unfinite)
        report(&f, "%s",
               t->sketch.unfinite ? "truth has NaN or infinities now" : "truth is finite now");
      else
        report(&f, "truth moved by %.2g times the error that was certified",
               off / ASSAY_CERTIFICATE_STEPS);
    }
  }
  return add(w->out, &f);
}

// ---- the engine ---------------------------------------------------------------------------------

// Layers that are defects, where the certified engine was none.
static assay_status_t compare_faults(verification_t* w) {
  const assay_account_t* a = w->account;
  assay_change_found_t f = {.what = ASSAY_CHANGE_FAULT};
  assay_change_found_t known = {.what = ASSAY_CHANGE_FAULT, .note = true};
  const assay_layer_account_t *first = NULL, *first_known = NULL;
  w->out->n_layers = assay_account_layer_count(a);
  for (size_t k = 0; k < w->out->n_layers; k++) {
    const assay_layer_account_t* acc = assay_account_layer(a, k);
    if (acc->verdict != ASSAY_VERDICT_DEFECT) continue;
    const size_t i =
        acc->node->n_outputs ? assay_sources_find(&w->sources, acc->node->outputs[0]) : SIZE_MAX;
    const assay_certified_value_t* v = i == SIZE_MAX ? NULL : certified(w, i);
    assay_change_found_t* to = v && v->odd & ASSAY_ODD_DEFECT ? &known : &f;
    if (to->n++) continue;
    to->node = acc->node;
    *(to->note ? &first_known : &first) = acc;
    const assay_judgement_t* j = &acc->judged;
    if (to->note)
      report(to, "its own error is more than rounding explains, as it was when it was certified");
    else if (acc->shape_mismatches)
      report(to, "its output has another shape than the model gives");
    else if (j->beyond)
      report(to, "own error %.3g times the guaranteed bound, in %lld of %lld elements", j->worst,
             (long long)j->beyond, (long long)j->elements);
    else
      report(to, "own error %.3g times what rounding in other orders shows", acc->outlying_by);
  }
  ASSAY_TRY(add_layer(w, &f, first));
  return add_layer(w, &known, first_known);
}

// What is odd about the engine's values that was not when it was certified.
static assay_status_t compare_odd(verification_t* w, assay_change_t what, uint8_t odd, bool note,
                                  const char* why) {
  assay_change_found_t f = {.what = what, .note = note};
  const assay_layer_account_t* first = NULL;
  for (size_t i = 0; i < w->sources.n; i++) {
    const assay_certified_value_t* v = certified(w, i);
    const assay_observed_t* e = &w->engine[i];
    const uint8_t allowed = (uint8_t)(odd == ASSAY_ODD_ENGINE ? odd | ASSAY_ODD_TRUTH : odd);
    if (!v || !e->seen || !(e->odd & odd) || v->odd & allowed) continue;
    if (f.n++) continue;
    f.node = w->sources.at[i]->producer;
    first = e->account;
    const int64_t n = odd == ASSAY_ODD_ENGINE ? e->sketch.unfinite : e->account->judged.underflowed;
    report(&f, "%s, in %lld of %lld elements", why, (long long)n, (long long)e->sketch.size);
  }
  return add_layer(w, &f, first);
}

// Own errors against the certified bounds, where a layer is a node, as it was in the certificate.
static assay_status_t compare_own(verification_t* w) {
  assay_change_found_t f = {.what = ASSAY_CHANGE_ERROR};
  const assay_layer_account_t* first = NULL;
  if (!w->c->form.bounds || w->c->fused) return NULL;
  for (size_t i = 0; i < w->sources.n; i++) {
    const assay_certified_value_t* v = certified(w, i);
    const assay_observed_t* e = &w->engine[i];
    if (!v || !is_kept(w, i) || !v->bound || !e->account || v->odd & ASSAY_ODD_DEFECT) continue;
    if (e->account->layer && e->account->layer->n_nodes > 1) continue;
    const double own = assay_error_sum_rms(&e->account->own), bound = assay_size_decode(v->bound);
    if (!(own > OWN_GROWTH * bound) || f.n++) continue;
    f.node = w->sources.at[i]->producer;
    first = e->account;
    report(&f, "own error %.3g, certified were at most %.3g (root mean square)", own, bound);
  }
  return add_layer(w, &f, first);
}

// Whole errors: what layers that are each judged by what they compute cannot tell, since a
// rewritten model is what they are judged by.
static assay_status_t compare_drift(verification_t* w) {
  assay_change_found_t f = {.what = ASSAY_CHANGE_DRIFT};
  const assay_layer_account_t* first = NULL;
  for (size_t i = 0; i < w->sources.n; i++) {
    const assay_certified_value_t* v = certified(w, i);
    const assay_observed_t *t = &w->truth[i], *e = &w->engine[i];
    if (!v || !is_kept(w, i) || !t->seen || !e->seen) continue;
    const double size = sqrt(t->sketch.norm2);
    const double off = assay_sketch_distance(&e->sketch, &t->sketch);
    const double limit = DRIFT * ASSAY_CERTIFICATE_STEPS * assay_size_decode(v->step);
    const bool reshaped = e->sketch.size != t->sketch.size;
    if (!reshaped && !(off > limit && off > DRIFT_PART * size)) continue;
    if (f.n++) continue;
    f.node = w->sources.at[i]->producer;
    first = e->account;
    if (reshaped)
      report(&f, "it has %lld elements, truth %lld", (long long)e->sketch.size,
             (long long)t->sketch.size);
    else
      report(&f, "off truth by %.2g of its size; certified was less than %.2g", off / size,
             limit / DRIFT / size);
  }
  return add_layer(w, &f, first);
}

// ---- bits ---------------------------------------------------------------------------------------

// Why bits cannot be compared; NULL: they can.
static const char* other_engine(const verification_t* w, bool same, uint32_t machine) {
  const assay_certificate_t* c = w->c;
  const assay_check_setting_t* o = w->job->check;
  if (!same) return "it is of another model or of other inputs";
  if (!c->form.bits_bytes) return "it holds no bits";
  if (strcmp(c->target, o->backend->name) != 0) return "it was made on another target";
  if (c->fused != (o->plan.fused || w->job->plan)) return "it is of a plan that is fused otherwise";
  if (c->machine != machine) return "it was made with other libraries or instruction sets";
  return NULL;
}

static assay_status_t compare_bits(verification_t* w, bool same) {
  assay_change_found_t f = {.what = ASSAY_CHANGE_BITS, .note = !w->job->bits};
  uint32_t machine;
  ASSAY_TRY(assay_certificate_machine(w->job->check->backend, &machine));
  const char* why = other_engine(w, same, machine);
  if (why && w->job->bits && same)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--bits: the certificate's cannot be compared: %s",
                       why);
  if (why) return NULL;
  const assay_layer_account_t* first = NULL;
  const uint32_t mask = UINT32_MAX >> (32 - 8 * w->c->form.bits_bytes);
  size_t before = SIZE_MAX;
  for (size_t i = 0; i < w->sources.n; i++) {
    const assay_certified_value_t* v = certified(w, i);
    if (!v || !is_kept(w, i) || !v->bits || !w->engine[i].seen) continue;
    w->out->n_bits++;
    const bool equal = ((v->bits ^ w->engine[i].bits) & mask) == 0;
    w->out->same_bits += equal;
    if (equal && !f.n) before = i;
    if (equal || f.n++) continue;
    place(w, &f, i, before);
    first = w->engine[i].account;
  }
  report(&f, "other bits than certified");
  return add_layer(w, &f, first);
}

// ---- decisions ----------------------------------------------------------------------------------

typedef struct deciding {
  assay_evaluator_t* truth;
  void* state;
  size_t* next;       // by certified output: the first decision of the sample
  uint64_t* choices;  // hashes of truth's
  size_t* first;      // the first stable one that flipped
} deciding_t;

static bool is_stable(const assay_decisions_t* d, size_t i) {
  return d->grades && i < d->n && d->grades[i] != ASSAY_GRADE_OPEN;
}

static void hold_decisions(const verification_t* w, deciding_t* g, size_t k,
                           const assay_tensor_t* truth, const assay_tensor_t* engine) {
  const assay_decisions_t* d = &w->c->decisions[k];
  assay_decisions_held_t* h = &w->out->decisions[k];
  const size_t n = assay_decisions_count(d->kind, truth);
  const bool same =
      n == assay_decisions_count(d->kind, engine) && engine && truth && engine->size == truth->size;
  for (size_t i = 0; i < n; i++) {
    const int64_t right = assay_decision_of(d->kind, d->threshold, truth, i);
    const bool flips = !same || assay_decision_of(d->kind, d->threshold, engine, i) != right;
    g->choices[k] = assay_hash(&right, sizeof right, g->choices[k]);
    h->flipped += flips;
    if (!flips || !is_stable(d, g->next[k] + i)) continue;
    if (!h->flipped_stable++) g->first[k] = g->next[k] + i;
  }
  g->next[k] += n;
}

// The outputs of the first sample, which has run.
static assay_status_t first_outputs(const verification_t* w, assay_tensor_t** truth,
                                    assay_tensor_t** engine) {
  const assay_graph_t* graph = w->job->model->graph;
  for (size_t i = 0; i < graph->n_outputs; i++) {
    assay_tensor_t* t = assay_evaluator_get(w->evaluator, graph->outputs[i]);
    assay_tensor_t* e = assay_account_engine_output(w->account, i);
    if (t) ASSAY_TRY(assay_tensor_widen(t, &truth[i]));
    if (e) ASSAY_TRY(assay_tensor_widen(e, &engine[i]));
  }
  return NULL;
}

static assay_status_t run_sample(const verification_t* w, deciding_t* g,
                                 assay_tensor_t* const* inputs, assay_tensor_t** truth,
                                 assay_tensor_t** engine) {
  const assay_model_t* m = w->job->model;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = w->job->check->unquantized,
                                           .seed = w->job->check->seed};
  if (!g->truth) ASSAY_TRY(assay_evaluator_create(m, &config, &g->truth));
  ASSAY_TRY(assay_truth_outputs(g->truth, m->graph, inputs, truth));
  return assay_outputs_of(w->plan, w->job->check->backend, &g->state, inputs, engine);
}

static assay_status_t decide_sample(const verification_t* w, deciding_t* g, size_t sample) {
  const size_t n = w->job->model->graph->n_outputs;
  assay_tensor_t **truth = NULL, **engine = NULL;
  assay_status_t st = assay_new_array(n, sizeof *truth, &truth);
  if (!st) st = assay_new_array(n, sizeof *engine, &engine);
  if (!st)
    st = sample ? run_sample(w, g, assay_samples_get(w->job->inputs, sample), truth, engine)
                : first_outputs(w, truth, engine);
  for (size_t k = 0; !st && k < w->c->n_decisions; k++)
    if (w->out->decisions[k].output)
      hold_decisions(w, g, k, truth[w->c->decisions[k].output], engine[w->c->decisions[k].output]);
  assay_outputs_release(n, truth);
  assay_outputs_release(n, engine);
  return st;
}

static assay_status_t decide_all(verification_t* w, deciding_t* g) {
  const assay_graph_t* graph = w->job->model->graph;
  const size_t n = w->c->n_decisions;
  ASSAY_TRY(assay_new_array(n, sizeof *w->out->decisions, &w->out->decisions));
  w->out->n_decisions = n;
  ASSAY_TRY(assay_new_array(n, sizeof *g->next, &g->next));
  ASSAY_TRY(assay_new_array(n, sizeof *g->choices, &g->choices));
  ASSAY_TRY(assay_new_array(n, sizeof *g->first, &g->first));
  for (size_t k = 0; k < n; k++) {
    const assay_decisions_t* d = &w->c->decisions[k];
    assay_decisions_held_t* h = &w->out->decisions[k];
    *h = (assay_decisions_held_t){.kind = d->kind, .threshold = d->threshold, .n = d->n};
    memcpy(h->count, d->count, sizeof h->count);
    if (d->output < graph->n_outputs) h->output = graph->outputs[d->output]->name;
  }
  for (size_t i = 0; i < w->job->inputs->n; i++) ASSAY_TRY(decide_sample(w, g, i));
  return NULL;
}

static assay_status_t report_decisions(verification_t* w, const deciding_t* g, bool same) {
  for (size_t k = 0; k < w->c->n_decisions; k++) {
    const assay_decisions_t* d = &w->c->decisions[k];
    assay_decisions_held_t* h = &w->out->decisions[k];
    assay_change_found_t flipped = {.what = ASSAY_CHANGE_DECISION, .n = h->flipped_stable};
    assay_change_found_t other = {.what = ASSAY_CHANGE_DECISION, .n = 1};
    h->compared = h->output && g->next[k] == d->n;
    if (!h->compared || !same) continue;
    if (flipped.n) {
      flipped.node = w->job->model->graph->outputs[d->output]->producer;
      report(&flipped, "of '%s', certified as stable, the first is number %zu", h->output,
             g->first[k]);
      ASSAY_TRY(add(w->out, &flipped));
    }
    if ((uint32_t)g->choices[k] == d->choices) continue;
    other.node = w->job->model->graph->outputs[d->output]->producer;
    report(&other, "truth itself decides otherwise than certified, in '%s'", h->output);
    ASSAY_TRY(add(w->out, &other));
  }
  return NULL;
}

static assay_status_t compare_decisions(verification_t* w, bool same) {
  deciding_t g = {0};
  if (!w->c->n_decisions) return NULL;
  assay_status_t st = decide_all(w, &g);
  if (!st) st = report_decisions(w, &g, same);
  if (g.state) w->job->check->backend->close(g.state);
  assay_evaluator_destroy(g.truth);
  assay_free(g.next);
  assay_free(g.choices);
  assay_free(g.first);
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

// What explains the rest: a model or inputs that are not the same, truth, then the engine's first
// node.
static void blame(const verification_t* w) {
  assay_verified_t* v = w->out;
  size_t first = SIZE_MAX;
  v->holds = true;
  v->guilty = NULL;
  for (size_t i = 0; i < v->n; i++) {
    const assay_change_found_t* f = &v->at[i];
    if (f->note) continue;
    v->holds = false;
    const size_t k =
        f->node && f->node->n_outputs ? assay_sources_find(&w->sources, f->node->outputs[0]) : 0;
    const bool better = !v->guilty || (v->guilty->what > ASSAY_CHANGE_TRUTH && k < first);
    if (!better) continue;
    v->guilty = f;
    first = k;
  }
}

static assay_status_t run_both(verification_t* w) {
  const assay_check_setting_t* o = w->job->check;
  assay_tensor_t* const* inputs = assay_samples_get(w->job->inputs, 0);
  ASSAY_TRY(assay_observe_truth(w->job->model, &w->sources, inputs, o->unquantized, o->seed,
                                &w->truth, &w->evaluator));
  return assay_observe_engine(w->plan, o->backend, &w->sources, inputs, o->unquantized, &w->engine,
                              &w->account);
}

static assay_status_t compare_all(verification_t* w) {
  const assay_backend_t* backend = w->job->check->backend;
  bool same_model = false, same_inputs = false;
  ASSAY_TRY(compare_model(w, &same_model));
  ASSAY_TRY(compare_inputs(w, &same_inputs));
  ASSAY_TRY(match_values(w));
  const bool same = same_model && same_inputs;
  // Other kernels may bring other small values below the range.
  const bool apart = !same || strcmp(w->c->target, backend->name) != 0;
  ASSAY_TRY(run_both(w));
  ASSAY_TRY(compare_truth(w));
  ASSAY_TRY(compare_faults(w));
  ASSAY_TRY(compare_odd(w, ASSAY_CHANGE_UNFINITE, ASSAY_ODD_ENGINE, false,
                        "NaN or infinities where there were none"));
  ASSAY_TRY(compare_odd(w, ASSAY_CHANGE_UNDERFLOW, ASSAY_ODD_UNDERFLOW, apart,
                        "elements became 0 where none did"));
  if (same) ASSAY_TRY(compare_own(w));
  if (same) ASSAY_TRY(compare_drift(w));
  ASSAY_TRY(compare_bits(w, same));
  return compare_decisions(w, same);
}

assay_status_t assay_certificate_verify(const assay_certificate_t* c, const assay_verify_job_t* job,
                                        assay_verified_t* out) {
  const assay_check_setting_t* o = job->check;
  assay_verified_t v = {.n_values = c->n_values};
  verification_t w = {.c = c, .job = job, .plan = job->plan, .out = &v};
  assay_plan_t* own = NULL;
  if (!job->inputs->n) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the inputs hold no sample");
  ASSAY_TRY(assay_sources_of(job->model, &w.sources));
  assay_status_t st = NULL;
  if (!job->plan) st = assay_plan_create(job->model, &o->precision, &o->plan, o->seed, &own);
  if (own) w.plan = own;
  if (!st) st = compare_all(&w);
  if (!st) blame(&w);
  assay_account_destroy(w.account);
  assay_evaluator_destroy(w.evaluator);
  assay_plan_destroy(own);
  assay_free(w.certified);
  assay_free(w.truth);
  assay_free(w.engine);
  assay_sources_deinit(&w.sources);
  if (st) return assay_verified_deinit(&v), st;
  *out = v;
  return NULL;
}
