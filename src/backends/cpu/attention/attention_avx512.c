// Tiles of attention on CPUs with AVX-512, in float32 and, with AVX512-BF16, in pairs of bf16.
#include <math.h>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/gemm/gemm.h"

#if defined(__x86_64__)
#include "backends/vmath/lanes_avx512.h"
// Its functions need the lanes.
#include "backends/vmath/float32.h"

#define TARGET VTARGET
#define TARGET_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma,avx512bf16")))
#define ALWAYS __attribute__((always_inline)) static inline

// ---- rows of scores -------------------------------------------------------------------------

// exp(x) for x <= 0 for weights that are rounded to bf16: the polynomial's rest is under 2^-14. NaN
// stays.
TARGET ALWAYS __m512 coarse_exponential(__m512 given) {
  const __m512 x = _mm512_max_ps(_mm512_set1_ps(-104), given);
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(0x1.715476p0F)), 8);
  const __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4F),
                                    _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375F), x));
  __m512 p = _mm512_set1_ps(1.0F / 24);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5F));
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
  return _mm512_scalef_ps(_mm512_add_ps(p, _mm512_set1_ps(1)), n);
}

// exp(x) or 0 (ATTENTION_MIN_EXPONENT). NaN stays.
TARGET ALWAYS __m512 exponential(__m512 x) {
  const __m512 min = _mm512_set1_ps(ATTENTION_MIN_EXPONENT);
  const __mmask16 normal = _mm512_cmp_ps_mask(x, min, _CMP_NLT_UQ);
  return _mm512_maskz_mov_ps(normal, v_exp(_mm512_max_ps(min, x)));
}

TARGET ALWAYS __mmask16 first_lanes(int64_t n) {
  return n <= 0 ? 0 : n < LANES ? (__mmask16)((1U << n) - 1) : (__mmask16)0xffff;
}

// Scales a row's scores and adds the masks; what is not seen, and what fills up to whole vectors,
// is -infinity. The largest one, or m; NaN is none, and makes the row's sum NaN.
TARGET ALWAYS float scores(const attention_t* k, const attention_tile_t* t, int64_t row,
                           int64_t key, int64_t n, float* s) {
  const float* masks[ASSAY_ATTENTION_MASKS] = {NULL};
  const int n_masks = k->odd_masks ? 0 : k->layer.n_masks;
  const attention_span_t seen = attention_span(k, t, row, key, n);
  __m512 largest = _mm512_set1_ps(t->m[row]);
  const __m512 scale = _mm512_set1_ps(k->odd_masks ? 1 : k->layer.scale);
  if (k->odd_masks) attention_masks(k, t, row, key, n, s);
  for (int i = 0; i < n_masks; i++)
    masks[i] = (const float*)t->in[k->layer.masks[i].index] + attention_mask_at(k, t, i, row, key);
  for (int64_t j = 0; j < n; j += LANES) {
    const __mmask16 some = first_lanes(n - j);
    const __mmask16 visible = _mm512_kandn(first_lanes(seen.low - j), first_lanes(seen.high - j));
    __m512 x = _mm512_mul_ps(_mm512_loadu_ps(s + j), scale);
    for (int i = 0; i < n_masks; i++)
      x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(some, masks[i] + j));
    x = _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), visible, x);
    _mm512_storeu_ps(s + j, x);
    largest = _mm512_max_ps(x, largest);
  }
  return _mm512_reduce_max_ps(largest);
}

// After the exponentials of a row: its sum, and what was summed before scaled down to the new
// maximum m; o has it.
TARGET ALWAYS void take_over(attention_tile_t* t, int64_t row, int64_t key, float m, float by,
                             __m512 sum, float* o, int64_t width) {
  const float new_sum = _mm512_reduce_add_ps(sum);
  if (key == t->begin) {
    t->sum[row] = new_sum;
  } else {
    const __m512 kept = exponential(_mm512_set1_ps(t->m[row] - by));
    t->sum[row] = t->sum[row] * _mm512_cvtss_f32(kept) + new_sum;
    for (int64_t c = 0; c < width; c += LANES)
      _mm512_storeu_ps(o + c, _mm512_mul_ps(_mm512_loadu_ps(o + c), kept));
  }
  t->m[row] = m;
}

// ---- bf16 -----------------------------------------------------------------------------------

