// Which layers need more precision than was asked for, so that the outputs do: what `debug
// precision` finds.
#include "debug/precision.h"

#include <math.h>
#include <stdio.h>

#include "account/runs.h"
#include "base/alloc.h"
#include "base/functions.h"
#include "base/memory.h"
#include "check/keep.h"
#include "formats/format.h"

enum { MAX_RUNS = 3 };

typedef struct job {
  const assay_precision_options_t* options;
  assay_precision_found_t* found;
  assay_check_t* check;
  const assay_samples_t* inputs;
  assay_runs_t* runs;
  assay_keep_t keep;
  assay_output_check_t* best;  // statistics of the last prefix that did
  assay_plan_t* plan;          // of the last run, and
  assay_taken_t* taken;        // what was made in it; NULL: not taken
} job_t;

static void progress(const job_t* j, const char* what, double fraction) {
  const assay_check_options_t* o = &j->check->options;
  if (o->progress) o->progress(o->user, what, fraction);
}

// Runs with these layers in higher precision. Of none it is what was asked for.
static assay_status_t try_set(job_t* j, const assay_keep_t* keep, bool take) {
  assay_check_t* c = j->check;
  const assay_precision_t precision = assay_keep_precision(keep);
  assay_run_result_t got = {0};
  assay_taken_destroy(j->taken);
  assay_plan_destroy(j->plan);
  j->taken = NULL;
  j->plan = NULL;
  ASSAY_TRY(
      assay_runs_try(j->runs, &precision, &got, take ? &j->plan : NULL, take ? &j->taken : NULL));
  assay_str_deinit(&j->found->unmet);
  j->found->unmet = got.unmet;
  if (!keep->n_chosen) {
    assay_free(c->outputs);
    c->outputs = got.outputs;
    c->faithful = got.faithful;
    j->found->ran_as_asked = true;
  } else {
    assay_free(c->fix.outputs);
    c->fix.outputs = got.outputs;
    c->fix.verified = got.faithful;
    c->fix.runs++;
  }
  return NULL;
}

// ---- from the account ---------------------------------------------------------------------------

// Truth of all samples, and what it says of the ranges of the layers.
static assay_status_t predict(job_t* j) {
  assay_check_t* c = j->check;
  const assay_account_options_t options = {.unquantized = c->options.unquantized, .predict = true};
  ASSAY_TRY(assay_account_create(c->plan, c->options.backend, &options, &c->account));
  for (size_t k = 0; k < j->inputs->n; k++) {
    progress(j, "truth", (double)k / (double)j->inputs->n);
    ASSAY_TRY(assay_account_run(c->account, assay_samples_get(j->inputs, k)));
    ASSAY_TRY(assay_runs_know(j->runs, k, c->account));
  }
  return NULL;
}

// What the last run has made tells where its error comes from. Where it has no shares (integers),
// what each layer does to the numbers decides: only a whole account of another run knows that.
static assay_status_t choose_by_run(job_t* j, bool first) {
  assay_check_t* c = j->check;
  const assay_shares_options_t options = {.unquantized = c->options.unquantized};
  const assay_output_check_t* outputs = first ? c->outputs : c->fix.outputs;
  const double rest = assay_keep_room(c, outputs) / (first ? 1.5 : 4);
  assay_shares_t shares = {0};
  progress(j, "splitting the error", 0);
  ASSAY_TRY(assay_shares_of(j->taken, assay_samples_get(j->inputs, 0), &options, &shares));
  assay_status_t st = assay_keep_by_share(&j->keep, j->plan, &shares, outputs, rest, first);
  if (!c->shares.n && !j->check->fix.runs)
    c->shares = shares;
  else
    assay_shares_deinit(&shares);
  return st;
}

static assay_status_t account_for_run(job_t* j) {
  assay_check_t* c = j->check;
  const assay_account_options_t options = {.unquantized = c->options.unquantized};
  assay_account_t* seen = NULL;
  if (assay_runs_count(j->runs) + j->found->runs + 2 > MAX_RUNS) return NULL;
  ASSAY_TRY(assay_account_create(c->plan, c->options.backend, &options, &seen));
  j->found->runs++;
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < j->inputs->n; k++)
    st = assay_account_run(seen, assay_samples_get(j->inputs, k));
  if (st) return assay_account_destroy(seen), st;
  assay_account_destroy(c->account);
  c->account = seen;
  assay_keep_by_error(&j->keep, 0.1);
  return NULL;
}

