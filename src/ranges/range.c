// The ranges of one node: what the functions of rows.inc are given, and what they share.
#include "ranges/range.h"

#include <string.h>

#include "base/alloc.h"
#include "ops/math/pointwise.h"

static const double INF = (double)INFINITY;

// ---- ranges -------------------------------------------------------------------------------------

bool assay_range_is_float(const assay_range_t* r) {
  return r->lo && r->lo->kind == ASSAY_KIND_TENSOR && r->lo->store == ASSAY_STORE_F64;
}

void assay_range_release(assay_range_t* r) {
  assay_tensor_release(r->lo);
  assay_tensor_release(r->hi);
  *r = (assay_range_t){0};
}

void assay_range_release_all(size_t n, assay_tensor_t** t) {
  for (size_t i = 0; i < n; i++) {
    assay_tensor_release(t[i]);
    t[i] = NULL;
  }
}

static bool same_bytes(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->kind == ASSAY_KIND_TENSOR &&
         (a->store == ASSAY_STORE_F64 || a->store == ASSAY_STORE_I64) && a->store == b->store &&
         a->size == b->size && !memcmp(a->data, b->data, (size_t)a->size * sizeof(double));
}

void assay_range_set(assay_range_t* r, assay_tensor_t* take_lo, assay_tensor_t* take_hi) {
  assay_range_release(r);
  if (take_lo && take_hi && take_lo != take_hi && same_bytes(take_lo, take_hi)) {
    assay_tensor_release(take_hi);
    take_hi = assay_tensor_retain(take_lo);
  }
  r->lo = take_lo;
  r->hi = take_hi;
}

assay_range_t assay_range_retain(const assay_range_t* r) {
  return (assay_range_t){r->lo ? assay_tensor_retain(r->lo) : NULL,
                         r->hi ? assay_tensor_retain(r->hi) : NULL};
}

static void put_elem(assay_tensor_t* t, int64_t i, double x) {
  if (t->store == ASSAY_STORE_F64)
    assay_f64(t)[i] = x;
  else
    assay_i64(t)[i] = assay_type_saturate(t->type, x);
}

assay_status_t assay_range_hull(const assay_range_t* a, const assay_range_t* b,
                                assay_range_t* out) {
  *out = (assay_range_t){0};
  if (!a->lo || !b->lo) return NULL;
  if (a->lo == b->lo && a->hi == b->hi) return *out = assay_range_retain(a), NULL;
  if (!assay_tensor_alike(a->lo, b->lo) ||
      (a->lo->store != ASSAY_STORE_F64 && a->lo->store != ASSAY_STORE_I64))
    return NULL;
  assay_tensor_t *lo = NULL, *hi = NULL;
  ASSAY_TRY(assay_tensor_copy(a->lo, &lo));
  assay_status_t st = assay_tensor_copy(a->hi, &hi);
  if (st) return assay_tensor_release(lo), st;
  for (int64_t i = 0; i < lo->size; i++) {
    if (assay_elem(b->lo, i) < assay_elem(lo, i)) put_elem(lo, i, assay_elem(b->lo, i));
    if (assay_elem(b->hi, i) > assay_elem(hi, i)) put_elem(hi, i, assay_elem(b->hi, i));
  }
  assay_range_set(out, lo, hi);
  return NULL;
}

assay_status_t assay_range_fill(assay_type_t type, int rank, const int64_t* dims, double lo,
                                double hi, assay_range_t* out) {
  assay_tensor_t *a = NULL, *b = NULL;
  ASSAY_TRY(assay_tensor_create(type, rank, dims, &a));
  assay_status_t st = assay_tensor_create(type, rank, dims, &b);
  if (st) return assay_tensor_release(a), st;
  if (a->store != ASSAY_STORE_F64 && a->store != ASSAY_STORE_I64) {
    assay_tensor_release(a);
    assay_tensor_release(b);
    return NULL;
  }
  for (int64_t i = 0; i < a->size; i++) {
    put_elem(a, i, lo);
    put_elem(b, i, hi);
  }
  *out = (assay_range_t){0};
  assay_range_set(out, a, b);
  return NULL;
}

