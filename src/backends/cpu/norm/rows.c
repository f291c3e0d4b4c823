// Layers over rows that lie one after the other, Softmax and normalizations, and Softmax down
// columns. Sums run in LANES parts side by side, which are added up pairwise: the same
// order for any number of threads and any batch.
#include <math.h>
#include <string.h>

#include "backends/constants.h"
#include "backends/cpu/norm/norm_rows.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/threads.h"
#include "backends/layers/moved_rows.h"
#include "backends/vmath/vmath.h"
#include "base/alloc.h"
#include "base/target.h"

enum { LANES = 32 };

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

// A row of a normalization has `channels` runs of elements, each with a scale and a bias; `groups`
// rows later those of the first row come again.
typedef struct rows {
  assay_kernel_t base;
  int input;
  int64_t rows, size;
  int64_t
      inner;  // Softmax over another axis than the last in memory: elements from one to the next
  bool log;   // LogSoftmax
  bool centered;  // else RMSNormalization
  float epsilon;
  int64_t groups, channels;
  float *scale, *bias;  // of groups * channels elements; NULL: none
  moved_table_t to;     // where each row goes, if the layer moves them
  void (*row)(const struct rows* k, int64_t r, const float* x, float* y);
} rows_t;

enum { PARTS = 64, COLUMNS = 256 };  // the most pieces of work; columns taken together

// Two vectors of 16; compilers make of them as many registers as the CPU needs.
typedef float half_t __attribute__((vector_size(64), aligned(4), may_alias));
typedef struct lanes {
  half_t low, high;
} lanes_t;

#define FOLD(x, ...) ((x) + __builtin_shufflevector(x, x, __VA_ARGS__))

// Lanes i and i + 16, then i and i + 8, and so on.
#define JOIN(lanes, out)                                                       \
  do {                                                                         \
    half_t x_ = (lanes).low + (lanes).high;                                    \
    x_ = FOLD(x_, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15); \
    x_ = FOLD(x_, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7);             \
    x_ = FOLD(x_, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3);             \
    x_ = FOLD(x_, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);             \
    (out) = x_[0];                                                             \
  } while (0)

static inline const half_t* vec16_at(const float* x) { return (const half_t*)(const void*)x; }

CLONES
static float sum(const float* x, int64_t n) {
  lanes_t lanes = {0};
  float y;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    lanes.low += vec16_at(x + i)[0];
    lanes.high += vec16_at(x + i)[1];
  }
  if (i < n) {
    float last[LANES] = {0};
    for (int k = 0; i + k < n; k++) last[k] = x[i + k];
    lanes.low += vec16_at(last)[0];
    lanes.high += vec16_at(last)[1];
  }
  JOIN(lanes, y);
  return y;
}

CLONES
static float sum_of_squares(const float* x, int64_t n, float mean) {
  lanes_t lanes = {0};
  float y;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    const half_t low = vec16_at(x + i)[0] - mean, high = vec16_at(x + i)[1] - mean;
    lanes.low += low * low;
    lanes.high += high * high;
  }
  if (i < n) {
    float last[LANES] = {0};
    for (int k = 0; i + k < n; k++) last[k] = x[i + k] - mean;
    lanes.low += vec16_at(last)[0] * vec16_at(last)[0];
    lanes.high += vec16_at(last)[1] * vec16_at(last)[1];
  }
  JOIN(lanes, y);
  return y;
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

// y may be x in all that follows.
static void exponentials(const float* x, int64_t n, float m, float* y) {
  cpu_vmath()->exp_minus(x, m, n, y);
}

CLONES
static void divide(float* y, int64_t n, float by) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = y[i] / by;
}

CLONES
static void subtract(const float* x, int64_t n, float m, float log_s, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) - log_s;
}

CLONES
static void normalize(const float* x, int64_t n, float mean, float inverse, const float* scale,
                      const float* bias, float* y) {
  if (scale && bias) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * inverse * scale[i] + bias[i];
  } else if (scale) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * inverse * scale[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * inverse;
  }
}

CLONES
static void normalize_run(const float* x, int64_t n, float mean, float inverse, float scale,
                          float bias, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * inverse * scale + bias;
}

static void softmax_row(const rows_t* k, int64_t r, const float* x, float* y) {
  const float m = largest(x, k->size);
  (void)r;
  if (k->log) {
    float s = 0, part[COLUMNS];
    for (int64_t i = 0; i < k->size; i += COLUMNS) {
      const int64_t n = k->size - i < COLUMNS ? k->size - i : COLUMNS;
      exponentials(x + i, n, m, part);
      s += sum(part, n);
    }
    subtract(x, k->size, m, logf(s), y);
    return;
  }
  exponentials(x, k->size, m, y);
  divide(y, k->size, sum(y, k->size));
}

