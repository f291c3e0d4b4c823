// Steps of random graphs that change formats: Cast, and layers between QuantizeLinear nodes.
#ifndef ASSAY_TESTS_BACKENDS_RANDOM_STEPS_QUANTIZED_H_
#define ASSAY_TESTS_BACKENDS_RANDOM_STEPS_QUANTIZED_H_

#include "backends/random_graph_pick.h"
#include "backends/random_steps_products.h"

static bool step_cast(random_graph_t* g) {
  PICK(x, is_float);
  if (g->type == ASSAY_TYPE_BFLOAT16) return false;
  emit(g, x.rows, 1, "Cast %s | to=%d", x.name, x.type == ASSAY_TYPE_FLOAT ? 10 : 1);
  return true;
}

// x through QuantizeLinear, what `between` says, and DequantizeLinear; the index, or -1.
static int quantize(random_graph_t* g, const random_value_t* x, double scale) {
  const bool is_signed = one_in(g, 2), rounds = one_in(g, 3);
  const assay_type_t type = is_signed ? ASSAY_TYPE_INT8 : ASSAY_TYPE_UINT8;
  char zero[32];
  snprintf(zero, sizeof zero, "= %d", (is_signed ? 0 : 128) + (rounds ? (int)draw(g, -20, 20) : 0));
  const char* s = number(g, ASSAY_TYPE_FLOAT, scale * (double)draw(g, 50, 150) / 100);
  const char* z = constant(g, type, 0, NULL, zero);
  g->is_quantized = true;
  int q = emit(g, x->rows, 1, "QuantizeLinear %s %s %s", x->name, s, z);
  if (q < 0) return -1;
  const random_value_t v = g->values[q];
  const int axis = v.rank - 1;
  if (one_in(g, 6) && v.rank > 1 && !v.open[axis] && v.dims[axis] > 1 && v.rows != axis) {
    const int64_t a[1] = {0}, b[1] = {v.dims[axis] - 1}, c[1] = {axis};
    const char *an = integers(g, 1, a), *bn = integers(g, 1, b);
    q = emit(g, v.rows, 1, "Slice %s %s %s %s", v.name, an, bn, integers(g, 1, c));
  } else if (one_in(g, 6) && v.rank > 1 && !v.open[axis] && v.rows != axis) {
    q = emit(g, v.rows, 1, "Concat %s %s | axis=%d", v.name, v.name, axis);
  }
  if (q < 0) return -1;
  return emit(g, x->rows, 1, "DequantizeLinear %s %s %s", g->values[q].name, s, z);
}

static int quantized_weight(random_graph_t* g, int rank, const int64_t* dims, int axis,
                            int64_t terms) {
  char scale[64];
  const bool by_channel = axis >= 0 && !one_in(g, 4);
  const double s = 1.5 / 127 / sqrt((double)(terms > 0 ? terms : 1)) * 2;
  snprintf(scale, sizeof scale, "range %.4g %.4g", s / 2, s);
  const char* w = constant(g, ASSAY_TYPE_INT8, rank, dims, "ints -127 127");
  const char* sn = constant(g, ASSAY_TYPE_FLOAT, by_channel, dims + (by_channel ? axis : 0), scale);
  const char* z =
      constant(g, ASSAY_TYPE_INT8, by_channel, dims + (by_channel ? axis : 0), "ints 0 0");
  if (by_channel)
    return emit(g, ROWS_NONE, 1, "DequantizeLinear %s %s %s | axis=%d", w, sn, z, axis);
  return emit(g, ROWS_NONE, 1, "DequantizeLinear %s %s %s", w, sn, z);
}

// What follows an int8 layer: a function, or BatchNormalization and Mish, then the next
// quantization.
static void quantized_end(random_graph_t* g, int y) {
  static const char* const functions[] = {"Relu %s", "Sigmoid %s", "HardSwish %s", "LeakyRelu %s"};
  const int kind = (int)draw(g, 0, 4);
  if (y < 0) return;
  random_value_t v = g->values[y];
  if (kind == 0 && has_channels(g, &v)) y = batchnorm(g, &v);
  if (y < 0) return;
  v = g->values[y];
  if (kind <= 1) {  // Mish, or SiLU
    int t = emit(g, v.rows, 1, one_in(g, 3) ? "Sigmoid %s" : "Softplus %s", v.name);
    if (t >= 0 && strncmp(g->nodes[g->n_nodes - 1], "Softplus", 8) == 0)
      t = emit(g, v.rows, 1, "Tanh %s", g->values[t].name);
    if (t >= 0) y = emit(g, v.rows, 1, "Mul %s %s", v.name, g->values[t].name);
  } else if (kind < 4) {
    y = emit(g, v.rows, 1, functions[draw(g, 0, 3)], v.name);
  }
  if (y < 0 || one_in(g, 4)) return;
  v = g->values[y];
  quantize(g, &v, 0.03);
}

