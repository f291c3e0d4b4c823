// Products with weights of 4 and 8 bits with scales: what takes them, against the emulated engine;
// that rows, sizes that are known or open, and plain products of dequantized weights have the same
// bits; and how many bytes a plan keeps.
#include "backends/tactic_case.h"
#include "runtime/executor.h"

#define NBITS "com.microsoft.MatMulNBits p x w s"

// Numbers of rows on both sides of what is few, columns and sums that fill no panel, no block and
// no group.
static const tactic_case_t products[] = {
    {{"4 bits, the middle, one row",
      17,
      {"x float[1,64]"},
      {"w uint8[96,2,16]", "s float[192]"},
      {NBITS " -> y | K=64 N=96 block_size=32 bits=4"},
      "y"},
     "weight_only",
     1e-5,
     true},
    {{"4 bits, a sum and a block that do not end together, columns of two panels",
      17,
      {"x float[2,3,83]"},
      {"w uint8[70,3,16]", "s float[210] positive", "z uint8[70,2]", "b float[70]"},
      {NBITS " z _ b -> y | K=83 N=70 block_size=32 bits=4"},
      "y"},
     "weight_only",
     1e-5,
     false},
    {{"4 bits, zero points as numbers",
      17,
      {"x float[5,48]"},
      {"w uint8[17,3,8]", "s float[51]", "z float[51]"},
      {NBITS " z -> y | K=48 N=17 block_size=16 bits=4"},
      "y"},
     "weight_only",
     1e-5,
     false},
    {{"4 bits, a block longer than what is made at a time, many rows",
      17,
      {"x float[250,600]"},
      {"w uint8[65,3,128]", "s float[195]", "z uint8[65,2]"},
      {NBITS " z -> h | K=600 N=65 block_size=256 bits=4", "Relu r h -> y"},
      "y"},
     "weight_only",
     1e-5,
     false},
    {{"8 bits, the middle",
      17,
      {"x float[3,83]"},
      {"w uint8[70,6,16]", "s float[420]"},
      {NBITS " -> y | K=83 N=70 block_size=16 bits=8"},
      "y"},
     "weight_only",
     1e-5,
     true},
    {{"8 bits, zero points, a residual sum behind",
      17,
      {"x float[7,160]", "r float[7,33]"},
      {"w uint8[33,2,128]", "s float[66]", "z uint8[33,2]"},
      {NBITS " z -> h | K=160 N=33 block_size=128 bits=8", "Add a h r -> y"},
      "y"},
     "weight_only",
     1e-5,
     false},
    {{"8 bits, zero points as numbers",
      17,
      {"x float[2,32]"},
      {"w uint8[5,1,32]", "s float[5]", "z float[5] 3 100.5 128 0 255"},
      {NBITS " z -> y | K=32 N=5 block_size=32 bits=8"},
      "y"},
     "weight_only",
     1e-5,
     false},
    {{"not: 2 bits",
      17,
      {"x float[3,32]"},
      {"w uint8[5,1,8]", "s float[5]"},
      {NBITS " -> y | K=32 N=5 block_size=32 bits=2"},
      "y"},
     "emu",
     1e-5,
     false},
    {{"not: groups in another order",
      17,
      {"x float[3,32]"},
      {"w uint8[2,2,8]", "s float[4]",
       "g int32[32] 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"},
      {NBITS " _ g -> y | K=32 N=2 block_size=16 bits=4"},
      "y"},
     "emu",
     1e-5,
     false},
    {{"not: a zero point that float32 cannot hold beside codes as they are packed",
      17,
      {"x float[2,32]"},
      {"w uint8[2,1,32]", "s float[2]", "z float[2] 0.1 0.0001"},
      {NBITS " z -> y | K=32 N=2 block_size=32 bits=8"},
      "y"},
     "emu",
     1e-5,
     false},
    {{"int8, one scale",
      13,
      {"x float[1,3,77]"},
      {"w int8[77,100]", "s float[] 0.02"},
      {"DequantizeLinear d w s -> f", "MatMul m x f -> y"},
      "y"},
     "weight_only",
     1e-5,
     true},
    {{"int8, a scale for each column, through a Transpose",
      14,
      {"x float[9,77]"},
      {"w int8[100,77]", "s float[100]", "z int8[100]", "b float[100]"},
      {"DequantizeLinear d w s z -> f | axis=0", "Transpose t f -> g | perm=1,0",
       "MatMul m x g -> h", "Add a h b -> k", "HardSwish e k -> y"},
      "y"},
     "weight_only",
     1e-5,
     false},
    {{"uint8, Gemm the other way round, with a bias",
      13,
      {"x float[4,50]"},
      {"w uint8[30,50]", "s float[30]", "z uint8[30]", "b float[30]"},
      {"DequantizeLinear d w s z -> f | axis=0", "Gemm g x f b -> h | transB=1", "Tanh t h -> y"},
      "y"},
     "weight_only",
     1e-5,
     false},
    {{"uint8 without zero points",
      13,
      {"x float[4,50]"},
      {"w uint8[50,30]", "s float[30]"},
      {"DequantizeLinear d w s -> f | axis=1", "Gemm g x f -> y"},
      "y"},
     "weight_only",
     1e-5,
     false},
    {{"int4 in blocks that do not divide, of a length that is not a multiple of 8",
      21,
      {"x float[2,70]"},
      {"w int4[70,40]", "s float[4,40]", "z int4[4,40]"},
      {"DequantizeLinear d w s z -> f | axis=0 block_size=20", "MatMul m x f -> y"},
      "y"},
     "weight_only",
     1e-5,
     true},
    {{"uint4 in blocks, the other way round, many rows",
      21,
      {"x float[20,96]"},
      {"w uint4[66,96]", "s float[66,3]", "z uint4[66,3]"},
      {"DequantizeLinear d w s z -> f | axis=1 block_size=32", "Transpose t f -> g",
       "MatMul m x g -> h", "Sigmoid a h -> b", "Mul c h b -> y"},
      "y"},
     "weight_only",
     1e-5,
     false},
    {{"int4, one zero point for all",
      21,
      {"x float[3,64]"},
      {"w int4[64,64]", "s float[] 0.1", "z int4[] -3"},
      {"DequantizeLinear d w s z -> f", "MatMul m x f -> y"},
      "y"},
     "weight_only",
     1e-5,
     false},
    {{"not: a scale for each row of the weights",
      13,
      {"x float[3,64]"},
      {"w int8[64,33]", "s float[64]"},
      {"DequantizeLinear d w s -> f | axis=0", "MatMul m x f -> y"},
      "y"},
     "gemm_activations|onednn",
     1e-5,
     false},
    {{"not: blocks of 8",
      21,
      {"x float[3,64]"},
      {"w int8[64,33]", "s float[8,33]"},
      {"DequantizeLinear d w s -> f | axis=0 block_size=8", "MatMul m x f -> y"},
      "y"},
     "gemm_activations|onednn",
     1e-5,
     false},
};

