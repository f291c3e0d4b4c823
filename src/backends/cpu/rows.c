// Layers over rows that lie one behind the other: Softmax, LogSoftmax and LayerNormalization over
// the last dimensions. Sums run in LANES parts side by side, which are added up pairwise: the same
// order for any number of threads and any batch.
#include <math.h>
#include <string.h>

#include "backends/cpu/tactic.h"
#include "backends/cpu/vmath.h"
#include "base/alloc.h"
#include "base/target.h"

enum { LANES = 32 };

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

typedef struct rows {
  cpu_kernel_t base;
  int input;
  int64_t rows, size;
  bool log;             // LogSoftmax
  float epsilon;        // of LayerNormalization
  float *scale, *bias;  // of `size` elements; NULL: none
  void (*row)(const struct rows* k, const float* x, float* y);
} rows_t;

static float join(const float* lanes) {
  float s[LANES];
  memcpy(s, lanes, sizeof s);
  for (int n = LANES / 2; n; n /= 2)
    for (int i = 0; i < n; i++) s[i] += s[i + n];
  return s[0];
}

CLONES
static float sum(const float* x, int64_t n) {
  float lanes[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) lanes[k] += x[i + k];
  for (int k = 0; i + k < n; k++) lanes[k] += x[i + k];
  return join(lanes);
}

CLONES
static float sum_of_squares(const float* x, int64_t n, float mean) {
  float lanes[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) lanes[k] += (x[i + k] - mean) * (x[i + k] - mean);
  for (int k = 0; i + k < n; k++) lanes[k] += (x[i + k] - mean) * (x[i + k] - mean);
  return join(lanes);
}

// The largest element; NaN if one is.
CLONES
static float largest(const float* x, int64_t n) {
  float lanes[LANES];
  int64_t i = 0;
  for (int k = 0; k < LANES; k++) lanes[k] = -INFINITY;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++)
      lanes[k] = lanes[k] > x[i + k] || lanes[k] != lanes[k] ? lanes[k] : x[i + k];
  for (int k = 0; i + k < n; k++)
    lanes[k] = lanes[k] > x[i + k] || lanes[k] != lanes[k] ? lanes[k] : x[i + k];
  float m = lanes[0];
  for (int k = 1; k < LANES; k++) m = m > lanes[k] || m != m ? m : lanes[k];
  return m;
}

CLONES
static void exponentials(const float* restrict x, int64_t n, float m, float* restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = cpu_exp(x[i] - m);
}

CLONES
static void divide(float* y, int64_t n, float by) {
  for (int64_t i = 0; i < n; i++) y[i] = y[i] / by;
}

CLONES
static void normalize(const rows_t* k, const float* restrict x, float mean, float inverse,
                      float* restrict y) {
  for (int64_t i = 0; i < k->size; i++) y[i] = (x[i] - mean) * inverse;
  if (k->scale)
    for (int64_t i = 0; i < k->size; i++) y[i] *= k->scale[i];
  if (k->bias)
    for (int64_t i = 0; i < k->size; i++) y[i] += k->bias[i];
}

static void softmax_row(const rows_t* k, const float* x, float* y) {
  const float m = largest(x, k->size);
  exponentials(x, k->size, m, y);
  const float s = sum(y, k->size);
  if (!k->log) {
    divide(y, k->size, s);
    return;
  }
  const float log_s = logf(s);
  for (int64_t i = 0; i < k->size; i++) y[i] = (x[i] - m) - log_s;
}

static void layer_row(const rows_t* k, const float* x, float* y) {
  const float n = (float)k->size;
  const float mean = sum(x, k->size) / n;
  const float variance = sum_of_squares(x, k->size, mean) / n;
  normalize(k, x, mean, 1 / sqrtf(variance + k->epsilon), y);
}

