// Layers that run in the launch of a later one (assay_tactic_t.make_joint). Each stays a layer with
// a kernel, and a place for its output: a tap, and timing by layers, run them one by one. In one
// launch what lies between them is not there.
#include <string.h>

#include "base/alloc.h"
#include "exec/segment/segment_internal.h"

typedef struct joint {
  assay_joint_layers_t of;  // first: what tactics are given
  builder_t* b;
  bool laid;  // steps are; else only kernels are surveyed
  int at[ASSAY_JOINT_LAYERS];
  assay_sized_layer_t layers[ASSAY_JOINT_LAYERS];
} joint_t;

static bool has_slot(const int* slots, int n, int slot) {
  for (int i = 0; i < n; i++)
    if (slots[i] == slot) return true;
  return false;
}

static assay_status_t describe(joint_t* j, int i, bool* ok) {
  assay_kernel_t* k = segment_kernel_of(j->b, i);
  const int n = j->of.n;
  int operands = 0;
  *ok = n < ASSAY_JOINT_LAYERS && k && k->enqueue;
  if (!*ok) return NULL;
  ASSAY_TRY(segment_describe(j->b, i, &j->layers[n], ok));
  for (int a = 0; a <= n; a++) operands += (int)j->layers[a].n_in;
  *ok = *ok && operands <= ASSAY_KERNEL_OPERANDS && j->layers[n].n_out == 1 &&
        j->layers[n].out[0].value;
  j->at[n] = i;
  j->of.layers[n] = &j->layers[n];
  j->of.kernels[n] = k;
  return NULL;
}

// The layer before `reader` that makes a value; -1: none of the segment.
static int maker_of(const builder_t* b, const assay_value_t* v, int reader) {
  for (int i = reader - 1; i >= b->s->first; i--) {
    const assay_layer_t* l = &b->in->layers->layers[i];
    const assay_node_t* last = l->nodes[l->n_nodes - 1];
    for (size_t k = 0; k < last->n_outputs; k++)
      if (last->outputs[k] == v) return i;
  }
  return -1;
}

// Whether what layer i makes lies where the reader reads it, and no other layer does, nor a move.
// What a layer writes over it is another value.
static bool is_for(const builder_t* b, int i, int reader, const assay_value_t* v) {
  const assay_step_t *a = segment_step_of(b, i), *to = segment_step_of(b, reader);
  const int slot = a->out[0];
  if (a->n_out != 1 || slot < 0 || a->outputs != a->end || a->pair || a->joint || a->is_joined ||
      !has_slot(to->in, to->n_in, slot))
    return false;
  const assay_slot_t* s = &b->s->slots[slot];
  if (s->kind != ASSAY_SLOT_ARENA || s->passes || b->in->lifetimes->last[v->id] > reader)
    return false;
  for (size_t m = 0; m < b->s->n_moves; m++)
    if (b->s->moves[m].from == slot || b->s->moves[m].to == slot) return false;
  for (int k = i + 1; k < reader; k++) {
    const assay_step_t* between = segment_step_of(b, k);
    if (has_slot(between->in, between->n_in, slot) || has_slot(between->out, between->n_out, slot))
      return false;
  }
  return true;
}

static assay_status_t add(assay_joint_layers_t* of, int reader, const assay_value_t* v,
                          bool* out_added) {
  joint_t* j = (joint_t*)of;
  const int i = maker_of(j->b, v, j->at[reader]);
  *out_added = i >= 0 && (!j->laid || is_for(j->b, i, j->at[reader], v));
  if (*out_added) ASSAY_TRY(describe(j, i, out_added));
  j->of.n += *out_added;
  return NULL;
}

// ---- what was found -----------------------------------------------------------------------------

// Whether one of the layers makes what lies there.
static bool is_inside(const joint_t* j, int slot) {
  for (int a = 1; a < j->of.n; a++)
    if (segment_step_of(j->b, j->at[a])->out[0] == slot) return true;
  return false;
}

// Whether what layer a of them reads is still there when the last one runs, and is not what that
// one writes; and lies in the form in which the kernel reads it.
static bool is_kept(const joint_t* j, int a, const assay_storage_t* forms) {
  const assay_step_t* s = segment_step_of(j->b, j->at[a]);
  for (int k = 0; k < s->n_in; k++) {
    const assay_storage_t form = s->kernel->in[k];
    if (forms[k].type && (forms[k].type != form.type || forms[k].layout != form.layout))
      return false;
    if (s->in[k] < 0 || is_inside(j, s->in[k])) continue;
    for (int i = j->at[a] + 1; i <= j->at[0]; i++) {
      const assay_step_t* later = segment_step_of(j->b, i);
      const bool views = later->kernel && !later->kernel->enqueue;
      if (!views && has_slot(later->out, later->n_out, s->in[k])) return false;
    }
    if (segment_step_of(j->b, j->at[0])->out[0] == s->in[k]) return false;
  }
  return true;
}

static bool fits(const joint_t* j, const assay_kernel_t* k) {
  const assay_step_t* last = segment_step_of(j->b, j->at[0]);
  const assay_storage_t made = last->kernel->out[0], *forms = k->in;
  if (k->scratch || k->out[0].type != made.type || k->out[0].layout != made.layout) return false;
  for (int a = 0; a < j->of.n; a++) {
    if (!is_kept(j, a, forms)) return false;
    forms += segment_step_of(j->b, j->at[a])->n_in;
  }
  return true;
}

static void keep(joint_t* j, assay_kernel_t* k) {
  assay_step_t* last = segment_step_of(j->b, j->at[0]);
  last->joint = k;
  last->n_joins = j->of.n;
  memcpy(last->joins, j->at, sizeof last->joins);
  for (int a = 1; a < j->of.n; a++) {
    assay_step_t* s = segment_step_of(j->b, j->at[a]);
    s->is_joined = true;
    for (int i = 0; i < s->n_in; i++)
      if (s->in[i] >= 0 && j->b->s->slots[s->in[i]].block.last < j->at[0])
        j->b->s->slots[s->in[i]].block.last = j->at[0];
  }
}

static assay_status_t find_at(joint_t* j, int i) {
  const assay_target_t* target = j->b->in->target;
  assay_kernel_t* k = NULL;
  bool ok;
  j->of.n = 0;
  ASSAY_TRY(describe(j, i, &ok));
  if (!ok) return NULL;
  j->of.n = 1;
  ASSAY_TRY(target->choose_joint(j->b->in->user, &j->of, &k));
  if (k && j->laid && j->of.n > 1 && fits(j, k)) return keep(j, k), NULL;
  if (k) k->destroy(k);
  return NULL;
}

static assay_status_t find(builder_t* b, bool laid) {
  const assay_target_t* target = b->in->target;
  joint_t* j = NULL;
  assay_status_t st = NULL;
  if (b->in->apart || !target->choose_joint) return NULL;
  // From the end: the longest ones are found first.
  for (int i = b->s->end - 1; !st && i >= b->s->first; i--) {
    const assay_step_t* s = segment_step_of(b, i);
    if (!target->may_join(b->in->user, &b->in->layers->layers[i]) ||
        (laid && (!s->kernel || s->is_joined || s->n_out != 1)))
      continue;
    if (!j && (st = ASSAY_NEW(&j)) != NULL) break;
    j->of.add = add;
    j->b = b;
    j->laid = laid;
    st = find_at(j, i);
  }
  assay_free(j);
  return st;
}

assay_status_t segment_find_joints(builder_t* b) { return find(b, true); }
assay_status_t segment_rehearse_joints(builder_t* b) { return find(b, false); }
