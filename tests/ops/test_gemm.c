// Matrix products: every arithmetic against a plain loop, and the same bits whatever the threads,
// the kernel, and the way operands are stored.
#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ops/matmul/gemm.h"
#include "ops/matmul/gemm_fma.h"
// cmocka.h needs the above.
#include <cmocka.h>

// A number in [-1, 1) with few bits, so that fp16 holds it.
static double number(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 56) / 128 - 1;
}

typedef struct matrix {
  int64_t rows, cols;
  double* wide;
  assay_tensor_t* packed;
} matrix_t;

static matrix_t make(int64_t rows, int64_t cols, assay_type_t type, uint64_t seed) {
  matrix_t x = {.rows = rows, .cols = cols};
  const int64_t dims[2] = {rows, cols};
  assay_tensor_t* t = NULL;
  assert_null(assay_tensor_create(type, 2, dims, &t));
  for (int64_t i = 0; i < rows * cols; i++) assay_f64(t)[i] = number(&seed);
  assert_null(assay_tensor_pack(t, &x.packed));
  x.wide = malloc(sizeof(double) * (size_t)(rows * cols + 1));
  memcpy(x.wide, t->data, sizeof(double) * (size_t)(rows * cols));
  assay_tensor_release(t);
  return x;
}

static void drop(matrix_t* x) {
  free(x->wide);
  assay_tensor_release(x->packed);
}

// The matrix as an operand: stored packed or wide, and transposed.
static assay_matrix_t operand(const matrix_t* x, bool packed, bool transposed) {
  assay_matrix_t m = {x->wide, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, x->cols, 1};
  if (packed) {
    m.data = x->packed->data;
    m.store = ASSAY_STORE_PACKED;
    m.type = x->packed->type;
  }
  if (transposed) {
    m.row_stride = 1;
    m.col_stride = x->cols;
  }
  return m;
}

static double element(const matrix_t* x, bool transposed, int64_t i, int64_t j) {
  return transposed ? x->wide[j * x->cols + i] : x->wide[i * x->cols + j];
}

typedef struct shape {
  int64_t m, n, k;
} shape_t;

static const shape_t shapes[] = {
    {1, 1, 1},    {1, 1, 0},   {3, 2, 0},      {1, 7, 1000}, {7, 1, 1000},   {2, 3, 5},
    {65, 3, 130}, {3, 65, 70}, {100, 90, 513}, {300, 2, 3},  {130, 260, 31}, {1, 2000, 40},
};

// sum over l, in the order that the header promises for this arithmetic.
static double expected(const assay_eval_t* c, const matrix_t* a, bool ta, const matrix_t* b,
                       bool tb, shape_t s, int64_t i, int64_t j, double start) {
  double sum = start;
  float sum32 = (float)start;
  for (int64_t l = 0; l < s.k; l++) {
    const double x = element(a, ta, i, l), y = element(b, tb, l, j);
    sum32 = fmaf((float)x, (float)y, sum32);
    sum = fma(x, y, sum);
    if (c->arith == ASSAY_ARITH_NARROW) {
      sum = assay_format_round(c->accumulator, sum, ASSAY_OVERFLOW_IEEE);
    }
  }
  return c->arith == ASSAY_ARITH_F32 ? (double)sum32 : sum;
}

