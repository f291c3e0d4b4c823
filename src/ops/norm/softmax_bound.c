// Source: P. Blanchard, D. J. Higham and N. J. Higham, Accurately computing the log-sum-exp and
// softmax functions, IMA J. Numer. Anal. 41 (2021): with the row's maximum taken off, the error
// of softmax is that of the differences (u |x - max|, which the exponential turns into a relative
// error), of the exponentials and of a sum of n positive terms. Here every difference counts with
// its own size, and their part in the sum with the weights that they have there. Nothing is left to
// second order: an exponent off by a moves its element between e^-a and e^a.
#include "ops/norm/softmax_bound.h"

#include <math.h>

#include "base/functions.h"
#include "ops/bound_parts.h"

// What the row's own numbers do not enter.
typedef struct terms {
  assay_inner_t inner;
  double argument;  // error of an exponent, by its distance from the maximum
  double plain;     // and by |x| itself
  double sum;       // relative, of the sum of exponentials
  double apply;     // relative, of an element's own exponential and what divides it
} terms_t;

static const double SIGMAS = 6;

// Exponents may be taken to base 2, by a product with a rounded constant (3 u); an engine of which
// nothing is known may do so before it takes off the maximum, and may keep a running maximum and
// rescale the sum whenever that grows: at most n times.
static terms_t terms_of(const assay_rounding_t* r, double n, bool probable) {
  terms_t t = {.inner = assay_bound_inner(r)};
  const double u = t.inner.u, f = t.inner.function, e = fmax(f, r->weight_error);
  t.argument = r->documented ? u : 3 * u;
  t.plain = r->by_definition && !r->documented ? 2 * u : 0;
  t.sum = assay_factor_of(assay_bound_sum(r, n), probable);
  if (!r->documented) t.sum += probable ? fmin(n, SIGMAS * sqrt(n)) * (f + u) : n * (f + u);
  t.sum = (1 + t.sum) * (1 + e) - 1;
  t.apply = (1 + e) * (1 + 3 * u) - 1;
  return t;
}

typedef struct spread {
  double low, high;  // the sum of the elements, moved down and up; of true sum 1
} spread_t;

static inline double exponent_error(const assay_softmax_bound_t* b, const terms_t* t, bool probable,
                                    double max, int64_t at) {
  const double x = b->x[at], e = b->x_error[probable] ? b->x_error[probable][at] : 0;
  if (x == -(double)INFINITY) return 0;
  return e + t->argument * (max - x + e) + t->plain * (fabs(x) + fabs(max) + e);
}

// y e^a and y e^-a; where y has vanished in float64, from the exponent that it came from.
static inline double moved(double y, double d, double a) {
  if (fabs(a) < 0.1) return y * (1 + a + a * a);
  return fmax(y * assay_exp(a), d > 600 ? assay_exp(a - d) : 0);
}

// e^-a >= 1 - a, and 1 - a + a^2 as moved() has it is no lower limit.
static inline double moved_down(double y, double a) {
  return a < 0.1 ? y * (1 - a) : y * assay_exp(-a);
}

// Each element's own part in the sum's error is independent of the others' where rounding made it.
static spread_t spread_of(const assay_softmax_bound_t* b, const terms_t* t, bool probable,
                          double max, const double* y, int64_t y_stride, bool is_log) {
  double low = 0, high = 0, squares = 0;
  bool far = false;  // an element moves by more than a part of itself
  for (int64_t i = 0; i < b->n; i++) {
    const int64_t at = i * b->stride;
    const double a = exponent_error(b, t, probable, max, at);
    const double w = is_log ? assay_exp(y[i * y_stride]) : y[i * y_stride];
    if (!(w > 0) && !(a > 1)) continue;
    const double up = moved(w, max - b->x[at], a) - w;
    high += up;
    low += w - moved_down(w, a);
    squares += up * up;
    far |= up > w / 8 && up > 0x1p-100;
  }
  if (probable && !far) {
    high = fmin(high, SIGMAS * sqrt(squares));
    low = fmin(low, SIGMAS * sqrt(squares));
  }
  const double lost = (double)b->n * t->inner.tiny;
  return (spread_t){(1 - low) * (1 - fmin(t->sum, 1)) - lost, (1 + high) * (1 + t->sum) + lost};
}

static double row_max(const assay_softmax_bound_t* b) {
  double max = -(double)INFINITY;
  for (int64_t i = 0; i < b->n; i++) max = fmax(max, b->x[i * b->stride]);
  return max;
}

// y = e^x / sum: above, if it is moved up and all others down, and the other way round. No engine's
// softmax leaves [0, 1] by more than its rounding. What is multiplied next may be rounded once
// more, as an operand: the share, or what is divided by the sum, which is at least 1, only then.
static void bound_row(const assay_softmax_bound_t* b, bool probable) {
  const terms_t t = terms_of(b->rounding, (double)b->n, probable);
  const double max = row_max(b);
  const spread_t s = spread_of(b, &t, probable, max, b->y, b->stride, false);
  const double operand = assay_bound_operands(b->rounding);
  const double operand_tiny = t.inner.tiny + assay_bound_operand_tiny(b->rounding);
  const double low = fmax(s.low, 0), lost = t.inner.tiny * (2 + (double)b->n);
  for (int64_t i = 0; i < b->n; i++) {
    const int64_t at = i * b->stride;
    const double y = b->y[at], a = exponent_error(b, &t, probable, max, at);
    const double up = (moved(y, max - b->x[at], a) + t.inner.tiny) / low * (1 + t.apply) - y;
    const double down = y - moved_down(y, a) / s.high * (1 - t.apply);
    const double cap = fmax(y, 1 - y) + t.apply + t.sum;
    const double made = fmax(up, down) + y * lost + 2 * t.inner.tiny;
    const double e = made < cap ? made : made == made ? cap : (double)INFINITY;
    b->limits[probable][at] = operand > 0 ? e + operand * (y + e) + operand_tiny : e;
  }
}

void assay_softmax_bound_row(const assay_softmax_bound_t* row) {
  bound_row(row, false);
  bound_row(row, true);
}

// y = x - max - log(sum), or x - (max + log(sum)): the sum's relative error becomes an absolute
// one, and each subtraction and the logarithm round once.
static void bound_log_row(const assay_softmax_bound_t* b, bool probable) {
  const assay_rounding_t* r = b->rounding;
  const terms_t t = terms_of(r, (double)b->n, probable);
  const double max = row_max(b), u = t.inner.u;
  const spread_t s = spread_of(b, &t, probable, max, b->y, b->stride, true);
  const double of_sum = fmax(assay_log(s.high), s.low > 0 ? -assay_log(s.low) : (double)INFINITY);
  for (int64_t i = 0; i < b->n; i++) {
    const int64_t at = i * b->stride;
    const double x = b->x[at], y = b->y[at];
    const double e = b->x_error[probable] ? b->x_error[probable][at] : 0;
    const double log_sum = x - y - max;
    double own = of_sum + e + (t.inner.function + u) * fabs(log_sum) + u * (max - x + e);
    if (!r->documented) own += u * (fabs(x - y) + fabs(x));
    own += u * (fabs(y) + own) + 3 * t.inner.tiny;
    // log(0) of an element that has vanished stays itself.
    b->limits[probable][at] = own == own ? own : y == y && isinf(y) ? 0 : (double)INFINITY;
  }
}

void assay_log_softmax_bound_row(const assay_softmax_bound_t* row) {
  bound_log_row(row, false);
  bound_log_row(row, true);
}
