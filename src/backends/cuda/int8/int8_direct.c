// Convolutions on 8-bit integers that tiles of tensor cores are not for: depthwise ones in pieces
// of rows (kernels/int8/int8_depthwise.cu), and others an element a thread
// (kernels/int8/int8_direct.cu). Those that tiles are for would take a hundred times as long, and
// to time that as well.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/int8/product.h"

enum {
  THREADS = 256,
  PIECE_THREADS = 128,
  KEPT_TERMS = 25,  // of weights, by a thread
  MAX_TERMS = 256,  // beyond these a thread's code is too long
  MAX_ENDS = 4,     // of places, where nodes are evaluated in float64
};

// Places of a row that a thread of int8_depthwise makes.
static const int places[] = {1, 2, 4, 8};
enum { N_PLACES = sizeof places / sizeof *places };

static const char element_name[] = "element", numerics[] = "integers";

// ---- pieces of rows -----------------------------------------------------------------------------

static bool has_steps(const cuda_int8_t* p) { return p->job.q && !p->job.q->simple; }

// Threads of pieces of n places; 0: these do not fit the layer.
static int64_t threads_of(const cuda_int8_t* p, int n) {
  const product_args_t* a = &p->p.args;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const bool depthwise = p->p.left == CUDA_LEFT_CONV && a->n == 1 && a->channels == 1;
  if (!depthwise || !cuda_axis_is_one(&a->axes[0]) || a->y_row % INT8_TOGETHER ||
      a->x_place != a->y_row || a->k > MAX_TERMS || a->m > INT32_MAX / 4 / a->y_row ||
      (has_steps(p) && n > MAX_ENDS))
    return 0;
  const int64_t samples = a->m / ((int64_t)down->out * across->out);
  if (samples * a->x_sample > INT32_MAX / 4) return 0;
  return samples * down->out * ((across->out + n - 1) / n) * (a->y_row / INT8_TOGETHER);
}

// Microseconds: what a thread does, a warp's loads and instructions one after the other, and those
// of all warps of a multiprocessor at the rate at which it takes them.
static double predict(const cuda_own_t* own, const cuda_int8_t* p, int n) {
  enum { PER_ELEMENT = 24 };  // instructions behind a sum
  const product_args_t* a = &p->p.args;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const double columns =
      fmin((n - 1.0) * across->stride + across->kernel, (double)n * across->kernel);
  const double reads = down->kernel * columns, taps = (double)a->k, sums = n * INT8_TOGETHER;
  // Multiplications of integers go at half the rate.
  const double work = 120 + reads * (3 + INT8_TOGETHER) + taps * (3 + 2 * INT8_TOGETHER) +
                      taps * sums * 2 + PER_ELEMENT * sums;
  const double blocks = ceil((double)threads_of(p, n) / PIECE_THREADS);
  const double warps = ceil(blocks / own->properties.multiprocessors) * (PIECE_THREADS / 32.0);
  return 1.5 + (1200 + 2 * work + warps * work / 4 / 0.7) / 1700;
}

static assay_status_t make_pieces(const assay_sized_layer_t* l, cuda_int8_t* p, int n,
                                  const int8_product_args_t* args, assay_kernel_t** out) {
  const product_args_t* a = &p->p.args;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  assay_str_t options = {0};
  assay_str_printf(&options,
                   "-DOUTS=%d -DKH=%d -DKW=%d -DSH=%d -DSW=%d -DDH=%d -DDW=%d -DMADE=%d "
                   "-DPRELOAD=%d",
                   n, down->kernel, across->kernel, down->stride, across->stride, down->dilation,
                   across->dilation, (int)a->y_row, a->k <= KEPT_TERMS);
  const cuda_source_t source = {
      .file = "int8_depthwise.cu", .kernel = "int8_depthwise", .options = assay_str_get(&options)};
  const cuda_grid_t grid = {.blocks = (threads_of(p, n) + PIECE_THREADS - 1) / PIECE_THREADS,
                            .threads = PIECE_THREADS,
                            .dependent = true};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_int8_kernel(l, p, args, NULL, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}

// ---- an element a thread ------------------------------------------------------------------------

static assay_status_t make_elements(const assay_sized_layer_t* l, cuda_int8_t* p,
                                    const int8_product_args_t* args, assay_kernel_t** out) {
  const cuda_source_t source = {.file = "int8_direct.cu", .kernel = "int8_direct", .options = ""};
  const cuda_grid_t grid = {.blocks = cuda_blocks_for(l->own, l->out[0].size, THREADS),
                            .threads = THREADS,
                            .dependent = true};
  return cuda_int8_kernel(l, p, args, NULL, &source, &grid, out);
}

// ---- variants -----------------------------------------------------------------------------------

static void name_piece(int n, char* to) {
  snprintf(to, ASSAY_VARIANT_BYTES, "%dx%d", INT8_TOGETHER, n);
}

static void add(const char* name, double predicted, assay_variant_t* out, size_t* n) {
  assay_variant_t* v = &out[(*n)++];
  *v = (assay_variant_t){.numerics = numerics, .predicted = predicted};
  snprintf(v->name, sizeof v->name, "%s", name);
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  char name[ASSAY_VARIANT_BYTES];
  cuda_int8_t p;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  const bool is_for = !cuda_int8_has_tiles(&p);
  for (int i = 0; is_for && i < N_PLACES; i++) {
    if (!threads_of(&p, places[i])) continue;
    name_piece(places[i], name);
    add(name, predict(l->own, &p, places[i]), out, out_n);
  }
  if (is_for) add(element_name, 1e3, out, out_n);  // where nothing else is
  cuda_int8_close(&p);
  return NULL;
}

// Weights of convolutions are constants.
static assay_status_t make_of(const assay_sized_layer_t* l, cuda_int8_t* p,
                              const assay_variant_t* v, assay_kernel_t** out) {
  int8_product_args_t args = {.product = p->p.args, .zero_x = p->job.zero_x};
  char name[ASSAY_VARIANT_BYTES];
  ASSAY_TRY(cuda_int8_bring_terms(p, &args));
  if (strcmp(v->name, element_name) == 0) return make_elements(l, p, &args, out);
  for (int i = 0; i < N_PLACES; i++) {
    name_piece(places[i], name);
    if (strcmp(name, v->name) == 0 && threads_of(p, places[i]))
      return make_pieces(l, p, places[i], &args, out);
  }
  return NULL;
}

assay_status_t cuda_int8_make_direct(const assay_sized_layer_t* l, const assay_variant_t* v,
                                     const assay_int8_t* joined, assay_kernel_t** out) {
  cuda_int8_t p;
  bool ok = false;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  p.joined = joined;
  assay_status_t st = cuda_int8_has_tiles(&p) ? NULL : make_of(l, &p, v, out);
  cuda_int8_close(&p);
  return st;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  return cuda_int8_make_direct(l, v, NULL, out);
}

const assay_tactic_t cuda_tactic_int8_direct = {
    .name = "int8_direct",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_INT8_ROUNDING,
};
