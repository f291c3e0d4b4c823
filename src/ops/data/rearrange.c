// DepthToSpace, SpaceToDepth, Trilu, ReverseSequence, UnfoldTensor: fixed patterns of moves.
#include <string.h>

#include "ops/content.h"
#include "ops/data/strided.h"
#include "ops/families.h"

// ---- DepthToSpace, SpaceToDepth --------------------------------------------------------------

// Both are a transpose of six dims. `mode` (DepthToSpace 11, SpaceToDepth 28) says whether the
// channels of a block come outermost (DCR) or innermost (CRD).
static assay_status_t block_attrs(const assay_node_t* node, int64_t* out_block, bool* out_crd) {
  *out_block = assay_attr_i64(node, "blocksize", 0);
  const char* mode = assay_attr_str(node, "mode", "DCR");
  *out_crd = strcmp(mode, "CRD") == 0;
  if (!*out_crd && strcmp(mode, "DCR") != 0) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "attribute mode is '%s', expected DCR or CRD", mode);
  }
  if (*out_block < 1 || *out_block > INT32_MAX) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "attribute blocksize is %lld, expected 1 or more",
                            (long long)*out_block);
  }
  return NULL;
}

static assay_status_t block_divides(const assay_node_t* node, const char* what, int64_t size,
                                    int64_t by) {
  if (size % by == 0) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "%s %lld is not a multiple of %lld", what,
                          (long long)size, (long long)by);
}

static assay_status_t infer_divides(const assay_infer_t* c, const char* what,
                                    const assay_dim_t* size, int64_t by) {
  int64_t value;
  return assay_dim_value(size, &value) ? block_divides(c->node, what, value, by) : NULL;
}

static const assay_dim_t* divided(assay_infer_t* c, const assay_dim_t* d, int64_t by) {
  return assay_dim_floordiv(c->dims, d, assay_dim_const(c->dims, by));
}

static assay_status_t depth_to_space_infer(assay_infer_t* c) {
  int64_t b;
  bool crd;
  ASSAY_TRY(block_attrs(c->node, &b, &crd));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 4, 4));
  assay_shape_t in = assay_infer_shape(c, 0), out = {.known = true, .rank = 4};
  if (in.known) {
    ASSAY_TRY(infer_divides(c, "the number of channels", in.dims[1], b * b));
    out.dims[0] = in.dims[0];
    out.dims[1] = divided(c, in.dims[1], b * b);
    out.dims[2] = assay_dim_mul_i(c->dims, in.dims[2], b);
    out.dims[3] = assay_dim_mul_i(c->dims, in.dims[3], b);
  }
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), &out);
}

static assay_status_t space_to_depth_infer(assay_infer_t* c) {
  int64_t b;
  bool crd;
  ASSAY_TRY(block_attrs(c->node, &b, &crd));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 4, 4));
  assay_shape_t in = assay_infer_shape(c, 0), out = {.known = true, .rank = 4};
  if (in.known) {
    ASSAY_TRY(infer_divides(c, "the height", in.dims[2], b));
    ASSAY_TRY(infer_divides(c, "the width", in.dims[3], b));
    out.dims[0] = in.dims[0];
    out.dims[1] = assay_dim_mul_i(c->dims, in.dims[1], b * b);
    out.dims[2] = divided(c, in.dims[2], b);
    out.dims[3] = divided(c, in.dims[3], b);
  }
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), &out);
}

static assay_status_t block_rank(const assay_eval_t* c) {
  if (c->in[0]->rank == 4) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input has shape %s, expected [N,C,H,W]",
                          ASSAY_DIMS_TEXT(c->in[0]));
}

// Copies in, seen as six dims, to out with its dims in the order perm.
static assay_status_t transpose6(assay_eval_t* c, const int64_t* seen, const int* perm,
                                 const int64_t* out_dims) {
  int64_t strides[6], dims[6], from[6], to[6];
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, c->in[0]->type, 4, out_dims, &out));
  assay_row_major(6, seen, strides);
  for (int i = 0; i < 6; i++) {
    dims[i] = seen[perm[i]];
    from[i] = strides[perm[i]];
  }
  assay_row_major(6, dims, to);
  return assay_copy_strided(6, dims, c->in[0], 0, from, out, 0, to);
}