static void check_case(const assay_eval_t* c, shape_t s, unsigned variant) {
  const bool ta = variant & 1, tb = variant & 2, pa = variant & 4, pb = variant & 8;
  const bool add = variant & 16;
  const assay_type_t type = variant & 32 ? ASSAY_TYPE_FLOAT16 : ASSAY_TYPE_FLOAT;
  matrix_t a = make(ta ? s.k : s.m, ta ? s.m : s.k, type, 1 + variant);
  matrix_t b = make(tb ? s.n : s.k, tb ? s.k : s.n, type, 99 + variant);
  const assay_matrix_t x = operand(&a, pa, ta), y = operand(&b, pb, tb);
  const int64_t ld = s.n + 3;  // a gap that must stay as it is
  double* out = malloc(sizeof(double) * (size_t)(s.m * ld));
  for (int64_t i = 0; i < s.m * ld; i++) out[i] = 0.5;
  assert_null(assay_gemm(c, s.m, s.n, s.k, &x, &y, out, ld, add));
  for (int64_t i = 0; i < s.m; i++) {
    for (int64_t j = 0; j < ld; j++) {
      if (j >= s.n) {
        assert_true(out[i * ld + j] == 0.5);
        continue;
      }
      const double e = expected(c, &a, ta, &b, tb, s, i, j, add ? 0.5 : 0), got = out[i * ld + j];
      // Sums of these numbers are exact in double; the emulated ones have one right answer.
      if (got != e) {
        fail_msg("arith %d variant %u %ldx%ldx%ld at (%ld, %ld): %.17g instead of %.17g", c->arith,
                 variant, (long)s.m, (long)s.n, (long)s.k, (long)i, (long)j, got, e);
      }
    }
  }
  free(out);
  drop(&a);
  drop(&b);
}

static void check_arith(assay_arith_t arith, assay_format_t accumulator) {
  const assay_eval_t c = {.arith = arith, .accumulator = accumulator};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    // Steps that meet every flag on and off, with others on and off.
    const unsigned step = arith == ASSAY_ARITH_NARROW ? 11 : 5;
    for (unsigned variant = 0; variant < 64; variant += step) check_case(&c, shapes[i], variant);
  }
}

static void test_double(void** state) {
  (void)state;
  check_arith(ASSAY_ARITH_F64, ASSAY_FORMAT_NONE);
}
static void test_fp32(void** state) {
  (void)state;
  check_arith(ASSAY_ARITH_F32, ASSAY_FORMAT_NONE);
}
static void test_narrow(void** state) {
  (void)state;
  check_arith(ASSAY_ARITH_NARROW, ASSAY_FORMAT_FP16);
  check_arith(ASSAY_ARITH_NARROW, ASSAY_FORMAT_FP64);
}

// Strides of 0 (one number for all) and backwards.
static void test_strides(void** state) {
  (void)state;
  const double a[4] = {1, 2, 3, 4}, b[1] = {10};
  for (int arith = 0; arith < 2; arith++) {
    const assay_eval_t c = {.arith = (assay_arith_t)arith};
    const assay_matrix_t x = {a, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 3, -2, -1};
    const assay_matrix_t y = {b, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, 0, 0};
    double out[2 * 300];
    assert_null(assay_gemm(&c, 2, 300, 2, &x, &y, out, 300, false));
    for (int j = 0; j < 300; j++) {
      assert_true(out[j] == 70);        // (4 + 3) * 10
      assert_true(out[300 + j] == 30);  // (2 + 1) * 10
    }
  }
}

// The same bits for one thread and several, alone and inside a parallel region.
static void test_threads(void** state) {
  (void)state;
  enum { M = 300, N = 270, K = 700 };
  uint64_t seed = 5;
  double *a = malloc(sizeof(double) * M * K), *b = malloc(sizeof(double) * K * N);
  double *one = malloc(sizeof(double) * M * N), *many = malloc(sizeof(double) * M * N);
  for (int i = 0; i < M * K; i++) a[i] = number(&seed) / 3;
  for (int i = 0; i < K * N; i++) b[i] = number(&seed) / 7;
  const assay_matrix_t x = {a, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, K, 1};
  const assay_matrix_t y = {b, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, N, 1};
  const int threads = omp_get_max_threads();
  for (int arith = 0; arith < 2; arith++) {
    const assay_eval_t c = {.arith = (assay_arith_t)arith};
    omp_set_num_threads(1);
    assert_null(assay_gemm(&c, M, N, K, &x, &y, one, N, false));
    omp_set_num_threads(5);
    assert_null(assay_gemm(&c, M, N, K, &x, &y, many, N, false));
    assert_memory_equal(one, many, sizeof(double) * M * N);
    memset(many, 0, sizeof(double) * M * N);
    int failed = 0;
#pragma omp parallel for reduction(+ : failed)
    for (int i = 0; i < 2; i++) {
      if (i == 0) failed += assay_gemm(&c, M, N, K, &x, &y, many, N, false) != NULL;
    }
    assert_int_equal(failed, 0);
    assert_memory_equal(one, many, sizeof(double) * M * N);
  }
  omp_set_num_threads(threads);
  free(a), free(b), free(one), free(many);
}

