// The public face of comparisons: include/assay/compare.h.
#include <assay/compare.h>
#include <assay/samples.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compare/tensor_pair.h"
#include "data/tensor_files.h"
#include "formats/format.h"

struct assay_comparison {
  assay_arena_t* arena;  // of the names
  assay_tensor_pair_t* pairs;
  size_t n, capacity;
  assay_map_t by_name;
};

void assay_comparison_destroy(assay_comparison_t* c) {
  if (!c) return;
  for (size_t i = 0; i < c->n; i++) assay_tensor_pair_deinit(&c->pairs[i]);
  assay_free(c->pairs);
  assay_map_deinit(&c->by_name);
  assay_arena_destroy(c->arena);
  assay_free(c);
}

// ---- options ------------------------------------------------------------------------------------

static assay_status_t check_limit(const assay_limit_t* l, size_t i) {
  if (!assay_statistic_name(l->statistic))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "limit %zu: there is no statistic %d", i,
                       (int)l->statistic);
  if (l->min <= l->max) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "limit %zu: %s cannot be between %g and %g; leave an end open with infinity",
                     i, assay_statistic_name(l->statistic), l->min, l->max);
}

static assay_status_t check_options(const assay_compare_options_t* o) {
  if (!(o->atol >= 0) || !(o->rtol >= 0))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "the tolerance is %g + %g * |reference|; both have to be 0 or more", o->atol,
                       o->rtol);
  if (o->top_k < 1 || o->top_k > ASSAY_TOPK_MAX)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "top_k is %d; it has to be 1 to %d", o->top_k,
                       (int)ASSAY_TOPK_MAX);
  if (o->ulp_format && ((unsigned)o->ulp_format >= ASSAY_FORMAT_COUNT ||
                        !assay_format_info(o->ulp_format)->is_float))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "ulp_format has to be a floating-point format; it is %s",
                       assay_format_name(o->ulp_format));
  for (size_t i = 0; i < o->n_limits; i++) ASSAY_TRY(check_limit(&o->limits[i], i));
  return NULL;
}

// ---- comparing ----------------------------------------------------------------------------------

// One run of a side.
typedef struct side {
  size_t n;
  const char* const* names;
  assay_tensor_t* const* tensors;
} side_t;

static assay_status_t open_comparison(const assay_compare_options_t* options,
                                      assay_compare_options_t* o, assay_comparison_t** out) {
  assay_comparison_t* c = NULL;
  *o = (assay_compare_options_t)ASSAY_COMPARE_OPTIONS_INIT;
  if (options)  // an older caller's struct may be shorter
    memcpy(o, options, options->struct_size < sizeof *o ? options->struct_size : sizeof *o);
  ASSAY_TRY(check_options(o));
  ASSAY_TRY(ASSAY_NEW(&c));
  assay_status_t st = assay_arena_create(&c->arena);
  if (st) return assay_comparison_destroy(c), st;
  *out = c;
  return NULL;
}

// The pair of a name, which is made where there is none.
static assay_status_t pair_of(assay_comparison_t* c, const char* name, assay_tensor_pair_t** out) {
  uint64_t at;
  assay_tensor_pair_t p = {0};
  if (assay_map_get(&c->by_name, name, &at)) return *out = &c->pairs[at], NULL;
  ASSAY_TRY(assay_grow(&c->pairs, &c->capacity, c->n + 1, sizeof *c->pairs));
  ASSAY_TRY(assay_arena_strdup(c->arena, name, &p.name));
  ASSAY_TRY(assay_map_put(&c->by_name, p.name, c->n, NULL));
  c->pairs[c->n] = p;
  *out = &c->pairs[c->n++];
  return NULL;
}

static assay_status_t check_side(const side_t* s, const char* what, assay_map_t* places) {
  for (size_t i = 0; i < s->n; i++) {
    bool old;
    if (!s->names[i] || !s->tensors[i])
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s %zu has no name, or is NULL", what, i);
    ASSAY_TRY(assay_map_put(places, s->names[i], i, &old));
    if (old)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s '%s' is there twice", what, s->names[i]);
  }
  return NULL;
}

