// What com.microsoft's attention operators share: operands in their layouts, caches of keys and
// values, key padding masks.
#include "ops/microsoft/ms_heads.h"

#include <math.h>
#include <string.h>

#include "base/functions.h"
#include "ops/norm/norm.h"
#include "ops/running_bound.h"

// ---- tensors of an evaluation -----------------------------------------------------------------

assay_status_t assay_owned_create(const assay_eval_t* c, assay_owned_t* owned, int rank,
                                  const int64_t* dims, assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, rank, dims, &t));
  owned->t[owned->n++] = t;
  *out = t;
  return c->running ? assay_running_bound_cover(c, t) : NULL;
}

void assay_owned_release(assay_owned_t* owned) {
  for (int i = 0; i < owned->n; i++) assay_tensor_release(owned->t[i]);
  owned->n = 0;
}

// ---- operands ---------------------------------------------------------------------------------

assay_ms_operand_t assay_operand_slice(const assay_tensor_t* t, int64_t first, int64_t heads,
                                       int64_t step, int64_t channels) {
  const int64_t width = assay_dims_product(t->dims, 2, t->rank);
  return (assay_ms_operand_t){t->dims[0],
                              heads,
                              t->dims[1],
                              channels,
                              {assay_f64(t) + first, t->dims[1] * width, step, width}};
}

assay_ms_operand_t assay_operand_whole(const assay_tensor_t* t) {
  const int64_t n = t->dims[3];
  return (assay_ms_operand_t){t->dims[0],
                              t->dims[1],
                              t->dims[2],
                              n,
                              {assay_f64(t), t->dims[1] * t->dims[2] * n, t->dims[2] * n, n}};
}

// to = from + bias, with limits.
static void limit_bias(const assay_eval_t* c, int64_t n, const double* from, const double* bias,
                       double* to) {
  if (n == 0) return;
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
  const assay_span_t s = assay_running_bound_of(c, from), b = assay_running_bound_of(c, bias);
  const assay_span_t out = assay_running_bound_of(c, to);
  for (int64_t j = 0; j < n; j++)
    assay_near_put(assay_near_add(&steps, assay_near_at(from, s, j), assay_near_at(bias, b, j)), to,
                   out, j);
}

assay_status_t assay_operand_own(const assay_eval_t* c, assay_owned_t* owned, const double* bias,
                                 assay_ms_operand_t* x) {
  const int64_t dims[4] = {x->batch, x->heads, x->rows, x->channels};
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_owned_create(c, owned, 4, dims, &t));
  const int64_t n = x->channels, jobs = t->size > 0 ? x->batch * x->heads : 0;
#pragma omp parallel for schedule(static) if (jobs > 1 && t->size > 100000)
  for (int64_t i = 0; i < jobs; i++) {
    const int64_t h = i % x->heads;
    const double* from = x->at.data + i / x->heads * x->at.batch + h * x->at.head;
    double* to = assay_f64(t) + i * x->rows * n;
    for (int64_t r = 0; r < x->rows; r++, from += x->at.row, to += n) {
      if (!bias) {
        memcpy(to, from, (size_t)n * sizeof *to);
        if (c->running) assay_running_bound_copy(c, from, to, n);
      } else if (c->running) {
        limit_bias(c, n, from, bias + h * n, to);
      } else {
        for (int64_t j = 0; j < n; j++) to[j] = assay_acc(c, from[j] + bias[h * n + j]);
      }
    }
  }
  *x = assay_operand_whole(t);
  return NULL;
}

assay_status_t assay_rotary_check(const assay_eval_t* c, const assay_tensor_t* cosines,
                                  const assay_tensor_t* sines, int64_t head_size) {
  if (cosines->rank == 2 && sines->rank == 2 && cosines->dims[0] == sines->dims[0] &&
      cosines->dims[1] == sines->dims[1] && cosines->dims[1] <= head_size / 2) {
    return NULL;
  }
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "cos_cache has shape %s, sin_cache %s; expected [positions, n] with n at "
                          "most %lld, half the head",
                          ASSAY_DIMS_TEXT(cosines), ASSAY_DIMS_TEXT(sines),
                          (long long)(head_size / 2));
}

assay_status_t assay_operand_rotate(const assay_eval_t* c, const assay_tensor_t* cosines,
                                    const assay_tensor_t* sines, const int64_t* positions,
                                    bool interleaved, assay_ms_operand_t* x) {
  const int64_t n = x->batch * x->rows, half = cosines->dims[1];
  for (int64_t i = 0; i < n; i++) {
    if (positions[i] >= 0 && positions[i] < cosines->dims[0]) continue;
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "position of token %lld of batch element %lld is %lld; the caches have "
                            "positions [0, %lld)",
                            (long long)(i % x->rows), (long long)(i / x->rows),
                            (long long)positions[i], (long long)cosines->dims[0]);
  }
#pragma omp parallel for schedule(static) if (n > 1 && n * x->heads * x->channels > 100000)
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = positions[i] * half;
    for (int64_t h = 0; half > 0 && h < x->heads; h++) {
      double* v = x->at.data + i / x->rows * x->at.batch + h * x->at.head + i % x->rows * x->at.row;
      assay_rotate(c, half, interleaved, assay_f64(cosines) + at, assay_f64(sines) + at, v, v);
    }
  }
  return NULL;
}

