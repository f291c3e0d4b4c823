// Products by multiply-adds on a GPU that is not there (fake/): all tiles, and groups that share
// sums out, give the same bits, which are those of chains of fused multiply-adds.
#include <math.h>

#include "cuda/product_case.h"

static const char* const kernels[] = {
    "product_fma/64x64",  "product_fma/128x128", "product_fma/128x64",
    "product_fma/64x128", "product_fma/32x64",   "product_fma/32x32",
    "product_fma/16x64",  "product_fma/16x32",   NULL};

static void tiles_give_the_same_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < PRODUCT_CASE_ALL; i++)
    product_case_same(&product_case_all[i], ASSAY_FORMAT_FP32, kernels);
}

// Sums of several chains.
static const char* const of_groups[] = {
    "product_fma/64x64",   "product_fma/128x128", "product_fma/16x32",   "product_split/32x32",
    "product_split/64x64", "product_split/64x32", "product_split/32x64", "product_split/16x64",
    "product_split/16x32", "product_split/8x64",  "product_split/8x32",  NULL};

// By tiles that the copy engine brings.
static const char* const by_engine[] = {
    "product_fma/64x64",        "product_fma_bulk/128x128", "product_fma_bulk/128x64",
    "product_fma_bulk/64x128",  "product_fma_bulk/64x64",   "product_split_bulk/32x32",
    "product_split_bulk/64x64", "product_split_bulk/64x32", "product_split_bulk/32x64",
    "product_split_bulk/16x64", "product_split_bulk/16x32", NULL};

// Columns or terms side by side, and neither; whole chains, a short one, a missing one, fewer steps
// than stages; leftovers of all sides; several matrices; convolutions; programs.
static const graph_case_t long_cases[] = {
    ROW("the shortest sums of several chains", {"x float[70,256]"}, {"w float[256,72]"},
        "MatMul p x w -> y"),
    ROW("three chains, element by element", {"x float[33,257]"}, {"w float[257,37]"},
        "MatMul p x w -> y"),
    ROW("a short chain", LIST("x float[197,300]"), LIST("w float[100,300]", "b float[100]"),
        "Gemm p x w b -> y | transB=1"),
    ROW("a step of four terms", {"x float[5,388]"}, {"w float[388,36]"}, "MatMul p x w -> y"),
    ROW("one row", {"x float[1,1028]"}, {"w float[1028,68]"}, "MatMul p x w -> y"),
    ROW("a turned left side", {"x float[290,40]"}, {"w float[290,48]"},
        "Gemm p x w -> y | transA=1"),
    ROW("activations", LIST("x float[2,1,35,320]", "z float[3,320,24]"), {0}, "MatMul p x z -> y"),
    ROW("3x3", {"x float[2,36,9,11]"}, LIST("w float[44,36,3,3]", "b float[44]"),
        "Conv c x w b -> y | pads=1,0,1,2 strides=2,1"),
    ROW("3x3 of few channels", {"x float[1,31,7,6]"}, {"w float[20,31,3,3]"},
        "Conv c x w -> y | pads=1,1,1,1 dilations=2,1"),
    ROW("1x1", {"x float[2,272,5,7]"}, LIST("w float[72,272,1,1]", "b float[72]"),
        "Conv c x w b -> y"),
    ROW("groups", {"x float[1,64,6,5]"}, {"w float[48,32,3,3]"},
        "Conv c x w -> y | group=2 pads=1,1,1,1"),
    ROW("transposed", {"x float[2,20,5,4]"}, {"w float[20,16,4,4]"},
        "ConvTranspose c x w -> y | strides=2,2 pads=1,1,1,1"),
    {"a program behind it",
     20,
     {"x float[3,9,260]"},
     {"w float[260,40]", "b float[40]", "c float[9,40]"},
     {"MatMul p x w -> h", "Add a h b -> g", "Gelu f g -> k", "Mul m k c -> y"},
     "y"},
};

static void groups_give_the_same_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof long_cases / sizeof *long_cases; i++)
    product_case_share(long_cases, i, ASSAY_FORMAT_FP32, of_groups);
}

// What the engine brings: steps of which some are short, rows of weights that are padded, rows and
// columns behind the last ones, chains that begin within a tap, samples and pads.
static const graph_case_t engine_cases[] = {
    ROW("columns side by side", {"x float[70,256]"}, {"w float[256,72]"}, "MatMul p x w -> y"),
    ROW("a step of four terms", {"x float[5,388]"}, {"w float[388,36]"}, "MatMul p x w -> y"),
    ROW("padded rows", {"x float[33,516]"}, {"w float[516,37]"}, "MatMul p x w -> y"),
    ROW("terms side by side", LIST("x float[197,300]"), LIST("w float[100,300]", "b float[100]"),
        "Gemm p x w b -> y | transB=1"),
    ROW("more steps than stages", {"x float[2,9,2052]"}, {"w float[2052,40]"}, "MatMul p x w -> y"),
    ROW("weights of the run", LIST("x float[1,35,320]", "z float[320,24]"), {0},
        "MatMul p x z -> y"),
    ROW("3x3", {"x float[2,32,9,11]"}, LIST("w float[44,32,3,3]", "b float[44]"),
        "Conv c x w b -> y | pads=1,0,1,2 strides=2,1"),
    ROW("3x3 of two steps a tap", {"x float[3,64,7,6]"}, {"w float[20,64,3,3]"},
        "Conv c x w -> y | pads=1,1,1,1 dilations=2,1"),
    ROW("1x1", {"x float[2,272,5,7]"}, LIST("w float[72,272,1,1]", "b float[72]"),
        "Conv c x w b -> y"),
    {"a program behind it",
     20,
     {"x float[3,9,260]", "z float[3,9,40]"},
     {"w float[260,40]", "b float[40]"},
     {"MatMul p x w -> h", "Add a h b -> g", "Gelu f g -> k", "Mul m k z -> y"},
     "y"},
};

