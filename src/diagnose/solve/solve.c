// Constants solved for where a node's inputs and output are known.
#include "diagnose/solve/solve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "formats/format.h"

// What is left of the difference where the solution did not look, at most.
static const double MAX_LEFT = 0.05;
// The same where it looked, if nothing tests it.
static const double NOTHING = 1e-3;
// A change of an element below this part of it, or of the constant's RMS, is golden's rounding.
static const double SAME = 2e-6;

typedef assay_status_t solver_t(const assay_solve_t* s, bool* held, assay_tensor_t** out);

// ---- whether it holds ---------------------------------------------------------------------------

static double square(double x) { return x * x; }

// RMS of what a solution leaves over what there was, at the places that it did not look at. Where
// nothing was wrong there, nothing may be wrong after it.
static double left_of(const assay_solve_t* s, const bool* held, const assay_tensor_t* made) {
  double left = 0, before = 0;
  int64_t n = 0;
  for (int64_t i = 0; i < s->want->size; i++) {
    if (!held[i]) continue;
    left += square(assay_f64(made)[i] - assay_f64(s->want)[i]);
    before += square(assay_f64(s->have)[i] - assay_f64(s->want)[i]);
    n++;
  }
  if (n && before == 0) return left == 0 ? 0 : INFINITY;
  return n ? sqrt(left / before) : INFINITY;
}

// Elements that hardly change are those of the constant, which its format held exactly.
static void keep_same(const assay_tensor_t* before, assay_tensor_t* now) {
  double sum = 0;
  for (int64_t i = 0; i < before->size; i++) sum += square(assay_f64(before)[i]);
  const double rms = before->size ? sqrt(sum / (double)before->size) : 0;
  const assay_format_t format = assay_type_format(now->type);
  for (int64_t i = 0; i < before->size; i++) {
    const double x = assay_f64(before)[i], y = assay_f64(now)[i];
    assay_f64(now)[i] = fabs(y - x) <= SAME * fmax(fabs(x), rms)
                            ? x
                            : assay_format_round(format, y, ASSAY_OVERFLOW_IEEE);
  }
}

static assay_repair_t repair_of(const assay_solve_t* s, assay_tensor_t* now) {
  assay_repair_t r = {.node = s->node, .cause = "solved constant", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = s->input, .tensor = now};
  return r;
}

// Whether a solution by all places, which leaves next to nothing there, holds on other samples.
static assay_status_t holds_elsewhere(const assay_solve_t* s, assay_tensor_t* now, double left,
                                      bool* out) {
  assay_holdout_answer_t said = ASSAY_HOLDOUT_SILENT;
  const assay_repair_t r = repair_of(s, now);
  if (left <= NOTHING) ASSAY_TRY(assay_holdout_ask(s->holdout, 0, &r, &said));
  *out = said == ASSAY_HOLDOUT_HOLDS || said == ASSAY_HOLDOUT_NEAR;
  return NULL;
}

static assay_status_t try_solver(const assay_solve_t* s, solver_t* solver, double* out_left,
                                 bool* out_tested, assay_tensor_t** out) {
  bool* held = NULL;
  assay_tensor_t *part = NULL, *made = NULL;
  *out = NULL;
  ASSAY_TRY(assay_new_array((size_t)s->want->size, sizeof *held, &held));
  assay_status_t st = s->untested ? NULL : solver(s, held, &part);
  if (!st && part) st = assay_solve_evaluate(s, part, &made);
  bool holds = !st && made && left_of(s, held, made) <= MAX_LEFT;
  assay_tensor_release(made);
  made = NULL;
  if (!st && ((part && (holds || s->holdout)) || s->untested)) st = solver(s, NULL, out);
  if (!st && *out) keep_same(s->in[s->input], *out);
  if (!st && *out) st = assay_solve_evaluate(s, *out, &made);
  if (!st && made) {
    for (int64_t i = 0; i < s->want->size; i++) held[i] = true;
    *out_left = left_of(s, held, made);
  }
  *out_tested = holds;
  if (!st && made && s->untested)
    holds = *out_left <= NOTHING;
  else if (!st && made && !holds)
    st = holds_elsewhere(s, *out, *out_left, &holds);
  if (st || !made || !holds || !(*out_left <= MAX_LEFT)) assay_tensor_release(*out), *out = NULL;
  assay_tensor_release(made);
  assay_tensor_release(part);
  assay_free(held);
  return st;
}

