// Layers of attention: scores of 64 keys at a time, with maxima that grow and sums that are scaled
// down to them (T. Dao, FlashAttention-2, 2023). Of 16-bit floats both products are the tensor
// cores', and weights are rounded to the type before the second; else all is in float32. Where a
// GPU's powers of 2 are known, they weigh scores of 16 bits (kernels/attention/exp2_weights.h).
#include "backends/emu/like/attention.h"

#include <math.h>

#include "backends/emu/like/exp2.h"
#include "backends/layers/attention.h"
#include "backends/vmath/lanes_plain.h"
#include "backends/vmath/negative_exp.h"
#include "backends/vmath/vmath.h"
#include "base/alloc.h"

// Queries of a block skip the keys that none of them sees.
enum { KEYS = 64, QUERIES = 16, TENSOR_SIZE = 128, TENSOR_LANES = 4, FMA_LANES = 16 };
enum { WIDE_LANES = 8, MAX_NARROW = 512 };  // columns of values
// In float32 blocks of keys are as large as this where a GPU's shared memory holds them.
enum { MIN_SHARED = 99 << 10 };
#define NO_SCORE (-HUGE_VALF)

typedef struct job {
  const attention_layer_t* a;
  emu_arithmetic_t arithmetic;
  bool tensor;
  bool exp2;            // with `tensor`
  assay_format_t type;  // of weights, with `tensor`
  int64_t period;
  const float *q, *k, *v, *masks[ASSAY_ATTENTION_MASKS];
  float* y;
  // Of the head at hand, with zeros up to whole blocks: keys, and columns of values.
  int64_t head, keys;
  emu_rows_t of_k, of_v;
} job_t;

// A query that a thread works on, and the weights of a block of keys.
typedef struct room {
  emu_rows_t q, w;
  float *terms, *sums;
} query_t;

// ---- places -------------------------------------------------------------------------------------

