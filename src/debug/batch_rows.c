// Rows of batches: making batches of single samples, and comparing one row of two runs.
#include "debug/batch_rows.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

void assay_rows_deinit(assay_rows_t* r) {
  for (size_t i = 0; r->at && i < ASSAY_ROW_KINDS * r->n_inputs; i++)
    assay_tensor_release(r->at[i]);
  assay_free(r->at);
  assay_free(r->axis);
  *r = (assay_rows_t){0};
}

// ---- taking and drawing -------------------------------------------------------------------------

// Copies one row of a tensor along an axis into another tensor, whose size there is any.
static void copy_row(const assay_tensor_t* from, int64_t at, int axis, assay_tensor_t* to,
                     int64_t place) {
  const int64_t outer = assay_dims_product(from->dims, 0, axis);
  const int64_t inner = assay_dims_product(from->dims, axis + 1, from->rank);
  const size_t bytes = (size_t)inner * assay_store_elem_bytes(from->store);
  for (int64_t o = 0; o < outer; o++)
    memcpy((char*)to->data + (size_t)(o * to->dims[axis] + place) * bytes,
           (const char*)from->data + (size_t)(o * from->dims[axis] + at) * bytes, bytes);
}

static assay_status_t make_like(const assay_tensor_t* t, int axis, int64_t n,
                                assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK];
  memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
  dims[axis] = n;
  return assay_tensor_create(t->type, t->rank, dims, out);
}

static assay_status_t cut(const assay_tensor_t* t, int64_t row, int axis, assay_tensor_t** out) {
  ASSAY_TRY(make_like(t, axis, 1, out));
  copy_row(t, row, axis, *out, 0);
  return NULL;
}

static assay_status_t take_input(const assay_value_t* v, assay_tensor_t* sample, int axis,
                                 int64_t row, int64_t n, assay_tensor_t** out) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(sample, &wide));
  if (axis < 0) return *out = wide, NULL;
  const int64_t rows = wide->dims[axis];
  assay_status_t st = NULL;
  if (wide->store > ASSAY_STORE_I64)
    st = ASSAY_ERROR(ASSAY_UNSUPPORTED, "input '%s' holds neither floats nor integers", v->name);
  else if (rows != n && rows != 1)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' holds %lld rows, another one %lld",
                     v->name, (long long)rows, (long long)n);
  else
    st = cut(wide, rows == 1 ? 0 : row, axis, out);
  assay_tensor_release(wide);
  return st;
}

// Rows of one sample, at most as many as there is room for; a tensor of one row stands in all.
static assay_status_t take(const assay_model_t* m, assay_tensor_t* const* sample, assay_rows_t* r) {
  int64_t n = 1;
  for (size_t i = 0; i < r->n_inputs; i++)
    if (r->axis[i] >= 0 && sample[i] && sample[i]->dims[r->axis[i]] > n)
      n = sample[i]->dims[r->axis[i]];
  for (int64_t k = 0; k < n && r->given < ASSAY_BATCH_MAX; k++, r->given++)
    for (size_t i = 0; i < r->n_inputs; i++)
      if (sample[i])
        ASSAY_TRY(take_input(m->graph->inputs[i], sample[i], r->axis[i], k, n,
                             &r->at[r->given * r->n_inputs + i]));
  return NULL;
}

static void scale(assay_tensor_t* t, double by) {
  if (t->store == ASSAY_STORE_F64)
    for (int64_t i = 0; i < t->size; i++) assay_f64(t)[i] *= by;
  else if (by == 0)
    memset(t->data, 0, (size_t)t->size * assay_store_elem_bytes(t->store));
}

