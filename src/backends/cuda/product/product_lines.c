// Convolutions of few channels on tensor cores, whose windows are taken from lines of the image
// (kernels/product/product_lines.cu).
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/product/product.h"

enum {
  MAX_TERMS = 320,        // their code is unrolled
  MAX_COLUMNS = 64,       // of a tile
  MAX_BYTES = 110 << 10,  // of shared memory: two blocks find room in a multiprocessor
  OTHER_BYTES = 4 << 10,  // that the kernel declares itself
  MAX_CHANNELS = 63,      // windows of more are brought by the copy engine
  STEP = 16,              // terms
  PIECE = 8,              // elements of 16 bytes
};

// Rows of a tile, each a thread.
static const int heights[] = {256, 128};
enum { N_HEIGHTS = sizeof heights / sizeof *heights };

static int64_t up(int64_t x, int64_t by) { return (x + by - 1) / by * by; }

typedef struct shape {
  const product_axis_t *down, *across;
  int rows, columns, piece, bytes;
  int64_t terms, blocks;  // terms: with zeros behind them
} shape_t;

static bool is_for(const cuda_product_t* p) {
  const product_args_t* a = &p->args;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  return p->left == CUDA_LEFT_CONV && p->w < 0 && p->taps_of && !p->half_type &&
         assay_kernel_float_bytes(p->in) == 2 && a->matrices == 1 && a->channels == a->x_place &&
         a->channels <= MAX_CHANNELS && a->k <= MAX_TERMS && cuda_axis_is_one(&a->axes[0]) &&
         down->dilation == 1 && across->dilation == 1 && !cuda_is_one_to_one(a) &&
         a->m <= INT32_MAX / 4 && a->x_sample == (int64_t)down->in * across->in * a->channels;
}

// Elements in front of a line and in all of it, and lines under a tile, as the kernel has them.
static int64_t words_of_lines(const product_args_t* a, const shape_t* s) {
  const product_axis_t *down = s->down, *across = s->across;
  const int64_t c = a->channels, left = up(across->pad * c, PIECE);
  const int64_t end =
      ((across->out - 1) * (int64_t)across->stride + across->kernel - across->pad) * c;
  const int64_t width = across->in * c;
  const int64_t elements = up(left + (end > width ? end : width), PIECE);
  const int64_t place = c % PIECE ? c : c + PIECE;
  const bool whole = across->out % s->rows == 0 || s->rows % across->out == 0;
  const int64_t further = whole ? up(s->rows, across->out) / across->out - 1
                                : up(s->rows - 1, across->out) / across->out;
  const bool crosses = (int64_t)across->out * down->out % s->rows != 0;
  const int64_t more = crosses && down->kernel > down->stride ? down->kernel - down->stride : 0;
  return (elements / c * place + elements % c) * (further * down->stride + down->kernel + more);
}

// False: the kernel does not fit.
static bool lay_out(const cuda_own_t* own, const cuda_product_t* p, int rows, shape_t* s) {
  const product_args_t* a = &p->args;
  if (!is_for(p)) return false;
  const int64_t parts = (a->n + MAX_COLUMNS - 1) / MAX_COLUMNS;
  *s = (shape_t){.down = &a->axes[PRODUCT_AXES - 2],
                 .across = &a->axes[PRODUCT_AXES - 1],
                 .rows = rows,
                 .columns = (int)up((a->n + parts - 1) / parts, PIECE),
                 .terms = up(a->k, STEP)};
  const int64_t width = (int64_t)s->across->in * a->channels;
  s->piece = width % PIECE == 0 ? PIECE : width % 2 == 0 ? 2 : 1;
  const cuda_tile_t tile = {s->rows, s->columns, 1, 1};
  const int64_t operands = 2 * (words_of_lines(a, s) + up(s->columns, STEP) * (s->terms + PIECE));
  const int sums = cuda_tile_sums_bytes(&tile);
  s->blocks = cuda_tile_blocks(a, &tile);
  const int64_t bytes = operands > sums ? operands : sums;
  if (rows > (int64_t)s->down->out * s->across->out || bytes > MAX_BYTES ||
      bytes > own->properties.shared_bytes - OTHER_BYTES)
    return false;
  s->bytes = (int)bytes;
  return true;
}

