// Int8 depthwise convolutions, channels last, by AVX512-VNNI: rows of the input are put down once
// with four neighbouring columns of each channel in a unit, zero points as their padding, and all
// rows of the output that see them go over them; what the layer does to each sum follows row by
// row.
#include <omp.h>
#include <string.h>

#include "backends/cpu/int8/int8_block.h"
#include "backends/cpu/int8/int8_conv_geometry.h"
#include "backends/cpu/int8/int8_make.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"

enum {
  PARTS = 64,
  MAX_ROWS = 32,  // of the kernel
  MAX_LINE = 8 * 1024 * 1024,
  ROWS = 4,   // for a thread to have rows of its own
  WIDTH = 64  // channels of which threads have multiples
};

typedef struct depthwise {
  int8_kernel_t base;
  int input;
  bool flip;
  uint8_t padding;
  assay_window_axis_t across, along;
  int64_t samples, channels, blocks;  // of 16 channels
  int64_t quads, held, units;         // rows that are held; units of one
  int max_parts;
  size_t part_scratch;
  int8_t* weights;  // [block][row][quad][16][4]
  int32_t* start;
} depthwise_t;

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- running -----------------------------------------------------------------------------------

typedef struct job {
  const depthwise_t* k;
  const void* const* in;
  void* out;
  uint32_t* rows;                   // [block][held][units][16]
  int32_t* sums;                    // [place][channel]
  int64_t first, blocks, channels;  // of this part
} job_t;

static uint32_t* row_at(const job_t* j, int64_t block, int64_t row) {
  const depthwise_t* k = j->k;
  const int64_t at = (row % k->held + k->held) % k->held;
  return j->rows + (block * k->held + at) * k->units * INT8_LANES;
}

static void put_down(const job_t* j, int64_t sample, int64_t row) {
  const depthwise_t* k = j->k;
  const assay_window_axis_t *a = &k->across, *b = &k->along;
  const bool inside = row >= 0 && row < a->in;
  const int64_t line = inside ? (sample * a->in + row) * b->in * k->channels : 0;
  for (int64_t i = 0; i < j->blocks; i++) {
    const int64_t c = (j->first + i) * INT8_LANES;
    const int8_line_t l = {.from = (const uint8_t*)j->in[k->input] + line + c,
                           .step = k->channels,
                           .before = b->pads[0],
                           .inside = inside ? b->in : 0,
                           .n = k->units,
                           .channels = (int)min(INT8_LANES, k->channels - c),
                           .padding = k->padding,
                           .flip = k->flip};
    int8_line_units(&l, row_at(j, i, row));
  }
}

static void make_row(const job_t* j, int64_t sample, int64_t row) {
  const depthwise_t* k = j->k;
  const assay_window_axis_t *a = &k->across, *b = &k->along;
  const int64_t from = row * a->stride - a->pads[0];
  // From the last block to the first: what a block of fewer channels writes after each place is
  // written over.
  for (int64_t i = j->blocks; i-- > 0;) {
    const uint32_t* rows[MAX_ROWS];
    for (int64_t r = 0; r < a->kernel; r++) rows[r] = row_at(j, i, from + r * a->dilation);
    const int8_depthwise_row_t d = {
        .n_rows = a->kernel,
        .quads = k->quads,
        .stride = b->stride,
        .columns = b->out,
        .rows = rows,
        .weights = k->weights + (j->first + i) * a->kernel * k->quads * INT8_LANES * 4,
        .start = k->start + (j->first + i) * INT8_LANES,
        .out = j->sums + i * INT8_LANES,
        .out_step = j->channels};
    int8_depthwise_run(&d);
  }
  const int64_t place = (sample * a->out + row) * b->out;
  const int8_part_t part = {.sums = j->sums,
                            .from = place * k->channels + j->first * INT8_LANES,
                            .n = j->channels,
                            .runs = b->out,
                            .step = k->channels};
  int8_kernel_finish_part(&k->base, j->in, &part, j->out);
}

// Rows [row, last) of all samples.
static void run_rows(const job_t* j, int64_t row, int64_t last) {
  const assay_window_axis_t* a = &j->k->across;
  int64_t had = 0, of = -1;  // rows of that sample's input before `had` are there
  for (; row < last; row++) {
    const int64_t sample = row / a->out, at = row % a->out;
    const int64_t from = at * a->stride - a->pads[0];
    const int64_t end = from + (a->kernel - 1) * a->dilation + 1;
    if (of != sample || had < from) had = from;
    of = sample;
    for (; had < end; had++) put_down(j, sample, had);
    make_row(j, sample, at);
  }
}

