// A node that differs from its twins, those that have the same part in other blocks of the network,
// becomes like one of them: in its attributes, in a small constant, in its operator.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { MAX_KINDS = 8 };  // different twins that are offered

// ---- attributes --------------------------------------------------------------------------------

// Adds an edit that makes an attribute what a twin has; `from` NULL: the twin has its default.
// False: there is no room, or such attributes cannot be set.
static bool add_attr(assay_repair_t* r, const char* name, const assay_attr_t* from) {
  if (r->n_edits == ASSAY_REPAIR_EDITS) return false;
  assay_repair_edit_t* e = &r->edits[r->n_edits];
  *e = (assay_repair_edit_t){.kind = from ? ASSAY_EDIT_ATTR : ASSAY_EDIT_DROP};
  e->attr = (assay_attr_t){.name = name, .n = 1, .doc = "", .ref = ""};
  if (from) {
    e->attr.type = from->type;
    e->attr.n = from->n;
    if (from->type == ASSAY_ATTR_INTS) {
      if (from->n > ASSAY_EDIT_NUMBERS) return false;
      memcpy(e->numbers, from->u.ints, from->n * sizeof *e->numbers);
    } else if (from->type == ASSAY_ATTR_INT || from->type == ASSAY_ATTR_FLOAT ||
               from->type == ASSAY_ATTR_STRING) {
      e->attr.u = from->u;
    } else {
      return false;
    }
  }
  r->n_edits++;
  return true;
}

static bool same_value(const assay_attr_t* a, const assay_attr_t* b) {
  const assay_node_t x = {.attrs = (assay_attr_t*)a, .n_attrs = a ? 1 : 0},
                     y = {.attrs = (assay_attr_t*)b, .n_attrs = b ? 1 : 0};
  return assay_around_same_attrs(&x, &y);
}

// All attributes as the twin has them.
static bool copy_attrs(assay_repair_t* r, const assay_node_t* n, const assay_node_t* twin) {
  for (size_t i = 0; i < twin->n_attrs; i++) {
    const assay_attr_t* a = &twin->attrs[i];
    if (same_value(a, assay_node_attr(n, a->name))) continue;
    if (!add_attr(r, a->name, a)) return false;
  }
  for (size_t i = 0; i < n->n_attrs; i++)
    if (!assay_node_attr(twin, n->attrs[i].name) && !add_attr(r, n->attrs[i].name, NULL))
      return false;
  return true;
}

// ---- twins -------------------------------------------------------------------------------------

// Calls f with one twin of each kind: nodes of the same role, or of the same place and another
// operator, that differ from the node and from each other.
typedef assay_status_t twin_fn(const assay_suspect_t* s, const char* cause,
                               const assay_node_t* twin, const assay_trial_t* t, bool* stop);

static bool is_like(const assay_node_t* a, const assay_node_t* b) {
  return strcmp(a->op_type, b->op_type) == 0 && strcmp(a->domain, b->domain) == 0 &&
         assay_around_same_attrs(a, b);
}

static assay_status_t for_each_kind(const assay_suspect_t* s, const char* cause, bool other,
                                    twin_fn* f, const assay_trial_t* t, bool* stop) {
  const assay_node_t* kinds[MAX_KINDS];
  const assay_graph_t* g = s->model->graph;
  size_t n = 0;
  for (size_t i = 0; i < g->n_nodes && n < MAX_KINDS && !*stop; i++) {
    const assay_node_t* twin = g->nodes[i];
    const bool same_op = strcmp(twin->op_type, s->node->op_type) == 0;
    if (twin == s->node || same_op == other) continue;
    if (other ? s->around->place[twin->id] != s->around->place[s->node->id]
              : s->around->role[twin->id] != s->around->role[s->node->id])
      continue;
    bool known = is_like(twin, s->node);
    for (size_t k = 0; k < n; k++) known |= is_like(twin, kinds[k]);
    if (known) continue;
    kinds[n++] = twin;
    ASSAY_TRY(f(s, cause, twin, t, stop));
  }
  return NULL;
}

