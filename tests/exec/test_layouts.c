// Layouts over a graph by injected costs: what is expected of small graphs that can be reckoned by
// hand, and of random ones the cheapest of all assignments.
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
#include "exec/segment/layouts.h"

enum { MAX_LAYERS = 8, MAX_VALUES = 10 };
static const assay_layout_t P = ASSAY_LAYOUT_PLAIN, L = ASSAY_LAYOUT_CHANNELS_LAST;

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

// ---- injected costs
// ------------------------------------------------------------------------------
//
// A layer reads up to two values and makes the one of its own number + 1; value 0 is the graph's
// input, which lies plain, the last one its output, which is wanted plain. Costs < 0: no option.

typedef struct injected_layer {
  int reads[2];          // -1: none
  double plain, last;    // of the kernel that reads and makes all so
  double plain_to_last;  // of one that reads plain and makes channels last
} injected_layer_t;

typedef struct injected {
  const char* name;
  double reorder;  // of every value
  injected_layer_t layers[5];
  const char* expected;  // by layer: p, l, or x for plain_to_last
  double cost;
} injected_t;

static const injected_t rows[] = {
    {"a convolution that is faster channels last pays for two reorders",
     10,
     {{{0, -1}, 50, 20, -1}},
     "l",
     40},
    {"and one that gains less than they cost stays plain", 10, {{{0, -1}, 50, 35, -1}}, "p", 50},
    {"two of these together pay for them",
     10,
     {{{0, -1}, 50, 35, -1}, {{1, -1}, 50, 35, -1}},
     "ll",
     90},
    {"pointwise layers between follow",
     10,
     {{{0, -1}, 50, 35, -1}, {{1, -1}, 5, 5, -1}, {{2, -1}, 50, 35, -1}},
     "lll",
     95},
    {"a layer that has only one layout splits the graph",
     10,
     {{{0, -1}, 50, 35, -1}, {{1, -1}, 5, -1, -1}, {{2, -1}, 50, 25, -1}},
     "ppl",
     100},
    {"one reorder serves all who read it so",
     10,
     {{{0, -1}, 5, -1, -1}, {{1, -1}, 20, 15, -1}, {{1, -1}, 20, 15, -1}, {{2, 3}, 30, 5, -1}},
     "plll",
     60},
    {"a layer that writes another layout than it reads saves one",
     10,
     {{{0, -1}, 20, 20, 21}, {{1, -1}, 50, 20, -1}},
     "xl",
     51},
    {"of equal costs none moves", 10, {{{0, -1}, 50, 30, -1}}, "p", 50},
};

static void add_option(assay_layout_problem_t* p, double cost, const injected_layer_t* l, int made,
                       assay_layout_t in, assay_layout_t out) {
  if (cost < 0) return;
  ok(assay_layouts_add_option(p, cost));
  for (int k = 0; k < 2; k++)
    if (l->reads[k] >= 0) ok(assay_layouts_add_use(p, l->reads[k], in, false));
  ok(assay_layouts_add_use(p, made, out, true));
}

static void injected_costs_give_the_expected_layouts(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const injected_t* r = &rows[i];
    const int n = (int)strlen(r->expected);
    assay_layout_problem_t p = {0};
    int at, options[5];
    bool exact = false;
    for (int v = 0; v <= n; v++) {
      const assay_layout_value_t value = {.made = v ? 0 : 1 << P,
                                          .needed = v == n ? 1 << P : 0,
                                          .reorder = {{0, r->reorder}, {r->reorder, 0}}};
      ok(assay_layouts_add_value(&p, &value, &at));
    }
    char kinds[5][4] = {{0}};
    for (int k = 0; k < n; k++) {
      const injected_layer_t* l = &r->layers[k];
      ok(assay_layouts_add_layer(&p, &at));
      add_option(&p, l->plain, l, k + 1, P, P);
      if (l->plain >= 0) strcat(kinds[k], "p");
      add_option(&p, l->last, l, k + 1, L, L);
      if (l->last >= 0) strcat(kinds[k], "l");
      add_option(&p, l->plain_to_last, l, k + 1, P, L);
      if (l->plain_to_last >= 0) strcat(kinds[k], "x");
    }
    ok(assay_layouts_assign(&p, ASSAY_ASSIGN_TABLE, options, &exact));
    for (int k = 0; k < n; k++)
      if (kinds[k][options[k]] != r->expected[k])
        fail_msg("%s: layer %d is '%c', not '%c'", r->name, k, kinds[k][options[k]],
                 r->expected[k]);
    if (fabs(assay_layouts_cost(&p, options) - r->cost) > 1e-9)
      fail_msg("%s: it costs %g, not %g", r->name, assay_layouts_cost(&p, options), r->cost);
    assert_true(exact);
    assay_layouts_deinit(&p);
  }
}

