// MatMul and Gemm by oneDNN, and what the layer does to each of their elements.
#ifdef ASSAY_ONEDNN
#include <string.h>

#include "backends/cpu/gemm/product.h"
#include "backends/cpu/onednn.h"

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

static assay_status_t describe(const cpu_product_t* p, assay_type_t type, assay_type_t dst_type,
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
// number of threads: where a CPU has no unit for a 16-bit type, and without AVX-512.
static bool depends_on_sizes(const_dnnl_primitive_desc_t descriptor) {
  const char* name = NULL;
  return dnnl_primitive_desc_query(descriptor, dnnl_query_impl_info_str, 0, (void*)&name) ==
             dnnl_success &&
         name && strncmp(name, "gemm", 4) == 0;
}

static assay_status_t build(dnn_kernel_t* k, const assay_sized_layer_t* l, const void* what,
                            assay_type_t type, bool* out_ok) {
  const cpu_product_t* p = what;
  dnnl_primitive_desc_t descriptor = NULL;
  dnnl_memory_desc_t plain = NULL;
  k->base.in[k->src_input] = (assay_storage_t){type, ASSAY_LAYOUT_PLAIN};
  if (!p->weights->constant) {
    k->weights_input = (int)(p->weights - l->in);
    k->base.in[k->weights_input] = (assay_storage_t){type, ASSAY_LAYOUT_PLAIN};
  }
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_PLAIN};
  ASSAY_TRY(dnn_epilogue(k, l, ASSAY_LAYOUT_PLAIN, out_ok));
  if (!*out_ok) return NULL;
  const assay_type_t dst_type = dnn_dst_type(k, l, type);
  assay_status_t st = describe(p, type, dst_type, &descriptor, &plain);
  if (descriptor && depends_on_sizes(descriptor)) {
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
  cpu_product_t p = {0};
  if (!cpu_product_read(l, &p)) return NULL;
  return dnn_make(l, (int)(p.in - l->in), build, &p, out);
}

const assay_tactic_t cpu_tactic_onednn_matmul = {
    .name = "onednn_matmul",
    .source = "onednn",
    .make = make,
    .rounding = {CPU_FLOAT_SUMS},
};
#endif
