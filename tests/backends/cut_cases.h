// Small models in which knowing a size when a plan is built lets more be fused, folded or left out:
// two batches that broadcast, shapes that are computed, numbers that follow from sizes. Rows as
// those of random graphs.
#ifndef ASSAY_TESTS_BACKENDS_CUT_CASES_H_
#define ASSAY_TESTS_BACKENDS_CUT_CASES_H_

#include "backends/random_graph.h"

typedef struct cut_case {
  const char *inputs[3], *constants[7], *nodes[24], *output;
  int rows;  // where samples lie in the output
} cut_case_t;

static const cut_case_t cut_cases[] = {
    // images and masks of batches of their own, a gate, sums over residuals
    {{"x0 float[N,3,12,12] normal 1", "x1 float[M,1,12,12] normal 1"},
     {"w float[8,4,3,3] normal 0.2", "b float[8] normal 0.2", "v float[3,8,3,3] normal 0.2",
      "s float[] = 0.3", "one int64[1] = 1", "c int64[1] = 3", "g float[3,3,1,1] normal 0.5"},
     {"Mul n0 x0 s -> a",
      "Add n1 a s -> d",
      "Shape n2 x0 -> sh",
      "Slice n3 sh sl0 sl1 -> nn",
      "Concat n4 nn one sl2 sl2 -> to | axis=0",
      "Expand n5 x1 to -> m",
      "Mul n6 d m -> e",
      "Concat n7 e m -> f | axis=1",
      "Conv n8 f w b -> h | pads=1,1,1,1",
      "Sigmoid n9 h -> hs",
      "Mul n10 h hs -> i",
      "Conv n11 i v -> j | pads=1,1,1,1",
      "Add n12 j x0 -> k",
      "GlobalAveragePool n13 k -> p",
      "Conv n14 p g -> q",
      "Sigmoid n15 q -> t",
      "Mul n16 k t -> u",
      "Mul n17 u x1 -> u1",
      "Add n18 u1 s -> u2",
      "Add n19 u2 e -> u3",
      "Mul n20 u3 m -> u4",
      "Conv n21 u4 g -> o",
      "Add n22 o x0 -> y"},
     "y",
     0},
    // a chain over two batches without any Expand
    {{"x0 float[N,4,9] normal 1", "x1 float[M,4,9] normal 1"},
     {"s float[9] normal 1", "w float[9,9] normal 0.3"},
     {"Add n0 x0 s -> a", "Mul n1 a x1 -> b", "Tanh n2 b -> c", "Sub n3 c x0 -> d",
      "Mul n4 d s -> e", "MatMul n5 e w -> f", "Add n6 f x1 -> h", "Sigmoid n7 h -> y"},
     "y",
     0},
    // scores scaled by the root of a size that is open, positions along it
    {{"x0 float[N,L,8] normal 1"},
     {"i1 int64[] = 1", "z int64[] = 0", "ax int64[1] = -1", "w float[8,8] normal 0.4"},
     {"Shape n0 x0 -> sh", "Gather n1 sh i1 -> len | axis=0", "Cast n2 len -> lf | to=1",
      "Sqrt n3 lf -> root", "Log n4 lf -> low", "Mul n5 root low -> scale",
      "Transpose n6 x0 -> xt | perm=0,2,1", "MatMul n7 x0 xt -> sc", "Div n8 sc scale -> sd",
      "Softmax n9 sd -> p | axis=-1", "MatMul n10 p x0 -> q", "Range n11 z len i1 -> at",
      "Cast n12 at -> af | to=1", "Sin n13 af -> wave", "Unsqueeze n14 wave ax -> wu",
      "Add n15 q wu -> r", "MatMul n16 r w -> y"},
     "y",
     0},
    // states of zeros in the shape of the batch
    {{"x0 float[N,6,10] normal 1"},
     {"w float[1,32,10] normal 0.3", "r float[1,32,8] normal 0.3", "one int64[1] = 1",
      "hid int64[1] = 8", "k float[] = 0.7"},
     {"Transpose n0 x0 -> t | perm=1,0,2", "Shape n1 t -> sh", "Slice n2 sh sl1 sl3 -> nn",
      "Concat n3 one nn hid -> to | axis=0", "ConstantOfShape n4 to -> zero", "Add n5 zero k -> zk",
      "Cos n6 zk -> st", "LSTM n7 t w r _ _ st st -> h | hidden_size=8", "Squeeze n8 h one -> hq",
      "Mul n9 hq k -> hm", "Tanh n10 hm -> y"},
     "y",
     1},
    // a size that no expression says: the floor of three quarters of an open one
    {{"x0 float[N,3,L,12] normal 1"},
     {"w float[8,3,3,3] normal 0.3", "v float[4,8,3,3] normal 0.3", "k float[] = 0.75",
      "two int64[1] = 2", "three int64[1] = 3", "four int64[1] = 4"},
     {"Conv n0 x0 w -> h | pads=1,1,1,1", "Relu n1 h -> r", "Shape n2 r -> sh",
      "Slice n3 sh two three -> len", "Cast n4 len -> lf | to=1", "Mul n5 lf k -> lk",
      "Floor n6 lk -> fl", "Cast n7 fl -> li | to=7", "Slice n8 sh sl0 two -> nc",
      "Slice n9 sh three four -> wd", "Concat n10 nc li wd -> to | axis=0",
      "Resize n11 r _ _ to -> s | mode=linear", "Conv n12 s v -> c | pads=1,1,1,1",
      "Sigmoid n13 c -> g", "Mul n14 c g -> y"},
     "y",
     0},
    // windows of a rolled image, cut and joined, their number and the batch computed
    {{"x0 float[N,8,12,16] normal 1"},
     {"s float[16] normal 1", "w float[16,16] normal 0.3", "k int64[5] = 2 4 3 4 16",
      "v int64[3] = -1 16 16", "u int64[5] = 2 3 4 4 16", "i int64[3] = 8 12 16",
      "r int64[2] = 3 5"},
     {"Shape n0 x0 -> sh", "Slice n1 sh sl0 sl1 -> nn", "LayerNormalization n2 x0 s -> a",
      "Split n3 a r -> a1 a2 | axis=1", "Concat n4 a2 a1 -> b | axis=1",
      "Concat n5 nn k -> to | axis=0", "Reshape n6 b to -> c",
      "Transpose n7 c -> d | perm=0,1,3,2,4,5", "Reshape n8 d v -> e", "MatMul n9 e w -> f",
      "Concat n10 nn u -> back | axis=0", "Reshape n11 f back -> g",
      "Transpose n12 g -> h | perm=0,1,3,2,4,5", "Concat n13 nn i -> all | axis=0",
      "Reshape n14 h all -> j", "Split n15 j r -> j1 j2 | axis=1", "Concat n16 j2 j1 -> o | axis=1",
      "Add n17 o x0 -> p", "Tanh n18 p -> y"},
     "y",
     0},
    // to the shape that it has, and a concatenation of one
    {{"x0 float[N,5,7] normal 1", "x1 float[M,1,7] normal 1"},
     {"s float[7] normal 1"},
     {"Shape n0 x0 -> sh", "Mul n1 x0 s -> a", "Expand n2 a sh -> b", "Concat n3 b -> c | axis=0",
      "Add n4 c x1 -> d", "Expand n5 x1 sh -> e", "Mul n6 d e -> f", "Add n7 f s -> y"},
     "y",
     0},
};
enum { CUT_CASES = sizeof cut_cases / sizeof *cut_cases };

