// Quantized attention: scores of queries and keys of 8 bits, softmax, its weights quantized, their
// sums of values of 8 bits quantized again. A block takes some queries of a head and all keys, whose
// scores it keeps in shared memory; each number has the bits that the layers by themselves give it:
// sums are exact (int8_mma.cu), what becomes of them is as int8_end.h says, and rows of scores are
// added up in the order of rows_softmax (rows.cu), whose threads a warp's lanes stand for.
//
// Options: BATCH: dimensions of the batch; ROWS: queries of a block, a multiple of 16; WARPS of it;
// SIZE, KEYS: of heads and keys up to multiples of 32, V_SIZE: of values up to one of 16; SPAN, KEEP,
// VEC: of rows_softmax, without ACROSS, KEEP not 0; SCORES, SUMS: mma of the two products; Q_ZERO,
// K_ZERO, W_ZERO, V_ZERO 1: that side has a zero point; SCALED 1: scores have a factor of their own;
// Q_FORM, K_FORM, V_FORM: PIECES: what one product adds up lies in pieces of 16 bytes; TURNED: four
// rows lie side by side at a multiple of 4 bytes; ANYHOW; Y_PAIRED 1: two columns of the result lie
// at an even place; MASKED 1: a mask is added to scores.
#define ANYHOW 0
#define PIECES 1
#define TURNED 2

#define INT8_OUT int8_t
#define INT8_SIGNED 1
#include "attention_int8_args.h"
typedef int32_t index_t;
#include "quantizer.h"
#include "rows.h"
#include "turned.h"
#include "vmath.h"

#define N_THREADS (WARP * WARPS)
#define GAP 16  // between rows in shared memory: eight of them lie in different banks
#define STEP (SIZE + GAP)
#define W_STEP (KEYS + GAP)
#define SCORE_STEP (KEYS + 4)

// ---- into shared memory -------------------------------------------------------------------------

typedef struct starts {
  int64_t q, k, v, y, mask;
} starts_t;

DEVICE starts_t find_starts(const attention_int8_args_t* a, uint32_t head) {
  starts_t s = {0, 0, 0, 0, 0};
  UNROLL
  for (int d = BATCH - 1; d >= 0; d--) {
    const uint32_t rest = d ? DIVIDED(head, a->batch[d]) : 0;
    const int64_t i = (int64_t)(head - rest * a->batch[d].size);
    head = rest;
    s.q += i * a->q.batch[d];
    s.k += i * a->k.batch[d];
    s.v += i * a->v.batch[d];
    s.y += i * a->y.batch[d];
    if (MASKED) s.mask += i * a->mask.batch[d];
  }
  return s;
}

// n rows of `width` bytes, multiples of 16 and 32, of which so many rows and terms are there; what
// is not is 0. Terms lie `column` apart.
DEVICE void load_side(int form, const uint8_t* from, int64_t row, int64_t column, int32_t rows,
                      int32_t terms, int n, int width, uint8_t* to) {
  const int step = width + GAP;
  if (form == PIECES) {
    ROLLED
    for (int i = THREAD; i < n * (width / 16); i += N_THREADS) {
      const int32_t r = i / (width / 16), c = i % (width / 16) * 16;
      const int32_t left = r < rows ? terms - c : 0, valid = left < 0 ? 0 : left < 16 ? left : 16;
      copy_16(to + r * step + c, from + (valid ? r * row + c : 0), valid);
    }
  } else if (form == TURNED) {
    ROLLED
    for (int i = THREAD; i < n / 4 * (width / 4); i += N_THREADS) {
      // A warp takes 16 rows and 32 terms.
      const int32_t r = i / WARP % (n / 16) * 16 + i % 4 * 4;
      const int32_t c = i / WARP / (n / 16) * 32 + i % WARP / 4 * 4;
      uint32_t words[4];
      UNROLL
      for (int j = 0; j < 4; j++)
        words[j] = r < rows && c + j < terms
                       ? *(const uint32_t*)(const void*)(from + (c + j) * column + r)
                       : 0;
      turn_bytes(words, (uint32_t*)(void*)(to + r * step + c), step / 4);
    }
  } else {
    ROLLED
    for (int i = THREAD; i < n * width; i += N_THREADS) {
      const int32_t r = i / width, c = i % width;
      to[r * step + c] = r < rows && c < terms ? from[r * row + c * column] : 0;
    }
  }
}

