// Elements put into the other layout, or another type, or both.
//
// move_bytes: elements of BITS bits (8, 16, 32, 64) as they are.
// move_floats: from the type FROM to the type TO, rounded to the type THROUGH before.
#include "elements.h"
#include "move_args.h"

DEVICE int64_t source(const move_args_t* a, int64_t i) {
  if (a->rows == 1) return i;
  const int64_t matrix = a->rows * a->columns, n = i / matrix, at = i % matrix;
  return n * matrix + at % a->columns * a->rows + at / a->columns;
}

#ifdef BITS
#define WORD JOINED(uint, JOINED(BITS, _t))
KERNEL(move_bytes, move_args_t, 256) {
  const WORD* from = GLOBAL(const WORD, a.from);
  WORD* to = GLOBAL(WORD, a.to);
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.size; i += BLOCKS * THREADS)
    to[i] = from[source(&a, i)];
}
#else
KERNEL(move_floats, move_args_t, 256) {
  const ELEMENT(FROM)* from = GLOBAL(const ELEMENT(FROM), a.from);
  ELEMENT(TO)* to = GLOBAL(ELEMENT(TO), a.to);
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.size; i += BLOCKS * THREADS)
    STORE(TO)(to, i, ROUND(THROUGH)(LOAD(FROM)(from, source(&a, i))));
}
#endif
