// What pointwise operators share: loops over broadcast operands, and integer results.
#include "ops/math/pointwise.h"

#include <math.h>

enum {
  BLOCK = 1 << 14,        // elements of a run: what one thread takes at a time
  PARALLEL_WORK = 100000  // operations from which threads pay
};

// ---- loop nests -----------------------------------------------------------------------------

void assay_nest_init(assay_nest_t* nest, int rank, const int64_t* dims) {
  *nest = (assay_nest_t){.rank = rank};
  for (int i = 0; i < rank; i++) nest->dims[i] = dims[i];
}

void assay_nest_add(assay_nest_t* nest, const int64_t* strides) {
  int64_t* s = nest->strides[nest->operands++];
  for (int i = 0; i < nest->rank; i++) s[i] = strides[i];
}

void assay_nest_add_tensor(assay_nest_t* nest, const assay_tensor_t* t) {
  assay_broadcast_strides(t, nest->rank, nest->dims, nest->strides[nest->operands]);
  nest->operands++;
}

// Whether dimension i can be merged with dimension j, the next inner one, for every operand.
static bool mergeable(const assay_nest_t* nest, int i, int j) {
  for (int k = 0; k < nest->operands; k++)
    if (nest->strides[k][i] != nest->strides[k][j] * nest->dims[j]) return false;
  return true;
}

// Drops dimensions of 1 and merges neighbours; at least one dimension is left. False if empty.
static bool collapse(assay_nest_t* nest) {
  int rank = 0;
  for (int i = 0; i < nest->rank; i++) {
    if (nest->dims[i] == 0) return false;
    if (nest->dims[i] == 1) continue;
    nest->dims[rank] = nest->dims[i];
    for (int k = 0; k < nest->operands; k++) nest->strides[k][rank] = nest->strides[k][i];
    if (rank > 0 && mergeable(nest, rank - 1, rank)) {
      nest->dims[rank - 1] *= nest->dims[rank];
      for (int k = 0; k < nest->operands; k++) nest->strides[k][rank - 1] = nest->strides[k][rank];
    } else {
      rank++;
    }
  }
  if (rank == 0) {
    nest->dims[0] = 1;
    for (int k = 0; k < nest->operands; k++) nest->strides[k][0] = 0;
    rank = 1;
  }
  nest->rank = rank;
  return true;
}

// A place in the outer dimensions: indices and each operand's offset.
typedef struct place {
  int64_t index[ASSAY_MAX_RANK], at[ASSAY_NEST_OPERANDS];
} place_t;

static void place_set(const assay_nest_t* nest, int64_t row, place_t* p) {
  *p = (place_t){0};
  for (int i = nest->rank - 2; i >= 0; i--) {
    p->index[i] = row % nest->dims[i];
    row /= nest->dims[i];
    for (int k = 0; k < nest->operands; k++) p->at[k] += p->index[i] * nest->strides[k][i];
  }
}

static void place_next(const assay_nest_t* nest, place_t* p) {
  for (int i = nest->rank - 2; i >= 0; i--) {
    for (int k = 0; k < nest->operands; k++) p->at[k] += nest->strides[k][i];
    if (++p->index[i] < nest->dims[i]) return;
    for (int k = 0; k < nest->operands; k++) p->at[k] -= nest->dims[i] * nest->strides[k][i];
    p->index[i] = 0;
  }
}

void assay_nest_run(assay_nest_t* nest, double cost, assay_span_fn* f, const void* user) {
  if (!collapse(nest)) return;
  int64_t inner = nest->dims[nest->rank - 1], rows = 1;
  for (int i = 0; i < nest->rank - 1; i++) rows *= nest->dims[i];
  int64_t step[ASSAY_NEST_OPERANDS];
  for (int k = 0; k < nest->operands; k++) step[k] = nest->strides[k][nest->rank - 1];
  // A task is a block of a long row, or several short rows.
  int64_t width = inner < BLOCK ? inner : BLOCK, blocks = (inner + width - 1) / width;
  int64_t height = blocks > 1 ? 1 : (BLOCK + inner - 1) / inner;
  int64_t tasks = (rows + height - 1) / height * blocks;
  bool parallel = (double)rows * (double)inner * cost > PARALLEL_WORK;
#pragma omp parallel for schedule(static) if (parallel)
  for (int64_t task = 0; task < tasks; task++) {
    int64_t row = task / blocks * height, first = task % blocks * width;
    int64_t last = rows - row < height ? rows : row + height;
    int64_t n = inner - first < width ? inner - first : width;
    place_t p;
    place_set(nest, row, &p);
    for (int k = 0; k < nest->operands; k++) p.at[k] += first * step[k];
    for (; row < last; row++, place_next(nest, &p)) f(user, n, p.at, step);
  }
}

void assay_chunks_run(int64_t size, double cost, assay_chunk_fn* f, const void* user) {
  int64_t chunks = (size + BLOCK - 1) / BLOCK;
  bool parallel = (double)size * cost > PARALLEL_WORK;
#pragma omp parallel for schedule(static) if (parallel)
  for (int64_t i = 0; i < chunks; i++) {
    int64_t first = i * BLOCK;
    f(user, first, size - first < BLOCK ? size - first : BLOCK);
  }
}

// ---- integers -------------------------------------------------------------------------------

