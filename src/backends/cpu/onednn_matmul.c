// MatMul and Gemm by oneDNN, and what the layer does to each of their elements.
#ifdef ASSAY_ONEDNN
#include <string.h>

#include "backends/cpu/onednn.h"
#include "base/alloc.h"

// y[batch..., m, n] = x[batch..., m, k] * w[batch..., k, n], each with its strides in memory.
typedef struct product {
  int rank;
  int64_t x[CPU_MAX_RANK], w[CPU_MAX_RANK], y[CPU_MAX_RANK];
  bool x_swapped, w_swapped;  // the last two dimensions lie the other way round
  const cpu_operand_t *in, *weights, *bias;
} product_t;

// Dimensions with ones in front; swapped: the last two change places.
static void pad_dims(const cpu_operand_t* o, int rank, bool swapped, int64_t* dims) {
  for (int i = 0; i < rank; i++) dims[i] = i < rank - o->rank ? 1 : o->dims[i - (rank - o->rank)];
  if (!swapped) return;
  const int64_t t = dims[rank - 1];
  dims[rank - 1] = dims[rank - 2];
  dims[rank - 2] = t;
}

// One matrix of weights for all: rows of the batch are rows of one product.
static void join_batch(product_t* p) {
  int64_t rows = 1;
  for (int i = 0; i < p->rank - 1; i++) rows *= p->x[i];
  p->x[0] = rows;
  p->x[1] = p->x[p->rank - 1];
  p->w[0] = p->w[p->rank - 2];
  p->w[1] = p->w[p->rank - 1];
  p->rank = 2;
}

static bool read_gemm(const cpu_layer_t* l, const assay_node_t* n, product_t* p) {
  p->x_swapped = assay_attr_i64(n, "transA", 0) != 0;
  p->w_swapped = assay_attr_i64(n, "transB", 0) != 0;
  if (assay_attr_f64(n, "alpha", 1) != 1 || assay_attr_f64(n, "beta", 1) != 1) return false;
  if (n->n_inputs < 3 || !n->inputs[2]) return true;
  p->bias = cpu_input(l, n->inputs[2]);
  // A row, the same for all rows of the output.
  return p->bias && p->bias->constant && p->bias->size == l->out[0].dims[1] &&
         p->bias->dims[p->bias->rank - 1] == p->bias->size;
}

static bool read_product(const cpu_layer_t* l, product_t* p) {
  const assay_node_t* n = l->layer->nodes[0];
  const bool gemm = strcmp(n->op_type, "Gemm") == 0;
  if (*n->domain || (!gemm && strcmp(n->op_type, "MatMul") != 0)) return false;
  if (l->n_out != 1 || !l->out[0].value || !l->out[0].size) return false;
  p->in = cpu_input(l, n->inputs[0]);
  p->weights = cpu_input(l, n->inputs[1]);
  if (!p->in || !p->weights || p->in == p->weights || p->in->rank < 2 || p->weights->rank < 2 ||
      !p->in->size || !p->weights->size)
    return false;
  if (!dnn_is_float(p->in->type) || p->in->type != p->weights->type ||
      !dnn_is_float(l->out[0].type))
    return false;
  if (gemm && !read_gemm(l, n, p)) return false;
  p->rank = p->in->rank > p->weights->rank ? p->in->rank : p->weights->rank;
  pad_dims(p->in, p->rank, p->x_swapped, p->x);
  pad_dims(p->weights, p->rank, p->w_swapped, p->w);
  if (p->weights->rank == 2 && !p->x_swapped) join_batch(p);
  for (int i = 0; i < p->rank - 2; i++) p->y[i] = p->x[i] > p->w[i] ? p->x[i] : p->w[i];
  p->y[p->rank - 2] = p->x[p->rank - 2];
  p->y[p->rank - 1] = p->w[p->rank - 1];
  return true;
}

// As dnn_md, for dimensions of which the last two may lie the other way round.
static assay_status_t matrix_md(int rank, const int64_t* dims, assay_type_t type, bool swapped,
                                dnnl_memory_desc_t* out) {
  dnnl_dims_t sizes = {0}, strides = {0};
  int64_t step = dims[rank - 1] * dims[rank - 2];
  for (int i = 0; i < rank; i++) sizes[i] = dims[i];
  strides[rank - 1] = swapped ? dims[rank - 2] : 1;
  strides[rank - 2] = swapped ? 1 : dims[rank - 1];
  for (int i = rank - 3; i >= 0; i--) {
    strides[i] = step;
    step *= dims[i];
  }
  return dnn_check(dnnl_memory_desc_create_with_strides(out, rank, sizes, dnn_type(type), strides),
                   "describing memory");
}

