// What outputs lose by quantizers, what they would by scales that fit, and each quantizer's part.
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/quantizers/states.h"

// Where the user demands nothing: a cosine of 0.999 is enough, as between truth and an engine;
// below it a loss is the bits' and not a scale's up to so many times that of scales that fit (6
// dB); and ASSAY_LOSS_MOST is never good enough.
static const double ENOUGH = 0.002, TIMES_FITTING = 4, MOST = ASSAY_LOSS_MOST;

// A loss of which scales would save most is told from here on (40 dB), though it is allowed.
static const double WORTH_TELLING = 1e-4;

// ---- the outputs -------------------------------------------------------------------------------

typedef struct job {
  assay_quantizers_t* q;
  const assay_model_t* model;
  const assay_quantizers_options_t* options;
  assay_states_t* states;
  assay_quantizer_state_t* at;
  double deadline;
} job_t;

static assay_status_t run(job_t* j, bool by_itself, assay_output_check_t** out) {
  assay_output_check_t* outputs = NULL;
  ASSAY_TRY(assay_output_checks_create(j->model->graph, j->options->require, &outputs));
  assay_status_t st = assay_outputs_want_slices(outputs, j->q->n_outputs, false);
  if (!st) st = assay_states_run(j->states, j->at, by_itself, outputs);
  if (st) return assay_outputs_free(outputs, j->q->n_outputs), st;
  *out = outputs;
  return NULL;
}

static void set_all(job_t* j, assay_quantizer_state_t state, assay_quantizer_state_t of_stored) {
  for (size_t i = 0; i < j->q->n; i++) j->at[i] = j->q->at[i].stored ? of_stored : state;
}

// Weights have scales for each channel where those fit better.
static void set_fitting(job_t* j) {
  set_all(j, ASSAY_STATE_FITS, ASSAY_STATE_ON);
  for (size_t i = 0; i < j->q->n; i++)
    if (j->q->at[i].weight && j->q->at[i].apart.n) j->at[i] = ASSAY_STATE_APART;
}

// Whether all that can be demanded is there.
static bool is_enough(const job_t* j, const assay_output_check_t* on) {
  bool enough = true;
  for (size_t i = 0; i < j->q->n_outputs; i++) {
    const assay_slices_found_t f = assay_slices_judge(on[i].slices);
    enough = enough && !(assay_golden_loss(&on[i]) > ENOUGH) && !f.dead && !(f.small_loss > MOST);
  }
  return enough && !(j->options->require && j->options->require->n);
}

static assay_status_t measure_outputs(job_t* j) {
  assay_output_check_t *on = NULL, *fitting = NULL, *fine = NULL;
  set_all(j, ASSAY_STATE_ON, ASSAY_STATE_ON);
  assay_status_t st = run(j, true, &on);
  set_fitting(j);
  if (!st) st = run(j, true, &fitting);
  set_all(j, ASSAY_STATE_OFF, ASSAY_STATE_FINE);
  // Only a loss that is too large asks what other weights would lose.
  if (!st && !is_enough(j, on)) st = run(j, false, &fine);
  for (size_t i = 0; !st && i < j->q->n_outputs; i++) {
    assay_quantizer_output_t* o = &j->q->outputs[i];
    o->value = j->model->graph->outputs[i];
    o->known = on[i].has_golden && on[i].is_float && on[i].engine_golden.n > 0 &&
               !on[i].engine_golden.mismatched;
    if (!o->known) continue;
    o->loss = assay_golden_loss(&on[i]);
    o->weight = assay_loss_part(on[i].golden.sum_err2, on[i].golden.sum_ref2);
    // Stored weights cannot be rounded anew: what a scale for each channel would leave is drawn.
    const double drawn =
        fine ? assay_loss_part(fine[i].error.sum_err2, fine[i].error.sum_ref2) : o->weight;
    o->fitting = fmin(o->loss, assay_golden_loss(&fitting[i]));
    o->fitting = fmax(o->fitting - fmax(o->weight - TIMES_FITTING * drawn, 0), 0);
    o->slices = assay_slices_judge(on[i].slices);
    if (fine) o->small_loss = assay_slices_judge(fine[i].slices).small_loss;
    o->allowed = fmax(ENOUGH, fmin(TIMES_FITTING * o->fitting, MOST));
  }
  if (!st) j->q->met = assay_quantizers_hold(j->q, on, j->options->require);
  assay_outputs_free(on, j->q->n_outputs);
  assay_outputs_free(fitting, j->q->n_outputs);
  assay_outputs_free(fine, j->q->n_outputs);
  return st;
}

// ---- each quantizer ----------------------------------------------------------------------------

