// Attention as one layer: scores are made, and used up, in tiles that stay in the cache.
//
// For a tile of queries the keys come in blocks; with each the rows' maxima may grow, and what has
// been summed so far is scaled down to the new ones (online softmax: M. Milakov and N. Gimelshein,
// Online normalizer calculation for softmax, 2018; T. Dao et al., FlashAttention, 2022). Blocks are
// the same for any number of threads, and each head stands by itself.
#include <math.h>
#include <string.h>

#include "backends/cpu/constants.h"
#include "backends/cpu/convert.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/vmath/vmath.h"
#include "base/alloc.h"
#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

enum { QUERIES = 48, KEYS = 256, PARTS = 32, LANES = 16 };

// Where (batch, head, row) of an operand begins; its channels are neighbours.
typedef struct heads {
  int index;  // of the layer's inputs or outputs
  int64_t batch, head, row;
} heads_t;

typedef struct attention {
  cpu_kernel_t base;
  int64_t batch, q_heads, kv_heads, q_len, kv_len, size, v_size;
  heads_t q, k, v, y;
  float scale, softcap;               // softcap 0: none
  int64_t left_window, right_window;  // -1: unbounded
  int mask;                           // -1: none
  int64_t mask_strides[4];            // by batch, head, query, key
  int64_t k_packed, v_packed;         // floats of one head
} attention_t;

static int64_t padded(int64_t n) { return (n + CPU_PANEL - 1) / CPU_PANEL * CPU_PANEL; }

// ---- rows of scores -------------------------------------------------------------------------

CLONES
static void scale_row(float* s, int64_t n, float scale) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) s[i] *= scale;
}
CLONES
static void divide_row(float* s, int64_t n, float by) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) s[i] /= by;
}
static void cap_row(float* s, int64_t n, float cap) {
  divide_row(s, n, cap);
  cpu_vmath()->function[CPU_V_FLOAT32][CPU_V_TANH](s, NULL, NULL, n, s);
  scale_row(s, n, cap);
}
CLONES
static void add_row(float* s, int64_t n, const float* mask) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) s[i] += mask[i];
}
CLONES
static float largest(const float* x, int64_t n, float m) {
  float lanes[LANES];
  int64_t i = 0;
  for (int k = 0; k < LANES; k++) lanes[k] = m;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++)
      lanes[k] = lanes[k] > x[i + k] || lanes[k] != lanes[k] ? lanes[k] : x[i + k];
  for (int k = 0; i + k < n; k++)
    lanes[k] = lanes[k] > x[i + k] || lanes[k] != lanes[k] ? lanes[k] : x[i + k];
  for (int k = 0; k < LANES; k++) m = m > lanes[k] || m != m ? m : lanes[k];
  return m;
}
CLONES
static float sum_row(const float* x, int64_t n) {
  float lanes[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) lanes[k] += x[i + k];
  for (int k = 0; i + k < n; k++) lanes[k] += x[i + k];
  for (int half = LANES / 2; half; half /= 2)
    for (int k = 0; k < half; k++) lanes[k] += lanes[k + half];
  return lanes[0];
}
static float exponentials(float* x, int64_t n, float m) {
  cpu_vmath()->exp_minus(x, m, n, x);
  return sum_row(x, n);
}

// ---- a tile of queries ----------------------------------------------------------------------

typedef struct tile {
  const attention_t* k;
  const void* const* in;
  const float *keys, *values;  // packed, of this head
  int64_t b, h, first, rows;   // queries
  float *q, *s, *o;            // [rows, size], [rows, KEYS], [rows, padded v_size]
  float m[QUERIES], sum[QUERIES];
} tile_t;

// Elements [at, at + n) of a mask's row, as numbers to add.
static void mask_row(const tile_t* t, int64_t query, int64_t key, int64_t n, float* to) {
  const attention_t* k = t->k;
  const assay_type_t type = k->base.in[k->mask].type;
  const int64_t* s = k->mask_strides;
  const int64_t at = t->b * s[0] + t->h * s[1] + query * s[2] + key * s[3];
  if (s[3])
    cpu_widen(t->in[k->mask], type, at, n, to);
  else
    cpu_widen(t->in[k->mask], type, at, 1, to);
  for (int64_t i = 1; !s[3] && i < n; i++) to[i] = to[0];
  for (int64_t i = 0; type == ASSAY_TYPE_BOOL && i < n; i++) to[i] = to[i] != 0 ? 0 : -INFINITY;
}