static int64_t head_start(const attention_layer_t* a, const attention_view_t* v, int64_t head) {
  int64_t at = v->at;
  for (int d = a->n_batch - 1; d >= 0; d--) {
    at += head % a->batch[d] * v->batch[d];
    head /= a->batch[d];
  }
  return at;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// The keys that a query sees: [*low, *high).
static void seen_by(const job_t* j, int64_t query, int64_t* low, int64_t* high) {
  const attention_layer_t* a = j->a;
  const int64_t own = query % j->period;
  *low = 0;
  *high = a->kv_len;
  if (!a->windowed) return;
  *low = most(own - a->left, 0);
  *high = least(own + a->right + 1, a->kv_len);
}

// Those that the block of queries around it goes through.
static void gone_through(const job_t* j, int64_t query, int64_t* low, int64_t* high) {
  const attention_layer_t* a = j->a;
  const int64_t first = query / QUERIES * QUERIES, last = least(first + QUERIES, a->q_len) - 1;
  *low = 0;
  *high = a->kv_len;
  if (!a->windowed || first / j->period != last / j->period) return;
  const int64_t from = first % j->period - a->left, to = last % j->period + a->right + 1;
  if (from > 0) *low = least(from, a->kv_len - 1);
  if (to < *high) *high = most(to, 1);
}

// ---- scores -------------------------------------------------------------------------------------

static float mask_at(const job_t* j, int i, int64_t row, int64_t key) {
  const attention_mask_t* m = &j->a->masks[i];
  int64_t at = key * m->key;
  for (int d = m->rank - 1; d >= 0; d--) {
    at += row % m->dims[d] * m->strides[d];
    row /= m->dims[d];
  }
  return j->masks[i][at];
}

// Whether a lone mask is added to products while these are scaled.
static bool adds_scaled(const job_t* j) {
  const attention_layer_t* a = j->a;
  return j->exp2 && a->n_masks == 1 && a->masks[0].kind == ASSAY_ATTENTION_ADDED && !a->windowed &&
         !(a->cap > 0);
}

// A score behind its scale, cap and masks. row: of all scores.
static float masked(const job_t* j, int64_t row, int64_t key, float s) {
  const attention_layer_t* a = j->a;
  if (adds_scaled(j)) return fmaf(s, a->scale, mask_at(j, 0, row, key));
  s *= a->scale;
  if (a->cap > 0) {
    float x = s / a->cap, t;
    cpu_vmath()->function[CPU_V_FLOAT32][CPU_V_TANH](&x, &x, NULL, 1, &t);
    s = t * a->cap;
  }
  for (int i = 0; i < a->n_masks; i++) {
    const attention_mask_t* m = &a->masks[i];
    const float given = mask_at(j, i, row, key);
    if (m->kind == ASSAY_ATTENTION_ADDED)
      s += given;
    else
      s = (given != 0) == (m->kind == ASSAY_ATTENTION_KEEPS) ? s : m->fill;
  }
  return s;
}

// exp(s - m), where m is the largest score so far; below the normal numbers it is nothing.
static float weight(float s, float m) { return exp_of_negative(s - (m == NO_SCORE ? 0 : m)); }

// ---- weights by powers of 2 ---------------------------------------------------------------------

// Scores s weigh 2^(s log2(e) - power), the exponent rounded to a step. `power` is about log2(e)
// times `score`, the largest one at some time: another's turn comes where it is larger by GROWTH.
typedef struct reference {
  float score, power;  // -infinity and 0: none yet
} reference_t;

static const float LOG2_E = 0x1.715476p+0F;
// 8 / log2(e), but nothing in bf16, where values may be as large as float32's.
static const float GROWTH = 0x1.62e430p+2F;
static const float SHIFT = 1152, NEAR = 896;  // where float32's steps are 1 / EMU_EXP2_STEPS
enum { MAX_STEPPED = 1024 };                  // from there on float32's are none smaller

// What has been summed up is to be multiplied by.
static float refer_to(const job_t* j, reference_t* r, float top) {
  if (!(top - r->score > (j->type == ASSAY_FORMAT_BF16 ? 0 : GROWTH))) return 1;
  const float product = top * LOG2_E, shift = product < 0 ? 2 * MAX_STEPPED : MAX_STEPPED;
  const bool steps = fabsf(product) < MAX_STEPPED;
  const float power = steps ? fmaf(top, LOG2_E, shift) - shift : product;
  const float kept =
      r->score == NO_SCORE ? 1 : emu_exp2(fmaxf(r->power - power, -(float)MAX_STEPPED));
  *r = (reference_t){top, power};
  return kept;
}

static float weight_by(const reference_t* r, float s) {
  const bool near = fabsf(r->power) <= NEAR;
  const float shift = near ? SHIFT - r->power : SHIFT;
  return emu_exp2(fmaf(near ? s : s - r->score, LOG2_E, shift) - SHIFT);
}

// ---- sums of weights ----------------------------------------------------------------------------

// Each lane adds its own weights: four of two neighbours in turn, or every so manieth. Then lanes
// add up: four to the next one first, others to the farthest first.
static float add_lanes(float* part, int lanes) {
  for (int far = lanes / 2; far; far /= 2)
    for (int lane = 0; lane < far; lane++) part[lane] += part[lane + far];
  return part[0];
}

static float add_up(const job_t* j, float* part, int lanes) {
  if (j->tensor) return part[0] + part[1] + (part[2] + part[3]);
  return add_lanes(part, lanes);
}

// Sums of weights: lanes of multiply-adds keep their own until the end, but for heads so wide that
// another kernel takes them; so do the four lanes of a query that weigh by powers of 2.
typedef struct weights {
  int lanes;
  bool kept;
  float part[FMA_LANES], sum;
} weights_t;

static weights_t no_weights(const job_t* j) {
  const bool wide = j->a->v_size > MAX_NARROW;
  return (weights_t){.lanes = j->tensor ? TENSOR_LANES
                              : wide    ? WIDE_LANES
                                        : FMA_LANES,
                     .kept = j->tensor ? j->exp2 : !wide};
}

static void add_block(const job_t* j, weights_t* t, const float* w, float kept) {
  float part[FMA_LANES] = {0};
  for (int key = 0; key < KEYS; key++) part[j->tensor ? key % 8 / 2 : key % t->lanes] += w[key];
  if (!t->kept) t->sum = fmaf(t->sum, kept, add_up(j, part, t->lanes));
  for (int lane = 0; t->kept && lane < t->lanes; lane++)
    t->part[lane] =
        j->exp2 ? t->part[lane] * kept + part[lane] : fmaf(t->part[lane], kept, part[lane]);
}

static float end_weights(const job_t* j, weights_t* t) {
  return t->kept ? add_up(j, t->part, t->lanes) : t->sum;
}

// ---- a query ------------------------------------------------------------------------------------

// Rows [first, first + n) of some.
static emu_rows_t rows_from(const emu_rows_t* r, int64_t first, int64_t n) {
  emu_rows_t part = *r;
  const int64_t at = first * r->step;
  part.n = n;
  part.value += at;
  part.finite += first;
  if (part.mantissa) part.mantissa += at;
  if (part.exponent) part.exponent += at;
  return part;
}

// Of each row the terms from one on.
static emu_rows_t terms_from(const emu_rows_t* r, int64_t first) {
  emu_rows_t part = *r;
  part.value += first;
  if (part.mantissa) part.mantissa += first;
  if (part.exponent) part.exponent += first;
  return part;
}

// Scores of the block of keys that begins at `key`.
static void score(const job_t* j, const query_t* r, int64_t query, int64_t key, float* s) {
  const emu_rows_t keys = rows_from(&j->of_k, key, KEYS);
  int64_t low, high;
  seen_by(j, query, &low, &high);
  for (int i = 0; i < KEYS; i++) s[i] = 0;
  emu_rows_multiply(&j->arithmetic, &r->q, 0, &keys, s);
  for (int i = 0; i < KEYS; i++) {
    const bool seen = key + i >= low && key + i < high;
    s[i] = seen ? masked(j, j->head * j->a->q_len + query, key + i, s[i]) : NO_SCORE;
  }
}

// sums += weights times the values of these keys.
static void add_values(const job_t* j, query_t* r, int64_t key, const float* w) {
  const emu_rows_t values = terms_from(&j->of_v, key);
  float rounded[KEYS];
  for (int i = 0; i < KEYS; i++)
    rounded[i] =
        j->tensor ? (float)assay_format_round(j->type, (double)w[i], ASSAY_OVERFLOW_IEEE) : w[i];
  // A chain of multiply-adds ends with the last key; tensor cores go on with zeros.
  r->w.k = j->tensor ? KEYS : least(KEYS, j->a->kv_len - key);
  emu_rows_set(&j->arithmetic, &r->w, 0, rounded);
  emu_rows_multiply(&j->arithmetic, &r->w, 0, &values, r->sums);
}

// Scores of a block of keys become weights. What has been summed up is to be multiplied by.
static float weigh(float* m, float* s) {
  float top = *m;
  for (int i = 0; i < KEYS; i++)
    if (s[i] > top) top = s[i];
  for (int i = 0; i < KEYS; i++) s[i] = weight(s[i], top);
  const float kept = weight(*m, top);
  *m = top;
  return kept;
}

static float weigh_by_powers(const job_t* j, reference_t* m, float* s) {
  float top = NO_SCORE;
  for (int i = 0; i < KEYS; i++)
    if (s[i] > top) top = s[i];
  const float kept = refer_to(j, m, top);
  for (int i = 0; i < KEYS; i++) s[i] = weight_by(m, s[i]);
  return kept;
}

static void attend(const job_t* j, query_t* r, int64_t query) {
  const attention_layer_t* a = j->a;
  const float* q = j->q + head_start(a, &a->q, j->head) + query * a->q.row;
  float s[KEYS];
  reference_t m = {NO_SCORE, 0};
  weights_t weights = no_weights(j);
  int64_t low, high;
  gone_through(j, query, &low, &high);
  for (int64_t c = 0; c < a->size; c++) r->terms[c] = q[c * a->q.column];
  emu_rows_set(&j->arithmetic, &r->q, 0, r->terms);
  for (int64_t c = 0; c < a->v_size; c++) r->sums[c] = 0;
  for (int64_t key = low / KEYS * KEYS; key < high; key += KEYS) {
    score(j, r, query, key, s);
    const float kept = j->exp2 ? weigh_by_powers(j, &m, s) : weigh(&m.score, s);
    add_block(j, &weights, s, kept);
    for (int64_t c = 0; c < a->v_size; c++) r->sums[c] *= kept;
    add_values(j, r, key, s);
  }
  const float sum = end_weights(j, &weights);
  const float by = a->zero_unseen && sum == 0 ? 0 : 1 / sum;
  float* y = j->y + head_start(a, &a->y, j->head) + query * a->y.row;
  for (int64_t c = 0; c < a->v_size; c++) y[c * a->y.column] = r->sums[c] * by;
}

// ---- a head -------------------------------------------------------------------------------------

static void free_query(query_t* r) {
  emu_rows_deinit(&r->q);
  emu_rows_deinit(&r->w);
  assay_free(r->terms);
  assay_free(r->sums);
}

static assay_status_t make_query(const job_t* j, query_t* r) {
  const attention_layer_t* a = j->a;
  ASSAY_TRY(emu_rows_create(&j->arithmetic, 1, a->size, &r->q));
  ASSAY_TRY(emu_rows_create(&j->arithmetic, 1, KEYS, &r->w));
  ASSAY_TRY(assay_new_array((size_t)a->size, sizeof *r->terms, &r->terms));
  return assay_new_array((size_t)a->v_size, sizeof *r->sums, &r->sums);
}

static void take_head(job_t* j, int64_t head, float* terms) {
  const attention_layer_t* a = j->a;
  const float* k = j->k + head_start(a, &a->k, head);
  const float* v = j->v + head_start(a, &a->v, head);
  j->head = head;
  for (int64_t i = 0; i < j->keys; i++) {
    for (int64_t c = 0; c < a->size; c++)
      terms[c] = i < a->kv_len ? k[i * a->k.row + c * a->k.column] : 0;
    emu_rows_set(&j->arithmetic, &j->of_k, i, terms);
  }
  for (int64_t c = 0; c < a->v_size; c++) {
    for (int64_t i = 0; i < j->keys; i++)
      terms[i] = i < a->kv_len ? v[i * a->v.row + c * a->v.column] : 0;
    emu_rows_set(&j->arithmetic, &j->of_v, c, terms);
  }
}

static assay_status_t attend_head(const job_t* j) {
  assay_status_t st = NULL;
#pragma omp parallel
  {
    query_t r = {0};
    assay_status_t own = make_query(j, &r);
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < j->a->q_len; i++)
      if (!own) attend(j, &r, i);
    free_query(&r);
#pragma omp critical(emu_attention)
    {
      if (!st)
        st = own;
      else
        assay_status_free(own);
    }
  }
  return st;
}

