// assay polygraphy: Polygraphy's command line, over this program's own ways.
#include "frontends/polygraphy/polygraphy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/shell.h"
#include "base/shown.h"
#include "cli/output_paths.h"
#include "frontends/polygraphy/job.h"

static assay_status_t make_command_line(assay_arena_t* arena, int argc, char** argv,
                                        const char** out) {
  assay_str_t text = {0};
  assay_shell_line(&text, "polygraphy", argc, argv);
  assay_status_t st = assay_str_status(&text);
  if (!st) st = assay_arena_strdup(arena, assay_str_get(&text), out);
  assay_str_deinit(&text);
  return st;
}

// The program's own file, for what it calls again.
static assay_status_t find_program(assay_arena_t* arena, const char** out) {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  if (n > 0 && n < (ssize_t)sizeof path) return assay_arena_strndup(arena, path, (size_t)n, out);
  *out = "assay";
  return NULL;
}

// ---- the log ------------------------------------------------------------------------------------

// -v, -vv, ... and -q, -qq, ...
static int counted_level(const pg_args_t* a) {
  static const int quiet[] = {PG_INFO, PG_START, PG_FINISH, PG_WARNING, PG_ERROR, PG_CRITICAL};
  const int64_t v = pg_int(a, PG_FLAG_verbose), q = pg_int(a, PG_FLAG_quiet);
  if (pg_given(a, PG_FLAG_silent)) return PG_SILENT;
  if (q) return quiet[q < 5 ? q : 5];
  return PG_INFO - 10 * (int)(v < 4 ? v : 4);
}

// --verbosity: a level's name for all, or PATH:LEVEL.
static assay_status_t read_levels(assay_arena_t* arena, const pg_args_t* a) {
  const pg_words_t* words = pg_words(a, PG_FLAG_verbosity);
  pg_log_path_t* paths = NULL;
  size_t n = 0;
  int min = counted_level(a);
  ASSAY_TRY(assay_arena_new(arena, words->n, sizeof *paths, &paths));
  for (size_t i = 0; i < words->n; i++) {
    pg_pair_t pair;
    int level;
    ASSAY_TRY(pg_pair_split(arena, words->items[i], &pair));
    if (!pg_severity_parse(pair.value, &level))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "--verbosity: '%s' is not a level: ULTRA_VERBOSE, SUPER_VERBOSE, "
                         "EXTRA_VERBOSE, VERBOSE, INFO, START, FINISH, WARNING, ERROR, CRITICAL",
                         pair.value);
    if (*pair.name)
      paths[n++] = (pg_log_path_t){pair.name, level};
    else if (!pg_given(a, PG_FLAG_silent))
      min = level;
  }
  pg_log_set(min, paths, pg_given(a, PG_FLAG_silent) ? 0 : n);
  return NULL;
}

static assay_status_t open_log(assay_arena_t* arena, const pg_args_t* a) {
  bool stamp = false, lines = false, colours = true;
  const pg_words_t* words = pg_words(a, PG_FLAG_log_format);
  for (size_t i = 0; i < words->n; i++) {
    stamp |= strcmp(words->items[i], "timestamp") == 0;
    lines |= strcmp(words->items[i], "line-info") == 0;
    colours &= strcmp(words->items[i], "no-colors") != 0;
  }
  pg_log_format(stamp, lines, colours);
  ASSAY_TRY(read_levels(arena, a));
  if (pg_is(a, PG_FLAG_gen, "-") && !pg_given(a, PG_FLAG_silent))
    pg_log_set(PG_ERROR, NULL, 0);  // stdout is the script's
  return pg_given(a, PG_FLAG_log_file) ? pg_log_copy(pg_text(a, PG_FLAG_log_file)) : NULL;
}

// ---- the call -----------------------------------------------------------------------------------

