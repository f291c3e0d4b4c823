// int8 layers: the emulated engine's fused plan and the CPU give the same bits, on generated
// quantized models (odd channels, depthwise, strides, dilations, padding with zero points, extreme
// weights, activations of one and of several nodes, residuals, quantized ones and float32 ones that
// have other readers, gates by channel, joins and slices around quantizers), and the account finds
// nothing wrong with either. Which models are tried is told by their seeds:
//   backends_test_int8_layers [FIRST_SEED [COUNT [TARGET]]]   TARGET: in place of the CPU
#include <stdlib.h>

#include "account/account.h"
#include "backends/cpu/tactic.h"
#include "base/random.h"
#include "exec/backend.h"
#include "onnx/load.h"
#include "passes/graph_case.h"
#include "runtime/executor.h"

static uint64_t first_seed = 1;
static uint64_t n_seeds = 60;
static const char* target = "cpu";

// ---- making models ------------------------------------------------------------------------------

typedef struct gen {
  assay_model_t* m;
  uint64_t state;
  int n;  // names handed out
} gen_t;

static uint64_t draw(gen_t* g, uint64_t n) {
  g->state = g->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (g->state >> 33) % n;
}
static double uniform(gen_t* g, double low, double high) {
  return low + (high - low) * (double)draw(g, 1 << 24) / (1 << 24);
}
static bool coin(gen_t* g) { return draw(g, 2) == 0; }

typedef struct text {
  char s[64];
} text_t;

static text_t name_of(gen_t* g, const char* kind) {
  text_t t;
  snprintf(t.s, sizeof t.s, "%s%d", kind, g->n++);
  return t;
}

static text_t constant(gen_t* g, assay_tensor_t* take) {
  const text_t name = name_of(g, "k");
  assay_value_t* v = NULL;
  assay_tensor_t* packed = NULL;
  op_case_ok(assay_tensor_pack(take, &packed));
  assay_tensor_release(take);
  op_case_ok(assay_graph_add_value(g->m->graph, name.s, &v));
  op_case_ok(assay_graph_set_initializer(v, packed));
  return name;
}

static text_t floats(gen_t* g, int rank, const int64_t* dims, double low, double high) {
  assay_tensor_t* t = NULL;
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, rank, dims, &t));
  for (int64_t i = 0; i < t->size; i++) assay_f64(t)[i] = (double)(float)uniform(g, low, high);
  return constant(g, t);
}

static text_t number(gen_t* g, double x) { return floats(g, 0, NULL, x, x); }

// Integers between these; one in `extreme` is an end (0: none).
static text_t integers(gen_t* g, assay_type_t type, int rank, const int64_t* dims, int64_t low,
                       int64_t high, uint64_t extreme) {
  assay_tensor_t* t = NULL;
  op_case_ok(assay_tensor_create(type, rank, dims, &t));
  for (int64_t i = 0; i < t->size; i++) {
    assay_i64(t)[i] = low + (int64_t)draw(g, (uint64_t)(high - low + 1));
    if (extreme && draw(g, extreme) == 0) assay_i64(t)[i] = coin(g) ? low : high;
  }
  return constant(g, t);
}

static void node(gen_t* g, const char* row) { graph_case_node(g->m->graph, row, 20); }

#define NODE(g, ...)                          \
  do {                                        \
    char row_[512];                           \
    snprintf(row_, sizeof row_, __VA_ARGS__); \
    node(g, row_);                            \
  } while (0)

// A quantized value with its numbers.
typedef struct quantized {
  text_t name, scale, zero;
  text_t real;  // the float32 value that it is of
  int64_t dims[4];
  int rank;
} quantized_t;

static text_t zero_point(gen_t* g, bool is_signed) {
  const assay_type_t type = is_signed ? ASSAY_TYPE_INT8 : ASSAY_TYPE_UINT8;
  if (draw(g, 3) == 0) return integers(g, type, 0, NULL, 0, 0, 0);
  return integers(g, type, 0, NULL, is_signed ? -128 : 0, is_signed ? 127 : 255, 8);
}

