// Small sections of one entry: the nodes that make a value from a single other one.
#include "diagnose/causes/sections.h"

#include <string.h>

static bool is_float(const assay_surroundings_t* a, const assay_value_t* v) {
  const assay_tensor_t* t = assay_around_tensor(a, v);
  const assay_valtype_t* type = v->type;
  // Of what golden has, nothing but the type is known here.
  if (!t) return type && type->kind == ASSAY_KIND_TENSOR && assay_type_is_float(type->elem);
  return assay_type_is_float(t->type);
}

// One node gives one value of floats, from no more inputs than a step of a chain has.
static bool can_copy(const assay_surroundings_t* a, const assay_node_t* n) {
  if (!n || *n->domain || n->n_outputs < 1 || !n->outputs[0]) return false;
  if (n->op && n->op->flags & ASSAY_OP_CONTROL) return false;
  if (n->n_inputs < 1 || n->n_inputs > ASSAY_CHAIN_OPERANDS) return false;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return false;
  return is_float(a, n->outputs[0]) && strcmp(n->op_type, "Constant") != 0;
}

static bool has(const assay_section_t* r, const assay_node_t* n) {
  for (size_t i = 0; i < r->n; i++)
    if (r->nodes[i] == n) return true;
  return false;
}

// What a section's nodes read from outside, if that is a single value.
static const assay_value_t* entry_of(const assay_section_t* r) {
  const assay_value_t* found = NULL;
  for (size_t i = 0; i < r->n; i++)
    for (size_t k = 0; k < r->nodes[i]->n_inputs; k++) {
      const assay_value_t* v = r->nodes[i]->inputs[k];
      if (!v || assay_around_is_constant(v) || (v->producer && has(r, v->producer))) continue;
      if (found && found != v) return NULL;
      found = v;
    }
  return found;
}

bool assay_section_begin(const assay_surroundings_t* a, const assay_node_t* last,
                         assay_section_t* out) {
  *out = (assay_section_t){0};
  if (!can_copy(a, last)) return false;
  out->nodes[out->n++] = last;
  out->entry = entry_of(out);
  return true;
}

bool assay_section_grow(const assay_surroundings_t* a, assay_section_t* r) {
  const assay_node_t* last = NULL;
  if (r->n == ASSAY_SECTION_NODES) return false;
  for (size_t i = 0; i < r->n; i++)
    for (size_t k = 0; k < r->nodes[i]->n_inputs; k++) {
      const assay_value_t* v = r->nodes[i]->inputs[k];
      const assay_node_t* n = !v || assay_around_is_constant(v) ? NULL : v->producer;
      if (n && !has(r, n) && (!last || a->order[n->id] > a->order[last->id])) last = n;
    }
  if (!can_copy(a, last)) return false;
  r->nodes[r->n++] = last;
  r->entry = entry_of(r);
  return true;
}

bool assay_section_steps(const assay_section_t* r, const assay_chain_operand_t* entry,
                         assay_chain_step_t* steps, size_t* n) {
  const size_t first = *n;
  if (!r->entry || first + r->n > ASSAY_CHAIN_STEPS) return false;
  // The last node is the first of the section's list: node i becomes step first + r->n - 1 - i.
  for (size_t i = r->n; i-- > 0;) {
    const assay_node_t* node = r->nodes[i];
    assay_chain_step_t* step = &steps[(*n)++];
    *step = (assay_chain_step_t){.like = node, .other_inputs = true};
    for (size_t k = 0; k < node->n_inputs; k++) {
      const assay_value_t* v = node->inputs[k];
      step->of[k] = (assay_chain_operand_t){.kind = v ? ASSAY_OPERAND_VALUE : ASSAY_OPERAND_OMITTED,
                                            .value = v};
      if (!v) continue;
      if (v == r->entry) step->of[k] = *entry;
      for (size_t q = i + 1; q < r->n; q++)
        if (v->producer == r->nodes[q])
          step->of[k] =
              (assay_chain_operand_t){.kind = ASSAY_OPERAND_STEP, .index = first + r->n - 1 - q};
    }
  }
  return true;
}
