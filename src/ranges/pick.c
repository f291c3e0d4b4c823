// Operators whose ranges take more than their ends: quotients, powers, casts, and what picks
// elements or counts them.
#include <string.h>

#include "base/alloc.h"
#include "ranges/range.h"

static const double INF = (double)INFINITY;

// As the row said, with other signs.
static assay_status_t run_with(assay_range_node_t* c, const char* signs) {
  const assay_range_row_t* const kept = c->row;
  assay_range_row_t row = *kept;
  row.signs = signs;
  c->row = &row;
  assay_status_t st = assay_range_monotone(c);
  c->row = kept;
  return st;
}

static bool is_number(const assay_range_t* r) {
  return r->lo && r->lo->kind == ASSAY_KIND_TENSOR &&
         (r->lo->store == ASSAY_STORE_F64 || r->lo->store == ASSAY_STORE_I64);
}

// ---- quotients ----------------------------------------------------------------------------------

// The first element that may be 0, and neither surely so; -1: none.
static int64_t find_zero(const assay_range_t* r) {
  for (int64_t i = 0; i < r->lo->size; i++)
    if (assay_elem(r->lo, i) <= 0 && assay_elem(r->hi, i) >= 0) return i;
  return -1;
}

static assay_status_t divides(assay_range_node_t* c, size_t divisor, const char* signs) {
  const assay_range_t* d = &c->in[divisor];
  if (!is_number(d)) return NULL;
  const int64_t zero = find_zero(d);
  if (zero < 0) return run_with(c, signs);
  assay_range_hazard(c, ASSAY_HAZARD_DIVISION, divisor, zero, assay_elem(d->lo, zero),
                     assay_elem(d->hi, zero), 0);
  return assay_range_whole(c, 0);
}
assay_status_t assay_range_div(assay_range_node_t* c) { return divides(c, 1, "**"); }
assay_status_t assay_range_reciprocal(assay_range_node_t* c) { return divides(c, 0, "*"); }

// fmod: of the dividend's sign, smaller than the divisor; else of the divisor's.
assay_status_t assay_range_mod(assay_range_node_t* c) {
  if (!is_number(&c->in[0]) || !is_number(&c->in[1])) return NULL;
  double lo, hi, dl, dh;
  assay_range_ends(&c->in[0], &lo, &hi);
  assay_range_ends(&c->in[1], &dl, &dh);
  const int64_t zero = find_zero(&c->in[1]);
  if (zero >= 0) {
    assay_range_hazard(c, ASSAY_HAZARD_DIVISION, 1, zero, assay_elem(c->in[1].lo, zero),
                       assay_elem(c->in[1].hi, zero), 0);
    return assay_range_whole(c, 0);
  }
  const double maximum = fmax(fabs(dl), fabs(dh)),
               whole = c->in[0].lo->store == ASSAY_STORE_I64 ? 1 : 0;
  if (assay_attr_i64(c->node, "fmod", 0))
    return assay_range_fill_output(c, 0, lo < 0 ? fmax(lo, -maximum) : 0,
                                   hi > 0 ? fmin(hi, maximum) : 0);
  return assay_range_fill_output(c, 0, dl < 0 ? -(maximum - whole) : 0,
                                 dh > 0 ? maximum - whole : 0);
}

// ---- powers -------------------------------------------------------------------------------------

// x^e: e is mostly one number. Even: by |x|. Odd: grows. Not whole: x from 0 on only.
assay_status_t assay_range_pow(assay_range_node_t* c) {
  const assay_range_t *x = &c->in[0], *e = &c->in[1];
  double lo, hi, el, eh;
  if (!is_number(x) || !is_number(e)) return NULL;
  assay_range_ends(x, &lo, &hi);
  assay_range_ends(e, &el, &eh);
  if (el > eh) return run_with(c, "**");
  const bool one = el == eh, whole = one && el == floor(el);
  if (el < 0 && lo <= 0 && hi >= 0) return divides(c, 0, "**");
  if (whole && el >= 0)
    return run_with(c, fmod(el, 2) == 0 && assay_range_is_float(x) ? "|." : "+.");
  if (whole) return run_with(c, lo > 0 || hi < 0 ? "*." : "**");
  if (lo >= 0) return run_with(c, "**");
  int64_t at = 0;
  while (at < x->lo->size && assay_elem(x->lo, at) >= 0) at++;
  if (x->lo->size) {
    at = at < x->lo->size ? at : 0;
    assay_range_hazard(c, ASSAY_HAZARD_DOMAIN, 0, at, assay_elem(x->lo, at), assay_elem(x->hi, at),
                       0);
  }
  return assay_range_whole(c, 0);
}

