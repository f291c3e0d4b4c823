// com.microsoft's products with weights quantized in blocks: MatMulNBits, MatMulBnb4, MatMulFpQ4.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/bound_parts.h"
#include "ops/families.h"
#include "ops/matmul/gemm.h"

// ---- a product with weights made on the way ---------------------------------------------------

// Weights are made a panel of output columns at a time, so that they are never held whole.
enum { PANEL = 256 };

// For bounds: of weights with a zero point, |code - zero| |scale|, or (|code| + |zero|) |scale|.
typedef enum magnitude { PLAIN, MAGNITUDE, MAGNITUDE_APART } magnitude_t;

typedef struct blocks blocks_t;
struct blocks {
  const assay_eval_t* c;
  int64_t n, k;
  const uint8_t* data;  // as the operator lays them out
  const double* scales;
  int64_t block, per_row;  // weights in a block, blocks in a row
  int bits;
  // Zero points: packed as the weights, or numbers; both NULL: the middle of the range.
  const uint8_t* zero_bits;
  int64_t zero_row_bytes;
  const double* zeros;
  const int64_t* groups;  // the block of each of k weights; NULL: in order
  const double* table;    // values of 4-bit codes
  int64_t blob_bytes;
  magnitude_t magnitude;
  // Makes the weights of row j: w[0..k).
  void (*make_row)(const blocks_t* b, int64_t j, double* w);
};

// y[m, n] = x[m, k] w' for rows w[n, k]; `swap`: y[m, k] = x[m, n] w.
static assay_status_t multiply(const blocks_t* b, int64_t m, const double* x, bool swap,
                               double* y) {
  assay_tensor_t* panel = NULL;
  const int64_t rows = b->n < PANEL ? b->n : PANEL, dims[2] = {rows, b->k};
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, 2, dims, &panel));
  double* w = assay_f64(panel);
  assay_status_t st = NULL;
  if (swap && b->n == 0) memset(y, 0, (size_t)(m * b->k) * sizeof *y);
  for (int64_t j = 0; !st && j < b->n; j += PANEL) {
    const int64_t some = b->n - j < PANEL ? b->n - j : PANEL;
#pragma omp parallel for schedule(static) if (some * b->k > 10000)
    for (int64_t i = 0; i < some; i++) b->make_row(b, j + i, w + i * b->k);
    if (swap) {
      const assay_matrix_t left = {x + j, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, b->n, 1};
      const assay_matrix_t right = {w, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, b->k, 1};
      st = assay_gemm(b->c, m, b->k, some, &left, &right, y, b->k, j > 0);
    } else {
      const assay_matrix_t left = {x, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, b->k, 1};
      const assay_matrix_t right = {w, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, 1, b->k};
      st = assay_gemm(b->c, m, some, b->k, &left, &right, y + j, b->n, false);
    }
  }
  assay_tensor_release(panel);
  return st;
}

// The canonical uint8 tensor's elements as bytes again.
static assay_status_t read_bytes(const assay_tensor_t* t, uint8_t** out) {
  uint8_t* bytes = NULL;
  ASSAY_TRY(assay_new_array((size_t)t->size, 1, &bytes));
  for (int64_t i = 0; i < t->size; i++) bytes[i] = (uint8_t)assay_i64(t)[i];
  *out = bytes;
  return NULL;
}

static int code_at(const uint8_t* bytes, int bits, int64_t i) {
  const int64_t bit = i * bits;
  unsigned v = (unsigned)bytes[bit / 8] >> (bit % 8);
  if (bit % 8 + bits > 8) v |= (unsigned)bytes[bit / 8 + 1] << (8 - bit % 8);
  return (int)(v & ((1u << bits) - 1));
}

// The output [..., columns] of an input [..., inner].
static assay_status_t make_output(assay_eval_t* c, int64_t inner, int64_t columns,
                                  assay_tensor_t** out, int64_t* out_m) {
  const assay_tensor_t* x = c->in[0];
  if (x->rank < 1 || x->dims[x->rank - 1] != inner) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "A has shape %s; expected a last dimension of %lld", ASSAY_DIMS_TEXT(x),
                            (long long)inner);
  }
  int64_t dims[ASSAY_MAX_RANK];
  memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  dims[x->rank - 1] = columns;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, dims, out));
  *out_m = assay_dims_product(dims, 0, x->rank - 1);
  return NULL;
}

