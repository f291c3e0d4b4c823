// Limits beside numbers: rounding bounds of operators that compute in several steps.
//
// The bound function evaluates the operator once more in float64 with a running bound: tensors that
// take part have two more arrays beside them, limits on how far an engine's numbers may lie from
// those in the tensor. Where c->running is set, the parts that operators share (products, heads,
// attention, recurrent cells) do not only compute what they make but fill in its limits, from the
// limits of what they read and what rounding adds: a running error analysis. Only evaluations all
// of whose parts do so may be run that way. Source: N. J. Higham, Accuracy and Stability of
// Numerical Algorithms, 2nd ed. (2002), 3.3.
#ifndef ASSAY_OPS_RUNNING_BOUND_H_
#define ASSAY_OPS_RUNNING_BOUND_H_

#include <math.h>

#include "ops/bound.h"

// Limits of consecutive numbers. NULLs: 0 everywhere.
typedef struct assay_span {
  double *guaranteed, *probable;
} assay_span_t;

// Bound function of an operator whose eval knows running bounds: runs it and takes the limits of
// its outputs.
assay_status_t assay_bound_running(assay_bound_t* b,
                                   assay_status_t (*eval)(assay_eval_t* c)) ASSAY_MUST_USE;
// The same for operators that do not take limits on their inputs: UNSUPPORTED where there are any.
assay_status_t assay_bound_running_exact(assay_bound_t* b,
                                         assay_status_t (*eval)(assay_eval_t* c)) ASSAY_MUST_USE;

// ---- within such an eval; c->running is set --------------------------------------------------

const assay_rounding_t* assay_running_bound_rounding(const assay_eval_t* c);
// The limits that belong to a number of a tensor, and to those after it.
assay_span_t assay_running_bound_of(const assay_eval_t* c, const double* at);
static inline assay_span_t assay_span_from(assay_span_t s, int64_t n) {
  if (s.guaranteed) s.guaranteed += n, s.probable += n;
  return s;
}
// Truth of a number of an output that is being made; NULL for other numbers.
const double* assay_running_bound_truth(const assay_eval_t* c, const double* at);
// Gives a tensor limits, 0 at first. Outputs have them from assay_eval_output.
assay_status_t assay_running_bound_cover(const assay_eval_t* c, assay_tensor_t* t) ASSAY_MUST_USE;
assay_status_t assay_running_bound_output(const assay_eval_t* c, size_t i,
                                          assay_tensor_t* t) ASSAY_MUST_USE;
// The limits of n numbers that were copied; nothing where `to` has none.
void assay_running_bound_copy(const assay_eval_t* c, const double* from, double* to, int64_t n);

// Adds to the limits of out = a x b as assay_gemm makes it: rounding of sums of k terms and `extra`
// roundings more, and what came in by a and b. independent: the errors of a's numbers are, so that
// the squares of their probable limits add up. What out had already
// stays in its limits.
struct assay_matrix;
assay_status_t assay_running_bound_gemm(const assay_eval_t* c, int64_t m, int64_t n, int64_t k,
                                        const struct assay_matrix* a, const struct assay_matrix* b,
                                        double* out, int64_t ld, double extra,
                                        bool independent) ASSAY_MUST_USE;

// ---- numbers with limits ----------------------------------------------------------------------

// How single operations round. Kernels round them to the accumulator's format where that is
// coarser.
typedef struct assay_steps {
  double u, tiny;
  double range;       // numbers that may lie outside have no limit
  double function;    // relative error of a library function
  double definition;  // u where functions may be computed by their definitions, else 0
} assay_steps_t;
assay_steps_t assay_rounding_steps(const assay_rounding_t* r);

// A number and its limits.
typedef struct assay_near {
  double x, g, p;
} assay_near_t;

static inline assay_near_t assay_near_exact(double x) { return (assay_near_t){x, 0, 0}; }
static inline assay_near_t assay_near_at(const double* x, assay_span_t s, int64_t i) {
  return (assay_near_t){x[i], s.guaranteed ? s.guaranteed[i] : 0, s.probable ? s.probable[i] : 0};
}
static inline void assay_near_put(assay_near_t a, double* x, assay_span_t s, int64_t i) {
  x[i] = a.x;
  if (s.guaranteed) s.guaranteed[i] = a.g, s.probable[i] = a.p;
}
// n roundings more.
static inline assay_near_t assay_near_round(const assay_steps_t* s, assay_near_t a, double n) {
  const double x = fabs(a.x);
  if (!(x + a.g <= s->range)) return (assay_near_t){a.x, INFINITY, INFINITY};
  return (assay_near_t){a.x, a.g + n * (s->u * (x + a.g) + s->tiny),
                        a.p + n * (s->u * (x + a.p) + s->tiny)};
}
static inline assay_near_t assay_near_add(const assay_steps_t* s, assay_near_t a, assay_near_t b) {
  return assay_near_round(s, (assay_near_t){a.x + b.x, a.g + b.g, a.p + b.p}, 1);
}
static inline assay_near_t assay_near_mul(const assay_steps_t* s, assay_near_t a, assay_near_t b) {
  const double x = fabs(a.x), y = fabs(b.x);
  return assay_near_round(
      s, (assay_near_t){a.x * b.x, x * b.g + a.g * y + a.g * b.g, x * b.p + a.p * y + a.p * b.p},
      1);
}
// y = f(a), where f's slope is at most `slope` wherever a may lie; `floor`: absolute error of f by
// its definition.
static inline assay_near_t assay_near_function(const assay_steps_t* s, double y, assay_near_t a,
                                               double slope, double floor) {
  const double local = s->function * fabs(y) + s->definition * floor + s->tiny;
  const double more = 1 + s->function;
  return (assay_near_t){y, slope * a.g * more + local, slope * a.p * more + local};
}

#endif  // ASSAY_OPS_RUNNING_BOUND_H_