void assay_wrap_n(assay_type_t type, int64_t* x, int64_t n) {
  int bits = assay_type_bits(type);
  if (bits == 64) return;
  if (type == ASSAY_TYPE_BOOL) {
    for (int64_t i = 0; i < n; i++) x[i] = x[i] != 0;
  } else if (assay_type_is_signed(type)) {
    // Sign extension: shift the bits to the top and back (arithmetically, on gcc and clang).
    int up = 64 - bits;
    for (int64_t i = 0; i < n; i++) x[i] = assay_as_i64(assay_as_u64(x[i]) << up) >> up;
  } else {
    int64_t mask = (INT64_C(1) << bits) - 1;
    for (int64_t i = 0; i < n; i++) x[i] &= mask;
  }
}

int64_t assay_f64_to_int(assay_type_t type, double x) {
  if (type == ASSAY_TYPE_BOOL) return x != 0;
  double t = trunc(x);
  bool fits64 = t >= -0x1p63 && t < 0x1p63;
  switch (type) {
    case ASSAY_TYPE_INT64:
      return fits64 ? (int64_t)t : INT64_MIN;
    case ASSAY_TYPE_UINT64:
      if (t >= 0x1p64) return 0;
      if (t >= 0x1p63) return assay_as_i64((uint64_t)t);
      return fits64 ? (int64_t)t : INT64_MIN;
    case ASSAY_TYPE_INT32:
      return t >= -0x1p31 && t < 0x1p31 ? (int64_t)t : INT32_MIN;
    case ASSAY_TYPE_UINT32:
      return fits64 ? assay_type_wrap(type, (int64_t)t) : 0;
    default:
      return t >= -0x1p31 && t < 0x1p31 ? assay_type_wrap(type, (int64_t)t) : 0;
  }
}

// ---- broadcasting below opset 7 ---------------------------------------------------------------
// Source: ONNX Add-6: B is of one element, or its shape is a contiguous part of A's, from `axis` on
// or, without `axis`, at the end; only with broadcast=1.

// The dimension of A that B's first one belongs to.
static assay_status_t legacy_axis(const assay_node_t* node, int rank_a, int rank_b, int* out) {
  int64_t axis = rank_a - rank_b;
  if (assay_attr_has(node, "axis")) axis = assay_attr_i64(node, "axis", axis);
  if (axis < 0 && axis >= -rank_a) axis += rank_a;
  if (rank_b > rank_a || axis < 0 || axis > rank_a - rank_b)
    return ASSAY_NODE_ERROR(
        node, ASSAY_INVALID_ARGUMENT,
        "B has rank %d, A has rank %d and axis is %lld: B's dimensions must lie "
        "within A's",
        rank_b, rank_a, (long long)axis);
  *out = (int)axis;
  return NULL;
}

assay_status_t assay_infer_legacy_broadcast(assay_infer_t* c, assay_type_t elem) {
  assay_shape_t a = assay_infer_shape(c, 0), b = assay_infer_shape(c, 1), r = a;
  bool broadcast = assay_attr_i64(c->node, "broadcast", 0) != 0;
  if (!broadcast && !a.known) r = b;
  if (a.known && b.known) {
    bool single = true;  // it may be of one element, which fits anywhere
    for (int i = 0; i < b.rank; i++) {
      int64_t d;
      if (assay_dim_value(b.dims[i], &d) && d != 1) single = false;
    }
    int axis = 0;
    if (broadcast && !single) ASSAY_TRY(legacy_axis(c->node, a.rank, b.rank, &axis));
    bool fits = broadcast || a.rank == b.rank;
    for (int i = 0; fits && !(broadcast && single) && i < b.rank; i++) {
      int64_t d;
      bool one = broadcast && assay_dim_value(b.dims[i], &d) && d == 1;
      fits = one || !assay_dim_differ(a.dims[axis + i], b.dims[i]);
      if (fits && !broadcast && !a.dims[i]) r.dims[i] = b.dims[i];
    }
    if (!fits)
      return ASSAY_NODE_ERROR(
          c->node, ASSAY_CORRUPT, "A is %s and B is %s; before opset 7 they must have %s",
          ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)), ASSAY_VALTYPE_TEXT(assay_infer_type(c, 1)),
          broadcast ? "the same dimensions from 'axis' on" : "the same shape unless broadcast=1");
  }
  return assay_infer_set(c, 0, elem, &r);
}

assay_status_t assay_eval_legacy_strides(const assay_eval_t* c, const assay_tensor_t* a,
                                         const assay_tensor_t* b, int64_t* strides) {
  for (int i = 0; i < a->rank; i++) strides[i] = 0;
  bool broadcast = assay_attr_i64(c->node, "broadcast", 0) != 0;
  if (broadcast && b->size == 1) return NULL;
  int axis = 0;
  bool fits = broadcast || a->rank == b->rank;
  if (broadcast) ASSAY_TRY(legacy_axis(c->node, a->rank, b->rank, &axis));
  int64_t stride = 1;
  for (int i = b->rank - 1; fits && i >= 0; i--) {
    fits = a->dims[axis + i] == b->dims[i] || (broadcast && b->dims[i] == 1);
    strides[axis + i] = b->dims[i] == 1 ? 0 : stride;
    stride *= b->dims[i];
  }
  if (!fits)
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "A has shape %s and B has shape %s; before opset 7 they must have %s", ASSAY_DIMS_TEXT(a),
        ASSAY_DIMS_TEXT(b),
        broadcast ? "the same dimensions from 'axis' on" : "the same shape unless broadcast=1");
  return NULL;
}

// ---- cost -----------------------------------------------------------------------------------

void assay_pointwise_cost(const assay_eval_t* c, assay_cost_t* out) {
  int64_t size = 0;
  if (c->out && c->n_out && c->out[0]) {
    size = c->out[0]->size;
  } else {
    for (size_t i = 0; i < c->n_in; i++)
      if (c->in[i] && c->in[i]->size > size) size = c->in[i]->size;
  }
  out->flops = (double)size;
}