// Weights take the place of the scores, two in a unit.
TARGET_BF16 static void weigh_bf16(const attention_t* k, attention_tile_t* t, int64_t key,
                                   int64_t n, int64_t width) {
  for (int64_t i = 0; i < t->rows; i++) {
    float* s = t->s + i * ATTENTION_KEYS;
    const float m = scores(k, t, i, key, n, s), by = m == -INFINITY ? 0 : m;
    __m512 sum = _mm512_setzero_ps();
    for (int64_t j = 0; j < n; j += LANES) {
      const __m512 x = _mm512_sub_ps(_mm512_loadu_ps(s + j), _mm512_set1_ps(by));
      const __m512 e = coarse_exponential(x);
      sum = _mm512_add_ps(sum, e);
      _mm256_storeu_si256((__m256i*)(void*)((char*)s + 2 * j), (__m256i)_mm512_cvtneps_pbh(e));
    }
    take_over(t, i, key, m, by, sum, t->o + i * width, width);
  }
}

TARGET_BF16 static void block_bf16(const attention_t* k, attention_tile_t* t, int64_t key,
                                   int64_t n) {
  const int64_t width = attention_padded(k->layer.v_size, CPU_PANEL),
                pairs = (k->layer.kv_len + 1) / 2;
  for (int64_t c = 0; c < n; c += CPU_PANEL)
    cpu_gemm_panel_bf16(t->rows, (k->layer.size + 1) / 2, t->q, t->q_step,
                        t->keys + (key + c) * k->q_units, t->s + c, ATTENTION_KEYS, false);
  weigh_bf16(k, t, key, n, width);
  for (int64_t c = 0; c < width; c += CPU_PANEL)
    cpu_gemm_panel_bf16(t->rows, (n + 1) / 2, (const uint32_t*)(const void*)t->s, ATTENTION_KEYS,
                        t->values + c * pairs + key / 2 * CPU_PANEL, t->o + c, width,
                        key > t->begin);
}

// Two rows become one of pairs.
TARGET static void pack_rows(const attention_t* k, const void* const* rows, int64_t unit,
                             uint32_t* to) {
  const int64_t pairs = (k->layer.kv_len + 1) / 2,
                width = attention_padded(k->layer.v_size, CPU_PANEL);
  for (int64_t c = 0; c < width; c += LANES) {
    const __mmask16 some = k->layer.v_size < c ? 0 : first_lanes(k->layer.v_size - c);
    const uint16_t* even = (const uint16_t*)rows[0] + c;
    const uint16_t* odd = rows[1] ? (const uint16_t*)rows[1] + c : NULL;
    const __m512i a = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, even));
    const __m512i b =
        odd ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, odd)) : _mm512_setzero_si512();
    _mm512_storeu_si512(to + c / CPU_PANEL * CPU_PANEL * pairs + unit * CPU_PANEL + c % CPU_PANEL,
                        _mm512_or_si512(a, _mm512_slli_epi32(b, 16)));
  }
}

// ---- float32 --------------------------------------------------------------------------------

TARGET static void weigh(const attention_t* k, attention_tile_t* t, int64_t key, int64_t n,
                         int64_t width) {
  for (int64_t i = 0; i < t->rows; i++) {
    float* s = t->s + i * ATTENTION_KEYS;
    const float m = scores(k, t, i, key, n, s), by = m == -INFINITY ? 0 : m;
    __m512 sum = _mm512_setzero_ps();
    for (int64_t j = 0; j < n; j += LANES) {
      const __m512 x = _mm512_sub_ps(_mm512_loadu_ps(s + j), _mm512_set1_ps(by));
      const __m512 e = exponential(x);
      sum = _mm512_add_ps(sum, e);
      _mm512_storeu_ps(s + j, e);
    }
    take_over(t, i, key, m, by, sum, t->o + i * width, width);
  }
}

static void block_fp32(const attention_t* k, attention_tile_t* t, int64_t key, int64_t n) {
  const int64_t width = attention_padded(k->layer.v_size, CPU_PANEL);
  attention_first_product(k, t, key, n);
  weigh(k, t, key, n, width);
  attention_second_product(k, t, key, n);
}

static bool has_avx512(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("fma");
}

const attention_kind_t* attention_fp32(void) {
  static const attention_kind_t kind = {.type = ASSAY_TYPE_FLOAT,
                                        .per_unit = 1,
                                        .block = block_fp32,
                                        .pack_values = attention_pack_row};
  return has_avx512() ? &kind : &attention_plain;
}

const attention_kind_t* attention_bf16(void) {
  static const attention_kind_t kind = {
      .type = ASSAY_TYPE_BFLOAT16, .per_unit = 2, .block = block_bf16, .pack_values = pack_rows};
  return has_avx512() && cpu_gemm_has_bf16() ? &kind : NULL;
}
#else
const attention_kind_t* attention_fp32(void) { return &attention_plain; }
const attention_kind_t* attention_bf16(void) { return NULL; }
#endif
