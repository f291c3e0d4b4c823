// Layers that are Conv or ConvTranspose: a matrix is a group.
#include "ops/conv/conv.h"

#include <string.h>

#include "backends/emu/like/product.h"
#include "ops/conv/conv_transpose.h"

// Where kernels take a thread an element, by fused multiply-adds: groups with few channels, of
// which a tile would be mostly empty.
enum { FEW = 8, AXES = 3 };

// The place of the input that position `tap` of the kernel meets at a place of the output; -1:
// none.
static int64_t met(const emu_product_t* p, int64_t out, int64_t tap) {
  int64_t at = 0, step = 1;
  for (int d = p->window.rank - 1; d >= 0; d--) {
    const assay_window_axis_t* a = &p->window.axis[d];
    // Transposed, windows are of the output.
    const int64_t in = p->transposed ? a->out : a->in, made = p->transposed ? a->in : a->out;
    const int64_t o = out % made, k = tap % a->kernel * a->dilation;
    int64_t i = p->transposed ? o + a->pads[0] - k : o * a->stride - a->pads[0] + k;
    if (p->transposed && (i < 0 || i % a->stride)) return -1;
    if (p->transposed) i /= a->stride;
    if (i < 0 || i >= in) return -1;
    at += i * step;
    step *= in;
    out /= made;
    tap /= a->kernel;
  }
  return at;
}

static void conv_row(const emu_product_t* p, int64_t group, int64_t i, float* to) {
  const int64_t places = p->m / (p->dims[0] ? p->dims[0] : 1), sample = i / places;
  const float* x = p->x + (sample * p->channels + group * p->group_channels) * p->in_size;
  for (int64_t tap = 0; tap < p->taps; tap++) {
    const int64_t at = met(p, i % places, tap);
    for (int64_t c = 0; c < p->group_channels; c++)
      to[tap * p->group_channels + c] = at < 0 ? 0 : x[c * p->in_size + at];
  }
}

// Weights are [channels made, channels read, taps], transposed [channels read, channels made,
// taps].
static void conv_column(const emu_product_t* p, int64_t group, int64_t j, float* to) {
  for (int64_t c = 0; c < p->group_channels; c++) {
    const int64_t pair = p->transposed ? (group * p->group_channels + c) * p->n + j
                                       : (group * p->n + j) * p->group_channels + c;
    for (int64_t tap = 0; tap < p->taps; tap++)
      to[tap * p->group_channels + c] = p->w[pair * p->taps + tap];
  }
}

static assay_tensor_t head_of(const assay_operand_t* o) {
  assay_tensor_t t = {.kind = ASSAY_KIND_TENSOR, .type = o->type, .rank = o->rank, .size = o->size};
  memcpy(t.dims, o->dims, (size_t)o->rank * sizeof *o->dims);
  return t;
}

static assay_status_t read_sizes(const assay_node_t* n, const assay_operand_t* x,
                                 const assay_operand_t* w, emu_product_t* p) {
  const assay_tensor_t of_x = head_of(x), of_w = head_of(w);
  assay_conv_t c;
  assay_conv_transpose_t t;
  p->transposed = strcmp(n->op_type, "ConvTranspose") == 0;
  if (p->transposed) {
    ASSAY_TRY(assay_conv_transpose_read(n, &of_x, &of_w, NULL, n->op->since, &t));
    c = (assay_conv_t){t.n,  t.c,           t.m,       t.group,    t.cg,
                       t.mg, t.kernel_size, t.in_size, t.out_size, t.w};
  } else {
    ASSAY_TRY(assay_conv_read(n, &of_x, &of_w, NULL, false, &c));
  }
  p->window = c.w;
  p->dims[0] = c.n;  // samples
  p->m = c.n * c.out_size;
  p->n = c.mg;
  p->k = c.kernel_size * c.cg;
  p->matrices = c.group;
  p->y_row = c.m;
  p->bias_step = c.mg;
  p->channels = c.c;
  p->group_channels = c.cg;
  p->in_size = c.in_size;
  p->taps = c.kernel_size;
  return NULL;
}

static bool is_few(const emu_product_t* p) {
  return p->matrices > 1 && p->n <= FEW && p->group_channels <= FEW;
}

assay_status_t emu_conv_read(emu_operands_t* o, const emu_gpu_t* gpu, emu_product_t* p, bool* ok) {
  const assay_sized_layer_t* l = o->l;
  const assay_node_t* n = l->layer->nodes[0];
  *p =
      (emu_product_t){.layout = ASSAY_LAYOUT_CHANNELS_LAST, .row = conv_row, .column = conv_column};
  *ok = false;
  if (*n->domain || n->n_inputs < 2 ||
      (strcmp(n->op_type, "Conv") != 0 && strcmp(n->op_type, "ConvTranspose") != 0))
    return NULL;
  const int x = assay_sized_input_index(l, n->inputs[0]);
  const int w = assay_sized_input_index(l, n->inputs[1]);
  const bool has_bias = n->n_inputs > 2 && n->inputs[2];
  const int bias = has_bias ? assay_sized_input_index(l, n->inputs[2]) : -1;
  if (x < 0 || w < 0 || (has_bias && bias < 0)) return NULL;
  const assay_operand_t *of_x = &l->in[x], *of_w = &l->in[w];
  if (of_w->type != of_x->type || !assay_type_is_kernel_float(of_x->type) ||
      !assay_type_is_kernel_float(l->out[0].type) || of_x->rank < 3 || of_x->rank > 2 + AXES ||
      of_w->rank != of_x->rank)
    return NULL;
  ASSAY_TRY(read_sizes(n, of_x, of_w, p));
  *ok = p->m * p->y_row == l->out[0].size && (!has_bias || l->in[bias].size == p->y_row);
  if (!*ok) return NULL;
  const bool tf32 = l->layer->format == ASSAY_FORMAT_TF32 && of_x->type == ASSAY_TYPE_FLOAT;
  p->arithmetic = emu_arithmetic(gpu, tf32 ? ASSAY_FORMAT_TF32 : assay_type_format(of_x->type));
  p->arithmetic.split = p->arithmetic.fma;
  if (is_few(p)) {
    p->arithmetic = emu_arithmetic(gpu, ASSAY_FORMAT_FP32);
    p->arithmetic.tf32 = tf32;
  }
  ASSAY_TRY(emu_operand_get(o, x, ASSAY_LAYOUT_PLAIN, &p->x));
  ASSAY_TRY(emu_operand_get(o, w, ASSAY_LAYOUT_PLAIN, &p->w));
  return has_bias ? emu_operand_get(o, bias, ASSAY_LAYOUT_PLAIN, &p->bias) : NULL;
}
