// What a layer that is Conv or ConvTranspose multiplies: a row is a place of the output, a term a
// position of the kernel and a channel, a matrix a group.
#include "backends/cuda/product/read_conv.h"

#include <string.h>

#include "backends/cuda/product/halves.h"
#include "backends/cuda/product/packing.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_transpose.h"

// An operand's type and shape, as the functions of ops/ want them.
static assay_tensor_t head_of(const assay_operand_t* o) {
  assay_tensor_t t = {.kind = ASSAY_KIND_TENSOR, .type = o->type, .rank = o->rank, .size = o->size};
  if (o->rank) memcpy(t.dims, o->dims, (size_t)o->rank * sizeof *o->dims);
  return t;
}

static bool is_small(int64_t x) { return x >= 0 && x <= INT32_MAX / 4; }

// Axes as the kernel walks them, those that are not there in front; transposed: windows are of the
// output. False: numbers that are too large for it.
static bool read_axes(const assay_window_t* w, bool transposed, product_args_t* a) {
  const int missing = PRODUCT_AXES - w->rank;
  if (missing < 0) return false;
  for (int i = 0; i < PRODUCT_AXES; i++) {
    a->axes[i] = (product_axis_t){1, 1, 1, 1, 1, 0};
    if (i < missing) continue;
    const assay_window_axis_t* x = &w->axis[i - missing];
    if (!is_small(x->in) || !is_small(x->out) || !is_small(x->kernel) || !is_small(x->stride) ||
        !is_small(x->dilation) || !is_small(x->kernel * x->dilation) ||
        !is_small(x->out * x->stride) || x->pads[0] < -(INT32_MAX / 4) ||
        x->pads[0] > INT32_MAX / 4)
      return false;
    a->axes[i] = (product_axis_t){(int32_t)(transposed ? x->out : x->in),
                                  (int32_t)(transposed ? x->in : x->out),
                                  (int32_t)x->kernel,
                                  (int32_t)x->stride,
                                  (int32_t)x->dilation,
                                  (int32_t)x->pads[0]};
  }
  return true;
}

static bool use_sizes(const cuda_conv_sizes_t* s, cuda_product_t* p) {
  product_args_t* a = &p->args;
  int64_t rows, terms;
  if (!assay_mul_i64(s->n, s->out_size, &rows) || !assay_mul_i64(s->kernel_size, s->cg, &terms) ||
      !is_small(terms) || !is_small(s->m) || !is_small(s->in_size))
    return false;
  a->m = rows;
  a->k = terms;
  a->n = s->mg;
  a->matrices = s->group;
  a->n_dims = 1;
  a->dims[0] = s->group;
  a->x_step[0] = s->cg;
  a->w_step[0] = s->mg * terms;
  a->y_step[0] = s->mg;
  a->w_k = 1;
  a->w_column = terms;
  a->y_row = s->m;
  a->channels = (int32_t)s->cg;
  a->x_sample = s->in_size * s->c;
  a->x_place = s->c;
  a->bias_step = (int32_t)s->mg;
  return true;
}

static assay_status_t read_forward(const assay_node_t* n, const assay_tensor_t* x,
                                   const assay_tensor_t* w, cuda_product_t* p, cuda_conv_sizes_t* s,
                                   bool* ok) {
  assay_conv_t c;
  ASSAY_TRY(assay_conv_read(n, x, w, NULL, false, &c));
  *s =
      (cuda_conv_sizes_t){c.n, c.c, c.m, c.group, c.cg, c.mg, c.kernel_size, c.in_size, c.out_size};
  p->left = CUDA_LEFT_CONV;
  *ok = read_axes(&c.w, false, &p->args);
  return NULL;
}

