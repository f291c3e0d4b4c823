// Other programs: a shell command run to its end, or to a time limit.
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "base/clock.h"
#include "base/shown.h"

enum { TAIL_BYTES = 4096, TAIL_LINES = 6, POLL_MS = 50 };

extern char** environ;

// ---- the end of this process ------------------------------------------------------------------

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_ENDS = sizeof ends / sizeof *ends };
static atomic_int group;  // of the command that runs; 0: none

static atomic_bool clearing;  // no command is started any more

// The command has to be ended, too (it is no longer in the terminal's group, which Ctrl-C speaks
// to), and folders have to be removed, which no handler can do: it wakes a thread that does both,
// and then ends the process by the signal.
static struct {
  pthread_mutex_t lock;  // of starting a command, and of ending it
  int pipe[2];
  pid_t owner;  // whose thread it is: a child that was forked has none
} cleaner = {.lock = PTHREAD_MUTEX_INITIALIZER};
static atomic_bool ending;

static void wake_cleaner(int number) {
  const int reason = errno;
  const char reported = (char)number;
  if (getpid() != cleaner.owner) {
    raise(number);  // by default now
    return;
  }
  atomic_store(&ending, true);
  if (write(cleaner.pipe[1], &reported, 1) != 1) raise(number);
  errno = reason;
}

static void* clean(void* unused) {
  char number;
  (void)unused;
  while (read(cleaner.pipe[0], &number, 1) != 1)
    if (errno != EINTR) return NULL;
  assay_process_clear();
  signal(number, SIG_DFL);
  kill(cleaner.owner, number);
  for (;;) pause();
}

static assay_status_t start_cleaner(void) {
  pthread_t thread;
  if (pipe2(cleaner.pipe, O_CLOEXEC))
    return ASSAY_ERROR(ASSAY_DEVICE, "cannot make a pipe: %s", strerror(errno));
  cleaner.owner = getpid();
  if (pthread_create(&thread, NULL, clean, NULL) == 0) return pthread_detach(thread), NULL;
  close(cleaner.pipe[0]);
  close(cleaner.pipe[1]);
  cleaner.owner = 0;
  return ASSAY_ERROR(ASSAY_DEVICE, "the system has no thread to clean up by");
}

// Where the program has no handlers of its own; a second signal ends it at once.
static assay_status_t watch_ends(void) {
  pthread_mutex_lock(&cleaner.lock);
  assay_status_t st = cleaner.owner == getpid() ? NULL : start_cleaner();
  for (int i = 0; !st && i < N_ENDS && !atomic_load(&ending); i++) {
    struct sigaction before, own = {.sa_handler = wake_cleaner, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&own.sa_mask);
    sigaction(ends[i], NULL, &before);
    if (before.sa_handler == SIG_DFL) sigaction(ends[i], &own, NULL);
  }
  pthread_mutex_unlock(&cleaner.lock);
  return st;
}

void assay_process_hold(void) {
  while (atomic_load(&ending)) pause();
}

// ---- what it printed --------------------------------------------------------------------------

typedef struct tail {
  char text[TAIL_BYTES];
  size_t n;
} tail_t;

static void tail_add(tail_t* t, const char* data, size_t n) {
  if (n > sizeof t->text) {
    data += n - sizeof t->text;
    n = sizeof t->text;
  }
  const size_t kept = t->n + n > sizeof t->text ? sizeof t->text - n : t->n;
  memmove(t->text, t->text + t->n - kept, kept);
  memcpy(t->text + kept, data, n);
  t->n = kept + n;
}

// The length of a terminal's escape sequence (colours) at p; 0: there is none.
static size_t escape_length(const char* p, size_t left) {
  size_t n = 2;
  if (left < 2 || p[0] != '\x1b' || p[1] != '[') return 0;
  while (n < left && (p[n] < 0x40 || p[n] > 0x7e)) n++;
  return n < left ? n + 1 : n;
}

// The last lines, as one: "; " between, without control characters.
static void tail_text(const tail_t* t, assay_str_t* out) {
  size_t end = t->n, start;
  while (end && (t->text[end - 1] == '\n' || t->text[end - 1] == ' ')) end--;
  start = end;
  for (int lines = 0; start; start--)
    if (t->text[start - 1] == '\n' && ++lines == TAIL_LINES) break;
  bool gap = false;
  for (size_t i = start; i < end; i++) {
    i += escape_length(&t->text[i], end - i);
    if (i >= end) break;
    const unsigned char c = (unsigned char)t->text[i];
    if (c == '\n') gap = true;
    if (c < 0x20 || c == 0x7f) continue;
    if (gap) assay_str_append(out, "; ");
    gap = false;
    assay_str_append_n(out, &t->text[i], 1);
  }
}

