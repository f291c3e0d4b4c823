// Rounding bounds of scaled dot-product attention, in any order: one product, softmax and another
// product, or blocks of keys with a running maximum and sum (flash attention).
//
// Scores s_j carry errors e_j, |e_j| <= d_j: those of q k_j, a sum of head_size terms, whose
// sum |q||k_j| is at most |q|_2 |k_j|_2 (Cauchy-Schwarz); of the soft cap; of adding the masks; of
// subtracting the maximum; of changing the base of the exponential. With p = softmax(s) and
// y = sum p_j v_j, the softmax of s + e makes
//   y' - y = sum p_j (exp(e_j) - 1) (v_j - y) / sum p_j exp(e_j)
// exactly, as sum p_j (v_j - y) = 0. Guaranteed: |exp(e_j) - 1| <= expm1(d_j) =: w_j. Softmax of
// scores that are all moved alike is the same: where one key r has more than half of the weight,
// e_j - e_r may stand for e_j, so that only the others count, with d_j + d_r. Probable: the scores'
// errors are independent, so their squares add up. Softmax's sums and quotient and the
// second product round relative to p_j |v_j|, the denominator relative to |y|.
// Sources: P. Blanchard, D. J. Higham, N. J. Higham, Accurately computing the log-sum-exp and
// softmax functions, IMA J. Numer. Anal. 41 (2021), 4; T. Dao et al., FlashAttention,
// arXiv 2205.14135, algorithm 1 (rescaling); sums as in ops/bound.h.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/attention/attention_core.h"
#include "ops/matmul/gemm.h"
#include "ops/running_bound.h"

// Keys of which a block of flash attention has at least.
enum { MIN_BLOCK = 16 };

// What lies so far below the largest score has no weight in any format.
static const double NEGLIGIBLE = 200;

// What is the same for all heads.
typedef struct rules {
  const assay_rounding_t* r;
  assay_steps_t steps;
  assay_factor_t score;  // of q k's sum, with the scale
  double range;          // of the accumulator
} rules_t;

// One head's keys and values.
typedef struct head {
  const assay_eval_t* c;
  const assay_attention_t* a;
  const rules_t* rules;
  int64_t b, h, kv;
  const double *q, *k, *v;
  double* y;
  double *k_norm, *k_limit[2];  // [kv_len]: |k_j|_2, and of its limits; NULL: none
  double *v_abs, *v_square;     // [kv_len, v_head_size]: |v| / v_scale and its square
  double v_scale;
  double* v_max;        // [v_head_size]: the largest |v| of the column
  double* v_in_max[2];  // and the largest of its limits
} head_t;

static double norm_of(const double* x, int64_t n) {
  double sum = 0, max = 0;
  for (int64_t i = 0; i < n; i++)
    if (!(fabs(x[i]) <= max)) max = isnan(x[i]) ? (double)INFINITY : fabs(x[i]);
  if (!(max > 0) || !(max < (double)INFINITY)) return max;
  for (int64_t i = 0; i < n; i++) sum += (x[i] / max) * (x[i] / max);
  return max * sqrt(sum) * (1 + 0x1p-40);
}

// ---- scores of one query ------------------------------------------------------------------------

// Limits of one row's scores: guaranteed; of independent errors; what came in, probable.
typedef struct score_limits {
  double *g, *own, *in;
} score_limits_t;

static void add_own(const score_limits_t* e, int64_t j, double d) {
  e->g[j] += d;
  e->own[j] += d;
}

