// Slice: a part of each dim, with steps, forwards or backwards.
#include "ops/content.h"
#include "ops/data/strided.h"
#include "ops/families.h"

enum { SLICE_MAX = ASSAY_MAX_RANK };

// ---- one dim ---------------------------------------------------------------------------------

// The first index and the number of elements. Source: ONNX Slice-13, the rules of clamping; they
// hold for the older versions too, which say less. step is not 0.
static void slice_range(int64_t size, int64_t start, int64_t end, int64_t step, int64_t* out_first,
                        int64_t* out_count) {
  *out_first = *out_count = 0;
  if (size == 0) return;
  if (start < 0) start += size;
  if (end < 0) end += size;
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  start = start < 0 ? 0 : start > high ? high : start;
  end = end < low ? low : end > high ? high : end;
  int64_t span = step > 0 ? end - start : start - end;
  uint64_t stride = step > 0 ? (uint64_t)step : -(uint64_t)step;
  if (span > 0) *out_count = (int64_t)(((uint64_t)span - 1) / stride) + 1;
  *out_first = start;
}

// "To the end" as models write it for a size that is not known.
static bool is_far(const assay_dim_t* d) {
  int64_t value;
  return assay_dim_value(d, &value) && value >= INT32_MAX;
}

static bool is_far_below(const assay_dim_t* d) {
  int64_t value;
  return assay_dim_value(d, &value) && value <= -INT32_MAX;
}

static bool is_number(const assay_dim_t* d, int64_t number) {
  int64_t value;
  return assay_dim_value(d, &value) && value == number;
}

// A start or end between 0 and size, where the sign of `at` is known; NULL otherwise.
static const assay_dim_t* slice_bound(assay_dims_t* p, const assay_dim_t* size,
                                      const assay_dim_t* at) {
  if (is_far(at)) return size;
  if (assay_dim_same(at, size)) return size;
  if (assay_dim_negative(at)) return assay_dim_clamp0(p, assay_dim_add(p, size, at));
  if (!assay_dim_nonneg(p, at)) return NULL;
  return is_number(at, 0) ? at : assay_dim_min(p, at, size);
}

// The number of elements as an expression; NULL: not known.
static const assay_dim_t* slice_count(assay_dims_t* p, const assay_dim_t* size,
                                      const assay_dim_t* start, const assay_dim_t* end,
                                      const assay_dim_t* step) {
  int64_t d, s, e, k, first, count;
  if (!size || !start || !end || !assay_dim_value(step, &k) || k == 0 || k == INT64_MIN) {
    return NULL;
  }
  if (assay_dim_value(size, &d) && assay_dim_value(start, &s) && assay_dim_value(end, &e)) {
    slice_range(d, s, e, k, &first, &count);
    return assay_dim_const(p, count);
  }
  if (k < 0) {  // all of it backwards; other parts of a size that is not known stay unknown
    bool all = (is_number(start, -1) || is_far(start)) && is_far_below(end);
    return all ? assay_dim_ceildiv(p, size, assay_dim_const(p, -k)) : NULL;
  }
  const assay_dim_t* to = slice_bound(p, size, end);
  // A start past the end makes the difference negative, so it needs no limit above.
  const assay_dim_t* from = assay_dim_negative(start)    ? slice_bound(p, size, start)
                            : assay_dim_nonneg(p, start) ? start
                                                         : NULL;
  if (!to || !from) return NULL;
  const assay_dim_t* span =
      is_number(from, 0) ? to : assay_dim_clamp0(p, assay_dim_sub(p, to, from));
  return k == 1 ? span : assay_dim_ceildiv(p, span, step);
}

// ---- checks that inference and evaluation share ----------------------------------------------

// Which entry of starts, ends and steps is each dim's; -1: none.
static assay_status_t slice_axes(const assay_node_t* node, int64_t n, const int64_t* axes, int rank,
                                 int* entry) {
  for (int d = 0; d < rank; d++) entry[d] = -1;
  for (int64_t i = 0; i < n; i++) {
    int64_t axis = axes ? axes[i] : i;
    if (axis < -rank || axis >= rank) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                              "axes has %lld at %lld, expected %d to %d", (long long)axis,
                              (long long)i, -rank, rank - 1);
    }
    if (axis < 0) axis += rank;
    if (entry[axis] >= 0) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "axes names axis %lld twice",
                              (long long)axis);
    }
    entry[axis] = (int)i;
  }
  return NULL;
}

static assay_status_t slice_length(const assay_node_t* node, const char* what, int64_t found,
                                   int64_t expected) {
  if (found == expected) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "%s has %lld entries, starts has %lld",
                          what, (long long)found, (long long)expected);
}

static assay_status_t slice_too_many(const assay_node_t* node, int64_t n, int rank) {
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "starts has %lld entries, input has rank %d", (long long)n, rank);
}

