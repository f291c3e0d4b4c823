// Operands that a node stretches without saying so get an Expand before them.
//
// Expand stretches both ways, so that the shape of the other operands is all that it needs: sizes
// stay open. Sources: ONNX Expand 8, 'Multidirectional Broadcasting'.
#include "ranges/broadcasts.h"

#include <string.h>

#include "base/alloc.h"
#include "edit/editor.h"
#include "passes/edit.h"

typedef struct job {
  assay_editing_t* e;
  const assay_broadcasts_t* found;
  size_t n_done, n_numbers, n_left;
} job_t;

// ---- shapes -------------------------------------------------------------------------------------

// The sizes of the node's output, for MatMul those of batches, as numbers; false: some are open.
static bool known_sizes(const assay_node_t* n, int last, const assay_value_t* operand, int64_t* out,
                        int* out_rank) {
  const assay_value_t* y = n->outputs[0];
  const int rank = assay_rank_of(y), own = assay_rank_of(operand);
  if (rank < 0) return false;
  for (int i = 0; i < rank; i++) {
    out[i] = i < rank - last ? assay_dim_of(y, i) : assay_dim_of(operand, own - (rank - i));
    if (out[i] < 0) return false;
  }
  *out_rank = rank;
  return true;
}

static assay_status_t shape_of(assay_edit_t* x, assay_node_t* n, assay_value_t* v, int last,
                               assay_value_t** out) {
  assay_node_t* node = NULL;
  const char* name = NULL;
  const assay_valtype_t* type = NULL;
  ASSAY_TRY(assay_arena_printf(x->c->model->arena, &name, "%s_shape", v->name));
  ASSAY_TRY(assay_valtype_unranked(x->c->model, ASSAY_TYPE_INT64, &type));
  ASSAY_TRY(assay_edit_insert(x, n, "Shape", 1, &v, name, type, &node));
  *out = node->outputs[0];
  if (!last) return NULL;
  // Of MatMul: the sizes before the matrices', and ones in their place.
  static const int64_t zero = 0, two = -2, ones[2] = {1, 1};
  assay_value_t *in[3] = {*out}, *one = NULL;
  ASSAY_TRY(assay_edit_ints(x, n->graph, "slice_from", 1, &zero, &in[1]));
  ASSAY_TRY(assay_edit_ints(x, n->graph, "slice_to", 1, &two, &in[2]));
  ASSAY_TRY(assay_edit_insert(x, n, "Slice", 3, in, name, type, &node));
  ASSAY_TRY(assay_edit_ints(x, n->graph, "ones", 2, ones, &one));
  assay_value_t* parts[2] = {node->outputs[0], one};
  ASSAY_TRY(assay_edit_insert(x, n, "Concat", 2, parts, name, type, &node));
  ASSAY_TRY(assay_edit_attr_i(x, node, "axis", 0));
  *out = node->outputs[0];
  return NULL;
}

// ---- operands -----------------------------------------------------------------------------------

static assay_status_t expand(assay_edit_t* x, assay_node_t* n, assay_value_t* v,
                             assay_value_t* shape, assay_value_t** out) {
  const char* name = NULL;
  const assay_valtype_t* type = NULL;
  assay_node_t* node = NULL;
  assay_value_t* in[2] = {v, shape};
  ASSAY_TRY(assay_arena_printf(x->c->model->arena, &name, "%s_expanded", v->name));
  ASSAY_TRY(assay_valtype_unranked(x->c->model, assay_elem_of(v), &type));
  ASSAY_TRY(assay_edit_insert(x, n, "Expand", 2, in, name, type, &node));
  *out = node->outputs[0];
  return NULL;
}

static size_t operands(const assay_node_t* n, int last) { return last ? 2 : n->n_inputs; }

static assay_status_t expand_operand(assay_edit_t* x, assay_node_t* n, size_t i, int last,
                                     assay_value_t* const* was) {
  int64_t sizes[ASSAY_MAX_RANK];
  int rank = 0;
  assay_value_t *v = n->inputs[i], *shape = NULL;
  if (known_sizes(n, last, v, sizes, &rank)) {
    ASSAY_TRY(assay_edit_ints(x, n->graph, "expanded_shape", rank, sizes, &shape));
    ASSAY_TRY(expand(x, n, v, shape, &v));
    return assay_edit_set_input(x, n, i, v);
  }
  // One operand that has the whole shape does; else all of them in turn.
  const assay_value_t* whole = NULL;
  for (size_t k = 0; k < operands(n, last); k++)
    if (k != i && was[k] && assay_same_static_shape(was[k], n->outputs[0])) whole = was[k];
  for (size_t k = 0; k < operands(n, last); k++) {
    if (k == i || !was[k] || (whole && was[k] != whole)) continue;
    if (assay_value_constant(was[k]) && assay_value_constant(was[k])->size == 1) continue;
    ASSAY_TRY(shape_of(x, n, was[k], last, &shape));
    ASSAY_TRY(expand(x, n, v, shape, &v));
    if (whole) break;
  }
  return assay_edit_set_input(x, n, i, v);
}