// Instructions of a multiprocessor's warps at the rate at which it takes them, and what is stored.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const shape_t* s) {
  const double all = own->properties.multiprocessors;
  const double step = 16 + (p->args.channels % 2 ? 44 : 24) + 2.5 * s->columns / 8;
  const double work = 400 + (double)s->terms / STEP * step + 3.0 * s->columns;
  const double each = ceil((double)s->blocks / all);
  const double warps = fmin(each, 2) * s->rows / 32 / 4;  // of a scheduler
  const double rate = fmin(0.7, 0.3 * warps);
  const double stored = (double)p->args.m * (double)p->args.n * 2 / 3e6;
  return 2 + fmax(stored, (2000 + each * s->rows / 32 / 4 * work / rate) / 1700);
}

static void name_rows(int rows, char name[ASSAY_VARIANT_BYTES]) {
  snprintf(name, ASSAY_VARIANT_BYTES, "%d", rows);
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_product_t p;
  shape_t s;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  for (int i = 0; ok && i < N_HEIGHTS; i++) {
    if (!lay_out(cuda_own_of(l), &p, heights[i], &s)) continue;
    assay_variant_t* v = &out[(*out_n)++];
    *v = (assay_variant_t){.numerics = "tensor", .predicted = predict(cuda_own_of(l), &p, &s)};
    name_rows(heights[i], v->name);
  }
  return NULL;
}

static void append(const product_args_t* a, const shape_t* s, assay_str_t* options) {
  const product_axis_t *down = s->down, *across = s->across;
  assay_str_printf(options,
                   " -DBM=%d -DBN=%d -DCHANNELS=%d -DIW=%d -DIH=%d -DOW=%d -DOH=%d -DKW=%d -DKH=%d"
                   " -DSW=%d -DSH=%d -DPAD_W=%d -DPAD_H=%d -DPIECE=%d",
                   s->rows, s->columns, a->channels, across->in, down->in, across->out, down->out,
                   across->kernel, down->kernel, across->stride, down->stride, across->pad,
                   down->pad, s->piece);
}

static assay_status_t make(const assay_sized_layer_t* l, cuda_product_t* p, const shape_t* s,
                           assay_str_t* options, assay_kernel_t** out) {
  // Places of windows that are apart may have been joined, so that channels are more than there
  // are.
  const assay_operand_t* w = p->taps_of;
  const cuda_taps_t taps = {.m = p->args.n,
                            .mg = p->args.n,
                            .cg = w->dims[1],
                            .taps = p->args.k / w->dims[1],
                            .pitch = s->terms};
  cuda_product_options(p, options);
  append(&p->args, s, options);
  ASSAY_TRY(assay_str_status(options));
  ASSAY_TRY(cuda_taps_get(l, w, &taps, &p->args.w));
  const cuda_source_t source = {.file = "product_lines.cu",
                                .kernel = "product_lines",
                                .options = assay_str_get(options),
                                .shared_bytes = s->bytes};
  const cuda_grid_t grid = {
      .blocks = s->blocks, .threads = s->rows, .shared_bytes = s->bytes, .dependent = true};
  return cuda_product_kernel(l, p, &source, &grid, out);
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  char name[ASSAY_VARIANT_BYTES];
  cuda_product_t p;
  shape_t s;
  bool ok = false;
  assay_str_t options = {0};
  assay_status_t st = NULL;
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  for (int i = 0; ok && !st && !*out && i < N_HEIGHTS; i++) {
    name_rows(heights[i], name);
    if (strcmp(name, v->name) == 0 && lay_out(cuda_own_of(l), &p, heights[i], &s))
      st = make(l, &p, &s, &options, out);
  }
  assay_str_deinit(&options);
  return st;
}

// The bits of product_mma.
const assay_tactic_t cuda_tactic_product_lines = {
    .name = "product_lines",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_TENSOR_ROUNDING,
};
