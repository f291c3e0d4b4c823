// assay conformance: the ONNX operator tests, in processes of their own: of one case, or of a few.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/shown.h"
#include "check/conformance.h"
#include "cli/cli.h"
#include "exec/targets.h"

typedef struct args {
  const char *folder, *backend, *json, *match;
  opt_list_t ops;
  bool allow_hard_links;
  int64_t jobs, each, timeout_s;
  bool verbose;
} args_t;

// Cases being run by a child process, one after the other, which writes into a pipe why each of
// them failed, nothing if it passed, and a NUL.
typedef struct job {
  pid_t pid;  // 0: free
  int fd;
  size_t number, first, end;  // the case that is run, of those of the child
  double deadline;            // of this case
  assay_str_t why;            // of this case, so far
} job_t;

// A process takes longer to begin, a device's driver much longer, than most cases: so many have
// one.
enum { MAX_JOBS = 64, EACH = 32 };

static bool run_case(const char* root, const char* name, const char* backend, int fd) {
  char folder[8192];
  assay_str_t why = {0};
  snprintf(folder, sizeof folder, "%s/%s", root, name);
  assay_status_t st = assay_conformance_run(folder, backend, &why);
  const char* text = st ? assay_status_message(st) : assay_str_get(&why);
  const size_t n = strlen(text) + 1;
  const bool reported = write(fd, text, n) == (ssize_t)n;
  assay_status_free(st);
  assay_str_deinit(&why);
  return reported;
}

static void child(const args_t* a, const assay_case_list_t* list, const char* backend, size_t first,
                  size_t end, int fd) {
  bool reported = true;
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  // A GPU takes longer to open than most cases take to run, and processes that open one wait for
  // each other. What cannot be opened the cases say.
  assay_device_t* held = NULL;
  if (backend) assay_status_free(assay_target_hold(assay_backend_find(backend), &held));
  for (size_t i = first; i < end && reported; i++)
    reported = run_case(a->folder, list->names[i], backend, fd);
  assay_target_let_go(held);
  // A plain exit, so that a sanitizer's checks at the end count; its exit code is then not 0.
  exit(reported ? 0 : 1);
}

static bool start(job_t* job, const args_t* a, const assay_case_list_t* list, const char* backend,
                  size_t first, size_t end) {
  int fds[2];
  if (pipe(fds)) return false;
  fflush(NULL);
  pid_t pid = fork();
  if (pid < 0) return close(fds[0]), close(fds[1]), false;
  if (!pid) {
    close(fds[0]);
    child(a, list, backend, first, end, fds[1]);
  }
  close(fds[1]);
  *job = (job_t){.pid = pid,
                 .fd = fds[0],
                 .number = first,
                 .first = first,
                 .end = end,
                 .deadline = assay_clock_seconds() + (double)a->timeout_s};
  return true;
}

// Waits for a child's end; afterwards job->why says why the case that it ended in failed, if it
// did: the last one, which an exit code alone is told of, or the one that it was at.
static void finish(job_t* job, bool timed_out, double timeout_s) {
  int status = 0;
  if (timed_out) kill(job->pid, SIGKILL);
  close(job->fd);
  while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR) {
  }
  job->pid = 0;
  if (timed_out)
    assay_str_printf(&job->why, "hang: over %g s", timeout_s);
  else if (WIFSIGNALED(status))
    assay_str_printf(&job->why, "crash: %s", strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status) && !job->why.len)
    assay_str_printf(&job->why, "crash: exit code %d", WEXITSTATUS(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) && job->end - job->first > 1)
    assay_str_printf(&job->why, ", of a process of %zu cases", job->end - job->first);
}

typedef struct totals {
  size_t passed, failed;
  json_t* cases;  // NULL: not asked for
  FILE* text;     // the lines for people
} totals_t;

static void record(totals_t* t, const char* name, const job_t* job, bool verbose) {
  const char* why = assay_str_get(&job->why);
  bool ok = !*why;
  if (ok)
    t->passed++;
  else
    t->failed++;
  if (!ok)
    assay_print(t->text, "FAIL %s: %s\n", name, why);
  else if (verbose)
    assay_print(t->text, "ok   %s\n", name);
  if (t->cases)
    t->cases = assay_json_put(
        t->cases, name,
        ok ? json_pack("{s:s}", "status", "passed")
           : json_pack("{s:s, s:o}", "status", "failed", "why", assay_json_text(why)));
}

