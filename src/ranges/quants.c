// Quantized numbers: sums of products of integers against int32, and what quantizers make of
// ranges.
#include <string.h>

#include "base/alloc.h"
#include "ranges/products.h"

static const double INF = (double)INFINITY, INT32_END = 2147483647.0;

// Elements less their zero point, as a range of real numbers. zero: one number, or one a channel
// along `axis`.
static assay_status_t less_zero(const assay_range_t* x, const assay_range_t* zero, int axis,
                                assay_range_t* out) {
  assay_tensor_t *lo = NULL, *hi = NULL;
  const int64_t n = zero && zero->lo ? zero->lo->size : 0;
  const int64_t inner =
      axis < x->lo->rank ? assay_dims_product(x->lo->dims, axis + 1, x->lo->rank) : 1;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, x->lo->rank, x->lo->dims, &lo));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_DOUBLE, x->lo->rank, x->lo->dims, &hi);
  if (st) return assay_tensor_release(lo), st;
  for (int64_t i = 0; i < lo->size; i++) {
    const int64_t z = n > 1 ? i / inner % n : 0;
    assay_f64(lo)[i] = assay_elem(x->lo, i) - (n ? assay_elem(zero->hi, z) : 0);
    assay_f64(hi)[i] = assay_elem(x->hi, i) - (n ? assay_elem(zero->lo, z) : 0);
  }
  *out = (assay_range_t){0};
  assay_range_set(out, lo, hi);
  return NULL;
}

static bool is_number(const assay_range_t* r) {
  return r->lo && r->lo->kind == ASSAY_KIND_TENSOR &&
         (r->lo->store == ASSAY_STORE_F64 || r->lo->store == ASSAY_STORE_I64);
}

// Which inputs are what.
typedef struct places {
  const char* op;  // what multiplies
  size_t a, b, zero_a, zero_b, bias;
} places_t;

// The integer sums, as real numbers: told where they may pass int32.
static assay_status_t sums_of(assay_range_node_t* c, const places_t* p, assay_range_t* out) {
  assay_range_t in[3] = {{0}};
  assay_tensor_t* m = NULL;
  *out = (assay_range_t){0};
  for (size_t k = 0; k < 4; k++) {
    const size_t i = (const size_t[]){p->a, p->b, p->zero_a, p->zero_b}[k];
    if (assay_range_has(c, i) && !is_number(&c->in[i])) return NULL;
  }
  const bool conv = !strcmp(p->op, "Conv");
  const int rank_a = c->in[p->a].lo->rank, rank_b = c->in[p->b].lo->rank;
  const assay_range_t* za = assay_range_has(c, p->zero_a) ? &c->in[p->zero_a] : NULL;
  const assay_range_t* zb = assay_range_has(c, p->zero_b) ? &c->in[p->zero_b] : NULL;
  assay_status_t st = less_zero(&c->in[p->a], za, conv || rank_a < 2 ? 1 : rank_a - 2, &in[0]);
  if (!st) st = less_zero(&c->in[p->b], zb, conv || !rank_b ? 0 : rank_b - 1, &in[1]);
  const size_t n = conv && assay_range_has(c, p->bias) && is_number(&c->in[p->bias]) ? 3 : 2;
  if (!st && n == 3) st = less_zero(&c->in[p->bias], NULL, 0, &in[2]);
  const assay_node_t real = assay_range_as(c, p->op, 0, c->node->n_attrs, c->node->attrs);
  const assay_range_product_t product = {
      .node = &real, .in = in, .n_in = n, .a = 0, .b = 1, .added = 2};
  if (!st) st = assay_range_product(c, &product, out, &m);
  for (int64_t i = 0; !st && m && i < m->size; i++) {
    if (!(assay_f64(m)[i] > INT32_END)) continue;
    // Partial sums may pass it in some order only; the whole sum in any.
    const double lo = assay_f64(out->lo)[i], hi = assay_f64(out->hi)[i];
    const bool whole = hi > INT32_END || lo < -INT32_END - 1;
    const double figure = hi > -lo ? hi : lo;
    if (whole) {
      assay_range_hazard(c, ASSAY_HAZARD_ACCUMULATOR, 0, i, figure, figure == hi ? lo : hi,
                         INT32_END);
      break;
    }
  }
  assay_tensor_release(m);
  for (size_t i = 0; i < 3; i++) assay_range_release(&in[i]);
  return st;
}

