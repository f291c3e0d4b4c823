// Sequences and optionals: containers of tensors that are never changed, so items are shared.
#include <string.h>

#include "base/alloc.h"
#include "ops/data/control.h"
#include "ops/families.h"
#include "ops/join.h"

// ---- helpers ----------------------------------------------------------------------------------

// The type of the items of a sequence input; NULL: not known.
static const assay_valtype_t* item_type(const assay_infer_t* c, size_t input) {
  const assay_valtype_t* t = assay_infer_type(c, input);
  return t && t->kind == ASSAY_KIND_SEQUENCE ? t->of : NULL;
}

static assay_status_t set_sequence(assay_infer_t* c, const assay_valtype_t* of) {
  const assay_valtype_t* t = NULL;
  ASSAY_TRY(assay_valtype_of(c->model, ASSAY_KIND_SEQUENCE, ASSAY_TYPE_UNDEFINED, of, &t));
  return assay_infer_set_type(c, 0, t);
}

static assay_status_t want_sequence(const assay_eval_t* c, const assay_tensor_t** out) {
  if (!assay_eval_has(c, 0) || c->in[0]->kind != ASSAY_KIND_SEQUENCE)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input 0 is not a sequence");
  *out = c->in[0];
  return NULL;
}

// Reads the optional position at input i, [-n, limit] with n = the number of items.
static assay_status_t read_position(const assay_eval_t* c, size_t i, int64_t n, int64_t limit,
                                    int64_t otherwise, int64_t* out) {
  *out = otherwise;
  if (assay_eval_has(c, i)) {
    const assay_tensor_t* t = c->in[i];
    if (t->kind != ASSAY_KIND_TENSOR || t->size != 1 || t->store != ASSAY_STORE_I64)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "position has shape %s; a scalar is expected", ASSAY_DIMS_TEXT(t));
    *out = assay_i64(t)[0];
  }
  if (*out < -n || *out > limit)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "position %lld is outside [%lld, %lld] of a sequence of %lld",
                            (long long)*out, (long long)-n, (long long)limit, (long long)n);
  if (*out < 0) *out += n;
  return NULL;
}

// Makes the output the sequence of these items.
static assay_status_t give_sequence(assay_eval_t* c, assay_type_t type, int64_t n,
                                    assay_tensor_t* const* items) {
  assay_tensor_t* s = NULL;
  ASSAY_TRY(assay_sequence_create(type, n, items, &s));
  assay_eval_set(c, 0, s);
  assay_tensor_release(s);
  return NULL;
}

static assay_status_t give_scalar(assay_eval_t* c, assay_type_t type, int64_t x) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, type, 0, NULL, &t));
  assay_i64(t)[0] = x;
  return NULL;
}

static assay_status_t scalar_infer(assay_infer_t* c, assay_type_t type) {
  const assay_shape_t scalar = {.known = true};
  return assay_infer_set(c, 0, type, &scalar);
}

// ---- SequenceConstruct, SequenceEmpty, SequenceLength, SequenceAt ------------------------------

static assay_status_t construct_infer(assay_infer_t* c) {
  const assay_valtype_t* of = assay_infer_type(c, 0);
  for (size_t i = 1; i < c->node->n_inputs; i++)
    ASSAY_TRY(assay_valtype_join(c->model, of, assay_infer_type(c, i), &of));
  if (!of)  // shapes of some are not known; the element type is common to all
    for (size_t i = 0; !of && i < c->node->n_inputs; i++)
      ASSAY_TRY(assay_valtype_strip(c->model, assay_infer_type(c, i), &of));
  return set_sequence(c, of);
}

static assay_status_t construct_eval(assay_eval_t* c) {
  for (size_t i = 0; i < c->n_in; i++)
    if (!c->in[i] || c->in[i]->type != c->in[0]->type)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input %zu is %s, the first is %s; all must be of one type", i,
                              c->in[i] ? assay_type_name(c->in[i]->type) : "left out",
                              c->in[0] ? assay_type_name(c->in[0]->type) : "left out");
  return give_sequence(c, c->n_in ? c->in[0]->type : ASSAY_TYPE_UNDEFINED, (int64_t)c->n_in, c->in);
}

static assay_status_t empty_type(const assay_node_t* n, assay_type_t* out) {
  int64_t dtype = assay_attr_i64(n, "dtype", ASSAY_TYPE_FLOAT);
  if (dtype <= ASSAY_TYPE_UNDEFINED || dtype >= ASSAY_TYPE_COUNT)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "attribute 'dtype' is %lld, which is not an element type",
                            (long long)dtype);
  *out = (assay_type_t)dtype;
  return NULL;
}