// Every kernel that this machine can run gives the portable one's bits, special values included.
static void test_kernels(void** state) {
  (void)state;
  enum { K = 37, N = 45 };
  uint64_t seed = 11;
  float row[K], column[K];
  double s[N], b[N], first[N];
  for (int l = 0; l < K; l++) {
    row[l] = (float)number(&seed) * 1e-3f + 1;
    column[l] = (float)number(&seed) * 3e-5f + 0.3f;
  }
  for (int j = 0; j < N; j++) {
    b[j] = j == 3 ? INFINITY : number(&seed) / 3;
    s[j] = j == 5 ? 0x1p-1070 : number(&seed) / 7;
  }
  float chain = 0.1f;
  for (int l = 0; l < K; l++) chain = fmaf(row[l], column[l], chain);
  for (int j = 0; j < N; j++) first[j] = fma(1.1, b[j], s[j]);
  for (int v = 0; assay_fma_kernels_at(v); v++) {
    const assay_fma_kernels_t* f = assay_fma_kernels_at(v);
    float a[K * ASSAY_FMA_MAX_MR], bb[K * ASSAY_FMA_MAX_NR];
    float out[ASSAY_FMA_MAX_MR * ASSAY_FMA_MAX_NR];
    double y[N];
    for (int l = 0; l < K; l++) {
      for (int i = 0; i < f->mr; i++) a[l * f->mr + i] = row[l];
      for (int j = 0; j < f->nr; j++) bb[l * f->nr + j] = column[l];
    }
    for (int i = 0; i < f->mr * f->nr; i++) out[i] = 0.1f;
    f->block(K, a, bb, out);
    for (int i = 0; i < f->mr * f->nr; i++) {
      if (memcmp(&out[i], &chain, sizeof chain) != 0) fail_msg("kernel %s, element %d", f->name, i);
    }
    f->row(N, 1.1, b, s, y);
    if (memcmp(y, first, sizeof y) != 0) fail_msg("kernel %s, row", f->name);
  }
}

static void test_batched(void** state) {
  (void)state;
  enum { M = 3, N = 4, K = 5, BATCH = 6 };
  uint64_t seed = 3;
  double a[2 * M * K], b[3 * K * N], out[BATCH * M * N], one[M * N];
  for (int i = 0; i < 2 * M * K; i++) a[i] = number(&seed);
  for (int i = 0; i < 3 * K * N; i++) b[i] = number(&seed);
  const int64_t a_at[BATCH] = {0, 0, 0, 15, 15, 15}, b_at[BATCH] = {0, 20, 40, 0, 20, 40};
  const assay_gemm_batch_t batch = {BATCH, a_at, b_at};
  for (int arith = 0; arith < 2; arith++) {
    const assay_eval_t c = {.arith = (assay_arith_t)arith};
    assay_matrix_t x = {a, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, K, 1};
    assay_matrix_t y = {b, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, N, 1};
    assert_null(assay_gemm_batched(&c, M, N, K, &x, &y, &batch, out));
    for (int t = 0; t < BATCH; t++) {
      x.offset = a_at[t];
      y.offset = b_at[t];
      assert_null(assay_gemm(&c, M, N, K, &x, &y, one, N, false));
      assert_memory_equal(out + t * M * N, one, sizeof one);
      x.offset = y.offset = 0;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_double),  cmocka_unit_test(test_fp32),
                                     cmocka_unit_test(test_narrow),  cmocka_unit_test(test_strides),
                                     cmocka_unit_test(test_threads), cmocka_unit_test(test_kernels),
                                     cmocka_unit_test(test_batched)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
