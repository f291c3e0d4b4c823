// Trying one repair after another within a search: evaluating, scoring, fitting, keeping the best.
#include "diagnose/search_trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/search_screening.h"

// A number that had to be fitted tells less than a slip that restores golden by itself: after all
// rows.
enum { FIT_STEPS = 8, FITTED_RANK = 1000 };

static double score(const assay_trials_t* t, assay_tensor_t* const* got, bool* out_restored);

// ---- evaluating from a node on -----------------------------------------------------------------

static size_t target_of(const assay_search_t* s, const assay_value_t* v) {
  size_t k = 0;
  while (k < s->n_targets && s->targets[k].value != v) k++;
  return k;
}

// Puts a new tensor (taken over) in place of a value's; targets are kept aside, since their slots
// hold golden.
static assay_status_t put(assay_trials_t* t, const assay_value_t* v, assay_tensor_t* take) {
  const size_t k = target_of(t->s, v);
  if (k < t->s->n_targets) {
    assay_tensor_release(t->got[k]);
    t->got[k] = take;
    return NULL;
  }
  if (!t->dirty[v->id]) {
    assay_status_t st =
        assay_grow(&t->touched, &t->cap_touched, t->n_touched + 1, sizeof *t->touched);
    if (st) return assay_tensor_release(take), st;
    t->touched[t->n_touched++] = v;
    t->dirty[v->id] = true;
    t->old[v->id] = assay_tensor_retain(assay_evaluator_get(t->s->evaluator, v));
  }
  assay_evaluator_set(t->s->evaluator, v, take);
  assay_tensor_release(take);
  return NULL;
}

static void restore_one(assay_trials_t* t, const assay_value_t* v) {
  if (!t->dirty[v->id]) return;
  assay_evaluator_set(t->s->evaluator, v, t->old[v->id]);
  assay_tensor_release(t->old[v->id]);
  t->old[v->id] = NULL;
  t->dirty[v->id] = false;
}

static void restore(assay_trials_t* t) {
  for (size_t i = 0; i < t->n_touched; i++) restore_one(t, t->touched[i]);
  t->n_touched = 0;
}

// Whether a repair reads more than what its node does.
static bool reads_besides(const assay_repair_t* r) {
  for (size_t k = 0; k < r->n_edits; k++) {
    const assay_repair_edit_t* e = &r->edits[k];
    if (e->value || e->other_value || e->formula || e->n_chain) return true;
  }
  return false;
}

// Whether a node from a position on may read any value before it, by a repair that is taken as
// made.
static bool is_any_wanted(const assay_trials_t* t, size_t position) {
  for (size_t i = 0; i < t->s->n_adopted; i++) {
    if (!reads_besides(t->s->adopted[i])) continue;
    for (size_t k = position; k < t->s->n_nodes; k++)
      if (t->s->nodes[k] == t->s->adopted[i]->node) return true;
  }
  return false;
}

// A trial that changes an early node has not all values after it in memory at once: those that the
// node at a position was the last to read go back to what they were.
static void restore_read(assay_trials_t* t, size_t position) {
  const assay_node_t* n = t->s->nodes[position];
  if (is_any_wanted(t, position)) return;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    if (v && t->dirty[v->id] && t->last[v->id] == position) restore_one(t, v);
  }
}

// A node with a body may read anything.
static void find_last(const assay_search_t* s, size_t* last) {
  size_t control = 0;
  for (size_t i = 0; i < s->n_nodes; i++)
    if (s->nodes[i]->op && s->nodes[i]->op->flags & ASSAY_OP_CONTROL) control = i;
  for (size_t i = 0; i < s->n_nodes; i++)
    for (size_t k = 0; k < s->nodes[i]->n_inputs; k++)
      if (s->nodes[i]->inputs[k]) last[s->nodes[i]->inputs[k]->id] = i > control ? i : control;
}

// A node with a body may read anything around it.
static bool reads_dirty(const assay_trials_t* t, const assay_node_t* n) {
  if (n->op && n->op->flags & ASSAY_OP_CONTROL) return t->n_touched > 0;
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && t->dirty[n->inputs[i]->id]) return true;
  return false;
}

