// Constants that the format cannot hold as culprits, and numbers in their place that mend the
// outputs: an alternative to layers in fp32.
#include "check/mended.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "check/check.h"

// Of a weight's many small elements none is to blame by itself.
enum { FEW_ELEMENTS = 64 };
// Runs that look which constants it takes.
enum { MAX_REDUCTIONS = 12 };

static void drop_repairs(assay_mended_t* m) {
  for (size_t i = 0; i < m->n; i++) assay_repair_deinit(&m->repairs[i]);
  m->n = 0;
}

void assay_mended_deinit(assay_mended_t* m) {
  drop_repairs(m);
  assay_free(m->repairs);
  assay_free(m->of);
  assay_free(m->outputs);
  assay_lost_constants_deinit(&m->lost);
  *m = (assay_mended_t){0};
}

// ---- culprits -----------------------------------------------------------------------------------

static assay_status_t blame(assay_check_t* c, size_t at, assay_lost_constant_t* l) {
  char why[ASSAY_CULPRIT_WHY];
  const assay_verdict_t verdict = l->odd->past      ? ASSAY_VERDICT_OVERFLOW
                                  : l->odd->flushed ? ASSAY_VERDICT_UNDERFLOW
                                                    : l->begins->verdict;
  l->to_blame = true;
  assay_lost_constant_describe(l, why, sizeof why);
  return assay_culprits_put(&c->culprits, at, l->begins, verdict, l, why);
}

// Whether what is added to the constant has vanished before: then that may be what is missed.
static bool meets_underflow(const assay_check_t* c, const assay_node_t* n, int depth) {
  enum { BACK = 4 };
  for (size_t i = 0; i < n->n_inputs && depth < BACK; i++) {
    const assay_node_t* maker = n->inputs[i] ? n->inputs[i]->producer : NULL;
    const assay_layer_account_t* a = maker ? assay_account_of_node(c->account, maker) : NULL;
    if (a && a->judged.underflowed) return true;
    if (maker && meets_underflow(c, maker, depth + 1)) return true;
  }
  return false;
}

// Whether the constant explains what its layer is a culprit for, as far as the account tells.
static bool explains(const assay_check_t* c, const assay_lost_constant_t* l,
                     const assay_culprit_t* u) {
  static const double MOST = 0.3;  // of an output's error
  if (u->constant || l->begins != u->account) return false;
  if (l->odd->past) return l->unfinite > 0;
  if (!l->odd->matters || !(l->odd->flushed || l->odd->ones)) return false;
  if (l->odd->flushed && meets_underflow(c, l->odd->node, 0)) return false;
  return l->unfinite > 0 || u->share >= MOST;
}

assay_status_t assay_mended_blame(assay_check_t* c) {
  assay_lost_constants_t* lost = &c->mended.lost;
  ASSAY_TRY(assay_lost_constants_find(c->plan, c->account, &c->odd_constants, c->outputs, lost));
  for (size_t i = 0; i < c->culprits.n; i++)
    for (size_t k = 0; k < lost->n; k++)
      if (explains(c, &lost->at[k], &c->culprits.at[i])) ASSAY_TRY(blame(c, i, &lost->at[k]));
  return NULL;
}

// ---- runs ---------------------------------------------------------------------------------------

static bool can_mend(const assay_lost_constant_t* l) {
  const assay_odd_constant_t* o = l->odd;
  if (!l->node || !(o->past || o->flushed || o->ones)) return false;
  if (!o->past && o->n > FEW_ELEMENTS) return false;
  return l->unfinite > 0 || o->matters;
}

static assay_node_t* node_of(assay_model_t* m, const assay_node_t* like) {
  for (size_t i = 0; i < m->graph->n_nodes; i++)
    if (m->graph->nodes[i]->id == like->id) return m->graph->nodes[i];
  return NULL;
}

