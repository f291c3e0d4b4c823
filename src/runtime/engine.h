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

#include "exec/backend.h"
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
// declares. Errors: INVALID_ARGUMENT no such input; an input that one profile has and another has
// not; more than ASSAY_MAX_PROFILES.
assay_status_t assay_engine_set_profiles(assay_engine_t* e, const assay_profile_t* profiles,
                                         size_t n) ASSAY_MUST_USE;
size_t assay_engine_profiles(const assay_engine_t* e, const assay_profile_t** out);

// INVALID_ARGUMENT unless a tensor has a shape for which the engine was built: in one of those
// profiles (a bit each) that are left for the run, of which the others are taken away. profiles
// NULL: in any.
assay_status_t assay_engine_check(const assay_engine_t* e, const assay_value_t* input,
                                  const assay_tensor_t* t, uint64_t* profiles) ASSAY_MUST_USE;

// What whoever built it wants to be kept in its plan file: a text that means something to him only.
// Copied; NULL: none.
assay_status_t assay_engine_set_note(assay_engine_t* e, const char* note) ASSAY_MUST_USE;
const char* assay_engine_note(const assay_engine_t* e);

// What a plan file leaves out (docs/adr/0019-stripped-plans.md).
typedef struct assay_strip {
  bool weights;     // the elements of its weights
  bool refittable;  // other weights than those may take their place
} assay_strip_t;
void assay_engine_set_strip(assay_engine_t* e, assay_strip_t strip);
assay_strip_t assay_engine_strip(const assay_engine_t* e);
// UNSUPPORTED, with what to do, unless the engine has all of its weights.
assay_status_t assay_engine_check_whole(const assay_engine_t* e) ASSAY_MUST_USE;

// The model that the engine's plan was made of, before the passes; one reference goes to the
// caller. Of a plan file it is read now.
assay_status_t assay_engine_source(const assay_engine_t* e, assay_model_t** out) ASSAY_MUST_USE;
const char* assay_engine_tactic_sources(const assay_engine_t* e);  // NULL: all
const char* assay_engine_forced_tactics(const assay_engine_t* e);  // NULL: none
bool assay_engine_batch_variant(const assay_engine_t* e);
uint64_t assay_engine_max_scratch(const assay_engine_t* e);  // bytes; 0: no limit

const assay_plan_t* assay_engine_plan(const assay_engine_t* e);
const assay_backend_t* assay_engine_backend(const assay_engine_t* e);
void* assay_engine_shared(const assay_engine_t* e);

// ---- plan files (plan_file.c; assay_engine_save, assay_engine_load) -----------------------------

// The version of Assay that wrote it, which may be one that cannot be read. Errors: CORRUPT it is
// none.
assay_status_t assay_engine_plan_version(assay_arena_t* arena, const char* path,
                                         const char** out) ASSAY_MUST_USE;

// ---- refit (refit.c; assay_engine_refit, assay_engine_refit_tensors) ---------------------------

// What a refit did.
typedef struct assay_refit {
  size_t n_weights, n_changed;
  size_t n_filled;  // that a stripped plan had not
} assay_refit_t;
// The two public functions; exactly one of weights and names is given. out_refit may be NULL.
assay_status_t assay_engine_refit_with(const assay_engine_t* e, const assay_model_t* weights,
                                       size_t n, const char* const* names,
                                       assay_tensor_t* const* tensors, assay_refit_t* out_refit,
                                       assay_engine_t** out) ASSAY_MUST_USE;

// ---- trials (trial.c) ---------------------------------------------------------------------------

struct assay_executor;

// Fails with UNSUPPORTED where a layer of the last run ran in another format than was asked for.
assay_status_t assay_engine_check_strict(const assay_engine_t* e,
                                         const struct assay_executor* executor) ASSAY_MUST_USE;
// Runs an engine with made-up inputs, for the ends of its profiles and what is best, so that
// weights are packed; sizes that are open still are 1, or nothing is done where there are any
// (build.c).
assay_status_t assay_engine_try(assay_engine_t* e, bool open_as_one) ASSAY_MUST_USE;
// Takes the memory that an executor of the engine needs in the largest shapes of a profile, or of
// all (-1), by running it with made-up inputs. Nothing is done where there are none, or open sizes
// without a range (build.c). Errors: INVALID_ARGUMENT no such profile; NO_MEMORY; DEVICE.
assay_status_t assay_engine_reserve(const assay_engine_t* e, struct assay_executor* executor,
                                    int profile) ASSAY_MUST_USE;
// Runs an engine, so that its kernels are made.
typedef assay_status_t assay_trial_fn_t(void* user, assay_engine_t* engine);
// After a trial: where kernels were timed in it, those that lost have left packed weights behind;
// the engine shares anew, by the times that are known now, without timing any more, and is tried
// again. The times go to the file `cache`; NULL: nowhere. known: the options that the engine was
// created with.
assay_status_t assay_engine_settle(assay_engine_t* e, const assay_backend_options_t* known,
                                   const char* cache, assay_trial_fn_t* trial,
                                   void* user) ASSAY_MUST_USE;
// A timing cache, if the file is there and not empty; else *out is untouched.
assay_status_t assay_timing_cache_read(const char* path, assay_mapping_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_RUNTIME_ENGINE_H_
