// Attention of float32 on tensor cores, which multiply tf32.
//
// Options besides those of attention_warps.h: T is f32; PARTS 1: queries, keys, values and weights
// are rounded to tf32 where they are multiplied; 2: each is two numbers of tf32, and the three larger
// products of these are added up (ops/matmul/tf32_products.h); Y_FAST 1: four columns of the result
// from a multiple of four on lie at a multiple of 16 bytes.
//
// Of eight keys, a thread has the weights of two neighbours, and the tensor core wants those of keys
// four apart: in which order it takes them is the same, so neighbours stand for these, on both
// sides. Of values it reads two neighbouring columns, for two products: column i * 8 + 4 c of the
// result is in sums[i], the next one in sums[i + 1], and so on (put_row).
#define PIECE 4
#define EXP2 0
#define FOLDED 0
#include "attention_warps.h"

DEVICE uint32_t to_tf32(float x) { return bits_of(ROUND_TF32(x)); }

// Where a thread's values of columns i * 8 on begin, of the eight keys from `key` on.
DEVICE const element_t* values_of(const element_t* values, int key, int i) {
  return values + (key + LANE % 4 * 2) * V_STEP + i * 8 + LANE / 4 * 2;
}

#if PARTS == 1
DEVICE void prepare_queries(uint32_t* words) {
  UNROLL
  for (int r = 0; r < 4; r++) words[r] = to_tf32(float_of(words[r]));
}

DEVICE void multiply_keys(const held_queries_t* q, int n, const element_t* keys, float (*s)[4]) {
  UNROLL
  for (int j = 0; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4; r++) s[j][r] = 0;
  UNROLL
  for (int i = 0; i < SIZE / 8; i++) UNROLL
  for (int j = 0; j < n / 8; j += 2) {
    uint32_t of_k[4];
    // A row of such a matrix is 16 bytes: four elements here, a lane each.
    load_matrices(of_k,
                  keys + (j * 8 + LANE % 8 + LANE / 16 * 8) * K_STEP + i * 8 + LANE / 8 % 2 * 4);
    UNROLL
    for (int r = 0; r < 4; r++) of_k[r] = to_tf32(float_of(of_k[r]));
    mma_tf32(s[j], q->words[i], of_k);
    mma_tf32(s[j + 1], q->words[i], of_k + 2);
  }
}

DEVICE void multiply_values(queries_t* t, int n, float (*s)[4], const element_t* values) {
  UNROLL
  for (int j = 0; j < n / 8; j++) {
    const uint32_t of_w[4] = {to_tf32(s[j][0]), to_tf32(s[j][2]), to_tf32(s[j][1]),
                              to_tf32(s[j][3])};
    UNROLL
    for (int i = 0; i < V_SIZE / 8; i += 2) {
      const element_t* at = values_of(values, j * 8, i);
      uint32_t first[2], second[2];
      READ_8(at, first);
      READ_8(at + V_STEP, second);
      UNROLL
      for (int r = 0; r < 2; r++) {
        const uint32_t of_v[2] = {to_tf32(float_of(first[r])), to_tf32(float_of(second[r]))};
        mma_tf32(t->sums[i + r], of_w, of_v);
      }
    }
  }
}
#else
// Of wide heads all units' operands would be asked for at once, and find no registers.
#if SIZE > 32
#define UNITS ROLLED
#else
#define UNITS UNROLL
#endif

// Both sides of two products of matrices of 16 terms: parts by steps of eight terms, of the right
// side by matrices before.
typedef struct left {
  uint32_t big[2][4], small[2][4];
} left_t;
typedef struct right {
  uint32_t big[2][2][2], small[2][2][2];
} right_t;

// big: the nearest number, or the largest one there is: what is not finite is so in `small`, and no
// difference of infinities is made.
DEVICE void split(float x, uint32_t* big, uint32_t* small) {
  const float most = float_of(0x7f7fe000u);
  const float b = ROUND_TF32(-LARGER(-LARGER(x, -most), -most));
  *big = bits_of(b);
  *small = to_tf32(x - b);
}