// Scores of a row against keys [key, key + n), with everything that is done to them.
static void finish_scores(const tile_t* t, int64_t row, int64_t key, int64_t n, float* s) {
  const attention_t* k = t->k;
  const int64_t query = t->first + row;
  float mask[KEYS];
  scale_row(s, n, k->scale);
  if (k->softcap > 0) cap_row(s, n, k->softcap);
  if (k->mask >= 0) {
    mask_row(t, query, key, n, mask);
    add_row(s, n, mask);
  }
  for (int64_t i = 0; k->right_window >= 0 && i < n; i++)
    if (key + i > query + k->right_window) s[i] = -INFINITY;
  for (int64_t i = 0; k->left_window >= 0 && i < n; i++)
    if (key + i < query - k->left_window) s[i] = -INFINITY;
}

// One more block of keys.
static void add_block(tile_t* t, int64_t key, int64_t n) {
  const attention_t* k = t->k;
  const int64_t width = padded(k->v_size);
  for (int64_t c = 0; c < n; c += CPU_PANEL)
    cpu_gemm_panel(t->rows, k->size, t->q, k->size, t->keys + (key + c) * k->size, t->s + c, KEYS,
                   false);
  for (int64_t i = 0; i < t->rows; i++) {
    float *s = t->s + i * KEYS, *o = t->o + i * width;
    finish_scores(t, i, key, n, s);
    const float m = largest(s, n, t->m[i]), by = m == -INFINITY ? 0 : m;
    const float sum = exponentials(s, n, by);
    float kept;
    cpu_vmath()->exp_minus(&t->m[i], by, 1, &kept);
    if (key) {
      t->sum[i] = t->sum[i] * kept + sum;
      scale_row(o, width, kept);
    } else {
      t->sum[i] = sum;
      memset(o, 0, (size_t)width * sizeof *o);
    }
    t->m[i] = m;
  }
  for (int64_t c = 0; c < width; c += CPU_PANEL)
    cpu_gemm_panel(t->rows, n, t->s, KEYS, t->values + c * k->kv_len + key * CPU_PANEL, t->o + c,
                   width, true);
}

static int64_t start_of(const heads_t* h, int64_t batch, int64_t head, int64_t row) {
  return batch * h->batch + head * h->head + row * h->row;
}

static void run_tile(tile_t* t, void* const* out) {
  const attention_t* k = t->k;
  const int64_t width = padded(k->v_size);
  for (int64_t i = 0; i < t->rows; i++) {
    t->m[i] = -INFINITY;
    cpu_widen(t->in[k->q.index], k->base.in[k->q.index].type,
              start_of(&k->q, t->b, t->h, t->first + i), k->size, t->q + i * k->size);
  }
  // Keys behind the last that any of the queries sees are masked for all.
  int64_t seen = k->kv_len;
  if (k->right_window >= 0 && k->right_window < seen - (t->first + t->rows - 1) - 1)
    seen = t->first + t->rows + k->right_window;
  for (int64_t key = 0; key < seen; key += KEYS)
    add_block(t, key, seen - key < KEYS ? seen - key : KEYS);
  for (int64_t i = 0; i < t->rows; i++) {
    float* o = t->o + i * width;
    // With every key masked a query gives zeros.
    scale_row(o, k->v_size, t->m[i] == -INFINITY ? 0 : 1 / t->sum[i]);
    cpu_narrow(o, k->v_size, k->base.out[0].type, start_of(&k->y, t->b, t->h, t->first + i),
               out[0]);
  }
}

// ---- running --------------------------------------------------------------------------------

// The scratch memory: all heads' keys and values, then what each part works with.
static int64_t part_size(const attention_t* k) {
  return QUERIES * (k->size + KEYS + padded(k->v_size));
}

static void pack_head(const attention_t* k, const void* const* in, int64_t i, float* rows,
                      float* to) {
  const int64_t b = i / k->kv_heads, h = i % k->kv_heads;
  // In pieces of one panel of keys; rows: CPU_PANEL of the wider one.
  for (int64_t key = 0; key < k->kv_len; key += CPU_PANEL) {
    const int64_t n = k->kv_len - key < CPU_PANEL ? k->kv_len - key : CPU_PANEL;
    for (int64_t r = 0; r < n; r++)
      cpu_widen(in[k->k.index], k->base.in[k->k.index].type, start_of(&k->k, b, h, key + r),
                k->size, rows + r * k->size);
    cpu_gemm_pack(rows, 1, k->size, k->size, n, to + key * k->size);
  }
  float* values = to + k->k_packed;
  const int64_t width = padded(k->v_size);
  for (int64_t key = 0; key < k->kv_len; key++) {
    memset(rows, 0, (size_t)width * sizeof *rows);
    cpu_widen(in[k->v.index], k->base.in[k->v.index].type, start_of(&k->v, b, h, key), k->v_size,
              rows);
    for (int64_t c = 0; c < width; c += CPU_PANEL)
      memcpy(values + c * k->kv_len + key * CPU_PANEL, rows + c, CPU_PANEL * sizeof *rows);
  }
}