static assay_status_t empty_infer(assay_infer_t* c) {
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  const assay_valtype_t* t = NULL;
  ASSAY_TRY(empty_type(c->node, &type));
  ASSAY_TRY(assay_valtype_container(c->model, ASSAY_KIND_SEQUENCE, type, &t));
  return assay_infer_set_type(c, 0, t);
}

static assay_status_t empty_eval(assay_eval_t* c) {
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  ASSAY_TRY(empty_type(c->node, &type));
  return give_sequence(c, type, 0, NULL);
}

static assay_status_t length_infer(assay_infer_t* c) { return scalar_infer(c, ASSAY_TYPE_INT64); }

static assay_status_t length_eval(assay_eval_t* c) {
  const assay_tensor_t* s = NULL;
  ASSAY_TRY(want_sequence(c, &s));
  return give_scalar(c, ASSAY_TYPE_INT64, s->n_items);
}

static assay_status_t at_infer(assay_infer_t* c) {
  const assay_valtype_t* of = item_type(c, 0);
  return of ? assay_infer_set_type(c, 0, of) : assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
}

static assay_status_t at_eval(assay_eval_t* c) {
  const assay_tensor_t* s = NULL;
  int64_t at = 0;
  ASSAY_TRY(want_sequence(c, &s));
  ASSAY_TRY(read_position(c, 1, s->n_items, s->n_items - 1, 0, &at));
  assay_eval_set(c, 0, s->items[at]);
  return NULL;
}

// ---- SequenceInsert, SequenceErase --------------------------------------------------------------

static assay_status_t insert_infer(assay_infer_t* c) {
  const assay_valtype_t *of = item_type(c, 0), *t = assay_infer_type(c, 1), *joined = NULL;
  if (!assay_valtype_agree(of, t))
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "%s cannot be put into a sequence of %s",
                            ASSAY_VALTYPE_TEXT(t), ASSAY_VALTYPE_TEXT(of));
  if (of && t)
    ASSAY_TRY(assay_valtype_join(c->model, of, t, &joined));
  else
    ASSAY_TRY(assay_valtype_strip(c->model, of ? of : t, &joined));
  return set_sequence(c, joined);
}

static assay_status_t insert_eval(assay_eval_t* c) {
  const assay_tensor_t* s = NULL;
  assay_tensor_t* t = c->n_in > 1 ? c->in[1] : NULL;
  assay_tensor_t** items = NULL;
  int64_t at = 0;
  ASSAY_TRY(want_sequence(c, &s));
  ASSAY_TRY(read_position(c, 2, s->n_items, s->n_items, s->n_items, &at));
  if (!t || t->kind != ASSAY_KIND_TENSOR || (s->type && s->n_items && s->type != t->type))
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input 1 is %s; a tensor of the sequence's type %s is expected",
                            t ? assay_type_name(t->type) : "left out", assay_type_name(s->type));
  size_t before = (size_t)at, n = (size_t)s->n_items;
  ASSAY_TRY(assay_new_array(n + 1, sizeof *items, &items));
  if (before) memcpy(items, s->items, before * sizeof *items);
  items[at] = t;
  if (n > before) memcpy(items + at + 1, s->items + at, (n - before) * sizeof *items);
  assay_status_t st = give_sequence(c, t->type, s->n_items + 1, items);
  assay_free(items);
  return st;
}

static assay_status_t erase_infer(assay_infer_t* c) { return set_sequence(c, item_type(c, 0)); }

static assay_status_t erase_eval(assay_eval_t* c) {
  const assay_tensor_t* s = NULL;
  assay_tensor_t** items = NULL;
  int64_t at = 0;
  ASSAY_TRY(want_sequence(c, &s));
  if (!s->n_items)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "the sequence has no item to erase");
  ASSAY_TRY(read_position(c, 1, s->n_items, s->n_items - 1, s->n_items - 1, &at));
  ASSAY_TRY(assay_new_array((size_t)s->n_items, sizeof *items, &items));
  size_t before = (size_t)at, behind = (size_t)(s->n_items - at - 1);
  if (before) memcpy(items, s->items, before * sizeof *items);
  if (behind) memcpy(items + at, s->items + at + 1, behind * sizeof *items);
  assay_status_t st = give_sequence(c, s->type, s->n_items - 1, items);
  assay_free(items);
  return st;
}

// ---- ConcatFromSequence -------------------------------------------------------------------------

