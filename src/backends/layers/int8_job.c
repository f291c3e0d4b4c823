// What backends read of layers with a contraction on 8-bit integers.
#include "backends/layers/int8_job.h"

#include <string.h>

#include "base/alloc.h"
#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

bool int8_is(const assay_node_t* n, const char* op_type) {
  return !*n->domain && strcmp(n->op_type, op_type) == 0;
}

bool int8_is_conv(const assay_node_t* n) {
  return int8_is(n, "Conv") || int8_is(n, "ConvInteger") || strcmp(n->op_type, "QLinearConv") == 0;
}

bool int8_is_product(const assay_node_t* n) {
  return int8_is(n, "MatMul") || int8_is(n, "Gemm") || int8_is(n, "MatMulInteger") ||
         int8_is(n, "QLinearMatMul");
}

// ---- reading a layer ----------------------------------------------------------------------------

static bool is_8bit(assay_type_t t) { return t == ASSAY_TYPE_INT8 || t == ASSAY_TYPE_UINT8; }

void int8_job_close(int8_job_t* j) {
  assay_arena_destroy(j->arena);
  assay_free(j->weights);
  assay_free(j->zeros_w);
  *j = (int8_job_t){0};
}

// n weights side by side less their zero points, or all less one; zeros NULL: that.
CLONES
static void center_run(const int64_t* from, int64_t n, const int32_t* zeros, int32_t zero,
                       int16_t* to, int64_t* min, int64_t* max) {
  int64_t least = *min, most = *max;
#pragma omp simd reduction(min : least) reduction(max : most)
  for (int64_t i = 0; i < n; i++) {
    const int64_t w = from[i] - (zeros ? zeros[i] : zero);
    to[i] = (int16_t)w;
    least = w < least ? w : least;
    most = w > most ? w : most;
  }
  *min = least;
  *max = most;
}

// Adds what sizes of weights can come to.
CLONES
static void add_sizes(const int16_t* w, int64_t n, int64_t* size) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) size[i] += w[i] < 0 ? -w[i] : w[i];
}
CLONES
static int64_t sum_of_sizes(const int16_t* w, int64_t n) {
  int64_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += w[i] < 0 ? -w[i] : w[i];
  return sum;
}

// Weights less their zero points; they lie as [outer][channels][inner].
static assay_status_t center(int8_job_t* j, const assay_tensor_t* t, const int32_t* zeros,
                             int64_t n_zeros) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen((assay_tensor_t*)(uintptr_t)t, &wide));
  assay_status_t st = assay_new_array((size_t)t->size, sizeof *j->weights, &j->weights);
  const int64_t n = j->dims[j->weight_axis];
  const int64_t inner = assay_dims_product(j->dims, j->weight_axis + 1, j->rank);
  int64_t min = 0, max = 0;
  j->n_weights = t->size;
  const int64_t step = inner == 1 ? n : inner;  // weights side by side: of all channels, or of one
  for (int64_t at = 0, c = 0; !st && at < t->size; at += step, c = c + 1 < n ? c + 1 : 0) {
    const bool each = inner == 1 && n_zeros > 1;
    center_run(assay_i64(wide) + at, step, each ? zeros : NULL, zeros[n_zeros > 1 ? c : 0],
               j->weights + at, &min, &max);
  }
  j->fits_int8 = min >= -128 && max <= 127;
  assay_tensor_release(wide);
  return st;
}

// Whether no sum of products of any input, nor one that leaves out the zero point of x, passes
// int32.
static assay_status_t sums_fit(const int8_job_t* j, bool* out_fit) {
  int64_t* size = NULL;
  const int64_t n = j->dims[j->weight_axis];
  const int64_t inner = assay_dims_product(j->dims, j->weight_axis + 1, j->rank);
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *size, &size));
  for (int64_t at = 0; inner == 1 && at < j->n_weights; at += n)
    add_sizes(j->weights + at, n, size);
  for (int64_t at = 0, c = 0; inner > 1 && at < j->n_weights;
       at += inner, c = c + 1 < n ? c + 1 : 0)
    size[c] += sum_of_sizes(j->weights + at, inner);
  *out_fit = true;
  for (int64_t c = 0; c < n; c++) {
    int64_t max = size[c] * 255 * 2;
    const int64_t bias = j->q && j->q->bias ? j->q->bias[c] : 0;
    max += bias < 0 ? -bias : bias;
    *out_fit &= max <= INT32_MAX;
  }
  assay_free(size);
  return NULL;
}