// Sums of one chain.
static const char* const short_by_engine[] = {"product_fma/64x64", "product_fma_bulk/128x64",
                                              "product_fma_bulk/64x64", NULL};
static const graph_case_t short_cases[] = {
    ROW("the longest sums of one chain", {"x float[70,252]"}, {"w float[252,200]"},
        "MatMul p x w -> y"),
    ROW("less than a step", LIST("x float[130,20]"), LIST("w float[66,20]", "b float[66]"),
        "Gemm p x w b -> y | transB=1"),
    ROW("1x1", {"x float[2,36,5,6]"}, {"w float[72,36,1,1]"}, "Conv c x w -> y"),
};

static void the_engine_changes_no_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof short_cases / sizeof *short_cases; i++)
    product_case_same(&short_cases[i], ASSAY_FORMAT_FP32, short_by_engine);
  for (size_t i = 0; i < sizeof engine_cases / sizeof *engine_cases; i++)
    product_case_share(engine_cases, i, ASSAY_FORMAT_FP32, by_engine);
}

// One chain leaves nothing to share.
static void few_terms_are_left(void** state) {
  (void)state;
  static const graph_case_t c =
      ROW("few terms", {"x float[9,252]"}, {"w float[252,40]"}, "MatMul p x w -> y");
  product_case_left(&c, ASSAY_FORMAT_FP32, "product_split");
}

// A sum by its definition: fewer than 256 terms are one chain, others four of whole steps of 32.
static float sum_of(const double* x, const double* z, int n, int terms) {
  const int chain = terms < 256 ? terms : (terms + 127) / 128 * 32;
  float all = 0;
  for (int first = 0; first < terms; first += chain) {
    float sum = 0;
    for (int k = first; k < terms && k < first + chain; k++)
      sum = fmaf((float)x[k], (float)z[(ptrdiff_t)k * n], sum);
    all = first ? all + sum : sum;
  }
  return all;
}

static void sums_are_chains(void** state) {
  (void)state;
  static const struct {
    graph_case_t graph;
    const char* kernel;
    int rows, terms, columns;
  } cases[] = {
      {ROW("one chain", LIST("x float[9,77]", "z float[77,20]"), {0}, "MatMul p x z -> y"),
       "product_fma/16x32", 9, 77, 20},
      {ROW("the longest one", LIST("x float[3,255]", "z float[255,5]"), {0}, "MatMul p x z -> y"),
       "product_fma/16x32", 3, 255, 5},
      {ROW("four", LIST("x float[9,256]", "z float[256,20]"), {0}, "MatMul p x z -> y"),
       "product_fma/64x64", 9, 256, 20},
      {ROW("three", LIST("x float[9,257]", "z float[257,20]"), {0}, "MatMul p x z -> y"),
       "product_split/32x32", 9, 257, 20},
      {ROW("long ones", LIST("x float[7,1021]", "z float[1021,11]"), {0}, "MatMul p x z -> y"),
       "product_fma/128x128", 7, 1021, 11},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&cases[c].graph, in);
    tactic_run_t got;
    print_message("%s\n", cases[c].graph.name);
    forced_case_run(m, "cuda", cases[c].kernel, in, &got);
    assert_string_equal(got.tactic, cases[c].kernel);
    const int n = cases[c].columns, terms = cases[c].terms;
    const double *x = (const double*)in[0]->data, *z = (const double*)in[1]->data;
    const double* y = (const double*)got.out[0]->data;  // floats are kept so
    assert_int_equal(assay_type_store(got.out[0]->type), ASSAY_STORE_F64);
    for (int i = 0; i < cases[c].rows; i++)
      for (int j = 0; j < n; j++)
        assert_true((double)sum_of(x + (ptrdiff_t)i * terms, z + j, n, terms) == y[i * n + j]);
    tactic_case_release(&got);
    graph_case_release(in);
    assay_model_release(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_give_the_same_bits), cmocka_unit_test(groups_give_the_same_bits),
      cmocka_unit_test(the_engine_changes_no_bits), cmocka_unit_test(few_terms_are_left),
      cmocka_unit_test(sums_are_chains)};
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
