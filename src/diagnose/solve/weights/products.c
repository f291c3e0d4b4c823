// Nodes that multiply with a constant, as rows times weights.
#include "diagnose/solve/products.h"

#include <string.h>

enum { MAX_TERMS = 1024 };

// ---- what the node is ---------------------------------------------------------------------------

// Weights in front: each column of x is a row of terms, and p->pixels columns lie side by side.
static bool read_left(const assay_solve_t* s, assay_product_t* p) {
  const assay_tensor_t *w = s->in[0], *x = s->in[1];
  if (!x || x->kind != ASSAY_KIND_TENSOR || x->store != ASSAY_STORE_F64 || w->rank != 2 ||
      x->rank < 2 || x->dims[x->rank - 2] != w->dims[1])
    return false;
  p->left = true;
  p->terms = w->dims[1];
  p->columns = w->dims[0];
  p->pixels = x->dims[x->rank - 1];
  p->rows = p->terms ? x->size / p->terms : 0;
  return p->pixels > 0;
}

static bool read_matmul(const assay_solve_t* s, assay_product_t* p) {
  const assay_tensor_t *x = s->in[0], *w = s->in[1];
  if (s->input == 0) return read_left(s, p);
  if (s->input != 1 || w->rank != 2 || x->rank < 2 || x->dims[x->rank - 1] != w->dims[0])
    return false;
  p->terms = w->dims[0];
  p->columns = w->dims[1];
  p->rows = p->terms ? x->size / p->terms : 0;
  return true;
}

static bool read_gemm(const assay_solve_t* s, assay_product_t* p) {
  const assay_tensor_t *x = s->in[0], *w = s->in[1];
  if (s->input != 1 || w->rank != 2 || x->rank != 2 || assay_attr_i64(s->node, "transA", 0))
    return false;
  p->transposed = assay_attr_i64(s->node, "transB", 0) != 0;
  p->terms = w->dims[p->transposed ? 1 : 0];
  p->columns = w->dims[p->transposed ? 0 : 1];
  p->rows = x->dims[0];
  p->alpha = assay_attr_f64(s->node, "alpha", 1);
  return x->dims[1] == p->terms && p->alpha != 0;
}

static void read_axis(const assay_node_t* n, const char* name, int spatial, int64_t otherwise,
                      int64_t* out) {
  size_t count = 0;
  const int64_t* at = assay_attr_ints(n, name, &count);
  for (int i = 0; i < spatial; i++) out[i] = (size_t)i < count ? at[i] : otherwise;
}

static bool read_conv(const assay_solve_t* s, assay_product_t* p) {
  const assay_tensor_t *x = s->in[0], *w = s->in[1];
  const int rank = x->rank;
  const char* pads = assay_attr_str(s->node, "auto_pad", "NOTSET");
  if (s->input != 1 || rank < 3 || rank - 2 > ASSAY_PRODUCT_SPATIAL || w->rank != rank ||
      s->want->rank != rank || strcmp(pads, "NOTSET") != 0)
    return false;
  p->conv = true;
  p->spatial = rank - 2;
  p->groups = assay_attr_i64(s->node, "group", 1);
  p->in_channels = x->dims[1];
  p->out_channels = w->dims[0];
  if (p->groups < 1 || p->out_channels % p->groups || w->dims[1] * p->groups != p->in_channels)
    return false;
  read_axis(s->node, "strides", p->spatial, 1, p->stride);
  read_axis(s->node, "dilations", p->spatial, 1, p->dilation);
  read_axis(s->node, "pads", p->spatial, 0, p->pad);
  p->terms = w->dims[1];
  p->columns = p->out_channels / p->groups;
  p->pixels = p->out_pixels = 1;
  for (int i = 0; i < p->spatial; i++) {
    p->size[i] = x->dims[2 + i];
    p->kernel[i] = w->dims[2 + i];
    p->made[i] = s->want->dims[2 + i];
    p->terms *= p->kernel[i];
    p->pixels *= p->size[i];
    p->out_pixels *= p->made[i];
  }
  p->rows = x->dims[0] * p->out_pixels;
  return true;
}

bool assay_product_read(const assay_solve_t* s, assay_product_t* p) {
  const char* op = s->node->op_type;
  *p = (assay_product_t){.groups = 1, .alpha = 1};
  if (*s->node->domain || s->output != 0 || s->node->n_inputs < 2 || !s->in[0] ||
      s->in[0]->kind != ASSAY_KIND_TENSOR || s->in[0]->store != ASSAY_STORE_F64)
    return false;
  const bool known = strcmp(op, "MatMul") == 0 ? read_matmul(s, p)
                     : strcmp(op, "Gemm") == 0 ? read_gemm(s, p)
                     : strcmp(op, "Conv") == 0 ? read_conv(s, p)
                                               : false;
  return known && p->terms > 0 && p->terms <= MAX_TERMS && p->rows > 0 &&
         s->want->size == p->rows * p->columns * p->groups;
}

// ---- rows ---------------------------------------------------------------------------------------

// The terms of a row, for a group.
void assay_product_row(const assay_solve_t* s, const assay_product_t* p, int64_t row, int64_t group,
                       double* out) {
  const double* x = assay_f64(s->in[p->left ? 1 : 0]);
  if (p->left) {
    const double* from = x + row / p->pixels * p->terms * p->pixels + row % p->pixels;
    for (int64_t i = 0; i < p->terms; i++) out[i] = from[i * p->pixels];
    return;
  }
  if (!p->conv) {
    memcpy(out, x + row * p->terms, (size_t)p->terms * sizeof *out);
    return;
  }
  int64_t at[ASSAY_PRODUCT_SPATIAL], pixel = row % p->out_pixels;
  for (int i = p->spatial; i-- > 0; pixel /= p->made[i]) at[i] = pixel % p->made[i];
  const int64_t channels = p->in_channels / p->groups, taps = p->terms / channels;
  const double* image = x + (row / p->out_pixels * p->in_channels + group * channels) * p->pixels;
  for (int64_t k = 0; k < taps; k++) {
    int64_t rest = k, from = 0, step = 1;
    bool inside = true;
    for (int i = p->spatial; i-- > 0; rest /= p->kernel[i]) {
      const int64_t y = at[i] * p->stride[i] - p->pad[i] + rest % p->kernel[i] * p->dilation[i];
      inside = inside && y >= 0 && y < p->size[i];
      from += y * step;
      step *= p->size[i];
    }
    for (int64_t c = 0; c < channels; c++)
      out[c * taps + k] = inside ? image[c * p->pixels + from] : 0;
  }
}

int64_t assay_product_place(const assay_product_t* p, int64_t row, int64_t group, int64_t column) {
  if (p->left) return (row / p->pixels * p->columns + column) * p->pixels + row % p->pixels;
  if (!p->conv) return row * p->columns + column;
  return (row / p->out_pixels * p->out_channels + group * p->columns + column) * p->out_pixels +
         row % p->out_pixels;
}

int64_t assay_product_weight(const assay_product_t* p, int64_t group, int64_t term,
                             int64_t column) {
  if (p->conv || p->left) return (group * p->columns + column) * p->terms + term;
  return p->transposed ? column * p->terms + term : term * p->columns + column;
}