static assay_status_t infer_columns(assay_infer_t* c, const assay_dim_t* inner,
                                    const assay_dim_t* columns) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, ASSAY_MAX_RANK));
  assay_shape_t y = assay_infer_shape(c, 0);
  if (!y.known) return assay_infer_set(c, 0, assay_infer_elem(c, 0), NULL);
  if (assay_dim_differ(y.dims[y.rank - 1], inner)) {
    char wanted[64];
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT, "A is %s; expected a last dimension of %s",
        ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)), assay_dim_text(inner, wanted, sizeof wanted));
  }
  y.dims[y.rank - 1] = columns;
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), &y);
}

// N, K and block_size: sane and not so large that products of them overflow.
static assay_status_t read_sizes(const assay_node_t* node, int64_t* n, int64_t* k, int64_t* block) {
  *n = assay_attr_i64(node, "N", 0);
  *k = assay_attr_i64(node, "K", 0);
  *block = assay_attr_i64(node, "block_size", 0);
  const int64_t limit = INT64_C(1) << 31;
  if (*n > 0 && *k > 0 && *n < limit && *k < limit && *block >= 16 && *block < limit &&
      (*block & (*block - 1)) == 0) {
    return NULL;
  }
  return ASSAY_NODE_ERROR(
      node, ASSAY_INVALID_ARGUMENT,
      "N is %lld, K %lld, block_size %lld; expected positive sizes and a power of "
      "two of at least 16",
      (long long)*n, (long long)*k, (long long)*block);
}

static assay_status_t wrong_size(const assay_eval_t* c, const char* name, const assay_tensor_t* t,
                                 int64_t expected) {
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "%s has shape %s; expected %lld elements", name, ASSAY_DIMS_TEXT(t),
                          (long long)expected);
}

// 2 flops a product, and 2 to make a weight; bytes as they are stored.
static void blocks_cost(const assay_eval_t* c, assay_cost_t* out) {
  const assay_tensor_t *x = c->in[0], *y = c->n_out > 0 ? c->out[0] : NULL;
  if (!y || x->rank < 1 || x->dims[x->rank - 1] == 0) return;
  const double k = (double)x->dims[x->rank - 1], n = (double)y->dims[y->rank - 1];
  out->flops = 2 * (double)y->size * k + 2 * n * k;
}

// ---- MatMulNBits ------------------------------------------------------------------------------

enum { NB_A, NB_B, NB_SCALES, NB_ZEROS, NB_GROUPS, NB_BIAS };

static void nbits_row(const blocks_t* b, int64_t j, double* w) {
  const uint8_t* row = b->data + j * b->per_row * b->blob_bytes;
  for (int64_t i = 0; i < b->k; i++) {
    const int64_t own = i / b->block, g = b->groups ? b->groups[i] : own;
    const int code = code_at(row + own * b->blob_bytes, b->bits, i % b->block);
    double zero = (double)(1 << (b->bits - 1));
    if (b->zeros) zero = b->zeros[j * b->per_row + g];
    if (b->zero_bits) zero = code_at(b->zero_bits + j * b->zero_row_bytes, b->bits, g);
    const double scale = b->scales[j * b->per_row + g];
    w[i] = assay_acc(b->c, assay_acc(b->c, (double)code - zero) * scale);
    if (b->magnitude == MAGNITUDE) w[i] = fabs(w[i]);
    if (b->magnitude == MAGNITUDE_APART) w[i] = ((double)code + fabs(zero)) * fabs(scale);
  }
}

static assay_status_t nbits_infer(assay_infer_t* c) {
  int64_t n = 0, k = 0, block = 0;
  ASSAY_TRY(read_sizes(c->node, &n, &k, &block));
  return infer_columns(c, assay_dim_const(c->dims, k), assay_dim_const(c->dims, n));
}

