// Transposed convolutions on the CPU against the emulated engine: rows, and random attributes.
// Which of these are tried is told by their seeds:
//   backends_test_cpu_conv_transpose [FIRST_SEED [COUNT]]
#include <stdlib.h>

#include "backends/tactic_case.h"

static uint64_t first_seed = 1;
static uint64_t n_seeds = 60;

static const tactic_case_t rows[] = {
    {{"a decoder's step",
      17,
      {"x float[2,64,15,17]"},
      {"w float[64,32,2,2]", "b float[32]"},
      {"ConvTranspose n x w b -> h | strides=2,2", "Relu r h -> y"},
      "y"},
     "conv_transpose",
     1e-5,
     false},
    {{"nothing behind, many channels",
      17,
      {"x float[2,160,7,9]"},
      {"w float[160,320,4,4]"},
      {"ConvTranspose n x w -> y | strides=2,2 pads=1,1,1,1"},
      "y"},
     "conv_transpose",
     1e-5,
     false},
    {{"few channels, wide kernel",
      17,
      {"x float[1,56,40,30]"},
      {"w float[56,1,9,9]", "b float[1]"},
      {"ConvTranspose n x w b -> y | strides=3,3 pads=4,4,4,4 output_padding=2,1"},
      "y"},
     "conv_transpose",
     1e-5,
     false},
    {{"colours, and what is behind them",
      17,
      {"x float[2,34,21,300]", "z float[2,3,42,600]"},
      {"w float[34,3,4,4]", "b float[3]"},
      {"ConvTranspose n x w b -> h | strides=2,2 pads=1,1,1,1", "Tanh t h -> u", "Add a z u -> y"},
      "y"},
     "conv_transpose",
     1e-5,
     false},
    {{"depthwise, and a residual sum",
      17,
      {"x float[2,70,11,13]", "z float[2,70,22,26]"},
      {"w float[70,1,4,4]", "b float[70]"},
      {"ConvTranspose n x w b -> h | group=70 strides=2,2 pads=1,1,1,1", "Add a h z -> s",
       "LeakyRelu r s -> y"},
      "y"},
     "conv_transpose",
     1e-5,
     false},
    {{"one axis, long",
      17,
      {"x float[2,24,900]"},
      {"w float[24,48,16]", "b float[48]"},
      {"ConvTranspose n x w b -> h | strides=8 pads=4,4", "Sigmoid s h -> g", "Mul m h g -> y"},
      "y"},
     "conv_transpose",
     1e-5,
     false},
    {{"three axes, groups",
      17,
      {"x float[1,12,5,6,7]"},
      {"w float[12,10,3,2,3]"},
      {"ConvTranspose n x w -> y | group=3 strides=2,1,3 dilations=1,2,1 pads=1,0,1,0,1,2"},
      "y"},
     "conv_transpose",
     1e-5,
     false},
    {{"places that nothing reaches",
      17,
      {"x float[1,8,5,5]"},
      {"w float[8,5,2,2]", "b float[5]"},
      {"ConvTranspose n x w b -> y | strides=4,5 output_padding=3,2"},
      "y"},
     "conv_transpose",
     1e-5,
     false},
    {{"an output shape, more behind",
      17,
      {"x float[1,6,9,9]"},
      {"w float[6,7,3,3]"},
      {"ConvTranspose n x w -> y | strides=3,3 output_shape=30,26 auto_pad=SAME_UPPER"},
      "y"},
     "conv_transpose",
     1e-5,
     false},
    {{"of old",
      7,
      {"x float[1,6,9,9]"},
      {"w float[6,7,4,3]"},
      {"ConvTranspose n x w -> y | strides=2,2 output_shape=17,18 auto_pad=SAME_LOWER"},
      "y"},
     "conv_transpose",
     1e-5,
     false},
    {{"NaN and infinity stay where they are",
      17,
      {"x float[1,6,9,9]"},
      {"w float[6,7,3,3]"},
      {"ConvTranspose n x w -> y | strides=2,2 pads=1,1,1,1"},
      "y"},
     "conv_transpose",
     1e-5,
     true},
    {{"and of one channel, too",
      17,
      {"x float[1,6,9,9]"},
      {"w float[6,1,3,3]"},
      {"ConvTranspose n x w -> y | strides=2,2 pads=1,1,1,1 group=6"},
      "y"},
     "conv_transpose",
     1e-5,
     true},
    {{"behind a normalization that goes into the weights",
      17,
      {"x float[2,12,9,11]"},
      {"w float[12,10,3,3]", "s float[20]", "b float[20]", "m float[20]", "v float[20] positive"},
      {"ConvTranspose n x w -> h | group=2 strides=2,2", "BatchNormalization k h s b m v -> g",
       "Relu r g -> y"},
      "y"},
     "conv_transpose",
     1e-5,
     false},
};

static void rows_agree(void** state) {
  (void)state;
  tactic_case_all(rows, sizeof rows / sizeof *rows);
}

// ---- random attributes -------------------------------------------------------------------------