// Rows of 16-bit elements are widened, and rounded once, through a buffer of the thread's own.
static assay_status_t run(cpu_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const rows_t* k = (const rows_t*)base;
  const assay_type_t type = k->base.in[k->input].type;
  const void* x = in[k->input];
  (void)scratch;
  bool failed = false;
#pragma omp parallel if (k->rows * k->size > 20000)
  {
    const bool wide = type == ASSAY_TYPE_FLOAT;
    float* buffer = wide ? NULL : assay_malloc((size_t)k->size * 2 * sizeof *buffer);
    if (!wide && !buffer) {
#pragma omp atomic write
      failed = true;
    }
#pragma omp for schedule(static)
    for (int64_t r = 0; r < k->rows; r++) {
      if (wide) {
        k->row(k, (const float*)x + r * k->size, (float*)out[0] + r * k->size);
      } else if (buffer) {
        cpu_widen(x, type, r * k->size, k->size, buffer);
        k->row(k, buffer, buffer + k->size);
        cpu_narrow(buffer + k->size, k->size, type, r * k->size, out[0]);
      }
    }
    assay_free(buffer);
  }
  return failed ? assay_status_no_memory() : NULL;
}

static void destroy(cpu_kernel_t* base) {
  rows_t* k = (rows_t*)base;
  assay_free(k->scale);
  assay_free(k->bias);
  assay_free(k);
}

// ---- which layers ------------------------------------------------------------------------------

// The first of the dimensions that make a row; -1: not these layers, or rows that are apart.
static int row_axis(const assay_node_t* n, int rank) {
  const bool soft = strcmp(n->op_type, "Softmax") == 0 || strcmp(n->op_type, "LogSoftmax") == 0;
  if (*n->domain || !n->schema || !rank) return -1;
  if (!soft && strcmp(n->op_type, "LayerNormalization") != 0) return -1;
  // Before opset 13 a row is everything from the axis on.
  const bool flat = soft && n->schema->since < 13;
  int64_t axis = assay_attr_i64(n, "axis", flat ? 1 : -1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return -1;
  return soft && !flat && axis != rank - 1 ? -1 : (int)axis;
}

// Scale or bias: constants of a row's elements.
static assay_status_t parameter(const cpu_layer_t* l, const assay_node_t* n, size_t i, int64_t size,
                                float** out, bool* ok) {
  if (i >= n->n_inputs || !n->inputs[i]) return NULL;
  const cpu_operand_t* o = cpu_input(l, n->inputs[i]);
  *ok = o && o->constant && o->size == size && cpu_is_float(o->type);
  return *ok ? cpu_constant_floats(o, out) : NULL;
}

static assay_status_t make(const cpu_layer_t* l, cpu_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const cpu_operand_t* x = n->n_inputs ? cpu_input(l, n->inputs[0]) : NULL;
  if (l->layer->n_nodes != 1 || !x || l->n_out < 1 || !l->out[0].value || !x->size) return NULL;
  for (size_t i = 1; i < l->n_out; i++)
    if (l->out[i].value) return NULL;  // mean and deviation
  const int axis = row_axis(n, x->rank);
  if (axis < 0 || !cpu_is_float(x->type) || x->type != l->out[0].type || x->size != l->out[0].size)
    return NULL;
  const bool layer = strcmp(n->op_type, "LayerNormalization") == 0;
  if (layer && assay_attr_i64(n, "stash_type", ASSAY_TYPE_FLOAT) != ASSAY_TYPE_FLOAT) return NULL;
  rows_t* k = NULL;
  bool ok = true;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (cpu_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->input = (int)(x - l->in);
  k->size = assay_dims_product(x->dims, axis, x->rank);
  k->rows = x->size / k->size;
  k->row = layer ? layer_row : softmax_row;
  k->log = strcmp(n->op_type, "LogSoftmax") == 0;
  k->epsilon = (float)assay_attr_f64(n, "epsilon", 1e-5);
  k->base.in[k->input] = k->base.out[0] = (cpu_form_t){x->type, CPU_PLAIN};
  assay_status_t st = layer ? parameter(l, n, 1, k->size, &k->scale, &ok) : NULL;
  if (!st && ok && layer) st = parameter(l, n, 2, k->size, &k->bias, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const cpu_tactic_t cpu_tactic_rows = {
    .name = "rows",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .by_definition = true,
                 .function_ulps = 4},
};
