// The steps that random graphs are drawn from: each picks values that fit and adds a node or a few.
#ifndef ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_STEPS_H_
#define ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_STEPS_H_

#include "backends/random_graph.h"

enum { LARGE = 20000 };  // elements of a value that steps may make larger

// ---- which values fit -----------------------------------------------------------------------

static bool is_float(const random_graph_t* g, const random_value_t* v) {
  (void)g;
  return v->type == ASSAY_TYPE_FLOAT || v->type == ASSAY_TYPE_FLOAT16 ||
         v->type == ASSAY_TYPE_BFLOAT16;
}

static bool is_full(const random_graph_t* g, const random_value_t* v) {
  return is_float(g, v) && v->size > 0 && v->size <= LARGE * g->scale * g->scale;
}

// [N, C, D...] of known C and D.
static bool is_image(const random_graph_t* g, const random_value_t* v) {
  if (!is_full(g, v) || v->rank < 3 || v->rank > 5) return false;
  for (int i = 1; i < v->rank; i++)
    if (v->open[i]) return false;
  return true;
}

static bool is_2d_image(const random_graph_t* g, const random_value_t* v) {
  return is_image(g, v) && v->rank == 4;
}

static bool has_known_last(const random_graph_t* g, const random_value_t* v) {
  return is_full(g, v) && v->rank >= 1 && !v->open[v->rank - 1];
}

static bool is_matrix(const random_graph_t* g, const random_value_t* v) {
  return has_known_last(g, v) && v->rank >= 2;
}

static bool is_rank_2(const random_graph_t* g, const random_value_t* v) {
  return is_matrix(g, v) && v->rank == 2;
}

static bool has_channels(const random_graph_t* g, const random_value_t* v) {
  return is_full(g, v) && v->rank >= 2 && !v->open[1];
}

static bool is_sequence(const random_graph_t* g, const random_value_t* v) {
  return is_matrix(g, v) && v->rank == 3 && v->dims[2] <= 80;
}

static bool has_rank(const random_graph_t* g, const random_value_t* v) {
  return is_float(g, v) && v->rank >= 1 && v->size <= LARGE * g->scale * g->scale;
}

static bool is_ids(const random_graph_t* g, const random_value_t* v) {
  (void)g;
  return v->type == ASSAY_TYPE_INT64 && v->rank == 2;
}

static bool is_float32_image(const random_graph_t* g, const random_value_t* v) {
  return is_image(g, v) && v->type == ASSAY_TYPE_FLOAT;
}

static bool is_float32_matrix(const random_graph_t* g, const random_value_t* v) {
  return is_matrix(g, v) && v->type == ASSAY_TYPE_FLOAT;
}

static bool is_float32(const random_graph_t* g, const random_value_t* v) {
  return is_full(g, v) && v->type == ASSAY_TYPE_FLOAT;
}

// ---- where samples lie ----------------------------------------------------------------------

static int keeps_0(const random_value_t* v) { return v->rows > 0 ? ROWS_MIXED : v->rows; }

static int along(const random_value_t* v, int axis) {
  return v->rows == axis ? ROWS_MIXED : v->rows;
}

static int rows_of_two(const random_value_t* a, const random_value_t* b) {
  const int rank = a->rank > b->rank ? a->rank : b->rank;
  const int ra = a->rows < 0 ? a->rows : a->rows + rank - a->rank;
  const int rb = b->rows < 0 ? b->rows : b->rows + rank - b->rank;
  if (ra == ROWS_MIXED || rb == ROWS_MIXED) return ROWS_MIXED;
  if (ra == ROWS_NONE || ra == rb) return rb;
  return rb == ROWS_NONE ? ra : ROWS_MIXED;
}

// ---- helpers --------------------------------------------------------------------------------

