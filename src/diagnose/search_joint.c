// The method: K. Levenberg, Quart. Appl. Math. 2 (1944), and D. Marquardt, J. SIAM 11 (1963), with
// derivatives by differences: every parameter takes an evaluation of truth from its node on.
#include "diagnose/search_joint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/proposals.h"
#include "diagnose/search_trial.h"

// SPARE: elements of golden that there have to be besides one for each number. As many can always
// be met; that so many more are met to within rounding is no chance.
enum { MAX = ASSAY_JOINT_NUMBERS, STEPS = 16, DAMPINGS = 5, SPARE = 4 };

// Elements that are kept for the derivatives: of more the targets are thinned out.
static const int64_t KEPT = 1 << 20;

// A first step that is not expected to leave less than this of the difference is not the way; of
// numbers that nothing says the size of, behind what bends, it may be. A later one that is expected
// to leave as good as all has come to an end.
static const double USELESS = 0.9, USELESS_FROM_NOTHING = 0.98, STANDS_STILL = 0.999;

// ---- groups -------------------------------------------------------------------------------------

// Repairs of one attribute, by node.
typedef struct group {
  assay_repair_t repairs[MAX];
  size_t n;
  bool full;  // there are more nodes
} group_t;

typedef struct groups {
  group_t* at;
  size_t n, capacity;
} groups_t;

static bool are_alike(const assay_repair_t* a, const assay_repair_t* b) {
  return strcmp(a->node->op_type, b->node->op_type) == 0 && a->node->op == b->node->op &&
         strcmp(a->edits[0].attr.name, b->edits[0].attr.name) == 0;
}

// Keeps what can be fitted of attributes.
static assay_status_t collect(void* user, const assay_repair_t* r, bool* stop) {
  groups_t* g = user;
  size_t i = 0;
  *stop = false;
  if (!r->fits || r->edits[0].kind != ASSAY_EDIT_ATTR) return NULL;
  while (i < g->n && !are_alike(&g->at[i].repairs[0], r)) i++;
  if (i == g->n) {
    ASSAY_TRY(assay_grow(&g->at, &g->capacity, g->n + 1, sizeof *g->at));
    g->at[g->n++] = (group_t){0};
  }
  group_t* to = &g->at[i];
  to->full = to->n == MAX;
  if (to->full) return NULL;
  ASSAY_TRY(assay_repair_copy(r, &to->repairs[to->n]));
  to->n++;
  return NULL;
}

static void deinit_groups(groups_t* g) {
  for (size_t i = 0; i < g->n; i++)
    for (size_t k = 0; k < g->at[i].n; k++) assay_repair_deinit(&g->at[i].repairs[k]);
  assay_free(g->at);
}

// ---- residuals ----------------------------------------------------------------------------------

// What is fitted: differences of the targets from golden, each over golden's size.
typedef struct fit {
  assay_search_t s;
  assay_trials_t trials;
  assay_joint_group_t* group;
  size_t n_numbers;
  double end;
  int64_t stride, n;    // every stride-th element of the targets; so many of them
  double* residual;     // [n]
  double* derivatives;  // [numbers, n]
  double value[MAX];
  double size;  // residual's sum of squares
  bool restored;
} fit_t;

static void set_sizes(fit_t* f) {
  int64_t all = 0;
  for (size_t k = 0; k < f->s.n_targets; k++) all += f->s.targets[k].golden->size;
  f->stride = (all * (int64_t)(f->n_numbers + 1) + KEPT - 1) / KEPT;
  if (f->stride < 1) f->stride = 1;
  for (size_t k = 0; k < f->s.n_targets; k++)
    f->n += (f->s.targets[k].golden->size + f->stride - 1) / f->stride;
}

// What a repair sets by the numbers.
static double value_of(const fit_t* f, size_t repair, const double* values) {
  const signed char* ties = f->group->ties;
  return !ties ? values[repair] : ties[repair] > 0 ? values[0] : 1 / values[0];
}

// Evaluates the targets with these numbers: out[n]. *out_fits false: they cannot be evaluated, or
// are not finite.
static assay_status_t evaluate(fit_t* f, const double* values, double* out, bool* out_fits) {
  int64_t at = 0;
  *out_fits = true;
  for (size_t k = 0; k < f->group->n; k++) {
    assay_status_t st = assay_repair_set_value(&f->group->repairs[k], value_of(f, k, values));
    if (assay_status_code(st) != ASSAY_INVALID_ARGUMENT) ASSAY_TRY(st);
    if (!st) continue;
    *out_fits = false;
    return assay_status_free(st), NULL;
  }
  ASSAY_TRY(assay_trials_evaluate_adopted(&f->trials, &f->restored, out_fits));
  for (size_t t = 0; *out_fits && t < f->s.n_targets; t++) {
    const assay_search_target_t* g = &f->s.targets[t];
    const assay_tensor_t* now = f->trials.got[t] ? f->trials.got[t] : g->truth;
    const assay_difference_t d = assay_difference(now, g->golden);
    const double scale = 1 / fmax(d.ref_rms * sqrt((double)(d.n + 1)), 1e-300);
    *out_fits = d.comparable && now->store == ASSAY_STORE_F64 && !d.mismatched;
    for (int64_t i = 0; *out_fits && i < g->golden->size; i += f->stride) {
      out[at] = scale * (assay_f64(now)[i] - assay_f64(g->golden)[i]);
      *out_fits = isfinite(out[at++]);
    }
  }
  return NULL;
}

