// Geometry of int8 contractions, and what is due to their sums for the zero point of x.
#include "backends/cpu/int8/int8_conv_geometry.h"

#include "base/alloc.h"

// ---- convolutions -------------------------------------------------------------------------------

// The taps of one axis that lie inside the image, and which outputs have the same ones.
typedef struct axis_classes {
  int64_t *first, *end;  // by class
  int64_t n;
  int32_t* of;  // by output of the axis
} axis_classes_t;

static void axis_free(axis_classes_t* a) {
  assay_free(a->first);
  assay_free(a->end);
  assay_free(a->of);
}

static assay_status_t find_classes(const assay_window_axis_t* w, axis_classes_t* a) {
  ASSAY_TRY(assay_new_array((size_t)w->out, sizeof *a->first, &a->first));
  ASSAY_TRY(assay_new_array((size_t)w->out, sizeof *a->end, &a->end));
  ASSAY_TRY(assay_new_array((size_t)w->out, sizeof *a->of, &a->of));
  for (int64_t o = 0; o < w->out; o++) {
    int64_t first, end, c = 0;
    assay_window_positions(w, o, &first, &end);
    while (c < a->n && (a->first[c] != first || a->end[c] != end)) c++;
    a->first[c] = first;
    a->end[c] = end;
    if (c == a->n) a->n++;
    a->of[o] = (int32_t)c;
  }
  return NULL;
}

// Whether a tap lies inside for a class, a number with one digit an axis.
static bool is_inside(const assay_conv_t* s, const axis_classes_t* a, int64_t class, int64_t tap) {
  for (int d = s->w.rank; d-- > 0;) {
    const int64_t c = class % a[d].n, t = tap % s->w.axis[d].kernel;
    if (t < a[d].first[c] || t >= a[d].end[c]) return false;
    class /= a[d].n;
    tap /= s->w.axis[d].kernel;
  }
  return true;
}

// sums[tap][channel] of the weights [m, cg, taps].
static void sum_taps(const assay_conv_t* s, const int16_t* w, int32_t* sums) {
  for (int64_t m = 0; m < s->m; m++)
    for (int64_t c = 0; c < s->cg; c++)
      for (int64_t t = 0; t < s->kernel_size; t++)
        sums[t * s->m + m] += w[(m * s->cg + c) * s->kernel_size + t];
}

static assay_status_t make_classes(int8_kernel_t* k, const int8_job_t* j, const assay_conv_t* s,
                                   const axis_classes_t* a, const int32_t* by_tap) {
  int64_t n = 1;
  (void)j;
  for (int d = 0; d < s->w.rank; d++) n *= a[d].n;
  k->n_rows = s->out_size;
  ASSAY_TRY(assay_new_array((size_t)(n * s->m), sizeof *k->tap_sums, &k->tap_sums));
  if (n > 1)
    ASSAY_TRY(assay_new_array((size_t)k->n_rows, sizeof *k->class_of_row, &k->class_of_row));
  for (int64_t c = 0; c < n; c++)
    for (int64_t t = 0; t < s->kernel_size; t++)
      for (int64_t m = 0; is_inside(s, a, c, t) && m < s->m; m++)
        k->tap_sums[c * s->m + m] += by_tap[t * s->m + m];
  for (int64_t r = 0; n > 1 && r < k->n_rows; r++) {
    int64_t rest = r, step = 1, c = 0;
    for (int d = s->w.rank; d-- > 0;) {
      c += a[d].of[rest % s->w.axis[d].out] * step;
      step *= a[d].n;
      rest /= s->w.axis[d].out;
    }
    k->class_of_row[r] = (int32_t)c;
  }
  return NULL;
}

assay_status_t int8_conv_taps(int8_kernel_t* k, const int8_job_t* j, const assay_conv_t* s) {
  axis_classes_t a[ASSAY_KERNEL_RANK] = {{0}};
  int32_t* by_tap = NULL;
  assay_status_t st = NULL;
  if (!j->zero_x && j->zero_input < 0) return NULL;
  for (int d = 0; !st && d < s->w.rank; d++) st = find_classes(&s->w.axis[d], &a[d]);
  if (!st) st = assay_new_array((size_t)(s->kernel_size * s->m), sizeof *by_tap, &by_tap);
  if (!st) sum_taps(s, j->weights, by_tap);
  if (!st) st = make_classes(k, j, s, a, by_tap);
  for (int d = 0; d < s->w.rank; d++) axis_free(&a[d]);
  assay_free(by_tap);
  return st;
}

// ---- products -----------------------------------------------------------------------------------

assay_status_t int8_product_taps(int8_kernel_t* k, const int8_job_t* j, const int8_product_t* p,
                                 bool* out_ok) {
  *out_ok = true;
  if ((!j->zero_x && j->zero_input < 0) || !j->weights) return NULL;
  *out_ok = p->shared;
  if (!p->shared) return NULL;
  ASSAY_TRY(assay_new_array((size_t)p->n, sizeof *k->tap_sums, &k->tap_sums));
  for (int64_t i = 0; i < p->k; i++)
    for (int64_t n = 0; n < p->n; n++)
      k->tap_sums[n] += j->weights[p->swapped ? n * p->k + i : i * p->n + n];
  return NULL;
}
