// An operator of values that the model has: one that was computed once, when the model was
// exported, and is a constant now; an update that was lost. What it read is still there, and often
// read by nobody.
//
// Shapes tell which values may be read by which operator; a few elements tell whether they are;
// then all of it is evaluated.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

enum { PLACES = 24 };

// ---- elements ----------------------------------------------------------------------------------

static bool is_number(const assay_tensor_t* t) {
  return t->kind == ASSAY_KIND_TENSOR &&
         (t->store == ASSAY_STORE_F64 || t->store == ASSAY_STORE_I64);
}

static double element(const assay_tensor_t* t, int64_t i) {
  return t->store == ASSAY_STORE_I64 ? (double)assay_i64(t)[i] : assay_f64(t)[i];
}

static int64_t place(const assay_tensor_t* want, int k) {
  return want->size <= PLACES ? k : (int64_t)((double)k * (double)want->size / PLACES);
}

static bool is_near(double x, double want, double scale) {
  return x == want || fabs(x - want) <= 1e-4 * fabs(want) + 1e-5 * scale;
}

static double rms_of(const assay_tensor_t* t) {
  double sum = 0;
  for (int64_t i = 0; i < t->size; i++) sum += element(t, i) * element(t, i);
  return sqrt(sum / (double)t->size);
}

// Whether what is wanted could hardly be met by chance: several unlike elements.
static bool is_telling(const assay_tensor_t* t) {
  enum { FEW = 3, LOOK = 1000 };
  double seen[FEW];
  int n = 0;
  for (int64_t i = 0; i < t->size && i < LOOK; i++) {
    bool is_new = true;
    for (int k = 0; k < n; k++) is_new &= seen[k] != element(t, i);
    if (is_new) seen[n++] = element(t, i);
    if (n == FEW) return true;
  }
  return t->type == ASSAY_TYPE_BOOL && t->size >= 8 && n == 2;
}

// ---- trying ------------------------------------------------------------------------------------

// The search for what makes `want` at a place.
typedef struct operators {
  assay_missing_search_t* s;
  const assay_missing_place_t* p;
  double scale;  // RMS of what is wanted
} operators_t;

static assay_status_t try_formula(const operators_t* k, const assay_missing_other_t* x,
                                  const assay_formula_terms_t* terms, const char* op_type) {
  char text[160];
  assay_missing_place_t p = *k->p;
  p.x = x->tensor;
  p.source = x->value;
  if (terms->value2)
    snprintf(text, sizeof text, "%s of '%.40s' at '%.40s' into", op_type, terms->value2->name,
             terms->value->name);
  else if (terms->value)
    snprintf(text, sizeof text, "%s by '%.60s' of", op_type, terms->value->name);
  else
    snprintf(text, sizeof text, "%s of", op_type);
  return assay_missing_try(k->s, &p, terms, "missing operator", text);
}

// ---- of one value ------------------------------------------------------------------------------

typedef struct reduction {
  const char *keeps, *drops, *op_type;
} reduction_t;

static const reduction_t REDUCTIONS[] = {
    {"x mean", "x mean.", "ReduceMean"},
    {"x highest", "x highest.", "ReduceMax"},
    {"x sum", "x sum.", "ReduceSum"},
    {"x lowest", "x lowest.", "ReduceMin"},
    {"x product", "x product.", "ReduceProd"},
    {"x length", "x length.", "ReduceL2"},
    {"x magnitude", "x magnitude.", "ReduceL1"},
    {"x squares", "x squares.", "ReduceSumSquare"},
    {"x logsumexp", "x logsumexp.", "ReduceLogSumExp"},
};

// Whether a value reduced over the axes of a mask has a shape.
static bool reduces_to(const assay_tensor_t* x, unsigned mask, bool keeps,
                       const assay_tensor_t* want) {
  int d = 0;
  for (int i = 0; i < x->rank; i++) {
    const bool reduced = mask >> i & 1;
    if (reduced && !keeps) continue;
    if (d == want->rank || want->dims[d++] != (reduced ? 1 : x->dims[i])) return false;
  }
  return d == want->rank;
}

static assay_status_t reduce_over(const operators_t* k, const assay_missing_other_t* x,
                                  unsigned mask, bool keeps) {
  assay_formula_terms_t terms = {0};
  for (int i = 0; i < x->tensor->rank; i++)
    if (mask >> i & 1) terms.axes[terms.n_axes++] = i;
  for (size_t i = 0; i < sizeof REDUCTIONS / sizeof *REDUCTIONS; i++) {
    terms.program = keeps ? REDUCTIONS[i].keeps : REDUCTIONS[i].drops;
    if (!assay_missing_is_over(k->s)) ASSAY_TRY(try_formula(k, x, &terms, REDUCTIONS[i].op_type));
  }
  return NULL;
}

