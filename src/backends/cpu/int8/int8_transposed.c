// Sums of transposed convolutions on 8-bit integers. int8_transposed_onednn: where there is one
// group, oneDNN multiplies all places of a sample with all kernel positions, and what comes out is
// added up by place; the columns are made for some channels at a time, so that they stay in the
// cache. int8_up, for groups, and without the CPU's instructions for 8 bits: differences to the
// zero points are multiplied in 32 bits. Sums are exact: their order changes no bit.
#include <omp.h>
#include <string.h>

#include "backends/cpu/int8/int8_conv_geometry.h"
#include "backends/cpu/int8/int8_make.h"
#include "backends/cpu/int8/int8_matrix.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/target.h"

enum { COLUMN_BYTES = 2 * 1024 * 1024, FEWEST = 16 };

typedef struct up {
  int8_kernel_t base;
  assay_conv_transpose_t t;
  int input;
  assay_type_t type;
  int32_t zero_x;
  int64_t taps, lines, in_width, width;  // of the last axis: kernel, input, output
  int64_t positions;
  // [kernel position][c] where groups have one channel in and out, else [group][kernel
  // position][mg][cg]; NULL where there is a matrix.
  int16_t* weights;
  bool depthwise;
  int8_matrix_t* matrix;  // [c, position * m]; NULL: none
  int64_t parts, own;     // of the channels; channels of one
  int32_t* due;           // [position, m]: what is taken off each product; NULL: nothing
  int threads;
} up_t;

static void close_up(int8_kernel_t* base) {
  up_t* k = (up_t*)base;
  int8_matrix_destroy(k->matrix);
  assay_free(k->weights);
  assay_free(k->due);
}

// ---- by columns --------------------------------------------------------------------------------

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void add_columns(int64_t n, const int32_t* restrict x, const int32_t* restrict due,
                        int32_t* restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    y[i] = (int32_t)((uint32_t)y[i] + ((uint32_t)x[i] - (uint32_t)due[i]));
}

static void clear_line(const up_t* k, int64_t from, int64_t n, int32_t* line) {
  for (int64_t i = 0; i < k->width; i++)
    memset(line + i * k->t.m + from, 0, (size_t)n * sizeof *line);
}

static const assay_window_axis_t* last_axis(const up_t* k) { return &k->t.w.axis[k->t.w.rank - 1]; }

// A line of the output, channels [first, first + own), from columns [in place][position][own].
static void add_line(const up_t* k, const int32_t* columns, int64_t channel, int64_t l,
                     int32_t* line) {
  clear_line(k, channel, k->own, line);
  for (int64_t p = 0; p < k->positions; p++) {
    const int64_t from = assay_conv_transpose_in_line(&k->t, l, p / k->taps);
    int64_t first, end, at;
    if (from < 0) continue;
    assay_conv_transpose_range(last_axis(k), p % k->taps, 0, k->width, &first, &end, &at);
    for (; first < end; first++, at += last_axis(k)->stride)
      add_columns(k->own, columns + ((from * k->in_width + first) * k->positions + p) * k->own,
                  k->due + p * k->t.m + channel, line + at * k->t.m + channel);
  }
}

static assay_status_t sum_columns(int8_kernel_t* base, const void* const* in, void* scratch,
                                  int32_t* out) {
  const up_t* k = (const up_t*)base;
  const size_t own = int8_matrix_scratch(k->matrix);
  int32_t* columns = (int32_t*)(void*)((char*)scratch + own);
  const int threads = cpu_threads(k->t.in_size * k->positions * k->own / 8);
  for (int64_t n = 0; n < k->t.n; n++) {
    const char* x = (const char*)in[k->input] + n * k->t.in_size * k->t.c;
    for (int64_t part = 0; part < k->parts; part++) {
      ASSAY_TRY(int8_matrix_run(k->matrix, x, part, scratch, columns));
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
      for (int64_t l = 0; l < k->lines; l++)
        add_line(k, columns, part * k->own, l, out + (n * k->lines + l) * k->width * k->t.m);
    }
  }
  return NULL;
}