static quantized_t quantize(gen_t* g, text_t x, const quantized_t* like) {
  quantized_t q = *like;
  const bool is_signed = coin(g);
  q.name = name_of(g, "q");
  q.real = x;
  q.scale = number(g, uniform(g, 0.004, 0.06));
  q.zero = zero_point(g, is_signed);
  NODE(g, "QuantizeLinear %s %s %s %s -> %s", name_of(g, "Q").s, x.s, q.scale.s, q.zero.s,
       q.name.s);
  return q;
}

static text_t dequantize(gen_t* g, const quantized_t* q) {
  const text_t y = name_of(g, "d");
  NODE(g, "DequantizeLinear %s %s %s %s -> %s", name_of(g, "D").s, q->name.s, q->scale.s, q->zero.s,
       y.s);
  return y;
}

// Weights, dequantized: signed with or without zero points, unsigned, or quantized from floats.
static text_t weights(gen_t* g, int rank, const int64_t* dims, int axis) {
  const text_t y = name_of(g, "w"), node_name = name_of(g, "D");
  const int64_t n = dims[axis];
  const uint64_t kind = draw(g, 4);
  const bool by_channel = coin(g);
  const int scale_rank = by_channel ? 1 : 0;
  const text_t scale = floats(g, scale_rank, &n, 0.002, 0.03);
  if (kind == 0) {  // floats that the model quantizes itself
    const text_t x = floats(g, rank, dims, -1, 1), q = name_of(g, "q");
    const int64_t none = 0;
    const text_t zero = integers(g, ASSAY_TYPE_INT8, scale_rank, &n, none, none, 0);
    NODE(g, "QuantizeLinear %s %s %s %s -> %s | axis=%d", name_of(g, "Q").s, x.s, scale.s, zero.s,
         q.s, axis);
    NODE(g, "DequantizeLinear %s %s %s %s -> %s | axis=%d", node_name.s, q.s, scale.s, zero.s, y.s,
         axis);
    return y;
  }
  const bool is_signed = kind != 1;
  const assay_type_t type = is_signed ? ASSAY_TYPE_INT8 : ASSAY_TYPE_UINT8;
  const int64_t low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
  const text_t w = integers(g, type, rank, dims, low, high, draw(g, 4));
  const text_t zero =
      kind == 2 ? integers(g, type, scale_rank, &n, 0, 0, 0)
                : integers(g, type, scale_rank, &n, is_signed ? -20 : 100, is_signed ? 20 : 156, 0);
  NODE(g, "DequantizeLinear %s %s %s %s -> %s | axis=%d", node_name.s, w.s, scale.s, zero.s, y.s,
       axis);
  return y;
}

// A bias: none (an empty name), floats, or dequantized integers.
static text_t bias(gen_t* g, int64_t n) {
  const uint64_t kind = draw(g, 3);
  if (kind == 0) return (text_t){"_"};
  if (kind == 1) return floats(g, 1, &n, -2, 2);
  const text_t b = integers(g, ASSAY_TYPE_INT32, 1, &n, -3000, 3000, 0), y = name_of(g, "b");
  const text_t scale = floats(g, 0, NULL, 1e-4, 1e-3);
  NODE(g, "DequantizeLinear %s %s %s -> %s", name_of(g, "D").s, b.s, scale.s, y.s);
  return y;
}

static text_t norm(gen_t* g, text_t x, int64_t n) {
  const text_t y = name_of(g, "n");
  const bool quantized = draw(g, 3) == 0;
  const text_t s = quantized ? weights(g, 1, &n, 0) : floats(g, 1, &n, -2, 2);
  const text_t b = floats(g, 1, &n, -1, 1), m = floats(g, 1, &n, -1, 1),
               v = floats(g, 1, &n, 0.2, 3);
  NODE(g, "BatchNormalization %s %s %s %s %s %s -> %s", name_of(g, "BN").s, x.s, s.s, b.s, m.s, v.s,
       y.s);
  return y;
}