// What the node gives is known where only what comes after it changes: nothing before it has.
static assay_status_t follow(assay_trials_t* t, const assay_node_t* n, const assay_repair_t* r,
                             assay_tensor_t* const* in, assay_tensor_t** out) {
  assay_tensor_t** was = NULL;
  ASSAY_TRY(assay_new_array(n->n_outputs, sizeof *was, &was));
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    const size_t k = v ? target_of(t->s, v) : t->s->n_targets;
    if (v)
      was[i] =
          k < t->s->n_targets ? t->s->targets[k].truth : assay_evaluator_get(t->s->evaluator, v);
  }
  assay_status_t st =
      assay_repair_follow(t->s->evaluator, r, n->n_inputs, in, n->n_outputs, was, out);
  assay_free(was);
  return st;
}

// Evaluates one node, with the repair or without, and puts what changed.
static assay_status_t step(assay_trials_t* t, const assay_node_t* n, const assay_repair_t* r) {
  assay_tensor_t **in = NULL, **out = NULL;
  assay_status_t st = assay_new_array(n->n_inputs, sizeof *in, &in);
  if (!st) st = assay_new_array(n->n_outputs, sizeof *out, &out);
  for (size_t i = 0; !st && i < n->n_inputs; i++)
    in[i] = n->inputs[i] ? assay_evaluator_get(t->s->evaluator, n->inputs[i]) : NULL;
  const assay_repair_t* adopted = assay_search_adopted(t->s, n);
  const bool follows = r && !adopted && assay_repair_only_follows(r);
  if (!r) r = adopted;
  if (!st && follows)
    st = follow(t, n, r, in, out);
  else if (!st && r)
    st = assay_repair_evaluate(t->s->evaluator, r, n->n_inputs, in, n->n_outputs, out);
  else if (!st)
    st = assay_evaluator_node(t->s->evaluator, n, n->n_inputs, in, n->n_outputs, out);
  for (size_t i = 0; out && i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    const bool target = v && target_of(t->s, v) < t->s->n_targets;
    if (!st && v && t->shapes_fit &&
        assay_search_blown_up(out[i], assay_evaluator_get(t->s->evaluator, v)))
      st = ASSAY_ERROR(ASSAY_NO_MEMORY, "'%s' is made too large", v->name);
    if (!st && v && out[i] &&
        (target || !assay_search_same_tensor(out[i], assay_evaluator_get(t->s->evaluator, v)))) {
      st = put(t, v, out[i]);
    } else {
      assay_tensor_release(out[i]);
    }
  }
  assay_free(in);
  assay_free(out);
  return st;
}

// Puts two constants, or values that nodes make, in each other's place.
static assay_status_t exchange(assay_trials_t* t, const assay_repair_edit_t* e) {
  const assay_value_t *a = e->value, *b = e->other_value;
  assay_tensor_t* x = a->constant ? a->constant : assay_evaluator_get(t->s->evaluator, a);
  assay_tensor_t* y = b->constant ? b->constant : assay_evaluator_get(t->s->evaluator, b);
  if (!x || !y) return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' has no value", x ? b->name : a->name);
  assay_tensor_retain(x);
  assay_status_t st = put(t, a, assay_tensor_retain(y));
  if (st) return assay_tensor_release(x), st;
  return put(t, b, x);
}

static void clear_got(assay_trials_t* t) {
  for (size_t k = 0; k < t->s->n_targets; k++) {
    assay_tensor_release(t->got[k]);
    t->got[k] = NULL;
  }
}

// Fills t->got with what the targets are with the repair. leave: the values after it stay in the
// machine, which keeps all of them, until they are restored. *out_fits: it could be evaluated and
// changed something. Where evaluation fails the repair does not fit, also where it asks for more
// memory than there is.
static assay_status_t evaluate_from(assay_trials_t* t, const assay_repair_t* r, bool leave,
                                    bool* out_fits) {
  clear_got(t);
  size_t next = t->position + 1;
  assay_status_t st = NULL;
  *out_fits = false;
  const bool crosses = r->edits[0].kind == ASSAY_EDIT_CROSS;
  if (crosses || r->edits[0].kind == ASSAY_EDIT_EXCHANGE) {
    if (!crosses && !assay_search_read_by_faulty(t->s, r->edits[0].other_value)) return NULL;
    st = exchange(t, &r->edits[0]);
    next = crosses ? next : 0;
  } else {
    st = step(t, r->node, r);
  }
  bool any = t->n_touched > 0;
  for (size_t k = 0; k < t->s->n_targets; k++) any |= t->got[k] != NULL;
  if (any) t->s->trials++;
  for (size_t i = next; !st && any && i < t->s->n_nodes; i++) {
    if (!reads_dirty(t, t->s->nodes[i])) continue;
    st = step(t, t->s->nodes[i], NULL);
    if (!leave) restore_read(t, i);
  }
  *out_fits = !st && any;
  assay_status_free(st);
  return NULL;
}

