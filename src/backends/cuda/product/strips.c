// Depthwise convolutions of 16-bit values by strips: which fit a layer, how blocks are laid out,
// and how long they take.
#include "backends/cuda/product/strips.h"

#include <math.h>
#include <stdio.h>

enum {
  PIECE = 8,            // channels that are copied at once
  MAX_THREADS = 128,    // of a block
  MAX_TAPS = 128,       // beyond these a thread's code is too long
  MAX_SLOTS = 7,        // rows of the output in a thread's registers
  MAX_WORDS = 96,       // of the input in them
  REGISTERS = 65536,    // of a multiprocessor
  OWN_REGISTERS = 200,  // of a thread
  RESERVED = 1 << 10,   // bytes of shared memory beside what a block asks for
};

// Places of a row, rows; bytes of shared memory that a block may ask for at most.
typedef struct strip {
  int places, rows, bytes;
} strip_t;
static const strip_t strips[CUDA_STRIPS] = {{7, 7, 75000},  {7, 14, 75000}, {8, 8, 75000},
                                            {4, 7, 56000},  {4, 4, 45000},  {7, 4, 75000},
                                            {4, 14, 75000}, {2, 4, 32000}};

// How a block's threads lie: lanes of two channels, strips across and down, samples.
typedef struct block {
  const strip_t* strip;
  int rows;  // of a strip: no more than there are
  int lanes, across, down, samples;
  int threads, bytes, together;  // blocks of a multiprocessor
  int64_t blocks;
} block_t;

static int min_of(int x, int y) { return x < y ? x : y; }
static int64_t ceiling(int64_t x, int64_t by) { return (x + by - 1) / by; }

// Shares n out to parts of at most `most`, as even as they can be.
static int part_of(int64_t n, int most) { return (int)ceiling(n, ceiling(n, most)); }

static const product_axis_t* down_of(const product_args_t* a) { return &a->axes[PRODUCT_AXES - 2]; }
static const product_axis_t* across_of(const product_args_t* a) {
  return &a->axes[PRODUCT_AXES - 1];
}

static int slots_of(const product_axis_t* down) { return (int)ceiling(down->kernel, down->stride); }

// A thread makes strips of either half.
static int halves_of(const cuda_product_t* p) { return p->half_type ? 2 : 1; }

// Registers of a thread: sums of all rows that are under way, the input, weights and places.
static int registers_of(const cuda_product_t* p, const strip_t* s) {
  const product_axis_t *down = down_of(&p->args), *across = across_of(&p->args);
  const int columns = (s->places - 1) * across->stride + across->kernel;
  return 2 * s->places * slots_of(down) * halves_of(p) + 2 * columns * down->stride + 28;
}

static bool is_for(const cuda_product_t* p, const strip_t* s) {
  const product_args_t* a = &p->args;
  const product_axis_t *first = &a->axes[0], *down = down_of(a), *across = across_of(a);
  if (p->left != CUDA_LEFT_CONV || a->n != 1 || a->channels != 1 ||
      assay_kernel_float_bytes(p->in) != 2 || a->y_row % PIECE ||
      a->y_row * halves_of(p) != a->matrices || a->x_place != a->matrices || first->in != 1 ||
      first->out != 1 || first->kernel != 1 || first->pad != 0 || down->dilation != 1 ||
      across->dilation != 1 || a->k > MAX_TAPS || a->m > INT32_MAX / 4 / a->y_row ||
      a->m / ((int64_t)down->out * across->out) * a->x_sample > INT32_MAX / 4)
    return false;
  const int columns = (s->places - 1) * across->stride + across->kernel;
  // Half of a strip is to be there.
  return slots_of(down) <= MAX_SLOTS && down->stride * columns * 2 <= MAX_WORDS &&
         registers_of(p, s) <= OWN_REGISTERS && across->out * 2 > s->places &&
         down->out * 2 > s->rows;
}

// Words of shared memory for a block's inputs, and floats for its weights.
static int64_t words_of(const cuda_product_t* p, const block_t* b) {
  const product_axis_t *down = down_of(&p->args), *across = across_of(&p->args);
  const int64_t width =
      ((int64_t)b->across * b->strip->places - 1) * across->stride + across->kernel;
  const int64_t height = ((int64_t)b->down * b->rows - 1 + slots_of(down)) * down->stride;
  const int64_t weights = (int64_t)down->kernel * ((across->kernel + 1) / 2) * 4;
  return (b->samples * width * height + weights) * b->lanes * halves_of(p);
}

// Of a line of 64 bytes, or of 32 where channels would be missing in the last one.
static int lanes_of(int64_t channels) {
  return ceiling(channels, 32) * 32 * 8 <= ceiling(channels, 16) * 16 * 9 ? 16 : 8;
}