// The largest part of an output's energy that a quantizer in this state moves.
static assay_status_t effect(job_t* j, size_t site, assay_quantizer_state_t state, double* out) {
  assay_output_check_t* outputs = NULL;
  *out = 0;
  set_all(j, ASSAY_STATE_OFF, ASSAY_STATE_OFF);
  j->at[site] = state;
  ASSAY_TRY(run(j, false, &outputs));
  for (size_t i = 0; i < j->q->n_outputs; i++) {
    if (!j->q->outputs[i].known) continue;
    *out = fmax(*out, assay_loss_part(outputs[i].error.sum_err2, outputs[i].error.sum_ref2));
    const double small = assay_slices_judge(outputs[i].slices).small_loss;
    if (j->q->outputs[i].slices.small) *out = fmax(*out, small - j->q->outputs[i].small_loss);
  }
  assay_outputs_free(outputs, j->q->n_outputs);
  return NULL;
}

static assay_status_t measure_site(job_t* j, size_t i) {
  assay_quantizer_site_t* s = &j->q->at[i];
  assay_quantizer_loss_t* l = &s->loss;
  if (s->stored) {
    ASSAY_TRY(effect(j, i, ASSAY_STATE_DRAWN, &l->all));
    ASSAY_TRY(effect(j, i, ASSAY_STATE_FINE, &l->fitting));
    l->weight = l->all;
    return NULL;
  }
  ASSAY_TRY(effect(j, i, ASSAY_STATE_ON, &l->all));
  if (s->fits.n)
    ASSAY_TRY(
        effect(j, i, s->weight && s->apart.n ? ASSAY_STATE_APART : ASSAY_STATE_FITS, &l->fitting));
  else
    l->fitting = l->all;
  if (s->weight) return l->weight = l->all, NULL;
  if (s->outside) ASSAY_TRY(effect(j, i, ASSAY_STATE_CLIPS, &l->clipping));
  if (!s->outside) return l->rounding = l->all, NULL;
  return effect(j, i, ASSAY_STATE_ROUNDS, &l->rounding);
}

// What better scales would save, or none where there is no better one; then what is lost.
static double saved(const assay_quantizer_site_t* s) {
  if (assay_quantizer_is_for_mask(s)) return s->loss.all;
  return fmax(s->loss.all - TIMES_FITTING * s->loss.fitting, 0);
}

static int by_cost(const void* a, const void* b) {
  const assay_quantizer_site_t *x = a, *y = b;
  const double p = saved(x), q = saved(y);
  if (p != q) return p < q ? 1 : -1;
  return (x->loss.all < y->loss.all) - (x->loss.all > y->loss.all);
}

static assay_status_t measure_sites(job_t* j) {
  assay_quantizers_t* q = j->q;
  for (size_t i = 0; i < q->n && !q->cut_short; i++) {
    ASSAY_TRY(measure_site(j, i));
    if (j->options->progress)
      j->options->progress(j->options->user, "quantizers", (double)(i + 1) / (double)q->n);
    q->cut_short = assay_clock_seconds() > j->deadline && i + 1 < q->n;
  }
  for (size_t i = 0; i < q->n; i++) assay_quantizer_explain(&q->at[i]);
  return NULL;
}

// What the outputs can bear, but need not.
static bool is_worth_telling(const assay_quantizers_t* q) {
  for (size_t i = 0; i < q->n_outputs; i++) {
    const assay_quantizer_output_t* o = &q->outputs[i];
    if (o->known && o->loss > TIMES_FITTING * o->fitting && o->loss > WORTH_TELLING) return true;
  }
  return false;
}

// ---- all ---------------------------------------------------------------------------------------

static assay_status_t run_all(job_t* j, bool split) {
  static const double PART_TO_MEASURE = 0.5;
  const double start = assay_clock_seconds();
  const double seconds = j->options->seconds > 0 ? j->options->seconds : 40;
  const double end = start + seconds;
  j->deadline = start + PART_TO_MEASURE * seconds;
  ASSAY_TRY(assay_states_observe(j->states, j->q));
  ASSAY_TRY(measure_outputs(j));
  if (j->q->met && !split && !is_worth_telling(j->q)) return NULL;
  ASSAY_TRY(measure_sites(j));
  j->q->measured = true;
  if (j->q->n) qsort(j->q->at, j->q->n, sizeof *j->q->at, by_cost);
  if (j->q->met || j->options->no_fix) return NULL;
  // Sites have other places now.
  assay_states_destroy(j->states);
  j->states = NULL;
  ASSAY_TRY(assay_states_create(j->model, j->q, j->options, false, &j->states));
  return assay_quantizers_mend(j->q, j->states, j->options, end);
}

assay_status_t assay_quantizers_run(const assay_model_t* model,
                                    const assay_quantizers_options_t* options, bool split,
                                    assay_quantizers_t* out) {
  job_t j = {.q = out, .model = model, .options = options};
  out->met = true;
  assay_status_t st = assay_quantizers_find(model, false, out);
  if (st || !out->n || !options->inputs->n) return st;
  out->n_outputs = model->graph->n_outputs;
  st = assay_new_array(out->n_outputs, sizeof *out->outputs, &out->outputs);
  if (!st) st = assay_new_array(out->n, sizeof *j.at, &j.at);
  if (!st) st = assay_states_create(model, out, options, false, &j.states);
  if (!st) st = run_all(&j, split);
  assay_states_destroy(j.states);
  assay_free(j.at);
  return st;
}
