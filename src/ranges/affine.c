// Affine forms: small values as sums of the elements of one value before them, so that what is the
// same number on two ways stays so (residual sums, x - mean(x), running sums that are subtracted,
// products after products).
#include "ranges/affine.h"

#include <string.h>

#include "base/alloc.h"

// A source of more elements would take too long, and so would a form of more numbers.
enum { MAX_SOURCES = 256, MAX_SLOPES = 1 << 20 };

void assay_affine_deinit(assay_affine_t* a) {
  assay_tensor_release(a->middle);
  assay_tensor_release(a->rest);
  assay_free(a->slopes);
  *a = (assay_affine_t){0};
}

assay_status_t assay_affine_begin(const assay_range_t* r, int64_t source, assay_format_t format,
                                  assay_affine_t* out) {
  assay_affine_t a = {.source = source, .format = format};
  if (!assay_range_is_float(r) || assay_range_exact(r) || r->lo->size > MAX_SOURCES ||
      !r->lo->size || !(assay_range_magnitude(r) < (double)INFINITY))
    return NULL;
  a.n = r->lo->size;
  assay_status_t st = assay_range_take(r, ASSAY_RANGE_MIDDLE, &a.middle);
  if (!st) st = assay_tensor_create_zero(r->lo->type, r->lo->rank, r->lo->dims, &a.rest);
  if (!st) st = assay_new_array((size_t)(a.n * a.n), sizeof *a.slopes, &a.slopes);
  for (int64_t i = 0; !st && i < a.n; i++) {
    const double lo = assay_f64(r->lo)[i], hi = assay_f64(r->hi)[i], m = assay_f64(a.middle)[i];
    a.slopes[i * a.n + i] = lo == hi ? 0 : nextafter(fmax(hi - m, m - lo), (double)INFINITY);
  }
  if (st) return assay_affine_deinit(&a), st;
  *out = a;
  return NULL;
}

// The most that element i of a form may be in magnitude.
static double reach(const assay_affine_t* a, int64_t i) {
  const int64_t size = a->middle->size;
  double max = fabs(assay_f64(a->middle)[i]) + assay_f64(a->rest)[i];
  for (int64_t k = 0; k < a->n; k++) max += fabs(a->slopes[k * size + i]);
  return max;
}

void assay_affine_store(assay_affine_t* a, assay_format_t format) {
  const assay_format_info_t* f = format == ASSAY_FORMAT_NONE ? NULL : assay_format_info(format);
  if (!a->source) return;
  a->format = format;
  if (!f || !f->is_float) return;
  const int64_t size = a->middle->size;
  for (int64_t i = 0; i < size; i++) {
    assay_f64(a->rest)[i] += reach(a, i) * f->unit_roundoff * (1 + 0x1p-20) + f->min_subnormal;
  }
}

assay_status_t assay_affine_enter(const assay_affine_t* a, assay_format_t format,
                                  assay_affine_t* out) {
  assay_affine_t b = {.source = a->source, .n = a->n, .format = a->format};
  const size_t n = (size_t)(a->n * a->middle->size);
  assay_status_t st = assay_tensor_copy(a->middle, &b.middle);
  if (!st) st = assay_tensor_copy(a->rest, &b.rest);
  if (!st) st = assay_new_array(n, sizeof *b.slopes, &b.slopes);
  if (st) return assay_affine_deinit(&b), st;
  memcpy(b.slopes, a->slopes, n * sizeof *b.slopes);
  assay_affine_store(&b, format);
  *out = b;
  return NULL;
}

// ---- which operators are linear -----------------------------------------------------------------

typedef enum kind {
  LINEAR_IN_ALL,  // jointly
  LINEAR_IN_ONE,  // of its inputs, the others being known exactly
  RELU,
} kind_t;

typedef struct linear {
  const char* op;
  kind_t kind;
  bool rounds;  // computes: what that adds must have been told (c->slack)
} linear_t;