assay_status_t assay_range_fill_output(assay_range_node_t* c, size_t i, double lo, double hi) {
  const assay_value_t* v = i < c->node->n_outputs ? c->node->outputs[i] : NULL;
  const assay_valtype_t* t = v ? v->type : NULL;
  int64_t dims[ASSAY_MAX_RANK];
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || !t->elem) return NULL;
  for (int k = 0; k < t->rank; k++)
    if (!assay_dim_value(t->dims[k], &dims[k])) return NULL;
  assay_range_t r = {0};
  ASSAY_TRY(assay_range_fill(t->elem, t->rank, dims, lo, hi, &r));
  assay_range_release(&c->out[i]);
  c->out[i] = r;
  return NULL;
}

assay_status_t assay_range_whole(assay_range_node_t* c, size_t i) {
  const assay_value_t* v = i < c->node->n_outputs ? c->node->outputs[i] : NULL;
  const assay_valtype_t* t = v ? v->type : NULL;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->elem) return NULL;
  if (t->elem == ASSAY_TYPE_BOOL) return assay_range_fill_output(c, i, 0, 1);
  const assay_format_t format = assay_ranger_storage(c, t->elem);
  if (format == ASSAY_FORMAT_NONE) return NULL;
  const assay_format_info_t* f = assay_format_info(format);
  return assay_range_fill_output(c, i, f->is_float || f->is_signed ? -f->max : 0, f->max);
}

void assay_range_ends(const assay_range_t* r, double* lo, double* hi) {
  *lo = INF;
  *hi = -INF;
  if (!r->lo || r->lo->kind != ASSAY_KIND_TENSOR ||
      (r->lo->store != ASSAY_STORE_F64 && r->lo->store != ASSAY_STORE_I64))
    return;
  double minimum = INF, maximum = -INF;
#pragma omp parallel for reduction(min : minimum) reduction(max : maximum) if (r->lo->size > 100000)
  for (int64_t i = 0; i < r->lo->size; i++) {
    minimum = fmin(minimum, assay_elem(r->lo, i));
    maximum = fmax(maximum, assay_elem(r->hi, i));
  }
  *lo = minimum;
  *hi = maximum;
}

double assay_range_magnitude(const assay_range_t* r) {
  double lo, hi;
  assay_range_ends(r, &lo, &hi);
  return lo > hi ? 0 : fmax(fabs(lo), fabs(hi));
}

// ---- evaluating ---------------------------------------------------------------------------------

assay_node_t assay_range_as(const assay_range_node_t* c, const char* op, int64_t version,
                            size_t n_attrs, assay_attr_t* attrs) {
  assay_node_t node = *c->node;
  if (!version) version = assay_model_opset(node.graph->model, "");
  node.domain = "";
  node.op_type = op;
  node.op = assay_op_find("", op, version);
  node.schema = assay_schema_find("", op, version, NULL);
  node.attrs = attrs;
  node.n_attrs = n_attrs;
  return node;
}

static double part_of(assay_range_part_t part, double lo, double hi) {
  const double middle = lo / 2 + hi / 2;
  switch (part) {
    case ASSAY_RANGE_MIDDLE:
      return middle;
    case ASSAY_RANGE_HALF_WIDTH:
      return lo == hi ? 0 : nextafter(fmax(hi - middle, middle - lo), INF);
    case ASSAY_RANGE_LARGEST:
      return fmax(fabs(lo), fabs(hi));
    case ASSAY_RANGE_SMALLEST:
      return lo <= 0 && hi >= 0 ? 0 : fmin(fabs(lo), fabs(hi));
  }
  return 0;
}

assay_status_t assay_range_take(const assay_range_t* r, assay_range_part_t part,
                                assay_tensor_t** out) {
  const assay_tensor_t* t = r->lo;
  assay_tensor_t* y = NULL;
  const bool is_float = t->store == ASSAY_STORE_F64;
  // Middles of integers need not be whole.
  ASSAY_TRY(assay_tensor_create(is_float ? t->type : ASSAY_TYPE_DOUBLE, t->rank, t->dims, &y));
  double* to = assay_f64(y);
#pragma omp parallel for schedule(static) if (t->size > 100000)
  for (int64_t i = 0; i < t->size; i++)
    to[i] = part_of(part, assay_elem(r->lo, i), assay_elem(r->hi, i));
  *out = y;
  return NULL;
}

// ---- making -------------------------------------------------------------------------------------

// A hazard that makes infinities or NaN goes before one that is about what is not known.
static int gravity(assay_hazard_kind_t k) { return k == ASSAY_HAZARD_UNKNOWN ? 0 : 1; }

