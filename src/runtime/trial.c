// What comes behind a run that was only made to try an engine out.
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "runtime/executor.h"

// How a layer ran otherwise than was asked for; NULL: it did not.
static const char* difference(const assay_executor_t* e, const assay_layer_t* l, size_t i) {
  const assay_format_t executed = assay_executor_executed(e, i);
  if (strcmp(assay_executor_tactic(e, i), "emu") == 0) return "has no kernel and is emulated";
  if (executed && executed != l->format)
    return "is stored so, but this CPU's kernel computes in another format";
  return NULL;
}

assay_status_t assay_engine_check_strict(const assay_engine_t* engine,
                                         const assay_executor_t* executor) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(engine));
  for (size_t i = 0; i < layers->n_layers; i++) {
    const assay_layer_t* l = &layers->layers[i];
    const char* how = difference(executor, l, i);
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
