// Shapes that mean something by accident: operands that are stretched, batch sizes that are written
// into the model.
#include "ranges/broadcasts.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/op.h"

void assay_broadcasts_deinit(assay_broadcasts_t* b) {
  assay_free(b->at);
  assay_free(b->baked);
  *b = (assay_broadcasts_t){0};
}

const char* assay_baked_name(assay_baked_kind_t kind) {
  static const char* const names[] = {[ASSAY_BAKED_RESHAPE] = "reshape",
                                      [ASSAY_BAKED_EXPAND] = "expand",
                                      [ASSAY_BAKED_CONSTANT] = "constant",
                                      [ASSAY_BAKED_SQUEEZE] = "squeeze"};
  return names[kind];
}

static const assay_valtype_t* shaped(const assay_value_t* v) {
  const assay_valtype_t* t = v ? v->type : NULL;
  return t && t->kind == ASSAY_KIND_TENSOR && t->has_shape ? t : NULL;
}

static bool is_number(const assay_dim_t* d, int64_t n) {
  int64_t x;
  return d && assay_dim_value(d, &x) && x == n;
}

// "[N, 3, 1]"
static void put_shape(const assay_valtype_t* t, char* out, size_t capacity) {
  size_t n = 0;
  n += (size_t)snprintf(out, capacity, "[");
  for (int i = 0; i < t->rank && n < capacity; i++) {
    char text[40];
    n += (size_t)snprintf(out + n, capacity - n, "%s%s", i ? ", " : "",
                          assay_dim_text(t->dims[i], text, sizeof text));
  }
  if (n < capacity) snprintf(out + n, capacity - n, "]");
}

// ---- broadcasts ---------------------------------------------------------------------------------

// Operators that broadcast all of their inputs, or the first of them.
static size_t broadcasting_inputs(const assay_node_t* n) {
  static const char* const all[] = {"Max", "Min", "Sum", "Mean", "Where"};
  if (!n->op || *n->domain) return 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!strcmp(n->op_type, all[i])) return n->n_inputs;
  return n->op->flags & ASSAY_OP_POINTWISE && n->n_inputs >= 2 && !(n->op->flags & ASSAY_OP_RANDOM)
             ? 2
             : 0;
}

// How operand t lies in the output y: bit 0 stretched, bit 1 perhaps. `last`: dimensions at the end
// that do not broadcast.
static int stretched(const assay_valtype_t* t, const assay_valtype_t* y, int last) {
  int how = 0;
  for (int i = 0; i < y->rank - last; i++) {
    const int k = i - (y->rank - t->rank);
    if (k < 0) {
      how |= is_number(y->dims[i], 1) ? 0 : 1;
      continue;
    }
    int64_t x;
    if (t->dims[k] && y->dims[i] && assay_dim_same(t->dims[k], y->dims[i])) continue;
    if (is_number(t->dims[k], 1))
      how |= 1;
    else if (!(t->dims[k] && assay_dim_value(t->dims[k], &x)))
      how |= 2;
  }
  return how;
}

static assay_status_t keep(assay_broadcasts_t* b, const assay_broadcast_t* x) {
  ASSAY_TRY(assay_grow(&b->at, &b->cap, b->n + 1, sizeof *b->at));
  b->at[b->n++] = *x;
  b->n_plain += x->number;
  return NULL;
}

static assay_status_t inspect_operands(const assay_node_t* n, size_t n_operands, int last,
                                       assay_broadcasts_t* b) {
  const assay_valtype_t* y = n->n_outputs ? shaped(n->outputs[0]) : NULL;
  int how[16] = {0}, count = 0;
  if (!y || n_operands > 16) return NULL;
  for (size_t i = 0; i < n_operands && i < n->n_inputs; i++) {
    const assay_valtype_t* t = shaped(n->inputs[i]);
    if (!t || t->rank > y->rank) continue;
    how[i] = stretched(t, y, last);
    count += how[i] != 0;
  }
  for (size_t i = 0; i < n_operands && i < n->n_inputs; i++) {
    if (!how[i]) continue;
    const assay_valtype_t* t = shaped(n->inputs[i]);
    const assay_tensor_t* constant = assay_value_constant(n->inputs[i]);
    assay_broadcast_t x = {
        .node = n,
        .input = i,
        .number = constant && constant->kind == ASSAY_KIND_TENSOR && constant->size == 1,
        .both = count > 1,
        .unsure = how[i] == 2,
        .aligned = t->rank < y->rank};
    put_shape(t, x.from, sizeof x.from);
    put_shape(y, x.to, sizeof x.to);
    ASSAY_TRY(keep(b, &x));
  }
  return NULL;
}