static assay_status_t attend_all(job_t* j) {
  const attention_layer_t* a = j->a;
  float* terms = NULL;
  assay_status_t st = emu_rows_create(&j->arithmetic, j->keys, a->size, &j->of_k);
  if (!st) st = emu_rows_create(&j->arithmetic, a->v_size, j->keys, &j->of_v);
  if (!st) st = assay_new_array((size_t)most(a->size, j->keys), sizeof *terms, &terms);
  for (int64_t head = 0; !st && head < a->heads; head++) {
    take_head(j, head, terms);
    st = attend_head(j);
  }
  emu_rows_deinit(&j->of_k);
  emu_rows_deinit(&j->of_v);
  assay_free(terms);
  return st;
}

// ---- a layer ------------------------------------------------------------------------------------

static bool is_all(const attention_layer_t* a, assay_type_t type) {
  return a->q.type == type && a->k.type == type && a->v.type == type && a->y.type == type;
}

// Whether blocks of the float32 kernel have KEYS keys on every GPU.
static bool fits(const attention_layer_t* a) {
  const int64_t wide = most(a->size, a->v_size);
  return wide <= INT16_MAX &&
         4 * (QUERIES * (a->size + a->v_size + KEYS) + KEYS * (wide + 1)) <= MIN_SHARED;
}

