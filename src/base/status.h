// Making, annotating and passing on errors. See include/assay/status.h for what a status is.
#ifndef ASSAY_BASE_STATUS_H_
#define ASSAY_BASE_STATUS_H_

#include <assay/status.h>
#include <stdarg.h>

#define ASSAY_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define ASSAY_MUST_USE __attribute__((warn_unused_result))

// Makes an error. The message says which thing, found what, expected what, do what.
// Never fails: without memory it returns the (static) status of ASSAY_NO_MEMORY.
assay_status_t assay_status_make(const char* file, int line, assay_code_t code, const char* format,
                                 ...) ASSAY_PRINTF(4, 5) ASSAY_MUST_USE;
#define ASSAY_ERROR(code, ...) assay_status_make(__FILE__, __LINE__, (code), __VA_ARGS__)

// The status for the allocation that this thread saw fail just now; needs no memory. Where the
// limit refused it, the message says how much was asked for and how much there is.
assay_status_t assay_status_no_memory(void) ASSAY_MUST_USE;

// Puts "context: " before the message of a status and returns it; NULL stays NULL.
assay_status_t assay_status_note(assay_status_t status, const char* format, ...)
    ASSAY_PRINTF(2, 3) ASSAY_MUST_USE;

// Keeps the first of two statuses and frees the second.
assay_status_t assay_status_join(assay_status_t first, assay_status_t second) ASSAY_MUST_USE;

// Where the status was made.
const char* assay_status_file(assay_status_t status);
int assay_status_line(assay_status_t status);

// Returns a failure to the caller at once; only where nothing is owned.
#define ASSAY_TRY(expr)                              \
  do {                                               \
    assay_status_t assay_try_status_ = (expr);       \
    if (assay_try_status_) return assay_try_status_; \
  } while (0)

#endif  // ASSAY_BASE_STATUS_H_