static void report_unknown(const pg_args_t* a) {
  assay_str_t text = {0};
  for (size_t i = 0; i < a->unknown.n; i++)
    assay_str_printf(&text, "%s'%s'", i ? ", " : "", a->unknown.items[i]);
  assay_str_append(&text, "]");
  for (size_t i = 0; i < a->unknown.n; i++) {
    const char* word = a->unknown.items[i];
    const char* near = *word == '-' ? pg_flag_nearest(a->command, word) : NULL;
    if (near)
      assay_str_printf(&text, "\n%s: did you mean %.*s?", word, (int)strcspn(near, " "), near);
  }
  pg_log(PG_ERROR, "Unrecognized Options: [" ASSAY_LINES "", assay_str_get(&text));
  assay_str_deinit(&text);
}

// What is only printed, as a script or as commands, writes later, if at all.
static assay_status_t check_outputs(const pg_args_t* a) {
  if (pg_given(a, PG_FLAG_gen) || pg_given(a, PG_FLAG_show_native)) return NULL;
  for (int f = 0; f < PG_N_FLAGS; f++) {
    const char* names = pg_flags[f].names;
    const char* last = strrchr(names, ' ');
    if (pg_flags[f].kind != PG_OUTPUT || !pg_given(a, (pg_flag_id_t)f)) continue;
    // "-o --output": the long one; of several long ones any will do.
    ASSAY_TRY(
        cli_output_check(last ? last + 1 : names, pg_text(a, (pg_flag_id_t)f), OUTPUT_EITHER));
  }
  return NULL;
}

static assay_status_t do_job(pg_job_t* j) {
  ASSAY_TRY(pg_args_check(j->args));
  ASSAY_TRY(check_outputs(j->args));
  return pg_commands[j->args->command].run(j);
}

static int run_job(pg_job_t* j) {
  const bool framed = pg_commands[j->args->command].framed && !pg_given(j->args, PG_FLAG_gen);
  const double start = assay_clock_seconds();
  if (framed) pg_log(PG_START, "RUNNING | Command: %s", j->command_line);
  assay_status_t st = do_job(j);
  const bool failed = st || j->failed;
  if (st) pg_log(PG_CRITICAL, "%s", assay_status_message(st));
  assay_status_free(st);
  if (framed)
    pg_log(failed ? PG_ERROR : PG_FINISH, "%s | Runtime: %.3fs | Command: %s",
           failed ? "FAILED" : "PASSED", assay_clock_seconds() - start, j->command_line);
  return failed;
}

static int run(assay_arena_t* arena, pg_args_t* args, int argc, char** argv) {
  pg_outcome_t outcome;
  pg_job_t job = {.args = args, .arena = arena};
  assay_status_t st = make_command_line(arena, argc, argv, &job.command_line);
  if (!st) st = find_program(arena, &job.program);
  if (!st) st = pg_args_parse(arena, argc, argv, args, &outcome);
  if (!st && outcome == PG_OUTCOME_HELP) return 0;
  if (!st && outcome == PG_OUTCOME_MISUSED) return 2;
  if (!st) st = open_log(arena, args);
  if (st) {
    pg_log(PG_CRITICAL, "%s", assay_status_message(st));
    assay_status_free(st);
    return 1;
  }
  if (outcome == PG_OUTCOME_UNKNOWN) return report_unknown(args), 1;
  return run_job(&job);
}

int assay_polygraphy(int argc, char** argv) {
  assay_arena_t* arena = NULL;
  pg_args_t* args = assay_calloc(1, sizeof *args);
  assay_status_t st = args ? assay_arena_create(&arena) : assay_status_no_memory();
  int code = 1;
  if (st)
    pg_log(PG_CRITICAL, "%s", assay_status_message(st));
  else
    code = run(arena, args, argc, argv);
  assay_status_free(st);
  if (!pg_log_close() || fflush(stdout) || ferror(stdout)) code = 1;
  pg_log_set(PG_INFO, NULL, 0);
  assay_arena_destroy(arena);
  assay_free(args);
  return code;
}