static text_t activation(gen_t* g, text_t x) {
  const text_t y = name_of(g, "a"), u = name_of(g, "a"), v = name_of(g, "a");
  const char* n = name_of(g, "A").s;
  static const char* const single[] = {
      "Relu", "Sigmoid",  "Tanh", "HardSwish", "LeakyRelu", "HardSigmoid", "Elu",
      "Mish", "Softplus", "Gelu", "Erf",       "Softsign",  "Exp",         "ThresholdedRelu"};
  char label[64];
  snprintf(label, sizeof label, "%s", n);
  const uint64_t kind = draw(g, 20);
  if (kind < 14) {
    NODE(g, "%s %s %s -> %s", single[kind], label, x.s, y.s);
  } else if (kind == 14) {
    NODE(g, "Clip %s %s %s %s -> %s", label, x.s, number(g, 0).s, number(g, 1.5).s, y.s);
  } else if (kind == 15) {
    NODE(g, "Sigmoid %s_s %s -> %s", label, x.s, u.s);
    NODE(g, "Mul %s_m %s %s -> %s", label, x.s, u.s, y.s);
  } else if (kind == 16) {
    NODE(g, "Softplus %s_s %s -> %s", label, x.s, u.s);
    NODE(g, "Tanh %s_t %s -> %s", label, u.s, v.s);
    NODE(g, "Mul %s_m %s %s -> %s", label, x.s, v.s, y.s);
  } else if (kind == 17) {
    NODE(g, "Mul %s_m %s %s -> %s", label, x.s, number(g, 0.7).s, u.s);
    NODE(g, "Relu %s_r %s -> %s", label, u.s, y.s);
  } else if (kind == 18) {
    NODE(g, "Gelu %s %s -> %s | approximate=tanh", label, x.s, y.s);
  } else {
    return x;
  }
  return y;
}

static int64_t odd_size(gen_t* g) {
  static const int64_t sizes[] = {1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 32, 33, 48, 64, 65};
  return sizes[draw(g, sizeof sizes / sizeof *sizes)];
}

static quantized_t convolution(gen_t* g, quantized_t x) {
  const bool depthwise = draw(g, 3) == 0;
  const bool is_1d = x.rank == 3;
  const int64_t m = depthwise ? x.dims[1] : odd_size(g), kernel = draw(g, 3) == 0 ? 1 : 3;
  const int64_t stride = draw(g, 4) == 0 ? 2 : 1, dilation = draw(g, 5) == 0 ? 2 : 1;
  const int64_t pad = kernel == 1 ? 0 : (int64_t)draw(g, 3);
  const int64_t wdims[4] = {m, depthwise ? 1 : x.dims[1], kernel, kernel};
  quantized_t y = x;
  y.dims[1] = m;
  for (int i = 2; i < x.rank; i++) {
    const int64_t span = (kernel - 1) * dilation + 1;
    if (x.dims[i] + 2 * pad < span) return x;
    y.dims[i] = (x.dims[i] + 2 * pad - span) / stride + 1;
  }
  const text_t d = dequantize(g, &x), w = weights(g, x.rank, wdims, 0), b = bias(g, m);
  text_t f = name_of(g, "f");
  char geometry[128];
  if (is_1d)
    snprintf(geometry, sizeof geometry, "pads=%d,%d strides=%d dilations=%d", (int)pad, (int)pad,
             (int)stride, (int)dilation);
  else
    snprintf(geometry, sizeof geometry, "pads=%d,%d,%d,%d strides=%d,%d dilations=%d,%d", (int)pad,
             (int)pad, (int)pad, (int)pad, (int)stride, (int)stride, (int)dilation, (int)dilation);
  NODE(g, "Conv %s %s %s %s -> %s | %s group=%d", name_of(g, "C").s, d.s, w.s, b.s, f.s, geometry,
       (int)(depthwise ? x.dims[1] : 1));
  if (coin(g)) f = norm(g, f, m);
  const bool same = memcmp(x.dims, y.dims, sizeof x.dims) == 0;
  if (same && coin(g)) {
    const text_t r = coin(g) ? x.real : dequantize(g, &x), sum = name_of(g, "s");
    if (coin(g))
      NODE(g, "Add %s %s %s -> %s", name_of(g, "P").s, f.s, r.s, sum.s);
    else
      NODE(g, "Add %s %s %s -> %s", name_of(g, "P").s, r.s, f.s, sum.s);
    f = sum;
  }
  return quantize(g, activation(g, f), &y);
}