static void kernels(void** state) {
  (void)state;
  tactic_case_all(products, sizeof products / sizeof *products);
}

static void results_are_bounded(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&products[i].graph, in);
    tactic_case_judge(&products[i], ASSAY_FP32_TIGHT, m, ASSAY_FORMAT_FP32, in);
    graph_case_release(in);
    assay_model_release(m);
  }
}

// ---- bits ---------------------------------------------------------------------------------------

static assay_model_t* model_of(const graph_case_t* row, assay_tensor_t** in, bool open) {
  assay_model_t* m = graph_case_begin(row, in);
  assay_graph_t* g = m->graph;
  for (size_t i = 0; open && i < g->n_inputs; i++)
    g->inputs[i]->declared = op_case_type(m, in[i], true);
  for (size_t i = 0; i < GRAPH_CASE_ROWS && row->nodes[i]; i++)
    graph_case_node(g, row->nodes[i], (int)m->opsets[0].version);
  graph_case_outputs(g, row->outputs);
  op_case_ok(assay_onnx_check(m));
  op_case_ok(assay_infer_model(m));
  return m;
}

// Rows [0, n) of a tensor of two dimensions.
static assay_tensor_t* first_rows(const assay_tensor_t* t, int64_t n) {
  const int64_t dims[2] = {n, t->dims[1]};
  assay_tensor_t* part = NULL;
  op_case_ok(assay_tensor_create(t->type, 2, dims, &part));
  memcpy(part->data, t->data, (size_t)(n * dims[1]) * sizeof(double));
  return part;
}

