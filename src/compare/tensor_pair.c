// Two tensors of one name: everything that is measured of them, over all their elements.
#include "compare/tensor_pair.h"

#include <math.h>
#include <string.h>

#include "formats/format.h"

void assay_tensor_pair_deinit(assay_tensor_pair_t* p) {
  assay_error_stats_destroy(p->stats);
  assay_str_deinit(&p->other);
  assay_str_deinit(&p->why);
  *p = (assay_tensor_pair_t){0};
}

// ---- elements -----------------------------------------------------------------------------------

// The type that elements of a store are read as.
static assay_type_t canonical_type(const assay_tensor_t* t) {
  switch (t->store) {
    case ASSAY_STORE_F64:
      return ASSAY_TYPE_DOUBLE;
    case ASSAY_STORE_C128:
      return ASSAY_TYPE_COMPLEX128;
    default:
      return t->type == ASSAY_TYPE_UINT64 ? ASSAY_TYPE_UINT64 : ASSAY_TYPE_INT64;
  }
}

static double number_at(const assay_tensor_t* t, int64_t i) {
  if (t->store != ASSAY_STORE_I64) return assay_f64(t)[i];  // a complex element has two of them
  const int64_t x = assay_i64(t)[i];
  return t->type == ASSAY_TYPE_UINT64 ? (double)(uint64_t)x : (double)x;
}

// Elements of integers are compared as such: past 2^53 a double does not hold them.
static bool same_integer(const assay_tensor_t* a, const assay_tensor_t* b, int64_t i) {
  return a->store == ASSAY_STORE_I64 && b->store == ASSAY_STORE_I64 &&
         assay_i64(a)[i] == assay_i64(b)[i] &&
         (assay_i64(a)[i] >= 0 || (a->type == ASSAY_TYPE_UINT64) == (b->type == ASSAY_TYPE_UINT64));
}

static bool within(double x, double reference, const assay_compare_options_t* o) {
  if (isnan(x) || isnan(reference)) return isnan(x) && isnan(reference);
  if (isinf(x) || isinf(reference)) return x == reference;
  return fabs(x - reference) <= o->atol + o->rtol * fabs(reference);
}

static int64_t count_outside(const assay_tensor_t* a, const assay_tensor_t* b,
                             const assay_compare_options_t* o) {
  const int parts = a->store == ASSAY_STORE_C128 ? 2 : 1;
  int64_t n = 0;
  for (int64_t i = 0; i < a->size; i++) {
    bool fine = same_integer(a, b, i);
    // Integers that differ by less than float64 holds differ all the same.
    const bool exact = a->store == ASSAY_STORE_I64 && b->store == ASSAY_STORE_I64 && !fine &&
                       o->atol == 0 && o->rtol == 0;
    for (int k = 0; !fine && !exact && k < parts; k++) {
      if (!within(number_at(a, parts * i + k), number_at(b, parts * i + k), o)) break;
      fine = k == parts - 1;
    }
    n += !fine;
  }
  return n;
}

static int64_t count_other_text(const assay_tensor_t* a, const assay_tensor_t* b) {
  const assay_string_t *x = assay_strings(a), *y = assay_strings(b);
  int64_t n = 0;
  for (int64_t i = 0; i < a->size; i++)
    n += x[i].len != y[i].len || (x[i].len && memcmp(x[i].text, y[i].text, x[i].len) != 0);
  return n;
}

// ---- a tensor -----------------------------------------------------------------------------------

static assay_status_t open_stats(assay_tensor_pair_t* p, const assay_compare_options_t* o,
                                 const assay_tensor_t* reference) {
  assay_error_options_t options = ASSAY_ERROR_OPTIONS_INIT;
  if (p->stats) return NULL;
  p->numbers = true;
  p->floats = assay_type_is_float(reference->type);
  if (p->floats)
    options.ulp_format = o->ulp_format ? o->ulp_format : assay_type_format(reference->type);
  return assay_error_stats_create(&options, &p->stats);
}

