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

static assay_status_t describe(const cpu_layer_t* l, const assay_conv_t* s, const cpu_operand_t* x,
                               assay_type_t type, bool bias, assay_type_t dst_type,
                               dnnl_primitive_desc_t* out, dnnl_memory_desc_t* out_plain_weights) {
  dnnl_memory_desc_t src = NULL, weights = NULL, b = NULL, dst = NULL;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_engine_t engine;
  int64_t wdims[CPU_MAX_RANK + 1];
  dnnl_dims_t strides, dilations, before, behind;
  const int wrank = weight_dims(s, wdims);
  for (int i = 0; i < s->w.rank; i++) {
    const assay_window_axis_t* a = &s->w.axis[i];
    strides[i] = a->stride;
    dilations[i] = a->dilation - 1;
    before[i] = a->pads[0];
    // What a stride leaves over at the end is no padding.
    behind[i] = (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 - a->in - a->pads[0];
  }
  assay_status_t st = dnn_engine(&engine);
  if (!st) st = dnn_attr(&attr);
  if (!st) st = dnn_md(x->rank, x->dims, type, CPU_CHANNELS_LAST, &src);
  if (!st) st = dnn_md_any(wrank, wdims, type, &weights);
  if (!st) st = dnn_md(wrank, wdims, ASSAY_TYPE_FLOAT, CPU_PLAIN, out_plain_weights);
  if (!st && bias) st = dnn_md(1, &s->m, ASSAY_TYPE_FLOAT, CPU_PLAIN, &b);
  if (!st) st = dnn_md(l->out[0].rank, l->out[0].dims, dst_type, CPU_CHANNELS_LAST, &dst);
  if (!st) {
    dnnl_status_t made = dnnl_convolution_forward_primitive_desc_create(
        out, engine, dnnl_forward_inference, dnnl_convolution_direct, src, weights, b, dst, strides,
        dilations, before, behind, attr);
    if (made == dnnl_unimplemented || made == dnnl_invalid_arguments)
      *out = NULL;
    else
      st = dnn_check(made, "describing a convolution");
  }
  if (src) dnnl_memory_desc_destroy(src);
  if (weights) dnnl_memory_desc_destroy(weights);
  if (b) dnnl_memory_desc_destroy(b);
  if (dst) dnnl_memory_desc_destroy(dst);
  if (attr) dnnl_primitive_attr_destroy(attr);
  return st;
}

static assay_status_t build(dnn_kernel_t* k, const cpu_layer_t* l, const assay_conv_t* s,
                            const cpu_operand_t* x, const cpu_operand_t* w,
                            const cpu_operand_t* bias, assay_type_t type, bool* out_ok) {
  dnnl_primitive_desc_t descriptor = NULL;
  dnnl_memory_desc_t plain = NULL;
  float* weights = NULL;
  k->base.in[k->src_input] = (cpu_form_t){type, CPU_CHANNELS_LAST};
  k->base.out[0] = (cpu_form_t){l->out[0].type, CPU_CHANNELS_LAST};
  ASSAY_TRY(dnn_epilogue(k, l, CPU_CHANNELS_LAST, out_ok));
  if (!*out_ok) return NULL;
  // The program takes the sum unrounded.
  const bool wide = k->program || type == ASSAY_TYPE_FLOAT;
  const assay_type_t dst_type = wide ? ASSAY_TYPE_FLOAT : l->out[0].type;
  assay_status_t st = describe(l, s, x, type, bias, dst_type, &descriptor, &plain);
  if (!st && !descriptor) *out_ok = false;
  if (!st && descriptor) {
    st = cpu_constant_floats(w, &weights);
    if (!st) st = dnn_pack_weights(k, descriptor, plain, weights);
    if (!st && bias) st = cpu_constant_floats(bias, &k->bias_data);
    if (!st) st = dnn_finish(k, descriptor, true, bias);
    k->dst_apart = dst_type != l->out[0].type;
    k->base.scratch = 64 + k->dst_offset + (k->dst_apart ? (size_t)k->size * sizeof(float) : 0);
  }
  assay_free(weights);
  if (plain) dnnl_memory_desc_destroy(plain);
  if (descriptor) dnnl_primitive_desc_destroy(descriptor);
  return st;
}

static assay_status_t make(const cpu_layer_t* l, cpu_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  if (*n->domain || strcmp(n->op_type, "Conv") != 0 || l->n_out != 1 || !l->out[0].value)
    return NULL;
  const cpu_operand_t *x = cpu_input(l, n->inputs[X]), *w = cpu_input(l, n->inputs[W]);
  const bool has_bias = n->n_inputs > BIAS && n->inputs[BIAS];
  const cpu_operand_t* bias = has_bias ? cpu_input(l, n->inputs[BIAS]) : NULL;
  if (!x || !w || !w->constant || x->rank < 3 || x->rank > 5 || !x->size || !l->out[0].size ||
      (has_bias && (!bias || !bias->constant)) || !dnn_is_float(x->type) || x->type != w->type ||
      !dnn_is_float(l->out[0].type))
    return NULL;
  assay_conv_t s;
  const assay_tensor_t hx = head(x), hw = head(w);
  ASSAY_TRY(assay_conv_read(n, &hx, &hw, NULL, false, &s));
  // In float32 where the CPU does not compute in the 16-bit format itself.
  const assay_type_t types[] = {x->type, ASSAY_TYPE_FLOAT};
  for (int i = 0; i < (x->type == ASSAY_TYPE_FLOAT ? 1 : 2); i++) {
    dnn_kernel_t* k = NULL;
    bool ok = false;
    ASSAY_TRY(dnn_new(cpu_input_index(l, n->inputs[X]), &k));
    assay_status_t st = build(k, l, &s, x, w, bias, types[i], &ok);
    if (!st && ok) return *out = &k->base, NULL;
    dnn_destroy(&k->base);
    if (st) return st;
  }
  return NULL;
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
