// Convolutions by kernels of our own: of one place of the kernel, depthwise, and of few channels,
// with what comes behind them, against the emulated engine, with several numbers of threads and
// batches. Besides the rows, drawn ones: a failure's name is what was drawn.
#include "backends/tactic_case.h"

static const tactic_case_t rows[] = {
    {{"depthwise, narrow, residual sum",
      17,
      {"x float[2,48,7,7]", "z float[2,48,7,7]"},
      {"w float[48,1,5,5]", "b float[48]"},
      {"Conv n x w b -> h | group=48 pads=2,2,2,2", "Add a h z -> s", "HardSwish r s -> y"},
      "y"},
     "depthwise",
     1e-5,
     false},
    {{"depthwise, one dimension, dilated",
      17,
      {"x float[3,19,70]"},
      {"w float[19,1,5]"},
      {"Conv n x w -> y | group=19 dilations=3 pads=6,4"},
      "y"},
     "depthwise",
     1e-5,
     false},
    {{"depthwise, windows in the padding alone",
      17,
      {"x float[1,33,3,2]"},
      {"w float[33,1,3,3]"},
      {"Conv n x w -> h | group=33 pads=5,4,3,6", "Relu r h -> y"},
      "y"},
     "depthwise",
     1e-5,
     false},
    {{"depthwise, special inputs",
      17,
      {"x float[2,34,12,30]"},
      {"w float[34,1,3,3]"},
      {"Conv n x w -> y | group=34 pads=1,1,1,1 strides=2,2"},
      "y"},
     "depthwise",
     1e-5,
     true},
    {{"depthwise, stride, a tail of few channels, swish",
      17,
      {"x float[2,72,15,29]"},
      {"w float[72,1,5,5]", "b float[72]"},
      {"Conv n x w b -> h | group=72 pads=2,1,2,3 strides=2,2", "Sigmoid g h -> s",
       "Mul m h s -> y"},
      "y"},
     "depthwise",
     1e-5,
     false},
    {{"depthwise, rows in the padding, clipped",
      17,
      {"x float[1,50,9,33]"},
      {"w float[50,1,7,7]", "lo float[] -0.5", "hi float[] 2"},
      {"Conv n x w -> h | group=50 pads=9,3,8,3", "Clip c h lo hi -> y"},
      "y"},
     "depthwise",
     1e-5,
     false},
    {{"depthwise, long rows of special inputs, swish",
      17,
      {"x float[2,40,6,64]"},
      {"w float[40,1,3,3]"},
      {"Conv n x w -> h | group=40 pads=1,1,1,1", "Sigmoid g h -> s", "Mul m h s -> y"},
      "y"},
     "depthwise",
     1e-5,
     true},
    {{"depthwise, a weight that is infinite",
      17,
      {"x float[1,16,5,5] positive"},
      {"w float[16,1,1,1] 1 2 3 4 5 6 7 inf 1 2 3 4 5 6 7 8"},
      {"Conv n x w -> y | group=16 pads=1,1,1,1"},
      "y"},
     "depthwise",
     1e-5,
     false},
    {{"one place, odd sizes, residual sum",
      17,
      {"x float[2,38,9,11]", "z float[2,21,9,11]"},
      {"w float[21,38,1,1]", "b float[21]"},
      {"Conv n x w b -> h", "Add a h z -> s", "Relu r s -> y"},
      "y"},
     NULL,
     1e-5,
     false},
    {{"one place of one place, then a sigmoid",
      17,
      {"x float[3,120,1,1]"},
      {"w float[32,120,1,1]", "b float[32]"},
      {"Conv n x w b -> h", "HardSigmoid r h -> y"},
      "y"},
     NULL,
     1e-5,
     false},
    {{"one place, scaled by channel behind it",
      17,
      {"x float[2,24,6,7]", "s float[1,72,1,1]"},
      {"w float[72,24,1,1]"},
      {"Conv n x w -> h", "Mul r h s -> y"},
      "y"},
     NULL,
     1e-5,
     false},
};

// Means over places, and what is multiplied by them.
static const tactic_case_t means[] = {
    {{"of an odd number of channels",
      17,
      {"x float[3,70,9,11]"},
      {"w float[70,70,1,1]"},
      {"Conv c x w -> h", "GlobalAveragePool n h -> y"},
      "y"},
     NULL,
     1e-5,
     false},
    {{"by axes, three places",
      17,
      {"x float[2,160,5,3,2]"},
      {0},
      {"ReduceMean n x -> y | axes=2,3,-1 keepdims=0"},
      "y"},
     NULL,
     1e-5,
     false},
    {{"specials",
      18,
      {"x float[2,33,6,7]"},
      {"a int64[2] 3 2"},
      {"ReduceMean n x a -> y | keepdims=1"},
      "y"},
     NULL,
     1e-5,
     true},
    {{"scaled by sample and channel",
      17,
      {"x float[3,72,28,28]", "s float[3,72,1,1]"},
      {"w float[72,72,1,1]"},
      {"Conv c x w -> h", "Mul n h s -> y"},
      "y"},
     NULL,
     1e-5,
     false},
    {{"scaled by channel, shifted by another",
      17,
      {"x float[2,24,20,30]", "s float[1,24,1,1]", "t float[24,1,1]"},
      {"w float[24,24,1,1]"},
      {"Conv c x w -> h", "Mul m h s -> i", "Add a i t -> j", "Relu n j -> y"},
      "y"},
     NULL,
     1e-5,
     false},
};

// What is drawn. Numbers depend on the seed and the row only.
typedef struct draw {
  uint64_t state;
} draw_t;

