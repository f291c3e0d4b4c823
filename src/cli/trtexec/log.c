#include "cli/trtexec/log.h"

#include <stdio.h>
#include <time.h>

static bool verbose;

void trt_log_verbose(bool on) { verbose = on; }
bool trt_log_is_verbose(void) { return verbose; }

static void say(FILE* out, char level, const char* format, va_list args) ASSAY_PRINTF(3, 0);
static void say(FILE* out, char level, const char* format, va_list args) {
  const time_t seconds = time(NULL);
  struct tm parts;
  char stamp[32] = "";
  if (localtime_r(&seconds, &parts)) strftime(stamp, sizeof stamp, "%m/%d/%Y-%H:%M:%S", &parts);
  // What went to the other stream before stands before it, where both go to one place.
  fflush(out == stdout ? stderr : stdout);
  fprintf(out, "[%s] [%c] ", stamp, level);
  vfprintf(out, format, args);
  fputc('\n', out);
}

#define SAY(out, level)            \
  do {                             \
    va_list args;                  \
    va_start(args, format);        \
    say(out, level, format, args); \
    va_end(args);                  \
  } while (0)

void trt_verbose(const char* format, ...) {
  if (verbose) SAY(stdout, 'V');
}
void trt_info(const char* format, ...) { SAY(stdout, 'I'); }
void trt_warn(const char* format, ...) { SAY(stderr, 'W'); }
void trt_error(const char* format, ...) { SAY(stderr, 'E'); }