static const graph_case_t rows[] = {
    {"4 bits",
     17,
     {"x float[250,300]"},
     {"w uint8[130,10,16]", "s float[1300]", "z uint8[130,5]"},
     {NBITS " z -> h | K=300 N=130 block_size=32 bits=4", "Tanh t h -> y"},
     "y"},
    {"8 bits",
     13,
     {"x float[250,300]"},
     {"w int8[300,130]", "s float[130]"},
     {"DequantizeLinear d w s -> f | axis=1", "MatMul m x f -> y"},
     "y"},
};

// The same bits; but which of two NaN a sum goes on with is the compiler's choice.
static bool same(const assay_tensor_t* a, const assay_tensor_t* b) {
  bool all = tactic_case_same_shape(a, b);
  for (int64_t i = 0; all && i < a->size; i++) {
    const double *x = assay_f64(a) + i, *y = assay_f64(b) + i;
    all = memcmp(x, y, sizeof *x) == 0 || (isnan(*x) && isnan(*y));
  }
  return all;
}

// Some rows of many, with sizes known or open.
static void rows_and_sizes_do_not_matter(void** state) {
  (void)state;
  static const int64_t some[] = {1, 2, 3, 4, 5, 7, 16, 241};
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16};
  for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++)
    for (size_t f = 0; f < 3; f++) {
      assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *part[GRAPH_CASE_ROWS] = {NULL};
      tactic_run_t known, open;
      assay_model_t* m = model_of(&rows[i / 2], in, false);
      assay_model_t* of_any = model_of(&rows[i / 2], part, true);
      for (size_t k = 0; i % 2 && k < 1; k++) tactic_case_specials(in[k]);
      tactic_case_run(m, "cpu", formats[f], in, &known);
      assert_string_equal(known.tactic, "weight_only");
      for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        graph_case_release(part);
        memset(part, 0, sizeof part);
        part[0] = first_rows(in[0], some[k]);
        tactic_case_run(of_any, "cpu", formats[f], part, &open);
        assay_tensor_t* want = first_rows(known.out[0], some[k]);
        if (!same(want, open.out[0]))
          fail_msg("%s: %lld rows have other bits among many", rows[i / 2].name,
                   (long long)some[k]);
        assay_tensor_release(want);
        tactic_case_release(&open);
      }
      graph_case_release(part);
      tactic_case_release(&known);
      graph_case_release(in);
      assay_model_release(m);
      assay_model_release(of_any);
    }
}

