// A sample's result does not depend on its neighbours in the batch: each sample by itself gives the
// bits that it gives among others, for every tactic.
#include "backends/tactic_case.h"

enum { BATCH = 5 };

// The first dimension of every input is the batch.
static const graph_case_t cases[] = {
    {"conv 3x3",
     17,
     {"x float[5,16,9,9]"},
     {"w float[24,16,3,3]", "b float[24]"},
     {"Conv n x w b -> h", "Relu r h -> y"},
     "y"},
    {"conv 1x1", 17, {"x float[5,64,7,7]"}, {"w float[96,64,1,1]"}, {"Conv n x w -> y"}, "y"},
    {"conv 1x1 of one place",
     17,
     {"x float[5,96,1,1]"},
     {"w float[24,96,1,1]"},
     {"Conv n x w -> y"},
     "y"},
    {"conv with stride",
     17,
     {"x float[5,3,20,20]"},
     {"w float[16,3,7,7]"},
     {"Conv n x w -> y | strides=2,2 pads=3,3,3,3"},
     "y"},
    {"depthwise conv",
     17,
     {"x float[5,40,9,9]"},
     {"w float[40,1,3,3]"},
     {"Conv n x w -> y | group=40 pads=1,1,1,1"},
     "y"},
    {"grouped conv",
     17,
     {"x float[5,32,9,9]"},
     {"w float[32,8,3,3]"},
     {"Conv n x w -> y | group=4 pads=1,1,1,1"},
     "y"},
    {"conv of one dimension",
     17,
     {"x float[5,20,50]"},
     {"w float[32,20,5]"},
     {"Conv n x w -> y | pads=2,2"},
     "y"},
    {"conv in tiles",
     17,
     {"x float[5,48,33,32]"},
     {"w float[64,48,3,3]", "b float[64]"},
     {"Conv n x w b -> h | pads=1,1,1,1", "Relu r h -> y"},
     "y"},
    {"conv in parts",
     17,
     {"x float[5,512,6,6]"},
     {"w float[768,512,1,1]"},
     {"Conv n x w -> h", "Sigmoid r h -> y"},
     "y"},
    {"resize",
     18,
     {"x float[5,6,9,8]"},
     {"s float[4] 1 1 2 3"},
     {"Resize n x _ s -> y | mode=linear"},
     "y"},
    {"a row by weights", 17, {"x float[5,300]"}, {"w float[300,70]"}, {"MatMul n x w -> y"}, "y"},
    {"a long row by weights",
     17,
     {"x float[5,3000]"},
     {"w float[3000,10]"},
     {"MatMul n x w -> y"},
     "y"},
    {"rows by weights",
     17,
     {"x float[5,17,96]"},
     {"w float[96,200]", "b float[200]"},
     {"MatMul n x w -> h", "Add a h b -> y"},
     "y"},
    {"many rows by weights",
     17,
     {"x float[5,128,256]"},
     {"w float[256,256]"},
     {"MatMul n x w -> y"},
     "y"},
    {"rows in chunks by weights from memory",
     20,
     {"x float[5,161,512]"},
     {"w float[512,640]", "b float[640]"},
     {"MatMul n x w -> h", "Add a h b -> s", "Gelu g s -> y"},
     "y"},
    {"a row by weights from memory, columns left over",
     17,
     {"x float[5,960]"},
     {"w float[310,960]", "b float[310]"},
     {"Gemm n x w b -> h | transB=1", "HardSwish r h -> y"},
     "y"},
    {"long sums by weights from memory",
     17,
     {"x float[5,131,1200]"},
     {"w float[1200,260]"},
     {"MatMul n x w -> y"},
     "y"},
    {"Gemm",
     17,
     {"x float[5,130]"},
     {"w float[1000,130]", "b float[1000]"},
     {"Gemm n x w b -> y | transB=1"},
     "y"},
    {"scores", 17, {"q float[5,3,20,64]", "k float[5,3,64,20]"}, {0}, {"MatMul n q k -> y"}, "y"},
    {"values", 17, {"q float[5,3,20,33]", "k float[5,3,33,64]"}, {0}, {"MatMul n q k -> y"}, "y"},
    {"softmax", 17, {"x float[5,7,33]"}, {0}, {"Softmax n x -> y"}, "y"},
    {"norm", 17, {"x float[5,7,33]"}, {"s float[33]"}, {"LayerNormalization n x s -> y"}, "y"},
    {"mean", 17, {"x float[5,7,33]"}, {0}, {"ReduceMean n x -> y | axes=1"}, "y"},
    {"pool", 17, {"x float[5,20,8,8]"}, {0}, {"AveragePool n x -> y | kernel_shape=3,3"}, "y"},
    {"global pool", 17, {"x float[5,20,8,8]"}, {0}, {"GlobalAveragePool n x -> y"}, "y"},
    {"gelu", 20, {"x float[5,77]"}, {0}, {"Gelu n x -> y"}, "y"},
    {"attention",
     23,
     {"q float[5,3,70,16]", "k float[5,3,50,16]", "v float[5,3,50,24]"},
     {0},
     {"Attention n q k v -> y"},
     "y"},
    {"LSTM",
     17,
     {"x float[5,6,20]"},
     {"w float[2,128,20]", "r float[2,128,32]"},
     {"LSTM n x w r -> y | hidden_size=32 direction=bidirectional layout=1"},
     "y"},
};

