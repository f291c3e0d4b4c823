// Runs attention (attention.h): shares out the work, packs, and what tiles do in float32.
#include <math.h>
#include <string.h>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/threads.h"
#include "backends/vmath/vmath.h"
#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

enum { BLOCK = 16 };  // rows and columns that are turned at a time

// ---- scores ------------------------------------------------------------------------------------

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

int64_t attention_mask_at(const attention_t* k, const attention_tile_t* t, int i, int64_t row,
                          int64_t key) {
  const attention_mask_t* m = &k->layer.masks[i];
  int64_t at = key * m->key, left = t->head * k->layer.q_len + t->first + row;
  for (int d = m->rank - 1; d >= 0 && left; d--) {
    if (m->strides[d]) at += left % m->dims[d] * m->strides[d];
    left /= m->dims[d];
  }
  return at;
}

void attention_masks(const attention_t* k, const attention_tile_t* t, int64_t row, int64_t key,
                     int64_t n, float* s) {
  scale_row(s, n, k->layer.scale);
  if (k->layer.cap > 0) cap_row(s, n, k->layer.cap);
  for (int i = 0; i < k->layer.n_masks; i++) {
    const attention_mask_t* m = &k->layer.masks[i];
    const int64_t at = attention_mask_at(k, t, i, row, key), step = m->key;
    if (m->kind == ASSAY_ATTENTION_ADDED) {
      const float* x = (const float*)t->in[m->index] + at;
      for (int64_t j = 0; j < n; j++) s[j] += x[j * step];
    } else {
      const uint8_t* x = (const uint8_t*)t->in[m->index] + at;
      const bool keeps = m->kind == ASSAY_ATTENTION_KEEPS;
      for (int64_t j = 0; j < n; j++) s[j] = (x[j * step] != 0) == keeps ? s[j] : m->fill;
    }
  }
}

attention_span_t attention_span(const attention_t* k, const attention_tile_t* t, int64_t row,
                                int64_t key, int64_t n) {
  if (!k->layer.windowed) return (attention_span_t){0, n};
  const int64_t own = (t->first + row) % k->layer.period - key;
  const int64_t low = own - k->layer.left, high = own + k->layer.right + 1;
  return (attention_span_t){low < 0 ? 0 : low < n ? low : n, high < 0 ? 0 : high < n ? high : n};
}

// ---- packing -----------------------------------------------------------------------------------

// Whether rows can be read where they lie: side by side, and each from a whole unit on.
static bool lies_in_units(const attention_t* k, const attention_view_t* v) {
  int64_t all = v->at | v->row;
  for (int i = 0; i < k->layer.n_batch; i++) all |= v->batch[i];
  return v->type == k->kind->type && v->column == 1 && all % k->kind->per_unit == 0;
}

typedef uint32_t turn_t __attribute__((vector_size(64), aligned(4), may_alias));

#define LANE(i, s, low) \
  ((low) ? (((i) & (s)) ? 16 + (i) - (s) : (i)) : (((i) & (s)) ? 16 + (i) : (i) + (s)))
#define LANES(s, low)                                                                           \
  LANE(0, s, low), LANE(1, s, low), LANE(2, s, low), LANE(3, s, low), LANE(4, s, low),          \
      LANE(5, s, low), LANE(6, s, low), LANE(7, s, low), LANE(8, s, low), LANE(9, s, low),      \
      LANE(10, s, low), LANE(11, s, low), LANE(12, s, low), LANE(13, s, low), LANE(14, s, low), \
      LANE(15, s, low)
#define STAGE(s)                                             \
  for (int i = 0; i < BLOCK; i++) {                          \
    if (i & (s)) continue;                                   \
    const turn_t a = r[i], b = r[i + (s)];                   \
    r[i] = __builtin_shufflevector(a, b, LANES(s, 1));       \
    r[i + (s)] = __builtin_shufflevector(a, b, LANES(s, 0)); \
  }

// BLOCK rows of BLOCK units each become columns; in four steps, of which each lets squares of half
// the size change places.
CLONES
static void turn(const uint32_t* const* rows, uint32_t* to, int64_t step) {
  turn_t r[BLOCK];
  for (int i = 0; i < BLOCK; i++) r[i] = *(const turn_t*)(const void*)rows[i];
  STAGE(8)
  STAGE(4)
  STAGE(2)
  STAGE(1)
  for (int i = 0; i < BLOCK; i++) *(turn_t*)(void*)(to + i * step) = r[i];
}

