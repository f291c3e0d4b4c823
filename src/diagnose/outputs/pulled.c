// Golden of inner values, read backwards from outputs.
//
// The last nodes of a network often lose nothing: numbers are added, rows turned, parts joined.
// What they must have read is known then by what has to come out (solve/missing_inverse.c), and
// what is missing there can be solved for as where golden has inner values. How sure a value is, is
// told by a second one, read back from golden that is off by what rounding explains.
#include "diagnose/outputs/pulled.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "diagnose/outputs/set.h"
#include "diagnose/solve/missing.h"
#include "diagnose/solve/solve.h"

enum { MOST = 48, PARTS = 16 };

// A value, and what it has to be.
typedef struct place {
  const assay_value_t* value;
  assay_tensor_t *want, *off;  // the same of golden that is off
  size_t part;                 // which of the values that are joined it leads to
} place_t;

typedef struct pulled {
  assay_trials_t* t;
  assay_holdout_t* holdout;
  double end;
  place_t at[MOST];
  size_t n;
  size_t n_parts;
  assay_repair_t repairs[PARTS];  // by part: what restores it alone
  double left[PARTS];             // of golden's difference in the other samples
  bool solved[PARTS];
} pulled_t;

static size_t position_of(const assay_search_t* s, const assay_node_t* n) {
  size_t i = 0;
  while (i < s->n_nodes && s->nodes[i] != n) i++;
  return i;
}

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

static bool is_off(const assay_tensor_t* truth, const assay_tensor_t* want, double explained) {
  const assay_difference_t d = assay_difference(truth, want);
  return d.comparable && d.rms > explained && d.rms > 1e-5 * d.ref_rms;
}

// ---- from a node's output to its inputs --------------------------------------------------------

// What reads it besides the node sees another value as well, and golden read backwards past only
// one of them is not what it was.
static bool is_read_once(const assay_search_t* s, const assay_value_t* v) {
  size_t readers = 0;
  for (size_t i = 0; i < s->n_nodes; i++) {
    bool reads = false;
    for (size_t k = 0; k < s->nodes[i]->n_inputs; k++) reads |= s->nodes[i]->inputs[k] == v;
    readers += reads;
  }
  return readers == 1 && !v->is_output;
}

static assay_status_t pull_input(pulled_t* p, assay_missing_search_t* m, size_t input,
                                 const place_t* from, size_t part) {
  const assay_value_t* v = m->node->inputs[input];
  assay_tensor_t *want = NULL, *off = NULL;
  if (p->n == MOST || !v || !v->producer || !is_read_once(p->t->s, v)) return NULL;
  ASSAY_TRY(assay_missing_inverse(m, input, from->want, &want));
  assay_status_t st = want ? assay_missing_inverse(m, input, from->off, &off) : NULL;
  // What rounding alone leaves as open as it is off tells nothing.
  static const double UNSURE = 0.01;
  bool sure = !st && off;
  if (sure) {
    const assay_difference_t open = assay_difference(off, want),
                             miss = assay_difference(m->in[input], want);
    sure = open.comparable && open.rms <= UNSURE * miss.rms;
  }
  if (!sure) {
    assay_tensor_release(want);
    assay_tensor_release(off);
    return st;
  }
  p->at[p->n++] = (place_t){v, want, off, part};
  return NULL;
}

static bool is_joined(const assay_node_t* n) {
  return !*n->domain && !strcmp(n->op_type, "Concat");
}

static assay_status_t pull_inputs(pulled_t* p, assay_missing_search_t* m, const place_t* from) {
  const size_t before = p->n;
  for (size_t i = 0; i < m->n_in; i++)
    if (is_float(m->in[i])) ASSAY_TRY(pull_input(p, m, i, from, from->part));
  if (!is_joined(m->node)) return NULL;
  // Each is a part of its own, but for the first, which stays one with what it was read from.
  for (size_t i = before + 1; i < p->n && p->n_parts < PARTS; i++) p->at[i].part = p->n_parts++;
  return NULL;
}

