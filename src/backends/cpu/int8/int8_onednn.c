// Sums of int8 layers by oneDNN: 8-bit operands, 32-bit sums, no scales and no zero points of its
// own. Only on CPUs whose instructions add up products of 8 bits in 32 (VNNI, AMX): without them
// oneDNN adds pairs in 16 bits, which saturate; there int8_plain.c does it.
#ifdef ASSAY_ONEDNN
#include <string.h>

#include "backends/cpu/int8/int8_conv_geometry.h"
#include "backends/cpu/int8/int8_make.h"
#include "backends/cpu/onednn.h"
#include "base/alloc.h"

typedef struct onednn {
  int8_kernel_t base;
  dnnl_primitive_t primitive;
  dnnl_memory_t src, weights, dst, scratchpad;
  int8_t* packed;        // constant weights
  int x_input, w_input;  // w -1: constant
  // Of weights that are read.
  int8_product_t p;
  assay_type_t x_type, w_type;
  int32_t zero_x, zero_w;
  size_t own_scratch;  // of the primitive; what follows is ours
} onednn_t;

static bool has_vnni(void) {
  const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
  const unsigned vnni = (unsigned)dnnl_cpu_isa_avx512_core_vnni;
  return (isa & vnni) == vnni;
}

static void close_onednn(int8_kernel_t* base) {
  onednn_t* k = (onednn_t*)base;
  dnnl_memory_t all[] = {k->src, k->weights, k->dst, k->scratchpad};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i]) dnnl_memory_destroy(all[i]);
  if (k->primitive) dnnl_primitive_destroy(k->primitive);
  assay_free(k->packed);
}

// ---- running ------------------------------------------------------------------------------------

static assay_status_t execute(const onednn_t* k, const void* x, const void* w, void* scratch,
                              int32_t* out) {
  dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, k->src},
                             {DNNL_ARG_DST, k->dst},
                             {DNNL_ARG_SCRATCHPAD, k->scratchpad},
                             {DNNL_ARG_WEIGHTS, k->weights}};
  dnnl_memory_set_data_handle(k->src, (void*)(uintptr_t)x);
  dnnl_memory_set_data_handle(k->dst, out);
  dnnl_memory_set_data_handle(k->scratchpad, scratch);
  dnnl_memory_set_data_handle(k->weights, (void*)(uintptr_t)w);
  return dnn_execute(k->primitive, 4, args, "running a layer");
}

static assay_status_t sum_constant(int8_kernel_t* base, const void* const* in, void* scratch,
                                   int32_t* out) {
  const onednn_t* k = (const onednn_t*)base;
  return execute(k, in[k->x_input], k->packed, scratch, out);
}

static int32_t at(const void* x, assay_type_t type, int64_t i) {
  return type == ASSAY_TYPE_INT8 ? ((const int8_t*)x)[i] : ((const uint8_t*)x)[i];
}

// Takes off what zero points add to the product of one matrix: sum (x - zx)(w - zw).
static void take_off(const onednn_t* k, const void* x, int64_t x_at, const int8_t* w,
                     int32_t zero_w, int32_t* columns, int32_t* out) {
  const int8_product_t* p = &k->p;
  memset(columns, 0, (size_t)p->n * sizeof *columns);
  for (int64_t i = 0; k->zero_x && i < p->k; i++)
    for (int64_t n = 0; n < p->n; n++) columns[n] += w[p->swapped ? n * p->k + i : i * p->n + n];
  for (int64_t n = 0; n < p->n; n++)
    columns[n] = k->zero_x * columns[n] - (int32_t)p->k * k->zero_x * zero_w;
  for (int64_t m = 0; m < p->m; m++) {
    int32_t row = 0;
    for (int64_t i = 0; zero_w && i < p->k; i++) row += at(x, k->x_type, x_at + m * p->k + i);
    row *= zero_w;
    for (int64_t n = 0; n < p->n; n++) out[m * p->n + n] -= columns[n] + row;
  }
}