static assay_status_t block_overflow(const assay_eval_t* c) {
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input %s is too large for its blocks",
                          ASSAY_DIMS_TEXT(c->in[0]));
}

static assay_status_t depth_to_space_eval(assay_eval_t* c) {
  static const int dcr_perm[6] = {0, 3, 4, 1, 5, 2}, crd_perm[6] = {0, 1, 4, 2, 5, 3};
  int64_t b;
  bool crd;
  ASSAY_TRY(block_attrs(c->node, &b, &crd));
  ASSAY_TRY(block_rank(c));
  const int64_t* d = c->in[0]->dims;
  ASSAY_TRY(block_divides(c->node, "the number of channels", d[1], b * b));
  int64_t depth = d[1] / (b * b);
  int64_t dcr_seen[6] = {d[0], b, b, depth, d[2], d[3]};
  int64_t crd_seen[6] = {d[0], depth, b, b, d[2], d[3]};
  int64_t out[4] = {d[0], depth, 0, 0};
  if (!assay_mul_i64(d[2], b, &out[2]) || !assay_mul_i64(d[3], b, &out[3])) {
    return block_overflow(c);
  }
  return transpose6(c, crd ? crd_seen : dcr_seen, crd ? crd_perm : dcr_perm, out);
}

static assay_status_t space_to_depth_eval(assay_eval_t* c) {
  static const int dcr_perm[6] = {0, 3, 5, 1, 2, 4}, crd_perm[6] = {0, 1, 3, 5, 2, 4};
  int64_t b;
  bool crd;
  ASSAY_TRY(block_attrs(c->node, &b, &crd));
  ASSAY_TRY(block_rank(c));
  const int64_t* d = c->in[0]->dims;
  ASSAY_TRY(block_divides(c->node, "the height", d[2], b));
  ASSAY_TRY(block_divides(c->node, "the width", d[3], b));
  int64_t seen[6] = {d[0], d[1], d[2] / b, b, d[3] / b, b};
  int64_t out[4] = {d[0], 0, d[2] / b, d[3] / b};
  if (!assay_mul_i64(d[1], b * b, &out[1])) return block_overflow(c);
  return transpose6(c, seen, crd ? crd_perm : dcr_perm, out);
}

// ---- Trilu -----------------------------------------------------------------------------------

static assay_status_t trilu_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, ASSAY_MAX_RANK));
  return assay_infer_same(c);
}

// Columns [*from, *to) of row i stay. k is cut to where it makes no difference.
static void trilu_row(bool upper, int64_t k, int64_t i, int64_t cols, int64_t* from, int64_t* to) {
  int64_t diagonal = i + k;
  *from = upper ? diagonal : 0;
  *to = upper ? cols : diagonal + 1;
  if (*from < 0) *from = 0;
  if (*to > cols) *to = cols;
}

// Source: ONNX Trilu-14; com.microsoft Trilu-1 is the same.
static assay_status_t trilu_eval(assay_eval_t* c) {
  const assay_tensor_t* in = c->in[0];
  if (in->rank < 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s, expected rank 2 or more", ASSAY_DIMS_TEXT(in));
  }
  int64_t k = 0;
  if (assay_eval_has(c, 1)) {
    if (c->in[1]->size != 1) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input 'k' has shape %s, expected a scalar",
                              ASSAY_DIMS_TEXT(c->in[1]));
    }
    k = assay_i64(c->in[1])[0];
  }
  bool upper = assay_attr_i64(c->node, "upper", 1) != 0;
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, in->type, in->rank, in->dims, &out));
  ASSAY_TRY(assay_fill_zero(out));
  if (in->size == 0) return NULL;
  int64_t rows = in->dims[in->rank - 2], cols = in->dims[in->rank - 1];
  if (k > cols) k = cols;
  if (k < -rows) k = -rows;
  for (int64_t r = 0; r < in->size / cols; r++) {
    int64_t from, to;
    trilu_row(upper, k, r % rows, cols, &from, &to);
    if (from >= to) continue;
    ASSAY_TRY(assay_copy_run(in, r * cols + from, out, r * cols + from, to - from));
  }
  return NULL;
}

