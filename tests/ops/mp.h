// Numbers of 300 bits for references, by MPFR: functions of them give new ones, which live until
// the next mp_forget.
#ifndef ASSAY_TESTS_OPS_MP_H_
#define ASSAY_TESTS_OPS_MP_H_

#include <mpfr.h>
#include <stdlib.h>

typedef mpfr_ptr mp_t;

static struct mp_pool {
  mpfr_t** blocks;
  size_t n_blocks, used;  // of all blocks together
} mp_pool;

enum { MP_BLOCK = 4096, MP_BITS = 300 };

static inline mp_t mp_new(void) {
  if (mp_pool.used == mp_pool.n_blocks * MP_BLOCK) {
    mp_pool.blocks = realloc(mp_pool.blocks, (mp_pool.n_blocks + 1) * sizeof *mp_pool.blocks);
    mpfr_t* block = malloc(MP_BLOCK * sizeof *block);
    if (!mp_pool.blocks || !block) abort();
    for (int i = 0; i < MP_BLOCK; i++) mpfr_init2(block[i], MP_BITS);
    mp_pool.blocks[mp_pool.n_blocks++] = block;
  }
  const size_t at = mp_pool.used++;
  return mp_pool.blocks[at / MP_BLOCK][at % MP_BLOCK];
}

static inline void mp_forget(void) { mp_pool.used = 0; }

static inline void mp_end(void) {
  for (size_t k = 0; k < mp_pool.n_blocks; k++) {
    for (int i = 0; i < MP_BLOCK; i++) mpfr_clear(mp_pool.blocks[k][i]);
    free(mp_pool.blocks[k]);
  }
  free(mp_pool.blocks);
  mp_pool = (struct mp_pool){0};
  mpfr_free_cache();
}

static inline mp_t mp_of(double high, double low) {
  mp_t y = mp_new();
  mpfr_set_d(y, high, MPFR_RNDN);
  mpfr_add_d(y, y, low, MPFR_RNDN);
  return y;
}
static inline mp_t mp(double x) { return mp_of(x, 0); }

#define MP_1(NAME)                       \
  static inline mp_t mp_##NAME(mp_t x) { \
    mp_t y = mp_new();                   \
    mpfr_##NAME(y, x, MPFR_RNDN);        \
    return y;                            \
  }
#define MP_2(NAME)                               \
  static inline mp_t mp_##NAME(mp_t a, mp_t b) { \
    mp_t y = mp_new();                           \
    mpfr_##NAME(y, a, b, MPFR_RNDN);             \
    return y;                                    \
  }
MP_1(abs)
MP_1(neg)
MP_1(sqr)
MP_1(sqrt)
MP_1(exp)
MP_1(expm1)
MP_1(log)
MP_1(log1p)
MP_1(sin)
MP_1(cos)
MP_1(tan)
MP_1(asin)
MP_1(acos)
MP_1(atan)
MP_1(sinh)
MP_1(cosh)
MP_1(tanh)
MP_1(asinh)
MP_1(acosh)
MP_1(atanh)
MP_1(erf)
MP_1(erfc)
MP_2(add)
MP_2(sub)
MP_2(mul)
MP_2(div)
MP_2(pow)
MP_2(max)
MP_2(min)

static inline mp_t mp_sigmoid(mp_t x) { return mp_div(mp(1), mp_add(mp(1), mp_exp(mp_neg(x)))); }
static inline mp_t mp_round(mp_t x) {
  mp_t y = mp_new();
  mpfr_rint(y, x, MPFR_RNDN);
  return y;
}
static inline mp_t mp_floor(mp_t x) {
  mp_t y = mp_new();
  mpfr_rint(y, x, MPFR_RNDD);
  return y;
}

#endif  // ASSAY_TESTS_OPS_MP_H_
