// Steps of random graphs that move elements: joined, cut, padded, transposed, reshaped, gathered.
#ifndef ASSAY_TESTS_BACKENDS_RANDOM_STEPS_MOVES_H_
#define ASSAY_TESTS_BACKENDS_RANDOM_STEPS_MOVES_H_

#include "backends/random_graph_pick.h"

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
    const int64_t max = *mode == 'r' ? x.dims[i] - 1 : 2;
    pads[i] = draw(g, *mode == 'c' && x.dims[i] > 3 ? -1 : 0, max < 2 ? max : 2);
    pads[x.rank + i] = draw(g, 0, max < 2 ? max : 2);
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
    // Inputs are below 7; TopK's places may be anything.
    const int i = ids < g->n_inputs
                      ? ids
                      : emit(g, g->values[ids].rows, 1, "Mod %s %s", g->values[ids].name,
                             constant(g, ASSAY_TYPE_INT64, 0, NULL, "= 7"));
    if (i >= 0)
      emit(g, g->values[i].rows, 1, "Gather %s %s | axis=0",
           constant(g, g->type, 2, dims, "normal 1"), g->values[i].name);
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

#endif  // ASSAY_TESTS_BACKENDS_RANDOM_STEPS_MOVES_H_
