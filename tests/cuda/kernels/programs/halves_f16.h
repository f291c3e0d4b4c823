// A program as cuda/pointwise/program.h writes it: SwiGLU, of halves of the result.
#define PROGRAM_PAIRS two_f16
#define PROGRAM_OUT f16
#define PROGRAM_VECTOR 8
#define PROGRAM_ROWS 1
#define PROGRAM_IS_SHORT 0
#include "functions.h"
#include "program_args.h"
typedef uint32_t index_t;
DEVICE value_t program_of(float x, float second, const program_args_t* p) {
  (void)x, (void)second, (void)p;
  const float p0[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v0 = float_SIGMOID(x, 0, p0);
  const float p1[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v1 = do_MUL(x, v0, 0, p1);
  const float p2[2] = {float_of(0x00000000u), float_of(0x00000000u)};
  const value_t v2 = do_MUL(v1, second, 0, p2);
  return v2;
}
DEVICE value_t program(float x, float second, index_t row, index_t column,
                       const program_args_t* p) {
  (void)row, (void)column;
  return program_of(x, second, p);
}
DEVICE void program_vector(const float* x, index_t row, index_t column, const program_args_t* p,
                           value_t* y) {
  (void)x, (void)row, (void)column;
  UNROLL for (int i = 0; i < PROGRAM_VECTOR; i++) y[i] = program_of(x[i], x[PROGRAM_VECTOR + i], p);
}