// ConvTranspose, with what may be behind it.
static quantized_t transposed(gen_t* g, quantized_t x) {
  const uint64_t grouping = draw(g, 4);  // 0: depthwise, 1: two groups
  const int64_t group = grouping == 0 ? x.dims[1] : grouping == 1 && x.dims[1] % 2 == 0 ? 2 : 1;
  const int64_t mg = grouping == 0 ? 1 : odd_size(g), kernel = 1 + (int64_t)draw(g, 4);
  const int64_t stride = 1 + (int64_t)draw(g, 3), dilation = draw(g, 4) == 0 ? 2 : 1;
  const int64_t reach = (kernel - 1) * dilation + 1, pad = (int64_t)draw(g, 2) % reach;
  const int64_t more = stride > 1 ? (int64_t)draw(g, 2) : 0;
  const int64_t wdims[4] = {x.dims[1], mg, kernel, kernel};
  quantized_t y = x;
  y.dims[1] = mg * group;
  int64_t size = y.dims[1];
  for (int i = 2; i < x.rank; i++) {
    y.dims[i] = (x.dims[i] - 1) * stride + reach + more - 2 * pad;
    size *= y.dims[i];
    if (y.dims[i] < 1) return x;
  }
  if (size > 300000) return x;
  const text_t d = dequantize(g, &x), b = bias(g, y.dims[1]);
  // Scales by channel only where ONNX's axis has as many as the output.
  const text_t w = weights(g, x.rank, wdims, 1);
  text_t f = name_of(g, "f");
  char geometry[160];
  if (x.rank == 3)
    snprintf(geometry, sizeof geometry, "pads=%d,%d strides=%d dilations=%d output_padding=%d",
             (int)pad, (int)pad, (int)stride, (int)dilation, (int)more);
  else
    snprintf(geometry, sizeof geometry,
             "pads=%d,%d,%d,%d strides=%d,%d dilations=%d,%d output_padding=%d,%d", (int)pad,
             (int)pad, (int)pad, (int)pad, (int)stride, (int)stride, (int)dilation, (int)dilation,
             (int)more, (int)more);
  NODE(g, "ConvTranspose %s %s %s %s -> %s | %s group=%d", name_of(g, "U").s, d.s, w.s, b.s, f.s,
       geometry, (int)group);
  if (coin(g)) f = norm(g, f, y.dims[1]);
  return quantize(g, activation(g, f), &y);
}

// A float32 tensor, one number a channel made of it, and both multiplied, as in squeeze-excite
// blocks.
static quantized_t gated(gen_t* g, quantized_t x) {
  const text_t c = name_of(g, "c"), s = name_of(g, "s"), y = name_of(g, "m");
  NODE(g, "GlobalMaxPool %s %s -> %s", name_of(g, "J").s, x.real.s, c.s);
  NODE(g, "HardSigmoid %s %s -> %s", name_of(g, "A").s, c.s, s.s);
  if (coin(g))
    NODE(g, "Mul %s %s %s -> %s", name_of(g, "P").s, x.real.s, s.s, y.s);
  else
    NODE(g, "Mul %s %s %s -> %s", name_of(g, "P").s, s.s, x.real.s, y.s);
  if (coin(g)) return quantize(g, y, &x);
  const text_t r = name_of(g, "a");
  NODE(g, "Relu %s %s -> %s", name_of(g, "A").s, y.s, r.s);
  return quantize(g, r, &x);
}

// A normalization that no convolution stands in front of; its numbers may be quantized, too.
static quantized_t lone_norm(gen_t* g, quantized_t x) {
  const text_t f = norm(g, dequantize(g, &x), x.dims[1]);
  if (draw(g, 3)) return quantize(g, activation(g, f), &x);
  const text_t s = name_of(g, "s"), r = activation(g, dequantize(g, &x));
  NODE(g, "Add %s %s %s -> %s", name_of(g, "P").s, f.s, r.s, s.s);
  return quantize(g, s, &x);
}

// Codes that are broadcast along some of x's axes, as masks of windows are.
static text_t broadcast(gen_t* g, const quantized_t* x) {
  quantized_t q = *x;
  for (int i = 0; i < x->rank; i++) q.dims[i] = coin(g) ? x->dims[i] : 1;
  q.name = integers(g, ASSAY_TYPE_INT8, x->rank, q.dims, -128, 127, 4);
  q.scale = number(g, uniform(g, 0.004, 0.06));
  q.zero = zero_point(g, true);
  return dequantize(g, &q);
}