static assay_status_t reduce(const operators_t* k, const assay_missing_other_t* x) {
  enum { MAX_RANK = 6 };
  const assay_tensor_t* want = k->p->want;
  if (x->tensor->rank > MAX_RANK || x->tensor->size < 2 * want->size) return NULL;
  for (unsigned mask = 1; mask < 1u << x->tensor->rank; mask++)
    for (int keeps = 1; keeps >= 0; keeps--)
      if (reduces_to(x->tensor, mask, keeps, want)) ASSAY_TRY(reduce_over(k, x, mask, keeps));
  return NULL;
}

static assay_status_t of_one(const operators_t* k, const assay_missing_other_t* x) {
  const assay_tensor_t* want = k->p->want;
  if (x->tensor->store != ASSAY_STORE_F64 || want->store != ASSAY_STORE_F64) return NULL;
  ASSAY_TRY(reduce(k, x));
  if (!assay_tensor_same_shape(x->tensor, want)) return NULL;
  assay_missing_place_t p = *k->p;
  p.x = x->tensor;
  p.source = x->value;
  ASSAY_TRY(assay_missing_activations(k->s, &p));
  for (int i = 0; i < want->rank && !assay_missing_is_over(k->s); i++) {
    const assay_formula_terms_t soft = {.program = "x softmax", .axes = {i}, .n_axes = 1};
    const assay_formula_terms_t log = {.program = "x logsoftmax", .axes = {i}, .n_axes = 1};
    if (want->dims[i] < 2) continue;
    ASSAY_TRY(try_formula(k, x, &soft, "Softmax"));
    ASSAY_TRY(try_formula(k, x, &log, "LogSoftmax"));
  }
  return NULL;
}

// ---- of two values, element by element ---------------------------------------------------------

static double add(double a, double b) { return a + b; }
static double subtract(double a, double b) { return a - b; }
static double multiply(double a, double b) { return a * b; }
static double divide(double a, double b) { return a / b; }
static double is_more(double a, double b) { return a > b; }
static double is_less(double a, double b) { return a < b; }
static double is_no_less(double a, double b) { return a >= b; }
static double is_no_more(double a, double b) { return a <= b; }
static double is_equal(double a, double b) { return a == b; }
static double is_both(double a, double b) { return a != 0 && b != 0; }
static double is_any(double a, double b) { return a != 0 || b != 0; }

typedef struct pointwise {
  const char *program, *op_type;
  double (*of)(double a, double b);
  bool is_symmetric;
  bool gives_bool, takes_bool;
} pointwise_t;

static const pointwise_t POINTWISE[] = {
    {"x v *", "Mul", multiply, true, false, false},
    {"x v +", "Add", add, true, false, false},
    {"x v -", "Sub", subtract, false, false, false},
    {"x v /", "Div", divide, false, false, false},
    {"x v max", "Max", fmax, true, false, false},
    {"x v min", "Min", fmin, true, false, false},
    {"x v >", "Greater", is_more, false, true, false},
    {"x v <", "Less", is_less, false, true, false},
    {"x v >=", "GreaterOrEqual", is_no_less, false, true, false},
    {"x v <=", "LessOrEqual", is_no_more, false, true, false},
    {"x v ==", "Equal", is_equal, true, true, false},
    {"x v and", "And", is_both, true, true, true},
    {"x v or", "Or", is_any, true, true, true},
};

static bool broadcast_to(const assay_tensor_t* a, const assay_tensor_t* b,
                         const assay_tensor_t* to) {
  if ((a->rank > b->rank ? a->rank : b->rank) != to->rank) return false;
  for (int i = 1; i <= to->rank; i++) {
    const int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1;
    const int64_t y = i <= b->rank ? b->dims[b->rank - i] : 1;
    if ((x != y && x != 1 && y != 1) || to->dims[to->rank - i] != (x == 1 ? y : x)) return false;
  }
  return true;
}

