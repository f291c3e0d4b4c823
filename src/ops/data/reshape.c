// Reshape: new dims for the same elements.
#include "ops/data/reshape.h"

#include "ops/families.h"

// ---- on expressions --------------------------------------------------------------------------

// The quotient of two products of dims: equal factors cancel first, so that N * 12 * 64 / N is 768
// and a size that is 0 when running does no harm; then the numbers, then what is left.
typedef struct quotient {
  assay_dims_t* dims;
  int n_up, n_down;
  const assay_dim_t* up[ASSAY_MAX_RANK];
  const assay_dim_t* down[ASSAY_MAX_RANK];
  bool maybe_zero;  // what was cancelled may be 0: then anything divides
} quotient_t;

static const assay_dim_t* quotient_product(assay_dims_t* p, int n, const assay_dim_t* const* d) {
  const assay_dim_t* product = assay_dim_const(p, 1);
  for (int i = 0; i < n; i++) product = assay_dim_mul(p, product, d[i]);
  return product;
}

static void quotient_cancel(quotient_t* q) {
  for (int j = 0; j < q->n_down;) {
    int i = 0;
    while (i < q->n_up && !assay_dim_same(q->up[i], q->down[j])) i++;
    if (i == q->n_up) {
      j++;
      continue;
    }
    int64_t value;
    q->maybe_zero |= !assay_dim_value(q->down[j], &value) || value == 0;
    q->up[i] = q->up[--q->n_up];
    q->down[j] = q->down[--q->n_down];
  }
}

// NULL: not known. *out_wrong: both products are numbers and do not divide.
static const assay_dim_t* quotient_value(quotient_t* q, bool* out_wrong) {
  quotient_cancel(q);
  const assay_dim_t* up = quotient_product(q->dims, q->n_up, q->up);
  const assay_dim_t* down = quotient_product(q->dims, q->n_down, q->down);
  int64_t x, y;
  if (assay_dim_value(down, &y)) {
    if (y == 0) return NULL;
    if (assay_dim_value(up, &x) && x % y != 0) return *out_wrong = !q->maybe_zero, NULL;
  }
  return assay_dim_floordiv(q->dims, up, down);
}

static assay_status_t check_sizes(const assay_infer_t* c, const assay_shape_t* in,
                                  const assay_shape_t* out) {
  if (!in->known) return NULL;
  int64_t a, b;
  if (!assay_dim_value(assay_shape_size(c->dims, in, 0, in->rank), &a)) return NULL;
  if (!assay_dim_value(assay_shape_size(c->dims, out, 0, out->rank), &b) || a == b) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input has %lld elements, the new shape %lld", (long long)a,
                          (long long)b);
}

// Reads the entries: dims that are known go to *out; *out_rest is the entry that is -1 or the only
// one not known, or -1 if there is none; *out_open: more than one is open.
static assay_status_t read_target(assay_infer_t* c, const assay_shape_t* in, int64_t n,
                                  const assay_dim_t* const* target, bool allow_zero,
                                  assay_shape_t* out, int* out_rest, bool* out_open) {
  int minus = -1, unknown = -1, n_unknown = 0;
  bool has_zero = false;
  for (int i = 0; i < (int)n; i++) {
    int64_t value;
    out->dims[i] = target[i];
    if (target[i] && !assay_dim_value(target[i], &value) && !assay_dim_is_size(c->dims, target[i]))
      out->dims[i] = NULL;  // it may turn out to be -1, or 0, which copies
    if (!out->dims[i]) {
      unknown = i, n_unknown++;
    } else if (!assay_dim_value(target[i], &value)) {
      continue;
    } else if (value == -1) {
      if (minus >= 0) {
        return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                                "the new shape has -1 twice, at %d and %d", minus, i);
      }
      minus = i;
      out->dims[i] = NULL;
    } else if (value < 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "the new shape has %lld at %d",
                              (long long)value, i);
    } else if (value == 0 && allow_zero) {
      has_zero = true;
    } else if (value == 0) {
      if (in->known && i >= in->rank) {
        return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                                "the new shape copies dim %d (0), input has rank %d", i, in->rank);
      }
      out->dims[i] = in->known ? in->dims[i] : NULL;
      if (!out->dims[i]) n_unknown++, unknown = i;
    }
  }
  if (has_zero && minus >= 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "the new shape has 0 and -1, which allowzero=1 forbids");
  }
  *out_rest = minus >= 0 ? minus : unknown;
  *out_open = n_unknown + (minus >= 0) > 1;
  return NULL;
}

