// What the int8 tactics share: a kernel that makes integer sums in one way or another, and then the
// epilogue that ops/quant/int8.h defines.
#include "backends/cpu/int8/int8_kernel.h"

#include <string.h>

#include "backends/cpu/scratch.h"
#include "base/alloc.h"
#include "base/target.h"

enum { TILE = ASSAY_INT8_TILE, CHUNK = 8192, ALIGNMENT = 64 };

// ---- making a kernel ----------------------------------------------------------------------------

// n numbers over and over, to n + TILE.
static assay_status_t repeated(const float* x, int64_t n, int64_t m, float** out) {
  ASSAY_TRY(assay_new_array((size_t)(m + TILE), sizeof **out, out));
  for (int64_t i = 0; i < m + TILE; i++) (*out)[i] = x[n > 1 ? i % m : 0];
  return NULL;
}

static bool is_of_kind(const assay_int8_source_t* s, assay_type_t type) {
  if (s->kind == ASSAY_INT8_REAL) return type == ASSAY_TYPE_FLOAT;
  return type == ASSAY_TYPE_INT8 || type == ASSAY_TYPE_UINT8;
}

static bool find_streams(int8_kernel_t* k, const assay_sized_layer_t* l, assay_layout_t layout) {
  for (size_t i = 0; i < k->q->n_sources; i++) {
    const assay_int8_source_t* s = &k->q->sources[i];
    k->streams[i].input = -1;
    if (!assay_int8_reads_value(s)) continue;
    const assay_operand_t* o = assay_sized_input(l, s->value);
    if (!o || !is_of_kind(s, o->type) || !int8_stream_find(o, &l->out[0], layout, &k->streams[i]))
      return false;
    const assay_layout_t lies = o->rank < 3 ? ASSAY_LAYOUT_PLAIN : layout;
    assay_storage_t* form = &k->base.in[o - l->in];
    if (form->type && (form->layout != lies || form->type != o->type)) return false;
    *form = (assay_storage_t){o->type, lies};
    k->streams[i].input = (int)(o - l->in);
  }
  return true;
}

static assay_status_t find_quick(int8_kernel_t* k) {
  float *factor = NULL, *shift = NULL;
  assay_status_t st = assay_new_array((size_t)k->m, sizeof *factor, &factor);
  if (!st) st = assay_new_array((size_t)k->m, sizeof *shift, &shift);
  if (!st && int8_quick_make(k->q, k->m, factor, shift, &k->quick)) {
    st = repeated(factor, k->m, k->m, &k->quick_factor);
    if (!st) st = repeated(shift, k->m, k->m, &k->quick_shift);
  }
  assay_free(factor);
  assay_free(shift);
  return st;
}

static assay_status_t repeat_channels(int8_kernel_t* k) {
  const assay_int8_t* q = k->q;
  ASSAY_TRY(find_quick(k));
  if (q->anchor || q->scales_x) {
    ASSAY_TRY(repeated(q->factor, q->n_factor, k->m, &k->factor));
    ASSAY_TRY(repeated(q->shift, q->n_factor, k->m, &k->shift));
  }
  for (size_t i = 0; i < q->n_sources; i++)
    if (q->sources[i].kind == ASSAY_INT8_CHANNEL)
      ASSAY_TRY(repeated(q->sources[i].channel, q->channels, k->m, &k->channel[i]));
  return NULL;
}

static void start(int8_kernel_t* k, const assay_sized_layer_t* l, assay_layout_t layout) {
  const assay_operand_t* y = &l->out[0];
  k->base.in_place = -1;
  k->base.run = int8_kernel_run;
  k->base.destroy = int8_kernel_destroy;
  k->base.out[0] = (assay_storage_t){y->type, y->rank < 3 ? ASSAY_LAYOUT_PLAIN : layout};
  k->size = y->size;
  k->zero_input = -1;
}

