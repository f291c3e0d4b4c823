// The fewest layers in higher precision, from the account of a run as asked (fewest.h).
#include "base/alloc.h"
#include "diagnose/fewest_strategies.h"

enum { MAX_RUNS = 2, MAX_THINNING = 4 };

typedef struct state {
  int n_runs;  // that added layers
  bool thins;
  // Layers of the plan that are in the set, those with the least share of the error first; those
  // before `first` have been decided on.
  size_t *pinned, n_pinned, first, group;
  int n_thinned;     // runs without some of them
  size_t n_without;  // layers that the last one was without
  size_t n_before;   // nodes of the set before it
} state_t;

static void free_state(void* state) { assay_free(((state_t*)state)->pinned); }

// Where nothing passes a range: by shares, as many as the requirements ask for, and some to spare.
static assay_status_t choose_first(assay_fewest_t* f) {
  const assay_output_check_t* outputs = f->setting->outputs;
  assay_fp32_set_add_by_range(&f->set, false);
  if (f->set.n_chosen) return NULL;
  assay_fp32_set_add_by_range(&f->set, true);
  if (f->set.n_chosen) return NULL;
  ASSAY_TRY(assay_fp32_set_add_by_share(&f->set, f->subject.plan, f->setting->shares, outputs,
                                        assay_fp32_set_tolerated(&f->subject, outputs) / 1.5,
                                        false));
  if (!f->set.n_chosen) assay_fp32_set_add_by_error(&f->set, 0.1);
  return NULL;
}

// What did not do shows how much error is left, and where it comes from.
static assay_status_t choose_more(assay_fewest_t* f) {
  const assay_fewest_setting_t* s = f->setting;
  const assay_output_check_t* outputs = f->found->fix.outputs;
  const size_t before = f->set.n_chosen;
  const assay_shares_options_t options = {.unquantized = s->unquantized};
  assay_shares_t shares = {0};
  assay_fp32_set_add_by_range(&f->set, true);
  ASSAY_TRY(
      assay_shares_run(f->plan, s->backend, assay_samples_get(s->inputs, 0), &options, &shares));
  assay_status_t st =
      assay_fp32_set_add_by_share(&f->set, f->plan, &shares, outputs,
                                  assay_fp32_set_tolerated(&f->subject, outputs) / 4, false);
  assay_shares_deinit(&shares);
  if (!st && f->set.n_chosen == before) assay_fp32_set_add_by_error(&f->set, 0.001);
  return st;
}

// ---- fewer --------------------------------------------------------------------------------------

static bool is_pinned(const assay_fewest_t* f, const assay_layer_t* layer) {
  bool pinned = false;
  for (size_t k = 0; k < layer->n_nodes; k++) pinned |= f->set.chosen[layer->nodes[k]->id];
  return pinned;
}

static assay_status_t note_pinned(assay_fewest_t* f, state_t* s) {
  const assay_layers_t* l = assay_plan_layers(f->subject.plan);
  const assay_shares_t* shares = f->setting->shares;
  ASSAY_TRY(assay_new_array(l->n_layers, sizeof *s->pinned, &s->pinned));
  for (size_t i = 0; i < l->n_layers; i++) {
    if (!is_pinned(f, &l->layers[i])) continue;
    const double share = assay_shares_of_layer(shares, i);
    size_t at = s->n_pinned++;
    for (; at > 0 && assay_shares_of_layer(shares, s->pinned[at - 1]) > share; at--)
      s->pinned[at] = s->pinned[at - 1];
    s->pinned[at] = i;
  }
  return NULL;
}

static void set_layers(assay_fewest_t* f, size_t n, const size_t* at, bool pinned) {
  const assay_layers_t* l = assay_plan_layers(f->subject.plan);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < l->layers[at[i]].n_nodes; k++) {
      bool* chosen = &f->set.chosen[l->layers[at[i]].nodes[k]->id];
      f->set.n_chosen += (size_t)(pinned && !*chosen);
      f->set.n_chosen -= (size_t)(!pinned && *chosen);
      *chosen = pinned;
    }
}

// A fix that keeps more than half of the layers is little better than a higher precision for all:
// whether some can go again, half as many at a time.
static assay_status_t start_thinning(assay_fewest_t* f, state_t* s) {
  s->thins = true;
  if (!f->setting->shares->n || !f->found->fix.verified) return NULL;
  ASSAY_TRY(note_pinned(f, s));
  if (2 * s->n_pinned > assay_plan_layers(f->subject.plan)->n_layers) s->group = s->n_pinned / 2;
  return NULL;
}

static assay_status_t propose_fewer(assay_fewest_t* f, state_t* s, assay_fewest_step_t* out) {
  if (!s->thins) ASSAY_TRY(start_thinning(f, s));
  if (s->n_thinned == MAX_THINNING || !s->group || s->first >= s->n_pinned) return NULL;
  s->n_without = s->group < s->n_pinned - s->first ? s->group : s->n_pinned - s->first;
  s->n_before = f->set.n_chosen;
  set_layers(f, s->n_without, s->pinned + s->first, false);
  *out = ASSAY_FEWEST_TRY;
  return NULL;
}

// Where it does not do without these layers, everything is as it was.
static void learn_fewer(assay_fewest_t* f, state_t* s) {
  assay_fix_t* fix = &f->found->fix;
  if (f->last.faithful) {
    assay_fewest_take_fix(f);
  } else {
    fix->runs++;
    set_layers(f, s->n_without, s->pinned + s->first, true);
  }
  const bool gone = f->set.n_chosen < s->n_before;
  s->n_thinned++;
  s->first += gone || s->group == 1 ? s->n_without : 0;
  if (!gone && s->group > 1) s->group /= 2;
}

// ---- the strategy -------------------------------------------------------------------------------

static assay_status_t propose(assay_fewest_t* f, assay_fewest_step_t* out) {
  state_t* s = f->state;
  if (!s->thins && s->n_runs < MAX_RUNS && !f->found->fix.verified) {
    const size_t before = f->set.n_chosen;
    ASSAY_TRY(s->n_runs ? choose_more(f) : choose_first(f));
    if (f->set.n_chosen != before) {
      assay_fewest_progress(f, "verifying a fix", 0);
      *out = ASSAY_FEWEST_TRY;
      return NULL;
    }
  }
  return propose_fewer(f, s, out);
}

static assay_status_t learn(assay_fewest_t* f, bool tried_none) {
  state_t* s = f->state;
  (void)tried_none;
  if (s->thins) {
    learn_fewer(f, s);
  } else {
    s->n_runs++;
    assay_fewest_take_fix(f);
  }
  return NULL;
}

static assay_status_t finish(assay_fewest_t* f) {
  ASSAY_TRY(assay_fp32_set_record(&f->set, &f->found->fix));
  f->found->has_fix = true;
  return NULL;
}

const assay_fewest_row_t assay_fewest_observed = {.state_bytes = sizeof(state_t),
                                                  .propose = propose,
                                                  .learn = learn,
                                                  .finish = finish,
                                                  .free_state = free_state};
