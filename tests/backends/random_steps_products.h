// Steps of random graphs: convolutions, products, attention, LSTM.
#ifndef ASSAY_TESTS_BACKENDS_RANDOM_STEPS_PRODUCTS_H_
#define ASSAY_TESTS_BACKENDS_RANDOM_STEPS_PRODUCTS_H_

#include "backends/random_graph_pick.h"

// ---- convolutions ---------------------------------------------------------------------------

static bool step_conv(random_graph_t* g) {
  char attrs[300];
  window_t w;
  PICK(x, is_image);
  const int n = x.rank - 2;
  if (!draw_window(g, &x, true, false, &w)) return false;
  const int64_t group = draw_group(g, x.dims[1]);
  const int64_t each = group > 8 ? draw(g, 1, 2) : draw(g, 1, g->scale == 2 ? 40 : 9);
  int64_t dims[5] = {group * each, x.dims[1] / group, w.kernel[0], w.kernel[1], w.kernel[2]};
  print_window(&w, n, true, attrs);
  const char* weight = weights(g, x.type, x.rank, dims, product(dims + 1, n + 1));
  const char* bias = one_in(g, 2) ? constant(g, x.type, 1, dims, "normal 0.5") : "";
  emit(g, keeps_0(&x), 1, "Conv %s %s %s | group=%lld %s", x.name, weight, bias, (long long)group,
       attrs);
  return true;
}

static bool step_conv_transpose(random_graph_t* g) {
  char attrs[300], part[80];
  window_t w;
  PICK(x, is_image);
  const int n = x.rank - 2;
  if (!draw_window(g, &x, true, true, &w)) return false;
  for (int i = 0; i < n; i++)
    if ((x.dims[2 + i] - 1) * w.strides[i] + w.dilations[i] * (w.kernel[i] - 1) + 1 <=
        w.pads[i] + w.pads[n + i])
      return false;
  const int64_t group = draw_group(g, x.dims[1]);
  int64_t dims[5] = {x.dims[1], draw(g, 1, 4), w.kernel[0], w.kernel[1], w.kernel[2]};
  int64_t extra[3] = {0}, channels[1] = {dims[1] * group};
  for (int i = 0; i < n; i++) extra[i] = w.strides[i] > 1 && one_in(g, 2);
  print_window(&w, n, true, attrs);
  list_of(part, "output_padding", n, extra);
  if (one_in(g, 2)) strcat(attrs, part);
  const char* weight = weights(g, x.type, x.rank, dims, product(w.kernel, n) * dims[0] / group);
  const char* bias = one_in(g, 2) ? constant(g, x.type, 1, channels, "normal 0.5") : "";
  emit(g, keeps_0(&x), 1, "ConvTranspose %s %s %s | group=%lld %s", x.name, weight, bias,
       (long long)group, attrs);
  return true;
}

static int batchnorm(random_graph_t* g, const random_value_t* x) {
  const int64_t dims[1] = {x->dims[1]};
  const char* scale = constant(g, x->type, 1, dims, "range 0.3 1.7");
  const char* shift = constant(g, x->type, 1, dims, "normal 0.5");
  const char* mean = constant(g, x->type, 1, dims, "normal 0.5");
  const char* var = constant(g, x->type, 1, dims, "range 0.2 2");
  return emit(g, keeps_0(x), 1, "BatchNormalization %s %s %s %s %s | epsilon=0.001", x->name, scale,
              shift, mean, var);
}

static bool step_batchnorm(random_graph_t* g) {
  PICK(x, has_channels);
  batchnorm(g, &x);
  return true;
}

// ---- products -------------------------------------------------------------------------------

