// Halves of a quantized tensor that are multiplied are one layer, and the layer tells what it is.
#include "passes/edit.h"
#include "passes/int8/quantized_gate.h"
#include "passes/read_case.h"

#define PASS "quantized_gates"

typedef struct gate_case {
  const char* reads;  // what assay_quantized_gate_read says; "": there is no layer
  graph_case_t graph;
} gate_case_t;

#define X \
  { "x float[2,8,3,5]" }
#define CONSTANTS                                                                                 \
  {                                                                                               \
    "s float[] 0.02", "z uint8[] 120", "s2 float[] 0.03", "zi int8[] -3", "four int64[2] 4 4",    \
        "uneven int64[2] 2 6", "one float[4,1,1]", "sc float[4] positive", "zc uint8[4] 1 2 3 4", \
        "ones int64[2] 1 1"                                                                       \
  }
#define FRONT "QuantizeLinear q0 x s z -> xq"
#define HALVES "Split h xq four -> aq bq | axis=1"
#define BACK "DequantizeLinear d1 aq s z -> a", "DequantizeLinear d2 bq s2 z -> b"
#define END "QuantizeLinear q1 m s2 zi -> y"

static const gate_case_t cases[] = {
    {"axis 1, 0.02 0.03",
     {"a gate of channels", 13, X, CONSTANTS, {FRONT, HALVES, BACK, "Mul m a b -> m", END}, "y"}},
    {"axis 1, 0.02 0.03",
     {"the other half first, dequantized first",
      13,
      X,
      CONSTANTS,
      {FRONT, HALVES, "DequantizeLinear d2 bq s2 z -> b", "DequantizeLinear d1 aq s z -> a",
       "Mul m b a -> m", END},
      "y"}},
    {"axis 0, 0.02 0.03",
     {"a gate of samples, split in halves by itself",
      13,
      X,
      CONSTANTS,
      {FRONT, "Split h xq -> aq bq | axis=-4", BACK, "Mul m a b -> m", END},
      "y"}},
    {"", {"a sum", 13, X, CONSTANTS, {FRONT, HALVES, BACK, "Add m a b -> m", END}, "y"}},
    {"",
     {"one half twice",
      13,
      X,
      CONSTANTS,
      {FRONT, HALVES, "DequantizeLinear d1 aq s z -> a", "DequantizeLinear d2 aq s2 z -> b",
       "Mul m a b -> m", END, "DequantizeLinear d3 bq s z -> w"},
      "y w"}},
    {"",
     {"one half is read by others",
      13,
      X,
      CONSTANTS,
      {FRONT, HALVES, BACK, "Mul m a b -> m", END, "DequantizeLinear d3 bq s z -> w"},
      "y w"}},
    {"",
     {"the product is an output",
      13,
      X,
      CONSTANTS,
      {FRONT, HALVES, BACK, "Mul m a b -> m", END},
      "y m"}},
    {"",
     {"nothing quantizes the product",
      13,
      X,
      CONSTANTS,
      {FRONT, HALVES, BACK, "Mul y a b -> y"},
      "y"}},
    {"",
     {"three parts",
      13,
      {"x float[2,12,3,5]"},
      {"s float[] 0.02", "z uint8[] 120", "s2 float[] 0.03", "zi int8[] -3", "n int64[3] 4 4 4"},
      {FRONT, "Split h xq n -> aq bq cq | axis=1", BACK, "Mul m a b -> m", END,
       "DequantizeLinear d3 cq s z -> w"},
      "y w"}},
    {"",
     {"parts that are not halves, broadcast",
      13,
      {"x float[2,3,3,5]"},
      {"s float[] 0.02", "z uint8[] 120", "s2 float[] 0.03", "zi int8[] -3", "n int64[2] 1 2"},
      {FRONT, "Split h xq n -> aq bq | axis=1", BACK, "Mul m a b -> m", END},
      "y"}},
    {"",
     {"a scale for each channel",
      13,
      X,
      CONSTANTS,
      {FRONT, HALVES, "DequantizeLinear d1 aq sc zc -> a | axis=1",
       "DequantizeLinear d2 bq s2 z -> b", "Mul m a b -> m", END},
      "y"}},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void read_layer(const assay_rewrite_t* r, char text[READ_CASE_TEXT]) {
  const assay_node_t* nodes[ASSAY_QUANTIZED_GATE_NODES];
  assay_quantized_gate_t g;
  size_t n = 0;
  for (size_t i = 0; i < r->model->graph->n_nodes; i++) {
    const assay_node_t* node = r->model->graph->nodes[i];
    if (r->group_of_node[node->id] < 0) continue;
    assert_true(n < ASSAY_QUANTIZED_GATE_NODES);
    nodes[n++] = node;
  }
  text[0] = 0;
  if (!n) return;
  assert_false(assay_quantized_gate_read(nodes + 1, n - 1, &g));
  assert_true(assay_quantized_gate_read(nodes, n, &g));
  assert_true(g.zero[0] == 120 && g.zero[1] == 120 && g.y_zero == -3 && g.y_scale == 0.03F);
  sprintf(text, "axis %d, %g %g", g.axis, (double)g.scale[0], (double)g.scale[1]);
}

static void forms(void** state) {
  (void)state;
  bool same = true;
  for (size_t i = 0; i < N_CASES; i++)
    same &= reads_as(PASS, &cases[i].graph, cases[i].reads, read_layer);
  assert_true(same);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(forms)};
  return cmocka_run_group_tests_name(PASS, tests, NULL, NULL);
}