static assay_status_t count_rows(assay_tensor_pair_t* p, const assay_compare_options_t* o,
                                 const assay_tensor_t* a, const assay_tensor_t* b) {
  assay_topk_t top;
  if (!b->rank || !b->size || b->store != ASSAY_STORE_F64 || a->store != ASSAY_STORE_F64)
    return NULL;
  const int64_t columns = b->dims[b->rank - 1];
  ASSAY_TRY(assay_topk_compare(ASSAY_TYPE_DOUBLE, a->data, ASSAY_TYPE_DOUBLE, b->data,
                               b->size / columns, columns, o->top_k, &top));
  p->rows += top.rows;
  p->same_first += top.same_first;
  p->same_set += top.same_set;
  return NULL;
}

// Canonical tensors of one shape.
static assay_status_t add_elements(assay_tensor_pair_t* p, const assay_compare_options_t* o,
                                   const assay_tensor_t* a, const assay_tensor_t* b) {
  const bool text = a->store == ASSAY_STORE_STR, complex = a->store == ASSAY_STORE_C128;
  if (text != (b->store == ASSAY_STORE_STR) || complex != (b->store == ASSAY_STORE_C128)) {
    assay_str_printf(&p->other, "type %s, the reference is %s", assay_type_name(a->type),
                     assay_type_name(b->type));
    return assay_str_status(&p->other);
  }
  p->elements += a->size;
  if (text) return p->outside += count_other_text(a, b), NULL;
  p->outside += count_outside(a, b, o);
  ASSAY_TRY(open_stats(p, o, b));
  assay_error_stats_add(p->stats, canonical_type(a), a->data, canonical_type(b), b->data, a->size);
  return count_rows(p, o, a, b);
}

static const char* kind_name(assay_kind_t kind) {
  static const char* const names[] = {"a tensor", "a sequence", "an optional", "a map"};
  return names[kind];
}

static assay_status_t add_items(assay_tensor_pair_t* p, const assay_compare_options_t* o,
                                assay_tensor_t* a, assay_tensor_t* b) {
  if (a->n_items != b->n_items) {
    assay_str_printf(&p->other, "%lld items, the reference has %lld", (long long)a->n_items,
                     (long long)b->n_items);
    return assay_str_status(&p->other);
  }
  for (int64_t i = 0; i < a->n_items && !p->other.len; i++)
    ASSAY_TRY(assay_tensor_pair_add(p, o, a->items[i], b->items[i]));
  return NULL;
}

assay_status_t assay_tensor_pair_add(assay_tensor_pair_t* p, const assay_compare_options_t* o,
                                     assay_tensor_t* a, assay_tensor_t* b) {
  assay_tensor_t *x = NULL, *y = NULL;
  if (p->other.len) return NULL;
  if (a->kind != b->kind) {
    assay_str_printf(&p->other, "%s, the reference is %s", kind_name(a->kind), kind_name(b->kind));
    return assay_str_status(&p->other);
  }
  if (a->kind != ASSAY_KIND_TENSOR) return add_items(p, o, a, b);
  if (!assay_tensor_same_shape(a, b)) {
    assay_str_printf(&p->other, "shape %s, the reference has %s", ASSAY_DIMS_TEXT(a),
                     ASSAY_DIMS_TEXT(b));
    return assay_str_status(&p->other);
  }
  assay_status_t st = assay_tensor_widen(a, &x);
  if (!st) st = assay_tensor_widen(b, &y);
  if (!st) st = add_elements(p, o, x, y);
  assay_tensor_release(x);
  assay_tensor_release(y);
  return st;
}

// ---- statistics ---------------------------------------------------------------------------------

static double part(int64_t n, int64_t of) { return of ? (double)n / (double)of : (double)NAN; }