// The matrix that a model stores, once dequantized by its nodes in the formats that it declares.
static void weights_are_those_of_the_nodes(void** state) {
  (void)state;
  static const graph_case_t alone = {
      "identity",
      21,
      {"x float[80,80]"},
      {"w int4[80,90]", "s float[4,90]", "z int4[4,90]"},
      {"DequantizeLinear d w s z -> f | axis=0 block_size=24", "MatMul m x f -> y"},
      "y"};
  static const graph_case_t made = {"weights",
                                    21,
                                    {"x float[80,80]"},
                                    {"w int4[80,90]", "s float[4,90]", "z int4[4,90]"},
                                    {"DequantizeLinear d w s z -> y | axis=0 block_size=24"},
                                    "y"};
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *same[GRAPH_CASE_ROWS] = {NULL};
  tactic_run_t product, weights;
  assay_model_t *m = graph_case_model(&alone, in), *w = graph_case_model(&made, same);
  for (int64_t i = 0; i < in[0]->size; i++) assay_f64(in[0])[i] = i % 81 == 0;
  tactic_case_run(m, "cpu", ASSAY_FORMAT_FP32, in, &product);
  assert_string_equal(product.tactic, "weight_only");
  tactic_case_run(w, "emu", ASSAY_FORMAT_FP32, same, &weights);
  tactic_case_compare("weights", "fp32", weights.out[0], product.out[0], 0);
  tactic_case_release(&product);
  tactic_case_release(&weights);
  graph_case_release(in);
  graph_case_release(same);
  assay_model_release(m);
  assay_model_release(w);
}

// ---- memory -------------------------------------------------------------------------------------

static size_t cached_bytes(const graph_case_t* row) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(row, in);
  const assay_backend_t* cpu = assay_backend_find("cpu");
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32};
  assay_plan_t* plan = NULL;
  void *shared = NULL, *run = NULL;
  op_case_ok(assay_plan_create(m, &precision, &(assay_plan_options_t){.fused = true}, 1, &plan));
  const assay_layers_t* layers = assay_plan_layers(plan);
  op_case_ok(cpu->share(layers, NULL, &shared));
  op_case_ok(cpu->open(layers, shared, NULL, &run));
  op_case_ok(cpu->set(run, layers->model->graph->inputs[0], in[0]));
  for (size_t i = 0; i < layers->n_layers; i++) op_case_ok(cpu->step(run, i));
  size_t total = 0;
  for (size_t i = 1;; i++) {  // behind the timings
    const char* key = NULL;
    const void* data = NULL;
    size_t bytes = 0;
    op_case_ok(cpu->saved(shared, i, &key, &data, &bytes));
    if (!key) break;
    total += bytes;
  }
  cpu->close(run);
  cpu->unshare(shared);
  assay_plan_destroy(plan);
  graph_case_release(in);
  assay_model_release(m);
  return total;
}

static void codes_stay_codes(void** state) {
  (void)state;
  static const struct {
    graph_case_t graph;
    size_t bytes;  // codes, scales, zero points
  } kept[] = {
      {{"4 bits in blocks of 32, one zero point",
        17,
        {"x float[1,256]"},
        {"w uint8[128,8,16]", "s float[1024]"},
        {NBITS " -> y | K=256 N=128 block_size=32 bits=4"},
        "y"},
       128 * 256 / 2 + 1024 * 4},
      {{"int4 in blocks of 64, zero points",
        21,
        {"x float[300,256]"},
        {"w int4[256,128]", "s float[4,128]", "z int4[4,128]"},
        {"DequantizeLinear d w s z -> f | axis=0 block_size=64", "MatMul m x f -> y"},
        "y"},
       128 * 256 / 2 + 512 * 4 + 512},
      {{"int8, a scale for each column",
        13,
        {"x float[1,256]"},
        {"w int8[256,128]", "s float[128]"},
        {"DequantizeLinear d w s -> f | axis=1", "MatMul m x f -> y"},
        "y"},
       128 * 256 + 128 * 4},
  };
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    const size_t bytes = cached_bytes(&kept[i].graph);
    if (bytes != kept[i].bytes)
      fail_msg("%s: %zu bytes are kept, not %zu", kept[i].graph.name, bytes, kept[i].bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels),
      cmocka_unit_test(results_are_bounded),
      cmocka_unit_test(rows_and_sizes_do_not_matter),
      cmocka_unit_test(weights_are_those_of_the_nodes),
      cmocka_unit_test(codes_stay_codes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
