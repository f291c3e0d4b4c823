// Products with weights of 4 and 8 bits with scales: what takes them, against the emulated engine;
// that rows, sizes that are known or open, and plain products of dequantized weights have the same
// bits; and how many bytes a plan keeps.
#include "backends/tactic_case.h"
#include "backends/weight_only_rows.h"
#include "runtime/executor.h"

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