static assay_status_t integer_product(assay_range_node_t* c, const char* op) {
  const places_t p = {.op = op, .a = 0, .b = 1, .zero_a = 2, .zero_b = 3, .bias = SIZE_MAX};
  assay_range_t sums = {0};
  ASSAY_TRY(sums_of(c, &p, &sums));
  if (!sums.lo) return NULL;
  double lo, hi;
  assay_range_ends(&sums, &lo, &hi);
  assay_tensor_t *a = NULL, *b = NULL;
  assay_status_t st = NULL;
  if (lo < -INT32_END - 1 || hi > INT32_END) {
    st = assay_range_whole(c, 0);
  } else {
    st = assay_tensor_create(ASSAY_TYPE_INT32, sums.lo->rank, sums.lo->dims, &a);
    if (!st) st = assay_tensor_create(ASSAY_TYPE_INT32, sums.lo->rank, sums.lo->dims, &b);
    for (int64_t i = 0; !st && i < a->size; i++) {
      assay_i64(a)[i] = (int64_t)floor(assay_f64(sums.lo)[i]);
      assay_i64(b)[i] = (int64_t)ceil(assay_f64(sums.hi)[i]);
    }
    if (!st)
      assay_range_set(&c->out[0], a, b);
    else
      assay_tensor_release(a);
  }
  assay_range_release(&sums);
  return st;
}
assay_status_t assay_range_matmul_integer(assay_range_node_t* c) {
  return integer_product(c, "MatMul");
}
assay_status_t assay_range_conv_integer(assay_range_node_t* c) {
  return integer_product(c, "Conv");
}

// What leaves saturates: any number of its type.
static assay_status_t saturated(assay_range_node_t* c, const places_t* p) {
  assay_range_t sums = {0};
  ASSAY_TRY(sums_of(c, p, &sums));
  assay_range_release(&sums);
  return assay_range_whole(c, 0);
}
assay_status_t assay_range_qlinear_matmul(assay_range_node_t* c) {
  return saturated(
      c, &(places_t){.op = "MatMul", .a = 0, .b = 3, .zero_a = 2, .zero_b = 5, .bias = SIZE_MAX});
}
assay_status_t assay_range_qlinear_conv(assay_range_node_t* c) {
  return saturated(c,
                   &(places_t){.op = "Conv", .a = 0, .b = 3, .zero_a = 2, .zero_b = 5, .bias = 8});
}
assay_status_t assay_range_saturates(assay_range_node_t* c) {
  for (size_t i = 0; i < c->n_out; i++)
    if (c->node->outputs[i]) ASSAY_TRY(assay_range_whole(c, i));
  return NULL;
}

// y is any of its type; the scale (max(x, 0) - min(x, 0)) / 255, or 1 where all are 0.
assay_status_t assay_range_dynamic_quantize(assay_range_node_t* c) {
  double lo, hi;
  if (!assay_range_is_float(&c->in[0])) return NULL;
  assay_range_ends(&c->in[0], &lo, &hi);
  if (!(lo > -INF && hi < INF)) return NULL;
  ASSAY_TRY(assay_range_whole(c, 0));
  if (c->n_out > 1 && c->node->outputs[1]) {
    bool zeros = true;
    for (int64_t i = 0; i < c->in[0].lo->size; i++)
      zeros &= assay_elem(c->in[0].lo, i) <= 0 && assay_elem(c->in[0].hi, i) >= 0;
    ASSAY_TRY(
        assay_range_fill_output(c, 1, 0, fmax((fmax(hi, 0) - fmin(lo, 0)) / 255, zeros ? 1 : 0)));
    ASSAY_TRY(assay_range_widen(c, 1, 8, 0, NULL));
  }
  return c->n_out > 2 && c->node->outputs[2] ? assay_range_whole(c, 2) : NULL;
}

// Real numbers in range of the scale; a divisor of 0 is a scale of 0.
assay_status_t assay_range_quantize(assay_range_node_t* c) {
  const assay_range_t* scale = &c->in[1];
  if (c->n_in < 2 || !is_number(scale)) return NULL;
  for (int64_t i = 0; i < scale->lo->size; i++)
    if (assay_elem(scale->lo, i) <= 0 && assay_elem(scale->hi, i) >= 0) {
      assay_range_hazard(c, ASSAY_HAZARD_DIVISION, 1, i, assay_elem(scale->lo, i),
                         assay_elem(scale->hi, i), 0);
      return assay_range_whole(c, 0);
    }
  if (!assay_range_exact(scale)) return assay_range_whole(c, 0);
  ASSAY_TRY(assay_range_monotone(c));
  return c->out[0].lo ? NULL : assay_range_whole(c, 0);
}