typedef struct all {
  const args_t* args;
  const assay_case_list_t* list;
  const char* backend;
  totals_t* totals;
  job_t jobs[MAX_JOBS];
  size_t next, busy;  // case that no child has yet; children
} all_t;

static void record_case(all_t* all, job_t* job) {
  record(all->totals, all->list->names[job->number], job, all->args->verbose);
  assay_str_deinit(&job->why);
  job->number++;
  job->deadline = assay_clock_seconds() + (double)all->args->timeout_s;
}

// Reads what there is; true at the end of the pipe. The last case waits for how the child ends.
static bool drain(all_t* all, job_t* job) {
  char buffer[4096];
  const ssize_t n = read(job->fd, buffer, sizeof buffer);
  for (ssize_t i = 0; i < n; i++) {
    if (buffer[i])
      assay_str_append_n(&job->why, &buffer[i], 1);
    else if (job->number + 1 < job->end)
      record_case(all, job);
  }
  return n == 0 || (n < 0 && errno != EINTR);
}

// A child that ended, or is late. Cases that it has not come to get another one.
static bool collect(all_t* all, job_t* job, bool late) {
  finish(job, late, (double)all->args->timeout_s);
  record_case(all, job);
  const size_t number = job->number, end = job->end;
  all->busy--;
  if (number == end) return true;
  all->busy++;
  return start(job, all->args, all->list, all->backend, number, end);
}

static bool start_free(all_t* all) {
  const size_t each = (size_t)all->args->each, jobs = (size_t)all->args->jobs;
  for (size_t k = 0; k < jobs && all->next < all->list->n; k++) {
    // No process is to be left with many at the end.
    const size_t share = (all->list->n - all->next) / (2 * jobs) + 1,
                 n = share < each ? share : each;
    if (all->jobs[k].pid) continue;
    if (!start(&all->jobs[k], all->args, all->list, all->backend, all->next, all->next + n))
      return false;
    all->next += n;
    all->busy++;
  }
  return true;
}

// Waits for what children have to say.
static bool watch(all_t* all) {
  struct pollfd polls[MAX_JOBS];
  job_t* owner[MAX_JOBS];
  size_t n = 0;
  for (size_t k = 0; k < (size_t)all->args->jobs; k++) {
    if (!all->jobs[k].pid) continue;
    owner[n] = &all->jobs[k];
    polls[n++] = (struct pollfd){.fd = all->jobs[k].fd, .events = POLLIN};
  }
  if (poll(polls, n, 200) < 0 && errno != EINTR) return false;
  for (size_t i = 0; i < n; i++) {
    const bool ended = polls[i].revents && drain(all, owner[i]);
    const bool late = !ended && assay_clock_seconds() > owner[i]->deadline;
    if ((ended || late) && !collect(all, owner[i], late)) return false;
  }
  return true;
}

// Runs the cases, `jobs` processes at a time.
static bool run_all(const args_t* a, const assay_case_list_t* list, const char* backend,
                    totals_t* totals) {
  all_t all = {.args = a, .list = list, .backend = backend, .totals = totals};
  while (all.next < list->n || all.busy) {
    if (!start_free(&all) || !watch(&all)) return false;
    assay_cli_progress("conformance", (double)(totals->passed + totals->failed) / (double)list->n);
  }
  return true;
}

static void keep_matching(assay_case_list_t* list, const char* pattern) {
  size_t kept = 0;
  for (size_t i = 0; i < list->n; i++) {
    const char* slash = strrchr(list->names[i], '/');
    if (assay_glob_match(pattern, list->names[i]) ||
        assay_glob_match(pattern, slash ? slash + 1 : list->names[i]))
      list->names[kept++] = list->names[i];
    else
      assay_free(list->names[i]);
  }
  list->n = kept;
}

// Whether the target can be used, asked in a process of its own: drivers of devices do not live on
// in children, and cases are run in these. Returns an exit code; what is missing was told.
static int want_target(const assay_backend_t* target) {
  int status = 0;
  if (!target->driver) return ASSAY_EXIT_OK;
  const pid_t pid = fork();
  if (pid == 0) {
    assay_status_t st = assay_target_want(target);
    _exit(st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK);
  }
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return ASSAY_EXIT_FAILED;
  return WIFEXITED(status) ? WEXITSTATUS(status) : ASSAY_EXIT_FAILED;
}

