// Normalizations with quantizers inside: rows of bytes by vectors and by plain C have the same
// bits, which are those of the nodes computed one by one in float64 wherever no number is at a tie;
// layers are run by the tactic, agree with the emulated engine, and lie within their limits.
#include "backends/cpu/int8/int8_norm.h"
#include "backends/tactic_case.h"
#include "base/random.h"

// ---- rows ---------------------------------------------------------------------------------------

typedef struct rows_case {
  const char* name;
  int64_t size, rows;
  assay_type_t x_type, type;
  float x_zero, zero, back_zero;
  char steps;  // the one that is quantized behind the squares: v, e, r; a: all
  int n_stages;
  float factor, term;  // of stages: about as large; 0: there is none
  bool alike;          // one factor for all
} rows_case_t;

#define U8 ASSAY_TYPE_UINT8
#define I8 ASSAY_TYPE_INT8

static const rows_case_t row_cases[] = {
    {"one vector", 16, 40, U8, U8, 120, 130, 130, 'v', 0, 0, 0, false},
    {"half a line", 32, 33, U8, U8, 0, 128, 128, 'a', 2, 1.2F, 0.3F, false},
    {"odd", 37, 19, U8, I8, 255, -3, -3, 'e', 1, 0.8F, 0.2F, false},
    {"one element", 1, 17, U8, U8, 100, 128, 128, 'v', 1, 1, 0, true},
    {"three", 3, 18, I8, I8, 5, 0, 0, 'r', 2, 2, 0.1F, false},
    {"signed", 64, 16, I8, U8, -128, 1, 1, 'a', 3, 0.9F, 0.05F, false},
    {"long", 1000, 5, I8, I8, 127, 0, 0, 'v', 1, 1.5F, 0, false},
    {"as long as may be", 32768, 2, U8, U8, 255, 128, 128, 'v', 1, 0, 0.4F, false},
    {"nothing changes", 48, 16, U8, U8, 120, 130, 130, 'v', 2, 1, 0, true},
    {"halves: ties", 64, 20, U8, U8, 128, 128, 128, 'v', 1, 0.5F, 0, true},
    {"another zero point behind", 65, 20, U8, U8, 128, 100, 140, 'v', 2, 0.7F, 0.1F, false},
};

static double uniform(uint64_t* state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(*state >> 11) * 0x1p-53;
}

static assay_norm_step_t step_of(assay_type_t type, float scale, float zero, float back_zero) {
  return (assay_norm_step_t){.is_there = true,
                             .type = type,
                             .scale = scale,
                             .zero = zero,
                             .back_scale = scale,
                             .back_zero = back_zero};
}

static assay_quantized_norm_t norm_of(const rows_case_t* c) {
  assay_quantized_norm_t q = {.x_type = c->x_type,
                              .x_scale = 0.02F,
                              .x_zero = c->x_zero,
                              .of_quotient = step_of(c->type, 0.03F, c->zero, c->back_zero)};
  const bool all = c->steps == 'a';
  if (all || c->steps == 'v') q.of_variance = step_of(U8, 0.011F, 0, 0);
  if (all || c->steps == 'e') q.of_sum = step_of(U8, 0.012F, 0, 0);
  if (all || c->steps == 'r') q.of_root = step_of(I8, 0.013F, -128, -128);
  q.n_stages = c->n_stages;
  for (int i = 0; i < q.n_stages; i++)
    q.stages[i].step = step_of(c->type, 0.03F, c->zero, c->back_zero);
  return q;
}

// ---- the definition, node by node ---------------------------------------------------------------

typedef struct exact {
  const assay_quantized_norm_t* q;
  const int8_norm_numbers_t* numbers;
  bool tie;  // a number was so near the middle between two steps that the next one may differ
} exact_t;

static double step_to(exact_t* e, const assay_norm_step_t* s, double x, int* byte) {
  const double min = s->type == I8 ? -128 : 0, max = s->type == I8 ? 127 : 255;
  const double v = x / (double)s->scale, far = fabs(v - floor(v) - 0.5);
  e->tie |= far < 1e-4 || v != v;
  *byte = (int)fmin(fmax(rint(v) + (double)s->zero, min), max);
  return (*byte - (double)s->back_zero) * (double)s->back_scale;
}

static double through(exact_t* e, const assay_norm_step_t* s, double x) {
  int byte;
  return s->is_there ? step_to(e, s, x, &byte) : x;
}

// An element of the row; stages are functions from bytes to bytes, to the bit as in float32.
static int element_of(exact_t* e, double x, double mean, double root, int64_t c) {
  int byte;
  step_to(e, &e->q->of_quotient, (x - mean) / root, &byte);
  assay_norm_step_t before = e->q->of_quotient;
  for (int i = 0; i < e->q->n_stages; i++) {
    const int8_norm_numbers_t* n = e->numbers;
    const assay_norm_step_t* s = &e->q->stages[i].step;
    float v = ((float)byte - before.back_zero) * before.back_scale;
    if (n->factor[i]) v *= n->factor[i][n->n_factor[i] > 1 ? c : 0];
    if (n->term[i]) v += n->term[i][n->n_term[i] > 1 ? c : 0];
    const float min = s->type == I8 ? -128 : 0, max = s->type == I8 ? 127 : 255;
    byte = (int)fminf(fmaxf(rintf(v / s->scale) + s->zero, min), max);
    before = *s;
  }
  return byte & 255;
}

