// What a kernel that was compiled for the host (prelude.h) and the platform that runs it (../) know
// of each other. A lane is a fiber; what it is stands at the upper end of its stack.
#ifndef TESTS_CUDA_FAKE_KERNEL_ENGINE_H_
#define TESTS_CUDA_FAKE_KERNEL_ENGINE_H_

#include <stddef.h>
#include <stdint.h>

enum { FAKE_ALIGNED = 2, FAKE_WARP = 32, FAKE_GROUP = 128, FAKE_MAX_THREADS = 1024 };
// Bytes of a lane's stack. Stack i of a block lies at i * FAKE_STACK behind a multiple of
// FAKE_STACK * FAKE_MAX_THREADS: so a lane finds itself by the address of anything on its stack.
#define FAKE_STACK ((uintptr_t)256 << 10)

typedef struct fake_lane {
  int thread, threads;
  int block_y, block_z;
  int rank;  // in the cluster
  int64_t block, blocks;
  void* dynamic;         // shared memory that the launch asked for
  struct fake_run* run;  // the platform's
} fake_lane_t;

// The lane that runs: above its stack.
static inline __attribute__((unused)) fake_lane_t* fake_lane(void) {
  const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  return (fake_lane_t*)((here | (FAKE_STACK - 1)) + 1) - 1;
}
#define FAKE_LANE fake_lane()

// Operations that all lanes of a warp take part in.
typedef enum fake_warp_op {
  FAKE_SYNC_WARP,
  FAKE_SHUFFLE,
  FAKE_SHUFFLE_XOR,
  FAKE_SHUFFLE_UP,
  FAKE_SHUFFLE_DOWN,
  FAKE_BALLOT,
  FAKE_MATCH,
  FAKE_MMA_F16,
  FAKE_MMA_BF16,
  FAKE_MMA_TF32,
  FAKE_MMA_S8,
  FAKE_MMA_U8S8,
  FAKE_MMA_S8U8,
  FAKE_MMA_U8,
  FAKE_LOAD_MATRICES,
  FAKE_LOAD_MATRICES_TRANSPOSED,
  FAKE_WGMMA_F16,
  FAKE_WGMMA_BF16,
  FAKE_WGMMA_TF32,
  FAKE_WGMMA_S8,
  FAKE_WGMMA_U8S8,
  FAKE_WGMMA_S8U8,
  FAKE_WGMMA_U8,
  FAKE_WGMMA_FENCE,
  FAKE_WGMMA_COMMIT,
  FAKE_WGMMA_WAIT
} fake_warp_op_t;

// `line` is the kernel's.
typedef struct fake_engine {
  void* (*global)(fake_lane_t* lane, uint64_t address, int line);
  void (*sync)(fake_lane_t* lane, int line);
  // memory: whether it orders what is stored, and read by other blocks.
  void (*sync_cluster)(fake_lane_t* lane, int memory, int line);
  void (*sync_group)(fake_lane_t* lane, int threads, int line);
  void (*sync_warp)(fake_lane_t* lane, int line);
  // `other`: a lane, a mask or a distance. bytes: 4 or 8
  uint64_t (*shuffle)(fake_lane_t* lane, fake_warp_op_t op, uint64_t x, int other, int line);
  uint32_t (*vote)(fake_lane_t* lane, fake_warp_op_t op, uint64_t x, int line);
  void (*mma)(fake_lane_t* lane, fake_warp_op_t op, void* d, const uint32_t* a, const uint32_t* b,
              int line);
  void (*matrices)(fake_lane_t* lane, fake_warp_op_t op, uint32_t* d, const void* row, int line);
  float (*power_of_steps)(fake_lane_t* lane, float x, int line);  // EXP2_STEPS
  void (*copy)(fake_lane_t* lane, void* shared, const void* global, int bytes, int valid, int line);
  void (*commit_copies)(fake_lane_t* lane);
  void (*wait_copies)(fake_lane_t* lane, int left, int line);
  // d += x w of a group of four warps, or d = x w where adds is 0; d is of n / 2 sums, float or
  // int32_t; x and w are descriptors.
  void (*wgmma)(fake_lane_t* lane, fake_warp_op_t op, void* d, int n, uint64_t x, uint64_t w,
                int turned, int adds, int line);
  // The left side of 32 bytes in four words of each lane.
  void (*wgmma_left)(fake_lane_t* lane, fake_warp_op_t op, float* d, int n, const uint32_t* x,
                     uint64_t w, int turned, int adds, int line);
  void (*wgmma_fence)(fake_lane_t* lane, int line);
  void (*wgmma_commit)(fake_lane_t* lane, int line);
  void (*wgmma_wait)(fake_lane_t* lane, int left, int line);
  void (*fence_async)(fake_lane_t* lane);
  uint32_t (*shared_address)(fake_lane_t* lane, const void* p, int line);
  void* (*shared_place)(fake_lane_t* lane, uint32_t at, int line);  // of such an address
  // Barriers in dynamic shared memory, and tiles of tensors (tensor_map_t); `try_barrier`: whether
  // a phase of that parity has ended. coordinates: of a tile two, of windows four and two offsets;
  // blocks: a bit for each of the cluster that gets the tile, 0: this one alone.
  void (*make_barrier)(fake_lane_t* lane, void* barrier, int arrivals, int line);
  void (*barriers_made)(fake_lane_t* lane);
  void (*arrive)(fake_lane_t* lane, void* barrier, int bytes, int line);
  void (*arrive_in)(fake_lane_t* lane, void* barrier, int rank, int line);
  int (*try_barrier)(fake_lane_t* lane, void* barrier, int parity, int line);
  // Words of dynamic shared memory at the same place of another block of the cluster.
  void (*read_of)(fake_lane_t* lane, int rank, const void* p, uint32_t* words, int n, int line);
  void (*bulk)(fake_lane_t* lane, void* shared, const void* map, const int* coordinates, int n,
               unsigned blocks, void* barrier, int line);
  void (*wait_for_inputs)(fake_lane_t* lane);
  // Accesses of the kernel's own; `at`: where its code is. is_write: 1 or 0, with FAKE_ALIGNED
  // where it has to be at a multiple of its bytes.
  void (*access)(fake_lane_t* lane, const void* p, size_t bytes, int is_write, const void* at);
  void (*atomic)(fake_lane_t* lane, const void* p, size_t bytes, int line);
  void (*relax)(fake_lane_t* lane);
  void (*fail)(fake_lane_t* lane, const char* what, int line);
} fake_engine_t;

// A kernel's symbol is fake_kernel_NAME.
typedef struct fake_kernel {
  void (*enter)(const void* args);
  size_t args_bytes;
  int max_threads;
} fake_kernel_t;

#endif  // TESTS_CUDA_FAKE_KERNEL_ENGINE_H_
