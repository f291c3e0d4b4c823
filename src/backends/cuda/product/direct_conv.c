// Convolutions of few channels a group, directly: strips (strips.h), pieces of rows
// (kernels/direct_conv_row.cu), or an element a thread where these do not fit
// (kernels/direct_conv.cu). All have the same bits.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/product/product.h"
#include "backends/cuda/product/strips.h"

enum {
  FEW = 8,  // columns or channels of a group that a tile would waste
  THREADS = 256,
  ROW_THREADS = 128,
  PIECE_BYTES = 16,  // that are read or written at once, at most
  KEPT_WORDS = 64,   // of weights, by a thread
  MAX_TERMS = 1024,  // beyond these a thread's code is too long
};

// What a thread of direct_conv_row makes: neighbouring channels, and places of a row.
typedef struct piece {
  int channels, places;
} piece_t;
static const piece_t pieces[] = {{2, 1}, {2, 2}, {2, 4}, {4, 1}, {4, 2},
                                 {4, 4}, {8, 1}, {8, 2}, {1, 1}};
enum { N_PIECES = sizeof pieces / sizeof *pieces };

static const char element_name[] = "element", numerics[] = "direct";

static bool is_for(const cuda_product_t* p) {
  return p->args.matrices > 1 && p->args.n <= FEW && p->args.channels <= FEW;
}

// ---- pieces of rows -----------------------------------------------------------------------------

static bool is_depthwise(const product_args_t* a) { return a->n == 1 && a->channels == 1; }

static int bytes_of(assay_type_t t) { return (int)assay_kernel_float_bytes(t); }

// A thread makes a piece of either half.
static int halves_of(const cuda_product_t* p) { return p->half_type ? 2 : 1; }

// Threads of pieces; 0: these do not fit the layer.
static int64_t threads_of(const cuda_product_t* p, const piece_t* s) {
  const product_args_t* a = &p->args;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const bool depthwise = is_depthwise(a);
  const int read = depthwise ? s->channels : a->channels;
  const int wider = bytes_of(p->in) > bytes_of(p->out) ? bytes_of(p->in) : bytes_of(p->out);
  const int64_t side_by_side = depthwise ? a->y_row : a->n;
  const int64_t samples = a->m / ((int64_t)down->out * across->out);
  if (p->left != CUDA_LEFT_CONV || !cuda_axis_is_one(&a->axes[0]) || side_by_side % s->channels ||
      a->y_row % s->channels || (s->channels == 1 && side_by_side % 2 == 0) ||
      (read & (read - 1)) || read * bytes_of(p->in) > PIECE_BYTES ||
      s->channels * wider > PIECE_BYTES || a->k > MAX_TERMS || a->m > INT32_MAX / 4 / a->y_row ||
      samples * a->x_sample > INT32_MAX / 4)
    return 0;
  return samples * down->out * ((across->out + s->places - 1) / s->places) *
         (a->y_row / s->channels);
}

// Microseconds: what a thread does, a warp's loads and instructions one after the other, and those
// of all warps of a multiprocessor at the rates at which it takes them.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const piece_t* s) {
  const product_args_t* a = &p->args;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const double terms = (double)(a->k / (down->kernel * across->kernel));
  const double columns =
      fmin((s->places - 1.0) * across->stride + across->kernel, (double)s->places * across->kernel);
  const double places = s->places, channels = s->channels;
  const double reads = halves_of(p) * down->kernel * columns;
  const double taps = halves_of(p) * (double)a->k;
  const double read = is_depthwise(a) ? channels : terms;
  const double work = 120 + reads * (3 + read) + taps * (1 + channels) + taps * channels * places +
                      20 * channels * places;
  const double pieces_read = reads * fmax(1, read * bytes_of(p->in) / 4.0) +
                             taps * fmax(1, channels * bytes_of(p->in) / 4.0);
  const double blocks = ceil((double)threads_of(p, s) / ROW_THREADS);
  const double warps = ceil(blocks / own->properties.multiprocessors) * (ROW_THREADS / 32.0);
  const double clocks = 1200 + 2 * work + fmax(warps * work / 4 / 0.7, warps * pieces_read);
  return 1.5 + clocks / 1700;
}

static void name_piece(const piece_t* s, char* to) {
  snprintf(to, ASSAY_VARIANT_BYTES, "%dx%d", s->channels, s->places);
}

