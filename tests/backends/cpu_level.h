// What instructions tests of CPU kernels may expect: of the CPU itself, asked here and not of the
// code under test, and what oneDNN is held to.
#ifndef ASSAY_TESTS_BACKENDS_CPU_LEVEL_H_
#define ASSAY_TESTS_BACKENDS_CPU_LEVEL_H_

#include <stdlib.h>
#include <string.h>

typedef enum cpu_level {
  CPU_LEVEL_PLAIN,
  CPU_LEVEL_AVX2,
  CPU_LEVEL_AVX512,
  CPU_LEVEL_VNNI,
  CPU_LEVEL_BF16
} cpu_level_t;

static inline cpu_level_t cpu_level(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return CPU_LEVEL_PLAIN;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
    return CPU_LEVEL_AVX2;
  if (!__builtin_cpu_supports("avx512vnni")) return CPU_LEVEL_AVX512;
  return __builtin_cpu_supports("avx512bf16") ? CPU_LEVEL_BF16 : CPU_LEVEL_VNNI;
#else
  return CPU_LEVEL_PLAIN;
#endif
}

// The lower of the CPU's and ONEDNN_MAX_CPU_ISA's.
static inline cpu_level_t cpu_level_held(void) {
  static const struct {
    const char* name;
    cpu_level_t level;
  } caps[] = {{"SSE41", CPU_LEVEL_PLAIN},        {"AVX", CPU_LEVEL_PLAIN},
              {"AVX2", CPU_LEVEL_AVX2},          {"AVX2_VNNI", CPU_LEVEL_AVX2},
              {"AVX512_CORE", CPU_LEVEL_AVX512}, {"AVX512_CORE_VNNI", CPU_LEVEL_VNNI}};
  const char* cap = getenv("ONEDNN_MAX_CPU_ISA");
  cpu_level_t level = cpu_level();
  for (size_t i = 0; cap && i < sizeof caps / sizeof *caps; i++)
    if (strcmp(cap, caps[i].name) == 0 && caps[i].level < level) level = caps[i].level;
  return level;
}

#endif  // ASSAY_TESTS_BACKENDS_CPU_LEVEL_H_
