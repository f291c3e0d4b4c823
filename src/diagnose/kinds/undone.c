// Whether outputs show that an inner value differs from golden's.
#include "diagnose/kinds/undone.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/evaluator.h"

void assay_undone_deinit(assay_undone_t* u) {
  assay_free(u->at);
  *u = (assay_undone_t){0};
}

double assay_undone_factor(const assay_undone_value_t* u) {
  static const double RESIDUAL = 1e-9;  // of truth's squares
  if (!(u->gg > 0) || !(u->tt > 0)) return 0;
  return u->tt - u->tg * u->tg / u->gg <= RESIDUAL * u->tt ? u->tg / u->gg : 0;
}

// ---- truth with golden's value in one place -----------------------------------------------------

typedef struct put {
  const assay_value_t* value;
  assay_tensor_t* golden;
} put_t;

static assay_status_t put_golden(void* user, const assay_node_t* n, size_t n_in,
                                 assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  const put_t* p = user;
  (void)n_in;
  (void)in;
  for (size_t i = 0; i < n_out; i++) {
    if (n->outputs[i] != p->value || !out[i]) continue;
    assay_tensor_t* by = NULL;
    ASSAY_TRY(assay_tensor_retype(p->golden, out[i]->type, &by));
    assay_tensor_release(out[i]);
    out[i] = by;
  }
  return NULL;
}

static assay_status_t run_with(const assay_model_t* m, assay_tensor_t* const* inputs, uint64_t seed,
                               put_t* put, assay_evaluator_t** out) {
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH,
      .seed = seed,
      .keep_all = true,
      .hooks = {.after = put ? put_golden : NULL, .user = put}};
  return assay_evaluator_create_run(m, &config, inputs, out);
}

// ---- what outputs say ---------------------------------------------------------------------------

static assay_tensor_t* golden_of(const assay_golden_t* golden, const assay_value_t* v) {
  for (size_t i = 0; i < golden->n; i++)
    if (golden->at[i].value == v) return golden->at[i].tensor;
  return NULL;
}

// Golden's value in place makes an output so many times worse where layers after it undo it; so
// many times better where it is a fault.
static const double WORSE = 64, BETTER = 4;
// Parts of an output's size: what cannot be told from rounding, and what is more than that.
static const double ROUNDING = 0x1p-20, MORE = 0x1p-17;

typedef enum answer { SILENT, SHOWN, AT_FAULT } answer_t;

// An output as the model gives it and with golden's value in place, both against golden.
static answer_t ask_output(const assay_difference_t* now, const assay_difference_t* with) {
  if (with->mismatched && !now->mismatched) return SHOWN;
  if (with->rms > WORSE * now->rms && with->rms > MORE * now->ref_rms) return SHOWN;
  const bool rounded = now->rms <= ROUNDING * now->ref_rms;
  if (BETTER * with->rms < now->rms && !rounded) return AT_FAULT;
  return rounded && !now->mismatched ? SILENT : AT_FAULT;
}

// Whether the value goes into any output of floats, or into none at all: integers alone, as the
// number of a class, agree whatever a value is.
static assay_status_t is_heard(const assay_graph_t* g, const assay_value_t* v, size_t n_values,
                               const assay_evaluator_t* truth, bool* out) {
  bool *reached = NULL, any = false, floats = false;
  ASSAY_TRY(assay_new_array(n_values, sizeof *reached, &reached));
  reached[v->id] = true;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    bool reads = (n->op && n->op->flags & ASSAY_OP_CONTROL) != 0;  // bodies read what they like
    for (size_t k = 0; k < n->n_inputs; k++) reads |= n->inputs[k] && reached[n->inputs[k]->id];
    for (size_t k = 0; reads && k < n->n_outputs; k++)
      if (n->outputs[k]) reached[n->outputs[k]->id] = true;
  }
  for (size_t i = 0; i < g->n_outputs; i++) {
    if (!reached[g->outputs[i]->id]) continue;
    const assay_tensor_t* t = assay_evaluator_get(truth, g->outputs[i]);
    any = true;
    floats |= t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
  }
  assay_free(reached);
  *out = floats || !any;
  return NULL;
}