// ---- what it looks like -------------------------------------------------------------------------

typedef struct change {
  int64_t n, same, zeros;  // elements; unchanged; that were 0
  double low, high;        // of the factors of the others
  bool is_bf16, is_fp16;   // what was there is the solution, rounded
} change_t;

static change_t change_of(const assay_tensor_t* before, const assay_tensor_t* now) {
  change_t c = {
      .n = now->size, .low = INFINITY, .high = -INFINITY, .is_bf16 = true, .is_fp16 = true};
  for (int64_t i = 0; i < now->size; i++) {
    const double x = assay_f64(before)[i], y = assay_f64(now)[i];
    c.same += x == y;
    c.zeros += x == 0 && y != 0;
    if (x != y && x != 0) {
      c.low = fmin(c.low, y / x);
      c.high = fmax(c.high, y / x);
    }
    c.is_bf16 &= fabs(x - y) <= 0x1p-7 * fabs(y) &&
                 assay_format_round(ASSAY_FORMAT_BF16, x, ASSAY_OVERFLOW_IEEE) == x;
    c.is_fp16 &= fabs(x - y) <= 0x1p-10 * fabs(y) &&
                 assay_format_round(ASSAY_FORMAT_FP16, x, ASSAY_OVERFLOW_IEEE) == x;
  }
  return c;
}

static void describe_choice(const assay_tensor_t* before, const assay_tensor_t* now,
                            const char* name, assay_repair_t* r) {
  long long to_true = 0, to_false = 0;
  for (int64_t i = 0; i < now->size; i++) {
    to_true += assay_i64(now)[i] > assay_i64(before)[i];
    to_false += assay_i64(now)[i] < assay_i64(before)[i];
  }
  snprintf(r->text, sizeof r->text,
           "of %lld elements of '%.120s' %lld are true in place of false, %lld false in place of "
           "true",
           (long long)now->size, name, to_false, to_true);
}

static void describe(const assay_solve_t* s, const assay_tensor_t* now, assay_repair_t* r) {
  const char* name = s->node->inputs[s->input] ? s->node->inputs[s->input]->name : "";
  if (now->store == ASSAY_STORE_I64) {
    describe_choice(s->in[s->input], now, name, r);
    return;
  }
  const change_t c = change_of(s->in[s->input], now);
  const long long changed = (long long)(c.n - c.same);
  if (c.is_fp16)
    snprintf(r->text, sizeof r->text, "'%.120s' was rounded to fp16", name);
  else if (c.is_bf16)
    snprintf(r->text, sizeof r->text, "'%.120s' was rounded to bf16", name);
  else if (c.zeros == changed)
    snprintf(r->text, sizeof r->text, "%lld of %lld elements of '%.120s' are 0 in place of numbers",
             changed, (long long)c.n, name);
  else if (c.high - c.low < 1e-3 * fabs(c.high) && !c.zeros)
    snprintf(r->text, sizeof r->text, "%lld of %lld elements of '%.120s' times %.6g", changed,
             (long long)c.n, name, (c.low + c.high) / 2);
  else
    snprintf(r->text, sizeof r->text, "other numbers in %lld of %lld elements of '%.120s'", changed,
             (long long)c.n, name);
}

// ---- the node -----------------------------------------------------------------------------------

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