// Of scale * q k: sums of head_size terms, and what q and k bring along.
static void raw_limits(const head_t* x, int64_t i, const score_limits_t* e) {
  const assay_attention_t* a = x->a;
  const double* q = x->q + i * a->q.row;
  const assay_span_t s = assay_running_bound_of(x->c, q);
  const double scale = fabs(a->scale), size = (double)a->head_size;
  const double norm = norm_of(q, a->head_size) * scale;
  const double q_g = s.guaranteed ? norm_of(s.guaranteed, a->head_size) * scale : 0;
  const double q_p = s.probable ? norm_of(s.probable, a->head_size) * scale : 0;
  const double tiny = x->rules->steps.tiny * fmax(scale, 1), length = norm_of(q, a->head_size);
  for (int64_t j = 0; j < a->kv_len; j++) {
    const double k = x->k_norm[j], k_g = x->k_limit[0] ? x->k_limit[0][j] : 0,
                 k_p = x->k_limit[1] ? x->k_limit[1][j] : 0;
    const double in_g = norm * k_g + q_g * (k + k_g);
    const double sum = (norm + q_g) * (k + k_g) / scale;
    // Scaled operands may lose their subnormal parts, too, each times the other operand.
    const double lost = tiny * (size + 2 + sqrt(size) * (length + k));
    e->g[j] = x->rules->score.guaranteed * sum * scale + in_g + lost;
    e->own[j] = x->rules->score.probable * sum * scale + lost;
    e->in[j] = norm * k_p + q_p * (k + k_p);
    if (scale == 0) e->g[j] = e->own[j] = e->in[j] = 0;
    // A sum that may pass the range on its way has no limit; nor has one of the unscaled operands.
    if (!(fmax(sum, sum * scale) <= x->rules->range)) e->g[j] = e->own[j] = INFINITY;
  }
}

// cap * tanh(s / cap): the slope is 1 - tanh^2, largest where |s| is least.
static void cap_limits(const head_t* x, const double* s, const score_limits_t* e, double* capped) {
  const assay_steps_t* u = &x->rules->steps;
  const double cap = x->a->softcap;
  for (int64_t j = 0; j < x->a->kv_len; j++) {
    capped[j] = cap * assay_tanh(s[j] / cap);
    const double d = e->g[j] + 2 * u->u * fabs(s[j]);
    const double t = assay_tanh(fmax(fabs(s[j]) - d, 0) / cap), slope = 1 - t * t + 0x1p-50;
    const double local = (u->function + 2 * u->u) * fabs(capped[j]) + u->definition * 2 * cap +
                         2 * u->tiny * (1 + cap);
    e->g[j] = slope * d + local;
    e->own[j] = slope * (e->own[j] + 2 * u->u * fabs(s[j])) + local;
    e->in[j] *= slope;
  }
}

// Adds the masks' limits, and what adding them to each other and to the scores rounds.
static void mask_limits(const head_t* x, int64_t i, const double* bias, double* s,
                        const score_limits_t* e) {
  const assay_steps_t* u = &x->rules->steps;
  const int64_t n = x->a->kv_len;
  const bool both = x->a->masks[0].tensor && x->a->masks[1].tensor;
  for (int t = 0; t < 2; t++) {
    const assay_mask_t* m = &x->a->masks[t];
    if (!m->tensor || m->tensor->store != ASSAY_STORE_F64) continue;
    const int64_t at = x->b * m->strides[0] + x->h * m->strides[1] + i * m->strides[2];
    const double* from = assay_f64(m->tensor) + at;
    const assay_span_t l =
        m->tensor->size > 0 ? assay_running_bound_of(x->c, from) : (assay_span_t){0};
    for (int64_t j = 0; j < n && j < m->length; j++) {
      const double v = fabs(from[j * m->strides[3]]);
      if (both && v < (double)INFINITY) add_own(e, j, u->u * v);
      if (!l.guaranteed) continue;
      e->g[j] += l.guaranteed[j * m->strides[3]];
      e->in[j] += l.probable[j * m->strides[3]];
    }
  }
  for (int64_t j = 0; j < n; j++) {
    s[j] += bias[j];
    if (bias[j] == 0 || s[j] == -INFINITY) continue;
    add_own(e, j, u->u * (fabs(s[j]) + e->g[j]));
  }
}

// A sink's limits are as if all scores moved against it.
static void sink_limits(const head_t* x, const score_limits_t* e) {
  const assay_span_t s = assay_running_bound_of(x->c, x->a->sink + x->h);
  for (int64_t j = 0; s.guaranteed && j < x->a->kv_len; j++) {
    e->g[j] += s.guaranteed[0];
    e->in[j] += s.probable[0];
  }
}

