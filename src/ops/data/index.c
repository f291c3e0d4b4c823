// Gather, GatherElements, GatherND, Compress: copies of chosen slices.
//
// Each works out where its slices start in the data, with every index checked, and then copies them
// in one loop.
#include "ops/data/index.h"

#include <string.h>

#include "ops/content.h"
#include "ops/data/strided.h"
#include "ops/families.h"

enum { PARALLEL_ELEMS = 1 << 17 };

// ---- offsets ---------------------------------------------------------------------------------

assay_status_t assay_index_error(const assay_eval_t* c, const char* what, int64_t index,
                                 int64_t position, int dim, int64_t size) {
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input '%s' has index %lld at element %lld, dim %d of the data has size "
                          "%lld; expected %lld to %lld",
                          what, (long long)index, (long long)position, dim, (long long)size,
                          (long long)-size, (long long)size - 1);
}

static assay_status_t tuples_check(const assay_eval_t* c, const assay_tensor_t* data,
                                   const assay_tensor_t* indices, int batch_dims) {
  bool fits = data->rank >= 1 && indices->rank >= 1 && batch_dims >= 0 && batch_dims < data->rank &&
              batch_dims < indices->rank;
  if (fits) {
    fits = indices->dims[indices->rank - 1] <= data->rank - batch_dims;
    for (int i = 0; i < batch_dims; i++) fits = fits && data->dims[i] == indices->dims[i];
  }
  if (fits) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "indices %s do not fit data %s (batch_dims %d): the last dim of indices "
                          "may be at most the data's rank without batch dims, which must be equal",
                          ASSAY_DIMS_TEXT(indices), ASSAY_DIMS_TEXT(data), batch_dims);
}

assay_status_t assay_index_tuples(const assay_eval_t* c, const assay_tensor_t* data,
                                  const assay_tensor_t* indices, int batch_dims, int64_t* out_n,
                                  int64_t* out_slice, int64_t** out_offsets) {
  ASSAY_TRY(tuples_check(c, data, indices, batch_dims));
  int k = (int)indices->dims[indices->rank - 1];
  int64_t n = assay_dims_product(indices->dims, 0, indices->rank - 1);
  int64_t batches = assay_dims_product(data->dims, 0, batch_dims);
  int64_t per_batch = batches > 0 ? n / batches : 0;
  int64_t strides[ASSAY_MAX_RANK];
  assay_row_major(data->rank, data->dims, strides);
  int64_t batch_step = assay_dims_product(data->dims, batch_dims, data->rank);
  int64_t* offsets = NULL;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *offsets, &offsets));
  for (int64_t t = 0; t < n; t++) {
    int64_t at = per_batch > 0 ? t / per_batch * batch_step : 0;
    for (int i = 0; i < k; i++) {
      int64_t index = assay_i64(indices)[t * k + i], size = data->dims[batch_dims + i];
      if (!assay_index_ok(index, size)) {
        assay_free(offsets);
        return assay_index_error(c, "indices", index, t * k + i, batch_dims + i, size);
      }
      at += (index < 0 ? index + size : index) * strides[batch_dims + i];
    }
    offsets[t] = at;
  }
  *out_n = n;
  *out_slice = assay_dims_product(data->dims, batch_dims + k, data->rank);
  *out_offsets = offsets;
  return NULL;
}

assay_status_t assay_index_elements(const assay_eval_t* c, const assay_tensor_t* data,
                                    const assay_tensor_t* indices, int axis,
                                    int64_t** out_offsets) {
  bool fits = data->rank == indices->rank;
  for (int d = 0; fits && d < data->rank; d++) {
    fits = d == axis || indices->dims[d] <= data->dims[d];
  }
  if (!fits) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "indices %s do not fit data %s: rank must be equal and, but for axis "
                            "%d, no dim larger",
                            ASSAY_DIMS_TEXT(indices), ASSAY_DIMS_TEXT(data), axis);
  }
  int64_t strides[ASSAY_MAX_RANK], size = data->dims[axis];
  assay_row_major(data->rank, data->dims, strides);
  int64_t along = strides[axis];
  strides[axis] = 0;
  int64_t* offsets = NULL;
  ASSAY_TRY(assay_new_array((size_t)indices->size, sizeof *offsets, &offsets));
  assay_odometer_t o;
  assay_odometer_init(&o, indices->rank, indices->dims, strides);
  for (int64_t i = 0; i < indices->size; i++, assay_odometer_next(&o)) {
    int64_t index = assay_i64(indices)[i];
    if (!assay_index_ok(index, size)) {
      assay_free(offsets);
      return assay_index_error(c, "indices", index, i, axis, size);
    }
    offsets[i] = o.offset + (index < 0 ? index + size : index) * along;
  }
  *out_offsets = offsets;
  return NULL;
}