static assay_status_t read_inputs(assay_solve_t* s) {
  for (size_t i = 0; i < s->node->n_inputs; i++) {
    const assay_value_t* v = s->node->inputs[i];
    assay_tensor_t* t = v ? assay_evaluator_get(s->m, v) : NULL;
    if (t) ASSAY_TRY(assay_tensor_widen(t, &s->in[i]));
  }
  return NULL;
}

// The best so far: one that leaves much less, or of those that leave about as little the one that
// changes the fewest elements.
typedef struct best {
  assay_tensor_t* now;  // NULL: there is none
  size_t input;
  double left;
  bool tested;
  int64_t changed;
} best_t;

static assay_status_t solve_input(assay_solve_t* s, best_t* best) {
  static solver_t* const solvers[] = {assay_solve_diagonal, assay_solve_rows};
  for (size_t k = 0; k < (s->untested ? 1 : sizeof solvers / sizeof *solvers); k++) {
    best_t b = {.input = s->input};
    ASSAY_TRY(try_solver(s, solvers[k], &b.left, &b.tested, &b.now));
    if (!b.now) continue;
    const change_t c = change_of(s->in[s->input], b.now);
    b.changed = c.n - c.same;
    const bool better = !best->now || 2 * b.left < best->left ||
                        (b.left <= 2 * best->left && b.changed < best->changed);
    assay_tensor_release(better ? best->now : b.now);
    if (better) *best = b;
  }
  return NULL;
}

static bool is_solvable(const assay_solve_t* s) {
  const assay_value_t* v = s->node->inputs[s->input];
  return v && v->constant && is_float(s->in[s->input]);
}

static bool is_condition(const assay_solve_t* s) {
  const assay_value_t* v = s->node->inputs[s->input];
  const assay_tensor_t* t = s->in[s->input];
  return v && v->constant && t && t->kind == ASSAY_KIND_TENSOR && t->type == ASSAY_TYPE_BOOL &&
         t->store == ASSAY_STORE_I64;
}

static assay_status_t solve_inputs(assay_solve_t* s, best_t* best) {
  for (s->input = 0; s->input < s->node->n_inputs; s->input++) {
    if (is_solvable(s)) ASSAY_TRY(solve_input(s, best));
    if (!is_condition(s) || best->now) continue;
    ASSAY_TRY(assay_solve_choice(s, &best->now));
    best->input = s->input;
  }
  return NULL;
}

// How a constant is solved for by several samples.
typedef enum unknowns {
  PARTS,   // only elements that look wrong
  OPEN,    // what one sample leaves open of a weight
  EACH,    // every element
  SHARES,  // what many elements share
} unknowns_t;

static assay_status_t solve_by_samples(assay_solve_t* s, unknowns_t which, double deadline,
                                       best_t* best) {
  for (s->input = 0; s->input < s->node->n_inputs && !best->now; s->input++) {
    assay_tensor_t *now = NULL, *made = NULL;
    if (!is_solvable(s) || assay_clock_seconds() >= deadline) continue;
    ASSAY_TRY(which == PARTS  ? assay_solve_partly(s, deadline, &now)
              : which == OPEN ? assay_solve_open(s, deadline, &now)
                              : assay_solve_samples(s, which == SHARES, deadline, &now));
    if (!now) continue;
    keep_same(s->in[s->input], now);
    assay_status_t st = assay_solve_evaluate(s, now, &made);
    if (st || !made) return assay_tensor_release(now), st;
    const assay_difference_t d = assay_difference(made, s->want);
    const assay_difference_t was = assay_difference(s->have, s->want);
    assay_tensor_release(made);
    *best = (best_t){
        .now = now, .input = s->input, .left = was.rms > 0 ? d.rms / was.rms : 0, .tested = true};
  }
  return NULL;
}