static const linear_t linears[] = {{"Add", LINEAR_IN_ALL, true},
                                   {"Sub", LINEAR_IN_ALL, true},
                                   {"Sum", LINEAR_IN_ALL, true},
                                   {"Mul", LINEAR_IN_ONE, true},
                                   {"MatMul", LINEAR_IN_ONE, true},
                                   {"Gemm", LINEAR_IN_ONE, true},
                                   {"Conv", LINEAR_IN_ONE, true},
                                   {"ConvTranspose", LINEAR_IN_ONE, true},
                                   {"ReduceSum", LINEAR_IN_ONE, true},
                                   {"ReduceMean", LINEAR_IN_ONE, true},
                                   {"CumSum", LINEAR_IN_ONE, true},
                                   {"AveragePool", LINEAR_IN_ONE, true},
                                   {"GlobalAveragePool", LINEAR_IN_ONE, true},
                                   {"BatchNormalization", LINEAR_IN_ONE, true},
                                   {"Neg", LINEAR_IN_ONE, false},
                                   {"Identity", LINEAR_IN_ONE, false},
                                   {"Relu", RELU, false}};
static const linear_t quotient = {"Div", LINEAR_IN_ONE, true}, moved = {"", LINEAR_IN_ALL, false};

// NULL: it is not linear.
static const linear_t* find_linear(const assay_range_node_t* c) {
  const assay_node_t* n = c->node;
  if (*n->domain || !n->op || assay_attr_i64(n, "training_mode", 0)) return NULL;
  for (size_t i = 0; i < sizeof linears / sizeof *linears; i++)
    if (!strcmp(linears[i].op, n->op_type)) return &linears[i];
  if (!strcmp(n->op_type, "Div"))
    return c->n_in == 2 && assay_range_exact(&c->in[1]) ? &quotient : NULL;
  // Dropout in training scales what it keeps.
  const bool other = !strcmp(n->op_type, "Dropout") && assay_range_has(c, 2);
  const uint32_t flags = n->op->flags;
  return flags & ASSAY_OP_MOVES &&
                 !(flags & (ASSAY_OP_SELECTS | ASSAY_OP_CONTROL | ASSAY_OP_RANDOM)) && !other
             ? &moved
             : NULL;
}

// Whether every input is known exactly or has a form of one and the same source; that source's
// form.
static const assay_affine_t* source_of(const assay_range_node_t* c, kind_t kind,
                                       const assay_affine_t* const* in) {
  const assay_affine_t* found = NULL;
  size_t n = 0;
  for (size_t i = 0; i < c->n_in; i++) {
    if (!assay_range_has(c, i)) continue;
    if (!c->in[i].lo) return NULL;
    if (assay_range_exact(&c->in[i])) continue;
    if (!in[i] || !in[i]->source || (found && in[i]->source != found->source)) return NULL;
    if (in[i]->middle->size != c->in[i].lo->size) return NULL;
    found = in[i];
    n++;
  }
  return kind != LINEAR_IN_ALL && n != 1 ? NULL : found;
}

// ---- linear nodes -------------------------------------------------------------------------------

typedef struct job {
  assay_range_node_t* c;
  const assay_affine_t* const* in;
  const assay_node_t* node;  // that is evaluated
  assay_tensor_t **at, **out;
  bool magnitudes;  // of what is known exactly
} job_t;

typedef enum part { ZERO, MIDDLE, REST, SLOPE, ALL } part_t;

static assay_status_t set_input(job_t* j, size_t i, part_t part, int64_t k) {
  const assay_range_t* r = &j->c->in[i];
  assay_tensor_t* t = NULL;
  if (assay_range_exact(r)) {
    if (j->magnitudes && assay_range_is_float(r))
      return assay_range_take(r, ASSAY_RANGE_LARGEST, &j->at[i]);
    j->at[i] = assay_tensor_retain(r->lo);
    return NULL;
  }
  const assay_affine_t* a = j->in[i];
  const size_t bytes = (size_t)a->middle->size * sizeof(double);
  ASSAY_TRY(assay_tensor_create_zero(r->lo->type, r->lo->rank, r->lo->dims, &t));
  if (part == MIDDLE) memcpy(t->data, a->middle->data, bytes);
  if (part == REST) memcpy(t->data, a->rest->data, bytes);
  if (part == SLOPE) memcpy(t->data, a->slopes + k * a->middle->size, bytes);
  for (int64_t e = 0; part == ALL && e < a->middle->size; e++) assay_f64(t)[e] = reach(a, e);
  j->at[i] = t;
  return NULL;
}

