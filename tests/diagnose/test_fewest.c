// The search for the fewest layers in higher precision, over a runner that knows the answer:
// prefixes and suffixes of every length, sets that are found by taking layers out, and how many
// runs they take.
#include "base/alloc.h"
#include "base/random.h"
#include "diagnose/fewest.h"
#include "fail_case.h"
#include "passes/graph_case.h"

enum { NODES = 6 };

static const graph_case_t chain = {"chain",
                                   0,
                                   {"x float[4]"},
                                   {"k float[] 2"},
                                   {"Mul a x k -> p", "Mul b p k -> q", "Mul c q k -> r",
                                    "Mul d r k -> s", "Mul e s k -> t", "Mul f t k -> y"},
                                   "y"};

// Outputs do if the first (or last) `needed` nodes are in fp32; runs fail after `limit` of them.
typedef struct runner {
  const assay_model_t* model;
  size_t needed, runs, limit;
  bool from_end;
} runner_t;

static assay_status_t run(void* user, const assay_precision_t* precision, assay_run_result_t* out,
                          assay_plan_t** out_plan, assay_taken_t** out_taken) {
  runner_t* r = user;
  const assay_graph_t* g = r->model->graph;
  assay_run_result_t result = {.faithful = true};
  (void)out_plan, (void)out_taken;
  if (r->runs++ == r->limit) return ASSAY_ERROR(ASSAY_DEVICE, "no more runs");
  ASSAY_TRY(assay_output_checks_create(g, NULL, &result.outputs));
  for (size_t i = 0; i < r->needed; i++)
    result.faithful &= precision->pinned[g->nodes[r->from_end ? NODES - 1 - i : i]->id];
  *out = result;
  return NULL;
}

static assay_status_t find(runner_t* r, assay_fewest_strategy_t strategy,
                           assay_fewest_found_t* out) {
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP16};
  const assay_fewest_setting_t setting = {.strategy = strategy,
                                          .subject = {.model = r->model, .precision = &precision},
                                          .from_end = r->from_end,
                                          .run = run,
                                          .runner = r};
  return assay_fewest_find(&setting, out);
}

static void the_shortest_prefix_is_found(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&chain, in);
  for (int s = ASSAY_FEWEST_BISECT; s <= ASSAY_FEWEST_LINEAR; s++)
    for (size_t needed = 0; needed <= NODES; needed++)
      for (int from_end = 0; from_end < 2; from_end++) {
        runner_t r = {.model = m, .needed = needed, .limit = 100, .from_end = from_end};
        assay_fewest_found_t f = {0};
        op_case_ok(find(&r, (assay_fewest_strategy_t)s, &f));
        assert_int_equal(f.faithful, needed == 0);
        assert_int_equal(f.has_fix, needed > 0);
        assert_int_equal(f.n_prefix, needed);
        assert_int_equal(f.runs, r.runs);
        assert_int_equal(f.n_trials, r.runs);
        assert_true(s == ASSAY_FEWEST_LINEAR ? f.runs == needed + 1 : f.runs <= 5);
        if (needed) assert_true(f.fix.verified && f.fix.n_nodes == needed && f.fix.outputs);
        for (size_t i = 0; needed && i < needed; i++)
          assert_ptr_equal(f.fix.nodes[i], m->graph->nodes[from_end ? NODES - needed + i : i]);
        assay_fewest_found_deinit(&f);
      }
  assay_model_release(m);
  graph_case_release(in);
}

static void a_run_that_fails_ends_the_search(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&chain, in);
  for (size_t limit = 0; limit < 3; limit++) {
    runner_t r = {.model = m, .needed = 4, .limit = limit};
    assay_fewest_found_t f = {0};
    assay_status_t st = find(&r, ASSAY_FEWEST_BISECT, &f);
    assert_int_equal(assay_status_code(st), ASSAY_DEVICE);
    assert_int_equal(r.runs, limit + 1);
    assert_null(f.fix.nodes);
    assay_status_free(st);
  }
  assay_model_release(m);
  graph_case_release(in);
}

