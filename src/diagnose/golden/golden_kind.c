// Golden of a model that quantizes: of the network before, or of one that quantizes?
#include "diagnose/golden/golden_kind.h"

#include <math.h>
#include <string.h>

#include "eval/evaluator.h"
#include "plan/plan.h"

// How many times nearer golden has to lie to one truth to speak for it. Where the export is at
// fault as well, both are far, and the values before the fault tell. Where none tells, as of coarse
// outputs alone, of which some are a step off, a little nearer will do.
static const double MUCH = 4, LITTLE = 1.3;

typedef struct votes {
  const assay_evaluator_t *written, *plain;
  double factor;
  size_t for_written, for_plain;
} votes_t;

static assay_status_t run_truth(const assay_model_t* m, assay_tensor_t* const* inputs,
                                bool unquantized, uint64_t seed, assay_evaluator_t** out) {
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = unquantized, .seed = seed, .keep_all = true};
  return assay_evaluator_create_run(m, &config, inputs, out);
}

// RMS of the difference, and how many elements differ where there is none: integers.
static bool is_nearer(const assay_difference_t* a, const assay_difference_t* b, double factor) {
  if (!a->comparable) return false;
  if (!b->comparable) return true;
  const double floor = 1e-7 * a->ref_rms;  // what golden's own arithmetic may do
  return factor * (a->rms + floor) < b->rms + floor ||
         (double)a->mismatched * factor < (double)b->mismatched;
}

// Golden of the sample that was evaluated, the first, where it holds several, one after the other.
static assay_status_t first_rows(const assay_tensor_t* truth, assay_tensor_t* golden,
                                 assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(golden, &wide));
  const bool more = truth->kind == ASSAY_KIND_TENSOR && truth->rank == wide->rank && wide->rank &&
                    truth->dims[0] < wide->dims[0];
  if (!more) return *out = wide, NULL;
  memcpy(dims, wide->dims, (size_t)wide->rank * sizeof *dims);
  dims[0] = truth->dims[0];
  assay_status_t st = assay_tensor_part(wide, 0, wide->rank, dims, out);
  assay_tensor_release(wide);
  return st;
}

static assay_status_t vote(votes_t* v, const assay_value_t* value, assay_tensor_t* golden) {
  const assay_tensor_t* w = assay_evaluator_get(v->written, value);
  const assay_tensor_t* p = assay_evaluator_get(v->plain, value);
  assay_tensor_t* rows = NULL;
  if (!w || !p || golden->kind != ASSAY_KIND_TENSOR) return NULL;
  ASSAY_TRY(first_rows(w, golden, &rows));
  const assay_difference_t by_written = assay_difference(w, rows);
  const assay_difference_t by_plain = assay_difference(p, rows);
  assay_tensor_release(rows);
  v->for_written += is_nearer(&by_written, &by_plain, v->factor);
  v->for_plain += is_nearer(&by_plain, &by_written, v->factor);
  return NULL;
}

static assay_status_t ask_all(votes_t* v, const assay_golden_t* golden, const assay_graph_t* g,
                              assay_tensor_t* const* outputs) {
  for (size_t i = 0; i < golden->n; i++)
    if (golden->at[i].value) ASSAY_TRY(vote(v, golden->at[i].value, golden->at[i].tensor));
  for (size_t i = 0; outputs && i < g->n_outputs; i++)
    if (outputs[i]) ASSAY_TRY(vote(v, g->outputs[i], outputs[i]));
  return NULL;
}

// Whether golden has a quantizer's steps themselves, as integers.
static bool has_steps(const assay_golden_t* golden) {
  for (size_t i = 0; i < golden->n; i++) {
    const assay_value_t* v = golden->at[i].value;
    const assay_tensor_t* t = golden->at[i].tensor;
    if (v && v->producer && strcmp(v->producer->op_type, "QuantizeLinear") == 0 &&
        t->kind == ASSAY_KIND_TENSOR && assay_type_is_integer(t->type) && t->size > 1)
      return true;
  }
  return false;
}

assay_status_t assay_golden_is_quantized(const assay_golden_t* golden, const assay_model_t* model,
                                         assay_tensor_t* const* inputs,
                                         assay_tensor_t* const* outputs, uint64_t seed, bool* out,
                                         bool* out_sure) {
  assay_evaluator_t *written = NULL, *plain = NULL;
  const assay_graph_t* g = model->graph;
  *out = false;
  *out_sure = true;
  if (!assay_model_quantizes(model)) return NULL;
  *out = has_steps(golden);
  if (*out) return NULL;
  assay_status_t st = run_truth(model, inputs, false, seed, &written);
  if (!st) st = run_truth(model, inputs, true, seed, &plain);
  votes_t votes = {.written = written, .plain = plain};
  for (int turn = 0; !st && turn < 2 && votes.for_written == votes.for_plain; turn++) {
    votes.factor = turn ? LITTLE : MUCH;
    *out_sure = !turn;
    st = ask_all(&votes, golden, g, outputs);
  }
  assay_evaluator_destroy(written);
  assay_evaluator_destroy(plain);
  *out = votes.for_written > votes.for_plain;
  // A model that one of the truths cannot run is judged by the check, not here.
  if (assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}

// Votes of a sample's outputs, by each factor.
static assay_status_t ask_sample(const assay_model_t* m, assay_tensor_t* const* inputs,
                                 assay_tensor_t* const* outputs, uint64_t seed, votes_t votes[2]) {
  const assay_golden_t no_inner = {0};
  assay_evaluator_t *written = NULL, *plain = NULL;
  assay_status_t st = run_truth(m, inputs, false, seed, &written);
  if (!st) st = run_truth(m, inputs, true, seed, &plain);
  for (int turn = 0; !st && turn < 2; turn++) {
    votes[turn].written = written;
    votes[turn].plain = plain;
    votes[turn].factor = turn ? LITTLE : MUCH;
    st = ask_all(&votes[turn], &no_inner, m->graph, outputs);
  }
  assay_evaluator_destroy(written);
  assay_evaluator_destroy(plain);
  return st;
}

assay_status_t assay_golden_outputs_are_quantized(const assay_model_t* model,
                                                  const assay_samples_t* inputs,
                                                  const assay_samples_t* golden, uint64_t seed,
                                                  bool* out) {
  enum { SAMPLES = 16 };
  votes_t votes[2] = {{0}};
  *out = false;
  if (!golden || !golden->n || !inputs->n || !assay_model_quantizes(model)) return NULL;
  const size_t n = inputs->n < SAMPLES ? inputs->n : SAMPLES;
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < n; k++)
    st = ask_sample(model, assay_samples_get(inputs, k),
                    assay_samples_get(golden, golden->n == 1 ? 0 : k), seed, votes);
  const votes_t* v = votes[0].for_written != votes[0].for_plain ? &votes[0] : &votes[1];
  *out = v->for_written > v->for_plain;
  // A model that one of the truths cannot run is judged by the verb, not here.
  if (assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