static assay_status_t concat_infer(assay_infer_t* c) {
  const assay_valtype_t* of = item_type(c, 0);
  int64_t stack = assay_attr_i64(c->node, "new_axis", 0);
  int64_t axis = assay_attr_i64(c->node, "axis", 0);
  assay_shape_t shape = {0};
  if (stack != 0 && stack != 1)
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "attribute 'new_axis' is %lld; 0 or 1 is expected", (long long)stack);
  if (!of) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  // An item's shape holds for all of them, however many there are; a rank past the limit is left to
  // eval.
  if (of->has_shape && of->rank + stack <= ASSAY_MAX_RANK) {
    int at = 0;
    shape.known = true;
    shape.rank = of->rank + (int)stack;
    ASSAY_TRY(assay_infer_axis(c, "axis", axis, shape.rank, &at));
    for (int i = 0, k = 0; i < shape.rank; i++) {
      shape.dims[i] = i == at ? NULL : of->dims[k];
      if (!stack || i != at) k++;
    }
  }
  return assay_infer_set(c, 0, of->elem, &shape);
}

static assay_status_t concat_shape(assay_eval_t* c, const assay_tensor_t* s, bool stack,
                                   int* out_axis, int* out_rank, int64_t* dims) {
  const assay_tensor_t* first = s->items[0];
  int rank = first->rank + stack;
  if (rank > ASSAY_MAX_RANK)
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "the result would have rank %d", rank);
  ASSAY_TRY(assay_eval_axis(c, "axis", assay_attr_i64(c->node, "axis", 0), rank, out_axis));
  int64_t length = 0;
  for (int64_t k = 0; k < s->n_items; k++) {
    const assay_tensor_t* t = s->items[k];
    bool same = t->kind == ASSAY_KIND_TENSOR && t->type == first->type && t->rank == first->rank;
    for (int i = 0; same && i < t->rank; i++)
      same = t->dims[i] == first->dims[i] || (!stack && i == *out_axis);
    if (!same)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "item %lld of the sequence is %s%s, item 0 is %s%s; they must agree "
                              "%s",
                              (long long)k, assay_type_name(t->type), ASSAY_DIMS_TEXT(t),
                              assay_type_name(first->type), ASSAY_DIMS_TEXT(first),
                              stack ? "" : "but for the axis");
    if (!assay_add_i64(length, stack ? 1 : t->dims[*out_axis], &length))
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "the result's axis overflows");
  }
  for (int i = 0, k = 0; i < rank; i++) {
    dims[i] = i == *out_axis ? length : first->dims[k];
    if (!stack || i != *out_axis) k++;
  }
  *out_rank = rank;
  return NULL;
}

// ai.onnx ConcatFromSequence-11. Items of a sequence from a file may still be packed.
static assay_status_t concat_eval(assay_eval_t* c) {
  const assay_tensor_t* s = NULL;
  assay_tensor_t* y = NULL;
  int axis = 0, rank = 0;
  int64_t dims[ASSAY_MAX_RANK];
  bool stack = assay_attr_i64(c->node, "new_axis", 0) != 0;
  ASSAY_TRY(want_sequence(c, &s));
  if (!s->n_items)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "the sequence is empty; at least one tensor is needed");
  ASSAY_TRY(concat_shape(c, s, stack, &axis, &rank, dims));
  ASSAY_TRY(assay_eval_output(c, 0, s->items[0]->type, rank, dims, &y));
  int64_t outer = assay_dims_product(dims, 0, axis);
  int64_t row = assay_dims_product(dims, axis, rank), at = 0;
  for (int64_t k = 0; k < s->n_items && y->size; k++) {
    const assay_tensor_t* item = s->items[k];
    int64_t part = item->size / outer;
    for (int64_t o = 0; o < outer; o++)
      ASSAY_TRY(assay_copy_elems(item, o * part, y, o * row + at, part));
    at += part;
  }
  return NULL;
}

// ---- SplitToSequence ----------------------------------------------------------------------------

