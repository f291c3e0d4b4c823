// MatMul and Gemm by oneDNN, and what the layer does to each of their elements.
#ifdef ASSAY_ONEDNN
#include <string.h>

#include "backends/cpu/onednn.h"
#include "base/alloc.h"

// y[batch..., m, n] = x[batch..., m, k] * w[batch..., k, n], each with its strides in memory.
typedef struct product {
  int rank;
  int64_t x[ASSAY_KERNEL_RANK], w[ASSAY_KERNEL_RANK], y[ASSAY_KERNEL_RANK];
  bool x_swapped, w_swapped;  // the last two dimensions lie the other way round
  const assay_operand_t *in, *weights, *bias;
} product_t;

// Dimensions with ones in front; swapped: the last two change places.
static void pad_dims(const assay_operand_t* o, int rank, bool swapped, int64_t* dims) {
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

static bool read_gemm(const assay_sized_layer_t* l, const assay_node_t* n, product_t* p) {
  p->x_swapped = assay_attr_i64(n, "transA", 0) != 0;
  p->w_swapped = assay_attr_i64(n, "transB", 0) != 0;
  if (assay_attr_f64(n, "alpha", 1) != 1 || assay_attr_f64(n, "beta", 1) != 1) return false;
  if (n->n_inputs < 3 || !n->inputs[2]) return true;
  p->bias = assay_sized_input(l, n->inputs[2]);
  // A row, the same for all rows of the output.
  return p->bias && p->bias->constant && p->bias->size == l->out[0].dims[1] &&
         p->bias->dims[p->bias->rank - 1] == p->bias->size;
}

static bool read_product(const assay_sized_layer_t* l, product_t* p) {
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
  for (int i = 0; i < p->rank - 2; i++) p->y[i] = p->x[i] > p->w[i] ? p->x[i] : p->w[i];
  p->y[p->rank - 2] = p->x[p->rank - 2];
  p->y[p->rank - 1] = p->w[p->rank - 1];
  // Sizes that do not fit together at run time are for the emulated engine, which says so.
  return assay_dims_product(p->y, 0, p->rank) == l->out[0].size;
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
  enum { SRC, WEIGHTS, ROW, DST, N };
  dnnl_memory_desc_t md[N] = {NULL};
  dnnl_primitive_attr_t attr = NULL;
  dnnl_engine_t engine;
  const int64_t row[2] = {1, p->y[p->rank - 1]};
  assay_status_t st = dnn_engine(&engine);
  if (!st) st = dnn_attr(&attr);
  if (!st) st = matrix_md(p->rank, p->x, type, p->x_swapped, &md[SRC]);
  if (!st)
    st = p->weights->constant ? dnn_md_any(p->rank, p->w, type, &md[WEIGHTS])
                              : matrix_md(p->rank, p->w, type, p->w_swapped, &md[WEIGHTS]);
  if (!st) st = matrix_md(p->rank, p->w, ASSAY_TYPE_FLOAT, p->w_swapped, out_plain_weights);
  if (!st && p->bias) st = dnn_md(2, row, ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN, &md[ROW]);
  if (!st) st = matrix_md(p->rank, p->y, dst_type, false, &md[DST]);
  if (!st)
    st = dnn_described(dnnl_matmul_primitive_desc_create(out, engine, md[SRC], md[WEIGHTS], md[ROW],
                                                         md[DST], attr),
                       "describing a matrix product", out);
  dnn_free(N, md, attr);
  return st;
}

// Whether oneDNN would run it as its older gemm, whose order of sums depends on the rows and on the
// number of threads: where a CPU has no unit for a 16-bit type. (Without AVX-512 it has only that
// one in float32, too.)
static bool depends_on_sizes(const_dnnl_primitive_desc_t descriptor) {
  const char* name = NULL;
  return dnnl_primitive_desc_query(descriptor, dnnl_query_impl_info_str, 0, (void*)&name) ==
             dnnl_success &&
         name && strncmp(name, "gemm", 4) == 0;
}

static assay_status_t build(dnn_kernel_t* k, const assay_sized_layer_t* l, const void* what,
                            assay_type_t type, bool* out_ok) {
  const product_t* p = what;
  dnnl_primitive_desc_t descriptor = NULL;
  dnnl_memory_desc_t plain = NULL;
  k->base.in[k->src_input] = (assay_form_t){type, ASSAY_LAYOUT_PLAIN};
  if (!p->weights->constant) {
    k->weights_input = (int)(p->weights - l->in);
    k->base.in[k->weights_input] = (assay_form_t){type, ASSAY_LAYOUT_PLAIN};
  }
  k->base.out[0] = (assay_form_t){l->out[0].type, ASSAY_LAYOUT_PLAIN};
  ASSAY_TRY(dnn_epilogue(k, l, ASSAY_LAYOUT_PLAIN, out_ok));
  if (!*out_ok) return NULL;
  const assay_type_t dst_type = dnn_dst_type(k, l, type);
  assay_status_t st = describe(p, type, dst_type, &descriptor, &plain);
  if (descriptor && type != ASSAY_TYPE_FLOAT && depends_on_sizes(descriptor)) {
    dnnl_primitive_desc_destroy(descriptor);
    descriptor = NULL;
  }
  *out_ok = descriptor;
  if (!st && descriptor && p->weights->constant)
    st = dnn_pack_weights(k, descriptor, plain, p->weights);
  if (!st && descriptor) st = dnn_finish(k, l, descriptor, dst_type, true, p->bias);
  dnn_free(1, &plain, NULL);
  if (descriptor) dnnl_primitive_desc_destroy(descriptor);
  return st;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  product_t p = {0};
  if (!read_product(l, &p)) return NULL;
  return dnn_make(l, (int)(p.in - l->in), build, &p, out);
}

const assay_tactic_t cpu_tactic_onednn_matmul = {
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
