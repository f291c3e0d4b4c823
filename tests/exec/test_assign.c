// Assignments of states at least cost: those of every small problem that was tried are the
// cheapest, as going through all of them tells; with small tables they are never above where they
// began.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants those before it.
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "exec/segment/assign.h"

enum { N = 9, MANY = 40 };

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

typedef struct dice {
  assay_random_t r;
  uint64_t at;
} dice_t;

static int below(dice_t* d, int n) {
  return (int)(assay_random_uniform(&d->r, d->at++) * (double)n);
}

// Random costs over one to three variables; some cannot be.
static assay_assign_t* random_problem(dice_t* d, int n, int n_tables, int* n_states) {
  assay_assign_t* a = NULL;
  for (int i = 0; i < n; i++) n_states[i] = 1 + below(d, 3);
  ok(assay_assign_create(n, n_states, &a));
  for (int t = 0; t < n_tables; t++) {
    int v[3], width = 1 + below(d, 3);
    double costs[27];
    for (int i = 0; i < width; i++) {
      bool again = true;
      while (again) {
        v[i] = below(d, n);
        again = false;
        for (int k = 0; k < i; k++) again |= v[k] == v[i];
      }
    }
    for (int i = 0; i < 27; i++)
      costs[i] = i && !below(d, 6) ? (double)INFINITY : (double)below(d, 50);
    ok(assay_assign_add(a, width, v, costs));
  }
  return a;
}

static double cheapest(const assay_assign_t* a, int n, const int* n_states) {
  int states[N] = {0};
  double best = (double)INFINITY;
  for (;;) {
    best = fmin(best, assay_assign_cost(a, states));
    int i = 0;
    while (i < n && ++states[i] == n_states[i]) states[i++] = 0;
    if (i == n) return best;
  }
}

static void small_ones_are_solved_exactly(void** state) {
  (void)state;
  const uint64_t seed = 11;
  dice_t d = {assay_random_make(seed, "assign", 0), 0};
  for (int round = 0; round < 400; round++) {
    int n_states[N], states[N] = {0}, again[N] = {0};
    bool exact = false;
    const int n = 1 + below(&d, N);
    assay_assign_t* a = random_problem(&d, n < 3 ? 3 : n, below(&d, 20), n_states);
    ok(assay_assign_solve(a, ASSAY_ASSIGN_TABLE, states, &exact));
    ok(assay_assign_solve(a, ASSAY_ASSIGN_TABLE, again, &exact));
    const double want = cheapest(a, n < 3 ? 3 : n, n_states), got = assay_assign_cost(a, states);
    // States 0 can always be, so there is an assignment.
    if (!exact || got != want || memcmp(states, again, sizeof states) != 0)
      fail_msg("seed %llu, round %d: %g, the cheapest is %g", (unsigned long long)seed, round, got,
               want);
    assay_assign_destroy(a);
  }
}

// With tables of four entries hardly anything can be eliminated.
static void held_variables_keep_it_close(void** state) {
  (void)state;
  const uint64_t seed = 12;
  dice_t d = {assay_random_make(seed, "assign", 0), 0};
  double got = 0, best = 0;
  for (int round = 0; round < 300; round++) {
    int n_states[N], states[N] = {0};
    bool exact = false;
    assay_assign_t* a = random_problem(&d, N, 16, n_states);
    const double began = assay_assign_cost(a, states), want = cheapest(a, N, n_states);
    ok(assay_assign_solve(a, 4, states, &exact));
    const double cost = assay_assign_cost(a, states);
    if (cost > began || cost < want || (exact && cost != want))
      fail_msg("seed %llu, round %d: %g, from %g, cheapest %g", (unsigned long long)seed, round,
               cost, began, want);
    got += cost;
    best += want;
    assay_assign_destroy(a);
  }
  print_message("seed %llu: %.3f of the cheapest\n", (unsigned long long)seed, got / best);
  assert_true(got <= 1.15 * best);
}

// A chain of many, each pair at odds: one table at a time.
static void chains_are_exact(void** state) {
  (void)state;
  int n_states[MANY], states[MANY] = {0};
  assay_assign_t* a = NULL;
  bool exact = false;
  for (int i = 0; i < MANY; i++) n_states[i] = 2;
  ok(assay_assign_create(MANY, n_states, &a));
  const double own[] = {0, -1}, pair[] = {0, 1.5, 1.5, 0};
  for (int i = 0; i < MANY; i++) ok(assay_assign_add(a, 1, (int[]){i}, own));
  for (int i = 1; i < MANY; i++) ok(assay_assign_add(a, 2, (int[]){i - 1, i}, pair));
  const double first[] = {0, 100};
  ok(assay_assign_add(a, 1, (int[]){0}, first));
  ok(assay_assign_solve(a, 4, states, &exact));
  assert_true(exact);
  assert_int_equal(states[0], 0);
  for (int i = 1; i < MANY; i++) assert_int_equal(states[i], 1);
  assay_assign_destroy(a);
}

// Among equals it stays where it was.
static void equals_stay(void** state) {
  (void)state;
  const int n_states[] = {3, 3};
  int states[] = {2, 1};
  bool exact = false;
  assay_assign_t* a = NULL;
  const double costs[9] = {0};
  ok(assay_assign_create(2, n_states, &a));
  ok(assay_assign_add(a, 2, (int[]){0, 1}, costs));
  ok(assay_assign_solve(a, 100, states, &exact));
  assert_int_equal(states[0], 2);
  assert_int_equal(states[1], 1);
  assay_assign_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(small_ones_are_solved_exactly),
                                     cmocka_unit_test(held_variables_keep_it_close),
                                     cmocka_unit_test(chains_are_exact),
                                     cmocka_unit_test(equals_stay)};
  return cmocka_run_group_tests_name("assign", tests, NULL, NULL);
}
