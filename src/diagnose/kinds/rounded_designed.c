// Constants that are made by a rule: what a rule says is exact, whatever its numbers look like.
#include <math.h>
#include <string.h>

#include "diagnose/kinds/rounded_numbers.h"

// Rows are slices along the first axis, or columns of a matrix; so many of them are looked at, and
// so many of their elements.
enum { ROWS = 48, PART = 4096, SHORTEST = 5, LONG = 16 };

// The part of rows, or of pairs of rows, that shows a rule. Those of ternary numbers by chance: a
// third at most.
static const double SHARE_OF_ROWS = 0.75, SHARE_OF_PAIRS = 0.6, SHARE_OF_PLACES = 0.95,
                    REPEATED = 0.25;
static const double SAME = 1e-6;

typedef struct rows {
  const double* x;
  int64_t n, length, stride, step;  // of rows, of elements
} rows_t;

static double at(const rows_t* r, int64_t row, int64_t i) {
  return r->x[row * r->stride + i * r->step];
}

static double dot(const rows_t* r, int64_t a, int64_t b) {
  double sum = 0;
  for (int64_t i = 0; i < r->length; i++) sum += at(r, a, i) * at(r, b, i);
  return sum;
}

// Transforms, wavelets, selections, pooling: rows that know nothing of each other. Filters of each
// channel: rows that are the same.
static bool is_by_pairs(const rows_t* r) {
  enum { LEAST = 6 };
  int64_t pairs = 0, apart = 0, known = 0, again = 0;
  for (int64_t a = 0; a < r->n; a++) {
    const double aa = dot(r, a, a);
    bool repeated = false;
    if (!(aa > 0)) continue;
    known++;
    for (int64_t b = 0; b < a; b++) {
      const double bb = dot(r, b, b), ab = dot(r, a, b);
      if (!(bb > 0)) continue;
      pairs++;
      apart += fabs(ab) <= SAME * sqrt(aa * bb);
      repeated |= r->length >= LONG && fabs(ab - aa) <= SAME * aa && fabs(ab - bb) <= SAME * bb;
    }
    again += repeated;
  }
  return pairs >= LEAST && ((double)apart >= SHARE_OF_PAIRS * (double)pairs ||
                            (double)again >= REPEATED * (double)known);
}

// Whether a row reads the same from its end, or with the other sign; from its second element on as
// well, as a period does.
static bool is_mirrored(const rows_t* r, int64_t row) {
  for (int64_t first = 0; first < 2; first++)
    for (int sign = -1; sign <= 1; sign += 2) {
      bool same = true;
      for (int64_t i = first; same && i < r->length; i++) {
        const double a = at(r, row, i), b = at(r, row, r->length - 1 - i + first);
        same = fabs(a - sign * b) <= SAME * (fabs(a) + fabs(b)) + 1e-12;
      }
      if (same) return true;
    }
  return false;
}

static bool is_of_mirrors(const rows_t* r) {
  int64_t known = 0, mirrored = 0;
  for (int64_t a = 0; r->length >= SHORTEST && a < r->n; a++) {
    if (!(dot(r, a, a) > 0)) continue;
    known++;
    mirrored += is_mirrored(r, a);
  }
  return known && (double)mirrored >= SHARE_OF_ROWS * (double)known;
}

// Bands, triangles, differences, averages that move; weights of a graph's edges, both ways.
static bool is_by_place(const assay_tensor_t* t) {
  const int64_t n = t->dims[0], m = t->size / n;
  int64_t places = 0, moved = 0, turned = 0;
  for (int64_t i = 0; i + 1 < n && i < PART / LONG; i++)
    for (int64_t k = 0; k + 1 < m && k < PART / LONG; k++) {
      places++;
      moved += assay_f64(t)[i * m + k] == assay_f64(t)[(i + 1) * m + k + 1];
      turned += n == m && assay_f64(t)[i * m + k] == assay_f64(t)[k * m + i];
    }
  return places && ((double)moved >= SHARE_OF_PLACES * (double)places ||
                    (double)turned >= SHARE_OF_PLACES * (double)places);
}

// Whether all that is not 0 is one number: masks, selections, averages, edges.
static bool is_one_number(const assay_tensor_t* t) {
  double number = 0;
  for (int64_t i = 0; i < t->size; i++) {
    const double x = assay_f64(t)[i];
    if (x == 0) continue;
    if (number != 0 && fabs(x - number) > SAME * fabs(number)) return false;
    number = x;
  }
  return true;
}

bool assay_rounded_is_exact(const assay_tensor_t* t) {
  bool whole = true;
  for (int64_t i = 0; i < t->size; i++) whole &= assay_f64(t)[i] == rint(assay_f64(t)[i]);
  return whole || is_one_number(t);
}

static int64_t at_most(int64_t n, int64_t most) { return n < most ? n : most; }

bool assay_rounded_is_designed(const assay_tensor_t* t) {
  if (t->rank < 2 || t->size < 1 || t->store != ASSAY_STORE_F64) return true;
  const int64_t n = t->dims[0], m = t->size / n;
  const rows_t rows = {assay_f64(t), at_most(n, ROWS), at_most(m, PART), m, 1};
  const rows_t columns = {assay_f64(t), at_most(m, ROWS), at_most(n, PART), 1, m};
  if (is_one_number(t) || is_by_place(t) || is_by_pairs(&rows) || is_of_mirrors(&rows)) return true;
  return t->rank == 2 && (is_by_pairs(&columns) || is_of_mirrors(&columns));
}
