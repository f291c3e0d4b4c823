// Numbers that go together: one number in several nodes, as it is, as its reciprocal, in every
// block, or a summand of its own in each; and that what differs otherwise is left alone.
#include "base/clock.h"
#include "diagnose/outputs/numbers/tied.h"
#include "diagnose/search_case.h"
#include "onnx/onnx.h"

typedef struct row {
  graph_case_t right, wrong;
  const char* nodes[4];  // those to be repaired; none: nothing is found
} row_t;

#define POWERS(p, q) \
  { "w float[6,7]", "p float[] " p, "q float[] " q, "axes int64[1] 1", "u float[7,4]" }
#define MEAN_OF_POWERS                                                                      \
  {                                                                                         \
    "MatMul m x w -> a", "Sigmoid s a -> b", "Pow up b p -> c", "ReduceMean r c axes -> d", \
        "Pow back d q -> e", "MatMul n e u -> y", NULL,                                     \
  }

#define BLOCK(i, from, to)                                                   \
  "MatMul m" i " " from " w" i " -> a" i, "Mul s" i " a" i " t" i " -> b" i, \
      "Tanh h" i " b" i " -> " to
#define BLOCKS(t, u) \
  { "w1 float[6,6]", "w2 float[6,6]", "t1 float[6] " t, "t2 float[6] " u, "v float[6,5]" }

#define POWERS_OF(q)                                                                  \
  {                                                                                   \
    "w float[6,4]", "p float[4] 0.5 1.25 0.75 1.5", "q float[4] " q, "one float[] 1", \
        "u float[4,5]"                                                                \
  }
#define TWO_FORMULAS                                                                 \
  {                                                                                  \
    "MatMul m x w -> a", "Sigmoid s a -> b", "Pow up b p -> c", "Div e c p -> d",    \
        "Sub r one b -> f", "Pow down f q -> g", "Div h g q -> i", "Add j d i -> k", \
        "MatMul n k u -> y"                                                          \
  }

