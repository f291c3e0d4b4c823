// Matrix products for every operator that sums products: one place for their order and tiles.
#include "ops/matmul/gemm.h"

#include <cblas.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "base/double_double.h"
#include "base/target.h"
#include "ops/matmul/gemm_fma.h"
#include "ops/matmul/product_f64.h"

// An output is cut into tiles, a product's sum into panels of K_PANEL terms; both depend on m, n
// and k alone, and so do the bits of the result. A job is one tile of one matrix of the batch.
enum { TILE = 256, VECTOR_TILE = 1024, K_PANEL = 512 };

typedef struct product {
  const assay_eval_t* c;
  int64_t m, n, k;
  const assay_matrix_t *a, *b;
  const assay_gemm_batch_t* batch;  // NULL: one product
  double* out;
  int64_t out_i, out_j;  // strides of the output
  bool add;
  int64_t tile_m, tile_n;
} product_t;

// One tile: rows [i0, i0 + m) and columns [j0, j0 + n) of the product, and this thread's room.
typedef struct job {
  const product_t* p;
  assay_matrix_t a, b;  // shifted to the batch's element and to the tile
  int64_t m, n;
  double* out;
  double *scratch_a, *scratch_b;
} job_t;

// ---- reading operands -------------------------------------------------------------------------

// Elements first, first + stride, ... of a matrix's tensor.
static void read_run(const assay_matrix_t* x, int64_t first, int64_t stride, int64_t n,
                     double* to) {
  if (x->store == ASSAY_STORE_PACKED) {
    if (stride == 1) {
      assay_unpack(x->type, x->data, first, n, to);
    } else if (x->type == ASSAY_TYPE_FLOAT) {
      // Weights lie in the file at any address.
      const char* from = (const char*)x->data + first * (int64_t)sizeof(float);
      for (int64_t t = 0; t < n; t++) {
        float f;
        memcpy(&f, from + t * stride * (int64_t)sizeof f, sizeof f);
        to[t] = (double)f;
      }
    } else {
      for (int64_t t = 0; t < n; t++) assay_unpack(x->type, x->data, first + t * stride, 1, to + t);
    }
    return;
  }
  const double* from = (const double*)x->data + first;
  if (stride == 1) {
    memcpy(to, from, (size_t)n * sizeof *to);
  } else {
    for (int64_t t = 0; t < n; t++) to[t] = from[t * stride];
  }
}

// A block [rows, cols] of a matrix as BLAS wants it.
typedef struct block {
  const double* data;
  bool transposed;  // element (i, j) at j * ld + i instead of i * ld + j
  int ld;
} block_t;

// Whether BLAS can read the block where it lies.
static bool lies_ready(const assay_matrix_t* x, int64_t rows, int64_t cols, block_t* out) {
  if (x->store != ASSAY_STORE_F64) return false;
  out->data = (const double*)x->data + x->offset;
  const int64_t rs = rows == 1 ? cols : x->row_stride, cs = cols == 1 ? 1 : x->col_stride;
  if (cs == 1 && rs >= cols && rs <= INT_MAX) {
    out->transposed = false;
    out->ld = (int)rs;
    return true;
  }
  const int64_t ld = cols == 1 ? rows : cs;
  if ((rows == 1 || rs == 1) && ld >= rows && ld <= INT_MAX) {
    out->transposed = true;
    out->ld = (int)ld;
    return true;
  }
  return false;
}

// The block, copied into `scratch` unless it lies ready. Runs go along the direction in which the
// elements are neighbours.
static block_t get_block(const assay_matrix_t* x, int64_t rows, int64_t cols, double* scratch) {
  block_t out = {0};
  if (lies_ready(x, rows, cols, &out)) return out;
  out.data = scratch;
  out.transposed = x->row_stride == 1 && x->col_stride != 1;
  if (out.transposed) {
    out.ld = (int)rows;
    for (int64_t j = 0; j < cols; j++) {
      read_run(x, x->offset + j * x->col_stride, 1, rows, scratch + j * rows);
    }
  } else {
    out.ld = (int)cols;
    for (int64_t i = 0; i < rows; i++) {
      read_run(x, x->offset + i * x->row_stride, x->col_stride, cols, scratch + i * cols);
    }
  }
  return out;
}

