// Pointwise layers of quantized tensors: by a table of 256 entries where one tensor comes in; and
// QuantizeLinear and DequantizeLinear alone.
#include <math.h>
#include <string.h>

#include "backends/cpu/int8/int8_kernel.h"
#include "backends/cpu/int8/int8_make.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/target.h"
#include "ops/quant/int8_wide.h"

// ---- tables -------------------------------------------------------------------------------------

enum { CHUNK = 16384 };

typedef struct table {
  assay_kernel_t base;
  int input;
  int64_t size;
  bool floats;
  bool linear;  // floats: (x - zero) * scale
  assay_type_t type;
  float zero, scale;
  uint8_t bytes[256];
  float values[256];
} table_t;

static void dequantize(const table_t* k, const uint8_t* x, int64_t n, float* y) {
  const int8_wide_t w = {.a = {.bytes = x,
                               .is_signed = k->type == ASSAY_TYPE_INT8,
                               .zero = k->zero,
                               .scale = k->scale},
                         .low = -INFINITY,
                         .high = INFINITY,
                         .type = ASSAY_TYPE_FLOAT,
                         .scale = 1};
  int8_wide_run(&w, n, y);
}

static assay_status_t run_table(assay_kernel_t* base, const void* const* in, void* const* out,
                                void* scratch) {
  const table_t* k = (const table_t*)base;
  const uint8_t* x = in[k->input];
  uint8_t* bytes = out[0];
  float* values = out[0];
  (void)scratch;
  const int64_t chunks = (k->size + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) \
    num_threads(cpu_threads(k->floats ? k->size : k->size / 4))
  for (int64_t c = 0; c < chunks; c++) {
    const int64_t at = c * CHUNK, n = k->size - at < CHUNK ? k->size - at : CHUNK;
    if (k->linear)
      dequantize(k, x + at, n, values + at);
    else if (k->floats)
      for (int64_t i = at; i < at + n; i++) values[i] = k->values[x[i]];
    else if (int8_has_wide_table())
      int8_wide_table(k->bytes, x + at, n, bytes + at);
    else
      for (int64_t i = at; i < at + n; i++) bytes[i] = k->bytes[x[i]];
  }
  return NULL;
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

// Elements lie as the operand does.
static assay_layout_t layout_of(const assay_operand_t* o) {
  return assay_operand_is_channels_last(o) ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
}

static assay_status_t make_table(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_int8_t* q = l->layer->int8;
  table_t* k = NULL;
  const assay_operand_t* x = NULL;
  for (size_t i = 0; i < q->n_sources; i++)
    if (q->sources[i].kind == ASSAY_INT8_OPERAND) x = assay_sized_input(l, q->sources[i].value);
  if (!x || x->size != l->out[0].size || x->rank != l->out[0].rank) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->floats = q->type == ASSAY_TYPE_FLOAT;
  if (!assay_int8_table(q, k->floats ? (void*)k->values : k->bytes)) return destroy(&k->base), NULL;
  const assay_int8_source_t* s = &q->sources[0];
  k->linear = k->floats && !q->n_steps && s->kind == ASSAY_INT8_OPERAND && int8_has_wide();
  k->type = s->type;
  k->zero = s->zero;
  k->scale = s->scale;
  k->base.in_place = -1;
  k->base.run = run_table;
  k->base.destroy = destroy;
  k->input = (int)(x - l->in);
  k->size = x->size;
  k->base.in[k->input] = (assay_storage_t){x->type, layout_of(x)};
  k->base.out[0] = (assay_storage_t){l->out[0].type, layout_of(x)};
  *out = &k->base;
  return NULL;
}

// ---- several operands ---------------------------------------------------------------------------

static assay_status_t make_several(const assay_sized_layer_t* l, assay_kernel_t** out) {
  int8_kernel_t* k = NULL;
  bool ok = false;
  assay_layout_t layout = ASSAY_LAYOUT_PLAIN;
  // In the layout of the largest: others are put into it. Channels have to lie together.
  if (l->layer->int8->scales_x) layout = ASSAY_LAYOUT_CHANNELS_LAST;
  for (size_t i = 0; i < l->n_in; i++)
    if (l->in[i].size == l->out[0].size && assay_operand_is_channels_last(&l->in[i]))
      layout = ASSAY_LAYOUT_CHANNELS_LAST;
  ASSAY_TRY(ASSAY_NEW(&k));
  assay_status_t st = int8_kernel_init_pointwise(k, l, layout, &ok);
  if (st || !ok) return int8_kernel_destroy(&k->base), st;
  int8_kernel_ready(k);
  *out = &k->base;
  return NULL;
}

// ---- QuantizeLinear and DequantizeLinear --------------------------------------------------------

typedef struct quantize {
  assay_kernel_t base;
  int input;
  int64_t size;
  float scale, zero;
  assay_type_t type;
} quantize_t;

static assay_status_t run_quantize(assay_kernel_t* base, const void* const* in, void* const* out,
                                   void* scratch) {
  const quantize_t* k = (const quantize_t*)base;
  const float* x = in[k->input];
  uint8_t* y = out[0];
  (void)scratch;
  const int64_t chunks = (k->size + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) if (chunks > 2)
  for (int64_t i = 0; i < chunks; i++) {
    const int64_t at = i * CHUNK, n = k->size - at < CHUNK ? k->size - at : CHUNK;
    assay_int8_quantize(x + at, n, k->scale, k->zero, k->type, y + at);
  }
  return NULL;
}

static assay_status_t make_quantize(const assay_sized_layer_t* l, const assay_node_t* n,
                                    const assay_operand_t* x, assay_kernel_t** out) {
  double scale, zero;
  quantize_t* k = NULL;
  if (x->type != ASSAY_TYPE_FLOAT || !int8_quantizer_read(l, n, &scale, &zero)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run_quantize, .destroy = destroy};
  k->input = (int)(x - l->in);
  k->size = x->size;
  k->scale = (float)scale;
  k->zero = (float)zero;
  k->type = l->out[0].type;
  k->base.in[k->input] = (assay_storage_t){x->type, layout_of(x)};
  k->base.out[0] = (assay_storage_t){k->type, layout_of(x)};
  *out = &k->base;
  return NULL;
}

static assay_status_t make_dequantize(const assay_sized_layer_t* l, const assay_node_t* n,
                                      const assay_operand_t* x, assay_kernel_t** out) {
  double scale, zero;
  table_t* k = NULL;
  if (l->out[0].type != ASSAY_TYPE_FLOAT || !int8_quantizer_read(l, n, &scale, &zero)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run_table, .destroy = destroy};
  k->floats = true;
  for (int i = 0; i < 256; i++) {
    const int value = x->type == ASSAY_TYPE_INT8 && i > 127 ? i - 256 : i;
    k->values[i] = (float)((value - zero) * scale);
  }
  k->linear = int8_has_wide();
  k->type = x->type;
  k->zero = (float)zero;
  k->scale = (float)scale;
  k->input = (int)(x - l->in);
  k->size = x->size;
  k->base.in[k->input] = (assay_storage_t){x->type, layout_of(x)};
  k->base.out[0] = (assay_storage_t){ASSAY_TYPE_FLOAT, layout_of(x)};
  *out = &k->base;
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  if (l->n_out != 1 || !l->out[0].value || l->layer->format != ASSAY_FORMAT_FP32) return NULL;
  if (l->layer->int8) {
    if (l->layer->int8->anchor) return NULL;
    ASSAY_TRY(make_table(l, out));
    return *out ? NULL : make_several(l, out);
  }
  const assay_operand_t* x = n->n_inputs >= 2 ? assay_sized_input(l, n->inputs[0]) : NULL;
  if (l->layer->n_nodes != 1 || !x || x->size != l->out[0].size) return NULL;
  if (assay_int8_is_quantizer(n)) return make_quantize(l, n, x, out);
  return assay_int8_is_dequantizer(n) ? make_dequantize(l, n, x, out) : NULL;
}

const assay_tactic_t cpu_tactic_int8_pointwise = {
    .name = "int8_pointwise",
    .source = "assay",
    .numerics = "integers",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = INT8_ROUNDING,
};