// ---- baked sizes --------------------------------------------------------------------------------

// The batch: the first size of the graph's inputs. name NULL: a number.
typedef struct batch {
  const assay_dim_t* open;  // NULL: the model is static
  int64_t size;             // of a static one; 0: none is known
} batch_t;

static batch_t batch_of(const assay_graph_t* g) {
  batch_t b = {0};
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = shaped(g->inputs[i]);
    int64_t n;
    if (g->inputs[i]->constant || !t || !t->rank) continue;
    if (!t->dims[0] || !assay_dim_value(t->dims[0], &n)) {
      if (!b.open) b.open = t->dims[0];
    } else if (!b.size) {
      b.size = n;
    }
  }
  return b;
}

// Whether the first size of a value goes with the batch.
static bool is_batched(const batch_t* b, const assay_value_t* v) {
  const assay_valtype_t* t = shaped(v);
  int64_t n;
  if (!t || !t->rank || !t->dims[0]) return t && t->rank && b->open != NULL;
  const bool number = assay_dim_value(t->dims[0], &n);
  return b->open ? !number : number && b->size && n == b->size;
}

static assay_status_t keep_baked(assay_broadcasts_t* b, const assay_baked_t* x) {
  ASSAY_TRY(assay_grow(&b->baked, &b->cap_baked, b->n_baked + 1, sizeof *b->baked));
  b->baked[b->n_baked++] = *x;
  return NULL;
}

// The integers that a node is given as its second input, where they are constant; *out NULL: none.
static assay_status_t integers(const assay_node_t* n, assay_tensor_t** out) {
  assay_tensor_t* t = n->n_inputs > 1 ? assay_value_constant(n->inputs[1]) : NULL;
  *out = NULL;
  if (!t || t->kind != ASSAY_KIND_TENSOR || assay_type_store(t->type) != ASSAY_STORE_I64)
    return NULL;
  return assay_tensor_widen(t, out);
}

static assay_status_t inspect_reshape(const assay_node_t* n, const batch_t* batch,
                                      assay_broadcasts_t* b) {
  assay_tensor_t* shape;
  assay_status_t st = integers(n, &shape);
  bool rest = false;
  if (shape && shape->size && is_batched(batch, n->inputs[0]) && assay_i64(shape)[0] > 0) {
    const int64_t first = assay_i64(shape)[0];
    for (int64_t i = 1; i < shape->size; i++) rest |= assay_i64(shape)[i] == -1;
    // [1, -1] of an open batch and [B, ...] of a batch of B.
    assay_baked_t x = {.node = n, .kind = ASSAY_BAKED_RESHAPE, .size = first, .silent = rest};
    if (batch->open || first == batch->size) {
      snprintf(x.why, sizeof x.why,
               rest ? "Reshape hard-codes batch %lld, and another size passes: -1 takes what "
                      "is left, and samples "
                      "are mixed"
                    : "Reshape hard-codes batch %lld: another size fails there",
               (long long)first);
      st = keep_baked(b, &x);
    }
  }
  assay_tensor_release(shape);
  return st;
}

static assay_status_t inspect_expand(const assay_node_t* n, const batch_t* batch,
                                     assay_broadcasts_t* b) {
  assay_tensor_t* shape;
  assay_status_t st = integers(n, &shape);
  const assay_valtype_t* y = shaped(n->outputs[0]);
  if (shape && shape->size && y && y->rank == shape->size && y->rank > 1) {
    const int64_t first = assay_i64(shape)[0];
    const bool own =
        first > 1 && (batch->open ? !is_batched(batch, n->inputs[0]) : first == batch->size);
    const bool fixed = first > 1 && batch->open && is_batched(batch, n->inputs[0]);
    assay_baked_t x = {.node = n, .kind = ASSAY_BAKED_EXPAND, .size = first};
    snprintf(x.why, sizeof x.why,
             "expanded to %lld along the first dimension: another batch does not fit it",
             (long long)first);
    if (own || fixed) st = keep_baked(b, &x);
  }
  assay_tensor_release(shape);
  return st;
}

