// The other samples of a repair search: truth of each, beside golden.
#include "diagnose/outputs/others.h"

#include <math.h>

#include "base/alloc.h"

static void search_deinit(assay_search_t* s) {
  for (size_t k = 0; s->targets && k < s->n_targets; k++) {
    assay_tensor_release(s->targets[k].golden);
    assay_tensor_release(s->targets[k].truth);
  }
  assay_free((assay_search_target_t*)s->targets);
  assay_evaluator_destroy(s->evaluator);
  *s = (assay_search_t){0};
}

void assay_others_deinit(assay_others_t* o) {
  for (size_t i = 0; i < o->n; i++) search_deinit(&o->at[i]);
  o->n = 0;
}

// What is explained goes with golden's size.
static assay_search_target_t target_like(const assay_search_target_t* main, assay_tensor_t* golden,
                                         assay_tensor_t* truth) {
  static const double MARGIN = 2;
  const assay_difference_t d = assay_difference(golden, golden),
                           e = assay_difference(main->golden, main->golden);
  const double times = e.ref_rms > 0 ? MARGIN * fmax(1, d.ref_rms / e.ref_rms) : MARGIN;
  return (assay_search_target_t){.value = main->value,
                                 .golden = assay_tensor_retain(golden),
                                 .truth = assay_tensor_retain(truth),
                                 .explained_rms = times * main->explained_rms,
                                 .explained_max = times * main->explained_max};
}

static const assay_golden_tensor_t* golden_of(const assay_golden_t* g, const assay_value_t* v) {
  for (size_t i = 0; i < g->n; i++)
    if (g->at[i].value == v) return &g->at[i];
  return NULL;
}

static assay_status_t set_targets(const assay_search_t* main, const assay_other_sample_t* from,
                                  assay_search_t* s, bool* out_fits) {
  assay_search_target_t* targets = NULL;
  ASSAY_TRY(assay_new_array(main->n_targets, sizeof *targets, &targets));
  s->targets = targets;
  for (size_t k = 0; k < main->n_targets && *out_fits; k++) {
    const assay_value_t* v = main->targets[k].value;
    assay_tensor_t *golden = NULL, *truth = assay_evaluator_get(s->evaluator, v);
    const assay_golden_tensor_t* known = golden_of(&from->golden, v);
    if (known) ASSAY_TRY(assay_tensor_widen(known->tensor, &golden));
    // Another shape is a difference as well: what restores golden gives that.
    *out_fits = golden && truth && truth->kind == golden->kind && truth->store == golden->store;
    if (*out_fits) targets[s->n_targets++] = target_like(&main->targets[k], golden, truth);
    assay_tensor_release(golden);
  }
  return NULL;
}

// ---- targets that nodes read -------------------------------------------------------------------

static bool is_read(const assay_search_t* s, const assay_value_t* v) {
  for (size_t i = 0; i < s->n_nodes; i++)
    for (size_t k = 0; k < s->nodes[i]->n_inputs; k++)
      if (s->nodes[i]->inputs[k] == v) return true;
  return false;
}

static assay_status_t run_node(assay_search_t* s, const assay_node_t* n, bool* changed) {
  assay_tensor_t **in = NULL, **out = NULL;
  assay_status_t st = assay_new_array(n->n_inputs, sizeof *in, &in);
  if (!st) st = assay_new_array(n->n_outputs, sizeof *out, &out);
  for (size_t i = 0; !st && i < n->n_inputs; i++)
    in[i] = n->inputs[i] ? assay_evaluator_get(s->evaluator, n->inputs[i]) : NULL;
  if (!st) st = assay_evaluator_node(s->evaluator, n, n->n_inputs, in, n->n_outputs, out);
  for (size_t i = 0; !st && i < n->n_outputs; i++) {
    if (!n->outputs[i] || !out[i]) continue;
    assay_evaluator_set(s->evaluator, n->outputs[i], out[i]);
    changed[n->outputs[i]->id] = true;
  }
  for (size_t i = 0; out && i < n->n_outputs; i++) assay_tensor_release(out[i]);
  assay_free(in);
  assay_free(out);
  return st;
}

