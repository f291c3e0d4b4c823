// What engines' kernels are off by where that is more than a rounding of the result.
#include <math.h>
#include <string.h>

#include "diagnose/golden/walk.h"
#include "formats/format.h"

static uint64_t chance(int64_t i, uint64_t draw) {
  return ((uint64_t)i + 1 + draw * 0xd1342543de82ef95U) * 0x9e3779b97f4a7c15U;
}

// A number from -1 to 1 by chance.
static double swing(int64_t i, uint64_t draw) {
  return 2 * (double)(chance(i, draw) >> 11) * 0x1p-53 - 1;
}

static const double SMALLEST_NORMAL = 0x1p-126;

static double roundoff(void) { return assay_format_info(ASSAY_FORMAT_FP32)->unit_roundoff; }

static bool holds_floats(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->type == ASSAY_TYPE_FLOAT;
}

// Engines approximate the logistic function with an error that is small beside 1, not beside a
// small result: ONNX Runtime gives 1.5e-8 for everything below, which is much where a square root
// or a logarithm follows. Moved by up to a roundoff of 1, towards the middle, so that it stays
// between 0 and 1. Others let vanish what float32 does not hold: in every other draw.
static assay_status_t move_tails(assay_tensor_t** t, uint64_t draw) {
  if (!*t || (*t)->kind != ASSAY_KIND_TENSOR || (*t)->type != ASSAY_TYPE_FLOAT) return NULL;
  assay_tensor_t *wide = NULL, *moved = NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_FLOAT, wide->rank, wide->dims, &moved);
  const double u = roundoff();
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const double x = assay_f64(wide)[i], by = u * (double)(chance(i, draw) >> 11) * 0x1p-53;
    const bool vanishes = x < SMALLEST_NORMAL && draw % 2;
    assay_f64(moved)[i] = vanishes ? 0 : x < 0.5 ? x + by : x > 0.5 ? x - by : x;
  }
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

static bool is_hard_length(int64_t n) { return n >= 3 && (n & (n - 1)) != 0; }

// The largest length of a DFT that is not a power of two, whichever its axis is: that may be what
// is wrong; times how much larger the result would be. 0: there is none. The first dimension is the
// batch, the last one real and imaginary parts.
static double dft_length(size_t n_in, assay_tensor_t* const* in) {
  const bool given = n_in > 1 && in[1] && in[1]->store == ASSAY_STORE_I64 && in[1]->size == 1;
  double low = INFINITY, high = 0;
  for (int i = 1; i + 1 < in[0]->rank; i++) {
    const int64_t n = in[0]->dims[i];
    if (n > 0) low = fmin(low, (double)n);
    if (is_hard_length(n)) high = fmax(high, (double)n);
  }
  if (given && is_hard_length(assay_i64(in[1])[0])) high = fmax(high, (double)assay_i64(in[1])[0]);
  return high > 0 ? high * sqrt(fmax(1, high / fmin(low, high))) : 0;
}

