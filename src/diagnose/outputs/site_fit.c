// Numbers of a site, fitted to golden of several samples.
//
// Gauss-Newton with damping (K. Levenberg, 1944; D. W. Marquardt, 1963): equations are of the model
// with the numbers that were found so far, and of the steps that they give under several dampings
// the one is taken that leaves least of all samples that they are of.
#include "diagnose/outputs/site_fit.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/functions.h"
#include "diagnose/search_predict.h"

enum {
  STEPS = 60,
  ROW = 1000,  // after all rows of the table; fewer numbers before more
  SAMPLES = ASSAY_SITE_SAMPLES,
  FACTORS = ASSAY_SITE_FACTORS,
  SUMMANDS = ASSAY_SITE_SUMMANDS
};

static bool has_factors(const assay_site_t* site) {
  return site->kind == ASSAY_SITE_OUTPUT || site->kind == ASSAY_SITE_INPUT ||
         site->kind == ASSAY_SITE_MOVED;
}

// How a factor goes on: by its part more, or, where a logarithm or a division comes after it, by as
// much as its logarithm says, which never turns its sign.
static double times_of(double x, bool by_logarithm) {
  static const double MOST = 3;
  return by_logarithm ? assay_exp(fmax(fmin(x, MOST), -MOST)) : 1 + x;
}

// A step x from a fit, or a part of it.
static void move(const assay_site_t* site, const assay_site_fit_t* from, const double* x,
                 double part, bool by_logarithm, assay_site_fit_t* to) {
  for (size_t i = 0; !has_factors(site) && i < site->columns; i++)
    to->summand[i] = from->summand[i] + part * x[i];
  for (int64_t c = 0; has_factors(site) && c < site->channels; c++) {
    const double times = site->family & FACTORS ? times_of(part * x[c], by_logarithm) : 1;
    if (site->kind != ASSAY_SITE_OUTPUT) {
      to->factor[c] = from->factor[c] * times;
      continue;
    }
    const double plus =
        site->family & SUMMANDS ? x[site->family == SUMMANDS ? c : site->channels + c] : 0;
    to->factor[c] = from->factor[c] * times;
    to->summand[c] = from->summand[c] * times + part * plus;
  }
}

// Factors that go far on may do so by their logarithm; a scale that was moved always does.
static bool may_go(const assay_site_t* site, const double* x, bool by_logarithm) {
  static const double FAR = 0.2;
  const bool factors = has_factors(site) && site->family & FACTORS;
  if (site->kind == ASSAY_SITE_MOVED) return by_logarithm;
  if (!by_logarithm) return true;
  for (int64_t c = 0; factors && c < site->channels; c++)
    if (fabs(x[c]) > FAR) return true;
  return false;
}

// ---- steps --------------------------------------------------------------------------------------

size_t assay_site_fitted_others(const assay_search_t* s) {
  const size_t used = s->n_others ? s->n_others - 1 : 0;
  return used < SAMPLES - 1 ? used : SAMPLES - 1;
}

// Tries a fit, and notes what it leaves.
static assay_status_t try_fit(assay_trials_t* t, const assay_site_t* site, assay_site_fit_t* to) {
  assay_repair_t r;
  ASSAY_TRY(assay_site_repair(t->s, site, to, &r));
  t->rank = ROW + (int)assay_site_unknowns(site, site->family);
  t->position = site->position;
  t->fitted = true;
  assay_status_t st = assay_trials_try(t, &r);
  t->fitted = false;
  to->left = t->remains;
  if (!st && !t->found && assay_site_fitted_others(t->s))
    st = assay_trials_leave(t, &r, assay_site_fitted_others(t->s), &to->left);
  assay_repair_deinit(&r);
  return st;
}

// A step from a fit, tried.
static assay_status_t try_step(assay_trials_t* t, const assay_site_t* site, const double* x,
                               double part, bool by_logarithm, const assay_site_fit_t* from,
                               assay_site_fit_t* to) {
  *to = *from;
  move(site, from, x, part, by_logarithm, to);
  return try_fit(t, site, to);
}

// Goes on as the last step went, twice as far each time, as long as less is left: along a bent
// valley steps are short.
static assay_status_t leap(assay_trials_t* t, double end, const assay_site_t* site,
                           const assay_site_fit_t* before, assay_site_fit_t* fit) {
  enum { MOST = 64 };
  const assay_site_fit_t from = *fit;
  for (int times = 1; times <= MOST && !t->found && assay_clock_seconds() < end; times *= 2) {
    assay_site_fit_t next = from;
    for (size_t i = 0; i < ASSAY_SITE_NUMBERS; i++)
      next.summand[i] += times * (from.summand[i] - before->summand[i]);
    for (size_t i = 0; i < ASSAY_SITE_CHANNELS; i++)
      next.factor[i] += times * (from.factor[i] - before->factor[i]);
    ASSAY_TRY(try_fit(t, site, &next));
    if (!(next.left < fit->left)) break;
    *fit = next;
  }
  return NULL;
}

// The part of a step that leaves least, halved as long as less is left, if any leaves less than
// before.
static assay_status_t take_step(assay_trials_t* t, double end, const assay_site_t* site,
                                const double* x, const assay_site_fit_t* from,
                                assay_site_fit_t* best) {
  static const double LEAST = 0.1;
  double least = from->left;
  for (double part = 1; part > LEAST; part /= 2) {
    const double before = least;
    for (int way = 0; way < 2 && assay_clock_seconds() < end && !t->found; way++) {
      assay_site_fit_t next;
      if (!may_go(site, x, way == 1)) continue;
      ASSAY_TRY(try_step(t, site, x, part, way == 1, from, &next));
      least = fmin(least, next.left);
      if (next.left < best->left) *best = next;
    }
    if (least < from->left && least >= before) break;
  }
  return NULL;
}

