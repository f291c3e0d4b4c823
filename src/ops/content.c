// Contents: see content.h.
#include "ops/content.h"

// ---- reading and writing ---------------------------------------------------------------------

bool assay_content_read_any(const assay_infer_t* c, size_t input, assay_content_list_t* out) {
  assay_content_t known;
  if (!assay_infer_has(c, input) || !assay_infer_content(c, input, &known)) return false;
  if (known.n > ASSAY_CONTENT_MAX || known.rank > 1) return false;
  out->rank = known.rank;
  out->n = known.n;
  for (int64_t i = 0; i < known.n; i++) out->elems[i] = known.elems[i];
  return true;
}

// Floats count as far as they hold whole numbers exactly: exporters compute sizes in them, too
// (Shape, Cast, Mul by a scale of 2.0, Floor, Cast).
static bool type_has_content(assay_type_t type) {
  return assay_type_is_integer(type) || type == ASSAY_TYPE_BOOL || type == ASSAY_TYPE_FLOAT ||
         type == ASSAY_TYPE_DOUBLE;
}

static bool type_holds(assay_type_t type, int64_t value) {
  if (type == ASSAY_TYPE_FLOAT) return value >= -(1 << 24) && value <= 1 << 24;
  if (type == ASSAY_TYPE_DOUBLE) return value >= -(INT64_C(1) << 53) && value <= INT64_C(1) << 53;
  return assay_type_wrap(type, value) == value;
}

bool assay_content_read(const assay_infer_t* c, size_t input, assay_content_list_t* out) {
  if (!assay_infer_has(c, input) || !type_has_content(assay_infer_elem(c, input))) return false;
  return assay_content_read_any(c, input, out);
}

assay_status_t assay_content_write(assay_infer_t* c, size_t output, size_t like,
                                   const assay_content_list_t* list) {
  if (!assay_infer_wants(c, output)) return NULL;
  const assay_valtype_t* made = c->node->outputs[output]->type;
  assay_type_t type = made && made->elem ? made->elem : assay_infer_elem(c, like);
  if (!type_has_content(type)) return NULL;
  const assay_dim_t* elems[ASSAY_CONTENT_MAX];
  bool any = false;
  for (int64_t i = 0; i < list->n; i++) {
    int64_t value;
    elems[i] = list->elems[i];
    if (assay_dim_value(elems[i], &value) && !type_holds(type, value)) elems[i] = NULL;
    if (elems[i]) any = true;
  }
  if (!any && list->n > 0) return NULL;
  return assay_infer_set_content(c, output, list->rank, list->n, elems);
}

assay_status_t assay_content_same(assay_infer_t* c, size_t input) {
  assay_content_list_t list;
  if (!assay_content_read(c, input, &list)) return NULL;
  return assay_content_write(c, 0, input, &list);
}

// ---- elementwise -----------------------------------------------------------------------------

assay_status_t assay_content_unary(assay_infer_t* c, assay_content_fn1_t* f) {
  assay_content_list_t list;
  if (!assay_content_read(c, 0, &list)) return NULL;
  for (int64_t i = 0; i < list.n; i++) {
    if (list.elems[i]) list.elems[i] = f(c->dims, list.elems[i]);
  }
  return assay_content_write(c, 0, 0, &list);
}

// a = f(a, b) with broadcasting; false if the shapes do not fit (the operator's infer says so).
static bool fold(assay_dims_t* p, assay_content_fn2_t* f, assay_content_list_t* a,
                 const assay_content_list_t* b) {
  if (a->n != b->n && a->n != 1 && b->n != 1) return false;
  int64_t n = a->n == 1 ? b->n : a->n;
  bool spread = a->n == 1 && n != 1;
  const assay_dim_t* first = a->n > 0 ? a->elems[0] : NULL;
  for (int64_t i = 0; i < n; i++) {
    const assay_dim_t* x = spread ? first : a->elems[i];
    const assay_dim_t* y = b->n == 1 ? b->elems[0] : b->elems[i];
    a->elems[i] = x && y ? f(p, x, y) : NULL;
  }
  a->n = n;
  if (b->rank > a->rank) a->rank = b->rank;
  return true;
}

assay_status_t assay_content_binary(assay_infer_t* c, assay_content_fn2_t* f) {
  assay_content_list_t a, b;
  if (!assay_content_read(c, 0, &a) || !assay_content_read(c, 1, &b)) return NULL;
  if (!fold(c->dims, f, &a, &b)) return NULL;
  return assay_content_write(c, 0, 0, &a);
}

assay_status_t assay_content_variadic(assay_infer_t* c, assay_content_fn2_t* f) {
  assay_content_list_t a, b;
  if (!assay_content_read(c, 0, &a)) return NULL;
  for (size_t i = 1; i < c->node->n_inputs; i++) {
    if (!assay_content_read(c, i, &b) || !fold(c->dims, f, &a, &b)) return NULL;
  }
  return assay_content_write(c, 0, 0, &a);
}

