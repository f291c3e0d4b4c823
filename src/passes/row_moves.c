// Which nodes move whole rows.
#include "passes/row_moves.h"

#include "base/alloc.h"
#include "passes/edit.h"
#include "passes/parts.h"

enum { X, MAX_RANK = 8 };

static bool is_float(const assay_value_t* v) {
  const assay_type_t elem = assay_elem_of(v);
  return elem == ASSAY_TYPE_FLOAT || elem == ASSAY_TYPE_FLOAT16 || elem == ASSAY_TYPE_BFLOAT16;
}

// Whether only the first dimension is open: where rows go is the same for all samples then,
// whatever the batch is. Lengths that grow would need a table each.
static bool is_moved_alike(const assay_value_t* v) {
  const int rank = assay_rank_of(v);
  bool known = rank >= 0 && rank <= MAX_RANK;
  for (int d = 1; d < rank; d++) known &= assay_dim_of(v, d) >= 1;
  return known;
}

int64_t assay_common_columns(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// The elements of dimensions from d on; 0: they are not known.
static int64_t elements_from(const assay_value_t* v, int d) {
  int64_t n = 1;
  for (; d < assay_rank_of(v); d++) {
    const int64_t size = assay_dim_of(v, d);
    if (size < 1 || !assay_mul_i64(n, size, &n)) return 0;
  }
  return n;
}

static int64_t behind_axis(const assay_node_t* n, int64_t axis) {
  const int rank = assay_rank_of(n->inputs[X]);
  if (axis < 0) axis += rank;
  return axis < 0 || axis >= rank ? 0 : elements_from(n->inputs[X], (int)axis + 1);
}

// ---- operators; 0: not by whole rows ------------------------------------------------------------

static int64_t of_transpose(const assay_node_t* n) {
  const int rank = assay_rank_of(n->inputs[X]);
  size_t count = 0;
  const int64_t* perm = assay_attr_ints(n, "perm", &count);
  int kept = rank;
  if (!perm || count != (size_t)rank) return 0;
  while (kept && perm[kept - 1] == kept - 1) kept--;
  return elements_from(n->inputs[X], kept);
}

static int64_t of_concat(const assay_node_t* n) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (!n->inputs[i] || !is_float(n->inputs[i])) return 0;
  return behind_axis(n, assay_attr_i64(n, "axis", 1));
}

static int64_t of_split(const assay_node_t* n) {
  return assay_takes_parts(n) ? behind_axis(n, assay_attr_i64(n, "axis", 0)) : 0;
}

static int64_t of_slice(const assay_node_t* n) {
  enum { AXES = 3 };
  int64_t axes[MAX_RANK], columns = 0;
  const int count = n->n_inputs > AXES ? assay_ints_of(n->inputs[AXES], MAX_RANK, axes) : -1;
  if (count < 1 || !assay_takes_parts(n)) return 0;
  for (int i = 0; i < count; i++) {
    const int64_t behind = behind_axis(n, axes[i]);
    if (!behind) return 0;
    columns = assay_common_columns(columns, behind);
  }
  return columns;
}

static bool is_reshape(const assay_node_t* n, const bool* of_sizes) {
  const assay_value_t* shape = assay_is(n, "Reshape") && n->n_inputs == 2 ? n->inputs[1] : NULL;
  return shape && (assay_pass_constant(shape) ||
                   (shape->producer && shape->graph == n->graph && of_sizes[shape->producer->id]));
}

assay_status_t assay_row_moves_sizes(const assay_pass_context_t* c, bool** out) {
  ASSAY_TRY(assay_new_array((size_t)c->model->n_node_ids, sizeof **out, out));
  assay_mark_of_sizes(c->model, *out);
  return NULL;
}