// ---- products -----------------------------------------------------------------------------------

// 16 rows of x and w each, by `steps` of 32 terms, of which `terms` are there: sums of (x - zero_x)
// (w - zero_w). Terms that are not there are 0. *at: those of columns j * 8 and on, as mma has them.
#define MULTIPLY(name, MMA, X_ZERO, OTHER_ZERO)                                                    \
  DEVICE void name(const uint8_t* x, const uint8_t* w, int step, int steps, int32_t zero_x,       \
                   int32_t zero_w, int32_t terms, int32_t (*sums)[4]) {                            \
    const uint32_t ones[4] = {0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u};                 \
    int32_t of_x[4] = {0, 0, 0, 0}, of_w[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};                     \
    (void)ones;                                                                                    \
    UNROLL                                                                                         \
    for (int r = 0; r < 4; r++) sums[0][r] = sums[1][r] = 0;                                       \
    x += LANE % 16 * step + LANE / 16 * 16;                                                        \
    w += (LANE % 8 + LANE / 16 * 8) * step + LANE / 8 % 2 * 16;                                    \
    UNROLL                                                                                         \
    for (int i = 0; i < steps; i++) {                                                              \
      uint32_t u[4], v[4];                                                                         \
      load_matrices(u, x + i * 32);                                                                \
      load_matrices(v, w + i * 32);                                                                \
      MMA(sums[0], u, v);                                                                          \
      MMA(sums[1], u, v + 2);                                                                      \
      if (OTHER_ZERO) MMA(of_x, u, ones);                                                          \
      if (X_ZERO) MMA(of_w[0], ones, v);                                                           \
      if (X_ZERO) MMA(of_w[1], ones, v + 2);                                                       \
    }                                                                                              \
    UNROLL                                                                                         \
    for (int j = 0; j < 2; j++) UNROLL                                                             \
    for (int r = 0; r < 4; r++)                                                                    \
      sums[j][r] = (int32_t)((uint32_t)sums[j][r] - (uint32_t)zero_x * (uint32_t)of_w[j][r] -      \
                             (uint32_t)zero_w *                                                    \
                                 ((uint32_t)of_x[r] - (uint32_t)zero_x * (uint32_t)terms));        \
  }
MULTIPLY(multiply_scores, SCORES, Q_ZERO, K_ZERO)
MULTIPLY(multiply_sums, SUMS, W_ZERO, V_ZERO)

// first: the block's first query; mask: of the head.
DEVICE void find_scores(const attention_int8_args_t* a, int32_t first, const uint8_t* q,
                        const uint8_t* k, const float* mask, float* scores) {
  (void)first, (void)mask;
  ROLLED
  for (int i = THREAD / WARP; i < ROWS / 16 * (KEYS / 16); i += WARPS) {
    const int down = i % (ROWS / 16) * 16, right = i / (ROWS / 16) * 16;
    int32_t sums[2][4];
    multiply_scores(q + down * STEP, k + right * STEP, STEP, SIZE / 32, a->zero_q, a->zero_k,
                    a->size, sums);
    UNROLL
    for (int j = 0; j < 2; j++) UNROLL
    for (int r = 0; r < 4; r++) {
      const int row = down + LANE / 4 + r / 2 * 8, column = right + j * 8 + LANE % 4 * 2 + r % 2;
      float s = (float)sums[j][r] * a->factor + a->shift;
      if (SCALED) s = s * a->scalar;
      s = int8_within(s, a->low, a->high);
#if MASKED
      if (first + row < a->q_len && column < a->kv_len)
        s = s + mask[(first + row) * a->mask.row + column * a->mask.column];
#endif
      scores[row * SCORE_STEP + column] = s;
    }
  }
}