static bool step_matmul(random_graph_t* g) {
  PICK(x, is_matrix);
  const int64_t k = x.dims[x.rank - 1], m = draw(g, 1, g->scale == 2 ? 130 : 24);
  int64_t dims[RANDOM_GRAPH_RANK] = {1};
  int rank = 2;
  if (x.rank > 2 && one_in(g, 4)) {  // a matrix for each place of some batch dimensions
    rank = (int)draw(g, 3, x.rank);
    for (int i = 0; i < rank - 2; i++) {
      const int at = x.rank - rank + i;
      dims[i] = x.open[at] || one_in(g, 3) ? 1 : x.dims[at];
    }
  }
  dims[rank - 2] = k;
  dims[rank - 1] = m;
  if (one_in(g, 12)) rank = 1, dims[0] = k;
  const char* w = weights(g, x.type, rank, dims, k);
  const int y = emit(g, rank == 1 ? along(&x, x.rank - 1) : along(&x, x.rank - 1), 1,
                     "MatMul %s %s", x.name, w);
  if (y < 0 || rank == 1 || one_in(g, 2)) return true;
  const char* bias = constant(g, x.type, 1, dims + rank - 1, "normal 0.5");
  emit(g, g->values[y].rows, 1, "Add %s %s", g->values[y].name, bias);
  return true;
}

static bool step_left_matmul(random_graph_t* g) {
  PICK(x, is_matrix);
  if (x.open[x.rank - 2]) return false;
  const int64_t dims[2] = {draw(g, 1, 12), x.dims[x.rank - 2]};
  const char* w = weights(g, x.type, 2, dims, dims[1]);
  emit(g, along(&x, x.rank - 2), 1, "MatMul %s %s", w, x.name);
  return true;
}

static bool step_gemm(random_graph_t* g) {
  static const char* const alphas[] = {"", "alpha=0.5 ", "alpha=-1.5 beta=0.25 ", "beta=2 "};
  PICK(x, is_rank_2);
  const bool ta = !x.open[0] && one_in(g, 2), tb = one_in(g, 2);
  const int64_t k = x.dims[ta ? 0 : 1], m = draw(g, 1, g->scale == 2 ? 120 : 20);
  const int64_t dims[2] = {tb ? m : k, tb ? k : m};
  const char *w = weights(g, x.type, 2, dims, k), *c = "";
  const int64_t one_m[2] = {1, m}, one[2] = {1, 1};
  if (!one_in(g, 4))
    c = one_in(g, 3)   ? constant(g, x.type, 2, one_m, "normal 0.5")
        : one_in(g, 4) ? constant(g, x.type, 2, one, "normal 0.5")
                       : constant(g, x.type, 1, &m, "normal 0.5");
  emit(g, ta ? ROWS_MIXED : keeps_0(&x), 1, "Gemm %s %s %s | %stransA=%d transB=%d", x.name, w, c,
       alphas[draw(g, 0, 3)], ta, tb);
  return true;
}

// Two products with softmax between, as attention has them: [.., L, D].
static bool step_attention(random_graph_t* g) {
  PICK(x, is_matrix);
  if (x.rank < 3 || x.rank > 4 || x.rows >= x.rank - 2) return false;
  const int last = x.rank - 1;
  const int64_t dims[2] = {x.dims[last], x.dims[last]};
  const char* perm = x.rank == 3 ? "0,2,1" : "0,1,3,2";
  const char* wq = weights(g, x.type, 2, dims, dims[0]);
  const char* wk = weights(g, x.type, 2, dims, dims[0]);
  const int q = emit(g, x.rows, 1, "MatMul %s %s", x.name, wq);
  const int k = emit(g, x.rows, 1, "MatMul %s %s", x.name, wk);
  if (q < 0 || k < 0) return true;
  const int kt = emit(g, x.rows, 1, "Transpose %s | perm=%s", g->values[k].name, perm);
  if (kt < 0) return true;
  const int s = emit(g, x.rows, 1, "MatMul %s %s", g->values[q].name, g->values[kt].name);
  if (s < 0) return true;
  const char* scale = number(g, x.type, 1 / sqrt((double)dims[0]));
  const int z = emit(g, x.rows, 1, "%s %s %s", "Mul", g->values[s].name, scale);
  if (z < 0) return true;
  const int p = emit(g, x.rows, 1, "Softmax %s | axis=-1", g->values[z].name);
  if (p >= 0) emit(g, x.rows, 1, "MatMul %s %s", g->values[p].name, x.name);
  return true;
}