// Places for slices, which every case may name.
static const char* const cut_places[] = {"sl0 int64[1] = 0", "sl1 int64[1] = 1",
                                         "sl2 int64[1] = 12", "sl3 int64[1] = 2"};

// A case as a graph; its number counts from 0.
static void cut_case_make(random_graph_t* g, int number) {
  const cut_case_t* c = &cut_cases[number];
  int n = 0;
  *g = (random_graph_t){.number = (uint64_t)number, .opset = 17, .n_outputs = 1};
  for (; g->n_inputs < 3 && c->inputs[g->n_inputs]; g->n_inputs++)
    snprintf(g->inputs[g->n_inputs], RANDOM_GRAPH_TEXT, "%s", c->inputs[g->n_inputs]);
  for (; n < 7 && c->constants[n]; n++)
    snprintf(g->constants[n], RANDOM_GRAPH_TEXT, "%s", c->constants[n]);
  for (size_t i = 0; i < sizeof cut_places / sizeof *cut_places; i++)
    snprintf(g->constants[n++], RANDOM_GRAPH_TEXT, "%s", cut_places[i]);
  g->n_constants = n;
  for (; g->n_nodes < 24 && c->nodes[g->n_nodes]; g->n_nodes++)
    snprintf(g->nodes[g->n_nodes], RANDOM_GRAPH_TEXT, "%s", c->nodes[g->n_nodes]);
  snprintf(g->values[0].name, sizeof g->values[0].name, "%s", c->output);
  g->values[0].rows = c->rows;
}

#endif  // ASSAY_TESTS_BACKENDS_CUT_CASES_H_
