// What comes after a run that was only made to try an engine out.
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "runtime/executor.h"

// Whether a layer reads a value of another layer's that is stored in this format.
static bool reads(const assay_layers_t* layers, const assay_layer_t* l, assay_format_t f) {
  for (size_t k = 0; k < l->n_nodes; k++)
    for (size_t i = 0; i < l->nodes[k]->n_inputs; i++) {
      const assay_value_t* v = l->nodes[k]->inputs[i];
      const assay_valtype_t* t = v ? (v->type ? v->type : v->declared) : NULL;
      const int at = v && v->producer ? layers->layer_of_node[v->producer->id] : -1;
      if (!t || t->kind != ASSAY_KIND_TENSOR || v->constant) continue;
      if (assay_layer_storage(at < 0 ? NULL : &layers->layers[at], t->elem) == f) return true;
    }
  return false;
}

bool assay_layer_computes(const assay_layers_t* layers, const assay_layer_t* l,
                          assay_format_t executed) {
  return !executed || executed == l->format ||
         (l->format == ASSAY_FORMAT_FP32 && reads(layers, l, executed));
}

// How a layer ran otherwise than was asked for; NULL: it did not.
static const char* difference(const assay_layers_t* layers, const assay_executor_t* e, size_t i) {
  const assay_layer_t* l = &layers->layers[i];
  const assay_format_t executed = assay_executor_executed(e, i);
  if (assay_tactic_is_emulated(assay_executor_tactic(e, i))) return "has no kernel and is emulated";
  if (!assay_layer_computes(layers, l, executed))
    return "is stored so, but this CPU's kernel computes in another format";
  return NULL;
}

assay_status_t assay_engine_check_strict(const assay_engine_t* engine,
                                         const assay_executor_t* executor) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(engine));
  for (size_t i = 0; i < layers->n_layers; i++) {
    const assay_layer_t* l = &layers->layers[i];
    const char* how = difference(layers, executor, i);
    if (how)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "layer '%s' in %s %s; build without --strict, or give it another format "
                         "with --layer-precision",
                         l->name, assay_format_name(l->format), how);
  }
  return NULL;
}

assay_status_t assay_timing_cache_read(const char* path, assay_mapping_t** out) {
  struct stat info;
  if (!path || stat(path, &info) != 0 || !info.st_size) return NULL;
  return assay_mapping_open(path, out);
}

assay_status_t assay_engine_settle(assay_engine_t* engine, const assay_backend_options_t* known,
                                   const char* cache, assay_trial_fn_t* trial, void* user) {
  const assay_backend_t* backend = assay_engine_backend(engine);
  assay_str_t text = {0};
  bool measured = false;
  if (!backend->timings) return NULL;
  assay_status_t st = backend->timings(assay_engine_shared(engine), &text, &measured);
  const assay_backend_options_t now = {.tactic_sources = known->tactic_sources,
                                       .timings = assay_str_get(&text),
                                       .timings_bytes = strlen(assay_str_get(&text)),
                                       .forced = known->forced,
                                       .batch_variant = known->batch_variant,
                                       .max_scratch = known->max_scratch};
  if (!st && measured) st = assay_engine_share_again(engine, &now);
  if (!st && measured) st = trial(user, engine);
  // Nothing is timed in later runs, whatever their sizes: contexts run side by side then.
  if (!st) backend->freeze(assay_engine_shared(engine));
  struct stat info;
  if (!st && cache && (measured || stat(cache, &info) != 0))
    st = assay_file_write(cache, now.timings, now.timings_bytes);
  assay_str_deinit(&text);
  return st;
}
