// The checksum of a plan: whatever a run depends on besides its inputs.
#include <string.h>

#include "base/hash.h"
#include "formats/format.h"
#include "plan/plan.h"

static uint64_t add_number(uint64_t h, int64_t x) { return assay_hash(&x, sizeof x, h); }

static uint64_t add_text(uint64_t h, const char* text) {
  return text ? assay_hash(text, strlen(text) + 1, h) : add_number(h, -1);
}

static uint64_t add_strings(uint64_t h, const assay_string_t* s, size_t n) {
  for (size_t i = 0; i < n; i++)
    h = assay_hash(s[i].text, s[i].len, add_number(h, (int64_t)s[i].len));
  return h;
}

static uint64_t add_tensor(uint64_t h, const assay_tensor_t* t) {
  if (!t) return add_number(h, -1);
  h = add_number(add_number(h, t->kind), t->type);
  for (int64_t i = 0; i < t->n_items; i++) h = add_tensor(h, t->items[i]);
  if (t->kind != ASSAY_KIND_TENSOR) return h;
  h = assay_hash(t->dims, (size_t)t->rank * sizeof *t->dims, add_number(h, t->store));
  if (t->store == ASSAY_STORE_STR) return add_strings(h, assay_strings(t), (size_t)t->size);
  int64_t bytes = 0;
  if (t->store != ASSAY_STORE_PACKED && t->store != ASSAY_STORE_NARROW)
    bytes = t->size * (int64_t)assay_store_elem_bytes(t->store);
  else if (!assay_type_packed_bytes(assay_tensor_lies_as(t), t->size, &bytes))
    return h;
  return assay_hash(t->data, (size_t)bytes, h);
}

// Attributes with graphs: those are layers of their own.
static uint64_t add_attribute(uint64_t h, const assay_attr_t* a) {
  h = add_number(add_number(add_text(h, a->name), a->type), (int64_t)a->n);
  switch (a->type) {
    case ASSAY_ATTR_FLOAT:
      return assay_hash(&a->u.f, sizeof a->u.f, h);
    case ASSAY_ATTR_INT:
      return add_number(h, a->u.i);
    case ASSAY_ATTR_STRING:
      return add_strings(h, &a->u.s, 1);
    case ASSAY_ATTR_TENSOR:
      return add_tensor(h, a->u.t);
    case ASSAY_ATTR_FLOATS:
      return assay_hash(a->u.floats, a->n * sizeof *a->u.floats, h);
    case ASSAY_ATTR_INTS:
      return assay_hash(a->u.ints, a->n * sizeof *a->u.ints, h);
    case ASSAY_ATTR_STRINGS:
      return add_strings(h, a->u.strings, a->n);
    default:
      return h;
  }
}

static uint64_t add_value(uint64_t h, const assay_layers_t* l, const assay_value_t* v) {
  if (!v) return add_number(h, -1);
  return add_tensor(add_number(add_number(h, v->id), l->hidden_value[v->id]), v->constant);
}

static uint64_t add_node(uint64_t h, const assay_layers_t* l, const assay_node_t* n) {
  h = add_text(add_text(add_number(h, n->id), n->domain), n->op_type);
  for (size_t i = 0; i < n->n_attrs; i++) h = add_attribute(h, &n->attrs[i]);
  for (size_t i = 0; i < n->n_inputs; i++) h = add_value(h, l, n->inputs[i]);
  for (size_t i = 0; i < n->n_outputs; i++) h = add_value(h, l, n->outputs[i]);
  return h;
}

uint64_t assay_plan_checksum(const assay_plan_t* plan) {
  const assay_layers_t* l = assay_plan_layers(plan);
  uint64_t h = add_number(add_number(0, (int64_t)l->seed), l->fp32);
  for (size_t i = 0; i < l->n_all_layers; i++) {
    const assay_layer_t* layer = &l->layers[i];
    h = add_number(add_number(add_text(h, layer->name), layer->format), layer->accumulator);
    for (size_t k = 0; k < layer->n_nodes; k++) h = add_node(h, l, layer->nodes[k]);
  }
  return h;
}
