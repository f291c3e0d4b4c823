// The table of targets: what help, completion, errors and options know of them.
#ifndef ASSAY_EXEC_TARGETS_H_
#define ASSAY_EXEC_TARGETS_H_

#include "exec/backend.h"

// What an option's value is where none is given: what engines are built for, or what a model's own
// values are looked at by, which needs no kernels.
typedef enum assay_target_use { ASSAY_TARGET_BUILD, ASSAY_TARGET_INSPECT } assay_target_use_t;

// Row i; NULL: after the last.
const assay_backend_t* assay_target_at(size_t i);
const assay_backend_t* assay_target_default(assay_target_use_t use);
// The backend of a name; name NULL: the default. Errors: INVALID_ARGUMENT, with the names that
// there are.
assay_status_t assay_target_find(const char* name, assay_target_use_t use,
                                 const assay_backend_t** out) ASSAY_MUST_USE;
// The names, with `between` between them.
void assay_target_names(assay_str_t* out, const char* between);
// The names for help: "cpu (default) or emu".
void assay_target_choice(assay_str_t* out, assay_target_use_t use);

#endif  // ASSAY_EXEC_TARGETS_H_
