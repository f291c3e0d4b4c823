// The fewest layers in higher precision with which the outputs are right: one search, its
// strategies as rows.
#include "diagnose/fewest.h"

#include <string.h>

#include "base/alloc.h"
#include "diagnose/fewest_strategies.h"
#include "formats/format.h"

static const assay_fewest_row_t* const rows[] = {[ASSAY_FEWEST_OBSERVED] = &assay_fewest_observed,
                                                 [ASSAY_FEWEST_PREDICTED] = &assay_fewest_predicted,
                                                 [ASSAY_FEWEST_BISECT] = &assay_fewest_bisect,
                                                 [ASSAY_FEWEST_LINEAR] = &assay_fewest_linear,
                                                 [ASSAY_FEWEST_PROPOSED] = &assay_fewest_proposed};

static void forget_run(assay_fewest_t* f) {
  assay_taken_destroy(f->taken);
  assay_plan_destroy(f->plan);
  assay_run_result_deinit(&f->last);
  f->taken = NULL;
  f->plan = NULL;
}

// Runs with the set in fp32, or none of it.
static assay_status_t run(assay_fewest_t* f, bool none) {
  const assay_fewest_setting_t* s = f->setting;
  assay_fp32_set_t empty = {0};
  forget_run(f);
  if (none) ASSAY_TRY(assay_fp32_set_create(&f->subject, &empty));
  const assay_precision_t precision = assay_fp32_set_precision(none ? &empty : &f->set);
  f->n_ran = none ? 0 : f->set.n_chosen;
  assay_status_t st = s->run(s->runner, &precision, &f->last, &f->plan, f->take ? &f->taken : NULL);
  assay_fp32_set_deinit(&empty);
  if (st) return st;
  f->n_runs++;
  assay_str_deinit(&f->found->unmet);
  f->found->unmet = f->last.unmet;
  f->last.unmet = (assay_str_t){0};
  return NULL;
}

static assay_status_t step_through(assay_fewest_t* f, const assay_fewest_row_t* row) {
  for (;;) {
    assay_fewest_step_t step = ASSAY_FEWEST_STOP;
    ASSAY_TRY(row->propose(f, &step));
    if (step == ASSAY_FEWEST_STOP) return row->finish(f);
    const bool none = step == ASSAY_FEWEST_TRY_NONE || !f->set.n_chosen;
    ASSAY_TRY(run(f, step == ASSAY_FEWEST_TRY_NONE));
    ASSAY_TRY(row->learn(f, none));
  }
}

static assay_status_t search(assay_fewest_t* f, const assay_fewest_row_t* row) {
  ASSAY_TRY(assay_new_array(1, row->state_bytes, &f->state));
  assay_status_t st = step_through(f, row);
  if (row->free_state) row->free_state(f->state);
  assay_free(f->state);
  f->state = NULL;
  return st;
}

static assay_status_t find_fewer(assay_fewest_t* f) {
  const size_t runs = f->n_runs;
  ASSAY_TRY(search(f, &assay_fewest_removal));
  f->found->removals += f->n_runs - runs;
  return NULL;
}

// ---- all layers, and near them ------------------------------------------------------------------

static bool is_low(const assay_layer_t* l) {
  return l->format != ASSAY_FORMAT_NONE && assay_format_info(l->format)->bits < 32;
}

static void set_all(assay_fewest_t* f) {
  const assay_layers_t* l = assay_plan_layers(f->subject.plan);
  for (size_t i = 0; i < l->n_all_layers; i++)
    if (is_low(&l->layers[i])) assay_fp32_set_add(&f->set, f->subject.plan, &l->layers[i]);
}

static void set_nodes(assay_fewest_t* f, const assay_fix_t* fix) {
  assay_fp32_set_empty(&f->set);
  for (size_t i = 0; i < fix->n_nodes; i++) f->set.chosen[fix->nodes[i]->id] = true;
  f->set.n_chosen = fix->n_nodes;
}

// The run of all layers becomes that of the fix, whose set is then to be made smaller.
static assay_status_t start_from_all(assay_fewest_t* f) {
  const size_t n = f->subject.model->graph->n_outputs;
  set_all(f);
  assay_free(f->fix->outputs);
  f->fix->outputs = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *f->fix->outputs, &f->fix->outputs));
  memcpy(f->fix->outputs, f->found->wide, n * sizeof *f->fix->outputs);
  f->fix->verified = true;
  return NULL;
}