#define PICK(x, fits)               \
  const int x##_at = pick(g, fits); \
  if (x##_at < 0) return false;     \
  const random_value_t x = g->values[x##_at]

// "name=a,b,c " with numbers of [low, high].
static void list_of(char* text, const char* name, int n, const int64_t* x) {
  int used = sprintf(text, "%s=", name);
  for (int i = 0; i < n; i++) used += sprintf(text + used, "%s%lld", i ? "," : "", (long long)x[i]);
  sprintf(text + used, " ");
}

static const char* weights(random_graph_t* g, assay_type_t type, int rank, const int64_t* dims,
                           int64_t terms) {
  char text[64];
  snprintf(text, sizeof text, "normal %.3g", 1.2 / sqrt((double)(terms > 0 ? terms : 1)));
  return constant(g, type, rank, dims, text);
}

// Places of a window: kernel, strides, pads, dilations of a spatial axis of `size`.
typedef struct window {
  int64_t kernel[3], strides[3], pads[6], dilations[3], out[3];
} window_t;

static bool draw_window(random_graph_t* g, const random_value_t* x, bool dilated, bool pooling,
                        window_t* w) {
  static const int64_t kernels[] = {1, 1, 2, 3, 3, 3, 5, 7};
  const int n = x->rank - 2;
  const int64_t kernel = kernels[draw(g, 0, 7)], stride = one_in(g, 3) ? 2 : 1;
  const int64_t dilation = dilated && one_in(g, 4) ? 2 : 1;
  const bool same = one_in(g, 2);
  for (int i = 0; i < n; i++) {
    w->kernel[i] = one_in(g, 6) ? kernels[draw(g, 0, 6)] : kernel;
    w->strides[i] = one_in(g, 8) ? draw(g, 1, 3) : stride;
    w->dilations[i] = one_in(g, 10) && dilated ? draw(g, 1, 3) : dilation;
    const int64_t reach = w->dilations[i] * (w->kernel[i] - 1) + 1;
    const int64_t most = pooling ? w->kernel[i] - 1 : reach;
    w->pads[i] = same ? reach / 2 : draw(g, 0, most / 2);
    w->pads[n + i] = same ? reach / 2 : draw(g, 0, most / 2);
    if (pooling && w->pads[i] > most) w->pads[i] = most;
    if (pooling && w->pads[n + i] > most) w->pads[n + i] = most;
    const int64_t room = x->dims[2 + i] + w->pads[i] + w->pads[n + i] - reach;
    if (room < 0) return false;
    w->out[i] = room / w->strides[i] + 1;
  }
  return true;
}

static void print_window(const window_t* w, int n, bool dilated, char* text) {
  char part[120];
  *text = 0;
  list_of(part, "kernel_shape", n, w->kernel), strcat(text, part);
  list_of(part, "strides", n, w->strides), strcat(text, part);
  list_of(part, "pads", 2 * n, w->pads), strcat(text, part);
  if (dilated) list_of(part, "dilations", n, w->dilations), strcat(text, part);
}

static int64_t product(const int64_t* x, int n) {
  int64_t p = 1;
  for (int i = 0; i < n; i++) p *= x[i];
  return p;
}

static int64_t draw_group(random_graph_t* g, int64_t channels) {
  if (one_in(g, 3)) return channels;
  if (one_in(g, 2)) return 1;
  for (int64_t k = draw(g, 1, channels); k > 1; k--)
    if (channels % k == 0) return k;
  return 1;
}

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

// ---- functions ------------------------------------------------------------------------------

static bool step_function(random_graph_t* g) {
  static const char* const functions[] = {"Relu %s",
                                          "Sigmoid %s",
                                          "Tanh %s",
                                          "LeakyRelu %s | alpha=0.1",
                                          "LeakyRelu %s",
                                          "Elu %s | alpha=1.2",
                                          "Selu %s",
                                          "HardSigmoid %s",
                                          "HardSwish %s",
                                          "Softplus %s",
                                          "Softsign %s",
                                          "Erf %s",
                                          "Neg %s",
                                          "Abs %s",
                                          "Relu %s",
                                          "Relu %s",
                                          "Identity %s",
                                          "ThresholdedRelu %s | alpha=0.3",
                                          "Sin %s",
                                          "Cos %s",
                                          "Celu %s",
                                          "Floor %s",
                                          "HardSigmoid %s | alpha=0.25 beta=0.4",
                                          "Gelu %s",
                                          "Gelu %s | approximate=tanh",
                                          "Mish %s"};
  PICK(x, has_rank);
  int at = (int)draw(g, 0, (int)(sizeof functions / sizeof *functions) - 1);
  if (at >= 23 && g->opset < 20) at -= 20;
  const bool limited = strncmp(functions[at], "Celu", 4) == 0 && x.type != ASSAY_TYPE_FLOAT;
  if (limited) at = 0;
  if (x.type == ASSAY_TYPE_BFLOAT16 && g->opset < 22) at = at % 3;
  emit(g, x.rows, 1, functions[at], x.name);
  return true;
}

static bool step_clip(random_graph_t* g) {
  PICK(x, has_rank);
  const char* low = one_in(g, 5) ? "_" : number(g, x.type, one_in(g, 2) ? 0 : -0.7);
  const char* high = one_in(g, 5) ? "" : number(g, x.type, one_in(g, 2) ? 6 : 0.8);
  if (*low == '_' && !*high) low = number(g, x.type, -1);
  emit(g, x.rows, 1, "Clip %s %s %s", x.name, low, high);
  return true;
}

// Functions that exporters write as several nodes.
static bool step_composed(random_graph_t* g) {
  PICK(x, has_rank);
  const int kind = (int)draw(g, 0, 6);
  const char* n = x.name;
  int a = -1, b = -1, c = -1;
#define THEN(out, ...)                     \
  do {                                     \
    out = emit(g, x.rows, 1, __VA_ARGS__); \
    if (out < 0) return true;              \
  } while (0)
#define NAME(i) g->values[i].name
  if (kind == 0) {  // SiLU
    THEN(a, "Sigmoid %s", n);
    const bool swap = one_in(g, 2);
    THEN(b, "Mul %s %s", swap ? NAME(a) : n, swap ? n : NAME(a));
  } else if (kind == 1) {  // Mish
    THEN(a, "Softplus %s", n);
    THEN(b, "Tanh %s", NAME(a));
    THEN(c, "Mul %s %s", n, NAME(b));
  } else if (kind == 2) {  // GELU by erf
    THEN(a, "Div %s %s", n, number(g, x.type, 1.4142135));
    THEN(b, "Erf %s", NAME(a));
    THEN(a, "Add %s %s", NAME(b), number(g, x.type, 1));
    THEN(b, "Mul %s %s", n, NAME(a));
    THEN(c, "Mul %s %s", NAME(b), number(g, x.type, 0.5));
  } else if (kind == 3) {  // GELU by tanh
    THEN(a, "Mul %s %s", n, n);
    THEN(b, "Mul %s %s", n, NAME(a));
    THEN(a, "Mul %s %s", NAME(b), number(g, x.type, 0.044715));
    THEN(b, "Add %s %s", n, NAME(a));
    THEN(a, "Mul %s %s", NAME(b), number(g, x.type, 0.79788456));
    THEN(b, "Tanh %s", NAME(a));
    THEN(a, "Add %s %s", NAME(b), number(g, x.type, 1));
    THEN(b, "Mul %s %s", NAME(a), n);
    THEN(c, "Mul %s %s", number(g, x.type, 0.5), NAME(b));
  } else if (kind == 4) {  // HardSwish by Clip
    THEN(a, "Add %s %s", n, number(g, x.type, 3));
    THEN(b, "Clip %s %s %s", NAME(a), number(g, x.type, 0), number(g, x.type, 6));
    THEN(a, "Mul %s %s", n, NAME(b));
    THEN(c, "Div %s %s", NAME(a), number(g, x.type, 6));
  } else if (kind == 5) {  // HardSwish by HardSigmoid
    THEN(a, "HardSigmoid %s | alpha=0.16666667", n);
    THEN(b, "Mul %s %s", n, NAME(a));
  } else {  // an inner value read twice
    THEN(a, "Tanh %s", n);
    THEN(b, "Mul %s %s", NAME(a), NAME(a));
    THEN(c, "Sub %s %s", NAME(b), NAME(a));
  }
  return true;
}

// ---- two operands ---------------------------------------------------------------------------

static const char* const binaries[] = {"Add", "Mul", "Sub", "Add", "Mul", "Max", "Min", "Div"};

static bool step_binary_constant(random_graph_t* g) {
  PICK(x, has_rank);
  int64_t dims[RANDOM_GRAPH_RANK];
  int rank = (int)draw(g, 0, x.rank), rows = x.rows;
  for (int i = 0; i < rank; i++) {
    const int at = x.rank - rank + i;
    dims[i] = x.open[at] || one_in(g, 2) ? 1 : x.dims[at];
    if (x.dims[at] == 1 && !x.open[at] && x.size < 200 && one_in(g, 4)) dims[i] = draw(g, 2, 4);
    if (at == x.rows && dims[i] != 1 && !x.open[at]) rows = ROWS_MIXED;
  }
  if (rank == x.rank && rank < 6 && one_in(g, 20)) {  // more dimensions than the value has
    memmove(dims + 1, dims, (size_t)rank * sizeof *dims);
    dims[0] = draw(g, 1, 2);
    rank++;
    if (rows >= 0) rows++;
  }
  const char* op = binaries[draw(g, 0, 7)];
  const char* c = constant(g, x.type, rank, dims, *op == 'D' ? "range 0.5 2" : "normal 0.7");
  const bool swap = *op != 'D' && one_in(g, 3);
  emit(g, rows, 1, "%s %s %s", op, swap ? c : x.name, swap ? x.name : c);
  return true;
}

static bool fits_together(const random_value_t* a, const random_value_t* b) {
  const int rank = a->rank > b->rank ? a->rank : b->rank;
  int64_t size = 1;
  if (a->type != b->type) return false;
  for (int i = 1; i <= rank; i++) {
    const int64_t p = i <= a->rank ? a->dims[a->rank - i] : 1;
    const int64_t q = i <= b->rank ? b->dims[b->rank - i] : 1;
    const bool op = i <= a->rank && a->open[a->rank - i], oq = i <= b->rank && b->open[b->rank - i];
    // An open size goes with the same one, or with a 1 that is always one.
    if ((op || oq) ? !((op && oq && p == q) || (op && !oq && q == 1) || (oq && !op && p == 1))
                   : p != q && p != 1 && q != 1)
      return false;
    size *= p > q ? p : q;
  }
  return size <= 4 * LARGE;
}

static bool step_residual(random_graph_t* g) {
  PICK(x, has_rank);
  int found[RANDOM_GRAPH_VALUES], n = 0;
  for (int i = 0; i < g->n_values; i++)
    if (is_float(g, &g->values[i]) && fits_together(&x, &g->values[i])) found[n++] = i;
  if (!n) return false;
  const random_value_t y = g->values[found[draw(g, 0, n - 1)]];
  static const char* const ops[] = {"Add", "Add", "Add", "Mul", "Sub", "Max"};
  emit(g, rows_of_two(&x, &y), 1, "%s %s %s", ops[draw(g, 0, 5)], x.name, y.name);
  return true;
}

// x times a gate of its own means: squeeze and excite.
static bool step_gate(random_graph_t* g) {
  PICK(x, is_image);
  const int64_t dims[2] = {x.dims[1], x.dims[1]};
  const int rows = keeps_0(&x);
  const int m = emit(g, rows, 1, "GlobalAveragePool %s", x.name);
  if (m < 0) return true;
  int s = m;
  if (one_in(g, 2)) {
    int64_t w[5] = {dims[0], dims[1], 1, 1, 1};
    s = emit(g, rows, 1, "Conv %s %s", g->values[m].name, weights(g, x.type, x.rank, w, dims[0]));
  }
  s = emit(g, rows, 1, "Sigmoid %s", g->values[s].name);
  emit(g, rows, 1, "Mul %s %s", x.name, g->values[s].name);
  return true;
}

static bool step_where(random_graph_t* g) {
  PICK(x, has_rank);
  const int b = emit(g, x.rows, 1, "Greater %s %s", x.name, number(g, x.type, 0.1));
  if (b < 0) return true;
  emit(g, x.rows, 1, "Where %s %s %s", g->values[b].name, x.name, number(g, x.type, -0.25));
  return true;
}

static bool step_prelu(random_graph_t* g) {
  PICK(x, has_channels);
  const int64_t dims[5] = {x.dims[1], 1, 1, 1, 1};
  if (x.rank > 5) return false;
  emit(g, x.rows, 1, "PRelu %s %s", x.name,
       constant(g, x.type, x.rank - 1, dims, "range 0.05 0.4"));
  return true;
}

// ---- moving ---------------------------------------------------------------------------------

static bool step_concat(random_graph_t* g) {
  PICK(x, has_rank);
  const int axis = (int)draw(g, x.rank > 1, x.rank - 1);
  if (x.open[axis]) return false;
  int rows = along(&x, axis), n = 1;
  char names[200];
  snprintf(names, sizeof names, "%s", x.name);
  for (int i = g->n_values - 1; i >= 0 && n < 4; i--) {
    const random_value_t* y = &g->values[i];
    bool fits = y->type == x.type && y->rank == x.rank && !y->open[axis] && y->size <= LARGE;
    for (int k = 0; fits && k < x.rank; k++)
      fits = k == axis || (y->dims[k] == x.dims[k] && y->open[k] == x.open[k]);
    if (!fits || !one_in(g, 2)) continue;
    snprintf(names + strlen(names), sizeof names - strlen(names), " %s", y->name);
    if (y->rows != x.rows) rows = ROWS_MIXED;
    n++;
  }
  emit(g, rows, 1, "Concat %s | axis=%d", names, one_in(g, 4) ? axis - x.rank : axis);
  return true;
}

static bool step_split(random_graph_t* g) {
  PICK(x, has_rank);
  const int axis = (int)draw(g, 0, x.rank - 1);
  const int64_t size = x.dims[axis];
  if (x.open[axis] || size < 2) return false;
  const int64_t parts[3] = {size / 2, size / 4, size - size / 2 - size / 4};
  const int64_t halves[2] = {size / 2, size - size / 2};
  const bool three = size >= 4 && one_in(g, 3);
  const char* list = three ? integers(g, 3, parts) : integers(g, 2, halves);
  emit(g, along(&x, axis), three ? 3 : 2, "Split %s %s | axis=%d", x.name, list, axis);
  return true;
}

static bool step_slice(random_graph_t* g) {
  PICK(x, has_rank);
  const int64_t axis = draw(g, 0, x.rank - 1), size = x.dims[axis];
  if (x.open[axis]) return false;
  int64_t start = draw(g, 0, size / 2), end = draw(g, start + 1, size + 2), step = 1;
  if (one_in(g, 4)) step = 2;
  if (one_in(g, 8)) start = size - 1, end = -size - 1, step = -1;
  if (one_in(g, 40)) end = start;  // nothing
  const int64_t a[1] = {start}, b[1] = {end}, c[1] = {axis}, d[1] = {step};
  const char *an = integers(g, 1, a), *bn = integers(g, 1, b), *cn = integers(g, 1, c);
  emit(g, along(&x, (int)axis), 1, "Slice %s %s %s %s %s", x.name, an, bn, cn, integers(g, 1, d));
  return true;
}

static bool step_pad(random_graph_t* g) {
  static const char* const modes[] = {"constant", "constant", "reflect", "edge"};
  PICK(x, is_full);
  if (x.rank < 1 || x.size > LARGE / 4) return false;
  const char* mode = modes[draw(g, 0, 3)];
  int64_t pads[2 * RANDOM_GRAPH_RANK] = {0};
  for (int i = x.rank > 2 ? 2 : 0; i < x.rank; i++) {
    if (x.open[i] || i == x.rows) continue;
    const int64_t most = *mode == 'r' ? x.dims[i] - 1 : 2;
    pads[i] = draw(g, *mode == 'c' && x.dims[i] > 3 ? -1 : 0, most < 2 ? most : 2);
    pads[x.rank + i] = draw(g, 0, most < 2 ? most : 2);
  }
  const char* list = integers(g, 2 * x.rank, pads);
  const char* value = *mode == 'c' && one_in(g, 2) ? number(g, x.type, 0.5) : "";
  emit(g, x.rows, 1, "Pad %s %s %s | mode=%s", x.name, list, value, mode);
  return true;
}

static bool step_transpose(random_graph_t* g) {
  char text[80];
  PICK(x, has_rank);
  int64_t perm[RANDOM_GRAPH_RANK];
  int rows = x.rows;
  for (int i = 0; i < x.rank; i++) perm[i] = i;
  for (int i = x.rank - 1; i > (one_in(g, 4) ? 0 : 1); i--) {
    const int64_t at = draw(g, x.rank > 2 && !one_in(g, 6), i), was = perm[i];
    perm[i] = perm[at];
    perm[at] = was;
  }
  for (int i = 0; i < x.rank; i++)
    if (perm[i] == x.rows) rows = i;
  list_of(text, "perm", x.rank, perm);
  emit(g, rows, 1, "Transpose %s | %s", x.name, text);
  return true;
}

// Merges or splits sizes behind the first one.
static bool step_reshape(random_graph_t* g) {
  PICK(x, is_full);
  if (x.rank < 2) return false;
  for (int i = 1; i < x.rank; i++)
    if (x.open[i]) return false;
  const int64_t inner = product(x.dims + 1, x.rank - 1), c = x.dims[1];
  int64_t to[4] = {0, inner, 0, 0};
  int rank = 2;
  if (one_in(g, 3)) to[1] = -1;
  if (x.rank > 2 && one_in(g, 2)) rank = 3, to[1] = c, to[2] = -1;
  for (int64_t k = 4; k > 1 && rank == 2; k--)
    if (c % k == 0 && one_in(g, 2)) rank = 4, to[1] = k, to[2] = c / k, to[3] = inner / c;
  if (rank == 2 && one_in(g, 4)) {
    emit(g, keeps_0(&x), 1, "Flatten %s", x.name);
    return true;
  }
  if (to[1] == 0 || (x.dims[0] == 0 && to[rank - 1] == -1)) return false;
  emit(g, keeps_0(&x), 1, "Reshape %s %s", x.name, integers(g, rank, to));
  return true;
}

// The same, with the first size taken from the value's own shape, as exporters write it.
static bool step_shape_chain(random_graph_t* g) {
  PICK(x, is_full);
  if (x.rank < 2) return false;
  for (int i = 1; i < x.rank; i++)
    if (x.open[i]) return false;
  const int64_t zero[1] = {0}, rest[2] = {x.dims[1], product(x.dims + 2, x.rank - 2)};
  const int s = emit(g, ROWS_NONE, 1, "Shape %s", x.name);
  if (s < 0) return true;
  int first;
  if (one_in(g, 2)) {
    const int i = emit(g, ROWS_NONE, 1, "Gather %s %s | axis=0", g->values[s].name,
                       constant(g, ASSAY_TYPE_INT64, 0, NULL, "= 0"));
    if (i < 0) return true;
    first = emit(g, ROWS_NONE, 1, "Unsqueeze %s %s", g->values[i].name, integers(g, 1, zero));
  } else {
    first = emit(g, ROWS_NONE, 1, "Gather %s %s | axis=0", g->values[s].name, integers(g, 1, zero));
  }
  if (first < 0) return true;
  const char* others = integers(g, 2, rest);
  const int to = emit(g, ROWS_NONE, 1, "Concat %s %s | axis=0", g->values[first].name, others);
  if (to >= 0) emit(g, keeps_0(&x), 1, "Reshape %s %s", x.name, g->values[to].name);
  return true;
}

static bool step_squeeze(random_graph_t* g) {
  PICK(x, has_rank);
  for (int i = 0; i < x.rank; i++) {
    if (x.dims[i] != 1 || x.open[i] || i == x.rows) continue;
    const int64_t axis[1] = {i};
    emit(g, x.rows > i ? x.rows - 1 : x.rows, 1, "Squeeze %s %s", x.name, integers(g, 1, axis));
    return true;
  }
  if (x.rank > 4) return false;
  const int64_t axis[1] = {draw(g, 0, x.rank)};
  emit(g, x.rows >= axis[0] ? x.rows + 1 : x.rows, 1, "Unsqueeze %s %s", x.name,
       integers(g, 1, axis));
  return true;
}

static bool step_gather(random_graph_t* g) {
  const int ids = one_in(g, 2) ? pick(g, is_ids) : -1;
  if (ids >= 0) {
    const int64_t dims[2] = {7, draw(g, 1, 16)};
    emit(g, g->values[ids].rows, 1, "Gather %s %s | axis=0",
         constant(g, g->type, 2, dims, "normal 1"), g->values[ids].name);
    return true;
  }
  PICK(x, is_full);
  if (x.rank < 1) return false;
  const int axis = (int)draw(g, 0, x.rank - 1);
  if (x.open[axis]) return false;
  const int64_t size = x.dims[axis], at[3] = {draw(g, -size, size - 1), draw(g, 0, size - 1), 0};
  const bool single = x.rank > 1 && one_in(g, 3);
  const int rows = along(&x, axis);
  if (single)
    emit(g, rows > axis ? rows - 1 : rows, 1, "Gather %s %s | axis=%d", x.name,
         constant(g, ASSAY_TYPE_INT64, 0, NULL, "= 0"), axis);
  else
    emit(g, rows, 1, "Gather %s %s | axis=%d", x.name, integers(g, 3, at), axis);
  return true;
}

// ---- windows and resizing -------------------------------------------------------------------

static bool step_pool(random_graph_t* g) {
  char attrs[300];
  window_t w;
  PICK(x, is_image);
  if (!draw_window(g, &x, false, true, &w)) return false;
  print_window(&w, x.rank - 2, false, attrs);
  const int kind = (int)draw(g, 0, 3);
  const char* ceil = one_in(g, 4) ? "ceil_mode=1 " : "";
  const int rows = keeps_0(&x);
  if (kind < 2)
    emit(g, rows, 1, "MaxPool %s | %s%s", x.name, ceil, attrs);
  else
    emit(g, rows, 1, "AveragePool %s | %s%s%s", x.name, ceil,
         one_in(g, 3) ? "count_include_pad=1 " : "", attrs);
  return true;
}

static bool step_global_pool(random_graph_t* g) {
  PICK(x, is_image);
  emit(g, keeps_0(&x), 1, "%s %s", one_in(g, 4) ? "GlobalMaxPool" : "GlobalAveragePool", x.name);
  return true;
}

static bool step_resize(random_graph_t* g) {
  static const char* const modes[] = {
      "mode=nearest coordinate_transformation_mode=asymmetric nearest_mode=floor",
      "mode=linear coordinate_transformation_mode=half_pixel",
      "mode=linear coordinate_transformation_mode=align_corners",
      "mode=cubic coordinate_transformation_mode=half_pixel", "mode=nearest"};
  PICK(x, is_2d_image);
  if (x.size > LARGE / 4) return false;
  const int64_t dims[1] = {4};
  char scales[64];
  const bool up = one_in(g, 2) || x.dims[2] < 2 || x.dims[3] < 2;
  snprintf(scales, sizeof scales, "= 1 1 %s %s", up ? "2" : "0.5",
           up             ? "2"
           : one_in(g, 2) ? "1.5"
                          : "0.5");
  emit(g, keeps_0(&x), 1, "Resize %s _ %s | %s", x.name,
       constant(g, ASSAY_TYPE_FLOAT, 1, dims, scales), modes[draw(g, 0, 4)]);
  return true;
}

static bool step_depth_to_space(random_graph_t* g) {
  PICK(x, is_2d_image);
  const bool depth = x.dims[1] % 4 == 0, space = x.dims[2] % 2 == 0 && x.dims[3] % 2 == 0;
  if (!depth && !space) return false;
  emit(g, keeps_0(&x), 1, depth ? "DepthToSpace %s | blocksize=2" : "SpaceToDepth %s | blocksize=2",
       x.name);
  return true;
}

// ---- sums over axes -------------------------------------------------------------------------

static bool step_softmax(random_graph_t* g) {
  PICK(x, is_full);
  if (x.rank < 1) return false;
  const int axis = one_in(g, 3) ? (int)draw(g, 0, x.rank - 1) : x.rank - 1;
  emit(g, along(&x, axis), 1, "%s %s | axis=%d", one_in(g, 5) ? "LogSoftmax" : "Softmax", x.name,
       one_in(g, 2) ? axis : axis - x.rank);
  return true;
}

static bool step_layernorm(random_graph_t* g) {
  PICK(x, is_matrix);
  const int axis = x.rank > 2 && !x.open[x.rank - 2] && x.rows != x.rank - 2 && one_in(g, 5)
                       ? x.rank - 2
                       : x.rank - 1;
  if (x.rows >= axis) return false;
  const char* scale = constant(g, x.type, x.rank - axis, x.dims + axis, "range 0.5 1.5");
  const char* shift =
      one_in(g, 4) ? "" : constant(g, x.type, x.rank - axis, x.dims + axis, "normal 0.5");
  emit(g, x.rows, 1, "LayerNormalization %s %s %s | axis=%d epsilon=0.0001", x.name, scale, shift,
       one_in(g, 2) ? axis : axis - x.rank);
  return true;
}

// Layer normalization as ten years of exporters write it.
static bool step_layernorm_parts(random_graph_t* g) {
  PICK(x, is_matrix);
  if (x.rows == x.rank - 1) return false;
  int m, d, v, s;
  const int64_t axis[1] = {-1};
  if (g->opset < 18)
    THEN(m, "ReduceMean %s | axes=-1", x.name);
  else
    THEN(m, "ReduceMean %s %s", x.name, integers(g, 1, axis));
  THEN(d, "Sub %s %s", x.name, NAME(m));
  THEN(v, "Pow %s %s", NAME(d), number(g, x.type, 2));
  if (g->opset < 18)
    THEN(m, "ReduceMean %s | axes=-1", NAME(v));
  else
    THEN(m, "ReduceMean %s %s", NAME(v), integers(g, 1, axis));
  THEN(v, "Add %s %s", NAME(m), number(g, x.type, 1e-3));
  THEN(s, "Sqrt %s", NAME(v));
  THEN(v, "Div %s %s", NAME(d), NAME(s));
  THEN(d, "Mul %s %s", NAME(v), constant(g, x.type, 1, x.dims + x.rank - 1, "range 0.5 1.5"));
  return true;
}

static bool step_instance_norm(random_graph_t* g) {
  PICK(x, is_image);
  const char* scale = constant(g, x.type, 1, x.dims + 1, "range 0.5 1.5");
  const char* shift = constant(g, x.type, 1, x.dims + 1, "normal 0.5");
  emit(g, keeps_0(&x), 1, "InstanceNormalization %s %s %s | epsilon=0.01", x.name, scale, shift);
  return true;
}

static bool step_reduce(random_graph_t* g) {
  static const char* const ops[] = {"ReduceMean", "ReduceSum",  "ReduceMax",       "ReduceMin",
                                    "ReduceL2",   "ReduceMean", "ReduceLogSumExp", "ReduceProd"};
  PICK(x, is_full);
  if (x.rank < 1) return false;
  const int at = (int)draw(g, 0, x.size > 200 ? 6 : 7), keep = (int)draw(g, 0, 1);
  const int64_t axis = draw(g, x.rank > 1, x.rank - 1);
  int64_t axes[2] = {axis, 0};
  int n = 1;
  if (axis + 1 < x.rank && one_in(g, 3)) axes[1] = axis + 1, n = 2;
  int rows = x.rows;
  for (int i = 0; i < n; i++)
    if (rows == axes[i]) rows = ROWS_MIXED;
  if (!keep && rows > axis) rows -= n;
  char text[40];
  if (g->opset < 18 && at != 1) {
    list_of(text, "axes", n, axes);
    emit(g, rows, 1, "%s %s | keepdims=%d %s", ops[at], x.name, keep, text);
  } else {
    emit(g, rows, 1, "%s %s %s | keepdims=%d", ops[at], x.name, integers(g, n, axes), keep);
  }
  return true;
}

static bool step_choice(random_graph_t* g) {
  PICK(x, is_full);
  if (x.rank < 1) return false;
  const int axis = x.rank - 1;
  if (one_in(g, 3)) {
    emit(g, along(&x, axis), 1, "ArgMax %s | axis=%d", x.name, axis);
  } else if (!x.open[axis] && x.type != ASSAY_TYPE_BFLOAT16) {
    const int64_t k[1] = {draw(g, 1, x.dims[axis])};
    emit(g, along(&x, axis), 2, "TopK %s %s | axis=%d", x.name, integers(g, 1, k), axis);
  }
  return true;
}

// ---- formats --------------------------------------------------------------------------------

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

static bool step_q_conv(random_graph_t* g) {
  char attrs[300];
  window_t w;
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

// ---- what follows from sizes ----------------------------------------------------------------

// A number of rank 0 or 1 that a size of x gives: as it is, its root, its inverse, its logarithm.
static int size_of(random_graph_t* g, const random_value_t* x) {
  static const char* const functions[] = {"Sqrt %s", "Reciprocal %s", "Log %s", "Neg %s"};
  const int s = emit(g, ROWS_NONE, 1, "Shape %s", x->name);
  if (s < 0) return -1;
  const int i = emit(g, ROWS_NONE, 1, "Gather %s %s | axis=0", g->values[s].name,
                     constant(g, ASSAY_TYPE_INT64, 0, NULL, one_in(g, 2) ? "= 0" : "= -1"));
  if (i < 0) return -1;
  int y = emit(g, ROWS_MIXED, 1, "Cast %s | to=%d", g->values[i].name, (int)x->type);
  for (int64_t n = draw(g, 0, 2); n && y >= 0; n--)
    y = emit(g, ROWS_MIXED, 1, functions[draw(g, 0, 3)], g->values[y].name);
  if (y >= 0 && one_in(g, 2))
    y = emit(g, ROWS_MIXED, 1, "Mul %s %s", g->values[y].name, number(g, x->type, 0.37));
  return y;
}

// Samples that are scaled by the size of the batch differ from one batch to the next.
static bool random_graph_of_sizes(random_graph_t* g) {
  PICK(x, is_full);
  if (x.rank < 1 || x.type == ASSAY_TYPE_BFLOAT16) return false;
  const int kind = (int)draw(g, 0, 3);
  if (kind == 0) {
    const int y = size_of(g, &x);
    if (y >= 0)
      emit(g, ROWS_MIXED, 1, one_in(g, 2) ? "Mul %s %s" : "Add %s %s", x.name, g->values[y].name);
    return true;
  }
  const int s = emit(g, ROWS_NONE, 1, "Shape %s", x.name);
  if (s < 0) return true;
  if (kind == 1) {  // one number everywhere
    char text[64];
    snprintf(text, sizeof text, "= %g", (double)draw(g, -3, 3) / 7);
    const int64_t one[1] = {1};
    const int y =
        emit(g, ROWS_NONE, 1, "Expand %s %s", constant(g, x.type, 1, one, text), g->values[s].name);
    const int f = y < 0 ? -1 : emit(g, x.rows, 1, "Cos %s", g->values[y].name);
    if (f >= 0) emit(g, x.rows, 1, "Add %s %s", x.name, g->values[f].name);
  } else if (kind == 2) {  // to the shape that it has
    emit(g, x.rows, 1, "Expand %s %s", x.name, g->values[s].name);
  } else {  // positions along the last axis
    const int i = emit(g, ROWS_NONE, 1, "Gather %s %s | axis=0", g->values[s].name,
                       constant(g, ASSAY_TYPE_INT64, 0, NULL, "= -1"));
    if (i < 0 || (x.rank == 1 && x.rows == 0)) return true;
    const int r =
        emit(g, ROWS_NONE, 1, "Range %s %s %s", constant(g, ASSAY_TYPE_INT64, 0, NULL, "= 0"),
             g->values[i].name, constant(g, ASSAY_TYPE_INT64, 0, NULL, "= 1"));
    const int f =
        r < 0 ? -1 : emit(g, ROWS_NONE, 1, "Cast %s | to=%d", g->values[r].name, (int)x.type);
    const int y = f < 0 ? -1 : emit(g, ROWS_NONE, 1, "Sin %s", g->values[f].name);
    if (y >= 0) emit(g, x.rows, 1, "Add %s %s", x.name, g->values[y].name);
  }
  return true;
}

#undef THEN
#undef NAME
#undef PICK

const random_step_t random_steps[] = {{"conv", step_conv, 10},
                                      {"conv_transpose", step_conv_transpose, 3},
                                      {"batchnorm", step_batchnorm, 5},
                                      {"matmul", step_matmul, 7},
                                      {"left_matmul", step_left_matmul, 1},
                                      {"gemm", step_gemm, 4},
                                      {"attention", step_attention, 2},
                                      {"heads", step_heads, 2},
                                      {"lstm", step_lstm, 1},
                                      {"function", step_function, 12},
                                      {"clip", step_clip, 2},
                                      {"composed", step_composed, 6},
                                      {"binary_constant", step_binary_constant, 8},
                                      {"residual", step_residual, 8},
                                      {"gate", step_gate, 2},
                                      {"where", step_where, 1},
                                      {"prelu", step_prelu, 1},
                                      {"concat", step_concat, 4},
                                      {"split", step_split, 3},
                                      {"slice", step_slice, 3},
                                      {"pad", step_pad, 2},
                                      {"transpose", step_transpose, 3},
                                      {"reshape", step_reshape, 3},
                                      {"shape_chain", step_shape_chain, 2},
                                      {"squeeze", step_squeeze, 2},
                                      {"gather", step_gather, 2},
                                      {"pool", step_pool, 4},
                                      {"global_pool", step_global_pool, 2},
                                      {"resize", step_resize, 2},
                                      {"depth_to_space", step_depth_to_space, 1},
                                      {"softmax", step_softmax, 3},
                                      {"layernorm", step_layernorm, 3},
                                      {"layernorm_parts", step_layernorm_parts, 1},
                                      {"instance_norm", step_instance_norm, 1},
                                      {"reduce", step_reduce, 3},
                                      {"choice", step_choice, 1},
                                      {"cast", step_cast, 2},
                                      {"q_conv", step_q_conv, 3},
                                      {"q_matmul", step_q_matmul, 2},
                                      {"quantize", step_quantize, 1}};
const size_t n_random_steps = sizeof random_steps / sizeof *random_steps;

#endif  // ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_STEPS_H_
