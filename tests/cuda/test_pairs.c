// Two products in one launch on a GPU that is not there (fake/), as in squeeze-excite blocks: the
// bits of two launches, and the layers that stay alone.
#include "cuda/pair_case.h"

static const pair_case_way_t apart = {.tactic = "product_pair", .sources = "-product_pair"},
                             any = {.tactic = "product_pair"};

static void check(const graph_case_t* c, assay_format_t format, int pairs) {
  pair_case_check(any.tactic, NULL, c, format, pairs);
}

static void check_both(const graph_case_t* c, int pairs) {
  check(c, ASSAY_FORMAT_FP16, pairs);
  check(c, ASSAY_FORMAT_BF16, pairs);
}

// ---- pairs --------------------------------------------------------------------------------------

#define SILU "Conv c x w b -> h", "Sigmoid s h -> i", "Mul m h i -> j"
#define RELU "Conv c x w b -> h", "Relu r h -> j"
#define HARD_SWISH "Conv c x w b -> h", "HardSwish r h -> j"
#define SIGMOID "Conv d j v a -> k", "Sigmoid t k -> y"
#define HARD_SIGMOID "Conv d j v a -> k", "HardSigmoid t k -> y | alpha=0.16666667"
#define WEIGHTS(c, r)                                                              \
  {                                                                                \
    "w float[" #r "," #c ",1,1]", "b float[" #r "]", "v float[" #c "," #r ",1,1]", \
        "a float[" #c "]"                                                          \
  }
