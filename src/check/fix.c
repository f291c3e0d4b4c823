// The fix: the fewest layers in higher precision, found from the account and verified by running.
#include "check/fix.h"

#include "base/alloc.h"
#include "check/keep.h"

enum { MAX_RUNS = 2, MAX_THINNING = 4 };

// ---- verifying ----------------------------------------------------------------------------------

// Runs with the layers chosen so far; *out_plan is the plan of that.
static assay_status_t verify(assay_keep_t* s, assay_check_t* c, const assay_samples_t* inputs,
                             const assay_samples_t* golden, assay_plan_t** out_plan) {
  const assay_precision_t precision = assay_keep_precision(s);
  assay_account_t* account = NULL;
  const assay_account_options_t options = {.unquantized = c->options.unquantized,
                                           .outputs_only = true};
  assay_status_t st =
      assay_plan_create(c->model, &precision, &c->options.plan, c->options.seed, out_plan);
  if (!st) st = assay_account_create(*out_plan, c->options.backend, &options, &account);
  assay_free(c->fix.outputs);
  c->fix.outputs = NULL;
  if (!st) st = assay_outputs_create(c->model->graph, c->options.require, &c->fix.outputs);
  if (!st)
    st = assay_run_samples(account, c->model, inputs, golden, c->options.require, c->fix.outputs,
                           &c->fix.verified, NULL, NULL);
  assay_account_destroy(account);
  c->fix.runs++;
  return st;
}

// Where nothing passes a range: by shares, as many as the requirements ask for, and some to spare.
static assay_status_t choose_first(assay_keep_t* s) {
  const assay_check_t* c = s->check;
  assay_keep_by_range(s, false);
  if (s->n_chosen) return NULL;
  assay_keep_by_range(s, true);
  if (s->n_chosen) return NULL;
  ASSAY_TRY(assay_keep_by_share(s, c->plan, &c->shares, c->outputs,
                                assay_keep_room(c, c->outputs) / 1.5, false));
  if (!s->n_chosen) assay_keep_by_error(s, 0.1);
  return NULL;
}

// What did not do shows how much error is left, and where it comes from.
static assay_status_t choose_more(assay_keep_t* s, const assay_plan_t* plan,
                                  const assay_samples_t* inputs) {
  const assay_check_t* c = s->check;
  const size_t before = s->n_chosen;
  const assay_shares_options_t options = {.unquantized = c->options.unquantized};
  assay_shares_t shares = {0};
  assay_keep_by_range(s, true);
  ASSAY_TRY(
      assay_shares_run(plan, c->options.backend, assay_samples_get(inputs, 0), &options, &shares));
  assay_status_t st = assay_keep_by_share(s, plan, &shares, c->fix.outputs,
                                          assay_keep_room(c, c->fix.outputs) / 4, false);
  assay_shares_deinit(&shares);
  if (!st && s->n_chosen == before) assay_keep_by_error(s, 0.001);
  return st;
}

// ---- fewer --------------------------------------------------------------------------------------

// The layers of the plan that are kept, those with the least share of the error first.
static assay_status_t kept_layers(const assay_keep_t* s, const assay_check_t* c, size_t** out,
                                  size_t* out_n) {
  const assay_layers_t* l = assay_plan_layers(c->plan);
  size_t n = 0;
  ASSAY_TRY(assay_new_array(l->n_layers, sizeof **out, out));
  for (size_t i = 0; i < l->n_layers; i++) {
    bool kept = false;
    for (size_t k = 0; k < l->layers[i].n_nodes; k++) kept |= s->chosen[l->layers[i].nodes[k]->id];
    if (!kept) continue;
    size_t at = n++;
    for (; at > 0 &&
           assay_shares_of_layer(&c->shares, (*out)[at - 1]) > assay_shares_of_layer(&c->shares, i);
         at--)
      (*out)[at] = (*out)[at - 1];
    (*out)[at] = i;
  }
  *out_n = n;
  return NULL;
}

static void set_layers(assay_keep_t* s, const assay_check_t* c, size_t n, const size_t* at,
                       bool kept) {
  const assay_layers_t* l = assay_plan_layers(c->plan);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < l->layers[at[i]].n_nodes; k++) {
      bool* chosen = &s->chosen[l->layers[at[i]].nodes[k]->id];
      s->n_chosen += (size_t)(kept && !*chosen);
      s->n_chosen -= (size_t)(!kept && *chosen);
      *chosen = kept;
    }
}

// Runs without these layers: where that does not do, everything is as it was.
static assay_status_t try_without(assay_keep_t* s, assay_check_t* c, size_t n, const size_t* at,
                                  const assay_samples_t* inputs, const assay_samples_t* golden) {
  assay_output_check_t* outputs = c->fix.outputs;
  assay_plan_t* plan = NULL;
  c->fix.outputs = NULL;
  set_layers(s, c, n, at, false);
  assay_status_t st = verify(s, c, inputs, golden, &plan);
  assay_plan_destroy(plan);
  const bool better = !st && c->fix.verified;
  assay_free(better ? outputs : c->fix.outputs);
  if (!better) {
    c->fix.outputs = outputs;
    c->fix.verified = true;
    set_layers(s, c, n, at, true);
  }
  return st;
}

// A fix that keeps more than half of the layers is little better than a higher precision for all:
// whether some can go again, half as many at a time.
static assay_status_t thin(assay_keep_t* s, assay_check_t* c, const assay_samples_t* inputs,
                           const assay_samples_t* golden) {
  size_t *at = NULL, n = 0;
  if (!c->shares.n || !c->fix.verified) return NULL;
  ASSAY_TRY(kept_layers(s, c, &at, &n));
  assay_status_t st = NULL;
  size_t first = 0, group = n / 2;
  if (2 * n <= assay_plan_layers(c->plan)->n_layers) group = 0;
  for (int run = 0; !st && run < MAX_THINNING && group && first < n; run++) {
    const size_t some = group < n - first ? group : n - first, before = s->n_chosen;
    st = try_without(s, c, some, at + first, inputs, golden);
    const bool gone = s->n_chosen < before;
    first += gone || group == 1 ? some : 0;
    if (!gone && group > 1) group /= 2;
  }
  assay_free(at);
  return st;
}

static assay_status_t search(assay_keep_t* s, assay_check_t* c, const assay_samples_t* inputs,
                             const assay_samples_t* golden) {
  assay_plan_t* plan = NULL;
  assay_status_t st = NULL;
  for (int run = 0; !st && run < MAX_RUNS && !c->fix.verified; run++) {
    const size_t before = s->n_chosen;
    st = run ? choose_more(s, plan, inputs) : choose_first(s);
    if (st || s->n_chosen == before) break;
    assay_plan_destroy(plan);
    plan = NULL;
    if (c->options.progress) c->options.progress(c->options.user, "verifying a fix", 0);
    st = verify(s, c, inputs, golden, &plan);
  }
  assay_plan_destroy(plan);
  if (!st) st = thin(s, c, inputs, golden);
  if (!st) st = assay_keep_record(s, &c->fix);
  c->has_fix = !st;
  return st;
}

assay_status_t assay_fix_search(assay_check_t* check, const assay_samples_t* inputs,
                                const assay_samples_t* golden) {
  assay_keep_t s = {0};
  ASSAY_TRY(assay_keep_create(check, &s));
  assay_status_t st = search(&s, check, inputs, golden);
  assay_keep_deinit(&s);
  return st;
}