// ---- softmax of one query -----------------------------------------------------------------------

// One row's weights: p, and p times what errors of its scores can do; sums of them.
typedef struct row {
  double* p;               // 0 at `leader`
  int64_t leader;          // the key r; -1: none
  double lead;             // its weight
  double* square;          // (p w / largest p w)^2 of independent errors
  double largest;          // p w of them
  double wide, wide_in;    // max of expm1(d) over the keys that count: guaranteed, what came in
  double sum, sum_in;      // sum of p expm1(d)
  double sum_own;          // the same of independent errors
  double sum_square;       // of `square`
  double rest, rest_in;    // sum p exp(-d): the least that the denominator may be
  double moved, moved_in;  // d of the leader, which the others' have on top
  double keys;             // keys that are not masked
  double spread;           // max - min of their scores, as far as the exponential matters
  bool lost;               // a score has no limit
} row_t;

static double largest_score(const double* s, int64_t n, const double* sink) {
  double max = sink ? *sink : -INFINITY;
  for (int64_t j = 0; j < n; j++)
    if (s[j] > max || isnan(s[j])) max = s[j];
  return max;
}

// What the exponential's argument rounds: the difference to the maximum; in another base, or by
// way of e^s = 2^(s log2 e), products with rounded constants. A score that counts has no limit
// where it, with its mask, may pass the range.
static void argument_limits(const head_t* x, double max, const double* s, const score_limits_t* e) {
  const assay_steps_t* u = &x->rules->steps;
  for (int64_t j = 0; j < x->a->kv_len; j++) {
    if (s[j] == -INFINITY) continue;
    double d = u->u * fabs(s[j] - max);
    if (!x->rules->r->documented) d += u->u * (fabs(s[j]) + fabs(max)) + d;
    const bool counts = s[j] + e->g[j] > max - NEGLIGIBLE;
    if (counts && !(fabs(s[j]) + e->g[j] <= x->rules->range)) d = INFINITY;
    add_own(e, j, d);
  }
}

// What the argument of the sink's exponential rounds.
static double sink_limit(const head_t* x, double max) {
  const double s = x->a->sink[x->h];
  return x->rules->steps.u * (2 * fabs(s - max) + fabs(s) + fabs(max));
}

// At least exp(x) - 1, and at most exp(-x), for x >= 0; for small x without the functions.
static double growth(double x) { return x < 0x1p-7 ? x + x * x : assay_expm1(x); }
static double decay(double x) { return x < 0x1p-7 ? 1 - x : assay_exp(-x); }

// p (exp(x) - 1), or somewhat more, where p = exp(size) may be too small a number.
static double grown(double p, double size, double x) {
  return x < 1 ? p * growth(x) : assay_exp(size + x);
}

static double likely_of(const score_limits_t* e, int64_t j) {
  return fmin(e->g[j], e->own[j] + e->in[j]);
}

// What key j, which is not the leader, does to the sums.
static void weigh_other(const score_limits_t* e, int64_t j, double p, double size, row_t* row) {
  const double d = e->g[j] + row->moved, d_in = likely_of(e, j) + row->moved_in;
  if (p == 0 && size + d < -NEGLIGIBLE) return;
  row->rest += p * decay(d);
  row->rest_in += p * decay(d_in);
  row->sum += grown(p, size, d);
  row->wide = fmax(row->wide, growth(d));
  // Squares add up where errors are small enough to be linear.
  const bool linear = d_in < 1;
  const double in = linear ? e->in[j] + row->moved_in : d_in;
  row->sum_in += grown(p, size, in);
  row->wide_in = fmax(row->wide_in, growth(in));
  row->square[j] = linear ? p * growth(e->own[j]) : 0;
  row->sum_own += row->square[j];
  row->largest = fmax(row->largest, row->square[j]);
}