// Zero points, groups and scales into *b; *owned is memory to be freed.
static assay_status_t read_nbits(const assay_eval_t* c, blocks_t* b, uint8_t** owned) {
  const assay_tensor_t *scales = c->in[NB_SCALES], *weights = c->in[NB_B];
  const int64_t blocks = b->n * b->per_row;
  if (weights->size != blocks * b->blob_bytes) {
    return wrong_size(c, "B", weights, blocks * b->blob_bytes);
  }
  if (scales->size != blocks) return wrong_size(c, "scales", scales, blocks);
  b->scales = assay_f64(scales);
  if (assay_eval_has(c, NB_ZEROS)) {
    const assay_tensor_t* zeros = c->in[NB_ZEROS];
    b->zero_row_bytes = (b->per_row * b->bits + 7) / 8;
    const bool packed = zeros->store == ASSAY_STORE_I64;
    const int64_t expected = packed ? b->n * b->zero_row_bytes : blocks;
    if (zeros->size != expected) return wrong_size(c, "zero_points", zeros, expected);
    if (packed) {
      ASSAY_TRY(read_bytes(zeros, owned));
      b->zero_bits = *owned;
    } else {
      b->zeros = assay_f64(zeros);
    }
  }
  if (assay_eval_has(c, NB_GROUPS)) {
    const assay_tensor_t* groups = c->in[NB_GROUPS];
    if (groups->size < b->k) return wrong_size(c, "g_idx", groups, b->k);
    for (int64_t i = 0; i < b->k; i++) {
      const int64_t g = assay_i64(groups)[i];
      if (g < 0 || g >= b->per_row) {
        return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                                "g_idx[%lld] is %lld; expected one of [0, %lld)", (long long)i,
                                (long long)g, (long long)b->per_row);
      }
    }
    b->groups = assay_i64(groups);
  }
  return NULL;
}

static assay_status_t add_bias(const assay_eval_t* c, int64_t n, assay_tensor_t* y) {
  if (!assay_eval_has(c, NB_BIAS)) return NULL;
  const assay_tensor_t* bias = c->in[NB_BIAS];
  if (bias->size != n) return wrong_size(c, "bias", bias, n);
  for (int64_t i = 0; i < y->size; i++) {
    assay_f64(y)[i] = assay_acc(c, assay_f64(y)[i] + assay_f64(bias)[i % n]);
  }
  return NULL;
}

// Source: com.microsoft MatMulNBits 1. accuracy_level only permits less; it is not used.
static assay_status_t nbits_run(assay_eval_t* c, magnitude_t magnitude) {
  blocks_t b = {.c = c,
                .make_row = nbits_row,
                .magnitude = magnitude,
                .bits = (int)assay_attr_i64(c->node, "bits", 4)};
  ASSAY_TRY(read_sizes(c->node, &b.n, &b.k, &b.block));
  if (assay_attr_i64(c->node, "bits", 4) < 1 || assay_attr_i64(c->node, "bits", 4) > 8 ||
      assay_attr_i64(c->node, "weight_prepacked", 0) != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "bits must be 1 to 8 (found %lld) and weight_prepacked 0 (found %lld)",
                            (long long)assay_attr_i64(c->node, "bits", 4),
                            (long long)assay_attr_i64(c->node, "weight_prepacked", 0));
  }
  b.per_row = (b.k + b.block - 1) / b.block;
  b.blob_bytes = b.block * b.bits / 8;
  uint8_t *weights = NULL, *zeros = NULL;
  assay_tensor_t* y = NULL;
  int64_t m = 0;
  assay_status_t st = read_nbits(c, &b, &zeros);
  if (!st) st = read_bytes(c->in[NB_B], &weights);
  b.data = weights;
  if (!st) st = make_output(c, b.k, b.n, &y, &m);
  if (!st) st = multiply(&b, m, assay_f64(c->in[NB_A]), false, assay_f64(y));
  if (!st) st = add_bias(c, b.n, y);
  assay_free(weights);
  assay_free(zeros);
  return st;
}

// ---- MatMulBnb4 -------------------------------------------------------------------------------

