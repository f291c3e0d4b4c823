// Operators that are monotone in each of their inputs, which is most of them: asked themselves, in
// float64, what they make of the ends of what comes in.
#include <string.h>

#include "base/alloc.h"
#include "ranges/range.h"

static const double INF = (double)INFINITY;

// A letter of `signs`; operators that move elements have none, and their schema tells data from
// parameters.
static bool is_data(const assay_range_node_t* c, size_t i) {
  const assay_schema_t* s = c->node->schema;
  const assay_param_t* p = s ? assay_schema_input(s, i) : NULL;
  const assay_param_t* y = s && s->n_outputs ? &s->outputs[0] : NULL;
  return p && y && *p->type && strcmp(p->type, y->type) == 0;
}

static char sign_of(const assay_range_node_t* c, size_t i) {
  const char* signs = c->row ? c->row->signs : NULL;
  if (!signs) return is_data(c, i) ? '+' : '.';
  const size_t n = strlen(signs);
  return signs[i < n ? i : n - 1];
}

// One evaluation among those that find the ends.
typedef struct corner {
  bool up;         // '+' and '|' at their upper ends, '-' at their lower
  unsigned stars;  // bit k: the k-th input of sign '*' at its upper end
} corner_t;

typedef struct ends {
  assay_range_node_t* c;
  assay_tensor_t **in, **out;
  assay_tensor_t **smallest, **largest;  // of inputs of sign '|', made once
  size_t n_stars;
  bool directed;  // an input that is not exact has another sign than '*'
} ends_t;

static void ends_deinit(ends_t* e) {
  const assay_range_node_t* c = e->c;
  if (e->in) assay_range_release_all(c->n_in, e->in);
  if (e->out) assay_range_release_all(c->n_out, e->out);
  if (e->smallest) assay_range_release_all(c->n_in, e->smallest);
  if (e->largest) assay_range_release_all(c->n_in, e->largest);
  assay_free(e->in);
  assay_free(e->out);
  assay_free(e->smallest);
  assay_free(e->largest);
}

// Whether the inputs allow it; counts what has two ends.
static assay_status_t inspect(ends_t* e, bool* out_fits) {
  enum { MAX_STARS = 4 };
  assay_range_node_t* c = e->c;
  *out_fits = false;
  for (size_t i = 0; i < c->n_in; i++) {
    if (!assay_range_has(c, i)) continue;
    const assay_range_t* r = &c->in[i];
    const char sign = sign_of(c, i);
    if (!r->lo) return NULL;
    if (assay_range_exact(r) || sign == '_') continue;
    if (sign == '.') return NULL;
    if (sign == '|' && !assay_range_is_float(r)) return NULL;
    if (sign == '*')
      e->n_stars++;
    else
      e->directed = true;
    if (sign != '|') continue;
    ASSAY_TRY(assay_range_take(r, ASSAY_RANGE_SMALLEST, &e->smallest[i]));
    ASSAY_TRY(assay_range_take(r, ASSAY_RANGE_LARGEST, &e->largest[i]));
  }
  *out_fits = e->n_stars <= MAX_STARS;
  return NULL;
}

static void choose(ends_t* e, corner_t at) {
  assay_range_node_t* c = e->c;
  size_t star = 0;
  for (size_t i = 0; i < c->n_in; i++) {
    if (!assay_range_has(c, i)) continue;
    const assay_range_t* r = &c->in[i];
    const char sign = sign_of(c, i);
    const bool exact = assay_range_exact(r) || sign == '_';
    assay_tensor_t* t = r->lo;
    if (!exact && sign == '+') t = at.up ? r->hi : r->lo;
    if (!exact && sign == '-') t = at.up ? r->lo : r->hi;
    if (!exact && sign == '|') t = at.up ? e->largest[i] : e->smallest[i];
    if (!exact && sign == '*') t = at.stars >> star++ & 1 ? r->hi : r->lo;
    e->in[i] = assay_tensor_retain(t);
  }
}

