// What kernels are written in: all that differs between a GPU and the host.
//
// This one is the GPU's, compiled by NVRTC without any header, and the only place with `asm`. The
// tests have another of the same names, by which gcc and clang compile the same kernels
// (tests/cuda/fake/kernel). So a kernel is C17 and CUDA C at once: no templates, no references, no
// overloads; shared memory is declared by SHARED; sizes that loops are unrolled by are macros that
// the options give (-DTILE=64).
//
//   KERNEL(name, args_t, 256) { ... a.n ... }   a kernel of at most 256 threads a block; `a`: its
//                                               arguments, a struct that is passed by value
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRELUDE_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRELUDE_H_

#include "types.h"

#define KERNEL(name, args_t, threads) \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ args_t a)
// The same, of which one block may take all registers of a multiprocessor.
#define LARGE_KERNEL(name, args_t, threads) \
  extern "C" __global__ void __launch_bounds__(threads, 1) name(const __grid_constant__ args_t a)
// So many blocks find room in a multiprocessor as far as registers go.
#define KERNEL_OF_BLOCKS(name, args_t, threads, blocks)         \
  extern "C" __global__ void __launch_bounds__(threads, blocks) \
      name(const __grid_constant__ args_t a)
#define DEVICE __device__ __forceinline__
#define TABLE __device__ const                      // a constant array of the file
#define WIDE_TABLE __device__ const __align__(128)  // the same, at the beginning of a line
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")  // a loop that takes too many registers otherwise
#define UNROLL_4 _Pragma("unroll 4")
#define RESTRICT __restrict__
#define GLOBAL(type, address) ((type*)(address))
// The same address, of which the compiler knows no more: what lies a constant further is read by
// that address and a constant, which it would add up for each read instead.
DEVICE const void* HELD(const void* p) {
  asm("" : "+l"(p));
  __builtin_assume(__isGlobal(p));
  return p;
}

// ---- threads ------------------------------------------------------------------------------------

