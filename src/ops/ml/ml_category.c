// ai.onnx.ml operators that look values up: LabelEncoder, CategoryMapper, OneHotEncoder.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/data/control.h"
#include "ops/families.h"
#include "ops/ml/ml_common.h"

// ---- lookup ------------------------------------------------------------------------------------

// Keys in order, so that each value is found by bisection. Of equal keys the last one counts.
typedef struct lookup {
  const assay_tensor_t* keys;  // 1-D
  int64_t* order;
  bool signed_zero;  // -0 and +0 are two keys (comparison of bits)
} lookup_t;

static int compare_elems(const assay_tensor_t* a, int64_t i, const assay_tensor_t* b, int64_t k,
                         bool signed_zero) {
  if (a->store == ASSAY_STORE_STR) {
    assay_string_t x = assay_strings(a)[i], y = assay_strings(b)[k];
    size_t n = x.len < y.len ? x.len : y.len;
    int order = n ? memcmp(x.text, y.text, n) : 0;
    return order ? order : x.len < y.len ? -1 : x.len > y.len;
  }
  if (a->store == ASSAY_STORE_I64) {
    int64_t x = assay_i64(a)[i], y = assay_i64(b)[k];
    return x < y ? -1 : x > y;
  }
  // Truth carries more bits than the declared type, in which keys are compared. All NaN are one.
  double x = assay_format_round(assay_type_format(a->type), assay_f64(a)[i], ASSAY_OVERFLOW_IEEE);
  double y = assay_format_round(assay_type_format(b->type), assay_f64(b)[k], ASSAY_OVERFLOW_IEEE);
  if (isnan(x) || isnan(y)) return (isnan(x) != 0) - (isnan(y) != 0);
  if (x == 0 && y == 0 && signed_zero) return (signbit(y) != 0) - (signbit(x) != 0);
  return x < y ? -1 : x > y;
}

static int compare_order(const void* a, const void* b, void* user) {
  const lookup_t* l = user;
  int64_t i = *(const int64_t*)a, k = *(const int64_t*)b;
  int order = compare_elems(l->keys, i, l->keys, k, l->signed_zero);
  return order ? order : i < k ? -1 : i > k;
}

static assay_status_t lookup_init(lookup_t* l, const assay_tensor_t* keys, bool signed_zero) {
  *l = (lookup_t){.keys = keys, .signed_zero = signed_zero};
  ASSAY_TRY(assay_new_array((size_t)keys->size, sizeof *l->order, &l->order));
  for (int64_t i = 0; i < keys->size; i++) l->order[i] = i;
  qsort_r(l->order, (size_t)keys->size, sizeof *l->order, compare_order, l);
  return NULL;
}

// Position of element i of x among the keys; -1 if it is not there.
static int64_t lookup_find(const lookup_t* l, const assay_tensor_t* x, int64_t i) {
  int64_t low = 0, high = l->keys->size;  // the first key that is greater
  while (low < high) {
    int64_t mid = low + (high - low) / 2;
    if (compare_elems(l->keys, l->order[mid], x, i, l->signed_zero) <= 0)
      low = mid + 1;
    else
      high = mid;
  }
  if (!low || compare_elems(l->keys, l->order[low - 1], x, i, l->signed_zero) != 0) return -1;
  return l->order[low - 1];
}

// ---- lists in attributes -----------------------------------------------------------------------

static assay_status_t ints_tensor(size_t n, const int64_t* x, assay_tensor_t** out) {
  return assay_tensor_vector_i64(ASSAY_TYPE_INT64, (int64_t)n, x, out);
}

static assay_status_t floats_tensor(size_t n, const float* x, assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, (int64_t[]){(int64_t)n}, out));
  for (size_t i = 0; i < n; i++) assay_f64(*out)[i] = (double)x[i];
  return NULL;
}

static assay_status_t strings_tensor(size_t n, const assay_string_t* x, assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_STRING, 1, (int64_t[]){(int64_t)n}, &t));
  for (size_t i = 0; i < n; i++) {
    assay_status_t st = assay_tensor_set_string(t, (int64_t)i, x[i].text, x[i].len);
    if (st) return assay_tensor_release(t), st;
  }
  *out = t;
  return NULL;
}

