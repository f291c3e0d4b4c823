// Pad and CenterCropPad: dims grow at their ends, or shrink.
#include <string.h>

#include "ops/content.h"
#include "ops/data/strided.h"
#include "ops/families.h"

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode_t;

static assay_status_t pad_mode(const assay_node_t* node, bool since19, pad_mode_t* out) {
  static const char* const names[] = {"constant", "reflect", "edge", "wrap"};
  const char* mode = assay_attr_str(node, "mode", "constant");
  for (int i = 0; i < (since19 ? 4 : 3); i++) {
    if (strcmp(mode, names[i]) == 0) return *out = (pad_mode_t)i, NULL;
  }
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "attribute mode is '%s', expected constant, reflect%s", mode,
                          since19 ? ", edge or wrap" : " or edge");
}

// ---- where the amounts are -------------------------------------------------------------------

// Attribute `pads` (2) or `paddings` (1).
static const int64_t* pad_attr(const assay_node_t* node, size_t* out_n) {
  const int64_t* pads = assay_attr_ints(node, "pads", out_n);
  return pads ? pads : assay_attr_ints(node, "paddings", out_n);
}

static assay_status_t pad_count(const assay_node_t* node, int64_t found, int64_t axes) {
  if (found == 2 * axes) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "pads has %lld entries, expected two for each of %lld axes",
                          (long long)found, (long long)axes);
}

// The axis of each pair of amounts. axes NULL: all, in order.
static assay_status_t pad_axes(const assay_node_t* node, int64_t n, const int64_t* axes, int rank,
                               int* out) {
  bool seen[ASSAY_MAX_RANK] = {false};
  for (int64_t i = 0; i < n; i++) {
    int64_t axis = axes ? axes[i] : i;
    if (axis < -rank || axis >= rank) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                              "axes has %lld at %lld, expected %d to %d", (long long)axis,
                              (long long)i, -rank, rank - 1);
    }
    if (axis < 0) axis += rank;
    if (seen[axis]) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "axes names axis %lld twice",
                              (long long)axis);
    }
    seen[axis] = true;
    out[i] = (int)axis;
  }
  return NULL;
}

static assay_status_t pad_negative(const assay_node_t* node, int axis, int64_t size, int64_t begin,
                                   int64_t end) {
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "axis %d of size %lld cannot be padded by %lld and %lld", axis,
                          (long long)size, (long long)begin, (long long)end);
}

// ---- inference -------------------------------------------------------------------------------

// The axes before running; *out_n is -1 where not even their number is known.
static assay_status_t infer_axes(assay_infer_t* c, int rank, int* axes, int64_t* out_n,
                                 bool* out_known) {
  *out_n = rank;
  *out_known = true;
  if (!assay_infer_has(c, 3)) return pad_axes(c->node, rank, NULL, rank, axes);
  assay_content_list_t list;
  int64_t values[ASSAY_MAX_RANK];
  *out_known = false;
  *out_n = -1;
  if (!assay_content_read(c, 3, &list)) return NULL;
  if (list.n > rank) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "axes has %lld entries, input has rank %d", (long long)list.n, rank);
  }
  *out_n = list.n;
  for (int64_t i = 0; i < list.n; i++) {
    if (!assay_dim_value(list.elems[i], &values[i])) return NULL;
  }
  *out_known = true;
  return pad_axes(c->node, list.n, values, rank, axes);
}

static assay_status_t pad_dim(assay_infer_t* c, int axis, const assay_dim_t* size,
                              const assay_dim_t* begin, const assay_dim_t* end,
                              const assay_dim_t** out) {
  *out = assay_dim_add(c->dims, assay_dim_add(c->dims, size, begin), end);
  int64_t d, b, e;
  if (!assay_dim_negative(*out) || !assay_dim_value(size, &d) || !assay_dim_value(begin, &b) ||
      !assay_dim_value(end, &e)) {
    return NULL;
  }
  return pad_negative(c->node, axis, d, b, e);
}

