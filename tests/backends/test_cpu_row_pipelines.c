// Row pipelines (exec/segment/row_pipeline.h): models of layers that hand rows on give the bits
// that the same layers give one by one (as they run under a tap), with any number of threads, also
// where pieces are small. Models are drawn; a failure prints its seed, number and nodes.
#include "backends/tactic_case.h"
#include "seed_case.h"
#include "skip_case.h"

enum { MODELS = 60, STEPS = 4, TEXT = 96, ROUNDS = 3 };
static const uint64_t first_seed = 20;

// A model as it is drawn: the value that comes last, and its shape.
typedef struct drawn {
  graph_case_t graph;
  char text[GRAPH_CASE_ROWS][TEXT];
  size_t n_text, n_inputs, n_constants, n_nodes;
  uint64_t state;
  int last;
  int n, c, h, w;
} drawn_t;

static int draw(drawn_t* d, int from, int to) {
  d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return from + (int)((d->state >> 33) % (uint64_t)(to - from + 1));
}

static const char* text(drawn_t* d, const char* format, ...) ASSAY_PRINTF(2, 3);
static const char* text(drawn_t* d, const char* format, ...) {
  va_list args;
  assert_true(d->n_text < GRAPH_CASE_ROWS);
  char* to = d->text[d->n_text++];
  va_start(args, format);
  assert_true(vsnprintf(to, TEXT, format, args) < TEXT);
  va_end(args);
  return to;
}

#define NODE(...) d->graph.nodes[d->n_nodes++] = text(d, __VA_ARGS__)
#define INPUT(...) d->graph.inputs[d->n_inputs++] = text(d, __VA_ARGS__)
#define CONSTANT(...) d->graph.constants[d->n_constants++] = text(d, __VA_ARGS__)

static void add_activation(drawn_t* d) {
  static const char* const ops[] = {"Relu", "HardSwish", "Tanh"};
  const int which = draw(d, 0, 3);
  if (which == 3) return;
  NODE("%s a%d v%d -> v%d", ops[which], d->last, d->last, d->last + 1);
  d->last++;
}

static void add_conv(drawn_t* d) {
  const int made = draw(d, 1, 5) * 16 + draw(d, 0, 1) * 5;
  CONSTANT("w%d float[%d,%d,1,1]", d->last, made, d->c);
  NODE("Conv n%d v%d w%d -> v%d", d->last, d->last, d->last, d->last + 1);
  d->last++;
  d->c = made;
  add_activation(d);
}

static void add_depthwise(drawn_t* d) {
  const int k = 1 + 2 * draw(d, 0, 3), stride = draw(d, 1, 2), dilation = draw(d, 0, 5) ? 1 : 2;
  const int p = draw(d, 0, k / 2), q = draw(d, 0, k / 2 + 1);
  const int h = (d->h + p + q - (k - 1) * dilation - 1) / stride + 1;
  const int w = (d->w + 2 * p - (k - 1) * dilation - 1) / stride + 1;
  if (h < 1 || w < 1 || d->h + p + q < (k - 1) * dilation + 1) return;
  CONSTANT("w%d float[%d,1,%d,%d]", d->last, d->c, k, k);
  NODE("Conv n%d v%d w%d -> v%d | group=%d pads=%d,%d,%d,%d strides=%d,%d dilations=%d,%d", d->last,
       d->last, d->last, d->last + 1, d->c, p, p, q, p, stride, stride, dilation, dilation);
  d->last++;
  d->h = h;
  d->w = w;
  add_activation(d);
}

static void add_pool(drawn_t* d) {
  const int h = (d->h + 1 - 3) / 2 + 1, w = (d->w + 1 - 3) / 2 + 1;
  if (h < 1 || w < 1) return;
  NODE("MaxPool n%d v%d -> v%d | kernel_shape=3,3 strides=2,2 pads=1,1,0,0", d->last, d->last,
       d->last + 1);
  d->last++;
  d->h = h;
  d->w = w;
}

static void add_gate(drawn_t* d) {
  INPUT("g%d float[%d,%d,1,1]", d->last, d->n, d->c);
  NODE("Mul n%d v%d g%d -> v%d", d->last, d->last, d->last, d->last + 1);
  d->last++;
}

static void add_halves(drawn_t* d) {
  if (d->c % 2) return;
  NODE("Split h%d v%d -> a%d b%d | axis=1", d->last, d->last, d->last, d->last);
  NODE("Mul m%d a%d b%d -> v%d", d->last, d->last, d->last, d->last + 1);
  d->last++;
  d->c /= 2;
}

// With an input of other channels, one of them or more, on either side.
static void add_joined(drawn_t* d) {
  const int c = draw(d, 0, 3) ? draw(d, 1, 3) * 8 : 1, first = draw(d, 0, 1);
  INPUT("j%d float[%d,%d,%d,%d]", d->last, d->n, c, d->h, d->w);
  if (first)
    NODE("Concat n%d j%d v%d -> v%d | axis=1", d->last, d->last, d->last, d->last + 1);
  else
    NODE("Concat n%d v%d j%d -> v%d | axis=1", d->last, d->last, d->last, d->last + 1);
  d->last++;
  d->c += c;
  add_activation(d);
}

// Behind the last layer: an input of its shape, or, where that is of this shape, the first value.
static void add_residual(drawn_t* d, int c, int h, int w) {
  const bool first = d->c == c && d->h == h && d->w == w;
  if (!first) INPUT("z float[%d,%d,%d,%d]", d->n, d->c, d->h, d->w);
  NODE("Add s v%d %s -> v%d", d->last, first ? "v1" : "z", d->last + 1);
  d->last++;
}

