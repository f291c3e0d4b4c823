// What kernels are written in, on the host: the same names as src/backends/cuda/kernels/prelude.h,
// for gcc and clang. A lane is a fiber of its own; what lanes do together is done by the platform
// (engine.h), which this reaches through the table `fake_engine`.
#ifndef TESTS_CUDA_FAKE_KERNEL_PRELUDE_H_
#define TESTS_CUDA_FAKE_KERNEL_PRELUDE_H_

#include <math.h>
#include <string.h>

#include "engine.h"
#include "types.h"

#define FAKE_VISIBLE __attribute__((visibility("default")))
FAKE_VISIBLE fake_engine_t fake_engine;  // set when it is loaded
// The same for accesses.c, which is part of this kernel.
extern __attribute__((alias("fake_engine"), visibility("hidden"))) fake_engine_t fake_own_engine;

#define FAKE_UNCHECKED __attribute__((no_sanitize("thread")))  // accesses.c

#define KERNEL(name, args_t, max)                                                                 \
  static __attribute__((noinline)) void name(args_t a);                                           \
  FAKE_UNCHECKED static void fake_enter_##name(const void* args) {                                \
    args_t a;                                                                                     \
    memcpy(&a, args, sizeof a);                                                                   \
    name(a);                                                                                      \
  }                                                                                               \
  FAKE_VISIBLE const fake_kernel_t fake_kernel_##name = {fake_enter_##name, sizeof(args_t), max}; \
  static void name(args_t a)
#define LARGE_KERNEL(name, args_t, max) KERNEL(name, args_t, max)
#define KERNEL_OF_BLOCKS(name, args_t, max, blocks) KERNEL(name, args_t, max)
#define DEVICE static inline __attribute__((unused))
#define TABLE static const __attribute__((unused))
#define WIDE_TABLE static const __attribute__((unused, aligned(128)))
#define UNROLL
#define ROLLED
#define UNROLL_4
#define RESTRICT restrict
#define GLOBAL(type, address) ((type*)fake_engine.global(FAKE_LANE, (address), __LINE__))
#define HELD(p) ((const void*)(p))

// ---- threads ------------------------------------------------------------------------------------

#define WARP 32
#define THREAD ((int)((uintptr_t)__builtin_frame_address(0) / FAKE_STACK % FAKE_MAX_THREADS))
#define THREADS (FAKE_LANE->threads)
#define LANE (THREAD % WARP)
#define BLOCK (FAKE_LANE->block)
#define BLOCKS (FAKE_LANE->blocks)
#define BLOCK_Y (FAKE_LANE->block_y)
#define BLOCK_Z (FAKE_LANE->block_z)
#define CLUSTER_RANK ((uint32_t)FAKE_LANE->rank)

// One for each copy of the compiled kernel: blocks that run at the same time have their own.
#define SHARED static __attribute__((section("shared.memory")))
#define DYNAMIC(type, name) type* name = (type*)FAKE_LANE->dynamic
#define SYNC() fake_engine.sync(FAKE_LANE, __LINE__)
#define SYNC_CLUSTER() fake_engine.sync_cluster(FAKE_LANE, 0, __LINE__)
#define SYNC_CLUSTER_MEMORY() fake_engine.sync_cluster(FAKE_LANE, 1, __LINE__)
#define MORE_REGISTERS(n) ((void)(n))
#define FEWER_REGISTERS(n) ((void)(n))
#define SYNC_GROUP(threads) fake_engine.sync_group(FAKE_LANE, threads, __LINE__)
#define SYNC_WARP() fake_engine.sync_warp(FAKE_LANE, __LINE__)

DEVICE void WAIT_FOR_INPUTS(void) { fake_engine.wait_for_inputs(FAKE_LANE); }
DEVICE void LAUNCH_NEXT(void) {}

// ---- numbers as bits ----------------------------------------------------------------------------