static assay_matrix_t shifted(const assay_matrix_t* x, int64_t i, int64_t j) {
  assay_matrix_t y = *x;
  y.offset += i * x->row_stride + j * x->col_stride;
  return y;
}

// ---- double precision -------------------------------------------------------------------------

static pthread_once_t blas_once = PTHREAD_ONCE_INIT;

// The OpenMP build of OpenBLAS would start threads of its own outside parallel regions. Telling it
// not to also sets OpenMP's own number of threads for this thread, which is put back.
static void blas_single_threaded(void) {
  const int threads = omp_get_max_threads();
  openblas_set_num_threads(1);
  omp_set_num_threads(threads);
}

void assay_gemm_prepare(void) { pthread_once(&blas_once, blas_single_threaded); }

static void zero_tile(const job_t* job) {
  const product_t* p = job->p;
  for (int64_t i = 0; i < job->m; i++) {
    double* row = job->out + i * p->out_i;
    if (p->out_j == 1) {
      memset(row, 0, (size_t)job->n * sizeof *row);
    } else {
      for (int64_t j = 0; j < job->n; j++) row[j * p->out_j] = 0;
    }
  }
}

// Below this many products a call of BLAS costs more than it saves.
enum { TINY = 256 };

static void tile_tiny(const job_t* job) {
  const product_t* p = job->p;
  const double *a = (const double*)job->a.data + job->a.offset,
               *b = (const double*)job->b.data + job->b.offset;
  for (int64_t i = 0; i < job->m; i++) {
    for (int64_t j = 0; j < job->n; j++) {
      double* y = job->out + i * p->out_i + j;
      double s = p->add ? *y : 0;
      for (int64_t l = 0; l < p->k; l++) {
        s += a[i * job->a.row_stride + l * job->a.col_stride] *
             b[l * job->b.row_stride + j * job->b.col_stride];
      }
      *y = s;
    }
  }
}

// out (+)= w x for a block w of rows [n, k] and a vector x.
static void add_vector(const block_t* w, int64_t rows, int64_t k, const double* x, double* out,
                       int64_t out_stride) {
  cblas_dgemv(w->transposed ? CblasColMajor : CblasRowMajor, CblasNoTrans, (int)rows, (int)k, 1.0,
              w->data, w->ld, x, 1, 1.0, out, (int)out_stride);
}

// out (+)= x y.
static void multiply_blocks(const job_t* job, const block_t* x, const block_t* y, int64_t k,
                            bool add) {
  const int64_t ld = job->m == 1 ? job->n : job->p->out_i;
  if (!x->transposed && !y->transposed) {
    assay_product_f64(job->m, job->n, k, x->data, x->ld, y->data, y->ld, add, job->out, ld);
    return;
  }
  cblas_dgemm(CblasRowMajor, x->transposed ? CblasTrans : CblasNoTrans,
              y->transposed ? CblasTrans : CblasNoTrans, (int)job->m, (int)job->n, (int)k, 1.0,
              x->data, x->ld, y->data, y->ld, add ? 1.0 : 0.0, job->out, (int)ld);
}

static void tile_f64(const job_t* job) {
  const product_t* p = job->p;
  if (p->m * p->n <= TINY && p->m * p->n * p->k <= TINY && job->a.store == ASSAY_STORE_F64 &&
      job->b.store == ASSAY_STORE_F64) {
    tile_tiny(job);
    return;
  }
  const bool vector = p->n == 1 ? p->out_i <= INT_MAX : p->m == 1;
  if (vector && !p->add) zero_tile(job);
  for (int64_t l = 0; l < p->k; l += K_PANEL) {
    const int64_t k = p->k - l < K_PANEL ? p->k - l : K_PANEL;
    const assay_matrix_t a = shifted(&job->a, 0, l), b = shifted(&job->b, l, 0);
    if (p->n == 1 && vector) {
      read_run(&b, b.offset, b.row_stride, k, job->scratch_b);
      const block_t w = get_block(&a, job->m, k, job->scratch_a);
      add_vector(&w, job->m, k, job->scratch_b, job->out, p->out_i);
    } else if (vector) {
      read_run(&a, a.offset, a.col_stride, k, job->scratch_a);
      block_t w = get_block(&b, k, job->n, job->scratch_b);
      w.transposed = !w.transposed;  // its transpose has the outputs as rows
      add_vector(&w, job->n, k, job->scratch_a, job->out, 1);
    } else {
      const block_t x = get_block(&a, job->m, k, job->scratch_a);
      const block_t y = get_block(&b, k, job->n, job->scratch_b);
      multiply_blocks(job, &x, &y, k, p->add || l);
    }
  }
}