static assay_status_t add_pairs(assay_comparison_t* c, const assay_compare_options_t* o,
                                const side_t* side, const side_t* reference,
                                const assay_map_t* here, const assay_map_t* there) {
  assay_tensor_pair_t* p;
  uint64_t at;
  for (size_t i = 0; i < reference->n; i++) {
    const bool found = assay_map_get(here, reference->names[i], &at);
    if (!found && o->allow_missing) continue;
    ASSAY_TRY(pair_of(c, reference->names[i], &p));
    p->lost |= !found;
    if (found) ASSAY_TRY(assay_tensor_pair_add(p, o, side->tensors[at], reference->tensors[i]));
  }
  for (size_t i = 0; !o->allow_missing && i < side->n; i++) {
    if (assay_map_get(there, side->names[i], NULL)) continue;
    ASSAY_TRY(pair_of(c, side->names[i], &p));
    p->extra = true;
  }
  return NULL;
}

static assay_status_t add_run(assay_comparison_t* c, const assay_compare_options_t* o,
                              const side_t* side, const side_t* reference) {
  assay_map_t here = {0}, there = {0};
  assay_status_t st = check_side(side, "tensor", &here);
  if (!st) st = check_side(reference, "reference", &there);
  if (!st) st = add_pairs(c, o, side, reference, &here, &there);
  assay_map_deinit(&here);
  assay_map_deinit(&there);
  return st;
}

static assay_status_t finish(assay_comparison_t* c, const assay_compare_options_t* o) {
  for (size_t i = 0; i < o->n_limits; i++)
    if (o->limits[i].name && !assay_map_get(&c->by_name, o->limits[i].name, NULL))
      return ASSAY_ERROR(ASSAY_NOT_FOUND,
                         "limit %zu is on '%s', which is not compared; the first pair is '%s'", i,
                         o->limits[i].name, c->n ? c->pairs[0].name : "");
  for (size_t i = 0; i < c->n; i++) ASSAY_TRY(assay_tensor_pair_finish(&c->pairs[i], o));
  return NULL;
}

assay_status_t assay_compare_tensors(size_t n, const char* const* names,
                                     assay_tensor_t* const* tensors, size_t n_reference,
                                     const char* const* reference_names,
                                     assay_tensor_t* const* reference,
                                     const assay_compare_options_t* options,
                                     assay_comparison_t** out) {
  assay_compare_options_t o;
  assay_comparison_t* c = NULL;
  ASSAY_TRY(open_comparison(options, &o, &c));
  assay_status_t st = add_run(c, &o, &(side_t){n, names, tensors},
                              &(side_t){n_reference, reference_names, reference});
  if (!st) st = finish(c, &o);
  if (st) return assay_comparison_destroy(c), st;
  *out = c;
  return NULL;
}

// ---- files --------------------------------------------------------------------------------------

static side_t side_of(const assay_set_t* s) {
  return (side_t){s->n, (const char* const*)s->names, s->tensors};
}

static assay_status_t compare_runs(const assay_saved_t* a, const assay_saved_t* b,
                                   const assay_compare_options_t* options,
                                   assay_comparison_t** out) {
  assay_compare_options_t o;
  assay_comparison_t* c = NULL;
  ASSAY_TRY(open_comparison(options, &o, &c));
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < a->n; k++) {
    const side_t side = side_of(&a->runs[k]), reference = side_of(&b->runs[k]);
    st = add_run(c, &o, &side, &reference);
  }
  if (!st) st = finish(c, &o);
  if (st) return assay_comparison_destroy(c), st;
  *out = c;
  return NULL;
}

assay_status_t assay_compare_files(const char* path, const char* reference_path,
                                   const assay_compare_options_t* options,
                                   assay_comparison_t** out) {
  assay_saved_t a = {0}, b = {0};
  assay_status_t st = assay_tensor_file_read(&(assay_tensor_request_t){.path = path}, &a);
  if (!st) st = assay_tensor_file_read(&(assay_tensor_request_t){.path = reference_path}, &b);
  if (!st && a.n != b.n)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "'%s' holds %zu runs, '%s' %zu: give files of as many runs", path, a.n,
                     reference_path, b.n);
  if (!st) st = compare_runs(&a, &b, options, out);
  assay_saved_deinit(&a);
  assay_saved_deinit(&b);
  return st;
}

// ---- samples ------------------------------------------------------------------------------------

