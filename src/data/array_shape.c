// Samples in arrays, and arrays that were saved without their axes of one.
#include "data/array_shape.h"

#include <string.h>

// ---- samples -----------------------------------------------------------------------------------

static bool dim_fits(const assay_dim_t* want, int64_t have) {
  int64_t d;
  return !assay_dim_value(want, &d) || d == have;
}

static bool tail_fits(const assay_valtype_t* want, const assay_tensor_t* t, int want_from,
                      int have_from) {
  if (want->rank - want_from != t->rank - have_from) return false;
  for (int i = want_from; i < want->rank; i++)
    if (!dim_fits(want->dims[i], t->dims[have_from + i - want_from])) return false;
  return true;
}

bool assay_find_cut(const assay_valtype_t* want, const assay_tensor_t* t, assay_array_cut_t* out) {
  int64_t lead;
  *out = (assay_array_cut_t){1, false};
  if (!want || !want->has_shape || t->kind != ASSAY_KIND_TENSOR) return true;
  if (tail_fits(want, t, 0, 0)) return true;
  if (want->rank == t->rank && want->rank && tail_fits(want, t, 1, 1) &&
      assay_dim_value(want->dims[0], &lead) && lead > 0 && t->dims[0] % lead == 0) {
    out->n = t->dims[0] / lead;
    return out->n > 0;
  }
  if (tail_fits(want, t, 0, 1)) {
    *out = (assay_array_cut_t){t->dims[0], true};
    return t->dims[0] > 0;
  }
  return false;
}

// ---- axes of one -------------------------------------------------------------------------------

static const assay_valtype_t* type_of(const assay_value_t* v) {
  const assay_valtype_t* t = v ? v->type ? v->type : v->declared : NULL;
  return t && t->kind == ASSAY_KIND_TENSOR && t->has_shape && t->rank <= ASSAY_MAX_RANK ? t : NULL;
}

// Sizes that are put into the dimensions of a type.
typedef struct filling {
  const assay_set_t* set;
  const assay_value_t* const* of;
  const assay_valtype_t* want;
  int n;  // of sizes, but those of 1
  int64_t have[ASSAY_MAX_RANK];
  int64_t dims[ASSAY_MAX_RANK];   // being tried
  int64_t found[ASSAY_MAX_RANK];  // the way that was found first
  int ways;                       // 2: several
} filling_t;

// The size of a dimension that another array of the set shows, which has all axes.
static bool is_shown(const filling_t* f, const assay_dim_t* d, int64_t* out) {
  for (size_t k = 0; k < f->set->n; k++) {
    const assay_valtype_t* type = type_of(f->of[k]);
    const assay_tensor_t* t = f->set->tensors[k];
    if (!type || type == f->want || t->kind != ASSAY_KIND_TENSOR || !tail_fits(type, t, 0, 0))
      continue;
    for (int i = 0; i < type->rank; i++)
      if (type->dims[i] == d) return *out = t->dims[i], true;
  }
  return false;
}

// The size that dimension i must have; false: any.
static bool must_be(const filling_t* f, int i, int64_t* out) {
  const assay_dim_t* d = f->want->dims[i];
  if (assay_dim_value(d, out)) return true;
  for (int k = 0; d && k < i; k++)
    if (f->want->dims[k] == d && f->dims[k] >= 0) return *out = f->dims[k], true;
  return d && is_shown(f, d, out);
}

// Fills dimensions from number i on with the sizes from number k on.
static void fill(filling_t* f, int i, int k) {
  int64_t size = 1;
  if (f->ways > 1 || f->n - k > f->want->rank - i) return;
  if (i == f->want->rank) {
    if (!f->ways++) memcpy(f->found, f->dims, sizeof f->found);
    return;
  }
  const bool fixed = must_be(f, i, &size);
  if (!fixed || size == 1) {
    f->dims[i] = 1;
    fill(f, i + 1, k);
  }
  if (k < f->n && (!fixed || size == f->have[k])) {
    f->dims[i] = f->have[k];
    fill(f, i + 1, k + 1);
  }
}

// In how many ways (2: several) sizes from number have_from of an array on are those of the type
// from dimension want_from on, but for axes of one.
static int ways_to_fill(filling_t* f, const assay_tensor_t* t, int want_from, int have_from) {
  f->n = f->ways = 0;
  if (want_from > f->want->rank || have_from > t->rank) return 0;
  for (int i = 0; i < want_from; i++) f->dims[i] = -1;
  for (int i = have_from; i < t->rank; i++) {
    if (t->dims[i] == 1) continue;
    if (f->n == f->want->rank - want_from) return 0;
    f->have[f->n++] = t->dims[i];
  }
  fill(f, want_from, 0);
  return f->ways;
}

// The shape of an array with its axes of one: of a sample, or of several as assay_find_cut has
// them. Where there are several ways, there is none.
static bool whole_shape(filling_t* f, const assay_tensor_t* t, int* rank, int64_t* dims) {
  int64_t lead;
  *rank = f->want->rank;
  const int ways = ways_to_fill(f, t, 0, 0);
  memcpy(dims, f->found, (size_t)*rank * sizeof *dims);
  if (ways || !t->rank) return ways == 1;
  if (*rank && assay_dim_value(f->want->dims[0], &lead) && lead > 0 && t->dims[0] % lead == 0 &&
      t->dims[0] > 0 && ways_to_fill(f, t, 1, 1) == 1) {
    memcpy(dims, f->found, (size_t)*rank * sizeof *dims);
    dims[0] = t->dims[0];
    return true;
  }
  if (*rank == ASSAY_MAX_RANK || !t->dims[0] || ways_to_fill(f, t, 0, 1) != 1) return false;
  memcpy(dims + 1, f->found, (size_t)*rank * sizeof *dims);
  dims[0] = t->dims[0];
  ++*rank;
  return true;
}

static assay_status_t put_in(const assay_set_t* set, const assay_value_t* const* of, size_t k,
                             assay_tensor_t** out) {
  filling_t f = {.set = set, .of = of, .want = type_of(of[k])};
  assay_tensor_t* t = set->tensors[k];
  int64_t dims[ASSAY_MAX_RANK + 1];
  assay_array_cut_t cut;
  int rank;
  if (f.want && t->kind == ASSAY_KIND_TENSOR && !assay_find_cut(f.want, t, &cut) &&
      whole_shape(&f, t, &rank, dims))
    return assay_tensor_view(t, rank, dims, out);
  *out = assay_tensor_retain(t);
  return NULL;
}

assay_status_t assay_put_axes_in(const assay_set_t* set, const assay_value_t* const* of,
                                 assay_str_t* notes, assay_set_t* out) {
  size_t n_other = 0;
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < set->n; k++) {
    assay_tensor_t* t = NULL;
    st = put_in(set, of, k, &t);
    if (st) break;
    if (t != set->tensors[k] && n_other++ == 0)
      assay_str_printf(notes,
                       "note: array '%s' of shape %s is read as %s: it was saved without axes of 1",
                       set->names[k], ASSAY_DIMS_TEXT(set->tensors[k]), ASSAY_DIMS_TEXT(t));
    st = assay_set_add(out, set->names[k], t);
  }
  if (n_other > 1)
    assay_str_printf(notes, "; so %s %zu other%s", n_other > 2 ? "are" : "is", n_other - 1,
                     n_other > 2 ? "s" : "");
  if (n_other) assay_str_append(notes, "\n");
  if (!st) st = assay_str_status(notes);
  if (st) assay_set_deinit(out);
  return st;
}