static assay_status_t split_infer(assay_infer_t* c) {
  const assay_valtype_t *t = assay_infer_type(c, 0), *of = NULL;
  bool parts = assay_infer_has(c, 1);
  bool keep = parts || assay_attr_i64(c->node, "keepdims", 1);
  int axis = 0;
  if (!t || t->kind != ASSAY_KIND_TENSOR) return NULL;
  if (!t->has_shape) return set_sequence(c, t);
  ASSAY_TRY(assay_infer_axis(c, "axis", assay_attr_i64(c->node, "axis", 0), t->rank, &axis));
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < t->rank; i++)
    if (keep || i != axis) dims[rank++] = t->dims[i];
  if (!parts && keep) dims[axis] = assay_dim_const(c->dims, 1);
  // With `split` given, all parts have one length only if the lengths are equal numbers.
  assay_content_t split;
  if (parts) {
    bool equal = assay_infer_content(c, 1, &split) && split.rank == 1 && split.n;
    dims[axis] = equal ? split.elems[0] : NULL;
    for (int64_t k = 1; equal && k < split.n; k++)
      if (!assay_dim_same(split.elems[k], split.elems[0])) dims[axis] = NULL;
  }
  ASSAY_TRY(assay_valtype_tensor(c->model, t->elem, rank, dims, &of));
  return set_sequence(c, of);
}

// Reads `split` into the number of parts and, for a list, their lengths (borrowed).
static assay_status_t read_split(const assay_eval_t* c, int64_t length, int64_t* out_n,
                                 int64_t* out_part, const int64_t** out_lengths) {
  *out_part = 1;
  *out_lengths = NULL;
  if (assay_eval_has(c, 1) && c->in[1]->rank == 0) {
    *out_part = assay_i64(c->in[1])[0];
    if (*out_part < 1)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "split is %lld; it must be positive",
                              (long long)*out_part);
  } else if (assay_eval_has(c, 1)) {
    const assay_tensor_t* t = c->in[1];
    int64_t sum = 0;
    bool fits = t->rank == 1;
    for (int64_t k = 0; fits && k < t->size; k++) fits = assay_add_i64(sum, assay_i64(t)[k], &sum);
    if (!fits || sum != length)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "split has shape %s and %s %lld; a list of lengths that add up to "
                              "%lld is expected",
                              ASSAY_DIMS_TEXT(t), fits ? "adds up to" : "a negative entry after",
                              (long long)sum, (long long)length);
    *out_lengths = assay_i64(t);
    *out_n = t->size;
    return NULL;
  }
  *out_n = length / *out_part + (length % *out_part != 0);
  return NULL;
}

static assay_status_t split_part(const assay_tensor_t* x, int axis, int64_t at, int64_t part,
                                 bool keep, assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < x->rank; i++)
    if (keep || i != axis) dims[rank++] = i == axis ? part : x->dims[i];
  int64_t outer = assay_dims_product(x->dims, 0, axis);
  int64_t inner = assay_dims_product(x->dims, axis + 1, x->rank);
  assay_tensor_t* t = NULL;
  assay_status_t st = assay_tensor_create(x->type, rank, dims, &t);
  for (int64_t o = 0; !st && t->size && o < outer; o++)
    st = assay_copy_elems(x, (o * x->dims[axis] + at) * inner, t, o * part * inner, part * inner);
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

// ai.onnx SplitToSequence-11, 24.
static assay_status_t split_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  bool keep = assay_eval_has(c, 1) || assay_attr_i64(c->node, "keepdims", 1);
  int axis = 0;
  int64_t n = 0, part = 0, at = 0;
  const int64_t* lengths = NULL;
  assay_tensor_t** items = NULL;
  ASSAY_TRY(assay_eval_axis(c, "axis", assay_attr_i64(c->node, "axis", 0), x->rank, &axis));
  int64_t length = x->dims[axis];
  ASSAY_TRY(read_split(c, length, &n, &part, &lengths));
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *items, &items));
  assay_status_t st = NULL;
  for (int64_t k = 0; !st && k < n; k++) {
    int64_t len = lengths ? lengths[k] : part < length - at ? part : length - at;
    st = split_part(x, axis, at, len, keep, &items[k]);
    at += len;
  }
  if (!st) st = give_sequence(c, x->type, n, items);
  for (int64_t k = 0; k < n; k++) assay_tensor_release(items[k]);
  assay_free(items);
  return st;
}

// ---- Optional -----------------------------------------------------------------------------------

static assay_status_t optional_infer(assay_infer_t* c) {
  const assay_valtype_t *of = assay_infer_type(c, 0), *t = NULL;
  const assay_attr_t* a = assay_node_attr(c->node, "type");
  if (!assay_infer_has(c, 0)) {
    if (!a || a->type != ASSAY_ATTR_TYPE_PROTO)
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                              "neither an input nor the attribute 'type' is given");
    of = a->u.type;
  }
  ASSAY_TRY(assay_valtype_of(c->model, ASSAY_KIND_OPTIONAL, ASSAY_TYPE_UNDEFINED, of, &t));
  return assay_infer_set_type(c, 0, t);
}