// Engines transform a length n that is not a power of two as a convolution with a chirp, whose
// angles pi k^2 / n they compute in float: these reach pi n, so that each term turns by up to pi n
// u, and sums of n terms are off by that part of their usual size. Moved by as much. Source: L. I.
// Bluestein, A linear filtering approach to the computation of discrete Fourier transform, 1970;
// ONNX Runtime, core/providers/cpu/signal/dft.cc.
static assay_status_t move_transform(size_t n_in, assay_tensor_t* const* in, uint64_t draw,
                                     assay_tensor_t** t) {
  static const double PI = 3.14159265358979323846;
  if (!*t || (*t)->kind != ASSAY_KIND_TENSOR || (*t)->type != ASSAY_TYPE_FLOAT || !n_in || !in[0] ||
      in[0]->kind != ASSAY_KIND_TENSOR)
    return NULL;
  const double length = dft_length(n_in, in);
  if (!(length > 0)) return NULL;
  assay_tensor_t* moved = NULL;
  ASSAY_TRY(assay_tensor_copy(*t, &moved));
  double sum = 0;
  for (int64_t i = 0; i < moved->size; i++) sum += assay_f64(moved)[i] * assay_f64(moved)[i];
  const double u = assay_format_info(ASSAY_FORMAT_FP32)->unit_roundoff;
  const double by = moved->size ? PI * length * u * sqrt(sum / (double)moved->size) : 0;
  for (int64_t i = 0; i < moved->size; i++)
    assay_f64(moved)[i] += by * (2 * (double)(chance(i, draw) >> 11) * 0x1p-53 - 1);
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

// Functions that engines compute from a number near 1, as they are written: alpha (e^x - 1), log(1
// + e^x), x (1 + erf) / 2. That number's rounding is small beside 1, not beside a small result. Of
// which results so, by which factor: an attribute's, or what went in.
typedef struct beside_one {
  const char* op_type;
  bool below, above;  // results below 0, above 0
  bool by_input;
  const char *scale, *also;  // attributes; NULL: none
  double scale_default, also_default;
} beside_one_t;

static const beside_one_t BESIDE_ONE[] = {{"Elu", true, false, false, "alpha", NULL, 1, 1},
                                          {"Celu", true, false, false, "alpha", NULL, 1, 1},
                                          {"Selu", true, false, false, "alpha", "gamma",
                                           1.67326319217681884765625, 1.05070102214813232421875},
                                          {"Softplus", false, true, false, NULL, NULL, 1, 1},
                                          {"LogSoftmax", true, false, false, NULL, NULL, 1, 1},
                                          {"Gelu", true, false, true, NULL, NULL, 1, 1},
                                          {"FastGelu", true, false, true, NULL, NULL, 1, 1},
                                          {"QuickGelu", true, false, true, NULL, NULL, 1, 1},
                                          {"Swish", true, false, true, NULL, NULL, 1, 1},
                                          {"Mish", true, false, true, NULL, NULL, 1, 1}};

static const beside_one_t* beside_one(const assay_node_t* n) {
  for (size_t i = 0; i < sizeof BESIDE_ONE / sizeof *BESIDE_ONE; i++)
    if (strcmp(n->op_type, BESIDE_ONE[i].op_type) == 0) return &BESIDE_ONE[i];
  return NULL;
}

static double scale_of(const beside_one_t* b, const assay_node_t* n) {
  return (b->scale ? fabs(assay_attr_f64(n, b->scale, b->scale_default)) : 1) *
         (b->also ? fabs(assay_attr_f64(n, b->also, b->also_default)) : 1);
}

// No result gets another sign.
static assay_status_t move_beside_one(const beside_one_t* b, const assay_node_t* n,
                                      const assay_tensor_t* in, uint64_t draw, assay_tensor_t** t) {
  assay_tensor_t* moved = NULL;
  const double by = roundoff() * scale_of(b, n);
  if (b->by_input && (!in || in->store != ASSAY_STORE_F64 || in->size != (*t)->size)) return NULL;
  ASSAY_TRY(assay_tensor_copy(*t, &moved));
  for (int64_t i = 0; i < moved->size; i++) {
    const double x = assay_f64(moved)[i];
    if (!(b->below && x < 0) && !(b->above && x > 0)) continue;
    const double y = x + swing(i, draw) * by * (b->by_input ? fabs(assay_f64(in)[i]) : 1);
    assay_f64(moved)[i] = x < 0 ? fmin(y, 0) : fmax(y, 0);
  }
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

static bool is_sum(const assay_node_t* n) {
  static const char* const SUMS[] = {"MatMul",        "Gemm",       "Conv",
                                     "ConvTranspose", "Einsum",     "ReduceSum",
                                     "CumSum",        "ReduceMean", "ReduceSumSquare",
                                     "AveragePool",   "ReduceL2",   "GlobalAveragePool"};
  for (size_t i = 0; i < sizeof SUMS / sizeof *SUMS; i++)
    if (strcmp(n->op_type, SUMS[i]) == 0) return true;
  return false;
}

// Two sums of the same numbers are one number where all is rounded once, and their difference
// nothing: |x|^2 + |x|^2 - 2 x x. Engines add up in an order of each kernel's own. Each sum moved
// by a roundoff, unlike those of other nodes.
static assay_status_t move_sum(const assay_node_t* n, uint64_t draw, assay_tensor_t** t) {
  const uint64_t own = draw + ((uint64_t)n->id + 1) * 0x9fb21c651e98df25U;
  assay_tensor_t* moved = NULL;
  ASSAY_TRY(assay_tensor_copy(*t, &moved));
  for (int64_t i = 0; i < moved->size; i++)
    assay_f64(moved)[i] *= 1 + 2 * roundoff() * swing(i, own);
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

assay_status_t assay_golden_move_as_engines(const assay_node_t* n, size_t n_in,
                                            assay_tensor_t* const* in, uint64_t draw,
                                            assay_tensor_t** t) {
  const beside_one_t* b = beside_one(n);
  if (!holds_floats(*t) || (*t)->store != ASSAY_STORE_F64) return NULL;
  if (b) return move_beside_one(b, n, n_in ? in[0] : NULL, draw, t);
  if (*n->domain) return NULL;
  if (strcmp(n->op_type, "Sigmoid") == 0) return move_tails(t, draw);
  if (strcmp(n->op_type, "DFT") == 0) return move_transform(n_in, in, draw, t);
  return draw && is_sum(n) ? move_sum(n, draw, t) : NULL;
}
