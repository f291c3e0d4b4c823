// Steps of random graphs: windows and resizing, sums and choices over axes.
#ifndef ASSAY_TESTS_BACKENDS_RANDOM_STEPS_SUMS_H_
#define ASSAY_TESTS_BACKENDS_RANDOM_STEPS_SUMS_H_

#include "backends/random_graph_pick.h"

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

#endif  // ASSAY_TESTS_BACKENDS_RANDOM_STEPS_SUMS_H_
