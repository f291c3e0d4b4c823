// Lines as trtexec prints them: "[MM/DD/YYYY-hh:mm:ss] [I] text". [I] and [V] go to stdout, [W] and
// [E] to stderr.
#ifndef ASSAY_FRONTENDS_TRTEXEC_LOG_H_
#define ASSAY_FRONTENDS_TRTEXEC_LOG_H_

#include <stdbool.h>

#include "base/status.h"

void trt_log_silent(bool on);   // nothing is printed at all
void trt_log_verbose(bool on);  // whether [V] lines are printed
// Hands lines on ('V', 'I', 'W', 'E' and the text) in place of printing them; NULL: prints them.
void trt_log_to(void (*line)(char level, const char* text));

void trt_verbose(const char* format, ...) ASSAY_PRINTF(1, 2);
void trt_info(const char* format, ...) ASSAY_PRINTF(1, 2);
void trt_warn(const char* format, ...) ASSAY_PRINTF(1, 2);
void trt_error(const char* format, ...) ASSAY_PRINTF(1, 2);

#endif  // ASSAY_FRONTENDS_TRTEXEC_LOG_H_
