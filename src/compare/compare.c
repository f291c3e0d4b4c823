// Whether two tensors agree within a tolerance, as onnx.backend.test does it.
#include "compare/compare.h"

#include <math.h>
#include <string.h>

#include "formats/format.h"

// "(0, 2, 1)" of a flat index.
static void append_index(const assay_tensor_t* t, int64_t flat, assay_str_t* out) {
  int64_t index[ASSAY_MAX_RANK];
  for (int i = t->rank - 1; i >= 0; i--) {
    index[i] = flat % t->dims[i];
    flat /= t->dims[i];
  }
  assay_str_append(out, "(");
  for (int i = 0; i < t->rank; i++)
    assay_str_printf(out, "%s%lld", i ? ", " : "", (long long)index[i]);
  assay_str_append(out, ")");
}

static bool close_enough(double want, double got, double rtol, double atol) {
  if (want != want || got != got) return want != want && got != got;
  if (isinf(want) || isinf(got)) return want == got;
  return fabs(got - want) <= atol + rtol * fabs(want);
}

static double integer_value(const assay_tensor_t* t, int64_t i) {
  int64_t x = assay_i64(t)[i];
  return t->type == ASSAY_TYPE_UINT64 ? (double)(uint64_t)x : (double)x;
}

// Element i's number, part k of a complex one.
static double number_at(const assay_tensor_t* t, int64_t i, int k) {
  switch (t->store) {
    case ASSAY_STORE_F64:
      return assay_f64(t)[i];
    case ASSAY_STORE_C128:
      return assay_c128(t)[2 * i + k];
    default:
      return integer_value(t, i);
  }
}

static void compare_numbers(const assay_tensor_t* want, const assay_tensor_t* got,
                            const assay_case_tolerance_t* tolerance, assay_str_t* why) {
  double rtol = tolerance->rtol;
  if (want->type == ASSAY_TYPE_BFLOAT16 && rtol < 0x1p-6) rtol = 0x1p-6;
  int parts = want->store == ASSAY_STORE_C128 ? 2 : 1;
  int64_t bad = 0, first = 0;
  int first_part = 0;
  for (int64_t i = 0; i < want->size; i++) {
    bool same = true;
    int part = 0;
    if (want->store == ASSAY_STORE_I64 && assay_i64(want)[i] == assay_i64(got)[i]) continue;
    for (int k = 0; same && k < parts; k++) {
      part = k;
      same = close_enough(number_at(want, i, k), number_at(got, i, k), rtol, tolerance->atol);
    }
    if (same) continue;
    if (!bad++) {
      first = i;
      first_part = part;
    }
  }
  if (!bad) return;
  assay_str_printf(why, "%lld of %lld differ, first at ", (long long)bad, (long long)want->size);
  append_index(want, first, why);
  assay_str_printf(why, ": %.9g instead of %.9g", number_at(got, first, first_part),
                   number_at(want, first, first_part));
}

static void compare_strings(const assay_tensor_t* want, const assay_tensor_t* got,
                            assay_str_t* why) {
  const assay_string_t *a = assay_strings(want), *b = assay_strings(got);
  for (int64_t i = 0; i < want->size; i++) {
    if (a[i].len == b[i].len && (!a[i].len || !memcmp(a[i].text, b[i].text, a[i].len))) continue;
    assay_str_append(why, "strings differ, first at ");
    append_index(want, i, why);
    assay_str_printf(why, ": '%.*s' instead of '%.*s'", (int)b[i].len, b[i].len ? b[i].text : "",
                     (int)a[i].len, a[i].len ? a[i].text : "");
    return;
  }
}

static const char* kind_name(assay_kind_t kind) {
  static const char* const names[] = {"a tensor", "a sequence", "an optional", "a map"};
  return names[kind];
}

assay_status_t assay_compare_close(assay_tensor_t* want, assay_tensor_t* got,
                                   const assay_case_tolerance_t* tolerance, assay_str_t* why) {
  if (want->kind != got->kind) {
    assay_str_printf(why, "%s instead of %s", kind_name(got->kind), kind_name(want->kind));
    return assay_str_status(why);
  }
  if (want->kind != ASSAY_KIND_TENSOR) {
    if (want->n_items != got->n_items) {
      assay_str_printf(why, "%lld elements instead of %lld", (long long)got->n_items,
                       (long long)want->n_items);
      return assay_str_status(why);
    }
    for (int64_t i = 0; i < want->n_items && !why->len; i++) {
      ASSAY_TRY(assay_compare_close(want->items[i], got->items[i], tolerance, why));
      if (why->len) assay_str_printf(why, " (element %lld)", (long long)i);
    }
    return assay_str_status(why);
  }
  if (want->type != got->type) {
    assay_str_printf(why, "type %s instead of %s", assay_type_name(got->type),
                     assay_type_name(want->type));
    return assay_str_status(why);
  }
  if (want->rank != got->rank ||
      memcmp(want->dims, got->dims, (size_t)want->rank * sizeof *want->dims) != 0) {
    assay_str_printf(why, "shape %s instead of %s", ASSAY_DIMS_TEXT(got), ASSAY_DIMS_TEXT(want));
    return assay_str_status(why);
  }
  if (tolerance->shape_only) return NULL;
  assay_tensor_t *a = NULL, *b = NULL;
  assay_status_t st = assay_tensor_widen(want, &a);
  if (!st) st = assay_tensor_widen(got, &b);
  if (!st && a->store == ASSAY_STORE_STR)
    compare_strings(a, b, why);
  else if (!st)
    compare_numbers(a, b, tolerance, why);
  assay_tensor_release(a);
  assay_tensor_release(b);
  return st ? st : assay_str_status(why);
}