static void weigh(const head_t* x, double max, const double* s, const score_limits_t* e,
                  row_t* row) {
  const int64_t n = x->a->kv_len;
  const double* sink = x->a->sink ? x->a->sink + x->h : NULL;
  double total = sink ? assay_exp(*sink - max) : 0, low = max;
  *row = (row_t){.p = row->p, .square = row->square, .leader = -1};
  for (int64_t j = 0; j < n; j++) {
    row->p[j] = assay_exp(s[j] - max);
    total += row->p[j];
    row->keys += s[j] > -INFINITY;
    if (row->p[j] > 0x1p-200 && s[j] < low) low = s[j];
    if (s[j] == max) row->leader = j;
  }
  row->lead = row->leader >= 0 ? row->p[row->leader] / total : 0;
  if (!(row->lead > 0.5)) row->leader = -1;
  const int64_t r = row->leader;
  row->moved = r >= 0 ? e->g[r] : 0;
  row->moved_in = r >= 0 ? likely_of(e, r) : 0;
  row->spread = max - low;
  row->rest = row->rest_in = 0;
  for (int64_t j = 0; j < n; j++) {
    const double p = row->p[j] /= total, size = s[j] - max - assay_log(total);
    row->square[j] = 0;
    if (s[j] == -INFINITY) continue;
    row->lost |= !(e->g[j] < INFINITY);
    if (j == r) {
      row->rest += p;
      row->rest_in += p;
      continue;
    }
    weigh_other(e, j, p, size, row);
  }
  if (sink) {
    // The sink is a key whose value is 0.
    const double p = assay_exp(*sink - max) / total, size = *sink - max - assay_log(total);
    const double d = sink_limit(x, max);
    row->sum += grown(p, size, d + row->moved);
    row->sum_in += grown(p, size, d + row->moved_in);
    row->rest += p * decay(d + row->moved);
    row->rest_in += p * decay(d + row->moved_in);
  }
  if (!(row->largest > 0) || !(row->largest < (double)INFINITY)) return;
  for (int64_t j = 0; j < n; j++) {
    row->square[j] = (row->square[j] / row->largest) * (row->square[j] / row->largest);
    row->sum_square += row->square[j];
  }
}

// The relative error of softmax's steps and of the second product: of each p_j v_j, and of the
// denominator. Running maxima rescale what has been summed so far; the differences of the maxima
// add up to no more than the spread of the scores.
static void relative_limits(const head_t* x, const row_t* row, assay_factor_t* terms,
                            assay_factor_t* denominator) {
  const assay_rounding_t* r = x->rules->r;
  const assay_steps_t* u = &x->rules->steps;
  const double n = fmax(row->keys, 1) + (x->a->sink ? 1 : 0);
  const assay_factor_t sum = assay_bound_sum(r, n);
  const double exponential = fmax(u->function, r->weight_error);
  // exp, rounding the weight as an operand, division or reciprocal and product, the product's own
  // rounding.
  const double weight = exponential + assay_bound_operands(r) * (1 + exponential);
  *terms = (assay_factor_t){sum.guaranteed + weight + 3 * u->u, sum.probable + weight + 3 * u->u};
  *denominator =
      (assay_factor_t){sum.guaranteed + exponential + u->u, sum.probable + exponential + u->u};
  if (r->documented) return;
  const double blocks = ceil(n / MIN_BLOCK), each = u->function + 2 * u->u;
  const double spread = 2 * u->u * row->spread;
  terms->guaranteed += blocks * each + spread;
  terms->probable += fmin(blocks, 6 * sqrt(blocks)) * each + spread;
  denominator->guaranteed += blocks * each + spread;
  denominator->probable += fmin(blocks, 6 * sqrt(blocks)) * each + spread;
}

// ---- results of one query -----------------------------------------------------------------------

// sums[d] = sum p_j |v_jd|, without the leader's; squares[d] = sum square_j v_jd^2; in[0..1][d]:
// sum p_j limits of v.
typedef struct products {
  const double *sums, *squares, *in[2];
} products_t;

// p_r |v_rd| of the leader.
static double lead_of(const head_t* x, const row_t* row, int64_t d) {
  if (row->leader < 0) return 0;
  return row->lead * fabs(x->v[row->leader * x->a->v.row + d]);
}

