// Shapes of compared outputs made to match, as Polygraphy does it.
#include <string.h>

#include "base/alloc.h"
#include "compare/comparison_internal.h"
#include "io/numpy_text.h"

// "text(2, 3) to: (3, 2)"
static void put_change(assay_str_t* text, const char* what, const assay_numeric_t* from,
                       const char* to, const assay_numeric_t* now) {
  assay_str_append(text, what);
  assay_numpy_print_shape(from->rank, from->dims, text);
  assay_str_append(text, to);
  assay_numpy_print_shape(now->rank, now->dims, text);
}

static assay_status_t reshape(const assay_compare_log_t* log, int depth, const assay_numeric_t* a,
                              assay_numeric_t* b) {
  assay_str_t text = {0};
  const bool fits = a->n == b->n;
  if (assay_numeric_same_shape(a, b)) return NULL;
  put_change(&text,
             fits ? "Reshaped array from shape: " : "Could not reshape array from shape: ", b,
             fits ? " to: " : " to ", a);
  if (!fits) assay_str_append(&text, ". Skipping reshape.");
  if (fits) {
    b->rank = a->rank;
    memcpy(b->dims, a->dims, sizeof b->dims);
  }
  return assay_log_text(log, fits ? ASSAY_LOG_INFO : ASSAY_LOG_WARNING, depth, &text);
}

// For each dimension of a the first axis of b of that length that is free. False: there is none.
static bool find_axes(const assay_numeric_t* a, const assay_numeric_t* b, int* axes) {
  bool used[ASSAY_MAX_RANK] = {0};
  for (int i = 0; i < a->rank; i++) {
    int k = 0;
    while (k < b->rank && (used[k] || b->dims[k] != a->dims[i])) k++;
    if (k == b->rank) return false;
    used[k] = true;
    axes[i] = k;
  }
  return true;
}

// Elements of b with its axes in another order.
static assay_status_t transpose(const int* axes, const assay_numeric_t* a, assay_numeric_t* b) {
  assay_numeric_t made = {0};
  int64_t stride[ASSAY_MAX_RANK], index[ASSAY_MAX_RANK] = {0};
  ASSAY_TRY(assay_numeric_like(a, b->number, &made));
  made.type = b->type;
  for (int i = 0; i < a->rank; i++) {
    stride[i] = 1;
    for (int k = axes[i] + 1; k < b->rank; k++) stride[i] *= b->dims[k];
  }
  for (int64_t to = 0, from = 0; to < b->n; to++) {
    if (made.f)
      made.f[to] = b->f[from];
    else
      made.i[to] = b->i[from];
    for (int i = a->rank; i-- > 0;) {
      from += stride[i];
      if (++index[i] < a->dims[i]) break;
      from -= stride[i] * index[i];
      index[i] = 0;
    }
  }
  assay_numeric_deinit(b);
  *b = made;
  return NULL;
}

static assay_status_t permute(const assay_compare_log_t* log, int depth, const assay_numeric_t* a,
                              assay_numeric_t* b) {
  int axes[ASSAY_MAX_RANK];
  assay_str_t text = {0};
  if (assay_numeric_same_shape(a, b) || !find_axes(a, b, axes)) return NULL;
  put_change(&text, "Permuted array of shape: ", b, " to: ", a);
  assay_str_append(&text, " using permutation [");
  for (int i = 0; i < a->rank; i++) assay_str_printf(&text, "%s%d", i ? ", " : "", axes[i]);
  assay_str_append(&text, "]");
  assay_status_t st = transpose(axes, a, b);
  return assay_status_join(st, assay_log_text(log, ASSAY_LOG_INFO, depth, &text));
}

assay_status_t assay_match_shape(const assay_compare_log_t* log, int depth,
                                 const assay_numeric_t* a, assay_numeric_t* b) {
  if (a->rank != b->rank) ASSAY_TRY(reshape(log, depth, a, b));
  if (a->rank == b->rank) ASSAY_TRY(permute(log, depth, a, b));
  return reshape(log, depth, a, b);
}
