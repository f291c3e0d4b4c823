// The vector functions for CPUs with AVX2 and FMA.
#if defined(__x86_64__) && defined(__GNUC__)
#include "backends/vmath/lanes_avx2.h"
#define LEVEL cpu_vmath_avx2
#define LEVEL_NAME "avx2"
#include "backends/vmath/arrays.h"
#else
typedef int cpu_vmath_has_no_avx2_t;
#endif
