// The fastest assignment whose errors stay within the budgets, and a front of time against error.
#include "tune/search.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "base/random.h"

enum {
  PRICES = 48,      // of error, each twice the one before
  SWEEPS = 12,      // at most, at one price
  ALL_PAIRS = 96,   // units up to which every exchange is looked at
  PARTNERS = 48,    // of a unit, where there are more
  RESTARTS = 200,   // of few units, and
  RESTARTED = 4000  // units in all restarts together
};
static const size_t runs_of_units[] = {2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256};
enum { N_RUNS = sizeof runs_of_units / sizeof *runs_of_units };
static const double SAME = 1e-12;  // times that differ by less are the same

typedef struct job {
  const assay_tune_problem_t* p;
  assay_tune_state_t now, trial, best;
  size_t* free_units;  // those that have a choice
  size_t n_free;
  size_t* partners;
  assay_tune_front_t* front;
  bool found;
  assay_random_t random;
  uint64_t drawn;
} job_t;

// ---- the front ----------------------------------------------------------------------------------

void assay_tune_front_deinit(assay_tune_front_t* f) {
  for (size_t i = 0; i < f->n; i++) assay_free(f->at[i].format);
  assay_free(f->at);
  *f = (assay_tune_front_t){0};
}

static void remove_point(assay_tune_front_t* f, size_t i) {
  assay_free(f->at[i].format);
  memmove(&f->at[i], &f->at[i + 1], (f->n - i - 1) * sizeof *f->at);
  f->n--;
}

static assay_status_t add_point(job_t* j, const assay_tune_state_t* s) {
  assay_tune_front_t* f = j->front;
  assay_tune_point_t point = {.time = s->time, .worst = assay_tune_worst(j->p, s)};
  if (!f) return NULL;
  for (size_t i = 0; i < f->n; i++)
    if (f->at[i].time <= point.time * (1 + SAME) && f->at[i].worst <= point.worst * (1 + 1e-9))
      return NULL;
  for (size_t i = f->n; i-- > 0;)
    if (point.time <= f->at[i].time && point.worst <= f->at[i].worst) remove_point(f, i);
  ASSAY_TRY(assay_grow(&f->at, &f->capacity, f->n + 1, sizeof *f->at));
  ASSAY_TRY(assay_new_array(j->p->n_units, sizeof *point.format, &point.format));
  memcpy(point.format, s->format, j->p->n_units * sizeof *point.format);
  size_t at = f->n;
  while (at > 0 && f->at[at - 1].time > point.time) at--;
  memmove(&f->at[at + 1], &f->at[at], (f->n - at) * sizeof *f->at);
  f->at[at] = point;
  f->n++;
  return NULL;
}

// The inner point whose neighbours are nearest to each other is missed least.
void assay_tune_front_thin(assay_tune_front_t* f, size_t n) {
  while (f->n > n && f->n > 2) {
    size_t min = 1;
    double nearest = (double)INFINITY;
    for (size_t i = 1; i + 1 < f->n; i++) {
      const double gap =
          assay_log(fmax(f->at[i - 1].worst, 1e-300)) - assay_log(fmax(f->at[i + 1].worst, 1e-300));
      if (gap < nearest) nearest = gap, min = i;
    }
    remove_point(f, min);
  }
}

// ---- changes ------------------------------------------------------------------------------------

// What is to be made small: time at a price of error, or time alone within the budgets.
typedef struct goal {
  bool within;
  double price;
} goal_t;

static double value_of(const job_t* j, const goal_t* g, const assay_tune_state_t* s) {
  if (!g->within) return s->time + g->price * assay_tune_sum(j->p, s);
  return assay_tune_excess(j->p, s) > 0 ? (double)INFINITY : s->time;
}

static bool is_less(double a, double b) { return a < b - SAME * fabs(b); }

static assay_status_t note(job_t* j, const assay_tune_state_t* s) {
  ASSAY_TRY(add_point(j, s));
  if (assay_tune_excess(j->p, s) > 0) return NULL;
  const bool better =
      !j->found || is_less(s->time, j->best.time) ||
      (!is_less(j->best.time, s->time) && assay_tune_sum(j->p, s) < assay_tune_sum(j->p, &j->best));
  if (better) assay_tune_state_copy(j->p, s, &j->best);
  j->found = true;
  return NULL;
}

// Puts free units [first, first + n) into a format where they may have it; false: none changed.
static bool set_run(const job_t* j, assay_tune_state_t* s, size_t first, size_t n, uint8_t format) {
  bool any = false;
  for (size_t i = first; i < first + n && i < j->n_free; i++) {
    const size_t u = j->free_units[i];
    if (s->format[u] == format || !assay_tune_allowed(j->p, u, format)) continue;
    assay_tune_state_set(j->p, s, u, format);
    any = true;
  }
  return any;
}

// Keeps what `trial` has become if it is better, or takes it back.
static bool settle(job_t* j, const goal_t* g, double* value) {
  const double v = value_of(j, g, &j->trial);
  if (is_less(v, *value)) {
    assay_tune_state_copy(j->p, &j->trial, &j->now);
    *value = v;
    return true;
  }
  return false;
}

