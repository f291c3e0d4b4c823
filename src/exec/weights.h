// What is made of constants, such as packed weights: made once, shared by all contexts and all
// sizes of a plan, and what a plan file holds of it.
#ifndef ASSAY_EXEC_WEIGHTS_H_
#define ASSAY_EXEC_WEIGHTS_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum { ASSAY_WEIGHTS_ALIGNMENT = 64 };

typedef struct assay_weights assay_weights_t;

assay_status_t assay_weights_create(assay_weights_t** out) ASSAY_MUST_USE;
void assay_weights_destroy(assay_weights_t* s);  // NULL is allowed

// Writes `bytes` bytes to `to`.
typedef assay_status_t assay_weights_fill_t(void* user, void* to);

// The bytes of a key: kept, or made now. The key names the constant, the form and how it is made.
// They live as long as the store. Threads: any; one fills at a time.
assay_status_t assay_weights_get(assay_weights_t* s, const char* key, size_t bytes,
                                 assay_weights_fill_t* fill, void* user,
                                 const void** out) ASSAY_MUST_USE;
// The same by a key that has been put together; it is taken, and freed in any case.
assay_status_t assay_weights_get_by(assay_weights_t* s, assay_str_t* take_key, size_t bytes,
                                    assay_weights_fill_t* fill, const void* user,
                                    const void** out) ASSAY_MUST_USE;
// The bytes of a key that is kept; false: none is. Threads: any.
bool assay_weights_find(assay_weights_t* s, const char* key, const void** out_data,
                        size_t* out_bytes);
// Puts in what a plan file holds; the bytes are borrowed and outlive the store.
assay_status_t assay_weights_put(assay_weights_t* s, const char* key, const void* data,
                                 size_t bytes) ASSAY_MUST_USE;
// All entries, in the order in which they came; between runs only.
size_t assay_weights_count(const assay_weights_t* s);
void assay_weights_entry(const assay_weights_t* s, size_t i, const char** out_key,
                         const void** out_data, size_t* out_bytes);

#endif  // ASSAY_EXEC_WEIGHTS_H_