// Widens output i's range so that it holds t, which is taken over. NaN stands for anything.
static assay_status_t include(assay_range_node_t* c, size_t i, assay_tensor_t* take) {
  assay_range_t* r = &c->out[i];
  assay_tensor_t* t = take;
  if (!r->lo) {
    r->lo = t;
    r->hi = assay_tensor_retain(t);
  }
  const bool numbers =
      t->kind == ASSAY_KIND_TENSOR && (t->store == ASSAY_STORE_F64 || t->store == ASSAY_STORE_I64);
  assay_status_t st = NULL;
  bool invalid = false;
  int64_t where = -1;
  for (int64_t k = 0; numbers && t->store == ASSAY_STORE_F64 && k < t->size && !invalid; k++)
    if (isnan(assay_f64(t)[k])) invalid = true, where = k;
  if (invalid) assay_range_hazard(c, ASSAY_HAZARD_INVALID, i, where, INF, -INF, 0);
  if (t != r->lo || invalid) {
    const bool fits = numbers && t->size == r->lo->size && t->store == r->lo->store;
    if (!fits) {  // another shape for other numbers: nothing is known
      if (t != r->lo) assay_tensor_release(t);
      assay_range_release(r);
      return NULL;
    }
    st = assay_range_own(c, i);
    double *lo = st ? NULL : assay_f64(r->lo), *hi = st ? NULL : assay_f64(r->hi);
    if (!st && t->store == ASSAY_STORE_F64) {
      const double* x = t == r->lo ? hi : assay_f64(t);
#pragma omp parallel for schedule(static) if (r->lo->size > 100000)
      for (int64_t k = 0; k < r->lo->size; k++) {
        const double v = x[k];
        if (isnan(v) || isnan(lo[k])) {
          lo[k] = -INF;
          hi[k] = INF;
        } else {
          lo[k] = fmin(lo[k], v);
          hi[k] = fmax(hi[k], v);
        }
      }
    } else if (!st) {
      const bool is_unsigned = t->type == ASSAY_TYPE_UINT64;
      int64_t *a = assay_i64(r->lo), *b = assay_i64(r->hi);
      const int64_t* x = assay_i64(t);
      for (int64_t k = 0; k < r->lo->size; k++) {
        const bool below = is_unsigned ? (uint64_t)x[k] < (uint64_t)a[k] : x[k] < a[k];
        const bool above = is_unsigned ? (uint64_t)x[k] > (uint64_t)b[k] : x[k] > b[k];
        if (below) a[k] = x[k];
        if (above) b[k] = x[k];
      }
    }
  }
  if (t != r->lo && t != r->hi) assay_tensor_release(t);
  return st;
}

static assay_status_t take_outputs(ends_t* e) {
  assay_status_t st = NULL;
  for (size_t i = 0; i < e->c->n_out; i++) {
    if (!st && e->out[i]) {
      st = include(e->c, i, e->out[i]);
      e->out[i] = NULL;
    }
  }
  assay_range_release_all(e->c->n_out, e->out);
  return st;
}

static assay_status_t evaluate_at(ends_t* e, corner_t at) {
  choose(e, at);
  assay_status_t st = assay_range_evaluate(e->c, e->in, e->out);
  assay_range_release_all(e->c->n_in, e->in);
  return st ? st : take_outputs(e);
}

// The extremum that input 0 may reach.
static assay_status_t evaluate_turn(ends_t* e) {
  const assay_range_t* r = &e->c->in[0];
  if (assay_range_exact(r)) return NULL;
  choose(e, (corner_t){0});
  assay_tensor_t* x = NULL;
  assay_status_t st = assay_tensor_copy(r->lo, &x);
  for (int64_t k = 0; !st && k < x->size; k++) {
    const double t = fmin(fmax(e->c->row->turn, assay_elem(r->lo, k)), assay_elem(r->hi, k));
    if (x->store == ASSAY_STORE_F64)
      assay_f64(x)[k] = t;
    else
      assay_i64(x)[k] = (int64_t)t;
  }
  if (!st) {
    assay_tensor_release(e->in[0]);
    e->in[0] = x;
    st = assay_range_evaluate(e->c, e->in, e->out);
  }
  assay_range_release_all(e->c->n_in, e->in);
  return st ? st : take_outputs(e);
}

