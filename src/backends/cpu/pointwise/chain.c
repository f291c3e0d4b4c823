// Chains: programs of which every instruction works on what the one before it has made.
#include "backends/cpu/pointwise/chain.h"

#include "backends/cpu/pointwise/convert.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include "backends/cpu/pointwise/chain_lanes.h"

bool cpu_has_chains(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("fma");
}

// ---- memory ------------------------------------------------------------------------------------

// Of a block's `left` elements, those in vector v.
INLINE __mmask16 mask_of(int64_t left, int v) {
  const int64_t n = left - 16 * v;
  return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

INLINE __m512 widened(__m256i x, assay_type_t type) {
  return type == ASSAY_TYPE_FLOAT16
             ? _mm512_cvtph_ps(x)
             : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

INLINE void load(const cpu_chain_stream_t* s, int64_t row, int64_t column, int64_t left,
                 __m512* x) {
  const int64_t at = row * s->row_step + column * s->step;
  const bool whole = left >= BLOCK;
  if (s->type == ASSAY_TYPE_FLOAT) {
    const float* data = (const float*)s->data + at;
    UNROLL for (int v = 0; v < VECTORS; v++) x[v] =
        !s->step ? _mm512_set1_ps(*data)
        : whole  ? _mm512_loadu_ps(data + 16 * v)
                 : _mm512_maskz_loadu_ps(mask_of(left, v), data + 16 * v);
    return;
  }
  const uint16_t* data = (const uint16_t*)s->data + at;
  UNROLL for (int v = 0; v < VECTORS; v++) {
    const __m256i y = !s->step ? _mm256_set1_epi16((short)*data)
                      : whole  ? _mm256_loadu_si256((const __m256i*)(const void*)(data + 16 * v))
                               : _mm256_maskz_loadu_epi16(mask_of(left, v), data + 16 * v);
    x[v] = widened(y, s->type);
  }
}

INLINE void store(const __m512* x, assay_type_t type, int64_t at, int64_t left, void* out) {
  const bool whole = left >= BLOCK;
  if (whole && type == ASSAY_TYPE_BFLOAT16) {
    UNROLL for (int v = 0; v < VECTORS; v += 2)
        _mm512_storeu_si512((uint16_t*)out + at + 16 * v, to_bf16_both(x[v], x[v + 1]));
    return;
  }
  UNROLL for (int v = 0; v < VECTORS; v++) {
    const __mmask16 mask = mask_of(left, v);
    if (type == ASSAY_TYPE_FLOAT) {
      float* to = (float*)out + at + 16 * v;
      if (whole)
        _mm512_storeu_ps(to, x[v]);
      else
        _mm512_mask_storeu_ps(to, mask, x[v]);
      continue;
    }
    uint16_t* to = (uint16_t*)out + at + 16 * v;
    const __m256i y = type == ASSAY_TYPE_FLOAT16
                          ? _mm512_cvtps_ph(x[v], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
                          : to_bf16(x[v]);
    if (whole)
      _mm256_storeu_si256((__m256i*)(void*)to, y);
    else
      _mm256_mask_storeu_epi16(to, mask, y);
  }
}

// ---- running -----------------------------------------------------------------------------------

#define EACH(expression) UNROLL for (int v = 0; v < VECTORS; v++) x[v] = (expression)
#define WITH(expression)                                \
  do {                                                  \
    __m512 z[VECTORS];                                  \
    load(&r->streams[l->stream], row, column, left, z); \
    EACH(expression);                                   \
  } while (0)

INLINE void call(const cpu_link_t* l, int64_t left, __m512* x) {
  _Alignas(64) float memory[BLOCK];
  UNROLL for (int v = 0; v < VECTORS; v++) _mm512_store_ps(memory + 16 * v, x[v]);
  l->call(memory, NULL, NULL, l->param, left < BLOCK ? left : BLOCK, memory);
  UNROLL for (int v = 0; v < VECTORS; v++) x[v] = _mm512_load_ps(memory + 16 * v);
}

INLINE void link(const cpu_chain_run_t* r, cpu_link_kind_t kind, const cpu_link_t* l, int64_t row,
                 int64_t column, int64_t left, __m512* x) {
  switch (kind) {
    case CPU_LINK_CALL:
      call(l, left, x);
      break;
    case CPU_LINK_IDENTITY:
      break;
    case CPU_LINK_ADD:
      WITH(_mm512_add_ps(x[v], z[v]));
      break;
    case CPU_LINK_SUB:
      WITH(_mm512_sub_ps(x[v], z[v]));
      break;
    case CPU_LINK_MUL:
      WITH(_mm512_mul_ps(x[v], z[v]));
      break;
    case CPU_LINK_RELU:
      relu(x);
      break;
    case CPU_LINK_CLIP:
      EACH(limited(x[v], _mm512_set1_ps(l->param[0]), _mm512_set1_ps(l->param[1])));
      break;
    case CPU_LINK_HARD_SWISH:
      hard_swish(x, 0, l->use);
      break;
    case CPU_LINK_HARD_SIGMOID:
      EACH(hard_sigmoid(x[v], l->param[0], l->param[1], l->use));
      break;
    case CPU_LINK_SIGMOID:
      EACH(sigmoid(x[v], l->use));
      break;
    case CPU_LINK_SWISH:
      swish(x, l->param[0], l->use);
      break;
    case CPU_LINK_GELU:
      EACH(gelu(x[v], l->use));
      break;
    case CPU_LINK_GELU_TANH:
      EACH(gelu_tanh(x[v], l->use));
      break;
  }
}

// `left` is BLOCK, known when this is compiled, or less. only: the kind of a chain of one link that
// begins with float32 elements side by side, known as well, for whole blocks; -1: any chain.
INLINE void block(const cpu_chain_run_t* r, int only, int64_t row, int64_t column, int64_t left,
                  __m512* x) {
  const cpu_chain_stream_t* first = &r->streams[r->first];
  if (only < 0) {
    load(first, row, column, left, x);
    for (int i = 0; i < r->n_links; i++)
      link(r, r->links[i].kind, &r->links[i], row, column, left, x);
    return;
  }
  const float* data = (const float*)first->data + row * first->row_step + column;
  UNROLL for (int v = 0; v < VECTORS; v++) x[v] = _mm512_loadu_ps(data + 16 * v);
  link(r, (cpu_link_kind_t)only, r->links, row, column, left, x);
}

// A whole block by the CPU's own conversion, which takes subnormal numbers for zeros: where there
// is one, by the other.
static inline TARGET_BF16 __attribute__((always_inline)) void store_bf16(const __m512* x,
                                                                         uint16_t* to) {
  if (some_subnormal(x)) {
    store(x, ASSAY_TYPE_BFLOAT16, 0, BLOCK, to);
    return;
  }
  UNROLL for (int v = 0; v < VECTORS; v += 2)
      _mm512_storeu_si512(to + 16 * v, (__m512i)_mm512_cvtne2ps_pbh(x[v + 1], x[v]));
}

// What run_rows is compiled for: chains of one link that stand after many convolutions.
static int only_link(const cpu_chain_run_t* r) {
  const cpu_chain_stream_t* first = &r->streams[r->first];
  return r->n_links == 1 && first->type == ASSAY_TYPE_FLOAT && first->step ? (int)r->links[0].kind
                                                                           : -1;
}

// The elements of a row after its last whole block, by any chain: compiled once for all, since
// what it is compiled for costs as much of a build as whole blocks do.
TARGET static __attribute__((noinline)) void run_tail(const cpu_chain_run_t* r, int64_t row,
                                                      int64_t column) {
  __m512 x[VECTORS];
  block(r, -1, row, column, r->columns - column, x);
  store(x, r->type, row * r->out_step + column, r->columns - column, r->out);
}

#define RUN(target, name, whole_block)                                                      \
  static inline target                                                                      \
      __attribute__((always_inline)) void name##_rows(const cpu_chain_run_t* r, int only) { \
    __m512 x[VECTORS];                                                                      \
    for (int64_t row = 0; row < r->rows; row++) {                                           \
      int64_t column = 0;                                                                   \
      for (; column + BLOCK <= r->columns; column += BLOCK) {                               \
        block(r, only, row, column, BLOCK, x);                                              \
        whole_block;                                                                        \
      }                                                                                     \
      if (column < r->columns) run_tail(r, row, column);                                    \
    }                                                                                       \
  }                                                                                         \
  target static void name(const cpu_chain_run_t* r) {                                       \
    switch (only_link(r)) {                                                                 \
      case CPU_LINK_IDENTITY:                                                               \
        name##_rows(r, CPU_LINK_IDENTITY);                                                  \
        break;                                                                              \
      case CPU_LINK_ADD:                                                                    \
        name##_rows(r, CPU_LINK_ADD);                                                       \
        break;                                                                              \
      case CPU_LINK_RELU:                                                                   \
        name##_rows(r, CPU_LINK_RELU);                                                      \
        break;                                                                              \
      case CPU_LINK_HARD_SWISH:                                                             \
        name##_rows(r, CPU_LINK_HARD_SWISH);                                                \
        break;                                                                              \
      case CPU_LINK_SWISH:                                                                  \
        name##_rows(r, CPU_LINK_SWISH);                                                     \
        break;                                                                              \
      case CPU_LINK_GELU:                                                                   \
        name##_rows(r, CPU_LINK_GELU);                                                      \
        break;                                                                              \
      case CPU_LINK_GELU_TANH:                                                              \
        name##_rows(r, CPU_LINK_GELU_TANH);                                                 \
        break;                                                                              \
      default:                                                                              \
        name##_rows(r, -1);                                                                 \
        break;                                                                              \
    }                                                                                       \
  }
RUN(TARGET, run_plain, store(x, r->type, row * r->out_step + column, BLOCK, r->out))
RUN(TARGET_BF16, run_bf16, store_bf16(x, (uint16_t*)r->out + row * r->out_step + column))

void cpu_chain_run(const cpu_chain_run_t* r) {
  if (r->type == ASSAY_TYPE_BFLOAT16 && __builtin_cpu_supports("avx512bf16"))
    run_bf16(r);
  else
    run_plain(r);
}

#else
bool cpu_has_chains(void) { return false; }
void cpu_chain_run(const cpu_chain_run_t* r) { (void)r; }
#endif
