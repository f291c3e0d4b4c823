// MaxPool and AveragePool, channels last: each place of the output from the places under its
// window, where they lie.
//
// Sums run over the taps in order, in float32, whatever the threads are. A maximum is NaN where its
// window has one.
#include <math.h>
#include <string.h>

#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/target.h"
#include "ops/conv/window.h"

enum { CHANNELS = 256 };  // at once

typedef struct pool {
  assay_kernel_t base;
  int input;
  bool max, counts_padding, bf16;
  assay_window_t window;
  int64_t samples, channels, in_places, out_places, taps;
} pool_t;

// ---- rows of channels --------------------------------------------------------------------------

#define ROWS(suffix, type, widened)                                                \
  ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")                      \
  static void max_##suffix(const type* restrict x, int64_t n, float* restrict y) { \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                          \
      const float v = widened, larger = v > y[i] ? v : y[i];                       \
      y[i] = v != v ? v : larger;                                                  \
    }                                                                              \
  }                                                                                \
  ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")                      \
  static void add_##suffix(const type* restrict x, int64_t n, float* restrict y) { \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] += widened;           \
  }
ROWS(float, float, x[i])
ROWS(bf16, uint16_t, cpu_from_bf16(x[i]))

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void divide(float* y, int64_t n, float count) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] /= count;
}

static void take(const pool_t* k, const void* x, int64_t at, int64_t n, float* y) {
  if (k->bf16)
    (k->max ? max_bf16 : add_bf16)((const uint16_t*)x + at, n, y);
  else
    (k->max ? max_float : add_float)((const float*)x + at, n, y);
}

// ---- running -----------------------------------------------------------------------------------

// A window: where it begins, and its tap that is looked at.
typedef struct place {
  int64_t start[ASSAY_KERNEL_RANK], tap[ASSAY_KERNEL_RANK];
} place_t;

static void begin(const assay_window_t* w, int64_t at, place_t* p) {
  for (int i = w->rank - 1; i >= 0; i--) {
    const assay_window_axis_t* a = &w->axis[i];
    p->start[i] = at % a->out * a->stride - a->pads[0];
    p->tap[i] = 0;
    at /= a->out;
  }
}

// The input's place under the tap; -1: in the padding. Goes on to the next tap.
static int64_t next_place(const assay_window_t* w, place_t* p) {
  int64_t place = 0;
  bool inside = true;
  for (int i = 0; i < w->rank; i++) {
    const int64_t x = p->start[i] + p->tap[i] * w->axis[i].dilation;
    inside &= x >= 0 && x < w->axis[i].in;
    place = place * w->axis[i].in + x;
  }
  for (int i = w->rank - 1; i >= 0 && ++p->tap[i] == w->axis[i].kernel; i--) p->tap[i] = 0;
  return inside ? place : -1;
}

// Some channels of one place.
static void run_channels(const pool_t* k, const void* x, int64_t sample, int64_t at, int64_t c,
                         int64_t n, void* out) {
  float y[CHANNELS];
  int64_t count = 0;
  place_t p;
  begin(&k->window, at, &p);
  const float start = k->max ? -INFINITY : 0;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = start;
  for (int64_t tap = 0; tap < k->taps; tap++) {
    const int64_t place = next_place(&k->window, &p);
    if (place < 0) continue;
    take(k, x, (sample * k->in_places + place) * k->channels + c, n, y);
    count++;
  }
  if (!k->max) divide(y, n, (float)(k->counts_padding ? k->taps : count));
  cpu_narrow(y, n, k->base.out[0].type, (sample * k->out_places + at) * k->channels + c, out);
}

// All channels of places [first, end), of all samples'.
static void run_places(const pool_t* k, const void* const* in, void* out, int64_t first,
                       int64_t end) {
  for (int64_t i = first; i < end; i++)
    for (int64_t c = 0; c < k->channels; c += CHANNELS)
      run_channels(k, in[k->input], i / k->out_places, i % k->out_places, c,
                   k->channels - c < CHANNELS ? k->channels - c : CHANNELS, out);
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const pool_t* k = (const pool_t*)base;
  const int64_t all = k->samples * k->out_places;
  const int parts = cpu_threads(all * k->taps * (k->channels / 16 + 8));
  (void)scratch;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int p = 0; p < parts; p++) run_places(k, in, out[0], all * p / parts, all * (p + 1) / parts);
  return NULL;
}

// ---- by rows ------------------------------------------------------------------------------------