static assay_status_t slice_zero_step(const assay_node_t* node, int64_t i) {
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "steps has 0 at %lld", (long long)i);
}

// ---- inference -------------------------------------------------------------------------------

// starts, ends, axes, steps before running. Unknown entries are NULL.
typedef struct slice_spec {
  int64_t n;        // entries; -1: not known
  bool axes_known;  // false: any dim may change
  int64_t axes[SLICE_MAX];
  const assay_dim_t* starts[SLICE_MAX];
  const assay_dim_t* ends[SLICE_MAX];
  const assay_dim_t* steps[SLICE_MAX];
} slice_spec_t;

// One of the inputs; entries that are not known are NULL. Its length must be *n if that is known.
static assay_status_t spec_input(assay_infer_t* c, size_t input, const char* what, int64_t* n,
                                 const assay_dim_t** out) {
  assay_content_list_t list;
  int64_t length = -1;
  ASSAY_TRY(assay_infer_want_rank(c, input, 1, 1));
  bool known = assay_content_read(c, input, &list);
  assay_shape_t shape = assay_infer_shape(c, input);
  if (known) {
    length = list.n;
  } else if (shape.known && shape.rank == 1) {
    if (!assay_dim_value(shape.dims[0], &length)) length = -1;
  }
  if (length >= 0 && *n >= 0) ASSAY_TRY(slice_length(c->node, what, length, *n));
  if (length > SLICE_MAX) return slice_too_many(c->node, length, SLICE_MAX);
  if (length >= 0) *n = length;
  for (int64_t i = 0; i < SLICE_MAX; i++) out[i] = known && i < length ? list.elems[i] : NULL;
  return NULL;
}

static assay_status_t spec_from_inputs(assay_infer_t* c, slice_spec_t* s) {
  const assay_dim_t* axes[SLICE_MAX];
  s->n = -1;
  ASSAY_TRY(spec_input(c, 1, "starts", &s->n, s->starts));
  ASSAY_TRY(spec_input(c, 2, "ends", &s->n, s->ends));
  s->axes_known = true;
  if (assay_infer_has(c, 3)) {
    ASSAY_TRY(spec_input(c, 3, "axes", &s->n, axes));
    // How many there are may be known by another input only, after this one.
    s->axes_known = s->n >= 0;
    for (int64_t i = 0; i < s->n; i++) {
      if (!assay_dim_value(axes[i], &s->axes[i])) s->axes_known = false;
    }
  } else {
    for (int64_t i = 0; i < SLICE_MAX; i++) s->axes[i] = i;
  }
  if (assay_infer_has(c, 4)) return spec_input(c, 4, "steps", &s->n, s->steps);
  for (int64_t i = 0; i < SLICE_MAX; i++) s->steps[i] = assay_dim_const(c->dims, 1);
  return NULL;
}

// Source: ONNX Slice-1.
static assay_status_t spec_from_attrs(assay_infer_t* c, slice_spec_t* s) {
  size_t n, n_ends, n_axes;
  const int64_t* starts = assay_attr_ints(c->node, "starts", &n);
  const int64_t* ends = assay_attr_ints(c->node, "ends", &n_ends);
  const int64_t* axes = assay_attr_ints(c->node, "axes", &n_axes);
  ASSAY_TRY(slice_length(c->node, "ends", (int64_t)n_ends, (int64_t)n));
  if (axes) ASSAY_TRY(slice_length(c->node, "axes", (int64_t)n_axes, (int64_t)n));
  if (n > SLICE_MAX) return slice_too_many(c->node, (int64_t)n, SLICE_MAX);
  s->n = (int64_t)n;
  s->axes_known = true;
  for (size_t i = 0; i < n; i++) {
    s->axes[i] = axes ? axes[i] : (int64_t)i;
    s->starts[i] = assay_dim_const(c->dims, starts[i]);
    s->ends[i] = assay_dim_const(c->dims, ends[i]);
    s->steps[i] = assay_dim_const(c->dims, 1);
  }
  return NULL;
}

static assay_status_t slice_content(assay_infer_t* c, const slice_spec_t* s) {
  assay_content_list_t in, out = {.rank = 1};
  int64_t start, end, step, first;
  if (s->n != 1 || !assay_content_read(c, 0, &in) || in.rank != 1) return NULL;
  if (!assay_dim_value(s->starts[0], &start) || !assay_dim_value(s->ends[0], &end) ||
      !assay_dim_value(s->steps[0], &step) || step == 0) {
    return NULL;
  }
  slice_range(in.n, start, end, step, &first, &out.n);
  for (int64_t i = 0; i < out.n; i++) out.elems[i] = in.elems[first + i * step];
  return assay_content_write(c, 0, 0, &out);
}