static bool step_q_conv_transpose(random_graph_t* g) {
  char attrs[300];
  window_t w;
  PICK(x, is_float32_image);
  const int n = x.rank - 2;
  if (!draw_window(g, &x, true, true, &w)) return false;
  const int q = quantize(g, &x, 0.025);
  if (q < 0) return true;
  const random_value_t v = g->values[q];
  for (int i = 0; i < n; i++)
    if ((v.dims[2 + i] - 1) * w.strides[i] + w.dilations[i] * (w.kernel[i] - 1) + 1 <=
        w.pads[i] + w.pads[n + i])
      return true;
  const int64_t group = draw_group(g, v.dims[1]);
  const int64_t dims[5] = {v.dims[1], draw(g, 1, 4), w.kernel[0], w.kernel[1], w.kernel[2]};
  const int64_t channels[1] = {dims[1] * group};
  print_window(&w, n, true, attrs);
  const int wq = quantized_weight(g, x.rank, dims, 1, product(w.kernel, n) * dims[0] / group);
  if (wq < 0) return true;
  const char* bias = one_in(g, 2) ? constant(g, ASSAY_TYPE_FLOAT, 1, channels, "normal 0.5") : "";
  quantized_end(g, emit(g, keeps_0(&v), 1, "ConvTranspose %s %s %s | group=%lld %s", v.name,
                        g->values[wq].name, bias, (long long)group, attrs));
  return true;
}

// BatchNormalization without a convolution.
static bool step_q_batchnorm(random_graph_t* g) {
  PICK(x, is_float32_image);
  const int q = quantize(g, &x, 0.03);
  if (q < 0) return true;
  const random_value_t v = g->values[q];
  quantized_end(g, batchnorm(g, &v));
  return true;
}

// A convolution; sometimes a transposed one, or a normalization.
static bool step_q_conv(random_graph_t* g) {
  char attrs[300];
  window_t w;
  if (one_in(g, 4)) return one_in(g, 2) ? step_q_conv_transpose(g) : step_q_batchnorm(g);
  PICK(x, is_float32_image);
  const int n = x.rank - 2;
  if (!draw_window(g, &x, false, false, &w)) return false;
  const int q = quantize(g, &x, 0.025);
  if (q < 0) return true;
  const random_value_t v = g->values[q];
  if (v.dims[v.rank - 1] + w.pads[n - 1] + w.pads[2 * n - 1] < w.kernel[n - 1]) return true;
  const int64_t group = draw_group(g, v.dims[1]), each = group > 8 ? 1 : draw(g, 1, 9);
  const int64_t dims[5] = {group * each, v.dims[1] / group, w.kernel[0], w.kernel[1], w.kernel[2]};
  print_window(&w, n, false, attrs);
  const int wq = quantized_weight(g, x.rank, dims, 0, product(dims + 1, n + 1));
  if (wq < 0) return true;
  const char* bias = one_in(g, 2) ? constant(g, ASSAY_TYPE_FLOAT, 1, dims, "normal 0.5") : "";
  quantized_end(g, emit(g, keeps_0(&v), 1, "Conv %s %s %s | group=%lld %s", v.name,
                        g->values[wq].name, bias, (long long)group, attrs));
  return true;
}

static bool step_q_matmul(random_graph_t* g) {
  PICK(x, is_float32_matrix);
  const int q = quantize(g, &x, 0.025);
  if (q < 0) return true;
  const random_value_t v = g->values[q];
  const int64_t dims[2] = {v.dims[v.rank - 1], draw(g, 1, 24)};
  const int w = quantized_weight(g, 2, dims, 1, dims[0]);
  if (w < 0) return true;
  const bool gemm = v.rank == 2 && one_in(g, 2);
  const char* bias = gemm ? constant(g, ASSAY_TYPE_FLOAT, 1, dims + 1, "normal 0.5") : "";
  quantized_end(g, emit(g, along(&v, v.rank - 1), 1, "%s %s %s %s", gemm ? "Gemm" : "MatMul",
                        v.name, g->values[w].name, bias));
  return true;
}

static bool step_quantize(random_graph_t* g) {
  PICK(x, is_float32);
  quantize(g, &x, 0.03);
  return true;
}

#endif  // ASSAY_TESTS_BACKENDS_RANDOM_STEPS_QUANTIZED_H_