// False: the strips do not fit.
static bool lay_out(const cuda_own_t* own, const cuda_product_t* p, const strip_t* s, block_t* b) {
  const product_args_t* a = &p->args;
  const product_axis_t *down = down_of(a), *across = across_of(a);
  if (!is_for(p, s)) return false;
  const int64_t samples = a->m / ((int64_t)down->out * across->out);
  const int most = min_of(s->bytes, own->properties.shared_bytes);
  *b = (block_t){.strip = s, .rows = min_of(s->rows, down->out), .lanes = lanes_of(a->y_row)};
  const int64_t wide = ceiling(across->out, s->places), high = ceiling(down->out, b->rows);
  int pieces = MAX_THREADS / b->lanes;
  b->across = part_of(wide, pieces);
  b->down = part_of(high, pieces / b->across);
  b->samples = part_of(samples, pieces / b->across / b->down);
  while (words_of(p, b) * 4 > most) {
    if (b->samples > 1)
      b->samples = part_of(samples, b->samples - 1);
    else if (b->down > 1)
      b->down = part_of(high, b->down - 1);
    else if (b->across > 1)
      b->across = part_of(wide, b->across - 1);
    else
      return false;
  }
  b->bytes = (int)words_of(p, b) * 4;
  b->threads = (int)ceiling(b->lanes * b->across * b->down * b->samples, 32) * 32;
  b->blocks = ceiling(a->y_row, 2 * b->lanes) * ceiling(wide, b->across) * ceiling(high, b->down) *
              ceiling(samples, b->samples);
  // Registers are given out by eights.
  b->together = min_of(REGISTERS / (b->threads * ((registers_of(p, s) + 7) / 8 * 8)),
                       own->properties.shared_bytes / (b->bytes + RESERVED));
  b->together = b->together < 1 ? 1 : b->together;
  return true;
}

// Instructions of a thread, and of all warps of a multiprocessor at the rate at which it takes
// them.
double cuda_strips_predict(const cuda_own_t* own, const cuda_product_t* p, int number) {
  const product_args_t* a = &p->args;
  const product_axis_t *down = down_of(a), *across = across_of(a);
  const strip_t* s = &strips[number];
  block_t b;
  if (!lay_out(own, p, s, &b)) return 0;
  const double columns = (s->places - 1.0) * across->stride + across->kernel;
  const double steps = b.rows + slots_of(down) - 1;
  const double row = down->kernel * (across->kernel * (2.0 * s->places + 0.6) + 8);
  const double copies = (double)words_of(p, &b) / 4 / b.threads;
  const double work = 500 + 10 * copies +
                      halves_of(p) * (steps * (30 + 3 * columns * down->stride) +
                                      b.rows * (row + 10.0 * s->places) +
                                      20.0 * (double)a->k * b.lanes / b.threads);
  const double each = ceil((double)b.blocks / own->properties.multiprocessors);
  const double warps = fmin(each, b.together) * b.threads / 32 / 4;  // of a scheduler
  const double rate = fmin(0.85, 0.4 * warps);
  const double clocks = 2500 + each * b.threads / 32 / 4 * work / rate;
  return 1.5 + clocks / 1700;
}

void cuda_strips_name(int number, char to[ASSAY_VARIANT_BYTES]) {
  snprintf(to, ASSAY_VARIANT_BYTES, "strips_%dx%d", strips[number].places, strips[number].rows);
}

assay_status_t cuda_strips_make(const assay_sized_layer_t* l, const cuda_product_t* p, int number,
                                assay_str_t* options, assay_kernel_t** out) {
  const product_axis_t *down = down_of(&p->args), *across = across_of(&p->args);
  block_t b;
  if (!lay_out(cuda_own_of(l), p, &strips[number], &b)) return NULL;
  assay_str_printf(options,
                   " -DOUTS=%d -DROWS=%d -DLINE=%d -DACROSS=%d -DDOWN=%d -DSAMPLES=%d"
                   " -DN_THREADS=%d -DTOGETHER_BLOCKS=%d -DKH=%d -DKW=%d -DSH=%d -DSW=%d"
                   " -DCHANNELS=%d -DW_CONSTANT=%d",
                   b.strip->places, b.rows, b.lanes, b.across, b.down, b.samples, b.threads,
                   b.together, down->kernel, across->kernel, down->stride, across->stride,
                   (int)p->args.matrices, cuda_weights_are_constant(l, p));
  ASSAY_TRY(assay_str_status(options));
  const cuda_source_t source = {.file = "depthwise_strips.cu",
                                .kernel = "depthwise_strips",
                                .options = assay_str_get(options),
                                .shared_bytes = b.bytes};
  const cuda_grid_t grid = {
      .blocks = b.blocks, .threads = b.threads, .shared_bytes = b.bytes, .dependent = true};
  return cuda_product_kernel(l, p, &source, &grid, out);
}