// ---- the copy --------------------------------------------------------------------------------

// Slice k of `out`, of `slice` elements, is what starts at offsets[k] in `in`. PACKED input: only
// the slices that are wanted are converted, which is what makes embedding tables cheap.
static assay_status_t copy_slices(const assay_tensor_t* in, int64_t n, const int64_t* offsets,
                                  int64_t slice, assay_tensor_t* out) {
  if (out->store == ASSAY_STORE_STR) {
    for (int64_t k = 0; k < n; k++) {
      ASSAY_TRY(assay_copy_run(in, offsets[k], out, k * slice, slice));
    }
    return NULL;
  }
  size_t elem = assay_store_elem_bytes(out->store), bytes = (size_t)slice * elem;
  bool packed = in->store == ASSAY_STORE_PACKED;
#pragma omp parallel for schedule(static) if (n > 1 && out->size > PARALLEL_ELEMS)
  for (int64_t k = 0; k < n; k++) {
    char* to = (char*)out->data + (size_t)k * bytes;
    if (packed) {
      assay_unpack(in->type, in->data, offsets[k], slice, to);
    } else if (bytes == sizeof(int64_t)) {
      memcpy(to, (const char*)in->data + (size_t)offsets[k] * sizeof(int64_t), sizeof(int64_t));
    } else {
      memcpy(to, (const char*)in->data + (size_t)offsets[k] * elem, bytes);
    }
  }
  return NULL;
}

// ---- Gather ----------------------------------------------------------------------------------

static assay_status_t gather_content(assay_infer_t* c) {
  assay_content_list_t data, indices;
  if (!assay_content_read(c, 0, &data) || !assay_content_read(c, 1, &indices)) return NULL;
  if (data.rank != 1) return NULL;
  for (int64_t i = 0; i < indices.n; i++) {
    int64_t at;
    if (!assay_dim_value(indices.elems[i], &at)) {
      indices.elems[i] = NULL;
    } else if (!assay_index_ok(at, data.n)) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input 'indices' has index %lld at element %lld, the data has %lld "
                              "elements",
                              (long long)at, (long long)i, (long long)data.n);
    } else {
      indices.elems[i] = data.elems[at < 0 ? at + data.n : at];
    }
  }
  return assay_content_write(c, 0, 0, &indices);
}

static assay_status_t rank_error(const assay_node_t* node, int rank) {
  return ASSAY_NODE_ERROR(node, ASSAY_UNSUPPORTED, "output would have rank %d, over %d", rank,
                          ASSAY_MAX_RANK);
}

static assay_status_t gather_infer(assay_infer_t* c) {
  assay_shape_t data = assay_infer_shape(c, 0), indices = assay_infer_shape(c, 1), out = {0};
  assay_type_t type = assay_infer_elem(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, ASSAY_MAX_RANK));
  int axis = 0;
  if (data.known) {
    ASSAY_TRY(assay_infer_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), data.rank,
                               &axis));
  }
  if (!data.known || !indices.known) return assay_infer_set(c, 0, type, NULL);
  out.known = true;
  if (data.rank + indices.rank - 1 > ASSAY_MAX_RANK) {
    return rank_error(c->node, data.rank + indices.rank - 1);
  }
  for (int i = 0; i < axis; i++) out.dims[out.rank++] = data.dims[i];
  for (int i = 0; i < indices.rank; i++) out.dims[out.rank++] = indices.dims[i];
  for (int i = axis + 1; i < data.rank; i++) out.dims[out.rank++] = data.dims[i];
  ASSAY_TRY(assay_infer_set(c, 0, type, &out));
  return gather_content(c);
}

