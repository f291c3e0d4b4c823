// Means over places of quantized images are one layer, and the layer tells what it is.
#include "passes/edit.h"
#include "passes/int8/quantized_mean.h"
#include "passes/read_case.h"

#define PASS "quantized_means"

typedef struct mean_case {
  const char* layers;  // how many
  graph_case_t graph;
} mean_case_t;

#define X \
  { "x float[2,8,3,5]" }
#define CONSTANTS                                                                                  \
  {                                                                                                \
    "s float[] 0.02", "z uint8[] 120", "sn float[] 0.003", "zn int8[] -3", "places int64[2] 2 -1", \
        "sc float[8] positive", "zc uint8[8] 1 2 3 4 5 6 7 8"                                      \
  }
#define FRONT "QuantizeLinear q0 x s z -> xq", "DequantizeLinear d0 xq s z -> xf"
#define END "QuantizeLinear q1 m sn zn -> y"

static const mean_case_t cases[] = {
    {"1",
     {"ReduceMean, axes as attribute",
      13,
      X,
      CONSTANTS,
      {FRONT, "ReduceMean m xf -> m | axes=2,3", END},
      "y"}},
    {"1",
     {"axes as input, no dimensions kept",
      18,
      X,
      CONSTANTS,
      {FRONT, "ReduceMean m xf places -> m | keepdims=0", END},
      "y"}},
    {"1",
     {"GlobalAveragePool", 13, X, CONSTANTS, {FRONT, "GlobalAveragePool m xf -> m", END}, "y"}},
    {"1",
     {"a gate reads the image, too",
      13,
      X,
      CONSTANTS,
      {FRONT, "GlobalAveragePool m xf -> m", END, "DequantizeLinear d1 y sn zn -> g",
       "Mul w xf g -> w"},
      "w"}},
    {"2",
     {"two means of one image",
      13,
      X,
      CONSTANTS,
      {FRONT, "GlobalAveragePool m xf -> m", END, "ReduceMean n xf -> n | axes=2,3",
       "QuantizeLinear q2 n s z -> w"},
      "y w"}},
    {"0",
     {"the mean is an output",
      13,
      X,
      CONSTANTS,
      {FRONT, "GlobalAveragePool m xf -> m", END},
      "y m"}},
    {"0",
     {"the mean is read by others",
      13,
      X,
      CONSTANTS,
      {FRONT, "GlobalAveragePool m xf -> m", END, "Relu w m -> w"},
      "y w"}},
    {"0",
     {"over lines only", 13, X, CONSTANTS, {FRONT, "ReduceMean m xf -> m | axes=3", END}, "y"}},
    {"0", {"over all", 13, X, CONSTANTS, {FRONT, "ReduceMean m xf -> m", END}, "y"}},
    {"0", {"the largest", 13, X, CONSTANTS, {FRONT, "GlobalMaxPool m xf -> m", END}, "y"}},
    {"0",
     {"a scale for each channel",
      13,
      X,
      CONSTANTS,
      {"QuantizeLinear q0 x sc zc -> xq | axis=1", "DequantizeLinear d0 xq sc zc -> xf | axis=1",
       "GlobalAveragePool m xf -> m", END},
      "y"}},
    {"0",
     {"floats come in",
      13,
      {"xf float[2,8,3,5]"},
      CONSTANTS,
      {"GlobalAveragePool m xf -> m", END},
      "y"}},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void read_layers(const assay_rewrite_t* r, char text[READ_CASE_TEXT]) {
  snprintf(text, READ_CASE_TEXT, "%d", r->n_groups);
  for (int g = 0; g < r->n_groups; g++) {
    const assay_node_t* nodes[ASSAY_QUANTIZED_MEAN_NODES];
    assay_quantized_mean_t q;
    size_t n = 0;
    for (size_t i = 0; i < r->model->graph->n_nodes; i++) {
      const assay_node_t* node = r->model->graph->nodes[i];
      if (r->group_of_node[node->id] != g) continue;
      assert_true(n < ASSAY_QUANTIZED_MEAN_NODES);
      nodes[n++] = node;
    }
    assert_false(assay_quantized_mean_read(nodes, n - 1, &q));
    assert_true(assay_quantized_mean_read(nodes, n, &q));
    assert_true(q.x_scale == 0.02F && q.x_zero == 120 && q.x_type == ASSAY_TYPE_UINT8);
    assert_true(q.y == nodes[n - 1]->outputs[0]);
  }
}

static void forms(void** state) {
  (void)state;
  bool same = true;
  for (size_t i = 0; i < N_CASES; i++)
    same &= reads_as(PASS, &cases[i].graph, cases[i].layers, read_layers);
  assert_true(same);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(forms)};
  return cmocka_run_group_tests_name(PASS, tests, NULL, NULL);
}
