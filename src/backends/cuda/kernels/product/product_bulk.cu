// Products by wgmma (sm_90a) whose operands the copy engine brings: one thread each of two warps of
// their own asks for tiles of the left side and of the weights, groups of four warps multiply, and
// nobody counts addresses. The order of sums, and so the bits, are those of product_wgmma.cu.
//
// Options besides those of product.h: IN f16 or bf16; BM x BN, the tile, 64 rows a group of four
// warps; STAGES, steps that shared memory has; TURNED 1: columns of a term of the weights lie side
// by side, 0: terms of a column; W_CONSTANT 1: no layer before this one writes the weights. CONV 0: the
// left side is a matrix; 1: windows of a convolution with two axes, whose channels are whole steps.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin

#include "product_bulk_args.h"
#include "wgmma.h"

#define MULTIPLIERS (BM * 2)  // threads
#define N_THREADS (MULTIPLIERS + 2 * WARP)
#define BK 64  // terms of a step: lines of 128 bytes
#define X_BYTES (BM * BK * 2)
#define W_BYTES (BN * BK * 2)
#define BARRIER 8  // bytes

#include "product_sums.h"

typedef ELEMENT(IN) element_t;

// Columns of a line of the weights, turned.
#define LINE (TURNED && BN % 64 ? 32 : 64)
#define W_LINES (LINE == 64 ? WGMMA_LINE_128 : WGMMA_LINE_64)
// How far the next 16 terms lie behind, in bytes: in rows; turned, 16 lines.
#define X_NEXT 32
#define W_NEXT (TURNED ? 16 * LINE * 2 : 32)

#if BM % 64 || STAGES < 2 || BM * (BN + 8) * 4 > STAGES * (X_BYTES + W_BYTES)
#error "no such tile"
#endif

WGMMA(multiply_16, IN, BN, TURNED)

// Shared memory of a block, by addresses: what stages have of each operand, and barriers of each:
// its tiles are there; they are multiplied.
typedef struct stages {
  uint32_t x, w, full, empty;
} stages_t;

DEVICE stages_t find_stages(uint32_t at) {
  stages_t s;
  s.x = at;
  s.w = s.x + STAGES * X_BYTES;
  s.full = s.w + STAGES * W_BYTES;
  s.empty = s.full + STAGES * BARRIER;
  return s;
}

DEVICE void make_barriers(const stages_t* s) {
  for (int i = 0; i < STAGES; i++) {
    barrier_make(s->full + (uint32_t)i * BARRIER, 2);
    barrier_make(s->empty + (uint32_t)i * BARRIER, MULTIPLIERS / WARP);
  }
  BARRIERS_MADE();
}

// The stage of a step, and how many times it was used before, modulo 2.
typedef struct turn {
  uint32_t stage;
  int parity;
} turn_t;

DEVICE void next_turn(turn_t* t) {
  const bool last = t->stage == STAGES - 1;
  t->stage = last ? 0 : t->stage + 1;
  t->parity ^= last;
}

// ---- the threads that ask -----------------------------------------------------------------------

// Waits until a step's stage is free: the first time it is.
DEVICE uint32_t begin_step(const stages_t* s, const turn_t* t, int bytes) {
  const uint32_t full = s->full + t->stage * BARRIER;
  barrier_wait(s->empty + t->stage * BARRIER, t->parity ^ 1);
  barrier_expect(full, bytes);
  return full;
}

DEVICE void ask_for_weights(const product_bulk_args_t* a, const stages_t* s, const tile_t* t,
                            int steps) {
  turn_t turn = {0, 0};
  bulk_prepare(&a->w);
  if (!W_CONSTANT) WAIT_FOR_INPUTS();
  ROLLED
  for (int i = 0; i < steps; i++) {
    const uint32_t full = begin_step(s, &turn, W_BYTES), to = s->w + turn.stage * W_BYTES;
#if TURNED
    UNROLL
    for (int c = 0; c < BN; c += LINE)
      bulk_tile(to + (uint32_t)c * BK * 2, &a->w, (int)t->column + c, i * BK, full);
#else
    bulk_tile(to, &a->w, i * BK, (int)t->column, full);
#endif
    next_turn(&turn);
  }
}

// Where windows begin, and which step of which tap comes next.
typedef struct windows {
  int column, row, sample, channel, column_further, row_further;
} windows_t;

DEVICE windows_t find_windows(const product_args_t* a, const tile_t* t) {
  windows_t w;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const uint32_t row = (uint32_t)t->row, line = row / (uint32_t)across->out;
  w.column = (int)(row - line * (uint32_t)across->out) * across->stride - across->pad;
  w.sample = (int)(line / (uint32_t)down->out);
  w.row = ((int)line - w.sample * down->out) * down->stride - down->pad;
  w.channel = w.column_further = w.row_further = 0;
  return w;
}

