// Convolutions of few channels along two axes on tensor cores by mma.sync: a block brings the lines of
// the image that are under its windows into shared memory as they lie, and takes windows' terms
// from there, so that no matrix of windows is ever written. Sums are those of product_mma.cu.
//
// Options: those of product.h, with CONV 1; IN f16 or bf16; BM x BN, the tile: 32 rows a warp, columns a
// multiple of 8; CHANNELS, all of one group; IW, IH, OW, OH: places of the image and of the output,
// across and down; KW, KH, SW, SH; PAD_W, PAD_H: in front; PIECE 8, 2 or 1: elements that a line has a
// multiple of. Weights are constants, [columns, PADDED], with zeros behind K terms. The first
// axis is not there; a tile has no more rows than a sample.
#define N_THREADS BM
#include "product_sums.h"

typedef ELEMENT(IN) element_t;
#define MMA_f16 mma_f16
#define MMA_bf16 mma_bf16

enum { EIGHT = 8 };
#define UP(n, by) (((n) + (by)-1) / (by) * (by))
#define TM 2          // matrices of 16 x 8 that a warp makes
#define TN (BN / 8)
#define K (KH * KW * CHANNELS)
#define PADDED UP(K, 16)
#define STEPS (PADDED / 16)
#define W_STEP (PADDED + EIGHT)  // so that eight columns lie in different banks
#define W_COLUMNS UP(BN, 16)

// A place of the image has channels that nobody has behind it where its own would lie in the banks of
// the next one's. Element i of a line lies there:
#define PLACE (CHANNELS % EIGHT ? CHANNELS : CHANNELS + EIGHT)
#define PLACED(i) ((i) / CHANNELS * PLACE + (i) % CHANNELS)

// Lines of samples lie below each other, each sample's with its pads: line 0 of the next sample is
// line SAMPLE_LINES of this one. In front of a line are LEFT zeros.
#define SAMPLE_LINES ((OH - 1) * SH + KH)
#define LEFT UP(PAD_W * CHANNELS, EIGHT)
#define WINDOWS_END (((OW - 1) * SW + KW - PAD_W) * CHANNELS)
#define ELEMENTS UP(LEFT + (WINDOWS_END > IW * CHANNELS ? WINDOWS_END : IW * CHANNELS), EIGHT)
#define LINE PLACED(ELEMENTS)
// Under a tile: it begins anywhere in a row of the output, or where one does; it ends in the same
// sample, or in the next one.
#define IS_WHOLE (OW % BM == 0 || BM % OW == 0)
#define ROWS_FURTHER (IS_WHOLE ? UP(BM, OW) / OW - 1 : UP(BM - 1, OW) / OW)
#define LINES (ROWS_FURTHER * SH + KH + (OW * OH % BM && KH > SH ? KH - SH : 0))

// The line that a row of the product has its first terms of.
DEVICE uint32_t line_of(uint32_t row) {
  const uint32_t of_output = row / OW;
  return of_output / OH * SAMPLE_LINES + of_output % OH * SH;
}

DEVICE void bring_weights(const product_args_t* a, int64_t column, element_t* to) {
  const element_t* w = GLOBAL(const element_t, a->w);
  enum { PIECES = PADDED / EIGHT };
  for (int i = THREAD; i < W_COLUMNS * PIECES; i += N_THREADS) {
    const int of = i / PIECES, piece = i % PIECES * EIGHT;
    const bool there = of < BN && column + of < a->n;
    copy_16(to + of * W_STEP + piece, w + (there ? (column + of) * PADDED + piece : 0),
            there ? 16 : 0);
  }
}

DEVICE void bring_lines(const product_args_t* a, uint32_t first, element_t* to) {
  const element_t* x = GLOBAL(const element_t, a->x);
  enum { PIECES = ELEMENTS / PIECE, WIDTH = IW * CHANNELS };
  const uint32_t samples = (uint32_t)a->m / (OW * OH);
  for (int i = THREAD; i < LINES * PIECES; i += N_THREADS) {
    const uint32_t line = first + (uint32_t)(i / PIECES), sample = line / SAMPLE_LINES;
    const int element = i % PIECES * PIECE, at = element - LEFT;
    const int y = (int)(line % SAMPLE_LINES) - PAD_H;
    const bool there = sample < samples && (uint32_t)y < (uint32_t)IH && at >= 0 && at < WIDTH;
    element_t* place = to + i / PIECES * LINE + PLACED(element);
    const element_t* from = x + (there ? sample * a->x_sample + (int64_t)(y * WIDTH + at) : 0);
#if PIECE == 8
    copy_16(place, from, there ? 16 : 0);
#elif PIECE == 2
    copy_4(place, from, there ? 4 : 0);
#else
    *place = there ? *from : (element_t)0;
#endif
  }
}

