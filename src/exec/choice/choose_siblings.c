// Several layers that read the same in one launch.
#include "exec/choice/choice.h"
#include "exec/choice/ways.h"

bool assay_are_siblings(const assay_choice_t* c, const assay_layer_t* a, const assay_layer_t* b) {
  for (size_t t = 0; t < c->setting.n_tactics; t++) {
    const assay_tactic_t* tactic = c->setting.tactics[t];
    if (tactic->make_siblings && assay_ways_allow(c, tactic) && tactic->are_siblings(a, b))
      return true;
  }
  return false;
}

// A kernel that was asked for is the one that runs its layer.
static assay_status_t is_forced(assay_choice_t* c, const assay_siblings_t* s, bool* out) {
  *out = false;
  for (int i = 0; !*out && i < s->n; i++) {
    assay_way_t forced;
    ASSAY_TRY(assay_way_forced(c, s->layers[i], &forced));
    *out = forced.tactic != NULL;
  }
  return NULL;
}

static bool takes_all(const assay_tactic_t* tactic, const assay_siblings_t* s) {
  bool all = true;
  for (int i = 1; i < s->n; i++)
    all &= tactic->are_siblings(s->layers[0]->layer, s->layers[i]->layer);
  return all;
}

assay_status_t assay_choose_siblings(assay_choice_t* c, const assay_siblings_t* s,
                                     assay_kernel_t** out) {
  bool forced;
  *out = NULL;
  ASSAY_TRY(is_forced(c, s, &forced));
  for (size_t t = 0; !forced && !*out && t < c->setting.n_tactics; t++) {
    const assay_tactic_t* tactic = c->setting.tactics[t];
    if (!tactic->make_siblings || !assay_ways_allow(c, tactic) || !takes_all(tactic, s)) continue;
    ASSAY_TRY(tactic->make_siblings(s, out));
    if (!*out) continue;
    (*out)->tactic = tactic;
    (*out)->name = tactic->name;
    (*out)->numerics = tactic->numerics;
  }
  return NULL;
}