// ---- casts --------------------------------------------------------------------------------------

static bool is_bool_output(const assay_range_node_t* c) {
  const assay_valtype_t* t = c->node->outputs[0] ? c->node->outputs[0]->type : NULL;
  return t && t->elem == ASSAY_TYPE_BOOL;
}

static assay_status_t to_bool(assay_range_node_t* c) {
  const assay_range_t* x = &c->in[0];
  assay_tensor_t *lo = NULL, *hi = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_BOOL, x->lo->rank, x->lo->dims, &lo));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_BOOL, x->lo->rank, x->lo->dims, &hi);
  if (st) return assay_tensor_release(lo), st;
  for (int64_t i = 0; i < lo->size; i++) {
    const double a = assay_elem(x->lo, i), b = assay_elem(x->hi, i);
    assay_i64(lo)[i] = a > 0 || b < 0;
    assay_i64(hi)[i] = !(a == 0 && b == 0);
  }
  assay_range_set(&c->out[0], lo, hi);
  return NULL;
}

// Floats to integers: past the type the result is undefined (Cast), so it is kept inside after the
// hazard.
static assay_status_t keep_inside(assay_range_node_t* c, assay_type_t type) {
  const assay_format_info_t* f = assay_format_info(assay_type_format(type));
  const bool wide = f->max >= 0x1p63;
  const double maximum = wide ? nextafter(f->max, 0) : f->max;
  const double min = !f->is_signed ? 0 : wide ? -f->max : -f->max - 1;
  assay_range_t* x = &c->in[0];
  int64_t at = -1;
  for (int64_t i = 0; at < 0 && i < x->lo->size; i++) {
    // Fractions fall away towards 0.
    if (trunc(assay_elem(x->lo, i)) < min || trunc(assay_elem(x->hi, i)) > maximum) at = i;
  }
  if (at < 0) return NULL;
  const bool above = trunc(assay_elem(x->hi, at)) > maximum;
  assay_range_hazard(c, ASSAY_HAZARD_CAST, 0, at, assay_elem(above ? x->hi : x->lo, at),
                     assay_elem(above ? x->lo : x->hi, at), above ? maximum : min);
  assay_tensor_t *lo = NULL, *hi = NULL;
  ASSAY_TRY(assay_tensor_copy(x->lo, &lo));
  assay_status_t st = assay_tensor_copy(x->hi, &hi);
  if (st) return assay_tensor_release(lo), st;
  for (int64_t i = 0; i < lo->size; i++) {
    assay_f64(lo)[i] = fmin(fmax(assay_f64(lo)[i], min), maximum);
    assay_f64(hi)[i] = fmin(fmax(assay_f64(hi)[i], min), maximum);
  }
  assay_range_set(x, lo, hi);
  return NULL;
}

// Between integers the bits wrap.
static assay_status_t integers_fit(assay_range_node_t* c, assay_type_t type, bool* out_fit) {
  const assay_format_info_t* f = assay_format_info(assay_type_format(type));
  double lo, hi;
  assay_range_ends(&c->in[0], &lo, &hi);
  *out_fit = lo > hi || (lo >= (f->is_signed ? -f->max - 1 : 0) && hi <= f->max);
  if (*out_fit) return NULL;
  assay_range_hazard(c, ASSAY_HAZARD_CAST, 0, 0, hi > f->max ? hi : lo, hi > f->max ? lo : hi,
                     f->max);
  return assay_range_whole(c, 0);
}