// In a model that is ready to be evaluated: the new constant has the old one's type.
static assay_status_t put(assay_model_t* m, const assay_repair_t* r) {
  assay_node_t* n = node_of(m, r->node);
  if (!n) return ASSAY_ERROR(ASSAY_INTERNAL, "a clone lacks the node '%s'", r->node->label);
  const size_t input = r->edits[0].input;
  const assay_valtype_t* type = n->inputs[input]->type;
  ASSAY_TRY(assay_repair_apply(r, m));
  n->inputs[input]->type = type;
  return NULL;
}

typedef struct result {
  bool does, finite;
  assay_output_check_t* outputs;
} result_t;

static bool all_finite(const assay_output_check_t* o, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (o[i].error.mismatched) return false;
  return true;
}

static assay_status_t run(assay_check_t* c, assay_runs_t* runs, result_t* out) {
  assay_mended_t* m = &c->mended;
  assay_run_result_t got = {0};
  assay_model_t* model = NULL;
  ASSAY_TRY(assay_model_clone(c->model, &model));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < m->n; i++) st = put(model, &m->repairs[i]);
  if (!st) st = assay_runs_try_model(runs, model, &c->options.precision, &got);
  assay_model_release(model);
  if (st) return st;
  m->runs++;
  *out = (result_t){.does = got.faithful,
                    .finite = all_finite(got.outputs, c->n_outputs),
                    .outputs = got.outputs};
  got.outputs = NULL;
  assay_run_result_deinit(&got);
  return NULL;
}

// The largest relative error of an output, as a ratio of energies.
static double error_of(const result_t* r, size_t n) {
  double worst = 0;
  for (size_t i = 0; i < n; i++) {
    const assay_error_sum_t* e = &r->outputs[i].error;
    if (e->sum_ref2 > 0) worst = fmax(worst, e->sum_err2 / e->sum_ref2);
  }
  return worst;
}

// Whether outputs are mended: also where a cosine is all that is asked for, which no factor
// changes.
static bool does(const assay_check_t* c, const result_t* r) {
  static const double FAR = 1e-2;  // 20 dB
  const assay_requirements_t* q = c->options.require;
  return r->does && ((q && q->n) || error_of(r, c->n_outputs) < FAR);
}

static assay_status_t add_repair(assay_mended_t* m, const assay_lost_constant_t* l, int attempt) {
  ASSAY_TRY(assay_grow(&m->repairs, &m->capacity, m->n + 1, sizeof *m->repairs));
  ASSAY_TRY(assay_grow(&m->of, &m->capacity_of, m->n + 1, sizeof *m->of));
  ASSAY_TRY(assay_lost_constant_repair(l, attempt, &m->repairs[m->n]));
  m->of[m->n++] = l;
  return NULL;
}

// Runs with the constants that are to blame.
static assay_status_t try_these(assay_check_t* c, assay_runs_t* runs, const bool* in, int attempt,
                                result_t* out) {
  assay_mended_t* m = &c->mended;
  drop_repairs(m);
  for (size_t i = 0; i < m->lost.n; i++)
    if (in[i]) ASSAY_TRY(add_repair(m, &m->lost.at[i], attempt));
  return run(c, runs, out);
}

// ---- which constants it takes -------------------------------------------------------------------

// One search: which constants are in, and what that has to bring about.
typedef struct mending {
  assay_check_t* check;
  assay_runs_t* runs;
  bool* in;  // by lost constant
  size_t n_in;
  int attempt;
  bool wants_all;  // what is required, else outputs that are finite
} mending_t;

// `count` of those that are in, from the `first`th on, are put down in `which`.
static void list(const mending_t* h, size_t first, size_t count, size_t* which) {
  size_t seen = 0, n = 0;
  for (size_t i = 0; i < h->check->mended.lost.n && n < count; i++)
    if (h->in[i] && seen++ >= first) which[n++] = i;
}

