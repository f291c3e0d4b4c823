// Winograd convolutions within their rounding bounds: a plain fp32 implementation of F(2,3) and
// F(4,3), written here, against truth and the limits of Conv's row; and limits that are not empty.
#include "ops/bound.h"
#include "ops/conv/conv_winograd.h"
#include "ops/op_case.h"

enum { MAX_TILE = 6 };

// The algorithms' matrices. Source: A. Lavin, S. Gray, CVPR 2016.
typedef struct winograd {
  int out, in;
  float g[MAX_TILE][3], b[MAX_TILE][MAX_TILE], a[4][MAX_TILE];
} winograd_t;

static const winograd_t f23 = {2,
                               4,
                               {{1, 0, 0}, {0.5F, 0.5F, 0.5F}, {0.5F, -0.5F, 0.5F}, {0, 0, 1}},
                               {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
                               {{1, 1, 1, 0}, {0, 1, -1, -1}}};

static const winograd_t f43 = {
    4,
    6,
    {{1.0F / 4, 0, 0},
     {-1.0F / 6, -1.0F / 6, -1.0F / 6},
     {-1.0F / 6, 1.0F / 6, -1.0F / 6},
     {1.0F / 24, 1.0F / 12, 1.0F / 6},
     {1.0F / 24, -1.0F / 12, 1.0F / 6},
     {0, 0, 1}},
    {{4, 0, -5, 0, 1, 0},
     {0, -4, -4, 1, 1, 0},
     {0, 4, -4, -1, 1, 0},
     {0, -2, -1, 2, 1, 0},
     {0, 2, -1, -2, 1, 0},
     {0, 4, 0, -5, 0, 1}},
    {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}};

// y[rows, cols] = m[rows, k] x[k, cols] in fp32.
static void left(int rows, int k, int cols, const float* m, int ld, const float* x, float* y) {
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < cols; j++) {
      float sum = 0;
      for (int l = 0; l < k; l++) sum += m[i * ld + l] * x[l * cols + j];
      y[i * cols + j] = sum;
    }
  }
}

static void transpose(int rows, int cols, const float* x, float* y) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < cols; j++) y[j * rows + i] = x[i * cols + j];
}

// m x m^T, [k, k] to [rows, rows].
static void both(int rows, int k, const float* m, int ld, const float* x, float* y) {
  float t[MAX_TILE * MAX_TILE] = {0}, u[MAX_TILE * MAX_TILE] = {0};
  left(rows, k, k, m, ld, x, t);
  transpose(rows, k, t, u);
  left(rows, k, rows, m, ld, u, t);
  transpose(rows, rows, t, y);
}

typedef struct shape {
  int64_t n, c, m, h, w, pad;
} shape_t;

static float input_at(const shape_t* s, const double* plane, int64_t i, int64_t j) {
  return i < 0 || j < 0 || i >= s->h || j >= s->w ? 0 : (float)plane[i * s->w + j];
}

// y[n, m, oh, ow] in fp32.
static void convolve(const winograd_t* f, const shape_t* s, const double* x, const double* w,
                     const double* bias, double* y) {
  const int64_t oh = s->h + 2 * s->pad - 2, ow = s->w + 2 * s->pad - 2;
  const int p = f->in * f->in;
  for (int64_t n = 0; n < s->n; n++) {
    for (int64_t m = 0; m < s->m; m++) {
      for (int64_t ti = 0; ti < oh; ti += f->out) {
        for (int64_t tj = 0; tj < ow; tj += f->out) {
          float sum[MAX_TILE * MAX_TILE] = {0}, d[MAX_TILE * MAX_TILE], g[9];
          float v[MAX_TILE * MAX_TILE], u[MAX_TILE * MAX_TILE], out[MAX_TILE * MAX_TILE];
          for (int64_t c = 0; c < s->c; c++) {
            const double* plane = x + (n * s->c + c) * s->h * s->w;
            for (int i = 0; i < f->in; i++)
              for (int j = 0; j < f->in; j++)
                d[i * f->in + j] = input_at(s, plane, ti + i - s->pad, tj + j - s->pad);
            for (int i = 0; i < 9; i++) g[i] = (float)w[(m * s->c + c) * 9 + i];
            both(f->in, f->in, &f->b[0][0], MAX_TILE, d, v);
            both(f->in, 3, &f->g[0][0], 3, g, u);
            for (int i = 0; i < p; i++) sum[i] += u[i] * v[i];
          }
          both(f->out, f->in, &f->a[0][0], MAX_TILE, sum, out);
          for (int i = 0; i < f->out && ti + i < oh; i++)
            for (int j = 0; j < f->out && tj + j < ow; j++)
              y[((n * s->m + m) * oh + ti + i) * ow + tj + j] =
                  (double)(out[i * f->out + j] + (float)bias[m]);
        }
      }
    }
  }
}

// ---- one case -----------------------------------------------------------------------------------

static double uniform(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 11) / 0x1p52 - 1;
}

typedef enum content { NORMAL, ONE_SIGN, CONSTANT, HUGE_TERM, CONTENTS } content_t;

static void fill(assay_tensor_t* t, content_t content, uint64_t* state) {
  for (int64_t i = 0; i < t->size; i++) {
    double v = uniform(state) + uniform(state) + uniform(state);
    if (content == ONE_SIGN) v = fabs(v);
    if (content == CONSTANT) v = 1.1;
    if (content == HUGE_TERM && i == t->size / 2) v *= 1e6;
    assay_f64(t)[i] = (double)(float)v;
  }
}