// ---- what rounding does -------------------------------------------------------------------------

static double terms_of(const assay_range_node_t* c) {
  const assay_tensor_t* x = c->in[0].lo;
  const assay_tensor_t* y = c->out[0].lo;
  double n = 1;
  switch (c->row->sums) {
    case ASSAY_TERMS_NONE:
      return 0;
    case ASSAY_TERMS_REDUCED:
      return y->size ? ceil((double)x->size / (double)y->size) + 1 : 1;
    case ASSAY_TERMS_SCANNED:
      for (int k = 0; k < x->rank; k++) n = fmax(n, (double)x->dims[k]);
      return n;
    case ASSAY_TERMS_INPUTS:
      return (double)c->n_in;
    case ASSAY_TERMS_KERNEL: {
      size_t k = 0;
      const int64_t* kernel = assay_attr_ints(c->node, "kernel_shape", &k);
      for (size_t i = 0; i < k; i++) n *= (double)kernel[i];
      return n + 1;
    }
  }
  return n;
}

// Output 0 of the largest magnitudes: what the terms' add up to.
static assay_status_t magnitude_of(ends_t* e, assay_tensor_t** out) {
  assay_range_node_t* c = e->c;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < c->n_in; i++) {
    if (!assay_range_has(c, i)) continue;
    const char sign = sign_of(c, i);
    if (assay_range_is_float(&c->in[i]) && sign != '.' && sign != '_')
      st = assay_range_take(&c->in[i], ASSAY_RANGE_LARGEST, &e->in[i]);
    else
      e->in[i] = assay_tensor_retain(c->in[i].lo);
  }
  if (!st) st = assay_range_evaluate(c, e->in, e->out);
  assay_range_release_all(c->n_in, e->in);
  if (!st) *out = assay_tensor_retain(e->out[0]);
  assay_range_release_all(c->n_out, e->out);
  return st;
}

// Sums divided at the end (means) are as many times larger inside.
static bool is_mean(const assay_range_node_t* c) {
  return strstr(c->node->op_type, "Mean") || strstr(c->node->op_type, "Average");
}

// A sum of numbers of one sign has that sign, however it is rounded.
static assay_status_t keep_sign(assay_range_node_t* c) {
  double min = 0, maximum = 0;
  for (size_t i = 0; i < c->n_in; i++) {
    double lo, hi;
    if (!assay_range_has(c, i) || !assay_range_is_float(&c->in[i])) continue;
    assay_range_ends(&c->in[i], &lo, &hi);
    min = fmin(min, lo);
    maximum = fmax(maximum, hi);
  }
  if (min >= 0 || c->row->signs[0] == '|') return assay_range_limit(c, 0, 0, INF);
  return maximum <= 0 ? assay_range_limit(c, 0, -INF, 0) : NULL;
}

static assay_status_t widen_sums(ends_t* e) {
  assay_range_node_t* c = e->c;
  assay_tensor_t* magnitude = NULL;
  if (!assay_range_is_float(&c->out[0])) return NULL;
  ASSAY_TRY(magnitude_of(e, &magnitude));
  const double terms = terms_of(c);
  assay_status_t st = assay_range_widen(c, 0, c->row->ops, terms, magnitude);
  if (!st) st = keep_sign(c);
  double maximum = 0;
  for (int64_t i = 0; i < magnitude->size; i++)
    if (assay_elem(magnitude, i) < INF) maximum = fmax(maximum, assay_elem(magnitude, i));
  assay_range_accumulates_to(c, maximum * (is_mean(c) ? terms : 1) * (1 + terms * c->u));
  assay_tensor_release(magnitude);
  return st;
}