// The limits of one row: the mean of squares has no cancellation, so that its relative error is
// that of a sum; a relative error r of it is r / (2 (1 - r)^1.5) of the inverse root at most. Its
// elements' own limits come in twice: by the mean and by themselves.
static void limit_rms(const assay_eval_t* c, const double* weight, double epsilon, int64_t n,
                      double* v) {
  const assay_rounding_t* r = assay_running_bound_rounding(c);
  const assay_steps_t steps = assay_rounding_steps(r);
  const assay_factor_t f = assay_bound_sum(r, (double)n);
  const assay_span_t s = assay_running_bound_of(c, v), w = assay_running_bound_of(c, weight);
  double sum = 0, in_g = 0, in_p = 0;
  for (int64_t j = 0; j < n; j++) {
    const assay_near_t a = assay_near_at(v, s, j);
    sum += a.x * a.x;
    in_g += 2 * fabs(a.x) * a.g + a.g * a.g;
    in_p += 2 * fabs(a.x) * a.p + a.p * a.p;
  }
  const double mean = sum / (double)n + epsilon, rest = (double)n * mean;
  const double rg = (in_g + f.guaranteed * (sum + in_g) + (double)n * steps.tiny) / rest;
  const double rp = (in_p + f.probable * (sum + in_p) + (double)n * steps.tiny) / rest;
  const double ig = rg < 1 ? rg / (2 * assay_pow(1 - rg, 1.5)) : (double)INFINITY;
  const double ip = rp < 1 ? rp / (2 * assay_pow(1 - rp, 1.5)) : (double)INFINITY;
  const double inverse = 1 / sqrt(mean), more = steps.function + 4 * steps.u;
  const assay_near_t root = {inverse, inverse * (ig + more * (1 + ig)),
                             inverse * (ip + more * (1 + ip))};
  const bool fits = sum * (1 + f.guaranteed) <= assay_format_info(r->accumulator)->max;
  for (int64_t j = 0; j < n; j++) {
    assay_near_t a = assay_near_mul(&steps, assay_near_at(v, s, j), root);
    a = assay_near_mul(&steps, a, assay_near_at(weight, w, j));
    if (!fits) a.g = a.p = INFINITY;
    assay_near_put(a, v, s, j);
  }
}

void assay_operand_rms(const assay_eval_t* c, const double* weight, double epsilon,
                       assay_ms_operand_t* x) {
  const bool exact = c->arith == ASSAY_ARITH_F64;
  const int64_t n = x->channels, jobs = n > 0 ? x->batch * x->heads * x->rows : 0;
#pragma omp parallel for schedule(static) if (jobs > 1 && jobs * n > 100000)
  for (int64_t i = 0; i < jobs; i++) {
    double* v = x->at.data + i * n;  // contiguous, as assay_operand_own makes it
    if (c->running) {
      limit_rms(c, weight, epsilon, n, v);
      continue;
    }
    const double mean =
        assay_norm_round(c, exact, assay_norm_square_sum(c, exact, v, n, 0) / (double)n);
    const double inverse = assay_norm_inverse(c, exact, mean, epsilon);
    for (int64_t j = 0; j < n; j++) {
      v[j] = assay_acc(c, assay_acc(c, v[j] * inverse) * weight[j]);
    }
  }
}

// ---- caches -----------------------------------------------------------------------------------

void assay_cache_append(const assay_eval_t* c, const assay_cache_t* cache, assay_ms_operand_t* x) {
  const int64_t n = x->channels, plane = cache->capacity * n;
  const int64_t jobs = plane > 0 ? x->batch * x->heads : 0;
#pragma omp parallel for schedule(static) if (jobs > 1 && jobs * plane > 100000)
  for (int64_t i = 0; i < jobs; i++) {
    const int64_t b = i / x->heads, old = cache->old[b], end = old + x->rows;
    const double* from = x->at.data + b * x->at.batch + i % x->heads * x->at.head;
    double* to = cache->present + i * plane;
    int64_t copied = 0;  // rows that come from the past
    if (cache->past) {
      copied = cache->keep_rest && cache->past_capacity < cache->capacity ? cache->past_capacity
               : cache->keep_rest                                         ? cache->capacity
                                                                          : old;
      const double* past = cache->past + i * cache->past_capacity * n;
      memcpy(to, past, (size_t)(copied * n) * sizeof *to);
      if (c->running) assay_running_bound_copy(c, past, to, copied * n);
    }
    const int64_t rest = copied > end ? copied : end;
    memset(to + rest * n, 0, (size_t)((cache->capacity - rest) * n) * sizeof *to);
    for (int64_t r = 0; r < x->rows; r++) {
      memcpy(to + (old + r) * n, from + r * x->at.row, (size_t)n * sizeof *to);
      if (c->running) assay_running_bound_copy(c, from + r * x->at.row, to + (old + r) * n, n);
    }
  }
  x->rows = cache->capacity;
  x->at = (assay_heads_t){cache->present, x->heads * plane, plane, n};
}

