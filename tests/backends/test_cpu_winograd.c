// Convolutions by Winograd's filtering: against the emulated engine, with what comes behind them;
// what is not finite, huge or tiny; the same bits whatever the batch and the threads; and errors
// within their bounds and as the accuracy gate's model has them.
#include <float.h>

#include "account/account.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu_level.h"
#include "backends/tactic_case.h"
#include "seed_case.h"
#include "skip_case.h"

// ---- layers -------------------------------------------------------------------------------------

#define ROW(...) \
  { {__VA_ARGS__, "y"}, NULL, 1e-5, false }

static const tactic_case_t layers[] = {
    ROW("many tiles", 17, {"x float[2,64,41,40]"}, {"w float[96,64,3,3]", "b float[96]"},
        {"Conv n x w b -> h | pads=1,1,1,1", "Relu r h -> y"}),
    ROW("nothing behind, no padding", 17, {"x float[1,16,30,33]"}, {"w float[32,16,3,3]"},
        {"Conv n x w -> y"}),
    ROW("uneven pads and channels", 17, {"x float[2,19,25,31]"},
        {"w float[33,19,3,3]", "b float[33]"}, {"Conv n x w b -> y | pads=2,0,1,3"}),
    ROW("a residual sum", 17, {"x float[2,64,14,14]", "z float[2,64,14,14]"},
        {"w float[64,64,3,3]", "b float[64]"},
        {"Conv n x w b -> h | pads=1,1,1,1", "Add a h z -> s", "Relu r s -> y"}),
    ROW("few tiles and many channels", 17, {"x float[1,200,13,12]"}, {"w float[210,200,3,3]"},
        {"Conv n x w -> h | pads=1,1,1,1", "Sigmoid r h -> y"}),
    ROW("dilations, a residual sum", 17, {"x float[2,32,23,26]", "z float[2,48,23,26]"},
        {"w float[48,32,3,3]", "b float[48]"},
        {"Conv n x w b -> h | pads=2,3,2,3 dilations=2,3", "Add a h z -> s", "Relu r s -> y"}),
    ROW("a dilation of one axis", 17, {"x float[1,64,21,30]"}, {"w float[64,64,3,3]"},
        {"Conv n x w -> h | pads=1,4,1,4 dilations=1,4", "Relu r h -> y"}),
    ROW("as many tiles as places", 17, {"x float[1,64,40,9]"}, {"w float[64,64,3,3]"},
        {"Conv n x w -> h | pads=3,1,3,1 dilations=3,1", "Sigmoid r h -> y"}),
    ROW("rows that share sets of the cache", 17, {"x float[1,512,24,20]"}, {"w float[32,512,3,3]"},
        {"Conv n x w -> y | pads=1,1,1,1"}),
    ROW("a row of places", 17, {"x float[1,32,3,200]"}, {"w float[64,32,3,3]"},
        {"Conv n x w -> y | pads=1,1,1,1"}),
};

static void layers_agree(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
    tactic_case_t bound = layers[i];
    bound.tolerance *= 5;
    tactic_case_check_in(ASSAY_FP32_TIGHT, &layers[i]);
    tactic_case_check_in(ASSAY_FP32_BOUND, &bound);
  }
}

// ---- a convolution of drawn sizes ---------------------------------------------------------------

typedef struct sizes {
  int64_t n, c, m, h, w, top, left, bottom, right;
  int64_t dilation[2];  // less 1
} sizes_t;

typedef struct drawn {
  assay_model_t* model;
  assay_tensor_t* in[GRAPH_CASE_ROWS];
} drawn_t;

static drawn_t make(const sizes_t* s) {
  char x[80], w[80], b[80], node[120];
  snprintf(x, sizeof x, "x float[%d,%d,%d,%d]", (int)s->n, (int)s->c, (int)s->h, (int)s->w);
  snprintf(w, sizeof w, "w float[%d,%d,3,3]", (int)s->m, (int)s->c);
  snprintf(b, sizeof b, "b float[%d]", (int)s->m);
  snprintf(node, sizeof node, "Conv n x w b -> y | pads=%d,%d,%d,%d dilations=%d,%d", (int)s->top,
           (int)s->left, (int)s->bottom, (int)s->right, (int)s->dilation[0] + 1,
           (int)s->dilation[1] + 1);
  const graph_case_t row = {"drawn", 17, {x}, {w, b}, {node}, "y"};
  drawn_t d = {0};
  d.model = graph_case_model(&row, d.in);
  return d;
}

