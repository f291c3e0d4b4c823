// The search for the fewest layers in higher precision, over a runner that knows the answer:
// prefixes and suffixes of every length, and how many runs they take.
#include "base/alloc.h"
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_shortest_prefix_is_found),
      cmocka_unit_test(a_run_that_fails_ends_the_search),
      cmocka_unit_test(any_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
