// What depends on the order of elements: the smallest, the largest, those of a rank.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compare/numeric.h"
#include "formats/codec.h"

// ---- extremes -----------------------------------------------------------------------------------

// False: there is NaN, and *out is nothing. A reduction may begin at the largest finite number, not
// at infinity (clang's does): where there is nothing below infinity, its result is not asked.
ASSAY_WIDE static bool minimum(const double* x, int64_t n, double sign, double* out) {
  double best = INFINITY;
  int64_t nan = 0, below = 0;
#pragma omp simd reduction(min : best) reduction(+ : nan, below)
  for (int64_t i = 0; i < n; i++) {
    const double y = sign * x[i];
    best = y < best ? y : best;
    nan += y != y;
    below += y < (double)INFINITY;
  }
  *out = sign * (below ? best : (double)INFINITY);
  return nan == 0;
}

// The value first, then where it is first.
static assay_extreme_t extreme_float(const assay_numeric_t* a, bool largest) {
  assay_extreme_t e = {.at = a->n ? 0 : -1};
  double x = 0;
  if (!a->n) return e;
  if (minimum(a->f, a->n, largest ? -1 : 1, &x))
    while (a->f[e.at] != x) e.at++;
  else
    while (!isnan(a->f[e.at])) e.at++;
  e.x = a->f[e.at];
  return e;
}

// By themselves: neighbours past 2^53 are the same float64.
static assay_extreme_t extreme_integer(const assay_numeric_t* a, bool largest) {
  // uint64 in the order of int64
  const uint64_t flip = a->number == ASSAY_NUMERIC_U64 ? (uint64_t)1 << 63 : 0;
  assay_extreme_t e = {.at = a->n ? 0 : -1};
  for (int64_t i = 1; i < a->n; i++) {
    const int64_t x = (int64_t)((uint64_t)a->i[i] ^ flip);
    const int64_t best = (int64_t)((uint64_t)a->i[e.at] ^ flip);
    if (largest ? x > best : x < best) e.at = i;
  }
  if (a->n) e.x = assay_numeric_at(a, e.at);
  return e;
}

static assay_extreme_t extreme(const assay_numeric_t* a, bool largest) {
  return a->f ? extreme_float(a, largest) : extreme_integer(a, largest);
}

assay_extreme_t assay_numeric_min(const assay_numeric_t* a) { return extreme(a, false); }
assay_extreme_t assay_numeric_max(const assay_numeric_t* a) { return extreme(a, true); }

// ---- ranks --------------------------------------------------------------------------------------

// Elements are counted by the upper bits of their pattern, which go in the order of the numbers;
// the element of a rank is then looked for among those that have its upper bits alone. Of fewer
// elements than FEW there is one bucket, with all of them.
enum { KEY_BITS = 16, KEYS = 1 << KEY_BITS, FEW = 1 << 14 };

static inline uint32_t key_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits ^= bits >> 63 ? UINT64_MAX : (uint64_t)1 << 63;
  return (uint32_t)(bits >> (64 - KEY_BITS));
}

void assay_ranked_deinit(assay_ranked_t* r) {
  assay_free(r->counts);
  assay_free(r->x);
}

static assay_status_t count(assay_ranked_t* r) {
  int64_t max = 0;
  ASSAY_TRY(assay_new_array(KEYS, sizeof *r->counts, &r->counts));
  for (int64_t i = 0; i < r->n; i++) r->counts[key_of(assay_numeric_at(r->a, i))]++;
  for (int k = 0; k < KEYS; k++)
    if (r->counts[k] > max) max = r->counts[k];
  return assay_new_array((size_t)max, sizeof *r->x, &r->x);
}

static assay_status_t take_all(assay_ranked_t* r) {
  ASSAY_TRY(assay_new_array((size_t)r->n, sizeof *r->x, &r->x));
  for (int64_t i = 0; i < r->n; i++) r->x[i] = assay_numeric_at(r->a, i);
  r->held = r->n;
  return NULL;
}

assay_status_t assay_ranked_init(const assay_numeric_t* a, assay_ranked_t* out) {
  assay_ranked_t r = {.a = a, .n = a->n, .in = a->number, .key = -1};
  double x;
  r.nan = a->f && !minimum(a->f, a->n, 1, &x);
  assay_status_t st = NULL;
  // With NaN there is nothing to be ranked.
  if (!r.nan) st = a->n < FEW ? take_all(&r) : count(&r);
  if (st) return assay_ranked_deinit(&r), st;
  *out = r;
  return NULL;
}

static void swap(double* a, double* b) {
  const double x = *a;
  *a = *b;
  *b = x;
}

// Puts the element of rank k of x[low] .. x[high] into its place, smaller ones before it.
static void place(double* x, int64_t low, int64_t high, int64_t k) {
  uint64_t state = 1;  // pivots by chance: no order of the elements is a slow one
  while (low < high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double pivot = x[low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1))];
    int64_t i = low, j = high;
    while (i <= j) {
      while (x[i] < pivot) i++;
      while (x[j] > pivot) j--;
      if (i <= j) swap(&x[i++], &x[j--]);
    }
    if (k <= j)
      high = j;
    else if (k >= i)
      low = i;
    else
      return;
  }
}

// Takes the elements of the bucket that a rank lies in.
static void take_bucket(assay_ranked_t* r, int64_t k) {
  int key = r->key < 0 || k < r->start ? 0 : r->key;
  int64_t start = key ? r->start : 0, n = 0;
  while (k >= start + r->counts[key]) start += r->counts[key++];
  if (key == r->key) return;
  r->key = key;
  r->start = start;
  r->placed = 0;
  r->held = r->counts[key];
  for (int64_t i = 0; n < r->held; i++) {
    const double x = assay_numeric_at(r->a, i);
    r->x[n] = x;
    n += key_of(x) == (uint32_t)key;
  }
}

// The element of a rank; ranks that grow are found faster.
static double rank(assay_ranked_t* r, int64_t k) {
  if (r->counts) take_bucket(r, k);
  const int64_t i = k - r->start;
  place(r->x, i >= r->placed ? r->placed : 0, r->held - 1, i);
  r->placed = i;
  return r->x[i];
}

double assay_ranked_median(assay_ranked_t* r) {
  if (!r->n) return 0;
  if (r->nan) return NAN;
  if (r->n % 2) return rank(r, r->n / 2);
  const assay_numeric_kind_t k =
      assay_numeric_of_mean(r->in == ASSAY_NUMERIC_F16 ? ASSAY_NUMERIC_F32 : r->in);
  const double low = rank(r, r->n / 2 - 1);
  return assay_numeric_round(k, assay_numeric_round(k, low + rank(r, r->n / 2)) / 2);
}

double assay_ranked_quantile(assay_ranked_t* r, double q) {
  if (!r->n) return INFINITY;
  if (r->nan) return NAN;
  const assay_numeric_kind_t k = assay_numeric_of_mean(r->in);
  const double at = (double)(r->n - 1) * q, below = floor(at);
  if (at >= (double)(r->n - 1)) return rank(r, r->n - 1);
  const int64_t i = below < 0 ? 0 : (int64_t)below;
  const double t = at - below, a = rank(r, i), b = rank(r, i + 1);
  const double gap = assay_numeric_round(k, b - a);
  if (t < 0.5)
    return assay_numeric_round(k, a + assay_numeric_round(k, gap * assay_numeric_round(k, t)));
  return assay_numeric_round(k, b - assay_numeric_round(k, gap * assay_numeric_round(k, 1 - t)));
}