// Limits of the node by its row, as a Winograd engine in fp32 has them.
static void limits_of(const assay_node_t* node, assay_tensor_t** in, assay_tensor_t* truth,
                      assay_algorithm_t algorithm, assay_limits_t* out) {
  const assay_rounding_t r = {
      .compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32, .algorithm = algorithm};
  assay_bound_t b = {.node = node,
                     .rounding = &r,
                     .n_in = 3,
                     .n_out = 1,
                     .in = in,
                     .out = &truth,
                     .out_error = out};
  op_case_ok(assay_bound_node(&b));
}

static double run_case(const winograd_t* f, assay_algorithm_t algorithm, const shape_t* s,
                       content_t content, uint64_t seed) {
  char x[64], w[64], bias[64], attrs[64];
  snprintf(x, sizeof x, "float[%lld,%lld,%lld,%lld] iota", (long long)s->n, (long long)s->c,
           (long long)s->h, (long long)s->w);
  snprintf(w, sizeof w, "float[%lld,%lld,3,3] iota", (long long)s->m, (long long)s->c);
  snprintf(bias, sizeof bias, "float[%lld] iota", (long long)s->m);
  snprintf(attrs, sizeof attrs, "pads=%lld,%lld,%lld,%lld", (long long)s->pad, (long long)s->pad,
           (long long)s->pad, (long long)s->pad);
  const op_case_t row = {"Conv", 22, attrs, {x, w, bias}, {"?"}, NULL};
  assay_tensor_t* in[OP_CASE_VALUES] = {NULL};
  assay_value_t* values[OP_CASE_VALUES] = {NULL};
  for (int i = 0; i < 3; i++) {
    in[i] = op_case_tensor(row.in[i]);
    fill(in[i], content, &seed);
  }
  assay_model_t* model = op_case_model(&row, OP_CASE_STATIC, in, values);
  op_case_ok(assay_infer_model(model));
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};
  assay_evaluator_t* evaluator = NULL;
  op_case_ok(op_case_evaluate(model, &config, 3, values, in, &evaluator));
  const assay_node_t* node = model->graph->nodes[0];
  assay_tensor_t* truth = assay_evaluator_get(evaluator, node->outputs[0]);
  assay_limits_t limits = {0};
  limits_of(node, in, truth, algorithm, &limits);
  double* y = malloc((size_t)truth->size * sizeof *y);
  convolve(f, s, assay_f64(in[0]), assay_f64(in[1]), assay_f64(in[2]), y);
  double worst = 0, sum = 0;
  for (int64_t i = 0; i < truth->size; i++) {
    const double error = fabs(y[i] - assay_f64(truth)[i]);
    const double g = assay_f64(limits.guaranteed)[i], p = assay_f64(limits.probable)[i];
    if (!(error <= g)) fail_msg("element %lld is off by %g; limit %g", (long long)i, error, g);
    if (content == NORMAL && !(error <= p))
      fail_msg("element %lld is off by %g; probable limit %g", (long long)i, error, p);
    worst = fmax(worst, error);
    sum += p;
  }
  const double ratio = worst > 0 ? sum / (double)truth->size / worst : 0;
  free(y);
  assay_limits_deinit(&limits);
  assay_evaluator_destroy(evaluator);
  assay_model_release(model);
  for (int i = 0; i < 3; i++) assay_tensor_release(in[i]);
  return ratio;
}

static const shape_t shapes[] = {{1, 1, 1, 6, 6, 0},    {1, 3, 8, 13, 9, 1},  {2, 16, 4, 8, 8, 1},
                                 {1, 64, 8, 10, 14, 1}, {1, 200, 3, 7, 7, 1}, {1, 2, 2, 3, 3, 0}};

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void test_within_limits(void** state) {
  (void)state;
  double ratios[2 * 3 * sizeof shapes / sizeof *shapes];
  size_t n = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    for (int content = 0; content < CONTENTS; content++) {
      for (uint64_t seed = 1; seed <= 3; seed++) {
        const double r2 =
            run_case(&f23, ASSAY_ALGORITHM_WINOGRAD_2_3, &shapes[i], (content_t)content, seed);
        const double r4 =
            run_case(&f43, ASSAY_ALGORITHM_WINOGRAD_4_3, &shapes[i], (content_t)content, seed);
        if (content == NORMAL) ratios[n++] = r2, ratios[n++] = r4;
      }
    }
  }
  // Not empty: the probable limit is usually within 100 times the worst error.
  qsort(ratios, n, sizeof *ratios, by_size);
  assert_true(ratios[n / 2] < 100);
}

// Where the algorithm does not apply, the limits are those of direct sums.
static void test_others_are_direct(void** state) {
  (void)state;
  const op_case_t row = {"Conv", 22,  "strides=2,2", {"float[1,2,9,9] iota", "float[3,2,3,3] iota"},
                         {"?"},  NULL};
  assay_tensor_t* in[OP_CASE_VALUES] = {NULL};
  assay_value_t* values[OP_CASE_VALUES] = {NULL};
  for (int i = 0; i < 2; i++) in[i] = op_case_tensor(row.in[i]);
  assay_model_t* model = op_case_model(&row, OP_CASE_STATIC, in, values);
  op_case_ok(assay_infer_model(model));
  const assay_rounding_t r = {.algorithm = ASSAY_ALGORITHM_WINOGRAD_4_3};
  assay_conv_t s;
  op_case_ok(assay_conv_read(model->graph->nodes[0], in[0], in[1], NULL, false, &s));
  assert_false(assay_conv_winograd_fits(&r, &s));
  s.w.axis[0].stride = s.w.axis[1].stride = 1;
  assert_true(assay_conv_winograd_fits(&r, &s));
  assay_model_release(model);
  for (int i = 0; i < 2; i++) assay_tensor_release(in[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_within_limits),
                                     cmocka_unit_test(test_others_are_direct)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
