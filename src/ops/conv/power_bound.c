// How far the rounding of a p-norm can reach: (sum of |x|^p)^(1/p), as LpPool, ReduceL2 and
// LpNormalization have it; and that of a product of many factors.
#include "ops/conv/power_bound.h"

#include <math.h>

#include "base/functions.h"

// The sum S of positive terms is off by a relative T; its root by (1 + T)^(1/p) - 1. Powers are
// products (p = 2) or library functions; the exponent 1/p of the root is itself rounded, which
// costs u |log S| / p. Terms below the range are rounded to 0 or up, t in all:
// S^(1/p) - (S - t)^(1/p) at most, the whole of it where t >= S. Where S passes the range, anything
// may come out (an engine may scale its terms: then it does not).
double assay_bound_norm_of(const assay_rounding_t* r, const assay_power_norm_t* norm, double size,
                           bool probable) {
  const assay_inner_t in = assay_bound_inner(r);
  const double p = norm->p, sum = norm->no_root ? size : assay_pow(size, p);
  const bool function = p != 1 && p != 2;
  double relative = assay_factor_of(assay_bound_sum(r, norm->terms), probable);
  if (function) relative = (1 + relative) * (1 + in.function) * (1 + 2 * in.u) - 1;
  // Terms that were scaled by the largest one.
  if (p == 2 && !r->documented) relative = (1 + relative) * (1 + 4 * in.u) - 1;
  if (sum * (1 + relative) > in.max) return (double)INFINITY;
  const double lost = p == 1 ? 0 : norm->terms * in.tiny;
  if (norm->no_root) return relative * size + lost;
  if (p == 1) return relative * size + norm->terms * in.tiny;
  double root = assay_expm1(assay_log1p(relative) / p);
  root = fmax(root, relative < 1 ? -assay_expm1(assay_log1p(-relative) / p) : 1);
  root = (1 + root) * (1 + (function ? in.function : in.u)) * (1 + 2 * in.u) - 1;
  if (function && sum > 0) root += in.u * fabs(assay_log(sum)) / p;
  const double below = size - (sum > lost ? assay_pow(sum - lost, 1 / p) : 0);
  return root * size + fmax(below, assay_pow(sum + lost, 1 / p) - size) + in.tiny;
}

typedef struct norm_job {
  const assay_rounding_t* r;
  const assay_power_norm_t* norm;
} norm_job_t;

static double local(const void* user, double y, double in, double magnitude, bool probable) {
  const norm_job_t* j = user;
  (void)magnitude;
  return assay_bound_norm_of(j->r, j->norm, fabs(y) + in, probable);
}

assay_status_t assay_bound_power_norm(assay_bound_t* c, const assay_power_norm_t* norm) {
  if (!assay_bound_is_float(c, 0)) return NULL;
  // Below 1 the norm is not convex.
  ASSAY_TRY(assay_bound_want_exact(c, norm->p < 1 ? SIZE_MAX : 0));
  ASSAY_TRY(assay_bound_outward(c));
  const norm_job_t job = {c->rounding, norm};
  return assay_bound_add_local(c, local, &job, NULL);
}

// ---- products -----------------------------------------------------------------------------------

typedef struct product_job {
  assay_inner_t inner;
  double roundings;
} product_job_t;

// Factors in any order: n - 1 roundings. magnitude: the product of the factors above 1 alone. Where
// that passes the range the order decides whether a partial product overflows; what a partial
// product loses below the range is multiplied by so much at most.
static double local_product(const void* user, double y, double in, double magnitude,
                            bool probable) {
  const product_job_t* j = user;
  const double u = j->inner.u, n = j->roundings;
  const double all = assay_expm1(n * assay_log1p(u));
  const double relative = probable ? fmin(all, assay_expm1(6 * sqrt(n) * u + n * u * u)) : all;
  if (!(magnitude * (1 + all) < j->inner.max)) return (double)INFINITY;
  return relative * (fabs(y) + in) + n * j->inner.tiny * magnitude * (1 + all);
}

assay_status_t assay_bound_product(assay_bound_t* c, double factors) {
  if (!assay_bound_is_float(c, 0)) return NULL;
  ASSAY_TRY(assay_bound_want_exact(c, 0));
  ASSAY_TRY(assay_bound_outward(c));
  const product_job_t job = {assay_bound_inner(c->rounding), fmax(factors - 1, 0)};
  return assay_bound_add_instead(c, ASSAY_INSTEAD_RAISED, local_product, &job);
}