static quantized_t pointwise(gen_t* g, quantized_t x) {
  const text_t a = dequantize(g, &x), b = dequantize(g, &x), s = name_of(g, "s");
  if (coin(g)) return quantize(g, activation(g, a), &x);
  static const char* const ops[] = {"Add", "Mul", "Sub", "Max"};
  const text_t u = draw(g, 3) ? activation(g, b) : broadcast(g, &x);
  NODE(g, "%s %s %s %s -> %s", ops[draw(g, 4)], name_of(g, "P").s, a.s, u.s, s.s);
  return quantize(g, activation(g, s), &x);
}

// Elements that are moved between quantizers.
static quantized_t moving(gen_t* g, quantized_t x) {
  const text_t d = dequantize(g, &x), y = name_of(g, "m");
  quantized_t r = x;
  const uint64_t kind = draw(g, 4);
  if (kind == 0) {
    const text_t e = activation(g, dequantize(g, &x));
    quantized_t other = quantize(g, e, &x);
    const text_t o = dequantize(g, &other);
    NODE(g, "Concat %s %s %s -> %s | axis=1", name_of(g, "J").s, d.s, o.s, y.s);
    r.dims[1] *= 2;
  } else if (kind == 1 && x.dims[1] > 1) {
    const int64_t one = 1;
    const text_t first = integers(g, ASSAY_TYPE_INT64, 1, &one, 1, 1, 0);
    const text_t end = integers(g, ASSAY_TYPE_INT64, 1, &one, x.dims[1], x.dims[1], 0);
    const text_t axis = integers(g, ASSAY_TYPE_INT64, 1, &one, 1, 1, 0);
    NODE(g, "Slice %s %s %s %s %s -> %s", name_of(g, "J").s, d.s, first.s, end.s, axis.s, y.s);
    r.dims[1] -= 1;
  } else if (kind == 2 && x.rank == 4 && x.dims[2] > 1 && x.dims[3] > 1) {
    NODE(g, "MaxPool %s %s -> %s | kernel_shape=2,2 strides=1,1", name_of(g, "J").s, d.s, y.s);
    r.dims[2] -= 1;
    r.dims[3] -= 1;
  } else if (x.rank == 4) {
    NODE(g, "Transpose %s %s -> %s | perm=0,1,3,2", name_of(g, "J").s, d.s, y.s);
    r.dims[2] = x.dims[3];
    r.dims[3] = x.dims[2];
  } else {
    return x;
  }
  if (coin(g)) return quantize(g, y, &r);
  // With the numbers that it came with.
  r.name = name_of(g, "q");
  r.real = y;
  NODE(g, "QuantizeLinear %s %s %s %s -> %s", name_of(g, "Q").s, y.s, x.scale.s, x.zero.s,
       r.name.s);
  return r;
}

static quantized_t product(gen_t* g, quantized_t x) {
  const int64_t k = x.dims[x.rank - 1], n = odd_size(g), wdims[2] = {k, n}, turned[2] = {n, k};
  const text_t d = dequantize(g, &x);
  text_t f = name_of(g, "f");
  quantized_t y = x;
  y.dims[x.rank - 1] = n;
  if (x.rank == 2 && coin(g)) {
    const bool turn = coin(g);
    const text_t w = weights(g, 2, turn ? turned : wdims, turn ? 0 : 1), b = bias(g, n);
    NODE(g, "Gemm %s %s %s %s -> %s | transB=%d", name_of(g, "G").s, d.s, w.s, b.s, f.s, turn);
  } else {
    const text_t w = weights(g, 2, wdims, 1);
    NODE(g, "MatMul %s %s %s -> %s", name_of(g, "M").s, d.s, w.s, f.s);
    if (coin(g)) {
      const text_t b = floats(g, 1, &n, -2, 2), s = name_of(g, "s");
      NODE(g, "Add %s %s %s -> %s", name_of(g, "P").s, b.s, f.s, s.s);
      f = s;
    }
  }
  return quantize(g, activation(g, f), &y);
}

