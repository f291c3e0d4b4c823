// Products by fused multiply-adds in float32 (product_chains.h) whose operands the copy engine
// brings: one warp asks for them, and those that multiply spend no instructions on copies and wait
// for nobody but the engine. Groups have stages of their own, and so run apart.
//
// Options besides those of product_chains.h: CONV 0: the left side is a matrix; 1: windows of a
// convolution with two axes, whose channels are whole steps; STAGES, steps that a group has in shared
// memory; W_CONSTANT 1: no layer before this one writes the weights; DOWN_FIRST 1: tiles are counted
// down the rows first.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin

#define N_THREADS (MULTIPLIERS + WARP)
#define FINISH_THREADS MULTIPLIERS

#include "product_bulk_args.h"
#include "product_chains.h"
#include "product_windows.h"

#if BM % 8
#error "no such tile"
#endif

#define LINE_BYTES (BK * 4)
#define X_BYTES (BM * LINE_BYTES)
#define W_BYTES (BN * LINE_BYTES)
#define STAGE_BYTES (X_BYTES + W_BYTES)
#define ALL_STAGES (GROUPS * STAGES)
#define BARRIER 8  // bytes

// Shared memory by its address: stages, all of a group one after the other, the left side before the
// weights; sums that wait; barriers of each stage: its tiles are there; it is read no more.
#if GROUPS == 1 && JOINS
#define WAITING_BYTES (WAITING_FLOATS * 4)
#else
#define WAITING_BYTES 0
#endif
#define BARRIERS (ALL_STAGES * STAGE_BYTES + WAITING_BYTES)
DEVICE uint32_t full_of(uint32_t at, uint32_t stage) { return at + BARRIERS + stage * BARRIER; }
DEVICE uint32_t empty_of(uint32_t at, uint32_t stage) {
  return full_of(at, ALL_STAGES + stage);
}

// A step's stage among those of all groups, and how often it was used before, modulo 2.
typedef struct turn {
  uint32_t stage;
  int parity;
} turn_t;

DEVICE turn_t first_turn(int group) {
  const turn_t t = {(uint32_t)(group * STAGES), 0};
  return t;
}
DEVICE void next_turn(int group, turn_t* t) {
  const bool last = t->stage == (uint32_t)(group * STAGES + STAGES - 1);
  t->stage = last ? (uint32_t)(group * STAGES) : t->stage + 1;
  t->parity ^= last;
}

// A stage is full where both sides are there, which are asked for one by one; it is empty where all
// warps of its group have read it.
DEVICE void make_barriers(uint32_t at) {
  for (uint32_t i = 0; i < ALL_STAGES; i++) {
    barrier_make(full_of(at, i), 2);
    barrier_make(empty_of(at, i), LOADERS / WARP);
  }
  BARRIERS_MADE();
}

// ---- the thread that asks -----------------------------------------------------------------------

DEVICE void ask_for_weights(const tensor_map_t* w, uint32_t at, const turn_t* turn, int column,
                            int term) {
  const uint32_t to = at + turn->stage * STAGE_BYTES + X_BYTES;
  const uint32_t full = full_of(at, turn->stage);
  barrier_expect(full, W_BYTES);
#if TURNED
  UNROLL
  for (int c = 0; c < BN; c += BK)
    bulk_tile(to + (uint32_t)c * LINE_BYTES, w, column + c, term, full);
#else
  bulk_tile(to, w, term, column, full);
#endif
}

// What a group's next step is.
typedef struct next {
  turn_t turn;
  int term, end;
#if CONV
  windows_t windows;
#endif
} next_t;

DEVICE void ask_for_left(const product_bulk_args_t* a, uint32_t at, const tile_t* t,
                         next_t* n) {
  const uint32_t to = at + n->turn.stage * STAGE_BYTES;
  const uint32_t full = full_of(at, n->turn.stage);
  barrier_expect(full, X_BYTES);
#if CONV
  (void)t;
  ask_for_windows(&a->x, &n->windows, to, full);
  next_windows(&a->product, &n->windows);
#else
  bulk_tile(to, &a->x, n->term, (int)t->row, full);
#endif
}