// What is told of a layer's options: the reorders around it while the others stay as they are.
static void reorders_are_told_by_option(void** state) {
  (void)state;
  assay_layout_problem_t p = {0};
  const injected_layer_t layer = {{0, -1}, 50, 20, -1};
  int at;
  const assay_layout_value_t in = {.made = 1 << P, .reorder = {{0, 10}, {11, 0}}};
  const assay_layout_value_t out = {.needed = 1 << P, .reorder = {{0, 10}, {11, 0}}};
  ok(assay_layouts_add_value(&p, &in, &at));
  ok(assay_layouts_add_value(&p, &out, &at));
  ok(assay_layouts_add_layer(&p, &at));
  add_option(&p, 50, &layer, 1, P, P);
  add_option(&p, 20, &layer, 1, L, L);
  const int options[] = {1};
  assert_true(assay_layouts_reorders(&p, options, 0, 0) == 0);
  assert_true(assay_layouts_reorders(&p, options, 0, 1) == 21);
  assert_true(assay_layouts_cost(&p, options) == 41);
  assay_layouts_deinit(&p);
}

// ---- random graphs ------------------------------------------------------------------------------

typedef struct dice {
  assay_random_t r;
  uint64_t at;
} dice_t;

static int below(dice_t* d, int n) {
  return (int)(assay_random_uniform(&d->r, d->at++) * (double)n);
}

// Layers that read one to three values made before and make one or two.
static void random_graph(dice_t* d, assay_layout_problem_t* p) {
  const int n = 2 + below(d, MAX_LAYERS - 1);
  int n_values = 1, at;
  assay_layout_value_t input = {.made = 1 << P, .reorder = {{0, 1 + below(d, 20)}, {5, 0}}};
  ok(assay_layouts_add_value(p, &input, &at));
  for (int i = 0; i < n; i++) {
    const int makes = n_values + 2 <= MAX_VALUES ? 1 + below(d, 2) : 1;
    const int reads = 1 + below(d, 3), before = n_values, n_options = 1 + below(d, 3);
    for (int k = 0; k < makes; k++) {
      const double one = below(d, 20), two = below(d, 20);
      const assay_layout_value_t v = {.needed = below(d, 4) ? 0 : 1 << below(d, 2),
                                      .reorder = {{0, one}, {two, 0}}};
      ok(assay_layouts_add_value(p, &v, &at));
      n_values++;
    }
    ok(assay_layouts_add_layer(p, &at));
    int read[3];
    for (int k = 0; k < reads; k++) read[k] = below(d, before);
    for (int o = 0; o < n_options; o++) {
      ok(assay_layouts_add_option(p, below(d, 30)));
      for (int k = 0; k < reads; k++)
        ok(assay_layouts_add_use(p, read[k], (assay_layout_t)below(d, 2), false));
      for (int k = 0; k < makes; k++)
        ok(assay_layouts_add_use(p, before + k, (assay_layout_t)below(d, 2), true));
    }
  }
}

static double cheapest(const assay_layout_problem_t* p) {
  int options[MAX_LAYERS] = {0};
  double best = (double)INFINITY;
  for (;;) {
    best = fmin(best, assay_layouts_cost(p, options));
    size_t i = 0;
    while (i < p->n_layers && ++options[i] == p->layers[i].n_options) options[i++] = 0;
    if (i == p->n_layers) return best;
  }
}