#define WARP 32
#define THREAD ((int)threadIdx.x)
#define THREADS ((int)blockDim.x)
#define LANE ((int)(threadIdx.x % 32))
#define BLOCK ((int64_t)blockIdx.x)
#define BLOCKS ((int64_t)gridDim.x)
#define BLOCK_Y ((int)blockIdx.y)
#define BLOCK_Z ((int)blockIdx.z)
// The block's number in its cluster (sm_90).
#if __CUDA_ARCH__ >= 900
DEVICE uint32_t cluster_rank(void) {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
#define CLUSTER_RANK cluster_rank()
#else
#define CLUSTER_RANK 0u
#endif

#define SHARED __shared__
// The shared memory that the launch asks for, as an array.
#ifndef DYNAMIC_ALIGNED
#define DYNAMIC_ALIGNED 128
#endif
#define DYNAMIC(type, name)                    \
  extern __shared__ __align__(DYNAMIC_ALIGNED) \
  char shared_bytes[];                         \
  type* name = (type*)shared_bytes
#define SYNC() __syncthreads()
// All threads of all blocks of a cluster have begun, and barriers that they made (BARRIERS_MADE)
// are there for all of them. It orders no other memory: SYNC_CLUSTER_MEMORY does, so that what was
// stored before is there for other blocks, and what was read there has been; lanes of a warp may
// come to it from different branches.
#if __CUDA_ARCH__ >= 900
#define SYNC_CLUSTER()                                                                            \
  asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;" :: \
                   : "memory")
#define SYNC_CLUSTER_MEMORY() \
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory")
#else
#define SYNC_CLUSTER() __syncthreads()
#define SYNC_CLUSTER_MEMORY() __syncthreads()
#endif
// The same of a group of so many threads, a constant, as they are numbered: all groups of a kernel
// are as large, 128 or 256, and those that meet are whole.
#define SYNC_GROUP(threads) \
  asm volatile("bar.sync %0, %1;" ::"r"(1 + THREAD / (threads)), "n"(threads) : "memory")
#define SYNC_WARP() __syncwarp()
// Four warps, all of them and the first of a multiple of four, give registers back or get some that
// others have given back: each thread has this many then, a multiple of 8 (sm_90a).
#if __CUDA_ARCH__ == 900
#define MORE_REGISTERS(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))
#define FEWER_REGISTERS(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))
#else
#define MORE_REGISTERS(n)
#define FEWER_REGISTERS(n)
#endif

// Programmatic dependent launches: what this grid reads of the one before it is there behind WAIT;
// the next one may start from LAUNCH_NEXT on.
DEVICE void WAIT_FOR_INPUTS(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
DEVICE void LAUNCH_NEXT(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// A value that stays in a register: the compiler works it out here and once, not again in a loop.
DEVICE int kept_s32(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
DEVICE int64_t kept_s64(int64_t x) {
  asm volatile("" : "+l"(x));
  return x;
}

// ---- operations of a warp; all of its lanes take part -------------------------------------------

#define ALL_LANES 0xffffffffu
DEVICE float shuffle_xor_f32(float x, int mask) { return __shfl_xor_sync(ALL_LANES, x, mask); }
DEVICE uint32_t shuffle_xor_u32(uint32_t x, int mask) {
  return __shfl_xor_sync(ALL_LANES, x, mask);
}
DEVICE uint64_t shuffle_xor_u64(uint64_t x, int mask) {
  return __shfl_xor_sync(ALL_LANES, x, mask);
}
DEVICE float shuffle_f32(float x, int lane) { return __shfl_sync(ALL_LANES, x, lane); }
DEVICE uint32_t shuffle_u32(uint32_t x, int lane) { return __shfl_sync(ALL_LANES, x, lane); }
DEVICE float shuffle_up_f32(float x, int by) { return __shfl_up_sync(ALL_LANES, x, by); }
DEVICE float shuffle_down_f32(float x, int by) { return __shfl_down_sync(ALL_LANES, x, by); }
DEVICE uint32_t ballot(int x) { return __ballot_sync(ALL_LANES, x); }
DEVICE bool any_lane(int x) { return __any_sync(ALL_LANES, x); }

// ---- memory: words of 32 bits at multiples of so many bytes
// --------------------------------------

DEVICE void READ_16(const void* p, uint32_t* words) {
  const uint4 v = *(const uint4*)p;
  words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
}
DEVICE void READ_8(const void* p, uint32_t* words) {
  const uint2 v = *(const uint2*)p;
  words[0] = v.x, words[1] = v.y;
}
DEVICE void WRITE_16(void* p, const uint32_t* words) {
  *(uint4*)p = make_uint4(words[0], words[1], words[2], words[3]);
}
DEVICE void WRITE_8(void* p, const uint32_t* words) { *(uint2*)p = make_uint2(words[0], words[1]); }
// The same into global memory, in one instruction: of a store like those above the compiler makes
// several where it finds its words apart, each of which takes as long as all of them.
DEVICE void STORE_16(void* p, const uint32_t* words) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}
DEVICE void STORE_8(void* p, const uint32_t* words) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "r"(words[0]),
               "r"(words[1])
               : "memory");
}
DEVICE void STORE_4(void* p, const uint32_t* words) { *(uint32_t*)p = words[0]; }

// ---- atomics ------------------------------------------------------------------------------------

DEVICE int32_t atomic_add_s32(int32_t* p, int32_t x) { return atomicAdd(p, x); }
DEVICE uint32_t atomic_add_u32(uint32_t* p, uint32_t x) { return atomicAdd(p, x); }
DEVICE uint32_t atomic_max_u32(uint32_t* p, uint32_t x) { return atomicMax(p, x); }
DEVICE uint32_t atomic_min_u32(uint32_t* p, uint32_t x) { return atomicMin(p, x); }
DEVICE uint32_t atomic_cas_u32(uint32_t* p, uint32_t compare, uint32_t x) {
  return atomicCAS(p, compare, x);
}

// ---- numbers ------------------------------------------------------------------------------------

DEVICE float FMA(float x, float y, float z) { return __fmaf_rn(x, y, z); }
// Rounded up and down.
DEVICE float FMA_UP(float x, float y, float z) { return __fmaf_ru(x, y, z); }
DEVICE float FMA_DOWN(float x, float y, float z) { return __fmaf_rd(x, y, z); }
DEVICE float ADD_DOWN(float x, float y) { return __fadd_rd(x, y); }
DEVICE float MAGNITUDE(float x) { return fabsf(x); }
DEVICE double FMA64(double x, double y, double z) { return __fma_rn(x, y, z); }
DEVICE float SQRT(float x) { return __fsqrt_rn(x); }
DEVICE double SQRT64(double x) { return __dsqrt_rn(x); }
DEVICE float ROUND_EVEN(float x) { return rintf(x); }  // to an integer, ties to even
// The larger one (and the smaller one), of zeros either; the other one of a NaN.
DEVICE float LARGER(float x, float y) { return fmaxf(x, y); }
DEVICE float SMALLER(float x, float y) { return fminf(x, y); }
DEVICE float FLOOR(float x) { return floorf(x); }
DEVICE float CEIL(float x) { return ceilf(x); }
DEVICE float TRUNC(float x) { return truncf(x); }
DEVICE double ROUND_EVEN64(double x) { return rint(x); }
DEVICE double TRUNC64(double x) { return trunc(x); }
DEVICE float REMAINDER(float x, float y) { return fmodf(x, y); }  // exact
DEVICE uint32_t bits_of(float x) { return __float_as_uint(x); }
DEVICE float float_of(uint32_t bits) { return __uint_as_float(bits); }
DEVICE uint64_t bits_of64(double x) { return (uint64_t)__double_as_longlong(x); }
DEVICE double double_of(uint64_t bits) { return __longlong_as_double((long long)bits); }
#define POSITIVE_INFINITY (float_of(0x7f800000u))
DEVICE float LARGER_OR_NAN(float x, float y) {
  float z;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
DEVICE float SMALLER_OR_NAN(float x, float y) {
  float z;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
// 2^x within a share of 2^-22 and 1 / x within 2^-23; subnormal numbers are zeros (PTX ISA, "ex2"
// and "rcp"). These are no IEEE operations: what is made of them must not depend on their last
// bits.
DEVICE float EXP2_ROUGH(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// 2^x of x that is a multiple of 2^-13, up to 16: on sm_90 the same bits as
// backends/emu/like/exp2.h has, within 2 ulp; 0 below 2^-126.
DEVICE float EXP2_STEPS(float x) { return EXP2_ROUGH(x); }
DEVICE float INVERSE_ROUGH(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

DEVICE int lowest_bit(uint64_t x) { return __ffsll((long long)x) - 1; }  // x: not 0

// To tf32, to nearest, ties to even; subnormal numbers may become zeros. round_tf32 of elements.h
// says the same in operations of any GPU.
DEVICE float ROUND_TF32(float x) {
#if __CUDA_ARCH__ >= 900
  uint32_t y;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return __uint_as_float(y);
#else
  const uint32_t b = __float_as_uint(x);
  return x - x == 0 ? __uint_as_float((b + 0xfffu + (b >> 13 & 1u)) & ~0x1fffu) : x;
#endif
}

// Four integers as bytes, the first one the lowest; what the type does not hold is its end.
#define PACK_8(name, type)                                  \
  DEVICE uint32_t name(const int32_t* x) {                  \
    uint32_t y;                                             \
    asm("{.reg .b32 upper; cvt.pack.sat." type              \
        ".s32.b32 upper, %4, %3, 0; "                       \
        "cvt.pack.sat." type ".s32.b32 %0, %2, %1, upper;}" \
        : "=r"(y)                                           \
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]));      \
    return y;                                               \
  }
PACK_8(pack_s8, "s8")
PACK_8(pack_u8, "u8")
#undef PACK_8

// Four bytes of two words, of which those of `low` have the numbers 0 to 3 and those of `high` 4 to
// 7: each digit of `which` names one, the lowest digit the lowest byte.
DEVICE uint32_t PICK_BYTES(uint32_t low, uint32_t high, uint32_t which) {
  return __byte_perm(low, high, which);
}

// binary16 and bfloat16 are kept as their bits; rounding is to nearest, ties to even.
typedef uint16_t f16_t;
typedef uint16_t bf16_t;
DEVICE float f16_to_f32(f16_t x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
DEVICE f16_t f32_to_f16(float x) {
  f16_t y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
DEVICE float bf16_to_f32(bf16_t x) { return float_of((uint32_t)x << 16); }
DEVICE bf16_t f32_to_bf16(float x) {
  bf16_t y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}

// Two at once, the first one in the lower half.
DEVICE uint32_t two_f16(float low, float high) {
  uint32_t y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
DEVICE uint32_t two_bf16(float low, float high) {
  uint32_t y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

// ---- tensor cores: d += a b, fragments as PTX lays them out (mma.sync) --------------------------

DEVICE void mma_f16(float* d, const uint32_t* x, const uint32_t* y) {  // m16n8k16
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}
DEVICE void mma_bf16(float* d, const uint32_t* x, const uint32_t* y) {  // m16n8k16
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}
DEVICE void mma_tf32(float* d, const uint32_t* x, const uint32_t* y) {  // m16n8k8
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}
// 8 bits, A and B signed or not; sums modulo 2^32.
#define MMA_8(name, a, b)                                                             \
  DEVICE void name(int32_t* d, const uint32_t* x, const uint32_t* y) { /* m16n8k32 */ \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." a "." b                     \
                 ".s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"         \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                     \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1])); \
  }
MMA_8(mma_s8, "s8", "s8")
MMA_8(mma_s8u8, "s8", "u8")
MMA_8(mma_u8s8, "u8", "s8")
MMA_8(mma_u8, "u8", "u8")
#undef MMA_8
// Four 8x8 matrices of 16 bits out of shared memory: lane l gives the address of row l % 8 of
// matrix l / 8; _transposed: each is handed out transposed.
DEVICE void load_matrices(uint32_t* d, const void* row) {
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(at)
               : "memory");
}
DEVICE void load_matrices_transposed(uint32_t* d, const void* row) {
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(at)
               : "memory");
}

// ---- tensor cores by groups of four warps (wgmma), which only sm_90a has ------------------------

// A group's 128 threads take part, and give the same. WGMMA(name, type, columns, turned) makes
// name(d, x, w): d += x w of 64 rows, so many columns (32, 64, 96, 128, 192, 256) and 16 terms; x
// and w: where they lie in shared memory (wgmma.h); turned 1: columns of w lie side by side, 0: its
// terms. Thread 32 w + l has row 16 w + l / 4 + i / 2 % 2 * 8, column i / 4 * 8 + l % 4 * 2 + i % 2
// as d[i]. It is done behind WGMMA_WAIT: nobody touches d or writes to x and w before that.
// WGMMA_FIRST(...) makes the same of d = x w. WGMMA_LEFT(...) has the left side in registers:
// thread 32 w + l has row 16 w + l / 4 + i % 2 * 8, terms l % 4 * 2 + i / 2 * 8 and the next as
// word x[i], and touches none of them before WGMMA_WAIT either. WGMMA_8(name, x_type, w_type,
// columns): the same of 32 terms of 8 bits, s8 or u8, that lie side by side; sums modulo 2^32.
#define WGMMA(name, type, columns, turned) WGMMA_OF(name, type, columns, turned)
#define WGMMA_FIRST(name, type, columns, turned) WGMMA_FIRST_OF(name, type, columns, turned)
#define WGMMA_LEFT(name, type, columns, turned) WGMMA_LEFT_OF(name, type, columns, turned)
#define WGMMA_8(name, x_type, w_type, columns) WGMMA_8_OF(name, x_type, w_type, columns)
#define HAS_WGMMA (__CUDA_ARCH__ == 900)
#if HAS_WGMMA
#define WGMMA_OF(name, type, n, turned)                                                        \
  DEVICE void name(float* d, uint64_t x, uint64_t w) {                                         \
    asm volatile(                                                                              \
        "{.reg .pred all; setp.eq.u32 all, 0, 0; "                                             \
        "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." #type "." #type " {" WGMMA_NAMES_##n \
        "}, " WGMMA_XW_##n ", all, 1, 1, 0, " #turned ";}"                                     \
        : WGMMA_SUMS_##n("+f")                                                                 \
        : "l"(x), "l"(w)                                                                       \
        : "memory");                                                                           \
  }
#define WGMMA_FIRST_OF(name, type, n, turned)                                                  \
  DEVICE void name(float* d, uint64_t x, uint64_t w) {                                         \
    asm volatile(                                                                              \
        "{.reg .pred none; setp.ne.u32 none, 0, 0; "                                           \
        "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." #type "." #type " {" WGMMA_NAMES_##n \
        "}, " WGMMA_XW_##n ", none, 1, 1, 0, " #turned ";}"                                    \
        : WGMMA_SUMS_##n("=f")                                                                 \
        : "l"(x), "l"(w)                                                                       \
        : "memory");                                                                           \
  }
#define WGMMA_LEFT_OF(name, type, n, turned)                                                   \
  DEVICE void name(float* d, const uint32_t* x, uint64_t w) {                                  \
    asm volatile(                                                                              \
        "{.reg .pred all; setp.eq.u32 all, 0, 0; "                                             \
        "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." #type "." #type " {" WGMMA_NAMES_##n \
        "}, " WGMMA_LEFT_##n ", all, 1, 1, " #turned ";}"                                      \
        : WGMMA_SUMS_##n("+f")                                                                 \
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(w)                                   \
        : "memory");                                                                           \
  }
#define WGMMA_8_OF(name, x_type, w_type, n)                                                        \
  DEVICE void name(int32_t* d, uint64_t x, uint64_t w) {                                           \
    asm volatile(                                                                                  \
        "{.reg .pred all; setp.eq.u32 all, 0, 0; "                                                 \
        "wgmma.mma_async.sync.aligned.m64n" #n "k32.s32." #x_type "." #w_type " {" WGMMA_NAMES_##n \
        "}, " WGMMA_XW_##n ", all;}"                                                               \
        : WGMMA_SUMS_##n("+r")                                                                     \
        : "l"(x), "l"(w)                                                                           \
        : "memory");                                                                               \
  }
#define WGMMA_NAMES_32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define WGMMA_NAMES_64 \
  WGMMA_NAMES_32 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define WGMMA_NAMES_96 \
  WGMMA_NAMES_64 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define WGMMA_NAMES_128 \
  WGMMA_NAMES_96 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define WGMMA_NAMES_160 \
  WGMMA_NAMES_128 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define WGMMA_NAMES_192 \
  WGMMA_NAMES_160 ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define WGMMA_NAMES_256                                                         \
  WGMMA_NAMES_192                                                               \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,"    \
  "%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125," \
  "%126,%127"
#define WGMMA_XW_32 "%16, %17"
#define WGMMA_XW_64 "%32, %33"
#define WGMMA_XW_96 "%48, %49"
#define WGMMA_XW_128 "%64, %65"
#define WGMMA_XW_160 "%80, %81"
#define WGMMA_XW_192 "%96, %97"
#define WGMMA_XW_256 "%128, %129"
#define WGMMA_4(c, i) c(d[i]), c(d[(i) + 1]), c(d[(i) + 2]), c(d[(i) + 3])
#define WGMMA_16(c, i) WGMMA_4(c, i), WGMMA_4(c, (i) + 4), WGMMA_4(c, (i) + 8), WGMMA_4(c, (i) + 12)
#define WGMMA_SUMS_32(c) WGMMA_16(c, 0)
#define WGMMA_SUMS_64(c) WGMMA_SUMS_32(c), WGMMA_16(c, 16)
#define WGMMA_SUMS_96(c) WGMMA_SUMS_64(c), WGMMA_16(c, 32)
#define WGMMA_SUMS_128(c) WGMMA_SUMS_96(c), WGMMA_16(c, 48)
#define WGMMA_SUMS_160(c) WGMMA_SUMS_128(c), WGMMA_16(c, 64)
#define WGMMA_SUMS_192(c) WGMMA_SUMS_160(c), WGMMA_16(c, 80)
#define WGMMA_SUMS_256(c) WGMMA_SUMS_192(c), WGMMA_16(c, 96), WGMMA_16(c, 112)
// Registers of sums are in order: before the first product that was not committed.
#define WGMMA_FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WGMMA_COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
// All but the last `left` groups that were committed are done; left is a constant.
#define WGMMA_WAIT(left) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory")
// What this thread has written into shared memory is there for products, behind a SYNC after it.
DEVICE void FENCE_ASYNC(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#else  // it compiles, and must not run
#define WGMMA_OF(name, type, n, turned)                \
  DEVICE void name(float* d, uint64_t x, uint64_t w) { \
    (void)d, (void)x, (void)w;                         \
    __trap();                                          \
  }
#define WGMMA_FIRST_OF(name, type, n, turned) WGMMA_OF(name, type, n, turned)
#define WGMMA_LEFT_OF(name, type, n, turned)                  \
  DEVICE void name(float* d, const uint32_t* x, uint64_t w) { \
    (void)d, (void)x, (void)w;                                \
    __trap();                                                 \
  }
#define WGMMA_8_OF(name, x_type, w_type, n)              \
  DEVICE void name(int32_t* d, uint64_t x, uint64_t w) { \
    (void)d, (void)x, (void)w;                           \
    __trap();                                            \
  }
#define WGMMA_FENCE()
#define WGMMA_COMMIT()
#define WGMMA_WAIT(left)
DEVICE void FENCE_ASYNC(void) {}
#endif
// Of 8 terms of float32, of which the upper 19 bits are read; columns' terms lie side by side.
#define WGMMA_TF32(name, columns) WGMMA_TF32_OF(name, columns)
// The left side in registers: WGMMA_TF32_LEFT(name, columns) makes name(d, x, w, adds): d += x w,
// or d = x w where adds is 0. Thread 32 w + l has row 16 w + l / 4 + i % 2 * 8, term l % 4 + i / 2
// * 4 as x[i], and touches none of them before WGMMA_WAIT either.
#define WGMMA_TF32_LEFT(name, columns) WGMMA_TF32_LEFT_OF(name, columns)
#if HAS_WGMMA
#define WGMMA_TF32_OF(name, n)                                                      \
  DEVICE void name(float* d, uint64_t x, uint64_t w) {                              \
    asm volatile(                                                                   \
        "{.reg .pred all; setp.eq.u32 all, 0, 0; "                                  \
        "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" WGMMA_NAMES_##n \
        "}, " WGMMA_XW_##n ", all, 1, 1;}"                                          \
        : WGMMA_SUMS_##n("+f")                                                      \
        : "l"(x), "l"(w)                                                            \
        : "memory");                                                                \
  }
#define WGMMA_TF32_LEFT_OF(name, n)                                                               \
  DEVICE void name(float* d, const uint32_t* x, uint64_t w, int adds) {                           \
    asm volatile("{.reg .pred adds; setp.ne.b32 adds, " WGMMA_ADDS_##n                            \
                 ", 0; wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" WGMMA_NAMES_##n \
                 "}, " WGMMA_LEFT_##n ", adds, 1, 1;}"                                            \
                 : WGMMA_SUMS_##n("+f")                                                           \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(w), "r"(adds)                  \
                 : "memory");                                                                     \
  }
#define WGMMA_LEFT_32 "{%16,%17,%18,%19}, %20"
#define WGMMA_LEFT_64 "{%32,%33,%34,%35}, %36"
#define WGMMA_LEFT_96 "{%48,%49,%50,%51}, %52"
#define WGMMA_LEFT_128 "{%64,%65,%66,%67}, %68"
#define WGMMA_LEFT_256 "{%128,%129,%130,%131}, %132"
#define WGMMA_ADDS_32 "%21"
#define WGMMA_ADDS_64 "%37"
#define WGMMA_ADDS_96 "%53"
#define WGMMA_ADDS_128 "%69"
#define WGMMA_ADDS_256 "%133"
#else
#define WGMMA_TF32_OF(name, n)                         \
  DEVICE void name(float* d, uint64_t x, uint64_t w) { \
    (void)d, (void)x, (void)w;                         \
    __trap();                                          \
  }
#define WGMMA_TF32_LEFT_OF(name, n)                                     \
  DEVICE void name(float* d, const uint32_t* x, uint64_t w, int adds) { \
    (void)d, (void)x, (void)w, (void)adds;                              \
    __trap();                                                           \
  }
#endif
// Behind the last wait: the compiler leaves sums where they are until here.
DEVICE void hold_sums(float* d, int n) {
  UNROLL
  for (int i = 0; i < n; i++) asm volatile("" : "+f"(d[i])::"memory");
}
DEVICE void hold_integers(int32_t* d, int n) {
  UNROLL
  for (int i = 0; i < n; i++) asm volatile("" : "+r"(d[i])::"memory");
}
// In the shared memory of a block, from 0 on.
DEVICE uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

// 16 bytes of shared memory that another block of the cluster has at the same place.
#if __CUDA_ARCH__ >= 900
DEVICE void READ_16_OF(uint32_t rank, const void* p, uint32_t* words) {
  asm volatile(
      "{.reg .b32 there; mapa.shared::cluster.u32 there, %4, %5; "
      "ld.shared::cluster.v4.b32 {%0, %1, %2, %3}, [there];}"
      : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
      : "r"(shared_address(p)), "r"(rank)
      : "memory");
}
#else
DEVICE void READ_16_OF(uint32_t rank, const void* p, uint32_t* words) {
  (void)rank;
  READ_16(p, words);
}
#endif

// ---- copies into shared memory behind the thread's back -----------------------------------------

// 16 bytes, both sides at multiples of 16; bytes past `valid` become zeros. They are there for the
// thread that asked behind WAIT_COPIES, and for others behind SYNC after that.
DEVICE void copy_16(void* shared, const void* global, int valid) {
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(shared);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(global), "r"(valid)
               : "memory");
}
// The same of 8 and of 4 bytes, at multiples of as many.
DEVICE void copy_8(void* shared, const void* global, int valid) {
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(shared);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at), "l"(global), "r"(valid)
               : "memory");
}
DEVICE void copy_4(void* shared, const void* global, int valid) {
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(shared);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(global), "r"(valid)
               : "memory");
}
DEVICE void COMMIT_COPIES(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
// All but the last `left` groups that were committed have arrived; left is a constant.
#define WAIT_COPIES(left) asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory")

// ---- barriers in shared memory, and tiles that the copy engine brings (sm_90) -------------------

// A barrier (mbarrier) has phases, numbered from 0: one ends when all arrivals have come, and all
// bytes that were expected. One thread makes barriers; they are there for others, and for the copy
// engine, behind BARRIERS_MADE and SYNC. barrier_wait waits until a phase of that parity has ended:
// the one under way, or the one before it (of a new barrier that is an odd one). Both sides know
// which phase they are in. Barriers and tiles are named by their shared_address, which loops add
// to.
#if __CUDA_ARCH__ >= 900
// Whether this is the one lane of a warp, all of which is here, that asks the copy engine: the
// compiler then knows that there is one, and does not look for others at each request.
DEVICE bool asks_for_warp(void) {
  uint32_t chosen;
  asm volatile("{.reg .pred chosen; elect.sync _|chosen, 0xffffffff; selp.u32 %0, 1, 0, chosen;}"
               : "=r"(chosen));
  return chosen;
}
DEVICE void barrier_make(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
DEVICE void BARRIERS_MADE(void) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Arrives, and so many bytes more are expected.
DEVICE void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
DEVICE void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// A warp that waits is left asleep for up to so many nanoseconds: asking again takes turns from
// those that work.
#define MAX_SLEEP 10000000
DEVICE void barrier_wait(uint32_t barrier, int parity) {
  uint32_t ended = 0;
  while (!ended)
    asm volatile(
        "{.reg .pred ended; mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2, %3; "
        "selp.u32 %0, 1, 0, ended;}"
        : "=r"(ended)
        : "r"(barrier), "r"(parity), "r"(MAX_SLEEP)
        : "memory");
}
// At the barrier at the same place of a block of the cluster, behind SYNC_CLUSTER; that block waits
// for it before it ends. This tells no more than that products (wgmma) which this thread has waited
// for are done: what it has stored itself is not there for the other block. To hand that over takes
// .release.cluster here and .acquire.cluster at the wait, which wait for all of the thread's memory
// and forget what is cached of it, at each step.
DEVICE void barrier_arrive_in(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
      "mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
// One thread asks for a tile of a tensor of two dimensions, from element x of row y on; what lies
// out of it becomes zeros. Its bytes, all of the tile's, are those that the barrier expects.
DEVICE void bulk_tile(uint32_t shared, const tensor_map_t* map, int x, int y, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4}], [%2];" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}
// The same for blocks of the cluster, a bit for each: its bytes come to the same place of each, and
// are those that the barrier at the same place there expects. They may come before that block
// expects them, in the same phase.
DEVICE void bulk_tile_multicast(uint32_t shared, const tensor_map_t* map, int x, int y,
                                uint32_t barrier, uint32_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
      "multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "h"((uint16_t)blocks)
      : "memory");
}
// The same, for this block, of the windows of a convolution with two axes, channels last: of places
// one after the other in order of the output, the first of which begins at (column, row) of a
// sample, the channels of the element so many further.
DEVICE void bulk_windows(uint32_t shared, const tensor_map_t* map, int channel, int column, int row,
                         int sample, int column_further, int row_further, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(channel), "r"(column), "r"(row), "r"(sample),
      "h"((uint16_t)column_further), "h"((uint16_t)row_further)
      : "memory");
}
// The engine reads what it is told of a tensor before it is asked for the first tile.
DEVICE void bulk_prepare(const tensor_map_t* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
#else  // it compiles, and must not run
DEVICE bool asks_for_warp(void) { return false; }
DEVICE void barrier_make(uint32_t barrier, int arrivals) { (void)barrier, (void)arrivals; }
DEVICE void BARRIERS_MADE(void) {}
DEVICE void barrier_expect(uint32_t barrier, int bytes) { (void)barrier, (void)bytes; }
DEVICE void barrier_arrive(uint32_t barrier) { (void)barrier; }
DEVICE void barrier_wait(uint32_t barrier, int parity) {
  (void)barrier, (void)parity;
  __trap();
}
DEVICE void barrier_arrive_in(uint32_t barrier, uint32_t rank) { (void)barrier, (void)rank; }
DEVICE void bulk_tile(uint32_t shared, const tensor_map_t* map, int x, int y, uint32_t barrier) {
  (void)shared, (void)map, (void)x, (void)y, (void)barrier;
}
DEVICE void bulk_tile_multicast(uint32_t shared, const tensor_map_t* map, int x, int y,
                                uint32_t barrier, uint32_t blocks) {
  (void)shared, (void)map, (void)x, (void)y, (void)barrier, (void)blocks;
}
DEVICE void bulk_windows(uint32_t shared, const tensor_map_t* map, int channel, int column, int row,
                         int sample, int column_further, int row_further, uint32_t barrier) {
  (void)shared, (void)map, (void)channel, (void)column, (void)row, (void)sample;
  (void)column_further, (void)row_further, (void)barrier;
}
DEVICE void bulk_prepare(const tensor_map_t* map) { (void)map; }
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRELUDE_H_
