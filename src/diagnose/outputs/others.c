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

static assay_status_t set_targets(const assay_search_t* main, const assay_other_sample_t* from,
                                  assay_search_t* s, bool* out_fits) {
  assay_search_target_t* targets = NULL;
  ASSAY_TRY(assay_new_array(main->n_targets, sizeof *targets, &targets));
  s->targets = targets;
  for (size_t k = 0; k < main->n_targets && *out_fits; k++) {
    const assay_value_t* v = main->targets[k].value;
    assay_tensor_t *golden = NULL, *truth = assay_evaluator_get(s->evaluator, v);
    for (size_t i = 0; i < from->golden.n; i++)
      if (from->golden.at[i].value == v) golden = from->golden.at[i].tensor;
    *out_fits = golden && truth && assay_difference(truth, golden).comparable &&
                truth->store == golden->store;
    if (*out_fits) targets[s->n_targets++] = target_like(&main->targets[k], golden, truth);
  }
  return NULL;
}

// What a node reads that is a target would have to be golden: such models have one sample.
static bool is_read(const assay_search_t* s, const assay_value_t* v) {
  for (size_t i = 0; i < s->n_nodes; i++)
    for (size_t k = 0; k < s->nodes[i]->n_inputs; k++)
      if (s->nodes[i]->inputs[k] == v) return true;
  return false;
}

static assay_status_t add(const assay_export_options_t* options, const assay_search_t* main,
                          const assay_other_sample_t* from, assay_others_t* out) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = options->unquantized,
                                           .seed = options->seed,
                                           .keep_all = true};
  assay_search_t* s = &out->at[out->n];
  bool fits = true;
  *s = (assay_search_t){.model = main->model, .nodes = main->nodes, .n_nodes = main->n_nodes};
  assay_status_t st = assay_evaluator_create_run(main->model, &config, from->in, &s->evaluator);
  // What cannot be run says nothing.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY)
    assay_status_free(st), st = NULL, fits = false;
  if (!st && fits) st = set_targets(main, from, s, &fits);
  if (!st && fits)
    out->n++;
  else
    search_deinit(s);
  return st;
}

assay_status_t assay_others_init(const assay_export_options_t* options, assay_search_t* s,
                                 assay_others_t* out) {
  *out = (assay_others_t){0};
  for (size_t k = 0; k < s->n_targets; k++)
    if (is_read(s, s->targets[k].value)) return NULL;
  for (size_t i = 0; i < options->n_others && out->n < ASSAY_OTHER_SAMPLES; i++)
    ASSAY_TRY(add(options, s, &options->others[i], out));
  s->others = out->at;
  s->n_others = out->n;
  return NULL;
}
