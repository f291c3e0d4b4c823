// Attention of float32 on tensor cores, which multiply tf32.
//
// Options besides those of attention_warps.h: T is f32; PARTS 1: queries, keys, values and weights
// are rounded to tf32 where they are multiplied; Y_FAST 1: four columns of the result from a multiple
// of four on lie at a multiple of 16 bytes.
#define PIECE 4
#include "attention_warps.h"

DEVICE uint32_t to_tf32(float x) { return bits_of(ROUND_TF32(x)); }

DEVICE void prepare_queries(uint32_t* words) {
  UNROLL
  for (int r = 0; r < 4; r++) words[r] = to_tf32(float_of(words[r]));
}

DEVICE void multiply_keys(const queries_t* t, int n, const element_t* keys, float (*s)[4]) {
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
    mma_tf32(s[j], t->of_q[i], of_k);
    mma_tf32(s[j + 1], t->of_q[i], of_k + 2);
  }
}

// Of eight keys, a thread has the weights of two neighbours, and the tensor core wants those of keys
// four apart: in which order it takes them is the same, so neighbours stand for these, on both
// sides. Of values it reads two neighbouring columns, for two products: column i * 8 + 4 c of the
// result is in sums[i], the next one in sums[i + 1], and so on (put_row).
DEVICE void multiply_values(queries_t* t, int n, float (*s)[4], const element_t* values) {
  UNROLL
  for (int j = 0; j < n / 8; j++) {
    const uint32_t of_w[4] = {to_tf32(s[j][0]), to_tf32(s[j][2]), to_tf32(s[j][1]),
                              to_tf32(s[j][3])};
    UNROLL
    for (int i = 0; i < V_SIZE / 8; i += 2) {
      const element_t* at = values + (j * 8 + LANE % 4 * 2) * V_STEP + i * 8 + LANE / 4 * 2;
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

LARGE_KERNEL(attention_tf32, attention_args_t, N_THREADS) {
  DYNAMIC(element_t, stages);
  attend(&a, stages);
}
