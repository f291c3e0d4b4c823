// Another operator in the node's place: every one that takes what the node reads.
//
// A length by sums for one by squares, a softmax for a sigmoid, a maximum for a mean: the table of
// proposals has those that are usual; here the node's true output is known, so that all can be
// tried. Settings that the other operator does not have are dropped.
#include <stdio.h>
#include <string.h>

#include "diagnose/repair_chain.h"
#include "diagnose/solve/missing.h"

enum { DROPPED = ASSAY_REPAIR_EDITS - 1 };

static bool has_attr(const assay_node_t* n, const char* name) {
  for (size_t i = 0; i < n->n_attrs; i++)
    if (strcmp(n->attrs[i].name, name) == 0) return true;
  return false;
}

// Whether an operator takes the node's inputs and outputs and misses none of its own settings.
static bool takes(const assay_schema_t* x, const assay_node_t* n) {
  const int in = (int)n->n_inputs, out = (int)n->n_outputs;
  if (x->deprecated || in < x->min_inputs || in > x->max_inputs || out < x->min_outputs ||
      out > x->max_outputs)
    return false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_param_t *p = assay_schema_input(x, i), *was = assay_schema_input(n->schema, i);
    if (!p || !was || (!n->inputs[i] && !p->is_optional)) return false;
    // Lengths and axes are of one name wherever they are read; data have many.
    if (i && in > 2 && strcmp(p->name, was->name) != 0) return false;
  }
  for (int i = 0; i < x->n_attrs; i++)
    if (x->attrs[i].required && !has_attr(n, x->attrs[i].name)) return false;
  return true;
}

// Whether an operator that takes these inputs gives outputs of the type that golden has.
static bool gives(const assay_missing_search_t* s, const assay_schema_t* x) {
  const int last = x->n_outputs - 1, at = (int)s->output < last ? (int)s->output : last;
  const assay_valtype_t type = {.kind = ASSAY_KIND_TENSOR, .elem = s->target->golden->type};
  const assay_param_t* out = at < 0 ? NULL : &x->outputs[at];
  if (!out || !s->target->truth || s->target->truth->type != s->target->golden->type ||
      !assay_typeset_has(&out->types, &type))
    return false;
  for (size_t i = 0; i < s->n_in && *out->type; i++) {
    const assay_param_t* p = assay_schema_input(x, i);
    if (p && s->in[i] && strcmp(p->type, out->type) == 0 && s->in[i]->type != type.elem)
      return false;
  }
  return true;
}

// Settings of the node that the other operator does not have; false: there are too many of them.
static bool drop_settings(const assay_schema_t* x, const assay_node_t* n, assay_repair_t* r) {
  for (size_t i = 0; i < n->n_attrs; i++) {
    const assay_attr_spec_t* a = assay_schema_attr(x, n->attrs[i].name);
    if (a && a->type == n->attrs[i].type) continue;
    if (a || r->n_edits == DROPPED) return false;
    r->edits[r->n_edits++] = (assay_repair_edit_t){
        .kind = ASSAY_EDIT_DROP,
        .attr = {.name = n->attrs[i].name, .type = n->attrs[i].type, .doc = "", .ref = ""}};
  }
  return true;
}

static assay_status_t try_operator(assay_missing_search_t* s, const assay_op_t* op,
                                   int64_t version) {
  const assay_schema_t* x = assay_schema_find("", op->name, version, NULL);
  assay_repair_t r = {.node = s->node, .cause = "operator"};
  if (!x || !takes(x, s->node) || !assay_chain_takes(x, s->n_in, s->in) || !gives(s, x) ||
      !drop_settings(x, s->node, &r))
    return NULL;
  r.edits[r.n_edits++] = (assay_repair_edit_t){.kind = ASSAY_EDIT_OPERATOR, .op_type = op->name};
  snprintf(r.text, sizeof r.text, "%s in place of %s", op->name, s->node->op_type);
  return assay_missing_offer(s, &r);
}

assay_status_t assay_missing_exchanged(assay_missing_search_t* s) {
  const assay_node_t* n = s->node;
  if (*n->domain || !n->schema || !n->op || n->n_inputs == 0) return NULL;
  const int64_t version = assay_model_opset(n->graph->model, "");
  for (size_t f = 0; f < assay_op_family_count(); f++)
    for (const assay_op_t* op = assay_op_family(f); op->name && !assay_missing_is_over(s); op++) {
      if (*op->domain || op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_RANDOM) || !op->eval ||
          strcmp(op->name, n->op_type) == 0 || assay_op_find("", op->name, version) != op)
        continue;
      ASSAY_TRY(try_operator(s, op, version));
    }
  return NULL;
}