#define PAIR(name, n, c, r, ...) \
  { name, 20, {"x float[" #n "," #c ",1,1]"}, WEIGHTS(c, r), {__VA_ARGS__}, "y" }

// Terms by 8, by 2 and one by one, odd and even steps; fewer rows and columns than tiles, and more
// columns than a block.
static const graph_case_t rows[] = {
    PAIR("20 to 5, one row", 1, 20, 5, SILU, SIGMOID),
    PAIR("20 to 5, three rows", 3, 20, 5, RELU, HARD_SIGMOID),
    PAIR("96 to 4", 1, 96, 4, SILU, SIGMOID),
    PAIR("96 to 4, eight rows", 8, 96, 4, HARD_SWISH, HARD_SIGMOID),
    PAIR("240 to 10", 8, 240, 10, SILU, SIGMOID),
    PAIR("1152 to 28", 1, 1152, 28, SILU, SIGMOID),
    PAIR("21 to 7", 2, 21, 7, HARD_SWISH, SIGMOID),
    {"without biases",
     20,
     {"x float[3,72,1,1]"},
     {"w float[24,72,1,1]", "v float[72,24,1,1]"},
     {"Conv c x w -> h", "Relu r h -> j", "Conv d j v -> k", "Sigmoid t k -> y"},
     "y"},
    {"a whole block",
     20,
     {"z float[4,80,5,3]"},
     WEIGHTS(80, 20),
     {"GlobalAveragePool p z -> x", SILU, SIGMOID, "Mul q z y -> o"},
     "o"},
    {"what lies between is read again",
     20,
     {"x float[2,96,1,1]"},
     WEIGHTS(96, 24),
     {SILU, SIGMOID, "Neg n j -> o"},
     "y o"},
    {"what lies between is an output",
     20,
     {"x float[2,96,1,1]"},
     WEIGHTS(96, 24),
     {SILU, SIGMOID},
     "y j"},
    {"many functions that are open at first",
     20,
     {"x float[8,64,1,1]"},
     WEIGHTS(64, 240),
     {SILU, SIGMOID},
     "y j"},
    {"another sum behind the second one",
     20,
     {"x float[2,40,1,1]", "q float[2,40,1,1]"},
     WEIGHTS(40, 16),
     {"Relu p q -> z", SILU, "Conv d j v a -> k", "Sigmoid t k -> l", "Add e l z -> y"},
     "y"},
    {"places of an image", 20, {"x float[1,40,2,3]"}, WEIGHTS(40, 16), {SILU, SIGMOID}, "y"},
    {"products of matrices",
     20,
     {"x float[5,56]"},
     {"w float[12,56]", "b float[12]", "v float[100,12]", "a float[100]"},
     {"Gemm c x w b -> h | transB=1", "Relu r h -> j", "Gemm d j v a -> k | transB=1",
      "Sigmoid t k -> y"},
     "y"},
};

// Weights that are brought by parts.
static const graph_case_t large[] = {
    PAIR("240 to 120", 2, 240, 120, RELU, HARD_SIGMOID),
    PAIR("672 to 28", 3, 672, 28, SILU, SIGMOID),
    PAIR("1152 to 32, eight rows", 8, 1152, 32, SILU, SIGMOID),
    PAIR("odd steps", 8, 976, 24, RELU, HARD_SIGMOID),
    PAIR("a part that is short", 1, 1172, 20, SILU, SIGMOID),
    PAIR("a part that is empty", 3, 260, 40, SILU, SIGMOID),
};

static void one_launch_has_the_bits_of_two(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_both(&rows[i], 1);
  for (size_t i = 0; i < sizeof large / sizeof *large; i++)
    check(&large[i], i % 2 ? ASSAY_FORMAT_BF16 : ASSAY_FORMAT_FP16, 1);
}

// Infinities and NaN go where they would.
static void special_numbers_are_the_same(void** state) {
  (void)state;
  const graph_case_t c = PAIR("special numbers", 8, 48, 12, SILU, SIGMOID);
  pair_case_sample_t s;
  pair_case_run_t want, got;
  pair_case_init(&c, &s);
  tactic_case_specials(s.in[0]);
  pair_case_run(s.m, ASSAY_FORMAT_BF16, &apart, s.in, &want);
  pair_case_run(s.m, ASSAY_FORMAT_BF16, &any, s.in, &got);
  assert_int_equal(got.pairs, 1);
  for (int64_t i = 0; i < want.out[0]->size; i++) {
    const double a = assay_f64(want.out[0])[i], b = assay_f64(got.out[0])[i];
    if (!(isnan(a) ? isnan(b) : a == b)) fail_msg("element %lld is %g, not %g", (long long)i, b, a);
  }
  pair_case_release(&want);
  pair_case_release(&got);
  pair_case_deinit(&s);
}

// ---- others -------------------------------------------------------------------------------------

static const graph_case_t others[] = {
    PAIR("more rows", 9, 96, 4, SILU, SIGMOID),
    PAIR("more weights than pay", 1, 1152, 48, SILU, SIGMOID),
    PAIR("more columns than warps have", 1, 64, 272, RELU, HARD_SIGMOID),
    {"an image", 20, {"x float[1,32,3,3]"}, WEIGHTS(32, 8), {SILU, SIGMOID}, "y"},
    {"groups",
     20,
     {"x float[1,64,1,1]"},
     {"w float[16,32,1,1]", "b float[16]", "v float[64,16,1,1]", "a float[64]"},
     {"Conv c x w b -> h | group=2", "Relu r h -> j", "Conv d j v a -> k", "Sigmoid t k -> y"},
     "y"},
    {"nothing behind the first one",
     20,
     {"x float[1,64,1,1]"},
     WEIGHTS(64, 16),
     {"Conv c x w b -> j", "Conv d j v a -> k", "Sigmoid t k -> y"},
     "y"},
    {"a value of the run in place of weights",
     20,
     {"x float[1,64,1,1]", "v float[64,16,1,1]"},
     {"w float[16,64,1,1]", "b float[16]", "a float[64]"},
     {RELU, SIGMOID},
     "y"},
    {"another value is multiplied",
     20,
     {"x float[2,64,1,1]", "q float[2,16,1,1]"},
     {"w float[16,64,1,1]", "b float[16]", "v float[16,16,1,1]", "a float[16]"},
     {"Relu p q -> z", RELU, "Conv d z v a -> k", "Add e k j -> y"},
     "y j"},
};

static void others_stay_alone(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) check_both(&others[i], 0);
  check(&rows[0], ASSAY_FORMAT_FP32, 0);
}

static assay_status_t count(void* user, const assay_layer_t* layer, const assay_node_t* node,
                            uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                            size_t n_out, assay_tensor_t* const* out) {
  (void)layer, (void)node, (void)iteration, (void)n_in, (void)in, (void)out;
  *(int*)user += n_out == 1;
  return NULL;
}

// Each layer is seen, and a kernel that is asked for runs its own.
static void layers_that_are_looked_at_stay_alone(void** state) {
  (void)state;
  int layers = 0;
  const assay_tap_t tap = {.layer = count, .user = &layers};
  const pair_case_way_t looked_at = {.tactic = any.tactic, .tap = &tap},
                        forced = {.tactic = any.tactic, .kernel = "product_few/8x16"};
  pair_case_sample_t s;
  pair_case_run_t want, tapped, asked;
  pair_case_init(&rows[0], &s);
  pair_case_run(s.m, ASSAY_FORMAT_FP16, &apart, s.in, &want);
  pair_case_run(s.m, ASSAY_FORMAT_FP16, &looked_at, s.in, &tapped);
  pair_case_run(s.m, ASSAY_FORMAT_FP16, &forced, s.in, &asked);
  assert_int_equal(tapped.pairs, 0);
  assert_int_equal(asked.pairs, 0);
  assert_int_equal(layers, PAIR_CASE_RUNS * 2);
  pair_case_same("with a tap", &want, &tapped);
  pair_case_same("with a kernel that is asked for", &want, &asked);
  pair_case_release(&want);
  pair_case_release(&tapped);
  pair_case_release(&asked);
  pair_case_deinit(&s);
}

// ---- times --------------------------------------------------------------------------------------

// A timing cache in which a pair takes another time.
static char* with_time(const char* times, const char* microseconds) {
  const char* name = strstr(times, " product_pair ");
  assert_non_null(name);
  const char* line = name;
  while (line > times && line[-1] != '\n') line--;
  char* out = assay_malloc(strlen(times) + strlen(microseconds) + 1);
  assert_non_null(out);
  sprintf(out, "%.*s%s%s", (int)(line - times), times, microseconds, name);
  return out;
}

// On the platform's clock each kernel takes 5 us.
static void pairs_compete_by_time(void** state) {
  (void)state;
  static const struct {
    const char* microseconds;
    int pairs;
  } times[] = {{"4.00", 1}, {"9.99", 1}, {"10.00", 0}, {"80.00", 0}};
  assay_str_t measured = {0};
  pair_case_sample_t s;
  pair_case_run_t want, got;
  pair_case_init(&rows[0], &s);
  pair_case_run(s.m, ASSAY_FORMAT_FP16,
                &(pair_case_way_t){.tactic = any.tactic, .measured = &measured}, s.in, &want);
  assert_int_equal(want.pairs, 1);
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    char* text = with_time(assay_str_get(&measured), times[i].microseconds);
    pair_case_run(s.m, ASSAY_FORMAT_FP16, &(pair_case_way_t){.tactic = any.tactic, .times = text},
                  s.in, &got);
    if (got.pairs != times[i].pairs)
      fail_msg("%s us: %d pairs of layers", times[i].microseconds, got.pairs);
    pair_case_same("by time", &want, &got);
    pair_case_release(&got);
    assay_free(text);
  }
  pair_case_release(&want);
  pair_case_deinit(&s);
  assay_str_deinit(&measured);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_launch_has_the_bits_of_two),
                                     cmocka_unit_test(special_numbers_are_the_same),
                                     cmocka_unit_test(others_stay_alone),
                                     cmocka_unit_test(layers_that_are_looked_at_stay_alone),
                                     cmocka_unit_test(pairs_compete_by_time)};
  setenv("ASSAY_FAKE_TIMES", "8000,0,5000,0", 1);
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
