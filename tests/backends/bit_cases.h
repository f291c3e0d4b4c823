// Layers of the sizes that networks have, where libraries choose by size: long sums, few rows, few
// places, many channels, depthwise, and batches small and large. Rows as those of random graphs.
#ifndef ASSAY_TESTS_BACKENDS_BIT_CASES_H_
#define ASSAY_TESTS_BACKENDS_BIT_CASES_H_

#include "backends/random_graph.h"

typedef struct bit_case {
  const char *input, *constants[4], *nodes[6], *output;
} bit_case_t;

static const bit_case_t bit_cases[] = {
    // rows of a product: the batch is their number
    {"x0 float[N,512] normal 1", {"w float[512,10] normal 0.05"}, {"MatMul n0 x0 w -> y"}, "y"},
    {"x0 float[N,2048] normal 1",
     {"w float[1000,2048] normal 0.02", "b float[1000] normal 0.2"},
     {"Gemm n0 x0 w b -> y | transB=1"},
     "y"},
    {"x0 float[N,8192] normal 1", {"w float[8192,16] normal 0.01"}, {"MatMul n0 x0 w -> y"}, "y"},
    {"x0 float[N,25088] normal 1", {"w float[25088,32] normal 0.01"}, {"MatMul n0 x0 w -> y"}, "y"},
    {"x0 float[N,301] normal 1", {"w float[301,1] normal 0.05"}, {"MatMul n0 x0 w -> y"}, "y"},
    {"x0 float[N,64] normal 1", {"w float[64,4096] normal 0.1"}, {"MatMul n0 x0 w -> y"}, "y"},
    {"x0 float[N,7,384] normal 1",
     {"w float[384,1536] normal 0.05", "b float[1536] normal 0.1"},
     {"MatMul n0 x0 w -> a", "Add n1 a b -> y"},
     "y"},
    {"x0 float[N,49,96] normal 1", {"w float[96,96] normal 0.1"}, {"MatMul n0 x0 w -> y"}, "y"},
    {"x0 float[N,197,64] normal 1",
     {"s float[] = 0.125"},
     {"Transpose n0 x0 -> t | perm=0,2,1", "MatMul n1 x0 t -> a", "Mul n2 a s -> b",
      "Softmax n3 b -> p | axis=-1", "MatMul n4 p x0 -> y"},
     "y"},
    {"x0 float[N,4,31,32] normal 1",
     {NULL},
     {"Transpose n0 x0 -> t | perm=0,1,3,2", "MatMul n1 x0 t -> a", "Softmax n2 a -> p",
      "MatMul n3 p x0 -> y"},
     "y"},
    // convolutions
    {"x0 float[N,3,65,65] normal 1",
     {"w float[32,3,7,7] normal 0.1"},
     {"Conv n0 x0 w -> y | strides=2,2 pads=3,3,3,3"},
     "y"},
    {"x0 float[N,64,28,28] normal 1",
     {"w float[64,64,3,3] normal 0.05", "b float[64] normal 0.1"},
     {"Conv n0 x0 w b -> a | pads=1,1,1,1", "Relu n1 a -> c", "Add n2 c x0 -> y"},
     "y"},
    {"x0 float[N,512,7,7] normal 1",
     {"w float[512,512,3,3] normal 0.02"},
     {"Conv n0 x0 w -> y | pads=1,1,1,1"},
     "y"},
    {"x0 float[N,512,4,4] normal 1",
     {"w float[2048,512,1,1] normal 0.04"},
     {"Conv n0 x0 w -> y"},
     "y"},
    {"x0 float[N,256,14,14] normal 1",
     {"w float[64,256,1,1] normal 0.06"},
     {"Conv n0 x0 w -> y"},
     "y"},
    {"x0 float[N,640,1,1] normal 1",
     {"w float[40,640,1,1] normal 0.04"},
     {"Conv n0 x0 w -> y"},
     "y"},
    {"x0 float[N,96,28,28] normal 1",
     {"w float[96,1,5,5] normal 0.2"},
     {"Conv n0 x0 w -> a | group=96 pads=2,2,2,2", "HardSwish n1 a -> y"},
     "y"},
    {"x0 float[N,64,20,20] normal 1",
     {"w float[64,8,3,3] normal 0.1"},
     {"Conv n0 x0 w -> y | group=8 pads=1,1,1,1"},
     "y"},
    {"x0 float[N,31,17,17] normal 1",
     {"w float[33,31,3,3] normal 0.06"},
     {"Conv n0 x0 w -> y | pads=1,1,1,1 dilations=1,1"},
     "y"},
    {"x0 float[N,16,200] normal 1",
     {"w float[32,16,9] normal 0.1"},
     {"Conv n0 x0 w -> y | pads=4,4"},
     "y"},
    {"x0 float[N,8,8,12,12] normal 1",
     {"w float[16,8,3,3,3] normal 0.1"},
     {"Conv n0 x0 w -> y | pads=1,1,1,1,1,1"},
     "y"},
    {"x0 float[N,64,9,9] normal 1",
     {"w float[64,32,2,2] normal 0.1"},
     {"ConvTranspose n0 x0 w -> y | strides=2,2"},
     "y"},
    // sums over axes, poolings
    {"x0 float[N,512,7,7] normal 1", {NULL}, {"GlobalAveragePool n0 x0 -> y"}, "y"},
    {"x0 float[N,40,33,33] normal 1", {NULL}, {"AveragePool n0 x0 -> y | kernel_shape=3,3"}, "y"},
    {"x0 float[N,40,33,33] normal 1",
     {NULL},
     {"MaxPool n0 x0 -> y | kernel_shape=3,3 strides=2,2"},
     "y"},
    {"x0 float[N,50,768] normal 1",
     {"s float[768] range 0.5 1.5", "b float[768] normal 0.2"},
     {"LayerNormalization n0 x0 s b -> y"},
     "y"},
    {"x0 float[N,6,40000] normal 1", {NULL}, {"ReduceMean n0 x0 -> y | axes=-1"}, "y"},
    {"x0 float[N,32,24,24] normal 1",
     {"s float[32] range 0.5 1.5", "b float[32] normal 0.2"},
     {"InstanceNormalization n0 x0 s b -> y"},
     "y"},
    {"x0 float[N,100,1000] normal 1", {NULL}, {"Softmax n0 x0 -> y"}, "y"},
    {"x0 float[N,32,40,40] normal 1", {NULL}, {"Sigmoid n0 x0 -> a", "Mul n1 x0 a -> y"}, "y"},
    {"x0 float[N,24,48] normal 1",
     {"w float[1,256,48] normal 0.1", "r float[1,256,64] normal 0.1", "b float[1,512] normal 0.1"},
     {"Transpose n0 x0 -> t | perm=1,0,2", "LSTM n1 t w r b -> h | hidden_size=64",
      "Transpose n2 h -> y | perm=2,0,1,3"},
     "y"},
};
enum { BIT_CASES = sizeof bit_cases / sizeof *bit_cases };

static void copy_rows(const char* const* rows, int max, char to[][RANDOM_GRAPH_TEXT], int* n) {
  for (*n = 0; *n < max && rows[*n]; ++*n) snprintf(to[*n], RANDOM_GRAPH_TEXT, "%s", rows[*n]);
}

// A case as a graph; its number counts from 0.
static void bit_case_make(random_graph_t* g, int number) {
  const bit_case_t* c = &bit_cases[number];
  *g = (random_graph_t){.number = (uint64_t)number, .opset = 17, .n_inputs = 1, .n_outputs = 1};
  snprintf(g->inputs[0], sizeof g->inputs[0], "%s", c->input);
  copy_rows(c->constants, 4, g->constants, &g->n_constants);
  copy_rows(c->nodes, 6, g->nodes, &g->n_nodes);
  snprintf(g->values[0].name, sizeof g->values[0].name, "%s", c->output);
}

#endif  // ASSAY_TESTS_BACKENDS_BIT_CASES_H_