static uint64_t state_of_draws;
static int draw(int low, int high) {
  state_of_draws = state_of_draws * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return low + (int)((state_of_draws >> 33) % (uint64_t)(high - low + 1));
}

typedef struct texts {
  char name[64], x[96], z[96], w[96], b[64], node[320], other[96], last[64];
} texts_t;

static int put(char* to, size_t size, int at, const char* separator, int x) {
  return at + snprintf(to + at, size - (size_t)at, "%s%d", separator, x);
}

// A model of these attributes; false: its output would be empty.
static bool make_texts(uint64_t seed, texts_t* t) {
  static const int channels[] = {1, 1, 2, 3, 5, 8, 16, 31, 32, 33, 48, 64, 96};
  const int n_channels = sizeof channels / sizeof *channels;
  state_of_draws = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
  for (int i = 0; i < 5; i++) draw(0, 1);
  const int rank = draw(1, 3), group = draw(0, 3) ? 1 : draw(1, 8);
  const bool depthwise = draw(0, 5) == 0;
  const int cg = depthwise ? 1 : channels[draw(0, n_channels - 1)];
  const int mg = depthwise ? 1 : channels[draw(0, n_channels - 1)];
  const int groups = depthwise ? channels[draw(0, n_channels - 1)] : group;
  int stride[3], kernel[3], dilation[3], pads[6], more[3], in[3], out[3];
  for (int i = 0; i < rank; i++) {
    stride[i] = draw(1, 4);
    kernel[i] = draw(1, 5);
    dilation[i] = draw(0, 3) ? 1 : draw(2, 3);
    in[i] = draw(1, rank == 1 ? 400 : rank == 2 ? 24 : 7);
    const int reach = (kernel[i] - 1) * dilation[i] + 1;
    more[i] = draw(0, 2) ? 0 : draw(0, (stride[i] > dilation[i] ? stride[i] : dilation[i]) - 1);
    pads[i] = draw(0, reach - 1);
    pads[rank + i] = draw(0, reach - 1);
    out[i] = (in[i] - 1) * stride[i] + reach + more[i] - pads[i] - pads[rank + i];
    if (out[i] < 1) return false;
  }
  const int batch = draw(1, 3);
  int x = snprintf(t->x, sizeof t->x, "x float[%d,%d", batch, cg * groups);
  int w = snprintf(t->w, sizeof t->w, "w float[%d,%d", cg * groups, mg);
  int z = snprintf(t->z, sizeof t->z, "z float[%d,%d", batch, mg * groups);
  const bool biased = draw(0, 1), more_behind = draw(0, 1);
  int n = snprintf(t->node, sizeof t->node, "ConvTranspose n x w%s -> %s | group=%d",
                   biased ? " b" : "", more_behind ? "h" : "y", groups);
  for (int i = 0; i < rank; i++) {
    x = put(t->x, sizeof t->x, x, ",", in[i]);
    w = put(t->w, sizeof t->w, w, ",", kernel[i]);
    z = put(t->z, sizeof t->z, z, ",", out[i]);
  }
  snprintf(t->x + x, sizeof t->x - (size_t)x, "]");
  snprintf(t->w + w, sizeof t->w - (size_t)w, "]");
  snprintf(t->z + z, sizeof t->z - (size_t)z, "]");
  snprintf(t->b, sizeof t->b, "b float[%d]", mg * groups);
  for (int i = 0; i < rank; i++)
    n = put(t->node, sizeof t->node, n, i ? "," : " strides=", stride[i]);
  for (int i = 0; i < rank; i++)
    n = put(t->node, sizeof t->node, n, i ? "," : " dilations=", dilation[i]);
  for (int i = 0; i < rank; i++)
    n = put(t->node, sizeof t->node, n, i ? "," : " output_padding=", more[i]);
  for (int i = 0; i < 2 * rank; i++)
    n = put(t->node, sizeof t->node, n, i ? "," : " pads=", pads[i]);
  snprintf(t->other, sizeof t->other, "Add a %s -> s", draw(0, 1) ? "h z" : "z h");
  snprintf(t->last, sizeof t->last, "%s r s -> y", draw(0, 1) ? "Relu" : "HardSwish");
  snprintf(t->name, sizeof t->name, "seed %llu", (unsigned long long)seed);
  if (!more_behind) *t->other = 0;
  return true;
}

static void random_attributes_agree(void** state) {
  (void)state;
  for (uint64_t seed = first_seed; seed < first_seed + n_seeds; seed++) {
    texts_t t;
    if (!make_texts(seed, &t)) continue;
    tactic_case_t c = {
        {t.name, 17, {t.x}, {t.w, t.b}, {t.node}, "y"}, "conv_transpose", 2e-5, false};
    if (*t.other) {
      c.graph.inputs[1] = t.z;
      c.graph.nodes[1] = t.other;
      c.graph.nodes[2] = t.last;
    }
    tactic_case_check(&c);
  }
}

int main(int argc, char** argv) {
  if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
  if (argc > 2) n_seeds = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_agree),
                                     cmocka_unit_test(random_attributes_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