static assay_status_t optional_eval(assay_eval_t* c) {
  const assay_attr_t* a = assay_node_attr(c->node, "type");
  const assay_valtype_t* of = a && a->type == ASSAY_ATTR_TYPE_PROTO ? a->u.type : NULL;
  while (of && of->kind != ASSAY_KIND_TENSOR) of = of->of;
  assay_tensor_t *item = assay_eval_has(c, 0) ? c->in[0] : NULL, *box = NULL;
  ASSAY_TRY(assay_optional_create(item ? item->type
                                  : of ? of->elem
                                       : ASSAY_TYPE_UNDEFINED,
                                  item, &box));
  assay_eval_set(c, 0, box);
  assay_tensor_release(box);
  return NULL;
}

// Version 18 takes tensors and sequences too, and gives them back; what may come in is up to the
// schema, so one function serves all versions.
static assay_status_t get_element_infer(assay_infer_t* c) {
  const assay_valtype_t* t = assay_infer_type(c, 0);
  if (t && t->kind == ASSAY_KIND_OPTIONAL) t = t->of;
  return t ? assay_infer_set_type(c, 0, t) : NULL;
}

static assay_status_t get_element_eval(assay_eval_t* c) {
  assay_tensor_t* t = assay_eval_has(c, 0) ? c->in[0] : NULL;
  if (t && t->kind == ASSAY_KIND_OPTIONAL) t = t->n_items ? t->items[0] : NULL;
  if (!t)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "the optional holds no element; guard it with OptionalHasElement");
  assay_eval_set(c, 0, t);
  return NULL;
}

static assay_status_t has_element_infer(assay_infer_t* c) {
  return scalar_infer(c, ASSAY_TYPE_BOOL);
}

static assay_status_t has_element_eval(assay_eval_t* c) {
  const assay_tensor_t* t = assay_eval_has(c, 0) ? c->in[0] : NULL;
  return give_scalar(c, ASSAY_TYPE_BOOL, t && (t->kind != ASSAY_KIND_OPTIONAL || t->n_items > 0));
}

const assay_op_t assay_ops_sequence[] = {{.domain = "",
                                          .name = "SequenceConstruct",
                                          .since = 11,
                                          .flags = ASSAY_OP_MOVES,
                                          .infer = construct_infer,
                                          .eval = construct_eval},
                                         {.domain = "",
                                          .name = "SequenceEmpty",
                                          .since = 11,
                                          .flags = ASSAY_OP_MOVES,
                                          .infer = empty_infer,
                                          .eval = empty_eval},
                                         {.domain = "",
                                          .name = "SequenceLength",
                                          .since = 11,
                                          .flags = ASSAY_OP_MOVES,
                                          .infer = length_infer,
                                          .eval = length_eval},
                                         {.domain = "",
                                          .name = "SequenceAt",
                                          .since = 11,
                                          .flags = ASSAY_OP_MOVES,
                                          .infer = at_infer,
                                          .eval = at_eval},
                                         {.domain = "",
                                          .name = "SequenceInsert",
                                          .since = 11,
                                          .flags = ASSAY_OP_MOVES,
                                          .infer = insert_infer,
                                          .eval = insert_eval},
                                         {.domain = "",
                                          .name = "SequenceErase",
                                          .since = 11,
                                          .flags = ASSAY_OP_MOVES,
                                          .infer = erase_infer,
                                          .eval = erase_eval},
                                         {.domain = "",
                                          .name = "ConcatFromSequence",
                                          .since = 11,
                                          .flags = ASSAY_OP_MOVES,
                                          .infer = concat_infer,
                                          .eval = concat_eval},
                                         {.domain = "",
                                          .name = "SplitToSequence",
                                          .since = 11,
                                          .flags = ASSAY_OP_MOVES,
                                          .infer = split_infer,
                                          .eval = split_eval},
                                         {.domain = "",
                                          .name = "Optional",
                                          .since = 15,
                                          .flags = ASSAY_OP_MOVES,
                                          .infer = optional_infer,
                                          .eval = optional_eval},
                                         {.domain = "",
                                          .name = "OptionalGetElement",
                                          .since = 15,
                                          .flags = ASSAY_OP_MOVES,
                                          .infer = get_element_infer,
                                          .eval = get_element_eval},
                                         {.domain = "",
                                          .name = "OptionalHasElement",
                                          .since = 15,
                                          .flags = ASSAY_OP_MOVES,
                                          .infer = has_element_infer,
                                          .eval = has_element_eval},
                                         {0}};
