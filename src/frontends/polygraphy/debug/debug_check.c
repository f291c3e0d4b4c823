// Running the check and judging it.
#include "frontends/polygraphy/debug/debug_check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"

enum { WAIT_MS = 50 };

void pg_ended_deinit(pg_ended_t* e) {
  assay_str_deinit(&e->out);
  assay_str_deinit(&e->err);
}

// ---- running ------------------------------------------------------------------------------------

// Reads what there is; false at the end.
static bool drain(int fd, assay_str_t* out) {
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n == 0) return false;
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    for (ssize_t i = 0; i < n; i++)
      if (!buffer[i]) buffer[i] = ' ';
    assay_str_append_n(out, buffer, (size_t)n);
  }
}

// Waits for the end of the command, not of what it left behind, which may hold the pipes open.
static assay_status_t wait_for(pid_t pid, int pipes[2][2], pg_ended_t* e) {
  assay_str_t* const texts[2] = {&e->out, &e->err};
  bool open[2] = {true, true};
  int state = 0;
  for (pid_t done = 0; done != pid;) {
    struct pollfd p[2];
    for (int i = 0; i < 2; i++)
      p[i] = (struct pollfd){.fd = open[i] ? pipes[i][0] : -1, .events = POLLIN};
    if (open[0] || open[1]) poll(p, 2, WAIT_MS);
    done = waitpid(pid, &state, open[0] || open[1] ? WNOHANG : 0);
    if (done < 0 && errno != EINTR)
      return ASSAY_ERROR(ASSAY_DEVICE, "cannot wait for the check command: %s", strerror(errno));
    for (int i = 0; i < 2; i++)
      if (open[i]) open[i] = drain(pipes[i][0], texts[i]);
  }
  e->status = WIFSIGNALED(state) ? -WTERMSIG(state) : WEXITSTATUS(state);
  ASSAY_TRY(assay_str_status(&e->out));
  return assay_str_status(&e->err);
}

assay_status_t pg_command_run(const char* const* words, pg_ended_t* out) {
  int pipes[2][2] = {{-1, -1}, {-1, -1}};
  pg_ended_t e = {0};
  pid_t pid = 0;
  assay_status_t st = NULL;
  for (int i = 0; !st && i < 2; i++) {
    if (pipe2(pipes[i], O_CLOEXEC))
      st = ASSAY_ERROR(ASSAY_DEVICE, "cannot make a pipe: %s", strerror(errno));
    else
      fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
  }
  if (!st)
    st = assay_status_note(assay_process_start(words, pipes[0][1], pipes[1][1], &pid),
                           "the check command");
  for (int i = 0; i < 2; i++)
    if (pipes[i][1] >= 0) close(pipes[i][1]);
  if (!st) {
    st = wait_for(pid, pipes, &e);
    assay_process_over();
  }
  for (int i = 0; i < 2; i++)
    if (pipes[i][0] >= 0) close(pipes[i][0]);
  if (st) return pg_ended_deinit(&e), st;
  *out = e;
  return NULL;
}

// ---- judging ------------------------------------------------------------------------------------

static bool has_code(const pg_judge_t* j, int status) {
  for (size_t i = 0; i < j->n_codes; i++)
    if (j->codes[i] == status) return true;
  return false;
}

static bool has_match(const pg_judge_t* j, const char* text) {
  for (size_t i = 0; i < j->n_regexes; i++)
    if (regexec(&j->regexes[i], text, 0, NULL, 0) == 0) return true;
  return false;
}

bool pg_judge_passes(const pg_judge_t* j, const pg_ended_t* e) {
  const bool said = has_match(j, assay_str_get(&e->out)) || has_match(j, assay_str_get(&e->err));
  const bool listed = has_code(j, e->status);
  if (j->n_regexes && !said) return true;
  if (j->n_codes && !j->ignore) return !listed;
  return listed || (!j->n_regexes && e->status == 0);
}

void pg_judge_deinit(pg_judge_t* j) {
  for (size_t i = 0; i < j->n_regexes; i++) regfree(&j->regexes[i]);
  j->n_regexes = 0;
}