static assay_status_t evaluate(assay_trials_t* t, const assay_repair_t* r, bool* out_fits) {
  assay_status_t st = evaluate_from(t, r, false, out_fits);
  restore(t);
  return st;
}

assay_status_t assay_trials_evaluate_adopted(assay_trials_t* t, bool* out_restored,
                                             bool* out_fits) {
  assay_status_t st = NULL;
  clear_got(t);
  *out_restored = false;
  t->s->trials++;
  for (size_t i = 0; !st && i < t->s->n_nodes; i++) {
    if (!assay_search_adopted(t->s, t->s->nodes[i]) && !reads_dirty(t, t->s->nodes[i])) continue;
    st = step(t, t->s->nodes[i], NULL);
    restore_read(t, i);
  }
  restore(t);
  *out_fits = !st;
  assay_status_free(st);
  t->remains = (double)NAN;
  if (!*out_fits) return NULL;
  const double after = score(t, t->got, out_restored);
  t->remains = sqrt(after / fmax(t->before, 1e-300));
  return NULL;
}

// ---- scores ------------------------------------------------------------------------------------

// Golden of fewer rows is what its rows say. Where truth had just golden's shape, what a repair
// makes has to have it, too.
static bool keeps_shape(const assay_search_target_t* g, const assay_tensor_t* got) {
  return !got || !g->truth || !assay_tensor_same_shape(g->truth, g->golden) ||
         assay_tensor_same_shape(got, g->golden);
}

// The sum over the targets of (difference / golden's size)^2, and whether all are within what is
// explained.
static double score(const assay_trials_t* t, assay_tensor_t* const* got, bool* out_restored) {
  double sum = 0;
  *out_restored = true;
  for (size_t k = 0; k < t->s->n_targets; k++) {
    const assay_search_target_t* g = &t->s->targets[k];
    const assay_difference_t d = assay_difference(got && got[k] ? got[k] : g->truth, g->golden);
    if (!d.comparable || (got && !keeps_shape(g, got[k]))) {
      *out_restored = false;
      sum += 1e6;
      continue;
    }
    const double scale = fmax(d.ref_rms, 1e-300);
    sum += (d.rms / scale) * (d.rms / scale) + 1e3 * (double)d.mismatched / (double)(d.n + 1);
    if (d.mismatched || d.rms > g->explained_rms || d.max > g->explained_max) *out_restored = false;
  }
  return sum;
}

// How far the targets are from truth without the repair, over golden's size.
static double moved(const assay_trials_t* t) {
  double sum = 0;
  for (size_t k = 0; k < t->s->n_targets; k++) {
    const assay_search_target_t* g = &t->s->targets[k];
    if (!t->got[k]) continue;
    const assay_difference_t d = assay_difference(t->got[k], g->truth);
    const assay_difference_t size = assay_difference(g->golden, g->golden);
    if (!d.comparable || d.mismatched) return (double)NAN;
    const double part = d.rms / fmax(size.ref_rms, 1e-300);
    sum += part * part;
  }
  return sqrt(sum);
}

// Of two that restore golden the likelier cause is better; but one that leaves what can be seen is
// not, beside one that leaves next to nothing.
static const double SEEN = 1e-4, NEXT_TO_NOTHING = 1. / 64;

static bool better(const assay_tried_repair_t* a, const assay_tried_repair_t* b) {
  if (a->restored != b->restored) return a->restored;
  if (a->left > SEEN && b->left < NEXT_TO_NOTHING * a->left) return false;
  if (b->left > SEEN && a->left < NEXT_TO_NOTHING * b->left) return true;
  if (a->restored && a->rank != b->rank) return a->rank < b->rank;
  return a->remains < b->remains;
}

