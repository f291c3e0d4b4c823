// Elements in another arrangement: what Reshape, Transpose, Reshape make of them.
//
// Such an arrangement counts the elements of what is there in mixed radix: the index of an element
// is a sum of digits, each times its stride. From the innermost digit outwards, the stride is where
// the next element comes from, and the digit goes on for as long as that holds. Values tell where
// an element comes from; those that occur twice do not, and their neighbours do.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

typedef struct element {
  double value;
  int64_t index;
} element_t;

typedef struct digit {
  int64_t size, stride;
} digit_t;

typedef struct arrangement {
  const double *x, *want;
  element_t* sorted;  // of x
  int64_t n;
  digit_t digits[ASSAY_MAX_RANK];  // innermost first
  int n_digits;
} arrangement_t;

static int by_value(const void* a, const void* b) {
  const double x = ((const element_t*)a)->value, y = ((const element_t*)b)->value;
  return (x > y) - (x < y);
}

// Where the only element of this value is; -1: there is none, or several.
static int64_t find(const arrangement_t* k, double value) {
  int64_t low = 0, high = k->n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (k->sorted[middle].value < value)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == k->n || k->sorted[low].value != value) return -1;
  if (low + 1 < k->n && k->sorted[low + 1].value == value) return -1;
  return k->sorted[low].index;
}

// Where element i < the product of the digits comes from, after the first.
static int64_t offset(const arrangement_t* k, int64_t i) {
  int64_t at = 0;
  for (int d = 0; d < k->n_digits; d++) {
    at += i % k->digits[d].size * k->digits[d].stride;
    i /= k->digits[d].size;
  }
  return at;
}

// The stride of the next digit: where two elements a block apart are known.
static bool next_stride(const arrangement_t* k, int64_t block, int64_t* base, int64_t* stride) {
  for (int64_t j = 0; j < block; j++) {
    const int64_t a = find(k, k->want[j]), b = find(k, k->want[block + j]);
    if (a < 0 || b < 0) continue;
    *base = a - offset(k, j);
    *stride = b - a;
    return true;
  }
  return false;
}

static bool block_holds(const arrangement_t* k, int64_t block, int64_t b, int64_t base,
                        int64_t stride) {
  for (int64_t j = 0; j < block; j++) {
    const int64_t from = base + b * stride + offset(k, j);
    if (from < 0 || from >= k->n || k->x[from] != k->want[b * block + j]) return false;
  }
  return true;
}

// The digits of all n elements; false: it is no such arrangement.
static bool find_digits(arrangement_t* k) {
  k->n_digits = 0;
  for (int64_t block = 1; block < k->n;) {
    int64_t base = 0, stride = 0, size = 1;
    if (k->n_digits == ASSAY_MAX_RANK - 1 || !next_stride(k, block, &base, &stride)) return false;
    if (stride <= 0) return false;
    while ((size + 1) * block <= k->n && block_holds(k, block, size, base, stride)) size++;
    while (k->n % (block * size) != 0) size--;
    if (size < 2) return false;
    k->digits[k->n_digits++] = (digit_t){size, stride};
    block *= size;
  }
  return block_holds(k, k->n, 0, 0, 0);
}

// The digits in the order of what is there: place[d] of digit d, outermost first. False: they do
// not count all of it.
static bool order_digits(const arrangement_t* k, int* place) {
  int64_t stride = 1;
  for (int n = k->n_digits; n-- > 0;) {
    int d = 0;
    while (d < k->n_digits && k->digits[d].stride != stride) d++;
    if (d == k->n_digits) return false;
    place[d] = n;
    stride *= k->digits[d].size;
  }
  return stride == k->n;
}

// ---- as nodes ----------------------------------------------------------------------------------

static bool same_dims(const int64_t* a, int n, const assay_tensor_t* t) {
  return n == t->rank && memcmp(a, t->dims, (size_t)n * sizeof *a) == 0;
}