static void run_share(const depthwise_t* k, const void* const* in, void* out, char* scratch, int p,
                      int parts) {
  const int64_t rows = k->samples * k->across.out;
  const bool by_rows = rows >= ROWS * parts * k->across.kernel || k->channels < WIDTH * parts;
  const int64_t wide = WIDTH / INT8_LANES, all = (k->blocks + wide - 1) / wide;
  job_t j = {.k = k, .in = in, .out = out, .blocks = k->blocks};
  if (!by_rows) {
    j.first = all * p / parts * wide;
    j.blocks = min(all * (p + 1) / parts * wide, k->blocks) - j.first;
  }
  j.channels = min(j.blocks * INT8_LANES, k->channels - j.first * INT8_LANES);
  j.rows = (uint32_t*)(void*)(scratch + (size_t)p * k->part_scratch);
  j.sums = (int32_t*)(j.rows + j.blocks * k->held * k->units * INT8_LANES);
  if (by_rows)
    run_rows(&j, rows * p / parts, rows * (p + 1) / parts);
  else
    run_rows(&j, 0, rows);
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const depthwise_t* k = (const depthwise_t*)base;
  char* own_scratch = cpu_scratch(scratch);
  int parts = cpu_threads(k->base.size * (k->across.kernel * k->quads / 4 + 2));
  if (parts > k->max_parts) parts = k->max_parts;
  if (parts == 1) {
    run_share(k, in, out[0], own_scratch, 0, 1);
    return NULL;
  }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int p = 0; p < parts; p++) run_share(k, in, out[0], own_scratch, p, parts);
  return NULL;
}

static void close_depthwise(int8_kernel_t* base) {
  depthwise_t* k = (depthwise_t*)base;
  assay_free(k->weights);
  assay_free(k->start);
}

// ---- making ------------------------------------------------------------------------------------

static assay_status_t pack(depthwise_t* k, const int8_job_t* j) {
  const int64_t kh = k->across.kernel, kw = k->along.kernel;
  int32_t* sums = NULL;
  assay_status_t st =
      assay_new_array((size_t)(k->blocks * kh * k->quads), INT8_LANES * 4, &k->weights);
  if (!st) st = assay_new_array((size_t)k->channels, sizeof *sums, &sums);
  for (int64_t c = 0; !st && c < k->channels; c++)
    for (int64_t t = 0; t < kh * kw; t++) {
      const int16_t w = j->weights[c * kh * kw + t];
      const int64_t row = c / INT8_LANES * kh + t / kw, at = row * k->quads + t % kw / 4;
      k->weights[(at * INT8_LANES + c % INT8_LANES) * 4 + t % kw % 4] = (int8_t)w;
      sums[c] += w;
    }
  if (!st)
    st = int8_kernel_start(&k->base, j->zero_x + (k->flip ? 128 : 0), sums, k->blocks * INT8_LANES,
                           &k->start);
  assay_free(sums);
  return st;
}

static bool wants(const int8_job_t* j) { return j->zero_input < 0 && int8_is_conv(j->anchor); }

static assay_status_t build(int8_kernel_t* base, int8_job_t* j, bool* out_ok) {
  depthwise_t* k = (depthwise_t*)base;
  assay_conv_t s;
  *out_ok =
      j->weights && j->fits_int8 && (j->x->rank == 3 || j->x->rank == 4) && j->rank == j->x->rank;
  if (*out_ok) ASSAY_TRY(int8_conv_read(j, &s, out_ok));
  if (!*out_ok) return NULL;
  k->across = s.w.rank == 2 ? s.w.axis[0]
                            : (assay_window_axis_t){
                                  .kernel = 1, .stride = 1, .dilation = 1, .in = 1, .out = 1};
  k->along = s.w.axis[s.w.rank - 1];
  k->samples = s.n;
  k->channels = s.m;
  k->blocks = (s.m + INT8_LANES - 1) / INT8_LANES;
  k->quads = (k->along.kernel + 3) / 4;
  k->held = (k->across.kernel - 1) * k->across.dilation + 1;
  k->units = (k->along.out - 1) * k->along.stride + 4 * (k->quads - 1) + 1;
  int64_t line = 0;
  *out_ok = s.group > 1 && s.cg == 1 && s.mg == 1 && k->along.dilation == 1 &&
            k->across.kernel <= MAX_ROWS && k->across.pads[0] >= 0 && k->along.pads[0] >= 0 &&
            assay_mul_i64(k->held * k->units, k->blocks, &line) && line < MAX_LINE;
  if (!*out_ok) return NULL;
  k->flip = j->x_type == ASSAY_TYPE_INT8;
  k->padding = (uint8_t)(j->zero_x + (k->flip ? 128 : 0));
  k->input = (int)(j->x - j->l->in);
  ASSAY_TRY(int8_kernel_init(&k->base, j, ASSAY_LAYOUT_CHANNELS_LAST, out_ok));
  *out_ok = *out_ok && k->base.m == k->channels;
  if (!*out_ok) return NULL;
  ASSAY_TRY(pack(k, j));
  k->base.base.run = run;
  const int64_t parts = k->base.size / 50000 + 1;
  k->max_parts = parts < PARTS ? (int)parts : PARTS;
  k->part_scratch =
      (size_t)(line * INT8_LANES + k->along.out * k->channels + 2 * INT8_LANES) * sizeof(int32_t);
  k->part_scratch = (k->part_scratch + 63) / 64 * 64;
  k->base.base.scratch = 64 + (size_t)k->max_parts * k->part_scratch;
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return int8_has_vnni() ? int8_make(l, sizeof(depthwise_t), wants, build, close_depthwise, out)
                         : NULL;
}

const assay_tactic_t cpu_tactic_int8_depthwise = {
    .name = "int8_depthwise",
    .source = "assay",
    .numerics = "integers",
    .make = make,
    .rounding = INT8_ROUNDING,
};