// The list of keys or values from the one attribute that is set, as a canonical tensor.
static assay_status_t read_list(const assay_node_t* n, const char* ints, const char* floats,
                                const char* strings, const char* tensor, assay_tensor_t** out) {
  size_t n_ints = 0, n_floats = 0, n_strings = 0;
  const int64_t* i = assay_attr_ints(n, ints, &n_ints);
  const float* f = assay_attr_floats(n, floats, &n_floats);
  const assay_string_t* s = assay_attr_strings(n, strings, &n_strings);
  assay_tensor_t* t = assay_attr_tensor(n, tensor);
  if ((n_ints > 0) + (n_floats > 0) + (n_strings > 0) + (t != NULL) != 1)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "one of '%s', '%s', '%s' and '%s' must be given",
                            ints, floats, strings, tensor);
  if (t) return assay_tensor_widen(t, out);
  if (n_ints) return ints_tensor(n_ints, i, out);
  return n_floats ? floats_tensor(n_floats, f, out) : strings_tensor(n_strings, s, out);
}

// ---- LabelEncoder-2, 4 -------------------------------------------------------------------------

typedef struct encoder {
  assay_tensor_t *keys, *values, *otherwise;  // otherwise: one element
} encoder_t;

static void encoder_deinit(encoder_t* e) {
  assay_tensor_release(e->keys);
  assay_tensor_release(e->values);
  assay_tensor_release(e->otherwise);
}

// The value for what has no key: default_tensor, or the default_* that goes with the values' type.
static assay_status_t read_default(const assay_node_t* n, encoder_t* e) {
  assay_tensor_t* given = assay_attr_tensor(n, "default_tensor");
  if (given && e->values->type == given->type) {
    if (given->size != 1)
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                              "default_tensor has shape %s; one element is expected",
                              ASSAY_DIMS_TEXT(given));
    return assay_tensor_widen(given, &e->otherwise);
  }
  ASSAY_TRY(assay_tensor_create(e->values->type, 0, NULL, &e->otherwise));
  const char* text = assay_attr_str(n, "default_string", "_Unused");
  switch (e->values->store) {
    case ASSAY_STORE_STR:
      return assay_tensor_set_string(e->otherwise, 0, text, strlen(text));
    case ASSAY_STORE_I64:
      assay_i64(e->otherwise)[0] =
          assay_type_wrap(e->values->type, assay_attr_i64(n, "default_int64", -1));
      return NULL;
    case ASSAY_STORE_F64:
      assay_f64(e->otherwise)[0] = assay_attr_f64(n, "default_float", -0.0);
      return NULL;
    default:
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "values_tensor is %s",
                              assay_type_name(e->values->type));
  }
}

static assay_status_t encoder_init(const assay_node_t* n, encoder_t* e) {
  *e = (encoder_t){0};
  assay_status_t st =
      read_list(n, "keys_int64s", "keys_floats", "keys_strings", "keys_tensor", &e->keys);
  if (!st)
    st = read_list(n, "values_int64s", "values_floats", "values_strings", "values_tensor",
                   &e->values);
  if (!st && e->keys->size != e->values->size)
    st = ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "there are %lld keys and %lld values",
                          (long long)e->keys->size, (long long)e->values->size);
  if (!st) st = read_default(n, e);
  if (st) encoder_deinit(e);
  return st;
}

static assay_status_t encoder_infer(assay_infer_t* c) {
  encoder_t e;
  assay_shape_t s = assay_infer_shape(c, 0);
  assay_type_t in = assay_infer_elem(c, 0);
  ASSAY_TRY(encoder_init(c->node, &e));
  assay_status_t st = NULL;
  if (in && in != e.keys->type)
    st = ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "input is %s, the keys are %s",
                          assay_type_name(in), assay_type_name(e.keys->type));
  if (!st) st = assay_infer_set(c, 0, e.values->type, &s);
  encoder_deinit(&e);
  return st;
}