// How many elements were compared: those not at a tie.
static int64_t check_row(exact_t* e, const char* name, const uint8_t* x, int64_t n,
                         const uint8_t* got) {
  double mean = 0, variance = 0;
  int64_t compared = 0;
  const double scale = (double)e->q->x_scale, zero = (double)e->q->x_zero;
  const bool is_signed = e->q->x_type == I8;
#define ELEMENT(i) (((is_signed ? (int8_t)x[i] : x[i]) - zero) * scale)
  for (int64_t i = 0; i < n; i++) mean += ELEMENT(i) / (double)n;
  for (int64_t i = 0; i < n; i++) variance += pow(ELEMENT(i) - mean, 2) / (double)n;
  e->tie = false;
  double root = through(e, &e->q->of_variance, variance) + (double)e->numbers->epsilon;
  root = through(e, &e->q->of_root, sqrt(through(e, &e->q->of_sum, root)));
  if (e->tie || !(root > 0)) return 0;
  for (int64_t i = 0; i < n; i++) {
    e->tie = false;
    const int want = element_of(e, ELEMENT(i), mean, root, i);
    if (e->tie) continue;
    compared++;
    if (want != got[i])
      fail_msg("%s: element %lld is %d, not %d", name, (long long)i, got[i], want);
  }
#undef ELEMENT
  return compared;
}

static void fill(const rows_case_t* c, uint64_t* state, uint8_t* x) {
  for (int64_t r = 0; r < c->rows; r++) {
    // Rows of few values and of one value, too.
    const double wide = r % 5 == 4 ? 1 : r % 5 == 3 ? 4 : 256, min = uniform(state) * (256 - wide);
    for (int64_t i = 0; i < c->size; i++)
      x[r * c->size + i] = (uint8_t)(min + floor(uniform(state) * wide));
  }
}

static void check_rows(const rows_case_t* c) {
  const assay_quantized_norm_t q = norm_of(c);
  const int64_t n = c->size * c->rows;
  uint64_t state = 5;
  float* numbers[2] = {calloc((size_t)c->size, sizeof(float)),
                       calloc((size_t)c->size, sizeof(float))};
  uint8_t *x = malloc((size_t)n), *y = malloc((size_t)n + 1), *plain = malloc((size_t)n + 1);
  assert_true(numbers[0] && numbers[1] && x && y && plain);
  int8_norm_numbers_t of = {.epsilon = 1e-5F};
  for (int64_t i = 0; i < c->size; i++) {
    numbers[0][i] = c->factor * (float)(c->alike ? 1 : 0.5 + uniform(&state));
    numbers[1][i] = c->term * (float)(uniform(&state) * 2 - 1);
  }
  for (int i = 0; i < c->n_stages; i++) {
    of.factor[i] = c->factor > 0 ? numbers[0] : NULL;
    of.term[i] = c->term > 0 ? numbers[1] : NULL;
    of.n_factor[i] = c->alike ? 1 : c->size;
    of.n_term[i] = c->size;
  }
  fill(c, &state, x);
  int8_norm_t k;
  op_case_ok(int8_norm_init(&k, &q, c->size, &of));
  y[n] = plain[n] = 77;
  int8_norm_rows(&k, x, c->rows, y);
  int8_norm_rows_plain(&k, x, c->rows, plain);
  if (memcmp(y, plain, (size_t)n) != 0) fail_msg("%s: vectors have other bits", c->name);
  assert_true(y[n] == 77 && plain[n] == 77);
  exact_t e = {.q = &q, .numbers = &of};
  int64_t compared = 0;
  for (int64_t r = 0; r < c->rows; r++)
    compared += check_row(&e, c->name, x + r * c->size, c->size, y + r * c->size);
  if (compared < n / 3 && c->size > 1)
    fail_msg("%s: only %lld of %lld compared", c->name, (long long)compared, (long long)n);
  int8_norm_deinit(&k);
  free(numbers[0]);
  free(numbers[1]);
  free(x);
  free(y);
  free(plain);
}

static void rows(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof row_cases / sizeof *row_cases; i++) check_rows(&row_cases[i]);
}

