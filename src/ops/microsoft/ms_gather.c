// GatherBlockQuantized of com.microsoft: rows of a table that is quantized in blocks, as floats.
#include <string.h>

#include "ops/families.h"
#include "ops/running_bound.h"

enum { DATA, INDICES, SCALES, ZEROS };

// How the numbers of the table lie in its tensor.
typedef struct table {
  int rank, gather_axis, block_axis;
  int64_t dims[ASSAY_MAX_RANK];  // in numbers, not in bytes
  int64_t bits, per_elem;        // numbers in an element of the tensor
  int64_t block;                 // 0: the whole axis
  double zero;                   // where there are no zero points
} table_t;

static assay_status_t read_axis(const assay_node_t* n, const char* name, int64_t otherwise,
                                int rank, int* out) {
  const int64_t axis = assay_attr_i64(n, name, otherwise);
  if (axis < -rank || axis >= rank) {
    return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT, "%s is %lld; expected one of [%d, %d)", name,
                            (long long)axis, -rank, rank);
  }
  *out = (int)(axis < 0 ? axis + rank : axis);
  return NULL;
}

// What the attributes and the type of the table say; dims are not set.
static assay_status_t read_form(const assay_node_t* n, assay_type_t type, int rank, table_t* out) {
  table_t t = {.rank = rank, .bits = 4, .per_elem = 1};
  ASSAY_TRY(read_axis(n, "gather_axis", 0, rank, &t.gather_axis));
  ASSAY_TRY(read_axis(n, "quantize_axis", 1, rank, &t.block_axis));
  t.block = assay_attr_i64(n, "block_size", 128);
  const bool whole = t.block == 0 && assay_type_is_float(type);
  if (!whole && (t.block < 16 || (t.block & (t.block - 1)) != 0)) {
    return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT,
                            "block_size is %lld; expected a power of two of at least 16",
                            (long long)t.block);
  }
  if (type == ASSAY_TYPE_UINT8) {
    t.bits = assay_attr_i64(n, "bits", 4);
    if (t.bits != 2 && t.bits != 4 && t.bits != 8) {
      return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT, "bits is %lld; expected 2, 4 or 8",
                              (long long)t.bits);
    }
    t.per_elem = 8 / t.bits;
    t.zero = (double)(1 << (t.bits - 1));
    if (t.gather_axis != 0 || (t.bits < 8 && t.block_axis == 0)) {
      return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT,
                              "gather_axis is %d, quantize_axis %d; uint8 data are gathered from "
                              "axis 0, and packed ones quantized along another",
                              t.gather_axis, t.block_axis);
    }
  }
  *out = t;
  return NULL;
}

// ---- inference --------------------------------------------------------------------------------

static assay_status_t gather_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, DATA, 1, ASSAY_MAX_RANK));
  const assay_shape_t data = assay_infer_shape(c, DATA), indices = assay_infer_shape(c, INDICES);
  const assay_type_t type = assay_infer_elem(c, SCALES);
  if (!data.known || !indices.known) return assay_infer_set(c, 0, type, NULL);
  ASSAY_TRY(assay_infer_want_rank(c, SCALES, data.rank, data.rank));
  table_t t;
  ASSAY_TRY(read_form(c->node, assay_infer_elem(c, DATA), data.rank, &t));
  if (data.rank + indices.rank - 1 > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "output would have rank %d, over %d",
                            data.rank + indices.rank - 1, ASSAY_MAX_RANK);
  }
  assay_shape_t y = {.known = true};
  for (int i = 0; i < data.rank; i++) {
    if (i == t.gather_axis) {
      for (int j = 0; j < indices.rank; j++) y.dims[y.rank++] = indices.dims[j];
    } else {
      const bool packed = i == data.rank - 1 && t.per_elem > 1;
      y.dims[y.rank++] = packed ? assay_dim_mul_i(c->dims, data.dims[i], t.per_elem) : data.dims[i];
    }
  }
  return assay_infer_set(c, 0, type, &y);
}

// ---- evaluation -------------------------------------------------------------------------------

static int64_t blocks_of(const table_t* t, int axis) {
  if (axis != t->block_axis) return t->dims[axis];
  if (t->block == 0) return t->dims[axis] > 0 ? 1 : 0;
  return t->dims[axis] / t->block + (t->dims[axis] % t->block != 0);
}

// Scales: one a block; of float types, a dimension of 1 repeats. Zero points: as many, packed in
// rows as the table is.
static assay_status_t check_scales(const assay_eval_t* c, const table_t* t, int64_t* strides) {
  const assay_tensor_t *s = c->in[SCALES], *data = c->in[DATA];
  const assay_tensor_t* z = assay_eval_has(c, ZEROS) ? c->in[ZEROS] : NULL;
  const bool repeats = assay_type_is_float(data->type);
  bool fits = s->rank == t->rank && (!z || (!repeats && z->rank == t->rank));
  int64_t stride = 1;
  for (int i = t->rank - 1; fits && i >= 0; i--) {
    const int64_t n = blocks_of(t, i);
    fits = s->dims[i] == n || (repeats && i != t->block_axis && s->dims[i] == 1);
    strides[i] = s->dims[i] == 1 && n != 1 ? 0 : stride;
    stride *= s->dims[i];
    if (!z) continue;
    const bool last = i == t->rank - 1;
    fits = fits && z->dims[i] == (last ? (n + t->per_elem - 1) / t->per_elem : n);
  }
  if (fits) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "data has shape %s, scales %s, zero points %s; expected a scale for each "
                          "%lld indices of axis %d, zero points alike%s",
                          ASSAY_DIMS_TEXT(data), ASSAY_DIMS_TEXT(s),
                          z ? ASSAY_DIMS_TEXT(z) : "none", (long long)t->block, t->block_axis,
                          repeats ? " (none for this type)" : "");
}

