// How much memory the library may take, and texts that it hands over.
#ifndef ASSAY_MEMORY_H_
#define ASSAY_MEMORY_H_

#include <assay/export.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Sets the most bytes that the library allocates at a time, in this process; what would pass it
// fails with NO_MEMORY. 0: no fixed limit, but a request for more than the machine (or the
// process's control group) has available fails. Files that are mapped, such as weights, do not
// count. Returns the limit before. Threads: any.
ASSAY_API int64_t assay_memory_set_limit(int64_t bytes);

// Bytes that the library has allocated now. Threads: any.
ASSAY_API int64_t assay_memory_used(void);

// Frees a text that a function of the library handed over. NULL is allowed. Threads: any.
ASSAY_API void assay_text_free(char* text);

#ifdef __cplusplus
}
#endif

#endif  // ASSAY_MEMORY_H_
