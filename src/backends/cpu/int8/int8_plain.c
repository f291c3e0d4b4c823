// Sums of int8 layers on any CPU: 16-bit differences to the zero points, whose products are added
// up in 32 bits. Nothing saturates. Slower than what the CPU's own instructions for 8 bits can do,
// which int8_onednn.c uses.
#include <omp.h>
#include <string.h>

#include "backends/cpu/int8/int8_conv_geometry.h"
#include "backends/cpu/int8/int8_make.h"
#include "base/alloc.h"
#include "base/target.h"

enum { BLOCK = 32 };  // rows of the output that are made from one panel

typedef struct plain {
  int8_kernel_t base;
  bool is_conv;
  assay_conv_t s;
  int8_product_t p;
  int x_input, w_input;  // w -1: constant
  assay_type_t x_type, w_type;
  int32_t zero_x, zero_w;
  int16_t* weights;  // rows of `length`: of convolutions taps, then channels of the group
  int64_t length;
  int threads;
} plain_t;

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static int32_t dot(const int16_t* restrict a, const int16_t* restrict b, int64_t n) {
  int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += (int32_t)a[i] * (int32_t)b[i];
  return sum;
}

static void differences(const void* x, assay_type_t type, int64_t at, int64_t n, int32_t zero,
                        int16_t* to) {
  const int8_t* s = (const int8_t*)x + at;
  const uint8_t* u = (const uint8_t*)x + at;
  if (type == ASSAY_TYPE_INT8)
    for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(s[i] - zero);
  else
    for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(u[i] - zero);
}

// What one output position sees of a group: taps, and for each its channels; 0 in the padding.
static void gather(const plain_t* k, const void* x, int64_t image, int64_t position, int64_t group,
                   int32_t zero, int16_t* to) {
  const assay_conv_t* s = &k->s;
  int64_t out[ASSAY_MAX_RANK], rest = position;
  for (int d = s->w.rank; d-- > 0; rest /= s->w.axis[d].out) out[d] = rest % s->w.axis[d].out;
  for (int64_t tap = 0; tap < s->kernel_size; tap++, to += s->cg) {
    int64_t at = 0, step = 1, t = tap;
    bool inside = true;
    for (int d = s->w.rank; d-- > 0;) {
      const assay_window_axis_t* a = &s->w.axis[d];
      const int64_t i = out[d] * a->stride - a->pads[0] + t % a->kernel * a->dilation;
      inside &= i >= 0 && i < a->in;
      at += i * step;
      step *= a->in;
      t /= a->kernel;
    }
    if (inside)
      differences(x, k->x_type, (image * s->in_size + at) * s->c + group * s->cg, s->cg, zero, to);
    else
      memset(to, 0, (size_t)s->cg * sizeof *to);
  }
}

static assay_status_t sum_conv(int8_kernel_t* base, const void* const* in, void* scratch,
                               int32_t* out) {
  const plain_t* k = (const plain_t*)base;
  const assay_conv_t* s = &k->s;
  const void* x = in[k->x_input];
  const int64_t rows = s->n * s->out_size, blocks = (rows + BLOCK - 1) / BLOCK;
#pragma omp parallel for schedule(static) num_threads(k->threads)
  for (int64_t b = 0; b < blocks; b++) {
    int16_t* panel = (int16_t*)scratch + omp_get_thread_num() * k->length;
    for (int64_t r = b * BLOCK; r < (b + 1) * BLOCK && r < rows; r++)
      for (int64_t g = 0; g < s->group; g++) {
        gather(k, x, r / s->out_size, r % s->out_size, g, k->zero_x, panel);
        for (int64_t m = g * s->mg; m < (g + 1) * s->mg; m++)
          out[r * s->m + m] = dot(panel, k->weights + m * k->length, k->length);
      }
  }
  return NULL;
}

// Weights that are read: rows of columns, less their zero point.
static void turn(const plain_t* k, const void* w, int16_t* to) {
  const int64_t matrices = k->p.shared ? 1 : k->p.batch;
#pragma omp parallel for schedule(static) if (matrices > 1)
  for (int64_t b = 0; b < matrices; b++)
    for (int64_t n = 0; n < k->p.n; n++)
      for (int64_t i = 0; i < k->p.k; i++) {
        const int64_t at = b * k->p.n * k->p.k + (k->p.swapped ? n * k->p.k + i : i * k->p.n + n);
        const int32_t value =
            k->w_type == ASSAY_TYPE_INT8 ? ((const int8_t*)w)[at] : ((const uint8_t*)w)[at];
        to[(b * k->p.n + n) * k->p.k + i] = (int16_t)(value - k->zero_w);
      }
}

