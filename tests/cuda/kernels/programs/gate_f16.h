// A program as cuda/pointwise/program.h writes it: a gate whose halves are read where they lie, the
// second one not aligned.
#define PROGRAM_OUT f16
#define PROGRAM_VECTOR 8
#define PROGRAM_ROWS 1
#define PROGRAM_IS_SHORT 0
#include "functions.h"
#include "program_args.h"
typedef uint32_t index_t;
DEVICE value_t program_of(float x, float s0, float s1, const program_args_t* p) {
  (void)x, (void)p;
  const float p0[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v0 = float_SIGMOID(s1, 0, p0);
  const value_t v1 = do_MUL(v0, s0, 0, p0);
  return v1;
}
DEVICE value_t program(float x, index_t row, index_t column, const program_args_t* p) {
  index_t rest = row;
  const index_t r0 = rest;
  const float s0 =
      of_f16(GLOBAL(const word_f16, p->streams[0])[r0 * (index_t)p->strides[0][0] + column]);
  const float s1 =
      of_f16(GLOBAL(const word_f16, p->streams[1])[r0 * (index_t)p->strides[1][0] + column]);
  return program_of(x, s0, s1, p);
}
DEVICE void program_vector(const float* x, index_t row, index_t column, const program_args_t* p,
                           value_t* y) {
  index_t rest = row;
  const index_t r0 = rest;
  const word_f16* at0 =
      GLOBAL(const word_f16, p->streams[0]) + (r0 * (index_t)p->strides[0][0] + column);
  float s0[PROGRAM_VECTOR];
  LOAD_VECTOR(f16, at0, s0)
  const word_f16* at1 =
      GLOBAL(const word_f16, p->streams[1]) + (r0 * (index_t)p->strides[1][0] + column);
  float s1[PROGRAM_VECTOR];
  UNROLL for (int i = 0; i < PROGRAM_VECTOR; i++) s1[i] =
      of_f16(at1[(index_t)i * (index_t)p->strides[1][1]]);
  UNROLL for (int i = 0; i < PROGRAM_VECTOR; i++) y[i] = program_of(x ? x[i] : 0, s0[i], s1[i], p);
}
