// Powers of 2 as one instruction of an H200 gives them (ex2.approx.ftz.f32), of exponents that are
// multiples of 2^-13. It is not an IEEE 754 operation: its results are within 2 ulp, as measured
// (exp2_deltas.inc). tests/cuda/test_ex2.c compares it with a GPU, where there is one.
#ifndef ASSAY_BACKENDS_EMU_LIKE_EXP2_H_
#define ASSAY_BACKENDS_EMU_LIKE_EXP2_H_

enum { EMU_EXP2_STEPS = 8192 };  // of 1

// x: a multiple of 1 / EMU_EXP2_STEPS up to 127, -infinity or NaN; below -126 the result is 0.
float emu_exp2(float x);

#endif  // ASSAY_BACKENDS_EMU_LIKE_EXP2_H_
