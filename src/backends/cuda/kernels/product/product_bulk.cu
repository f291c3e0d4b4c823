// Products by wgmma (sm_90a) whose operands the copy engine brings: one thread of a warp of its own
// asks for tiles, groups of four warps multiply, and nobody counts addresses. The order of sums, and
// so the bits, are those of product_wgmma.cu.
//
// Options besides those of product.h: IN f16 or bf16; BM x BN, the tile, 64 rows a group of four
// warps; STAGES, steps that shared memory has; TURNED 1: columns of a term of the weights lie side
// by side, 0: terms of a column; W_CONSTANT 1: no layer before this one writes the weights. CONV 0: the
// left side is a matrix; 1: windows of a convolution with two axes, whose channels are whole steps.
#include "product_bulk_args.h"
#include "wgmma.h"

#define MULTIPLIERS (BM * 2)  // threads
#define N_THREADS (MULTIPLIERS + WARP)
#define BK 64         // terms of a step: lines of 128 bytes
#define ALIGNED 1024  // where patterns of eight lines begin
#define STEP_BYTES ((BM + BN) * BK * 2)

#include "product_sums.h"

typedef ELEMENT(IN) element_t;

// Columns of a line of the weights, turned.
#define LINE (TURNED && BN % 64 ? 32 : 64)
#define W_LINES (LINE == 64 ? WGMMA_LINE_128 : WGMMA_LINE_64)
// How far the next 16 terms lie behind, in bytes: in rows; turned, 16 lines.
#define X_NEXT 32
#define W_NEXT (TURNED ? 16 * LINE * 2 : 32)

#if BM % 64 || STAGES < 2 || BM * (BN + 8) * 4 > STAGES * STEP_BYTES
#error "no such tile"
#endif

WGMMA(multiply_16, IN, BN, TURNED)

DEVICE uint64_t describe_left(const element_t* x) {
  return describe_matrix(shared_address(x), 16, 1024, WGMMA_LINE_128);
}
DEVICE uint64_t describe_right(const element_t* w) {
#if TURNED
  return describe_matrix(shared_address(w), BK * LINE * 2, 8 * LINE * 2, W_LINES);
#else
  return describe_matrix(shared_address(w), 16, 1024, WGMMA_LINE_128);
#endif
}

// Shared memory of a block.
typedef struct stages {
  element_t *x, *w;
  uint64_t *full, *empty;  // barriers of each: its tiles are there; they are multiplied
} stages_t;

DEVICE stages_t find_stages(element_t* bytes) {
  stages_t s;
  s.x = bytes + (ALIGNED - shared_address(bytes) % ALIGNED) % ALIGNED / 2;
  s.w = s.x + STAGES * BM * BK;
  s.full = (uint64_t*)(void*)(s.w + STAGES * BN * BK);
  s.empty = s.full + STAGES;
  return s;
}

DEVICE void make_barriers(const stages_t* s) {
  for (int i = 0; i < STAGES; i++) {
    barrier_make(s->full + i, 1);
    barrier_make(s->empty + i, MULTIPLIERS / WARP);
  }
  BARRIERS_MADE();
}

// ---- the thread that asks -----------------------------------------------------------------------

DEVICE void ask_for_weights(const product_bulk_args_t* a, const stages_t* s, const tile_t* t,
                            int step, int stage) {
  element_t* to = s->w + stage * BN * BK;
#if TURNED
  UNROLL
  for (int i = 0; i < BN; i += LINE)
    bulk_tile(to + i * BK, &a->w, (int)t->column + i, step * BK, s->full + stage);
#else
  bulk_tile(to, &a->w, step * BK, (int)t->column, s->full + stage);
#endif
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

DEVICE void ask(const product_bulk_args_t* a, const stages_t* s, const tile_t* t, int steps) {
  const int early = !W_CONSTANT ? 0 : steps < STAGES ? steps : STAGES;
#if CONV
  windows_t w = find_windows(&a->product, t);
#endif
  for (int i = 0; i < early; i++) {
    barrier_expect(s->full + i, STEP_BYTES);
    ask_for_weights(a, s, t, i, i);
  }
  WAIT_FOR_INPUTS();
  int stage = 0, round = 0;
  for (int i = 0; i < steps; i++) {
    if (round) barrier_wait(s->empty + stage, (round - 1) & 1);
    if (i >= early) {
      barrier_expect(s->full + stage, STEP_BYTES);
      ask_for_weights(a, s, t, i, stage);
    }
#if CONV
    bulk_windows(s->x + stage * BM * BK, &a->x, w.channel, w.column, w.row, w.sample,
                 w.column_further, w.row_further, s->full + stage);
    next_windows(&a->product, &w);
#else
    bulk_tile(s->x + stage * BM * BK, &a->x, i * BK, (int)t->row, s->full + stage);
#endif
    round += stage == STAGES - 1;
    stage = stage == STAGES - 1 ? 0 : stage + 1;
  }
}

// ---- those that multiply ------------------------------------------------------------------------

// While a step's products are under way, those of the step before it end, and its memory is free.
DEVICE void multiply(const stages_t* s, int group, int steps, float* sums) {
  const uint64_t all_x = describe_left(s->x + group * 64 * BK), all_w = describe_right(s->w);
  int stage = 0, round = 0, before = 0;
  for (int i = 0; i < steps; i++) {
    const uint64_t x = further(all_x, stage * BM * BK * 2), w = further(all_w, stage * BN * BK * 2);
    barrier_wait(s->full + stage, round & 1);
    WGMMA_FENCE();
    UNROLL
    for (int k = 0; k < BK / 16; k++)
      multiply_16(sums, further(x, k * X_NEXT), further(w, k * W_NEXT));
    WGMMA_COMMIT();
    WGMMA_WAIT(1);
    if (i && LANE == 0) barrier_arrive(s->empty + before);
    before = stage;
    round += stage == STAGES - 1;
    stage = stage == STAGES - 1 ? 0 : stage + 1;
  }
  WGMMA_WAIT(0);
  hold_sums(sums, BN / 2);
}

// While one block ends its sums, others multiply.
#define TOGETHER_BLOCKS (BN > 128 ? 1 : BM > 64 ? 2 : 3)
KERNEL_OF_BLOCKS(product_bulk, product_bulk_args_t, N_THREADS, TOGETHER_BLOCKS) {
#if HAS_WGMMA
  DYNAMIC(element_t, bytes);
  const stages_t s = find_stages(bytes);
  const tile_t t = find_tile(&a.product, BM, BN);
  const int steps = (int)((a.product.k + BK - 1) / BK);
  const int warp = (int)shuffle_u32((uint32_t)THREAD / WARP, 0);  // the same for all, visibly
  if (THREAD == 0) make_barriers(&s);
  SYNC();
  LAUNCH_NEXT();
  float sums[BN / 2];
  UNROLL
  for (int i = 0; i < BN / 2; i++) sums[i] = 0;
  if (warp < MULTIPLIERS / WARP)
    multiply(&s, warp / 4, steps, sums);
  else if (LANE == 0)
    ask(&a, &s, &t, steps);
  SYNC();  // no tile is read any more: sums lie where they were
  float* tile = (float*)(void*)s.x;
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
