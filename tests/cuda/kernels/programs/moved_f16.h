// A program as cuda/pointwise/program.h writes it: a sum, one term of which has its rows in other
// places, alike in each sample.
#define PROGRAM_OUT f16
#define PROGRAM_VECTOR 8
#define PROGRAM_ROWS 1
#define PROGRAM_IS_SHORT 1
#include "functions.h"
#include "program_args.h"
typedef uint32_t index_t;
DEVICE value_t program_of(float x, float s0, float s1, const program_args_t* p) {
  (void)x, (void)p;
  const float p0[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v0 = do_ADD(s0, s1, 0, p0);
  return v0;
}
DEVICE value_t program(float x, index_t row, index_t column, const program_args_t* p) {
  (void)row, (void)column;
  const index_t m1 = row - row % (index_t)p->periods[1];
  const float s0 =
      of_f16(GLOBAL(const word_f16, p->streams[0])[row * (index_t)p->columns + column]);
  const float s1 = of_f16(GLOBAL(
      const word_f16,
      p->streams[1])[(m1 + GLOBAL(const int32_t, p->rows[1])[row - m1]) * (index_t)p->columns +
                     column]);
  return program_of(x, s0, s1, p);
}
DEVICE void program_vector(const float* x, index_t row, index_t column, const program_args_t* p,
                           value_t* y) {
  (void)x, (void)row, (void)column;
  const index_t m1 = row - row % (index_t)p->periods[1];
  const word_f16* at0 =
      GLOBAL(const word_f16, p->streams[0]) + (row * (index_t)p->columns + column);
  float s0[PROGRAM_VECTOR];
  LOAD_VECTOR(f16, at0, s0)
  const word_f16* at1 =
      GLOBAL(const word_f16, p->streams[1]) +
      ((m1 + GLOBAL(const int32_t, p->rows[1])[row - m1]) * (index_t)p->columns + column);
  float s1[PROGRAM_VECTOR];
  LOAD_VECTOR(f16, at1, s1)
  UNROLL for (int i = 0; i < PROGRAM_VECTOR; i++) y[i] = program_of(x ? x[i] : 0, s0[i], s1[i], p);
}
