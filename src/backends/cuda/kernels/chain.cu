// Layers of pointwise nodes: a thread makes PROGRAM_VECTOR elements at a time, by the layer's program.
//
// program.h says PROGRAM_VECTOR, PROGRAM_OUT, whether there are PROGRAM_ROWS and PROGRAM_INTEGERS, and has the functions
//   value_t program(float x, index_t row, index_t column, const program_args_t* p)
//   void program_vector(const float* x, index_t row, index_t column, const program_args_t* p,
//                       value_t* y)   PROGRAM_VECTOR elements from a column on that PROGRAM_VECTOR divides
#include "program_args.h"
#include "program.h"

KERNEL(chain, chain_args_t, 256) {
  WORD_OF(PROGRAM_OUT)* out = GLOBAL(WORD_OF(PROGRAM_OUT), a.out);
  const index_t size = (index_t)a.size, vectors = size / PROGRAM_VECTOR;
  const index_t columns = (index_t)a.program.columns;
  const index_t first = (index_t)(BLOCK * THREADS + THREAD), step = (index_t)(BLOCKS * THREADS);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (index_t i = first; i < vectors; i += step) {
    const index_t at = i * PROGRAM_VECTOR, row = PROGRAM_ROWS ? at / columns : 0;
#if PROGRAM_VECTOR == 1
    out[at] = TO_WORD(PROGRAM_OUT)(program(0, row, at - row * columns, &a.program));
#else
    value_t y[PROGRAM_VECTOR];
    program_vector(0, row, at - row * columns, &a.program, y);
    STORE_VECTOR(PROGRAM_OUT, out + at, y)
#endif
  }
  // Only where all is one row.
  for (index_t i = vectors * PROGRAM_VECTOR + first; i < size; i += step)
    out[i] = TO_WORD(PROGRAM_OUT)(program(0, 0, i, &a.program));
}