static void random_graphs_are_assigned_at_least_cost(void** state) {
  (void)state;
  const uint64_t seed = 21;
  dice_t d = {assay_random_make(seed, "layouts", 0), 0};
  double got = 0, best = 0;
  for (int round = 0; round < 1000; round++) {
    assay_layout_problem_t p = {0};
    int options[MAX_LAYERS], again[MAX_LAYERS], first[MAX_LAYERS] = {0};
    bool exact = false;
    random_graph(&d, &p);
    const double want = cheapest(&p);
    ok(assay_layouts_assign(&p, ASSAY_ASSIGN_TABLE, options, &exact));
    ok(assay_layouts_assign(&p, ASSAY_ASSIGN_TABLE, again, &exact));
    const double cost = assay_layouts_cost(&p, options);
    if (!exact || fabs(cost - want) > 1e-9 ||
        memcmp(options, again, p.n_layers * sizeof *options) != 0)
      fail_msg("seed %llu, round %d: %g, the cheapest is %g", (unsigned long long)seed, round, cost,
               want);
    // Tables of six entries: hardly a pair can be joined.
    ok(assay_layouts_assign(&p, 6, options, &exact));
    const double held = assay_layouts_cost(&p, options);
    if (held > assay_layouts_cost(&p, first) || held < want - 1e-9)
      fail_msg("seed %llu, round %d: %g with small tables", (unsigned long long)seed, round, held);
    got += held;
    best += want;
    assay_layouts_deinit(&p);
  }
  print_message("seed %llu: with small tables %.3f of the cheapest\n", (unsigned long long)seed,
                got / best);
  assert_true(got <= 1.1 * best);
}

// Every fourth layer joins all that was made before, as in dense blocks: no small table is left.
static void wide_graphs_are_never_worse_than_before(void** state) {
  (void)state;
  enum { N = 120 };
  const uint64_t seed = 22;
  dice_t d = {assay_random_make(seed, "layouts", 0), 0};
  assay_layout_problem_t p = {0};
  int at, options[N], first[N] = {0}, chosen = 0;
  bool exact = true;
  const assay_layout_value_t input = {.made = 1 << P, .reorder = {{0, 30}, {30, 0}}};
  ok(assay_layouts_add_value(&p, &input, &at));
  for (int i = 0; i < N; i++) {
    const double reorder = 1 + below(&d, 20);
    const assay_layout_value_t v = {.reorder = {{0, reorder}, {reorder, 0}}};
    ok(assay_layouts_add_value(&p, &v, &at));
    ok(assay_layouts_add_layer(&p, &at));
    for (int o = 0; o < 2; o++) {
      ok(assay_layouts_add_option(&p, o ? 10 + below(&d, 20) : 20 + below(&d, 20)));
      for (int k = i % 4 ? i : 0; k <= i; k++)
        ok(assay_layouts_add_use(&p, k, (assay_layout_t)o, false));
      ok(assay_layouts_add_use(&p, i + 1, (assay_layout_t)o, true));
    }
  }
  ok(assay_layouts_assign(&p, ASSAY_ASSIGN_TABLE, options, &exact));
  for (int i = 0; i < N; i++) chosen += options[i];
  const double before = assay_layouts_cost(&p, first), after = assay_layouts_cost(&p, options);
  print_message("seed %llu: %g of %g, %d layers channels last, %s\n", (unsigned long long)seed,
                after, before, chosen, exact ? "proven" : "not proven");
  assert_true(after < before);
  int all[N];
  for (int i = 0; i < N; i++) all[i] = 1;
  assert_true(after <= assay_layouts_cost(&p, all));
  assay_layouts_deinit(&p);
}

static void shapes_of_one_order(void** state) {
  (void)state;
  assert_true(assay_layouts_are_same(2, (int64_t[]){3, 4}));
  assert_true(assay_layouts_are_same(4, (int64_t[]){2, 7, 1, 1}));
  assert_true(assay_layouts_are_same(4, (int64_t[]){2, 1, 5, 6}));
  assert_false(assay_layouts_are_same(4, (int64_t[]){2, 7, 1, 2}));
  assert_false(assay_layouts_are_same(3, (int64_t[]){1, 2, 3}));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(injected_costs_give_the_expected_layouts),
                                     cmocka_unit_test(reorders_are_told_by_option),
                                     cmocka_unit_test(random_graphs_are_assigned_at_least_cost),
                                     cmocka_unit_test(wide_graphs_are_never_worse_than_before),
                                     cmocka_unit_test(shapes_of_one_order)};
  return cmocka_run_group_tests_name("layouts", tests, NULL, NULL);
}
