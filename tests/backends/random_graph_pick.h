// What the steps of random graphs share: which values fit, where samples lie, windows, weights.
#ifndef ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_PICK_H_
#define ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_PICK_H_

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

// A node that the step goes on with; ends the step where it cannot be.
#define THEN(out, ...)                     \
  do {                                     \
    out = emit(g, x.rows, 1, __VA_ARGS__); \
    if (out < 0) return true;              \
  } while (0)
#define NAME(i) g->values[i].name

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
    const int64_t max = pooling ? w->kernel[i] - 1 : reach;
    w->pads[i] = same ? reach / 2 : draw(g, 0, max / 2);
    w->pads[n + i] = same ? reach / 2 : draw(g, 0, max / 2);
    if (pooling && w->pads[i] > max) w->pads[i] = max;
    if (pooling && w->pads[n + i] > max) w->pads[n + i] = max;
    const int64_t capacity = x->dims[2 + i] + w->pads[i] + w->pads[n + i] - reach;
    if (capacity < 0) return false;
    w->out[i] = capacity / w->strides[i] + 1;
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

#endif  // ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_PICK_H_
