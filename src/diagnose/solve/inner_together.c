// Several constants that are each as many numbers as one sample has: tables that many nodes read.
//
// What one sample tells of each has no test, and while another node at fault is not mended the
// outputs of other samples are none either. So all are solved for first, and then the other samples
// have to bear them out together.
#include "base/alloc.h"
#include "diagnose/solve/inner.h"
#include "diagnose/solve/solve.h"

static assay_status_t solve_one(assay_golden_walk_t* w, assay_fault_t* f, bool* out) {
  assay_repair_t r = {0};
  *out = false;
  if (!f->value || !f->value->producer || f->value->producer->graph != w->model->graph || f->shape)
    return NULL;
  const assay_search_target_t target = assay_inner_target(w, f->value);
  ASSAY_TRY(assay_solve_untested(w->truth, f->value->producer, &target, &r, out));
  if (!*out) return NULL;
  *f = (assay_fault_t){.value = f->value,
                       .node = f->value->producer,
                       .difference = f->difference,
                       .explained = f->explained,
                       .has_repair = true,
                       .restored = true,
                       .repair = r};
  return NULL;
}

static assay_status_t solve_all(assay_golden_walk_t* w, bool* out) {
  assay_holdout_answer_t said = ASSAY_HOLDOUT_SILENT;
  *out = true;
  for (size_t i = 0; i < w->out->n && *out; i++)
    if (!w->out->faults[i].restored) ASSAY_TRY(solve_one(w, &w->out->faults[i], out));
  if (*out) ASSAY_TRY(assay_inner_ask(w, &said));
  *out = *out && (said == ASSAY_HOLDOUT_HOLDS || said == ASSAY_HOLDOUT_NEAR);
  return NULL;
}

assay_status_t assay_inner_together(assay_golden_walk_t* w) {
  const size_t n = w->out->n;
  assay_fault_t* was = NULL;
  bool holds = false;
  size_t open = 0;
  for (size_t i = 0; i < n; i++) open += !w->out->faults[i].restored;
  if (!open || n < 2 || !w->options->n_others) return NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *was, &was));
  for (size_t i = 0; i < n; i++) was[i] = w->out->faults[i];
  assay_status_t st = solve_all(w, &holds);
  for (size_t i = 0; i < n; i++) {
    if (was[i].restored) continue;
    if (holds && !st) {
      assay_repair_deinit(&was[i].repair);
      continue;
    }
    if (w->out->faults[i].restored) assay_repair_deinit(&w->out->faults[i].repair);
    w->out->faults[i] = was[i];
  }
  assay_free(was);
  return st;
}