static assay_status_t pull(pulled_t* p, const place_t* from) {
  const assay_node_t* n = from->value->producer;
  assay_missing_search_t m = {.m = p->t->s->evaluator, .node = n, .n_in = n->n_inputs};
  if (n->outputs[0] != from->value || (n->op && n->op->flags & ASSAY_OP_CONTROL)) return NULL;
  assay_status_t st = assay_new_array(m.n_in, sizeof *m.in, &m.in);
  for (size_t i = 0; !st && i < m.n_in; i++) {
    assay_tensor_t* x = n->inputs[i] ? assay_evaluator_get(p->t->s->evaluator, n->inputs[i]) : NULL;
    if (x) st = assay_tensor_widen(x, &m.in[i]);
  }
  if (!st) st = pull_inputs(p, &m, from);
  for (size_t i = 0; m.in && i < m.n_in; i++) assay_tensor_release(m.in[i]);
  assay_free(m.in);
  return st;
}

// ---- solving -----------------------------------------------------------------------------------

static assay_search_target_t target_of(const pulled_t* p, const place_t* from) {
  const assay_search_t* s = p->t->s;
  for (size_t k = 0; k < s->n_targets; k++)
    if (s->targets[k].value == from->value) return s->targets[k];
  const assay_difference_t open = assay_difference(from->off, from->want);
  return (assay_search_target_t){.value = from->value,
                                 .golden = from->want,
                                 .truth = assay_evaluator_get(s->evaluator, from->value),
                                 .explained_rms = open.rms,
                                 .explained_max = open.max};
}

// What restores its place may restore all of golden, or a part of it; of each part what leaves
// least in the other samples is kept.
static assay_status_t take(pulled_t* p, const place_t* from, assay_repair_t* r) {
  assay_trials_t* t = p->t;
  double left = 1;
  assay_holdout_answer_t said = ASSAY_HOLDOUT_SILENT;
  t->position = position_of(t->s, r->node);
  t->rank = (int)assay_proposal_count();
  assay_status_t st = NULL;
  if (t->position < t->s->n_nodes) st = assay_trials_try(t, r);
  if (!st) st = assay_holdout_ask(p->holdout, 0, r, &said);
  if (!st && said != ASSAY_HOLDOUT_SILENT) left = assay_holdout_left(p->holdout);
  const size_t part = from->part;
  const bool better = !p->solved[part] || left < p->left[part];
  if (st || t->found || !better) return assay_repair_deinit(r), st;
  if (p->solved[part]) assay_repair_deinit(&p->repairs[part]);
  p->repairs[part] = *r;
  p->solved[part] = true;
  p->left[part] = left;
  return NULL;
}

// Elements that are moved before an input which a node that moves elements makes: two parts of one
// order, of which one was lost. That node is asked as well, and is the one to name.
static bool is_of_order_before(const pulled_t* p, const assay_repair_t* r) {
  const assay_repair_edit_t* e = &r->edits[0];
  const bool before = r->n_edits == 1 && e->kind == ASSAY_EDIT_BEFORE && r->cause &&
                      strcmp(r->cause, "moved elements") == 0 && e->input < r->node->n_inputs;
  const assay_value_t* v = before ? r->node->inputs[e->input] : NULL;
  const assay_op_t* op = v && v->producer ? v->producer->op : NULL;
  bool asked = false;
  for (size_t i = 0; op && op->flags & ASSAY_OP_MOVES && i < p->n; i++)
    asked |= p->at[i].value == v;
  return asked;
}

static assay_status_t solve(pulled_t* p, const place_t* from) {
  const assay_search_t* s = p->t->s;
  const assay_node_t* n = from->value->producer;
  const assay_search_target_t target = target_of(p, from);
  const assay_golden_t nothing = {0};
  // Half of the time that is left for each.
  const double now = assay_clock_seconds(), until = now + (p->end - now) / 2;
  assay_repair_t r = {0};
  double left = 0;
  bool tested = false, found = false;
  if (!n || position_of(s, n) == s->n_nodes || !target.truth ||
      !is_off(target.truth, target.golden, target.explained_rms))
    return NULL;
  ASSAY_TRY(assay_solve_constant(s->evaluator, n, &target, p->holdout, false, until, &r, &left,
                                 &tested, &found));
  found =
      found && (left * assay_difference(target.truth, target.golden).rms <= target.explained_rms ||
                (assay_repair_deinit(&r), false));
  if (found) ASSAY_TRY(take(p, from, &r));
  if (p->t->found || assay_clock_seconds() > until) return NULL;
  ASSAY_TRY(
      assay_solve_missing(s->evaluator, n, &target, &nothing, NULL, p->holdout, until, &r, &found));
  if (found && is_of_order_before(p, &r)) return assay_repair_deinit(&r), NULL;
  return found ? take(p, from, &r) : NULL;
}

