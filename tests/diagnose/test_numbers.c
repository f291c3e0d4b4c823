// Several numbers that are lost at once: a factor and a summand, a factor before each of several
// functions, both limits of several nodes; and that what no numbers explain is left alone.
#include "base/clock.h"
#include "diagnose/outputs/numbers/limits.h"
#include "diagnose/outputs/numbers/numbers.h"
#include "diagnose/search_case.h"
#include "onnx/onnx.h"

typedef struct row {
  graph_case_t right, wrong;
  const char* nodes[4];  // those to be repaired; none: nothing is found
} row_t;

#define WEIGHTS "w float[5,6]", "v float[6,4]"
#define LINE(a, b) \
  { WEIGHTS, "low float[] " a, "wide float[] " b }
#define ON_A_LINE                                                                  \
  {                                                                                \
    "Sub d x low -> a", "Mul f a wide -> b", "MatMul m b w -> c", "Tanh t c -> e", \
        "MatMul n e v -> y", NULL,                                                 \
  }
#define STEEP                                                                                     \
  {                                                                                               \
    "MatMul m x w -> a", "Mul p a k1 -> b", "Tanh s b -> c", "Add j c a -> d", "Mul q d k2 -> e", \
        "Tanh t e -> f", "MatMul n f v -> y", NULL,                                               \
  }
#define NOT_STEEP \
  { "MatMul m x w -> a", "Tanh s a -> c", "Add j c a -> d", "Tanh t d -> f", "MatMul n f v -> y" }
#define LIMITED                                                                                 \
  {                                                                                             \
    "MatMul m x w -> a", "Clip s a low high -> b", "Mul p b k1 -> c", "Clip t c low high -> d", \
        "MatMul n d v -> y"                                                                     \
  }

static const row_t numbers[] = {
    {{"range of colours", 18, {"x float[7,5]"}, LINE("0.3", "1.7"), ON_A_LINE, "y"},
     {"wrong", 18, {"x float[7,5]"}, LINE("0", "1"), ON_A_LINE, "y"},
     {"d", "f"}},
    {{"steepness", 18, {"x float[7,5]"}, {WEIGHTS, "k1 float[] 0.5", "k2 float[] 1.6"}, STEEP, "y"},
     {"wrong", 18, {"x float[7,5]"}, {WEIGHTS, "k1 float[] 0.5", "k2 float[] 1.6"}, NOT_STEEP, "y"},
     {"s", "t"}},
    // What no numbers explain.
    {{"another function",
      18,
      {"x float[7,5]"},
      {WEIGHTS, "low float[] 0.3", "wide float[] 1.7"},
      {"Sub d x low -> a", "Mul f a wide -> b", "MatMul m b w -> c", "Sin t c -> e",
       "MatMul n e v -> y"},
      "y"},
     {"wrong", 18, {"x float[7,5]"}, LINE("0.3", "1.7"), ON_A_LINE, "y"},
     {NULL}},
};

static const row_t limits[] = {
    {{"limits of two",
      18,
      {"x float[19,5]"},
      {WEIGHTS, "low float[] -2", "high float[] 3", "k1 float[] 1.5"},
      LIMITED,
      "y"},
     {"wrong",
      18,
      {"x float[19,5]"},
      {WEIGHTS, "low float[] -1", "high float[] 1", "k1 float[] 1.5"},
      LIMITED,
      "y"},
     {"s", "t"}},
    // As attributes.
    {{"limits of an older version",
      10,
      {"x float[19,5]"},
      {WEIGHTS},
      {"MatMul m x w -> a", "Clip s a -> b | min=0.0 max=6.0", "MatMul n b v -> y"},
      "y"},
     {"wrong",
      10,
      {"x float[19,5]"},
      {WEIGHTS},
      {"MatMul m x w -> a", "Clip s a -> b | min=-1.0 max=1.0", "MatMul n b v -> y"},
      "y"},
     {"s"}},
    {{"no usual limits",
      18,
      {"x float[19,5]"},
      {WEIGHTS, "low float[] -1.37", "high float[] 2.21", "k1 float[] 1.5"},
      LIMITED,
      "y"},
     {"wrong",
      18,
      {"x float[19,5]"},
      {WEIGHTS, "low float[] -1", "high float[] 1", "k1 float[] 1.5"},
      LIMITED,
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

static void check_row(const row_t* row, bool of_limits) {
  static assay_fault_t faults[ASSAY_SEARCH_FAULTS];
  search_case_t c;
  assay_trials_t trials;
  assay_surroundings_t around;
  size_t n = 0, want = 0;
  const double end = assay_clock_seconds() + 20;
  while (want < 4 && row->nodes[want]) want++;
  search_case_init(&row->wrong, &row->right, &c);
  c.targets[0].explained_rms = 1e-6;
  c.targets[0].explained_max = 1e-5;
  op_case_ok(assay_trials_init(&c.search, &trials));
  op_case_ok(assay_surroundings_init(c.search.model, c.search.evaluator, NULL, &around));
  if (of_limits)
    op_case_ok(assay_search_limits(&trials, end, faults, &n));
  else
    op_case_ok(assay_search_numbers(&trials, &around, end, faults, &n));
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

static void several_numbers_are_fitted(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) check_row(&numbers[i], false);
}

static void limits_are_found(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) check_row(&limits[i], true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(several_numbers_are_fitted),
      cmocka_unit_test(limits_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
