// Two layers in one launch on a GPU that is not there (fake/), as products in squeeze-excite
// blocks, and sums of integers with the quantizer of what they become: the bits of two launches,
// and the layers that stay alone.
#include <stdlib.h>

#include "cuda/int8_case.h"

enum { RUNS = 3 };  // the second one is captured, the third one launches what was

typedef struct pair_run {
  assay_tensor_t* out[8];
  size_t n_out;
  int pairs;  // layers that run with the next one
} pair_run_t;

static void release(pair_run_t* r) {
  for (size_t i = 0; i < r->n_out; i++) assay_tensor_release(r->out[i]);
}

static int count_pairs(const assay_executor_t* e) {
  int n = 0;
  for (size_t i = 0; i < assay_executor_n_steps(e); i++) {
    assay_str_t text = {0};
    assay_executor_explain(e, i, &text);
    n += strstr(assay_str_get(&text), "_pair)") != NULL;
    assay_str_deinit(&text);
  }
  return n;
}

// sources: of tactics; kernel: that is asked for of the last layer; times: a timing cache, and what
// one is after kernels were measured; backend: not CUDA.
typedef struct way {
  const char *sources, *kernel, *times, *backend;
  const assay_tap_t* tap;
  assay_str_t* measured;
} way_t;

static void get_times(const assay_engine_t* engine, assay_str_t* out) {
  const assay_backend_t* cuda = assay_backend_find("cuda");
  bool any;
  op_case_ok(cuda->timings(assay_engine_shared(engine), out, &any));
  assert_true(any);
}

