// Errors and log lines of the server, made of texts and of Assay's statuses.
#ifndef ASSAY_TRITON_ERRORS_H_
#define ASSAY_TRITON_ERRORS_H_

#include <assay/assay.h>

#include "api.h"

#define ERRORS_PRINTF(text, first) __attribute__((format(printf, text, first)))

// An error with this message, cut off at 1 KiB; the caller owns it.
TRITONSERVER_Error* error_new(TRITONSERVER_Error_Code code, const char* format, ...)
    ERRORS_PRINTF(2, 3);
TRITONSERVER_Error* error_no_memory(void);
// The status as an error, with text in front of its message; the status is consumed. NULL: NULL.
TRITONSERVER_Error* error_of_status(assay_status_t status, const char* format, ...)
    ERRORS_PRINTF(2, 3);
// An error of the server itself that nobody can be given: it is logged and deleted. NULL is
// allowed.
void error_log(TRITONSERVER_Error* error, const char* what);
void log_line(TRITONSERVER_LogLevel level, const char* format, ...) ERRORS_PRINTF(2, 3);

#endif  // ASSAY_TRITON_ERRORS_H_