static const row_t rows[] = {
    // A mean of powers: the power, and the root of it. Source: F. Radenovic et al., 2018.
    {{"power and root", 18, {"x float[3,5,6]"}, POWERS("4.5", "0.222222222"), MEAN_OF_POWERS, "y"},
     {"wrong", 18, {"x float[3,5,6]"}, POWERS("3", "0.333333333"), MEAN_OF_POWERS, "y"},
     {"up", "back"}},
    {{"power and root of 1",
      18,
      {"x float[3,5,6]"},
      POWERS("3", "0.333333333"),
      MEAN_OF_POWERS,
      "y"},
     {"wrong", 18, {"x float[3,5,6]"}, POWERS("1", "1"), MEAN_OF_POWERS, "y"},
     {"up", "back"}},
    // Tables that are a little longer in every block.
    {{"factor of tables",
      18,
      {"x float[9,6]"},
      BLOCKS("1.2 0.6 -1.8 0.9 2.4 -0.3", "0.12 2.4 1.2 0.6 -1.2 1.5"),
      {BLOCK("1", "x", "c"), BLOCK("2", "c", "d"), "MatMul o d v -> y"},
      "y"},
     {"wrong",
      18,
      {"x float[9,6]"},
      BLOCKS("1 0.5 -1.5 0.75 2 -0.25", "0.1 2 1 0.5 -1 1.25"),
      {BLOCK("1", "x", "c"), BLOCK("2", "c", "d"), "MatMul o d v -> y"},
      "y"},
     {"s1", "s2"}},
    // Steps between levels, whose ends count: into whole numbers, and back.
    {{"levels",
      18,
      {"x float[9,3]"},
      {"w float[3,3]", "k float[3] 0.25 0.2 0.5", "j float[3] 0.25 0.2 0.5", "v float[3,5]"},
      {"MatMul m x w -> a", "Div d a k -> b", "Round r b -> c", "Mul p c j -> e",
       "MatMul o e v -> y"},
      "y"},
     {"wrong",
      18,
      {"x float[9,3]"},
      {"w float[3,3]", "k float[3] 0.2 0.166666667 0.333333333",
       "j float[3] 0.2 0.166666667 0.333333333", "v float[3,5]"},
      {"MatMul m x w -> a", "Div d a k -> b", "Round r b -> c", "Mul p c j -> e",
       "MatMul o e v -> y"},
      "y"},
     {"d", "p"}},
    // One array in two formulas, of which one is wrong: below nothing the power is 2 less.
    {{"two formulas", 18, {"x float[9,6]"}, POWERS_OF("1.5 0.75 1.25 0.5"), TWO_FORMULAS, "y"},
     {"wrong", 18, {"x float[9,6]"}, POWERS_OF("0.5 1.25 0.75 1.5"), TWO_FORMULAS, "y"},
     {"down", "h"}},
    // Of two blocks each has lost a summand of its own.
    {{"summands",
      18,
      {"x float[9,6]"},
      {"w1 float[6,6]", "w2 float[6,6]", "v float[6,5]", "k1 float[] 0.3", "k2 float[] -0.45"},
      {"MatMul m1 x w1 -> a1", "Softsign s1 a1 -> b1", "Add p1 b1 k1 -> c1",
       "MatMul m2 c1 w2 -> a2", "Softsign s2 a2 -> b2", "Add p2 b2 k2 -> c2", "MatMul o c2 v -> y"},
      "y"},
     {"wrong",
      18,
      {"x float[9,6]"},
      {"w1 float[6,6]", "w2 float[6,6]", "v float[6,5]"},
      {"MatMul m1 x w1 -> a1", "Softsign s1 a1 -> b1", "MatMul m2 b1 w2 -> a2",
       "Softsign s2 a2 -> b2", "MatMul o b2 v -> y"},
      "y"},
     {"s1", "s2"}},
    // What no numbers explain.
    {{"another function",
      18,
      {"x float[9,6]"},
      {"w1 float[6,6]", "w2 float[6,6]", "v float[6,5]"},
      {"MatMul m1 x w1 -> a1", "Softsign s1 a1 -> b1", "MatMul m2 b1 w2 -> a2",
       "Softsign s2 a2 -> b2", "MatMul o b2 v -> y"},
      "y"},
     {"wrong",
      18,
      {"x float[9,6]"},
      {"w1 float[6,6]", "w2 float[6,6]", "v float[6,5]"},
      {"MatMul m1 x w1 -> a1", "Sin s1 a1 -> b1", "MatMul m2 b1 w2 -> a2", "Sin s2 a2 -> b2",
       "MatMul o b2 v -> y"},
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
  while (want < 4 && row->nodes[want]) want++;
  search_case_init(&row->wrong, &row->right, &c);
  c.targets[0].explained_rms = 1e-6;
  c.targets[0].explained_max = 1e-5;
  op_case_ok(assay_trials_init(&c.search, &trials));
  op_case_ok(assay_surroundings_init(c.search.model, c.search.evaluator, NULL, &around));
  op_case_ok(assay_search_tied(&trials, &around, assay_clock_seconds() + 20, faults, &n));
  if (n != want)
    fail_msg("%s: %zu nodes are repaired, not %zu: %s", row->right.name, n, want,
             n ? faults[0].repair.text : "");
  for (size_t k = 0; k < n; k++)
    if (!is_wanted(row, faults[k].node->label))
      fail_msg("%s: %s is repaired: %s", row->right.name, faults[k].node->label,
               faults[k].repair.text);
  if (n) repairs_hold(row, &c, faults, n);
  for (size_t k = 0; k < n; k++) assay_repair_deinit(&faults[k].repair);
  assay_surroundings_deinit(&around);
  assay_trials_deinit(&trials);
  search_case_deinit(&c);
}

static void numbers_that_go_together_are_found(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_that_go_together_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
