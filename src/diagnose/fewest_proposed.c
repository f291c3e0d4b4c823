// The fewest layers in higher precision, of sets that the caller proposes (fewest.h).
#include <string.h>

#include "base/alloc.h"
#include "diagnose/fewest_strategies.h"

typedef struct state {
  bool* best;  // by node id: of the smallest set that did
  size_t n_best;
} state_t;

static void free_state(void* state) { assay_free(((state_t*)state)->best); }

static assay_status_t propose(assay_fewest_t* f, assay_fewest_step_t* out) {
  const assay_fewest_setting_t* s = f->setting;
  bool more = false;
  ASSAY_TRY(s->propose(s->runner, &f->set, &more));
  if (more) *out = ASSAY_FEWEST_TRY;
  return NULL;
}

static assay_status_t learn(assay_fewest_t* f, bool tried_none) {
  state_t* s = f->state;
  const size_t n = (size_t)f->subject.model->n_node_ids;
  if (!assay_fewest_does(f) || (f->fix->verified && f->set.n_chosen >= s->n_best)) {
    f->fix->runs++;
    return NULL;
  }
  if (tried_none) f->found->faithful = f->found->ran_as_asked = true;
  if (!s->best) ASSAY_TRY(assay_new_array(n, sizeof *s->best, &s->best));
  memcpy(s->best, f->set.chosen, n * sizeof *s->best);
  s->n_best = f->set.n_chosen;
  assay_fewest_take_fix(f);
  return NULL;
}

static assay_status_t finish(assay_fewest_t* f) {
  const state_t* s = f->state;
  if (!s->best) return NULL;
  memcpy(f->set.chosen, s->best, (size_t)f->subject.model->n_node_ids * sizeof *s->best);
  f->set.n_chosen = s->n_best;
  f->found->has_fix = s->n_best > 0;
  return assay_fp32_set_record(&f->set, f->fix);
}

const assay_fewest_row_t assay_fewest_proposed = {.state_bytes = sizeof(state_t),
                                                  .propose = propose,
                                                  .learn = learn,
                                                  .finish = finish,
                                                  .free_state = free_state,
                                                  .proposed = true};