static assay_status_t evaluate(job_t* j, part_t part, int64_t k, assay_tensor_t** out) {
  assay_range_node_t* c = j->c;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < c->n_in; i++)
    if (assay_range_has(c, i)) st = set_input(j, i, part, k);
  if (!st) st = assay_range_evaluate_as(c, j->node, c->n_in, j->at, c->n_out, j->out);
  assay_range_release_all(c->n_in, j->at);
  if (st) return st;
  *out = j->out[0];
  j->out[0] = NULL;
  assay_range_release_all(c->n_out, j->out);
  return NULL;
}

static bool fits(const assay_range_node_t* c, const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 &&
         t->size == c->out[0].lo->size;
}

// The rest: through the same node with magnitudes, where nothing cancels. What float64 loses in
// sums of up to 2^16 terms goes with the magnitudes of all that is added up.
static assay_status_t carry_rest(job_t* j, assay_affine_t* to) {
  assay_range_node_t* c = j->c;
  assay_node_t sum = *c->node;
  assay_tensor_t *zero = NULL, *y = NULL, *all = NULL;
  if (!strcmp(c->node->op_type, "Sub")) {
    sum = assay_range_as(c, "Add", 0, c->node->n_attrs, c->node->attrs);
    j->node = &sum;
  }
  j->magnitudes = true;
  assay_status_t st = evaluate(j, ZERO, 0, &zero);
  if (!st) st = evaluate(j, REST, 0, &y);
  if (!st) st = evaluate(j, ALL, 0, &all);
  j->magnitudes = false;
  j->node = c->node;
  if (!st) st = assay_tensor_create(zero->type, zero->rank, zero->dims, &to->rest);
  for (int64_t i = 0; !st && i < zero->size; i++)
    assay_f64(to->rest)[i] = fabs(assay_f64(y)[i] - assay_f64(zero)[i]) +
                             0x1p-36 * (fabs(assay_f64(all)[i]) + 2 * fabs(assay_f64(zero)[i]));
  assay_tensor_release(zero);
  assay_tensor_release(y);
  assay_tensor_release(all);
  return st;
}

static assay_status_t carry(job_t* j, const assay_affine_t* from, assay_affine_t* to) {
  assay_tensor_t* zero = NULL;
  const int64_t size = j->c->out[0].lo->size;
  to->source = from->source;
  to->n = from->n;
  assay_status_t st = evaluate(j, MIDDLE, 0, &to->middle);
  if (!st && !fits(j->c, to->middle)) return to->source = 0, NULL;
  if (!st) st = evaluate(j, ZERO, 0, &zero);
  if (!st) st = assay_new_array((size_t)(to->n * size), sizeof *to->slopes, &to->slopes);
  for (int64_t k = 0; !st && k < to->n; k++) {
    assay_tensor_t* y = NULL;
    st = evaluate(j, SLOPE, k, &y);
    for (int64_t i = 0; !st && i < size; i++)
      to->slopes[k * size + i] = assay_f64(y)[i] - assay_f64(zero)[i];
    assay_tensor_release(y);
  }
  assay_tensor_release(zero);
  return st ? st : carry_rest(j, to);
}

// ---- Relu ---------------------------------------------------------------------------------------