static void release(drawn_t* d) {
  graph_case_release(d->in);
  assay_model_release(d->model);
}

// How a layer runs: 16-bit formats are widened and rounded around the same sums.
typedef struct way {
  assay_fp32_t fp32;
  assay_format_t format;
  double unit;  // of the format, where it is larger than what sums err
} way_t;

static const way_t ways[] = {
    {ASSAY_FP32_TIGHT, ASSAY_FORMAT_FP32, 0},       {ASSAY_FP32_BOUND, ASSAY_FORMAT_FP32, 0},
    {ASSAY_FP32_TIGHT, ASSAY_FORMAT_BF16, 0x1p-7},  {ASSAY_FP32_BOUND, ASSAY_FORMAT_BF16, 0x1p-7},
    {ASSAY_FP32_TIGHT, ASSAY_FORMAT_FP16, 0x1p-10}, {ASSAY_FP32_BOUND, ASSAY_FORMAT_FP16, 0x1p-10},
};
enum { WAYS = sizeof ways / sizeof *ways };

static void run_in(const way_t* way, const drawn_t* d, tactic_run_t* r) {
  op_case_ok(tactic_case_try_in(way->fp32, d->model, "cpu", way->format, d->in, r));
}

static void serves_by_setting(void** state) {
  (void)state;
  static const char* const names[] = {"winograd_2_3", "emu", "winograd_4_3"};
  if (cpu_level() < CPU_LEVEL_AVX2) skip_because("no AVX2 here");
  drawn_t d = make(&(sizes_t){1, 64, 64, 30, 30, 1, 1, 1, 1, {0}});
  // No CPU multiplies fp16 here; those that multiply bf16 have better.
  for (int i = 0; i < 6; i++) {
    const way_t way = {(assay_fp32_t)(i % 3), i < 3 ? ASSAY_FORMAT_FP32 : ASSAY_FORMAT_FP16, 0};
    tactic_run_t r;
    run_in(&way, &d, &r);
    assert_string_equal(r.tactic, names[i % 3]);
    tactic_case_release(&r);
  }
  release(&d);
}

// ---- what is out of range -----------------------------------------------------------------------

// Kernels on tiles take subnormal numbers as zeros, and say so.
static bool flushes(const char* tactic) {
  for (size_t t = 0; t < cpu_n_tactics; t++)
    if (strcmp(cpu_tactics[t]->name, tactic) == 0) return cpu_tactics[t]->rounding.flushes;
  return false;
}

static int class_of(double x, double min) {
  return isnan(x) ? 1 : isinf(x) ? (x > 0 ? 2 : 3) : fabs(x) <= min ? 4 : 0;
}

static void compare_classes(const drawn_t* d, const way_t* way, const char* what) {
  const way_t plain = {ASSAY_FP32_PLAIN, way->format, 0};
  tactic_run_t want, got;
  run_in(&plain, d, &want);
  run_in(way, d, &got);
  double largest = 0;
  const double min = flushes(want.tactic) || flushes(got.tactic) ? FLT_MIN : 0;
  for (int64_t i = 0; i < want.out[0]->size; i++) {
    const double x = fabs(assay_f64(want.out[0])[i]);
    if (x < 1e30) largest = fmax(largest, x);
  }
  for (int64_t i = 0; i < want.out[0]->size; i++) {
    const double a = assay_f64(want.out[0])[i], b = assay_f64(got.out[0])[i];
    if (class_of(a, min) != class_of(b, min))
      fail_msg("%s, %s: element %lld is %g, plain's %g", what, got.tactic, (long long)i, b, a);
    if (class_of(a, min) == 0 && !(fabs(a - b) <= (1e-4 + way->unit) * fmax(fabs(a), largest)))
      fail_msg("%s, %s: element %lld is %.9g, plain's %.9g", what, got.tactic, (long long)i, b, a);
  }
  tactic_case_release(&want);
  tactic_case_release(&got);
}