static assay_status_t sum_read(int8_kernel_t* base, const void* const* in, void* scratch,
                               int32_t* out) {
  const onednn_t* k = (const onednn_t*)base;
  const int8_product_t* p = &k->p;
  const int64_t matrices = p->shared ? 1 : p->batch, size = p->n * p->k;
  int32_t* columns = (int32_t*)(void*)((char*)scratch + k->own_scratch);
  int8_t* signed_w = (int8_t*)(columns + matrices * p->n);
  const int8_t* w = in[k->w_input];
  int32_t zero_w = k->zero_w;
  if (k->w_type == ASSAY_TYPE_UINT8) {
    // oneDNN's weights are signed: less 128, and so is their zero point.
    const uint8_t* u = in[k->w_input];
    for (int64_t i = 0; i < matrices * size; i++) signed_w[i] = (int8_t)(u[i] - 128);
    w = signed_w;
    zero_w -= 128;
  }
  ASSAY_TRY(execute(k, in[k->x_input], w, scratch, out));
  if (!k->zero_x && !zero_w) return NULL;
  const int64_t rows = p->shared ? p->batch * p->m : p->m;
  int8_product_t one = *p;
  one.m = rows;
  onednn_t as = *k;
  as.p = one;
#pragma omp parallel for schedule(static) if (matrices > 1)
  for (int64_t b = 0; b < matrices; b++)
    take_off(&as, in[k->x_input], b * rows * p->k, w + b * size, zero_w, columns + b * p->n,
             out + b * rows * p->n);
  return NULL;
}

// ---- making -------------------------------------------------------------------------------------

static dnnl_data_type_t type_of(assay_type_t t) { return t == ASSAY_TYPE_INT8 ? dnnl_s8 : dnnl_u8; }

static assay_status_t plain_md(int rank, const int64_t* dims, dnnl_data_type_t type, bool swapped,
                               bool last, dnnl_memory_desc_t* out) {
  dnnl_dims_t sizes = {0}, strides = {0};
  int64_t step = 1;
  int order[DNNL_MAX_NDIMS], n = 0;  // from the innermost dimension outwards
  if (last) order[n++] = 1;
  for (int i = rank - 1; i >= 0; i--)
    if (!last || i != 1) order[n++] = i;
  if (swapped) {
    order[0] = rank - 2;
    order[1] = rank - 1;
  }
  for (int i = 0; i < rank; i++) {
    sizes[order[i]] = dims[order[i]];
    strides[order[i]] = step;
    step *= dims[order[i]];
  }
  return dnn_check(dnnl_memory_desc_create_with_strides(out, rank, sizes, type, strides),
                   "describing memory");
}

static assay_status_t any_md(int rank, const int64_t* dims, dnnl_memory_desc_t* out) {
  dnnl_dims_t sizes = {0};
  for (int i = 0; i < rank; i++) sizes[i] = dims[i];
  return dnn_check(dnnl_memory_desc_create_with_tag(out, rank, sizes, dnnl_s8, dnnl_format_tag_any),
                   "describing memory");
}

static assay_status_t memory(const_dnnl_primitive_desc_t d, dnnl_query_t what, dnnl_memory_t* out) {
  dnnl_engine_t engine;
  ASSAY_TRY(dnn_engine(&engine));
  return dnn_check(
      dnnl_memory_create(out, dnnl_primitive_desc_query_md(d, what, 0), engine, DNNL_MEMORY_NONE),
      "making memory");
}

