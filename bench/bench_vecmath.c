// Throughput of the CPU backend's vector functions, one thread, elements in thousands of millions a
// second: bench_vecmath [elements] [level]. bench/vecmath_peers.py measures others the same way.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/vmath/vmath.h"

typedef struct row {
  const char* name;
  cpu_vmath_id_t id;
  double lo, hi;
  float p[2];
} row_t;

static const row_t rows[] = {
    {"Exp", CPU_V_EXP, -80, 80, {0}},
    {"Log", CPU_V_LOG, 1e-3, 100, {0}},
    {"Sin", CPU_V_SIN, -100, 100, {0}},
    {"Cos", CPU_V_COS, -100, 100, {0}},
    {"Tan", CPU_V_TAN, -100, 100, {0}},
    {"Asin", CPU_V_ASIN, -1, 1, {0}},
    {"Acos", CPU_V_ACOS, -1, 1, {0}},
    {"Atan", CPU_V_ATAN, -10, 10, {0}},
    {"Sinh", CPU_V_SINH, -20, 20, {0}},
    {"Cosh", CPU_V_COSH, -20, 20, {0}},
    {"Tanh", CPU_V_TANH, -5, 5, {0}},
    {"Asinh", CPU_V_ASINH, -10, 10, {0}},
    {"Acosh", CPU_V_ACOSH, 1, 10, {0}},
    {"Atanh", CPU_V_ATANH, -1, 1, {0}},
    {"Erf", CPU_V_ERF, -3, 3, {0}},
    {"Sigmoid", CPU_V_SIGMOID, -10, 10, {0}},
    {"Softplus", CPU_V_SOFTPLUS, -10, 10, {0}},
    {"Softsign", CPU_V_SOFTSIGN, -10, 10, {0}},
    {"Elu", CPU_V_ELU, -5, 5, {1, 0}},
    {"Selu", CPU_V_SELU, -5, 5, {1.67326319F, 1.05070102F}},
    {"Celu", CPU_V_CELU, -5, 5, {1, 0}},
    {"Gelu", CPU_V_GELU, -5, 5, {0}},
    {"Gelu tanh", CPU_V_GELU_TANH, -5, 5, {0}},
    {"Mish", CPU_V_MISH, -10, 10, {0}},
    {"Swish", CPU_V_SWISH, -10, 10, {1, 0}},
    {"HardSwish", CPU_V_HARD_SWISH, -5, 5, {0}},
    {"HardSigmoid", CPU_V_HARD_SIGMOID, -5, 5, {0.2F, 0.5F}},
    {"Pow", CPU_V_POW, 0.1, 10, {0}},
    {"Mod", CPU_V_MOD, -100, 100, {0}},
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The best of all runs in a fifth of a second.
static double rate(const row_t* r, const cpu_vmath_t* level, cpu_vmath_use_t use, int64_t n,
                   const float* x, const float* z, float* y) {
  double best = INFINITY;
  for (const double start = now(); now() < start + 0.2;) {
    const double from = now();
    level->function[use][r->id](x, z, r->p, n, y);
    best = fmin(best, now() - from);
  }
  return (double)n / best * 1e-9;
}

int main(int argc, char** argv) {
  const int64_t n = argc > 1 ? atoll(argv[1]) : 1 << 16;
  const cpu_vmath_t* level = cpu_vmath_level(argc > 2 ? atoi(argv[2]) : 0);
  if (n < 1 || n > 1 << 28 || !level) return 2;
  float* x = malloc(3 * (size_t)n * sizeof *x);
  if (!x) return 1;
  float *z = x + n, *y = z + n;
  printf("%s, %lld elements\n\n| function | float32 | to fp16 | to bf16 |\n", level->name,
         (long long)n);
  printf("| --- | ---: | ---: | ---: |\n");
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    srand(1);
    for (int64_t i = 0; i < n; i++) {
      x[i] = (float)(rows[k].lo + (rows[k].hi - rows[k].lo) * rand() / RAND_MAX);
      z[i] = (float)((rows[k].id == CPU_V_MOD ? 1 : -3) + 6.0 * rand() / RAND_MAX);
    }
    printf("| %s |", rows[k].name);
    for (int use = 0; use < CPU_V_USES; use++)
      printf(" %.2f |", rate(&rows[k], level, (cpu_vmath_use_t)use, n, x, z, y));
    printf("\n");
    fflush(stdout);
  }
  free(x);
  return 0;
}
