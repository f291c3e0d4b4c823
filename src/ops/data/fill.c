// Operators that make a tensor from little: Expand, Constant, ConstantOfShape, Range.
#include <math.h>

#include "ops/bound_number.h"
#include "ops/content.h"
#include "ops/data/strided.h"
#include "ops/families.h"

// ---- Expand ----------------------------------------------------------------------------------

static assay_status_t expand_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 1, 1, 1));
  assay_shape_t in = assay_infer_shape(c, 0), target = {0}, out = {0};
  assay_content_list_t list;
  assay_type_t type = assay_infer_elem(c, 0);
  if (!assay_content_read(c, 1, &list)) {
    assay_shape_t length = assay_infer_shape(c, 1);
    int64_t n;
    out.known = in.known && length.known && length.rank == 1 &&
                assay_dim_value(length.dims[0], &n) && n <= ASSAY_MAX_RANK;
    if (out.known) out.rank = in.rank > (int)n ? in.rank : (int)n;
    return assay_infer_set(c, 0, type, &out);
  }
  if (list.n > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "input 'shape' has %lld entries, over %d",
                            (long long)list.n, ASSAY_MAX_RANK);
  }
  target.known = true;
  target.rank = (int)list.n;
  for (int i = 0; i < target.rank; i++) {
    int64_t value;
    target.dims[i] = list.elems[i];
    if (assay_dim_value(list.elems[i], &value) && value < 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input 'shape' has %lld at %d, expected 0 or more", (long long)value,
                              i);
    }
  }
  if (in.known) ASSAY_TRY(assay_infer_broadcast(c, &in, &target, &out));
  ASSAY_TRY(assay_infer_set(c, 0, type, &out));
  int64_t n;
  if (!out.known || out.rank != 1 || !assay_content_read(c, 0, &list) || list.n != 1) return NULL;
  if (!assay_dim_value(out.dims[0], &n) || n > ASSAY_CONTENT_MAX) return NULL;
  for (int64_t i = 1; i < n; i++) list.elems[i] = list.elems[0];
  list.rank = 1;
  list.n = n;
  return assay_content_write(c, 0, 0, &list);
}

static assay_status_t expand_eval(assay_eval_t* c) {
  const assay_tensor_t* in = c->in[0];
  ASSAY_TRY(assay_eval_want_rank(c, 1, 1, 1));
  int64_t n = c->in[1]->size;
  const int64_t* target = assay_i64(c->in[1]);
  if (n > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "input 'shape' has %lld entries, over %d",
                            (long long)n, ASSAY_MAX_RANK);
  }
  int rank = in->rank > (int)n ? in->rank : (int)n;
  int64_t dims[ASSAY_MAX_RANK], from[ASSAY_MAX_RANK], to[ASSAY_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    int64_t a = i < rank - in->rank ? 1 : in->dims[i - (rank - in->rank)];
    int64_t b = i < rank - (int)n ? 1 : target[i - (rank - (int)n)];
    if (b < 0 || (a != b && a != 1 && b != 1)) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input %s cannot be broadcast to %s",
                              ASSAY_DIMS_TEXT(in),
                              assay_dims_text((int)n, target, (char[512]){0}, 512));
    }
    dims[i] = a == 1 ? b : a;
  }
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, in->type, rank, dims, &out));
  assay_broadcast_strides(in, rank, dims, from);
  assay_row_major(rank, dims, to);
  return assay_copy_strided(rank, dims, in, 0, from, out, 0, to);
}

// ---- Constant --------------------------------------------------------------------------------

static const char* const constant_names[] = {"value",        "sparse_value", "value_float",
                                             "value_floats", "value_int",    "value_ints",
                                             "value_string", "value_strings"};

// Exactly one of the attributes is there. Source: ONNX Constant-12.
static assay_status_t constant_attr(const assay_node_t* node, const assay_attr_t** out) {
  const assay_attr_t* found = NULL;
  for (size_t i = 0; i < sizeof constant_names / sizeof *constant_names; i++) {
    const assay_attr_t* a = assay_node_attr(node, constant_names[i]);
    if (a && found) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                              "attributes %s and %s are both set, expected one", found->name,
                              a->name);
    }
    if (a) found = a;
  }
  if (!found) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "no attribute has the value; expected one of value, sparse_value, "
                            "value_float, value_floats, value_int, value_ints, value_string, "
                            "value_strings");
  }
  *out = found;
  return NULL;
}