double assay_tensor_pair_statistic(const assay_tensor_pair_t* p, assay_statistic_t statistic) {
  const assay_error_summary_t* s = &p->summary;
  if (p->other.len || p->lost || p->extra) return (double)NAN;
  if (statistic == ASSAY_STATISTIC_ELEMENTS) return (double)p->elements;
  if (statistic == ASSAY_STATISTIC_OUTSIDE) return (double)p->outside;
  if (!p->numbers) return (double)NAN;
  switch (statistic) {
    case ASSAY_STATISTIC_MAX_ABS:
      return s->max_abs;
    case ASSAY_STATISTIC_MAX_REL:
      return s->max_rel;
    case ASSAY_STATISTIC_MEAN:
      return s->mean;
    case ASSAY_STATISTIC_RMS:
      return s->rms;
    case ASSAY_STATISTIC_P50:
      return s->p50;
    case ASSAY_STATISTIC_P90:
      return s->p90;
    case ASSAY_STATISTIC_P99:
      return s->p99;
    case ASSAY_STATISTIC_P999:
      return s->p999;
    case ASSAY_STATISTIC_COSINE:
      return s->cosine;
    case ASSAY_STATISTIC_SNR_DB:
      return s->snr_db;
    case ASSAY_STATISTIC_PSNR_DB:
      return s->psnr_db;
    case ASSAY_STATISTIC_KL:
      return s->kl;
    case ASSAY_STATISTIC_MAX_ULP:
      return p->floats ? (double)s->max_ulp : (double)NAN;
    case ASSAY_STATISTIC_NAN:
      return (double)s->engine_nan;
    case ASSAY_STATISTIC_INF:
      return (double)s->engine_inf;
    case ASSAY_STATISTIC_REFERENCE_NAN:
      return (double)s->reference_nan;
    case ASSAY_STATISTIC_REFERENCE_INF:
      return (double)s->reference_inf;
    case ASSAY_STATISTIC_MISMATCHED:
      return (double)s->mismatched;
    case ASSAY_STATISTIC_TOP1:
      return part(p->same_first, p->rows);
    case ASSAY_STATISTIC_TOP_K:
      return part(p->same_set, p->rows);
    default:
      return (double)NAN;
  }
}

// ---- judging ------------------------------------------------------------------------------------

static void add_why(assay_tensor_pair_t* p, const char* text) {
  assay_str_printf(&p->why, "%s%s", p->why.len ? "; " : "", text);
}

static void judge_limit(assay_tensor_pair_t* p, const assay_limit_t* limit) {
  const double x = assay_tensor_pair_statistic(p, limit->statistic);
  const char* name = assay_statistic_name(limit->statistic);
  if (limit->name && strcmp(limit->name, p->name) != 0) return;
  if (isnan(x) && !limit->name) return;  // a limit on all that have it
  if (x >= limit->min && x <= limit->max) return;
  add_why(p, name);
  if (isnan(x))
    assay_str_append(&p->why, " is not known of such tensors");
  else if (x < limit->min)
    assay_str_printf(&p->why, " is %.6g, below %.6g", x, limit->min);
  else
    assay_str_printf(&p->why, " is %.6g, above %.6g", x, limit->max);
}

static void judge_elements(assay_tensor_pair_t* p) {
  if (!p->outside) return;
  add_why(p, "");
  assay_str_printf(&p->why, "%lld of %lld elements %s", (long long)p->outside,
                   (long long)p->elements,
                   p->numbers ? "are outside the tolerance" : "are another text");
  if (p->summary.mismatched)
    assay_str_printf(&p->why, ", %lld of them NaN or infinite on one side",
                     (long long)p->summary.mismatched);
}

assay_status_t assay_tensor_pair_finish(assay_tensor_pair_t* p, const assay_compare_options_t* o) {
  if (p->stats) ASSAY_TRY(assay_error_stats_summary(p->stats, &p->summary));
  if (p->lost || p->extra)
    add_why(p, p->lost ? "only the reference has it" : "the reference does not have it");
  else if (p->other.len)
    add_why(p, assay_str_get(&p->other));
  else if (!o->no_tolerance)
    judge_elements(p);
  for (size_t i = 0; !p->lost && !p->extra && !p->other.len && i < o->n_limits; i++)
    judge_limit(p, &o->limits[i]);
  return assay_str_status(&p->why);
}