// The relative RMS error at which cosines are the default's 0.999.
static const double TOLERATED = 0.0447;

// Before anything ran, what loses so much that no output could be right; a requirement of the
// user's may be for less.
static assay_status_t choose_before(job_t* j) {
  static const double SURELY = 10;
  const assay_requirements_t* r = j->check->options.require;
  assay_keep_by_range(&j->keep, false);
  return r && r->n ? NULL : assay_keep_by_loss(&j->keep, SURELY * TOLERATED);
}

// The relative RMS error that the run's output with the least room can bear.
static double tolerated(const job_t* j, const assay_output_check_t* outputs) {
  const double room = assay_keep_room(j->check, outputs);
  double least = INFINITY;
  for (size_t i = 0; i < j->check->n_outputs; i++) {
    const assay_error_sum_t* e = &outputs[i].error;
    if (outputs[i].faithful || !outputs[i].is_float || !(e->sum_ref2 > 0)) continue;
    least = fmin(least, sqrt(room * e->sum_err2 / e->sum_ref2));
  }
  return least < (double)INFINITY ? least : TOLERATED;
}

// Behind a run that did not do: more layers.
static assay_status_t choose_more(job_t* j) {
  const size_t before = j->keep.n_chosen;
  const bool first = !before;
  const assay_output_check_t* outputs = first ? j->check->outputs : j->check->fix.outputs;
  if (before) assay_keep_by_range(&j->keep, true);
  ASSAY_TRY(assay_keep_by_loss(&j->keep, tolerated(j, outputs)));
  if (j->taken && j->keep.n_chosen == before) ASSAY_TRY(choose_by_run(j, first));
  return j->keep.n_chosen == before && first ? account_for_run(j) : NULL;
}

// A range that values leave need not show in the outputs, though no reader absorbs it. Where a run
// is left, it tells whether any layer has to be kept.
static assay_status_t confirm_need(job_t* j) {
  assay_check_t* c = j->check;
  assay_keep_t none = {0};
  if (!j->options->as_asked || !c->fix.verified || j->found->ran_as_asked ||
      assay_runs_count(j->runs) >= MAX_RUNS)
    return NULL;
  progress(j, "running as asked", 0);
  ASSAY_TRY(assay_keep_create(c, &none));
  assay_status_t st = try_set(j, &none, false);
  assay_keep_deinit(&none);
  if (st || !c->faithful) return st;
  assay_keep_empty(&j->keep);
  c->fix.verified = false;
  return NULL;
}

static assay_status_t by_account(job_t* j) {
  assay_check_t* c = j->check;
  ASSAY_TRY(choose_before(j));
  // Whether nothing foretold is enough, a run shows; what it makes is needed if it does not do.
  bool take = !j->keep.n_chosen;
  while (assay_runs_count(j->runs) + j->found->runs < MAX_RUNS) {
    const size_t before = j->keep.n_chosen;
    progress(j, before ? "verifying a fix" : "running", 0);
    ASSAY_TRY(try_set(j, &j->keep, take));
    if (c->faithful || c->fix.verified) break;
    take = true;
    ASSAY_TRY(choose_more(j));
    // The same again would only show what it made, of which the last run has no use.
    if (j->keep.n_chosen == before && (j->taken || assay_runs_count(j->runs) + 1 >= MAX_RUNS))
      break;
  }
  ASSAY_TRY(confirm_need(j));
  c->has_fix = j->keep.n_chosen > 0;
  return NULL;
}

// ---- by prefixes --------------------------------------------------------------------------------

static bool is_float(assay_type_t t) {
  return t == ASSAY_TYPE_FLOAT || t == ASSAY_TYPE_FLOAT16 || t == ASSAY_TYPE_BFLOAT16;
}