// Source: ONNX Gather-13; negative indices (since 11) are taken in all versions.
static assay_status_t gather_eval(assay_eval_t* c) {
  const assay_tensor_t *data = c->in[0], *indices = c->in[1];
  int axis;
  ASSAY_TRY(
      assay_eval_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), data->rank, &axis));
  int64_t dims[ASSAY_MAX_RANK];
  int rank = data->rank + indices->rank - 1, k = 0;
  if (rank > ASSAY_MAX_RANK) return rank_error(c->node, rank);
  for (int i = 0; i < axis; i++) dims[k++] = data->dims[i];
  for (int i = 0; i < indices->rank; i++) dims[k++] = indices->dims[i];
  for (int i = axis + 1; i < data->rank; i++) dims[k++] = data->dims[i];
  int64_t size = data->dims[axis], m = indices->size, n;
  int64_t outer = assay_dims_product(data->dims, 0, axis);
  int64_t slice = assay_dims_product(data->dims, axis + 1, data->rank);
  for (int64_t i = 0; i < m; i++) {
    int64_t index = assay_i64(indices)[i];
    if (!assay_index_ok(index, size)) return assay_index_error(c, "indices", index, i, axis, size);
  }
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, data->type, rank, dims, &out));
  if (out->size == 0 || !assay_mul_i64(outer, m, &n)) return NULL;
  int64_t* offsets = NULL;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *offsets, &offsets));
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < m; i++) {
      int64_t index = assay_i64(indices)[i];
      offsets[o * m + i] = (o * size + (index < 0 ? index + size : index)) * slice;
    }
  }
  assay_status_t st = copy_slices(data, n, offsets, slice, out);
  assay_free(offsets);
  return st;
}

// ---- GatherElements --------------------------------------------------------------------------

static assay_status_t gather_elements_infer(assay_infer_t* c) {
  assay_shape_t data = assay_infer_shape(c, 0), out = assay_infer_shape(c, 1);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, ASSAY_MAX_RANK));
  if (data.known) {
    int axis;
    ASSAY_TRY(assay_infer_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), data.rank,
                               &axis));
    ASSAY_TRY(assay_infer_want_rank(c, 1, data.rank, data.rank));
    if (!out.known) out = (assay_shape_t){.known = true, .rank = data.rank};
  }
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), &out);
}

static assay_status_t gather_elements_eval(assay_eval_t* c) {
  const assay_tensor_t *data = c->in[0], *indices = c->in[1];
  int axis;
  ASSAY_TRY(
      assay_eval_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), data->rank, &axis));
  int64_t* offsets;
  ASSAY_TRY(assay_index_elements(c, data, indices, axis, &offsets));
  assay_tensor_t* out;
  assay_status_t st = assay_eval_output(c, 0, data->type, indices->rank, indices->dims, &out);
  if (!st) st = copy_slices(data, indices->size, offsets, 1, out);
  assay_free(offsets);
  return st;
}

// ---- GatherND --------------------------------------------------------------------------------

static assay_status_t gather_nd_infer(assay_infer_t* c) {
  assay_shape_t data = assay_infer_shape(c, 0), indices = assay_infer_shape(c, 1), out = {0};
  assay_type_t type = assay_infer_elem(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, ASSAY_MAX_RANK));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 1, ASSAY_MAX_RANK));
  int64_t b = assay_attr_i64(c->node, "batch_dims", 0), k;
  if (!data.known || !indices.known) return assay_infer_set(c, 0, type, NULL);
  if (b < 0 || b >= data.rank || b >= indices.rank) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "attribute batch_dims is %lld, data has rank %d and indices %d",
                            (long long)b, data.rank, indices.rank);
  }
  for (int i = 0; i < (int)b; i++) {
    if (!assay_dim_differ(data.dims[i], indices.dims[i])) continue;
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "batch dim %d is %s in data and %s in indices", i,
                            assay_dim_text(data.dims[i], (char[64]){0}, 64),
                            assay_dim_text(indices.dims[i], (char[64]){0}, 64));
  }
  if (!assay_dim_value(indices.dims[indices.rank - 1], &k)) {
    return assay_infer_set(c, 0, type, NULL);
  }
  if (k > data.rank - b) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "the last dim of indices is %lld, data has rank %d and batch_dims is "
                            "%lld",
                            (long long)k, data.rank, (long long)b);
  }
  int rank = indices.rank - 1 + data.rank - (int)(b + k);
  if (rank > ASSAY_MAX_RANK) return rank_error(c->node, rank);
  out.known = true;
  for (int i = 0; i < indices.rank - 1; i++) out.dims[out.rank++] = indices.dims[i];
  for (int i = (int)(b + k); i < data.rank; i++) out.dims[out.rank++] = data.dims[i];
  return assay_infer_set(c, 0, type, &out);
}

