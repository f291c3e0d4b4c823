// Weights in the order that a oneDNN primitive wants: packed once, kept in the store.
#ifdef ASSAY_ONEDNN
#include "backends/cpu/onednn.h"
#include "base/alloc.h"
#include "base/shown.h"

static void add_sizes(const_dnnl_memory_desc_t md, dnnl_query_t what, int n, const char* name,
                      assay_str_t* key) {
  dnnl_dims_t* sizes = NULL;
  if (dnnl_memory_desc_query(md, what, &sizes) != dnnl_success || !sizes) return;
  assay_str_printf_raw(key, " %s", name);
  for (int i = 0; i < n; i++)
    assay_str_printf_raw(key, "%s%lld", i ? "," : "=", (long long)(*sizes)[i]);
}

// All that a memory descriptor lets itself be asked, and who asks for it: two that read alike hold
// the same bytes.
static assay_status_t key_of(const_dnnl_primitive_desc_t descriptor, const_dnnl_memory_desc_t md,
                             const assay_operand_t* weights, assay_str_t* key) {
  const char* implementation = "";
  int ndims = 0, blocks = 0;
  dnnl_format_kind_t kind = dnnl_format_kind_undef;
  dnnl_data_type_t type = dnnl_data_type_undef;
  dnnl_primitive_desc_query(descriptor, dnnl_query_impl_info_str, 0, (void*)&implementation);
  dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind);
  dnnl_memory_desc_query(md, dnnl_query_data_type, &type);
  dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &ndims);
  assay_str_printf_raw(key, "%s as %s for onednn %s kind=%d type=%d", weights->value->name,
                       assay_type_name(weights->type), implementation, (int)kind, (int)type);
  add_sizes(md, dnnl_query_dims, ndims, "dims", key);
  add_sizes(md, dnnl_query_padded_dims, ndims, "padded", key);
  add_sizes(md, dnnl_query_padded_offsets, ndims, "offsets", key);
  if (kind == dnnl_blocked) {
    add_sizes(md, dnnl_query_strides, ndims, "strides", key);
    dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &blocks);
    add_sizes(md, dnnl_query_inner_blks, blocks, "blocks", key);
    add_sizes(md, dnnl_query_inner_idxs, blocks, "of", key);
  }
  return assay_str_status(key);
}

typedef struct packing {
  const assay_operand_t* weights;
  int64_t first;  // element of the constant
  const_dnnl_memory_desc_t from, to;
} packing_t;

static assay_status_t pack(void* user, void* to) {
  const packing_t* p = user;
  float* from = NULL;
  dnnl_engine_t engine;
  dnnl_memory_t source = NULL, packed = NULL;
  dnnl_primitive_desc_t order = NULL;
  dnnl_primitive_t reorder = NULL;
  ASSAY_TRY(dnn_engine(&engine));
  ASSAY_TRY(assay_operand_floats(p->weights, &from));
  assay_status_t st =
      dnn_check(dnnl_memory_create(&source, p->from, engine, from + p->first), "weights");
  if (!st) st = dnn_check(dnnl_memory_create(&packed, p->to, engine, to), "weights");
  if (!st)
    st = dnn_check(dnnl_reorder_primitive_desc_create(&order, p->from, engine, p->to, engine, NULL),
                   "packing weights");
  if (!st) st = dnn_check(dnnl_primitive_create(&reorder, order), "packing weights");
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, packed}};
  if (!st) st = dnn_execute(reorder, 2, args, "packing weights");
  if (reorder) dnnl_primitive_destroy(reorder);
  if (order) dnnl_primitive_desc_destroy(order);
  if (packed) dnnl_memory_destroy(packed);
  if (source) dnnl_memory_destroy(source);
  assay_free(from);
  return st;
}

assay_status_t dnn_packed_weights(const_dnnl_primitive_desc_t descriptor,
                                  const_dnnl_memory_desc_t from_md, const assay_operand_t* weights,
                                  int64_t first, dnnl_memory_t* out) {
  const packing_t p = {weights, first, from_md,
                       dnnl_primitive_desc_query_md(descriptor, dnnl_query_weights_md, 0)};
  assay_str_t key = {0};
  dnnl_engine_t engine;
  const void* packed = NULL;
  ASSAY_TRY(dnn_engine(&engine));
  assay_status_t st = key_of(descriptor, p.to, weights, &key);
  if (!st && first) assay_str_printf_raw(&key, " from %lld", (long long)first);
  if (st) return assay_str_deinit(&key), st;
  ASSAY_TRY(assay_weights_get_by(weights->store, &key, dnnl_memory_desc_get_size(p.to), pack, &p,
                                 &packed));
  return dnn_check(dnnl_memory_create(out, p.to, engine, (void*)(uintptr_t)packed), "weights");
}

assay_status_t dnn_pack_weights(dnn_kernel_t* k, const_dnnl_primitive_desc_t descriptor,
                                const_dnnl_memory_desc_t from_md, const assay_operand_t* weights) {
  return dnn_packed_weights(descriptor, from_md, weights, 0, &k->weights);
}
#endif