// Weights as the primitive wants them.
static assay_status_t pack(onednn_t* k, const_dnnl_primitive_desc_t d, const_dnnl_memory_desc_t md,
                           const int16_t* from, int64_t n) {
  const_dnnl_memory_desc_t to_md = dnnl_primitive_desc_query_md(d, dnnl_query_weights_md, 0);
  dnnl_engine_t engine;
  dnnl_memory_t source = NULL;
  dnnl_primitive_desc_t order = NULL;
  dnnl_primitive_t reorder = NULL;
  int8_t* bytes = NULL;
  ASSAY_TRY(dnn_engine(&engine));
  ASSAY_TRY(assay_new_array((size_t)n, 1, &bytes));
  for (int64_t i = 0; i < n; i++) bytes[i] = (int8_t)from[i];
  k->packed = assay_malloc(dnnl_memory_desc_get_size(to_md));
  assay_status_t st = k->packed ? NULL : assay_status_no_memory();
  if (!st) dnnl_memory_set_data_handle(k->weights, k->packed);
  if (!st) st = dnn_check(dnnl_memory_create(&source, md, engine, bytes), "weights");
  if (!st)
    st = dnn_check(dnnl_reorder_primitive_desc_create(&order, md, engine, to_md, engine, NULL),
                   "packing weights");
  if (!st) st = dnn_check(dnnl_primitive_create(&reorder, order), "packing weights");
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, k->weights}};
  if (!st) st = dnn_execute(reorder, 2, args, "packing weights");
  if (reorder) dnnl_primitive_destroy(reorder);
  if (order) dnnl_primitive_desc_destroy(order);
  if (source) dnnl_memory_destroy(source);
  assay_free(bytes);
  return st;
}

typedef struct problem {
  int rank, w_rank;
  int64_t x[ASSAY_KERNEL_RANK], w[ASSAY_KERNEL_RANK + 1], y[ASSAY_KERNEL_RANK];
  bool is_conv, swapped;
  assay_conv_t s;
} problem_t;

static assay_status_t describe(const problem_t* p, const int8_job_t* j, dnnl_primitive_desc_t* out,
                               dnnl_memory_desc_t* out_plain) {
  enum { SRC, WEIGHTS, DST, N };
  dnnl_memory_desc_t md[N] = {NULL};
  dnnl_primitive_attr_t attr = NULL;
  dnnl_engine_t engine;
  const bool last = p->is_conv;
  assay_status_t st = dnn_engine(&engine);
  if (!st) st = dnn_attr(&attr);
  if (!st) st = plain_md(p->rank, p->x, type_of(j->x_type), false, last, &md[SRC]);
  if (!st) st = plain_md(p->w_rank, p->w, dnnl_s8, p->swapped, false, out_plain);
  if (!st)
    st = j->weights ? any_md(p->w_rank, p->w, &md[WEIGHTS])
                    : plain_md(p->w_rank, p->w, dnnl_s8, p->swapped, false, &md[WEIGHTS]);
  if (!st) st = plain_md(p->rank, p->y, dnnl_s32, false, last, &md[DST]);
  if (!st && p->is_conv) {
    dnn_window_t w;
    dnn_window(&p->s.w, &w);
    st = dnn_described(
        dnnl_convolution_forward_primitive_desc_create(
            out, engine, dnnl_forward_inference, dnnl_convolution_direct, md[SRC], md[WEIGHTS],
            NULL, md[DST], w.strides, w.dilations, w.before, w.behind, attr),
        "describing a convolution", out);
  } else if (!st) {
    st = dnn_described(
        dnnl_matmul_primitive_desc_create(out, engine, md[SRC], md[WEIGHTS], NULL, md[DST], attr),
        "describing a matrix product", out);
  }
  dnn_free(N, md, attr);
  return st;
}

static assay_status_t read_conv(const int8_job_t* j, problem_t* p, bool* out_ok) {
  p->rank = j->x->rank;
  *out_ok = p->rank >= 3 && p->rank <= 5 && j->weights;
  if (!*out_ok) return NULL;
  ASSAY_TRY(int8_conv_read(j, &p->s, out_ok));
  memcpy(p->x, j->x->dims, sizeof p->x);
  memcpy(p->y, j->l->out[0].dims, sizeof p->y);
  if (p->s.group > 1) p->w[p->w_rank++] = p->s.group;
  p->w[p->w_rank++] = p->s.mg;
  p->w[p->w_rank++] = p->s.cg;
  for (int i = 0; i < p->s.w.rank; i++) p->w[p->w_rank++] = p->s.w.axis[i].kernel;
  return NULL;
}