// The zero point of ConvInteger and MatMulInteger: one number, known or not.
static bool integer_zero(const int8_job_t* j, size_t i, int32_t* out, int* out_input) {
  const assay_node_t* n = j->anchor;
  *out = 0;
  *out_input = -1;
  if (i >= n->n_inputs || !n->inputs[i]) return true;
  const assay_operand_t* o = assay_sized_input(j->l, n->inputs[i]);
  if (!o || o->size != 1 || !is_8bit(o->type)) return false;
  if (!o->constant) {
    *out_input = (int)(o - j->l->in);
    return true;
  }
  const assay_tensor_t* t = o->constant;
  if (t->store == ASSAY_STORE_I64)
    *out = (int32_t)assay_i64(t)[0];
  else if (o->type == ASSAY_TYPE_INT8)
    *out = *(const int8_t*)t->data;
  else
    *out = *(const uint8_t*)t->data;
  return true;
}

// Constant zero points of constant weights, one for each column or channel that is made: a vector,
// or [1..., n]. False where they are of another kind.
static bool are_by_column(const int8_job_t* j, const assay_operand_t* o) {
  if (!o || !o->constant || o->size < 2 || !is_8bit(o->type) || !j->w->constant || j->w->rank < 2)
    return false;
  const bool conv = int8_is_conv(j->anchor);
  return o->dims[o->rank - 1] == o->size && (!conv || o->rank == 1) &&
         o->size == j->w->dims[conv ? 0 : j->w->rank - 1];
}

static assay_status_t read_columns(int8_job_t* j, const assay_operand_t* o) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen((assay_tensor_t*)(uintptr_t)o->constant, &wide));
  assay_status_t st = assay_new_array((size_t)o->size, sizeof *j->zeros_w, &j->zeros_w);
  for (int64_t i = 0; !st && i < o->size; i++) j->zeros_w[i] = (int32_t)assay_i64(wide)[i];
  j->n_zeros_w = o->size;
  assay_tensor_release(wide);
  return st;
}

static assay_status_t open_integer(int8_job_t* j, bool* out_is) {
  const assay_node_t* n = j->anchor;
  int dynamic;
  *out_is = false;
  j->x = assay_sized_input(j->l, n->inputs[0]);
  j->w = assay_sized_input(j->l, n->inputs[1]);
  if (!j->x || !j->w || !is_8bit(j->x->type) || !is_8bit(j->w->type) ||
      j->l->out[0].type != ASSAY_TYPE_INT32 || !integer_zero(j, 2, &j->zero_x, &j->zero_input))
    return NULL;
  const assay_operand_t* zeros =
      n->n_inputs > 3 && n->inputs[3] ? assay_sized_input(j->l, n->inputs[3]) : NULL;
  if (are_by_column(j, zeros))
    ASSAY_TRY(read_columns(j, zeros));
  else if (!integer_zero(j, 3, &j->zero_w, &dynamic) || dynamic >= 0)
    return NULL;
  if (j->zero_input >= 0) j->zero_type = j->l->in[j->zero_input].type;
  j->x_type = j->x->type;
  j->w_type = j->w->type;
  *out_is = true;
  return NULL;
}

// With what is said about the layer in ops/quant/int8.h.
static assay_status_t open_described(int8_job_t* j, bool* out_is) {
  const assay_layer_t* layer = j->l->layer;
  assay_int8_t* own = NULL;
  assay_tensor_t* weights = NULL;
  *out_is = false;
  if (!layer->int8) {
    const char* op = layer->nodes[0]->op_type;
    if (layer->n_nodes != 1 || strncmp(op, "QLinear", 7) != 0) return NULL;
    if (layer->format != ASSAY_FORMAT_FP32) return NULL;
    ASSAY_TRY(assay_arena_create(&j->arena));
    ASSAY_TRY(assay_int8_read(j->arena, layer->nodes, 1, &own, &weights));
    assay_tensor_release(weights);  // QLinear operators quantize none
  }
  j->q = own ? own : layer->int8;
  if (!j->q || !j->q->anchor) return NULL;
  j->anchor = j->q->anchor;
  j->x = assay_sized_input(j->l, j->q->x.value);
  j->w = j->q->w.value ? assay_sized_input(j->l, j->q->w.value) : NULL;
  j->x_type = j->q->x.type;
  j->w_type = j->q->w.type;
  j->zero_x = j->q->x.zeros[0];
  j->zero_w = j->q->w.zeros[0];
  *out_is = j->x && j->x->type == j->x_type && (j->w || j->q->w.constant);
  return NULL;
}