// ---- softmax ------------------------------------------------------------------------------------

// Rows that a warp takes at once, and threads of rows_softmax that a lane stands for.
#define AT_ONCE (SPAN < WARP ? WARP / SPAN : 1)
#define STANDS_FOR (SPAN < WARP ? 1 : SPAN / WARP)
#define ACROSS_LANES (SPAN < WARP ? SPAN : WARP)

DEVICE int32_t vector_of(int w, int k) { return LANE % ACROSS_LANES + w * WARP + k * SPAN; }

DEVICE void read_scores(const float* from, float* x) {
#if VEC == 4
  uint32_t words[4];
  READ_16(from, words);
  UNROLL
  for (int i = 0; i < 4; i++) x[i] = float_of(words[i]);
#else
  UNROLL
  for (int i = 0; i < VEC; i++) x[i] = from[i];
#endif
}

DEVICE void write_weights(const int32_t* steps, uint8_t* to) {
#if VEC == 4
  *(uint32_t*)(void*)to = (uint32_t)(steps[0] & 255) | (uint32_t)(steps[1] & 255) << 8 |
                          (uint32_t)(steps[2] & 255) << 16 | (uint32_t)(steps[3] & 255) << 24;
#else
  UNROLL
  for (int i = 0; i < VEC; i++) to[i] = (uint8_t)steps[i];
#endif
}

// A row of scores as weights, bytes. n: vectors of the row; 0: lanes have none, and take part in
// what all do together.
DEVICE void weigh(const attention_int8_args_t* a, int32_t n, const float* scores,
                  uint8_t* weights) {
  const int8_end_args_t e = end_of(&a->of_w.numbers);
  float x[STANDS_FOR][KEEP][VEC] = {{{0}}}, m = -POSITIVE_INFINITY, s[STANDS_FOR];
  UNROLL
  for (int w = 0; w < STANDS_FOR; w++) UNROLL
  for (int k = 0; k < KEEP; k++) {
    const int32_t v = vector_of(w, k);
    if (v >= n) continue;
    read_scores(scores + v * VEC, x[w][k]);
    UNROLL
    for (int i = 0; i < VEC; i++) m = larger(m, x[w][k][i]);
  }
  UNROLL
  for (int i = ACROSS_LANES / 2; i; i /= 2) m = larger(m, shuffle_xor_f32(m, i));
  UNROLL
  for (int w = 0; w < STANDS_FOR; w++) {
    s[w] = 0;
    UNROLL
    for (int k = 0; k < KEEP; k++) UNROLL
    for (int i = 0; i < VEC; i++) {
      if (vector_of(w, k) >= n) continue;
      x[w][k][i] = v_exp(x[w][k][i] - m);
      s[w] = s[w] + x[w][k][i];
    }
    UNROLL
    for (int i = ACROSS_LANES / 2; i; i /= 2) s[w] = s[w] + shuffle_xor_f32(s[w], i);
  }
  UNROLL
  for (int w = 1; w < STANDS_FOR; w++) s[0] = s[0] + s[w];
  UNROLL
  for (int w = 0; w < STANDS_FOR; w++) UNROLL
  for (int k = 0; k < KEEP; k++) {
    const int32_t v = vector_of(w, k);
    if (v >= n) continue;
    int32_t steps[VEC];
    UNROLL
    for (int i = 0; i < VEC; i++) {
      const int32_t step = int8_steps(&e, x[w][k][i] / s[0]);
      steps[i] = step < a->of_w.min ? a->of_w.min : step > a->of_w.max ? a->of_w.max : step;
    }
    write_weights(steps, weights + v * VEC);
  }
}

// ---- the result ---------------------------------------------------------------------------------

