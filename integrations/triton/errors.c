// Errors and log lines of the server, made of texts and of Assay's statuses.
#include "errors.h"

#include <stdarg.h>
#include <stdio.h>

enum { MAX_MESSAGE = 1024 };

// The server's code for each of Assay's; a status of a code that is not known here is our mistake.
static const TRITONSERVER_Error_Code codes[] = {
    [ASSAY_OK] = TRITONSERVER_ERROR_INTERNAL,
    [ASSAY_INVALID_ARGUMENT] = TRITONSERVER_ERROR_INVALID_ARG,
    [ASSAY_UNSUPPORTED] = TRITONSERVER_ERROR_UNSUPPORTED,
    [ASSAY_NOT_FOUND] = TRITONSERVER_ERROR_NOT_FOUND,
    [ASSAY_CORRUPT] = TRITONSERVER_ERROR_INVALID_ARG,
    [ASSAY_NO_MEMORY] = TRITONSERVER_ERROR_UNAVAILABLE,
    [ASSAY_DEVICE] = TRITONSERVER_ERROR_UNAVAILABLE,
    [ASSAY_INTERNAL] = TRITONSERVER_ERROR_INTERNAL,
    [ASSAY_CANCELLED] = TRITONSERVER_ERROR_CANCELLED,
};

static TRITONSERVER_Error_Code code_of(assay_code_t code) {
  return (size_t)code < sizeof codes / sizeof *codes ? codes[code] : TRITONSERVER_ERROR_INTERNAL;
}

TRITONSERVER_Error* error_new(TRITONSERVER_Error_Code code, const char* format, ...) {
  char text[MAX_MESSAGE];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return TRITONSERVER_ErrorNew(code, text);
}

TRITONSERVER_Error* error_no_memory(void) {
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "out of memory");
}

TRITONSERVER_Error* error_of_status(assay_status_t status, const char* format, ...) {
  if (!status) return NULL;
  char text[MAX_MESSAGE], whole[2 * MAX_MESSAGE];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  snprintf(whole, sizeof whole, "%s%s", text, assay_status_message(status));
  const TRITONSERVER_Error_Code code = code_of(assay_status_code(status));
  assay_status_free(status);
  return TRITONSERVER_ErrorNew(code, whole);
}

void log_line(TRITONSERVER_LogLevel level, const char* format, ...) {
  char text[MAX_MESSAGE];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  TRITONSERVER_Error* error = TRITONSERVER_LogMessage(level, __FILE_NAME__, __LINE__, text);
  if (error) TRITONSERVER_ErrorDelete(error);
}

void error_log(TRITONSERVER_Error* error, const char* what) {
  if (!error) return;
  log_line(TRITONSERVER_LOG_ERROR, "%s: %s", what, TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
}
