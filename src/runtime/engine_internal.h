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
};

#endif  // ASSAY_RUNTIME_ENGINE_INTERNAL_H_
