// Agreement of two rankings.
#include <math.h>

#include "formats/stats.h"
#include "formats/sums.h"

// The k largest of a row, in order: of equal elements the first one, NaN last.
static void row_top(assay_type_t type, const void* data, int64_t first, int64_t cols, int k,
                    int64_t at[ASSAY_TOPK_MAX]) {
  double buffer[ASSAY_STATS_BLOCK], best[ASSAY_TOPK_MAX];
  int have = 0;
  for (int64_t i = 0; i < cols; i += ASSAY_STATS_BLOCK) {
    int64_t n = cols - i < ASSAY_STATS_BLOCK ? cols - i : ASSAY_STATS_BLOCK;
    const double* x = assay_block_read(type, data, first + i, n, buffer);
    for (int64_t j = 0; j < n; j++) {
      double v = x[j];
      // v goes before what it is larger than, and before NaN unless it is NaN itself.
      if (have == k && !(v > best[k - 1]) && !(best[k - 1] != best[k - 1] && v == v)) continue;
      int to = have < k ? have++ : k - 1;
      while (to > 0 && (v > best[to - 1] || (best[to - 1] != best[to - 1] && v == v))) {
        best[to] = best[to - 1];
        at[to] = at[to - 1];
        to--;
      }
      best[to] = v;
      at[to] = i + j;
    }
  }
}

assay_status_t assay_topk_compare(assay_type_t engine_type, const void* engine,
                                  assay_type_t reference_type, const void* reference, int64_t rows,
                                  int64_t cols, int k, assay_topk_t* out) {
  if (k < 1 || k > ASSAY_TOPK_MAX)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "top-k: k is %d; expected 1 to %d", k,
                       (int)ASSAY_TOPK_MAX);
  if (cols <= 0) rows = 0;
  if (cols > 0 && k > cols) k = (int)cols;
  assay_topk_t r = {.rows = rows > 0 ? rows : 0, .k = k, .overlap = 1};
  int64_t shared_total = 0;
  for (int64_t row = 0; row < rows; row++) {
    int64_t a[ASSAY_TOPK_MAX], b[ASSAY_TOPK_MAX];
    row_top(engine_type, engine, row * cols, cols, k, a);
    row_top(reference_type, reference, row * cols, cols, k, b);
    int same_place = 0, shared = 0;
    for (int i = 0; i < k; i++) {
      same_place += a[i] == b[i];
      for (int j = 0; j < k; j++) shared += a[i] == b[j];
    }
    r.same_first += a[0] == b[0];
    r.same_set += shared == k;
    r.same_order += same_place == k;
    shared_total += shared;
  }
  if (r.rows) r.overlap = (double)shared_total / ((double)r.rows * k);
  *out = r;
  return NULL;
}
