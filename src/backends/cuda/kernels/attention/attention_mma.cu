// Attention of fp16 or bf16 on tensor cores; weights are rounded to the type where they are
// multiplied.
//
// Options besides those of attention_warps.h: those of attention_16.h.
#define PIECE 8
#include "attention_warps.h"

#include "attention_16.h"

#define MMA_f16 mma_f16
#define MMA_bf16 mma_bf16

DEVICE void prepare_queries(uint32_t* words) { (void)words; }

DEVICE void multiply_keys(const held_queries_t* q, int n, const element_t* keys, float (*s)[4]) {
  UNROLL
  for (int j = 0; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4; r++) s[j][r] = 0;
  UNROLL
  for (int i = 0; i < SIZE / 16; i++) {
#if Q_STAYS
    uint32_t of_q[4];
    read_queries(q, i, of_q);
#else
    const uint32_t* of_q = q->words[i];
#endif
    UNROLL
    for (int j = 0; j < n / 8; j += 2) {
      uint32_t of_k[4];
      load_matrices(of_k,
                    keys + (j * 8 + LANE % 8 + LANE / 16 * 8) * K_STEP + i * 16 + LANE / 8 % 2 * 8);
      JOINED(MMA_, T)(s[j], of_q, of_k);
      JOINED(MMA_, T)(s[j + 1], of_q, of_k + 2);
    }
  }
}

DEVICE void multiply_values(queries_t* t, int n, float (*s)[4], const element_t* values) {
  UNROLL
  for (int j = 0; j < n / 16; j++) {
    const uint32_t of_w[4] = {PAIR(s[2 * j][0], s[2 * j][1]), PAIR(s[2 * j][2], s[2 * j][3]),
                              PAIR(s[2 * j + 1][0], s[2 * j + 1][1]),
                              PAIR(s[2 * j + 1][2], s[2 * j + 1][3])};
    UNROLL
    for (int i = 0; i < V_SIZE / 8; i += 2) {
      uint32_t of_v[4];
      load_matrices_transposed(
          of_v, values + (j * 16 + LANE % 8 + LANE / 8 % 2 * 8) * V_STEP + i * 8 + LANE / 16 * 8);
      JOINED(MMA_, T)(t->sums[i], of_w, of_v);
      JOINED(MMA_, T)(t->sums[i + 1], of_w, of_v + 2);
    }
  }
}

// Four warps of each quarter of a multiprocessor where heads leave registers for it: they wait for
// each other's products and powers.
#if EXP2 && (SIZE) + (V_SIZE) <= 128 && MASKS < 3 && !CAP && !WALKED
#define MIN_WARPS 16
#else
#define MIN_WARPS 4
#endif
KERNEL_OF_BLOCKS(attention_mma, attention_args_t, N_THREADS, MIN_WARPS / WARPS) {
  DYNAMIC(element_t, stages);
  attend(&a, stages);
}
