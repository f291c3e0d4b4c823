// How far the elements of tensors moved, summed up over several.
#include "edit/moved.h"

#include <math.h>
#include <string.h>

#include "base/functions.h"

static void add_pair(assay_moved_sums_t* s, double was, double is) {
  s->m.n++;
  if (was == is || (isnan(was) && isnan(is))) {
    if (isfinite(was)) {
      s->ref2 += was * was;
      s->m.scale = fmax(s->m.scale, fabs(was));
    }
    return;
  }
  s->m.different++;
  if (!isfinite(was) || !isfinite(is)) {
    s->m.broken++;
    return;
  }
  const double d = is - was;
  s->err2 += d * d;
  s->ref2 += was * was;
  s->m.scale = fmax(s->m.scale, fabs(was));
  s->m.largest = fmax(s->m.largest, fabs(d));
}

double assay_moved_element(const assay_tensor_t* t, int64_t i) {
  if (t->store == ASSAY_STORE_I64)
    return t->type == ASSAY_TYPE_UINT64 ? (double)(uint64_t)assay_i64(t)[i]
                                        : (double)assay_i64(t)[i];
  return t->store == ASSAY_STORE_C128 ? assay_c128(t)[i] : assay_f64(t)[i];
}

static void add_tensors(assay_moved_sums_t* s, const assay_tensor_t* was,
                        const assay_tensor_t* is) {
  const bool text = was->store == ASSAY_STORE_STR;
  if (was->rank != is->rank || text != (is->store == ASSAY_STORE_STR) ||
      memcmp(was->dims, is->dims, (size_t)was->rank * sizeof *was->dims) != 0 ||
      (was->store == ASSAY_STORE_C128) != (is->store == ASSAY_STORE_C128)) {
    s->m.same_shape = false;
    return;
  }
  const int64_t n = was->store == ASSAY_STORE_C128 ? 2 * was->size : was->size;
  for (int64_t i = 0; i < n && !text; i++) {
    // Integers past 2^53 differ where their doubles do not.
    const bool other = was->store == ASSAY_STORE_I64 && is->store == ASSAY_STORE_I64 &&
                       assay_i64(was)[i] != assay_i64(is)[i];
    const int64_t before = s->m.different;
    add_pair(s, assay_moved_element(was, i), assay_moved_element(is, i));
    if (other && s->m.different == before) s->m.different++;
  }
  for (int64_t i = 0; i < n && text; i++) {
    const assay_string_t a = assay_strings(was)[i], b = assay_strings(is)[i];
    const bool same = a.len == b.len && (!a.len || memcmp(a.text, b.text, a.len) == 0);
    s->m.n++;
    s->m.different += !same;
    s->m.broken += !same;
  }
}

assay_status_t assay_moved_add(assay_moved_sums_t* s, assay_tensor_t* was, assay_tensor_t* is) {
  if (!was || !is || was->kind != is->kind || was->n_items != is->n_items) {
    s->m.same_shape &= !was && !is;
    return NULL;
  }
  if (was->kind != ASSAY_KIND_TENSOR) {
    for (int64_t i = 0; i < was->n_items; i++)
      ASSAY_TRY(assay_moved_add(s, was->items[i], is->items[i]));
    return NULL;
  }
  assay_tensor_t *a = NULL, *b = NULL;
  assay_status_t st = assay_tensor_widen(was, &a);
  if (!st) st = assay_tensor_widen(is, &b);
  if (!st) add_tensors(s, a, b);
  assay_tensor_release(a);
  assay_tensor_release(b);
  return st;
}

assay_moved_t assay_moved_finish(const assay_moved_sums_t* s) {
  assay_moved_t m = s->m;
  m.rms = m.n ? sqrt(s->err2 / (double)m.n) : 0;
  m.snr_db = s->err2 > 0 ? 10 * assay_log10(s->ref2 / s->err2) : (double)INFINITY;
  return m;
}

bool assay_moved_is_none(const assay_moved_t* m) {
  return m->same_shape && !m->broken && m->largest <= ASSAY_MOVED_TINY * m->scale;
}