// ---- float32 by BLAS, for bounds ---------------------------------------------------------------

// The block as floats, always copied, in the direction in which its elements are neighbours.
static bool get_block_f32(const assay_matrix_t* x, int64_t rows, int64_t cols, float* scratch) {
  double run[K_PANEL];
  const bool transposed = x->row_stride == 1 && x->col_stride != 1;
  const int64_t n = transposed ? cols : rows, along = transposed ? rows : cols;
  const int64_t across = transposed ? x->col_stride : x->row_stride;
  const int64_t step = transposed ? 1 : x->col_stride;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < along; j += K_PANEL) {
      const int64_t some = along - j < K_PANEL ? along - j : K_PANEL;
      read_run(x, x->offset + i * across + j * step, step, some, run);
      for (int64_t t = 0; t < some; t++) scratch[i * along + j + t] = (float)run[t];
    }
  }
  return transposed;
}

static void tile_coarse(const job_t* job, float* sums) {
  const product_t* p = job->p;
  for (int64_t l = 0; l < p->k; l += K_PANEL) {
    const int64_t k = p->k - l < K_PANEL ? p->k - l : K_PANEL;
    const assay_matrix_t a = shifted(&job->a, 0, l), b = shifted(&job->b, l, 0);
    float *x = (float*)job->scratch_a, *y = (float*)job->scratch_b;
    const bool turn_x = get_block_f32(&a, job->m, k, x), turn_y = get_block_f32(&b, k, job->n, y);
    cblas_sgemm(CblasRowMajor, turn_x ? CblasTrans : CblasNoTrans,
                turn_y ? CblasTrans : CblasNoTrans, (int)job->m, (int)job->n, (int)k, 1.0F, x,
                (int)(turn_x ? job->m : k), y, (int)(turn_y ? k : job->n), l ? 1.0F : 0.0F, sums,
                (int)job->n);
  }
  for (int64_t i = 0; i < job->m; i++) {
    for (int64_t j = 0; j < job->n; j++) {
      double* out = job->out + i * p->out_i + j * p->out_j;
      *out = (p->add ? *out : 0) + (double)sums[i * job->n + j];
    }
  }
}

// ---- emulated: chains of fused multiply-adds --------------------------------------------------

// Copies a block of a matrix into panels of `width` rows (or columns): [panel][l][width], padded
// with zeros. `along` is the stride over l, `across` the one over rows.
static void pack_panels(const assay_matrix_t* x, int64_t across, int64_t n, int64_t along,
                        int64_t k, int width, float* to) {
  double run[K_PANEL];
  for (int64_t i0 = 0; i0 < n; i0 += width, to += k * width) {
    const int64_t some = n - i0 < width ? n - i0 : width;
    const int64_t first = x->offset + i0 * across;
    if (some < width) memset(to, 0, (size_t)(k * width) * sizeof *to);
    if (along != 1) {
      for (int64_t l = 0; l < k; l++) {
        read_run(x, first + l * along, across, some, run);
        for (int64_t i = 0; i < some; i++) to[l * width + i] = (float)run[i];
      }
    } else {
      for (int64_t i = 0; i < some; i++) {
        read_run(x, first + i * across, 1, k, run);
        for (int64_t l = 0; l < k; l++) to[l * width + i] = (float)run[l];
      }
    }
  }
}

// Runs one register block over a panel, its sums kept in the output between panels (they are
// floats, so the doubles there hold them exactly).
static void block_f32(const job_t* job, const assay_fma_kernels_t* f, int64_t i0, int64_t j0,
                      int64_t k, bool fresh, const float* a, const float* b) {
  const product_t* p = job->p;
  float s[ASSAY_FMA_MAX_MR * ASSAY_FMA_MAX_NR] = {0};
  const int64_t m = job->m - i0 < f->mr ? job->m - i0 : f->mr;
  const int64_t n = job->n - j0 < f->nr ? job->n - j0 : f->nr;
  double* out = job->out + i0 * p->out_i + j0 * p->out_j;
  if (!fresh) {
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < n; j++) s[i * f->nr + j] = (float)out[i * p->out_i + j * p->out_j];
    }
  }
  f->block(k, a, b, s);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) out[i * p->out_i + j * p->out_j] = (double)s[i * f->nr + j];
  }
}