// Reads what there is; false at its end.
static bool drain(int fd, tail_t* t) {
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0) tail_add(t, buffer, (size_t)n);
    if (n == 0) return false;
    if (n < 0) return errno == EAGAIN || errno == EINTR;
  }
}

// ---- running ----------------------------------------------------------------------------------

// in: the file that is its input; NULL: this process's. out, err: -1: this process's.
static int spawn(const char* const* words, const char* in, int out, int err, pid_t* pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (int i = 0; i < N_ENDS; i++) sigaddset(&defaults, ends[i]);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGXFSZ);
  int e = posix_spawn_file_actions_init(&files);
  if (e) return e;
  e = posix_spawnattr_init(&how);
  if (e) return posix_spawn_file_actions_destroy(&files), e;
  if (in) e = posix_spawn_file_actions_addopen(&files, 0, in, O_RDONLY, 0);
  if (!e && out >= 0) e = posix_spawn_file_actions_adddup2(&files, out, 1);
  if (!e && err >= 0) e = posix_spawn_file_actions_adddup2(&files, err, 2);
  if (!e) e = posix_spawnattr_setpgroup(&how, 0);
  if (!e) e = posix_spawnattr_setsigmask(&how, &none);
  if (!e) e = posix_spawnattr_setsigdefault(&how, &defaults);
  if (!e)
    e = posix_spawnattr_setflags(
        &how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  // It does not change the words.
  if (!e) e = posix_spawnp(pid, words[0], &files, &how, (char* const*)(uintptr_t)words, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  return e;
}

static assay_status_t start(const char* const* words, const char* in, int out, int err,
                            pid_t* pid) {
  ASSAY_TRY(watch_ends());
  pthread_mutex_lock(&cleaner.lock);
  const bool late = atomic_load(&clearing);
  const int e = late ? 0 : spawn(words, in, out, err, pid);
  if (!late && !e) atomic_store(&group, *pid);
  pthread_mutex_unlock(&cleaner.lock);
  if (late) assay_process_hold();
  if (late) return ASSAY_ERROR(ASSAY_DEVICE, "this process is about to end");
  return !e ? NULL
            : ASSAY_ERROR(e == ENOENT || e == ENOTDIR ? ASSAY_NOT_FOUND : ASSAY_DEVICE,
                          "cannot start '%s': %s", words[0], strerror(e));
}

assay_status_t assay_process_start(const char* const* words, int out, int err, pid_t* out_pid) {
  // In a group of its own it must not read from the terminal: it would be stopped.
  return start(words, isatty(STDIN_FILENO) ? "/dev/null" : NULL, out, err, out_pid);
}

void assay_process_over(void) {
  atomic_store(&group, 0);
  assay_process_hold();
}

// Waits for the command, reading what it prints; *out_late: it was killed, as its time was over.
static assay_status_t wait_for(pid_t pid, int fd, double seconds, tail_t* tail, int* out_state,
                               bool* out_late) {
  const double end = assay_clock_seconds() + seconds;
  bool open = true;
  *out_late = false;
  for (;;) {
    const pid_t done = waitpid(pid, out_state, WNOHANG);
    if (done == pid) break;
    if (done < 0 && errno != EINTR)
      return ASSAY_ERROR(ASSAY_DEVICE, "cannot wait for a command: %s", strerror(errno));
    const bool cancelled = assay_cancel_wanted(assay_cancel_watched());
    if (!*out_late && (cancelled || assay_clock_seconds() >= end)) {
      *out_late = true;
      kill(-pid, SIGKILL);
    }
    struct pollfd p = {.fd = open ? fd : -1, .events = POLLIN};
    const double left = 1e3 * (end - assay_clock_seconds());
    const int ms = left < 1 ? 1 : left < POLL_MS ? (int)left : POLL_MS;
    if (poll(&p, 1, ms) > 0) open = drain(fd, tail);
  }
  // What it started and left behind may still hold the pipe: only what is there is read.
  if (open) drain(fd, tail);
  return *out_late ? assay_cancel_check() : NULL;
}

static assay_status_t judge(int state, bool late, double seconds, int max, const tail_t* tail) {
  if (!late && WIFEXITED(state) && WEXITSTATUS(state) <= max) return NULL;
  assay_str_t why = {0};
  if (late)
    assay_str_printf(&why, "did not end within %g seconds and was killed", seconds);
  else if (WIFSIGNALED(state))
    assay_str_printf(&why, "was ended by signal %d (%s)", WTERMSIG(state),
                     strsignal(WTERMSIG(state)));
  else
    assay_str_printf(&why, "ended with exit code %d", WEXITSTATUS(state));
  assay_str_append(&why, tail->n ? "; its last lines: " : "; it printed nothing");
  tail_text(tail, &why);
  assay_status_t st = assay_str_status(&why);
  if (!st) st = ASSAY_ERROR(ASSAY_DEVICE, "%s", assay_str_get(&why));
  assay_str_deinit(&why);
  return st;
}

assay_status_t assay_process_ask(const char* command, double seconds, int max, int* out_code,
                                 assay_str_t* out_said) {
  int ends_of_pipe[2], state = 0;
  bool late = false;
  pid_t pid = 0;
  tail_t tail = {.n = 0};
  if (pipe2(ends_of_pipe, O_CLOEXEC))
    return ASSAY_ERROR(ASSAY_DEVICE, "cannot make a pipe: %s", strerror(errno));
  fcntl(ends_of_pipe[0], F_SETFL, O_NONBLOCK);
  const char* const words[] = {"/bin/sh", "-c", command, NULL};
  assay_status_t st = start(words, "/dev/null", ends_of_pipe[1], ends_of_pipe[1], &pid);
  close(ends_of_pipe[1]);
  if (!st) {
    st = wait_for(pid, ends_of_pipe[0], seconds, &tail, &state, &late);
    assay_process_over();
  }
  close(ends_of_pipe[0]);
  if (!st) st = judge(state, late, seconds, max, &tail);
  if (st) return st;
  *out_code = WEXITSTATUS(state);
  if (out_said && tail.n) tail_text(&tail, out_said);
  return NULL;
}

assay_status_t assay_process_run(const char* command, double seconds) {
  int code;
  return assay_process_ask(command, seconds, 0, &code, NULL);
}

// ---- folders ------------------------------------------------------------------------------------

static const char *temporary_base, *temporary_refused_by;

// All that were made. Their names are never used again, so those that are gone do no harm.
static struct {
  pthread_mutex_t lock;
  char** paths;
  size_t n, cap;
} made = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Makes a folder of a name that ends in XXXXXX, which becomes its own, and puts it down. With the
// lock, so that whoever removes them sees it.
static assay_status_t make_noted(char* path) {
  if (atomic_load(&clearing)) return ASSAY_ERROR(ASSAY_DEVICE, "this process is about to end");
  ASSAY_TRY(watch_ends());
  ASSAY_TRY(assay_grow(&made.paths, &made.cap, made.n + 1, sizeof *made.paths));
  char* copy = strdup(path);
  if (!copy) return assay_status_no_memory();
  if (!mkdtemp(copy)) {
    free(copy);
    return ASSAY_ERROR(ASSAY_DEVICE, "cannot make a folder '%s': %s", path, strerror(errno));
  }
  strcpy(path, copy);
  made.paths[made.n++] = copy;
  return NULL;
}

static int remove_one(const char* path, const struct stat* info, int kind, struct FTW* where) {
  (void)info, (void)kind, (void)where;
  (void)remove(path);
  return 0;
}

void assay_folder_remove_temporary(const char* path) {
  char* found = NULL;
  pthread_mutex_lock(&made.lock);
  for (size_t i = 0; !found && i < made.n; i++) {
    if (strcmp(made.paths[i], path) != 0) continue;
    found = made.paths[i];
    (void)nftw(found, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    made.paths[i] = made.paths[--made.n];
  }
  pthread_mutex_unlock(&made.lock);
  free(found);
}

void assay_process_clear(void) {
  enum { TIMES = 2 };  // another thread may be about to start a command, or to write a file
  atomic_store(&clearing, true);
  for (int k = 0; k < TIMES; k++) {
    pthread_mutex_lock(&cleaner.lock);
    const pid_t command = atomic_load(&group);
    if (command) kill(-command, SIGKILL);
    pthread_mutex_unlock(&cleaner.lock);
    pthread_mutex_lock(&made.lock);
    for (size_t i = 0; i < made.n; i++)
      (void)nftw(made.paths[i], remove_one, 8, FTW_DEPTH | FTW_PHYS);
    pthread_mutex_unlock(&made.lock);
  }
}

void assay_folder_rule_temporary(const char* where, const char* refused_by) {
  temporary_base = where;
  temporary_refused_by = refused_by;
}

const char* assay_folder_for_temporary(void) {
  const char* base = temporary_base ? temporary_base : getenv("TMPDIR");
  return temporary_refused_by ? NULL : base && *base ? base : "/tmp";
}

assay_status_t assay_folder_make_temporary(assay_str_t* out_path) {
  const char* base = assay_folder_for_temporary();
  assay_str_t path = {0};
  if (temporary_refused_by)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "a folder for temporary files is needed, and %s does not allow it: leave it "
                       "out",
                       temporary_refused_by);
  assay_str_printf_raw(&path, "%s/assay.XXXXXX", base);
  assay_status_t st = assay_str_status(&path);
  if (!st) {
    pthread_mutex_lock(&made.lock);
    st = make_noted(path.text);
    pthread_mutex_unlock(&made.lock);
  }
  if (!st) {
    assay_str_append(out_path, path.text);
    st = assay_str_status(out_path);
  }
  assay_str_deinit(&path);
  return st;
}
