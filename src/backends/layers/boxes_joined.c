// The boxes of parts of one tensor that are joined again (the pass joined_parts): each value inside
// the layer is made of pieces of the input.
#include <string.h>

#include "backends/constants.h"
#include "backends/layers/boxes_internal.h"
#include "backends/layers/slice.h"

enum { MAX_PIECES = 128, MAX_VALUES = 64 };

// Elements [at, at + dims) of a value, and where they lie in the input.
typedef struct piece {
  int64_t at[ASSAY_KERNEL_RANK], dims[ASSAY_KERNEL_RANK], from_strides[ASSAY_KERNEL_RANK];
  int64_t from_at;
} piece_t;

typedef struct made {
  const assay_value_t* value;
  int64_t dims[ASSAY_KERNEL_RANK];
  size_t first, n;  // pieces
} made_t;

typedef struct joiner {
  const boxes_maker_t* k;
  int rank;
  piece_t pieces[MAX_PIECES];
  size_t n_pieces;
  made_t values[MAX_VALUES];
  size_t n_values;
} joiner_t;

static const made_t* find(const joiner_t* j, const assay_value_t* v) {
  for (size_t i = 0; i < j->n_values; i++)
    if (j->values[i].value == v) return &j->values[i];
  return NULL;
}

// A value with no pieces yet; NULL: there is no room for it.
static made_t* add_value(joiner_t* j, const assay_value_t* v, const int64_t* dims) {
  if (j->n_values == MAX_VALUES) return NULL;
  made_t* m = &j->values[j->n_values++];
  *m = (made_t){.value = v, .first = j->n_pieces};
  memcpy(m->dims, dims, sizeof m->dims);
  return m;
}

static bool add_piece(joiner_t* j, made_t* to, const piece_t* p) {
  for (int d = 0; d < j->rank; d++)
    if (p->dims[d] <= 0) return true;
  if (j->n_pieces == MAX_PIECES) return false;
  j->pieces[j->n_pieces++] = *p;
  to->n++;
  return true;
}

static bool add_input(joiner_t* j) {
  const assay_operand_t* x = j->k->x;
  piece_t all = {.from_at = 0};
  made_t* m = add_value(j, x->value, x->dims);
  memcpy(all.dims, x->dims, sizeof all.dims);
  memcpy(all.from_strides, j->k->x_strides, sizeof all.from_strides);
  return m && add_piece(j, m, &all);
}

// What a slice takes of a piece: elements first + i * step of its value are element i.
static void cut(const joiner_t* j, const layer_slice_t* s, piece_t* p) {
  for (int d = 0; d < j->rank; d++) {
    const int64_t step = s->step[d] ? s->step[d] : 1, before = p->at[d] - s->first[d];
    const int64_t end = before + p->dims[d];  // of the piece, counted from the slice's first
    const int64_t low = before <= 0 ? 0 : (before + step - 1) / step;
    int64_t high = end <= 0 ? 0 : (end + step - 1) / step;
    if (high > s->dims[d]) high = s->dims[d];
    p->from_at += (low * step - before) * p->from_strides[d];
    p->from_strides[d] *= step;
    p->at[d] = low;
    p->dims[d] = high - low;
  }
}

static bool take(joiner_t* j, const assay_value_t* v, const made_t* from, const layer_slice_t* s) {
  const made_t of = *from;
  made_t* m = add_value(j, v, s->dims);
  bool ok = m;
  for (int d = 0; d < j->rank; d++) ok &= s->step[d] >= 0;
  for (size_t i = 0; ok && i < of.n; i++) {
    piece_t p = j->pieces[of.first + i];
    cut(j, s, &p);
    ok = add_piece(j, m, &p);
  }
  return ok;
}

static bool add_parts(joiner_t* j, const assay_node_t* n) {
  layer_slice_t parts[ASSAY_KERNEL_OPERANDS];
  const made_t* x = find(j, n->inputs[0]);
  if (!x) return false;
  int64_t dims[ASSAY_KERNEL_RANK];
  memcpy(dims, x->dims, sizeof dims);
  const bool slice = strcmp(n->op_type, "Slice") == 0;
  if (slice ? n->n_outputs != 1 || !layer_slice_read(j->k->l, n, j->rank, dims, parts)
            : !layer_split_read(j->k->l, n, j->rank, dims, parts))
    return false;
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] && !take(j, n->outputs[i], find(j, n->inputs[0]), &parts[i])) return false;
  return true;
}

static bool add_joined(joiner_t* j, const assay_node_t* n) {
  // Concat-1 joins along axis 1 by default, later versions have no default.
  const int axis = assay_known_axis(assay_attr_i64(n, "axis", 1), j->rank);
  const made_t* first = find(j, n->inputs[0]);
  made_t* m = axis < 0 || !first ? NULL : add_value(j, n->outputs[0], first->dims);
  if (!m) return false;
  m->dims[axis] = 0;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const made_t* from = find(j, n->inputs[i]);
    if (!from) return false;
    for (int d = 0; d < j->rank; d++)
      if (d != axis && from->dims[d] != m->dims[d]) return false;
    for (size_t p = 0; p < from->n; p++) {
      piece_t piece = j->pieces[from->first + p];
      piece.at[axis] += m->dims[axis];
      if (!add_piece(j, m, &piece)) return false;
    }
    m->dims[axis] += from->dims[axis];
  }
  return true;
}

static assay_status_t add_boxes(const joiner_t* j, const made_t* y, bool* ok) {
  const boxes_maker_t* k = j->k;
  *ok = y && y->value == k->y->value && k->y->rank == j->rank;
  for (int d = 0; *ok && d < j->rank; d++) *ok = y->dims[d] == k->y->dims[d];
  for (size_t i = 0; *ok && i < y->n; i++) {
    const piece_t* p = &j->pieces[y->first + i];
    box_t b = boxes_whole(k, j->rank, p->dims, p->from_strides, k->y_strides);
    b.from_at = p->from_at;
    for (int d = 0; d < j->rank; d++) b.to_at += p->at[d] * k->y_strides[d];
    ASSAY_TRY(boxes_add(k->m, b));
  }
  return NULL;
}

assay_status_t boxes_of_joined(const boxes_maker_t* k, bool* ok) {
  joiner_t j = {.k = k, .rank = k->x->rank};
  const assay_layer_t* layer = k->l->layer;
  *ok = add_input(&j);
  for (size_t i = 0; *ok && i < layer->n_nodes; i++) {
    const assay_node_t* n = layer->nodes[i];
    const bool concat = strcmp(n->op_type, "Concat") == 0;
    const bool parts = strcmp(n->op_type, "Slice") == 0 || strcmp(n->op_type, "Split") == 0;
    *ok = !*n->domain && (concat || parts) && (concat ? add_joined(&j, n) : add_parts(&j, n));
  }
  return *ok ? add_boxes(&j, &j.values[j.n_values - 1], ok) : NULL;
}
