// A program as cuda/pointwise/program.h writes it: those of both products of a squeeze-excite
// block.
#define PROGRAM_PAIRS two_f16
#define PROGRAM_OUT f16
#define PROGRAM_VECTOR 8
#define PROGRAM_ROWS 0
#define PROGRAM_IS_SHORT 0
#include "functions.h"
#include "program_args.h"
typedef uint32_t index_t;
DEVICE value_t program_of(float x, const program_args_t* p) {
  (void)x, (void)p;
  const float p0[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v0 = half_SIGMOID(x, 0, p0);
  return v0;
}
DEVICE value_t program(float x, index_t row, index_t column, const program_args_t* p) {
  (void)row, (void)column;
  return program_of(x, p);
}
DEVICE value_t program_rough(float x, const program_args_t* p, float* least) {
  (void)x, (void)p;
  const float p0[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v0 = half_rough_SIGMOID(x, 0, p0, least);
  return v0;
}
#define PROGRAM_IS_ROUGH 1
DEVICE double program_fine(float x, const program_args_t* p, float* slack) {
  (void)x, (void)p;
  const float p0[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const double v0 = half_fine_SIGMOID(x, 0, p0, slack);
  return v0;
}
DEVICE value_t program_settled(float x, const program_args_t* p) {
  float least;
  float slack;
  const double middle = program_fine(x, p, &slack);
  const float most = fine_ends(middle, slack, &least);
  if (slack < 1 && TO_WORD(PROGRAM_OUT)(most) == TO_WORD(PROGRAM_OUT)(least)) return most;
  return program_of(x, p);
}
DEVICE value_t program_later(float x, index_t row, index_t column, const program_args_t* p) {
  (void)row, (void)column;
  return program_settled(x, p);
}
DEVICE uint32_t program_at_once(const float* x, index_t row, index_t column,
                                const program_args_t* p, value_t* y) {
  (void)x, (void)row, (void)column;
  uint32_t all_open = 0;
  float least[PROGRAM_VECTOR];
  UNROLL for (int i = 0; i < PROGRAM_VECTOR; i++) {
    y[i] = program_rough(x ? x[i] : 0, p, &least[i]);
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
#define program program_before
#define program_of program_of_before
#define program_rough program_rough_before
#define program_fine program_fine_before
#define program_settled program_settled_before
#define program_at_first program_at_first_before
DEVICE value_t program_of(float x, const program_args_t* p) {
  (void)x, (void)p;
  const float p0[2] = {float_of(0x3f800000u), float_of(0x00000000u)};
  const value_t v0 = half_SHORT_SWISH(x, 0, p0);
  return v0;
}
DEVICE value_t program_rough(float x, const program_args_t* p, float* least) {
  (void)x, (void)p;
  const float p0[2] = {float_of(0x3f800000u), float_of(0x00000000u)};
  const value_t v0 = half_rough_SHORT_SWISH(x, 0, p0, least);
  return v0;
}
DEVICE double program_fine(float x, const program_args_t* p, float* slack) {
  (void)x, (void)p;
  const float p0[2] = {float_of(0x3f800000u), float_of(0x00000000u)};
  const double v0 = half_fine_SHORT_SWISH(x, 0, p0, slack);
  return v0;
}
DEVICE value_t program_settled(float x, const program_args_t* p) {
  float least;
  float slack;
  const double middle = program_fine(x, p, &slack);
  const float most = fine_ends(middle, slack, &least);
  if (slack < 1 && TO_WORD(PROGRAM_OUT)(most) == TO_WORD(PROGRAM_OUT)(least)) return most;
  return program_of(x, p);
}
DEVICE value_t program_at_first(float x, const program_args_t* p) {
  float least;
  const float most = program_rough(x, p, &least);
  if (!((TO_WORD(PROGRAM_OUT)(most) ^ TO_WORD(PROGRAM_OUT)(least)) & 0x7fff)) return most;
  return program_settled(x, p);
}
DEVICE value_t program(float x, index_t row, index_t column, const program_args_t* p) {
  (void)row, (void)column;
  return program_at_first(x, p);
}
#undef program
#undef program_of
#undef program_rough
#undef program_fine
#undef program_settled
#undef program_at_first