static assay_status_t constant_strings(const assay_attr_t* a, assay_tensor_t** out) {
  bool list = a->type == ASSAY_ATTR_STRINGS;
  int64_t n = list ? (int64_t)a->n : 1;
  assay_tensor_t* t;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_STRING, list ? 1 : 0, &n, &t));
  assay_status_t st = NULL;
  for (int64_t i = 0; i < n && !st; i++) {
    const assay_string_t* s = list ? &a->u.strings[i] : &a->u.s;
    st = assay_tensor_set_string(t, i, s->text, s->len);
  }
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

static assay_status_t constant_floats(const assay_attr_t* a, assay_tensor_t** out) {
  int64_t n = (int64_t)a->n;
  assay_tensor_t* t;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, &n, &t));
  for (int64_t i = 0; i < n; i++) assay_f64(t)[i] = (double)a->u.floats[i];
  *out = t;
  return NULL;
}

// The value as a canonical tensor.
static assay_status_t constant_tensor(const assay_node_t* node, assay_tensor_t** out) {
  const assay_attr_t* a;
  ASSAY_TRY(constant_attr(node, &a));
  switch (a->type) {
    case ASSAY_ATTR_TENSOR:
    case ASSAY_ATTR_SPARSE_TENSOR:
      return assay_tensor_widen(a->u.t, out);
    case ASSAY_ATTR_FLOAT:
      return assay_tensor_scalar_f64(ASSAY_TYPE_FLOAT, (double)a->u.f, out);
    case ASSAY_ATTR_FLOATS:
      return constant_floats(a, out);
    case ASSAY_ATTR_INT:
      return assay_tensor_scalar_i64(ASSAY_TYPE_INT64, a->u.i, out);
    case ASSAY_ATTR_INTS:
      return assay_tensor_vector_i64(ASSAY_TYPE_INT64, (int64_t)a->n, a->u.ints, out);
    case ASSAY_ATTR_STRING:
    case ASSAY_ATTR_STRINGS:
      return constant_strings(a, out);
    default:
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "attribute %s has a wrong type",
                              a->name);
  }
}

static assay_status_t constant_set(assay_infer_t* c, assay_type_t type, int rank,
                                   const int64_t* dims) {
  assay_shape_t out = {.known = true, .rank = rank};
  for (int i = 0; i < rank; i++) out.dims[i] = assay_dim_const(c->dims, dims[i]);
  return assay_infer_set(c, 0, type, &out);
}

static assay_status_t constant_infer(assay_infer_t* c) {
  const assay_attr_t* a;
  ASSAY_TRY(constant_attr(c->node, &a));
  if (a->type == ASSAY_ATTR_TENSOR || a->type == ASSAY_ATTR_SPARSE_TENSOR) {
    const assay_tensor_t* t = a->u.t;
    ASSAY_TRY(constant_set(c, t->type, t->rank, t->dims));
    bool small = t->rank <= 1 && t->size <= ASSAY_CONTENT_MAX;
    if (!small || assay_type_store(t->type) != ASSAY_STORE_I64) return NULL;
  }
  assay_tensor_t* value;
  ASSAY_TRY(constant_tensor(c->node, &value));
  assay_status_t st = constant_set(c, value->type, value->rank, value->dims);
  if (!st && value->store == ASSAY_STORE_I64 && value->size <= ASSAY_CONTENT_MAX &&
      assay_infer_wants(c, 0)) {
    const assay_dim_t* elems[ASSAY_CONTENT_MAX];
    for (int64_t i = 0; i < value->size; i++) {
      elems[i] = assay_dim_const(c->dims, assay_i64(value)[i]);
    }
    st = assay_infer_set_content(c, 0, value->rank, value->size, elems);
  }
  assay_tensor_release(value);
  return st;
}

static assay_status_t constant_eval(assay_eval_t* c) {
  assay_tensor_t* value;
  ASSAY_TRY(constant_tensor(c->node, &value));
  assay_eval_set(c, 0, value);
  assay_tensor_release(value);
  return NULL;
}

// ---- ConstantOfShape -------------------------------------------------------------------------

// The value's only element; NULL: float 0.
static assay_status_t fill_value(const assay_node_t* node, assay_tensor_t** out) {
  assay_tensor_t* value = assay_attr_tensor(node, "value");
  *out = NULL;
  if (!value) return NULL;
  if (value->size != 1) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "attribute value has %lld elements, expected 1",
                            (long long)value->size);
  }
  return assay_tensor_widen(value, out);
}