static void undo_run(job_t* j, size_t first, size_t n) {
  for (size_t i = first; i < first + n && i < j->n_free; i++)
    assay_tune_state_set(j->p, &j->trial, j->free_units[i], j->now.format[j->free_units[i]]);
}

static bool try_run(job_t* j, const goal_t* g, size_t first, size_t n, uint8_t f, double* value) {
  if (!set_run(j, &j->trial, first, n, f)) return false;
  if (settle(j, g, value)) return true;
  undo_run(j, first, n);
  return false;
}

static bool sweep(job_t* j, const goal_t* g, size_t n, double* value) {
  bool any = false;
  for (size_t i = 0; i + n <= j->n_free; i++)
    for (size_t f = 0; f < j->p->n_formats; f++) any |= try_run(j, g, i, n, (uint8_t)f, value);
  return any;
}

// Sums lose their last bits in many changes.
static double refresh(job_t* j, const goal_t* g) {
  assay_tune_state_sum(j->p, &j->now);
  assay_tune_state_copy(j->p, &j->now, &j->trial);
  return value_of(j, g, &j->now);
}

// Brings `now` down by single units, and by runs of them where no single one helps.
static void descend(job_t* j, const goal_t* g) {
  double value = refresh(j, g);
  for (int k = 0; k < SWEEPS; k++) {
    bool any = sweep(j, g, 1, &value);
    for (size_t r = 0; r < N_RUNS && !any; r++) any |= sweep(j, g, runs_of_units[r], &value);
    if (!any) return;
    value = refresh(j, g);
  }
}

// ---- the price of error -------------------------------------------------------------------------

// Prices from where error hardly counts to where time hardly does.
static assay_status_t follow_prices(job_t* j, bool upwards) {
  const assay_tune_problem_t* p = j->p;
  assay_tune_state_t* s = &j->now;
  const double time = fmax(s->time, 1e-12), errors = fmax(assay_tune_sum(p, s), 1e-300);
  for (int k = 0; k < PRICES; k++) {
    const int step = upwards ? k : PRICES - 1 - k;
    const goal_t g = {.price = time / errors * ldexp(1, step - PRICES / 4)};
    descend(j, &g);
    ASSAY_TRY(note(j, s));
  }
  return NULL;
}

// ---- within the budgets -------------------------------------------------------------------------

// Raises units, the one that takes away most excess for its time first, until nothing is over.
static void repair(job_t* j) {
  for (size_t k = 0; k < j->n_free; k++) {
    const double over = assay_tune_excess(j->p, &j->trial);
    double max = 0;
    size_t unit = SIZE_MAX;
    uint8_t to = 0;
    if (!(over > 0)) return;
    for (size_t i = 0; i < j->n_free; i++) {
      const size_t u = j->free_units[i];
      const uint8_t was = j->trial.format[u];
      const double time = j->trial.time;
      for (size_t f = 0; f < j->p->n_formats; f++) {
        if (f == was || !assay_tune_allowed(j->p, u, f)) continue;
        assay_tune_state_set(j->p, &j->trial, u, (uint8_t)f);
        const double gain = over - assay_tune_excess(j->p, &j->trial);
        const double merit = gain / fmax(j->trial.time - time, 1e-6 * time + 1e-300);
        if (gain > 0 && merit > max) max = merit, unit = u, to = (uint8_t)f;
      }
      assay_tune_state_set(j->p, &j->trial, u, was);
    }
    if (unit == SIZE_MAX) return;
    assay_tune_state_set(j->p, &j->trial, unit, to);
  }
}

// Those that a unit is exchanged with: all, or as many at random.
static size_t choose_partners(job_t* j) {
  const bool all = j->n_free <= ALL_PAIRS;
  const size_t n = all ? j->n_free : PARTNERS;
  for (size_t i = 0; i < n; i++) {
    const double at = all ? (double)i / (double)n : assay_random_uniform(&j->random, j->drawn++);
    j->partners[i] = j->free_units[all ? i : (size_t)(at * (double)j->n_free)];
  }
  return n;
}

static bool exchange(job_t* j, const goal_t* g, size_t a, size_t b, double* value) {
  const uint8_t was_a = j->now.format[a], was_b = j->now.format[b];
  for (size_t fa = 0; fa < j->p->n_formats; fa++) {
    if (fa == was_a || !assay_tune_allowed(j->p, a, fa)) continue;
    assay_tune_state_set(j->p, &j->trial, a, (uint8_t)fa);
    for (size_t fb = 0; fb < j->p->n_formats; fb++) {
      if (fb == was_b || !assay_tune_allowed(j->p, b, fb)) continue;
      assay_tune_state_set(j->p, &j->trial, b, (uint8_t)fb);
      if (settle(j, g, value)) return true;
    }
    assay_tune_state_set(j->p, &j->trial, b, was_b);
  }
  assay_tune_state_set(j->p, &j->trial, a, was_a);
  return false;
}

