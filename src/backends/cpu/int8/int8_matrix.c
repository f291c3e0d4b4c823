// Products with constant matrices of 8-bit integers by oneDNN, raw sums in 32 bits.
#include "backends/cpu/int8/int8_matrix.h"

#include "base/alloc.h"
#ifdef ASSAY_ONEDNN
#include "backends/cpu/onednn.h"
#endif

#ifndef ASSAY_ONEDNN
struct int8_matrix {
  int none;
};

assay_status_t int8_matrix_create(const int8_matrix_size_t* size, const int8_t* w,
                                  int8_matrix_t** out) {
  (void)size, (void)w, (void)out;
  return NULL;
}
void int8_matrix_destroy(int8_matrix_t* k) { (void)k; }
size_t int8_matrix_scratch(const int8_matrix_t* k) {
  (void)k;
  return 0;
}
assay_status_t int8_matrix_run(const int8_matrix_t* k, const void* x, int64_t part, void* scratch,
                               int32_t* y) {
  (void)k, (void)x, (void)part, (void)scratch, (void)y;
  return ASSAY_ERROR(ASSAY_INTERNAL, "a product by oneDNN, which is not here");
}
#else
struct int8_matrix {
  dnnl_primitive_t primitive;
  dnnl_memory_t src, weights, dst, scratchpad;
  char* packed;
  size_t part_bytes, scratch;
};

static bool suits(void) {
  const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
  const unsigned vnni = (unsigned)dnnl_cpu_isa_avx512_core_vnni;
  return (isa & vnni) == vnni;
}

void int8_matrix_destroy(int8_matrix_t* k) {
  if (!k) return;
  dnnl_memory_t all[] = {k->src, k->weights, k->dst, k->scratchpad};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i]) dnnl_memory_destroy(all[i]);
  if (k->primitive) dnnl_primitive_destroy(k->primitive);
  assay_free(k->packed);
  assay_free(k);
}

size_t int8_matrix_scratch(const int8_matrix_t* k) { return k->scratch; }

assay_status_t int8_matrix_run(const int8_matrix_t* k, const void* x, int64_t part, void* scratch,
                               int32_t* y) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, k->src},
                                  {DNNL_ARG_DST, k->dst},
                                  {DNNL_ARG_SCRATCHPAD, k->scratchpad},
                                  {DNNL_ARG_WEIGHTS, k->weights}};
  dnnl_memory_set_data_handle(k->src, (void*)(uintptr_t)x);
  dnnl_memory_set_data_handle(k->dst, y);
  dnnl_memory_set_data_handle(k->scratchpad, scratch);
  dnnl_memory_set_data_handle(k->weights, k->packed + (size_t)part * k->part_bytes);
  return dnn_execute(k->primitive, 4, args, "running a product of integers");
}

static assay_status_t matrix_md(int64_t rows, int64_t columns, dnnl_data_type_t type,
                                dnnl_memory_desc_t* out) {
  const dnnl_dims_t dims = {rows, columns}, strides = {columns, 1};
  return dnn_check(dnnl_memory_desc_create_with_strides(out, 2, dims, type, strides),
                   "describing memory");
}

static assay_status_t describe(const int8_matrix_size_t* s, dnnl_primitive_desc_t* out) {
  enum { SRC, WEIGHTS, DST, N };
  const dnnl_dims_t w = {s->k, s->n};
  dnnl_memory_desc_t md[N] = {NULL};
  dnnl_primitive_attr_t attr = NULL;
  dnnl_engine_t engine;
  assay_status_t st = dnn_engine(&engine);
  if (!st) st = dnn_attr(&attr);
  if (!st) st = matrix_md(s->m, s->k, dnn_type(s->type), &md[SRC]);
  if (!st)
    st = dnn_check(
        dnnl_memory_desc_create_with_tag(&md[WEIGHTS], 2, w, dnnl_s8, dnnl_format_tag_any),
        "describing memory");
  if (!st) st = matrix_md(s->m, s->n, dnnl_s32, &md[DST]);
  if (!st)
    st = dnn_described(
        dnnl_matmul_primitive_desc_create(out, engine, md[SRC], md[WEIGHTS], NULL, md[DST], attr),
        "describing a product of integers", out);
  dnn_free(N, md, attr);
  return st;
}