static void tile_f32(const job_t* job) {
  const product_t* p = job->p;
  const assay_fma_kernels_t* f = assay_fma_kernels();
  float *pa = (float*)job->scratch_a, *pb = (float*)job->scratch_b;
  for (int64_t l = 0; l < p->k; l += K_PANEL) {
    const int64_t k = p->k - l < K_PANEL ? p->k - l : K_PANEL;
    const assay_matrix_t a = shifted(&job->a, 0, l), b = shifted(&job->b, l, 0);
    pack_panels(&a, a.row_stride, job->m, a.col_stride, k, f->mr, pa);
    pack_panels(&b, b.col_stride, job->n, b.row_stride, k, f->nr, pb);
    for (int64_t j = 0; j < job->n; j += f->nr) {
      for (int64_t i = 0; i < job->m; i += f->mr) {
        block_f32(job, f, i, j, k, !p->add && l == 0, pa + i * k, pb + j * k);
      }
    }
  }
}

// s = round(a * b + s): one rounding to double, in which the product is exact for every operand of
// 26 bits or fewer, and one to the accumulator, if that is narrower.
static void tile_narrow(const job_t* job) {
  const product_t* p = job->p;
  const assay_fma_kernels_t* f = assay_fma_kernels();
  const bool wide = p->c->accumulator == ASSAY_FORMAT_FP64;
  double a_run[K_PANEL], s[TILE], t[TILE];
  for (int64_t l0 = 0; l0 < p->k; l0 += K_PANEL) {
    const int64_t k = p->k - l0 < K_PANEL ? p->k - l0 : K_PANEL;
    const assay_matrix_t a = shifted(&job->a, 0, l0), b = shifted(&job->b, l0, 0);
    for (int64_t l = 0; l < k; l++) {
      read_run(&b, b.offset + l * b.row_stride, b.col_stride, job->n, job->scratch_b + l * job->n);
    }
    for (int64_t i = 0; i < job->m; i++) {
      read_run(&a, a.offset + i * a.row_stride, a.col_stride, k, a_run);
      double* out = job->out + i * p->out_i;
      const bool fresh = !p->add && l0 == 0;
      for (int64_t j = 0; j < job->n; j++) s[j] = fresh ? 0 : out[j * p->out_j];
      for (int64_t l = 0; l < k; l++) {
        f->row(job->n, a_run[l], job->scratch_b + l * job->n, s, wide ? s : t);
        if (wide) continue;
        if (p->c->arith == ASSAY_ARITH_STOCHASTIC) {
          for (int64_t j = 0; j < job->n; j++) s[j] = assay_acc(p->c, t[j]);
        } else {
          assay_format_round_n(p->c->accumulator, t, s, (size_t)job->n, ASSAY_OVERFLOW_IEEE);
        }
      }
      for (int64_t j = 0; j < job->n; j++) out[j * p->out_j] = s[j];
    }
  }
}

// ---- double-double ----------------------------------------------------------------------------

ASSAY_CLONES("avx512f", "fma", "default")
static void row_dd(int64_t n, double a, const double* b, double* high, double* low) {
#pragma omp simd
  for (int64_t j = 0; j < n; j++) assay_dd_fma(&high[j], &low[j], a, b[j]);
}