DEVICE int32_t find_byte(const attention_int8_args_t* a, const int8_end_args_t* e, int32_t sum) {
  const int32_t step = int8_steps(e, (float)sum * a->y_factor + a->y_shift);
  return step < a->of_y.min ? a->of_y.min : step > a->of_y.max ? a->of_y.max : step;
}

// Of queries from `first` on. to: of the head.
DEVICE void find_result(const attention_int8_args_t* a, int32_t first, const uint8_t* weights,
                        const uint8_t* values, uint8_t* to) {
  const int8_end_args_t e = end_of(&a->of_y.numbers);
  ROLLED
  for (int i = THREAD / WARP; i < ROWS / 16 * (V_SIZE / 16); i += WARPS) {
    const int down = i % (ROWS / 16) * 16, right = i / (ROWS / 16) * 16;
    int32_t sums[2][4];
    multiply_sums(weights + down * W_STEP, values + right * W_STEP, W_STEP, KEYS / 32, a->zero_w,
                  a->zero_v, a->kv_len, sums);
    UNROLL
    for (int j = 0; j < 2; j++) UNROLL
    for (int h = 0; h < 2; h++) {
      const int32_t query = first + down + LANE / 4 + h * 8;
      const int32_t column = right + j * 8 + LANE % 4 * 2;
      if (query >= a->q_len || column >= a->v_size) continue;
      uint8_t* at = to + query * a->y.row + column * a->y.column;
      const int32_t low = find_byte(a, &e, sums[j][2 * h]);
      const int32_t high = find_byte(a, &e, sums[j][2 * h + 1]);
#if Y_PAIRED
      *(uint16_t*)(void*)at = (uint16_t)((low & 255) | (high & 255) << 8);
#else
      at[0] = (uint8_t)low;
      if (column + 1 < a->v_size) at[a->y.column] = (uint8_t)high;
#endif
    }
  }
}

KERNEL(attention_int8, attention_int8_args_t, N_THREADS) {
  DYNAMIC(uint8_t, q);
  uint8_t* k = q + ROWS * STEP;
  uint8_t* v = k + KEYS * STEP;
  uint8_t* w = v + V_SIZE * W_STEP;
  float* scores = (float*)(void*)(w + ROWS * W_STEP);
  const uint32_t head = DIVIDED((uint32_t)BLOCK, a.tiles);
  const int32_t first = (int32_t)((uint32_t)BLOCK - head * a.tiles.size) * ROWS;
  const starts_t at = find_starts(&a, head);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  load_side(Q_FORM, GLOBAL(const uint8_t, a.q.at) + at.q + first * a.q.row, a.q.row, a.q.column,
            a.q_len - first, a.size, ROWS, SIZE, q);
  load_side(K_FORM, GLOBAL(const uint8_t, a.k.at) + at.k, a.k.row, a.k.column, a.kv_len, a.size,
            KEYS, SIZE, k);
  COMMIT_COPIES();
  // Rows of values are columns of the result.
  load_side(V_FORM, GLOBAL(const uint8_t, a.v.at) + at.v, a.v.column, a.v.row, a.v_size, a.kv_len,
            V_SIZE, KEYS, v);
  COMMIT_COPIES();
  // Weights of keys that are not there.
  for (int i = THREAD; i < ROWS * W_STEP / 4; i += N_THREADS) ((uint32_t*)(void*)w)[i] = 0;
  WAIT_COPIES(1);
  SYNC();
  find_scores(&a, first, q, k, MASKED ? GLOBAL(const float, a.mask.at) + at.mask : 0, scores);
  SYNC();
  ROLLED
  for (int r = THREAD / WARP * AT_ONCE; r < ROWS; r += WARPS * AT_ONCE) {
    const int row = r + LANE / ACROSS_LANES;
    weigh(&a, row < ROWS ? a.kv_len / VEC : 0, scores + row * SCORE_STEP, w + row * W_STEP);
  }
  WAIT_COPIES(0);
  SYNC();
  find_result(&a, first, w, v, GLOBAL(uint8_t, a.y.at) + at.y);
}