// A row in the shape of the first; inputs without a batch are the first one's.
static assay_status_t draw(const assay_model_t* m, size_t row, uint64_t seed, double by,
                           assay_rows_t* r) {
  assay_input_shape_t* shapes = NULL;
  assay_samples_t drawn = {0};
  size_t n = 0;
  ASSAY_TRY(assay_new_array(r->n_inputs, sizeof *shapes, &shapes));
  for (size_t i = 0; i < r->n_inputs; i++)
    if (r->at[i] && r->axis[i] >= 0)
      shapes[n++] =
          (assay_input_shape_t){m->graph->inputs[i]->name, r->at[i]->rank, r->at[i]->dims};
  assay_status_t st = assay_samples_generate_shaped(m, n, shapes, seed + 1000 + row, &drawn);
  for (size_t i = 0; !st && i < r->n_inputs; i++) {
    assay_tensor_t* t = r->axis[i] >= 0 && r->at[i] ? drawn.at[i] : r->at[i];
    if (t && r->axis[i] >= 0) scale(t, by);
    r->at[row * r->n_inputs + i] = assay_tensor_retain(t);
  }
  assay_samples_deinit(&drawn);
  assay_free(shapes);
  return st;
}

assay_status_t assay_rows_make(const assay_model_t* m, const assay_samples_t* samples,
                               const assay_batch_axis_t* axis, int64_t batch, uint64_t seed,
                               assay_rows_t* out) {
  assay_rows_t r = {.n_inputs = m->graph->n_inputs};
  bool any = false;
  assay_status_t st = assay_new_array(r.n_inputs, sizeof *r.axis, &r.axis);
  if (!st) st = assay_new_array(ASSAY_ROW_KINDS * r.n_inputs, sizeof(assay_tensor_t*), &r.at);
  for (size_t i = 0; !st && i < r.n_inputs; i++) {
    r.axis[i] = assay_batch_axis_of(axis, m->graph->inputs[i], batch);
    any |= r.axis[i] >= 0;
  }
  if (!st && !any)
    st = ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "no input of the model has a size that could be a batch; --axis names one");
  for (size_t k = 0; !st && k < samples->n && r.given < ASSAY_BATCH_MAX; k++)
    st = take(m, assay_samples_get(samples, k), &r);
  for (size_t k = r.given; !st && k < ASSAY_ROW_KINDS; k++)
    st = draw(m, k, seed, k == ASSAY_ROW_OTHER ? 16 : k == ASSAY_ROW_PADDING ? 0 : 1, &r);
  if (st) return assay_rows_deinit(&r), st;
  *out = r;
  return NULL;
}

// ---- batches ------------------------------------------------------------------------------------

void assay_rows_release_batch(assay_tensor_t** at, size_t n) {
  for (size_t i = 0; at && i < n; i++) assay_tensor_release(at[i]);
  assay_free(at);
}

static assay_status_t stack(const assay_rows_t* r, size_t input, const int* rows, int n,
                            assay_tensor_t** out) {
  const assay_tensor_t* first = r->at[(size_t)rows[0] * r->n_inputs + input];
  const int axis = r->axis[input];
  assay_tensor_t* y = NULL;
  ASSAY_TRY(make_like(first, axis, n, &y));
  for (int k = 0; k < n; k++) {
    const assay_tensor_t* t = r->at[(size_t)rows[k] * r->n_inputs + input];
    if (t->size != first->size) {
      assay_tensor_release(y);
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "samples have different shapes: %s and %s",
                         ASSAY_DIMS_TEXT(first), ASSAY_DIMS_TEXT(t));
    }
    copy_row(t, 0, axis, y, k);
  }
  *out = y;
  return NULL;
}

assay_status_t assay_rows_stack(const assay_rows_t* r, const int* rows, int n, const bool* single,
                                assay_tensor_t*** out) {
  assay_tensor_t** at = NULL;
  ASSAY_TRY(assay_new_array(r->n_inputs, sizeof(assay_tensor_t*), &at));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < r->n_inputs; i++) {
    assay_tensor_t* own = r->at[(size_t)rows[0] * r->n_inputs + i];
    if (!own) continue;
    if (r->axis[i] < 0)
      at[i] = assay_tensor_retain(own);
    else
      st = stack(r, i, rows, single && single[i] ? 1 : n, &at[i]);
  }
  if (st) return assay_rows_release_batch(at, r->n_inputs), st;
  *out = at;
  return NULL;
}

// ---- comparing ----------------------------------------------------------------------------------

