// Where rows of a tensor come to lie: each value on the way has a table of the source's rows.
#include "backends/layers/moved_rows.h"

#include <string.h>

#include "backends/constants.h"
#include "backends/layers/slice.h"
#include "base/alloc.h"

enum { MAX_VALUES = 48 };

typedef struct made {
  const assay_value_t* value;
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK];
  int32_t* rows;  // owned; NULL: only sizes are asked for
} made_t;

typedef struct mover {
  const assay_sized_layer_t* l;
  int64_t columns;  // of the tables; 0: only sizes are asked for
  int64_t most;     // elements that stayed side by side so far; 0: as many as there are
  made_t made[MAX_VALUES];
  size_t n;
  assay_status_t status;
} mover_t;

// A box of a value, whose last dimensions are `inner` elements side by side on both sides. Steps
// are in elements.
typedef struct piece {
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK], from[ASSAY_KERNEL_RANK], to[ASSAY_KERNEL_RANK];
  int64_t from_at, to_at, inner;
} piece_t;

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

static bool takes_parts(const assay_node_t* n) { return is_op(n, "Slice") || is_op(n, "Split"); }

bool layer_is_move(const assay_node_t* n) {
  return is_op(n, "Reshape") || is_op(n, "Transpose") || is_op(n, "Concat");
}

static bool is_of_layer(const assay_sized_layer_t* l, const assay_node_t* n) {
  for (size_t i = 0; i < l->layer->n_nodes; i++)
    if (l->layer->nodes[i] == n) return true;
  return false;
}

const assay_value_t* layer_moved_source(const assay_sized_layer_t* l, const assay_value_t* v) {
  bool moved = false;
  for (const assay_node_t* n; v && (n = v->producer) && is_of_layer(l, n); v = n->inputs[0]) {
    if (!(layer_is_move(n) || takes_parts(n)) || !n->n_inputs) break;
    moved |= layer_is_move(n);
  }
  return moved ? v : NULL;
}

// ---- values -------------------------------------------------------------------------------------

static const made_t* find(const mover_t* m, const assay_value_t* v) {
  for (size_t i = 0; i < m->n; i++)
    if (m->made[i].value == v) return &m->made[i];
  return NULL;
}

static int64_t size_of(const made_t* v) { return assay_dims_product(v->dims, 0, v->rank); }