static void reads(const assay_kernel_t* base, int64_t row, int64_t end, int64_t* first,
                  int64_t* last) {
  const assay_window_axis_t* a = &((const pool_t*)base)->window.axis[0];
  const int64_t from = row * a->stride - a->pads[0];
  const int64_t to = (end - 1) * a->stride - a->pads[0] + (a->kernel - 1) * a->dilation + 1;
  *first = from < 0 ? 0 : from < a->in ? from : a->in;
  *last = to < *first ? *first : to < a->in ? to : a->in;
}

static void run_rows(const assay_kernel_t* base, const void* const* in, void* const* out,
                     void* scratch, int64_t sample, int64_t row, int64_t end) {
  const pool_t* k = (const pool_t*)base;
  const int64_t of_row = k->window.axis[1].out, before = sample * k->out_places;
  (void)scratch;
  run_places(k, in, out[0], before + row * of_row, before + end * of_row);
}

static void describe_rows(pool_t* k) {
  const assay_window_axis_t* a = k->window.axis;
  const size_t place = (size_t)k->channels * assay_kernel_float_bytes(k->base.out[0].type);
  if (k->window.rank != 2) return;
  k->base.by_rows = (assay_by_rows_t){.input = k->input,
                                      .samples = k->samples,
                                      .rows = a[0].out,
                                      .in_rows = a[0].in,
                                      .row_bytes = (size_t)a[1].out * place,
                                      .in_bytes = (size_t)a[1].in * place,
                                      .work = (double)(a[1].out * k->channels) * (double)k->taps,
                                      .reads = reads,
                                      .run = run_rows};
}

static void destroy(assay_kernel_t* base) { assay_free(base); }

// ---- which layers ------------------------------------------------------------------------------

// Whether each window meets the input, and, for averages, does not reach past the declared padding
// (ceil_mode): there it is the emulated engine that decides what counts.
static bool is_regular(const pool_t* k) {
  for (int i = 0; i < k->window.rank; i++) {
    const assay_window_axis_t* a = &k->window.axis[i];
    for (int64_t o = 0; o < a->out; o++) {
      bool meets = false;
      for (int64_t t = 0; !meets && t < a->kernel; t++) {
        const int64_t at = o * a->stride - a->pads[0] + t * a->dilation;
        meets = at >= 0 && at < a->in;
      }
      if (!meets) return false;
    }
    if (!k->max &&
        (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 - a->in - a->pads[0] >
            a->pads[1])
      return false;
  }
  return k->max || !k->window.ceil_mode;
}

// Windows slide over places as they lie; *out_ok: this tactic knows them.
static assay_status_t read_window(pool_t* k, const assay_node_t* n, const assay_operand_t* x,
                                  int64_t size, bool* out_ok) {
  int64_t made;
  k->window = (assay_window_t){.rank = x->rank - 2};
  ASSAY_TRY(assay_window_read(n, x->rank - 2, NULL, &k->window));
  ASSAY_TRY(assay_window_fit(n, &k->window, x->dims + 2));
  k->samples = x->dims[0];
  k->channels = x->dims[1];
  k->in_places = assay_window_in_size(&k->window);
  k->out_places = assay_window_out_size(&k->window);
  k->taps = 1;
  *out_ok = is_regular(k);
  for (int i = 0; *out_ok && i < k->window.rank; i++)
    *out_ok = assay_mul_i64(k->taps, k->window.axis[i].kernel, &k->taps);
  // Sizes that do not fit together are for the emulated engine, which says so.
  *out_ok =
      *out_ok && assay_mul_i64(k->samples * k->channels, k->out_places, &made) && made == size;
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  const bool max = strcmp(n->op_type, "MaxPool") == 0;
  if (*n->domain || (!max && strcmp(n->op_type, "AveragePool") != 0) || l->layer->n_nodes != 1 ||
      l->n_out < 1 || !l->out[0].value || (l->n_out > 1 && l->out[1].value) || !x)
    return NULL;
  if (x->rank < 3 || x->rank > 5 || !x->size || !l->out[0].size || x->type != l->out[0].type ||
      (x->type != ASSAY_TYPE_FLOAT && x->type != ASSAY_TYPE_BFLOAT16))
    return NULL;
  pool_t* k = NULL;
  bool ok = false;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->input = (int)(x - l->in);
  k->max = max;
  k->bf16 = x->type == ASSAY_TYPE_BFLOAT16;
  k->counts_padding = !max && assay_attr_i64(n, "count_include_pad", 0) != 0;
  k->base.in[k->input] = k->base.out[0] = (assay_storage_t){x->type, ASSAY_LAYOUT_CHANNELS_LAST};
  assay_status_t st = read_window(k, n, x, l->out[0].size, &ok);
  if (st || !ok) return destroy(&k->base), st;
  describe_rows(k);
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_pool = {
    .name = "pool",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .function_ulps = 2},
};