static void draw_model(uint64_t seed, drawn_t* d) {
  *d = (drawn_t){.graph = {.name = "drawn", .opset = 17}, .state = seed * 977 + 1};
  for (int i = 0; i < 8; i++) draw(d, 0, 1);
  d->n = draw(d, 1, 3);
  d->h = draw(d, 5, 70);
  d->w = draw(d, 5, 70);
  d->c = draw(d, 0, 3) ? draw(d, 1, 4) * 16 : 3;
  INPUT("v0 float[%d,%d,%d,%d]", d->n, d->c, d->h, d->w);
  if (d->c == 3) {
    CONSTANT("first float[32,3,3,3]");
    NODE("Conv n v0 first -> v1 | pads=1,1,1,1");
    d->c = 32;
  } else {  // values lie channels last behind it
    CONSTANT("first float[%d,%d,1,1]", d->c, d->c);
    NODE("Conv n v0 first -> v1");
  }
  d->last = 1;
  const int c = d->c, h = d->h, w = d->w;
  for (int i = draw(d, 1, STEPS); i > 0; i--) {
    static void (*const add[])(drawn_t*) = {add_conv, add_depthwise, add_conv,   add_depthwise,
                                            add_gate, add_pool,      add_halves, add_joined};
    add[draw(d, 0, 7)](d);
  }
  if (draw(d, 0, 1)) add_residual(d, c, h, w);
  d->graph.outputs = text(d, "v%d", d->last);
}

static assay_status_t inspect(void* user, const assay_layer_t* layer, const assay_node_t* node,
                              uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                              size_t n_out, assay_tensor_t* const* out) {
  (void)layer, (void)node, (void)iteration, (void)n_in, (void)in, (void)n_out, (void)out;
  ++*(int64_t*)user;
  return NULL;
}

// Layers that ran in row pipelines.
static int64_t in_pipelines(const assay_executor_t* e) {
  int64_t n = 0;
  for (size_t i = 0; i < assay_executor_n_steps(e); i++) {
    assay_str_t s = {0};
    assay_executor_explain(e, i, &s);
    n += strstr(assay_str_get(&s), "runs with its neighbours") != NULL;
    assay_str_deinit(&s);
  }
  return n;
}

static int64_t run(assay_plan_t* plan, bool tapped, assay_tensor_t* const* in,
                   assay_tensor_t** out) {
  int64_t seen = 0;
  const assay_tap_t tap = {inspect, &seen};
  assay_executor_t* e = NULL;
  op_case_ok(assay_executor_run_plan(plan, assay_backend_find("cpu"), tapped ? &tap : NULL, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  for (size_t i = 0; i < g->n_inputs; i++) op_case_ok(assay_executor_set(e, g->inputs[i], in[i]));
  op_case_ok(assay_executor_run(e));
  *out = assay_executor_get(e, g->outputs[0]);
  assert_non_null(*out);
  assay_tensor_retain(*out);
  const int64_t n = in_pipelines(e);
  if (tapped && (!seen || n)) fail_msg("a tap saw %d layers, and pipelines", (int)seen);
  assay_executor_destroy(e);
  return n;
}

static int64_t check(const drawn_t* d, uint64_t seed, assay_format_t format) {
  const assay_precision_t precision = {.format = format};
  const int threads = omp_get_max_threads();
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *want, *got;
  assay_model_t* m = graph_case_model(&d->graph, in);
  assay_plan_t* plan = NULL;
  int64_t pipelines = 0;
  op_case_ok(assay_plan_create(m, &precision, &(assay_plan_options_t){.fused = true}, 1, &plan));
  run(plan, true, in, &want);
  for (int round = 0; round < ROUNDS; round++) {
    static const int with[ROUNDS] = {1, 2, 5};
    omp_set_num_threads(with[round]);
    pipelines += run(plan, false, in, &got);
    const bool same = tactic_case_identical(want, got);
    assay_tensor_release(got);
    if (same) continue;
    for (size_t i = 0; i < d->n_text; i++) print_message("%s\n", d->text[i]);
    fail_msg("seed %llu, format %d, %d threads: other bits than layer by layer",
             (unsigned long long)seed, (int)format, with[round]);
  }
  omp_set_num_threads(threads);
  assay_tensor_release(want);
  assay_plan_destroy(plan);
  graph_case_release(in);
  assay_model_release(m);
  return pipelines;
}

static void test_drawn(void** state) {
  (void)state;
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16};
  int64_t pipelines[3] = {0};
  const uint64_t models = (uint64_t)test_draws(MODELS);
  print_message("seeds %llu to %llu\n", (unsigned long long)first_seed,
                (unsigned long long)(first_seed + models - 1));
  for (uint64_t seed = first_seed; seed < first_seed + models; seed++) {
    drawn_t d;
    draw_model(seed, &d);
    for (int f = 0; f < 3; f++) pipelines[f] += check(&d, seed, formats[f]);
  }
  print_message("layers in pipelines: fp32 %lld, bf16 %lld, fp16 %lld\n", (long long)pipelines[0],
                (long long)pipelines[1], (long long)pipelines[2]);
  // Kernels that work by rows need AVX-512.
  if (__builtin_cpu_supports("avx512f"))
    assert_true(pipelines[0] > (int64_t)models);
  else
    skipped_part("layers in row pipelines", "no AVX-512 here");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawn)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