// ---- integers -----------------------------------------------------------------------------------

// Whether the integers that it makes may pass their type: then they may be anything.
static bool may_wrap(const assay_range_node_t* c, double* out_figure) {
  const assay_range_t *a = &c->in[0], *b = c->n_in > 1 ? &c->in[1] : NULL;
  double al, ah, bl = 0, bh = 0, lo, hi;
  assay_range_ends(a, &al, &ah);
  if (b) assay_range_ends(b, &bl, &bh);
  if (c->row->wraps == '*') {
    lo = fmin(fmin(al * bl, al * bh), fmin(ah * bl, ah * bh));
    hi = fmax(fmax(al * bl, al * bh), fmax(ah * bl, ah * bh));
  } else if (c->row->wraps == '+') {
    const bool minus = c->row->signs[1] == '-';
    lo = al + (minus ? -bh : bl);
    hi = ah + (minus ? -bl : bh);
  } else {
    const double n = terms_of(c);
    lo = fmin(al, al * n);
    hi = fmax(ah, ah * n);
  }
  const assay_format_info_t* f = assay_format_info(assay_type_format(a->lo->type));
  const double min = f->is_signed ? -f->max - 1 : 0;
  *out_figure = hi > f->max ? hi : lo;
  return lo < min || hi > f->max;
}

static assay_status_t check_wrap(assay_range_node_t* c) {
  double figure;
  const bool integers = c->in[0].lo && c->in[0].lo->kind == ASSAY_KIND_TENSOR &&
                        c->in[0].lo->store == ASSAY_STORE_I64 &&
                        c->in[0].lo->type != ASSAY_TYPE_BOOL;
  if (!integers || !(c->row->wraps || c->row->sums) || !may_wrap(c, &figure)) return NULL;
  assay_range_hazard(c, ASSAY_HAZARD_WRAP, 0, -1, figure, figure,
                     assay_format_info(assay_type_format(c->in[0].lo->type))->max);
  assay_range_release(&c->out[0]);
  return assay_range_whole(c, 0);
}

// ---- the whole ----------------------------------------------------------------------------------

// Numbers outside the domain are told, and put at its end.
static assay_status_t keep_domain(assay_range_node_t* c) {
  const assay_range_row_t* row = c->row;
  if (!row || !(row->domain_min < row->domain_max) || !assay_range_is_float(&c->in[0])) return NULL;
  const double min = row->domain_min, maximum = row->domain_max;
  assay_range_t* r = &c->in[0];
  int64_t at = -1;
  for (int64_t k = 0; at < 0 && k < r->lo->size; k++) {
    const double lo = assay_f64(r->lo)[k], hi = assay_f64(r->hi)[k];
    if (lo < min || hi > maximum || (row->open && (lo == min || hi == maximum))) at = k;
  }
  if (at < 0) return NULL;
  assay_range_hazard(c, ASSAY_HAZARD_DOMAIN, 0, at, assay_f64(r->lo)[at], assay_f64(r->hi)[at],
                     assay_f64(r->lo)[at] <= min ? min : maximum);
  assay_tensor_t *lo = NULL, *hi = NULL;
  ASSAY_TRY(assay_tensor_copy(r->lo, &lo));
  assay_status_t st = assay_tensor_copy(r->hi, &hi);
  // Just inside, where the function still has a value.
  const double step = row->open ? 0x1p-149 : 0, in = row->open && maximum < INF ? 0x1p-40 : 0;
  const double from = min == 0 ? step : min + in, to = maximum < INF ? maximum - in : maximum;
  for (int64_t k = 0; !st && k < lo->size; k++) {
    assay_f64(lo)[k] = fmin(fmax(assay_f64(lo)[k], from), to);
    assay_f64(hi)[k] = fmin(fmax(assay_f64(hi)[k], from), to);
  }
  if (st) return assay_tensor_release(lo), st;
  assay_range_set(r, lo, hi);
  return NULL;
}

