// assay: finds the verb and runs it.
#include <assay/ops.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/shown.h"
#include "cli/cli.h"
#include "cli/output_paths.h"
#include "cli/target_option.h"
#include "cli/timeout.h"
#include "cli/verbs.h"
#include "onnx/onnx.h"

static void help(FILE* out) {
  fputs(
      "Assay runs ONNX models and shows the precision error of every layer, and what causes it.\n\n"
      "Usage: assay VERB [arguments]\n\nVerbs:\n",
      out);
  for (const verb_t* const* v = assay_cli_verbs; *v; v++)
    if (!strchr((*v)->name, ' ')) fprintf(out, "  %-14s  %s\n", (*v)->name, (*v)->summary);
  for (const family_t* f = assay_cli_families; f->name; f++)
    fprintf(out, "  %-14s  %s; 'assay %s -h' lists them\n", f->name, f->summary, f->name);
  for (const front_t* f = assay_cli_fronts; f->name; f++)
    fprintf(out, "  %-14s  %s\n", f->name, f->summary);
  fputs(
      "\n'assay VERB -h' shows a verb's options, with examples; 'assay --version' says which "
      "version this "
      "is.\n",
      out);
}

static void help_family(const family_t* f, FILE* out) {
  fprintf(out, "Verbs that %s\n\nUsage: assay %s VERB [arguments]\n\nVerbs:\n", f->summary,
          f->name);
  for (const verb_t* const* v = assay_cli_verbs; *v; v++) {
    const char* word = assay_cli_second_word(*v, f->name);
    if (word) fprintf(out, "  %-14s  %s\n", word, (*v)->summary);
  }
  fprintf(out, "\n'assay %s VERB -h' shows a verb's options, with examples.\n", f->name);
}

// ASSAY_MEMORY_LIMIT, for all verbs; --memory-limit goes before it.
static bool take_environment(void) {
  const char* limit = getenv("ASSAY_MEMORY_LIMIT");
  uint64_t bytes;
  if (!limit || !*limit) return true;
  if (!assay_bytes_parse(limit, &bytes)) return false;
  assay_memory_set_limit((int64_t)bytes);
  return true;
}

// Registers the operators of the libraries that --ops names.
static assay_status_t load_operators(const verb_t* verb, const void* args) {
  for (const opt_t* o = verb->options; o->name; o++) {
    if (strcmp(o->name, "--ops") != 0) continue;
    const opt_list_t* list = (const opt_list_t*)(const void*)((const char*)args + o->offset);
    for (size_t i = 0; i < list->n; i++) ASSAY_TRY(assay_ops_load(list->items[i]));
  }
  return NULL;
}

// ASSAY_ALLOW_HARD_LINKS=1, for the front ends of other tools, too; --allow-hard-links adds to it.
static void take_hard_links(const verb_t* verb, const void* args) {
  const char* given = getenv("ASSAY_ALLOW_HARD_LINKS");
  bool allow = given && strcmp(given, "1") == 0;
  for (const opt_t* o = verb ? verb->options : NULL; o && o->name; o++)
    if (strcmp(o->name, "--allow-hard-links") == 0)
      allow |= *(const bool*)(const void*)((const char*)args + o->offset);
  assay_onnx_allow_hard_links(allow);
}

// Starts to count where --timeout is given. False: *out_exit says that it makes no sense.
static bool start_timeout(const verb_t* verb, const void* args, int* out_exit) {
  for (const opt_t* o = verb->options; o->name; o++) {
    double seconds = 0;
    if (strcmp(o->name, "--timeout") != 0 || o->kind != OPT_FLOAT) continue;
    memcpy(&seconds, (const char*)args + o->offset, sizeof seconds);
    if (seconds == 0) return true;
    if (!(seconds > 0))
      return *out_exit = assay_cli_usage(verb->name, "--timeout is more than 0 seconds"), false;
    assay_status_t st = cli_timeout_start(verb->name, seconds);
    if (st) return *out_exit = assay_cli_fail(st, ASSAY_EXIT_FAILED), false;
  }
  return true;
}

static int check_and_run(const verb_t* verb, void* args) {
  assay_status_t st = cli_outputs_check(verb, args);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  st = load_operators(verb, args);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  int code = ASSAY_EXIT_FAILED;
  return cli_target_settle(verb, args, &code) ? verb->run(args) : code;
}

