// Whether the sizes that a layer's outputs are said to have are those that its operators give them.
#include "exec/segment/implied.h"

#include <string.h>

#include "base/alloc.h"
#include "ops/infer.h"

// A layer's nodes as a model of their own: its values have the sizes of this run, and nothing that
// the file declares.
typedef struct copied {
  assay_model_t* model;
  const assay_sized_layer_t* layer;
  const assay_sizes_t* sizes;
  const assay_value_t** from;  // by number
  assay_value_t** values;
  size_t n, capacity;
} copied_t;

// Numbers for all values that the layer's nodes name.
static assay_status_t reserve(copied_t* c) {
  for (size_t i = 0; i < c->layer->layer->n_nodes; i++)
    c->capacity += c->layer->layer->nodes[i]->n_inputs + c->layer->layer->nodes[i]->n_outputs;
  ASSAY_TRY(assay_arena_new(c->model->arena, c->capacity, sizeof *c->from, &c->from));
  return assay_arena_new(c->model->arena, c->capacity, sizeof *c->values, &c->values);
}

static assay_value_t* copy_of(const copied_t* c, const assay_value_t* v) {
  for (size_t i = 0; i < c->n; i++)
    if (c->from[i] == v) return c->values[i];
  return NULL;
}

// What expressions say of the elements of an operand, as numbers.
static assay_status_t copy_content(const copied_t* c, const assay_content_t* from,
                                   const assay_content_t** out) {
  assay_content_t* to = NULL;
  if (!from) return NULL;
  ASSAY_TRY(assay_arena_new(c->model->arena, 1, sizeof *to, &to));
  ASSAY_TRY(assay_arena_new(c->model->arena, (size_t)from->n, sizeof *to->elems, &to->elems));
  to->rank = from->rank;
  to->n = from->n;
  for (int64_t i = 0; i < from->n; i++) {
    int64_t x;
    if (assay_sizes_eval(c->sizes, from->elems[i], &x))
      to->elems[i] = assay_dim_const(c->model->dims, x);
  }
  *out = to;
  return NULL;
}

static assay_status_t copy_type(const copied_t* c, const assay_operand_t* o,
                                const assay_valtype_t** out) {
  const assay_dim_t* dims[ASSAY_KERNEL_RANK];
  for (int i = 0; i < o->rank; i++) dims[i] = assay_dim_const(c->model->dims, o->dims[i]);
  return assay_valtype_tensor(c->model, o->value->type->elem, o->rank, dims, out);
}

static assay_status_t copy_value(copied_t* c, const assay_value_t* v, assay_value_t** out) {
  if (!v) return *out = NULL, NULL;
  if ((*out = copy_of(c, v))) return NULL;
  const assay_operand_t* o = assay_sized_input(c->layer, v);
  assay_value_t* to = NULL;
  ASSAY_TRY(assay_arena_new(c->model->arena, 1, sizeof *to, &to));
  to->name = v->name;
  to->graph = v->graph;
  to->id = (int)c->n;
  if (o) {
    ASSAY_TRY(copy_type(c, o, &to->type));
    to->constant = (assay_tensor_t*)(uintptr_t)o->constant;
    if (!o->constant) ASSAY_TRY(copy_content(c, v->content, &to->content));
  }
  c->from[c->n] = v;
  c->values[c->n++] = to;
  *out = to;
  return NULL;
}

static assay_status_t copy_node(copied_t* c, const assay_node_t* from, assay_node_t** out) {
  assay_node_t* to = NULL;
  ASSAY_TRY(assay_arena_new(c->model->arena, 1, sizeof *to, &to));
  *to = *from;
  ASSAY_TRY(assay_arena_new(c->model->arena, from->n_inputs, sizeof *to->inputs, &to->inputs));
  ASSAY_TRY(assay_arena_new(c->model->arena, from->n_outputs, sizeof *to->outputs, &to->outputs));
  for (size_t i = 0; i < from->n_inputs; i++)
    ASSAY_TRY(copy_value(c, from->inputs[i], &to->inputs[i]));
  for (size_t i = 0; i < from->n_outputs; i++)
    ASSAY_TRY(copy_value(c, from->outputs[i], &to->outputs[i]));
  *out = to;
  return NULL;
}

static bool is_of_sizes(const assay_valtype_t* t, const assay_operand_t* o) {
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || t->rank != o->rank) return false;
  for (int i = 0; i < t->rank; i++) {
    int64_t size;
    if (!assay_dim_value(t->dims[i], &size) || size != o->dims[i]) return false;
  }
  return true;
}

static assay_status_t compare(copied_t* c, bool* out) {
  const assay_layer_t* l = c->layer->layer;
  assay_node_t* node = NULL;
  ASSAY_TRY(reserve(c));
  for (size_t i = 0; i < l->n_nodes; i++) {
    ASSAY_TRY(copy_node(c, l->nodes[i], &node));
    assay_status_t st = assay_infer_node(c->model, c->capacity, node);
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY) {
      assay_status_free(st);  // running it will say so
      return *out = false, NULL;
    }
    ASSAY_TRY(st);
  }
  *out = true;
  for (size_t i = 0; *out && i < c->layer->n_out; i++) {
    const assay_operand_t* o = &c->layer->out[i];
    if (o->value) *out = is_of_sizes(copy_of(c, o->value)->type, o);
  }
  return NULL;
}

void assay_implied_deinit(assay_implied_t* memory) {
  if (memory->model) assay_model_release(memory->model);
  *memory = (assay_implied_t){0};
}

assay_status_t assay_sizes_are_implied(assay_implied_t* memory, const assay_sized_layer_t* l,
                                       const assay_sizes_t* sizes, bool* out) {
  enum { QUESTIONS = 64 };  // of a model, which only grows
  const assay_layer_t* layer = l->layer;
  *out = true;
  if (!layer->nodes[layer->n_nodes - 1]->op->infer) return NULL;
  if (memory->n_asked == QUESTIONS) assay_implied_deinit(memory);
  if (!memory->model) ASSAY_TRY(assay_model_create(&memory->model));
  memory->n_asked++;
  copied_t c = {.model = memory->model, .layer = l, .sizes = sizes};
  return compare(&c, out);
}
