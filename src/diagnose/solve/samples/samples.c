// Constants of any node from all that is known: the node's own output on the first sample, and the
// outputs of the graph on others.
//
// One equation for each element that is known, one unknown for each element of the constant. The
// derivatives are differences (truth is float64), the steps those of Gauss and Newton with a ridge
// that leaves what no equation tells where it is (Levenberg-Marquardt; J. Nocedal and S. Wright,
// Numerical Optimization, 10.3). The last of the other samples is kept for the test; where there
// are none, a quarter of the node's output. As many equations as unknowns are no test: where the
// network is ill-conditioned such a constant leaves nothing on any sample that took part, and is
// off on all others.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/solve/by_samples.h"

enum { MAX_BLOCK = 4096, STEPS = 30 };

// Golden's rounding grows on the way to the outputs: equations of the node itself count more.
static const double WEIGHT_OF_OUTPUTS = 0.1;

// ---- equations ---------------------------------------------------------------------------------

static double rms_of(const assay_tensor_t* t) {
  double sum = 0;
  for (int64_t i = 0; i < t->size; i++) sum += assay_f64(t)[i] * assay_f64(t)[i];
  return t->size ? sqrt(sum / (double)t->size) : 0;
}

static int64_t stride_of(const assay_tensor_t* t) { return t->size / MAX_BLOCK + 1; }

static void see(void* user, const assay_tensor_t* got, const assay_tensor_t* golden) {
  assay_by_samples_t* y = user;
  const double scale = fmax(rms_of(golden), 1e-300);
  const bool fits = assay_tensor_alike(got, golden);
  for (int64_t i = 0; i < golden->size; i += stride_of(golden), y->at++) {
    const double d =
        fits ? WEIGHT_OF_OUTPUTS * (assay_f64(got)[i] - assay_f64(golden)[i]) / scale : 0;
    if (y->to) y->to[y->at] = isfinite(d) ? d : 0;
  }
}

static void see_node(assay_by_samples_t* y, const assay_tensor_t* made) {
  const assay_tensor_t* want = y->s->want;
  for (int64_t i = 0; i < want->size; i += stride_of(want)) {
    if (y->tests && assay_solve_tests(i)) continue;
    const double d = (assay_f64(made)[i] - assay_f64(want)[i]) / y->scale_of_want;
    if (y->to) y->to[y->at] = isfinite(d) ? d : 0;
    y->at++;
  }
}

static assay_status_t repair_of(const assay_by_samples_t* y, assay_tensor_t* now,
                                assay_repair_t* r) {
  if (y->numbers) return assay_by_samples_insert(y, now, r);
  *r = (assay_repair_t){.node = y->s->node, .cause = "solved constant", .n_edits = 1};
  r->edits[0] = (assay_repair_edit_t){
      .kind = ASSAY_EDIT_CONSTANT, .input = y->s->input, .tensor = assay_tensor_retain(now)};
  return NULL;
}

static assay_status_t evaluate(const assay_by_samples_t* y, const assay_repair_t* r,
                               assay_tensor_t* now, assay_tensor_t** out) {
  return y->numbers ? assay_by_samples_evaluate(y, r, out) : assay_solve_evaluate(y->s, now, out);
}

// Fills in all equations with a constant, or counts them (to NULL). *out_fits false: it cannot be
// evaluated.
static assay_status_t fill(assay_by_samples_t* y, assay_tensor_t* constant, double* to,
                           bool* out_fits) {
  assay_tensor_t* made = NULL;
  assay_repair_t r;
  y->to = to;
  y->at = 0;
  ASSAY_TRY(repair_of(y, constant, &r));
  assay_status_t st = evaluate(y, &r, constant, &made);
  *out_fits = made != NULL;
  if (!st && made) see_node(y, made);
  assay_tensor_release(made);
  for (size_t i = 0; !st && *out_fits && i < y->samples; i++)
    st = assay_holdout_run(y->s->holdout, i, &r, see, y, out_fits);
  assay_repair_deinit(&r);
  return st;
}

static double square_sum(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
  return sum;
}

// Adds to an unknown: to its element, or to all that share it in proportion.
static void add_to(const assay_by_samples_t* y, assay_tensor_t* x, const double* d, double part) {
  for (int64_t j = 0; y->open && j < y->n; j++)
    assay_null_space_move(y->open, x, x, j, part * d[j]);
  for (int64_t i = 0; !y->open && i < x->size; i++) {
    if (!y->shared)
      assay_f64(x)[i] += part * d[i];
    else if (y->shared[i] >= 0)
      assay_f64(x)[i] += part * d[y->shared[i]] * y->part[i];
  }
}

static void set_moved(const assay_by_samples_t* y, assay_tensor_t* x, const assay_tensor_t* at,
                      int64_t j, double step) {
  if (y->open) {
    assay_null_space_move(y->open, x, at, j, step);
    return;
  }
  if (!y->shared) {
    assay_f64(x)[j] = assay_f64(at)[j] + step;
    return;
  }
  for (int64_t i = 0; i < x->size; i++)
    if (y->shared[i] == j) assay_f64(x)[i] = assay_f64(at)[i] + step * y->part[i];
}