// Source: bitsandbytes, the 4-bit float and the normal float of Dettmers et al. 2023 (arXiv
// 2305.14314), appendix E.
static const double fp4_values[16] = {
    0.0f,  5.208333333e-03f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    -0.0f, -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
static const double nf4_values[16] = {-1.0f,
                                      -0.6961928009986877f,
                                      -0.5250730514526367f,
                                      -0.39491748809814453f,
                                      -0.28444138169288635f,
                                      -0.18477343022823334f,
                                      -0.09105003625154495f,
                                      0.0f,
                                      0.07958029955625534f,
                                      0.16093020141124725f,
                                      0.24611230194568634f,
                                      0.33791524171829224f,
                                      0.44070982933044434f,
                                      0.5626170039176941f,
                                      0.7229568362236023f,
                                      1.0f};

// Blocks run over the flat [N, K] weights; the first of two codes is in a byte's high half.
static void bnb4_row(const blocks_t* b, int64_t j, double* w) {
  for (int64_t i = 0; i < b->k; i++) {
    const int64_t at = j * b->k + i;
    const int code = b->data[at / 2] >> (at % 2 ? 0 : 4) & 15;
    w[i] = assay_acc(b->c, b->table[code] * b->scales[at / b->block]);
    if (b->magnitude) w[i] = fabs(w[i]);
  }
}

static bool bnb4_swaps(const assay_node_t* n) { return assay_attr_i64(n, "transB", 1) == 0; }

static assay_status_t bnb4_infer(assay_infer_t* c) {
  int64_t n = 0, k = 0, block = 0;
  ASSAY_TRY(read_sizes(c->node, &n, &k, &block));
  const bool swap = bnb4_swaps(c->node);
  return infer_columns(c, assay_dim_const(c->dims, swap ? n : k),
                       assay_dim_const(c->dims, swap ? k : n));
}

// Source: com.microsoft MatMulBnb4 1.
static assay_status_t bnb4_run(assay_eval_t* c, magnitude_t magnitude) {
  blocks_t b = {.c = c, .make_row = bnb4_row, .magnitude = magnitude};
  ASSAY_TRY(read_sizes(c->node, &b.n, &b.k, &b.block));
  const int64_t type = assay_attr_i64(c->node, "quant_type", 0), weights = b.n * b.k;
  if (type != 0 && type != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "quant_type is %lld; expected 0 (FP4) or 1 (NF4)", (long long)type);
  }
  const int64_t blocks = (weights + b.block - 1) / b.block;
  if (c->in[1]->size != (weights + 1) / 2) return wrong_size(c, "B", c->in[1], (weights + 1) / 2);
  if (c->in[2]->size != blocks) return wrong_size(c, "absmax", c->in[2], blocks);
  b.table = type == 0 ? fp4_values : nf4_values;
  b.scales = assay_f64(c->in[2]);
  const bool swap = bnb4_swaps(c->node);
  uint8_t* data = NULL;
  assay_tensor_t* y = NULL;
  int64_t m = 0;
  ASSAY_TRY(read_bytes(c->in[1], &data));
  b.data = data;
  assay_status_t st = make_output(c, swap ? b.n : b.k, swap ? b.k : b.n, &y, &m);
  if (!st) st = multiply(&b, m, assay_f64(c->in[0]), swap, assay_f64(y));
  assay_free(data);
  return st;
}

// ---- MatMulFpQ4 -------------------------------------------------------------------------------

// A block is an fp32 scale, a zero point byte (type 1), and its codes: of each 32, byte l holds the
// codes l (low half) and l + 16. Blocks follow each other down a column of B [K, N].
// Source: com.microsoft MatMulFpQ4 1; onnxruntime's MLAS, q4common.h and q4_dq.cpp.
static void fpq4_row(const blocks_t* b, int64_t j, double* w) {
  for (int64_t g = 0; g < b->per_row; g++) {
    const uint8_t* blob = b->data + (j * b->per_row + g) * b->blob_bytes;
    const int64_t head = b->blob_bytes - b->block / 2;
    float scale = 0;
    memcpy(&scale, blob, sizeof scale);
    const int zero = head > 4 ? blob[4] : 8;
    for (int64_t i = 0; i < b->block && g * b->block + i < b->k; i++) {
      const uint8_t byte = blob[head + i / 32 * 16 + i % 16];
      const int code = i % 32 < 16 ? byte & 15 : byte >> 4;
      w[g * b->block + i] = assay_acc(b->c, (double)(code - zero) * (double)scale);
      if (b->magnitude) w[g * b->block + i] = (double)(code + zero) * fabs((double)scale);
    }
  }
}