static double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

// Small enough for a derivative, and large beside what float32 makes of it.
static double step_of(const fit_t* f, size_t k) { return fmax(fabs(f->value[k]), 0.1) * 0x1p-10; }

static assay_status_t find_derivatives(fit_t* f, bool* out_fits) {
  *out_fits = true;
  for (size_t k = 0; *out_fits && k < f->n_numbers; k++) {
    double moved[MAX], *d = f->derivatives + (int64_t)k * f->n;
    memcpy(moved, f->value, sizeof moved);
    moved[k] += step_of(f, k);
    ASSAY_TRY(evaluate(f, moved, d, out_fits));
    // The step as the attribute holds it.
    const double step = f->group->repairs[k].value - f->value[k];
    for (int64_t i = 0; *out_fits && i < f->n; i++) d[i] = (d[i] - f->residual[i]) / step;
    if (assay_clock_seconds() > f->end) *out_fits = false;
  }
  return NULL;
}

// ---- steps --------------------------------------------------------------------------------------

// Solves (J'J + damping diag J'J) x = -J'r by Cholesky. False: it is singular.
static bool solve(const fit_t* f, double damping, double* x) {
  const size_t n = f->n_numbers;
  double a[MAX][MAX], y[MAX];
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j <= i; j++)
      a[i][j] = dot(f->derivatives + (int64_t)i * f->n, f->derivatives + (int64_t)j * f->n, f->n);
    y[i] = -dot(f->derivatives + (int64_t)i * f->n, f->residual, f->n);
    a[i][i] *= 1 + damping;
    if (a[i][i] == 0) a[i][i] = 1;  // it does nothing, and stays
  }
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j <= i; j++) {
      double sum = a[i][j];
      for (size_t k = 0; k < j; k++) sum -= a[i][k] * a[j][k];
      if (i == j && !(sum > 0)) return false;
      a[i][j] = i == j ? sqrt(sum) : sum / a[j][j];
    }
    for (size_t k = 0; k < i; k++) y[i] -= a[i][k] * y[k];
    y[i] /= a[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; k++) y[i] -= a[k][i] * x[k];
    x[i] = y[i] / a[i][i];
  }
  return true;
}

// What a step leaves of the difference, were the targets linear in the numbers.
static double expected(const fit_t* f, const double* x) {
  double sum = 0;
  for (int64_t i = 0; i < f->n; i++) {
    double r = f->residual[i];
    for (size_t k = 0; k < f->n_numbers; k++) r += x[k] * f->derivatives[(int64_t)k * f->n + i];
    sum += r * r;
  }
  return sqrt(sum / fmax(f->size, 1e-300));
}

// A step that leaves less than before, damped as far as that takes. *out_ok false: there is none.
static assay_status_t go(fit_t* f, double* damping, double* scratch, bool* out_ok) {
  for (int tried = 0; tried < DAMPINGS && assay_clock_seconds() < f->end; tried++) {
    double x[MAX], next[MAX];
    bool fits;
    *out_ok = false;
    if (!solve(f, *damping, x)) return NULL;
    for (size_t k = 0; k < f->n_numbers; k++) next[k] = f->value[k] + x[k];
    ASSAY_TRY(evaluate(f, next, scratch, &fits));
    const double size = fits ? dot(scratch, scratch, f->n) : (double)INFINITY;
    *out_ok = size < f->size;
    if (*out_ok) {
      memcpy(f->residual, scratch, (size_t)f->n * sizeof *scratch);
      for (size_t k = 0; k < f->n_numbers; k++) f->value[k] = f->group->repairs[k].value;
      f->size = size;
      *damping /= 8;
      return NULL;
    }
    *damping *= 16;
  }
  return NULL;
}

// ---- one group ----------------------------------------------------------------------------------

