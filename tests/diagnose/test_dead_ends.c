// What nobody reads: gates of two steps that are lost in each of them, two values that were joined;
// and that what does not restore golden is left alone.
#include "base/clock.h"
#include "diagnose/outputs/dead_ends.h"
#include "diagnose/outputs/likelihood.h"
#include "diagnose/search_case.h"
#include "onnx/onnx.h"

typedef struct row {
  graph_case_t right, wrong;
  const char* nodes[4];  // those to be repaired; none: nothing is found
} row_t;

#define GATES                                                                                  \
  "MatMul m1 x w -> a1", "Split p1 a1 -> f1 g1 | axis=1 num_outputs=2", "Sigmoid s1 g1 -> b1", \
      "Tanh t1 f1 -> c1"
#define GATES_OF(c)                                                                                \
  "MatMul m2 " c " v -> a2", "Split p2 a2 -> f2 g2 | axis=1 num_outputs=2", "Sigmoid s2 g2 -> b2", \
      "Tanh t2 f2 -> c2"

static const row_t rows[] = {
    {{"gates of two steps",
      18,
      {"x float[7,5]"},
      {"w float[5,8]", "v float[4,8]", "u float[4,3]"},
      {GATES, "Mul o1 c1 b1 -> d1", GATES_OF("d1"), "Mul o2 c2 b2 -> d2", "MatMul n d2 u -> y"},
      "y"},
     {"wrong",
      18,
      {"x float[7,5]"},
      {"w float[5,8]", "v float[4,8]", "u float[4,3]"},
      {GATES, GATES_OF("c1"), "MatMul n c2 u -> y"},
      "y"},
     {"t1", "t2"}},
    {{"the first put there",
      18,
      {"x float[7,5]"},
      {"w float[5,6]", "u float[6,3]", "f int64[1] 1", "e int64[1] 9", "i int64[1] 1"},
      {"MatMul m x w -> a", "Slice s a f e i -> b", "ReduceL2 r x i -> c",
       "Concat j c b -> d | axis=1", "Tanh t d -> g", "MatMul n g u -> y"},
      "y"},
     {"wrong",
      18,
      {"x float[7,5]"},
      {"w float[5,6]", "u float[6,3]", "f int64[1] 1", "e int64[1] 9", "i int64[1] 1"},
      {"MatMul m x w -> a", "Slice s a f e i -> b", "ReduceL2 r x i -> c", "Tanh t a -> g",
       "MatMul n g u -> y"},
      "y"},
     {"t"}},
    {{"another function",
      18,
      {"x float[7,5]"},
      {"w float[5,8]", "v float[4,8]", "u float[4,3]"},
      {GATES, "Mul o1 c1 b1 -> e1", "Sin i1 e1 -> d1", GATES_OF("d1"), "Mul o2 c2 b2 -> d2",
       "MatMul n d2 u -> y"},
      "y"},
     {"wrong",
      18,
      {"x float[7,5]"},
      {"w float[5,8]", "v float[4,8]", "u float[4,3]"},
      {GATES, GATES_OF("c1"), "MatMul n c2 u -> y"},
      "y"},
     {NULL}},
};

// All repairs, made in the model as it was read, give golden.
static void repairs_hold(const row_t* row, const search_case_t* c, const assay_fault_t* faults,
                         size_t n) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&row->wrong, in);
  for (size_t k = 0; k < n; k++) op_case_ok(assay_repair_apply(&faults[k].repair, m));
  op_case_ok(assay_model_verify(m));
  assay_model_t* prepared = NULL;
  op_case_ok(assay_onnx_prepare(m, 0, NULL, &prepared));
  assay_evaluator_t* e = search_case_truth(prepared, in);
  const assay_tensor_t* y = assay_evaluator_get(e, m->graph->outputs[0]);
  const assay_difference_t d = assay_difference(y, c->targets[0].golden);
  if (!d.comparable || d.rms > 1e-6 * (1 + d.ref_rms))
    fail_msg("%s: the repaired model is off by %g of %g", row->right.name, d.rms, d.ref_rms);
  assay_evaluator_destroy(e);
  assay_model_release(prepared);
  assay_model_release(m);
  graph_case_release(in);
}

static bool is_wanted(const row_t* row, const char* node) {
  for (int i = 0; i < 4 && row->nodes[i]; i++)
    if (strcmp(row->nodes[i], node) == 0) return true;
  return false;
}

static void check_row(const row_t* row) {
  static assay_fault_t faults[ASSAY_SEARCH_FAULTS];
  search_case_t c;
  assay_trials_t trials;
  assay_surroundings_t around;
  size_t n = 0, want = 0;
  bool any = false;
  while (want < 4 && row->nodes[want]) want++;
  search_case_init(&row->wrong, &row->right, &c);
  c.targets[0].explained_rms = 1e-6;
  c.targets[0].explained_max = 1e-5;
  op_case_ok(assay_trials_init(&c.search, &trials));
  op_case_ok(assay_surroundings_init(c.search.model, c.search.evaluator, NULL, &around));
  op_case_ok(assay_search_dead_ends(&trials, &around, assay_clock_seconds() + 20, faults, &n));
  if (!n && trials.found) op_case_ok(assay_search_report(&trials, &faults[0], &any));
  if (any) n = 1;
  if (n != want)
    fail_msg("%s: %zu nodes are repaired, not %zu: %s", row->right.name, n, want,
             n ? faults[0].repair.text : "");
  for (size_t k = 0; k < n; k++)
    if (!is_wanted(row, faults[k].repair.node->label))
      fail_msg("%s: %s is repaired: %s", row->right.name, faults[k].repair.node->label,
               faults[k].repair.text);
  if (n) repairs_hold(row, &c, faults, n);
  for (size_t k = 0; k < n; k++) assay_repair_deinit(&faults[k].repair);
  assay_surroundings_deinit(&around);
  assay_trials_deinit(&trials);
  search_case_deinit(&c);
}

static void dead_ends_are_read(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(dead_ends_are_read)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