// A constant whose first size is that of the batch, where it meets one.
static assay_status_t inspect_constants(const assay_node_t* n, size_t n_operands,
                                        const batch_t* batch, assay_broadcasts_t* b) {
  const assay_valtype_t* y = n->n_outputs ? shaped(n->outputs[0]) : NULL;
  if (!y || y->rank < 2) return NULL;
  bool meets = false;
  for (size_t i = 0; i < n_operands && i < n->n_inputs; i++)
    meets |= !assay_value_constant(n->inputs[i]) && is_batched(batch, n->inputs[i]) &&
             shaped(n->inputs[i]) && shaped(n->inputs[i])->rank == y->rank;
  for (size_t i = 0; meets && i < n_operands && i < n->n_inputs; i++) {
    const assay_tensor_t* t = assay_value_constant(n->inputs[i]);
    if (!t || t->kind != ASSAY_KIND_TENSOR || t->rank != y->rank || t->dims[0] < 2) continue;
    if (!batch->open && t->dims[0] != batch->size) continue;
    assay_baked_t x = {.node = n, .kind = ASSAY_BAKED_CONSTANT, .size = t->dims[0]};
    snprintf(x.why, sizeof x.why,
             "constant '%.60s' holds %lld rows, one a sample: a batch of another size than that "
             "fails, a batch of 1 is "
             "stretched to it",
             n->inputs[i]->name, (long long)t->dims[0]);
    ASSAY_TRY(keep_baked(b, &x));
  }
  return NULL;
}

static assay_status_t inspect_squeeze(const assay_node_t* n, assay_broadcasts_t* b) {
  size_t n_axes;
  const bool axes = (n->n_inputs > 1 && n->inputs[1]) || assay_attr_ints(n, "axes", &n_axes);
  if (axes) return NULL;
  const assay_valtype_t* x = shaped(n->inputs[0]);
  // Sizes and other lists are not batches.
  if (x && x->rank <= 1) return NULL;
  assay_baked_t found = {.node = n, .kind = ASSAY_BAKED_SQUEEZE, .silent = true};
  char from[96] = "";
  if (x) put_shape(x, from, sizeof from);
  snprintf(found.why, sizeof found.why,
           "drops every size that is 1%s%s: at batch 1 the batch goes too, and what follows lines "
           "up otherwise",
           x ? " of " : "", from);
  return keep_baked(b, &found);
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t inspect(const assay_node_t* n, const batch_t* batch, assay_broadcasts_t* b) {
  const size_t operands = broadcasting_inputs(n);
  if (operands) {
    ASSAY_TRY(inspect_operands(n, operands, 0, b));
    return inspect_constants(n, operands, batch, b);
  }
  if (*n->domain) return NULL;
  if (!strcmp(n->op_type, "MatMul")) return inspect_operands(n, 2, 2, b);
  if (!strcmp(n->op_type, "Reshape")) return inspect_reshape(n, batch, b);
  if (!strcmp(n->op_type, "Expand")) return inspect_expand(n, batch, b);
  return strcmp(n->op_type, "Squeeze") ? NULL : inspect_squeeze(n, b);
}

assay_status_t assay_broadcasts_find(const assay_model_t* model, assay_broadcasts_t* out) {
  assay_broadcasts_t b = {0};
  const batch_t batch = batch_of(model->graph);
  assay_status_t st = NULL;
  for (size_t g = 0; !st && g < model->n_graphs; g++)
    for (size_t i = 0; !st && i < model->graphs[g]->n_nodes; i++)
      st = inspect(model->graphs[g]->nodes[i], &batch, &b);
  if (st) return assay_broadcasts_deinit(&b), st;
  *out = b;
  return NULL;
}