assay_status_t int8_kernel_init(int8_kernel_t* k, int8_job_t* j, assay_layout_t layout,
                                bool* out_ok) {
  const assay_sized_layer_t* l = j->l;
  const assay_operand_t* y = &l->out[0];
  start(k, l, layout);
  k->q = j->q;
  k->m = y->dims[layout == ASSAY_LAYOUT_CHANNELS_LAST && y->rank >= 3 ? 1 : y->rank - 1];
  k->zero_x = j->zero_x;
  k->zero_input = j->zero_input;
  k->zero_type = j->zero_type;
  k->base.in[j->x - l->in] =
      (assay_storage_t){j->x_type, j->x->rank < 3 ? ASSAY_LAYOUT_PLAIN : layout};
  if (k->zero_input >= 0)
    k->base.in[k->zero_input] = (assay_storage_t){k->zero_type, ASSAY_LAYOUT_PLAIN};
  *out_ok = !k->q || (find_streams(k, l, layout) &&
                      (k->q->n_factor <= 1 || k->q->n_factor == k->m) && k->q->type == y->type);
  if (!*out_ok) return NULL;
  k->arena = j->arena;
  j->arena = NULL;
  if (!k->q) return NULL;
  ASSAY_TRY(repeat_channels(k));
  if (!k->q->bias) return NULL;
  ASSAY_TRY(assay_new_array((size_t)k->m, sizeof *k->bias, &k->bias));
  for (int64_t i = 0; i < k->m; i++) k->bias[i] = (int32_t)k->q->bias[i];
  return NULL;
}

// The operand whose elements are the sums; its channels lie together.
static bool find_scaled(int8_kernel_t* k, const assay_sized_layer_t* l, assay_layout_t layout) {
  const assay_operand_t *x = assay_sized_input(l, k->q->x.value), *y = &l->out[0];
  if (!x || x->type != k->q->x.type || x->rank != y->rank || x->size != y->size ||
      y->dims[1] != k->q->channels)
    return false;
  k->m = k->q->channels;
  k->x_input = (int)(x - l->in);
  k->x_type = x->type;
  k->zero_x = k->q->x.zeros[0];
  assay_storage_t* form = &k->base.in[k->x_input];
  const assay_layout_t lies = x->rank < 3 ? ASSAY_LAYOUT_PLAIN : layout;
  if (form->type && form->layout != lies) return false;
  *form = (assay_storage_t){x->type, lies};
  return true;
}

assay_status_t int8_kernel_init_pointwise(int8_kernel_t* k, const assay_sized_layer_t* l,
                                          assay_layout_t layout, bool* out_ok) {
  start(k, l, layout);
  k->q = l->layer->int8;
  k->m = 1;
  *out_ok = find_streams(k, l, layout) && k->q->type == l->out[0].type &&
            (!k->q->scales_x || find_scaled(k, l, layout));
  return *out_ok ? repeat_channels(k) : NULL;
}

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

void int8_kernel_ready(int8_kernel_t* k) {
  const size_t sums = k->sum && k->q ? (size_t)k->size * sizeof(int32_t) : 0;
  k->base.scratch = ALIGNMENT + aligned(k->sum_scratch) + sums;
}

void int8_kernel_destroy(assay_kernel_t* base) {
  int8_kernel_t* k = (int8_kernel_t*)base;
  if (k->close) k->close(k);
  assay_arena_destroy(k->arena);
  assay_free(k->tap_sums);
  assay_free(k->class_of_row);
  assay_free(k->bias);
  assay_free(k->factor);
  assay_free(k->shift);
  assay_free(k->quick_factor);
  assay_free(k->quick_shift);
  for (size_t i = 0; i < ASSAY_INT8_SOURCES; i++) assay_free(k->channel[i]);
  assay_free(k);
}

// ---- running ------------------------------------------------------------------------------------

// int32 arithmetic modulo 2^32: raw sums may pass the range, what comes out does not.
static inline int32_t corrected(int32_t sum, int32_t due, int32_t bias) {
  const uint32_t r = (uint32_t)sum - (uint32_t)due + (uint32_t)bias;
  int32_t out;
  memcpy(&out, &r, sizeof out);
  return out;
}

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void correct(const int32_t* restrict x, int64_t n, int32_t zero,
                    const int32_t* restrict tap_sums, int32_t* restrict y) {
  const uint32_t z = (uint32_t)zero;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (int32_t)((uint32_t)x[i] - z * (uint32_t)tap_sums[i]);
}

// The exact sums of elements [at, at + n), n <= TILE, into `to`.
static void exact_sums(const int8_kernel_t* k, const int32_t* raw, int32_t zero_x, int64_t at,
                       int64_t n, int32_t* to) {
  const bool due = k->tap_sums && zero_x;
  for (int64_t done = 0; done < n;) {
    const int64_t row = (at + done) / k->m, c = (at + done) % k->m;
    const int64_t some = k->m - c < n - done ? k->m - c : n - done;
    const int64_t class = k->class_of_row ? k->class_of_row[row % k->n_rows] : 0;
    const int32_t* from = raw + at + done;
    if (due)
      correct(from, some, zero_x, k->tap_sums + class * k->m + c, to + done);
    else if (to + done != from)
      memcpy(to + done, from, (size_t)some * sizeof *to);
    for (int64_t i = 0; k->bias && i < some; i++)
      to[done + i] = corrected(to[done + i], 0, k->bias[c + i]);
    done += some;
  }
}