// Keys of a head: panels of CPU_PANEL keys, in which a row holds one unit of each. rows: memory for
// BLOCK rows of q_units.
static void pack_keys(const attention_t* k, const void* const* in, int64_t head, uint32_t* rows,
                      uint32_t* to) {
  static const uint32_t zeros[BLOCK];
  const int64_t start = attention_head_start(k, &k->layer.k, head), units = k->q_units;
  const bool direct = k->layer.k.type == k->kind->type && k->layer.k.column == 1 &&
                      k->layer.size % (BLOCK * k->kind->per_unit) == 0;
  for (int64_t key = 0; key < attention_padded(k->layer.kv_len, CPU_PANEL); key += BLOCK) {
    const int64_t n = k->layer.kv_len - key < BLOCK ? k->layer.kv_len - key : BLOCK;
    uint32_t* panel = to + key / CPU_PANEL * CPU_PANEL * units + key % CPU_PANEL;
    const uint32_t* row[BLOCK];
    for (int64_t i = 0; i < n; i++) {
      const int64_t at = start + (key + i) * k->layer.k.row;
      row[i] = (const void*)attention_element(&k->layer.k, in, at);
      if (direct) continue;
      memset(rows + i * units, 0, (size_t)units * sizeof *rows);
      attention_copy_row(k, &k->layer.k, in, at, k->layer.size, rows + i * units);
      row[i] = rows + i * units;
    }
    for (int64_t u = 0; u < units; u += BLOCK) {
      const uint32_t* from[BLOCK];
      for (int64_t i = 0; i < BLOCK; i++) from[i] = i < n ? row[i] + u : zeros;
      turn(from, panel + u * CPU_PANEL, CPU_PANEL);
    }
  }
}

// rows: memory for two rows of values.
static void pack_values(const attention_t* k, const void* const* in, int64_t head, uint32_t* rows,
                        uint32_t* to) {
  const int64_t start = attention_head_start(k, &k->layer.v, head), per = k->kind->per_unit;
  const bool direct = k->layer.v.type == k->kind->type && k->layer.v.column == 1;
  for (int64_t key = 0; key < k->layer.kv_len; key += per) {
    const void* from[2] = {NULL};
    for (int64_t i = 0; i < per && key + i < k->layer.kv_len; i++) {
      const int64_t at = start + (key + i) * k->layer.v.row;
      uint32_t* row = rows + i * attention_padded(k->layer.v_size, CPU_PANEL);
      from[i] = direct ? (const void*)attention_element(&k->layer.v, in, at) : row;
      if (!direct) attention_copy_row(k, &k->layer.v, in, at, k->layer.v_size, row);
    }
    k->kind->pack_values(k, from, key / per, to);
  }
}

// ---- tiles in float32, for any CPU -------------------------------------------------------------

CLONES
static void add_row(float* s, int64_t n, const float* mask) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) s[i] += mask[i];
}
// NaN is none: it makes the row's sum NaN.
CLONES
static float largest(const float* s, int64_t n, float m) {
  float lanes[BLOCK];
  int64_t i = 0;
  for (int j = 0; j < BLOCK; j++) lanes[j] = m;
  for (; i + BLOCK <= n; i += BLOCK)
    for (int j = 0; j < BLOCK; j++) lanes[j] = s[i + j] > lanes[j] ? s[i + j] : lanes[j];
  for (int j = 0; i + j < n; j++) lanes[j] = s[i + j] > lanes[j] ? s[i + j] : lanes[j];
  for (int j = 0; j < BLOCK; j++) m = lanes[j] > m ? lanes[j] : m;
  return m;
}
CLONES
static float sum_row(const float* s, int64_t n) {
  float lanes[BLOCK] = {0};
  int64_t i = 0;
  for (; i + BLOCK <= n; i += BLOCK)
    for (int j = 0; j < BLOCK; j++) lanes[j] += s[i + j];
  for (int j = 0; i + j < n; j++) lanes[j] += s[i + j];
  for (int half = BLOCK / 2; half; half /= 2)
    for (int j = 0; j < half; j++) lanes[j] += lanes[j + half];
  return lanes[0];
}
CLONES
static void drop_subnormal(float* s, int64_t n) {
  const float min = 0x1p-126F;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) s[i] = s[i] < min ? 0 : s[i];
}
// exp(s - m) or 0 (ATTENTION_LEAST_EXPONENT); their sum.
static float exponentials(float* s, int64_t n, float m) {
  cpu_vmath()->exp_minus(s, m, n, s);
  drop_subnormal(s, n);
  return sum_row(s, n);
}

void attention_first_product(const attention_t* k, const attention_tile_t* t, int64_t key,
                             int64_t n) {
  if (k->few) {
    attention_few_scores(k, t, key, n);
    return;
  }
  for (int64_t c = 0; c < n; c += CPU_PANEL)
    cpu_gemm_panel(t->rows, k->layer.size, (const float*)(const void*)t->q, t->q_step,
                   (const float*)(const void*)t->keys + (key + c) * k->q_units, t->s + c,
                   ATTENTION_KEYS, false);
}