// A Constant node gives what golden has.
static assay_status_t take_value(const assay_node_t* node, const assay_search_target_t* target,
                                 assay_repair_t* out, bool* out_found) {
  assay_tensor_t* now = NULL;
  if (!target->truth || target->truth->kind != ASSAY_KIND_TENSOR ||
      target->golden->kind != ASSAY_KIND_TENSOR || target->golden->store != target->truth->store)
    return NULL;
  ASSAY_TRY(assay_tensor_retype(target->golden, target->truth->type, &now));
  *out = (assay_repair_t){.node = node, .cause = "constant", .n_edits = 1};
  out->edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_VALUE, .tensor = now};
  if (now->size == 1 && now->store == ASSAY_STORE_F64 && is_float(target->truth))
    snprintf(out->text, sizeof out->text, "'%.100s' = %.7g instead of %.7g", target->value->name,
             assay_f64(now)[0], assay_f64(target->truth)[0]);
  else
    snprintf(out->text, sizeof out->text, "'%.120s' as golden has it", target->value->name);
  *out_found = true;
  return NULL;
}

// By one sample, or by all of them.
static assay_status_t solve_best(assay_solve_t* s, bool by_samples, double deadline, best_t* best) {
  if (!by_samples) return solve_inputs(s, best);
  // Each constant by itself, before any whose elements share what is wrong.
  for (int which = PARTS; which <= SHARES && !best->now; which++)
    ASSAY_TRY(solve_by_samples(s, (unknowns_t)which, deadline, best));
  return NULL;
}

static assay_status_t solve_node(assay_solve_t s, const assay_search_target_t* target,
                                 bool by_samples, double deadline, assay_repair_t* out,
                                 double* out_left, bool* out_tested, bool* out_found) {
  const assay_node_t* node = s.node;
  *out_found = false;
  *out_left = 0;
  *out_tested = true;
  if (!*node->domain && strcmp(node->op_type, "Constant") == 0 && node->n_outputs == 1)
    return take_value(node, target, out, out_found);
  while (s.output < node->n_outputs && node->outputs[s.output] != target->value) s.output++;
  if (s.output == node->n_outputs || (node->op && node->op->flags & ASSAY_OP_CONTROL)) return NULL;
  assay_status_t st = assay_new_array(node->n_inputs, sizeof *s.in, &s.in);
  if (!st) st = assay_tensor_widen(target->golden, &s.want);
  if (!st && target->truth) st = assay_tensor_widen(target->truth, &s.have);
  if (!st) st = read_inputs(&s);
  const bool known = !st && s.have && is_float(s.want) && is_float(s.have) &&
                     assay_tensor_alike(s.want, s.have) && s.want->size > 0;
  best_t best = {0};
  if (known && !st) st = solve_best(&s, by_samples, deadline, &best);
  if (st) assay_tensor_release(best.now);
  if (!st && best.now) {
    s.input = best.input;
    *out = repair_of(&s, best.now);
    describe(&s, best.now, out);
    *out_left = best.left;
    *out_tested = best.tested;
    *out_found = true;
  }
  for (size_t i = 0; s.in && i < node->n_inputs; i++) assay_tensor_release(s.in[i]);
  assay_free(s.in);
  assay_tensor_release(s.want);
  assay_tensor_release(s.have);
  return st;
}

assay_status_t assay_solve_constant(assay_evaluator_t* m, const assay_node_t* node,
                                    const assay_search_target_t* target, assay_holdout_t* holdout,
                                    bool by_samples, double deadline, assay_repair_t* out,
                                    double* out_left, bool* out_tested, bool* out_found) {
  return solve_node((assay_solve_t){.m = m, .node = node, .holdout = holdout}, target, by_samples,
                    deadline, out, out_left, out_tested, out_found);
}

assay_status_t assay_solve_untested(assay_evaluator_t* m, const assay_node_t* node,
                                    const assay_search_target_t* target, assay_repair_t* out,
                                    bool* out_found) {
  double left = 0;
  bool tested = false;
  return solve_node((assay_solve_t){.m = m, .node = node, .untested = true}, target, false,
                    INFINITY, out, &left, &tested, out_found);
}