// ---- ReverseSequence -------------------------------------------------------------------------

static assay_status_t reverse_axes(const assay_node_t* node, int* out_batch, int* out_time) {
  int64_t batch = assay_attr_i64(node, "batch_axis", 1),
          time = assay_attr_i64(node, "time_axis", 0);
  if (!((batch == 0 && time == 1) || (batch == 1 && time == 0))) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "batch_axis is %lld and time_axis %lld, expected 0 and 1 or 1 and 0",
                            (long long)batch, (long long)time);
  }
  *out_batch = (int)batch;
  *out_time = (int)time;
  return NULL;
}

static assay_status_t reverse_infer(assay_infer_t* c) {
  int batch, time;
  ASSAY_TRY(reverse_axes(c->node, &batch, &time));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, ASSAY_MAX_RANK));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 1, 1));
  assay_shape_t in = assay_infer_shape(c, 0), lens = assay_infer_shape(c, 1);
  if (in.known && lens.known && assay_dim_differ(in.dims[batch], lens.dims[0])) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "sequence_lens has %s entries, the batch axis %s",
                            assay_dim_text(lens.dims[0], (char[64]){0}, 64),
                            assay_dim_text(in.dims[batch], (char[64]){0}, 64));
  }
  return assay_infer_same(c);
}

// Source: ONNX ReverseSequence-10.
static assay_status_t reverse_eval(assay_eval_t* c) {
  const assay_tensor_t *in = c->in[0], *lens = c->in[1];
  int batch, time;
  ASSAY_TRY(reverse_axes(c->node, &batch, &time));
  if (in->rank < 2 || lens->rank != 1 || lens->dims[0] != in->dims[batch]) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s, sequence_lens %s; expected rank 2 or more and as "
                            "many lengths as axis %d has",
                            ASSAY_DIMS_TEXT(in), ASSAY_DIMS_TEXT(lens), batch);
  }
  for (int64_t i = 0; i < lens->size; i++) {
    if (assay_i64(lens)[i] >= 0 && assay_i64(lens)[i] <= in->dims[time]) continue;
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "sequence_lens has %lld at %lld, expected 0 to %lld",
                            (long long)assay_i64(lens)[i], (long long)i, (long long)in->dims[time]);
  }
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, in->type, in->rank, in->dims, &out));
  if (in->size == 0) return NULL;
  int64_t strides[ASSAY_MAX_RANK], dims[ASSAY_MAX_RANK], from[ASSAY_MAX_RANK];
  assay_row_major(in->rank, in->dims, strides);
  memcpy(dims, in->dims, sizeof dims);
  memcpy(from, strides, sizeof from);
  dims[batch] = 1;
  for (int64_t i = 0; i < lens->size; i++) {
    int64_t n = assay_i64(lens)[i], step = strides[time], start = i * strides[batch];
    dims[time] = n;
    from[time] = -step;
    ASSAY_TRY(
        assay_copy_strided(in->rank, dims, in, start + (n - 1) * step, from, out, start, strides));
    dims[time] = in->dims[time] - n;
    from[time] = step;
    ASSAY_TRY(assay_copy_strided(in->rank, dims, in, start + n * step, from, out, start + n * step,
                                 strides));
  }
  return NULL;
}

// ---- UnfoldTensor ----------------------------------------------------------------------------