static bool can_expand(const assay_node_t* n, size_t input, int last) {
  // Not of operators whose further inputs are parameters, such as Clip's limits.
  static const char* const names[] = {"Add",
                                      "Sub",
                                      "Mul",
                                      "Div",
                                      "Pow",
                                      "And",
                                      "Or",
                                      "Xor",
                                      "Less",
                                      "Equal",
                                      "Greater",
                                      "LessOrEqual",
                                      "GreaterOrEqual",
                                      "PRelu",
                                      "Mod",
                                      "BitShift",
                                      "Max",
                                      "Min",
                                      "Sum",
                                      "Mean",
                                      "Where",
                                      "BitwiseAnd",
                                      "BitwiseOr",
                                      "BitwiseXor",
                                      "MatMul"};
  bool known = false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    known |= strcmp(n->op_type, names[i]) == 0;
  if (!known) return false;
  if (n->op->flags & ASSAY_OP_POINTWISE && assay_attr_i64(n, "broadcast", 0)) return false;
  return !last ||
         (assay_rank_of(n->inputs[input]) >= 2 && assay_rank_of(n->inputs[1 - input]) >= 2);
}

static assay_status_t visit(assay_edit_t* x, assay_node_t* n) {
  job_t* j = x->c->user;
  enum { MAX_OPERANDS = 16 };
  assay_value_t* was[MAX_OPERANDS];
  const int last = strcmp(n->op_type, "MatMul") == 0 ? 2 : 0;
  bool any = false;
  if (n->n_inputs > MAX_OPERANDS || !assay_editing_wants(j->e, n)) return NULL;
  if (n->n_inputs) memcpy(was, n->inputs, n->n_inputs * sizeof *was);
  for (size_t k = 0; k < j->found->n; k++) {
    const assay_broadcast_t* b = &j->found->at[k];
    if (b->node->id != n->id) continue;
    if (!can_expand(n, b->input, last)) {
      j->n_left += last != 0;
    } else if (b->number && !j->e->requests->numbers) {
      j->n_numbers++;
    } else {
      ASSAY_TRY(expand_operand(x, n, b->input, last, was));
      j->n_done++;
      any = true;
    }
  }
  const assay_node_t* node = n;
  return any ? assay_pass_record(x->c, ASSAY_PASS_CHANGED, &node, 1,
                                 "its operands are expanded before it")
             : NULL;
}

// Nodes that are put in move those after them: each is visited once, by id.
static assay_status_t run_pass(assay_pass_context_t* c) {
  assay_edit_t x = {0};
  bool* seen = NULL;
  const int n_ids = c->model->n_node_ids;
  ASSAY_TRY(assay_new_array((size_t)n_ids, sizeof *seen, &seen));
  assay_status_t st = assay_edit_begin(c, &x);
  if (st) return assay_free(seen), st;
  for (size_t k = 0; !st && k < c->model->n_graphs; k++)
    for (size_t i = 0; !st && i < c->model->graphs[k]->n_nodes; i++) {
      assay_node_t* n = c->model->graphs[k]->nodes[i];
      if (n->id >= n_ids || seen[n->id] || !n->op) continue;
      seen[n->id] = true;
      st = visit(&x, n);
    }
  assay_free(seen);
  return assay_edit_end(&x, st);
}

static const assay_pass_t pass = {.name = "broadcasts", .run = run_pass};

static assay_status_t run(assay_editing_t* e) {
  assay_broadcasts_t found = {0};
  job_t j = {.e = e, .found = &found};
  const int64_t opset = assay_model_opset(e->model, "");
  if (opset < 10)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "Expand and Slice by inputs need operator set 10; the model imports %lld",
                       (long long)opset);
  ASSAY_TRY(assay_broadcasts_find(e->model, &found));
  assay_rewrite_t* r = NULL;
  const assay_pass_options_t options = {.within_opset = true};
  assay_status_t st =
      assay_passes_run_own((assay_model_t*)(uintptr_t)e->model, &pass, &j, &options, &r);
  if (!st) e->out = assay_model_retain(r->model);
  assay_rewrite_destroy(r);
  assay_broadcasts_deinit(&found);
  if (st) return st;
  assay_editing_did(e, "operands", j.n_done);
  if (j.n_numbers)
    assay_str_printf(&e->notes, "operands that are a single number were left (--numbers): %zu\n",
                     j.n_numbers);
  if (j.n_left)
    assay_str_printf(&e->notes, "operands of MatMul that are vectors were left: %zu\n", j.n_left);
  return assay_str_status(&e->notes);
}

const assay_editor_t assay_editor_broadcasts = {
    .name = "broadcasts",
    .summary = "implicit broadcasts become Expand",
    .promise = ASSAY_PROMISE_SAME,
    .run = run,
};