static int run_verb(const verb_t* verb, int argc, char** argv) {
  if (!take_environment())
    return assay_cli_usage("", "ASSAY_MEMORY_LIMIT is '%s', no size such as 500M or 16G",
                           getenv("ASSAY_MEMORY_LIMIT"));
  void* args = assay_calloc(1, verb->args_bytes);
  if (!args) return assay_cli_fail(assay_status_no_memory(), ASSAY_EXIT_FAILED);
  int code = ASSAY_EXIT_FAILED;
  if (assay_cli_parse(verb, argc, argv, args, &code) && start_timeout(verb, args, &code)) {
    take_hard_links(verb, args);
    code = check_and_run(verb, args);
    cli_timeout_hold();
  }
  assay_cli_free_args(verb, args);
  assay_free(args);
  if (fflush(stdout) || ferror(stdout)) {
    fputs("assay: cannot write the results to the standard output\n", stderr);
    return ASSAY_EXIT_FAILED;
  }
  return code;
}

static bool is_help(const char* word) {
  return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "help") == 0;
}

// f NULL: the first word names no verb.
static int unknown_verb(const family_t* f, const char* word) {
  assay_nearest_t near = {.wanted = word};
  for (const verb_t* const* v = assay_cli_verbs; *v; v++) {
    const char* second = f ? assay_cli_second_word(*v, f->name) : NULL;
    if (!f && !strchr((*v)->name, ' ')) assay_nearest_offer(&near, (*v)->name);
    if (second) assay_nearest_offer(&near, second);
  }
  for (const family_t* k = f ? NULL : assay_cli_families; k && k->name; k++)
    assay_nearest_offer(&near, k->name);
  for (const front_t* k = f ? NULL : assay_cli_fronts; k && k->name; k++)
    assay_nearest_offer(&near, k->name);
  assay_print(stderr, "assay: unknown verb '%s%s%s'%s; 'assay%s%s -h' lists them\n",
              f ? f->name : "", f ? " " : "", word, ASSAY_NEAREST_TEXT(&near), f ? " " : "",
              f ? f->name : "");
  return ASSAY_EXIT_USAGE;
}

// argv[0] is the family's name.
static int run_family(const family_t* f, int argc, char** argv) {
  if (argc < 2) {
    assay_print(stderr, "assay: '%s' needs a verb; 'assay %s -h' lists them\n", f->name, f->name);
    return ASSAY_EXIT_USAGE;
  }
  if (is_help(argv[1])) {
    help_family(f, stdout);
    return ASSAY_EXIT_OK;
  }
  for (const verb_t* const* v = assay_cli_verbs; *v; v++) {
    const char* word = assay_cli_second_word(*v, f->name);
    if (word && strcmp(word, argv[1]) == 0) return run_verb(*v, argc - 2, argv + 2);
  }
  return unknown_verb(f, argv[1]);
}

int main(int argc, char** argv) {
  assay_cli_use_blas(argv);
  // A file past the limit of its size fails to be written, which is told; the verdict is not lost.
  signal(SIGXFSZ, SIG_IGN);
  take_hard_links(NULL, NULL);
  const char* slash = argc ? strrchr(argv[0], '/') : NULL;
  for (const front_t* f = assay_cli_fronts; argc && f->name; f++)  // by a link of that name
    if (strcmp(f->name, slash ? slash + 1 : argv[0]) == 0) return f->run(argc - 1, argv + 1);
  if (argc < 2) {
    help(stderr);
    return ASSAY_EXIT_USAGE;
  }
  const char* name = argv[1];
  if (is_help(name)) {
    help(stdout);
    return ASSAY_EXIT_OK;
  }
  if (strcmp(name, "--version") == 0) {
    assay_cli_print_version();
    return ASSAY_EXIT_OK;
  }
  const verb_t* verb = strchr(name, ' ') ? NULL : assay_cli_find_verb(name);
  if (verb) return run_verb(verb, argc - 2, argv + 2);
  for (const front_t* f = assay_cli_fronts; f->name; f++)
    if (strcmp(f->name, name) == 0) return f->run(argc - 2, argv + 2);
  for (const family_t* f = assay_cli_families; f->name; f++)
    if (strcmp(f->name, name) == 0) return run_family(f, argc - 1, argv + 1);
  return unknown_verb(NULL, name);
}
