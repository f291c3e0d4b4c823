// What an engine holds (runtime/engine.h).
#ifndef ASSAY_RUNTIME_ENGINE_INTERNAL_H_
#define ASSAY_RUNTIME_ENGINE_INTERNAL_H_

#include "runtime/engine.h"
#include "runtime/stripped.h"

struct assay_engine {
  _Atomic int refs;
  assay_plan_t* plan;
  const assay_backend_t* backend;
  void* shared;
  assay_profile_t* profiles;  // names are the model's
  size_t n_profiles;
  assay_mapping_t* file;       // of a plan file; NULL: none
  char* tactic_sources;        // as asked for; NULL: all
  char* forced_tactics;        // as asked for, as assay_backend_options_t has them; NULL: none
  char* note;                  // of whoever built it; NULL: none
  bool batch_variant;          // as asked for
  uint64_t max_scratch;        // as asked for; 0: no limit
  assay_strip_t strip;         // what saving leaves out
  assay_stripped_t* stripped;  // of a plan file without weights, which has not been refitted: what
                               // is missing; NULL: nothing
};

// What a plan file (engine->file) holds of the model that it was made of (plan_file.c).
assay_status_t assay_engine_read_source(const assay_engine_t* e,
                                        assay_model_t** out) ASSAY_MUST_USE;
// A copy with the names by which its nodes are known: without one in the file a node is known by
// its place, which may be another when it is read again (plan_file.c).
assay_status_t assay_model_copy_named(const assay_model_t* m, assay_model_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_RUNTIME_ENGINE_INTERNAL_H_
