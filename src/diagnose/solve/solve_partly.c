// Constants only a part of which is wrong: by what they look like.
//
// A file that ended too early, a half of a bias that was not copied, numbers that were clipped
// leave many elements that are exactly one number, often 0: those are unknown, the others are
// right. Data that were read from a place some elements too far on, or too early, are right but for
// their end, whose numbers are lost.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/solve/solve.h"

enum { MAX_SHIFT = 64, MAX_ROWS = 4 };

// ---- elements of one number --------------------------------------------------------------------

// The numbers that several elements have: 0, or the largest and the smallest one. How many they
// are.
static int find_common(const assay_tensor_t* t, double* out) {
  enum { SEVERAL = 2 };
  double low = INFINITY, high = -INFINITY;
  int64_t zeros = 0, lows = 0, highs = 0;
  int n = 0;
  for (int64_t i = 0; i < t->size; i++) {
    low = fmin(low, assay_f64(t)[i]);
    high = fmax(high, assay_f64(t)[i]);
  }
  for (int64_t i = 0; i < t->size; i++) {
    zeros += assay_f64(t)[i] == 0;
    lows += assay_f64(t)[i] == low;
    highs += assay_f64(t)[i] == high;
  }
  if (!(low < high)) return 0;
  if (zeros >= SEVERAL) return out[0] = 0, 1;
  if (highs >= SEVERAL) out[n++] = high;
  if (lows >= SEVERAL) out[n++] = low;
  return n;
}

static assay_status_t solve_common(const assay_solve_t* s, bool* unknown, double deadline,
                                   assay_tensor_t** out) {
  assay_tensor_t* t = s->in[s->input];
  double numbers[2];
  const int n = find_common(t, numbers);
  for (int64_t i = 0; i < t->size; i++) {
    unknown[i] = false;
    for (int k = 0; k < n; k++) unknown[i] |= assay_f64(t)[i] == numbers[k];
  }
  return n ? assay_solve_unknown(s, t, unknown, deadline, out) : NULL;
}

// ---- data from another place -------------------------------------------------------------------

// The elements as they would lie some places further on; those that nothing tells are unknown, and
// begin as what lies there.
static void shift(const assay_tensor_t* was, int64_t by, assay_tensor_t* to, bool* unknown) {
  for (int64_t i = 0; i < was->size; i++) {
    const int64_t from = i - by;
    unknown[i] = from < 0 || from >= was->size;
    assay_f64(to)[i] = assay_f64(was)[unknown[i] ? i : from];
  }
}

// How many places of the output are as they have to be.
static int64_t count_right(const assay_solve_t* s, const assay_tensor_t* made, double near) {
  int64_t n = 0;
  for (int64_t i = 0; i < s->want->size; i++)
    n += fabs(assay_f64(made)[i] - assay_f64(s->want)[i]) <= near;
  return n;
}

static double rms_of(const assay_tensor_t* t) {
  double sum = 0;
  for (int64_t i = 0; i < t->size; i++) sum += assay_f64(t)[i] * assay_f64(t)[i];
  return t->size ? sqrt(sum / (double)t->size) : 0;
}

// Where the shift is the right one, most places no longer differ: a bias alone is wrong in few.
static assay_status_t solve_shift(const assay_solve_t* s, int64_t by, assay_tensor_t* start,
                                  bool* unknown, double deadline, assay_tensor_t** out) {
  const double near = 1e-5 * rms_of(s->want);
  assay_tensor_t* made = NULL;
  shift(s->in[s->input], by, start, unknown);
  ASSAY_TRY(assay_solve_evaluate(s, start, &made));
  if (!made) return NULL;
  const int64_t right = count_right(s, made, near), before = count_right(s, s->have, near);
  assay_tensor_release(made);
  // By chance as many would not be.
  if (2 * (right - before) < s->want->size - before || right - before < 4) return NULL;
  return assay_solve_unknown(s, start, unknown, deadline, out);
}

static assay_status_t solve_shifts(const assay_solve_t* s, bool* unknown, double deadline,
                                   assay_tensor_t** out) {
  const assay_tensor_t* t = s->in[s->input];
  const int64_t row = t->rank ? t->dims[t->rank - 1] : 1;
  assay_tensor_t* start = NULL;
  ASSAY_TRY(assay_tensor_copy(t, &start));
  assay_status_t st = NULL;
  for (int64_t k = 1; !st && !*out && k <= MAX_SHIFT + MAX_ROWS; k++) {
    const int64_t by = k <= MAX_SHIFT ? k : (k - MAX_SHIFT) * row;
    if (2 * by > t->size || assay_clock_seconds() >= deadline) continue;
    st = solve_shift(s, by, start, unknown, deadline, out);
    if (!st && !*out) st = solve_shift(s, -by, start, unknown, deadline, out);
  }
  assay_tensor_release(start);
  return st;
}

assay_status_t assay_solve_partly(const assay_solve_t* s, double deadline, assay_tensor_t** out) {
  bool* unknown = NULL;
  const assay_tensor_t* t = s->in[s->input];
  *out = NULL;
  if (t->size < 8) return NULL;
  ASSAY_TRY(assay_new_array((size_t)t->size, sizeof *unknown, &unknown));
  assay_status_t st = solve_common(s, unknown, deadline, out);
  if (!st && !*out) st = solve_shifts(s, unknown, deadline, out);
  assay_free(unknown);
  return st;
}