static assay_status_t fill_indices(assay_range_node_t* c, size_t i) {
  const assay_tensor_t* x = c->in[0].lo;
  assay_range_release(&c->out[i]);
  return assay_range_fill_output(c, i, 0, fmax(0, (double)(x->size - 1)));
}

static assay_status_t run(ends_t* e) {
  assay_range_node_t* c = e->c;
  const assay_range_row_t* row = c->row;
  bool fits = false;
  assay_status_t st = keep_domain(c);
  if (!st) st = inspect(e, &fits);
  if (st || !fits) return st;
  for (unsigned stars = 0; !st && stars < 1U << e->n_stars; stars++)
    for (int up = 0; !st && up <= (int)e->directed; up++)
      st = evaluate_at(e, (corner_t){up, stars});
  if (!st && row && row->turns) st = evaluate_turn(e);
  if (st || !row) return st;
  for (size_t i = 0; !st && i < c->n_out; i++)
    if (row->indices >> i & 1 && c->node->outputs[i]) st = fill_indices(c, i);
  if (!st) st = check_wrap(c);
  if (!st && row->sums && c->out[0].lo)
    st = widen_sums(e);
  else
    for (size_t i = 0; !st && i < c->n_out; i++)
      if (row->ops > 0) st = assay_range_widen(c, i, row->ops, 0, NULL);
  // Where a function turns it is flat: the extremum is not missed by more.
  for (size_t i = 0; !st && row->turns && i < c->n_out; i++) {
    if (!assay_range_is_float(&c->out[i])) continue;
    for (int64_t k = 0; k < c->out[i].lo->size; k++)
      if (assay_f64(c->out[i].lo)[k] < 0) assay_f64(c->out[i].lo)[k] -= 1e-6;
  }
  for (size_t i = 0; !st && row->min < row->max && i < c->n_out; i++)
    st = assay_range_limit(c, i, row->min, row->max);
  return st;
}

assay_status_t assay_range_monotone(assay_range_node_t* c) {
  ends_t e = {.c = c};
  assay_status_t st = assay_new_array(c->n_in, sizeof *e.in, &e.in);
  if (!st) st = assay_new_array(c->n_out, sizeof *e.out, &e.out);
  if (!st) st = assay_new_array(c->n_in, sizeof *e.smallest, &e.smallest);
  if (!st) st = assay_new_array(c->n_in, sizeof *e.largest, &e.largest);
  if (!st) st = run(&e);
  ends_deinit(&e);
  // One tensor for what is exact.
  for (size_t i = 0; !st && i < c->n_out; i++) {
    assay_tensor_t *lo = c->out[i].lo, *hi = c->out[i].hi;
    c->out[i] = (assay_range_t){0};
    assay_range_set(&c->out[i], lo, hi);
  }
  return st;
}

// ---- moved elements -----------------------------------------------------------------------------

// Any element may come to any place, and so may 0, which pads.
static assay_status_t hull_of_data(assay_range_node_t* c) {
  double lo = 0, hi = 0;
  for (size_t i = 0; i < c->n_in; i++) {
    double a, b;
    if (!assay_range_has(c, i) || !is_data(c, i)) continue;
    if (!c->in[i].lo) return NULL;
    assay_range_ends(&c->in[i], &a, &b);
    lo = fmin(lo, a);
    hi = fmax(hi, b);
  }
  return assay_range_fill_output(c, 0, lo, hi);
}

assay_status_t assay_range_moved(assay_range_node_t* c) {
  ASSAY_TRY(assay_range_monotone(c));
  return c->out[0].lo ? NULL : hull_of_data(c);
}