// The differences that a step of an unknown makes. *out_shows: there are any.
static assay_status_t take_column(assay_by_samples_t* y, assay_tensor_t* moved,
                                  const assay_tensor_t* x, int64_t j, double step, bool* out_shows,
                                  bool* out_fits) {
  double* column = y->jacobian + j * y->m;
  set_moved(y, moved, x, j, step);
  assay_status_t st = fill(y, moved, column, out_fits);
  set_moved(y, moved, x, j, 0);
  *out_shows = false;
  for (int64_t i = 0; !st && i < y->m; i++) {
    column[i] = (column[i] - y->now[i]) / step;
    *out_shows |= column[i] != 0;
  }
  return st;
}

// One column for each unknown. What a small step does not show, as where a Relu gives 0, a large
// one may. *out_fits false also where there is no time.
static assay_status_t differentiate(assay_by_samples_t* y, assay_tensor_t* x, double until,
                                    bool* out_fits) {
  static const double LARGE = 3e4;
  const double step = 1e-5 * (y->shared ? 1 : fmax(rms_of(x), 1e-6));
  const double begun = assay_clock_seconds();
  assay_tensor_t* moved = NULL;
  *out_fits = true;
  ASSAY_TRY(assay_tensor_copy(x, &moved));
  assay_status_t st = NULL;
  for (int64_t j = 0; !st && *out_fits && j < y->n; j++) {
    bool shows = false;
    st = take_column(y, moved, x, j, step, &shows, out_fits);
    for (int k = 0; !st && *out_fits && !shows && k < 2; k++)
      st = take_column(y, moved, x, j, k ? -LARGE * step : LARGE * step, &shows, out_fits);
    const double now = assay_clock_seconds();
    if (begun + (now - begun) * (double)y->n / (double)(j + 1) > until && j >= 4) *out_fits = false;
  }
  assay_tensor_release(moved);
  return st;
}

// How many equations of the node itself there are.
static int64_t own_equations(const assay_by_samples_t* y) {
  return (y->s->want->size + stride_of(y->s->want) - 1) / stride_of(y->s->want);
}

// Whether outputs that go with the unknowns are more than these. Of what one sample leaves open its
// own equations tell nothing, nor does an output that hangs on another branch.
static bool is_determined(const assay_by_samples_t* y) {
  int64_t tell = 0;
  for (int64_t i = own_equations(y); i < y->m; i++) {
    bool any = false;
    for (int64_t j = 0; j < y->n && !any; j++) any = y->jacobian[j * y->m + i] != 0;
    tell += any;
  }
  return 4 * tell >= 5 * y->n;
}

// ---- a step ------------------------------------------------------------------------------------

// One step, with the ridge that leads nearest: where that is by much, no larger one is tried.
// *out_left: squares that are left; *out_fits false: none leads nearer.
static assay_status_t step(assay_by_samples_t* y, assay_tensor_t* x, double until,
                           assay_solve_normal_t* z, double* out_left, bool* out_fits) {
  static const double RIDGES[] = {1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6,
                                  1e-5,  1e-4,  1e-3,  1e-2, 0.1,  1,    10};
  static const double NEARER = 0.95, MUCH = 0.1;
  assay_tensor_t *moved = NULL, *best = NULL;
  const double before = square_sum(y->now, y->m);
  *out_left = before;
  ASSAY_TRY(differentiate(y, x, until, out_fits));
  if (*out_fits && y->open) *out_fits = is_determined(y);
  if (!*out_fits) return NULL;
  assay_solve_set_normal(y->n, y->m, y->jacobian, y->now, z);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < sizeof RIDGES / sizeof *RIDGES; i++) {
    bool evaluated = false;
    if (*out_left < MUCH * before) break;
    if (!assay_solve_step(y->n, RIDGES[i], z)) continue;
    st = assay_tensor_copy(x, &moved);
    if (!st) add_to(y, moved, z->d, 1);
    if (!st) st = fill(y, moved, y->moved, &evaluated);
    const double left = !st && evaluated ? square_sum(y->moved, y->m) : INFINITY;
    if (left < *out_left && left < NEARER * before) {
      *out_left = left;
      assay_tensor_release(best);
      best = assay_tensor_retain(moved);
    }
    assay_tensor_release(moved);
    moved = NULL;
  }
  *out_fits = best != NULL;
  if (best) memcpy(assay_f64(x), assay_f64(best), (size_t)x->size * sizeof(double));
  if (best && !st) st = fill(y, x, y->now, out_fits);
  assay_tensor_release(best);
  return st;
}