static void norm_row(const rows_t* k, int64_t r, const float* x, float* y) {
  const float n = (float)k->size;
  const float mean = k->centered ? sum(x, k->size) / n : 0;
  const float variance = sum_of_squares(x, k->size, mean) / n;
  const float inverse = 1 / sqrtf(variance + k->epsilon);
  const int64_t first = r % k->groups * k->channels, run = k->size / k->channels;
  if (run == 1) {
    normalize(x, k->size, mean, inverse, k->scale ? k->scale + first : NULL,
              k->bias ? k->bias + first : NULL, y);
    return;
  }
  for (int64_t c = 0; c < k->channels; c++)
    normalize_run(x + c * run, run, mean, inverse, k->scale ? k->scale[first + c] : 1,
                  k->bias ? k->bias[first + c] : 0, y + c * run);
}

// ---- Softmax down columns ----------------------------------------------------------------------

CLONES
static void column_maxima(const float* x, int64_t n, float* m) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) m[i] = m[i] > x[i] || m[i] != m[i] ? m[i] : x[i];
}
CLONES
static void add_columns(const float* x, int64_t n, float* s) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) s[i] += x[i];
}
static void column_sums(const float* x, int64_t n, const float* m, float* s) {
  enum { PART = 256 };
  float e[PART];
  for (int64_t i = 0; i < n; i += PART) {
    const int64_t size = n - i < PART ? n - i : PART;
    cpu_vmath()->exp_minus_each(x + i, m + i, size, e);
    add_columns(e, size, s + i);
  }
}
CLONES
static void divide_columns(float* y, int64_t n, const float* s) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = y[i] / s[i];
}
static void column_quotients(const float* x, int64_t n, const float* m, const float* s, float* y) {
  cpu_vmath()->exp_minus_each(x, m, n, y);
  divide_columns(y, n, s);
}
CLONES
static void column_differences(const float* x, int64_t n, const float* m, const float* s,
                               float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m[i]) - s[i];
}

// The columns' next elements, in float32.
static const float* fetch(const rows_t* k, const void* x, int64_t at, int64_t n, float* buffer) {
  const assay_type_t type = k->base.in[k->input].type;
  if (type == ASSAY_TYPE_FLOAT) return (const float*)x + at;
  cpu_widen(x, type, at, n, buffer);
  return buffer;
}

// n columns from element `at` on, one element after the other.
static void softmax_columns(const rows_t* k, const void* x, int64_t at, int64_t n, void* y) {
  float m[COLUMNS], s[COLUMNS] = {0}, from[COLUMNS], to[COLUMNS];
  for (int64_t i = 0; i < n; i++) m[i] = -INFINITY;
  for (int64_t i = 0; i < k->size; i++)
    column_maxima(fetch(k, x, at + i * k->inner, n, from), n, m);
  for (int64_t i = 0; i < k->size; i++)
    column_sums(fetch(k, x, at + i * k->inner, n, from), n, m, s);
  for (int64_t i = 0; k->log && i < n; i++) s[i] = logf(s[i]);
  for (int64_t i = 0; i < k->size; i++) {
    const float* row = fetch(k, x, at + i * k->inner, n, from);
    if (k->log)
      column_differences(row, n, m, s, to);
    else
      column_quotients(row, n, m, s, to);
    cpu_narrow(to, n, k->base.out[0].type, at + i * k->inner, y);
  }
}

static void run_columns(const rows_t* k, const void* x, void* y) {
  const int64_t outer = k->rows / k->inner, blocks = (k->inner + COLUMNS - 1) / COLUMNS;
  const int parts = cpu_threads(k->rows * k->size * 30);
#pragma omp parallel for schedule(static) num_threads(parts) if (parts > 1)
  for (int64_t i = 0; i < outer * blocks; i++) {
    const int64_t column = i % blocks * COLUMNS, left = k->inner - column;
    softmax_columns(k, x, i / blocks * k->size * k->inner + column, left < COLUMNS ? left : COLUMNS,
                    y);
  }
}

// ---- running --------------------------------------------------------------------------------

// Rows from row r of x on are made rows `to` of y on.
static bool run_norm(const rows_t* k, const void* x, int64_t r, int64_t n, void* y, int64_t to) {
  const assay_type_t in = k->base.in[k->input].type, out = k->base.out[0].type;
  const ptrdiff_t in_row = k->size * (ptrdiff_t)assay_kernel_float_bytes(in);
  const ptrdiff_t out_row = k->size * (ptrdiff_t)assay_kernel_float_bytes(out);
  const cpu_norm_rows_t norm = {k->size, k->centered, k->epsilon, k->scale, k->bias, in, out};
  return cpu_norm_rows(&norm, (const char*)x + r * in_row, 0, n, (char*)y + to * out_row);
}