static assay_status_t constant_of_shape_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, 1));
  const assay_tensor_t* declared = assay_attr_tensor(c->node, "value");
  assay_type_t type = declared ? declared->type : ASSAY_TYPE_FLOAT;
  assay_shape_t length = assay_infer_shape(c, 0), out = {0};
  assay_content_list_t list;
  bool known = assay_content_read(c, 0, &list);
  if (!known) {
    int64_t n;
    out.known = length.known && length.rank == 1 && assay_dim_value(length.dims[0], &n) &&
                n <= ASSAY_MAX_RANK;
    if (out.known) out.rank = (int)n;
    return assay_infer_set(c, 0, type, &out);
  }
  if (list.n > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "input has %lld entries, over %d",
                            (long long)list.n, ASSAY_MAX_RANK);
  }
  out.known = true;
  out.rank = (int)list.n;
  for (int i = 0; i < out.rank; i++) {
    out.dims[i] = list.elems[i];
    if (assay_dim_negative(out.dims[i])) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input has a negative size at %d",
                              i);
    }
  }
  ASSAY_TRY(assay_infer_set(c, 0, type, &out));
  int64_t n = 1;
  if (out.rank > 1 || (out.rank == 1 && !assay_dim_value(out.dims[0], &n))) return NULL;
  if (n > ASSAY_CONTENT_MAX || assay_type_store(type) != ASSAY_STORE_I64) return NULL;
  if (!assay_infer_wants(c, 0)) return NULL;
  assay_tensor_t* value;
  ASSAY_TRY(fill_value(c->node, &value));
  for (int64_t i = 0; i < n; i++) {
    list.elems[i] = assay_dim_const(c->dims, value ? assay_i64(value)[0] : 0);
  }
  assay_tensor_release(value);
  return assay_infer_set_content(c, 0, out.rank, n, list.elems);
}

static assay_status_t constant_of_shape_eval(assay_eval_t* c) {
  const assay_tensor_t* in = c->in[0];
  ASSAY_TRY(assay_eval_want_rank(c, 0, 1, 1));
  if (in->size > ASSAY_MAX_RANK) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "input has %lld entries, over %d",
                            (long long)in->size, ASSAY_MAX_RANK);
  }
  for (int64_t i = 0; i < in->size; i++) {
    if (assay_i64(in)[i] >= 0) continue;
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has %lld at %lld, expected 0 or more",
                            (long long)assay_i64(in)[i], (long long)i);
  }
  assay_tensor_t *value, *out;
  ASSAY_TRY(fill_value(c->node, &value));
  assay_status_t st = assay_eval_output(c, 0, value ? value->type : ASSAY_TYPE_FLOAT, (int)in->size,
                                        assay_i64(in), &out);
  if (!st) st = value ? assay_fill_from(out, value, 0) : assay_fill_zero(out);
  assay_tensor_release(value);
  return st;
}

// ---- Range -----------------------------------------------------------------------------------

// Elements of start, start + delta, ... before limit, on expressions; NULL if not known.
static const assay_dim_t* range_count(assay_dims_t* p, const assay_dim_t* start,
                                      const assay_dim_t* limit, const assay_dim_t* delta) {
  int64_t step;
  if (!assay_dim_value(delta, &step) || step == 0 || step == INT64_MIN) return NULL;
  const assay_dim_t* span =
      step > 0 ? assay_dim_sub(p, limit, start) : assay_dim_sub(p, start, limit);
  span = assay_dim_clamp0(p, span);
  return assay_dim_ceildiv(p, span, assay_dim_const(p, step > 0 ? step : -step));
}

static assay_status_t range_infer(assay_infer_t* c) {
  assay_shape_t out = {.known = true, .rank = 1};
  assay_content_list_t start, limit, delta;
  const assay_dim_t *from = NULL, *step = NULL;
  if (assay_content_read(c, 0, &start) && assay_content_read(c, 1, &limit) && start.n == 1 &&
      limit.n == 1) {
    if (!assay_infer_has(c, 2)) {
      step = assay_dim_const(c->dims, 1);  // com.microsoft
    } else if (assay_content_read(c, 2, &delta) && delta.n == 1) {
      step = delta.elems[0];
    }
    from = start.elems[0];
    out.dims[0] = range_count(c->dims, from, limit.elems[0], step);
  }
  if (!out.dims[0]) out.dims[0] = assay_dim_fresh(c->dims, "range");
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, 0), &out));
  int64_t n;
  if (!assay_dim_value(out.dims[0], &n) || n > ASSAY_CONTENT_MAX || !from || !step) return NULL;
  assay_content_list_t list = {.rank = 1, .n = n};
  for (int64_t i = 0; i < n; i++) {
    list.elems[i] = from;
    from = assay_dim_add(c->dims, from, step);
  }
  return assay_content_write(c, 0, 0, &list);
}

