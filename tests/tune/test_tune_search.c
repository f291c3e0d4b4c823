// The search for an assignment of formats, against all assignments of small random problems.
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/random.h"
#include "status_case.h"
#include "tune/search.h"

enum { PROBLEMS = 120 };

typedef struct draw {
  assay_random_t random;
  uint64_t at;
} draw_t;

static double uniform(draw_t* d) { return assay_random_uniform(&d->random, d->at++); }
// Some are much larger than others.
static double spread(draw_t* d, double octaves) { return exp2(octaves * (uniform(d) - 0.5)); }

static void draw_values(draw_t* d, assay_tune_problem_t* p, double cast) {
  for (size_t u = 0; u <= p->n_units; u++) {
    size_t readers[3], n = 0;
    const size_t maker = u ? u - 1 : ASSAY_TUNE_OUTSIDE;
    readers[n++] = u < p->n_units ? u : ASSAY_TUNE_OUTSIDE;
    if (u + 2 < p->n_units && uniform(d) < 0.3)
      readers[n++] = u + 1 + (size_t)(uniform(d) * (double)(p->n_units - u - 1));
    ok(assay_tune_add_value(p, maker, n, readers));
    assay_tune_value_t* v = &p->values[p->n_values - 1];
    for (size_t k = 0; k < p->n_formats * p->n_formats; k++) v->cast[k] = cast * spread(d, 4);
    for (size_t l = v->first; l < v->first + v->n; l++)
      for (size_t k = 0; k < p->n_formats * p->n_outputs; k++)
        if (p->links[l].reader != ASSAY_TUNE_OUTSIDE) p->links[l].energy[k] = 0.3 * spread(d, 6);
  }
}

static void draw_problem(uint64_t seed, assay_tune_problem_t* p) {
  draw_t d = {.random = assay_random_make(seed, "problem", 0)};
  const size_t formats = uniform(&d) < 0.7 ? 2 : 3, max = formats == 2 ? 16 : 9;
  const size_t units = 3 + (size_t)(uniform(&d) * (double)(max - 2));
  ok(assay_tune_problem_create(units, formats, uniform(&d) < 0.7 ? 1 : 2, p));
  for (size_t f = 0; f < formats; f++) p->bits[f] = 8 + 4 * (int)f;
  for (size_t u = 0; u < units; u++) {
    const double time = spread(&d, 6), error = spread(&d, 8);
    for (size_t f = 0; f < formats; f++) {
      const size_t at = u * formats + f;
      p->time[at] = time * (1 + 0.8 * (double)f * spread(&d, 1));
      for (size_t o = 0; o < p->n_outputs && f + 1 < formats; o++) {
        p->energy[at * p->n_outputs + o] = error * spread(&d, 4) / (f ? 50 : 1);
        p->common[at * p->n_outputs + o] = uniform(&d) < 0.2 ? 0.2 * sqrt(error) : 0;
      }
    }
    if (uniform(&d) < 0.1) p->time[u * formats] = (double)INFINITY;
  }
  draw_values(&d, p, uniform(&d) < 0.3 ? 0 : 0.3 * uniform(&d));
  ok(assay_tune_index(p));
  assay_tune_state_t low = {0};
  ok(assay_tune_state_create(p, 0, &low));
  for (size_t o = 0; o < p->n_outputs; o++)
    p->budget[o] = assay_tune_error(p, &low, o) * exp2(-8 * uniform(&d));
  for (size_t o = 0; o < p->n_outputs; o++) p->weight[o] = 1 / fmax(p->budget[o], 1e-300);
  assay_tune_state_deinit(&low);
}

// The time of the fastest assignment within the budgets, by trying all; INFINITY: there is none.
static double try_all(const assay_tune_problem_t* p) {
  double best = (double)INFINITY;
  uint64_t n = 1;
  assay_tune_state_t s = {0};
  ok(assay_tune_state_create(p, 0, &s));
  for (size_t u = 0; u < p->n_units; u++) n *= p->n_formats;
  for (uint64_t k = 0; k < n; k++) {
    uint64_t rest = k;
    bool allowed = true;
    for (size_t u = 0; u < p->n_units && allowed; u++, rest /= p->n_formats) {
      const uint8_t f = (uint8_t)(rest % p->n_formats);
      allowed = assay_tune_allowed(p, u, f);
      if (allowed) assay_tune_state_set(p, &s, u, f);
    }
    if (!allowed) continue;
    if (k % 4096 == 0) assay_tune_state_sum(p, &s);
    if (assay_tune_excess(p, &s) <= 0 && s.time < best) best = s.time;
  }
  assay_tune_state_deinit(&s);
  return best;
}

