// The table of targets: what help, completion, errors and options know of them.
#ifndef ASSAY_EXEC_TARGETS_H_
#define ASSAY_EXEC_TARGETS_H_

#include "exec/backend.h"

// What an option's value is where none is given: what engines are built for, or what a model's own
// values are looked at by, which needs no kernels.
typedef enum assay_target_use { ASSAY_TARGET_BUILD, ASSAY_TARGET_INSPECT } assay_target_use_t;

enum { ASSAY_TARGET_DEVICES = 16 };  // of a target, by their numbers

// Row i; NULL: after the last.
const assay_backend_t* assay_target_at(size_t i);
const assay_backend_t* assay_target_default(assay_target_use_t use);
// The backend of a name; name NULL: the default. Where a target has devices of its own, ":N" behind
// its name means device N, else it is device 0: all of its rows (backend.h) are for that one.
// "auto": that of assay_target_auto(). Errors: INVALID_ARGUMENT, with the names that there are.
assay_status_t assay_target_find(const char* name, assay_target_use_t use,
                                 const assay_backend_t** out) ASSAY_MUST_USE;
// Whether plans can run there now. Errors: DEVICE: what is missing, and where it was looked for
assay_status_t assay_target_want(const assay_backend_t* target) ASSAY_MUST_USE;
// Opens the target's device, so that it stays open from engine to engine until it is let go of;
// *out NULL where it has none of its own. Errors: DEVICE
assay_status_t assay_target_hold(const assay_backend_t* target,
                                 assay_device_t** out) ASSAY_MUST_USE;
void assay_target_let_go(assay_device_t* held);
// The first target with devices of its own that can be used; else the one that engines are built
// for by default. out_why (may be NULL): says which, and why; one line.
const assay_backend_t* assay_target_auto(assay_str_t* out_why);
// All that is known of a target and its devices on this machine: one line; none where nothing is.
void assay_target_describe(const assay_backend_t* target, assay_str_t* out);
// The names, with `between` between them.
void assay_target_names(assay_str_t* out, const char* between);
// The names for help: "cpu (default), emu, cuda[:N] or auto".
void assay_target_choice(assay_str_t* out, assay_target_use_t use);

#endif  // ASSAY_EXEC_TARGETS_H_
