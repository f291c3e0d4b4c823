// Layers that read the same, as the products of queries, keys and values do, and run in the launch
// of the first of them (assay_tactic_t.make_siblings). Each stays a layer with a kernel, and a
// place for its output, which is taken from that launch on: a tap, and timing by layers, run them
// one by one.
#include <string.h>

#include "base/alloc.h"
#include "exec/segment/segment_internal.h"

typedef struct siblings {
  assay_siblings_t of;
  builder_t* b;
  bool laid;  // steps are; else only kernels are surveyed
  int at[ASSAY_SIBLINGS];
  assay_sized_layer_t layers[ASSAY_SIBLINGS];
} siblings_t;

static const assay_layer_t* layer_of(const builder_t* b, int i) {
  return &b->in->layers->layers[i];
}

static bool has_slot(const assay_step_t* s, int slot) {
  for (int k = 0; k < s->n_in; k++)
    if (s->in[k] == slot) return true;
  return false;
}

// Whether a step reads nothing but what the first one does where that one does, and its output's
// memory is its own, so that this can be written before.
static bool may_run_before(const builder_t* b, const assay_step_t* first, const assay_step_t* s,
                           int i) {
  if (s->outputs != s->moves || s->out[0] < 0) return false;
  for (int k = 0; k < s->n_in; k++)
    if (s->in[k] >= 0 && !has_slot(first, s->in[k])) return false;
  const assay_slot_t* out = &b->s->slots[s->out[0]];
  return out->kind == ASSAY_SLOT_ARENA && !out->passes && out->block.first == i;
}

// Whether all that a layer reads in a run is what the first one reads.
static bool reads_the_same(const assay_sized_layer_t* first, const assay_sized_layer_t* l) {
  for (size_t k = 0; k < l->n_in; k++)
    if (!l->in[k].constant && assay_sized_input_index(first, l->in[k].value) < 0) return false;
  return true;
}

// Adds layer i where it may be one of them.
static assay_status_t add(siblings_t* g, int i) {
  const builder_t* b = g->b;
  const int n = g->of.n;
  assay_kernel_t* k = segment_kernel_of(b, i);
  const assay_step_t* s = segment_step_of(b, i);
  bool ok;
  if (!k || !k->enqueue || k->in_place >= 0 || k->scratch || segment_runs_with_others(s))
    return NULL;
  if (g->laid && (s->n_out != 1 || (n && !may_run_before(b, segment_step_of(b, g->at[0]), s, i))))
    return NULL;
  ASSAY_TRY(segment_describe(g->b, i, &g->layers[n], &ok));
  if (!ok || g->layers[n].n_out != 1 || !g->layers[n].out[0].value ||
      !reads_the_same(&g->layers[0], &g->layers[n]))
    return NULL;
  g->at[n] = i;
  g->of.layers[n] = &g->layers[n];
  g->of.kernels[n] = k;
  g->of.n++;
  return NULL;
}

static bool fits(const siblings_t* g, const assay_kernel_t* k) {
  const assay_kernel_t* first = g->of.kernels[0];
  bool yes = !k->scratch;
  for (size_t i = 0; i < g->layers[0].n_in; i++)
    yes &= !k->in[i].type ||
           (k->in[i].type == first->in[i].type && k->in[i].layout == first->in[i].layout);
  for (int i = 0; i < g->of.n; i++)
    yes &= k->out[i].type == g->of.kernels[i]->out[0].type &&
           k->out[i].layout == g->of.kernels[i]->out[0].layout;
  return yes;
}

static void keep(siblings_t* g, assay_kernel_t* k) {
  assay_step_t* first = segment_step_of(g->b, g->at[0]);
  first->siblings = k;
  first->n_with = g->of.n;
  memcpy(first->with, g->at, sizeof first->with);
  for (int i = 1; i < g->of.n; i++) {
    assay_step_t* s = segment_step_of(g->b, g->at[i]);
    s->is_sibling = true;
    g->b->s->slots[s->out[0]].block.first = g->at[0];
  }
}

static assay_status_t find_from(siblings_t* g, int first) {
  const assay_target_t* target = g->b->in->target;
  void* user = g->b->in->user;
  assay_kernel_t* k = NULL;
  g->of.n = 0;
  ASSAY_TRY(add(g, first));
  for (int i = first + 1; g->of.n && g->of.n < ASSAY_SIBLINGS && i < g->b->s->end; i++)
    if (target->are_siblings(user, layer_of(g->b, first), layer_of(g->b, i))) ASSAY_TRY(add(g, i));
  if (g->of.n < 2) return NULL;
  ASSAY_TRY(target->choose_siblings(user, &g->of, &k));
  if (k && g->laid && fits(g, k)) return keep(g, k), NULL;
  if (k) k->destroy(k);
  return NULL;
}

static assay_status_t find(builder_t* b, bool laid) {
  const assay_target_t* target = b->in->target;
  siblings_t* g = NULL;
  assay_status_t st = NULL;
  if (b->in->apart || !target->choose_siblings) return NULL;
  for (int i = b->s->first; !st && i < b->s->end; i++) {
    const assay_layer_t* l = layer_of(b, i);
    if (!target->are_siblings(b->in->user, l, l)) continue;
    if (!g && (st = ASSAY_NEW(&g)) != NULL) break;
    g->b = b;
    g->laid = laid;
    st = find_from(g, i);
  }
  assay_free(g);
  return st;
}

assay_status_t segment_find_siblings(builder_t* b) { return find(b, true); }
assay_status_t segment_rehearse_siblings(builder_t* b) { return find(b, false); }