static void failing_allocations(void** state) {
  (void)state;
  const assay_quantized_norm_t q = norm_of(&row_cases[1]);
  const float ones[32] = {2}, terms[32] = {1};
  const int8_norm_numbers_t of = {
      .factor = {ones, ones}, .term = {terms, terms}, .n_factor = {32, 32}, .n_term = {32, 32}};
  const int64_t live = assay_alloc_live();
  bool reached = true;
  for (uint64_t n = 1; reached; n++) {
    int8_norm_t k;
    assay_alloc_fail_after(n, false);
    assay_status_t st = int8_norm_init(&k, &q, 32, &of);
    reached = assay_alloc_fail_after(0, false) >= n;
    if (!st) int8_norm_deinit(&k);
    assay_status_free(st);
    assert_int_equal(assay_alloc_live(), live);
  }
}

// ---- layers -------------------------------------------------------------------------------------

#define CONSTANTS(c)                                                                               \
  {                                                                                                \
    "s float[] 0.0078125", "z uint8[] 120", "zi int8[] -5", "sv float[] 0.002", "zv uint8[] 0",    \
        "sn float[] 0.03", "zn int8[] -3", "two float[] 2", "eps float[] 1e-5",                    \
        "k float[" c ",1,1] positive", "t float[" c ",1,1]", "kq uint8[] 200", "sk float[] 0.004", \
        "row float[7] positive"                                                                    \
  }
#define FRONT(z) "QuantizeLinear q0 x s " z " -> xq", "DequantizeLinear d0 xq s " z " -> xf"
#define MOMENTS(axes)                                                         \
  "ReduceMean m xf -> m | axes=" axes, "Sub a xf m -> d", "Pow p d two -> p", \
      "ReduceMean v p -> v | axes=" axes, "QuantizeLinear q1 v sv zv -> vq",  \
      "DequantizeLinear d1 vq sv zv -> vf"
#define SUM(eps) \
  "Add e vf " eps " -> e", "QuantizeLinear q2 e sv zv -> eq", "DequantizeLinear d2 eq sv zv -> ef"
#define QUOTIENT "Sqrt r ef -> r", "Div n d r -> n"
#define STEP "QuantizeLinear q3 n sn zn -> nq", "DequantizeLinear d3 nq sn zn -> nf"
#define ENDS                                                                                  \
  "Mul f nf k -> f", "QuantizeLinear q4 f sn zn -> fq", "DequantizeLinear d4 fq sn zn -> ff", \
      "Add b ff t -> b", "QuantizeLinear q5 b sn zn -> y"

// tolerance: that share of the elements may be one step off, as the emulated engine rounds after
// each node.
static const tactic_case_t layers[] = {
    {{"channels of an image",
      13,
      {"x float[2,24,5,7]"},
      CONSTANTS("24"),
      {FRONT("z"), MOMENTS("1"), SUM("eps"), QUOTIENT, STEP, ENDS},
      "y"},
     "quantized_norm",
     0.002,
     false},
    {{"odd channels, signed, behind them an image is read",
      13,
      {"x float[1,37,9,11]"},
      CONSTANTS("37"),
      {FRONT("zi"), MOMENTS("1"), SUM("eps"), QUOTIENT, STEP, ENDS},
      "y"},
     "quantized_norm",
     0.002,
     false},
    {{"the last dimension, a dequantized scale",
      13,
      {"x float[3,50,7]"},
      CONSTANTS("1"),
      {FRONT("z"), MOMENTS("-1"), SUM("eps"), QUOTIENT, STEP, "DequantizeLinear dk kq sk zv -> kf",
       "Mul f nf kf -> f", "Add g f row -> g", "QuantizeLinear q5 g sn zn -> y"},
      "y"},
     "quantized_norm",
     0.002,
     false},
    {{"two dimensions at the end",
      13,
      {"x float[5,4,8]"},
      CONSTANTS("1"),
      {FRONT("z"), MOMENTS("1,2"), SUM("eps"), QUOTIENT, "QuantizeLinear q3 n sn zn -> y"},
      "y"},
     "quantized_norm",
     0.002,
     false},
    {{"infinities and NaN come in: quantizers have ends",
      13,
      {"x float[2,16,5,7]"},
      CONSTANTS("16"),
      {FRONT("z"), MOMENTS("1"), SUM("eps"), QUOTIENT, STEP, ENDS},
      "y"},
     "quantized_norm",
     0.002,
     true},
    // Steps so large that all elements are alike: 0 / 0.
    {{"nothing to divide by",
      13,
      {"x float[2,16,5,7]"},
      {"s float[] 4", "z uint8[] 120", "sv float[] 0.002", "zv uint8[] 0", "sn float[] 0.03",
       "zn int8[] -3", "two float[] 2", "eps float[] 0", "k float[16,1,1] positive",
       "t float[16,1,1]"},
      {FRONT("z"), MOMENTS("1"), SUM("eps"), QUOTIENT, STEP, ENDS},
      "y"},
     "quantized_norm",
     0,
     false},
};

static void layers_agree(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) tactic_case_check_bytes(&layers[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows),
      cmocka_unit_test(failing_allocations),
      cmocka_unit_test(layers_agree),
  };
  return cmocka_run_group_tests_name("quantized_norm", tests, NULL, NULL);
}