// x times its transpose: no weights.
static quantized_t square(gen_t* g, quantized_t x) {
  const quantized_t other = quantize(g, dequantize(g, &x), &x);
  const text_t a = dequantize(g, &x), b = dequantize(g, &other), t = name_of(g, "t"),
               f = name_of(g, "f");
  quantized_t y = x;
  NODE(g, "Transpose %s %s -> %s | perm=%s", name_of(g, "J").s, b.s, t.s,
       x.rank == 2 ? "1,0" : "0,2,1");
  NODE(g, "MatMul %s %s %s -> %s", name_of(g, "M").s, a.s, t.s, f.s);
  y.dims[x.rank - 1] = x.dims[x.rank - 2];
  return quantize(g, f, &y);
}

static quantized_t step(gen_t* g, quantized_t x, bool images) {
  const uint64_t kind = draw(g, 11);
  if (images && kind == 10) return gated(g, x);
  if (kind < 2) return pointwise(g, x);
  if (images && kind < 4) return moving(g, x);
  if (images && kind < 6) return transposed(g, x);
  if (x.rank > 1 && kind == 6) return lone_norm(g, x);
  if (images) return convolution(g, x);
  return kind < 4 ? square(g, x) : product(g, x);
}

static assay_model_t* make_model(uint64_t seed, assay_tensor_t** in) {
  static const graph_case_t empty = {.name = "generated", .opset = 20, .outputs = ""};
  assay_tensor_t* none[GRAPH_CASE_ROWS] = {NULL};
  gen_t g = {.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
  g.m = graph_case_begin(&empty, none);
  for (int i = 0; i < 5; i++) draw(&g, 2);
  quantized_t x = {0};
  const bool images = draw(&g, 3) != 0;
  x.rank = images ? (draw(&g, 5) == 0 ? 3 : 4) : coin(&g) ? 2 : 3;
  for (int i = 0; i < x.rank; i++) x.dims[i] = i == 0 ? 1 + (int64_t)draw(&g, 2) : odd_size(&g);
  for (int i = 2; images && i < x.rank; i++) x.dims[i] = 4 + (int64_t)draw(&g, 9);
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, x.rank, x.dims, in));
  const double reach = coin(&g) ? 1 : 20;  // with many at the ends of the quantizer's range
  for (int64_t i = 0; i < (*in)->size; i++)
    assay_f64(*in)[i] = (double)(float)uniform(&g, -reach, reach);
  assay_value_t* v = NULL;
  op_case_ok(assay_graph_add_value(g.m->graph, "x", &v));
  v->is_input = true;
  v->declared = op_case_type(g.m, *in, false);
  g.m->graph->inputs[g.m->graph->n_inputs++] = v;
  x = quantize(&g, (text_t){"x"}, &x);
  for (uint64_t i = 2 + draw(&g, 4); i; i--) x = step(&g, x, images);
  const text_t y = dequantize(&g, &x);
  char outputs[160];
  snprintf(outputs, sizeof outputs, coin(&g) ? "%s %s" : "%s", y.s, x.name.s);
  graph_case_outputs(g.m->graph, outputs);
  op_case_ok(assay_onnx_check(g.m));
  op_case_ok(assay_infer_model(g.m));
  return g.m;
}

// ---- running them -------------------------------------------------------------------------------

typedef struct outcome {
  assay_tensor_t* out[2];
  size_t n_out, by_emu, by_host, int8_layers;
} outcome_t;