static void run_in(assay_model_t* m, assay_format_t format, const way_t* way,
                   assay_tensor_t* const* in, pair_run_t* r) {
  const assay_precision_t precision = {.format = format};
  const assay_plan_options_t options = {.fused = true};
  assay_plan_t* plan = NULL;
  assay_engine_t* engine = NULL;
  assay_executor_t* e = NULL;
  *r = (pair_run_t){0};
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  const assay_layers_t* layers = assay_plan_layers(plan);
  char forced[256];
  snprintf(forced, sizeof forced, "%s %s\n", way->kernel ? way->kernel : "",
           layers->layers[layers->n_layers - 1].name);
  const assay_backend_options_t choice = {.tactic_sources = way->sources,
                                          .forced = way->kernel ? forced : NULL,
                                          .measure = way->measured != NULL,
                                          .timings = way->times,
                                          .timings_bytes = way->times ? strlen(way->times) : 0};
  const char* backend = way->backend ? way->backend : "cuda";
  op_case_ok(assay_engine_create(plan, assay_backend_find(backend), &choice, &engine));
  op_case_ok(assay_executor_run_engine(engine, way->tap, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  for (int run = 0; run < RUNS; run++) {
    assay_executor_reset(e);
    for (size_t i = 0; i < g->n_inputs; i++) op_case_ok(assay_executor_set(e, g->inputs[i], in[i]));
    op_case_ok(assay_executor_run(e));
  }
  for (; r->n_out < g->n_outputs; r->n_out++)
    r->out[r->n_out] = assay_tensor_retain(assay_executor_get(e, g->outputs[r->n_out]));
  r->pairs = count_pairs(e);
  if (way->measured) get_times(engine, way->measured);
  assay_executor_destroy(e);
  assay_engine_release(engine);
}

static void same_bits(const char* name, const pair_run_t* a, const pair_run_t* b) {
  assert_int_equal(a->n_out, b->n_out);
  for (size_t i = 0; i < a->n_out; i++)
    if (!tactic_case_identical(a->out[i], b->out[i])) fail_msg("%s: other bits", name);
}

typedef struct sample {
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_model_t* m;
} sample_t;

static void sample_init(const graph_case_t* c, sample_t* s) {
  *s = (sample_t){0};
  s->m = graph_case_model(c, s->in);
  print_message("%s\n", c->name);
}

static void sample_deinit(sample_t* s) {
  graph_case_release(s->in);
  assay_model_release(s->m);
}

static const way_t apart = {.sources = "-product_pair,-int8_pair"}, any = {0};

static void check(const graph_case_t* c, assay_format_t format, int pairs) {
  sample_t s;
  pair_run_t want, got;
  sample_init(c, &s);
  run_in(s.m, format, &apart, s.in, &want);
  run_in(s.m, format, &any, s.in, &got);
  assert_int_equal(want.pairs, 0);
  if (got.pairs != pairs) fail_msg("%s: %d pairs of layers, not %d", c->name, got.pairs, pairs);
  same_bits(c->name, &want, &got);
  release(&want);
  release(&got);
  sample_deinit(&s);
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
  sample_t s;
  pair_run_t want, got;
  sample_init(&c, &s);
  tactic_case_specials(s.in[0]);
  run_in(s.m, ASSAY_FORMAT_BF16, &apart, s.in, &want);
  run_in(s.m, ASSAY_FORMAT_BF16, &any, s.in, &got);
  assert_int_equal(got.pairs, 1);
  for (int64_t i = 0; i < want.out[0]->size; i++) {
    const double a = assay_f64(want.out[0])[i], b = assay_f64(got.out[0])[i];
    if (!(isnan(a) ? isnan(b) : a == b)) fail_msg("element %lld is %g, not %g", (long long)i, b, a);
  }
  release(&want);
  release(&got);
  sample_deinit(&s);
}

// ---- sums of integers and their quantizers ------------------------------------------------------

#define X_NUMBERS "xs float[] 0.0002", "xz uint8[] 131"
#define Y_NUMBERS "ys float[] 0.13", "yz int8[] -9"
#define CONV(attributes)                                                          \
  "DequantizeLinear dx x xs xz -> xf", "DequantizeLinear dw w ws -> wf | axis=0", \
      "Conv c xf wf b -> h | " attributes
#define QUANTIZE "QuantizeLinear q f ys yz -> y"
// What reads the integers, channels last as the sum's kernel writes them.
#define NEXT \
  "DequantizeLinear dy y ys yz -> yf", "DequantizeLinear dv v ys -> vf", "Conv d yf vf -> k"
#define SUM(name, x, r, w, n, attributes, ...)                          \
  {                                                                     \
    name, 21, {"x uint8[" x "]", "r float[" r "]"},                     \
        {X_NUMBERS,        "w int8[" w "]", "ws float[" n "] positive", \
         "b float[" n "]", Y_NUMBERS,       "v int8[3," n ",1,1]"},     \
        {CONV(attributes), __VA_ARGS__, NEXT}, "k f"                    \
  }

// Channels that are stored at once and others, tiles with something left over; pairs: by how many
// launches, of the layers besides.
static const struct {
  graph_case_t graph;
  int pairs;
} sums[] = {
    {SUM("1x1, a residual", "2,64,5,6", "2,24,5,6", "24,64,1,1", "24", "", "Add a h r -> s",
         "Relu t s -> f", QUANTIZE),
     1},
    {SUM("odd channels, a residual first", "1,128,7,5", "1,37,7,5", "37,128,1,1", "37", "",
         "Add a r h -> s", "Clip t s -> f", QUANTIZE),
     1},
    {SUM("3x3, pads, less a residual", "2,16,7,9", "2,40,4,9", "40,16,3,3", "40",
         "pads=1,1,1,1 strides=2,1", "Sub a h r -> f", QUANTIZE),
     1},
    {SUM("few channels", "1,3,11,13", "1,12,11,13", "12,3,3,3", "12", "pads=1,1,1,1",
         "Sub a r h -> s", "Relu t s -> f", QUANTIZE),
     1},
    {SUM("depthwise", "2,8,6,5", "2,8,6,5", "8,1,3,3", "8", "group=8 pads=1,1,1,1",
         "Add a h r -> f", QUANTIZE),
     1},
    {SUM("a gate", "2,32,6,5", "2,20,1,1", "20,32,1,1", "20", "", "Mul a h r -> f", QUANTIZE), 1},
    {SUM("a gate of odd channels", "2,32,6,5", "2,7,1,1", "7,32,1,1", "7", "", "Mul a r h -> f",
         QUANTIZE),
     1},
    {SUM("a function", "2,32,6,5", "2,20,6,5", "20,32,1,1", "20", "", "HardSwish a h -> f",
         QUANTIZE, "Add e f r -> z", "Relu g z -> o"),
     1},
    {SUM("two quantizers", "2,32,6,5", "2,20,6,5", "20,32,1,1", "20", "", "Add a h r -> f",
         QUANTIZE, "QuantizeLinear p f ws -> z | axis=1"),
     1},
    {SUM("scales by channel", "2,32,6,5", "2,20,6,5", "20,32,1,1", "20", "", "Add a h r -> f",
         "QuantizeLinear q f ws -> o | axis=1", "QuantizeLinear p r ys yz -> y"),
     0},
    {SUM("the residual is quantized", "2,32,6,5", "2,20,6,5", "20,32,1,1", "20", "",
         "Add a h r -> f", "QuantizeLinear q r ys yz -> y"),
     0},
    {{"a product of matrices",
      21,
      {"x uint8[19,48]", "r float[19,36]"},
      {X_NUMBERS, "w int8[48,36]", "ws float[] 0.9", "b float[36]", Y_NUMBERS},
      {"DequantizeLinear dx x xs xz -> xf", "DequantizeLinear dw w ws -> wf", "MatMul p xf wf -> g",
       "Add e g b -> h", "Add a h r -> f", QUANTIZE},
      "y f"},
     1},
};

static void sums_are_stored_with_their_integers(void** state) {
  static const way_t ways[] = {{0}, {.sources = "-int8_bulk"}, {.sources = "-int8_bulk,-int8_mma"}};
  (void)state;
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    const graph_case_t* c = &sums[i].graph;
    sample_t s;
    pair_run_t emu, want, got;
    uint64_t random = i;
    sample_init(c, &s);
    for (size_t k = 0; s.in[k]; k++) int8_case_fill(s.in[k], &random);
    run_in(s.m, ASSAY_FORMAT_FP32, &(way_t){.backend = "emu"}, s.in, &emu);
    run_in(s.m, ASSAY_FORMAT_FP32, &apart, s.in, &want);
    assert_int_equal(want.pairs, 0);
    same_bits(c->name, &emu, &want);
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
      run_in(s.m, ASSAY_FORMAT_FP32, &ways[k], s.in, &got);
      if (k < 2 && got.pairs != sums[i].pairs)
        fail_msg("%s: %d pairs of layers, not %d", c->name, got.pairs, sums[i].pairs);
      same_bits(c->name, &want, &got);
      release(&got);
    }
    release(&emu);
    release(&want);
    sample_deinit(&s);
  }
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
  const way_t looked_at = {.tap = &tap}, forced = {.kernel = "product_few/8x16"};
  sample_t s;
  pair_run_t want, tapped, asked;
  sample_init(&rows[0], &s);
  run_in(s.m, ASSAY_FORMAT_FP16, &apart, s.in, &want);
  run_in(s.m, ASSAY_FORMAT_FP16, &looked_at, s.in, &tapped);
  run_in(s.m, ASSAY_FORMAT_FP16, &forced, s.in, &asked);
  assert_int_equal(tapped.pairs, 0);
  assert_int_equal(asked.pairs, 0);
  assert_int_equal(layers, RUNS * 2);
  same_bits("with a tap", &want, &tapped);
  same_bits("with a kernel that is asked for", &want, &asked);
  release(&want);
  release(&tapped);
  release(&asked);
  sample_deinit(&s);
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
  sample_t s;
  pair_run_t want, got;
  sample_init(&rows[0], &s);
  run_in(s.m, ASSAY_FORMAT_FP16, &(way_t){.measured = &measured}, s.in, &want);
  assert_int_equal(want.pairs, 1);
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    char* text = with_time(assay_str_get(&measured), times[i].microseconds);
    run_in(s.m, ASSAY_FORMAT_FP16, &(way_t){.times = text}, s.in, &got);
    if (got.pairs != times[i].pairs)
      fail_msg("%s us: %d pairs of layers", times[i].microseconds, got.pairs);
    same_bits("by time", &want, &got);
    release(&got);
    assay_free(text);
  }
  release(&want);
  sample_deinit(&s);
  assay_str_deinit(&measured);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_launch_has_the_bits_of_two),
                                     cmocka_unit_test(special_numbers_are_the_same),
                                     cmocka_unit_test(sums_are_stored_with_their_integers),
                                     cmocka_unit_test(others_stay_alone),
                                     cmocka_unit_test(layers_that_are_looked_at_stay_alone),
                                     cmocka_unit_test(pairs_compete_by_time)};
  setenv("ASSAY_FAKE_TIMES", "8000,0,5000,0", 1);
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