static assay_status_t offer_attrs(const assay_suspect_t* s, const char* cause,
                                  const assay_node_t* twin, const assay_trial_t* t, bool* stop) {
  assay_repair_t r = {.node = s->node, .cause = cause};
  if (!copy_attrs(&r, s->node, twin) || !r.n_edits) return NULL;
  snprintf(r.text, sizeof r.text, "%s as in '%.150s'", r.edits[0].attr.name, twin->label);
  return assay_offer(t, &r, stop);
}

static assay_status_t offer_operator(const assay_suspect_t* s, const char* cause,
                                     const assay_node_t* twin, const assay_trial_t* t, bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_OPERATOR);
  if (*twin->domain || *s->node->domain || twin->n_outputs != s->node->n_outputs) return NULL;
  r.edits[0].op_type = twin->op_type;
  if (!copy_attrs(&r, s->node, twin)) return NULL;
  snprintf(r.text, sizeof r.text, "%s in place of %s, as in '%.150s'", twin->op_type,
           s->node->op_type, twin->label);
  return assay_offer(t, &r, stop);
}

// ---- constants ---------------------------------------------------------------------------------

static bool same_elements(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (!assay_tensor_same_shape(a, b) || a->store != b->store || a->store > ASSAY_STORE_I64)
    return false;
  return !memcmp(a->data, b->data, (size_t)a->size * assay_store_elem_bytes(a->store));
}

// Constants of a twin that is another block's: numbers that mean a form, not weights.
static assay_status_t offer_constants(const assay_suspect_t* s, const char* cause, size_t input,
                                      const assay_trial_t* t, bool* stop) {
  enum { SMALL = 16 };
  assay_tensor_t* seen[MAX_KINDS] = {NULL};
  const assay_graph_t* g = s->model->graph;
  const assay_tensor_t* now = s->in[input];
  size_t n = 0;
  assay_status_t st = NULL;
  if (!now || now->kind != ASSAY_KIND_TENSOR || now->store > ASSAY_STORE_I64) return NULL;
  if (now->size > (now->store == ASSAY_STORE_I64 ? 4096 : SMALL)) return NULL;
  for (size_t i = 0; !st && i < g->n_nodes && n < MAX_KINDS && !*stop; i++) {
    const assay_node_t* twin = g->nodes[i];
    assay_tensor_t* x = NULL;
    if (twin == s->node || s->around->role[twin->id] != s->around->role[s->node->id]) continue;
    if (input >= twin->n_inputs || !assay_around_is_constant(twin->inputs[input])) continue;
    assay_tensor_t* from = assay_around_tensor(s->around, twin->inputs[input]);
    if (!from || from->type != now->type) continue;
    st = assay_tensor_widen(from, &x);
    bool known = st || same_elements(x, now) || x->size > 4096;
    for (size_t k = 0; !known && k < n; k++) known = same_elements(x, seen[k]);
    if (known) {
      assay_tensor_release(x);
      continue;
    }
    seen[n++] = x;
    assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CONSTANT);
    r.edits[0].input = input;
    r.edits[0].tensor = assay_tensor_retain(x);
    snprintf(r.text, sizeof r.text, "input %zu '%.80s' as in '%.100s'", input,
             s->node->inputs[input]->name, twin->label);
    st = assay_offer(t, &r, stop);
  }
  for (size_t k = 0; k < n; k++) assay_tensor_release(seen[k]);
  return st;
}

// ---- the row -----------------------------------------------------------------------------------

assay_status_t assay_propose_twin(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  if (!s->around) return NULL;
  ASSAY_TRY(for_each_kind(s, cause, false, offer_attrs, t, stop));
  for (size_t i = 0; i < s->n_in && !*stop; i++)
    if (assay_around_is_constant(s->node->inputs[i]))
      ASSAY_TRY(offer_constants(s, cause, i, t, stop));
  return for_each_kind(s, cause, true, offer_operator, t, stop);
}
