// Halves of a quantized tensor, multiplied (passes/int8/quantized_gate.h): both are read where they
// lie, in either layout. The bits are those of an int8 layer (ops/quant/int8.h) of two operands.
#include "passes/int8/quantized_gate.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/int8/int8_make.h"
#include "backends/cpu/pointwise/glu_halves.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "ops/quant/int8_wide.h"

enum { TILE = 2048, PART = 16384 };

typedef struct gate {
  assay_kernel_t base;
  int input;
  int64_t size, run;  // of the output; elements of a half that lie together
  assay_quantized_gate_t of;
} gate_t;

// Elements [at, at + n) of the first half lie in a, those of the second one in b.
static void fetch(const gate_t* k, const uint8_t* x, int64_t at, int64_t n, uint8_t* a,
                  uint8_t* b) {
  for (int64_t some; n; n -= some, at += some, a += some, b += some) {
    const int64_t in_run = at % k->run;
    const uint8_t* from = x + at / k->run * 2 * k->run + in_run;
    some = k->run - in_run < n ? k->run - in_run : n;
    memcpy(a, from, (size_t)some);
    memcpy(b, from + k->run, (size_t)some);
  }
}

static int8_wide_operand_t half(const gate_t* k, int i, const uint8_t* bytes) {
  return (int8_wide_operand_t){.bytes = bytes,
                               .is_signed = k->of.x_type == ASSAY_TYPE_INT8,
                               .zero = k->of.zero[i],
                               .scale = k->of.scale[i]};
}

static float number_of(const gate_t* k, uint8_t byte, int i) {
  const int q = k->of.x_type == ASSAY_TYPE_INT8 && byte > 127 ? byte - 256 : byte;
  return ((float)q - k->of.zero[i]) * k->of.scale[i];
}

// n <= TILE elements. What int8_wide does, step by step.
static void multiply(const gate_t* k, const uint8_t* a, const uint8_t* b, int64_t n, uint8_t* y) {
  float products[TILE];
  for (int64_t i = 0; i < n; i++) products[i] = number_of(k, a[i], 0) * number_of(k, b[i], 1);
  assay_int8_quantize(products, n, k->of.y_scale, k->of.y_zero, k->of.type, y);
}

static void multiply_wide(const gate_t* k, const uint8_t* a, const uint8_t* b, int64_t n,
                          uint8_t* y) {
  const int8_wide_t w = {.a = half(k, 0, a),
                         .b = half(k, 1, b),
                         .has_b = true,
                         .operation = ASSAY_INT8_MUL,
                         .low = -INFINITY,
                         .high = INFINITY,
                         .type = k->of.type,
                         .scale = k->of.y_scale,
                         .zero = k->of.y_zero};
  int8_wide_run(&w, n, y);
}

static void run_part(const gate_t* k, const uint8_t* x, int64_t from, int64_t to, uint8_t* y) {
  uint8_t a[TILE], b[TILE];
  for (int64_t at = from; at < to; at += TILE) {
    const int64_t n = to - at < TILE ? to - at : TILE;
    const bool whole = k->run - at % k->run >= n;
    const uint8_t* there = x + at / k->run * 2 * k->run + at % k->run;
    if (!whole) fetch(k, x, at, n, a, b);
    (int8_has_wide() ? multiply_wide : multiply)(k, whole ? there : a, whole ? there + k->run : b,
                                                 n, y + at);
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const gate_t* k = (const gate_t*)base;
  const int64_t parts = (k->size + PART - 1) / PART;
  (void)scratch;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(k->size))
  for (int64_t i = 0; i < parts; i++)
    run_part(k, in[k->input], i * PART, (i + 1) * PART < k->size ? (i + 1) * PART : k->size,
             out[0]);
  return NULL;
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  assay_quantized_gate_t q;
  if (l->n_out != 1 || !l->out[0].value || l->layer->format != ASSAY_FORMAT_FP32 ||
      !assay_quantized_gate_read(l->layer->nodes, l->layer->n_nodes, &q))
    return NULL;
  const assay_operand_t *x = assay_sized_input(l, q.x), *y = &l->out[0];
  if (!x || !x->size || x->rank != q.rank || y->rank != q.rank || x->size != 2 * y->size ||
      x->dims[q.axis] != 2 * y->dims[q.axis])
    return NULL;
  const assay_layout_t layout =
      assay_operand_is_channels_last(x) ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  gate_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->input = (int)(x - l->in);
  k->size = y->size;
  k->run = cpu_glu_half_run(y, q.axis, layout);
  k->of = q;
  k->base.in[k->input] = (assay_storage_t){x->type, layout};
  k->base.out[0] = (assay_storage_t){y->type, layout};
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_quantized_gate = {
    .name = "quantized_gate",
    .source = "assay",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = INT8_ROUNDING,
};
