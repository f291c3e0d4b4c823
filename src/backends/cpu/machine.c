// What kernels and packed weights depend on besides the plan.
#ifdef ASSAY_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#include <string.h>
#include <unistd.h>

#include "backends/cpu/conv/direct_kernel.h"
#include "backends/cpu/gemm/bf16_split_kernel.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/tactic.h"

static const char* architecture(void) {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "other";
#endif
}

#ifdef __x86_64__
// The sets that our own kernels are compiled for (base/target.h).
static const char* own_level(void) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
    return "v4";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "v3";
  return "v1";
}
#else
static const char* own_level(void) { return "v1"; }
#endif

// Constants of this machine's class. What is chosen by them is part of what a plan is, so that a
// plan says which they were.
#define COSTS_AMX "amx 2"
static const assay_cost_row_t amx_rows[] = {
#include "backends/cpu/costs_amx.inc"
};
static const assay_costs_t amx_costs = {amx_rows, sizeof amx_rows / sizeof *amx_rows};

const assay_costs_t* cpu_costs(void) {
  if (cpu_bf16_split_mode() & CPU_BF16_SPLIT_ALWAYS)
    return NULL;  // split products serve all that they can
#ifdef ASSAY_ONEDNN
  const int amx = dnnl_cpu_isa_avx512_core_amx;
  if (((int)dnnl_get_effective_cpu_isa() & amx) == amx) return &amx_costs;
#endif
  return NULL;
}

void cpu_describe_machine(assay_str_t* out) {
  assay_str_printf(out, "%s %s%s", architecture(), own_level(),
                   cpu_bf16_split_mode() & CPU_BF16_SPLIT_IMITATED ? ", tiles imitated"
                   : cpu_bf16_split_has_tiles()                    ? ", tiles of bf16"
                                                                   : "");
#ifdef ASSAY_ONEDNN
  const dnnl_version_t* v = dnnl_version();
  assay_str_printf(out, ", onednn %d.%d.%d isa 0x%x", v->major, v->minor, v->patch,
                   (unsigned)dnnl_get_effective_cpu_isa());
#endif
  if (cpu_costs()) assay_str_append(out, ", costs " COSTS_AMX);
}

// That is where it has vectors of 16, and does not multiply bf16 in tiles (AMX).
bool cpu_gemm_suits(bool bf16) {
#ifdef ASSAY_ONEDNN
  const int isa = (int)dnnl_get_effective_cpu_isa();
  if ((isa & dnnl_cpu_isa_avx512_core) != dnnl_cpu_isa_avx512_core ||
      (bf16 && (isa & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx))
    return false;
#endif
  return !bf16 || cpu_gemm_has_bf16();
}

int64_t cpu_second_cache(void) {
  enum { MIN = 512 << 10, USUAL = 1 << 20, MAX = 4 << 20 };
#ifdef _SC_LEVEL2_CACHE_SIZE
  const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  const int64_t bytes = 0;
#endif
  return bytes <= 0 ? USUAL : bytes < MIN ? MIN : bytes > MAX ? MAX : bytes;
}

// Where the CPU has units for 16-bit numbers themselves, oneDNN uses them: for bf16 tiles (AMX),
// for fp16 vectors. Without oneDNN all that the CPU has may be used. In float32 oneDNN is as fast
// where vectors are of 8.
const direct_way_t* cpu_direct_way(assay_type_t type) {
#if defined(__x86_64__) && defined(__GNUC__)
  const bool bf16 = type == ASSAY_TYPE_BFLOAT16;
  __builtin_cpu_init();
  bool wide = strcmp(own_level(), "v4") == 0, narrow = strcmp(own_level(), "v3") == 0 || wide;
  if (type == ASSAY_TYPE_FLOAT) return wide && cpu_gemm_suits(false) ? &cpu_direct_floats : NULL;
  if (!bf16 && type != ASSAY_TYPE_FLOAT16) return NULL;
#ifdef ASSAY_ONEDNN
  const int isa = (int)dnnl_get_effective_cpu_isa();
  const int units = bf16 ? dnnl_cpu_isa_avx512_core_amx : dnnl_cpu_isa_avx512_core_fp16;
  if ((isa & units) == units) return NULL;
  wide &= (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
  narrow &= (isa & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2;
#endif
  if (wide) return bf16 && cpu_gemm_has_bf16() ? &cpu_direct_pairs : &cpu_direct_floats;
  return narrow ? &cpu_direct_floats_narrow : NULL;
#else
  (void)type;
  return NULL;
#endif
}
