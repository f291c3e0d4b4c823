// The vector functions for CPUs with AVX-512.
#if defined(__x86_64__) && defined(__GNUC__)
#include "backends/vmath/lanes_avx512.h"
#define LEVEL cpu_vmath_avx512
#define LEVEL_NAME "avx512"
#include "backends/vmath/arrays.h"
#else
typedef int cpu_vmath_has_no_avx512_t;
#endif
