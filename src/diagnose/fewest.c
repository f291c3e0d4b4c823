// The fewest layers in higher precision with which the outputs are right: one search, its
// strategies as rows.
#include "diagnose/fewest.h"

#include "base/alloc.h"
#include "diagnose/fewest_strategies.h"

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

// A set that does, then fewer layers.
static assay_status_t find(assay_fewest_t* f, const assay_fewest_row_t* row) {
  ASSAY_TRY(search(f, row));
  f->take = false;
  const bool does = f->found->has_fix && f->fix->verified;
  const size_t runs = f->n_runs;
  if (does && !row->fixed) ASSAY_TRY(search(f, &assay_fewest_removal));
  f->found->removals = f->n_runs - runs;
  return NULL;
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
  assay_free(f->outputs);
  assay_free(f->trials);
  assay_str_deinit(&f->unmet);
  *f = (assay_fewest_found_t){0};
}