// Source: com.microsoft UnfoldTensor-1: all slices of `size` along `dim`, `step` apart, as a new
// last dim (torch.Tensor.unfold).
static assay_status_t unfold_attrs(const assay_node_t* node, int64_t* out_size, int64_t* out_step) {
  *out_size = assay_attr_i64(node, "size", 0);
  *out_step = assay_attr_i64(node, "step", 1);
  if (*out_size > 0 && *out_step > 0) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "attributes size %lld and step %lld, expected 1 or more",
                          (long long)*out_size, (long long)*out_step);
}

static assay_status_t unfold_short(const assay_node_t* node, int axis, int64_t found,
                                   int64_t size) {
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "axis %d has %lld elements, size is %lld",
                          axis, (long long)found, (long long)size);
}

static assay_status_t unfold_infer(assay_infer_t* c) {
  int64_t size, step, value;
  ASSAY_TRY(unfold_attrs(c->node, &size, &step));
  assay_shape_t out = assay_infer_shape(c, 0);
  if (!out.known) return assay_infer_set(c, 0, assay_infer_elem(c, 0), NULL);
  int axis;
  ASSAY_TRY(
      assay_infer_axis(c, "attribute dim", assay_attr_i64(c->node, "dim", -1), out.rank, &axis));
  if (out.rank == ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "output would have rank %d", out.rank + 1);
  }
  const assay_dim_t* d = out.dims[axis];
  if (assay_dim_value(d, &value) && value < size) return unfold_short(c->node, axis, value, size);
  const assay_dim_t* last = assay_dim_add_i(c->dims, d, -size);
  out.dims[axis] = assay_dim_add_i(c->dims, divided(c, last, step), 1);
  out.dims[out.rank++] = assay_dim_const(c->dims, size);
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), &out);
}

static assay_status_t unfold_eval(assay_eval_t* c) {
  const assay_tensor_t* in = c->in[0];
  int64_t size, step;
  ASSAY_TRY(unfold_attrs(c->node, &size, &step));
  int axis;
  ASSAY_TRY(
      assay_eval_axis(c, "attribute dim", assay_attr_i64(c->node, "dim", -1), in->rank, &axis));
  if (in->rank == ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "output would have rank %d", in->rank + 1);
  }
  if (in->dims[axis] < size) return unfold_short(c->node, axis, in->dims[axis], size);
  int64_t dims[ASSAY_MAX_RANK], from[ASSAY_MAX_RANK], to[ASSAY_MAX_RANK];
  memcpy(dims, in->dims, sizeof dims);
  assay_row_major(in->rank, in->dims, from);
  dims[axis] = (in->dims[axis] - size) / step + 1;
  dims[in->rank] = size;
  from[in->rank] = from[axis];
  from[axis] = dims[axis] > 1 ? from[axis] * step : 0;
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, in->type, in->rank + 1, dims, &out));
  assay_row_major(in->rank + 1, dims, to);
  return assay_copy_strided(in->rank + 1, dims, in, 0, from, out, 0, to);
}

const assay_op_t assay_ops_rearrange[] = {
    {.domain = "",
     .name = "DepthToSpace",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .infer = depth_to_space_infer,
     .eval = depth_to_space_eval},
    {.domain = "",
     .name = "SpaceToDepth",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .infer = space_to_depth_infer,
     .eval = space_to_depth_eval},
    {.domain = "",
     .name = "Trilu",
     .since = 14,
     .flags = ASSAY_OP_MOVES,
     .infer = trilu_infer,
     .eval = trilu_eval},
    {.domain = "com.microsoft",
     .name = "Trilu",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .schema = "X:T, k?:M -> Y:T | upper:i=1 | "
               "T=FLOAT INT bool; M=int64",
     .infer = trilu_infer,
     .eval = trilu_eval},
    {.domain = "",
     .name = "ReverseSequence",
     .since = 10,
     .flags = ASSAY_OP_MOVES,
     .infer = reverse_infer,
     .eval = reverse_eval},
    {.domain = "com.microsoft",
     .name = "UnfoldTensor",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .schema = "input:T -> output:T | dim:i=-1, size:i!, step:i=1 | T=ALL",
     .infer = unfold_infer,
     .eval = unfold_eval},
    {0}};