static assay_row_fit_t find_part(const assay_tensor_t* got, int n, int place,
                                 const assay_tensor_t* alone, assay_row_difference_t* d) {
  int axis = -1, others = 0;
  if (got->rank != alone->rank) return ASSAY_ROW_MISFIT;
  for (int k = 0; k < got->rank; k++) {
    if (got->dims[k] == alone->dims[k]) continue;
    others += axis >= 0;
    axis = k;
  }
  if (others) return ASSAY_ROW_MISFIT;
  d->outer = 1;
  d->inner = d->stride = d->ref_stride = alone->size;
  if (axis < 0) return ASSAY_ROW_FITS;
  if (got->dims[axis] != n * alone->dims[axis]) return ASSAY_ROW_UNSIZED;
  d->outer = assay_dims_product(alone->dims, 0, axis);
  d->inner = d->ref_stride = assay_dims_product(alone->dims, axis, alone->rank);
  d->stride = n * d->inner;
  d->offset = place * d->inner;
  return ASSAY_ROW_FITS;
}

// The same where both have a batch of n: along that axis, or not known.
static assay_row_fit_t find_along(const assay_tensor_t* got, int n, int place, int axis,
                                  const assay_tensor_t* ref, assay_row_difference_t* d) {
  if (got->rank != ref->rank ||
      memcmp(got->dims, ref->dims, (size_t)got->rank * sizeof *got->dims) != 0)
    return ASSAY_ROW_UNSIZED;
  for (int k = 0; k < got->rank; k++)
    if ((k == axis) != (got->dims[k] == n)) return ASSAY_ROW_UNSIZED;
  if (axis >= got->rank) return ASSAY_ROW_UNSIZED;
  d->outer = assay_dims_product(got->dims, 0, axis);
  d->inner = assay_dims_product(got->dims, axis + 1, got->rank);
  d->stride = d->ref_stride = n * d->inner;
  d->offset = place * d->inner;
  return ASSAY_ROW_FITS;
}

static void compare_floats(const double* x, const double* y, int64_t n, assay_row_difference_t* d) {
  for (int64_t i = 0; i < n; i++) {
    if (isfinite(y[i])) d->ref_max = fmax(d->ref_max, fabs(y[i]));
    if (!memcmp(&x[i], &y[i], sizeof *x) || (isnan(x[i]) && isnan(y[i]))) continue;
    d->differing++;
    if (isfinite(x[i]) && isfinite(y[i]))
      d->max = fmax(d->max, fabs(x[i] - y[i]));
    else
      d->mismatched = true;
  }
}

static void compare_integers(const int64_t* x, const int64_t* y, int64_t n,
                             assay_row_difference_t* d) {
  for (int64_t i = 0; i < n; i++) {
    if (x[i] == y[i]) continue;
    d->differing++;
    d->mismatched = true;
    d->max = fmax(d->max, fabs((double)x[i] - (double)y[i]));
  }
}

assay_row_difference_t assay_row_compare(const assay_tensor_t* got, int n, int place,
                                         const assay_tensor_t* ref, int ref_n, int axis) {
  assay_row_difference_t d = {.fit = ASSAY_ROW_UNSIZED};
  if (got->kind != ASSAY_KIND_TENSOR || ref->kind != ASSAY_KIND_TENSOR ||
      got->store != ref->store || got->store > ASSAY_STORE_I64)
    return d;
  d.fit = ref_n == 1 ? find_part(got, n, place, ref, &d) : find_along(got, n, place, axis, ref, &d);
  if (d.fit != ASSAY_ROW_FITS) return d;
  d.n = d.outer * d.inner;
  for (int64_t o = 0; o < d.outer; o++) {
    const int64_t at = o * d.stride + d.offset, from = o * d.ref_stride;
    if (got->store == ASSAY_STORE_F64)
      compare_floats(assay_f64(got) + at, assay_f64(ref) + from, d.inner, &d);
    else
      compare_integers(assay_i64(got) + at, assay_i64(ref) + from, d.inner, &d);
  }
  return d;
}
