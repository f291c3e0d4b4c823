// Engines: a plan on a backend, with what its contexts share. Built from a model, or read from a
// plan file.
//
// A plan file holds the model as the passes left it, how it was cut into layers, the elements of
// its constants, and what the backend has made of those (packed weights). It is mapped, not read;
// what is mapped lies at multiples of 4096 bytes. Its head says for what build and machine it was
// made; its tail is a checksum of all before.
#ifndef ASSAY_RUNTIME_ENGINE_H_
#define ASSAY_RUNTIME_ENGINE_H_

#include <assay/engine.h>

#include "plan/plan.h"
#include "runtime/profile.h"

// Takes the plan over, also on failure. options may be NULL.
assay_status_t assay_engine_create(assay_plan_t* take_plan, const assay_backend_t* backend,
                                   const assay_backend_options_t* options,
                                   assay_engine_t** out) ASSAY_MUST_USE;
// Shares anew, by these options; no executor of the engine may be open.
assay_status_t assay_engine_share_again(assay_engine_t* e,
                                        const assay_backend_options_t* options) ASSAY_MUST_USE;

// The shapes it is for; copied, and checked as inputs are set. None: what the plan's model
// declares.
assay_status_t assay_engine_set_profiles(assay_engine_t* e, const assay_profile_t* profiles,
                                         size_t n) ASSAY_MUST_USE;
size_t assay_engine_profiles(const assay_engine_t* e, const assay_profile_t** out);

// INVALID_ARGUMENT unless a tensor has a shape for which the engine was built.
assay_status_t assay_engine_check(const assay_engine_t* e, const assay_value_t* input,
                                  const assay_tensor_t* t) ASSAY_MUST_USE;

const assay_plan_t* assay_engine_plan(const assay_engine_t* e);
const assay_backend_t* assay_engine_backend(const assay_engine_t* e);
void* assay_engine_shared(const assay_engine_t* e);

// ---- plan files (plan_file.c; assay_engine_save, assay_engine_load) ------------------------------

// Whether a file begins as plan files do.
bool assay_engine_is_plan_file(const char* path);

// ---- trials (trial.c) ---------------------------------------------------------------------------

struct assay_executor;

// Fails with UNSUPPORTED where a layer of the last run ran in another format than was asked for.
assay_status_t assay_engine_check_strict(const assay_engine_t* e,
                                         const struct assay_executor* executor) ASSAY_MUST_USE;
// Runs an engine, so that its kernels are made.
typedef assay_status_t assay_trial_fn_t(void* user, assay_engine_t* engine);
// Behind a trial: where kernels were timed in it, those that lost have left packed weights behind;
// the engine shares anew, by the times that are known now, and is tried again. The times go to the
// file `cache`; NULL: nowhere. known: the options that the engine was created with.
assay_status_t assay_engine_settle(assay_engine_t* e, const assay_backend_options_t* known,
                                   const char* cache, assay_trial_fn_t* trial,
                                   void* user) ASSAY_MUST_USE;
// A timing cache, if the file is there and not empty; else *out is untouched.
assay_status_t assay_timing_cache_read(const char* path, assay_mapping_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_RUNTIME_ENGINE_H_