// A vector that is padded with constants is followed.
static assay_status_t pad_content(assay_infer_t* c, const assay_content_list_t* pads) {
  assay_content_list_t in, value, out = {.rank = 1};
  int64_t begin, end;
  if (!assay_attr_is(c->node, "mode", "constant") || pads->n != 2) return NULL;
  if (!assay_content_read(c, 0, &in) || in.rank != 1) return NULL;
  if (!assay_dim_value(pads->elems[0], &begin) || !assay_dim_value(pads->elems[1], &end)) {
    return NULL;
  }
  const assay_dim_t* fill = assay_dim_const(c->dims, 0);
  if (assay_infer_has(c, 2)) {
    fill = assay_content_read(c, 2, &value) && value.n == 1 ? value.elems[0] : NULL;
  }
  if (begin < 0 || end < 0 || begin > ASSAY_CONTENT_MAX || end > ASSAY_CONTENT_MAX ||
      in.n + begin + end > ASSAY_CONTENT_MAX) {
    return NULL;
  }
  for (int64_t i = 0; i < begin; i++) out.elems[out.n++] = fill;
  for (int64_t i = 0; i < in.n; i++) out.elems[out.n++] = in.elems[i];
  for (int64_t i = 0; i < end; i++) out.elems[out.n++] = fill;
  return assay_content_write(c, 0, 0, &out);
}

static assay_status_t pad_infer_as(assay_infer_t* c, bool since19) {
  pad_mode_t mode;
  ASSAY_TRY(pad_mode(c->node, since19, &mode));
  assay_shape_t out = assay_infer_shape(c, 0);
  assay_type_t type = assay_infer_elem(c, 0);
  if (!out.known) return assay_infer_set(c, 0, type, NULL);
  int axes[ASSAY_MAX_RANK];
  int64_t n_axes;
  bool axes_known;
  ASSAY_TRY(infer_axes(c, out.rank, axes, &n_axes, &axes_known));
  assay_content_list_t pads = {0};
  size_t n_attr;
  const int64_t* attr = pad_attr(c->node, &n_attr);
  bool known = attr != NULL;
  if (attr) {
    ASSAY_TRY(pad_count(c->node, (int64_t)n_attr, n_axes));
    pads.n = (int64_t)n_attr;
    for (size_t i = 0; i < n_attr; i++) pads.elems[i] = assay_dim_const(c->dims, attr[i]);
  } else {
    known = assay_content_read(c, 1, &pads);
    if (known && n_axes >= 0) ASSAY_TRY(pad_count(c->node, pads.n, n_axes));
  }
  if (!known || !axes_known) {
    for (int d = 0; d < out.rank; d++) {
      bool may_change = true;
      for (int64_t i = 0; axes_known && i < n_axes; i++) {
        may_change = axes[i] == d;
        if (may_change) break;
      }
      if (may_change) out.dims[d] = NULL;
    }
    return assay_infer_set(c, 0, type, &out);
  }
  for (int64_t i = 0; i < n_axes; i++) {
    const assay_dim_t** dim = &out.dims[axes[i]];
    ASSAY_TRY(pad_dim(c, axes[i], *dim, pads.elems[i], pads.elems[n_axes + i], dim));
  }
  ASSAY_TRY(assay_infer_set(c, 0, type, &out));
  return out.rank == 1 ? pad_content(c, &pads) : NULL;
}

static assay_status_t pad_infer(assay_infer_t* c) { return pad_infer_as(c, false); }
static assay_status_t pad19_infer(assay_infer_t* c) { return pad_infer_as(c, true); }

// ---- evaluation ------------------------------------------------------------------------------

// Amounts at both ends of each dim; negative ones take away.
typedef struct pads {
  int64_t begin[ASSAY_MAX_RANK], end[ASSAY_MAX_RANK];
} pads_t;

static assay_status_t pad_dims(const assay_node_t* node, const assay_tensor_t* in, const pads_t* p,
                               int64_t* dims) {
  for (int d = 0; d < in->rank; d++) {
    int64_t size = in->dims[d], begin = p->begin[d], end = p->end[d];
    int64_t limit = INT64_MAX / 4;
    bool small = begin > -limit && begin < limit && end > -limit && end < limit && size < limit;
    if (!small || size + begin + end < 0) return pad_negative(node, d, size, begin, end);
    dims[d] = size + begin + end;
  }
  return NULL;
}

static int64_t at_least_0(int64_t x) { return x > 0 ? x : 0; }