// Between lo < 0 < hi: s x <= relu(x) <= s (x - lo) with s = hi / (hi - lo).
static assay_status_t relu(const assay_range_node_t* c, const assay_affine_t* from,
                           assay_affine_t* to) {
  const assay_range_t* x = &c->in[0];
  const int64_t size = x->lo->size;
  to->source = from->source;
  to->n = from->n;
  ASSAY_TRY(assay_tensor_copy(from->middle, &to->middle));
  ASSAY_TRY(assay_tensor_copy(from->rest, &to->rest));
  ASSAY_TRY(assay_new_array((size_t)(to->n * size), sizeof *to->slopes, &to->slopes));
  for (int64_t i = 0; i < size; i++) {
    const double lo = assay_f64(x->lo)[i], hi = assay_f64(x->hi)[i];
    const double s = hi <= 0   ? 0
                     : lo >= 0 ? 1
                               : hi / (hi - lo),
                 half = s > 0 && s < 1 ? -s * lo / 2 : 0;
    assay_f64(to->middle)[i] = s * assay_f64(from->middle)[i] + half;
    assay_f64(to->rest)[i] = s * assay_f64(from->rest)[i] + half * (1 + 0x1p-40) +
                             0x1p-45 * (fabs(assay_f64(from->middle)[i]) + fabs(lo) + hi);
    for (int64_t k = 0; k < to->n; k++) to->slopes[k * size + i] = s * from->slopes[k * size + i];
  }
  return NULL;
}

// ---- the whole ----------------------------------------------------------------------------------

// What the arithmetic inside adds, as the row told (c->slack); false: it did not.
static bool add_rounding(const assay_range_node_t* c, assay_affine_t* a) {
  if (!c->slack || c->n_slack != a->rest->size) return false;
  for (int64_t i = 0; i < a->rest->size; i++) assay_f64(a->rest)[i] += c->slack[i] * (1 + 0x1p-20);
  return true;
}

// *out_useful: the form says not much less than the interval by now does.
static assay_status_t narrow(assay_range_node_t* c, const assay_affine_t* a, bool* out_useful) {
  assay_range_t* y = &c->out[0];
  const int64_t size = y->lo->size;
  double widths = 0, spans = 0;
  ASSAY_TRY(assay_range_own(c, 0));
  for (int64_t i = 0; i < size; i++) {
    double by = assay_f64(a->rest)[i];
    for (int64_t k = 0; k < a->n; k++) by += fabs(a->slopes[k * size + i]);
    by *= 1 + 0x1p-30;
    const double m = assay_f64(a->middle)[i], e = 0x1p-45 * fabs(m);
    spans += 2 * by;
    const double lo = fmax(assay_f64(y->lo)[i], m - by - e),
                 hi = fmin(assay_f64(y->hi)[i], m + by + e);
    if (!(lo <= hi)) continue;
    assay_f64(y->lo)[i] = lo;
    assay_f64(y->hi)[i] = hi;
    widths += hi - lo;
  }
  *out_useful = spans <= 3 * widths;
  return NULL;
}

assay_status_t assay_affine_run(assay_range_node_t* c, const assay_affine_t* const* in,
                                assay_affine_t* out) {
  const linear_t* l = find_linear(c);
  *out = (assay_affine_t){0};
  if (!l || !assay_range_is_float(&c->out[0]) || assay_range_exact(&c->out[0])) return NULL;
  const assay_affine_t* from = source_of(c, l->kind, in);
  if (!from || from->n * c->out[0].lo->size > MAX_SLOPES) return NULL;
  job_t j = {.c = c, .in = in, .node = c->node};
  assay_affine_t to = {0};
  assay_status_t st = assay_new_array(c->n_in, sizeof *j.at, &j.at);
  if (!st) st = assay_new_array(c->n_out, sizeof *j.out, &j.out);
  if (!st) st = l->kind == RELU ? relu(c, from, &to) : carry(&j, from, &to);
  if (j.at) assay_range_release_all(c->n_in, j.at);
  if (j.out) assay_range_release_all(c->n_out, j.out);
  assay_free(j.at);
  assay_free(j.out);
  if (!st && to.source) {
    bool useful = !l->rounds || add_rounding(c, &to);
    if (useful) st = narrow(c, &to, &useful);
    if (!useful) to.source = 0;
  }
  if (st || !to.source) return assay_affine_deinit(&to), st;
  *out = to;
  return NULL;
}