void attention_second_product(const attention_t* k, const attention_tile_t* t, int64_t key,
                              int64_t n) {
  const int64_t width = attention_padded(k->layer.v_size, CPU_PANEL);
  if (k->few) {
    attention_few_values(k, t, key, n);
    return;
  }
  for (int64_t c = 0; c < width; c += CPU_PANEL)
    cpu_gemm_panel(t->rows, n, t->s, ATTENTION_KEYS,
                   (const float*)(const void*)t->values + c * k->layer.kv_len + key * CPU_PANEL,
                   t->o + c, width, key > t->begin);
}

static void block(const attention_t* k, attention_tile_t* t, int64_t key, int64_t n) {
  const int64_t width = attention_padded(k->layer.v_size, CPU_PANEL);
  attention_first_product(k, t, key, n);
  for (int64_t i = 0; i < t->rows; i++) {
    float* s = t->s + i * ATTENTION_KEYS;
    if (k->odd_masks) {
      attention_masks(k, t, i, key, n, s);
    } else {
      scale_row(s, n, k->layer.scale);
      for (int j = 0; j < k->layer.n_masks; j++)
        add_row(s, n,
                (const float*)t->in[k->layer.masks[j].index] + attention_mask_at(k, t, j, i, key));
    }
    const attention_span_t seen = attention_span(k, t, i, key, n);
    for (int64_t j = 0; j < seen.low; j++) s[j] = -INFINITY;
    for (int64_t j = seen.high; j < n; j++) s[j] = -INFINITY;
    const float m = largest(s, n, t->m[i]), by = m == -INFINITY ? 0 : m;
    const float sum = exponentials(s, n, by);
    float kept = t->m[i];
    exponentials(&kept, 1, by);
    t->sum[i] = key > t->begin ? t->sum[i] * kept + sum : sum;
    t->m[i] = m;
    if (key > t->begin) scale_row(t->o + i * width, width, kept);
  }
  attention_second_product(k, t, key, n);
}

void attention_pack_row(const attention_t* k, const void* const* rows, int64_t unit, uint32_t* to) {
  for (int64_t c = 0; c < k->layer.v_size; c += CPU_PANEL) {
    const int64_t n = k->layer.v_size - c < CPU_PANEL ? k->layer.v_size - c : CPU_PANEL;
    uint32_t* at = to + c * k->layer.kv_len + unit * CPU_PANEL;
    memcpy(at, (const uint32_t*)rows[0] + c, (size_t)n * sizeof *at);
    if (n < CPU_PANEL) memset(at + n, 0, (size_t)(CPU_PANEL - n) * sizeof *at);
  }
}

const attention_kind_t attention_plain = {
    .type = ASSAY_TYPE_FLOAT, .per_unit = 1, .block = block, .pack_values = attention_pack_row};

// ---- running -----------------------------------------------------------------------------------

bool attention_sizes(attention_t* k) {
  enum { MAX = 1 << 16 };
  if (k->layer.size > MAX || k->layer.v_size > MAX || k->layer.kv_len > INT32_MAX ||
      k->layer.q_len > INT32_MAX)
    return false;
  const int64_t per = k->kind->per_unit, width = attention_padded(k->layer.v_size, CPU_PANEL);
  k->q_units = attention_padded(k->layer.size, BLOCK * per) / per;
  k->few = k->layer.q_len <= ATTENTION_FEW && per == 1;
  k->k_packed = k->few ? 0 : attention_padded(k->layer.kv_len, CPU_PANEL) * k->q_units;
  k->v_packed = k->few ? 0 : (k->layer.kv_len + per - 1) / per * width;
  // Large enough that keys are read seldom, and small enough that scores stay near.
  k->tile = k->layer.q_len <= ATTENTION_TILE ? k->layer.q_len : 24;
  k->tiles = (k->layer.q_len + k->tile - 1) / k->tile;
  // Rows: of queries, or of keys or values while those are packed.
  const int64_t row = k->q_units > width ? k->q_units : width;
  const int64_t rows = k->tile > BLOCK ? k->tile : BLOCK;
  k->part = k->k_packed + k->v_packed + rows * row + k->tile * (ATTENTION_KEYS + width);
  k->part = attention_padded(k->part, BLOCK);
  k->odd_masks = k->layer.cap > 0;
  for (int i = 0; i < k->layer.n_masks; i++)
    k->odd_masks |= k->layer.masks[i].kind != ASSAY_ATTENTION_ADDED || k->layer.masks[i].key != 1;
  const int64_t parts =
      k->layer.heads * k->tiles < ATTENTION_PARTS ? k->layer.heads * k->tiles : ATTENTION_PARTS;
  k->base.scratch = (size_t)(parts * k->part + BLOCK) * sizeof(uint32_t);
  return true;
}