static assay_status_t describe(const product_t* p, assay_type_t type, assay_type_t dst_type,
                               dnnl_primitive_desc_t* out, dnnl_memory_desc_t* out_plain_weights) {
  dnnl_memory_desc_t src = NULL, weights = NULL, bias = NULL, dst = NULL;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_engine_t engine;
  const int64_t row[2] = {1, p->y[p->rank - 1]};
  assay_status_t st = dnn_engine(&engine);
  if (!st) st = dnn_attr(&attr);
  if (!st) st = matrix_md(p->rank, p->x, type, p->x_swapped, &src);
  if (!st)
    st = p->weights->constant ? dnn_md_any(p->rank, p->w, type, &weights)
                              : matrix_md(p->rank, p->w, type, p->w_swapped, &weights);
  if (!st) st = matrix_md(p->rank, p->w, ASSAY_TYPE_FLOAT, p->w_swapped, out_plain_weights);
  if (!st && p->bias) st = dnn_md(2, row, ASSAY_TYPE_FLOAT, CPU_PLAIN, &bias);
  if (!st) st = matrix_md(p->rank, p->y, dst_type, false, &dst);
  if (!st) {
    dnnl_status_t made =
        dnnl_matmul_primitive_desc_create(out, engine, src, weights, bias, dst, attr);
    if (made == dnnl_unimplemented || made == dnnl_invalid_arguments)
      *out = NULL;
    else
      st = dnn_check(made, "describing a matrix product");
  }
  dnnl_memory_desc_t all[] = {src, weights, bias, dst};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i]) dnnl_memory_desc_destroy(all[i]);
  if (attr) dnnl_primitive_attr_destroy(attr);
  return st;
}

static assay_status_t build(dnn_kernel_t* k, const cpu_layer_t* l, const product_t* p,
                            assay_type_t type, bool* out_ok) {
  dnnl_primitive_desc_t descriptor = NULL;
  dnnl_memory_desc_t plain = NULL;
  float* weights = NULL;
  k->base.in[k->src_input] = (cpu_form_t){type, CPU_PLAIN};
  if (!p->weights->constant) {
    k->weights_input = (int)(p->weights - l->in);
    k->base.in[k->weights_input] = (cpu_form_t){type, CPU_PLAIN};
  }
  k->base.out[0] = (cpu_form_t){l->out[0].type, CPU_PLAIN};
  ASSAY_TRY(dnn_epilogue(k, l, CPU_PLAIN, out_ok));
  if (!*out_ok) return NULL;
  const bool wide = k->program || type == ASSAY_TYPE_FLOAT;
  const assay_type_t dst_type = wide ? ASSAY_TYPE_FLOAT : l->out[0].type;
  assay_status_t st = describe(p, type, dst_type, &descriptor, &plain);
  if (!st && !descriptor) *out_ok = false;
  if (!st && descriptor) {
    if (p->weights->constant) {
      st = cpu_constant_floats(p->weights, &weights);
      if (!st) st = dnn_pack_weights(k, descriptor, plain, weights);
    }
    if (!st && p->bias) st = cpu_constant_floats(p->bias, &k->bias_data);
    if (!st) st = dnn_finish(k, descriptor, true, p->bias);
    k->dst_apart = dst_type != l->out[0].type;
    k->base.scratch = 64 + k->dst_offset + (k->dst_apart ? (size_t)k->size * sizeof(float) : 0);
  }
  assay_free(weights);
  if (plain) dnnl_memory_desc_destroy(plain);
  if (descriptor) dnnl_primitive_desc_destroy(descriptor);
  return st;
}

static assay_status_t make(const cpu_layer_t* l, cpu_kernel_t** out) {
  product_t p = {0};
  if (!read_product(l, &p)) return NULL;
  // In float32 where the CPU does not compute in the 16-bit format itself.
  const assay_type_t types[] = {p.in->type, ASSAY_TYPE_FLOAT};
  for (int i = 0; i < (p.in->type == ASSAY_TYPE_FLOAT ? 1 : 2); i++) {
    dnn_kernel_t* k = NULL;
    bool ok = false;
    ASSAY_TRY(dnn_new((int)(p.in - l->in), &k));
    assay_status_t st = build(k, l, &p, types[i], &ok);
    if (!st && ok) return *out = &k->base, NULL;
    dnn_destroy(&k->base);
    if (st) return st;
  }
  return NULL;
}

const cpu_tactic_t cpu_tactic_onednn_matmul = {
    .name = "onednn_matmul",
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