static assay_status_t run_all(assay_fewest_t* f, bool* out_does) {
  const size_t n = f->subject.model->graph->n_outputs;
  const assay_fix_t* fix = &f->found->fix;
  set_all(f);
  if (f->n_ran == f->set.n_chosen && fix->outputs) {  // sets have only grown
    ASSAY_TRY(assay_new_array(n, sizeof *f->found->wide, &f->found->wide));
    memcpy(f->found->wide, fix->outputs, n * sizeof *fix->outputs);
    *out_does = fix->verified;
    return NULL;
  }
  assay_fewest_progress(f, "running all layers in fp32", 0);
  ASSAY_TRY(run(f, false));
  *out_does = f->last.faithful;
  f->found->wide = f->last.outputs;
  f->last.outputs = NULL;
  return NULL;
}

// Whether all layers in fp32 mend some output that is wrong as asked.
static assay_status_t all_mend_some(assay_fewest_t* f, bool* out) {
  const assay_fewest_found_t* found = f->found;
  const assay_output_check_t* asked = f->setting->outputs;
  if (found->unmet.len) return NULL;
  if (!asked && !found->ran_as_asked) {
    ASSAY_TRY(run(f, true));
    assay_fewest_take_asked(f);
  }
  if (!asked) asked = found->outputs;
  for (size_t i = 0; i < f->subject.model->graph->n_outputs; i++)
    *out |= !asked[i].faithful && found->wide[i].faithful;
  return NULL;
}

// No set of the strategy's does. All layers may; what these do not mend, no set is asked to.
static assay_status_t take_from_all(assay_fewest_t* f, bool* out_all_do) {
  assay_fewest_found_t* found = f->found;
  ASSAY_TRY(run_all(f, out_all_do));
  found->has_fix = *out_all_do;
  if (!*out_all_do) ASSAY_TRY(all_mend_some(f, &found->has_fix));
  if (!found->has_fix) return NULL;
  if (!*out_all_do) f->excused = found->wide;
  return start_from_all(f);
}

static assay_status_t find_best(assay_fewest_t* f) {
  assay_fewest_found_t* found = f->found;
  found->best_is_fewest = assay_fewest_is_near(f, found->fix.outputs, found->wide);
  if (found->best_is_fewest) return NULL;
  f->fix = &found->best;
  f->reference = found->wide;
  ASSAY_TRY(start_from_all(f));
  ASSAY_TRY(find_fewer(f));
  found->has_best = true;
  return NULL;
}

// ---- the whole ----------------------------------------------------------------------------------

// A set that does, then fewer layers; then the fewest that are near all of them.
static assay_status_t find(assay_fewest_t* f, const assay_fewest_row_t* row) {
  assay_fewest_found_t* found = f->found;
  bool all_do = false;
  ASSAY_TRY(search(f, row));
  f->take = false;
  if (row->fixed || found->faithful) return NULL;
  if (!found->has_fix || !found->fix.verified) {
    if (!row->proposed) ASSAY_TRY(take_from_all(f, &all_do));
  } else if (f->setting->best) {
    ASSAY_TRY(run_all(f, &all_do));
    set_nodes(f, &found->fix);
  }
  if (!found->has_fix || !found->fix.verified) return NULL;
  ASSAY_TRY(find_fewer(f));
  return all_do && f->setting->best ? find_best(f) : NULL;
}

assay_status_t assay_fewest_find(const assay_fewest_setting_t* setting, assay_fewest_found_t* out) {
  assay_fewest_found_t found = {0};
  assay_fewest_t f = {
      .setting = setting, .subject = setting->subject, .found = &found, .fix = &found.fix};
  assay_status_t st = assay_fp32_set_create(&f.subject, &f.set);
  if (!st) st = find(&f, rows[setting->strategy]);
  found.runs += f.n_runs;
  found.cancels = f.set.cancels;
  found.cancels_from = f.set.cancels_from;
  found.cancels_to = f.set.cancels_to;
  forget_run(&f);
  assay_fp32_set_deinit(&f.set);
  if (st) return assay_fewest_found_deinit(&found), st;
  *out = found;
  return NULL;
}

void assay_fewest_found_deinit(assay_fewest_found_t* f) {
  assay_fix_deinit(&f->fix);
  assay_fix_deinit(&f->best);
  assay_free(f->wide);
  assay_free(f->outputs);
  assay_free(f->trials);
  assay_str_deinit(&f->unmet);
  *f = (assay_fewest_found_t){0};
}