// Keeps the best repair of each of the best few nodes.
static assay_status_t keep(assay_trials_t* t, const assay_repair_t* r, double remains,
                           bool restored) {
  const assay_tried_repair_t next = {.repair = *r,
                                     .remains = remains,
                                     .left = remains * sqrt(t->before),
                                     .restored = restored,
                                     .rank = t->rank + (r->fits ? FITTED_RANK : 0)};
  size_t at = 0;
  while (at < t->n_best && t->best[at].repair.node != r->node) at++;
  if (at == t->n_best) {
    if (t->n_best < ASSAY_TRIAL_MAX_REPAIRS)
      t->n_best++;
    else if (better(&next, &t->best[--at]))
      assay_repair_deinit(&t->best[at].repair);
    else
      return NULL;
  } else if (!better(&next, &t->best[at])) {
    return NULL;
  } else {
    assay_repair_deinit(&t->best[at].repair);
  }
  t->best[at] = next;
  ASSAY_TRY(assay_repair_copy(r, &t->best[at].repair));
  for (; at > 0 && better(&t->best[at], &t->best[at - 1]); at--) {
    const assay_tried_repair_t x = t->best[at];
    t->best[at] = t->best[at - 1];
    t->best[at - 1] = x;
  }
  t->found |= restored && next.left <= SEEN;
  t->plausible |= restored;
  return NULL;
}

// Fitted parameters, and what is put in somewhere, can take a part of anything: there are many.
static bool is_flexible(const assay_trials_t* t, const assay_repair_t* r) {
  const assay_edit_kind_t kind = r->edits[0].kind;
  return t->fitted || r->fits || kind == ASSAY_EDIT_CHAIN || kind == ASSAY_EDIT_INPUT ||
         kind == ASSAY_EDIT_BEFORE || kind == ASSAY_EDIT_AFTER;
}

void assay_trials_note(assay_trials_t* t, size_t position, double remains, double share) {
  const double merit = share * (1 - remains);
  if (merit > t->merit[position]) t->merit[position] = merit;
}

static const double FLEXIBLE_SHARE = 0.6;

// Keeps a repair among those that mend a part: of a node one that is made of what can take a part
// of anything, and one that is not, which the others would hide.
static assay_status_t keep_partial(assay_trials_t* t, const assay_repair_t* r, double remains) {
  assay_partial_t next = {.repair = *r,
                          .remains = remains,
                          .merit = (1 - remains) * (is_flexible(t, r) ? FLEXIBLE_SHARE : 1)};
  size_t at = 0;
  while (at < t->n_partials && (t->partials[at].repair.node != r->node ||
                                is_flexible(t, &t->partials[at].repair) != is_flexible(t, r)))
    at++;
  if (at == ASSAY_TRIAL_PARTIALS) at--;
  if (at < t->n_partials) {
    if (t->partials[at].merit >= next.merit) return NULL;
    assay_repair_deinit(&t->partials[at].repair);
  } else {
    t->n_partials++;
  }
  ASSAY_TRY(assay_repair_copy(r, &next.repair));
  for (; at > 0 && t->partials[at - 1].merit < next.merit; at--)
    t->partials[at] = t->partials[at - 1];
  t->partials[at] = next;
  return NULL;
}

// Whether a repair restores golden of the other samples as well; *remains: at least what it leaves
// there.
static assay_status_t verify(assay_trials_t* t, const assay_repair_t* r, double* remains,
                             bool* restored) {
  for (size_t i = 0; i < t->s->n_others && *restored; i++) {
    assay_trials_t* other = &t->others[i];
    bool fits = false;
    other->position = t->position;
    ASSAY_TRY(evaluate(other, r, &fits));
    const double after = score(other, other->got, restored);
    *restored &= fits || after <= other->before;
    if (!*restored) *remains = fmax(*remains, fmin(1, sqrt(after / fmax(t->before, 1e-300))));
  }
  return NULL;
}

// A repair that leaves nearly everything is none. One that takes a part may be one of several.
static const double HELPS = 0.5, HELPS_IN_PART = 0.97, NEARLY_ALL = 0.05;

// What fitted numbers leave of the sample that they were not fitted to, if there is one: many can
// take everything away where they were.
static assay_status_t ask_last(assay_trials_t* t, const assay_repair_t* r, double* remains) {
  bool fits = false, restored = false;
  if (!t->fitted || !t->s->n_others) return NULL;
  assay_trials_t* last = &t->others[t->s->n_others - 1];
  last->position = t->position;
  ASSAY_TRY(evaluate(last, r, &fits));
  const double after = score(last, last->got, &restored);
  *remains = fmax(*remains, fmin(1, sqrt(after / fmax(last->before, 1e-300))));
  return NULL;
}