// Cases end in any order: each has its place before.
static json_t* list_cases(const assay_case_list_t* list) {
  json_t* cases = json_object();
  for (size_t i = 0; cases && i < list->n; i++)
    cases = assay_json_put(cases, list->names[i], json_null());
  return cases;
}

static int run(void* p) {
  args_t* a = p;
  const char* backend = a->backend && strcmp(a->backend, "native") != 0 ? a->backend : NULL;
  const assay_backend_t* found;
  assay_status_t st = NULL;
  if (backend && strcmp(backend, "auto") == 0)
    return assay_cli_usage("conformance", "--backend is native or the name of a target");
  if (backend) st = assay_target_find(backend, ASSAY_TARGET_INSPECT, &found);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  const int missing = backend ? want_target(found) : ASSAY_EXIT_OK;
  if (missing) return missing;
  if (!a->timeout_s) a->timeout_s = 60;
  if (a->jobs <= 0) a->jobs = sysconf(_SC_NPROCESSORS_ONLN);
  if (a->jobs > MAX_JOBS) a->jobs = MAX_JOBS;
  if (a->each <= 0) a->each = EACH;
  assay_case_list_t list = {0};
  st = assay_conformance_find(a->folder, &list);
  if (!st && a->match) keep_matching(&list, a->match);
  if (!st && !list.n)
    st = ASSAY_ERROR(ASSAY_NOT_FOUND,
                     "no case%s%s below '%s': a case is a folder with model.onnx "
                     "and test_data_set_0",
                     a->match ? " matching " : "", a->match ? a->match : "", a->folder);
  if (st) return assay_case_list_deinit(&list), assay_cli_fail(st, ASSAY_EXIT_INPUT);
  bool to_stdout = assay_cli_json_to_stdout(a->json);
  totals_t totals = {.cases = a->json ? list_cases(&list) : NULL,
                     .text = to_stdout ? stderr : stdout};
  bool ran = run_all(a, &list, backend, &totals);
  assay_cli_progress("", 1);
  assay_case_list_deinit(&list);
  int code = totals.failed ? ASSAY_EXIT_UNFAITHFUL : ASSAY_EXIT_OK;
  if (!ran) {
    assay_print(stderr, "assay: cannot start processes: %s\n", strerror(errno));
    code = ASSAY_EXIT_FAILED;
  }
  if (ran) fprintf(totals.text, "%zu passed, %zu failed\n", totals.passed, totals.failed);
  if (a->json && ran) {
    json_t* all = json_pack("{s:s, s:I, s:I, s:o}", "schema", "assay.conformance/1", "passed",
                            (json_int_t)totals.passed, "failed", (json_int_t)totals.failed, "cases",
                            totals.cases);
    st = all ? assay_cli_write_json(a->json, all) : assay_status_no_memory();
    if (st) code = assay_cli_fail(st, ASSAY_EXIT_FAILED);
    json_decref(all);
  }
  return code;
}

static const opt_t options[] = {
    {"FOLDER", 0, OPT_STRING, offsetof(args_t, folder), NULL,
     "folder with cases in ONNX's layout, at any depth", true},
    {"--backend", 0, OPT_STRING, offsetof(args_t, backend), "B",
     "native (default): the evaluator, rounding to each declared type;\nor a target: emu keeps "
     "sums "
     "in fp32, others have kernels",
     false},
    {"--match", 0, OPT_STRING, offsetof(args_t, match), "PATTERN",
     "only cases whose name matches (shell wildcards)", false},
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE",
     "every case's result as JSON; - is stdout", false},
    {"--jobs", 'j', OPT_INT, offsetof(args_t, jobs), "N", "cases at a time (default: cores)",
     false},
    {"--each", 0, OPT_INT, offsetof(args_t, each), "N",
     "cases in a process, one after the other, at most (default: 32); those\nthat come after a "
     "crash "
     "get another one",
     false},
    {"--timeout", 0, OPT_INT, offsetof(args_t, timeout_s), "S",
     "seconds until a case counts as hung (default: 60)", false},
    {"--verbose", 'v', OPT_FLAG, offsetof(args_t, verbose), NULL, "list passed cases too", false},
    CLI_OPS_OPTION,
    CLI_HARD_LINKS_OPTION(allow_hard_links),
    {0}};

const verb_t assay_verb_conformance = {
    .name = "conformance",
    .summary = "run the ONNX operator tests",
    .usage = "FOLDER [options]",
    .examples =
        "  assay conformance cases/\n"
        "  assay conformance cases/node --match 'test_resize_*' --json results.json\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