// ---- by differences ----------------------------------------------------------------------------

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static int32_t dot(const int16_t* restrict a, const int16_t* restrict b, int64_t n) {
  int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += (int32_t)a[i] * (int32_t)b[i];
  return sum;
}

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void add_products(int64_t n, const int16_t* restrict a, const int16_t* restrict b,
                         int32_t* restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] += (int32_t)a[i] * (int32_t)b[i];
}

static void differences(const up_t* k, const void* x, int64_t at, int64_t n, int16_t* to) {
  const int8_t* s = (const int8_t*)x + at;
  const uint8_t* u = (const uint8_t*)x + at;
  if (k->type == ASSAY_TYPE_INT8)
    for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(s[i] - k->zero_x);
  else
    for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(u[i] - k->zero_x);
}

static void add_place(const up_t* k, int64_t p, const int16_t* x, int32_t* y) {
  const assay_conv_transpose_t* t = &k->t;
  if (k->depthwise) {
    add_products(t->c, x, k->weights + p * t->c, y);
    return;
  }
  for (int64_t m = 0; m < t->m; m++) {
    const int64_t g = m / t->mg;
    y[m] += dot(x + g * t->cg, k->weights + ((g * k->positions + p) * t->mg + m % t->mg) * t->cg,
                t->cg);
  }
}

static assay_status_t sum_differences(int8_kernel_t* base, const void* const* in, void* scratch,
                                      int32_t* out) {
  const up_t* k = (const up_t*)base;
  const assay_conv_transpose_t* t = &k->t;
#pragma omp parallel for schedule(static) num_threads(k->threads)
  for (int64_t i = 0; i < t->n * k->lines; i++) {
    int16_t* x = (int16_t*)scratch + omp_get_thread_num() * t->c;
    int32_t* line = out + i * k->width * t->m;
    clear_line(k, 0, t->m, line);
    for (int64_t p = 0; p < k->positions; p++) {
      const int64_t from = assay_conv_transpose_in_line(t, i % k->lines, p / k->taps);
      int64_t first, end, at;
      if (from < 0) continue;
      assay_conv_transpose_range(last_axis(k), p % k->taps, 0, k->width, &first, &end, &at);
      for (; first < end; first++, at += last_axis(k)->stride) {
        const int64_t place = i / k->lines * t->in_size + from * k->in_width + first;
        differences(k, in[k->input], place * t->c, t->c, x);
        add_place(k, p, x, line + at * t->m);
      }
    }
  }
  return NULL;
}

// ---- making ------------------------------------------------------------------------------------

// Element (c, m of its group, position) of the weights.
static int16_t weight(const up_t* k, const int8_job_t* j, int64_t c, int64_t m, int64_t p) {
  return j->weights[(c * k->t.mg + m) * k->positions + p];
}

static assay_status_t order_weights(up_t* k, const int8_job_t* j) {
  const assay_conv_transpose_t* t = &k->t;
  k->depthwise = t->cg == 1 && t->mg == 1;
  ASSAY_TRY(assay_new_array((size_t)j->n_weights, sizeof *k->weights, &k->weights));
  for (int64_t c = 0; c < t->c; c++)
    for (int64_t m = 0; m < t->mg; m++)
      for (int64_t p = 0; p < k->positions; p++) {
        const int64_t row = (c / t->cg * k->positions + p) * t->mg + m;
        const int64_t at = k->depthwise ? p * t->c + c : row * t->cg + c % t->cg;
        k->weights[at] = weight(k, j, c, m, p);
      }
  return NULL;
}

static assay_status_t take_due(up_t* k, const int8_job_t* j) {
  const assay_conv_transpose_t* t = &k->t;
  ASSAY_TRY(assay_new_array((size_t)(k->positions * t->m), sizeof *k->due, &k->due));
  for (int64_t c = 0; c < t->c; c++)
    for (int64_t m = 0; m < t->m; m++)
      for (int64_t p = 0; p < k->positions; p++)
        k->due[p * t->m + m] += j->zero_x * weight(k, j, c, m, p);
  return NULL;
}