static void value_limits(const head_t* x, int64_t i, const row_t* row, const products_t* m) {
  const int64_t n = x->a->v_head_size;
  double* y = x->y + i * x->a->y.row;
  const assay_span_t to = assay_running_bound_of(x->c, y);
  const double* truth = assay_running_bound_truth(x->c, y);
  assay_factor_t terms, denominator;
  relative_limits(x, row, &terms, &denominator);
  const double tiny = (row->keys + 1) * x->rules->steps.tiny;
  for (int64_t d = 0; d < n; d++) {
    // What is left of small weights as operands: of each of them, and the largest one is 1.
    const double lost = row->keys * assay_bound_operand_tiny(x->rules->r) * x->v_max[d];
    const double others = m->sums[d] * x->v_scale, v_max = x->v_max[d];
    const double sum = others + lead_of(x, row, d);
    const double mean = truth ? fmin(fabs(truth[d]), sum) : sum;
    // |v_j - y| <= |v_j| + |y|; sum p w |v| <= max w sum p |v| and <= max |v| sum p w.
    const double scores =
        (fmin(row->wide * others, row->sum * v_max) + row->sum * mean) / row->rest;
    const double came =
        (fmin(row->wide_in * others, row->sum_in * v_max) + row->sum_in * mean) / row->rest_in;
    const double squares = m->squares[d] * x->v_scale * x->v_scale + row->sum_square * mean * mean;
    const double independent = row->largest * sqrt(2 * squares) / row->rest_in;
    // Whatever the scores are, the result lies between the values (and 0, with a sink); but not if
    // one of them may be infinite.
    const double apart = v_max + mean;
    double g = row->lost ? (double)INFINITY : fmin(scores, apart);
    double p = row->lost ? g : fmin(g, came + independent);
    if (m->in[0]) {
      double in[2] = {m->in[0][d], m->in[1][d]};
      if (row->leader >= 0) {
        const assay_span_t s = assay_running_bound_of(x->c, x->v + row->leader * x->a->v.row);
        in[0] += row->lead * s.guaranteed[d];
        in[1] += row->lead * s.probable[d];
      }
      const double grown = (1 + row->wide) / row->rest;
      g += fmin(in[0] * grown, row->lost ? (double)INFINITY : x->v_in_max[0][d]);
      p += fmin(in[1] * grown, row->lost ? (double)INFINITY : x->v_in_max[1][d]);
    }
    g += terms.guaranteed * (sum + g) + denominator.guaranteed * (mean + g);
    p += terms.probable * (sum + p) + denominator.probable * (mean + p);
    g += tiny * (1 + v_max) + lost;
    if (!(sum + g <= x->rules->range)) g = p = INFINITY;
    to.guaranteed[d] = g;
    to.probable[d] = fmin(p + tiny * (1 + v_max) + lost, g);
  }
}

// Limits of the scores that are an output, at one of the stages before softmax.
static void put_scores(const head_t* x, int64_t i, const score_limits_t* e) {
  const assay_attention_t* a = x->a;
  const assay_span_t to = assay_running_bound_of(
      x->c, a->scores + ((x->b * a->q_heads + x->h) * a->q_len + i) * a->kv_len);
  for (int64_t j = 0; j < a->kv_len; j++) {
    to.guaranteed[j] = e->g[j];
    to.probable[j] = fmin(e->g[j], e->own[j] + e->in[j]);
  }
}

// How far exp(e) over the denominator may be from 1: that is at least `rest`, and at most 1 + sum.
static double change(double e, double rest, double sum) {
  return fmax(assay_exp(e) / rest - 1, 1 - assay_exp(-e) / (1 + sum));
}

