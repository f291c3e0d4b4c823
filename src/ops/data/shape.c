// Operators that ask for a shape or change it without moving an element: Shape, Size, Flatten,
// Squeeze, Unsqueeze, Identity (Reshape: reshape.c; Expand, Constant and others that fill: fill.c).
#include "ops/content.h"
#include "ops/families.h"

// ---- Shape, Size -----------------------------------------------------------------------------

// The part of the shape that start and end choose. Source: ONNX Shape-15.
static void shape_part(const assay_node_t* node, int rank, int* out_from, int* out_to) {
  int64_t from = assay_attr_i64(node, "start", 0);
  int64_t to = assay_attr_has(node, "end") ? assay_attr_i64(node, "end", 0) : rank;
  if (from < 0) from += rank;
  if (to < 0) to += rank;
  from = from < 0 ? 0 : from > rank ? rank : from;
  to = to < 0 ? 0 : to > rank ? rank : to;
  *out_from = (int)from;
  *out_to = to < from ? (int)from : (int)to;
}

static assay_status_t shape_infer(assay_infer_t* c) {
  assay_shape_t in = assay_infer_shape(c, 0), out = {.known = true, .rank = 1};
  if (!in.known) return assay_infer_set(c, 0, ASSAY_TYPE_INT64, &out);
  int from, to;
  shape_part(c->node, in.rank, &from, &to);
  out.dims[0] = assay_dim_const(c->dims, to - from);
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_INT64, &out));
  if (!assay_infer_wants(c, 0)) return NULL;
  return assay_infer_set_content(c, 0, 1, to - from, in.dims + from);
}

static assay_status_t shape_eval(assay_eval_t* c) {
  int from, to;
  shape_part(c->node, c->in[0]->rank, &from, &to);
  int64_t n = to - from;
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_INT64, 1, &n, &out));
  for (int64_t i = 0; i < n; i++) assay_i64(out)[i] = c->in[0]->dims[from + i];
  return NULL;
}

static assay_status_t size_infer(assay_infer_t* c) {
  assay_shape_t in = assay_infer_shape(c, 0), out = {.known = true};
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_INT64, &out));
  if (!in.known || !assay_infer_wants(c, 0)) return NULL;
  const assay_dim_t* size = assay_shape_size(c->dims, &in, 0, in.rank);
  return size ? assay_infer_set_content(c, 0, 0, 1, &size) : NULL;
}

static assay_status_t size_eval(assay_eval_t* c) {
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_INT64, 0, NULL, &out));
  assay_i64(out)[0] = c->in[0]->size;
  return NULL;
}

// ---- Identity --------------------------------------------------------------------------------

static assay_status_t identity_infer(assay_infer_t* c) {
  const assay_valtype_t* type = assay_infer_type(c, 0);
  if (!type) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  ASSAY_TRY(assay_infer_set_type(c, 0, type));
  return assay_content_same(c, 0);
}

static assay_status_t identity_eval(assay_eval_t* c) {
  assay_eval_set(c, 0, c->in[0]);
  return NULL;
}

// Output 0: the elements of input 0 under another shape.
static assay_status_t set_view(assay_eval_t* c, int rank, const int64_t* dims) {
  assay_tensor_t* out;
  ASSAY_TRY(assay_tensor_view(c->in[0], rank, dims, &out));
  assay_eval_set(c, 0, out);
  assay_tensor_release(out);
  return NULL;
}

// ---- Flatten ---------------------------------------------------------------------------------

// Flatten's axis may be the rank itself. Negative axes (since 11) are taken in all versions.
static assay_status_t flatten_axis(const assay_node_t* node, int rank, int* out) {
  int64_t axis = assay_attr_i64(node, "axis", 1);
  if (axis < -rank || axis > rank) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "attribute axis is %lld, input has rank %d; expected %d to %d",
                            (long long)axis, rank, -rank, rank);
  }
  *out = (int)(axis < 0 ? axis + rank : axis);
  return NULL;
}

static assay_status_t flatten_infer(assay_infer_t* c) {
  assay_shape_t in = assay_infer_shape(c, 0), out = {.known = true, .rank = 2};
  if (in.known) {
    int axis;
    ASSAY_TRY(flatten_axis(c->node, in.rank, &axis));
    out.dims[0] = assay_shape_size(c->dims, &in, 0, axis);
    out.dims[1] = assay_shape_size(c->dims, &in, axis, in.rank);
  }
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), &out);
}

static assay_status_t flatten_eval(assay_eval_t* c) {
  const assay_tensor_t* in = c->in[0];
  int axis;
  ASSAY_TRY(flatten_axis(c->node, in->rank, &axis));
  int64_t dims[2] = {1, 1};
  for (int i = 0; i < in->rank; i++) {
    // An empty tensor's other dims may be huge.
    if (!assay_mul_i64(dims[i >= axis], in->dims[i], &dims[i >= axis])) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input %s is too large to flatten",
                              ASSAY_DIMS_TEXT(in));
    }
  }
  return set_view(c, 2, dims);
}