static bool agrees(const operators_t* k, const pointwise_t* op, const assay_tensor_t* a,
                   const assay_tensor_t* b) {
  const assay_tensor_t* want = k->p->want;
  const int n = want->size < PLACES ? (int)want->size : PLACES;
  for (int i = 0; i < n; i++) {
    const int64_t at = place(want, i);
    if (!is_near(op->of(assay_missing_element(a, want, at), assay_missing_element(b, want, at)),
                 element(want, at), k->scale))
      return false;
  }
  return true;
}

static assay_status_t of_two(const operators_t* k, const assay_missing_other_t* a,
                             const assay_missing_other_t* b, bool in_turn) {
  const assay_tensor_t* want = k->p->want;
  if (a->tensor->type != b->tensor->type || (!a->varies && !b->varies) ||
      !broadcast_to(a->tensor, b->tensor, want))
    return NULL;
  for (size_t i = 0; i < sizeof POINTWISE / sizeof *POINTWISE; i++) {
    const pointwise_t* op = &POINTWISE[i];
    const assay_type_t gives = op->gives_bool ? ASSAY_TYPE_BOOL : a->tensor->type;
    if (want->type != gives && !(assay_type_is_float(want->type) && assay_type_is_float(gives)))
      continue;
    if (op->takes_bool != (a->tensor->type == ASSAY_TYPE_BOOL) || (in_turn && op->is_symmetric))
      continue;
    // Of a value and itself the others say nothing.
    if (a == b && op->of != add && op->of != multiply) continue;
    if (!agrees(k, op, a->tensor, b->tensor) || assay_missing_is_over(k->s)) continue;
    const assay_formula_terms_t terms = {.program = op->program, .value = b->value};
    ASSAY_TRY(try_formula(k, a, &terms, op->op_type));
  }
  return NULL;
}

// ---- elements taken from a value ---------------------------------------------------------------

static bool is_index(const assay_tensor_t* t) {
  return t->type == ASSAY_TYPE_INT64 || t->type == ASSAY_TYPE_INT32;
}

// Whether Gather along an axis has the shape that is wanted.
static bool takes_shape(const assay_tensor_t* data, const assay_tensor_t* index, int axis,
                        const assay_tensor_t* want) {
  if (data->rank - 1 + index->rank != want->rank) return false;
  for (int i = 0; i < axis; i++)
    if (want->dims[i] != data->dims[i]) return false;
  for (int i = 0; i < index->rank; i++)
    if (want->dims[axis + i] != index->dims[i]) return false;
  for (int i = axis + 1; i < data->rank; i++)
    if (want->dims[i - 1 + index->rank] != data->dims[i]) return false;
  return true;
}

static bool takes_elements(const operators_t* k, const assay_tensor_t* data,
                           const assay_tensor_t* index, int axis) {
  const assay_tensor_t* want = k->p->want;
  const int64_t inner = assay_dims_product(data->dims, axis + 1, data->rank), d = data->dims[axis];
  const int n = want->size < PLACES ? (int)want->size : PLACES;
  for (int i = 0; i < n; i++) {
    const int64_t at = place(want, i), outer = at / (inner * index->size);
    const int64_t named = assay_i64(index)[at / inner % index->size];
    const int64_t row = named < 0 ? named + d : named;
    if (row < 0 || row >= d) return false;
    if (!is_near(element(data, (outer * d + row) * inner + at % inner), element(want, at),
                 k->scale))
      return false;
  }
  return true;
}

static assay_status_t take(const operators_t* k, const assay_missing_other_t* data,
                           const assay_missing_other_t* index) {
  if (!is_index(index->tensor) || (!data->varies && !index->varies)) return NULL;
  for (int axis = 0; axis < data->tensor->rank && !assay_missing_is_over(k->s); axis++) {
    if (!takes_shape(data->tensor, index->tensor, axis, k->p->want) ||
        !takes_elements(k, data->tensor, index->tensor, axis))
      continue;
    const assay_formula_terms_t terms = {
        .program = "x v take", .value = index->value, .axes = {axis}, .n_axes = 1};
    ASSAY_TRY(try_formula(k, data, &terms, "Gather"));
  }
  return NULL;
}

// ---- elements put into a value -----------------------------------------------------------------

static bool scatters(const assay_tensor_t* data, const assay_tensor_t* index,
                     const assay_tensor_t* updates) {
  if (!index->rank) return false;
  const int64_t q = index->dims[index->rank - 1];
  if (q < 1 || q > data->rank || updates->rank != index->rank - 1 + data->rank - (int)q)
    return false;
  for (int i = 0; i < index->rank - 1; i++)
    if (updates->dims[i] != index->dims[i]) return false;
  for (int i = index->rank - 1; i < updates->rank; i++)
    if (updates->dims[i] != data->dims[(int)q + i - (index->rank - 1)]) return false;
  return true;
}