static assay_status_t bisect(void* m) {
  runner_t r = {.model = m, .needed = 3, .limit = 100};
  assay_fewest_found_t f = {0};
  assay_status_t st = find(&r, ASSAY_FEWEST_BISECT, &f);
  assay_fewest_found_deinit(&f);
  return st;
}

static void any_allocation_may_fail(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&chain, in);
  assert_true(fail_each(100, bisect, m) > 0);
  assay_model_release(m);
  graph_case_release(in);
}

// ---- taking layers out --------------------------------------------------------------------------

enum { LONG = 200 };

// Outputs do if each of the groups has a node in fp32: a group of one is a node that has to be.
typedef struct demands {
  const assay_model_t* model;
  size_t n_nodes, n_groups, runs;
  uint8_t groups[LONG];  // by node: bit g is group g
  bool proposed;
} demands_t;

static assay_status_t run_demands(void* user, const assay_precision_t* precision,
                                  assay_run_result_t* out, assay_plan_t** out_plan,
                                  assay_taken_t** out_taken) {
  demands_t* d = user;
  assay_run_result_t result = {0};
  unsigned met = 0;
  (void)out_plan, (void)out_taken;
  d->runs++;
  for (size_t i = 0; i < d->n_nodes; i++)
    if (precision->pinned[d->model->graph->nodes[i]->id]) met |= d->groups[i];
  result.faithful = met == (1u << d->n_groups) - 1;
  ASSAY_TRY(assay_output_checks_create(d->model->graph, NULL, &result.outputs));
  *out = result;
  return NULL;
}

// All nodes, once.
static assay_status_t propose_all(void* user, assay_fp32_set_t* set, bool* out_more) {
  demands_t* d = user;
  *out_more = !d->proposed;
  d->proposed = true;
  for (size_t i = 0; i < d->n_nodes; i++) {
    bool* chosen = &set->chosen[d->model->graph->nodes[i]->id];
    set->n_chosen += !*chosen;
    *chosen = true;
  }
  return NULL;
}

static assay_model_t* chain_of(size_t n) {
  char text[LONG][64];
  graph_case_t g = {"chain", 0, {"x float[4]"}, {"k float[] 2"}, {NULL}, "v0"};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  snprintf(text[0], sizeof text[0], "Mul n0 x k -> v0");
  g.nodes[0] = text[0];
  assay_model_t* m = graph_case_model(&g, in);
  for (size_t i = 1; i < n; i++) {
    snprintf(text[i], sizeof text[i], "Mul n%zu v%zu k -> v%zu", i, i - 1, i);
    graph_case_node(m->graph, text[i], 17);
  }
  graph_case_release(in);
  return m;
}

static void find_among(demands_t* d, size_t max_removals, assay_fewest_found_t* out) {
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP16};
  const assay_fewest_setting_t setting = {.strategy = ASSAY_FEWEST_PROPOSED,
                                          .subject = {.model = d->model, .precision = &precision},
                                          .max_removals = max_removals,
                                          .propose = propose_all,
                                          .run = run_demands,
                                          .runner = d};
  d->runs = 0;
  d->proposed = false;
  op_case_ok(assay_fewest_find(&setting, out));
  assert_int_equal(d->runs, out->runs);
  assert_int_equal(out->runs, 1 + out->removals);
  assert_true(out->removals <= max_removals);
  assert_true(out->has_fix && out->fix.verified);
}

// Of a long chain only a few nodes have to be kept: these are found in some log2(n) runs each.
static void what_is_not_needed_goes(void** state) {
  (void)state;
  assay_model_t* m = chain_of(LONG);
  for (uint64_t seed = 0; seed < 40; seed++) {
    const assay_random_t random = assay_random_make(seed, "removal", 0);
    demands_t d = {.model = m, .n_nodes = LONG, .n_groups = 1 + seed % 6};
    for (size_t g = 0; g < d.n_groups; g++)
      d.groups[(size_t)(assay_random_uniform(&random, g) * LONG)] |= (uint8_t)(1u << g);
    size_t needed = 0;
    for (size_t i = 0; i < LONG; i++) needed += d.groups[i] != 0;
    assay_fewest_found_t f = {0};
    find_among(&d, 200, &f);
    if (f.fix.n_nodes != needed)
      fail_msg("seed %d: %zu nodes are kept, %zu are needed", (int)seed, f.fix.n_nodes, needed);
    if (f.removals > 16 * (needed + 1))
      fail_msg("seed %d: %zu runs for %zu nodes", (int)seed, f.removals, needed);
    assay_fewest_found_deinit(&f);
  }
  assay_model_release(m);
}

