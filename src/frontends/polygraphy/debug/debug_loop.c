// What the subcommands of debug have in common: make something, check it, put files aside by what
// came of it, and go on.
#include "frontends/polygraphy/debug/debug_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shell.h"
#include "base/shown.h"
#include "frontends/polygraphy/log.h"
#include "io/json.h"

enum { INDENT = 4 };

// ---- flags --------------------------------------------------------------------------------------

static assay_status_t read_codes(const pg_job_t* j, pg_debug_t* d) {
  const pg_args_t* a = j->args;
  d->judge.ignore = pg_given(a, PG_FLAG_ignore_fail_code);
  const char* flag = d->judge.ignore ? "--ignore-fail-code" : "--fail-code";
  const pg_words_t* words =
      pg_words(a, d->judge.ignore ? PG_FLAG_ignore_fail_code : PG_FLAG_fail_code);
  ASSAY_TRY(assay_arena_new(j->arena, words->n, sizeof *d->codes, &d->codes));
  for (size_t i = 0; i < words->n; i++) {
    char* end;
    errno = 0;
    const long code = strtol(words->items[i], &end, 10);
    if (end == words->items[i] || *end || errno || code < -255 || code > 255)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s: '%s' is not an exit status: 0 to 255, or -N for signal N", flag,
                         words->items[i]);
    d->codes[i] = (int)code;
  }
  d->judge.codes = d->codes;
  d->judge.n_codes = words->n;
  return NULL;
}

static assay_status_t read_regexes(const pg_job_t* j, pg_judge_t* judge) {
  const pg_words_t* words = pg_words(j->args, PG_FLAG_fail_regex);
  ASSAY_TRY(assay_arena_new(j->arena, words->n, sizeof *judge->regexes, &judge->regexes));
  for (size_t i = 0; i < words->n; i++) {
    ASSAY_TRY(pg_regex_compile(words->items[i], &judge->regexes[i]));
    judge->n_regexes++;
  }
  return NULL;
}

static assay_status_t check_flags(const pg_debug_t* d) {
  const pg_args_t* a = d->job->args;
  struct stat info;
  if (pg_given(a, PG_FLAG_check) && !pg_words(a, PG_FLAG_check)->n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--check needs a command after it: it takes the rest of the line, so it "
                       "comes last");
  if (!pg_given(a, PG_FLAG_check) && !isatty(STDIN_FILENO))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--check is missing, and standard input is not a "
                       "terminal to ask on; give --check COMMAND");
  if (d->artifact && lstat(d->artifact, &info) == 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s already exists, refusing to overwrite. Please remove the file manually "
                       "or specify a different path with `--intermediate-artifact`.",
                       d->artifact);
  return NULL;
}

static void report_flags(const pg_args_t* a) {
  if (!pg_given(a, PG_FLAG_check))
    pg_log(PG_INFO,
           "Starting interactive debugging session since no `--check` command was provided");
  if (!pg_given(a, PG_FLAG_artifacts))
    pg_log(PG_WARNING,
           "`--artifacts` was not specified; No artifacts will be stored during this run! Is this "
           "what you intended?");
}

static assay_status_t open_replay(pg_debug_t* d) {
  const pg_args_t* a = d->job->args;
  // debug build has neither flag: what it makes differs from time to time.
  const char *load = pg_text(a, PG_FLAG_load_debug_replay),
             *save = pg_text(a, PG_FLAG_save_debug_replay);
  if (load) pg_log(PG_INFO, "Loading debug replay from %s", load);
  if (!pg_flag_has(PG_FLAG_save_debug_replay, a->command)) return NULL;
  return pg_replay_open(d->job->arena, load, save, &d->replay);
}

assay_status_t pg_debug_open(pg_job_t* j, const char* artifact, pg_debug_t* out) {
  pg_debug_t d = {.job = j, .artifact = artifact};
  const time_t seconds = time(NULL);
  struct tm parts;
  if (artifact && pg_text(j->args, PG_FLAG_iter_artifact))
    d.artifact = pg_text(j->args, PG_FLAG_iter_artifact);
  if (localtime_r(&seconds, &parts)) strftime(d.stamp, sizeof d.stamp, "%m-%d-%y_%H-%M-%S", &parts);
  assay_status_t st = read_codes(j, &d);
  if (!st) st = read_regexes(j, &d.judge);
  if (!st) st = check_flags(&d);
  if (!st) report_flags(j->args);
  if (!st) st = open_replay(&d);
  if (!st && pg_given(j->args, PG_FLAG_check))
    st = pg_links_put(j->program, pg_words(j->args, PG_FLAG_check)->items[0]);
  if (st) return pg_debug_close(&d), st;
  *out = d;
  return NULL;
}