static assay_status_t descend(fit_t* f, double* scratch) {
  const bool from_nothing =
      !f->group->ties && f->group->repairs[0].edits[0].kind == ASSAY_EDIT_CHAIN;
  const double useless = from_nothing ? USELESS_FROM_NOTHING : USELESS;
  double damping = 1e-3;
  bool fits;
  for (size_t k = 0; k < f->n_numbers; k++) f->value[k] = f->group->repairs[k].start;
  ASSAY_TRY(evaluate(f, f->value, f->residual, &fits));
  f->size = dot(f->residual, f->residual, f->n);
  for (int step = 0; fits && step < STEPS && !f->restored; step++) {
    double x[MAX];
    ASSAY_TRY(find_derivatives(f, &fits));
    if (!fits) break;
    const double most = step == 0 ? useless : STANDS_STILL;
    if (!solve(f, 0x1p-40, x) || expected(f, x) > most) break;
    ASSAY_TRY(go(f, &damping, scratch, &fits));
  }
  f->restored &= fits;
  return NULL;
}

// The shortest decimals that still restore golden; where the old number does, it stays.
static assay_status_t shorten(fit_t* f, double* scratch) {
  double values[MAX];
  bool fits;
  for (size_t k = 0; k < f->n_numbers; k++) {
    const double exact = f->value[k], start = f->group->repairs[k].start;
    bool done = false;
    memcpy(values, f->value, sizeof values);
    for (int digits = 0; digits <= 7 && !done; digits++) {
      char text[40];
      snprintf(text, sizeof text, "%.*g", digits, exact);
      values[k] = digits ? strtod(text, NULL) : start;
      // What is not near what was fitted need not be evaluated.
      if (fabs(values[k] - exact) > 0.05 * fabs(exact) + 1e-6) continue;
      ASSAY_TRY(evaluate(f, values, scratch, &fits));
      done = fits && f->restored;
    }
    if (done) f->value[k] = values[k];
  }
  ASSAY_TRY(evaluate(f, f->value, scratch, &fits));
  return NULL;
}

static assay_status_t report(const fit_t* f, const double* scratch, assay_fault_t* out,
                             size_t* out_n) {
  const double before = fmax(f->trials.before, 1e-300);
  for (size_t k = 0; k < f->group->n; k++) {
    const assay_repair_t* r = &f->group->repairs[k];
    if (r->value == r->start) continue;
    out[*out_n] = (assay_fault_t){.node = r->node,
                                  .has_repair = true,
                                  .restored = true,
                                  .remains = sqrt(dot(scratch, scratch, f->n) / before)};
    ASSAY_TRY(assay_repair_copy(r, &out[*out_n].repair));
    ++*out_n;
  }
  return NULL;
}

assay_status_t assay_search_joint_fit(const assay_search_t* s, assay_joint_group_t* g, double end,
                                      assay_fault_t* out, size_t* out_n, size_t* trials) {
  fit_t f = {.s = *s, .group = g, .n_numbers = g->ties ? 1 : g->n, .end = end};
  f.s.n_others = 0;
  double* scratch = NULL;
  for (size_t k = 0; k < g->n; k++) f.s.adopted[f.s.n_adopted++] = &g->repairs[k];
  set_sizes(&f);
  if (f.n < (int64_t)f.n_numbers + SPARE) return NULL;
  ASSAY_TRY(assay_trials_init(&f.s, &f.trials));
  assay_status_t st = assay_new_array((size_t)f.n, sizeof *scratch, &scratch);
  if (!st) st = assay_new_array((size_t)f.n, sizeof *f.residual, &f.residual);
  if (!st) st = assay_new_array((size_t)f.n * f.n_numbers, sizeof *f.derivatives, &f.derivatives);
  if (!st) st = descend(&f, scratch);
  if (!st && f.restored) st = shorten(&f, scratch);
  if (!st && f.restored) st = report(&f, scratch, out, out_n);
  assay_free(scratch);
  assay_free(f.residual);
  assay_free(f.derivatives);
  assay_trials_deinit(&f.trials);
  *trials += f.s.trials - s->trials;
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

assay_status_t assay_search_joint(const assay_search_t* s, double end, assay_fault_t* out,
                                  size_t* out_n, size_t* trials) {
  groups_t groups = {0};
  const assay_trial_t gather = {collect, &groups};
  bool stop = false;
  assay_status_t st = NULL;
  *out_n = *trials = 0;
  for (size_t i = 0; !st && i < s->n_nodes; i++) {
    const assay_suspect_t suspect = {.model = s->model, .node = s->nodes[i]};
    st = assay_propose_float_fit(&suspect, "fitted attribute", &gather, &stop);
  }
  for (size_t i = 0; !st && i < groups.n && !*out_n && assay_clock_seconds() < end; i++)
    if (groups.at[i].n > 1 && !groups.at[i].full)
      st = assay_search_joint_fit(
          s, &(assay_joint_group_t){.repairs = groups.at[i].repairs, .n = groups.at[i].n}, end, out,
          out_n, trials);
  for (size_t i = 0; st && i < *out_n; i++) assay_repair_deinit(&out[i].repair);
  if (st) *out_n = 0;
  deinit_groups(&groups);
  return st;
}