static assay_status_t sum_product(int8_kernel_t* base, const void* const* in, void* scratch,
                                  int32_t* out) {
  const plain_t* k = (const plain_t*)base;
  int16_t* panels = scratch;
  int16_t* turned = panels + k->threads * k->p.k;
  const int16_t* weights = k->weights ? k->weights : turned;
  const void* x = in[k->x_input];
  if (!k->weights) turn(k, in[k->w_input], turned);
  const int64_t rows = k->p.batch * k->p.m;
#pragma omp parallel for schedule(static) num_threads(k->threads)
  for (int64_t r = 0; r < rows; r++) {
    int16_t* row = panels + omp_get_thread_num() * k->p.k;
    const int16_t* w = weights + (k->p.shared ? 0 : r / k->p.m * k->p.n * k->p.k);
    differences(x, k->x_type, r * k->p.k, k->p.k, k->zero_x, row);
    for (int64_t n = 0; n < k->p.n; n++) out[r * k->p.n + n] = dot(row, w + n * k->p.k, k->p.k);
  }
  return NULL;
}

static void close_plain(int8_kernel_t* base) { assay_free(((plain_t*)base)->weights); }

// [m, cg, taps] to [m, taps, cg].
static void order_conv(const assay_conv_t* s, const int16_t* from, int16_t* to) {
  for (int64_t m = 0; m < s->m; m++)
    for (int64_t c = 0; c < s->cg; c++)
      for (int64_t t = 0; t < s->kernel_size; t++)
        to[(m * s->kernel_size + t) * s->cg + c] = from[(m * s->cg + c) * s->kernel_size + t];
}

static void order_product(const int8_product_t* p, const int16_t* from, int16_t* to) {
  for (int64_t b = 0; b < (p->shared ? 1 : p->batch); b++)
    for (int64_t n = 0; n < p->n; n++)
      for (int64_t i = 0; i < p->k; i++)
        to[(b * p->n + n) * p->k + i] =
            from[b * p->n * p->k + (p->swapped ? n * p->k + i : i * p->n + n)];
}

// Differences are taken with a zero point that is known.
static bool wants(const int8_job_t* j) { return j->zero_input < 0; }

static assay_status_t build(int8_kernel_t* base, int8_job_t* j, bool* out_ok) {
  plain_t* k = (plain_t*)base;
  k->is_conv = int8_is_conv(j->anchor);
  *out_ok = k->is_conv || int8_is_product(j->anchor);
  if (!*out_ok) return NULL;
  if (k->is_conv)
    ASSAY_TRY(int8_conv_read(j, &k->s, out_ok));
  else
    *out_ok = int8_product_read(j, &k->p);
  if (!*out_ok) return NULL;
  k->length = k->is_conv ? k->s.cg * k->s.kernel_size : k->p.k;
  if (!j->weights && k->length > INT32_MAX / (255 * 255)) return *out_ok = false, NULL;
  ASSAY_TRY(int8_kernel_init(&k->base, j,
                             k->is_conv ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN, out_ok));
  if (!*out_ok) return NULL;
  k->x_input = (int)(j->x - j->l->in);
  k->x_type = j->x_type;
  k->zero_x = j->zero_x;
  k->zero_w = j->zero_w;
  k->w_type = j->w_type;
  k->w_input = j->weights ? -1 : (int)(j->w - j->l->in);
  k->threads = omp_get_max_threads();
  if (j->weights) {
    ASSAY_TRY(assay_new_array((size_t)j->n_weights, sizeof *k->weights, &k->weights));
    if (k->is_conv)
      order_conv(&k->s, j->weights, k->weights);
    else
      order_product(&k->p, j->weights, k->weights);
  } else {
    if (k->base.base.in[k->w_input].type) return *out_ok = false, NULL;  // read as x, too
    k->base.base.in[k->w_input] = (assay_storage_t){j->w_type, ASSAY_LAYOUT_PLAIN};
  }
  int64_t turned = 0;
  if (!j->weights) turned = (k->p.shared ? 1 : k->p.batch) * k->p.n * k->p.k;
  k->base.sum = k->is_conv ? sum_conv : sum_product;
  k->base.close = close_plain;
  k->base.sum_scratch = (size_t)(k->threads * k->length + turned) * sizeof(int16_t);
  int8_kernel_ready(&k->base);
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return int8_make(l, sizeof(plain_t), wants, build, close_plain, out);
}

const assay_tactic_t cpu_tactic_int8_plain = {
    .name = "int8_plain",
    .source = "assay",
    .numerics = "integers",
    .make = make,
    .rounding = INT8_ROUNDING,
};