bool assay_moves_rows(const assay_node_t* n, const bool* of_sizes, int64_t* out_columns) {
  static const struct {
    const char* op;
    int64_t (*columns)(const assay_node_t* n);
  } moves[] = {
      {"Transpose", of_transpose}, {"Concat", of_concat}, {"Split", of_split}, {"Slice", of_slice}};
  *out_columns = 0;
  if (!n->n_inputs || !n->inputs[X] || !is_float(n->inputs[X])) return false;
  bool known = is_moved_alike(n->inputs[X]);
  for (size_t i = 0; i < n->n_outputs; i++)
    known &= !n->outputs[i] || is_moved_alike(n->outputs[i]);
  if (!known) return false;
  for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
    if (assay_is(n, moves[i].op)) *out_columns = moves[i].columns(n);
  return *out_columns || is_reshape(n, of_sizes);
}

size_t assay_moved_inputs(const assay_node_t* n) { return assay_is(n, "Concat") ? n->n_inputs : 1; }

// ---- above a value ------------------------------------------------------------------------------

static bool contains(const assay_row_moves_t* m, const assay_node_t* n) {
  for (size_t i = 0; i < m->n; i++)
    if (m->nodes[i] == n) return true;
  return false;
}

static bool reads_all_of(const assay_row_moves_t* m, const assay_uses_t* uses,
                         const assay_node_t* n) {
  for (size_t o = 0; o < n->n_outputs; o++) {
    const assay_value_t* v = n->outputs[o];
    int inside = 0;
    if (!v) continue;
    for (size_t i = 0; i < m->n; i++)
      for (size_t k = 0; k < m->nodes[i]->n_inputs; k++) inside += m->nodes[i]->inputs[k] == v;
    if (v->is_output || inside != uses->n_reads[v->id]) return false;
  }
  return true;
}

static bool add(const assay_pass_context_t* c, const bool* of_sizes, assay_row_moves_t* m,
                assay_node_t* n) {
  int64_t columns;
  if (m->n == ASSAY_ROW_MOVES || !assay_pass_may_group(c, n) ||
      !assay_moves_rows(n, of_sizes, &columns))
    return false;
  columns = assay_common_columns(m->columns, columns);
  if (columns && columns < ASSAY_ROW_COLUMNS) return false;
  m->columns = columns;
  m->nodes[m->n++] = n;
  return true;
}

// Adds one node that may join; false if there is none.
static bool grow(const assay_pass_context_t* c, const assay_uses_t* uses, const bool* of_sizes,
                 assay_row_moves_t* m) {
  for (size_t i = 0; i < m->n; i++)
    for (size_t k = 0; k < assay_moved_inputs(m->nodes[i]); k++) {
      assay_node_t* n = m->nodes[i]->inputs[k]->producer;
      if (n && n->graph == m->nodes[0]->graph && !contains(m, n) && reads_all_of(m, uses, n) &&
          add(c, of_sizes, m, n))
        return true;
    }
  return false;
}

// The one value that they move; NULL: there are several. What a layer has made is stored in a
// format; what a caller gives is not, and enters layers as it is where they move it.
static const assay_value_t* source_of(const assay_row_moves_t* m) {
  const assay_value_t* x = NULL;
  for (size_t i = 0; i < m->n; i++)
    for (size_t k = 0; k < assay_moved_inputs(m->nodes[i]); k++) {
      const assay_value_t* v = m->nodes[i]->inputs[k];
      if (v->producer && contains(m, v->producer)) continue;
      if (x && x != v) return NULL;
      x = v;
    }
  return x && x->producer ? x : NULL;
}

void assay_row_moves_above(const assay_pass_context_t* c, const assay_uses_t* uses,
                           const bool* of_sizes, const assay_value_t* v, assay_row_moves_t* out) {
  assay_row_moves_t m = {.n = 0};
  *out = m;
  // What has other outputs, too, would take these along.
  if (!v->producer || v->producer->n_outputs != 1 || !assay_uses_once(uses, v) ||
      !add(c, of_sizes, &m, v->producer))
    return;
  do {
    m.source = source_of(&m);
    if (m.source && m.columns) *out = m;
  } while (grow(c, uses, of_sizes, &m));
}
