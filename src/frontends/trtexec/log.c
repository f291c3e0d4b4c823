// Lines as trtexec prints them: "[MM/DD/YYYY-hh:mm:ss] [I] text".
#include "frontends/trtexec/log.h"

#include <stdio.h>
#include <time.h>

#include "base/shown.h"

static bool verbose, silent;
static void (*sink)(char level, const char* text);

void trt_log_silent(bool on) { silent = on; }
void trt_log_verbose(bool on) { verbose = on; }
void trt_log_to(void (*line)(char level, const char* text)) { sink = line; }

static void hand_on(char level, const char* format, va_list args) ASSAY_PRINTF(2, 0);
static void hand_on(char level, const char* format, va_list args) {
  assay_str_t text = {0};
  assay_str_vprintf(&text, format, args);
  sink(level, text.failed ? "out of memory" : assay_str_get(&text));
  assay_str_deinit(&text);
}

static void report(FILE* out, char level, const char* format, va_list args) ASSAY_PRINTF(3, 0);
static void report(FILE* out, char level, const char* format, va_list args) {
  if (silent) return;
  const time_t seconds = time(NULL);
  struct tm parts;
  char stamp[32] = "";
  if (sink) {
    hand_on(level, format, args);
    return;
  }
  if (localtime_r(&seconds, &parts)) strftime(stamp, sizeof stamp, "%m/%d/%Y-%H:%M:%S", &parts);
  // What went to the other stream before stands before it, where both go to one place.
  fflush(out == stdout ? stderr : stdout);
  assay_print(out, "[%s] [%c] ", stamp, level);
  assay_vprint(out, format, args);
  fputc('\n', out);
}

#define LOG(out, level)               \
  do {                                \
    va_list args;                     \
    va_start(args, format);           \
    report(out, level, format, args); \
    va_end(args);                     \
  } while (0)

void trt_verbose(const char* format, ...) {
  if (verbose) LOG(stdout, 'V');
}
void trt_info(const char* format, ...) { LOG(stdout, 'I'); }
void trt_warn(const char* format, ...) { LOG(stderr, 'W'); }
void trt_error(const char* format, ...) { LOG(stderr, 'E'); }