// Q, K and V out of one product, in heads: [N, L, D] or [N, 3 * L, D].
static bool step_heads(random_graph_t* g) {
  PICK(x, is_matrix);
  if (x.rank != 3 || x.rows != 0) return false;
  const int64_t heads = draw(g, 1, 3), size = draw(g, 1, 9), all = heads * size;
  const int64_t dims[2] = {x.dims[2], 3 * all}, to[4] = {0, 0, heads, size}, back[3] = {0, 0, all};
  const int qkv = emit(g, 0, 1, "MatMul %s %s", x.name, weights(g, x.type, 2, dims, dims[0]));
  if (qkv < 0) return true;
  const int64_t sizes[3] = {all, all, all};
  const int parts =
      emit(g, 0, 3, "Split %s %s | axis=-1", g->values[qkv].name, integers(g, 3, sizes));
  if (parts < 0) return true;
  int turned[3];
  for (int i = 0; i < 3; i++) {
    const int r = emit(g, 0, 1, "Reshape %s %s", g->values[parts + i].name, integers(g, 4, to));
    if (r < 0) return true;
    turned[i] =
        emit(g, 0, 1, "Transpose %s | perm=0,2,%s", g->values[r].name, i == 1 ? "3,1" : "1,3");
    if (turned[i] < 0) return true;
  }
  const int s = emit(g, 0, 1, "MatMul %s %s", g->values[turned[0]].name, g->values[turned[1]].name);
  if (s < 0) return true;
  const int p = emit(g, 0, 1, "Softmax %s | axis=3", g->values[s].name);
  if (p < 0) return true;
  const int o = emit(g, 0, 1, "MatMul %s %s", g->values[p].name, g->values[turned[2]].name);
  if (o < 0) return true;
  const int y = emit(g, 0, 1, "Transpose %s | perm=0,2,1,3", g->values[o].name);
  if (y >= 0) emit(g, 0, 1, "Reshape %s %s", g->values[y].name, integers(g, 3, back));
  return true;
}

static bool step_lstm(random_graph_t* g) {
  PICK(x, is_sequence);
  const bool gru = one_in(g, 3);
  const int64_t gates = gru ? 3 : 4, dirs = one_in(g, 3) ? 2 : 1, hidden = draw(g, 1, 8);
  const int64_t w[3] = {dirs, gates * hidden, x.dims[2]}, r[3] = {dirs, gates * hidden, hidden};
  const int64_t b[2] = {dirs, 2 * gates * hidden};
  const char* wn = weights(g, x.type, 3, w, w[2]);
  const char* rn = weights(g, x.type, 3, r, hidden);
  const char* bn = one_in(g, 2) ? constant(g, x.type, 2, b, "normal 0.2") : "";
  const bool by_sample = x.rows == 1;
  const int y = emit(g, ROWS_MIXED, gru ? 2 : 3, "%s %s %s %s %s | hidden_size=%lld %s%s",
                     gru ? "GRU" : "LSTM", x.name, wn, rn, bn, (long long)hidden,
                     dirs == 2      ? "direction=bidirectional "
                     : one_in(g, 4) ? "direction=reverse "
                                    : "",
                     gru && one_in(g, 2) ? "linear_before_reset=1" : "");
  if (y < 0) return true;
  for (int i = 0; i < (gru ? 2 : 3); i++)
    g->values[y + i].rows = by_sample             ? (i == 0 ? 2 : 1)
                            : x.rows == ROWS_NONE ? ROWS_NONE
                                                  : ROWS_MIXED;
  return true;
}

#endif  // ASSAY_TESTS_BACKENDS_RANDOM_STEPS_PRODUCTS_H_