static assay_status_t fpq4_infer(assay_infer_t* c) {
  assay_content_t shape;
  if (!assay_infer_content(c, 2, &shape) || shape.n != 2) {
    assay_shape_t y = assay_infer_shape(c, 0);
    if (y.known && y.rank > 0) y.dims[y.rank - 1] = NULL;
    return assay_infer_set(c, 0, assay_infer_elem(c, 0), &y);
  }
  return infer_columns(c, shape.elems[0], shape.elems[1]);
}

static assay_status_t fpq4_run(assay_eval_t* c, magnitude_t magnitude) {
  static const int64_t block_sizes[] = {32, 32, 64, 128};
  const int64_t type = assay_attr_i64(c->node, "blk_quant_type", 1);
  const assay_tensor_t* shape = c->in[2];
  blocks_t b = {.c = c, .make_row = fpq4_row, .magnitude = magnitude};
  if (type < 0 || type > 3 || shape->size != 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "blk_quant_type is %lld, B_shape %s; expected 0 to 3 and two numbers",
                            (long long)type, ASSAY_DIMS_TEXT(shape));
  }
  b.k = assay_i64(shape)[0], b.n = assay_i64(shape)[1];
  const int64_t limit = INT64_C(1) << 31;
  if (b.k < 1 || b.n < 1 || b.k >= limit || b.n >= limit) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "B_shape is [%lld, %lld]",
                            (long long)b.k, (long long)b.n);
  }
  b.block = block_sizes[type];
  b.per_row = (b.k + b.block - 1) / b.block;
  b.blob_bytes = 4 + (type == 1 ? 1 : 0) + b.block / 2;
  const int64_t bytes = b.n * b.per_row * b.blob_bytes;
  if (c->in[1]->size != bytes) return wrong_size(c, "B", c->in[1], bytes);
  uint8_t* data = NULL;
  assay_tensor_t* y = NULL;
  int64_t m = 0;
  ASSAY_TRY(read_bytes(c->in[1], &data));
  b.data = data;
  assay_status_t st = make_output(c, b.k, b.n, &y, &m);
  if (!st) st = multiply(&b, m, assay_f64(c->in[0]), false, assay_f64(y));
  assay_free(data);
  return st;
}

static assay_status_t nbits_eval(assay_eval_t* c) { return nbits_run(c, PLAIN); }
static assay_status_t bnb4_eval(assay_eval_t* c) { return bnb4_run(c, PLAIN); }
static assay_status_t fpq4_eval(assay_eval_t* c) { return fpq4_run(c, PLAIN); }

// ---- bounds -----------------------------------------------------------------------------------
// Weights take a difference and a product, or zero points are taken off the sums of blocks: then
// codes and zero points are terms of their own, and what adds up is larger.

static assay_status_t nbits_magnitude(assay_eval_t* c) { return nbits_run(c, MAGNITUDE); }
static assay_status_t nbits_apart(assay_eval_t* c) { return nbits_run(c, MAGNITUDE_APART); }
static assay_status_t bnb4_magnitude(assay_eval_t* c) { return bnb4_run(c, MAGNITUDE); }
static assay_status_t fpq4_magnitude(assay_eval_t* c) { return fpq4_run(c, MAGNITUDE); }

// What an accuracy level lets an engine do to A: fp16 or bf16 throughout, or 8 bits for each block.
// The documented engine makes no use of it.
static double allowed(const assay_bound_t* c, double terms) {
  const int64_t level = assay_attr_i64(c->node, "accuracy_level", 0);
  if (c->rounding->documented || level < 2) return 0;
  if (level == 4) return (double)INFINITY;
  return (terms + 2) * assay_bound_unit(level == 2 ? ASSAY_FORMAT_FP16 : ASSAY_FORMAT_BF16);
}