static void run_model(uint64_t seed, assay_model_t* m, const char* backend, assay_tensor_t* in,
                      outcome_t* r) {
  assay_plan_t* plan = NULL;
  assay_executor_t* e = NULL;
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32};
  const assay_plan_options_t options = {.fused = true};
  *r = (outcome_t){0};
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  op_case_ok(assay_executor_run_plan(plan, assay_backend_find(backend), NULL, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  op_case_ok(assay_executor_set(e, g->inputs[0], in));
  op_case_ok(assay_executor_run(e));
  for (; r->n_out < g->n_outputs; r->n_out++)
    r->out[r->n_out] = assay_tensor_retain(assay_executor_get(e, g->outputs[r->n_out]));
  const assay_layers_t* layers = assay_plan_layers(plan);
  for (size_t i = 0; i < layers->n_layers; i++) {
    const bool emu = strcmp(assay_executor_tactic(e, i), "emu") == 0;
    const bool host = strncmp(assay_executor_tactic(e, i), "host", 4) == 0;
    r->int8_layers += layers->layers[i].int8 != NULL;
    r->by_emu += layers->layers[i].int8 && emu;
    r->by_host += layers->layers[i].int8 && host;
    if (host && layers->layers[i].int8)
      print_message("seed %llu: layer '%s' by the host\n", (unsigned long long)seed,
                    layers->layers[i].name);
    const bool fell_back = layers->layers[i].int8 && emu && strcmp(backend, "cpu") == 0;
    if (fell_back && !layers->layers[i].int8->anchor)  // any CPU has kernels for these
      fail_msg("seed %llu: pointwise layer '%s' by emu", (unsigned long long)seed,
               layers->layers[i].name);
    if (fell_back)
      print_message("seed %llu: layer '%s' by emu\n", (unsigned long long)seed,
                    layers->layers[i].name);
  }
  assay_executor_destroy(e);
  assay_plan_destroy(plan);
}

static bool same_bits(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->type == b->type && a->store == b->store && a->size == b->size && a->rank == b->rank &&
         memcmp(a->data, b->data, (size_t)a->size * 8) == 0;
}

static void check_account(uint64_t seed, assay_model_t* m, const char* backend,
                          assay_tensor_t* in) {
  assay_plan_t* plan = NULL;
  assay_account_t* a = NULL;
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32};
  const assay_plan_options_t options = {.fused = true};
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  op_case_ok(
      assay_account_create(plan, assay_backend_find(backend), &(assay_account_options_t){0}, &a));
  op_case_ok(assay_account_run(a, &in));
  for (size_t i = 0; i < assay_account_layer_count(a); i++) {
    const assay_layer_account_t* l = assay_account_layer(a, i);
    if (l->layer->int8 && !l->bounded)
      fail_msg("seed %llu, %s: layer '%s' has no bound", (unsigned long long)seed, backend,
               l->layer->name);
    if (l->verdict == ASSAY_VERDICT_DEFECT && l->layer->int8)
      fail_msg("seed %llu, %s: layer '%s' (%s) is a defect: %g where truth is %g and the limit %g",
               (unsigned long long)seed, backend, l->layer->name, l->node->op_type,
               l->judged.worst_engine, l->judged.worst_truth, l->judged.worst_limit);
  }
  assay_account_destroy(a);
  assay_plan_destroy(plan);
}

static void emu_and_target_give_the_same_bits(void** state) {
  (void)state;
  size_t layers = 0, by_emu = 0, by_host = 0;
  for (uint64_t seed = first_seed; seed < first_seed + n_seeds; seed++) {
    assay_tensor_t* in = NULL;
    assay_model_t* m = make_model(seed, &in);
    outcome_t emu, got;
    run_model(seed, m, "emu", in, &emu);
    run_model(seed, m, target, in, &got);
    for (size_t i = 0; i < emu.n_out; i++) {
      if (!same_bits(emu.out[i], got.out[i]))
        fail_msg("seed %llu: output %zu differs", (unsigned long long)seed, i);
      assay_tensor_release(emu.out[i]);
      assay_tensor_release(got.out[i]);
    }
    layers += got.int8_layers;
    by_emu += got.by_emu;
    by_host += got.by_host;
    check_account(seed, m, "emu", in);
    check_account(seed, m, target, in);
    assay_tensor_release(in);
    assay_model_release(m);
  }
  print_message("%zu int8 layers, %zu of them by the emulated engine, %zu by a GPU's host\n",
                layers, by_emu, by_host);
  assert_true(by_host * 10 <= layers);
  assert_true(layers > n_seeds);
}

int main(int argc, char** argv) {
  if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
  if (argc > 2) n_seeds = strtoull(argv[2], NULL, 10);
  if (argc > 3) target = argv[3];
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  if (strcmp(target, "cuda") == 0) setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(emu_and_target_give_the_same_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