// ---- Squeeze, Unsqueeze ----------------------------------------------------------------------

// The axes of both: an attribute before 13, input 1 since. Marks them in `set`, of `rank` dims.
static assay_status_t mark_axes(const assay_node_t* node, size_t n, const int64_t* axes, int rank,
                                bool unique, bool* set) {
  for (int i = 0; i < rank; i++) set[i] = false;
  for (size_t i = 0; i < n; i++) {
    int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                              "axes has %lld at %zu, expected %d to %d", (long long)axes[i], i,
                              -rank, rank - 1);
    }
    if (set[axis] && unique) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "axes names axis %lld twice",
                              (long long)axis);
    }
    set[axis] = true;
  }
  return NULL;
}

// What axes are known before running. given: there are some, known or not.
typedef struct axes {
  bool given, known;
  size_t n;
  int64_t at[ASSAY_MAX_RANK];
} axes_t;

static assay_status_t axes_from(const assay_node_t* node, size_t n, const int64_t* at,
                                axes_t* out) {
  if (n > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "axes has %zu entries, over %d", n,
                            ASSAY_MAX_RANK);
  }
  out->given = out->known = true;
  out->n = n;
  for (size_t i = 0; i < n; i++) out->at[i] = at[i];
  return NULL;
}

static assay_status_t infer_axes(const assay_infer_t* c, axes_t* out) {
  *out = (axes_t){0};
  size_t n;
  const int64_t* at = assay_attr_ints(c->node, "axes", &n);
  if (assay_attr_has(c->node, "axes")) return axes_from(c->node, n, at, out);
  if (!assay_infer_has(c, 1)) return NULL;
  out->given = true;
  assay_content_list_t list;
  if (!assay_content_read(c, 1, &list)) return NULL;
  int64_t values[ASSAY_CONTENT_MAX];
  for (int64_t i = 0; i < list.n; i++) {
    if (!assay_dim_value(list.elems[i], &values[i])) return NULL;
  }
  return axes_from(c->node, (size_t)list.n, values, out);
}

static assay_status_t eval_axes(const assay_eval_t* c, axes_t* out) {
  *out = (axes_t){0};
  size_t n;
  const int64_t* at = assay_attr_ints(c->node, "axes", &n);
  if (assay_attr_has(c->node, "axes")) return axes_from(c->node, n, at, out);
  if (!assay_eval_has(c, 1)) return NULL;
  return axes_from(c->node, (size_t)c->in[1]->size, assay_i64(c->in[1]), out);
}

static assay_status_t squeeze_error(const assay_node_t* node, int axis, int64_t size) {
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "axis %d to be squeezed has size %lld, expected 1", axis,
                          (long long)size);
}

// Which dims go, where that is known. Without axes: those of size 1, if all sizes are numbers.
static assay_status_t squeeze_which(assay_infer_t* c, const assay_shape_t* in, const axes_t* axes,
                                    bool* gone, bool* out_known) {
  *out_known = axes->known;
  int64_t size;
  if (axes->known) {
    ASSAY_TRY(mark_axes(c->node, axes->n, axes->at, in->rank, false, gone));
    for (int i = 0; i < in->rank; i++) {
      if (gone[i] && assay_dim_value(in->dims[i], &size) && size != 1) {
        return squeeze_error(c->node, i, size);
      }
    }
  } else if (!axes->given) {
    *out_known = true;
    for (int i = 0; i < in->rank; i++) {
      if (!assay_dim_value(in->dims[i], &size)) *out_known = false;
      gone[i] = *out_known && size == 1;
    }
  }
  return NULL;
}

static assay_status_t squeeze_infer(assay_infer_t* c) {
  axes_t axes;
  ASSAY_TRY(infer_axes(c, &axes));
  assay_shape_t in = assay_infer_shape(c, 0), out = {.known = true};
  bool gone[ASSAY_MAX_RANK], known = false;
  if (in.known) ASSAY_TRY(squeeze_which(c, &in, &axes, gone, &known));
  if (!known) return assay_infer_set(c, 0, assay_infer_elem(c, 0), NULL);
  for (int i = 0; i < in.rank; i++) {
    if (!gone[i]) out.dims[out.rank++] = in.dims[i];
  }
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, 0), &out));
  assay_content_list_t list;
  if (!assay_content_read(c, 0, &list) || (out.rank == 0 && list.n != 1)) return NULL;
  list.rank = out.rank;
  return assay_content_write(c, 0, 0, &list);
}