DEVICE uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
DEVICE float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
DEVICE uint64_t bits_of64(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
DEVICE double double_of(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

DEVICE int kept_s32(int x) { return x; }
DEVICE int64_t kept_s64(int64_t x) { return x; }

// ---- operations of a warp -----------------------------------------------------------------------

#define ALL_LANES 0xffffffffu
#define FAKE_SHUFFLED(op, x, other) fake_engine.shuffle(FAKE_LANE, op, (x), (other), __LINE__)
#define shuffle_xor_f32(x, mask) \
  float_of((uint32_t)FAKE_SHUFFLED(FAKE_SHUFFLE_XOR, bits_of(x), mask))
#define shuffle_xor_u32(x, mask) ((uint32_t)FAKE_SHUFFLED(FAKE_SHUFFLE_XOR, (uint32_t)(x), mask))
#define shuffle_xor_u64(x, mask) FAKE_SHUFFLED(FAKE_SHUFFLE_XOR, x, mask)
#define shuffle_f32(x, lane) float_of((uint32_t)FAKE_SHUFFLED(FAKE_SHUFFLE, bits_of(x), lane))
#define shuffle_u32(x, lane) ((uint32_t)FAKE_SHUFFLED(FAKE_SHUFFLE, (uint32_t)(x), lane))
#define shuffle_u64(x, lane) FAKE_SHUFFLED(FAKE_SHUFFLE, x, lane)
#define shuffle_up_f32(x, by) float_of((uint32_t)FAKE_SHUFFLED(FAKE_SHUFFLE_UP, bits_of(x), by))
#define shuffle_up_u32(x, by) ((uint32_t)FAKE_SHUFFLED(FAKE_SHUFFLE_UP, (uint32_t)(x), by))
#define shuffle_down_f32(x, by) float_of((uint32_t)FAKE_SHUFFLED(FAKE_SHUFFLE_DOWN, bits_of(x), by))
#define shuffle_down_u32(x, by) ((uint32_t)FAKE_SHUFFLED(FAKE_SHUFFLE_DOWN, (uint32_t)(x), by))
#define ballot(x) fake_engine.vote(FAKE_LANE, FAKE_BALLOT, (x) != 0, __LINE__)
#define any_lane(x) (ballot(x) != 0)
#define match_lanes_u32(x) fake_engine.vote(FAKE_LANE, FAKE_MATCH, (x), __LINE__)

// ---- memory: aligned words of 32 bits ----------------------------------------------------------

DEVICE void fake_align(const void* p, uintptr_t bytes, int line) {
  if ((uintptr_t)p % bytes)
    fake_engine.fail(FAKE_LANE, "READ_ or WRITE_ off a multiple of its bytes", line);
}
#define FAKE_WORDS(to, from, at, bytes) \
  (fake_align(at, bytes, __LINE__), (void)memcpy(to, from, bytes))
#define READ_16(p, words) FAKE_WORDS(words, p, p, 16)
#define READ_8(p, words) FAKE_WORDS(words, p, p, 8)
#define WRITE_16(p, words) FAKE_WORDS(p, words, p, 16)
#define WRITE_8(p, words) FAKE_WORDS(p, words, p, 8)
#define STORE_16(p, words) FAKE_WORDS(p, words, p, 16)
#define STORE_8(p, words) FAKE_WORDS(p, words, p, 8)
#define STORE_4(p, words) FAKE_WORDS(p, words, p, 4)
#define READ_16_OF(rank, p, words) \
  fake_engine.read_of(FAKE_LANE, (int)(rank), p, words, 4, __LINE__)

// ---- atomics: relaxed, as a GPU's ---------------------------------------------------------------

#define FAKE_ATOMIC(name, type)                                                             \
  DEVICE FAKE_UNCHECKED type fake_##name(type* p, type x, int line) {                       \
    type old;                                                                               \
    fake_engine.atomic(FAKE_LANE, p, sizeof *p, line);                                      \
    __atomic_load(p, &old, __ATOMIC_RELAXED);                                               \
    for (;;) {                                                                              \
      type next = FAKE_NEXT_##name(old, x);                                                 \
      if (__atomic_compare_exchange(p, &old, &next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) \
        return old;                                                                         \
    }                                                                                       \
  }
#define FAKE_NEXT_add_s32(old, x) (int32_t)((uint32_t)(old) + (uint32_t)(x))
#define FAKE_NEXT_add_u32(old, x) ((old) + (x))
#define FAKE_NEXT_add_f32(old, x) ((old) + (x))
#define FAKE_NEXT_max_u32(old, x) ((old) > (x) ? (old) : (x))
#define FAKE_NEXT_min_u32(old, x) ((old) < (x) ? (old) : (x))
FAKE_ATOMIC(add_s32, int32_t)
FAKE_ATOMIC(add_u32, uint32_t)
FAKE_ATOMIC(add_f32, float)
FAKE_ATOMIC(max_u32, uint32_t)
FAKE_ATOMIC(min_u32, uint32_t)
DEVICE FAKE_UNCHECKED uint32_t fake_cas_u32(uint32_t* p, uint32_t compare, uint32_t x, int line) {
  fake_engine.atomic(FAKE_LANE, p, sizeof *p, line);
  __atomic_compare_exchange_n(p, &compare, x, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return compare;
}
#define atomic_add_s32(p, x) fake_add_s32(p, x, __LINE__)
#define atomic_add_u32(p, x) fake_add_u32(p, x, __LINE__)
#define atomic_add_f32(p, x) fake_add_f32(p, x, __LINE__)
#define atomic_max_u32(p, x) fake_max_u32(p, x, __LINE__)
#define atomic_min_u32(p, x) fake_min_u32(p, x, __LINE__)
#define atomic_cas_u32(p, compare, x) fake_cas_u32(p, compare, x, __LINE__)

// ---- numbers ------------------------------------------------------------------------------------

DEVICE float FMA(float x, float y, float z) { return fmaf(x, y, z); }
// In double x y is exact, and what the sum loses is known (D. Knuth's sum of two).
DEVICE float fake_fma_towards(float x, float y, float z, float end) {
  const float rounded = fmaf(x, y, z);
  const double product = (double)x * (double)y, sum = product + (double)z, part = sum - product;
  const double lost = (product - (sum - part)) + ((double)z - part);
  const double over = ((double)rounded - sum) - lost;
  if (!isfinite(rounded) || !isfinite(over)) return rounded;
  if (rounded == 0 && over == 0 && !signbit(product) != !signbit(z)) return end < 0 ? -0.0F : 0.0F;
  return (end > 0 ? over < 0 : over > 0) ? nextafterf(rounded, end) : rounded;
}
DEVICE float FMA_UP(float x, float y, float z) { return fake_fma_towards(x, y, z, INFINITY); }
DEVICE float FMA_DOWN(float x, float y, float z) { return fake_fma_towards(x, y, z, -INFINITY); }
DEVICE float ADD_DOWN(float x, float y) { return FMA_DOWN(x, 1, y); }
DEVICE float MAGNITUDE(float x) { return fabsf(x); }
DEVICE double FMA64(double x, double y, double z) { return fma(x, y, z); }
DEVICE float SQRT(float x) { return sqrtf(x); }
DEVICE double SQRT64(double x) { return sqrt(x); }
DEVICE float ROUND_EVEN(float x) { return rintf(x); }
DEVICE float LARGER(float x, float y) { return fmaxf(x, y); }
DEVICE float SMALLER(float x, float y) { return fminf(x, y); }
DEVICE float FLOOR(float x) { return floorf(x); }
DEVICE float CEIL(float x) { return ceilf(x); }
DEVICE float TRUNC(float x) { return truncf(x); }
DEVICE double ROUND_EVEN64(double x) { return rint(x); }
DEVICE double TRUNC64(double x) { return trunc(x); }
DEVICE float REMAINDER(float x, float y) { return fmodf(x, y); }
#define POSITIVE_INFINITY (float_of(0x7f800000u))
DEVICE int lowest_bit(uint64_t x) { return __builtin_ctzll(x); }
DEVICE float ROUND_TF32(float x) {
  const uint32_t b = bits_of(x);
  return isfinite(x) ? float_of((b + 0xfffu + (b >> 13 & 1u)) & ~0x1fffu) : x;
}
DEVICE uint32_t fake_pack(const int32_t* x, int32_t low, int32_t high) {
  uint32_t y = 0;
  for (int i = 0; i < 4; i++) {
    const int32_t limited = x[i] < low ? low : x[i] > high ? high : x[i];
    y |= (uint32_t)(limited & 255) << (8 * i);
  }
  return y;
}
DEVICE uint32_t pack_s8(const int32_t* x) { return fake_pack(x, -128, 127); }
DEVICE uint32_t pack_u8(const int32_t* x) { return fake_pack(x, 0, 255); }
DEVICE uint32_t PICK_BYTES(uint32_t low, uint32_t high, uint32_t which) {
  const uint64_t both = (uint64_t)high << 32 | low;
  uint32_t y = 0;
  for (int i = 0; i < 4; i++)
    y |= (uint32_t)(both >> (8 * (which >> (4 * i) & 7)) & 255) << (8 * i);
  return y;
}
// Of zeros +0 is the larger one.
DEVICE float LARGER_OR_NAN(float x, float y) {
  return x != x || x > y || (x == y && !signbit(x)) ? x : y;
}
DEVICE float SMALLER_OR_NAN(float x, float y) {
  return x != x || x < y || (x == y && signbit(x)) ? x : y;
}
// As wrong as they may be, one way or the other by bits of what they are asked for.
DEVICE float fake_rough(double value, uint32_t asked, double share) {
  const int way = (int)(asked * 2654435761u >> 30) - 1;  // -1, 0, 1, 2
  const float y = (float)(value * (1 + (way == 2 ? 0 : way) * share));
  return fabsf(y) < 0x1p-126F ? 0 * y : y;
}
DEVICE float EXP2_ROUGH(float x) { return fake_rough(exp2((double)x), bits_of(x), 0x1.8p-23); }
#define EXP2_STEPS(x) fake_engine.power_of_steps(FAKE_LANE, (x), __LINE__)
DEVICE float INVERSE_ROUGH(float x) { return fake_rough(1 / (double)x, bits_of(x), 0x1p-24); }

#include "formats.h"

// ---- tensor cores -------------------------------------------------------------------------------

#define mma_f16(d, x, y) fake_engine.mma(FAKE_LANE, FAKE_MMA_F16, d, x, y, __LINE__)
#define mma_bf16(d, x, y) fake_engine.mma(FAKE_LANE, FAKE_MMA_BF16, d, x, y, __LINE__)
#define mma_tf32(d, x, y) fake_engine.mma(FAKE_LANE, FAKE_MMA_TF32, d, x, y, __LINE__)
#define mma_s8(d, x, y) fake_engine.mma(FAKE_LANE, FAKE_MMA_S8, d, x, y, __LINE__)
#define mma_s8u8(d, x, y) fake_engine.mma(FAKE_LANE, FAKE_MMA_S8U8, d, x, y, __LINE__)
#define mma_u8(d, x, y) fake_engine.mma(FAKE_LANE, FAKE_MMA_U8, d, x, y, __LINE__)
#define mma_u8s8(d, x, y) fake_engine.mma(FAKE_LANE, FAKE_MMA_U8S8, d, x, y, __LINE__)
#define load_matrices(d, row) fake_engine.matrices(FAKE_LANE, FAKE_LOAD_MATRICES, d, row, __LINE__)
#define load_matrices_transposed(d, row) \
  fake_engine.matrices(FAKE_LANE, FAKE_LOAD_MATRICES_TRANSPOSED, d, row, __LINE__)

// ---- wgmma -------------------------------------------------------------------------------------

#define HAS_WGMMA 1
#define WGMMA(name, type, columns, turned) WGMMA_OF(name, type, columns, turned)
#define WGMMA_OF(name, type, n, turned)                                                  \
  DEVICE void name(float* d, uint64_t x, uint64_t w) {                                   \
    fake_engine.wgmma(FAKE_LANE, FAKE_WGMMA_OF_##type, d, n, x, w, turned, 1, __LINE__); \
  }
#define WGMMA_FIRST(name, type, columns, turned) WGMMA_FIRST_OF(name, type, columns, turned)
#define WGMMA_FIRST_OF(name, type, n, turned)                                            \
  DEVICE void name(float* d, uint64_t x, uint64_t w) {                                   \
    fake_engine.wgmma(FAKE_LANE, FAKE_WGMMA_OF_##type, d, n, x, w, turned, 0, __LINE__); \
  }
#define WGMMA_LEFT(name, type, columns, turned) WGMMA_LEFT_OF(name, type, columns, turned)
#define WGMMA_LEFT_OF(name, type, n, turned)                                                  \
  DEVICE void name(float* d, const uint32_t* x, uint64_t w) {                                 \
    fake_engine.wgmma_left(FAKE_LANE, FAKE_WGMMA_OF_##type, d, n, x, w, turned, 1, __LINE__); \
  }
#define WGMMA_8(name, x_type, w_type, columns) WGMMA_8_OF(name, x_type, w_type, columns)
#define WGMMA_8_OF(name, x_type, w_type, n)                                                      \
  DEVICE void name(int32_t* d, uint64_t x, uint64_t w) {                                         \
    fake_engine.wgmma(FAKE_LANE, FAKE_WGMMA_OF_##x_type##_##w_type, d, n, x, w, 0, 1, __LINE__); \
  }
#define FAKE_WGMMA_OF_s8_s8 FAKE_WGMMA_S8
#define FAKE_WGMMA_OF_s8_u8 FAKE_WGMMA_S8U8
#define FAKE_WGMMA_OF_u8_s8 FAKE_WGMMA_U8S8
#define FAKE_WGMMA_OF_u8_u8 FAKE_WGMMA_U8
#define FAKE_WGMMA_OF_f16 FAKE_WGMMA_F16
#define FAKE_WGMMA_OF_bf16 FAKE_WGMMA_BF16
#define WGMMA_TF32(name, columns) WGMMA_TF32_OF(name, columns)
#define WGMMA_TF32_OF(name, n)                                                 \
  DEVICE void name(float* d, uint64_t x, uint64_t w) {                         \
    fake_engine.wgmma(FAKE_LANE, FAKE_WGMMA_TF32, d, n, x, w, 0, 1, __LINE__); \
  }
#define WGMMA_TF32_LEFT(name, columns) WGMMA_TF32_LEFT_OF(name, columns)
#define WGMMA_TF32_LEFT_OF(name, n)                                                    \
  DEVICE void name(float* d, const uint32_t* x, uint64_t w, int adds) {                \
    fake_engine.wgmma_left(FAKE_LANE, FAKE_WGMMA_TF32, d, n, x, w, 0, adds, __LINE__); \
  }
#define WGMMA_FENCE() fake_engine.wgmma_fence(FAKE_LANE, __LINE__)
#define WGMMA_COMMIT() fake_engine.wgmma_commit(FAKE_LANE, __LINE__)
#define WGMMA_WAIT(left) fake_engine.wgmma_wait(FAKE_LANE, left, __LINE__)
#define FENCE_ASYNC() fake_engine.fence_async(FAKE_LANE)
DEVICE void hold_sums(float* d, int n) {
  (void)d;
  (void)n;
}
DEVICE void hold_integers(int32_t* d, int n) {
  (void)d;
  (void)n;
}
#define shared_address(p) fake_engine.shared_address(FAKE_LANE, p, __LINE__)

// ---- copies behind the thread's back ------------------------------------------------------------

#define copy_16(shared, global, valid) \
  fake_engine.copy(FAKE_LANE, shared, global, 16, valid, __LINE__)
#define copy_8(shared, global, valid) \
  fake_engine.copy(FAKE_LANE, shared, global, 8, valid, __LINE__)
#define copy_4(shared, global, valid) \
  fake_engine.copy(FAKE_LANE, shared, global, 4, valid, __LINE__)
#define COMMIT_COPIES() fake_engine.commit_copies(FAKE_LANE)
#define WAIT_COPIES(left) fake_engine.wait_copies(FAKE_LANE, left, __LINE__)

// ---- barriers, and tiles that the copy engine brings
// ---------------------------------------------

#define FAKE_SHARED(at) fake_engine.shared_place(FAKE_LANE, at, __LINE__)
#define asks_for_warp() (LANE == 0)
#define barrier_make(b, arrivals) \
  fake_engine.make_barrier(FAKE_LANE, FAKE_SHARED(b), arrivals, __LINE__)
#define BARRIERS_MADE() fake_engine.barriers_made(FAKE_LANE)
#define barrier_expect(b, bytes) fake_engine.arrive(FAKE_LANE, FAKE_SHARED(b), bytes, __LINE__)
#define barrier_arrive(b) fake_engine.arrive(FAKE_LANE, FAKE_SHARED(b), 0, __LINE__)
#define barrier_arrive_in(b, rank) \
  fake_engine.arrive_in(FAKE_LANE, FAKE_SHARED(b), (int)(rank), __LINE__)
DEVICE void fake_barrier_wait(void* b, int parity, int line) {
  while (!fake_engine.try_barrier(FAKE_LANE, b, parity, line)) fake_engine.relax(FAKE_LANE);
}
#define barrier_wait(b, parity) fake_barrier_wait(FAKE_SHARED(b), parity, __LINE__)
#define bulk_tile(shared, map, x, y, b) bulk_tile_multicast(shared, map, x, y, b, 0)
#define bulk_tile_multicast(shared, map, x, y, b, blocks)                                     \
  fake_engine.bulk(FAKE_LANE, FAKE_SHARED(shared), map, (const int[]){(x), (y)}, 2, (blocks), \
                   FAKE_SHARED(b), __LINE__)
#define bulk_windows(shared, map, channel, column, row, sample, column_further, row_further, b)   \
  fake_engine.bulk(                                                                               \
      FAKE_LANE, FAKE_SHARED(shared), map,                                                        \
      (const int[]){(channel), (column), (row), (sample), (column_further), (row_further)}, 6, 0, \
      FAKE_SHARED(b), __LINE__)
#define bulk_prepare(map) (void)(map)

#endif  // TESTS_CUDA_FAKE_KERNEL_PRELUDE_H_
