// Compiled kernels, as bytes: each is compiled once in a process, and plan files keep those that
// they need, so that whoever runs a plan needs no compiler.
#ifndef ASSAY_EXEC_DEVICE_CODE_H_
#define ASSAY_EXEC_DEVICE_CODE_H_

#include "exec/weights.h"

enum { ASSAY_CODE_BYTES = 256 << 20 };  // that a process keeps at most, those asked for last

// Compiles what the key names; *out is taken, and freed with assay_free.
typedef assay_status_t assay_code_compile_t(void* user, void** out, size_t* out_bytes);

// Keys of code begin so: what is saved by them does not depend on weights.
#define ASSAY_CODE_KEY "code "
bool assay_code_is(const char* key);

// The code of a key: in the store (of a plan), or compiled before in this process, or compiled now;
// it is in the store from then on, and lives as long. The key names the source, its options, the
// compiler's version and what it is compiled for. Threads: any; one compiles at a time.
assay_status_t assay_code_get(assay_weights_t* store, const char* key,
                              assay_code_compile_t* compile, void* user, const void** out,
                              size_t* out_bytes) ASSAY_MUST_USE;

// Whether this process keeps the code of a key.
bool assay_code_is_kept(const char* key);

// Keeps a copy as if it had been compiled in this process: what a plan file has for an engine that
// is made of it.
assay_status_t assay_code_keep(const char* key, const void* data, size_t bytes) ASSAY_MUST_USE;

// Forgets what the process keeps; between uses, for tests and leak checks.
void assay_code_forget(void);

#endif  // ASSAY_EXEC_DEVICE_CODE_H_
