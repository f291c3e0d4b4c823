// Products of float32 on tensor cores, on a GPU that is not there (fake/): rounded to tf32 all
// tiles give the bits of mma.sync; split in two, each other's, nearer to truth than a chain of
// multiply-adds, and what is not finite as multiply-adds do.
#include <math.h>

#include "cuda/product_case.h"

static const char* const rounded[] = {"product_mma/64x64",        "product_bulk/64x32",
                                      "product_bulk/64x64",       "product_bulk/64x96",
                                      "product_bulk/64x128",      "product_bulk/128x64",
                                      "product_bulk/128x96",      "product_bulk/128x128",
                                      "product_bulk/128x160",     "product_bulk/128x192",
                                      "product_bulk/128x256",     "product_turns/128x64",
                                      "product_turns/128x96",     "product_turns/128x128",
                                      "product_turns/256x64",     "product_turns/256x96",
                                      "product_turns/256x128",    "product_clusters/128x128",
                                      "product_clusters/128x160", "product_clusters/128x192",
                                      "product_clusters/128x256", NULL};
static const char* const split[] = {"product_3xtf32/64x32",   "product_3xtf32/64x64",
                                    "product_3xtf32/64x96",   "product_3xtf32/64x128",
                                    "product_3xtf32/128x64",  "product_3xtf32/128x96",
                                    "product_3xtf32/128x128", NULL};

// As in test_bulk.c; of odd numbers of steps, of units, and of the terms of a last unit.
static const graph_case_t rows[] = {
    ROW("columns side by side", {"x float[2,35,136]"}, {"w float[136,200]"}, "MatMul p x w -> y"),
    ROW("terms side by side", {"x float[5,26,36]"}, LIST("w float[36,264]", "b float[264]"),
        "MatMul p x w -> y"),
    ROW("many steps", {"x float[1,20,1400]"}, {"w float[1400,40]"}, "MatMul p x w -> y"),
    ROW("few terms", {"x float[1,17,20]"}, {"w float[20,24]"}, "MatMul p x w -> y"),
    ROW("odd rows of weights and results", {"x float[1,140,72]"}, {"w float[72,203]"},
        "MatMul p x w -> y"),
    ROW("1x1", {"x float[2,24,5,6]"}, LIST("w float[72,24,1,1]", "b float[72]"),
        "Conv c x w b -> y"),
    ROW("1x1 with a stride", {"x float[2,64,7,9]"}, {"w float[40,64,1,1]"},
        "Conv c x w -> y | strides=2,2"),
    ROW("3x3", {"x float[3,32,7,9]"}, LIST("w float[40,32,3,3]", "b float[40]"),
        "Conv c x w b -> y | pads=1,1,1,1"),
    ROW("3x3 with strides", {"x float[2,96,10,9]"}, {"w float[24,96,3,3]"},
        "Conv c x w -> y | pads=1,0,1,2 strides=2,1"),
    ROW("5x3 with dilations", {"x float[1,64,13,11]"}, {"w float[32,64,5,3]"},
        "Conv c x w -> y | pads=4,1,4,3 dilations=2,2"),
    ROW("patches of few channels", {"x float[2,3,64,80]"},
        LIST("w float[24,3,16,16]", "b float[24]"), "Conv c x w b -> y | strides=16,16"),
    {"a program behind it",
     20,
     {"x float[2,90,24]"},
     {"w float[24,40]", "b float[40]", "c float[90,40]"},
     {"MatMul p x w -> h", "Add a h b -> g", "Gelu f g -> k", "Mul m k c -> y"},
     "y"},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void tiles_give_the_bits_of_mma(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) product_case_share(rows, i, ASSAY_FORMAT_TF32, rounded);
}

static void tiles_give_the_same_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) product_case_share(rows, i, ASSAY_FORMAT_FP32, split);
}

static void results_are_within_bounds(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    const tactic_case_t c = {.graph = rows[i]};
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&rows[i], in);
    tactic_case_judge(&c, ASSAY_FP32_TIGHT, m, ASSAY_FORMAT_FP32, in);
    graph_case_release(in);
    assay_model_release(m);
  }
}

// ---- errors -------------------------------------------------------------------------------------

static void run(const graph_case_t* c, const char* kernel, void change(double*, int64_t),
                tactic_run_t* got, double** x, int64_t* n) {
  static assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_model_t* m = graph_case_model(c, in);
  change(assay_f64(in[0]), in[0]->size);
  forced_case_run_in(ASSAY_FORMAT_FP32, m, "cuda", kernel, in, got);
  assert_string_equal(got->tactic, kernel);
  op_case_ok(assay_new_array((size_t)in[0]->size, sizeof **x, x));
  memcpy(*x, assay_f64(in[0]), (size_t)in[0]->size * sizeof **x);
  *n = in[0]->size;
  graph_case_release(in);
  assay_model_release(m);
}