DEVICE void next_windows(const product_args_t* a, windows_t* w) {
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  w->channel += BK;
  if (w->channel < a->channels) return;
  w->channel = 0;
  w->column_further += across->dilation;
  if (w->column_further < across->kernel * across->dilation) return;
  w->column_further = 0;
  w->row_further += down->dilation;
}

DEVICE void ask_for_left(const product_bulk_args_t* a, const stages_t* s, const tile_t* t,
                         int steps) {
  turn_t turn = {0, 0};
#if CONV
  windows_t w = find_windows(&a->product, t);
#endif
  bulk_prepare(&a->x);
  WAIT_FOR_INPUTS();
  ROLLED
  for (int i = 0; i < steps; i++) {
    const uint32_t full = begin_step(s, &turn, X_BYTES), to = s->x + turn.stage * X_BYTES;
#if CONV
    bulk_windows(to, &a->x, w.channel, w.column, w.row, w.sample, w.column_further, w.row_further,
                 full);
    next_windows(&a->product, &w);
#else
    bulk_tile(to, &a->x, i * BK, (int)t->row, full);
#endif
    next_turn(&turn);
  }
}

// ---- those that multiply ------------------------------------------------------------------------

DEVICE uint64_t describe_left(uint32_t x) { return describe_matrix(x, 16, 1024, WGMMA_LINE_128); }
DEVICE uint64_t describe_right(uint32_t w) {
#if TURNED
  return describe_matrix(w, BK * LINE * 2, 8 * LINE * 2, W_LINES);
#else
  return describe_matrix(w, 16, 1024, WGMMA_LINE_128);
#endif
}

// While a step's products are under way, those of the step before it end, and its memory is free.
DEVICE void multiply(const stages_t* s, uint32_t group, int steps, float* sums) {
  const uint64_t all_x = describe_left(s->x + group * 64 * BK * 2), all_w = describe_right(s->w);
  turn_t turn = {0, 0};
  uint32_t before = 0;
  ROLLED
  for (int i = 0; i < steps; i++) {
    const uint64_t x = further(all_x, turn.stage * X_BYTES);
    const uint64_t w = further(all_w, turn.stage * W_BYTES);
    barrier_wait(s->full + turn.stage * BARRIER, turn.parity);
    WGMMA_FENCE();
    UNROLL
    for (uint32_t k = 0; k < BK / 16; k++)
      multiply_16(sums, further(x, k * X_NEXT), further(w, k * W_NEXT));
    WGMMA_COMMIT();
    WGMMA_WAIT(1);
    if (i && LANE == 0) barrier_arrive(before);
    before = s->empty + turn.stage * BARRIER;
    next_turn(&turn);
  }
  WGMMA_WAIT(0);
  hold_sums(sums, BN / 2);
}

// While one block ends its sums, others multiply.
#define TOGETHER_BLOCKS (BN > 128 ? 1 : BM > 64 ? 2 : 3)
KERNEL_OF_BLOCKS(product_bulk, product_bulk_args_t, N_THREADS, TOGETHER_BLOCKS) {
#if HAS_WGMMA
  DYNAMIC(element_t, bytes);
  element_t* aligned =
      bytes + (DYNAMIC_ALIGNED - shared_address(bytes) % DYNAMIC_ALIGNED) % DYNAMIC_ALIGNED / 2;
  const stages_t s = find_stages(shared_address(aligned));
  const tile_t t = find_only_tile(&a.product, BM, BN);
  const int steps = ((int)a.product.k + BK - 1) / BK;
  const uint32_t warp = shuffle_u32((uint32_t)THREAD / WARP, 0);  // the same for all, visibly
  if (THREAD == 0) make_barriers(&s);
  SYNC();
  LAUNCH_NEXT();
  float sums[BN / 2];
  UNROLL
  for (int i = 0; i < BN / 2; i++) sums[i] = 0;
  if (warp < MULTIPLIERS / WARP)
    multiply(&s, warp / 4, steps, sums);
  else if (warp == MULTIPLIERS / WARP && asks_for_warp())
    ask_for_weights(&a, &s, &t, steps);
  else if (warp > MULTIPLIERS / WARP && asks_for_warp())
    ask_for_left(&a, &s, &t, steps);
  SYNC();  // no tile is read any more: sums lie where they were
  float* tile = (float*)(void*)aligned;
  if (warp < MULTIPLIERS / WARP) {
    const int row = THREAD / WARP * 16 + LANE / 4;
    UNROLL
    for (int i = 0; i < BN / 2; i += 2)
      put_sums(tile, row + i / 2 % 2 * 8, i / 4 * 8 + LANE % 4 * 2, sums[i], sums[i + 1]);
  }
  SYNC();
  WAIT_FOR_INPUTS();
  finish_tile(&a.product, &t, tile);
#else  // it compiles, and must not run
  (void)a;
#endif
}
