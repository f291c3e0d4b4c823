#ifndef ASSAY_RUNTIME_ENGINE_INTERNAL_H_
#define ASSAY_RUNTIME_ENGINE_INTERNAL_H_

#include "runtime/engine.h"

struct assay_engine {
  _Atomic int refs;
  assay_plan_t* plan;
  const assay_backend_t* backend;
  void* shared;
  assay_profile_t* profiles;  // names are the model's
  size_t n_profiles;
  assay_mapping_t* file;  // of a plan file; NULL: none
  char* tactic_sources;   // as asked for; NULL: all
  bool batch_variant;     // as asked for
};

// What a plan file (engine->file) holds of the model that it was made of (plan_file.c).
assay_status_t assay_engine_read_source(const assay_engine_t* e, assay_model_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_RUNTIME_ENGINE_INTERNAL_H_
