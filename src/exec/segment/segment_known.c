// Layers of a segment that need not run: what they make follows from sizes.
#include <string.h>

#include "exec/segment/segment_internal.h"
#include "passes/fold.h"

// Contents that follow from sizes, as a tensor; *out NULL: they do not.
static assay_status_t known_contents(const builder_t* b, const assay_value_t* v,
                                     assay_tensor_t** out) {
  const assay_content_t* c = v->content;
  *out = NULL;
  if (!c || !v->type || v->type->kind != ASSAY_KIND_TENSOR || v->is_output ||
      !(assay_type_is_integer(v->type->elem) || v->type->elem == ASSAY_TYPE_BOOL))
    return NULL;
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(v->type->elem, c->rank, &c->n, &t));
  bool ok = true;
  for (int64_t i = 0; ok && i < c->n; i++) {
    int64_t x = 0;
    ok = assay_sizes_eval(b->in->sizes, c->elems[i], &x) && assay_type_wrap(t->type, x) == x;
    assay_i64(t)[i] = x;
  }
  if (ok)
    *out = t;
  else
    assay_tensor_release(t);
  return NULL;
}

// Whether a node's inputs are constants and contents that follow from sizes; in[] is filled in.
static bool known_inputs(const builder_t* b, const assay_node_t* n, assay_tensor_t** in) {
  bool any = false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    const assay_place_t* p = v ? assay_segment_place(b->s, v) : NULL;
    in[i] = !v ? NULL : p && p->known ? p->known : assay_value_slot_constant(v);
    if (v && !in[i]) return false;
    any |= p && p->known;
  }
  return any;
}

// Whether a node moves elements of a large constant of integers or truth values, such as a causal
// mask. Where sizes grow a kernel does so in each run: to evaluate it, all of the constant would be
// made canonical, run after run. What is made of such elements is the same either way.
static bool moves_large_constant(const assay_node_t* n, assay_tensor_t* const* in) {
  enum { LARGE = 4096 };
  const assay_valtype_t* t = n->outputs[0] ? n->outputs[0]->type : NULL;
  bool large = false;
  for (size_t i = 0; i < n->n_inputs; i++)
    large |= in[i] && in[i]->kind == ASSAY_KIND_TENSOR && in[i]->size > LARGE;
  return large && t && (assay_type_is_integer(t->elem) || t->elem == ASSAY_TYPE_BOOL) &&
         (n->op->flags & ASSAY_OP_MOVES) && !(n->op->flags & ASSAY_OP_SELECTS);
}

// Whether a layer may be computed now, as if its inputs were constants when the plan was built.
static bool may_fold(const builder_t* b, const assay_layer_t* l, assay_tensor_t** in) {
  const assay_node_t* n = l->nodes[0];
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK], size;
  if (l->n_nodes != 1 || l->format != ASSAY_FORMAT_FP32 || !assay_fold_allows(n) ||
      !known_inputs(b, n, in) || (b->s->grows && moves_large_constant(n, in)))
    return false;
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] &&
        (!assay_sizes_of(b->in->sizes, n->outputs[i], ASSAY_KERNEL_RANK, &rank, dims) ||
         !assay_dims_size(rank, dims, &size) || !assay_fold_is_small(size)))
      return false;
  return true;
}

// Of tensors that are canonical, as these are, with 8 bytes an element.
static bool is_same(const assay_tensor_t* a, const assay_tensor_t* b) {
  const int64_t n = assay_dims_product(a->dims, 0, a->rank);
  return a->rank == b->rank && (!a->rank || memcmp(a->dims, b->dims, (size_t)a->rank * 8) == 0) &&
         a->store == b->store && (a->store == ASSAY_STORE_F64 || a->store == ASSAY_STORE_I64) &&
         (!n || memcmp(a->data, b->data, (size_t)n * 8) == 0);
}

// At a new place, or at the one that it had in other sizes.
static assay_status_t put_known(builder_t* b, const assay_value_t* v, assay_tensor_t* take) {
  assay_place_t* p = NULL;
  const int at = b->s->place_of[v->id];
  assay_status_t st = NULL;
  if (at < 0)
    st = segment_add_place(b, v, take->rank, take->dims, &p);
  else
    p = &b->s->places[at];
  if (st) return assay_tensor_release(take), st;
  if (p->known && is_same(p->known, take)) return assay_tensor_release(take), NULL;
  assay_tensor_release(p->known);
  p->known = take;
  p->changed = true;
  p->rank = take->rank;
  if (take->rank) memcpy(p->dims, take->dims, (size_t)take->rank * sizeof *take->dims);
  p->size = assay_dims_product(p->dims, 0, p->rank);
  return NULL;
}

// What a layer that is given other sizes reads is as it was.
static bool is_as_before(const builder_t* b, const assay_node_t* n) {
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_place_t* p = n->inputs[i] ? assay_segment_place(b->s, n->inputs[i]) : NULL;
    if (p && p->changed) return false;
  }
  return true;
}

// A layer that reads only what is known needs not run. again: it was known in other sizes.
static assay_status_t fold_layer(builder_t* b, const assay_layer_t* l, bool again,
                                 bool* out_known) {
  const assay_node_t* n = l->nodes[0];
  assay_tensor_t *in[ASSAY_FOLD_OPERANDS] = {0}, *out[ASSAY_FOLD_OPERANDS] = {0};
  if (!may_fold(b, l, in)) return NULL;
  if (again && is_as_before(b, n)) return *out_known = true, NULL;
  if (!b->s->truth)
    ASSAY_TRY(assay_evaluator_create(b->in->layers->model, &assay_fold_config, &b->s->truth));
  ASSAY_TRY(assay_fold(b->s->truth, n, in, out, out_known));
  assay_status_t st = NULL;
  for (size_t i = 0; *out_known && i < n->n_outputs; i++) {
    if (!out[i]) continue;
    if (st || !n->outputs[i])
      assay_tensor_release(out[i]);
    else
      st = put_known(b, n->outputs[i], out[i]);
  }
  return st;
}

assay_status_t segment_know_layer(builder_t* b, const assay_layer_t* l, bool again,
                                  bool* out_known) {
  const assay_node_t* n = l->nodes[l->n_nodes - 1];
  assay_tensor_t* t = NULL;
  *out_known = false;
  if (n->n_outputs == 1 && n->outputs[0]) ASSAY_TRY(known_contents(b, n->outputs[0], &t));
  if (!t) return fold_layer(b, l, again, out_known);
  *out_known = true;
  return put_known(b, n->outputs[0], t);
}
