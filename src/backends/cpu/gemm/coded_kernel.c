// Products with coded matrices on any CPU. Compiled with contraction of products and sums, as
// gemm.c is (CMakeLists.txt): a chain of multiply-adds is what is promised. In what makes a weight,
// a product of a difference, nothing can be contracted.
#include "backends/cpu/gemm/coded_kernel.h"

#include "base/target.h"

#define INLINE __attribute__((always_inline)) static inline

typedef float floats_t __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t ints_t __attribute__((vector_size(64), aligned(4), may_alias));
typedef int8_t bytes_t __attribute__((vector_size(16), aligned(1), may_alias));

// Widened in two steps: compilers know each of them as one instruction.
#define READ_BYTES(p)                                                                         \
  __builtin_convertvector(__builtin_convertvector(*(const bytes_t*)(const void*)(p), ints_t), \
                          floats_t)
#define READ_WORDS(p) (*(const ints_t*)(const void*)(p))
#define FILL(x, m, b) (((x) & (m)) | (b))
#define TABLE(zero) ((void)(zero), (floats_t){0})
#define LOOK_UP(x, t) ((void)(x), (t))
#define MADD(x, y, z) ((x) * (y) + (z))
#define HAS_TABLE false

enum { VECTORS = 2, MAX = 2 };

// What follows needs the lanes.
#include "backends/cpu/gemm/coded_lanes.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v3", "default")

CLONES void cpu_coded_rows_plain(const cpu_coded_rows_t* r){ROWS_BODY}

CLONES void cpu_coded_widen_plain(const cpu_coded_t* w, const uint8_t* panel, int64_t from,
                                  int64_t end, float* to) {
  WIDEN_BODY
}

// Where gemm.c has one version only (base/target.h), which may know no multiply-adds, neither may
// these: few rows have the bits that they have among many.
void cpu_coded_rows(const cpu_coded_rows_t* r) {
#ifdef ASSAY_HAS_CLONES
  (cpu_coded_has_avx512() ? cpu_coded_rows_avx512 : cpu_coded_rows_plain)(r);
#else
  cpu_coded_rows_plain(r);
#endif
}

void cpu_coded_widen(const cpu_coded_t* w, const uint8_t* panel, int64_t from, int64_t end,
                     float* to) {
  (cpu_coded_has_avx512() ? cpu_coded_widen_avx512 : cpu_coded_widen_plain)(w, panel, from, end,
                                                                            to);
}