void pg_debug_close(pg_debug_t* d) {
  pg_judge_deinit(&d->judge);
  pg_replay_close(&d->replay);
  pg_links_remove();
}

// ---- the check ----------------------------------------------------------------------------------

static void report_output(pg_severity_t s, const char* name, const assay_str_t* text) {
  size_t n = text->len;
  while (n && (text->text[n - 1] == '\n' || text->text[n - 1] == ' ')) n--;
  assay_str_t lines = {0};
  if (n) assay_str_append_n(&lines, text->text, n);
  pg_log(s, "========== CAPTURED %s ==========" ASSAY_LINES ASSAY_LINES, name, n ? "\n" : "",
         assay_str_get(&lines));
  assay_str_deinit(&lines);
}

static assay_status_t run_check(const pg_debug_t* d, bool* out_success) {
  const pg_args_t* a = d->job->args;
  const pg_words_t* words = pg_words(a, PG_FLAG_check);
  const char** ended;
  assay_str_t line = {0};
  pg_ended_t e = {0};
  ASSAY_TRY(assay_arena_new(d->job->arena, words->n + 1, sizeof *ended, &ended));
  for (size_t i = 0; i < words->n; i++) {
    ended[i] = words->items[i];
    if (i) assay_str_append(&line, " ");
    assay_shell_word(&line, words->items[i]);
  }
  pg_log(PG_INFO, "Running check command: %s", assay_str_get(&line));
  assay_str_deinit(&line);
  ASSAY_TRY(pg_command_run(ended, &e));
  *out_success = pg_judge_passes(&d->judge, &e);
  if (*out_success ? pg_given(a, PG_FLAG_show_output) : !pg_given(a, PG_FLAG_hide_fail_output)) {
    report_output(PG_INFO, "STDOUT", &e.out);
    report_output(*out_success ? PG_WARNING : PG_ERROR, "STDERR", &e.err);
  }
  pg_ended_deinit(&e);
  return NULL;
}

static assay_status_t ask(const pg_debug_t* d, bool* out_success) {
  char line[256];
  assay_print(stdout, ">>> Did '%s' [p]ass or [f]ail? ",
              d->artifact ? d->artifact : "this iteration");
  for (;;) {
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "nothing was answered: the input has ended");
    line[strcspn(line, "\n")] = 0;
    *out_success = strcasecmp(line, "p") == 0 || strcasecmp(line, "pass") == 0;
    if (*out_success || strcasecmp(line, "f") == 0 || strcasecmp(line, "fail") == 0) return NULL;
    printf(">>> Please choose either: 'p' or 'f': ");
  }
}

// ---- an iteration -------------------------------------------------------------------------------

static assay_status_t write_info(const pg_debug_t* d, size_t index) {
  const char* path = pg_text(d->job->args, PG_FLAG_iter_info);
  if (!path) return NULL;
  json_t* j = assay_json_put(json_object(), "iteration", json_integer((json_int_t)index));
  assay_status_t st = j ? assay_json_write(path, j, INDENT) : assay_status_no_memory();
  json_decref(j);
  return assay_status_note(st, "--iter-info");
}

// What a failed build leaves to say; running out of memory ends the loop.
static assay_status_t forgive(assay_status_t st, bool* out_failed) {
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  *out_failed = true;
  pg_log(PG_ERROR, "%s", assay_status_message(st));
  assay_status_free(st);
  return NULL;
}

