// Products with coded matrices on CPUs with AVX-512, which looks up floats by 4 bits.
#include "backends/cpu/gemm/coded_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define INLINE TARGET __attribute__((always_inline)) static inline

typedef float floats_t __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t ints_t __attribute__((vector_size(64), aligned(4), may_alias));

#define READ_BYTES(p)            \
  ((floats_t)_mm512_cvtepi32_ps( \
      _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)(const void*)(p)))))
#define READ_WORDS(p) (*(const ints_t*)(const void*)(p))
#define TABLE(zero)                                                                              \
  ((floats_t)_mm512_sub_ps(_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), \
                           _mm512_set1_ps(zero)))
#define LOOK_UP(x, t) ((floats_t)_mm512_permutexvar_ps((__m512i)(x), (__m512)(t)))
#define FILL(x, m, b) \
  _mm512_ternarylogic_epi32((__m512i)(x), _mm512_set1_epi32(m), _mm512_set1_epi32(b), 0xea)
#define MADD(x, y, z) ((floats_t)_mm512_fmadd_ps((__m512)(x), (__m512)(y), (__m512)(z)))
#define HAS_TABLE true

enum { VECTORS = 4, MAX = CPU_CODED_ROWS };

// What follows needs the lanes.
#include "backends/cpu/gemm/coded_lanes.h"

TARGET void cpu_coded_rows_avx512(const cpu_coded_rows_t* r){ROWS_BODY}

TARGET void cpu_coded_widen_avx512(const cpu_coded_t* w, const uint8_t* panel, int64_t from,
                                   int64_t end, float* to) {
  WIDEN_BODY
}

bool cpu_coded_has_avx512(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("fma");
}
#else
bool cpu_coded_has_avx512(void) { return false; }
void cpu_coded_rows_avx512(const cpu_coded_rows_t* r) { (void)r; }
void cpu_coded_widen_avx512(const cpu_coded_t* w, const uint8_t* panel, int64_t from, int64_t end,
                            float* to) {
  (void)w, (void)panel, (void)from, (void)end, (void)to;
}
#endif