static assay_status_t get_operands(emu_operands_t* o, job_t* j) {
  const attention_layer_t* a = j->a;
  ASSAY_TRY(emu_operand_get(o, a->q.index, ASSAY_LAYOUT_PLAIN, &j->q));
  ASSAY_TRY(emu_operand_get(o, a->k.index, ASSAY_LAYOUT_PLAIN, &j->k));
  ASSAY_TRY(emu_operand_get(o, a->v.index, ASSAY_LAYOUT_PLAIN, &j->v));
  for (int i = 0; i < a->n_masks; i++)
    ASSAY_TRY(emu_operand_get(o, a->masks[i].index, ASSAY_LAYOUT_PLAIN, &j->masks[i]));
  return NULL;
}

assay_status_t emu_attention_run(emu_operands_t* o, const emu_gpu_t* gpu, float* y, bool* ok) {
  attention_layer_t a;
  ASSAY_TRY(attention_read(o->l, &a, ok));
  if (!*ok) return NULL;
  job_t j = {.a = &a, .y = y, .period = a.period ? a.period : a.q_len};
  j.tensor = a.size <= TENSOR_SIZE && a.v_size <= TENSOR_SIZE &&
             (is_all(&a, ASSAY_TYPE_FLOAT16) || is_all(&a, ASSAY_TYPE_BFLOAT16));
  j.exp2 = j.tensor && gpu->exp2;
  // No kernel of ours has one in tf32.
  *ok = (j.tensor || fits(&a)) && o->l->layer->format != ASSAY_FORMAT_TF32 &&
        a.kv_len < INT32_MAX / 2;
  if (!*ok) return NULL;
  j.type = assay_type_format(a.q.type);
  j.keys = (a.kv_len + KEYS - 1) / KEYS * KEYS;
  j.arithmetic = emu_arithmetic(gpu, j.tensor ? j.type : ASSAY_FORMAT_FP32);
  ASSAY_TRY(get_operands(o, &j));
  return attend_all(&j);
}