// Leaves out groups of those that are in, the larger first, where it does without.
static assay_status_t reduce(mending_t* h, size_t max_runs, size_t* which) {
  size_t runs = 0;
  for (size_t group = h->n_in / 2; group; group /= 2)
    for (size_t first = 0; first < h->n_in && h->n_in > 1 && runs < max_runs; runs++) {
      size_t count = h->n_in - first < group ? h->n_in - first : group;
      if (count == h->n_in) count--;
      result_t r = {0};
      list(h, first, count, which);
      for (size_t i = 0; i < count; i++) h->in[which[i]] = false;
      ASSAY_TRY(try_these(h->check, h->runs, h->in, h->attempt, &r));
      const bool without = h->wants_all ? does(h->check, &r) : r.finite;
      assay_free(r.outputs);
      for (size_t i = 0; !without && i < count; i++) h->in[which[i]] = true;
      if (without)
        h->n_in -= count;
      else
        first += count;
    }
  return NULL;
}

// Tries the numbers that all could be. The first ones that do, unless others do better by far.
static assay_status_t attempt_all(mending_t* h, bool was_finite, bool* out_any) {
  static const double BY_FAR = 4;  // 6 dB
  const assay_check_t* c = h->check;
  double least = (double)INFINITY;
  bool any = false;
  for (int a = 0; a < ASSAY_MENDING_ATTEMPTS; a++) {
    result_t r = {0};
    ASSAY_TRY(try_these(h->check, h->runs, h->in, a, &r));
    const double error = error_of(&r, c->n_outputs);
    if (does(c, &r) && (!h->wants_all || error * BY_FAR < least)) {
      h->wants_all = any = true;
      h->attempt = a;
      least = error;
    } else if (r.finite && !was_finite && !any) {
      h->attempt = a;
      any = true;
    }
    assay_free(r.outputs);
  }
  *out_any = any;
  return NULL;
}

// The constants that are left are the first culprits, and a fix, where the outputs are mended;
// where only NaN and infinities are gone, something else is wrong before them.
static assay_status_t conclude(mending_t* h) {
  assay_check_t* c = h->check;
  assay_mended_t* m = &c->mended;
  result_t r = {0};
  size_t at = h->wants_all ? 0 : c->culprits.n;
  ASSAY_TRY(try_these(c, h->runs, h->in, h->attempt, &r));
  m->attempt = h->attempt;
  if (h->wants_all && does(c, &r)) {
    m->outputs = r.outputs;
  } else {
    assay_free(r.outputs);
    drop_repairs(m);
  }
  for (size_t i = 0; i < m->lost.n; i++)
    if (h->in[i] && (h->wants_all || !meets_underflow(c, m->lost.at[i].odd->node, 0)))
      ASSAY_TRY(blame(c, at++, &m->lost.at[i]));
  return NULL;
}

static assay_status_t search(mending_t* h, size_t max_runs) {
  assay_check_t* c = h->check;
  size_t* which = NULL;
  bool any = false;
  if (c->options.progress) c->options.progress(c->options.user, "trying other constants", 0);
  ASSAY_TRY(attempt_all(h, all_finite(c->outputs, c->n_outputs), &any));
  if (!any) return drop_repairs(&c->mended), NULL;
  ASSAY_TRY(assay_new_array(c->mended.lost.n, sizeof *which, &which));
  assay_status_t st = reduce(h, max_runs < MAX_REDUCTIONS ? max_runs : MAX_REDUCTIONS, which);
  assay_free(which);
  return st ? st : conclude(h);
}

assay_status_t assay_mended_find(assay_check_t* c, assay_runs_t* runs, size_t max_runs) {
  assay_mended_t* m = &c->mended;
  mending_t h = {.check = c, .runs = runs};
  if (!m->lost.n) return NULL;
  ASSAY_TRY(assay_new_array(m->lost.n, sizeof *h.in, &h.in));
  for (size_t i = 0; i < m->lost.n; i++) h.n_in += h.in[i] = can_mend(&m->lost.at[i]);
  assay_status_t st = h.n_in ? search(&h, max_runs) : NULL;
  assay_free(h.in);
  return st;
}

// ---- the model ----------------------------------------------------------------------------------

assay_status_t assay_mended_apply(const assay_mended_t* m, assay_model_t* model) {
  for (size_t i = 0; i < m->n; i++) ASSAY_TRY(assay_repair_apply(&m->repairs[i], model));
  return NULL;
}