static assay_status_t squeeze_eval(assay_eval_t* c) {
  const assay_tensor_t* in = c->in[0];
  axes_t axes;
  ASSAY_TRY(eval_axes(c, &axes));
  bool gone[ASSAY_MAX_RANK];
  ASSAY_TRY(mark_axes(c->node, axes.n, axes.at, in->rank, false, gone));
  int rank = 0;
  int64_t dims[ASSAY_MAX_RANK];
  for (int i = 0; i < in->rank; i++) {
    if (!axes.given) gone[i] = in->dims[i] == 1;
    if (gone[i] && in->dims[i] != 1) return squeeze_error(c->node, i, in->dims[i]);
    if (!gone[i]) dims[rank++] = in->dims[i];
  }
  return set_view(c, rank, dims);
}

static assay_status_t unsqueeze_rank(const assay_node_t* node, int rank, size_t n, int* out) {
  if ((size_t)rank + n > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(node, ASSAY_UNSUPPORTED, "output would have rank %zu, over %d",
                            (size_t)rank + n, ASSAY_MAX_RANK);
  }
  *out = rank + (int)n;
  return NULL;
}

static assay_status_t unsqueeze_infer(assay_infer_t* c) {
  axes_t axes;
  ASSAY_TRY(infer_axes(c, &axes));
  assay_shape_t in = assay_infer_shape(c, 0), out = {.known = true};
  if (!in.known || !axes.known) return assay_infer_set(c, 0, assay_infer_elem(c, 0), NULL);
  ASSAY_TRY(unsqueeze_rank(c->node, in.rank, axes.n, &out.rank));
  bool added[ASSAY_MAX_RANK];
  ASSAY_TRY(mark_axes(c->node, axes.n, axes.at, out.rank, true, added));
  for (int i = 0, k = 0; i < out.rank; i++) {
    out.dims[i] = added[i] ? assay_dim_const(c->dims, 1) : in.dims[k++];
  }
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, 0), &out));
  assay_content_list_t list;
  if (out.rank > 1 || !assay_content_read(c, 0, &list)) return NULL;
  list.rank = out.rank;
  return assay_content_write(c, 0, 0, &list);
}

static assay_status_t unsqueeze_eval(assay_eval_t* c) {
  const assay_tensor_t* in = c->in[0];
  axes_t axes;
  ASSAY_TRY(eval_axes(c, &axes));
  int rank = 0;
  ASSAY_TRY(unsqueeze_rank(c->node, in->rank, axes.n, &rank));
  bool added[ASSAY_MAX_RANK];
  ASSAY_TRY(mark_axes(c->node, axes.n, axes.at, rank, true, added));
  int64_t dims[ASSAY_MAX_RANK];
  for (int i = 0, k = 0; i < rank; i++) dims[i] = added[i] ? 1 : in->dims[k++];
  return set_view(c, rank, dims);
}

// Source: com.microsoft ExpandDims-1: Unsqueeze with one axis, a scalar input.
static assay_status_t expand_dims_infer(assay_infer_t* c) {
  assay_shape_t in = assay_infer_shape(c, 0);
  assay_content_list_t axis;
  if (in.known && assay_content_read(c, 1, &axis)) return unsqueeze_infer(c);
  assay_shape_t out = {.known = true, .rank = in.rank + 1};
  bool known = in.known && out.rank <= ASSAY_MAX_RANK;
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), known ? &out : NULL);
}

static assay_status_t expand_dims_eval(assay_eval_t* c) {
  if (c->in[1]->size != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input 'axis' has shape %s, not []",
                            ASSAY_DIMS_TEXT(c->in[1]));
  }
  return unsqueeze_eval(c);
}

const assay_op_t assay_ops_shape[] = {
    {.domain = "", .name = "Shape", .since = 1, .infer = shape_infer, .eval = shape_eval},
    {.domain = "", .name = "Size", .since = 1, .infer = size_infer, .eval = size_eval},
    {.domain = "",
     .name = "Identity",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .infer = identity_infer,
     .eval = identity_eval},
    {.domain = "",
     .name = "Flatten",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .infer = flatten_infer,
     .eval = flatten_eval},
    // Axes as an attribute (1, 11) or as an input (13) are told apart by what is there.
    {.domain = "",
     .name = "Squeeze",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .infer = squeeze_infer,
     .eval = squeeze_eval},
    {.domain = "",
     .name = "Unsqueeze",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .infer = unsqueeze_infer,
     .eval = unsqueeze_eval},
    {.domain = "com.microsoft",
     .name = "ExpandDims",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .schema = "X:T, axis:M -> Y:T | | T=ALL; M=int32",
     .infer = expand_dims_infer,
     .eval = expand_dims_eval},
    {0}};