static assay_status_t try_once(assay_trials_t* t, const assay_repair_t* r, bool* out_restored,
                               bool* out_fits) {
  *out_restored = false;
  t->arrived = t->remains = (double)NAN;
  ASSAY_TRY(evaluate(t, r, out_fits));
  if (!*out_fits) return NULL;
  if (!r->fits) t->arrived = moved(t);
  const double after = score(t, t->got, out_restored);
  double remains = sqrt(after / fmax(t->before, 1e-300));
  if (*out_restored) ASSAY_TRY(verify(t, r, &remains, out_restored));
  t->remains = remains;
  if (!*out_restored) ASSAY_TRY(ask_last(t, r, &remains));
  if (t->anywhere && !*out_restored && remains > NEARLY_ALL) return NULL;
  assay_trials_note(t, t->position, remains, is_flexible(t, r) ? FLEXIBLE_SHARE : 1);
  if (*out_restored || remains < HELPS) ASSAY_TRY(keep(t, r, remains, *out_restored));
  if (!*out_restored && remains < HELPS_IN_PART) ASSAY_TRY(keep_partial(t, r, remains));
  return NULL;
}

// ---- fitting a parameter -----------------------------------------------------------------------

// Weighted sums over all elements of the targets: <r, s>, <s, s> and <r, r>, with r = now - golden
// and s = now - last.
typedef struct slope {
  double rs, ss, rr;
} slope_t;

static void add_slope(const assay_tensor_t* now, const assay_tensor_t* last,
                      const assay_tensor_t* golden, slope_t* out) {
  const assay_difference_t d = assay_difference(now, golden);
  const assay_difference_t e = assay_difference(last, golden);
  if (!d.comparable || !e.comparable || now->store != ASSAY_STORE_F64) return;
  const double w = 1 / fmax(d.ref_rms * d.ref_rms * (double)(d.n + 1), 1e-300);
  for (int64_t i = 0; i < golden->size; i++) {
    const double r = assay_f64(now)[i] - assay_f64(golden)[i];
    const double s = assay_f64(now)[i] - assay_f64(last)[i];
    if (!isfinite(r) || !isfinite(s)) continue;
    out->rs += w * r * s;
    out->ss += w * s * s;
    out->rr += w * r * r;
  }
}

static slope_t slope_between(const assay_trials_t* t, assay_tensor_t* const* last) {
  slope_t s = {0};
  for (size_t k = 0; k < t->s->n_targets; k++) {
    const assay_search_target_t* g = &t->s->targets[k];
    const assay_tensor_t *now = t->got[k] ? t->got[k] : g->truth,
                         *was = last[k] ? last[k] : g->truth;
    if (now && was) add_slope(now, was, g->golden, &s);
  }
  return s;
}

static void take_got(assay_trials_t* t, assay_tensor_t** to) {
  for (size_t k = 0; k < t->s->n_targets; k++) {
    assay_tensor_release(to[k]);
    to[k] = t->got[k];
    t->got[k] = NULL;
  }
}

// The shortest decimal that still restores golden.
static assay_status_t shorten(assay_trials_t* t, assay_repair_t* r) {
  const double exact = r->value;
  for (int digits = 1; digits <= 7; digits++) {
    char text[40];
    bool restored, fits;
    snprintf(text, sizeof text, "%.*g", digits, exact);
    ASSAY_TRY(assay_repair_set_value(r, strtod(text, NULL)));
    ASSAY_TRY(try_once(t, r, &restored, &fits));
    if (restored) return NULL;
  }
  return assay_repair_set_value(r, exact);
}

// Secant steps along the parameter, as long as they lead towards golden.
static assay_status_t fit_from(assay_trials_t* t, assay_repair_t* r, assay_tensor_t** last) {
  double p = r->start, step = assay_search_first_step(r);
  bool restored = false, fits = false;
  for (int k = 0; k < FIT_STEPS && !restored; k++) {
    const double before = r->value;
    double next = p + step;
    if (strcmp(r->cause, "epsilon") == 0 && next <= 0) next = p / 8;
    assay_status_t st = assay_repair_set_value(r, next);
    if (st) return assay_status_free(st), NULL;
    ASSAY_TRY(try_once(t, r, &restored, &fits));
    if (!fits || restored) break;
    const slope_t s = slope_between(t, last);
    const double moved = r->value - before;
    // Where the first step does not point at golden, this is not the parameter.
    if (!(s.ss > 0) || moved == 0 || (k == 0 && s.rs * s.rs < 0.2 * s.ss * s.rr)) break;
    p = r->value;
    step = -s.rs / s.ss * moved;
    if (!isfinite(step) || fabs(step) < 1e-9 * fabs(p)) break;
    take_got(t, last);
  }
  return restored ? shorten(t, r) : NULL;
}