static bool makes_floats(const assay_node_t* n) {
  bool any = false;
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_valtype_t* t = n->outputs[i] ? n->outputs[i]->type : NULL;
    any |= t && (t->kind != ASSAY_KIND_TENSOR || is_float(t->elem));
  }
  return any;
}

// Nodes of bodies go with the node that has them.
static void keep_node(assay_keep_t* k, const assay_node_t* n) {
  if (makes_floats(n)) {
    k->n_chosen += !k->chosen[n->id];
    k->chosen[n->id] = true;
  }
  for (size_t a = 0; a < n->n_attrs; a++) {
    const assay_attr_t* attr = &n->attrs[a];
    const size_t graphs = attr->type == ASSAY_ATTR_GRAPH    ? 1
                          : attr->type == ASSAY_ATTR_GRAPHS ? attr->n
                                                            : 0;
    for (size_t g = 0; g < graphs; g++) {
      const assay_graph_t* body = attr->type == ASSAY_ATTR_GRAPH ? attr->u.g : attr->u.graphs[g];
      for (size_t i = 0; i < body->n_nodes; i++) keep_node(k, body->nodes[i]);
    }
  }
}

static void choose_prefix(job_t* j, size_t n) {
  const assay_graph_t* g = j->check->model->graph;
  assay_keep_empty(&j->keep);
  for (size_t i = 0; i < n; i++)
    keep_node(&j->keep, g->nodes[j->options->from_end ? g->n_nodes - 1 - i : i]);
}

static assay_status_t try_prefix(job_t* j, size_t n, bool* out_yes) {
  assay_precision_found_t* f = j->found;
  choose_prefix(j, n);
  ASSAY_TRY(assay_grow(&f->trials, &f->cap_trials, f->n_trials + 1, sizeof *f->trials));
  ASSAY_TRY(try_set(j, &j->keep, false));
  *out_yes = j->keep.n_chosen ? j->check->fix.verified : j->check->faithful;
  f->trials[f->n_trials++] = (assay_precision_trial_t){n, *out_yes};
  if (*out_yes && j->keep.n_chosen) {
    f->n_prefix = n;
    assay_free(j->best);
    j->best = j->check->fix.outputs;
    j->check->fix.outputs = NULL;
    ASSAY_TRY(assay_keep_record(&j->keep, &j->check->fix));
    j->check->has_fix = true;
  }
  return NULL;
}

// All layers first, then half as many between what did and what did not.
static assay_status_t bisect(job_t* j) {
  size_t bad = 0, good = j->found->n_layers + 1, n = j->found->n_layers;
  bool yes = false;
  while (good - bad > 1 && n <= j->found->n_layers) {
    progress(j, "bisecting", 1 - (double)(good - bad) / (double)(j->found->n_layers + 1));
    ASSAY_TRY(try_prefix(j, n, &yes));
    if (yes)
      good = n;
    else
      bad = n;
    n = yes ? (good + bad) / 2 : (good + bad + 1) / 2;
  }
  // One layer does: perhaps none has to be kept.
  return good == 1 ? try_prefix(j, 0, &yes) : NULL;
}

static assay_status_t linear(job_t* j) {
  bool yes = false;
  for (size_t n = 0; !yes && n <= j->found->n_layers; n++) {
    progress(j, "one more layer each", (double)n / (double)j->found->n_layers);
    ASSAY_TRY(try_prefix(j, n, &yes));
  }
  return NULL;
}

// The statistics of the fix are those of the prefix that did, not of the last one tried.
static assay_status_t by_prefix(job_t* j) {
  assay_check_t* c = j->check;
  ASSAY_TRY(j->options->mode == ASSAY_PRECISION_BISECT ? bisect(j) : linear(j));
  // A prefix of layers that make no floats is the model as it was asked for.
  if (c->faithful) {
    c->has_fix = false;
    j->found->n_prefix = 0;
  }
  c->fix.verified = c->has_fix;
  if (!j->best) return NULL;
  assay_free(c->fix.outputs);
  c->fix.outputs = j->best;
  j->best = NULL;
  return NULL;
}