static int axis_of(const int8_job_t* j) {
  if (int8_is_conv(j->anchor)) return 0;
  if (int8_is(j->anchor, "ConvTranspose")) return 1;
  return int8_is(j->anchor, "Gemm") && assay_attr_i64(j->anchor, "transB", 0) ? 0 : j->rank - 1;
}

static assay_status_t read_weights(int8_job_t* j, bool* out_is) {
  const assay_tensor_t* t = j->q ? j->q->w.constant : j->w->constant;
  const int32_t* zeros = j->q ? j->q->w.zeros : j->zeros_w ? j->zeros_w : &j->zero_w;
  const int64_t n_zeros = j->q ? j->q->w.n_zeros : j->zeros_w ? j->n_zeros_w : 1;
  if (t && (t->rank < 2 || t->rank > ASSAY_KERNEL_RANK || !t->size)) return *out_is = false, NULL;
  j->rank = t ? t->rank : j->w->rank;
  if (j->rank < 2) return *out_is = false, NULL;
  memcpy(j->dims, t ? t->dims : j->w->dims, (size_t)j->rank * sizeof *j->dims);
  j->weight_axis = axis_of(j);
  const int64_t group =
      int8_is(j->anchor, "ConvTranspose") ? assay_attr_i64(j->anchor, "group", 1) : 1;
  j->channels = j->dims[j->weight_axis] * group;
  if (!t) return NULL;
  ASSAY_TRY(center(j, t, zeros, n_zeros));
  return sums_fit(j, out_is);
}

assay_status_t int8_job_open(const assay_sized_layer_t* l, bool (*wants)(const int8_job_t* j),
                             int8_job_t* out, bool* out_is) {
  int8_job_t j = {.l = l, .zero_input = -1, .anchor = l->layer->nodes[0]};
  *out_is = false;
  if (l->n_out != 1 || !l->out[0].value || !l->out[0].size || l->out[0].rank < 2) return NULL;
  const bool integer = l->layer->n_nodes == 1 &&
                       (int8_is(j.anchor, "ConvInteger") || int8_is(j.anchor, "MatMulInteger"));
  assay_status_t st = integer ? open_integer(&j, out_is) : open_described(&j, out_is);
  if (!st && *out_is && (!j.x->size || j.x->rank < 2)) *out_is = false;
  if (!st && *out_is && wants) *out_is = wants(&j);
  if (!st && *out_is) st = read_weights(&j, out_is);
  if (st || !*out_is) return int8_job_close(&j), st;
  *out = j;
  return NULL;
}

// ---- geometry -----------------------------------------------------------------------------------

assay_status_t int8_conv_read(const int8_job_t* j, assay_conv_t* out, bool* out_fits) {
  assay_tensor_t x = {.kind = ASSAY_KIND_TENSOR, .rank = j->x->rank, .size = j->x->size};
  assay_tensor_t w = {.kind = ASSAY_KIND_TENSOR, .rank = j->rank, .size = j->n_weights};
  memcpy(x.dims, j->x->dims, (size_t)x.rank * sizeof *x.dims);
  memcpy(w.dims, j->dims, (size_t)w.rank * sizeof *w.dims);
  ASSAY_TRY(assay_conv_read(j->anchor, &x, &w, NULL, false, out));
  *out_fits = out->n * out->m * out->out_size == j->l->out[0].size;
  return NULL;
}

assay_status_t int8_transposed_read(const int8_job_t* j, assay_conv_transpose_t* out,
                                    bool* out_fits) {
  assay_tensor_t x = {.kind = ASSAY_KIND_TENSOR, .rank = j->x->rank, .size = j->x->size};
  assay_tensor_t w = {.kind = ASSAY_KIND_TENSOR, .rank = j->rank, .size = j->n_weights};
  memcpy(x.dims, j->x->dims, (size_t)x.rank * sizeof *x.dims);
  memcpy(w.dims, j->dims, (size_t)w.rank * sizeof *w.dims);
  ASSAY_TRY(assay_conv_transpose_read(j->anchor, &x, &w, NULL, j->anchor->op->since, out));
  *out_fits = out->n * out->m * out->out_size == j->l->out[0].size;
  return NULL;
}

