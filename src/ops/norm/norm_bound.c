// Source: T. F. Chan, G. H. Golub and R. J. LeVeque, Algorithms for computing the sample variance,
// Am. Stat. 37 (1983): two passes have a relative error of n u and the mean's error squared, one
// pass n u (1 + mean^2 / var); updates and pairwise joins lie between. N. J. Higham, Accuracy and
// Stability of Numerical Algorithms (2002), 1.9. The documented order takes two passes.
#include "ops/norm/norm_bound.h"

#include <math.h>

// Means over the group. wide: |x| and its limit.
typedef struct moments {
  double n, mean;
  double wide, wide2;  // of wide, of its square
  double var;
  double in;   // what came in, in the mean
  double in2;  // and in the variance
} moments_t;

static moments_t moments_of(const assay_norm_group_t* g, bool centered) {
  moments_t m = {.n = (double)g->runs * (double)g->run};
  for (int64_t k = 0; k < g->runs; k++) {
    const double *x = g->x + k * g->step, *e = g->e ? g->e + k * g->step : NULL;
    double sum = 0, wide = 0, wide2 = 0, in = 0;
    for (int64_t i = 0; i < g->run; i++) {
      const double w = fabs(x[i]) + (e ? e[i] : 0);
      sum += x[i];
      wide += w;
      wide2 += w * w;
      in += e ? e[i] : 0;
    }
    m.mean += sum, m.wide += wide, m.wide2 += wide2, m.in += in;
  }
  m.mean = centered ? m.mean / m.n : 0;
  m.wide /= m.n, m.wide2 /= m.n, m.in /= m.n;
  // var(x + e) - var(x) = 2 cov(x, e) + var(e).
  for (int64_t k = 0; k < g->runs; k++) {
    const double *x = g->x + k * g->step, *e = g->e ? g->e + k * g->step : NULL;
    double var = 0, in2 = 0;
    for (int64_t i = 0; i < g->run; i++) {
      const double d = x[i] - m.mean, in = e ? e[i] : 0;
      var += d * d;
      in2 += (2 * fabs(d) + in) * in;
    }
    m.var += var, m.in2 += in2;
  }
  m.var /= m.n, m.in2 /= m.n;
  return m;
}

// 1 / sqrt(w): by what w may be less. A square root and a division, or one library function.
static double inverse_error(const assay_inner_t* i, double w, double w_error) {
  const double t = (w_error + i->u * (w + w_error) + i->tiny) / w;
  if (!(t < 1)) return (double)INFINITY;
  return (1 / sqrt(1 - t)) * (1 + i->function) * (1 + 2 * i->u) - 1;
}

assay_norm_stats_t assay_norm_bound_given(const assay_rounding_t* r, double mean, double var,
                                          double epsilon) {
  const assay_inner_t inner = assay_bound_inner(r);
  const double w = var + epsilon;
  return (assay_norm_stats_t){.mean = mean,
                              .var = var,
                              .inverse = 1 / sqrt(w),
                              .inverse_error = inverse_error(&inner, w, 0)};
}

assay_norm_stats_t assay_norm_bound_stats(const assay_rounding_t* r, bool probable, bool centered,
                                          const assay_norm_group_t* group, double epsilon) {
  const assay_inner_t i = assay_bound_inner(r);
  const moments_t m = moments_of(group, centered);
  const double sum = assay_factor_of(assay_bound_sum(r, m.n), probable);
  const double own_mean =
      centered ? (sum * m.wide) * (1 + 2 * i.u) + 2 * i.u * fabs(m.mean) + i.tiny : 0;
  assay_norm_stats_t s = {.mean = m.mean, .var = m.var};
  s.mean_error = centered ? own_mean + m.in * (1 + 2 * i.u) : 0;
  // A difference, its square, the sum, the division by n.
  const double relative = (1 + sum) * (1 + 6 * i.u) - 1;
  if (r->documented || !centered) {
    const double offset = own_mean * own_mean;
    s.var_error = m.in2 + relative * (m.var + m.in2) + offset * (1 + relative);
  } else {
    const double mean = fabs(m.mean) + s.mean_error;
    s.var_error = m.in2 + relative * m.wide2 + 2 * mean * own_mean + 3 * i.u * mean * mean;
  }
  s.var_error += 4 * i.tiny;
  // Sums past the range: anything may come out.
  const double largest = r->documented && centered ? m.var + m.in2 : m.wide2;
  if (m.n * largest * (1 + relative) > i.max || m.n * m.wide * (1 + sum) > i.max)
    s.mean_error = s.var_error = (double)INFINITY;
  s.inverse = 1 / sqrt(m.var + epsilon);
  s.inverse_error = inverse_error(&i, m.var + epsilon, s.var_error);
  return s;
}

// Whether a number on the way to the result may leave the range, whatever the result is. d: at
// most |x - mean|; factor: at most |inverse * scale|.
static bool passes_range(const assay_norm_apply_t* a, const assay_inner_t* in, double x, double d,
                         double factor) {
  const assay_norm_stats_t* s = &a->stats;
  double maximum = fmax(fmax(factor, d), d * factor);
  if (!a->rounding->documented) {
    maximum = fmax(maximum, factor * (fabs(x) + fabs(s->mean) + s->mean_error));
    // The products in another order.
    const double inverse = s->inverse * (1 + s->inverse_error);
    maximum = fmax(maximum, d * fmax(inverse, inverse > 0 ? factor / inverse : 0));
  }
  return maximum > in->max;
}

// (x - mean) * inverse * scale + bias in any order of the products; or, where that is not
// documented, x * (inverse * scale) + (bias - mean * inverse * scale), where x and the mean count
// by themselves.
void assay_norm_bound_apply(const assay_norm_apply_t* a) {
  const assay_inner_t in = assay_bound_inner(a->rounding);
  const assay_norm_stats_t* s = &a->stats;
  const double u = in.u, grown = 1 + s->inverse_error;
  const double relative = grown * (1 + 4 * u) - 1;  // of the factor
  const bool folded = !a->rounding->documented && a->centered;
  for (int64_t j = 0; j < a->n; j++) {
    const double x = a->x[j], e = a->e ? a->e[j] : 0, d = fabs(x - s->mean);
    const double factor = s->inverse * fabs(a->scale[j * a->scale_step]);
    const double bias = a->bias ? a->bias[j * a->bias_step] : 0;
    double of_d = s->mean_error + e;
    of_d += a->centered ? u * (d + of_d) : 0;
    if (folded) of_d += 2 * u * (fabs(x) + fabs(s->mean) + s->mean_error + e);
    double error = factor * (of_d * (1 + relative) + d * relative);
    // What a product loses below the normal numbers counts times what it is multiplied by after.
    const double scale = fabs(a->scale[j * a->scale_step]);
    double lost = factor + scale + s->inverse + d + of_d + 2;
    if (folded) lost += fabs(x) + fabs(s->mean) + s->mean_error + e;
    error += in.tiny * lost * (1 + relative);
    error = passes_range(a, &in, x, d + of_d, factor * (1 + relative)) ? (double)INFINITY : error;
    if (a->bias) {
      const double y = fabs(factor * d) + fabs(bias) + error;
      const double sum = fabs((x - s->mean) * s->inverse * a->scale[j * a->scale_step] + bias);
      error += u * (folded ? y + sum : sum + error);
    }
    a->limits[j] = error == error ? error : (double)INFINITY;
  }
}