// ---- masks ------------------------------------------------------------------------------------

// Lengths: [batch] ends, and [batch] starts where there are any.
static void mask_lengths(const assay_tensor_t* t, const assay_attention_t* a, double filter,
                         double* to) {
  const bool starts = t->dims[0] == 2 * a->batch;
  for (int64_t b = 0; b < a->batch; b++) {
    const int64_t end = assay_i64(t)[b], start = starts ? assay_i64(t)[a->batch + b] : 0;
    for (int64_t j = 0; j < a->kv_len; j++) *to++ = j >= end || j < start ? filter : 0;
  }
}

// Rows of ones and zeros. A row starts at element at(b, i) of the mask and is for the keys from
// `first` on.
static void mask_rows(const assay_tensor_t* t, const assay_attention_t* a, int64_t rows,
                      const int64_t strides[2], int64_t skip, int64_t first, double filter,
                      double* to) {
  for (int64_t b = 0; b < a->batch; b++) {
    for (int64_t i = 0; i < rows; i++) {
      const int64_t* from = assay_i64(t) + skip + b * strides[0] + i * strides[1];
      for (int64_t j = 0; j < a->kv_len; j++) {
        *to++ = j < first || from[j - first] > 0 ? 0 : filter;
      }
    }
  }
}

assay_status_t assay_padding_mask(const assay_eval_t* c, assay_owned_t* owned, size_t input,
                                  const assay_attention_t* a, double filter, assay_mask_t* out) {
  const assay_tensor_t* t = c->in[input];
  const int64_t b = a->batch, keys = a->kv_len, fresh = keys - a->offset;
  const int64_t d1 = t->rank > 1 ? t->dims[1] : 0, d2 = t->rank > 2 ? t->dims[2] : 0;
  const bool lengths =
      t->rank == 1 && (t->dims[0] == b || t->dims[0] == 2 * b || t->dims[0] == 3 * b + 2);
  const bool flat = t->rank == 2 && t->dims[0] == b && (d1 == keys || d1 == fresh);
  const bool full = t->rank == 3 && t->dims[0] == b && d1 == a->q_len && d2 == keys;
  const bool square = t->rank == 4 && t->dims[0] == b && d1 == 1 && d2 == t->dims[3] &&
                      d2 >= keys && a->offset + a->q_len <= d2;
  if (!lengths && !flat && !full && !square) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "mask has shape %s; expected [%lld], [%lld], [%lld], [%lld, %lld], [%lld, %lld, %lld] or "
        "[%lld, 1, max, max]",
        ASSAY_DIMS_TEXT(t), (long long)b, (long long)(2 * b), (long long)(3 * b + 2), (long long)b,
        (long long)keys, (long long)b, (long long)a->q_len, (long long)keys, (long long)b);
  }
  const int64_t rows = full || square ? a->q_len : 1;
  const int64_t dims[4] = {b, 1, rows, keys};
  assay_tensor_t* m = NULL;
  ASSAY_TRY(assay_owned_create(c, owned, 4, dims, &m));
  double* to = assay_f64(m);
  if (lengths) {
    mask_lengths(t, a, filter, to);
  } else if (flat) {
    mask_rows(t, a, 1, (const int64_t[]){d1, 0}, 0, d1 == keys ? 0 : a->offset, filter, to);
  } else if (full) {
    mask_rows(t, a, rows, (const int64_t[]){d1 * d2, d2}, 0, 0, filter, to);
  } else {
    mask_rows(t, a, rows, (const int64_t[]){d2 * d2, d2}, a->offset * d2, 0, filter, to);
  }
  return assay_mask_init(c, m, a, false, out);
}

assay_status_t assay_score_bias(const assay_eval_t* c, size_t input, const assay_attention_t* a,
                                assay_mask_t* out) {
  if (!assay_eval_has(c, input)) return NULL;
  return assay_mask_init(c, c->in[input], a, false, out);
}

// ---- small things -----------------------------------------------------------------------------

double assay_head_scale(const assay_node_t* n, int64_t head_size) {
  const double scale = assay_attr_f64(n, "scale", 0);
  if (scale != 0) return scale;
  return head_size > 0 ? 1 / sqrt((double)head_size) : 1;
}

double assay_attention_flops(int64_t batch, int64_t heads, int64_t q_len, int64_t kv_len,
                             int64_t head_size, int64_t v_head_size) {
  return (double)batch * (double)heads * (double)q_len * (double)kv_len *
         (2.0 * (double)head_size + 2.0 * (double)v_head_size + 10.0);
}

assay_status_t assay_want_heads(const assay_node_t* n, const char* attr, int64_t heads,
                                int64_t channels) {
  if (heads > 0 && (channels < 0 || channels % heads == 0)) return NULL;
  if (heads <= 0) {
    return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT, "%s is %lld; expected 1 or more", attr,
                            (long long)heads);
  }
  return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT, "%lld channels are not a multiple of %s, %lld",
                          (long long)channels, attr, (long long)heads);
}
