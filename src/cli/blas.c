// OpenBLAS chooses its kernels by tables of CPUs when it is loaded, and takes those of the oldest
// ones for a CPU that is newer than it: truth then takes several times as long. It can be told
// otherwise by the environment alone, before it is loaded.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "ops/libraries.h"

#ifdef __x86_64__
// Kernels for the vectors that this CPU has; NULL: the oldest ones.
static const char* suitable_kernels(void) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "Haswell" : NULL;
}

// Whether OpenBLAS took kernels without AVX.
static bool took_the_oldest(void) {
  const char* const old[] = {"Prescott", "Core2", "Penryn", "Dunnington", "Nehalem"};
  const char* name = assay_ops_blas_kernels();
  for (size_t i = 0; i < sizeof old / sizeof *old; i++)
    if (strcmp(name, old[i]) == 0) return true;
  return false;
}
#endif

void assay_cli_use_blas(char** argv) {
#ifdef __x86_64__
  static const char* const variable = "OPENBLAS_CORETYPE";
  const char* kernels = suitable_kernels();
  if (getenv(variable) || !kernels || !took_the_oldest()) return;
  if (setenv(variable, kernels, 1)) return;
  // Where that does not work, the program goes on as it is.
  execv("/proc/self/exe", argv);
#else
  (void)argv;
#endif
}