static assay_status_t make(const pg_debug_t* d, const pg_loop_t* loop, pg_iteration_t* i,
                           bool* out_failed) {
  const bool records = d->replay.saved && !loop->unrecorded;
  *out_failed = false;
  if (records) ASSAY_TRY(pg_replay_save_skipping(&d->replay, i->index, loop->suffix, i->n_nodes));
  ASSAY_TRY(write_info(d, i->index));
  if (!loop->make) return NULL;
  pg_log_indent(1);
  assay_status_t st = loop->make(loop->user, i);
  pg_log_indent(-1);
  ASSAY_TRY(loop->strict ? st : forgive(st, out_failed));
  // Now it is known what the model has.
  if (records && i->n_nodes >= 0)
    ASSAY_TRY(pg_replay_save_skipping(&d->replay, i->index, loop->suffix, i->n_nodes));
  return NULL;
}

static void clean_up(const pg_debug_t* d) {
  const pg_args_t* a = d->job->args;
  if (pg_text(a, PG_FLAG_iter_info)) pg_remove(pg_text(a, PG_FLAG_iter_info));
  if (d->artifact && !pg_given(a, PG_FLAG_no_remove_intermediate)) pg_remove(d->artifact);
}

static assay_status_t iterate(pg_debug_t* d, const pg_loop_t* loop, pg_iteration_t* i) {
  bool failed;
  if (!loop->unrecorded &&
      pg_replay_find(&d->replay, i->index, loop->suffix, &i->success, &i->n_nodes)) {
    pg_log(PG_INFO, "Loading iteration information from debug replay: success=%s",
           i->success ? "True" : "False");
    return pg_replay_put(&d->replay, i->index, loop->suffix, i->n_nodes, i->success);
  }
  assay_status_t st = make(d, loop, i, &failed);
  i->success = false;
  if (!st && !failed)
    st = pg_given(d->job->args, PG_FLAG_check) ? run_check(d, &i->success) : ask(d, &i->success);
  if (!st) st = pg_artifacts_move(d, i, loop->suffix);
  clean_up(d);
  if (st || !d->replay.saved || loop->unrecorded) return st;
  pg_log(PG_INFO, "Saving debug replay to %s", d->replay.path);
  ASSAY_TRY(pg_replay_put(&d->replay, i->index, loop->suffix, i->n_nodes, i->success));
  return pg_replay_save(&d->replay);
}

// ---- the loop -----------------------------------------------------------------------------------

static void report_start(const pg_loop_t* loop, size_t index) {
  if (!loop->about) {
    pg_log(PG_START, "RUNNING | Iteration %zu", index + 1);
    return;
  }
  const size_t left = loop->about > index ? loop->about - index : 1;
  pg_log(PG_START, "RUNNING | Iteration %zu | Approximately %zu iteration(s) remaining", index + 1,
         left);
}

static void report_end(const pg_iteration_t* i, double seconds) {
  assay_str_t text = {0};
  pg_put_float(&text, seconds);
  pg_log(i->success ? PG_FINISH : PG_ERROR, "%s | Iteration %zu | Duration %ss",
         i->success ? "PASSED" : "FAILED", i->index + 1, assay_str_get(&text));
  assay_str_deinit(&text);
}

static void report_all(size_t n, size_t passed) {
  assay_str_t text = {0};
  pg_put_float(&text, n ? 100.0 * (double)passed / (double)n : 0.0);
  pg_log(PG_FINISH, "Finished %zu iteration(s) | Passed: %zu/%zu | Pass Rate: %s%%", n, passed, n,
         assay_str_get(&text));
  assay_str_deinit(&text);
}

assay_status_t pg_debug_loop(pg_debug_t* d, const pg_loop_t* loop) {
  size_t passed = 0, n = 0;
  bool stop = false;
  while (!stop && n < PG_MAX_ITERATIONS) {
    pg_iteration_t i = {.index = n++, .n_nodes = -1};
    const double start = assay_clock_seconds();
    pg_log_indent(1);
    report_start(loop, i.index);
    assay_status_t st = iterate(d, loop, &i);
    if (!st) report_end(&i, assay_clock_seconds() - start);
    pg_log_indent(-1);
    ASSAY_TRY(st);
    passed += i.success;
    ASSAY_TRY(loop->advance(loop->user, &i, &stop));
  }
  report_all(n, passed);
  if (!stop) pg_log(PG_WARNING, "Stopped after %d iterations, without an end", PG_MAX_ITERATIONS);
  return NULL;
}