// Fills with the value (NULL: zero) and copies what stays.
static assay_status_t pad_constant(assay_eval_t* c, const pads_t* p, const assay_tensor_t* value) {
  const assay_tensor_t* in = c->in[0];
  int64_t dims[ASSAY_MAX_RANK], box[ASSAY_MAX_RANK], from[ASSAY_MAX_RANK], to[ASSAY_MAX_RANK];
  int64_t from_offset = 0, to_offset = 0;
  ASSAY_TRY(pad_dims(c->node, in, p, dims));
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, in->type, in->rank, dims, &out));
  ASSAY_TRY(value ? assay_fill_from(out, value, 0) : assay_fill_zero(out));
  assay_row_major(in->rank, in->dims, from);
  assay_row_major(in->rank, dims, to);
  for (int d = 0; d < in->rank; d++) {
    int64_t skip = at_least_0(-p->begin[d]), lead = at_least_0(p->begin[d]);
    int64_t left = in->dims[d] - skip, capacity = dims[d] - lead;
    box[d] = at_least_0(left < capacity ? left : capacity);
    if (box[d] == 0) return NULL;
    from_offset += skip * from[d];
    to_offset += lead * to[d];
  }
  return assay_copy_strided(in->rank, box, in, from_offset, from, out, to_offset, to);
}

// The source of index i (0 is the first that is kept) in n elements.
static int64_t pad_source(pad_mode_t mode, int64_t i, int64_t n) {
  if (mode == PAD_EDGE) return i < 0 ? 0 : i >= n ? n - 1 : i;
  int64_t period = mode == PAD_WRAP ? n : 2 * (n - 1);
  if (period == 0) return 0;  // reflection of a single element
  i %= period;
  if (i < 0) i += period;
  return i < n ? i : period - i;
}

// reflect, edge, wrap: what negative pads leave is padded, as numpy.pad does it (reflections go to
// and fro as often as is needed).
static assay_status_t pad_mapped(assay_eval_t* c, const pads_t* p, pad_mode_t mode) {
  const assay_tensor_t* in = c->in[0];
  int64_t dims[ASSAY_MAX_RANK], strides[ASSAY_MAX_RANK], total = 0;
  ASSAY_TRY(pad_dims(c->node, in, p, dims));
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, in->type, in->rank, dims, &out));
  if (out->size == 0) return NULL;
  assay_row_major(in->rank, in->dims, strides);
  for (int d = 0; d < in->rank; d++) total += dims[d];
  int64_t* table = NULL;
  ASSAY_TRY(assay_new_array((size_t)total, sizeof *table, &table));
  const int64_t* tables[ASSAY_MAX_RANK];
  int64_t used = 0;
  for (int d = 0; d < in->rank; d++) {
    int64_t skip = at_least_0(-p->begin[d]), lead = at_least_0(p->begin[d]);
    int64_t kept = in->dims[d] - skip - at_least_0(-p->end[d]);
    if (kept <= 0) {
      assay_free(table);
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "axis %d of size %lld has nothing left to pad from (pads %lld, %lld)",
                              d, (long long)in->dims[d], (long long)p->begin[d],
                              (long long)p->end[d]);
    }
    tables[d] = table + used;
    for (int64_t i = 0; i < dims[d]; i++) {
      table[used++] = (skip + pad_source(mode, i - lead, kept)) * strides[d];
    }
  }
  assay_status_t st = assay_copy_mapped(in->rank, dims, tables, in, out);
  assay_free(table);
  return st;
}

// Gathers the amounts of one node. Source: ONNX Pad-1, -2, -11, -18.
static assay_status_t eval_pads(const assay_eval_t* c, pads_t* out) {
  int rank = c->in[0]->rank;
  size_t n_attr;
  const int64_t* pads = pad_attr(c->node, &n_attr);
  int64_t n_axes = rank, n = (int64_t)n_attr;
  const int64_t* given = NULL;
  if (!pads) {
    pads = assay_i64(c->in[1]);
    n = c->in[1]->size;
  }
  if (assay_eval_has(c, 3)) {
    given = assay_i64(c->in[3]);
    n_axes = c->in[3]->size;
  }
  ASSAY_TRY(pad_count(c->node, n, n_axes));
  if (n_axes > rank) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "axes has %lld entries, input has rank %d", (long long)n_axes, rank);
  }
  int axes[ASSAY_MAX_RANK];
  ASSAY_TRY(pad_axes(c->node, n_axes, given, rank, axes));
  *out = (pads_t){0};
  for (int64_t i = 0; i < n_axes; i++) {
    out->begin[axes[i]] = pads[i];
    out->end[axes[i]] = pads[n_axes + i];
  }
  return NULL;
}