assay_status_t assay_range_cast(assay_range_node_t* c) {
  const assay_valtype_t* t = c->node->outputs[0] ? c->node->outputs[0]->type : NULL;
  if (!is_number(&c->in[0]) || !t || t->kind != ASSAY_KIND_TENSOR) return NULL;
  if (is_bool_output(c)) return to_bool(c);
  if (assay_type_is_integer(t->elem)) {
    if (assay_range_is_float(&c->in[0])) {
      ASSAY_TRY(keep_inside(c, t->elem));
    } else if (c->in[0].lo->type != ASSAY_TYPE_BOOL) {
      bool fit;
      ASSAY_TRY(integers_fit(c, t->elem, &fit));
      if (!fit) return NULL;
    }
  }
  return run_with(c, "+_");
}

// ---- choices ------------------------------------------------------------------------------------

// Runs another comparison on ends of the inputs.
static assay_status_t compare(assay_range_node_t* c, assay_tensor_t* a, assay_tensor_t* b,
                              assay_tensor_t** out) {
  const assay_node_t less = assay_range_as(c, "LessOrEqual", 16, 0, NULL);
  assay_tensor_t* in[2] = {a, b};
  return assay_range_evaluate_as(c, &less, 2, in, 1, out);
}

static assay_status_t both(assay_range_node_t* c, assay_tensor_t* a, assay_tensor_t* b,
                           assay_tensor_t* d, assay_tensor_t* e, assay_tensor_t** out) {
  assay_tensor_t *x = NULL, *y = NULL;
  assay_status_t st = compare(c, a, b, &x);
  if (!st) st = compare(c, d, e, &y);
  for (int64_t i = 0; !st && i < x->size; i++) assay_i64(x)[i] &= assay_i64(y)[i];
  assay_tensor_release(y);
  if (st) return assay_tensor_release(x), st;
  *out = x;
  return NULL;
}

// Surely equal where both are known exactly and the same; never where they do not meet.
assay_status_t assay_range_equal(assay_range_node_t* c) {
  const assay_range_t *a = &c->in[0], *b = &c->in[1];
  if (!is_number(a) || !is_number(b) || a->lo->type == ASSAY_TYPE_BOOL)
    return assay_range_fill_output(c, 0, 0, 1);
  assay_tensor_t *lo = NULL, *hi = NULL;
  ASSAY_TRY(both(c, a->hi, b->lo, b->hi, a->lo, &lo));
  assay_status_t st = both(c, a->lo, b->hi, b->lo, a->hi, &hi);
  if (st) return assay_tensor_release(lo), st;
  assay_range_set(&c->out[0], lo, hi);
  return NULL;
}

assay_status_t assay_range_never(assay_range_node_t* c) {  // of numbers that are finite
  return assay_range_is_float(&c->in[0]) && assay_range_magnitude(&c->in[0]) < INF
             ? assay_range_fill_output(c, 0, 0, 0)
             : assay_range_fill_output(c, 0, 0, 1);
}

// The places along an axis.
assay_status_t assay_range_places(assay_range_node_t* c) {
  const assay_tensor_t* x = c->in[0].lo;
  if (!x || x->kind != ASSAY_KIND_TENSOR) return NULL;
  int64_t axis = assay_attr_i64(c->node, "axis", 0);
  if (axis < 0) axis += x->rank;
  const double n = axis < x->rank && axis >= 0 ? (double)x->dims[axis] : 1;
  return assay_range_fill_output(c, 0, 0, fmax(0, n - 1));
}