// A value with a table still to be filled in; NULL: there is no room for it.
static made_t* add(mover_t* m, const assay_value_t* v, int rank, const int64_t* dims) {
  if (m->n == MAX_VALUES || m->status) return NULL;
  made_t* to = &m->made[m->n];
  *to = (made_t){.value = v, .rank = rank};
  memcpy(to->dims, dims, (size_t)rank * sizeof *dims);
  const int64_t size = size_of(to), rows = m->columns ? size / m->columns : 0;
  if ((m->columns && size % m->columns) || rows > INT32_MAX) return NULL;
  if (m->columns) m->status = assay_new_array((size_t)rows, sizeof *to->rows, &to->rows);
  if (m->status) return NULL;
  m->n++;
  return to;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Fills in a box of a table, or notes how much stays side by side in it.
static void move(mover_t* m, const piece_t* p, const made_t* from, const made_t* to) {
  int64_t at[ASSAY_KERNEL_RANK] = {0}, x = p->from_at, y = p->to_at;
  m->most = common_divisor(p->inner, m->most);
  if (!m->columns || !assay_dims_product(p->dims, 0, p->rank)) return;
  for (bool more = true; more;) {
    for (int64_t i = 0; i < p->inner / m->columns; i++)
      to->rows[y / m->columns + i] = from->rows[x / m->columns + i];
    int d = p->rank - 1;
    for (; d >= 0; d--) {
      x += p->from[d], y += p->to[d];
      if (++at[d] < p->dims[d]) break;
      x -= p->dims[d] * p->from[d], y -= p->dims[d] * p->to[d];
      at[d] = 0;
    }
    more = d >= 0;
  }
}

static void strides_of(const made_t* v, int64_t* strides) {
  int64_t step = 1;
  for (int d = v->rank - 1; d >= 0; step *= v->dims[d--]) strides[d] = step;
}

// ---- nodes --------------------------------------------------------------------------------------

// Source: ONNX Reshape-14.
static bool read_shape(const assay_sized_layer_t* l, const assay_node_t* n, const made_t* x,
                       int* rank, int64_t* dims) {
  const bool zeros = assay_attr_i64(n, "allowzero", 0) != 0;
  int64_t known = 1;
  int open = -1;
  if (!assay_known_list(l, n, "shape", 1, ASSAY_KERNEL_RANK, dims, rank) || *rank < 0) return false;
  for (int d = 0; d < *rank; d++) {
    if (dims[d] == 0 && !zeros && d < x->rank) dims[d] = x->dims[d];
    if (dims[d] == -1 && open < 0)
      open = d;
    else if (dims[d] <= 0 || !assay_mul_i64(known, dims[d], &known))
      return false;
  }
  const int64_t size = size_of(x);
  if (open < 0) return known == size;
  dims[open] = size / known;
  return size % known == 0;
}

static bool reshape(mover_t* m, const assay_node_t* n, const made_t* x) {
  int64_t dims[ASSAY_KERNEL_RANK];
  int rank;
  if (!read_shape(m->l, n, x, &rank, dims)) return false;
  made_t* y = add(m, n->outputs[0], rank, dims);
  if (y && m->columns)
    memcpy(y->rows, x->rows, (size_t)(size_of(x) / m->columns) * sizeof *y->rows);
  return y;
}

static bool transpose(mover_t* m, const assay_node_t* n, const made_t* x) {
  int64_t perm[ASSAY_KERNEL_RANK], strides[ASSAY_KERNEL_RANK];
  int count;
  piece_t p = {.rank = x->rank};
  if (!assay_known_list(m->l, n, "perm", SIZE_MAX, ASSAY_KERNEL_RANK, perm, &count) ||
      (count >= 0 && count != x->rank))
    return false;
  strides_of(x, strides);
  for (int i = 0; i < x->rank; i++) {
    if (count < 0) perm[i] = x->rank - 1 - i;
    if (perm[i] < 0 || perm[i] >= x->rank) return false;
    p.dims[i] = x->dims[perm[i]];
    p.from[i] = strides[perm[i]];
  }
  made_t* y = add(m, n->outputs[0], x->rank, p.dims);
  if (!y) return false;
  strides_of(y, p.to);
  while (p.rank && perm[p.rank - 1] == p.rank - 1) p.rank--;
  p.inner = assay_dims_product(x->dims, p.rank, x->rank);
  move(m, &p, x, y);
  return true;
}

static bool take_part(mover_t* m, const assay_value_t* v, const made_t* x, const layer_slice_t* s) {
  piece_t p = {.rank = x->rank};
  int64_t strides[ASSAY_KERNEL_RANK];
  made_t* y = add(m, v, x->rank, s->dims);
  if (!y) return false;
  strides_of(x, strides);
  strides_of(y, p.to);
  for (int d = 0; d < x->rank; d++) {
    p.dims[d] = s->dims[d];
    p.from[d] = s->step[d] * strides[d];
    p.from_at += s->first[d] * strides[d];
  }
  while (p.rank && s->dims[p.rank - 1] == x->dims[p.rank - 1]) p.rank--;
  p.inner = assay_dims_product(x->dims, p.rank, x->rank);
  move(m, &p, x, y);
  return true;
}

static bool parts(mover_t* m, const assay_node_t* n, const made_t* x) {
  layer_slice_t slices[ASSAY_KERNEL_OPERANDS];
  const bool known = is_op(n, "Slice")
                         ? n->n_outputs == 1 && layer_slice_read(m->l, n, x->rank, x->dims, slices)
                         : layer_split_read(m->l, n, x->rank, x->dims, slices);
  for (size_t i = 0; known && i < n->n_outputs; i++)
    if (n->outputs[i] && !take_part(m, n->outputs[i], x, &slices[i])) return false;
  return known;
}

static bool concat(mover_t* m, const assay_node_t* n, const made_t* first) {
  // Concat-1 joins along axis 1 by default, later versions have no default.
  const int axis = assay_known_axis(assay_attr_i64(n, "axis", 1), first->rank);
  int64_t dims[ASSAY_KERNEL_RANK], at = 0;
  if (axis < 0) return false;
  memcpy(dims, first->dims, sizeof dims);
  dims[axis] = 0;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const made_t* x = find(m, n->inputs[i]);
    if (!x || x->rank != first->rank) return false;
    for (int d = 0; d < x->rank; d++)
      if (d != axis && x->dims[d] != dims[d]) return false;
    dims[axis] += x->dims[axis];
  }
  made_t* y = add(m, n->outputs[0], first->rank, dims);
  for (size_t i = 0; y && i < n->n_inputs; i++) {
    const made_t* x = find(m, n->inputs[i]);
    piece_t p = {.rank = axis + 1, .inner = assay_dims_product(dims, axis + 1, x->rank)};
    memcpy(p.dims, x->dims, sizeof p.dims);
    strides_of(x, p.from);
    strides_of(y, p.to);
    p.to_at = at * p.to[axis];
    at += x->dims[axis];
    move(m, &p, x, y);
  }
  return y;
}

