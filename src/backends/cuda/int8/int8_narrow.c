// Convolutions on 8-bit integers of few input channels, in pieces of rows
// (kernels/int8/int8_narrow.cu): for tensor cores their windows are gathered first.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/int8/product.h"

enum {
  PIECE_THREADS = 128,
  MAX_CHANNELS = 4,
  MAX_ROW = 64,    // terms of a row of the kernel: beyond these a thread's code is too long
  MAX_SUMS = 512,  // terms of a sum: beyond these tensor cores are faster in any case
};

// Places of a row that a thread makes.
static const int places[] = {4, 2, 1, 8};
enum { N_PLACES = sizeof places / sizeof *places };

static const char numerics[] = "integers";

// Threads of pieces of n places; 0: these do not fit the layer.
static int64_t threads_of(const cuda_int8_t* p, int n) {
  const product_args_t* a = &p->p.args;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const bool narrow = p->p.left == CUDA_LEFT_CONV && p->job.weights && a->matrices == 1 &&
                      a->channels <= MAX_CHANNELS && a->x_place == a->channels;
  if (!narrow || !cuda_axis_is_one(&a->axes[0]) || a->n % INT8_TOGETHER || a->y_row != a->n ||
      a->k > MAX_SUMS || across->kernel * a->channels > MAX_ROW ||
      (n > 4 && across->kernel * a->channels > MAX_ROW / 2) || a->m > INT32_MAX / 4 / a->y_row)
    return 0;
  const int64_t samples = a->m / ((int64_t)down->out * across->out);
  if (samples * a->x_sample > INT32_MAX / 4) return 0;
  return samples * down->out * ((across->out + n - 1) / n) * (a->n / INT8_TOGETHER);
}

// Microseconds: the instructions of all warps of a multiprocessor at the rate at which it takes
// them.
static double predict(const cuda_own_t* own, const cuda_int8_t* p, int n) {
  enum { PER_ELEMENT = 24 };  // instructions behind a sum
  const product_args_t* a = &p->p.args;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const double columns =
      fmin((n - 1.0) * across->stride + across->kernel, (double)n * across->kernel);
  const double reads = down->kernel * columns * a->channels, sums = n * INT8_TOGETHER;
  // Multiplications of integers go at half the rate.
  const double work = 120 + 3 * reads + (double)a->k * (3 + 2 * INT8_TOGETHER) +
                      (double)a->k * sums * 2 + PER_ELEMENT * sums;
  const double blocks = ceil((double)threads_of(p, n) / PIECE_THREADS);
  const double warps = ceil(blocks / own->properties.multiprocessors) * (PIECE_THREADS / 32.0);
  return 1.5 + (1200 + 2 * work + warps * work / 4 / 0.7) / 1700;
}

static void name_piece(int n, char* to) {
  snprintf(to, ASSAY_VARIANT_BYTES, "%dx%d", INT8_TOGETHER, n);
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_int8_t p;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  for (int i = 0; i < N_PLACES; i++) {
    if (!threads_of(&p, places[i])) continue;
    assay_variant_t* v = &out[(*out_n)++];
    *v = (assay_variant_t){.numerics = numerics, .predicted = predict(l->own, &p, places[i])};
    name_piece(places[i], v->name);
  }
  cuda_int8_close(&p);
  return NULL;
}

static assay_status_t make_pieces(const assay_sized_layer_t* l, cuda_int8_t* p, int n,
                                  assay_kernel_t** out) {
  int8_product_args_t args = {.product = p->p.args, .zero_x = p->job.zero_x};
  const product_args_t* a = &p->p.args;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  assay_str_t options = {0};
  ASSAY_TRY(cuda_int8_bring_terms(p, &args));
  assay_str_printf(&options,
                   "-DOUTS=%d -DKH=%d -DKW=%d -DSH=%d -DSW=%d -DDH=%d -DDW=%d -DCHANNELS=%d "
                   "-DMADE=%d -DZERO=%d",
                   n, down->kernel, across->kernel, down->stride, across->stride, down->dilation,
                   across->dilation, a->channels, (int)a->n,
                   p->job.zero_input >= 0 || p->job.zero_x != 0);
  const cuda_source_t source = {
      .file = "int8_narrow.cu", .kernel = "int8_narrow", .options = assay_str_get(&options)};
  const cuda_grid_t grid = {.blocks = (threads_of(p, n) + PIECE_THREADS - 1) / PIECE_THREADS,
                            .threads = PIECE_THREADS,
                            .dependent = true};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_int8_kernel(l, p, &args, NULL, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}

assay_status_t cuda_int8_make_narrow(const assay_sized_layer_t* l, const assay_variant_t* v,
                                     const assay_int8_t* joined, assay_kernel_t** out) {
  char name[ASSAY_VARIANT_BYTES];
  cuda_int8_t p;
  bool ok = false;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  p.joined = joined;
  assay_status_t st = NULL;
  for (int i = 0; !st && !*out && i < N_PLACES; i++) {
    name_piece(places[i], name);
    if (strcmp(name, v->name) == 0 && threads_of(&p, places[i]))
      st = make_pieces(l, &p, places[i], out);
  }
  cuda_int8_close(&p);
  return st;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  return cuda_int8_make_narrow(l, v, NULL, out);
}

const assay_tactic_t cuda_tactic_int8_narrow = {
    .name = "int8_narrow",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_INT8_ROUNDING,
};