// n bytes of a run x of `period`, over and over, from `first` on.
static void repeat_bytes(const uint8_t* x, int64_t period, int64_t first, int64_t n, uint8_t* to) {
  const int64_t head = period - first < n ? period - first : n;
  const int64_t rest = n - head < first ? n - head : first;
  memcpy(to, x + first, (size_t)head);
  memcpy(to + head, x, (size_t)rest);
  for (int64_t done = head + rest, some; done < n; done += some) {
    some = done < n - done ? done : n - done;
    memcpy(to + done, to, (size_t)some);
  }
}

// The bytes of a stream that n elements from `at` on read; they lie in `buffer`, or where they are.
static const uint8_t* stream_bytes(const int8_stream_t* s, const uint8_t* x, int64_t at, int64_t n,
                                   uint8_t* buffer) {
  if (s->whole) return x + at;
  for (int64_t i = 0, run; i < n; i += run) {
    const int64_t in_block = (at + i) % s->block, first = (at + i) / s->block % s->outer * s->n;
    const int64_t element = in_block / s->inner % s->n;
    const int64_t left = s->inner == 1 ? s->block - in_block : s->inner - in_block % s->inner;
    run = left < n - i ? left : n - i;
    if (s->inner == 1)
      repeat_bytes(x + first, s->n, element, run, buffer + i);
    else
      memset(buffer + i, x[first + element], (size_t)run);
  }
  return buffer;
}

// The same of floats.
static const float* stream_floats(const int8_stream_t* s, const float* x, int64_t at, int64_t n,
                                  float* buffer) {
  if (s->whole) return x + at;
  for (int64_t i = 0, run; i < n; i += run) {
    const int64_t in_block = (at + i) % s->block, first = (at + i) / s->block % s->outer * s->n;
    const int64_t element = in_block / s->inner % s->n;
    const int64_t left = s->inner == 1 ? s->n - element : s->inner - in_block % s->inner;
    run = left < n - i ? left : n - i;
    if (s->inner == 1)
      memcpy(buffer + i, x + first + element, (size_t)run * sizeof *x);
    else
      for (int64_t k = 0; k < run; k++) buffer[i + k] = x[first + element];
  }
  return buffer;
}

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void center_i8(const int8_t* restrict x, int64_t n, int32_t zero, float* restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (float)(x[i] - zero);
}

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void center_u8(const uint8_t* restrict x, int64_t n, int32_t zero, float* restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (float)(x[i] - zero);
}

static void scaled_sums(const int8_kernel_t* k, const void* x, int64_t at, int64_t n, float* y) {
  if (k->x_type == ASSAY_TYPE_INT8)
    center_i8((const int8_t*)x + at, n, k->zero_x, y);
  else
    center_u8((const uint8_t*)x + at, n, k->zero_x, y);
}

// n <= TILE elements from `at` on, whose sums are `t`'s.
static void finish_tile(const int8_kernel_t* k, const void* const* in, assay_int8_tile_t* t,
                        int64_t at, int64_t n, void* out) {
  const assay_int8_t* q = k->q;
  const size_t elem = q->type == ASSAY_TYPE_FLOAT ? sizeof(float) : 1;
  const int64_t c = at % k->m;
  uint8_t bytes[ASSAY_INT8_SOURCES][TILE];
  float floats[2][TILE];  // one operation reads two of them at most
  int reals = 0;
  int8_quick_t quick = k->quick;
  if (k->factor) {
    t->factor = k->factor + c;
    t->shift = k->shift + c;
  }
  if (k->quick_shift && t->integers) {
    quick.factor = k->quick_factor + c;
    quick.shift = k->quick_shift + c;
    t->quick = &quick;
  }
  for (size_t i = 0; i < q->n_sources; i++) {
    const bool reads = k->streams[i].input >= 0, real = q->sources[i].kind == ASSAY_INT8_REAL;
    const void* x = reads ? in[k->streams[i].input] : NULL;
    if (reads && real && reals < 2)
      t->channel[i] = stream_floats(&k->streams[i], x, at, n, floats[reals++]);
    else if (reads && !real)
      t->operand[i] = stream_bytes(&k->streams[i], x, at, n, bytes[i]);
    if (k->channel[i]) t->channel[i] = k->channel[i] + c;
  }
  assay_int8_epilogue(q, t, n, (char*)out + (size_t)at * elem);
}

