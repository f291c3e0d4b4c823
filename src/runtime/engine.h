// Engines: a plan on a backend, with what its contexts share. Built from a model, or read from a
// plan file.
//
// A plan file holds the model as the passes left it, how it was cut into layers, the elements of
// its constants, and what the backend has made of those (packed weights). It is mapped, not read;
// what is mapped lies at multiples of 4096 bytes. Its head says for what build and machine it was
// made; its tail is a checksum of all before.
#ifndef ASSAY_RUNTIME_ENGINE_H_
#define ASSAY_RUNTIME_ENGINE_H_

#include "plan/plan.h"
#include "runtime/profile.h"

typedef struct assay_engine assay_engine_t;  // counted

// Takes the plan over, also on failure. options may be NULL.
assay_status_t assay_engine_create(assay_plan_t* take_plan, const assay_backend_t* backend,
                                   const assay_backend_options_t* options,
                                   assay_engine_t** out) ASSAY_MUST_USE;
// Shares anew, by these options; no executor of the engine may be open.
assay_status_t assay_engine_share_again(assay_engine_t* e,
                                        const assay_backend_options_t* options) ASSAY_MUST_USE;
void assay_engine_retain(assay_engine_t* e);
void assay_engine_release(assay_engine_t* e);  // NULL is allowed

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

// ---- plan files (plan_file.c) -------------------------------------------------------------------

// Writes a plan file. What runs of the engine have made so far of its constants goes with it.
assay_status_t assay_engine_save(const assay_engine_t* e, const char* path) ASSAY_MUST_USE;
// Errors: CORRUPT not a whole plan file; UNSUPPORTED made by another version, or for another
// machine.
assay_status_t assay_engine_load(const char* path, assay_engine_t** out) ASSAY_MUST_USE;
// Whether a file begins as plan files do.
bool assay_engine_is_plan_file(const char* path);

#endif  // ASSAY_RUNTIME_ENGINE_H_
