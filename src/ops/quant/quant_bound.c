// How far quantized numbers may differ because of rounding before the choice: in steps.
#include "ops/quant/quant_bound.h"

#include <math.h>

#include "base/alloc.h"
#include "ops/math/pointwise.h"

assay_quant_steps_t assay_steps_of(const assay_rounding_t* r, assay_type_t type, bool saturate,
                                   assay_format_t quotient) {
  const assay_eval_t quantized = {.mode = ASSAY_MODE_TRUTH};  // truth of quantized values has steps
  assay_quant_steps_t s = {
      .quantizer = assay_quantizer(&quantized, type, ASSAY_FORMAT_FP64, saturate),
      .u = assay_bound_unit(r->compute),
      .documented = r->documented};
  if (quotient != ASSAY_FORMAT_NONE) s.u = fmax(s.u, assay_bound_unit(quotient));
  return s;
}

// x, scale and the quotient may each be rounded to the quotient's format, and an engine may
// multiply by the scale's rounded reciprocal: four roundings at most. It may add the zero point
// before it rounds to an integer.
double assay_steps_limit(const assay_quant_steps_t* s, assay_quant_near_t x,
                         assay_quant_near_t scale, assay_quant_near_t zero, double y) {
  const double v = x.value / scale.value, size = fabs(scale.value);
  if (v != v) return x.value == x.value ? (double)INFINITY : 0;
  if (!(scale.error < size)) return (double)INFINITY;
  const double scale_part = scale.error / (size - scale.error);
  const double relative = (1 + 4 * s->u) * (1 + scale_part) - 1 + 0x1p-50;
  double e = fabs(v) * relative + x.error / size * (1 + relative);
  if (!s->documented) e += 2 * s->u * (fabs(v) + fabs(zero.value) + e);
  if (!(e < (double)INFINITY)) return (double)INFINITY;
  const double high = assay_quantize(&s->quantizer, v + e, 1, zero.value + zero.error);
  const double low = assay_quantize(&s->quantizer, v - e, 1, zero.value - zero.error);
  return fmax(fabs(high - y), fabs(low - y));
}

bool assay_bound_is_quantized(const assay_bound_t* c, size_t output) {
  const assay_tensor_t* t = output < c->n_out ? c->out[output] : NULL;
  if (!t || t->kind != ASSAY_KIND_TENSOR) return false;
  return t->store == ASSAY_STORE_I64 ||
         (t->store == ASSAY_STORE_F64 && assay_type_bits(t->type) <= 8);
}

typedef struct steps_job {
  const assay_quant_steps_t* steps;
  const double* x;
  const double* const* x_error;
  double scale, zero;
  const assay_tensor_t* y;
  double* limits[2];
} steps_job_t;

static void steps_chunk(const void* user, int64_t first, int64_t n) {
  const steps_job_t* j = user;
  const assay_quant_near_t scale = {j->scale, 0}, zero = {j->zero, 0};
  for (int k = 0; k < 2; k++)
    for (int64_t i = first; i < first + n; i++)
      j->limits[k][i] = assay_steps_limit(j->steps, (assay_quant_near_t){j->x[i], j->x_error[k][i]},
                                          scale, zero, assay_elem_f64(j->y, i));
}

static double number(const assay_bound_t* c, size_t i, double otherwise) {
  const assay_tensor_t* t = i < c->n_in ? c->in[i] : NULL;
  return t && t->size > 0 ? assay_elem_f64(t, 0) : otherwise;
}

assay_status_t assay_steps_output(assay_bound_t* c, size_t scale, size_t zero, const double* x,
                                  const double* const x_error[2]) {
  if (!assay_bound_is_quantized(c, 0)) return NULL;
  const assay_quant_steps_t steps =
      assay_steps_of(c->rounding, c->out[0]->type, true, ASSAY_FORMAT_FP32);
  steps_job_t job = {.steps = &steps,
                     .x = x,
                     .x_error = x_error,
                     .scale = number(c, scale, 1),
                     .zero = number(c, zero, 0),
                     .y = c->out[0]};
  ASSAY_TRY(assay_bound_output(c, 0, &job.limits[0], &job.limits[1]));
  assay_chunks_run(c->out[0]->size, 20, steps_chunk, &job);
  return NULL;
}

double assay_quant_largest(const assay_bound_t* c, size_t tensor, size_t scale, size_t zero) {
  const assay_tensor_t* t = tensor < c->n_in ? c->in[tensor] : NULL;
  double max = 0;
  if (!t) return 0;
  for (int64_t i = 0; i < t->size; i++) max = fmax(max, fabs(assay_elem_f64(t, i)));
  return (max + fabs(number(c, zero, 0))) * fabs(number(c, scale, 1));
}

// real: in units of the scale.
static assay_status_t steps_of_real(assay_bound_t* c, assay_tensor_t* real, size_t scale,
                                    size_t zero, assay_factor_t error) {
  const double unit = number(c, scale, 1), from = number(c, zero, 0);
  for (int64_t i = 0; i < real->size; i++) assay_f64(real)[i] = (assay_f64(real)[i] - from) * unit;
  double* e[2] = {NULL, NULL};
  assay_status_t st = assay_new_array((size_t)real->size, sizeof *e[0], &e[0]);
  if (!st) st = assay_new_array((size_t)real->size, sizeof *e[1], &e[1]);
  for (int k = 0; !st && k < 2; k++)
    for (int64_t i = 0; i < real->size; i++) e[k][i] = assay_factor_of(error, k);
  const double* const errors[2] = {e[0], e[1]};
  if (!st) st = assay_steps_output(c, scale, zero, assay_f64(real), errors);
  assay_free(e[0]);
  assay_free(e[1]);
  return st;
}

assay_status_t assay_steps_of_eval(assay_bound_t* c, assay_status_t (*eval)(assay_eval_t* c),
                                   size_t scale, size_t zero, assay_factor_t error) {
  if (!assay_bound_is_quantized(c, 0)) return NULL;
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  assay_tensor_t* real = NULL;
  const assay_bound_run_t run = {.eval = eval, .unquantized = true};
  ASSAY_TRY(assay_bound_evaluate(c, &run, &real));
  assay_status_t st = steps_of_real(c, real, scale, zero, error);
  assay_tensor_release(real);
  return st;
}

assay_factor_t assay_quant_mean_error(const assay_bound_t* c, double terms, double largest) {
  const assay_inner_t in = assay_bound_inner(c->rounding);
  const assay_factor_t sum = assay_bound_sum(c->rounding, terms);
  if (terms * largest * (1 + sum.guaranteed) > in.max)
    return (assay_factor_t){(double)INFINITY, (double)INFINITY};
  return (assay_factor_t){largest * (sum.guaranteed + 5 * in.u),
                          largest * (sum.probable + 5 * in.u)};
}
