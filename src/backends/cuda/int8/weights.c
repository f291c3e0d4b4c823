// Weights of products on 8-bit integers in a device's memory, and what goes with them.
#include <stdio.h>

#include "backends/cuda/bytes.h"
#include "backends/cuda/int8/product.h"
#include "base/alloc.h"

enum { PIECE = 16 };  // bytes that columns begin at a multiple of

// Where the weight of a term of a column lies in ONNX's order.
static int64_t given_at(const cuda_int8_t* p, int64_t matrix, int64_t column, int64_t term) {
  const product_args_t* a = &p->p.args;
  if (p->p.left == CUDA_LEFT_MATRIX)
    return matrix * a->w_step[0] + term * a->w_k + column * a->w_column;
  const int64_t taps = a->k / a->channels, tap = term / a->channels, read = term % a->channels;
  if (p->p.left == CUDA_LEFT_CONV)
    return ((matrix * a->n + column) * a->channels + read) * taps + tap;
  return ((matrix * a->channels + read) * a->n + column) * taps + tap;
}

static int32_t weight(const cuda_int8_t* p, int64_t matrix, int64_t column, int64_t term) {
  return p->job.weights[given_at(p, matrix, column, term)];
}

// Matrices that differ in their weights.
static int64_t n_matrices(const cuda_int8_t* p) {
  return p->p.left || p->p.args.w_step[0] ? p->p.args.matrices : 1;
}

// What a sum of a column begins with, besides what is due for zero points.
static int32_t bias_of(const cuda_int8_t* p, int64_t matrix, int64_t column) {
  const int64_t* bias = p->job.q ? p->job.q->bias : NULL;
  return bias ? (int32_t)bias[matrix * p->p.args.bias_step + column] : 0;
}

static assay_status_t bring_numbers(const cuda_int8_t* p, const char* what, const int32_t* x,
                                    assay_device_ptr_t* out) {
  int64_t any = 0;
  const int64_t n = n_matrices(p) * p->p.args.n;
  for (int64_t i = 0; i < n; i++) any |= x[i];
  return any ? cuda_bytes_bring(p->job.l, what, x, (size_t)n * sizeof *x, out) : NULL;
}

// ---- bytes: [columns of all matrices, terms] ----------------------------------------------------

typedef struct packed {
  int8_t* bytes;
  int32_t *start, *due, *zeros;  // by column
} packed_t;

static void packed_free(packed_t* k) {
  assay_free(k->bytes);
  assay_free(k->start);
  assay_free(k->due);
  assay_free(k->zeros);
}

static assay_status_t packed_make(int64_t columns, int64_t column_bytes, packed_t* k) {
  int64_t bytes;
  if (!assay_mul_i64(columns, column_bytes, &bytes))
    return ASSAY_ERROR(ASSAY_NO_MEMORY, "weights of %lld columns are too large for this machine",
                       (long long)columns);
  ASSAY_TRY(assay_new_array((size_t)bytes, 1, &k->bytes));
  ASSAY_TRY(assay_new_array((size_t)columns, sizeof *k->start, &k->start));
  ASSAY_TRY(assay_new_array((size_t)columns, sizeof *k->due, &k->due));
  return assay_new_array((size_t)columns, sizeof *k->zeros, &k->zeros);
}

// Differences that no signed byte holds have a zero point again, of the column: they are those of
// bytes.
static void pack_column(const cuda_int8_t* p, int64_t matrix, int64_t column, int64_t column_bytes,
                        packed_t* k) {
  const product_args_t* a = &p->p.args;
  const int64_t at = matrix * a->n + column;
  int32_t least = 0, most = 0;
  uint32_t due = 0;
  for (int64_t t = 0; t < a->k; t++) {
    const int32_t w = weight(p, matrix, column, t);
    least = w < least ? w : least;
    most = w > most ? w : most;
    due += (uint32_t)w;
  }
  k->zeros[at] = least < -128 || most > 127 ? -128 - least : 0;
  for (int64_t t = 0; t < a->k; t++)
    k->bytes[at * column_bytes + t] = (int8_t)(weight(p, matrix, column, t) + k->zeros[at]);
  k->due[at] = (int32_t)due;
  k->start[at] = (int32_t)((uint32_t)bias_of(p, matrix, column) -
                           (p->job.zero_input < 0 ? (uint32_t)p->job.zero_x * due : 0));
}

assay_status_t cuda_int8_bring_bytes(const cuda_int8_t* p, int8_product_args_t* args) {
  const product_args_t* a = &p->p.args;
  const int64_t column_bytes = (a->k + PIECE - 1) / PIECE * PIECE, matrices = n_matrices(p);
  packed_t k = {0};
  assay_status_t st = packed_make(matrices * a->n, column_bytes, &k);
  for (int64_t i = 0; !st && i < matrices; i++)
    for (int64_t c = 0; c < a->n; c++) pack_column(p, i, c, column_bytes, &k);
  if (!st)
    st = cuda_bytes_bring(p->job.l, "int8 weights by columns", k.bytes,
                          (size_t)(matrices * a->n * column_bytes), &args->product.w);
  if (!st) st = bring_numbers(p, "int8 starts", k.start, &args->start);
  if (!st && p->job.zero_input >= 0) st = bring_numbers(p, "int8 dues", k.due, &args->due);
  if (!st) st = bring_numbers(p, "int8 zeros", k.zeros, &args->zeros);
  packed_free(&k);
  args->step = matrices > 1 ? (int32_t)a->n : 0;
  args->product.w_k = 1;
  args->product.w_column = column_bytes;
  args->product.w_step[0] = matrices > 1 ? a->n * column_bytes : 0;
  return st;
}

// ---- differences: [terms, columns of all matrices] ----------------------------------------------

assay_status_t cuda_int8_bring_terms(const cuda_int8_t* p, int8_product_args_t* args) {
  const product_args_t* a = &p->p.args;
  const int64_t matrices = n_matrices(p), columns = matrices * a->n;
  int16_t* terms = NULL;
  int32_t* start = NULL;
  assay_status_t st = assay_new_array((size_t)p->job.n_weights, sizeof *terms, &terms);
  if (!st) st = assay_new_array((size_t)columns, sizeof *start, &start);
  for (int64_t t = 0; !st && t < a->k; t++)
    for (int64_t i = 0; i < columns; i++)
      terms[t * columns + i] = (int16_t)weight(p, i / a->n, i % a->n, t);
  for (int64_t i = 0; !st && i < columns; i++) start[i] = bias_of(p, i / a->n, i % a->n);
  if (!st)
    st = cuda_bytes_bring(p->job.l, "int8 weights by terms", terms,
                          (size_t)p->job.n_weights * sizeof *terms, &args->product.w);
  if (!st) st = bring_numbers(p, "int8 biases", start, &args->start);
  assay_free(terms);
  assay_free(start);
  args->step = matrices > 1 ? (int32_t)a->n : 0;
  args->product.w_k = columns;
  args->product.w_column = 1;
  args->product.w_step[0] = matrices > 1 ? a->n : 0;
  return st;
}