// Source: ONNX Range-11. Counts in unsigned arithmetic, where no difference overflows.
static assay_status_t range_i64(assay_eval_t* c, assay_type_t type, int64_t start, int64_t limit,
                                int64_t delta) {
  uint64_t span = 0, step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
  if (delta > 0 && limit > start) span = (uint64_t)limit - (uint64_t)start;
  if (delta < 0 && limit < start) span = (uint64_t)start - (uint64_t)limit;
  uint64_t count = span == 0 ? 0 : (span - 1) / step + 1;
  if (count > INT64_MAX) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "the range has %llu elements",
                            (unsigned long long)count);
  }
  int64_t n = (int64_t)count;
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, type, 1, &n, &out));
  for (int64_t i = 0; i < n; i++) {
    assay_i64(out)[i] = (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta);
  }
  return NULL;
}

// Source: ONNX Range-11, -27. The count is taken in double, as numpy and ONNX Runtime do; an engine
// rounds i * delta and the sum (stash_type 1: in fp32, also for fp16).
static assay_status_t range_f64(assay_eval_t* c, assay_type_t type, double start, double limit,
                                double delta) {
  double count = ceil((limit - start) / delta);
  if (!(count < 9007199254740992.0)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "start %g, limit %g, delta %g make no finite range", start, limit,
                            delta);
  }
  int64_t n = count > 0 ? (int64_t)count : 0;
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, type, 1, &n, &out));
  for (int64_t i = 0; i < n; i++) {
    assay_f64(out)[i] = assay_acc(c, start + assay_acc(c, (double)i * delta));
  }
  return NULL;
}

static assay_status_t range_eval(assay_eval_t* c) {
  static const char* const names[] = {"start", "limit", "delta"};
  const assay_tensor_t* in[3] = {NULL, NULL, NULL};
  for (size_t i = 0; i < 3; i++) {
    if (!assay_eval_has(c, i)) continue;
    in[i] = c->in[i];
    if (in[i]->size != 1) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input '%s' has shape %s, expected a scalar", names[i],
                              ASSAY_DIMS_TEXT(in[i]));
    }
    if (in[i]->store != in[0]->store) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input '%s' is %s, 'start' is %s",
                              names[i], assay_type_name(in[i]->type), assay_type_name(in[0]->type));
    }
  }
  bool is_float = in[0]->store == ASSAY_STORE_F64;
  if (in[2] && (is_float ? assay_f64(in[2])[0] == 0 : assay_i64(in[2])[0] == 0)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input 'delta' is 0");
  }
  if (is_float) {
    return range_f64(c, in[0]->type, assay_f64(in[0])[0], assay_f64(in[1])[0],
                     in[2] ? assay_f64(in[2])[0] : 1);
  }
  return range_i64(c, in[0]->type, assay_i64(in[0])[0], assay_i64(in[1])[0],
                   in[2] ? assay_i64(in[2])[0] : 1);
}

// start + i * delta, or delta added i times by engines of which nothing is known.
static assay_status_t range_bound(assay_bound_t* c) {
  if (!assay_bound_is_float(c, 0)) return NULL;
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));  // how many elements there are would hang on it
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  const assay_number_t start = assay_number_input(c, 0, 0);
  const double delta = c->n_in > 2 && c->in[2] ? assay_f64(c->in[2])[0] : 1, u = a.inner.u;
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  for (int64_t i = 0; i < c->out[0]->size; i++) {
    // The count itself is rounded where the format cannot hold it.
    assay_number_t n = assay_number_exact((double)i);
    if (n.v > 1 / u) n = assay_number_round(&a, u, n);
    const assay_number_t y =
        assay_number_add(&a, start, assay_number_mul(&a, n, assay_number_exact(delta)));
    assay_number_limits(&a, y, &g[i], &p[i]);
    if (a.rounding->documented) continue;
    const double size = (fabs(start.v) + n.v * fabs(delta)) * u;
    g[i] += n.v * size;
    p[i] += fmin(n.v, 6 * sqrt(n.v)) * size;
  }
  return NULL;
}

const assay_op_t assay_ops_fill[] = {
    {.domain = "",
     .name = "Expand",
     .since = 8,
     .flags = ASSAY_OP_MOVES,
     .infer = expand_infer,
     .eval = expand_eval},
    {.domain = "",
     .name = "Constant",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .infer = constant_infer,
     .eval = constant_eval},
    {.domain = "",
     .name = "ConstantOfShape",
     .since = 9,
     .flags = ASSAY_OP_MOVES,
     .infer = constant_of_shape_infer,
     .eval = constant_of_shape_eval},
    {.domain = "",
     .name = "Range",
     .since = 11,
     .infer = range_infer,
     .eval = range_eval,
     .bound = range_bound},
    {.domain = "com.microsoft",
     .name = "Range",
     .since = 1,
     .schema = "start:T, limit:T, delta?:T -> Y:T | | T=float double int16 int32 int64",
     .infer = range_infer,
     .eval = range_eval,
     .bound = range_bound},
    {0}};