static int64_t drawn(draw_t* d, int64_t low, int64_t high) {
  const double x = (graph_case_random(&d->state) + 1) / 2;
  const int64_t n = low + (int64_t)(x * (double)(high - low + 1));
  return n > high ? high : n;
}

typedef struct text {
  char name[64], x[96], z[96], w[96], b[64], conv[256], behind[2][64];
} text_t;

static const char* const functions[] = {"Relu",      "HardSwish", "Sigmoid", "HardSigmoid",
                                        "LeakyRelu", "Tanh",      "Clip",    "Identity"};

typedef enum kind { DEPTHWISE, ONE_PLACE, FEW_CHANNELS, KINDS } kind_t;

static void draw_case(draw_t* d, uint64_t seed, int row, text_t* t, tactic_case_t* c) {
  const kind_t kind = (kind_t)(row % KINDS);
  const int64_t n = drawn(d, 1, 3), in = kind == FEW_CHANNELS ? drawn(d, 1, 4) : drawn(d, 1, 150);
  const int64_t made = kind == DEPTHWISE ? in : drawn(d, 1, 100);
  const int64_t kh = kind == ONE_PLACE ? 1 : drawn(d, 1, 7);
  const int64_t kw = kind == ONE_PLACE ? 1 : drawn(d, 0, 3) ? kh : drawn(d, 1, 7);
  const int64_t stride = kind == ONE_PLACE ? 1 : drawn(d, 1, 3);
  const int64_t sw = drawn(d, 0, 3) || kind == ONE_PLACE ? stride : drawn(d, 1, 3);
  const int64_t dh = kind == ONE_PLACE || drawn(d, 0, 3) ? 1 : drawn(d, 1, 3);
  const int64_t dw = kind == ONE_PLACE || drawn(d, 0, 3) ? 1 : drawn(d, 1, 3);
  int64_t pads[4] = {0};
  for (int i = 0; i < 4 && kind != ONE_PLACE; i++) pads[i] = drawn(d, 0, i % 2 ? kw : kh);
  const int64_t h = (kh - 1) * dh + drawn(d, 1, 40), w = (kw - 1) * dw + drawn(d, 1, 70);
  const int64_t oh = (h + pads[0] + pads[2] - (kh - 1) * dh - 1) / stride + 1;
  const int64_t ow = (w + pads[1] + pads[3] - (kw - 1) * dw - 1) / sw + 1;
  const bool bias = drawn(d, 0, 1), sum = drawn(d, 0, 2) == 0;
  const int64_t function = drawn(d, 0, (int64_t)(sizeof functions / sizeof *functions));
#define LL(x) ((long long)(x))
  snprintf(t->name, sizeof t->name, "drawn row %d of seed %llu", row, (unsigned long long)seed);
  snprintf(t->x, sizeof t->x, "x float[%lld,%lld,%lld,%lld]", LL(n), LL(in), LL(h), LL(w));
  snprintf(t->z, sizeof t->z, "z float[%lld,%lld,%lld,%lld]", LL(n), LL(made), LL(oh), LL(ow));
  snprintf(t->w, sizeof t->w, "w float[%lld,%lld,%lld,%lld]", LL(made),
           LL(kind == DEPTHWISE ? 1 : in), LL(kh), LL(kw));
  snprintf(t->b, sizeof t->b, "b float[%lld]", LL(made));
  snprintf(t->conv, sizeof t->conv,
           "Conv n x w%s -> h | group=%lld strides=%lld,%lld dilations=%lld,%lld "
           "pads=%lld,%lld,%lld,%lld",
           bias ? " b" : "", LL(kind == DEPTHWISE ? in : 1), LL(stride), LL(sw), LL(dh), LL(dw),
           LL(pads[0]), LL(pads[1]), LL(pads[2]), LL(pads[3]));
#undef LL
  *c = (tactic_case_t){.graph = {.name = t->name, .outputs = "y"}, .tolerance = 2e-5};
  c->graph.inputs[0] = t->x;
  if (sum) c->graph.inputs[1] = t->z;
  c->graph.constants[0] = t->w;
  if (bias) c->graph.constants[1] = t->b;
  c->graph.nodes[0] = t->conv;
  snprintf(t->behind[0], sizeof t->behind[0], "Add a h z -> s");
  if (sum) c->graph.nodes[1] = t->behind[0];
  const bool last = function < (int64_t)(sizeof functions / sizeof *functions);
  snprintf(t->behind[1], sizeof t->behind[1], "%s r %s -> y", last ? functions[function] : "Neg",
           sum ? "s" : "h");
  c->graph.nodes[sum ? 2 : 1] = t->behind[1];
}

static void rows_agree(void** state) {
  (void)state;
  tactic_case_all(rows, sizeof rows / sizeof *rows);
}

static void means_and_scales_agree(void** state) {
  (void)state;
  tactic_case_all(means, sizeof means / sizeof *means);
}

static void drawn_rows_agree(void** state) {
  (void)state;
  enum { ROWS = 60 };
  const char* given = getenv("ASSAY_TEST_SEED");
  const uint64_t seed = given ? strtoull(given, NULL, 10) : 20261122;
  for (int i = 0; i < ROWS; i++) {
    draw_t d = {seed * UINT64_C(0x2545f4914f6cdd1d) + (uint64_t)i};
    text_t t;
    tactic_case_t c;
    draw_case(&d, seed, i, &t, &c);
    print_message("%s: %s; %s; %s; %s\n", t.name, t.x, t.w, t.conv, t.behind[1]);
    tactic_case_check(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_agree),
                                     cmocka_unit_test(means_and_scales_agree),
                                     cmocka_unit_test(drawn_rows_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