static void near_the_best_of_all(void** state) {
  (void)state;
  const char* text = getenv("ASSAY_TUNE_SEED");
  const uint64_t first = text ? strtoull(text, NULL, 10) : 1;
  double worst = 1;
  int exact = 0, possible = 0;
  for (uint64_t seed = first; seed < first + PROBLEMS; seed++) {
    assay_tune_problem_t p = {0};
    assay_tune_state_t s = {0};
    bool found = false;
    draw_problem(seed, &p);
    ok(assay_tune_state_create(&p, 0, &s));
    ok(assay_tune_search(&p, seed, &s, &found, NULL));
    const double best = try_all(&p);
    if (found != (isfinite(best) != 0))
      fail_msg("seed %llu: found %d", (unsigned long long)seed, found);
    assay_tune_state_sum(&p, &s);
    if (found && assay_tune_excess(&p, &s) > 1e-9)
      fail_msg("seed %llu: over the budget", (unsigned long long)seed);
    if (found && s.time > 1.2 * best)
      fail_msg("seed %llu: %.4g, the best is %.4g", (unsigned long long)seed, s.time, best);
    if (found) worst = fmax(worst, s.time / best), possible++, exact += s.time <= best * (1 + 1e-9);
    assay_tune_state_deinit(&s);
    assay_tune_problem_deinit(&p);
  }
  if (exact < possible * 19 / 20) fail_msg("%d of %d are the best there is", exact, possible);
  print_message("seeds %llu to %llu: %d possible, %d exact, worst %.4f\n",
                (unsigned long long)first, (unsigned long long)first + PROBLEMS - 1, possible,
                exact, worst);
}

static void fronts_fall(void** state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    assay_tune_problem_t p = {0};
    assay_tune_state_t s = {0};
    assay_tune_front_t front = {0};
    bool found = false;
    draw_problem(seed, &p);
    ok(assay_tune_state_create(&p, 0, &s));
    ok(assay_tune_search(&p, seed, &s, &found, &front));
    assert_true(front.n > 1);
    assay_tune_front_thin(&front, 5);
    assert_true(front.n <= 5);
    for (size_t i = 1; i < front.n; i++) {
      assert_true(front.at[i].time >= front.at[i - 1].time);
      assert_true(front.at[i].worst < front.at[i - 1].worst);
    }
    assay_tune_front_deinit(&front);
    assay_tune_state_deinit(&s);
    assay_tune_problem_deinit(&p);
  }
}

// Sums that follow changes are those that are made anew.
static void changes_add_up(void** state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    draw_t d = {.random = assay_random_make(seed, "changes", 0)};
    assay_tune_problem_t p = {0};
    assay_tune_state_t s = {0};
    draw_problem(seed, &p);
    ok(assay_tune_state_create(&p, 0, &s));
    for (int k = 0; k < 200; k++) {
      const size_t u = (size_t)(uniform(&d) * (double)p.n_units);
      const uint8_t f = (uint8_t)(uniform(&d) * (double)p.n_formats);
      if (assay_tune_allowed(&p, u, f)) assay_tune_state_set(&p, &s, u, f);
    }
    const double time = s.time, error = assay_tune_error(&p, &s, 0);
    assay_tune_state_sum(&p, &s);
    assert_true(fabs(time - s.time) <= 1e-9 * s.time);
    assert_true(fabs(error - assay_tune_error(&p, &s, 0)) <= 1e-9 * (error + 1));
    assay_tune_state_deinit(&s);
    assay_tune_problem_deinit(&p);
  }
}

// Each allocation fails once.
static void without_memory(void** state) {
  (void)state;
  assay_tune_problem_t p = {0};
  draw_problem(3, &p);
  for (uint64_t nth = 1;; nth++) {
    assay_tune_state_t s = {0};
    assay_tune_front_t front = {0};
    bool found = false;
    assay_alloc_fail_after(nth, false);
    assay_status_t st = assay_tune_state_create(&p, 0, &s);
    if (!st) st = assay_tune_search(&p, 1, &s, &found, &front);
    const bool reached = assay_alloc_fail_after(0, false) >= nth;
    if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    assay_status_free(st);
    assay_tune_state_deinit(&s);
    assay_tune_front_deinit(&front);
    if (!reached) break;
  }
  assay_tune_problem_deinit(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(near_the_best_of_all), cmocka_unit_test(fronts_fall),
      cmocka_unit_test(changes_add_up), cmocka_unit_test(without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