static void specials_keep_their_class(void** state) {
  (void)state;
  static const double specials[] = {NAN,      INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 0x1p127,
                                    0x1p-149, -1e-40,   0x1p-126,  1e-35,   1e25,     -0.0};
  const sizes_t s = {1, 24, 32, 19, 22, 1, 0, 1, 2, {0}};
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
    for (int at = 0; at < 5; at++) {
      drawn_t d = make(&s);
      double* x = assay_f64(d.in[0]);
      const int64_t size = d.in[0]->size;
      const int64_t places[] = {0, size - 1, size / 2, 7 * s.w + 6, size / 3};
      char what[60];
      snprintf(what, sizeof what, "%g at %d", specials[i], at);
      x[places[at]] = specials[i];
      if (at == 4) x[places[at] + 9] = specials[(i + 1) % 2];
      for (int k = 0; k < WAYS; k++) compare_classes(&d, &ways[k], what);
      release(&d);
    }
  }
}

// All numbers tiny or zero, windows of zeros, and all of one size that is out of range.
static void whole_inputs_out_of_range(void** state) {
  (void)state;
  static const double factors[] = {0, 1e-40, 1e-33, 1e30, 0x1p126};
  for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
    drawn_t d = make(&(sizes_t){1, 24, 32, 19, 22, 1, 1, 1, 1, {0}});
    double* b = assay_f64(d.model->graph->nodes[0]->inputs[2]->constant);
    for (int64_t k = 0; k < 32; k++) b[k] = 0;
    for (int64_t k = 0; k < d.in[0]->size; k++)
      assay_f64(d.in[0])[k] = k % 22 < 9 ? 0 : (double)(float)(assay_f64(d.in[0])[k] * factors[i]);
    // Sums past the range depend on their order: one term only.
    for (int64_t k = 0; factors[i] > 1e36 && k < d.in[0]->size; k++)
      if (k % (19 * 22) || k / (19 * 22) != 3) assay_f64(d.in[0])[k] = 0;
    for (int k = 0; k < WAYS; k++) compare_classes(&d, &ways[k], "all");
    release(&d);
  }
}

// ---- bits ---------------------------------------------------------------------------------------

static assay_tensor_t* sample(const assay_tensor_t* t, int64_t i) {
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* part = NULL;
  memcpy(dims, t->dims, sizeof dims);
  dims[0] = 1;
  op_case_ok(assay_tensor_create(t->type, t->rank, dims, &part));
  memcpy(part->data, assay_f64(t) + i * part->size, (size_t)part->size * 8);
  return part;
}

// A sample by itself, among others, one of which holds what is not finite, and with any number of
// threads.
static void check_bits(const sizes_t* s, const way_t* way) {
  drawn_t all = make(s);
  sizes_t one = *s;
  one.n = 1;
  drawn_t single = make(&one);
  tactic_run_t want, got;
  assay_f64(all.in[0])[17] = INFINITY;
  run_in(way, &all, &want);
  for (int threads = 1; threads <= 5; threads += 2)
    for (int64_t i = 0; i < s->n; i++) {
      assay_tensor_t* expected = sample(want.out[0], i);
      const int before = omp_get_max_threads();
      assay_tensor_release(single.in[0]);
      single.in[0] = sample(all.in[0], i);
      for (int k = 1; k <= 2; k++) {  // the model's constants are drawn anew
        const assay_node_t* n = single.model->graph->nodes[0];
        const assay_tensor_t* from = all.model->graph->nodes[0]->inputs[k]->constant;
        memcpy(n->inputs[k]->constant->data, from->data, (size_t)from->size * 8);
      }
      omp_set_num_threads(threads);
      run_in(way, &single, &got);
      omp_set_num_threads(before);
      if (!tactic_case_identical(expected, got.out[0]))
        fail_msg("%s with %d threads: sample %lld has other bits by itself", got.tactic, threads,
                 (long long)i);
      assay_tensor_release(expected);
      tactic_case_release(&got);
    }
  tactic_case_release(&want);
  release(&single);
  release(&all);
}

static void bits_depend_on_nothing_else(void** state) {
  (void)state;
  static const sizes_t sizes[] = {{5, 32, 48, 21, 20, 1, 1, 1, 1, {0}},
                                  {3, 130, 100, 15, 13, 1, 0, 1, 0, {0}},
                                  {2, 16, 16, 90, 70, 1, 1, 1, 1, {0}},
                                  {3, 64, 40, 33, 30, 4, 2, 4, 2, {3, 1}}};
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < WAYS; k++) check_bits(&sizes[i], &ways[k]);
}