static assay_status_t encoder_run(assay_eval_t* c, const encoder_t* e, bool signed_zero) {
  const assay_tensor_t* x = c->in[0];
  assay_tensor_t* y = NULL;
  lookup_t l = {0};
  if (x->store != e->keys->store)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input is %s, the keys are %s",
                            assay_type_name(x->type), assay_type_name(e->keys->type));
  ASSAY_TRY(assay_eval_output(c, 0, e->values->type, x->rank, x->dims, &y));
  assay_status_t st = lookup_init(&l, e->keys, signed_zero);
  for (int64_t i = 0; !st && i < x->size; i++) {
    int64_t at = lookup_find(&l, x, i);
    st = assay_copy_elems(at < 0 ? e->otherwise : e->values, at < 0 ? 0 : at, y, i, 1);
  }
  assay_free(l.order);
  return st;
}

static assay_status_t encode(assay_eval_t* c, bool signed_zero) {
  encoder_t e;
  ASSAY_TRY(encoder_init(c->node, &e));
  assay_status_t st = encoder_run(c, &e, signed_zero);
  encoder_deinit(&e);
  return st;
}

// ai.onnx.ml LabelEncoder-2 compares bits, 4 compares values.
static assay_status_t encoder2_eval(assay_eval_t* c) { return encode(c, true); }
static assay_status_t encoder4_eval(assay_eval_t* c) { return encode(c, false); }

// ---- LabelEncoder-1, CategoryMapper ------------------------------------------------------------

static assay_status_t swap_infer(assay_infer_t* c) {
  assay_shape_t s = assay_infer_shape(c, 0);
  assay_type_t in = assay_infer_elem(c, 0);
  assay_type_t out = in == ASSAY_TYPE_STRING  ? ASSAY_TYPE_INT64
                     : in == ASSAY_TYPE_INT64 ? ASSAY_TYPE_STRING
                                              : ASSAY_TYPE_UNDEFINED;
  return assay_infer_set(c, 0, out, &s);
}

// Maps strings to integers or integers to strings, by what comes in.
static assay_status_t swap(assay_eval_t* c, assay_tensor_t* ints, assay_tensor_t* strings) {
  bool to_int = c->in[0]->store == ASSAY_STORE_STR;
  encoder_t e = {.keys = to_int ? strings : ints, .values = to_int ? ints : strings};
  ASSAY_TRY(read_default(c->node, &e));
  assay_status_t st = encoder_run(c, &e, false);
  assay_tensor_release(e.otherwise);
  return st;
}

static assay_status_t swap_eval(assay_eval_t* c, const char* ints_name, const char* strings_name) {
  size_t n = 0, n_ints = 0;
  const assay_string_t* s = assay_attr_strings(c->node, strings_name, &n);
  const int64_t* i = ints_name ? assay_attr_ints(c->node, ints_name, &n_ints) : NULL;
  assay_tensor_t *ints = NULL, *strings = NULL;
  if (ints_name && n != n_ints)
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "'%s' has %zu entries, '%s' %zu", ints_name,
                            n_ints, strings_name, n);
  assay_status_t st = strings_tensor(n, s, &strings);
  if (!st) st = assay_tensor_create(ASSAY_TYPE_INT64, 1, (int64_t[]){(int64_t)n}, &ints);
  // Without a list of integers the position is the integer.
  for (size_t k = 0; !st && k < n; k++) assay_i64(ints)[k] = i ? i[k] : (int64_t)k;
  if (!st) st = swap(c, ints, strings);
  assay_tensor_release(ints);
  assay_tensor_release(strings);
  return st;
}

static assay_status_t encoder1_eval(assay_eval_t* c) {
  return swap_eval(c, NULL, "classes_strings");
}

static assay_status_t mapper_eval(assay_eval_t* c) {
  return swap_eval(c, "cats_int64s", "cats_strings");
}

// ---- OneHotEncoder -----------------------------------------------------------------------------