void int8_kernel_finish(const int8_kernel_t* k, const void* const* in, const int32_t* sums,
                        int32_t zero_x, int64_t from, int64_t to, void* out) {
  const bool plain = !(k->tap_sums && zero_x) && !k->bias;
  int32_t whole[TILE];
  float floats[TILE];
  for (int64_t at = from; at < to; at += TILE) {
    const int64_t n = to - at < TILE ? to - at : TILE;
    assay_int8_tile_t t = {.sums = floats};
    if (k->q->anchor) {
      if (!plain) exact_sums(k, sums, zero_x, at, n, whole);
      t.integers = plain ? sums + at : whole;
    } else if (k->q->scales_x) {
      scaled_sums(k, in[k->x_input], at, n, floats);
    }
    finish_tile(k, in, &t, at, n, out);
  }
}

void int8_kernel_finish_part(const int8_kernel_t* k, const void* const* in, const int8_part_t* part,
                             void* out) {
  const bool whole = part->n == part->step;
  const int64_t runs = whole ? 1 : part->runs, n = whole ? part->n * part->runs : part->n;
  const int32_t* sums = part->sums;
  for (int64_t r = 0; r < runs; r++)
    for (int64_t i = 0; i < n; i += TILE) {
      const int64_t some = n - i < TILE ? n - i : TILE, at = part->from + r * part->step + i;
      assay_int8_tile_t t = {.integers = sums};
      if (k->q)
        finish_tile(k, in, &t, at, some, out);
      else
        memcpy((int32_t*)out + at, sums, (size_t)some * sizeof *sums);
      sums += some;
    }
}

assay_status_t int8_kernel_start(const int8_kernel_t* k, int32_t zero_x, const int32_t* sums,
                                 int64_t capacity, int32_t** out) {
  ASSAY_TRY(assay_new_array((size_t)capacity, sizeof **out, out));
  int8_kernel_restart(k, zero_x, sums, *out);
  return NULL;
}

void int8_kernel_restart(const int8_kernel_t* k, int32_t zero_x, const int32_t* sums,
                         int32_t* out) {
  for (int64_t c = 0; c < k->m; c++)
    out[c] =
        corrected(0, (int32_t)((uint32_t)zero_x * (uint32_t)sums[c]), k->bias ? k->bias[c] : 0);
}

int32_t int8_kernel_zero(const int8_kernel_t* k, const void* const* in) {
  if (k->zero_input < 0) return k->zero_x;
  return k->zero_type == ASSAY_TYPE_INT8 ? *(const int8_t*)in[k->zero_input]
                                         : *(const uint8_t*)in[k->zero_input];
}

static void finish_integers(const int8_kernel_t* k, int32_t zero_x, int64_t from, int64_t to,
                            int32_t* sums) {
  for (int64_t at = from; at < to; at += TILE)
    exact_sums(k, sums, zero_x, at, to - at < TILE ? to - at : TILE, sums + at);
}

assay_status_t int8_kernel_run(assay_kernel_t* base, const void* const* in, void* const* out,
                               void* scratch) {
  int8_kernel_t* k = (int8_kernel_t*)base;
  char* own_scratch = cpu_scratch(scratch);
  int32_t* sums = k->q ? (int32_t*)(void*)(own_scratch + aligned(k->sum_scratch)) : out[0];
  const int32_t zero_x = int8_kernel_zero(k, in);
  if (k->sum) ASSAY_TRY(k->sum(k, in, own_scratch, sums));
  if (!k->q && !(k->tap_sums && zero_x)) return NULL;
  const int64_t chunks = (k->size + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) if (chunks > 2)
  for (int64_t i = 0; i < chunks; i++) {
    const int64_t from = i * CHUNK, to = from + CHUNK < k->size ? from + CHUNK : k->size;
    if (k->q)
      int8_kernel_finish(k, in, sums, zero_x, from, to, out[0]);
    else
      finish_integers(k, zero_x, from, to, sums);
  }
  return NULL;
}