static assay_status_t run(cpu_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const attention_t* k = (const attention_t*)base;
  const int64_t kv = k->batch * k->kv_heads, head = k->k_packed + k->v_packed;
  const int64_t tiles = (k->q_len + QUERIES - 1) / QUERIES, all = k->batch * k->q_heads * tiles;
  float *packed = scratch, *own = packed + kv * head;
  int parts =
      cpu_threads(k->batch * k->q_heads * k->q_len * k->kv_len * ((k->size + k->v_size) / 8 + 20));
  if (parts > PARTS) parts = PARTS;
#pragma omp parallel num_threads(parts) if (parts > 1)
  {
#pragma omp for schedule(static, 1)
    for (int p = 0; p < parts; p++)
      for (int64_t i = kv * p / parts; i < kv * (p + 1) / parts; i++)
        pack_head(k, in, i, own + p * part_size(k), packed + i * head);
#pragma omp for schedule(static, 1)
    for (int p = 0; p < parts; p++) {
      float* at = own + p * part_size(k);
      for (int64_t i = all * p / parts; i < all * (p + 1) / parts; i++) {
        const int64_t b = i / tiles / k->q_heads, h = i / tiles % k->q_heads;
        const int64_t first = i % tiles * QUERIES, left = k->q_len - first;
        const float* keys = packed + (b * k->kv_heads + h / (k->q_heads / k->kv_heads)) * head;
        tile_t t = {.k = k,
                    .in = in,
                    .keys = keys,
                    .values = keys + k->k_packed,
                    .b = b,
                    .h = h,
                    .first = first,
                    .rows = left < QUERIES ? left : QUERIES,
                    .q = at,
                    .s = at + QUERIES * k->size,
                    .o = at + QUERIES * (k->size + KEYS)};
        run_tile(&t, out);
      }
    }
  }
  return NULL;
}

static void destroy(cpu_kernel_t* k) { assay_free(k); }

// ---- which layers ------------------------------------------------------------------------------

// An operand [batch, heads, rows, channels], or [batch, rows, heads * channels].
static bool read_heads(const cpu_operand_t* o, int index, int64_t heads, heads_t* at,
                       int64_t dims[4]) {
  if (!o || !cpu_is_float(o->type) || (o->rank != 3 && o->rank != 4)) return false;
  const bool packed = o->rank == 3;
  if (packed && (heads <= 0 || o->dims[2] % heads)) return false;
  dims[0] = o->dims[0];
  dims[1] = packed ? heads : o->dims[1];
  dims[2] = packed ? o->dims[1] : o->dims[2];
  dims[3] = packed ? o->dims[2] / heads : o->dims[3];
  const int64_t row = packed ? o->dims[2] : dims[3];
  *at = (heads_t){.index = index,
                  .batch = dims[1] * dims[2] * dims[3],
                  .head = packed ? dims[3] : dims[2] * dims[3],
                  .row = row};
  return true;
}

static bool read_mask(const cpu_layer_t* l, const assay_node_t* n, size_t i, attention_t* k) {
  const int64_t to[4] = {k->batch, k->q_heads, k->q_len, k->kv_len};
  k->mask = -1;
  if (i >= n->n_inputs || !n->inputs[i]) return true;
  const cpu_operand_t* o = cpu_input(l, n->inputs[i]);
  if (!o || o->rank > 4 || (!cpu_is_float(o->type) && o->type != ASSAY_TYPE_BOOL)) return false;
  int64_t step = 1;
  for (int d = 3; d >= 0; d--) {
    const int from = d - (4 - o->rank);
    const int64_t size = from < 0 ? 1 : o->dims[from];
    if (size != 1 && size != to[d]) return false;
    k->mask_strides[d] = size == 1 ? 0 : step;
    step *= size;
  }
  k->mask = (int)(o - l->in);
  if (k->base.in[k->mask].type) return false;  // one input in one form
  k->base.in[k->mask] = (cpu_form_t){o->type, CPU_PLAIN};
  return true;
}

static bool left_out(const cpu_layer_t* l, const assay_node_t* n, size_t first, size_t end) {
  for (size_t i = first; i < end && i < n->n_inputs; i++)
    if (n->inputs[i]) return false;
  for (size_t i = 1; i < l->n_out; i++)
    if (l->out[i].value) return false;
  return true;
}