static assay_status_t one_hot_infer(assay_infer_t* c) {
  assay_ml_labels_t cats;
  assay_shape_t s = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_ml_labels(c->node, "cats_int64s", "cats_strings", &cats));
  if (s.known && s.rank == ASSAY_MAX_RANK) s.known = false;
  if (s.known) s.dims[s.rank++] = assay_dim_const(c->dims, cats.n);
  return assay_infer_set(c, 0, ASSAY_TYPE_FLOAT, &s);
}

// The input as keys: strings as they are, numbers cast to int64.
static assay_status_t as_keys(assay_tensor_t* x, assay_tensor_t** out) {
  if (x->store == ASSAY_STORE_STR || x->type == ASSAY_TYPE_INT64) {
    *out = assay_tensor_retain(x);
    return NULL;
  }
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, x->rank, x->dims, out));
  for (int64_t i = 0; i < x->size; i++)
    assay_i64(*out)[i] = x->store == ASSAY_STORE_I64
                             ? assay_i64(x)[i]
                             : assay_type_saturate(ASSAY_TYPE_INT64, trunc(assay_f64(x)[i]));
  return NULL;
}

static assay_status_t one_hot_rows(assay_eval_t* c, const lookup_t* l, const assay_tensor_t* x,
                                   assay_tensor_t* y) {
  bool zeros = assay_attr_i64(c->node, "zeros", 1) != 0;
  memset(y->data, 0, (size_t)y->size * sizeof(double));
  for (int64_t i = 0; i < x->size; i++) {
    int64_t at = lookup_find(l, x, i);
    if (at >= 0)
      assay_f64(y)[i * l->keys->size + at] = 1;
    else if (!zeros)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "element %lld of the input is in no category, and zeros is 0",
                              (long long)i);
  }
  return NULL;
}

// ai.onnx.ml OneHotEncoder-1.
static assay_status_t one_hot_eval(assay_eval_t* c) {
  assay_tensor_t *x = c->in[0], *keys = NULL, *cast = NULL, *y = NULL;
  assay_ml_labels_t cats;
  int64_t dims[ASSAY_MAX_RANK + 1];
  lookup_t l = {0};
  ASSAY_TRY(assay_ml_labels(c->node, "cats_int64s", "cats_strings", &cats));
  if ((x->store == ASSAY_STORE_STR) != (cats.strings != NULL))
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input is %s, the categories are %s",
                            assay_type_name(x->type), cats.strings ? "strings" : "integers");
  if (x->rank) memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  dims[x->rank] = cats.n;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_FLOAT, x->rank + 1, dims, &y));
  assay_status_t st = cats.ints ? ints_tensor((size_t)cats.n, cats.ints, &keys)
                                : strings_tensor((size_t)cats.n, cats.strings, &keys);
  if (!st) st = as_keys(x, &cast);
  if (!st) st = lookup_init(&l, keys, false);
  if (!st) st = one_hot_rows(c, &l, cast, y);
  assay_free(l.order);
  assay_tensor_release(cast);
  assay_tensor_release(keys);
  return st;
}

const assay_op_t assay_ops_ml_category[] = {{.domain = "ai.onnx.ml",
                                             .name = "LabelEncoder",
                                             .since = 1,
                                             .discrete = 1,
                                             .infer = swap_infer,
                                             .eval = encoder1_eval},
                                            {.domain = "ai.onnx.ml",
                                             .name = "LabelEncoder",
                                             .since = 2,
                                             .discrete = 1,
                                             .infer = encoder_infer,
                                             .eval = encoder2_eval},
                                            {.domain = "ai.onnx.ml",
                                             .name = "LabelEncoder",
                                             .since = 4,
                                             .discrete = 1,
                                             .infer = encoder_infer,
                                             .eval = encoder4_eval},
                                            {.domain = "ai.onnx.ml",
                                             .name = "CategoryMapper",
                                             .since = 1,
                                             .discrete = 1,
                                             .infer = swap_infer,
                                             .eval = mapper_eval},
                                            {.domain = "ai.onnx.ml",
                                             .name = "OneHotEncoder",
                                             .since = 1,
                                             .discrete = 1,
                                             .infer = one_hot_infer,
                                             .eval = one_hot_eval},
                                            {0}};
