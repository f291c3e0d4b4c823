// Statistics of saved tensors beside those of a model: --combine-tensor-info.
#include "frontends/polygraphy/data/combine.h"

#include "runtime/engine.h"

assay_status_t pg_read_tensor_info(const pg_job_t* j, assay_tensor_info_t* out) {
  const char* path = pg_text(j->args, PG_FLAG_combine_tensor_info);
  if (!path) return NULL;
  ASSAY_TRY(assay_status_note(assay_tensor_info_read(path, out), "--combine-tensor-info"));
  if (out->n_runs > 1)
    pg_log(PG_INFO, "Statistics are of the first of %zu iterations in %s", out->n_runs, path);
  return NULL;
}

// whose: "a value of the model"
static assay_status_t report(const pg_job_t* j, const assay_tensor_info_t* info,
                             const char* whose) {
  enum { MAX = 10 };
  const char* path = pg_text(j->args, PG_FLAG_combine_tensor_info);
  assay_str_t names = {0};
  size_t strange = 0;
  for (size_t i = 0; i < info->n; i++)
    if (!info->items[i].met && strange++ < MAX)
      assay_str_printf(&names, "%s%s", strange > 1 ? ", " : "", info->items[i].name);
  if (strange > MAX) assay_str_printf(&names, " and %zu more", strange - MAX);
  assay_status_t st = assay_str_status(&names);
  if (!st && strange && strange == info->n)
    st = ASSAY_ERROR(ASSAY_NOT_FOUND, "--combine-tensor-info: no tensor of '%s' is %s: it has %s",
                     path, whose, assay_str_get(&names));
  else if (!st && strange)
    pg_log(PG_WARNING, "--combine-tensor-info: %zu of %zu tensors of %s are not %s: %s", strange,
           info->n, path, whose, assay_str_get(&names));
  assay_str_deinit(&names);
  return st;
}

assay_status_t pg_match_model(const pg_job_t* j, const assay_model_t* m,
                              assay_tensor_info_t* info) {
  for (size_t i = 0; i < info->n; i++)
    info->items[i].met = assay_graph_find(m->graph, info->items[i].name) != NULL;
  return report(j, info, "a value of the model");
}

static void meet(const assay_tensor_info_t* info, const assay_value_t* v, const bool* hidden) {
  assay_tensor_stats_t* s =
      v && !v->graph->outer && !hidden[v->id] ? assay_tensor_info_find(info, v->name) : NULL;
  if (s) s->met = true;
}

assay_status_t pg_match_plan(const pg_job_t* j, const assay_engine_t* engine,
                             assay_tensor_info_t* info) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(engine));
  for (size_t i = 0; i < layers->n_layers; i++)
    for (size_t k = 0; k < layers->layers[i].n_nodes; k++) {
      const assay_node_t* n = layers->layers[i].nodes[k];
      for (size_t a = 0; a < n->n_inputs; a++) meet(info, n->inputs[a], layers->hidden_value);
      for (size_t a = 0; a < n->n_outputs; a++) meet(info, n->outputs[a], layers->hidden_value);
    }
  return report(j, info, "a value between the plan's layers");
}