// Source: ONNX Attention 23 and later, without caches; com.microsoft MultiHeadAttention of three
// separate inputs.
static bool read_node(const cpu_layer_t* l, const assay_node_t* n, attention_t* k) {
  const bool onnx = !*n->domain && strcmp(n->op_type, "Attention") == 0;
  const bool ms =
      strcmp(n->domain, "com.microsoft") == 0 && strcmp(n->op_type, "MultiHeadAttention") == 0;
  int64_t q[4], kd[4], v[4], y[4];
  if ((!onnx && !ms) || n->n_inputs < 3 || !l->n_out || !l->out[0].value) return false;
  const cpu_operand_t *o[3], *out = &l->out[0];
  for (size_t i = 0; i < 3; i++) o[i] = cpu_input(l, n->inputs[i]);
  const int64_t qh = assay_attr_i64(n, onnx ? "q_num_heads" : "num_heads", 0);
  const int64_t kvh = onnx ? assay_attr_i64(n, "kv_num_heads", 0) : qh;
  if (!left_out(l, n, onnx ? 4 : 3, n->n_inputs) || !o[0] || !o[1] || !o[2] ||
      (ms && (o[0]->rank != 3 || o[1]->rank != 3 || o[2]->rank != 3)) ||
      !read_heads(o[0], (int)(o[0] - l->in), qh, &k->q, q) ||
      !read_heads(o[1], (int)(o[1] - l->in), kvh, &k->k, kd) ||
      !read_heads(o[2], (int)(o[2] - l->in), kvh, &k->v, v) || out->rank != o[0]->rank ||
      !read_heads(out, 0, q[1], &k->y, y))
    return false;
  k->batch = q[0];
  k->q_heads = q[1];
  k->kv_heads = kd[1];
  k->q_len = q[2];
  k->kv_len = kd[2];
  k->size = q[3];
  k->v_size = v[3];
  if (!out->size || !k->kv_len || !k->size || kd[0] != q[0] || v[0] != q[0] || v[1] != kd[1] ||
      v[2] != kd[2] || kd[3] != q[3] || !kd[1] || q[1] % kd[1] || y[0] != q[0] || y[1] != q[1] ||
      y[2] != q[2] || y[3] != v[3])
    return false;
  for (size_t i = 0; i < 3; i++) k->base.in[o[i] - l->in] = (cpu_form_t){o[i]->type, CPU_PLAIN};
  k->base.out[0] = (cpu_form_t){out->type, CPU_PLAIN};
  const double otherwise = 1 / sqrt((double)k->size);
  const double scale = assay_attr_f64(n, "scale", onnx ? otherwise : 0);
  k->scale = (float)(ms && scale == 0 ? otherwise : scale);
  k->softcap = onnx ? (float)fmax(assay_attr_f64(n, "softcap", 0), 0) : 0;
  k->left_window = onnx ? assay_attr_i64(n, "left_window_size", -1) : -1;
  k->right_window = onnx ? assay_attr_i64(n, "right_window_size", -1) : -1;
  const bool causal = assay_attr_i64(n, onnx ? "is_causal" : "unidirectional", 0) != 0;
  if (causal) k->right_window = 0;
  const int64_t precision = assay_attr_i64(n, "softmax_precision", ASSAY_TYPE_FLOAT);
  if (k->left_window < -1 || k->right_window < -1 || k->left_window > INT32_MAX ||
      k->right_window > INT32_MAX || (precision && precision != ASSAY_TYPE_FLOAT) || (ms && causal))
    return false;
  if (ms) return k->mask = -1, true;
  return read_mask(l, n, 3, k);
}

static bool find_sizes(attention_t* k) {
  int64_t n, kv;
  k->k_packed = padded(k->kv_len) * k->size;
  k->v_packed = padded(k->v_size) * k->kv_len;
  if (!assay_mul_i64(k->batch, k->kv_heads, &kv) ||
      !assay_mul_i64(kv, k->k_packed + k->v_packed, &n) || n > (INT64_C(1) << 40))
    return false;
  k->base.scratch = (size_t)(n + PARTS * part_size(k)) * sizeof(float);
  // A part's memory holds a panel's rows while heads are packed.
  return k->size <= 1024 && k->v_size <= 1024;
}

static assay_status_t make(const cpu_layer_t* l, cpu_kernel_t** out) {
  attention_t* k = NULL;
  if (l->layer->n_nodes != 1) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (cpu_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  if (!read_node(l, l->layer->nodes[0], k) || !find_sizes(k)) return destroy(&k->base), NULL;
  *out = &k->base;
  return NULL;
}

const cpu_tactic_t cpu_tactic_attention = {
    .name = "attention",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .function_ulps = 4},
};