static bool read_product(const int8_job_t* j, onednn_t* k, problem_t* p) {
  if (!int8_is_product(j->anchor) || !int8_product_read(j, &k->p)) return false;
  const int8_product_t* q = &k->p;
  int n = 0;
  if (!q->shared) {
    p->x[n] = p->w[n] = p->y[n] = q->batch;
    n++;
  }
  p->x[n] = p->y[n] = q->shared ? q->batch * q->m : q->m;
  p->x[n + 1] = p->w[n] = q->k;
  p->w[n + 1] = p->y[n + 1] = q->n;
  p->rank = p->w_rank = n + 2;
  p->swapped = q->swapped;
  return true;
}

// Room after the primitive's own scratch memory: column sums, and weights as signed numbers.
static void plan_scratch(onednn_t* k, const_dnnl_primitive_desc_t d, bool reads) {
  const size_t own =
      dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0));
  const int64_t matrices = k->p.shared ? 1 : k->p.batch;
  k->own_scratch = (own + 63) / 64 * 64;
  k->base.sum_scratch = k->own_scratch;
  if (reads)
    k->base.sum_scratch +=
        (size_t)(matrices * k->p.n) * sizeof(int32_t) + (size_t)(matrices * k->p.n * k->p.k);
}

static assay_status_t take_taps(onednn_t* k, int8_job_t* j, const problem_t* p, bool* out_ok) {
  k->x_input = (int)(j->x - j->l->in);
  k->w_input = -1;
  k->x_type = j->x_type;
  k->w_type = j->w_type;
  k->zero_x = j->zero_x;
  k->zero_w = j->zero_w;
  if (p->is_conv) return int8_conv_taps(&k->base, j, &p->s);
  if (j->weights) return int8_product_taps(&k->base, j, &k->p, out_ok);
  k->w_input = (int)(j->w - j->l->in);
  // One input in one form; sums of differences in int32.
  *out_ok = !k->base.base.in[k->w_input].type && j->zero_input < 0 &&
            k->p.k <= INT32_MAX / (4 * 255 * 255);
  k->base.base.in[k->w_input] = (assay_storage_t){j->w_type, ASSAY_LAYOUT_PLAIN};
  return NULL;
}

static assay_status_t build(int8_kernel_t* base, int8_job_t* j, bool* out_ok) {
  onednn_t* k = (onednn_t*)base;
  problem_t p = {.is_conv = int8_is_conv(j->anchor)};
  dnnl_primitive_desc_t d = NULL;
  dnnl_memory_desc_t plain = NULL;
  *out_ok = !j->weights || j->fits_int8;
  if (*out_ok && p.is_conv) ASSAY_TRY(read_conv(j, &p, out_ok));
  if (*out_ok && !p.is_conv) *out_ok = read_product(j, k, &p);
  if (!*out_ok) return NULL;
  ASSAY_TRY(int8_kernel_init(&k->base, j,
                             p.is_conv ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN, out_ok));
  if (*out_ok) ASSAY_TRY(take_taps(k, j, &p, out_ok));
  if (!*out_ok) return NULL;
  assay_status_t st = describe(&p, j, &d, &plain);
  *out_ok = d != NULL;
  if (!st && d) st = dnn_check(dnnl_primitive_create(&k->primitive, d), "a primitive");
  if (!st && d) st = memory(d, dnnl_query_src_md, &k->src);
  if (!st && d) st = memory(d, dnnl_query_weights_md, &k->weights);
  if (!st && d) st = memory(d, dnnl_query_dst_md, &k->dst);
  if (!st && d) st = memory(d, dnnl_query_scratchpad_md, &k->scratchpad);
  if (!st && d && j->weights) st = pack(k, d, plain, j->weights, j->n_weights);
  if (!st && d) {
    plan_scratch(k, d, !j->weights);
    k->base.sum = j->weights ? sum_constant : sum_read;
    int8_kernel_ready(&k->base);
  }
  if (plain) dnnl_memory_desc_destroy(plain);
  if (d) dnnl_primitive_desc_destroy(d);
  return st;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return has_vnni() ? int8_make(l, sizeof(onednn_t), NULL, build, close_onednn, out) : NULL;
}

const assay_tactic_t cpu_tactic_int8_onednn = {
    .name = "int8_onednn",
    .source = "onednn",
    .numerics = "integers",
    .make = make,
    .rounding = INT8_ROUNDING,
};
#endif