assay_status_t assay_reshape_infer(assay_infer_t* c, const assay_shape_t* in, int64_t n,
                                   const assay_dim_t* const* target, bool allow_zero,
                                   assay_shape_t* out) {
  if (n > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "the new shape has rank %lld, over %d",
                            (long long)n, ASSAY_MAX_RANK);
  }
  *out = (assay_shape_t){.known = true, .rank = (int)n};
  int rest = -1;
  bool open = false;
  ASSAY_TRY(read_target(c, in, n, target, allow_zero, out, &rest, &open));
  if (rest < 0) return check_sizes(c, in, out);
  if (open || !in->known) return NULL;
  quotient_t q = {.dims = c->dims, .n_up = in->rank};
  for (int i = 0; i < in->rank; i++) q.up[i] = in->dims[i];
  for (int i = 0; i < out->rank; i++) {
    if (i != rest) q.down[q.n_down++] = out->dims[i];
  }
  bool wrong = false;
  out->dims[rest] = quotient_value(&q, &wrong);
  if (!wrong) return NULL;
  const assay_dim_t* size = assay_shape_size(c->dims, in, 0, in->rank);
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input has %s elements, which the new shape's other dims do not divide",
                          assay_dim_text(size, (char[64]){0}, 64));
}

// ---- on numbers ------------------------------------------------------------------------------

// What stands for -1: equal dims cancel as above, so that [0, 12, 64] to [0, -1] is [0, 768].
static bool rest_of(const assay_tensor_t* in, int rank, const int64_t* dims, int rest,
                    int64_t* out) {
  int64_t up[ASSAY_MAX_RANK], x = 1, y = 1;
  int n_up = in->rank;
  for (int i = 0; i < n_up; i++) up[i] = in->dims[i];
  for (int j = 0; j < rank; j++) {
    if (j == rest) continue;
    int i = 0;
    while (i < n_up && up[i] != dims[j]) i++;
    if (i < n_up) {
      up[i] = up[--n_up];
    } else if (!assay_mul_i64(y, dims[j], &y)) {
      return false;
    }
  }
  for (int i = 0; i < n_up; i++) {
    if (!assay_mul_i64(x, up[i], &x)) return false;
  }
  if (y == 0 || x % y != 0) return false;
  *out = x / y;
  return true;
}

assay_status_t assay_reshape_eval(const assay_eval_t* c, const assay_tensor_t* in, int64_t n,
                                  const int64_t* target, bool allow_zero, int* out_rank,
                                  int64_t* out_dims) {
  if (n > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "the new shape has rank %lld, over %d",
                            (long long)n, ASSAY_MAX_RANK);
  }
  int rank = (int)n, rest = -1;
  bool has_zero = false;
  for (int i = 0; i < rank; i++) {
    out_dims[i] = target[i];
    if (target[i] == -1 && rest < 0) {
      rest = i;
    } else if (target[i] < 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "the new shape has %lld at %d; one entry may be -1, others not",
                              (long long)target[i], i);
    } else if (target[i] == 0 && allow_zero) {
      has_zero = true;
    } else if (target[i] == 0) {
      if (i >= in->rank) {
        return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                                "the new shape copies dim %d (0), input has rank %d", i, in->rank);
      }
      out_dims[i] = in->dims[i];
    }
  }
  if (has_zero && rest >= 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "the new shape has 0 and -1, which allowzero=1 forbids");
  }
  int64_t size;
  bool fits = rest < 0 || rest_of(in, rank, out_dims, rest, &out_dims[rest]);
  if (!fits || !assay_dims_size(rank, out_dims, &size) || size != in->size) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input %s with %lld elements cannot become %s", ASSAY_DIMS_TEXT(in),
                            (long long)in->size,
                            assay_dims_text(rank, out_dims, (char[512]){0}, 512));
  }
  *out_rank = rank;
  return NULL;
}

