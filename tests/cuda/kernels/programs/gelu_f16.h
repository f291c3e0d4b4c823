// A program as cuda/pointwise/program.h writes it: a bias and GELU, roughly first; the few elements
// that this leaves open come afterwards.
#define PROGRAM_OUT f16
#define PROGRAM_VECTOR 8
#define PROGRAM_ROWS 1
#define PROGRAM_IS_SHORT 0
#define PROGRAM_PAIRS two_f16
#include "functions.h"
#include "program_args.h"
typedef uint32_t index_t;
DEVICE value_t program_of(float x, float s1, const program_args_t* p) {
  (void)x, (void)p;
  const float p0[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v0 = do_ADD(x, s1, 0, p0);
  const float p1[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v1 = half_SHORT_GELU(v0, 0, p1);
  return v1;
}
DEVICE value_t program(float x, index_t row, index_t column, const program_args_t* p) {
  (void)row, (void)column;
  const float s1 = of_f16(GLOBAL(const word_f16, p->streams[1])[column]);
  return program_of(x, s1, p);
}
DEVICE value_t program_rough(float x, float s1, const program_args_t* p, float* least) {
  (void)x, (void)p;
  const float p0[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v0 = do_ADD(x, s1, 0, p0);
  const float p1[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v1 = half_rough_SHORT_GELU(v0, 0, p1, least);
  return v1;
}
#define PROGRAM_IS_ROUGH 1
DEVICE double program_fine(float x, float s1, const program_args_t* p, float* slack) {
  (void)x, (void)p;
  const float p0[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v0 = do_ADD(x, s1, 0, p0);
  const float p1[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const double v1 = half_fine_SHORT_GELU(v0, 0, p1, slack);
  return v1;
}
DEVICE value_t program_settled(float x, float s1, const program_args_t* p) {
  float least;
  float slack;
  const double middle = program_fine(x, s1, p, &slack);
  const float most = fine_ends(middle, slack, &least);
  if (slack < 1 && TO_WORD(PROGRAM_OUT)(most) == TO_WORD(PROGRAM_OUT)(least)) return most;
  return program_of(x, s1, p);
}
DEVICE value_t program_later(float x, index_t row, index_t column, const program_args_t* p) {
  (void)row, (void)column;
  const float s1 = of_f16(GLOBAL(const word_f16, p->streams[1])[column]);
  return program_settled(x, s1, p);
}
DEVICE uint32_t program_at_once(const float* x, index_t row, index_t column,
                                const program_args_t* p, value_t* y) {
  (void)x, (void)row, (void)column;
  const word_f16* at1 = GLOBAL(const word_f16, p->streams[1]) + (column);
  float s1[PROGRAM_VECTOR];
  LOAD_VECTOR(f16, at1, s1)
  uint32_t all_open = 0;
  float least[PROGRAM_VECTOR];
  UNROLL for (int i = 0; i < PROGRAM_VECTOR; i++) {
    y[i] = program_rough(x ? x[i] : 0, s1[i], p, &least[i]);
  }
  uint32_t differ[PROGRAM_VECTOR / 2], any = 0;
  UNROLL for (int i = 0; i < PROGRAM_VECTOR / 2; i++) {
    differ[i] =
        PROGRAM_PAIRS(y[2 * i], y[2 * i + 1]) ^ PROGRAM_PAIRS(least[2 * i], least[2 * i + 1]);
    any |= differ[i];
  }
  if (!(any & 0x7fff7fffu)) return 0;
  UNROLL for (int i = 0; i < PROGRAM_VECTOR; i++) if (differ[i / 2] & 0x7fffu << 16 * (i % 2))
      all_open |= 1u << i;
  return all_open;
}
DEVICE void program_vector(const float* x, index_t row, index_t column, const program_args_t* p,
                           value_t* y) {
  const uint32_t open = program_at_once(x, row, column, p, y);
  ROLLED for (uint32_t left = open; left; left &= left - 1) {
    const int i = lowest_bit(left);
    put_at(program_later(x ? pick(x, i) : 0, row, column + (index_t)i, p), i, y);
  }
}