static assay_status_t put_into(const operators_t* k, const assay_missing_other_t* data,
                               const assay_missing_other_t* index,
                               const assay_missing_other_t* updates) {
  assay_formula_terms_t terms = {.value = index->value, .value2 = updates->value, .n_axes = 1};
  if (updates->tensor->type != data->tensor->type) return NULL;
  if (index->tensor->type == ASSAY_TYPE_INT64 &&
      scatters(data->tensor, index->tensor, updates->tensor)) {
    terms.program = "x v u scatter";
    ASSAY_TRY(try_formula(k, data, &terms, "ScatterND"));
    terms.program = "x v u scatter+";
    if (!assay_missing_is_over(k->s)) ASSAY_TRY(try_formula(k, data, &terms, "ScatterND"));
  }
  if (data->tensor->rank != updates->tensor->rank ||
      !assay_tensor_same_shape(index->tensor, updates->tensor))
    return NULL;
  for (int axis = 0; axis < data->tensor->rank && !assay_missing_is_over(k->s); axis++) {
    terms.axes[0] = axis;
    terms.program = "x v u put";
    ASSAY_TRY(try_formula(k, data, &terms, "ScatterElements"));
    terms.program = "x v u put+";
    if (!assay_missing_is_over(k->s)) ASSAY_TRY(try_formula(k, data, &terms, "ScatterElements"));
  }
  return NULL;
}

static bool is_like_wanted(const operators_t* k, const assay_tensor_t* t) {
  return assay_tensor_alike(t, k->p->want);
}

// ---- all of them -------------------------------------------------------------------------------

// Calls a function with each pair of values.
static assay_status_t each_pair(const operators_t* k,
                                assay_status_t (*f)(const operators_t*,
                                                    const assay_missing_other_t*,
                                                    const assay_missing_other_t*)) {
  const assay_missing_search_t* s = k->s;
  for (size_t i = 0; i < s->n_others && !assay_missing_is_over(s); i++)
    for (size_t j = 0; j < s->n_others; j++) ASSAY_TRY(f(k, &s->others[i], &s->others[j]));
  return NULL;
}

static assay_status_t in_pair(const operators_t* k, const assay_missing_other_t* a,
                              const assay_missing_other_t* b) {
  if (!is_number(a->tensor) || !is_number(b->tensor)) return NULL;
  ASSAY_TRY(of_two(k, a, b, a > b));
  return take(k, a, b);
}

static assay_status_t into_data(const operators_t* k, const assay_missing_other_t* data) {
  const assay_missing_search_t* s = k->s;
  for (size_t i = 0; i < s->n_others && !assay_missing_is_over(s); i++) {
    if (!is_index(s->others[i].tensor)) continue;
    for (size_t j = 0; j < s->n_others && !assay_missing_is_over(s); j++)
      if (s->others[j].varies) ASSAY_TRY(put_into(k, data, &s->others[i], &s->others[j]));
  }
  return NULL;
}

assay_status_t assay_missing_of_two(assay_missing_search_t* s, const assay_missing_place_t* p,
                                    size_t n) {
  operators_t k = {.s = s, .p = p};
  if (!p->want || !is_number(p->want) || !p->want->size || (!s->holdout && !is_telling(p->want)))
    return NULL;
  k.scale = rms_of(p->want);
  for (size_t i = 0; i < n && !assay_missing_is_over(s); i++)
    for (size_t j = 0; j < n; j++) ASSAY_TRY(in_pair(&k, &s->others[i], &s->others[j]));
  return NULL;
}

assay_status_t assay_missing_operators(assay_missing_search_t* s, const assay_missing_place_t* p) {
  operators_t k = {.s = s, .p = p};
  if (!p->want || !is_number(p->want) || !p->want->size || (!s->holdout && !is_telling(p->want)))
    return NULL;
  k.scale = rms_of(p->want);
  for (size_t i = 0; i < s->n_others && !assay_missing_is_over(s); i++)
    if (s->others[i].varies) ASSAY_TRY(of_one(&k, &s->others[i]));
  ASSAY_TRY(each_pair(&k, in_pair));
  for (size_t i = 0; i < s->n_others && !assay_missing_is_over(s); i++)
    if (is_like_wanted(&k, s->others[i].tensor)) ASSAY_TRY(into_data(&k, &s->others[i]));
  return NULL;
}
