// Conv by oneDNN, channels last, and what the layer does to each of its elements.
#ifdef ASSAY_ONEDNN
#include <string.h>

#include "backends/cpu/onednn.h"
#include "base/alloc.h"
#include "ops/conv.h"

enum { X, W, BIAS };

static assay_tensor_t head(const cpu_operand_t* o) {
  assay_tensor_t t = {.kind = ASSAY_KIND_TENSOR, .type = o->type, .rank = o->rank, .size = o->size};
  if (o->rank) memcpy(t.dims, o->dims, (size_t)o->rank * sizeof *o->dims);
  return t;
}

// The weights' dimensions: with groups, those come first.
static int weight_dims(const assay_conv_t* s, int64_t* dims) {
  int n = 0;
  if (s->group > 1) dims[n++] = s->group;
  dims[n++] = s->mg;
  dims[n++] = s->cg;
  for (int i = 0; i < s->w.rank; i++) dims[n++] = s->w.axis[i].kernel;
  return n;
}

typedef struct convolution {
  assay_conv_t s;
  const cpu_operand_t *x, *w, *bias;  // bias NULL: none
} convolution_t;

static assay_status_t describe(const cpu_layer_t* l, const convolution_t* c, assay_type_t type,
                               assay_type_t dst_type, dnnl_primitive_desc_t* out,
                               dnnl_memory_desc_t* out_plain_weights) {
  enum { SRC, WEIGHTS, ROW, DST, N };
  dnnl_memory_desc_t md[N] = {NULL};
  dnnl_primitive_attr_t attr = NULL;
  dnnl_engine_t engine;
  int64_t wdims[CPU_MAX_RANK + 1];
  dnn_window_t w;
  const int wrank = weight_dims(&c->s, wdims);
  dnn_window(&c->s.w, &w);
  assay_status_t st = dnn_engine(&engine);
  if (!st) st = dnn_attr(&attr);
  if (!st) st = dnn_md(c->x->rank, c->x->dims, type, CPU_CHANNELS_LAST, &md[SRC]);
  if (!st) st = dnn_md_any(wrank, wdims, type, &md[WEIGHTS]);
  if (!st) st = dnn_md(wrank, wdims, ASSAY_TYPE_FLOAT, CPU_PLAIN, out_plain_weights);
  if (!st && c->bias) st = dnn_md(1, &c->s.m, ASSAY_TYPE_FLOAT, CPU_PLAIN, &md[ROW]);
  if (!st) st = dnn_md(l->out[0].rank, l->out[0].dims, dst_type, CPU_CHANNELS_LAST, &md[DST]);
  if (!st)
    st = dnn_described(
        dnnl_convolution_forward_primitive_desc_create(
            out, engine, dnnl_forward_inference, dnnl_convolution_direct, md[SRC], md[WEIGHTS],
            md[ROW], md[DST], w.strides, w.dilations, w.before, w.behind, attr),
        "describing a convolution", out);
  dnn_free(N, md, attr);
  return st;
}

static assay_status_t build(dnn_kernel_t* k, const cpu_layer_t* l, const void* what,
                            assay_type_t type, bool* out_ok) {
  const convolution_t* c = what;
  dnnl_primitive_desc_t descriptor = NULL;
  dnnl_memory_desc_t plain = NULL;
  // In 16 bits kernels take channels in twos. Of an odd number they read the next place's first one
  // (behind the last place: what lies behind the tensor) and multiply it by zero; NaN and infinity
  // would come in.
  if (type != ASSAY_TYPE_FLOAT && c->s.cg % 2 && (c->s.cg > 1 || c->s.mg > 1 || c->s.group == 1))
    return NULL;
  k->base.in[k->src_input] = (cpu_form_t){type, CPU_CHANNELS_LAST};
  k->base.out[0] = (cpu_form_t){l->out[0].type, CPU_CHANNELS_LAST};
  ASSAY_TRY(dnn_epilogue(k, l, CPU_CHANNELS_LAST, out_ok));
  if (!*out_ok) return NULL;
  const assay_type_t dst_type = dnn_dst_type(k, l, type);
  assay_status_t st = describe(l, c, type, dst_type, &descriptor, &plain);
  *out_ok = descriptor;
  if (!st && descriptor) st = dnn_pack_weights(k, descriptor, plain, c->w);
  if (!st && descriptor) st = dnn_finish(k, l, descriptor, dst_type, true, c->bias);
  dnn_free(1, &plain, NULL);
  if (descriptor) dnnl_primitive_desc_destroy(descriptor);
  return st;
}

static assay_status_t make(const cpu_layer_t* l, cpu_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  if (*n->domain || strcmp(n->op_type, "Conv") != 0 || l->n_out != 1 || !l->out[0].value)
    return NULL;
  convolution_t c = {.x = cpu_input(l, n->inputs[X]), .w = cpu_input(l, n->inputs[W])};
  const bool has_bias = n->n_inputs > BIAS && n->inputs[BIAS];
  if (has_bias) c.bias = cpu_input(l, n->inputs[BIAS]);
  if (!c.x || !c.w || !c.w->constant || c.x->rank < 3 || c.x->rank > 5 || !c.x->size ||
      !l->out[0].size || (has_bias && (!c.bias || !c.bias->constant)) || !cpu_is_float(c.x->type) ||
      c.x->type != c.w->type || !cpu_is_float(l->out[0].type))
    return NULL;
  const assay_tensor_t x = head(c.x), w = head(c.w);
  ASSAY_TRY(assay_conv_read(n, &x, &w, NULL, false, &c.s));
  if (c.bias && c.bias->size != c.s.m) return NULL;
  return dnn_make(l, (int)(c.x - l->in), build, &c, out);
}

const cpu_tactic_t cpu_tactic_onednn_conv = {
    .name = "onednn_conv",
    .source = "onednn",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .flushes = true,
                 .function_ulps = 4},
};
#endif