static assay_status_t memory(const_dnnl_primitive_desc_t d, dnnl_query_t what, dnnl_memory_t* out) {
  dnnl_engine_t engine;
  ASSAY_TRY(dnn_engine(&engine));
  return dnn_check(
      dnnl_memory_create(out, dnnl_primitive_desc_query_md(d, what, 0), engine, DNNL_MEMORY_NONE),
      "making memory");
}

// The parts of w, each in the order that the primitive wants.
static assay_status_t pack(int8_matrix_t* k, const int8_matrix_size_t* s,
                           const_dnnl_memory_desc_t to, const int8_t* w) {
  dnnl_engine_t engine;
  dnnl_memory_desc_t plain = NULL;
  dnnl_memory_t source = NULL;
  dnnl_primitive_desc_t order = NULL;
  dnnl_primitive_t reorder = NULL;
  assay_status_t st = dnn_engine(&engine);
  if (!st) st = matrix_md(s->k, s->n, dnnl_s8, &plain);
  if (!st) st = dnn_check(dnnl_memory_create(&source, plain, engine, DNNL_MEMORY_NONE), "weights");
  if (!st)
    st = dnn_check(dnnl_reorder_primitive_desc_create(&order, plain, engine, to, engine, NULL),
                   "packing weights");
  if (!st) st = dnn_check(dnnl_primitive_create(&reorder, order), "packing weights");
  for (int64_t i = 0; !st && i < s->parts; i++) {
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, k->weights}};
    dnnl_memory_set_data_handle(source, (void*)(uintptr_t)(w + i * s->k * s->n));
    dnnl_memory_set_data_handle(k->weights, k->packed + (size_t)i * k->part_bytes);
    st = dnn_execute(reorder, 2, args, "packing weights");
  }
  if (reorder) dnnl_primitive_destroy(reorder);
  if (order) dnnl_primitive_desc_destroy(order);
  if (source) dnnl_memory_destroy(source);
  if (plain) dnnl_memory_desc_destroy(plain);
  return st;
}

static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

static assay_status_t build(int8_matrix_t* k, const int8_matrix_size_t* s, const int8_t* w,
                            const_dnnl_primitive_desc_t d) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(d, dnnl_query_weights_md, 0);
  k->scratch = aligned(
      dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0)));
  k->part_bytes = aligned(dnnl_memory_desc_get_size(md));
  ASSAY_TRY(assay_new_array((size_t)s->parts, k->part_bytes, &k->packed));
  ASSAY_TRY(dnn_check(dnnl_primitive_create(&k->primitive, d), "a primitive"));
  ASSAY_TRY(memory(d, dnnl_query_src_md, &k->src));
  ASSAY_TRY(memory(d, dnnl_query_weights_md, &k->weights));
  ASSAY_TRY(memory(d, dnnl_query_dst_md, &k->dst));
  ASSAY_TRY(memory(d, dnnl_query_scratchpad_md, &k->scratchpad));
  return pack(k, s, md, w);
}

assay_status_t int8_matrix_create(const int8_matrix_size_t* size, const int8_t* w,
                                  int8_matrix_t** out) {
  int8_matrix_t* k = NULL;
  dnnl_primitive_desc_t d = NULL;
  if (!suits()) return NULL;
  ASSAY_TRY(describe(size, &d));
  if (!d) return NULL;
  assay_status_t st = ASSAY_NEW(&k);
  if (!st) st = build(k, size, w, d);
  dnnl_primitive_desc_destroy(d);
  if (st) return int8_matrix_destroy(k), st;
  *out = k;
  return NULL;
}
#endif