static assay_model_t* open_model(const graph_case_t* row, assay_tensor_t** in) {
  assay_model_t* m = graph_case_begin(row, in);
  assay_graph_t* g = m->graph;
  for (size_t i = 0; i < g->n_inputs; i++) g->inputs[i]->declared = op_case_type(m, in[i], true);
  for (size_t i = 0; i < GRAPH_CASE_ROWS && row->nodes[i]; i++)
    graph_case_node(g, row->nodes[i], (int)m->opsets[0].version);
  graph_case_outputs(g, row->outputs);
  op_case_ok(assay_onnx_check(m));
  op_case_ok(assay_infer_model(m));
  return m;
}

// Samples [first, first + n) of a tensor.
static assay_tensor_t* samples(const assay_tensor_t* t, int64_t first, int64_t n) {
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* part = NULL;
  memcpy(dims, t->dims, sizeof dims);
  dims[0] = n;
  op_case_ok(assay_tensor_create(t->type, t->rank, dims, &part));
  const int64_t each = t->size / t->dims[0];
  memcpy(part->data, (const char*)t->data + first * each * 8, (size_t)(n * each) * 8);
  return part;
}

static void check(const graph_case_t* row, assay_format_t format, int64_t n) {
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *part[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = open_model(row, in);
  tactic_run_t all, some;
  tactic_case_run(m, "cpu", format, in, &all);
  for (int64_t at = 0; at + n <= BATCH; at += n) {
    for (size_t i = 0; in[i]; i++) part[i] = samples(in[i], at, n);
    tactic_case_run(m, "cpu", format, part, &some);
    assay_tensor_t* want = samples(all.out[0], at, n);
    if (!tactic_case_identical(want, some.out[0]))
      fail_msg("%s, format %d, by %s and %s: samples %lld to %lld have other bits by themselves",
               row->name, (int)format, all.tactic, some.tactic, (long long)at,
               (long long)(at + n - 1));
    assay_tensor_release(want);
    tactic_case_release(&some);
    graph_case_release(part);
    memset(part, 0, sizeof part);
  }
  tactic_case_release(&all);
  graph_case_release(in);
  assay_model_release(m);
}

static void neighbours_do_not_matter(void** state) {
  (void)state;
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t f = 0; f < 3; f++)
      for (int64_t n = 1; n <= 2; n++) check(&cases[i], formats[f], n);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(neighbours_do_not_matter)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