static assay_status_t make_pieces(const assay_sized_layer_t* l, const cuda_product_t* p,
                                  const piece_t* s, assay_str_t* options, assay_kernel_t** out) {
  const product_args_t* a = &p->args;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const int64_t threads = threads_of(p, s);
  const int64_t words = halves_of(p) * a->k * ((s->channels * bytes_of(p->in) + 3) / 4);
  if (!threads) return NULL;
  assay_str_printf(
      options,
      " -DCH=%d -DOUTS=%d -DDEPTHWISE=%d -DOF_GROUP=%d -DKH=%d -DKW=%d -DSH=%d -DSW=%d "
      "-DDH=%d -DDW=%d -DMADE=%d -DREAD=%d -DPRELOAD=%d",
      s->channels, s->places, is_depthwise(a), a->channels, down->kernel, across->kernel,
      down->stride, across->stride, down->dilation, across->dilation, (int)(a->matrices * a->n),
      (int)a->x_place, p->w < 0 && words <= KEPT_WORDS);
  ASSAY_TRY(assay_str_status(options));
  const cuda_source_t source = {
      .file = "direct_conv_row.cu", .kernel = "direct_conv_row", .options = assay_str_get(options)};
  const cuda_grid_t grid = {.blocks = (threads + ROW_THREADS - 1) / ROW_THREADS,
                            .threads = ROW_THREADS,
                            .dependent = true};
  return cuda_product_kernel(l, p, &source, &grid, out);
}

// ---- an element a thread ------------------------------------------------------------------------

static assay_status_t make_elements(const assay_sized_layer_t* l, const cuda_product_t* p,
                                    assay_str_t* options, assay_kernel_t** out) {
  ASSAY_TRY(assay_str_status(options));
  const cuda_source_t source = {
      .file = "direct_conv.cu", .kernel = "direct_conv", .options = assay_str_get(options)};
  const cuda_grid_t grid = {.blocks = cuda_blocks_for(l->own, l->out[0].size, THREADS),
                            .threads = THREADS,
                            .dependent = true};
  return cuda_product_kernel(l, p, &source, &grid, out);
}

// ---- variants -----------------------------------------------------------------------------------

static void add(const char* name, double predicted, assay_variant_t* out, size_t* n) {
  assay_variant_t* v = &out[(*n)++];
  *v = (assay_variant_t){.numerics = numerics, .predicted = predicted};
  snprintf(v->name, sizeof v->name, "%s", name);
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  char name[ASSAY_VARIANT_BYTES];
  cuda_product_t p;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_product_read_direct(l, &p, &ok));
  if (!ok || !is_for(&p)) return NULL;
  for (int i = 0; i < N_PIECES; i++) {
    if (!threads_of(&p, &pieces[i])) continue;
    name_piece(&pieces[i], name);
    add(name, predict(l->own, &p, &pieces[i]), out, out_n);
  }
  for (int i = 0; i < CUDA_STRIPS; i++) {
    const double predicted = cuda_strips_predict(l->own, &p, i);
    if (!(predicted > 0)) continue;
    cuda_strips_name(i, name);
    add(name, predicted, out, out_n);
  }
  add(element_name, 1e3, out, out_n);  // where nothing else is
  return NULL;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  char name[ASSAY_VARIANT_BYTES];
  cuda_product_t p;
  bool ok = false;
  assay_str_t options = {0};
  assay_status_t st = NULL;
  ASSAY_TRY(cuda_product_read_direct(l, &p, &ok));
  if (!ok || !is_for(&p)) return NULL;
  cuda_product_options(&p, &options);
  // Values of 16 bits are what they are rounded to: nothing is rounded, which would take two
  // instructions for each that is read.
  assay_str_printf(&options, " -DOPERAND=%s", p.tf32 ? "tf32" : "f32");
  if (strcmp(v->name, element_name) == 0) st = make_elements(l, &p, &options, out);
  for (int i = 0; !st && !*out && i < N_PIECES; i++) {
    name_piece(&pieces[i], name);
    if (strcmp(name, v->name) == 0) st = make_pieces(l, &p, &pieces[i], &options, out);
  }
  for (int i = 0; !st && !*out && i < CUDA_STRIPS; i++) {
    cuda_strips_name(i, name);
    if (strcmp(name, v->name) == 0) st = cuda_strips_make(l, &p, i, &options, out);
  }
  assay_str_deinit(&options);
  return st;
}

const assay_tactic_t cuda_tactic_direct_conv = {
    .name = "direct_conv",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .function_ulps = 4},
};