// The sum of 16 terms begins from 0, with its smaller products: what tensor cores cut off goes by
// the size of these sums, and they are added up by additions that round.
DEVICE void add_unit(const left_t* x, const right_t* y, float (*to)[4]) {
  float unit[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  UNROLL
  for (int i = 0; i < 2; i++) {
    UNROLL
    for (int m = 0; m < 2; m++) mma_tf32(unit[m], x->small[i], y->big[m][i]);
    UNROLL
    for (int m = 0; m < 2; m++) mma_tf32(unit[m], x->big[i], y->small[m][i]);
  }
  UNROLL
  for (int i = 0; i < 2; i++) UNROLL
  for (int m = 0; m < 2; m++) mma_tf32(unit[m], x->big[i], y->big[m][i]);
  UNROLL
  for (int m = 0; m < 2; m++) UNROLL
  for (int r = 0; r < 4; r++) to[m][r] += unit[m][r];
}

DEVICE void prepare_queries(uint32_t* words) { (void)words; }

DEVICE void multiply_keys(const held_queries_t* q, int n, const element_t* keys, float (*s)[4]) {
  UNROLL
  for (int j = 0; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4; r++) s[j][r] = 0;
  UNITS
  for (int u = 0; u < SIZE / 16; u++) {
    left_t x;
    UNROLL
    for (int i = 0; i < 2; i++) {
      uint32_t of_q[4];
      read_queries(q, 2 * u + i, of_q);
      UNROLL
      for (int r = 0; r < 4; r++) split(float_of(of_q[r]), &x.big[i][r], &x.small[i][r]);
    }
    UNROLL
    for (int j = 0; j < n / 8; j += 2) {
      right_t y;
      UNROLL
      for (int m = 0; m < 2; m++) {
        uint32_t of_k[4];
        // A row of such a matrix is 16 bytes: four elements here, a lane each.
        load_matrices(of_k, keys + ((j + m) * 8 + LANE % 8) * K_STEP + u * 16 + LANE / 8 * 4);
        UNROLL
        for (int r = 0; r < 4; r++)
          split(float_of(of_k[r]), &y.big[m][r / 2][r % 2], &y.small[m][r / 2][r % 2]);
      }
      add_unit(&x, &y, s + j);
    }
  }
}

DEVICE void multiply_values(queries_t* t, int n, float (*s)[4], const element_t* values) {
  UNROLL
  for (int u = 0; u < n / 16; u++) {
    left_t x;
    UNROLL
    for (int i = 0; i < 2; i++) UNROLL
    for (int r = 0; r < 4; r++)
      split(s[2 * u + i][r % 2 * 2 + r / 2], &x.big[i][r], &x.small[i][r]);
    UNROLL
    for (int c = 0; c < V_SIZE / 8; c += 2) {
      right_t y;
      UNROLL
      for (int i = 0; i < 2; i++) UNROLL
      for (int k = 0; k < 2; k++) {
        uint32_t two[2];
        READ_8(values_of(values, u * 16 + i * 8, c) + k * V_STEP, two);
        UNROLL
        for (int m = 0; m < 2; m++) split(float_of(two[m]), &y.big[m][i][k], &y.small[m][i][k]);
      }
      add_unit(&x, &y, t->sums + c);
    }
  }
}
#endif

DEVICE void put_row(const attention_args_t* a, const queries_t* t, int h, float by, element_t* y,
                    INDEX row) {
  UNROLL
  for (int i = 0; i < V_SIZE / 8; i += 2) {
    const int32_t column = i * 8 + LANE % 4 * 4;
    uint32_t words[4];
    UNROLL
    for (int r = 0; r < 4; r++) words[r] = bits_of(t->sums[i + r % 2][2 * h + r / 2] * by);
#if Y_FAST
    if (WHOLE || column < a->v_size) STORE_16(y + (row + column), words);
#else
    UNROLL
    for (int r = 0; r < 4; r++)
      if (WHOLE || column + r < a->v_size)
        y[row + (column + r) * (INDEX)a->y.column] = float_of(words[r]);
#endif
  }
}

#if PARTS == 2
KERNEL_OF_BLOCKS(attention_tf32, attention_args_t, N_THREADS, ((SIZE) + (V_SIZE) > 128 ? 8 : 12) / WARPS) {
#else
LARGE_KERNEL(attention_tf32, attention_args_t, N_THREADS) {
#endif
  DYNAMIC(element_t, stages);
  attend(&a, stages);
}