// Those of probabilities: p_j exp(e_j) over the denominator.
static void put_probabilities(const head_t* x, int64_t i, const row_t* row,
                              const score_limits_t* e) {
  const assay_attention_t* a = x->a;
  const assay_span_t to = assay_running_bound_of(
      x->c, a->scores + ((x->b * a->q_heads + x->h) * a->q_len + i) * a->kv_len);
  assay_factor_t terms, denominator;
  relative_limits(x, row, &terms, &denominator);
  const double tiny = x->rules->steps.tiny;
  for (int64_t j = 0; j < a->kv_len; j++) {
    // No probability is below 0 or above 1.
    const double p = row->p[j], maximum = fmax(p, 1 - p);
    const bool leads = j == row->leader;
    const double e_g = leads ? 0 : e->g[j] + row->moved;
    const double e_p = leads ? 0 : likely_of(e, j) + row->moved_in;
    double g = fmin(p * change(e_g, row->rest, row->sum), maximum);
    double own = fmin(p * change(e_p, row->rest_in, row->sum_in + row->sum_own), maximum);
    if (row->lost) g = own = INFINITY;
    const double d = denominator.guaranteed + x->rules->steps.function + 3 * x->rules->steps.u;
    const double dp = denominator.probable + x->rules->steps.function + 3 * x->rules->steps.u;
    to.guaranteed[j] = g + d * (p + g) + 2 * tiny;
    to.probable[j] = fmin(own + dp * (p + own) + 2 * tiny, to.guaranteed[j]);
  }
}

// ---- blocks of queries --------------------------------------------------------------------------

// Room for a block of queries.
typedef struct scratch {
  double *q, *scores, *p, *square, *bias, *stage, *sums, *squares, *in[2];
  score_limits_t e;
  row_t* rows;
} scratch_t;

static assay_matrix_t matrix(const double* data, int64_t row_stride, int64_t col_stride) {
  return (assay_matrix_t){data, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, row_stride, col_stride};
}

// Scores, their limits, and the weights of one query.
static void limit_row(const head_t* x, const scratch_t* w, int64_t i, double* s, row_t* row) {
  const assay_attention_t* a = x->a;
  const assay_scores_t stage = a->scores_stage;
  raw_limits(x, i, &w->e);
  if (a->scores && stage == ASSAY_SCORES_RAW) put_scores(x, i, &w->e);
  if (a->softcap != 0) {
    cap_limits(x, s, &w->e, w->stage);
    memcpy(s, w->stage, (size_t)a->kv_len * sizeof *s);
  }
  if (a->scores && stage == ASSAY_SCORES_CAPPED) put_scores(x, i, &w->e);
  const bool any = assay_attention_bias(x->c, a, x->b, x->h, i, w->bias);
  mask_limits(x, i, w->bias, s, &w->e);
  if (a->scores && stage == ASSAY_SCORES_BIASED) put_scores(x, i, &w->e);
  if (a->sink) sink_limits(x, &w->e);
  for (int64_t j = 0; j < a->kv_len; j++)
    if (isnan(w->e.g[j])) w->e.g[j] = w->e.own[j] = INFINITY;
  const double max = largest_score(s, a->kv_len, a->sink ? a->sink + x->h : NULL);
  if (!any || max == -INFINITY) {
    memset(row->p, 0, (size_t)a->kv_len * sizeof *row->p);
    memset(row->square, 0, (size_t)a->kv_len * sizeof *row->square);
    *row = (row_t){.p = row->p, .square = row->square, .leader = -1, .rest = 1, .rest_in = 1};
    return;  // zeros, whose limits stay 0
  }
  argument_limits(x, max, s, &w->e);
  weigh(x, max, s, &w->e, row);
  if (a->scores && stage == ASSAY_SCORES_SOFTMAX) put_probabilities(x, i, row, &w->e);
  if (row->leader >= 0) row->p[row->leader] = 0;
}