// Number `at` of row `row`, where rows of n numbers lie packed in elements.
static int64_t code(const assay_tensor_t* t, const table_t* f, int64_t row, int64_t n, int64_t at) {
  const int64_t per_row = (n + f->per_elem - 1) / f->per_elem;
  const int64_t v = assay_i64(t)[row * per_row + at / f->per_elem];
  if (f->per_elem == 1) return v;
  return (v >> (at % f->per_elem * f->bits)) & ((1 << f->bits) - 1);
}

// One number of the table, at these coordinates.
static double dequantize(const assay_eval_t* c, const table_t* t, const int64_t* strides,
                         const int64_t* at) {
  const int last = t->rank - 1;
  int64_t scale = 0, row = 0, zero_row = 0;
  for (int i = 0; i < t->rank; i++) {
    const int64_t block = i != t->block_axis ? at[i] : t->block == 0 ? 0 : at[i] / t->block;
    scale += block * strides[i];
    if (i == last) break;
    row = row * t->dims[i] + at[i];
    zero_row = zero_row * blocks_of(t, i) + block;
  }
  const double s = assay_f64(c->in[SCALES])[scale];
  const assay_tensor_t* data = c->in[DATA];
  if (data->store == ASSAY_STORE_F64) {
    return assay_acc(c, assay_f64(data)[row * t->dims[last] + at[last]] * s);
  }
  double zero = t->zero;
  if (assay_eval_has(c, ZEROS)) {
    const int64_t block = last == t->block_axis ? at[last] / t->block : at[last];
    zero = (double)code(c->in[ZEROS], t, zero_row, blocks_of(t, last), block);
  }
  return assay_acc(c, ((double)code(data, t, row, t->dims[last], at[last]) - zero) * s);
}

// Source: com.microsoft GatherBlockQuantized 1. An index out of range gives zeros.
static assay_status_t gather_eval(assay_eval_t* c) {
  const assay_tensor_t *data = c->in[DATA], *indices = c->in[INDICES];
  if (data->rank < 1 || data->rank + indices->rank - 1 > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "data has shape %s, indices %s; expected a rank of 1 or more, together "
                            "at most %d",
                            ASSAY_DIMS_TEXT(data), ASSAY_DIMS_TEXT(indices), ASSAY_MAX_RANK);
  }
  table_t t;
  int64_t strides[ASSAY_MAX_RANK], dims[ASSAY_MAX_RANK];
  ASSAY_TRY(read_form(c->node, data->type, data->rank, &t));
  memcpy(t.dims, data->dims, (size_t)t.rank * sizeof *t.dims);
  if (!assay_mul_i64(t.dims[t.rank - 1], t.per_elem, &t.dims[t.rank - 1])) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "data has shape %s, which is too large", ASSAY_DIMS_TEXT(data));
  }
  ASSAY_TRY(check_scales(c, &t, strides));
  int rank = 0;
  for (int i = 0; i < t.rank; i++) {
    if (i != t.gather_axis) dims[rank++] = t.dims[i];
    for (int j = 0; i == t.gather_axis && j < indices->rank; j++) dims[rank++] = indices->dims[j];
  }
  assay_tensor_t* y = NULL;
  ASSAY_TRY(
      assay_eval_output(c, 0, assay_eval_out_type(c, 0, c->in[SCALES]->type), rank, dims, &y));
  const int64_t inner = assay_dims_product(t.dims, t.gather_axis + 1, t.rank);
  const int64_t rows = inner > 0 ? y->size / inner : 0, size = t.dims[t.gather_axis];
#pragma omp parallel for schedule(static) if (rows > 1 && y->size > 10000)
  for (int64_t r = 0; r < rows; r++) {
    double* to = assay_f64(y) + r * inner;
    int64_t index = assay_i64(indices)[r % indices->size], outer = r / indices->size;
    if (index < -size || index >= size) {
      memset(to, 0, (size_t)inner * sizeof *to);
      continue;
    }
    int64_t at[ASSAY_MAX_RANK] = {0};
    for (int i = t.gather_axis - 1; i >= 0; outer /= t.dims[i--]) at[i] = outer % t.dims[i];
    at[t.gather_axis] = index < 0 ? index + size : index;
    for (int64_t j = 0; j < inner; j++) {
      to[j] = dequantize(c, &t, strides, at);
      for (int i = t.rank - 1; i > t.gather_axis && ++at[i] == t.dims[i]; i--) at[i] = 0;
    }
  }
  return NULL;
}

// The product with the scale is rounded once; differences of codes are exact.
static assay_status_t gather_bound(assay_bound_t* b) {
  const double u = assay_rounding_steps(b->rounding).u;
  return assay_bound_monotone(b, (assay_factor_t){u, u});
}

static void gather_cost(const assay_eval_t* c, assay_cost_t* out) {
  const double n = c->n_out > 0 && c->out[0] ? (double)c->out[0]->size : 0;
  out->flops = 2 * n;
  out->bytes = 6 * n;  // rows of the table, not the table
}

const assay_op_t assay_ops_ms_gather[] = {
    {.domain = "com.microsoft",
     .name = "GatherBlockQuantized",
     .since = 1,
     .infer = gather_infer,
     .eval = gather_eval,
     .bound = gather_bound,
     .cost = gather_cost,
     .schema = "data:T1, indices:Tind, scales:T2, zero_points?:T1 -> output:T2 | gather_axis:i=0, "
               "quantize_axis:i=1, block_size:i=128, bits:i=4 | T1=int4 uint4 uint8 float8e4m3fn "
               "float8e4m3fnuz float8e5m2 float8e5m2fnuz float4e2m1; T2=float float16 bfloat16; "
               "Tind=int32 int64"},
    {0}};