static void add_sums(assay_undone_value_t* u, const assay_tensor_t* truth,
                     const assay_tensor_t* golden, const assay_difference_t* d) {
  for (int64_t i = 0; i < golden->size; i++) {
    const double t = assay_f64(truth)[i], g = assay_f64(golden)[i];
    u->tt += t * t;
    u->tg += t * g;
    u->gg += g * g;
  }
  u->rms = fmax(u->rms, d->rms);
  u->ref_rms = fmax(u->ref_rms, d->ref_rms);
  u->differs = true;
}

// One value of one sample.
static assay_status_t ask_value(assay_undone_t* u, assay_undone_value_t* one,
                                const assay_model_t* m, assay_tensor_t* const* inputs,
                                const assay_golden_t* golden, const assay_evaluator_t* truth,
                                uint64_t seed) {
  const assay_graph_t* g = m->graph;
  put_t put = {one->value, golden_of(golden, one->value)};
  const assay_tensor_t* t = assay_evaluator_get(truth, one->value);
  if (!put.golden) return NULL;
  const assay_difference_t d = assay_difference(t, put.golden);
  if (!d.comparable || d.mismatched || !assay_tensor_alike(t, put.golden) ||
      t->store != ASSAY_STORE_F64)
    return u->failed = true, NULL;
  if (WORSE * d.rms <= one->walked) return NULL;  // it is golden's where nothing is put before it
  assay_evaluator_t* with = NULL;
  bool is_shown = false, heard = false;
  assay_status_t st = run_with(m, inputs, seed, &put, &with);
  if (!st) st = is_heard(g, one->value, (size_t)m->n_values, truth, &heard);
  for (size_t i = 0; !st && i < g->n_outputs; i++) {
    assay_tensor_t* known = golden_of(golden, g->outputs[i]);
    const assay_difference_t now =
        assay_difference(assay_evaluator_get(truth, g->outputs[i]), known);
    const assay_difference_t then =
        assay_difference(assay_evaluator_get(with, g->outputs[i]), known);
    const answer_t answer = now.comparable && then.comparable ? ask_output(&now, &then)
                            : now.comparable                  ? SHOWN
                                                              : AT_FAULT;
    is_shown |= answer == SHOWN;
    u->failed |= answer == AT_FAULT;
  }
  u->failed |= !heard;
  one->shown |= is_shown;
  if (!st) add_sums(one, t, put.golden, &d);
  assay_evaluator_destroy(with);
  return st;
}

static assay_status_t add_canonical(assay_undone_t* u, const assay_model_t* model,
                                    assay_tensor_t* const* inputs, const assay_golden_t* golden,
                                    uint64_t seed) {
  const assay_graph_t* g = model->graph;
  assay_evaluator_t* truth = NULL;
  for (size_t i = 0; i < g->n_outputs; i++) u->failed |= !golden_of(golden, g->outputs[i]);
  if (u->failed) return NULL;
  assay_status_t st = run_with(model, inputs, seed, NULL, &truth);
  for (size_t i = 0; !st && !u->failed && i < u->n; i++)
    st = ask_value(u, &u->at[i], model, inputs, golden, truth, seed);
  assay_evaluator_destroy(truth);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) {
    assay_status_free(st);
    st = NULL;
    u->failed = true;
  }
  return st;
}

assay_status_t assay_undone_add(assay_undone_t* u, const assay_model_t* model,
                                assay_tensor_t* const* inputs, const assay_golden_t* golden,
                                uint64_t seed) {
  assay_golden_t wide = {0};
  ASSAY_TRY(assay_new_array(golden->n, sizeof *wide.at, &wide.at));
  assay_status_t st = NULL;
  for (; !st && wide.n < golden->n; wide.n += !st) {
    wide.at[wide.n] = (assay_golden_tensor_t){.value = golden->at[wide.n].value};
    st = assay_tensor_widen(golden->at[wide.n].tensor, &wide.at[wide.n].tensor);
  }
  if (!st) st = add_canonical(u, model, inputs, &wide, seed);
  for (size_t i = 0; i < wide.n; i++) assay_tensor_release(wide.at[i].tensor);
  assay_free(wide.at);
  return st;
}