static void write_rows(const attention_t* k, const attention_tile_t* t, void* y) {
  const int64_t width = attention_padded(k->layer.v_size, CPU_PANEL);
  const int64_t start = attention_head_start(k, &k->layer.y, t->head);
  for (int64_t i = 0; i < t->rows; i++) {
    float* o = t->o + i * width;
    const int64_t at = start + (t->first + i) * k->layer.y.row;
    const float by = k->layer.zero_unseen && t->sum[i] == 0 ? 0 : 1 / t->sum[i];
    scale_row(o, k->layer.v_size, by);
    if (k->layer.y.column == 1) {
      cpu_narrow(o, k->layer.v_size, k->layer.y.type, at, y);
      continue;
    }
    for (int64_t c = 0; c < k->layer.v_size; c++)
      cpu_narrow(o + c, 1, k->layer.y.type, at + c * k->layer.y.column, y);
  }
}

// Keys that any of a tile's queries sees; where none sees one, the first.
static attention_span_t seen_by_tile(const attention_t* k, const attention_tile_t* t) {
  attention_span_t all = {k->layer.kv_len, 0};
  for (int64_t r = 0; r < t->rows; r++) {
    const attention_span_t seen = attention_span(k, t, r, 0, k->layer.kv_len);
    if (seen.low >= seen.high) continue;
    if (seen.low < all.low) all.low = seen.low;
    if (seen.high > all.high) all.high = seen.high;
  }
  return all.high ? all : (attention_span_t){0, 1};
}

// Tiles [from, to) of a head.
static void run_head(const attention_t* k, const void* const* in, int64_t head, int64_t from,
                     int64_t to, uint32_t* own, void* y) {
  uint32_t *keys = own, *values = keys + k->k_packed, *rows = values + k->v_packed;
  const int64_t width = attention_padded(k->layer.v_size, CPU_PANEL);
  const int64_t row = k->q_units > width ? k->q_units : width;
  float* s = (float*)(void*)(rows + row * (k->tile > BLOCK ? k->tile : BLOCK));
  const int64_t start = attention_head_start(k, &k->layer.q, head);
  if (!k->few) {
    pack_keys(k, in, head, rows, keys);
    pack_values(k, in, head, rows, values);
  }
  const bool direct = k->layer.size % k->kind->per_unit == 0 && lies_in_units(k, &k->layer.q);
  for (int64_t i = from; i < to; i++) {
    const int64_t first = i * k->tile, left = k->layer.q_len - first;
    attention_tile_t t = {.in = in,
                          .head = head,
                          .first = first,
                          .rows = left < k->tile ? left : k->tile,
                          .keys = keys,
                          .values = values,
                          .q = rows,
                          .q_step = k->q_units,
                          .s = s,
                          .o = s + k->tile * ATTENTION_KEYS,
                          .room = (float*)(void*)(rows + ATTENTION_FEW * row)};
    for (int64_t r = 0; r < t.rows; r++) t.m[r] = -INFINITY;
    if (direct) {
      t.q = (const void*)attention_element(&k->layer.q, in, start + first * k->layer.q.row);
      t.q_step = k->layer.q.row / k->kind->per_unit;
    }
    for (int64_t r = 0; !direct && r < t.rows; r++) {
      uint32_t* q = rows + r * k->q_units;
      memset(q, 0, (size_t)k->q_units * sizeof *q);
      attention_copy_row(k, &k->layer.q, in, start + (first + r) * k->layer.q.row, k->layer.size,
                         q);
    }
    const attention_span_t seen = seen_by_tile(k, &t);
    t.begin = seen.low / ATTENTION_KEYS * ATTENTION_KEYS;
    for (int64_t key = t.begin; key < seen.high; key += ATTENTION_KEYS) {
      const int64_t n = seen.high - key;
      k->kind->block(k, &t, key, n < ATTENTION_KEYS ? n : ATTENTION_KEYS);
    }
    write_rows(k, &t, y);
  }
}

assay_status_t attention_run(assay_kernel_t* base, const void* const* in, void* const* out,
                             void* scratch) {
  const attention_t* k = (const attention_t*)base;
  const int64_t all = k->layer.heads * k->tiles;
  uint32_t* own = cpu_scratch(scratch);
  int parts = cpu_threads(k->layer.heads * k->layer.q_len * k->layer.kv_len *
                          ((k->layer.size + k->layer.v_size) / 16 + 4));
  if (parts > ATTENTION_PARTS) parts = ATTENTION_PARTS;
  if (parts > all) parts = (int)all;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int p = 0; p < parts; p++) {
    const int64_t end = all * (p + 1) / parts;
    for (int64_t i = all * p / parts; i < end;) {
      const int64_t head = i / k->tiles, first = i % k->tiles;
      const int64_t last = end < (head + 1) * k->tiles ? end - head * k->tiles : k->tiles;
      run_head(k, in, head, first, last, own + p * k->part, out[0]);
      i += last - first;
    }
  }
  return NULL;
}