// Parts of the channels whose columns are of a size for the cache.
static void find_parts(up_t* k) {
  const int64_t all = k->t.in_size * k->positions * k->t.m * (int64_t)sizeof(int32_t);
  k->parts = 1;
  for (int64_t n = 2; n <= k->t.m / FEWEST && all / k->parts > COLUMN_BYTES; n++)
    if (k->t.m % n == 0) k->parts = n;
  k->own = k->t.m / k->parts;
}

// Weights as matrices [c, position * own], one a part.
static assay_status_t make_matrix(up_t* k, const int8_job_t* j) {
  const assay_conv_transpose_t* t = &k->t;
  int8_t* w = NULL;
  if (t->group > 1 || !j->fits_int8) return NULL;
  find_parts(k);
  const int64_t columns = k->positions * k->own;
  ASSAY_TRY(assay_new_array((size_t)j->n_weights, 1, &w));
  for (int64_t c = 0; c < t->c; c++)
    for (int64_t m = 0; m < t->m; m++)
      for (int64_t p = 0; p < k->positions; p++)
        w[(m / k->own * t->c + c) * columns + p * k->own + m % k->own] =
            (int8_t)weight(k, j, c, m, p);
  const int8_matrix_size_t size = {
      .m = t->in_size, .k = t->c, .n = columns, .parts = k->parts, .type = j->x_type};
  assay_status_t st = int8_matrix_create(&size, w, &k->matrix);
  assay_free(w);
  return st;
}

static bool wants(const int8_job_t* j) {
  return int8_is(j->anchor, "ConvTranspose") && j->zero_input < 0;
}

static assay_status_t build(up_t* k, int8_job_t* j, bool by_matrix, bool* out_ok) {
  *out_ok = j->weights && j->x->rank >= 3;
  if (*out_ok) ASSAY_TRY(int8_transposed_read(j, &k->t, out_ok));
  if (!*out_ok) return NULL;
  const assay_window_axis_t* a = last_axis(k);
  k->input = (int)(j->x - j->l->in);
  k->type = j->x_type;
  k->zero_x = j->zero_x;
  k->taps = a->kernel;
  k->positions = k->t.kernel_size;
  k->width = a->in;
  k->in_width = a->out;
  k->lines = k->t.out_size / a->in;
  k->threads = omp_get_max_threads();
  ASSAY_TRY(int8_kernel_init(&k->base, j, ASSAY_LAYOUT_CHANNELS_LAST, out_ok));
  if (!*out_ok) return NULL;
  if (by_matrix) {
    ASSAY_TRY(make_matrix(k, j));
    *out_ok = k->matrix;
    if (!*out_ok) return NULL;
    ASSAY_TRY(take_due(k, j));
    k->base.sum = sum_columns;
    k->base.sum_scratch = int8_matrix_scratch(k->matrix) +
                          (size_t)(k->t.in_size * k->positions * k->own) * sizeof(int32_t);
  } else {
    ASSAY_TRY(order_weights(k, j));
    k->base.sum = sum_differences;
    k->base.sum_scratch = (size_t)(k->threads * k->t.c) * sizeof(int16_t);
  }
  int8_kernel_ready(&k->base);
  return NULL;
}

static assay_status_t build_up(int8_kernel_t* base, int8_job_t* j, bool* out_ok) {
  return build((up_t*)base, j, false, out_ok);
}

static assay_status_t make_up(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return int8_make(l, sizeof(up_t), wants, build_up, close_up, out);
}

const assay_tactic_t cpu_tactic_int8_transposed = {.name = "int8_transposed",
                                                   .source = "assay",
                                                   .numerics = "integers",
                                                   .make = make_up,
                                                   .rounding = INT8_ROUNDING};

#ifdef ASSAY_ONEDNN
static assay_status_t build_up_onednn(int8_kernel_t* base, int8_job_t* j, bool* out_ok) {
  return build((up_t*)base, j, true, out_ok);
}

static assay_status_t make_up_onednn(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return int8_make(l, sizeof(up_t), wants, build_up_onednn, close_up, out);
}

const assay_tactic_t cpu_tactic_int8_transposed_onednn = {.name = "int8_transposed_onednn",
                                                          .source = "onednn",
                                                          .numerics = "integers",
                                                          .make = make_up_onednn,
                                                          .rounding = INT8_ROUNDING};
#endif