assay_status_t assay_content_where(assay_infer_t* c) {
  assay_content_list_t list[3];
  int rank = 0;
  int64_t n = 1;
  for (size_t i = 0; i < 3; i++) {
    if (!assay_content_read(c, i, &list[i])) return NULL;
    if (list[i].rank > rank) rank = list[i].rank;
    if (list[i].n == 1) continue;
    if (n != 1 && n != list[i].n) return NULL;
    n = list[i].n;
  }
  assay_content_list_t out = {.rank = rank, .n = n};
  for (int64_t i = 0; i < n; i++) {
    const assay_dim_t* at[3];
    for (int k = 0; k < 3; k++) at[k] = list[k].elems[list[k].n == 1 ? 0 : i];
    int64_t condition;
    if (assay_dim_same(at[1], at[2])) {
      out.elems[i] = at[1];
    } else if (assay_dim_value(at[0], &condition)) {
      out.elems[i] = condition ? at[1] : at[2];
    }
  }
  return assay_content_write(c, 0, 1, &out);
}

// ---- signs -----------------------------------------------------------------------------------

bool assay_dim_nonneg(assay_dims_t* p, const assay_dim_t* d) {
  int64_t value;
  if (assay_dim_value(d, &value)) return value >= 0;
  if (assay_dim_name(d)) return true;  // names are sizes
  // The pool simplifies max(d, 0) to d where it can see that d has no negative term.
  return d && assay_dim_same(assay_dim_max(p, d, assay_dim_const(p, 0)), d);
}

bool assay_dim_negative(const assay_dim_t* d) {
  int64_t value;
  return assay_dim_value(d, &value) && value < 0;
}

const assay_dim_t* assay_dim_clamp0(assay_dims_t* p, const assay_dim_t* d) {
  return assay_dim_nonneg(p, d) ? d : assay_dim_max(p, d, assay_dim_const(p, 0));
}

// ---- functions -------------------------------------------------------------------------------

const assay_dim_t* assay_content_div(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  int64_t x, y;
  if (assay_dim_value(b, &y) && y == 0) return NULL;
  if (assay_dim_value(a, &x) && assay_dim_value(b, &y)) {
    if (x == INT64_MIN && y == -1) return NULL;
    return assay_dim_const(p, x / y);
  }
  // Towards zero is towards -infinity where nothing is negative.
  if (assay_dim_nonneg(p, a) && assay_dim_nonneg(p, b)) return assay_dim_floordiv(p, a, b);
  if (assay_dim_same(a, b)) return assay_dim_const(p, 1);
  return NULL;
}

const assay_dim_t* assay_content_mod(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  int64_t y;
  if (assay_dim_value(b, &y) && y == 0) return NULL;
  return assay_dim_mod(p, a, b);
}

static const assay_dim_t* truth(assay_dims_t* p, bool value) { return assay_dim_const(p, value); }

const assay_dim_t* assay_content_equal(assay_dims_t* p, const assay_dim_t* a,
                                       const assay_dim_t* b) {
  if (assay_dim_same(a, b)) return truth(p, true);
  if (assay_dim_differ(a, b)) return truth(p, false);
  // A size is never negative: Equal(shape, -1) of Expand's idiom.
  if (assay_dim_nonneg(p, a) && assay_dim_negative(b)) return truth(p, false);
  if (assay_dim_nonneg(p, b) && assay_dim_negative(a)) return truth(p, false);
  return NULL;
}

// a - b where it is a number; sizes against negative numbers count as far above.
static bool difference(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b, int64_t* out) {
  if (assay_dim_nonneg(p, a) && assay_dim_negative(b)) return *out = 1, true;
  if (assay_dim_nonneg(p, b) && assay_dim_negative(a)) return *out = -1, true;
  return assay_dim_value(assay_dim_sub(p, a, b), out);
}

const assay_dim_t* assay_content_less(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  int64_t d;
  return difference(p, a, b, &d) ? truth(p, d < 0) : NULL;
}

const assay_dim_t* assay_content_less_equal(assay_dims_t* p, const assay_dim_t* a,
                                            const assay_dim_t* b) {
  int64_t d;
  return difference(p, a, b, &d) ? truth(p, d <= 0) : NULL;
}

const assay_dim_t* assay_content_greater(assay_dims_t* p, const assay_dim_t* a,
                                         const assay_dim_t* b) {
  return assay_content_less(p, b, a);
}

const assay_dim_t* assay_content_greater_equal(assay_dims_t* p, const assay_dim_t* a,
                                               const assay_dim_t* b) {
  return assay_content_less_equal(p, b, a);
}

const assay_dim_t* assay_content_and(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  int64_t x, y;
  if (!assay_dim_value(a, &x) || !assay_dim_value(b, &y)) return NULL;
  return truth(p, x && y);
}

const assay_dim_t* assay_content_or(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  int64_t x, y;
  if (!assay_dim_value(a, &x) || !assay_dim_value(b, &y)) return NULL;
  return truth(p, x || y);
}

const assay_dim_t* assay_content_not(assay_dims_t* p, const assay_dim_t* a) {
  int64_t x;
  return assay_dim_value(a, &x) ? truth(p, !x) : NULL;
}

const assay_dim_t* assay_content_neg(assay_dims_t* p, const assay_dim_t* a) {
  return assay_dim_mul_i(p, a, -1);
}

const assay_dim_t* assay_content_abs(assay_dims_t* p, const assay_dim_t* a) {
  int64_t x;
  if (assay_dim_value(a, &x)) return x == INT64_MIN ? NULL : assay_dim_const(p, x < 0 ? -x : x);
  return assay_dim_nonneg(p, a) ? a : NULL;
}