void assay_range_hazard(assay_range_node_t* c, assay_hazard_kind_t kind, size_t index,
                        int64_t element, double figure, double other, double limit) {
  if (c->has_hazard && gravity(c->hazard.kind) >= gravity(kind)) return;
  const bool of_input =
      kind == ASSAY_HAZARD_DIVISION || kind == ASSAY_HAZARD_DOMAIN || kind == ASSAY_HAZARD_CAST;
  const assay_value_t* v = NULL;
  if (of_input && index < c->n_in) v = c->node->inputs[index];
  if (!of_input && index < c->n_out) v = c->node->outputs[index];
  c->has_hazard = true;
  c->hazard = (assay_hazard_t){.node = c->node,
                               .value = v,
                               .kind = kind,
                               .index = index,
                               .element = element,
                               .figure = figure,
                               .other = other,
                               .limit = limit};
}

void assay_range_accumulates_to(assay_range_node_t* c, double magnitude) {
  if (magnitude > c->inner_max && magnitude < INF)
    assay_range_hazard(c, ASSAY_HAZARD_ACCUMULATOR, 0, -1, magnitude, -magnitude, c->inner_max);
}

void assay_range_accumulates(assay_range_node_t* c, const assay_tensor_t* magnitude) {
  int64_t at = -1;
  double maximum = c->inner_max;
  for (int64_t i = 0; i < magnitude->size; i++) {
    const double m = assay_elem(magnitude, i);
    if (m > maximum && m < INF) {
      maximum = m;
      at = i;
    }
  }
  if (at >= 0)
    assay_range_hazard(c, ASSAY_HAZARD_ACCUMULATOR, 0, at, maximum, -maximum, c->inner_max);
}

static assay_status_t own(assay_tensor_t** t) {
  assay_tensor_t* copy = NULL;
  if (assay_tensor_is_sole(*t)) return NULL;
  ASSAY_TRY(assay_tensor_copy(*t, &copy));
  assay_tensor_release(*t);
  *t = copy;
  return NULL;
}

assay_status_t assay_range_own(assay_range_node_t* c, size_t i) {
  assay_range_t* r = &c->out[i];
  if (!r->lo) return NULL;
  ASSAY_TRY(own(&r->lo));
  return own(&r->hi);
}

assay_status_t assay_range_widen(assay_range_node_t* c, size_t i, double ops, double terms,
                                 const assay_tensor_t* magnitude) {
  assay_range_t* r = &c->out[i];
  if (!assay_range_is_float(r)) return NULL;
  ASSAY_TRY(assay_range_own(c, i));
  double *lo = assay_f64(r->lo), *hi = assay_f64(r->hi);
  // n u without denominator holds for sums (bound.h); u of float64 for the sums that made these
  // ends.
  const double by = terms * (c->u * (1 + terms * c->u) + 0x1p-52), tiny = terms * c->tiny;
  if (i == 0 && c->n_slack != r->lo->size) {
    assay_free(c->slack);
    c->slack = NULL;
    c->n_slack = 0;
    ASSAY_TRY(assay_new_array((size_t)r->lo->size, sizeof *c->slack, &c->slack));
    c->n_slack = r->lo->size;
  }
  double* slack = i == 0 ? c->slack : NULL;
#pragma omp parallel for schedule(static) if (r->lo->size > 100000)
  for (int64_t k = 0; k < r->lo->size; k++) {
    const double e = magnitude ? assay_elem(magnitude, k) * by + tiny : 0;
    if (slack) slack[k] += e + ops * c->u * (fmax(fabs(lo[k]), fabs(hi[k])) + e) + c->tiny;
    lo[k] = assay_down(c, lo[k] - (e < INF ? e : 0), ops);
    hi[k] = assay_up(c, hi[k] + (e < INF ? e : 0), ops);
  }
  return NULL;
}

assay_status_t assay_range_limit(assay_range_node_t* c, size_t i, double minimum, double maximum) {
  assay_range_t* r = &c->out[i];
  if (!assay_range_is_float(r)) return NULL;
  ASSAY_TRY(assay_range_own(c, i));
  for (int64_t k = 0; k < r->lo->size; k++) {
    assay_f64(r->lo)[k] = fmin(fmax(assay_f64(r->lo)[k], minimum), maximum);
    assay_f64(r->hi)[k] = fmax(fmin(assay_f64(r->hi)[k], maximum), minimum);
  }
  return NULL;
}