// ---- errors -------------------------------------------------------------------------------------

static int64_t draw(uint64_t* state, int64_t from, int64_t to) {
  return from + (int64_t)((graph_case_random(state) + 1) / 2 * (double)(to - from + 1));
}

typedef enum content { NORMAL, ONE_SIGN, ONE_HUGE, SMALL, CONTENTS } content_t;

static void fill(drawn_t* d, content_t content, uint64_t* state) {
  assay_tensor_t* x = d->in[0];
  for (int64_t i = 0; i < x->size; i++) {
    double v = 1.5 * graph_case_random(state) + graph_case_random(state);
    if (content == ONE_SIGN) v = fabs(v);
    if (content == SMALL) v *= 0x1p-90;
    assay_f64(x)[i] = (double)(float)v;
  }
  if (content == ONE_HUGE) assay_f64(x)[x->size / 2] = 3e7;
}

// No element passes its bound, and the accuracy gate holds on these inputs, too.
static void check_account(const sizes_t* s, content_t content, const way_t* way, uint64_t seed) {
  uint64_t state = seed;
  drawn_t d = make(s);
  assay_plan_t* plan = NULL;
  assay_account_t* a = NULL;
  const assay_precision_t precision = {.format = way->format};
  const assay_plan_options_t options = {.fused = true, .fp32 = way->fp32};
  const assay_account_options_t account = {0};
  fill(&d, content, &state);
  op_case_ok(assay_plan_create(d.model, &precision, &options, 1, &plan));
  op_case_ok(assay_account_create(plan, assay_backend_find("cpu"), &account, &a));
  op_case_ok(assay_account_run(a, d.in));
  const assay_layer_account_t* l = assay_account_layer(a, 0);
  const assay_gated_t* gated = &l->gated;
  if (l->judged.beyond || l->verdict == ASSAY_VERDICT_DEFECT)
    fail_msg("seed %llu, setting %d, format %d, content %d: %lld elements past their bounds, %s",
             (unsigned long long)seed, (int)way->fp32, (int)way->format, (int)content,
             (long long)l->judged.beyond, assay_verdict_name(l->verdict));
  // One number far above its neighbours is what a tile is judged by, not each of its elements.
  if (gated->here && content != ONE_HUGE) {
    const double sums = gated->gate.own / gated->gate.plain;
    const double model = way->unit > 0 ? fmax(1, sums) : sums;  // both round to 16 bits
    const bool predicted = gated->own2 <= 2.25 * model * model * gated->plain2;
    if (!assay_gated_holds(gated) || !predicted)
      fail_msg(
          "seed %llu, setting %d, format %d, content %d: own error %.2g of plain's; by the "
          "model %.2g",
          (unsigned long long)seed, (int)way->fp32, (int)way->format, (int)content,
          sqrt(gated->own2 / gated->plain2), model);
  }
  assay_account_destroy(a);
  assay_plan_destroy(plan);
  release(&d);
}

static void errors_are_within_bounds(void** state) {
  (void)state;
  uint64_t seed = test_seed();
  for (int i = 0; i < 36; i++) {
    const sizes_t s = {.n = draw(&seed, 1, 2),
                       .c = draw(&seed, 16, 70),
                       .m = draw(&seed, 16, 70),
                       .h = draw(&seed, 8, 26),
                       .w = draw(&seed, 8, 26),
                       .top = draw(&seed, 0, 2),
                       .left = draw(&seed, 0, 2),
                       .bottom = draw(&seed, 0, 2),
                       .right = draw(&seed, 0, 2),
                       .dilation = {i % 3 ? 0 : draw(&seed, 0, 2), i % 4 ? 0 : draw(&seed, 0, 2)}};
    check_account(&s, (content_t)(i % CONTENTS), &ways[i % WAYS], seed);
  }
}

int main(void) {
  // Whatever would be chosen on this CPU: what else takes these layers is left out.
  tactic_case_sources = "assay,-split_3,-split_6,-direct_conv,-gemm_weights,-conv_few_channels";
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers_agree),
                                     cmocka_unit_test(serves_by_setting),
                                     cmocka_unit_test(specials_keep_their_class),
                                     cmocka_unit_test(whole_inputs_out_of_range),
                                     cmocka_unit_test(bits_depend_on_nothing_else),
                                     cmocka_unit_test(errors_are_within_bounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