static void leave(double* x, int64_t n) { (void)x, (void)n; }
static void make_positive(double* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) x[i] = fabs(x[i]);
}
static void make_outliers(double* x, int64_t n) {
  for (int64_t i = 0; i < n; i += 37) x[i] *= 1000;
}
// Where parts overflow, and what is none.
static void make_special(double* x, int64_t n) {
  static const double values[] = {INFINITY,  -INFINITY, NAN, 3.4028234663852886e38,
                                  -3.403e38, 1e-42};
  for (int64_t i = 0, k = 0; i < n; i += 211, k++)
    x[i] = (double)(float)values[k % (int64_t)(sizeof values / sizeof *values)];
}

// All weights are one number, whose bits tf32 has not: what tensor cores cut adds up, and truth is
// known here, a sum of x times it.
static double square_error(const graph_case_t* c, const char* kernel,
                           void change(double*, int64_t)) {
  enum { K = 96 };
  tactic_run_t got;
  double *x = NULL, error = 0;
  int64_t n;
  run(c, kernel, change, &got, &x, &n);
  for (int64_t i = 0; i < n / K; i++) {
    double sum = 0;
    for (int k = 0; k < K; k++) sum += x[i * K + k] * (double)1.2345679F;
    for (int64_t j = 0; j < got.out[0]->size / (n / K); j++) {
      const double e = assay_f64(got.out[0])[i * (got.out[0]->size / (n / K)) + j] - sum;
      error += e * e;
    }
  }
  assay_free(x);
  tactic_case_release(&got);
  return error;
}

static void errors_are_no_larger_than_plain_ones(void** state) {
  (void)state;
  static const graph_case_t c = {"sums",
                                 20,
                                 {"x float[1,400,96]"},
                                 {"one float[] 1.2345679", "shape int64[2] 96 16"},
                                 {"Expand e one shape -> w", "MatMul p x w -> y"},
                                 "y"};
  static const struct {
    const char* name;
    void (*change)(double*, int64_t);
  } kinds[] = {{"mean zero", leave}, {"one sign", make_positive}, {"outliers", make_outliers}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const double own = square_error(&c, "product_3xtf32/64x64", kinds[i].change);
    const double plain = square_error(&c, "product_fma/64x64", kinds[i].change);
    print_message("%s: %.2f of plain's\n", kinds[i].name, sqrt(own / plain));
    assert_true(own < 4 * plain);
  }
}

static void specials_are_those_of_multiply_adds(void** state) {
  (void)state;
  static const graph_case_t cases[] = {
      ROW("matrix", {"x float[1,70,100]"}, {"w float[100,40]"}, "MatMul p x w -> y"),
      ROW("windows", {"x float[2,32,9,8]"}, {"w float[40,32,3,3]"},
          "Conv c x w -> y | pads=1,1,1,1")};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tactic_run_t own, plain;
    double *x = NULL, *same = NULL;
    int64_t n, differ = 0, special = 0;
    run(&cases[i], "product_3xtf32/64x64", make_special, &own, &x, &n);
    run(&cases[i], "product_fma/64x64", make_special, &plain, &same, &n);
    for (int64_t k = 0; k < own.out[0]->size; k++) {
      const double a = assay_f64(own.out[0])[k], b = assay_f64(plain.out[0])[k];
      special += !isfinite(b);
      differ += isfinite(b) ? !isfinite(a) : isnan(b) ? !isnan(a) : a != b;
    }
    assert_true(special > 20 && special < own.out[0]->size);
    if (differ) fail_msg("%s: %lld elements of another kind", cases[i].name, (long long)differ);
    assay_free(x);
    assay_free(same);
    tactic_case_release(&own);
    tactic_case_release(&plain);
  }
}

// ---- what is left to others ---------------------------------------------------------------------

static void others_are_left_to_others(void** state) {
  (void)state;
  static const graph_case_t others[] = {
      ROW("rows off 16 bytes", {"x float[2,70,18]"}, {"w float[18,64]"}, "MatMul p x w -> y"),
      ROW("weights of the run", LIST("x float[1,70,64]", "z float[64,20]"), {0},
          "MatMul p x z -> y"),
      ROW("channels of half a step", {"x float[1,16,9,11]"}, {"w float[40,16,3,3]"},
          "Conv c x w -> y"),
      ROW("transposed", {"x float[2,64,5,4]"}, {"w float[64,16,4,4]"},
          "ConvTranspose c x w -> y | strides=2,2 pads=1,1,1,1"),
  };
  static const graph_case_t plain[] = {
      ROW("a sample is a row", {"x float[70,64]"}, {"w float[64,64]"}, "MatMul p x w -> y"),
      {"large weights",
       20,
       {"x float[1,70,64]"},
       {"w float[64,64]", "s float[] 4096"},
       {"Mul e w s -> v", "MatMul p x v -> y"},
       "y"},
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    product_case_left(&others[i], ASSAY_FORMAT_FP32, "product_3xtf32");
    product_case_left(&others[i], ASSAY_FORMAT_TF32, "product_bulk");
  }
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    product_case_left(&plain[i], ASSAY_FORMAT_FP32, "product_3xtf32");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_give_the_bits_of_mma),
                                     cmocka_unit_test(tiles_give_the_same_bits),
                                     cmocka_unit_test(results_are_within_bounds),
                                     cmocka_unit_test(errors_are_no_larger_than_plain_ones),
                                     cmocka_unit_test(specials_are_those_of_multiply_adds),
                                     cmocka_unit_test(others_are_left_to_others)};
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