// Rows [from, to); 16-bit elements are widened into a row's memory and rounded once from there.
static void run_rows(const rows_t* k, const void* x, int64_t from, int64_t to, float* row,
                     void* y) {
  const assay_type_t in = k->base.in[k->input].type, out = k->base.out[0].type;
  const bool plain = k->row == norm_row && k->groups == 1 && k->channels == k->size;
  if (plain && !k->to.rows && run_norm(k, x, from, to - from, y, from)) return;
  for (int64_t r = from; r < to; r++) {
    const int64_t place = k->to.rows ? moved_row(&k->to, r) : r;
    if (plain && k->to.rows && run_norm(k, x, r, 1, y, place)) continue;
    const float* at = (const float*)x + r * k->size;
    float* made = out == ASSAY_TYPE_FLOAT ? (float*)y + place * k->size : row;
    if (in != ASSAY_TYPE_FLOAT) {
      cpu_widen(x, in, r * k->size, k->size, row);
      at = row;
    }
    k->row(k, r, at, made);
    if (made == row) cpu_narrow(row, k->size, out, place * k->size, y);
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const rows_t* k = (const rows_t*)base;
  const void* x = in[k->input];
  if (k->inner > 1) return run_columns(k, x, out[0]), NULL;
  int parts = cpu_threads(k->rows * k->size * (k->row == softmax_row ? 20 : 6));
  if (parts > PARTS) parts = PARTS;
  if (parts > k->rows) parts = (int)k->rows;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int i = 0; i < parts; i++)
    run_rows(k, x, k->rows * i / parts, k->rows * (i + 1) / parts,
             k->base.scratch ? (float*)scratch + i * k->size : NULL, out[0]);
  return NULL;
}

static void destroy(assay_kernel_t* base) {
  rows_t* k = (rows_t*)base;
  assay_free(k->scale);
  assay_free(k->bias);
  assay_free(k->to.rows);
  assay_free(k);
}

// ---- Softmax --------------------------------------------------------------------------------

static bool read_softmax(const assay_sized_layer_t* l, const assay_node_t* n,
                         const assay_operand_t* x, rows_t* k) {
  k->log = strcmp(n->op_type, "LogSoftmax") == 0;
  if (*n->domain || !n->schema || (!k->log && strcmp(n->op_type, "Softmax") != 0)) return false;
  // Before opset 13 a row is everything from the axis on.
  const bool flat = n->schema->since < 13;
  const int64_t given = assay_attr_i64(n, "axis", flat ? 1 : -1);
  const int axis = assay_known_axis(given, x->rank);
  (void)l;
  if (axis < 0) return false;
  const bool channels = !flat && axis == 1 && assay_operand_is_channels_last(x);
  k->size = flat ? assay_dims_product(x->dims, axis, x->rank) : x->dims[axis];
  k->inner = flat || channels ? 1 : assay_dims_product(x->dims, axis + 1, x->rank);
  k->row = softmax_row;
  k->base.in[k->input].layout = k->base.out[0].layout =
      channels ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  return true;
}

// ---- normalizations -------------------------------------------------------------------------

// Scale or bias: constants, one a channel, or `period` of them, each for several channels.
static assay_status_t parameter(const assay_sized_layer_t* l, const assay_node_t* n, size_t i,
                                int64_t size, int64_t period, float** out, bool* ok) {
  if (i >= n->n_inputs || !n->inputs[i]) return NULL;
  const assay_operand_t* o = assay_sized_input(l, n->inputs[i]);
  float *given = NULL, *x = NULL;
  *ok = *ok && o && o->constant && (o->size == size || o->size == period) &&
        assay_type_is_kernel_float(o->type);
  if (!*ok) return NULL;
  ASSAY_TRY(assay_operand_floats(o, &given));
  if (o->size == size) return *out = given, NULL;
  assay_status_t st = assay_new_array((size_t)size, sizeof *x, &x);
  for (int64_t c = 0; !st && c < size; c++) x[c] = given[c / (size / period)];
  assay_free(given);
  *out = x;
  return st;
}

typedef struct norm {
  const char *domain, *op;
  bool centered, by_channel, grouped;
  size_t scale, bias;  // inputs; 0: none
} norm_t;

static const norm_t norms[] = {
    {"", "LayerNormalization", true, false, false, 1, 2},
    {"", "RMSNormalization", false, false, false, 1, 0},
    {"", "SimplifiedLayerNormalization", false, false, false, 1, 0},
    {"", "InstanceNormalization", true, true, false, 1, 2},
    {"", "GroupNormalization", true, true, true, 1, 2},
};