// Dimensions in front of the last two that are alike, or 1 in all of the weights.
bool int8_product_read(const int8_job_t* j, int8_product_t* out) {
  const assay_operand_t *x = j->x, *y = &j->l->out[0];
  const bool gemm = int8_is(j->anchor, "Gemm");
  if (gemm && assay_attr_i64(j->anchor, "transA", 0)) return false;
  if (x->rank < 1 || j->rank < 2 || y->rank < 2 || !x->size) return false;
  int8_product_t p = {.batch = 1, .swapped = gemm && assay_attr_i64(j->anchor, "transB", 0)};
  p.k = x->dims[x->rank - 1];
  p.n = j->dims[j->rank - (p.swapped ? 2 : 1)];
  if (j->dims[j->rank - (p.swapped ? 1 : 2)] != p.k) return false;
  p.shared = assay_dims_product(j->dims, 0, j->rank - 2) == 1;
  if (p.shared) {
    p.m = x->size / p.k;
  } else {
    if (x->rank != j->rank) return false;
    p.m = x->dims[x->rank - 2];
    for (int i = 0; i < x->rank - 2; i++) {
      if (x->dims[i] != j->dims[i]) return false;
      p.batch *= x->dims[i];
    }
  }
  *out = p;
  return y->dims[y->rank - 1] == p.n && p.batch * p.m * p.n == y->size;
}

// ---- operands of the epilogue -------------------------------------------------------------------

static void memory_dims(const assay_operand_t* o, int rank, assay_layout_t layout, int64_t* dims) {
  for (int i = 0; i < rank; i++) dims[i] = i < rank - o->rank ? 1 : o->dims[i - (rank - o->rank)];
  if (layout != ASSAY_LAYOUT_CHANNELS_LAST || rank < 3) return;
  const int64_t channels = dims[1];
  for (int i = 1; i + 1 < rank; i++) dims[i] = dims[i + 1];
  dims[rank - 1] = channels;
}

// Broadcast as [1..., outer, 1..., n, 1...] of the output's [repeats, outer, middle, n, inner].
bool int8_stream_find(const assay_operand_t* o, const assay_operand_t* y, assay_layout_t layout,
                      int8_stream_t* s) {
  int64_t a[ASSAY_KERNEL_RANK] = {0}, b[ASSAY_KERNEL_RANK] = {0};
  if (o->rank > y->rank || (layout != ASSAY_LAYOUT_PLAIN && o->rank != y->rank && o->size != 1))
    return false;
  memory_dims(y, y->rank, layout, b);
  memory_dims(o, y->rank, layout, a);
  int end = y->rank;
  s->n = s->inner = 1;
  while (end > 0 && a[end - 1] == 1) s->inner *= b[--end];
  while (end > 0 && a[end - 1] == b[end - 1]) s->n *= b[--end];
  int64_t middle = 1;
  while (end > 0 && a[end - 1] == 1) middle *= b[--end];
  s->block = middle * s->n * s->inner;
  s->outer = 1;
  while (end > 0 && a[end - 1] == b[end - 1]) s->outer *= b[--end];
  s->whole = o->size == y->size;
  return s->outer * s->n == o->size;
}

// ---- quantizers ---------------------------------------------------------------------------------

// A constant's only number.
static bool number(const assay_operand_t* o, double otherwise, double* out) {
  assay_tensor_t* wide = NULL;
  *out = otherwise;
  if (!o) return true;
  if (!o->constant || o->size != 1) return false;
  assay_status_t st = assay_tensor_widen((assay_tensor_t*)(uintptr_t)o->constant, &wide);
  assay_status_free(st);
  if (st) return false;
  const bool ok = wide->store <= ASSAY_STORE_I64;
  if (ok) *out = wide->store == ASSAY_STORE_F64 ? assay_f64(wide)[0] : (double)assay_i64(wide)[0];
  assay_tensor_release(wide);
  return ok;
}

bool int8_quantizer_read(const assay_sized_layer_t* l, const assay_node_t* n, double* scale,
                         double* zero) {
  const bool has_zero = n->n_inputs > 2 && n->inputs[2];
  const assay_operand_t* z = has_zero ? assay_sized_input(l, n->inputs[2]) : NULL;
  const assay_operand_t* s = assay_sized_input(l, n->inputs[1]);
  return s && (z || !has_zero) && number(s, 1, scale) && number(z, 0, zero) &&
         s->type == ASSAY_TYPE_FLOAT;
}