// The magnitudes of each row of A: sums[rows].
static assay_status_t row_magnitudes(const assay_tensor_t* x, double** out) {
  const int64_t columns = x->rank > 0 ? x->dims[x->rank - 1] : 0;
  const int64_t rows = columns > 0 ? x->size / columns : 0;
  ASSAY_TRY(assay_new_array((size_t)rows, sizeof **out, out));
  for (int64_t i = 0; i < rows; i++) {
    double sum = 0;
    for (int64_t k = 0; k < columns; k++) sum += fabs(assay_f64(x)[i * columns + k]);
    (*out)[i] = sum;
  }
  return NULL;
}

// Of weights so made and a bias. A weight that is subnormal loses `tiny`, and the element of A that
// it meets makes the most of it.
static assay_status_t blocks_bound(assay_bound_t* c, assay_status_t (*eval)(assay_eval_t* c)) {
  const assay_bound_run_t run = {.eval = eval, .magnitudes = true};
  const assay_inner_t in = assay_bound_inner(c->rounding);
  const assay_tensor_t* x = c->in[0];
  const double terms = x->rank > 0 ? (double)x->dims[x->rank - 1] : 0;
  const double more = 4 * in.u + allowed(c, terms);
  assay_factor_t f = assay_bound_sum(c->rounding, terms + 1);
  assay_tensor_t* size = NULL;
  double* limits[2];
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  if (!limits[0]) return NULL;
  double* rows = NULL;
  ASSAY_TRY(row_magnitudes(x, &rows));
  assay_status_t st = assay_bound_evaluate(c, &run, &size);
  const int64_t columns = size && size->rank > 0 ? size->dims[size->rank - 1] : 1;
  for (int k = 0; !st && k < 2; k++) {
    const double factor = (1 + assay_factor_of(f, k)) * (1 + more) - 1;
    for (int64_t i = 0; i < size->size; i++) {
      const double lost = (terms + 2 + rows[i / columns]) * in.tiny;
      const double m = assay_f64(size)[i];
      double e = factor * m;
      if (c->rounding->documented) {
        const double y = assay_f64(c->out[0])[i];
        const assay_factor_t sum = assay_bound_sum_of(c->rounding, terms + 1, m, y);
        e = assay_factor_of(sum, k) * (1 + more) + more * m;
      }
      limits[k][i] = m * (1 + factor) <= in.max ? e + lost : (double)INFINITY;
    }
  }
  assay_tensor_release(size);
  assay_free(rows);
  return st;
}

static assay_status_t nbits_bound(assay_bound_t* c) {
  return blocks_bound(c, c->rounding->documented ? nbits_magnitude : nbits_apart);
}
static assay_status_t bnb4_bound(assay_bound_t* c) { return blocks_bound(c, bnb4_magnitude); }
static assay_status_t fpq4_bound(assay_bound_t* c) { return blocks_bound(c, fpq4_magnitude); }

#define MS .domain = "com.microsoft", .since = 1

const assay_op_t assay_ops_matmul_blocks[] = {
    {MS, .name = "MatMulNBits", .infer = nbits_infer, .eval = nbits_eval, .bound = nbits_bound,
     .cost = blocks_cost,
     .schema = "A:T1, B:T2, scales:T1, zero_points?:T3, g_idx?:T4, bias?:T1 -> Y:T1 | K:i!, N:i!, "
               "accuracy_level:i=0, bits:i=4, block_size:i!, weight_prepacked:i=0 | "
               "T1=float float16 bfloat16; T2=uint8; T3=uint8 float16 float bfloat16; T4=int32"},
    {MS, .name = "MatMulBnb4", .infer = bnb4_infer, .eval = bnb4_eval, .bound = bnb4_bound,
     .cost = blocks_cost,
     .schema = "A:T1, B:T2, absmax:T1 -> Y:T1 | K:i!, N:i!, block_size:i!, quant_type:i!, "
               "training_mode:i=0, transB:i=1 | T1=float float16 bfloat16; T2=uint8"},
    {MS, .name = "MatMulFpQ4", .infer = fpq4_infer, .eval = fpq4_eval, .bound = fpq4_bound,
     .cost = blocks_cost,
     .schema = "A:T1, B:T2, B_shape:T3 -> Y:T1 | blk_quant_type:i=1 | "
               "T1=float; T2=uint8; T3=int64"},
    {0}};
