// NonZero and OneHot: from elements to indices, and from indices to elements.
#include "ops/bound.h"
#include "ops/content.h"
#include "ops/data/strided.h"
#include "ops/families.h"

// ---- NonZero ---------------------------------------------------------------------------------

static assay_status_t nonzero_infer(assay_infer_t* c) {
  assay_shape_t in = assay_infer_shape(c, 0), out = {.known = true, .rank = 2};
  if (in.known) out.dims[0] = assay_dim_const(c->dims, in.rank);
  out.dims[1] = assay_dim_fresh(c->dims, "nonzero");
  return assay_infer_set(c, 0, ASSAY_TYPE_INT64, &out);
}

// NaN counts as not zero, as does a string that is not empty.
static bool is_set(const assay_tensor_t* t, int64_t i) {
  switch (t->store) {
    case ASSAY_STORE_F64:
      return assay_f64(t)[i] != 0;
    case ASSAY_STORE_I64:
      return assay_i64(t)[i] != 0;
    case ASSAY_STORE_C128:
      return assay_c128(t)[2 * i] != 0 || assay_c128(t)[2 * i + 1] != 0;
    default:
      return assay_strings(t)[i].len != 0;
  }
}

// Source: ONNX NonZero-9: [rank, n], so that a scalar gives [0, n].
static assay_status_t nonzero_eval(assay_eval_t* c) {
  const assay_tensor_t* in = c->in[0];
  int64_t n = 0, k = 0;
  for (int64_t i = 0; i < in->size; i++) n += is_set(in, i);
  int64_t dims[2] = {in->rank, n};
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_INT64, 2, dims, &out));
  int64_t none[ASSAY_MAX_RANK] = {0};
  assay_odometer_t o;
  assay_odometer_init(&o, in->rank, in->dims, none);
  for (int64_t i = 0; i < in->size; i++, assay_odometer_next(&o)) {
    if (!is_set(in, i)) continue;
    for (int d = 0; d < in->rank; d++) assay_i64(out)[d * n + k] = o.index[d];
    k++;
  }
  return NULL;
}

// ---- OneHot ----------------------------------------------------------------------------------

static assay_status_t onehot_axis(const assay_node_t* node, int rank, int* out) {
  int64_t axis = assay_attr_i64(node, "axis", -1);
  if (rank + 1 > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(node, ASSAY_UNSUPPORTED, "output would have rank %d", rank + 1);
  }
  if (axis < -rank - 1 || axis > rank) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "attribute axis is %lld, expected %d to %d", (long long)axis, -rank - 1,
                            rank);
  }
  *out = (int)(axis < 0 ? axis + rank + 1 : axis);
  return NULL;
}

static assay_status_t onehot_infer(assay_infer_t* c) {
  assay_shape_t in = assay_infer_shape(c, 0), out = {0};
  ASSAY_TRY(assay_infer_want_rank(c, 1, 0, 1));
  ASSAY_TRY(assay_infer_want_rank(c, 2, 1, 1));
  assay_type_t type = assay_infer_elem(c, 2);
  if (!in.known) return assay_infer_set(c, 0, type, NULL);
  int axis;
  ASSAY_TRY(onehot_axis(c->node, in.rank, &axis));
  out.known = true;
  out.rank = in.rank + 1;
  assay_content_list_t depth;
  bool known = assay_content_read_any(c, 1, &depth) && depth.n == 1;
  if (known && assay_dim_negative(depth.elems[0])) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input 'depth' is negative, expected 0 or more");
  }
  for (int i = 0, k = 0; i < out.rank; i++) {
    out.dims[i] = i == axis ? (known ? depth.elems[0] : NULL) : in.dims[k++];
  }
  return assay_infer_set(c, 0, type, &out);
}

// An element as an index, cast as ONNX says; false: no index at all (NaN, huge).
static bool as_index(const assay_tensor_t* t, int64_t i, int64_t* out) {
  if (t->store == ASSAY_STORE_I64) {
    *out = assay_i64(t)[i];
    return t->type != ASSAY_TYPE_UINT64 || *out >= 0;
  }
  double x = t->store == ASSAY_STORE_F64 ? assay_f64(t)[i] : 0;
  if (!(x > -9e18 && x < 9e18)) return false;
  *out = (int64_t)x;
  return true;
}

// from_end: indices may count from the end (since version 11).
static assay_status_t onehot_eval_as(assay_eval_t* c, bool from_end) {
  const assay_tensor_t *indices = c->in[0], *values = c->in[2];
  int axis;
  int64_t depth;
  ASSAY_TRY(assay_eval_want_rank(c, 1, 0, 1));
  ASSAY_TRY(onehot_axis(c->node, indices->rank, &axis));
  if (c->in[1]->size != 1 || !as_index(c->in[1], 0, &depth) || depth < 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input 'depth' of shape %s is not one number of 0 or more",
                            ASSAY_DIMS_TEXT(c->in[1]));
  }
  if (values->rank != 1 || values->size != 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input 'values' has shape %s, expected [2]", ASSAY_DIMS_TEXT(values));
  }
  int64_t dims[ASSAY_MAX_RANK];
  for (int i = 0, k = 0; i <= indices->rank; i++) dims[i] = i == axis ? depth : indices->dims[k++];
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, values->type, indices->rank + 1, dims, &out));
  ASSAY_TRY(assay_fill_from(out, values, 0));
  int64_t inner = assay_dims_product(indices->dims, axis, indices->rank);
  for (int64_t i = 0; i < indices->size && out->size > 0; i++) {
    int64_t at;
    if (!as_index(indices, i, &at) || at >= depth || at < (from_end ? -depth : 0)) continue;
    if (at < 0) at += depth;
    int64_t to = (i / inner * depth + at) * inner + i % inner;
    ASSAY_TRY(assay_copy_run(values, 1, out, to, 1));
  }
  return NULL;
}

// Source: ONNX OneHot-9: indices outside [0, depth) are off everywhere.
static assay_status_t onehot9_eval(assay_eval_t* c) { return onehot_eval_as(c, false); }
// Source: ONNX OneHot-11: [-depth, depth).
static assay_status_t onehot_eval(assay_eval_t* c) { return onehot_eval_as(c, true); }

const assay_op_t assay_ops_search[] = {{.domain = "",
                                        .name = "NonZero",
                                        .since = 9,
                                        .discrete = 1,
                                        .infer = nonzero_infer,
                                        .eval = nonzero_eval},
                                       {.domain = "",
                                        .name = "OneHot",
                                        .since = 9,
                                        .flags = ASSAY_OP_MOVES,
                                        .infer = onehot_infer,
                                        .eval = onehot9_eval,
                                        .bound = assay_bound_exact},
                                       {.domain = "",
                                        .name = "OneHot",
                                        .since = 11,
                                        .flags = ASSAY_OP_MOVES,
                                        .infer = onehot_infer,
                                        .eval = onehot_eval,
                                        .bound = assay_bound_exact},
                                       {0}};