static assay_status_t run_steps(assay_by_samples_t* y, assay_tensor_t* x, double deadline,
                                assay_solve_normal_t* z, bool* out_solved) {
  // RMS that is left of the equations at most: golden's own rounding, as it goes through a network.
  static const double NOTHING = 3e-6;
  const double start = square_sum(y->now, y->m);
  double left = start;
  for (int k = 0; k < STEPS; k++) {
    bool fits = false;
    ASSAY_TRY(step(y, x, deadline, z, &left, &fits));
    if (!fits || sqrt(left / (double)y->m) < 0.01 * NOTHING) break;
  }
  left = square_sum(y->now, y->m);
  *out_solved = (y->refines || left < 1e-4 * start) && sqrt(left / (double)y->m) <= NOTHING;
  return NULL;
}

// ---- the constant ------------------------------------------------------------------------------

// Whether the places that were kept for the test are as they have to be.
static const double FORETOLD = 0.03;  // of what a sample lacks that took no part

static assay_status_t passes_test(const assay_by_samples_t* y, assay_tensor_t* x, bool* out) {
  assay_holdout_answer_t said = ASSAY_HOLDOUT_SILENT;
  assay_tensor_t* made = NULL;
  double left = 0, before = 0;
  assay_repair_t r;
  if (y->refines) return *out = true, NULL;
  ASSAY_TRY(repair_of(y, x, &r));
  assay_status_t st = assay_holdout_ask(y->s->holdout, y->samples, &r, &said);
  // What is known of a weight by few samples is not known well, until all have taken part.
  *out = y->open ? assay_holdout_left(y->s->holdout) <= FORETOLD
                 : said == ASSAY_HOLDOUT_HOLDS || said == ASSAY_HOLDOUT_NEAR;
  const bool tests = !y->open && y->tests && said != ASSAY_HOLDOUT_FAILS;
  if (!st && tests) st = evaluate(y, &r, x, &made);
  assay_repair_deinit(&r);
  if (st || !tests) return st;
  for (int64_t i = 0; made && i < y->s->want->size; i++) {
    if (!assay_solve_tests(i)) continue;
    const double now = assay_f64(made)[i] - assay_f64(y->s->want)[i];
    const double was = assay_f64(y->s->have)[i] - assay_f64(y->s->want)[i];
    left += now * now;
    before += was * was;
  }
  *out = made && before > 0 && left <= 1e-6 * before;
  assay_tensor_release(made);
  return NULL;
}

// Whether there are enough equations.
static bool has_enough(const assay_by_samples_t* y) {
  if (y->open || y->numbers) return 4 * (y->m - (y->open ? own_equations(y) : 0)) >= 5 * y->n;
  return y->m >= (y->shared ? y->n : y->n / 2);
}

static assay_status_t solve_system(assay_by_samples_t* y, assay_tensor_t* x, double deadline,
                                   bool* out) {
  assay_solve_normal_t z = {0};
  bool fits = false;
  *out = false;
  ASSAY_TRY(fill(y, x, NULL, &fits));
  y->m = y->at;
  if (!fits || !has_enough(y)) return NULL;
  assay_status_t st = assay_new_array((size_t)y->m, sizeof *y->now, &y->now);
  if (!st) st = assay_new_array((size_t)y->m, sizeof *y->moved, &y->moved);
  if (!st) st = assay_new_array((size_t)(y->m * y->n), sizeof *y->jacobian, &y->jacobian);
  if (!st) st = assay_new_array((size_t)(y->n * y->n), sizeof *z.a, &z.a);
  if (!st) st = assay_new_array((size_t)(y->n * y->n), sizeof *z.factor, &z.factor);
  if (!st) st = assay_new_array((size_t)y->n, sizeof *z.b, &z.b);
  if (!st) st = assay_new_array((size_t)y->n, sizeof *z.d, &z.d);
  if (!st) st = fill(y, x, y->now, &fits);
  if (!st && fits) st = run_steps(y, x, deadline, &z, out);
  if (!st && *out) st = passes_test(y, x, out);
  assay_free(y->now);
  assay_free(y->moved);
  assay_free(y->jacobian);
  assay_free(z.a);
  assay_free(z.factor);
  assay_free(z.b);
  assay_free(z.d);
  return st;
}

// From what the constant is. *out NULL: it does not hold.
assay_status_t assay_by_samples_solve(assay_by_samples_t* y, double deadline,
                                      assay_tensor_t** out) {
  assay_tensor_t* x = NULL;
  bool solved = false;
  if (y->n < 1 || y->n > ASSAY_BY_SAMPLES_UNKNOWNS) return NULL;
  ASSAY_TRY(assay_tensor_copy(y->start, &x));
  assay_status_t st = solve_system(y, x, deadline, &solved);
  y->now = y->moved = y->jacobian = NULL;
  if (!st && solved) {
    *out = x;
    x = NULL;
  }
  assay_tensor_release(x);
  return st;
}

assay_by_samples_t assay_by_samples_of(const assay_solve_t* s) {
  const size_t others = assay_holdout_count(s->holdout);
  return (assay_by_samples_t){.s = s,
                              .samples = others ? others - 1 : 0,
                              .tests = others == 0,
                              .n = s->in[s->input] ? s->in[s->input]->size : 0,
                              .start = s->in[s->input],
                              .scale_of_want = fmax(rms_of(s->want), 1e-300)};
}