static bool exchange_all(job_t* j, const goal_t* g, double* value) {
  bool any = false;
  for (size_t i = 0; i < j->n_free; i++) {
    const size_t a = j->free_units[i], n = choose_partners(j);
    for (size_t k = 0; k < n; k++)
      if (j->partners[k] != a) any |= exchange(j, g, a, j->partners[k], value);
  }
  return any;
}

// `now` is within the budgets, and stays there.
static void polish(job_t* j) {
  static const goal_t g = {.within = true};
  for (int k = 0; k < SWEEPS; k++) {
    descend(j, &g);
    double value = refresh(j, &g);
    if (!exchange_all(j, &g, &value)) return;
  }
}

// The best, with some units drawn anew.
static void disturb(job_t* j) {
  const size_t n = j->n_free / 12 + 2;
  assay_tune_state_copy(j->p, &j->best, &j->trial);
  for (size_t i = 0; i < n; i++) {
    const double a = assay_random_uniform(&j->random, j->drawn++);
    const double b = assay_random_uniform(&j->random, j->drawn++);
    const size_t u = j->free_units[(size_t)(a * (double)j->n_free)];
    const uint8_t f = (uint8_t)(b * (double)j->p->n_formats);
    if (assay_tune_allowed(j->p, u, f)) assay_tune_state_set(j->p, &j->trial, u, f);
  }
}

static assay_status_t improve(job_t* j) {
  const size_t many = RESTARTED / j->n_free + 4, restarts = many < RESTARTS ? many : RESTARTS;
  assay_tune_state_copy(j->p, &j->best, &j->now);
  polish(j);
  ASSAY_TRY(note(j, &j->now));
  for (size_t k = 0; k < restarts; k++) {
    disturb(j);
    repair(j);
    assay_tune_state_copy(j->p, &j->trial, &j->now);
    if (assay_tune_excess(j->p, &j->now) > 0) continue;
    polish(j);
    ASSAY_TRY(note(j, &j->now));
  }
  return NULL;
}

// From a format for all: the budgets met by repair alone.
static assay_status_t start_from(job_t* j, size_t format) {
  assay_tune_state_t s = {0};
  ASSAY_TRY(assay_tune_state_create(j->p, format, &s));
  assay_tune_state_copy(j->p, &s, &j->trial);
  repair(j);
  assay_tune_state_copy(j->p, &j->trial, &j->now);
  assay_status_t st = note(j, &j->now);
  if (!st && !(assay_tune_excess(j->p, &j->now) > 0)) {
    polish(j);
    st = note(j, &j->now);
  }
  // From the end that the prices begin at, they move as little as they need.
  assay_tune_state_copy(j->p, &s, &j->now);
  if (!st) st = note(j, &j->now);
  if (!st) st = follow_prices(j, format + 1 < j->p->n_formats);
  assay_tune_state_deinit(&s);
  return st;
}

static assay_status_t run(job_t* j, assay_tune_state_t* min) {
  const assay_tune_problem_t* p = j->p;
  for (size_t f = 0; f < p->n_formats; f++) {
    ASSAY_TRY(start_from(j, f));
    if (!f || assay_tune_sum(p, &j->now) < assay_tune_sum(p, min))
      assay_tune_state_copy(p, &j->now, min);
  }
  if (j->found && j->n_free) ASSAY_TRY(improve(j));
  return NULL;
}

static assay_status_t prepare(job_t* j) {
  const assay_tune_problem_t* p = j->p;
  ASSAY_TRY(assay_tune_state_create(p, 0, &j->now));
  ASSAY_TRY(assay_tune_state_create(p, 0, &j->trial));
  ASSAY_TRY(assay_tune_state_create(p, 0, &j->best));
  ASSAY_TRY(assay_new_array(p->n_units, sizeof *j->free_units, &j->free_units));
  ASSAY_TRY(assay_new_array(ALL_PAIRS, sizeof *j->partners, &j->partners));
  for (size_t u = 0; u < p->n_units; u++) {
    size_t choices = 0;
    for (size_t f = 0; f < p->n_formats; f++) choices += assay_tune_allowed(p, u, f);
    if (choices > 1) j->free_units[j->n_free++] = u;
  }
  return NULL;
}

assay_status_t assay_tune_search(const assay_tune_problem_t* p, uint64_t seed,
                                 assay_tune_state_t* best, bool* out_found,
                                 assay_tune_front_t* front) {
  job_t j = {.p = p, .front = front, .random = assay_random_make(seed, "tune", 0)};
  assay_status_t st = prepare(&j);
  if (!st) st = run(&j, best);
  if (!st && j.found) assay_tune_state_copy(p, &j.best, best);
  if (!st) *out_found = j.found;
  assay_tune_state_deinit(&j.now);
  assay_tune_state_deinit(&j.trial);
  assay_tune_state_deinit(&j.best);
  assay_free(j.free_units);
  assay_free(j.partners);
  return st;
}