// What each part needs, together.
static assay_status_t solve_together(pulled_t* p, assay_fault_t* out, size_t* out_n) {
  assay_repair_set_t set = {0};
  bool restored = false, fits = true;
  for (size_t i = 0; i < p->n_parts; i++)
    if (!p->solved[i]) return NULL;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < p->n_parts && fits; i++) {
    p->solved[i] = false;
    st = assay_repair_set_add(&set, &p->repairs[i], &fits);
  }
  if (!st && fits) st = assay_trials_try_set(p->t, &set, &restored);
  p->t->s->trials++;
  if (!st && restored) assay_repair_set_report(p->t, &set, out, out_n);
  assay_repair_set_deinit(&set);
  return st;
}

// ---- the whole ---------------------------------------------------------------------------------

static assay_status_t begin(pulled_t* p) {
  const assay_search_t* s = p->t->s;
  for (size_t k = 0; k < s->n_targets && p->n < MOST && p->n_parts < PARTS; k++) {
    const assay_search_target_t* t = &s->targets[k];
    if (!is_float(t->golden) || !is_float(t->truth) || !t->value->producer ||
        (assay_tensor_same_shape(t->truth, t->golden) &&
         !is_off(t->truth, t->golden, t->explained_rms)))
      continue;
    place_t* at = &p->at[p->n++];
    *at = (place_t){.value = t->value, .part = p->n_parts++};
    ASSAY_TRY(assay_tensor_copy(t->golden, &at->want));
    ASSAY_TRY(assay_tensor_copy(t->golden, &at->off));
    const assay_random_t random = assay_random_make(s->draw, t->value->name, 0);
    for (int64_t i = 0; i < at->off->size; i++)
      assay_f64(at->off)[i] +=
          t->explained_rms * (assay_random_uniform(&random, (uint64_t)i) < 0.5 ? -1 : 1);
  }
  return NULL;
}

static assay_status_t run(pulled_t* p, assay_fault_t* out, size_t* out_n) {
  ASSAY_TRY(begin(p));
  ASSAY_TRY(assay_holdout_create(p->t->s->options, p->t->s->model, p->t->s->evaluator,
                                 p->t->s->targets, p->t->s->n_targets, &p->holdout));
  if (!p->holdout) return NULL;
  for (size_t i = 0; i < p->n; i++) {
    const place_t from = p->at[i];
    if (p->t->found || assay_clock_seconds() > p->end) break;
    ASSAY_TRY(pull(p, &from));
    ASSAY_TRY(solve(p, &p->at[i]));
  }
  return p->t->found || p->n_parts < 2 ? NULL : solve_together(p, out, out_n);
}

assay_status_t assay_search_pulled(assay_trials_t* t, double end, assay_fault_t* out,
                                   size_t* out_n) {
  pulled_t* p = NULL;
  // There are so many nodes that one sample can be explained somewhere by what does not hold.
  if (!t->s->options || !t->s->n_others) return NULL;
  ASSAY_TRY(assay_new_array(1, sizeof *p, &p));
  p->t = t;
  p->end = end;
  assay_status_t st = run(p, out, out_n);
  for (size_t i = 0; i < p->n; i++) {
    assay_tensor_release(p->at[i].want);
    assay_tensor_release(p->at[i].off);
  }
  for (size_t i = 0; i < PARTS; i++)
    if (p->solved[i]) assay_repair_deinit(&p->repairs[i]);
  assay_holdout_destroy(p->holdout);
  assay_free(p);
  return st;
}