// False: it moves something else, or not by numbers that are known.
static bool add_node(mover_t* m, const assay_node_t* n) {
  const made_t* x = n->n_inputs ? find(m, n->inputs[0]) : NULL;
  if (!x) return false;
  const made_t of = *x;
  if (is_op(n, "Reshape")) return reshape(m, n, &of);
  if (is_op(n, "Transpose")) return transpose(m, n, &of);
  if (is_op(n, "Concat")) return concat(m, n, &of);
  return takes_parts(n) && parts(m, n, &of);
}

// ---- entry --------------------------------------------------------------------------------------

// The value `moved`; NULL: it is not made of the source by nodes that only move.
static made_t* follow(mover_t* m, const moved_source_t* from, const assay_value_t* moved) {
  const assay_layer_t* layer = m->l->layer;
  made_t* x = add(m, from->value, from->rank, from->dims);
  for (int64_t i = 0; x && m->columns && i < size_of(x) / m->columns; i++) x->rows[i] = (int32_t)i;
  for (size_t i = 0; x && !m->status && i < layer->n_nodes; i++) {
    const made_t* y = find(m, moved);
    if (y && y != x) break;
    add_node(m, layer->nodes[i]);
  }
  made_t* y = x && !m->status ? (made_t*)(uintptr_t)find(m, moved) : NULL;
  return y == x ? NULL : y;
}

static void deinit(mover_t* m) {
  for (size_t i = 0; i < m->n; i++) assay_free(m->made[i].rows);
}

int64_t layer_moved_columns(const assay_sized_layer_t* l, const moved_source_t* from,
                            const assay_value_t* moved, int* out_rank, int64_t* out_dims) {
  mover_t m = {.l = l};
  const made_t* y = follow(&m, from, moved);
  if (!y || !size_of(y) || size_of(y) != size_of(&m.made[0])) return 0;
  *out_rank = y->rank;
  memcpy(out_dims, y->dims, sizeof y->dims);
  return m.most;
}

// The rows of each sample, or of whatever comes again: so many are a permutation of their own.
static int64_t period_of(const int32_t* rows, int64_t n) {
  int64_t largest = -1;
  for (int64_t p = 1; p < n; p++) {
    if (rows[p - 1] > largest) largest = rows[p - 1];
    if (largest != p - 1 || n % p) continue;
    int64_t i = p;
    while (i < n && rows[i] == rows[i - p] + p) i++;
    if (i == n) return p;
  }
  return n;
}

assay_status_t layer_moved_rows(const assay_sized_layer_t* l, const moved_source_t* from,
                                const assay_value_t* moved, int64_t columns, moved_table_t* out) {
  mover_t m = {.l = l, .columns = columns};
  made_t* y = follow(&m, from, moved);
  *out = (moved_table_t){NULL, 0};
  if (y) {
    *out = (moved_table_t){y->rows, period_of(y->rows, size_of(y) / columns)};
    y->rows = NULL;
  }
  deinit(&m);
  return m.status;
}

// The other way round; false: some row comes twice, or never.
static bool invert(const moved_table_t* from, int32_t* to) {
  for (int64_t i = 0; i < from->period; i++) to[i] = -1;
  for (int64_t i = 0; i < from->period; i++) {
    const int32_t row = from->rows[i];
    if (row >= from->period || to[row] >= 0) return false;
    to[row] = (int32_t)i;
  }
  return true;
}

// Every node but the first is one that moves, and the last one makes the output.
static bool only_moves(const assay_sized_layer_t* l) {
  const assay_layer_t* layer = l->layer;
  bool moves = layer->n_nodes > 1;
  for (size_t i = 1; i < layer->n_nodes; i++)
    moves &= layer_is_move(layer->nodes[i]) || takes_parts(layer->nodes[i]);
  return moves;
}

assay_status_t layer_moved_places(const assay_sized_layer_t* l, const assay_operand_t* x,
                                  int64_t columns, moved_table_t* out) {
  moved_source_t source = {.value = l->layer->nodes[0]->outputs[0], .rank = x->rank};
  moved_table_t from = {NULL, 0};
  int32_t* to = NULL;
  int64_t dims[ASSAY_KERNEL_RANK];
  int rank;
  *out = from;
  memcpy(source.dims, x->dims, sizeof source.dims);
  if (!only_moves(l)) return NULL;
  const int64_t most = layer_moved_columns(l, &source, l->out[0].value, &rank, dims);
  if (!most || most % columns || x->size != l->out[0].size) return NULL;
  ASSAY_TRY(layer_moved_rows(l, &source, l->out[0].value, columns, &from));
  if (!from.rows) return NULL;
  assay_status_t st = assay_new_array((size_t)from.period, sizeof *to, &to);
  if (!st && invert(&from, to))
    *out = (moved_table_t){to, from.period};
  else
    assay_free(to);
  assay_free(from.rows);
  return st;
}
