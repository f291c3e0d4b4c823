// Several layers in the launch of the last one.
#include "exec/choice/choice.h"
#include "exec/choice/ways.h"

bool assay_may_join(const assay_choice_t* c, const assay_layer_t* l) {
  for (size_t t = 0; t < c->setting.n_tactics; t++) {
    const assay_tactic_t* tactic = c->setting.tactics[t];
    if (tactic->make_joint && assay_ways_allow(c, tactic) && tactic->ends(l)) return true;
  }
  return false;
}

// A kernel that was asked for is the one that runs its layer.
static assay_status_t is_forced(assay_choice_t* c, const assay_joint_layers_t* j, bool* out) {
  *out = false;
  for (int i = 0; !*out && i < j->n; i++) {
    assay_way_t forced;
    ASSAY_TRY(assay_way_forced(c, j->layers[i], &forced));
    *out = forced.tactic != NULL;
  }
  return NULL;
}

static assay_status_t choose(assay_choice_t* c, assay_joint_layers_t* j,
                             const assay_tactic_t* tactic, assay_kernel_t** out) {
  bool forced;
  j->n = 1;
  ASSAY_TRY(tactic->make_joint(j, out));
  if (!*out) return NULL;
  (*out)->tactic = tactic;
  (*out)->name = tactic->name;
  (*out)->numerics = tactic->numerics;
  assay_status_t st = is_forced(c, j, &forced);
  if (!st && !forced) return NULL;
  (*out)->destroy(*out);
  *out = NULL;
  return st;
}

assay_status_t assay_choose_joint(assay_choice_t* c, assay_joint_layers_t* j,
                                  assay_kernel_t** out) {
  *out = NULL;
  for (size_t t = 0; !*out && t < c->setting.n_tactics; t++) {
    const assay_tactic_t* tactic = c->setting.tactics[t];
    if (tactic->make_joint && assay_ways_allow(c, tactic) && tactic->ends(j->layers[0]->layer))
      ASSAY_TRY(choose(c, j, tactic, out));
  }
  return NULL;
}
