// What golden that was printed leaves open is not a fault, behind nodes that make much of it; what
// is more than that is one; and any allocation on the way may fail. The same of operators on
// quantized numbers that are written out.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "diagnose/chain.h"
#include "diagnose/quantizers/quantizers.h"
#include "diagnose/search_case.h"

static const graph_case_t network = {
    "gates",
    17,
    {"x float[6,5]"},
    {"w float[5,7]", "one float[] 1", "v float[7,4]"},
    {"MatMul product x w -> a", "Sigmoid gate a -> b", "Sub rest one b -> c", "Log log c -> d",
     "Div odds b c -> e", "MatMul mixed d v -> f", "ArgMax best f -> g | axis=1 keepdims=0",
     "Add sum d e -> y"},
    "y"};

// Truth of every value, printed with four digits.
static assay_set_t printed(const assay_model_t* m, assay_tensor_t* const* in) {
  assay_evaluator_t* evaluator = search_case_truth(m, in);
  assay_set_t set = {0};
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    const assay_value_t* v = m->graph->nodes[i]->outputs[0];
    assay_tensor_t* t = NULL;
    op_case_ok(assay_tensor_copy(assay_evaluator_get(evaluator, v), &t));
    for (int64_t k = 0; t->store == ASSAY_STORE_F64 && k < t->size; k++) {
      char text[64];
      snprintf(text, sizeof text, "%.4g", assay_f64(t)[k]);
      assay_f64(t)[k] = (double)(float)strtod(text, NULL);
    }
    op_case_ok(assay_set_add(&set, v->name, t));
  }
  assay_evaluator_destroy(evaluator);
  return set;
}

// The first fault of a network held against golden of another one; NULL: there is none. n: which
// allocation fails; 0: none.
static bool hold(const graph_case_t* given, uint64_t n, char* out_node, bool* out_reached) {
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *again[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* right = graph_case_model(&network, in);
  assay_model_t* m = graph_case_model(given, again);
  assay_set_t set = printed(right, in);
  const assay_export_options_t options = {.no_search = true};
  const assay_samples_t samples = {.n = 1, .n_values = m->graph->n_inputs, .at = again};
  assay_golden_t golden = {0};
  assay_export_t e = {0};
  op_case_ok(assay_golden_match(&set, m, NULL, &golden));
  const int64_t live = assay_alloc_live();
  assay_alloc_fail_after(n, false);
  assay_status_t st = assay_chain_run(m, &samples, &golden, &options, &e);
  *out_reached = assay_alloc_fail_after(0, false) >= n;
  if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
  if (!n) op_case_ok(st);
  const bool any = !st && e.n > 0;
  if (any) snprintf(out_node, 64, "%s", e.faults[0].node->label);
  assay_status_free(st);
  assay_export_deinit(&e);
  if (assay_alloc_live() != live) fail_msg("allocation %d: something is left", (int)n);
  assay_golden_deinit(&golden);
  assay_set_deinit(&set);
  assay_model_release(right);
  assay_model_release(m);
  graph_case_release(in);
  graph_case_release(again);
  return any;
}

static void what_is_open_is_not_a_fault(void** state) {
  (void)state;
  char node[64] = "";
  bool reached = false;
  graph_case_t wrong = network;
  if (hold(&network, 0, node, &reached)) fail_msg("an alarm at %s", node);
  wrong.constants[1] = "one float[] 1.01";
  if (!hold(&wrong, 0, node, &reached)) fail_msg("a hundredth is excused");
  assert_string_equal(node, "rest");
  wrong = network;
  wrong.nodes[3] = "Neg log c -> d";
  if (!hold(&wrong, 0, node, &reached)) fail_msg("another operator is excused");
  assert_string_equal(node, "log");
}

static void allocations_may_fail(void** state) {
  (void)state;
  char node[64];
  bool reached = true;
  graph_case_t wrong = network;
  wrong.constants[1] = "one float[] 1.01";
  for (uint64_t n = 1; reached; n += 1 + n / 40) hold(&wrong, n, node, &reached);
}

// ---- operators on quantized numbers
// --------------------------------------------------------------

static const graph_case_t quantized = {
    "quantized",
    17,
    {"x float[2,3,4,4]"},
    {"s float[] 0.02", "z int8[] 0", "w int8[4,3,1,1] 90 -30 20 7 55 -80 33 21 -9 100 -64 3",
     "ws float[4] 0.01 0.02 0.005 0.01", "wz int8[4] 0 0 0 0", "b int32[4] 100 -200 50 0",
     "r float[] 0.03"},
    {"QuantizeLinear in x s z -> a", "QLinearConv conv a s z w ws wz r z b -> c",
     "DequantizeLinear out c r z -> y"},
    "y"};

static void quantizers_are_written_out(void** state) {
  (void)state;
  bool reached = true;
  for (uint64_t n = 0; reached; n += 1 + n / 40) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&quantized, in);
    assay_quantizers_t q = {0};
    const assay_model_t* view = NULL;
    const int64_t live = assay_alloc_live();
    assay_alloc_fail_after(n, false);
    assay_status_t st = assay_quantizers_view(&q, m, &view);
    if (!st) st = assay_quantizers_find(view, true, &q);
    reached = assay_alloc_fail_after(0, false) >= n || !n;
    if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    if (!n) {
      op_case_ok(st);
      assert_int_equal(q.n, 4);  // of the input, the weight, the bias, the result
      assay_evaluator_t *e = search_case_truth(m, in), *f = search_case_truth(view, in);
      if (!op_case_same(assay_evaluator_get(e, m->graph->outputs[0]),
                        assay_evaluator_get(f, view->graph->outputs[0])))
        fail_msg("written out, it gives something else");
      assay_evaluator_destroy(e);
      assay_evaluator_destroy(f);
    }
    assay_status_free(st);
    assay_quantizers_deinit(&q);
    if (n && assay_alloc_live() != live) fail_msg("allocation %d: something is left", (int)n);
    assay_model_release(m);
    graph_case_release(in);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_open_is_not_a_fault),
                                     cmocka_unit_test(allocations_may_fail),
                                     cmocka_unit_test(quantizers_are_written_out)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
