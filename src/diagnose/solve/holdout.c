// Other samples, which took no part in finding a repair.
#include "diagnose/solve/holdout.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/outputs/others.h"
#include "diagnose/search_trial.h"

// RMS that a repair may leave of the outputs' difference, over what there was: where the model has
// other faults none holds.
static const double LEFT = 0.003;

struct assay_holdout {
  assay_search_t main;
  assay_others_t others;
  const assay_repair_t* adopted[ASSAY_SEARCH_FAULTS];
  size_t n_adopted;
  double left;
};

assay_status_t assay_holdout_create(const assay_export_options_t* options,
                                    const assay_model_t* model, assay_evaluator_t* truth,
                                    const assay_search_target_t* outputs, size_t n,
                                    assay_holdout_t** out) {
  assay_holdout_t* h = NULL;
  *out = NULL;
  if (!n || !options->n_others) return NULL;
  ASSAY_TRY(assay_new_array(1, sizeof *h, &h));
  h->main = (assay_search_t){.model = model,
                             .evaluator = truth,
                             .nodes = (const assay_node_t* const*)model->graph->nodes,
                             .n_nodes = model->graph->n_nodes,
                             .targets = outputs,
                             .n_targets = n};
  assay_status_t st = assay_others_init(options, &h->main, &h->others);
  if (st || !h->others.n) return assay_holdout_destroy(h), st;
  *out = h;
  return NULL;
}

void assay_holdout_destroy(assay_holdout_t* h) {
  if (!h) return;
  assay_others_deinit(&h->others);
  assay_free(h);
}

// ---- evaluating --------------------------------------------------------------------------------

bool assay_holdout_adopt(assay_holdout_t* h, const assay_repair_t* r) {
  if (!h) return true;
  if (h->n_adopted + 1 >= ASSAY_SEARCH_FAULTS) return false;
  for (size_t i = 0; i < h->n_adopted; i++)
    if (h->adopted[i]->node == r->node) return strcmp(h->adopted[i]->text, r->text) == 0;
  h->adopted[h->n_adopted++] = r;
  return true;
}

double assay_holdout_left(const assay_holdout_t* h) { return h ? h->left : (double)NAN; }

static assay_status_t evaluate(const assay_holdout_t* h, assay_search_t* s, const assay_repair_t* r,
                               assay_trials_t* t, bool* out_restored, bool* out_fits) {
  s->adopted[0] = r;
  s->n_adopted = 1;
  for (size_t i = 0; i < h->n_adopted; i++) s->adopted[s->n_adopted++] = h->adopted[i];
  assay_status_t st = assay_trials_init(s, t);
  if (!st) {
    st = assay_trials_evaluate_adopted(t, out_restored, out_fits);
    if (st) assay_trials_deinit(t);
  }
  s->n_adopted = 0;
  return st;
}

size_t assay_holdout_count(const assay_holdout_t* h) { return h ? h->others.n : 0; }

assay_status_t assay_holdout_run(assay_holdout_t* h, size_t sample, const assay_repair_t* r,
                                 assay_holdout_see_t* see, void* user, bool* out_fits) {
  assay_trials_t t;
  bool restored = false;
  ASSAY_TRY(evaluate(h, &h->others.at[sample], r, &t, &restored, out_fits));
  for (size_t k = 0; *out_fits && k < t.s->n_targets; k++) {
    const assay_search_target_t* g = &t.s->targets[k];
    see(user, t.got[k] ? t.got[k] : g->truth, g->golden);
  }
  assay_trials_deinit(&t);
  return NULL;
}

// ---- asking ------------------------------------------------------------------------------------

// Squares of the outputs' differences, over golden's size, before and after.
typedef struct sums {
  double before, after;
} sums_t;

static void add_targets(const assay_trials_t* t, sums_t* sums) {
  for (size_t k = 0; k < t->s->n_targets; k++) {
    const assay_search_target_t* g = &t->s->targets[k];
    const assay_difference_t was = assay_difference(g->truth, g->golden);
    const assay_difference_t is = assay_difference(t->got[k] ? t->got[k] : g->truth, g->golden);
    const double scale = fmax(was.ref_rms, 1e-300);
    if (!was.comparable) continue;
    sums->before += was.rms / scale * (was.rms / scale) + (double)was.mismatched;
    sums->after += is.comparable ? is.rms / scale * (is.rms / scale) + (double)is.mismatched
                                 : (double)INFINITY;
  }
}

assay_status_t assay_holdout_ask(assay_holdout_t* h, size_t first, const assay_repair_t* r,
                                 assay_holdout_answer_t* out) {
  sums_t sums = {0};
  bool all_restored = true;
  *out = ASSAY_HOLDOUT_SILENT;
  if (h) h->left = (double)NAN;
  for (size_t i = first; i < assay_holdout_count(h); i++) {
    assay_trials_t t;
    bool restored = false, fits = false;
    ASSAY_TRY(evaluate(h, &h->others.at[i], r, &t, &restored, &fits));
    if (fits) add_targets(&t, &sums);
    assay_trials_deinit(&t);
    if (!fits) return *out = ASSAY_HOLDOUT_FAILS, NULL;
    all_restored &= restored;
  }
  if (!(sums.before > 0)) return NULL;
  h->left = sqrt(sums.after / sums.before);
  *out = all_restored                              ? ASSAY_HOLDOUT_HOLDS
         : sums.after <= LEFT * LEFT * sums.before ? ASSAY_HOLDOUT_NEAR
                                                   : ASSAY_HOLDOUT_FAILS;
  return NULL;
}
