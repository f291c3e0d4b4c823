// A thread that waits until the time is over, and then ends the process.
#include "cli/timeout.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "cli/cli.h"

enum { DOING_BYTES = 128 };

static struct {
  pthread_mutex_t lock;
  const char* verb;
  double seconds;
  bool runs;
  atomic_bool over;
  char doing[DOING_BYTES];
  char* found;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void write_all(int fd, const char* text, size_t n) {
  while (n) {
    const ssize_t k = write(fd, text, n);
    if (k < 0 && errno != EINTR) return;
    if (k > 0) {
      text += k;
      n -= (size_t)k;
    }
  }
}

// stdout's buffer may be in use by a thread that hangs: then it is left.
static void print_found(void) {
  if (ftrylockfile(stdout) == 0) {
    fflush(stdout);
    funlockfile(stdout);
  }
  if (state.found) write_all(STDOUT_FILENO, state.found, strlen(state.found));
}

static void end(void) {
  char line[256];
  atomic_store(&state.over, true);
  pthread_mutex_lock(&state.lock);
  print_found();
  const int n = snprintf(line, sizeof line,
                         "%sassay: stopped after %g seconds (--timeout), during '%s'%s%s\n",
                         isatty(STDERR_FILENO) ? "\r\033[K" : "", state.seconds, state.verb,
                         *state.doing ? ": " : "", state.doing);
  write_all(STDERR_FILENO, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
  assay_process_clear();
  _exit(ASSAY_EXIT_FAILED);
}

static void* wait_for_end(void* unused) {
  struct timespec t;
  const double whole = state.seconds < 1e9 ? state.seconds : 1e9;
  (void)unused;
  t.tv_sec = (time_t)whole;
  t.tv_nsec = (long)(1e9 * (whole - (double)t.tv_sec));
  while (nanosleep(&t, &t) && errno == EINTR) {
  }
  end();
  return NULL;
}

assay_status_t cli_timeout_start(const char* verb, double seconds) {
  pthread_t thread;
  state.verb = verb;
  state.seconds = seconds;
  if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
    return ASSAY_ERROR(ASSAY_DEVICE, "the system has no thread for --timeout");
  pthread_detach(thread);
  state.runs = true;
  return NULL;
}

bool cli_timeout_runs(void) { return state.runs; }

void cli_timeout_doing(const char* what) {
  if (!state.runs) return;
  pthread_mutex_lock(&state.lock);
  snprintf(state.doing, sizeof state.doing, "%s", what);
  pthread_mutex_unlock(&state.lock);
}

void cli_timeout_found(const char* text) {
  if (!state.runs) return;
  pthread_mutex_lock(&state.lock);
  free(state.found);
  state.found = text ? strdup(text) : NULL;
  pthread_mutex_unlock(&state.lock);
}

void cli_timeout_hold(void) {
  while (atomic_load(&state.over)) pause();
}