// Layers that pass a range, or have the error's shares; the sum that takes from what is kept.
static assay_status_t blame(const job_t* j) {
  const assay_keep_t* k = &j->keep;
  assay_check_t* c = j->check;
  char why[ASSAY_CULPRIT_WHY];
  ASSAY_TRY(assay_check_blame_layers(c));
  if (!k->cancels || c->n_culprits) return NULL;
  const int l = assay_plan_layers(c->plan)->layer_of_node[k->cancels->id];
  const assay_layer_t* layer = l < 0 ? NULL : &assay_plan_layers(c->plan)->layers[l];
  const assay_layer_account_t* a =
      assay_account_of_node(c->account, layer ? layer->nodes[layer->n_nodes - 1] : k->cancels);
  if (!a || !layer) return NULL;
  snprintf(why, sizeof why, "cancellation: values of %.3g leave %.3g, %s has steps of %.2g there",
           k->cancels_from, k->cancels_to, assay_format_name(layer->format),
           2 * assay_format_info(layer->format)->unit_roundoff *
               assay_exp2(floor(assay_log2(k->cancels_from))));
  return assay_check_add_culprit(c, a, ASSAY_VERDICT_AMPLIFIED, why);
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t find(job_t* j, const assay_samples_t* golden) {
  assay_check_t* c = j->check;
  const assay_check_options_t* o = &c->options;
  const assay_runs_setting_t setting = {.backend = o->backend,
                                        .plan = &o->plan,
                                        .require = o->require,
                                        .inputs = j->inputs,
                                        .golden = golden,
                                        .unquantized = o->unquantized,
                                        .seed = o->seed,
                                        .rebuild = j->options->rebuild,
                                        .shapes = j->options->shapes,
                                        .n_shapes = j->options->n_shapes};
  if (o->require) ASSAY_TRY(assay_require_resolve(o->require, c->model->graph));
  assay_status_t st = assay_plan_create(c->model, &o->precision, &o->plan, o->seed, &c->plan);
  if (!st) st = assay_runs_create(c->model, &setting, &j->runs);
  if (!st && j->options->mode == ASSAY_PRECISION_ACCOUNT) st = predict(j);
  if (!st) st = assay_keep_create(c, &j->keep);
  if (!st) st = j->options->mode == ASSAY_PRECISION_ACCOUNT ? by_account(j) : by_prefix(j);
  if (!st && j->options->mode == ASSAY_PRECISION_ACCOUNT && c->has_fix)
    st = assay_keep_record(&j->keep, &c->fix);
  if (!st && c->account && c->has_fix) st = blame(j);
  if (j->runs) {
    j->found->runs += assay_runs_count(j->runs);
    j->found->builds = assay_runs_builds(j->runs);
  }
  assay_taken_destroy(j->taken);
  assay_plan_destroy(j->plan);
  assay_free(j->best);
  assay_keep_deinit(&j->keep);
  assay_runs_destroy(j->runs);
  return st;
}

assay_status_t assay_precision_find(assay_model_t* model, assay_check_options_t* check,
                                    const assay_precision_options_t* options,
                                    const assay_samples_t* inputs, const assay_samples_t* golden,
                                    assay_precision_found_t* out) {
  assay_precision_found_t f = {0};
  ASSAY_TRY(ASSAY_NEW(&f.check));
  f.check->model = assay_model_retain(model);
  f.check->options = *check;
  f.check->n_samples = inputs->n;
  f.check->n_outputs = model->graph->n_outputs;
  f.n_layers = model->graph->n_nodes;
  check->precision = (assay_precision_t){0};
  job_t j = {.options = options, .found = &f, .check = f.check, .inputs = inputs};
  // Truth and runs make the same tensors over and over.
  assay_memory_keep(true);
  assay_status_t st = find(&j, golden);
  assay_memory_keep(false);
  if (st) return assay_precision_found_deinit(&f), st;
  *out = f;
  return NULL;
}

void assay_precision_found_deinit(assay_precision_found_t* f) {
  assay_check_destroy(f->check);
  assay_free(f->trials);
  assay_str_deinit(&f->unmet);
  *f = (assay_precision_found_t){0};
}