// Runs that are too few leave a set that does, and one that is smaller the more there are.
static void runs_are_bounded(void** state) {
  (void)state;
  assay_model_t* m = chain_of(LONG);
  demands_t d = {.model = m, .n_nodes = LONG, .n_groups = 2};
  d.groups[LONG / 3] = 1;
  d.groups[LONG - 2] = 2;
  size_t before = LONG + 1;
  for (size_t max = 0; max < 40; max += 4) {
    assay_fewest_found_t f = {0};
    find_among(&d, max, &f);
    assert_true(f.fix.n_nodes <= before);
    before = f.fix.n_nodes;
    assert_true(max || before == LONG);
    assay_fewest_found_deinit(&f);
  }
  assert_true(before <= LONG / 4);
  assay_model_release(m);
}

// One node may stand for several: what single removals end with is not the least.
static void smaller_sets_are_found(void** state) {
  (void)state;
  enum { FEW = 8 };
  assay_model_t* m = chain_of(FEW);
  for (uint64_t seed = 0; seed < 60; seed++) {
    const assay_random_t random = assay_random_make(seed, "smaller", 0);
    demands_t d = {.model = m, .n_nodes = FEW, .n_groups = 4};
    size_t min = FEW + 1;
    for (size_t i = 0; i < FEW; i++)
      d.groups[i] = (uint8_t)(assay_random_uniform(&random, i) * 16) &
                    (uint8_t)(assay_random_uniform(&random, 100 + i) * 16);
    for (unsigned set = 1; set < 1u << FEW; set++) {
      unsigned met = 0;
      size_t n = 0;
      for (size_t i = 0; i < FEW; i++)
        if (set >> i & 1) met |= d.groups[i], n++;
      if (met == 15 && n < min) min = n;
    }
    if (min > FEW) continue;
    assay_fewest_found_t f = {0};
    find_among(&d, 256, &f);
    if (f.fix.n_nodes != min)
      fail_msg("seed %d: %zu nodes are kept, %zu do", (int)seed, f.fix.n_nodes, min);
    assay_fewest_found_deinit(&f);
  }
  assay_model_release(m);
}

static void removals_without_memory(void** state) {
  (void)state;
  enum { FEW = 8 };
  assay_model_t* m = chain_of(FEW);
  bool reached = true;
  for (uint64_t n = 1; reached; n = fail_next(n, 400)) {
    const int64_t live = assay_alloc_live();
    const assay_precision_t precision = {.format = ASSAY_FORMAT_FP16};
    demands_t d = {.model = m, .n_nodes = FEW, .n_groups = 2, .groups = {1, 0, 3, 0, 0, 2}};
    const assay_fewest_setting_t setting = {.strategy = ASSAY_FEWEST_PROPOSED,
                                            .subject = {.model = m, .precision = &precision},
                                            .max_removals = 40,
                                            .propose = propose_all,
                                            .run = run_demands,
                                            .runner = &d};
    assay_fewest_found_t f = {0};
    assay_alloc_fail_after(n, false);
    assay_status_t st = assay_fewest_find(&setting, &f);
    reached = assay_alloc_fail_after(0, false) >= n;
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY) fail_msg("%s", assay_status_message(st));
    assert_true(st || f.fix.n_nodes == 1);
    assay_status_free(st);
    assay_fewest_found_deinit(&f);
    assert_int_equal(assay_alloc_live(), live);
  }
  assay_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_shortest_prefix_is_found),
      cmocka_unit_test(a_run_that_fails_ends_the_search),
      cmocka_unit_test(any_allocation_may_fail),
      cmocka_unit_test(what_is_not_needed_goes),
      cmocka_unit_test(runs_are_bounded),
      cmocka_unit_test(smaller_sets_are_found),
      cmocka_unit_test(removals_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