// rows: of a leading dimension that stays what it is, whatever its size; 0: there is none.
static assay_status_t try_digits(assay_missing_search_t* s, const assay_missing_place_t* p,
                                 const arrangement_t* k, int64_t rows) {
  const int first = rows ? 1 : 0, n = k->n_digits + first;
  int place[ASSAY_MAX_RANK];
  int64_t split[ASSAY_MAX_RANK] = {rows}, turned[ASSAY_MAX_RANK] = {rows};
  int64_t joined[ASSAY_MAX_RANK];
  char program[ASSAY_FORMULA_TEXT], text[160];
  int64_t order[ASSAY_MAX_RANK] = {0};
  const assay_formula_terms_t terms = {.program = program};
  if (!order_digits(k, place) || n > ASSAY_MAX_RANK) return NULL;
  bool moves = false;
  for (int i = 0; i < k->n_digits; i++) {
    const int d = k->n_digits - 1 - i;  // the digit that comes out at place i
    split[first + place[d]] = turned[first + i] = k->digits[d].size;
    order[first + i] = first + place[d];
    moves |= place[d] != i;
  }
  memcpy(joined, p->want->dims, (size_t)p->want->rank * sizeof *joined);
  const bool splits = moves && !same_dims(split, n, p->x);
  const bool joins = !moves || !same_dims(turned, n, p->want);
  if (rows) split[0] = joined[0] = 0;
  size_t used = assay_formula_append(program, 0, "x", NULL, 0);
  if (splits) used = assay_formula_append(program, used, "reshape", split, n);
  if (moves) used = assay_formula_append(program, used, "transpose", order, n);
  if (joins) used = assay_formula_append(program, used, "reshape", joined, p->want->rank);
  if (used >= sizeof program) return NULL;
  snprintf(text, sizeof text, "%s%s%s%s", splits ? "Reshape, " : "", moves ? "Transpose" : "",
           moves && joins ? ", " : "", joins ? "Reshape" : "");
  const size_t length = strlen(text);
  snprintf(text + length, sizeof text - length, p->source ? " of" : " is missing");
  return assay_missing_try(s, p, &terms, "moved elements", text);
}

// Of the first so many elements, which are rows of their own or all of them.
static assay_status_t arrange(assay_missing_search_t* s, const assay_missing_place_t* p, int64_t n,
                              int64_t rows) {
  arrangement_t k = {.x = assay_f64(p->x), .want = assay_f64(p->want), .n = n};
  if (n < 2) return NULL;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *k.sorted, &k.sorted));
  for (int64_t i = 0; i < n; i++) k.sorted[i] = (element_t){k.x[i], i};
  qsort(k.sorted, (size_t)n, sizeof *k.sorted, by_value);
  assay_status_t st = find_digits(&k) ? try_digits(s, p, &k, rows) : NULL;
  assay_free(k.sorted);
  return st;
}

// ---- the places --------------------------------------------------------------------------------

// Whether both have the same elements, as far as sums tell.
static bool same_elements(const assay_tensor_t* x, const assay_tensor_t* want) {
  double sums[2] = {0}, squares[2] = {0};
  for (int64_t i = 0; i < x->size; i++) {
    const double a = assay_f64(x)[i], b = assay_f64(want)[i];
    sums[0] += a;
    sums[1] += b;
    squares[0] += a * a;
    squares[1] += b * b;
  }
  const double near = 1e-9 * (squares[0] + squares[1]);
  return fabs(squares[0] - squares[1]) <= near &&
         fabs(sums[0] - sums[1]) <= 1e-7 * sqrt((double)x->size * (squares[0] + squares[1]));
}

assay_status_t assay_missing_arranged(assay_missing_search_t* s, const assay_missing_place_t* p) {
  static const int64_t MOST = 1 << 22;  // elements
  const assay_tensor_t *x = p->x, *want = p->want;
  if (!x || !want || x->store != ASSAY_STORE_F64 || want->store != ASSAY_STORE_F64 ||
      x->size != want->size || x->size < 2 || x->size > MOST || !same_elements(x, want))
    return NULL;
  const bool rows = x->rank && want->rank && x->dims[0] == want->dims[0];
  if (rows) ASSAY_TRY(arrange(s, p, x->size / x->dims[0], x->dims[0]));
  return assay_missing_is_over(s) ? NULL : arrange(s, p, x->size, 0);
}
