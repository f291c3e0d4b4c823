// What a layer that begins with MatMul or Gemm multiplies, for kernels that take any of them.
#include "backends/cpu/gemm/product.h"

#include <string.h>

// Dimensions with ones in front; swapped: the last two change places.
static void pad_dims(const assay_operand_t* o, int rank, bool swapped, int64_t* dims) {
  for (int i = 0; i < rank; i++) dims[i] = i < rank - o->rank ? 1 : o->dims[i - (rank - o->rank)];
  if (!swapped) return;
  const int64_t t = dims[rank - 1];
  dims[rank - 1] = dims[rank - 2];
  dims[rank - 2] = t;
}

// One matrix of weights for all: rows of the batch are rows of one product.
static void join_batch(cpu_product_t* p) {
  int64_t rows = 1;
  for (int i = 0; i < p->rank - 1; i++) rows *= p->x[i];
  p->x[0] = rows;
  p->x[1] = p->x[p->rank - 1];
  p->w[0] = p->w[p->rank - 2];
  p->w[1] = p->w[p->rank - 1];
  p->rank = 2;
}

bool cpu_is_row(const assay_operand_t* o) {
  return o->rank == 0 || o->dims[o->rank - 1] == o->size;
}

static bool read_gemm(const assay_sized_layer_t* l, const assay_node_t* n, cpu_product_t* p) {
  p->x_swapped = assay_attr_i64(n, "transA", 0) != 0;
  p->w_swapped = assay_attr_i64(n, "transB", 0) != 0;
  if (assay_attr_f64(n, "alpha", 1) != 1 || assay_attr_f64(n, "beta", 1) != 1) return false;
  if (n->n_inputs < 3 || !n->inputs[2]) return true;
  p->bias = assay_sized_input(l, n->inputs[2]);
  // A row, the same for all rows of the output.
  return p->bias && p->bias->constant && p->bias->size == l->out[0].dims[1] && cpu_is_row(p->bias);
}

bool cpu_product_read(const assay_sized_layer_t* l, cpu_product_t* p) {
  const assay_node_t* n = l->layer->nodes[0];
  const bool gemm = strcmp(n->op_type, "Gemm") == 0;
  if (*n->domain || (!gemm && strcmp(n->op_type, "MatMul") != 0)) return false;
  if (l->n_out != 1 || !l->out[0].value || !l->out[0].size) return false;
  p->in = assay_sized_input(l, n->inputs[0]);
  p->weights = assay_sized_input(l, n->inputs[1]);
  if (!p->in || !p->weights || p->in == p->weights || p->in->rank < 2 || p->weights->rank < 2 ||
      !p->in->size || !p->weights->size)
    return false;
  if (!assay_type_is_kernel_float(p->in->type) || p->in->type != p->weights->type ||
      !assay_type_is_kernel_float(l->out[0].type))
    return false;
  if (gemm && !read_gemm(l, n, p)) return false;
  p->rank = p->in->rank > p->weights->rank ? p->in->rank : p->weights->rank;
  pad_dims(p->in, p->rank, p->x_swapped, p->x);
  pad_dims(p->weights, p->rank, p->w_swapped, p->w);
  if (p->weights->rank == 2 && !p->x_swapped) join_batch(p);
  // Sizes that do not fit together at run time are for the emulated engine, which says so.
  if (p->x[p->rank - 1] != p->w[p->rank - 2]) return false;
  for (int i = 0; i < p->rank - 2; i++) {
    if (p->x[i] != p->w[i] && p->x[i] != 1 && p->w[i] != 1) return false;
    p->y[i] = p->x[i] > p->w[i] ? p->x[i] : p->w[i];
  }
  p->y[p->rank - 2] = p->x[p->rank - 2];
  p->y[p->rank - 1] = p->w[p->rank - 1];
  return assay_dims_product(p->y, 0, p->rank) == l->out[0].size;
}