// Room for a sample's names and tensors.
typedef struct row {
  const char** names;
  assay_tensor_t** tensors;
} row_t;

static assay_status_t open_row(assay_arena_t* arena, const assay_samples_t* s, row_t* out) {
  const size_t n = assay_samples_value_count(s);
  ASSAY_TRY(assay_arena_new(arena, n, sizeof *out->names, &out->names));
  return assay_arena_new(arena, n, sizeof *out->tensors, &out->tensors);
}

// The values that a sample has.
static side_t side_of_sample(const assay_samples_t* s, size_t k, const row_t* row) {
  size_t n = 0;
  for (size_t i = 0; i < assay_samples_value_count(s); i++) {
    assay_tensor_t* t = assay_samples_tensor(s, k, i);
    if (!t) continue;
    row->names[n] = assay_samples_value_name(s, i);
    row->tensors[n++] = t;
  }
  return (side_t){n, row->names, row->tensors};
}

assay_status_t assay_compare_samples(const assay_samples_t* samples,
                                     const assay_samples_t* reference,
                                     const assay_compare_options_t* options,
                                     assay_comparison_t** out) {
  assay_compare_options_t o;
  assay_comparison_t* c = NULL;
  row_t row, of_reference;
  if (assay_samples_count(samples) != assay_samples_count(reference))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "there are %zu samples, and %zu of the reference: give as many",
                       assay_samples_count(samples), assay_samples_count(reference));
  ASSAY_TRY(open_comparison(options, &o, &c));
  assay_status_t st = open_row(c->arena, samples, &row);
  if (!st) st = open_row(c->arena, reference, &of_reference);
  for (size_t k = 0; !st && k < assay_samples_count(samples); k++) {
    const side_t a = side_of_sample(samples, k, &row);
    const side_t b = side_of_sample(reference, k, &of_reference);
    st = add_run(c, &o, &a, &b);
  }
  if (!st) st = finish(c, &o);
  if (st) return assay_comparison_destroy(c), st;
  *out = c;
  return NULL;
}

// ---- what was found -----------------------------------------------------------------------------

static const assay_tensor_pair_t* at(const assay_comparison_t* c, size_t i) {
  return i < c->n ? &c->pairs[i] : NULL;
}

bool assay_comparison_passed(const assay_comparison_t* c) {
  for (size_t i = 0; i < c->n; i++)
    if (c->pairs[i].why.len) return false;
  return c->n > 0;
}

size_t assay_comparison_count(const assay_comparison_t* c) { return c->n; }

const char* assay_comparison_name(const assay_comparison_t* c, size_t i) {
  return at(c, i) ? at(c, i)->name : NULL;
}

bool assay_comparison_pair_passed(const assay_comparison_t* c, size_t i) {
  return at(c, i) && !at(c, i)->why.len;
}

const char* assay_comparison_why(const assay_comparison_t* c, size_t i) {
  return at(c, i) ? assay_str_get(&at(c, i)->why) : NULL;
}

double assay_comparison_statistic(const assay_comparison_t* c, size_t i, assay_statistic_t s) {
  return at(c, i) ? assay_tensor_pair_statistic(at(c, i), s) : (double)NAN;
}

// Pair i if there are statistics of it; else NULL.
static const assay_tensor_pair_t* measured(const assay_comparison_t* c, size_t i) {
  const assay_tensor_pair_t* p = at(c, i);
  return p && p->stats && !p->other.len && !p->lost && !p->extra ? p : NULL;
}

double assay_comparison_percentile(const assay_comparison_t* c, size_t i, double p) {
  const assay_tensor_pair_t* pair = measured(c, i);
  if (!pair || !(p >= 0 && p <= 1)) return (double)NAN;
  return assay_error_stats_percentile(pair->stats, p);
}

int64_t assay_comparison_worst_at(const assay_comparison_t* c, size_t i) {
  const assay_tensor_pair_t* pair = measured(c, i);
  return pair ? pair->summary.worst_at : -1;
}

int64_t assay_comparison_ulps(const assay_comparison_t* c, size_t i, int slot) {
  const assay_tensor_pair_t* pair = measured(c, i);
  return pair && pair->floats && slot >= 0 && slot < ASSAY_ULP_SLOTS ? pair->summary.ulp[slot] : 0;
}