// Rows of a table: with an index that is not known any of those that it may mean.
assay_status_t assay_range_gather(assay_range_node_t* c) {
  const assay_range_t *data = &c->in[0], *at = &c->in[1];
  if (!is_number(data) || !is_number(at) || assay_range_exact(at)) return assay_range_moved(c);
  const int rank = data->lo->rank;
  int64_t axis = assay_attr_i64(c->node, "axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return NULL;
  const int64_t n = data->lo->dims[axis],
                inner = assay_dims_product(data->lo->dims, (int)axis + 1, rank);
  const int64_t outer = assay_dims_product(data->lo->dims, 0, (int)axis);
  ASSAY_TRY(assay_range_fill_output(c, 0, 0, 0));
  if (!c->out[0].lo || !n) return NULL;
  ASSAY_TRY(assay_range_own(c, 0));
  const int64_t indices = at->lo->size;
  assay_range_t* y = &c->out[0];
  const bool is_float = y->lo->store == ASSAY_STORE_F64;
  // The hull over all rows is the same for all indices that may mean any of them: made once an
  // (outer, inner).
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < inner; k++) {
      double lo = INF, hi = -INF;
      for (int64_t j = 0; j < n; j++) {
        const int64_t from = (o * n + j) * inner + k;
        lo = fmin(lo, assay_elem(data->lo, from));
        hi = fmax(hi, assay_elem(data->hi, from));
      }
      for (int64_t i = 0; i < indices; i++) {
        const int64_t to = (o * indices + i) * inner + k;
        if (is_float) {
          assay_f64(y->lo)[to] = lo;
          assay_f64(y->hi)[to] = hi;
        } else {
          assay_i64(y->lo)[to] = (int64_t)lo;
          assay_i64(y->hi)[to] = (int64_t)hi;
        }
      }
    }
  return NULL;
}

assay_status_t assay_range_one_hot(assay_range_node_t* c) {
  double lo, hi;
  if (assay_range_exact(&c->in[0]) || !is_number(&c->in[2])) return assay_range_monotone(c);
  assay_range_ends(&c->in[2], &lo, &hi);
  return assay_range_fill_output(c, 0, lo, hi);
}

// Sums into places: monotone in both where the places are known.
assay_status_t assay_range_scatter(assay_range_node_t* c) {
  const char* reduction = assay_attr_str(c->node, "reduction", "none");
  if (!assay_range_exact(&c->in[1])) {
    if (!strcmp(reduction, "mul") || !strcmp(reduction, "add")) return NULL;
    return assay_range_moved(c);
  }
  if (!strcmp(reduction, "mul")) return NULL;
  ASSAY_TRY(run_with(c, "+.+"));
  const double n = c->in[2].lo ? (double)c->in[2].lo->size : 0;
  const double maximum =
      fmax(assay_range_magnitude(&c->in[0]), n * assay_range_magnitude(&c->in[2]));
  return strcmp(reduction, "add") == 0 && maximum < INF
             ? assay_range_widen(c, 0, n * (1 + n), 0, NULL)
             : NULL;
}

// ---- images -------------------------------------------------------------------------------------

// Nearest and linear: means of elements. Cubic: its kernel is negative in places.
assay_status_t assay_range_resize(assay_range_node_t* c) {
  const char* mode = assay_attr_str(c->node, "mode", "nearest");
  return strcmp(mode, "cubic") != 0 && strcmp(mode, "bicubic") != 0 ? run_with(c, "+...") : NULL;
}

assay_status_t assay_range_sampled(assay_range_node_t* c) {
  const char* mode = assay_attr_str(c->node, "mode", "linear");
  double lo, hi;
  if (!strcmp(mode, "cubic") || !strcmp(mode, "bicubic") || !is_number(&c->in[0])) return NULL;
  assay_range_ends(&c->in[0], &lo, &hi);
  ASSAY_TRY(assay_range_fill_output(c, 0, fmin(lo, 0), fmax(hi, 0)));
  return assay_range_widen(c, 0, 64, 0, NULL);
}

// ---- made up ------------------------------------------------------------------------------------

assay_status_t assay_range_uniform(assay_range_node_t* c) {
  return assay_range_fill_output(c, 0, assay_attr_f64(c->node, "low", 0),
                                 assay_attr_f64(c->node, "high", 1));
}

// The generator's uniform numbers are multiples of 2^-53: no normal one is farther than 8.3
// deviations away.
assay_status_t assay_range_normal(assay_range_node_t* c) {
  const double mean = assay_attr_f64(c->node, "mean", 0),
               by = 9 * fabs(assay_attr_f64(c->node, "scale", 1));
  return assay_range_fill_output(c, 0, mean - by, mean + by);
}

assay_status_t assay_range_unit(assay_range_node_t* c) {
  return assay_range_fill_output(c, 0, 0, 1);
}