static assay_status_t limit_block(const head_t* x, const scratch_t* w, int64_t i0, int64_t rows) {
  const assay_attention_t* a = x->a;
  const int64_t n = a->kv_len, d = a->head_size, m = a->v_head_size;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t t = 0; t < d; t++) w->q[i * d + t] = x->q[(i0 + i) * a->q.row + t] * a->scale;
  const assay_matrix_t left = matrix(w->q, d, 1), keys = matrix(x->k, 1, a->k.row);
  ASSAY_TRY(assay_gemm(x->c, rows, n, d, &left, &keys, w->scores, n, false));
  for (int64_t i = 0; i < rows; i++) {
    w->rows[i] = (row_t){.p = w->p + i * n, .square = w->square + i * n};
    limit_row(x, w, i0 + i, w->scores + i * n, &w->rows[i]);
  }
  // Weights and values are at most 1: products in fp32 lose nothing that matters.
  assay_eval_t coarse = *x->c;
  coarse.coarse = n < (1 << 20);
  const assay_matrix_t p = matrix(w->p, n, 1), v = matrix(x->v_abs, m, 1);
  const assay_matrix_t square = matrix(w->square, n, 1), v2 = matrix(x->v_square, m, 1);
  ASSAY_TRY(assay_gemm(&coarse, rows, m, n, &p, &v, w->sums, m, false));
  ASSAY_TRY(assay_gemm(&coarse, rows, m, n, &square, &v2, w->squares, m, false));
  const double slack = 1 + (double)(n + 4) * 0x1p-23, lost = (double)n * 0x1p-126;
  for (int64_t i = 0; i < rows * m; i++) {
    w->sums[i] = w->sums[i] * slack + lost;
    w->squares[i] = w->squares[i] * slack + lost;
  }
  const assay_span_t in = assay_running_bound_of(x->c, x->v);
  if (in.guaranteed) {
    const assay_matrix_t g = matrix(in.guaranteed, a->v.row, 1),
                         e = matrix(in.probable, a->v.row, 1);
    ASSAY_TRY(assay_gemm(x->c, rows, m, n, &p, &g, w->in[0], m, false));
    ASSAY_TRY(assay_gemm(x->c, rows, m, n, &p, &e, w->in[1], m, false));
  }
  for (int64_t i = 0; i < rows; i++) {
    const products_t t = {w->sums + i * m,
                          w->squares + i * m,
                          {in.guaranteed ? w->in[0] + i * m : NULL, w->in[1] + i * m}};
    if (w->rows[i].keys > 0) value_limits(x, i0 + i, &w->rows[i], &t);
  }
  return NULL;
}

// ---- one head -----------------------------------------------------------------------------------

static void read_head(head_t* x, bool limited) {
  const assay_attention_t* a = x->a;
  const int64_t n = a->kv_len, m = a->v_head_size;
  double max = 0;
  for (int64_t j = 0; j < n; j++) {
    const double* k = x->k + j * a->k.row;
    x->k_norm[j] = norm_of(k, a->head_size);
    if (!limited) continue;
    const assay_span_t s = assay_running_bound_of(x->c, k);
    x->k_limit[0][j] = s.guaranteed ? norm_of(s.guaranteed, a->head_size) : 0;
    x->k_limit[1][j] = s.probable ? norm_of(s.probable, a->head_size) : 0;
  }
  memset(x->v_max, 0, (size_t)m * sizeof *x->v_max);
  for (int64_t j = 0; j < n; j++) {
    for (int64_t d = 0; d < m; d++) {
      const double v = fabs(x->v[j * a->v.row + d]);
      if (!(v <= x->v_max[d])) x->v_max[d] = v;
    }
  }
  const assay_span_t in = n > 0 ? assay_running_bound_of(x->c, x->v) : (assay_span_t){NULL, NULL};
  memset(x->v_in_max[0], 0, (size_t)m * sizeof *x->v_in_max[0]);
  memset(x->v_in_max[1], 0, (size_t)m * sizeof *x->v_in_max[1]);
  for (int64_t j = 0; in.guaranteed && j < n; j++) {
    for (int64_t d = 0; d < m; d++) {
      const double g = in.guaranteed[j * a->v.row + d], p = in.probable[j * a->v.row + d];
      if (!(g <= x->v_in_max[0][d])) x->v_in_max[0][d] = g;
      if (!(p <= x->v_in_max[1][d])) x->v_in_max[1][d] = p;
    }
  }
  for (int64_t d = 0; d < m; d++) max = fmax(max, x->v_max[d]);
  x->v_scale = max > 0 && max < (double)INFINITY ? max : 1;
  for (int64_t j = 0; j < n; j++) {
    for (int64_t d = 0; d < m; d++) {
      const double v = fabs(x->v[j * a->v.row + d]) / x->v_scale;
      x->v_abs[j * m + d] = v;
      x->v_square[j * m + d] = v * v;
    }
  }
}