// Terms 2 q, 2 q + 1 and those eight further of step s, for two rows of a matrix, which begin at
// these places: as mma.sync takes them. Of terms that are none there may be anything.
DEVICE void take_terms(const element_t* lines, const int* begins, const int* offsets, int s,
                       uint32_t* x) {
  UNROLL
  for (int i = 0; i < 4; i++) {
    const int k = s * 16 + LANE % 4 * 2 + i / 2 * 8;
    const element_t* from = lines + begins[i % 2];
#if CHANNELS % 2
    uint32_t low = from[offsets[i / 2 * 2]], high = from[offsets[i / 2 * 2 + 1]];
    if (s * 16 + 16 > K) {
      low = k < K ? low : 0;
      high = k + 1 < K ? high : 0;
    }
    x[i] = low | high << 16;
#else
    const uint32_t both = *(const uint32_t*)(const void*)(from + offsets[i / 2 * 2]);
    x[i] = s * 16 + 16 <= K || k < K ? both : 0;
#endif
  }
}

DEVICE void take_weights(const element_t* weights, int s, uint32_t (*w)[2]) {
  UNROLL
  for (int j = 0; j < TN; j += 2) {
    uint32_t r[4];
    load_matrices(r, weights + (j * 8 + LANE % 8 + LANE / 16 * 8) * W_STEP + s * 16 +
                         LANE / 8 % 2 * EIGHT);
    w[j][0] = r[0];
    w[j][1] = r[1];
    if (j + 1 == TN) continue;
    w[j + 1][0] = r[2];
    w[j + 1][1] = r[3];
  }
}

// How far behind a window's first element terms lie; behind the last one, where that lies, or the
// last pair where terms are read in pairs.
DEVICE void find_offsets(int* offsets) {
  for (int k = THREAD; k < PADDED; k += N_THREADS) {
    const int of = k < K ? k : CHANNELS % 2 ? K - 1 : K - 2 + k % 2;
    offsets[k] = of / (KW * CHANNELS) * LINE + PLACED(of % (KW * CHANNELS));
  }
}

KERNEL(product_lines, product_args_t, N_THREADS) {
  DYNAMIC(element_t, lines);
  SHARED int offsets[PADDED];
  element_t* weights = lines + LINES * LINE;
  const tile_t t = find_only_tile(&a, (uint32_t)BLOCK, BM, BN);
  const uint32_t line = line_of((uint32_t)t.row);
  const int down = THREAD / WARP * TM * 16;
  int begins[TM][2];
  float sums[TM][TN][4];
  bring_weights(&a, t.column, weights);
  find_offsets(offsets);
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int r = 0; r < 2; r++) {
    const uint32_t wanted = (uint32_t)t.row + (uint32_t)(down + i * 16 + r * 8 + LANE / 4);
    const uint32_t row = wanted < (uint32_t)a.m ? wanted : (uint32_t)t.row;
    begins[i][r] = (int)(line_of(row) - line) * LINE +
                   PLACED((int)(row % OW) * SW * CHANNELS + LEFT - PAD_W * CHANNELS);
  }
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) UNROLL
  for (int r = 0; r < 4; r++) sums[i][j][r] = 0;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  bring_lines(&a, line, lines);
  COMMIT_COPIES();
  WAIT_COPIES(0);
  SYNC();
  UNROLL
  for (int s = 0; s < STEPS; s++) {
    uint32_t x[TM][4], w[TN][2];
    int of[4];
    UNROLL
    for (int i = 0; i < 4; i++) of[i] = offsets[s * 16 + LANE % 4 * 2 + i % 2 + i / 2 * 8];
    UNROLL
    for (int i = 0; i < TM; i++) take_terms(lines, begins[i], of, s, x[i]);
    take_weights(weights, s, w);
    UNROLL
    for (int i = 0; i < TM; i++) UNROLL
    for (int j = 0; j < TN; j++) JOINED(MMA_, IN)(sums[i][j], x[i], w[j]);
  }
  // Sums lie where lines and weights were.
  float* tile = (float*)(void*)lines;
  SYNC();
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) UNROLL
  for (int r = 0; r < 4; r += 2)
    put_sums(tile, down + i * 16 + LANE / 4 + r * 4, j * 8 + 2 * (LANE % 4), sums[i][j][r],
             sums[i][j][r + 1]);
  SYNC();
  finish_tile(&a, &t, tile, THREAD);
}