static const norm_t* find_norm(const assay_node_t* n) {
  for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
    if (strcmp(norms[i].op, n->op_type) == 0 && strcmp(norms[i].domain, n->domain) == 0)
      return &norms[i];
  return NULL;
}

static assay_status_t read_norm(const assay_sized_layer_t* l, const assay_node_t* n,
                                const assay_operand_t* x, const norm_t* norm, rows_t* k, bool* ok) {
  int64_t period = 1;  // of a scale of one element, or of those of groups (GroupNormalization 18)
  *ok = assay_attr_i64(n, "stash_type", ASSAY_TYPE_FLOAT) == ASSAY_TYPE_FLOAT;
  if (norm->by_channel) {
    const int64_t channels = x->rank >= 2 ? x->dims[1] : 0;
    const int64_t groups = norm->grouped ? assay_attr_i64(n, "num_groups", 0) : channels;
    *ok &= channels && groups > 0 && channels % groups == 0 && x->rank >= 3;
    if (!*ok) return NULL;
    k->groups = groups;
    k->channels = channels / groups;
    k->size = k->channels * assay_dims_product(x->dims, 2, x->rank);
    period = norm->grouped && n->schema && n->schema->since < 21 ? groups : channels;
  } else {
    const int axis = assay_known_axis(assay_attr_i64(n, "axis", -1), x->rank);
    *ok &= axis >= 0;
    if (!*ok) return NULL;
    k->groups = 1;
    k->channels = k->size = assay_dims_product(x->dims, axis, x->rank);
    period = k->size;
  }
  k->row = norm_row;
  k->inner = 1;
  k->centered = norm->centered;
  k->epsilon = (float)assay_attr_f64(n, "epsilon", 1e-5);
  const int64_t all = k->groups * k->channels;
  ASSAY_TRY(parameter(l, n, norm->scale, all, period, &k->scale, ok));
  if (norm->bias) ASSAY_TRY(parameter(l, n, norm->bias, all, period, &k->bias, ok));
  *ok &= k->scale || !k->bias;
  return NULL;
}

// The layer gives its rows other places.
static assay_status_t read_moves(const assay_sized_layer_t* l, const assay_operand_t* x,
                                 const norm_t* norm, rows_t* k, bool* ok) {
  *ok = !norm->by_channel;
  if (*ok) ASSAY_TRY(layer_moved_places(l, x, k->size, &k->to));
  *ok &= k->to.rows != NULL;
  return NULL;
}

// ---- which layers ------------------------------------------------------------------------------

static void finish(const assay_operand_t* x, rows_t* k) {
  k->rows = x->size / k->size;
  k->base.in_place = k->inner > 1 || k->to.rows ? -1 : k->input;
  if (x->type != ASSAY_TYPE_FLOAT && k->inner == 1)
    k->base.scratch = (size_t)(k->rows < PARTS ? k->rows : PARTS) * (size_t)k->size * sizeof(float);
}

// The rows of a normalization keep their scale and bias, and so their size.
static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* base, bool* out_ok) {
  rows_t* k = (rows_t*)base;
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = &l->in[k->input];
  const norm_t* norm = find_norm(n);
  // Rows that are moved go elsewhere in other sizes.
  *out_ok = x->size && x->size == l->out[0].size && !k->to.rows;
  if (*out_ok && norm) {
    const int axis = assay_known_axis(assay_attr_i64(n, "axis", -1), x->rank);
    *out_ok =
        !norm->by_channel && axis >= 0 && assay_dims_product(x->dims, axis, x->rank) == k->size;
  } else if (*out_ok) {
    *out_ok = read_softmax(l, n, x, k);
  }
  if (*out_ok) finish(x, k);
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  const bool moves = l->layer->n_nodes > 1;
  if (!x || l->n_out < 1 || !l->out[0].value || !x->size) return NULL;
  for (size_t i = 1; i < l->n_out; i++)
    if (l->out[i].value) return NULL;  // mean and deviation
  if (!assay_type_is_kernel_float(x->type) || x->type != l->out[0].type ||
      x->size != l->out[0].size)
    return NULL;
  rows_t* k = NULL;
  bool ok = false;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->input = (int)(x - l->in);
  k->base.in[k->input] = k->base.out[0] = (assay_storage_t){x->type, ASSAY_LAYOUT_PLAIN};
  const norm_t* norm = find_norm(n);
  assay_status_t st = norm ? read_norm(l, n, x, norm, k, &ok) : NULL;
  if (!norm) ok = !moves && read_softmax(l, n, x, k);
  if (!st && ok && moves) st = read_moves(l, x, norm, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  finish(x, k);
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_rows = {
    .name = "rows",
    .source = "assay",
    .make = make,
    .resize = resize,
    .layouts = ASSAY_LAYOUT_FOLLOWS_BITS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .by_definition = true,
                 .function_ulps = 4},
};
