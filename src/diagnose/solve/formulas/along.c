// What runs along one axis.
#include "diagnose/solve/formulas/along.h"

#include <math.h>

#include "base/functions.h"

// ---- all that came before ----------------------------------------------------------------------

static void sums(const double* x, int64_t n, double* out) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) out[i] = sum += x[i];
}

static void sums_before(const double* x, int64_t n, double* out) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    out[i] = sum;
    sum += x[i];
  }
}

static void sums_from_end(const double* x, int64_t n, double* out) {
  double sum = 0;
  for (int64_t i = n; i-- > 0;) out[i] = sum += x[i];
}

static void sums_behind(const double* x, int64_t n, double* out) {
  double sum = 0;
  for (int64_t i = n; i-- > 0;) {
    out[i] = sum;
    sum += x[i];
  }
}

static void products(const double* x, int64_t n, double* out) {
  double product = 1;
  for (int64_t i = 0; i < n; i++) out[i] = product *= x[i];
}

static void products_before(const double* x, int64_t n, double* out) {
  double product = 1;
  for (int64_t i = 0; i < n; i++) {
    out[i] = product;
    product *= x[i];
  }
}

static void products_of_rest(const double* x, int64_t n, double* out) {
  double product = 1;
  for (int64_t i = 0; i < n; i++) out[i] = product *= 1 - x[i];
}

static void log_sums(const double* x, int64_t n, double* out) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) out[i] = assay_log(sum += assay_exp(x[i]));
}

static void running_highest(const double* x, int64_t n, double* out) {
  double high = -INFINITY;
  for (int64_t i = 0; i < n; i++) out[i] = high = fmax(high, x[i]);
}

// ---- neighbours --------------------------------------------------------------------------------

static void differences(const double* x, int64_t n, double* out) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] - (i ? x[i - 1] : 0);
}

static void ratios(const double* x, int64_t n, double* out) {
  for (int64_t i = 0; i < n; i++) out[i] = i ? x[i] / x[i - 1] : x[i];
}

static void reversed(const double* x, int64_t n, double* out) {
  for (int64_t i = 0; i < n; i++) out[i] = x[n - 1 - i];
}

// ---- of the whole row --------------------------------------------------------------------------

static double sum_of(const double* x, int64_t n, double (*f)(double)) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += f ? f(x[i]) : x[i];
  return sum;
}

static double highest(const double* x, int64_t n) {
  double high = -INFINITY;
  for (int64_t i = 0; i < n; i++) high = fmax(high, x[i]);
  return high;
}

static double lowest(const double* x, int64_t n) {
  double low = INFINITY;
  for (int64_t i = 0; i < n; i++) low = fmin(low, x[i]);
  return low;
}

static double square(double x) { return x * x; }

static void over(const double* x, int64_t n, double by, double* out) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] / by;
}

static void shares(const double* x, int64_t n, double* out) { over(x, n, sum_of(x, n, NULL), out); }

static void over_sizes(const double* x, int64_t n, double* out) {
  over(x, n, sum_of(x, n, fabs), out);
}

static void over_length(const double* x, int64_t n, double* out) {
  over(x, n, sqrt(sum_of(x, n, square)), out);
}

static void over_highest(const double* x, int64_t n, double* out) {
  over(x, n, highest(x, n), out);
}

static void over_largest(const double* x, int64_t n, double* out) {
  over(x, n, fmax(highest(x, n), -lowest(x, n)), out);
}

static void below_highest(const double* x, int64_t n, double* out) {
  const double by = highest(x, n);
  for (int64_t i = 0; i < n; i++) out[i] = x[i] - by;
}

static void above_lowest(const double* x, int64_t n, double* out) {
  const double by = lowest(x, n);
  for (int64_t i = 0; i < n; i++) out[i] = x[i] - by;
}

static void in_range(const double* x, int64_t n, double* out) {
  const double low = lowest(x, n), high = highest(x, n);
  for (int64_t i = 0; i < n; i++) out[i] = (x[i] - low) / (high - low);
}

static void less_mean(const double* x, int64_t n, double* out) {
  const double mean = sum_of(x, n, NULL) / (double)n;
  for (int64_t i = 0; i < n; i++) out[i] = x[i] - mean;
}

static void standardized(const double* x, int64_t n, double* out) {
  less_mean(x, n, out);
  over(out, n, sqrt(sum_of(out, n, square) / (double)n), out);
}

static void softmax(const double* x, int64_t n, double* out) {
  below_highest(x, n, out);
  for (int64_t i = 0; i < n; i++) out[i] = assay_exp(out[i]);
  shares(out, n, out);
}

// ---- the table ---------------------------------------------------------------------------------

static const assay_along_kind_t KINDS[] = {
    {"running sums", "x cumsum:@,0,0", sums},
    {"running products", "x Log cumsum:@,0,0 Exp", products},
    {"differences of neighbours", "x x slice:@,0,-1,1 pad:& -", differences},
    {"running sums from the end", "x cumsum:@,0,1", sums_from_end},
    {"running sums of what is before", "x cumsum:@,1,0", sums_before},
    {"running sums of what is behind", "x cumsum:@,1,1", sums_behind},
    {"running products of what is before", "x Log cumsum:@,1,0 Exp", products_before},
    {"running products of 1 - x", "1 x - Log cumsum:@,0,0 Exp", products_of_rest},
    {"running sums of exponentials, as logarithms", "x Exp cumsum:@,0,0 Log", log_sums},
    {"running maxima", NULL, running_highest},
    {"ratios of neighbours", NULL, ratios},
    {"the reverse", NULL, reversed},
    {"shares of the sum", "x x sum /", shares},
    {"shares of the sum of sizes", "x x Abs sum /", over_sizes},
    {"parts of the length", "x x x * sum Sqrt /", over_length},
    {"parts of the maximum", "x x highest /", over_highest},
    {"parts of the largest size", "x x Abs highest /", over_largest},
    {"distances from the maximum", "x x highest -", below_highest},
    {"distances from the minimum", "x x lowest -", above_lowest},
    {"places between minimum and maximum", "x x lowest - x highest x lowest - /", in_range},
    {"distances from the mean", "x x mean -", less_mean},
    {"distances from the mean over their deviation", "x x mean - dup dup * mean Sqrt /",
     standardized},
    {"Softmax", "x softmax", softmax},
};

size_t assay_along_count(void) { return sizeof KINDS / sizeof *KINDS; }
const assay_along_kind_t* assay_along_get(size_t i) { return &KINDS[i]; }