// ---- the operator ----------------------------------------------------------------------------

static assay_status_t set_reshaped(assay_infer_t* c, const assay_shape_t* out) {
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, 0), out));
  assay_content_list_t list;
  if (!out->known || out->rank > 1 || !assay_content_read(c, 0, &list)) return NULL;
  if (out->rank == 0 && list.n != 1) return NULL;
  list.rank = out->rank;
  return assay_content_write(c, 0, 0, &list);
}

// Source: ONNX Reshape-1: the shape is an attribute.
static assay_status_t reshape1_infer(assay_infer_t* c) {
  size_t n;
  const int64_t* target = assay_attr_ints(c->node, "shape", &n);
  if (n > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "attribute shape has %zu entries, over %d",
                            n, ASSAY_MAX_RANK);
  }
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  for (size_t i = 0; i < n; i++) dims[i] = assay_dim_const(c->dims, target[i]);
  assay_shape_t in = assay_infer_shape(c, 0), out;
  ASSAY_TRY(assay_reshape_infer(c, &in, (int64_t)n, dims, false, &out));
  return set_reshaped(c, &out);
}

// Source: ONNX Reshape-5, -14 (allowzero).
static assay_status_t reshape_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 1, 1, 1));
  assay_shape_t in = assay_infer_shape(c, 0), target = assay_infer_shape(c, 1), out = {0};
  assay_content_list_t list;
  int64_t n;
  if (assay_content_read(c, 1, &list)) {
    bool allow_zero = assay_attr_i64(c->node, "allowzero", 0) != 0;
    ASSAY_TRY(assay_reshape_infer(c, &in, list.n, list.elems, allow_zero, &out));
  } else if (target.known && target.rank == 1 && assay_dim_value(target.dims[0], &n) && n >= 0 &&
             n <= ASSAY_MAX_RANK) {
    out.known = true;
    out.rank = (int)n;
  }
  return set_reshaped(c, &out);
}

static assay_status_t reshape_to(assay_eval_t* c, int64_t n, const int64_t* target,
                                 bool allow_zero) {
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  ASSAY_TRY(assay_reshape_eval(c, c->in[0], n, target, allow_zero, &rank, dims));
  assay_tensor_t* out;
  ASSAY_TRY(assay_tensor_view(c->in[0], rank, dims, &out));
  assay_eval_set(c, 0, out);
  assay_tensor_release(out);
  return NULL;
}

static assay_status_t reshape1_eval(assay_eval_t* c) {
  size_t n;
  const int64_t* target = assay_attr_ints(c->node, "shape", &n);
  return reshape_to(c, (int64_t)n, target, false);
}

static assay_status_t reshape_eval(assay_eval_t* c) {
  if (c->in[1]->rank != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input 'shape' has rank %d, not 1",
                            c->in[1]->rank);
  }
  return reshape_to(c, c->in[1]->size, assay_i64(c->in[1]),
                    assay_attr_i64(c->node, "allowzero", 0) != 0);
}

const assay_op_t assay_ops_reshape[] = {{.domain = "",
                                         .name = "Reshape",
                                         .since = 1,
                                         .flags = ASSAY_OP_MOVES,
                                         .infer = reshape1_infer,
                                         .eval = reshape1_eval},
                                        {.domain = "",
                                         .name = "Reshape",
                                         .since = 5,
                                         .flags = ASSAY_OP_MOVES,
                                         .infer = reshape_infer,
                                         .eval = reshape_eval},
                                        {0}};
