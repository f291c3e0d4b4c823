// Pointwise nodes on 8-bit integers, and quantizers alone (kernels/int8/int8_pointwise.cu).
#include <math.h>

#include "backends/cuda/int8/product.h"
#include "backends/cuda/int8/quantizer.h"
#include "base/alloc.h"

enum { THREADS = 256 };
enum { READS_NOTHING = 0, READS_SUMS, READS_FLOATS };

typedef struct int8_pointwise {
  assay_kernel_t base;
  int x;  // an input that is read; -1: none
  int reads;
  assay_int8_t quantizer;  // what a quantizer alone does
  cuda_int8_end_t end;
  int8_pointwise_args_t args;
  cuda_kernel_t kernel;
  cuda_grid_t grid;
} int8_pointwise_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const int8_pointwise_t* k = (const int8_pointwise_t*)base;
  int8_pointwise_args_t args = k->args;
  (void)scratch;
  if (k->x >= 0) args.x = in[k->x];
  args.y = out[0];
  cuda_int8_end_fill(&k->end, in, 0, &args.end);
  return cuda_queue_launch(q, k->kernel, &k->grid, &args);
}

static void destroy(assay_kernel_t* base) {
  int8_pointwise_t* k = (int8_pointwise_t*)base;
  cuda_int8_end_close(&k->end);
  assay_free(k);
}

// ---- reading ------------------------------------------------------------------------------------

// That of the largest operands: others are put into it. Scales need channels that lie together.
static assay_layout_t layout_of(const assay_sized_layer_t* l) {
  bool last = l->layer->int8 && l->layer->int8->scales_x;
  for (size_t i = 0; i < l->n_in; i++)
    last |= l->in[i].size == l->out[0].size && assay_operand_is_channels_last(&l->in[i]);
  return last && l->out[0].rank >= 3 ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
}

static bool set_x(const assay_sized_layer_t* l, const assay_operand_t* x, int reads,
                  assay_layout_t layout, int8_pointwise_t* k) {
  if (!x || x->rank != l->out[0].rank || x->size != l->out[0].size) return false;
  k->x = (int)(x - l->in);
  k->reads = reads;
  k->base.in[k->x] = (assay_storage_t){x->type, layout};
  return true;
}

// Pointwise nodes between quantizers.
static bool read_layer(const assay_sized_layer_t* l, assay_layout_t layout, int8_pointwise_t* k) {
  const assay_int8_t* q = l->layer->int8;
  if (q->anchor) return false;
  if (!q->scales_x) return true;
  const assay_operand_t* x = assay_sized_input(l, q->x.value);
  if (!x || x->type != q->x.type || x->rank < 2 || x->dims[1] != q->channels ||
      !set_x(l, x, READS_SUMS, layout, k))
    return false;
  k->args.channels = q->channels;
  k->args.zero_x = q->x.zeros[0];
  return true;
}

// QuantizeLinear or DequantizeLinear alone, with one scale.
static bool read_quantizer(const assay_sized_layer_t* l, assay_layout_t layout,
                           int8_pointwise_t* k) {
  const assay_node_t* n = l->layer->nodes[0];
  double scale, zero;
  int from;
  if (cuda_quantizer_read(l, &k->quantizer, &from))
    return set_x(l, &l->in[from], READS_FLOATS, layout, k);
  const assay_operand_t* x = n->n_inputs >= 2 ? assay_sized_input(l, n->inputs[0]) : NULL;
  if (l->layer->n_nodes != 1 || !x || !assay_int8_is_dequantizer(n) ||
      !int8_quantizer_read(l, n, &scale, &zero))
    return false;
  k->quantizer = (assay_int8_t){.n_sources = 1,
                                .simple = true,
                                .other = -1,
                                .low = -INFINITY,
                                .high = INFINITY,
                                .type = l->out[0].type,
                                .scale = (float)scale,
                                .zero = (float)zero};
  k->quantizer.sources[0] = (assay_int8_source_t){.kind = ASSAY_INT8_OPERAND,
                                                  .value = x->value,
                                                  .type = x->type,
                                                  .zero = (float)zero,
                                                  .scale = (float)scale};
  return l->out[0].type == ASSAY_TYPE_FLOAT && x->size == l->out[0].size;
}

// ---- kernels ------------------------------------------------------------------------------------

// Whether elements that lie side by side are of channels that do, or no channel has a say.
static bool is_together(const int8_pointwise_t* k) {
  const assay_int8_t* q = k->end.q;
  bool by_channel = k->reads == READS_SUMS;
  for (size_t i = 0; i < q->n_sources; i++) by_channel |= q->sources[i].kind == ASSAY_INT8_CHANNEL;
  return !by_channel || k->args.channels % INT8_TOGETHER == 0;
}

static assay_status_t load(const assay_sized_layer_t* l, int8_pointwise_t* k) {
  static const char* const types[] = {[ASSAY_TYPE_INT8] = "int8_t", [ASSAY_TYPE_UINT8] = "uint8_t"};
  const char* type = k->reads == READS_SUMS ? types[l->in[k->x].type] : "float";
  assay_str_t options = {0};
  assay_str_printf(&options, "-DREADS=%d -DX_TYPE=%s -DTOGETHER=%d", k->reads, type,
                   is_together(k));
  const cuda_source_t source = {.file = "int8_pointwise.cu",
                                .kernel = "int8_pointwise",
                                .options = assay_str_get(&options),
                                .program = assay_str_get(&k->end.text)};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(cuda_own_of(l)->functions, &source, &k->kernel);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t build(const assay_sized_layer_t* l, int8_pointwise_t* k, bool* ok) {
  const assay_int8_t* q = l->layer->int8;
  const assay_layout_t layout = layout_of(l);
  k->x = -1;
  k->args.size = l->out[0].size;
  k->args.channels = 1;
  k->base.out[0] = (assay_storage_t){l->out[0].type, layout};
  *ok = q ? read_layer(l, layout, k) : read_quantizer(l, layout, k);
  if (!*ok) return NULL;
  ASSAY_TRY(
      cuda_int8_end_open(l, q ? q : &k->quantizer, false, k->args.channels, layout, &k->end, ok));
  *ok = *ok && cuda_int8_end_forms(&k->end, l, layout, &k->base);
  return *ok ? load(l, k) : NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  int8_pointwise_t* k = NULL;
  bool ok = false;
  if (l->n_out != 1 || !l->out[0].value || !l->out[0].size || l->layer->format != ASSAY_FORMAT_FP32)
    return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->grid =
      (cuda_grid_t){.blocks = cuda_blocks_for(
                        l->own, (l->out[0].size + INT8_TOGETHER - 1) / INT8_TOGETHER, THREADS),
                    .threads = THREADS,
                    .dependent = true};
  assay_status_t st = build(l, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_int8_pointwise = {
    .name = "int8_pointwise",
    .source = "assay",
    .numerics = "integers",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = CUDA_INT8_ROUNDING,
};