// Truth goes on from golden behind a target that nodes read, as in the sample that is searched.
static assay_status_t go_on_from_golden(const assay_search_t* main,
                                        const assay_other_sample_t* from, assay_search_t* s,
                                        bool* changed) {
  for (size_t i = 0; i < s->n_nodes; i++) {
    const assay_node_t* n = s->nodes[i];
    bool reads = false;
    for (size_t k = 0; k < n->n_inputs; k++) reads |= n->inputs[k] && changed[n->inputs[k]->id];
    if (reads) ASSAY_TRY(run_node(s, n, changed));
    for (size_t k = 0; k < main->n_targets; k++) {
      const assay_value_t* v = main->targets[k].value;
      const assay_golden_tensor_t* g = golden_of(&from->golden, v);
      if (v->producer != n || !g || !is_read(s, v)) continue;
      // What the model gives there is compared with golden; what comes after it reads golden.
      assay_search_target_t* t = (assay_search_target_t*)&s->targets[k];
      assay_tensor_t* truth = assay_tensor_retain(assay_evaluator_get(s->evaluator, v));
      assay_tensor_release(t->truth);
      t->truth = truth;
      assay_evaluator_set(s->evaluator, v, t->golden);
      changed[v->id] = true;
    }
  }
  return NULL;
}

// Targets that no node reads are what comes of the others then.
static assay_status_t read_golden(const assay_search_t* main, const assay_other_sample_t* from,
                                  assay_search_t* s) {
  bool any = false;
  bool* changed = NULL;
  for (size_t k = 0; k < main->n_targets; k++) any |= is_read(s, main->targets[k].value);
  if (!any) return NULL;
  ASSAY_TRY(assay_new_array((size_t)main->model->n_values, sizeof *changed, &changed));
  assay_status_t st = go_on_from_golden(main, from, s, changed);
  for (size_t k = 0; !st && k < s->n_targets; k++) {
    assay_search_target_t* t = (assay_search_target_t*)&s->targets[k];
    if (is_read(s, t->value) || !changed[t->value->id]) continue;
    assay_tensor_release(t->truth);
    t->truth = assay_tensor_retain(assay_evaluator_get(s->evaluator, t->value));
  }
  assay_free(changed);
  return st;
}

// ---- samples -----------------------------------------------------------------------------------

static assay_status_t add(const assay_export_options_t* options, const assay_search_t* main,
                          const assay_other_sample_t* from, assay_others_t* out) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = options->unquantized,
                                           .seed = options->seed,
                                           .keep_all = true,
                                           .spill = true};
  assay_search_t* s = &out->at[out->n];
  bool fits = true;
  *s = (assay_search_t){.model = main->model, .nodes = main->nodes, .n_nodes = main->n_nodes};
  assay_status_t st = assay_evaluator_create_run(main->model, &config, from->in, &s->evaluator);
  // What cannot be run says nothing.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY)
    assay_status_free(st), st = NULL, fits = false;
  if (!st && fits) st = set_targets(main, from, s, &fits);
  if (!st && fits) st = read_golden(main, from, s);
  // Nor what cannot be run from golden.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY)
    assay_status_free(st), st = NULL, fits = false;
  if (!st && fits)
    out->n++;
  else
    search_deinit(s);
  return st;
}

assay_status_t assay_others_init(const assay_export_options_t* options, assay_search_t* s,
                                 assay_others_t* out) {
  *out = (assay_others_t){0};
  for (size_t i = 0; i < options->n_others && out->n < ASSAY_OTHER_SAMPLES; i++)
    ASSAY_TRY(add(options, s, &options->others[i], out));
  s->others = out->at;
  s->n_others = out->n;
  return NULL;
}