static assay_status_t pad_by_value(assay_eval_t* c, const pads_t* p) {
  const assay_tensor_t* value = assay_eval_has(c, 2) ? c->in[2] : NULL;
  if (value) {
    if (value->size != 1 || value->store != c->in[0]->store) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input 'constant_value' is %s%s, expected a scalar of type %s",
                              assay_type_name(value->type), ASSAY_DIMS_TEXT(value),
                              assay_type_name(c->in[0]->type));
    }
    return pad_constant(c, p, value);
  }
  double attr = assay_attr_f64(c->node, "value", 0);
  if (attr == 0 || c->in[0]->store != ASSAY_STORE_F64) return pad_constant(c, p, NULL);
  assay_tensor_t* scalar;
  ASSAY_TRY(assay_tensor_scalar_f64(c->in[0]->type, attr, &scalar));
  assay_status_t st = pad_constant(c, p, scalar);
  assay_tensor_release(scalar);
  return st;
}

static assay_status_t pad_eval_as(assay_eval_t* c, bool since19) {
  pad_mode_t mode;
  pads_t pads;
  ASSAY_TRY(pad_mode(c->node, since19, &mode));
  ASSAY_TRY(eval_pads(c, &pads));
  return mode == PAD_CONSTANT ? pad_by_value(c, &pads) : pad_mapped(c, &pads, mode);
}

static assay_status_t pad_eval(assay_eval_t* c) { return pad_eval_as(c, false); }
static assay_status_t pad19_eval(assay_eval_t* c) { return pad_eval_as(c, true); }

// ---- CenterCropPad ---------------------------------------------------------------------------

static assay_status_t crop_axes(const assay_node_t* node, int64_t n, int rank, int* axes) {
  size_t n_given;
  const int64_t* given = assay_attr_ints(node, "axes", &n_given);
  int64_t expected = given ? (int64_t)n_given : rank;
  if (n != expected || n > rank) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "input 'shape' has %lld entries, expected %lld of at most %d",
                            (long long)n, (long long)expected, rank);
  }
  return pad_axes(node, n, given, rank, axes);
}

static assay_status_t crop_infer(assay_infer_t* c) {
  assay_shape_t out = assay_infer_shape(c, 0);
  assay_type_t type = assay_infer_elem(c, 0);
  assay_content_list_t list;
  if (!out.known) return assay_infer_set(c, 0, type, NULL);
  int axes[ASSAY_MAX_RANK];
  bool known = assay_content_read(c, 1, &list);
  if (!known) {
    size_t n;
    list.n = assay_attr_ints(c->node, "axes", &n) ? (int64_t)n : out.rank;
    for (int64_t i = 0; i < list.n && i < ASSAY_CONTENT_MAX; i++) list.elems[i] = NULL;
  }
  ASSAY_TRY(crop_axes(c->node, list.n, out.rank, axes));
  for (int64_t i = 0; i < list.n; i++) {
    out.dims[axes[i]] = list.elems[i];
    if (assay_dim_negative(list.elems[i])) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input 'shape' is negative at %lld",
                              (long long)i);
    }
  }
  return assay_infer_set(c, 0, type, &out);
}

// Source: ONNX CenterCropPad-18. Half of the difference, rounded towards zero, is in front:
// cropping starts at the half rounded down, and padding puts the odd element after.
static assay_status_t crop_eval(assay_eval_t* c) {
  const assay_tensor_t *in = c->in[0], *shape = c->in[1];
  int axes[ASSAY_MAX_RANK];
  ASSAY_TRY(crop_axes(c->node, shape->size, in->rank, axes));
  pads_t pads = {0};
  for (int64_t i = 0; i < shape->size; i++) {
    int64_t size = assay_i64(shape)[i];
    if (size < 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input 'shape' has %lld at %lld, expected 0 or more", (long long)size,
                              (long long)i);
    }
    int64_t more = size - in->dims[axes[i]];
    pads.begin[axes[i]] = more / 2;
    pads.end[axes[i]] = more - more / 2;
  }
  return pad_constant(c, &pads, NULL);
}

const assay_op_t assay_ops_pad[] = {
    // Amounts come from attributes (1, 2) or inputs (11, and axes since 18), whichever are there.
    {.domain = "",
     .name = "Pad",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .infer = pad_infer,
     .eval = pad_eval},
    {.domain = "",
     .name = "Pad",
     .since = 19,
     .flags = ASSAY_OP_MOVES,
     .infer = pad19_infer,
     .eval = pad19_eval},
    {.domain = "com.microsoft",
     .name = "Pad",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .schema = "data:T, pads:M, value?:T -> output:T | mode:s=constant | "
               "T=float16 float double; M=int64",
     .infer = pad19_infer,
     .eval = pad19_eval},
    {.domain = "",
     .name = "CenterCropPad",
     .since = 18,
     .flags = ASSAY_OP_MOVES,
     .infer = crop_infer,
     .eval = crop_eval},
    {0}};