static assay_status_t limit_head(head_t* x, int64_t block) {
  const assay_attention_t* a = x->a;
  const int64_t n = a->kv_len, d = a->head_size, m = a->v_head_size;
  const bool limited = n > 0 && assay_running_bound_of(x->c, x->k).guaranteed;
  const int64_t scratch = n * (3 + 5 + 2 * m) + 3 * m + block * (d + 3 * n + 4 * m);
  double* all = NULL;
  scratch_t w = {0};
  assay_status_t st = assay_new_array((size_t)scratch, sizeof *all, &all);
  if (!st) st = assay_new_array((size_t)block, sizeof *w.rows, &w.rows);
  if (!st) {
    double* next = all;
    double** const parts[] = {&x->k_norm, &x->k_limit[0], &x->k_limit[1], &w.bias,
                              &w.stage,   &w.e.g,         &w.e.own,       &w.e.in};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++, next += n) *parts[i] = next;
    if (!limited) x->k_limit[0] = x->k_limit[1] = NULL;
    x->v_abs = next, next += n * m;
    x->v_square = next, next += n * m;
    x->v_max = next, next += m;
    x->v_in_max[0] = next, next += m;
    x->v_in_max[1] = next, next += m;
    w.q = next, next += block * d;
    w.scores = next, next += block * n;
    w.p = next, next += block * n;
    w.square = next, next += block * n;
    w.sums = next, next += block * m;
    w.squares = next, next += block * m;
    w.in[0] = next, next += block * m;
    w.in[1] = next;
    read_head(x, limited);
    for (int64_t i0 = 0; !st && i0 < a->q_len; i0 += block) {
      const int64_t left = a->q_len - i0;
      st = limit_block(x, &w, i0, left < block ? left : block);
    }
  }
  assay_free(all);
  assay_free(w.rows);
  return st;
}

assay_status_t assay_attention_limits(const assay_eval_t* c, const assay_attention_t* a) {
  enum { BLOCK = 128, SCORES = 1 << 20 };
  if (a->q_len == 0 || a->q_heads == 0 || a->batch == 0) return NULL;
  int64_t block = a->kv_len > 0 ? SCORES / a->kv_len : BLOCK;
  block = block < 1 ? 1 : block > BLOCK ? BLOCK : block;
  if (block > a->q_len) block = a->q_len;
  const assay_rounding_t* r = assay_running_bound_rounding(c);
  // The scale is one more product, or one of each operand's.
  const assay_steps_t steps = assay_rounding_steps(r);
  const assay_factor_t scale = {3 * steps.u, 3 * steps.u};
  const rules_t rules = {r, steps,
                         assay_factor_add(assay_bound_sum(r, (double)a->head_size), scale),
                         assay_format_info(r->accumulator)->max};
  const int64_t heads = a->batch * a->q_heads;
  assay_status_t st = NULL;
#pragma omp parallel for schedule(dynamic) if (heads > 1)
  for (int64_t t = 0; t < heads; t++) {
    head_t x = {.c = c, .a = a, .rules = &rules, .b = t / a->q_heads, .h = t % a->q_heads};
    x.kv = x.h / (a->q_heads / a->kv_heads);
    x.q = a->q.data + x.b * a->q.batch + x.h * a->q.head;
    x.k = a->k.data + x.b * a->k.batch + x.kv * a->k.head;
    x.v = a->v.data + x.b * a->v.batch + x.kv * a->v.head;
    x.y = a->y.data + x.b * a->y.batch + x.h * a->y.head;
    assay_status_t mine = limit_head(&x, block);
    if (mine) {
#pragma omp critical(assay_attention_limits)
      st = assay_status_join(st, mine);
    }
  }
  return st;
}
