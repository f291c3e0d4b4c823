// Means over all places of quantized images (passes/int8/quantized_mean.h), channels last: sums of
// bytes are exact integers, so that threads may share out places as they like; what a mean is is
// rounded once, and then quantized.
#include "passes/int8/quantized_mean.h"

#include <string.h>

#include "backends/cpu/int8/int8_make.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/target.h"

enum {
  SHORT_SUMS = 256,      // bytes whose sum 16 bits hold
  MAX_PLACES = 1 << 23,  // whose sum int32 holds
  BLOCK = 256,           // channels
  CHUNK = 64,
  CHUNKS = 16
};

typedef struct mean {
  assay_kernel_t base;
  int input;
  int64_t samples, places, channels, chunks;
  assay_quantized_mean_t of;
} mean_t;

// to[c] += x[i][c] of n <= SHORT_SUMS rows and `columns` <= BLOCK columns, as unsigned bytes.
ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void add_rows(const uint8_t* restrict x, int64_t n, int64_t step, int64_t columns,
                     uint8_t turn, int32_t* restrict to) {
  uint16_t sums[BLOCK] = {0};
  for (int64_t i = 0; i < n; i++, x += step) {
#pragma omp simd
    for (int64_t c = 0; c < columns; c++) sums[c] = (uint16_t)(sums[c] + (x[c] ^ turn));
  }
  for (int64_t c = 0; c < columns; c++) to[c] += sums[c];
}

// Sums of chunk i, of all there are.
static void sum_chunk(const mean_t* k, const uint8_t* x, int64_t i, int32_t* to) {
  const int64_t sample = i / k->chunks, s = i % k->chunks;
  const int64_t first = k->places * s / k->chunks, end = k->places * (s + 1) / k->chunks;
  const uint8_t turn = k->of.x_type == ASSAY_TYPE_INT8 ? 128 : 0;
  x += sample * k->places * k->channels;
  memset(to, 0, (size_t)k->channels * sizeof *to);
  for (int64_t at = first; at < end; at += SHORT_SUMS)
    for (int64_t c = 0; c < k->channels; c += BLOCK)
      add_rows(x + at * k->channels + c, end - at < SHORT_SUMS ? end - at : SHORT_SUMS, k->channels,
               k->channels - c < BLOCK ? k->channels - c : BLOCK, turn, to + c);
}

static void finish(const mean_t* k, int32_t* sums, uint8_t* y) {
  const double zero = (double)k->of.x_zero + (k->of.x_type == ASSAY_TYPE_INT8 ? 128 : 0);
  const double due = zero * (double)k->places, by = (double)k->of.x_scale / (double)k->places;
  float means[BLOCK];
  for (int64_t s = 1; s < k->chunks; s++)
    for (int64_t c = 0; c < k->channels; c++) sums[c] += sums[s * k->channels + c];
  for (int64_t c = 0; c < k->channels; c += BLOCK) {
    const int64_t n = k->channels - c < BLOCK ? k->channels - c : BLOCK;
    for (int64_t i = 0; i < n; i++) means[i] = (float)(((double)sums[c + i] - due) * by);
    assay_int8_quantize(means, n, k->of.scale, k->of.zero, k->of.type, y + c);
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const mean_t* k = (const mean_t*)base;
  const int64_t all = k->samples * k->chunks;
  int32_t* sums = scratch;
  // As in means.c: near where elements are wanted next.
  const int parts = cpu_threads(k->samples * k->places * k->channels);
#pragma omp parallel for schedule(static) num_threads(parts) if (parts > 1)
  for (int64_t i = 0; i < all; i++) sum_chunk(k, in[k->input], i, sums + i * k->channels);
  for (int64_t i = 0; i < k->samples; i++)
    finish(k, sums + i * k->chunks * k->channels, (uint8_t*)out[0] + i * k->channels);
  return NULL;
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

static assay_layout_t layout_of(const assay_operand_t* o) {
  return o->rank < 3 ? ASSAY_LAYOUT_PLAIN : ASSAY_LAYOUT_CHANNELS_LAST;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  assay_quantized_mean_t q;
  if (l->n_out != 1 || !l->out[0].value || l->layer->format != ASSAY_FORMAT_FP32 ||
      !assay_quantized_mean_read(l->layer->nodes, l->layer->n_nodes, &q))
    return NULL;
  const assay_operand_t *x = assay_sized_input(l, q.x), *y = &l->out[0];
  if (!x || !x->size || x->rank < 3 || x->dims[0] * x->dims[1] != y->size ||
      x->size / y->size > MAX_PLACES)
    return NULL;
  mean_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->input = (int)(x - l->in);
  k->samples = x->dims[0];
  k->channels = x->dims[1];
  k->places = x->size / y->size;
  k->chunks = k->places / CHUNK < CHUNKS ? k->places / CHUNK : CHUNKS;
  if (k->chunks < 1) k->chunks = 1;
  k->of = q;
  k->base.scratch = (size_t)(k->samples * k->chunks * k->channels) * sizeof(int32_t);
  k->base.in[k->input] = (assay_storage_t){x->type, layout_of(x)};
  k->base.out[0] = (assay_storage_t){y->type, layout_of(y)};
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_quantized_mean = {
    .name = "quantized_mean",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 1},
};
