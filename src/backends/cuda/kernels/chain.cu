// Layers of pointwise nodes: a thread makes PROGRAM_VECTOR elements at a time, by the layer's program.
//
// program.h says PROGRAM_VECTOR, PROGRAM_OUT, whether there are PROGRAM_ROWS and PROGRAM_INTEGERS, and has the functions
//   value_t program(float x, index_t row, index_t column, const program_args_t* p)
//   void program_vector(const float* x, index_t row, index_t column, const program_args_t* p,
//                       value_t* y)   PROGRAM_VECTOR elements from a column on that PROGRAM_VECTOR divides
// QUANTIZED: bytes of the elements, which are floats, are stored, too (int8/quantizer.h), and
// elements only where there is a place for them.
#include "program_args.h"
#include "program.h"

#ifdef QUANTIZED
#include "quantizer.h"
#define PUT_QUANTIZED(at, n, y) store_quantized(&a.quantizer, (int64_t)(at), n, y)
#define IS_KEPT (a.out != 0)
#else
#define PUT_QUANTIZED(at, n, y)
#define IS_KEPT true
#endif

KERNEL(chain, chain_args_t, 256) {
  WORD_OF(PROGRAM_OUT)* out = GLOBAL(WORD_OF(PROGRAM_OUT), a.out);
  const index_t size = (index_t)a.size, vectors = size / PROGRAM_VECTOR;
  const index_t columns = (index_t)a.program.columns;
  const index_t first = (index_t)(BLOCK * THREADS + THREAD), step = (index_t)(BLOCKS * THREADS);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (index_t i = first; i < vectors; i += step) {
    const index_t at = i * PROGRAM_VECTOR, row = PROGRAM_ROWS ? at / columns : 0;
    value_t y[PROGRAM_VECTOR];
#if PROGRAM_VECTOR == 1
    y[0] = program(0, row, at - row * columns, &a.program);
    if (IS_KEPT) out[at] = TO_WORD(PROGRAM_OUT)(y[0]);
#else
    program_vector(0, row, at - row * columns, &a.program, y);
    if (IS_KEPT) STORE_VECTOR(PROGRAM_OUT, out + at, y)
#endif
    PUT_QUANTIZED(at, PROGRAM_VECTOR, y);
  }
  // Only where all is one row.
  for (index_t i = vectors * PROGRAM_VECTOR + first; i < size; i += step) {
    const value_t y[1] = {program(0, 0, i, &a.program)};
    if (IS_KEPT) out[i] = TO_WORD(PROGRAM_OUT)(y[0]);
    PUT_QUANTIZED(i, 1, y);
  }
}