// sums: room for the high and the low parts of the tile. `out` lies in output 0, whose low parts
// lie alike.
static void tile_dd(const job_t* job, double* sums) {
  const product_t* p = job->p;
  double a_run[K_PANEL], *low = sums + job->m * job->n;
  double* out_low = assay_f64(p->c->low[0]) + (job->out - assay_f64(p->c->out[0]));
  for (int64_t i = 0; i < job->m; i++) {
    for (int64_t j = 0; j < job->n; j++) {
      sums[i * job->n + j] = p->add ? job->out[i * p->out_i + j * p->out_j] : 0;
      low[i * job->n + j] = p->add ? out_low[i * p->out_i + j * p->out_j] : 0;
    }
  }
  for (int64_t l0 = 0; l0 < p->k; l0 += K_PANEL) {
    const int64_t k = p->k - l0 < K_PANEL ? p->k - l0 : K_PANEL;
    const assay_matrix_t a = shifted(&job->a, 0, l0), b = shifted(&job->b, l0, 0);
    for (int64_t l = 0; l < k; l++)
      read_run(&b, b.offset + l * b.row_stride, b.col_stride, job->n, job->scratch_b + l * job->n);
    for (int64_t i = 0; i < job->m; i++) {
      read_run(&a, a.offset + i * a.row_stride, a.col_stride, k, a_run);
      for (int64_t l = 0; l < k; l++)
        row_dd(job->n, a_run[l], job->scratch_b + l * job->n, sums + i * job->n, low + i * job->n);
    }
  }
  for (int64_t i = 0; i < job->m; i++) {
    for (int64_t j = 0; j < job->n; j++) {
      const assay_dd_t s = assay_dd_end(sums[i * job->n + j], low[i * job->n + j]);
      job->out[i * p->out_i + j * p->out_j] = s.high;
      out_low[i * p->out_i + j * p->out_j] = s.low;
    }
  }
}

// ---- tiles and threads ------------------------------------------------------------------------

// Square tiles, halved until there are enough of them to share among threads.
static void choose_tiles(product_t* p) {
  const double work = (double)p->m * (double)p->n * (double)p->k;
  const int64_t largest =
      p->c->arith == ASSAY_ARITH_F64 && (p->m == 1 || p->n == 1) ? VECTOR_TILE : TILE;
  p->tile_m = p->m < largest ? p->m : largest;
  if (p->out_i > INT_MAX && p->n > 1) p->tile_m = 1;  // more than BLAS can say
  p->tile_n = p->n < largest ? p->n : largest;
  const int64_t batch = p->batch ? p->batch->n : 1;
  if (batch >= 16 || work < 1e6) return;
  while (batch * ((p->m + p->tile_m - 1) / p->tile_m) * ((p->n + p->tile_n - 1) / p->tile_n) < 16) {
    int64_t* longer = p->tile_m > p->tile_n ? &p->tile_m : &p->tile_n;
    if (*longer <= 64) break;
    *longer = (*longer / 2 + 31) / 32 * 32;
  }
}

// Room for a panel of the right-hand operand, padded to whole register blocks.
static size_t size_of_b(const product_t* p) {
  const size_t k = (size_t)(p->k < K_PANEL ? p->k : K_PANEL);
  return ((size_t)p->tile_n + ASSAY_FMA_MAX_NR) * k;
}

static void run_tile(const product_t* p, int64_t index, double* scratch_a, double* scratch_b) {
  const int64_t tiles_n = (p->n + p->tile_n - 1) / p->tile_n;
  const int64_t tiles = (p->m + p->tile_m - 1) / p->tile_m * tiles_n;
  const int64_t batch = index / tiles, tile = index % tiles;
  const int64_t i = tile / tiles_n * p->tile_m, j = tile % tiles_n * p->tile_n;
  job_t job = {.p = p,
               .a = shifted(p->a, i, 0),
               .b = shifted(p->b, 0, j),
               .m = p->m - i < p->tile_m ? p->m - i : p->tile_m,
               .n = p->n - j < p->tile_n ? p->n - j : p->tile_n,
               .out = p->out + batch * p->m * p->n + i * p->out_i + j * p->out_j,
               .scratch_a = scratch_a,
               .scratch_b = scratch_b};
  if (p->batch) {
    job.a.offset += p->batch->a_offsets[batch];
    job.b.offset += p->batch->b_offsets[batch];
  }
  if (p->c->arith == ASSAY_ARITH_F64 && p->c->coarse) {
    tile_coarse(&job, (float*)(scratch_b + size_of_b(p)));
  } else if (p->c->arith == ASSAY_ARITH_F64) {
    tile_f64(&job);
  } else if (p->c->arith == ASSAY_ARITH_DOUBLE_DOUBLE) {
    tile_dd(&job, scratch_b + size_of_b(p));
  } else if (p->c->arith == ASSAY_ARITH_F32) {
    tile_f32(&job);
  } else {
    tile_narrow(&job);
  }
}