static assay_status_t read_transposed(const assay_node_t* n, const assay_tensor_t* x,
                                      const assay_tensor_t* w, const assay_operand_t* y,
                                      cuda_product_t* p, cuda_conv_sizes_t* s, bool* ok) {
  assay_conv_transpose_t c;
  ASSAY_TRY(assay_conv_transpose_read(n, x, w, NULL, n->op->since, &c));
  *s =
      (cuda_conv_sizes_t){c.n, c.c, c.m, c.group, c.cg, c.mg, c.kernel_size, c.in_size, c.out_size};
  p->left = CUDA_LEFT_TRANSPOSED;
  *ok = read_axes(&c.w, true, &p->args);
  for (int i = 0; *ok && i < c.w.rank; i++) *ok = y->dims[2 + i] == c.w.axis[i].in;
  return NULL;
}

assay_status_t cuda_conv_read_sizes(const assay_node_t* n, const assay_tensor_t* x,
                                    const assay_tensor_t* w, const assay_operand_t* y,
                                    cuda_product_t* p, cuda_conv_sizes_t* s, bool* ok) {
  if (strcmp(n->op_type, "ConvTranspose") != 0)
    ASSAY_TRY(read_forward(n, x, w, p, s, ok));
  else
    ASSAY_TRY(read_transposed(n, x, w, y, p, s, ok));
  // What does not fit together is for the emulated engine, which says so.
  int64_t size;
  *ok = *ok && use_sizes(s, p) && assay_mul_i64(p->args.m, s->m, &size) && size == y->size;
  return NULL;
}

// Constants are packed once, values of the run before each product.
static void read_weights(const assay_sized_layer_t* l, const assay_operand_t* w,
                         const cuda_taps_t* taps, cuda_product_t* p) {
  if (w->constant) {
    p->taps_of = w;
    p->taps = *taps;
  } else {
    p->w = assay_sized_input_index(l, w->value);
    p->packing = cuda_packing_box(taps);
  }
}

assay_status_t cuda_product_bring(const assay_sized_layer_t* l, cuda_product_t* p) {
  if (!p->taps_of || p->args.w) return NULL;
  return cuda_taps_get(l, p->taps_of, &p->taps, &p->args.w);
}

// Windows that lie side by side along a row of the image (patches): what a window has of a row is
// one place of more channels, which lie as they did. So few channels become many.
static void join_row(product_args_t* a) {
  product_axis_t* x = &a->axes[PRODUCT_AXES - 1];
  if (a->matrices > 1 || x->kernel < 2 || x->kernel != x->stride || x->dilation != 1 || x->pad ||
      x->in != x->out * x->stride)
    return;
  a->channels *= x->kernel;
  a->x_place *= x->kernel;
  *x = (product_axis_t){x->out, x->out, 1, 1, 1, 0};
}

assay_status_t cuda_conv_read(const assay_sized_layer_t* l, bool direct, cuda_product_t* p,
                              bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  const bool adds = n->n_inputs > 2 && n->inputs[2];
  const assay_operand_t *x = &l->in[p->x], *w = assay_sized_input(l, n->inputs[1]);
  const assay_operand_t* bias = adds ? assay_sized_input(l, n->inputs[2]) : NULL;
  cuda_conv_sizes_t s;
  *ok = w && w != x && w->type == p->in && (!adds || bias) && x->rank >= 3 && x->rank <= 5 &&
        w->rank == x->rank;
  if (!*ok) return NULL;
  p->layout = ASSAY_LAYOUT_CHANNELS_LAST;
  const assay_tensor_t x_head = head_of(x), w_head = head_of(w);
  ASSAY_TRY(cuda_conv_read_sizes(n, &x_head, &w_head, cuda_product_result(l), p, &s, ok));
  *ok = *ok && (!bias || bias->size == s.m);
  if (!*ok) return NULL;
  const cuda_taps_t taps = {.m = s.m,
                            .mg = s.mg,
                            .cg = s.cg,
                            .taps = s.kernel_size,
                            .transposed = p->left == CUDA_LEFT_TRANSPOSED,
                            .terms_first = direct};
  read_weights(l, w, &taps, p);
  p->ends = bias && !bias->constant;
  if (!direct && p->left == CUDA_LEFT_CONV) join_row(&p->args);
  if (!bias || !bias->constant) return NULL;
  p->bias = bias;
  return cuda_bias_get(l, bias, s.m, &p->args.bias);
}