static assay_status_t slice_infer_by(assay_infer_t* c, const slice_spec_t* s) {
  assay_shape_t in = assay_infer_shape(c, 0), out = in;
  assay_type_t type = assay_infer_elem(c, 0);
  if (!in.known) return assay_infer_set(c, 0, type, NULL);
  if (s->n > in.rank) return slice_too_many(c->node, s->n, in.rank);
  if (s->n < 0 || !s->axes_known) {
    for (int d = 0; d < in.rank; d++) out.dims[d] = NULL;
    return assay_infer_set(c, 0, type, &out);
  }
  int entry[ASSAY_MAX_RANK];
  ASSAY_TRY(slice_axes(c->node, s->n, s->axes, in.rank, entry));
  for (int d = 0; d < in.rank; d++) {
    int i = entry[d];
    if (i < 0) continue;
    if (is_number(s->steps[i], 0)) return slice_zero_step(c->node, i);
    out.dims[d] = slice_count(c->dims, in.dims[d], s->starts[i], s->ends[i], s->steps[i]);
  }
  ASSAY_TRY(assay_infer_set(c, 0, type, &out));
  return in.rank == 1 ? slice_content(c, s) : NULL;
}

static assay_status_t slice1_infer(assay_infer_t* c) {
  slice_spec_t s = {0};
  ASSAY_TRY(spec_from_attrs(c, &s));
  return slice_infer_by(c, &s);
}

static assay_status_t slice_infer(assay_infer_t* c) {
  slice_spec_t s = {0};
  ASSAY_TRY(spec_from_inputs(c, &s));
  return slice_infer_by(c, &s);
}

// ---- evaluation ------------------------------------------------------------------------------

static assay_status_t slice(assay_eval_t* c, int64_t n, const int64_t* starts, const int64_t* ends,
                            const int64_t* axes, const int64_t* steps) {
  const assay_tensor_t* in = c->in[0];
  if (n > in->rank) return slice_too_many(c->node, n, in->rank);
  int entry[ASSAY_MAX_RANK];
  ASSAY_TRY(slice_axes(c->node, n, axes, in->rank, entry));
  int64_t dims[ASSAY_MAX_RANK], from[ASSAY_MAX_RANK], to[ASSAY_MAX_RANK], offset = 0;
  assay_row_major(in->rank, in->dims, from);
  for (int d = 0; d < in->rank; d++) {
    dims[d] = in->dims[d];
    if (entry[d] < 0) continue;
    int64_t step = steps ? steps[entry[d]] : 1, first;
    if (step == 0) return slice_zero_step(c->node, entry[d]);
    slice_range(in->dims[d], starts[entry[d]], ends[entry[d]], step, &first, &dims[d]);
    offset += first * from[d];
    from[d] = dims[d] > 1 ? from[d] * step : 0;  // a step past the end cannot overflow
  }
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, in->type, in->rank, dims, &out));
  assay_row_major(in->rank, dims, to);
  return assay_copy_strided(in->rank, dims, in, offset, from, out, 0, to);
}

static assay_status_t slice1_eval(assay_eval_t* c) {
  size_t n, n_ends, n_axes;
  const int64_t* starts = assay_attr_ints(c->node, "starts", &n);
  const int64_t* ends = assay_attr_ints(c->node, "ends", &n_ends);
  const int64_t* axes = assay_attr_ints(c->node, "axes", &n_axes);
  ASSAY_TRY(slice_length(c->node, "ends", (int64_t)n_ends, (int64_t)n));
  if (axes) ASSAY_TRY(slice_length(c->node, "axes", (int64_t)n_axes, (int64_t)n));
  return slice(c, (int64_t)n, starts, ends, axes, NULL);
}

static assay_status_t slice_eval(assay_eval_t* c) {
  static const char* const names[] = {"data", "starts", "ends", "axes", "steps"};
  const int64_t* lists[5] = {NULL};
  int64_t n = c->in[1]->size;
  for (size_t i = 1; i < 5; i++) {
    if (!assay_eval_has(c, i)) continue;
    ASSAY_TRY(assay_eval_want_rank(c, i, 1, 1));
    ASSAY_TRY(slice_length(c->node, names[i], c->in[i]->size, n));
    lists[i] = assay_i64(c->in[i]);
  }
  return slice(c, n, lists[1], lists[2], lists[3], lists[4]);
}

const assay_op_t assay_ops_slice[] = {{.domain = "",
                                       .name = "Slice",
                                       .since = 1,
                                       .flags = ASSAY_OP_MOVES,
                                       .infer = slice1_infer,
                                       .eval = slice1_eval},
                                      {.domain = "",
                                       .name = "Slice",
                                       .since = 10,
                                       .flags = ASSAY_OP_MOVES,
                                       .infer = slice_infer,
                                       .eval = slice_eval},
                                      {0}};