assay_status_t assay_site_fit_scan(assay_trials_t* t, double end, assay_site_t* site,
                                   assay_site_fit_t* fit) {
  static const double FIRST = 0.03125;
  enum { DOUBLINGS = 10 };
  assay_site_fit_t zero, next;
  assay_site_fit_begin(site, &zero);
  for (int k = 0; k < 2 * DOUBLINGS && !t->found && assay_clock_seconds() < end; k++) {
    const double x = (k % 2 ? -FIRST : FIRST) * (double)(1 << k / 2);
    ASSAY_TRY(try_step(t, site, &x, 1, false, &zero, &next));
    if (next.left < fit->left) *fit = next;
  }
  return NULL;
}

// Goes on with the best of the steps that equations give, a more damped one if others leave hardly
// less: numbers that do the same together run away without. Near the end the least damped one comes
// first, since the search stops at the first that restores golden. *out_ok false: none leaves less.
static assay_status_t take_best(assay_trials_t* t, double end, const assay_site_t* site,
                                const double* sides, size_t n, double* a, assay_site_fit_t* fit,
                                bool* out_ok) {
  static const double dampings[] = {0.3, 3e-2, 1e-3, 1e-6, 1e-10}, HARDLY = 0.98, NEAR = 1e-2;
  enum { DAMPINGS = sizeof dampings / sizeof *dampings };
  const bool near = fit->left < NEAR;
  const double less = near ? 1 : HARDLY;
  assay_site_fit_t best = *fit;
  double x[ASSAY_SITE_NUMBERS];
  for (int k = 0; k < DAMPINGS && !t->found; k++) {
    assay_site_fit_t next = *fit;
    const double damping = dampings[near ? DAMPINGS - 1 - k : k];
    if (!assay_site_solve(site, site->family, sides, n, damping, a, x)) continue;
    ASSAY_TRY(take_step(t, end, site, x, fit, &next));
    if (next.left < less * best.left || (next.left < fit->left && !(best.left < fit->left)))
      best = next;
  }
  *out_ok = best.left < fit->left;
  *fit = best;
  return NULL;
}

// ---- going on -----------------------------------------------------------------------------------

assay_status_t assay_site_adopt(assay_trials_t* t, const assay_repair_t* r, assay_search_t* next,
                                size_t* out_n) {
  const size_t others = assay_site_fitted_others(t->s);
  *out_n = 0;
  for (size_t i = 0; i <= others; i++) {
    assay_trials_t* one = i ? &t->others[i - 1] : t;
    assay_search_target_t* targets = NULL;
    ASSAY_TRY(assay_trials_adopt(one, r, &targets));
    if (!targets) continue;
    next[*out_n] = *one->s;
    next[*out_n].targets = targets;
    next[*out_n].adopted[next[*out_n].n_adopted++] = r;
    ++*out_n;
  }
  return NULL;
}

void assay_site_drop(assay_trials_t* t, assay_search_t* next, size_t n) {
  for (size_t i = 0; i < n; i++) assay_free((assay_search_target_t*)next[i].targets);
  for (size_t i = 0; i < t->s->n_others; i++) assay_trials_drop(&t->others[i]);
  assay_trials_drop(t);
}

// The equations with the fit made, and the next step.
static assay_status_t next_step(assay_trials_t* t, double end, assay_site_t* site, double* a,
                                assay_site_fit_t* fit, bool* out_ok) {
  assay_search_t next[SAMPLES];
  assay_repair_t r;
  const size_t m = assay_site_unknowns(site, site->family);
  assay_site_sketch_t k = {.sites = site, .n = 1, .max = site->max, .end = end};
  size_t n = 0;
  *out_ok = false;
  ASSAY_TRY(assay_site_repair(t->s, site, fit, &r));
  assay_status_t st = assay_site_adopt(t, &r, next, &n);
  k.s = next;
  if (!st && n) st = assay_new_array(k.max, sizeof *k.sides, &k.sides);
  if (!st && n) st = assay_site_sketch_equations(&k, next, n, site->position);
  assay_site_drop(t, next, n);
  assay_repair_deinit(&r);
  if (!st && n && k.equations >= m + ASSAY_SITE_SPARE / 2)
    st = take_best(t, end, site, k.sides, assay_site_equations(&k, site), a, fit, out_ok);
  assay_free(k.sides);
  return st;
}

void assay_site_fit_begin(const assay_site_t* site, assay_site_fit_t* fit) {
  *fit = (assay_site_fit_t){.left = 1};
  for (int64_t c = 0; has_factors(site) && c < site->channels; c++) fit->factor[c] = 1;
}

assay_status_t assay_site_fit_go_on(assay_trials_t* t, const assay_site_sketch_t* all,
                                    assay_site_t* site, double* a, double enough,
                                    assay_site_fit_t* fit) {
  bool ok = true;
  for (int k = 0; k < STEPS && ok && !t->found && assay_clock_seconds() < all->end; k++) {
    const assay_site_fit_t last = *fit;
    if (last.left < 1)
      ASSAY_TRY(next_step(t, all->end, site, a, fit, &ok));
    else
      ASSAY_TRY(
          take_best(t, all->end, site, all->sides, assay_site_equations(all, site), a, fit, &ok));
    if (ok && k) ASSAY_TRY(leap(t, all->end, site, &last, fit));
    if (fit->left > enough * last.left) break;
  }
  return NULL;
}