static assay_status_t run(product_t* p) {
  const int64_t batch = p->batch ? p->batch->n : 1;
  if (p->m <= 0 || p->n <= 0 || batch <= 0) return NULL;
  if (p->k <= 0) {
    if (p->add) return NULL;
    for (int64_t t = 0; t < batch; t++) {
      job_t all = {.p = p, .m = p->m, .n = p->n, .out = p->out + t * p->m * p->n};
      zero_tile(&all);
    }
    return NULL;
  }
  choose_tiles(p);
  // Room for one panel of each operand, padded to whole register blocks.
  const size_t k = (size_t)(p->k < K_PANEL ? p->k : K_PANEL);
  const size_t size_a = ((size_t)p->tile_m + ASSAY_FMA_MAX_NR) * k;
  const size_t size_b = size_of_b(p);
  const size_t tile = (size_t)(p->tile_m * p->tile_n);
  const size_t sums = p->c->arith == ASSAY_ARITH_DOUBLE_DOUBLE ? 2 * tile
                      : p->c->coarse                           ? tile / 2 + 1
                                                               : 0;
  const int64_t jobs =
      batch * ((p->m + p->tile_m - 1) / p->tile_m) * ((p->n + p->tile_n - 1) / p->tile_n);
  const double work = (double)batch * (double)p->m * (double)p->n * (double)p->k;
  const assay_cancel_t* watched = assay_cancel_watched();
  bool failed = false;
#pragma omp parallel if (work > 1e5 && jobs > 1)
  {
    double* scratch = assay_malloc((size_a + size_b + sums) * sizeof *scratch);
    if (!scratch) {
#pragma omp atomic write
      failed = true;
    }
    // Which thread takes a tile does not show in its bits, and tiles at the edge are smaller.
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < jobs; i++) {
      if (scratch && !assay_cancel_wanted(watched)) run_tile(p, i, scratch, scratch + size_a);
    }
    assay_free(scratch);
  }
  return failed ? assay_status_no_memory() : NULL;
}

// The emulated kernels are wide in n: a tall, narrow product runs as its transpose (a product of
// two numbers does not mind their order).
static assay_status_t run_either_way(product_t* p) {
  assay_matrix_t last_a, last_b;
  if (p->c->backwards && p->k > 0) {
    last_a = shifted(p->a, 0, p->k - 1), last_b = shifted(p->b, p->k - 1, 0);
    last_a.col_stride = -last_a.col_stride, last_b.row_stride = -last_b.row_stride;
    p->a = &last_a, p->b = &last_b;
  }
  if (p->c->arith == ASSAY_ARITH_F64) {
    assay_gemm_prepare();
    return run(p);
  }
  if (p->n >= p->m || p->n >= ASSAY_FMA_MAX_NR) return run(p);
  const assay_matrix_t a = {p->b->data,   p->b->store,      p->b->type,
                            p->b->offset, p->b->col_stride, p->b->row_stride};
  const assay_matrix_t b = {p->a->data,   p->a->store,      p->a->type,
                            p->a->offset, p->a->col_stride, p->a->row_stride};
  const assay_gemm_batch_t batch = {p->batch ? p->batch->n : 1,
                                    p->batch ? p->batch->b_offsets : NULL,
                                    p->batch ? p->batch->a_offsets : NULL};
  product_t q = *p;
  q.m = p->n, q.n = p->m;
  q.a = &a, q.b = &b;
  q.out_i = p->out_j, q.out_j = p->out_i;
  q.batch = p->batch ? &batch : NULL;
  return run(&q);
}

assay_status_t assay_gemm(const assay_eval_t* c, int64_t m, int64_t n, int64_t k,
                          const assay_matrix_t* a, const assay_matrix_t* b, double* out, int64_t ld,
                          bool add) {
  product_t p = {.c = c,
                 .m = m,
                 .n = n,
                 .k = k,
                 .a = a,
                 .b = b,
                 .out = out,
                 .out_i = ld,
                 .out_j = 1,
                 .add = add};
  return run_either_way(&p);
}

assay_status_t assay_gemm_batched(const assay_eval_t* c, int64_t m, int64_t n, int64_t k,
                                  const assay_matrix_t* a, const assay_matrix_t* b,
                                  const assay_gemm_batch_t* batch, double* out) {
  product_t p = {.c = c,
                 .m = m,
                 .n = n,
                 .k = k,
                 .a = a,
                 .b = b,
                 .batch = batch,
                 .out = out,
                 .out_i = n,
                 .out_j = 1};
  return run_either_way(&p);
}