// Weights of the first steps are asked for before the layer's inputs are there.
DEVICE void ask_for_all(const product_bulk_args_t* a, uint32_t at, const tile_t* t, int steps) {
  next_t next[GROUPS];
  const int column = (int)t->column;
  bulk_prepare(&a->w);
  bulk_prepare(&a->x);
  if (!W_CONSTANT) WAIT_FOR_INPUTS();
  UNROLL
  for (int g = 0; g < GROUPS; g++) {
    const chains_t c = find_chains(a->product.k, g);
    next[g].turn = first_turn(g);
    next[g].term = (int)c.first;
    next[g].end = (int)c.end;
#if CONV
    next[g].windows = find_windows(&a->product, t);
    skip_windows(&a->product, next[g].term, &next[g].windows);
#endif
    turn_t turn = next[g].turn;
    for (int i = 0; i < STAGES && next[g].term + i * BK < next[g].end; i++) {
      ask_for_weights(&a->w, at, &turn, column, next[g].term + i * BK);
      next_turn(g, &turn);
    }
  }
  if (W_CONSTANT) WAIT_FOR_INPUTS();
  ROLLED
  for (int i = 0; i < steps; i++) {
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
      if (next[g].term >= next[g].end) continue;
      if (i >= STAGES) {
        barrier_wait(empty_of(at, next[g].turn.stage), next[g].turn.parity ^ 1);
        ask_for_weights(&a->w, at, &next[g].turn, column, next[g].term);
      }
      ask_for_left(a, at, t, &next[g]);
      next_turn(g, &next[g].turn);
      next[g].term += BK;
    }
  }
}

// ---- those that multiply ------------------------------------------------------------------------

// Steps from `left` terms before the end on, until so many are left. `memory`: what lies at the
// address.
DEVICE void multiply_steps(const char* memory, uint32_t at, int left, int until, const part_t* part,
                           turn_t* turn, float (*sums)[TN]) {
  ROLLED
  for (; left > until; left -= BK) {
    const float* x = (const float*)(const void*)(memory + turn->stage * STAGE_BYTES);
    const float* w = x + X_BYTES / 4;
    barrier_wait(full_of(at, turn->stage), turn->parity);
    if (left >= BK)
      multiply(x, w, part, sums);
    else
      multiply_some(x, w, part, left, sums);
    SYNC_WARP();
    if (LANE == 0) barrier_arrive(empty_of(at, turn->stage));
    next_turn(GROUP, turn);
  }
}

// All chains of a group.
DEVICE void multiply_all(char* memory, uint32_t at, int64_t k, const part_t* part,
                         float (*sums)[TN]) {
  const chains_t c = find_chains(k, GROUP);
  int left = (int)(c.end - c.first);
  turn_t turn = first_turn(GROUP);
  clear(sums);
#if GROUPS == 1 && JOINS
  float* waits = (float*)(void*)(memory + ALL_STAGES * STAGE_BYTES);
  const int chain = (int)c.chain;
  ROLLED
  for (int first = left; left > 0; left -= chain) {
    if (left < first) begin_chain(waits, left == first - chain, sums);
    multiply_steps(memory, at, left, left > chain ? left - chain : 0, part, &turn, sums);
  }
  add_waiting(waits, sums);
#else
  multiply_steps(memory, at, left, 0, part, &turn, sums);
#endif
}

KERNEL_OF_BLOCKS(product_fma_bulk, product_bulk_args_t, N_THREADS, TOGETHER_BLOCKS) {
  DYNAMIC(char, bytes);
  char* aligned =
      bytes + (DYNAMIC_ALIGNED - shared_address(bytes) % DYNAMIC_ALIGNED) % DYNAMIC_ALIGNED;
  const uint32_t at = shared_address(aligned);
  const tile_t t = find_only_tile(&a.product, (uint32_t)BLOCK, BM, BN);
  const part_t part = find_part();
  // The same for all threads of a warp, visibly.
  const bool multiplies = shuffle_u32((uint32_t)THREAD / WARP, 0) < MULTIPLIERS / WARP;
  float sums[TM][TN];
  if (THREAD == 0) make_barriers(at);
  SYNC();
  LAUNCH_NEXT();
  if (multiplies)
    multiply_all(aligned, at, a.product.k, &part, sums);
  else if (asks_for_warp())
    ask_for_all(&a, at, &t, find_chains(a.product.k, 0).steps);
  SYNC();  // no stage is read any more: sums lie where they were
  float* tiles = (float*)(void*)aligned;
  if (multiplies) put_all(tiles, &part, sums);
  SYNC();
#if GROUPS > 1
  if (multiplies) join_groups(tiles, a.product.k);
  SYNC();
#endif
  WAIT_FOR_INPUTS();
  if (multiplies) finish_tile(&a.product, &t, tiles, THREAD);
}