// Source: ONNX GatherND-12 (11 and com.microsoft have no batch_dims: 0).
static assay_status_t gather_nd_eval(assay_eval_t* c) {
  const assay_tensor_t *data = c->in[0], *indices = c->in[1];
  int64_t b = assay_attr_i64(c->node, "batch_dims", 0);
  if (b < 0 || b > ASSAY_MAX_RANK) b = ASSAY_MAX_RANK;  // refused with the shapes
  int64_t n, slice, *offsets;
  ASSAY_TRY(assay_index_tuples(c, data, indices, (int)b, &n, &slice, &offsets));
  int64_t dims[2 * ASSAY_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < indices->rank - 1; i++) dims[rank++] = indices->dims[i];
  int first = (int)b + (int)indices->dims[indices->rank - 1];
  for (int i = first; i < data->rank; i++) dims[rank++] = data->dims[i];
  assay_status_t st = rank > ASSAY_MAX_RANK ? rank_error(c->node, rank) : NULL;
  assay_tensor_t* out;
  if (!st) st = assay_eval_output(c, 0, data->type, rank, dims, &out);
  if (!st && out->size > 0) st = copy_slices(data, n, offsets, slice, out);
  assay_free(offsets);
  return st;
}

// ---- Compress --------------------------------------------------------------------------------

static assay_status_t compress_infer(assay_infer_t* c) {
  assay_shape_t out = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 1, 1, 1));
  const assay_tensor_t* condition = assay_infer_constant(c, 1);
  const assay_dim_t* count = NULL;
  if (condition) {
    int64_t n = 0;
    for (int64_t i = 0; i < condition->size; i++) n += assay_i64(condition)[i] != 0;
    count = assay_dim_const(c->dims, n);
  }
  int axis = 0;
  if (!assay_attr_has(c->node, "axis")) {
    out = (assay_shape_t){.known = true, .rank = 1};
  } else if (out.known) {
    ASSAY_TRY(
        assay_infer_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), out.rank, &axis));
  }
  if (out.known) out.dims[axis] = count ? count : assay_dim_fresh(c->dims, "compress");
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), &out);
}

// Source: ONNX Compress-9, -11. The condition may be shorter than the axis; where it is longer it
// must be false.
static assay_status_t compress_eval(assay_eval_t* c) {
  const assay_tensor_t *in = c->in[0], *condition = c->in[1];
  bool flat = !assay_attr_has(c->node, "axis");
  int axis = 0;
  ASSAY_TRY(assay_eval_want_rank(c, 1, 1, 1));
  if (!flat) {
    ASSAY_TRY(
        assay_eval_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), in->rank, &axis));
  }
  int64_t size = flat ? in->size : in->dims[axis], m = 0, n, dims[ASSAY_MAX_RANK];
  int64_t outer = flat ? 1 : assay_dims_product(in->dims, 0, axis);
  int64_t slice = flat ? 1 : assay_dims_product(in->dims, axis + 1, in->rank);
  for (int64_t i = 0; i < condition->size; i++) {
    if (!assay_i64(condition)[i]) continue;
    if (i >= size) return assay_index_error(c, "condition", i, i, axis, size);
    m++;
  }
  memcpy(dims, in->dims, sizeof dims);
  dims[axis] = m;
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, in->type, flat ? 1 : in->rank, dims, &out));
  if (out->size == 0 || !assay_mul_i64(outer, m, &n)) return NULL;
  int64_t* offsets = NULL;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *offsets, &offsets));
  int64_t k = 0;
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < size && i < condition->size; i++) {
      if (assay_i64(condition)[i]) offsets[k++] = (o * size + i) * slice;
    }
  }
  assay_status_t st = copy_slices(in, n, offsets, slice, out);
  assay_free(offsets);
  return st;
}

const assay_op_t assay_ops_index[] = {
    {.domain = "",
     .name = "Gather",
     .since = 1,
     .flags = ASSAY_OP_MOVES | ASSAY_OP_PACKED,
     .infer = gather_infer,
     .eval = gather_eval},
    {.domain = "",
     .name = "GatherElements",
     .since = 11,
     .flags = ASSAY_OP_MOVES,
     .infer = gather_elements_infer,
     .eval = gather_elements_eval},
    {.domain = "",
     .name = "GatherND",
     .since = 11,
     .flags = ASSAY_OP_MOVES | ASSAY_OP_PACKED,
     .infer = gather_nd_infer,
     .eval = gather_nd_eval},
    {.domain = "com.microsoft",
     .name = "GatherND",
     .since = 1,
     .flags = ASSAY_OP_MOVES | ASSAY_OP_PACKED,
     .schema = "data:T, indices:M -> output:T | | T=ALL; M=int32 int64",
     .infer = gather_nd_infer,
     .eval = gather_nd_eval},
    {.domain = "",
     .name = "Compress",
     .since = 9,
     .flags = ASSAY_OP_MOVES,
     .infer = compress_infer,
     .eval = compress_eval},
    {0}};