static assay_status_t fit(assay_trials_t* t, const assay_repair_t* repair) {
  assay_repair_t r;
  assay_tensor_t** last = NULL;
  ASSAY_TRY(assay_repair_copy(repair, &r));
  assay_status_t st = assay_new_array(t->s->n_targets, sizeof *last, &last);
  if (!st) st = fit_from(t, &r, last);
  for (size_t k = 0; last && k < t->s->n_targets; k++) assay_tensor_release(last[k]);
  assay_free(last);
  assay_repair_deinit(&r);
  return st;
}

// ---- taking a repair as made -------------------------------------------------------------------

assay_status_t assay_trials_adopt(assay_trials_t* t, const assay_repair_t* r,
                                  assay_search_target_t** out) {
  bool fits = false;
  assay_search_target_t* targets = NULL;
  *out = NULL;
  t->position = 0;
  while (t->position < t->s->n_nodes && t->s->nodes[t->position] != r->node) t->position++;
  assay_status_t st = evaluate_from(t, r, true, &fits);
  if (!st && fits) st = assay_new_array(t->s->n_targets, sizeof *targets, &targets);
  for (size_t k = 0; targets && k < t->s->n_targets; k++) {
    targets[k] = t->s->targets[k];
    if (t->got[k]) targets[k].truth = t->got[k];
  }
  if (!targets) restore(t);
  *out = targets;
  return st;
}

void assay_trials_drop(assay_trials_t* t) {
  restore(t);
  clear_got(t);
}

// ---- the whole ---------------------------------------------------------------------------------

assay_status_t assay_trials_try(assay_trials_t* t, const assay_repair_t* r) {
  bool restored, fits;
  if (r->fits) return fit(t, r);
  return try_once(t, r, &restored, &fits);
}

assay_status_t assay_trials_leave(assay_trials_t* t, const assay_repair_t* r, size_t n,
                                  double* out) {
  double after = 0, before = 0;
  *out = (double)NAN;
  for (size_t i = 0; i <= n; i++) {
    assay_trials_t* one = i ? &t->others[i - 1] : t;
    bool fits = false, restored = false;
    one->position = t->position;
    ASSAY_TRY(evaluate(one, r, &fits));
    if (!fits && i == 0) return NULL;
    after += fits ? score(one, one->got, &restored) : one->before;
    before += one->before;
  }
  *out = sqrt(after / fmax(before, 1e-300));
  return NULL;
}

assay_status_t assay_trials_init(assay_search_t* s, assay_trials_t* t) {
  bool restored;
  const size_t values = (size_t)s->model->n_values;
  *t = (assay_trials_t){.s = s};
  assay_status_t st = assay_new_array(values, sizeof *t->dirty, &t->dirty);
  if (!st) st = assay_new_array(values, sizeof *t->old, &t->old);
  if (!st) st = assay_new_array(values, sizeof *t->last, &t->last);
  if (!st) st = assay_new_array(s->n_targets, sizeof *t->got, &t->got);
  if (!st) st = assay_new_array(s->n_nodes, sizeof *t->merit, &t->merit);
  if (st) return assay_trials_deinit(t), st;
  find_last(s, t->last);
  if (s->n_others) st = assay_new_array(s->n_others, sizeof *t->others, &t->others);
  for (size_t i = 0; !st && i < s->n_others; i++)
    st = assay_trials_init(&s->others[i], &t->others[i]);
  if (st) return assay_trials_deinit(t), st;
  t->before = score(t, NULL, &restored);
  t->shapes_fit = true;
  for (size_t k = 0; k < s->n_targets; k++)
    t->shapes_fit &= assay_difference(s->targets[k].truth, s->targets[k].golden).comparable;
  return NULL;
}

void assay_trials_deinit(assay_trials_t* t) {
  for (size_t i = 0; t->others && i < t->s->n_others; i++)
    if (t->others[i].s) assay_trials_deinit(&t->others[i]);
  assay_free(t->others);
  for (size_t i = 0; i < t->n_best; i++) assay_repair_deinit(&t->best[i].repair);
  for (size_t i = 0; i < t->n_partials; i++) assay_repair_deinit(&t->partials[i].repair);
  if (t->got) clear_got(t);
  assay_free(t->got);
  assay_free(t->merit);
  assay_free(t->dirty);
  assay_free(t->old);
  assay_free(t->last);
  assay_free(t->touched);
}
