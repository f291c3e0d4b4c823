// assay: finds the verb and runs it.
#include <assay/ops.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/trtexec/trtexec.h"

static const verb_t* const verbs[] = {
#define ASSAY_VERB(name) &assay_verb_##name,
#include "cli/verbs.inc"
#undef ASSAY_VERB
};
enum { N_VERBS = sizeof verbs / sizeof *verbs };

// Families of verbs of two words, such as "debug precision": one row each.
typedef struct family {
  const char *name, *summary;
} family_t;
static const family_t families[] = {
    {"debug", "find what is to blame for a result, and what mends it"},
    {"edit", "change a model, and prove what truth makes of that"},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

// Command lines of other programs, which are read as those read them.
typedef struct front {
  const char *name, *summary;
  int (*run)(int argc, char** argv);
} front_t;
static const front_t fronts[] = {
    {"trtexec", "the command line of TensorRT's trtexec", assay_trtexec},
};
enum { N_FRONTS = sizeof fronts / sizeof *fronts };

// The second word of a verb of this family; NULL: it is of another one, or of none.
static const char* second_word(const verb_t* verb, const char* family) {
  const size_t n = strlen(family);
  return strncmp(verb->name, family, n) == 0 && verb->name[n] == ' ' ? verb->name + n + 1 : NULL;
}

static void help(FILE* out) {
  fputs(
      "Assay runs ONNX models and accounts for every number it changes.\n\n"
      "Usage: assay VERB [arguments]\n\nVerbs:\n",
      out);
  for (int i = 0; i < N_VERBS; i++)
    if (!strchr(verbs[i]->name, ' '))
      fprintf(out, "  %-14s  %s\n", verbs[i]->name, verbs[i]->summary);
  for (int f = 0; f < N_FAMILIES; f++)
    fprintf(out, "  %-14s  %s; 'assay %s -h' lists them\n", families[f].name, families[f].summary,
            families[f].name);
  for (int f = 0; f < N_FRONTS; f++)
    fprintf(out, "  %-14s  %s\n", fronts[f].name, fronts[f].summary);
  fputs(
      "\n'assay VERB -h' shows a verb's options, with examples; 'assay --version' says which "
      "version this "
      "is.\n",
      out);
}

static void help_family(const family_t* f, FILE* out) {
  fprintf(out, "Verbs that %s\n\nUsage: assay %s VERB [arguments]\n\nVerbs:\n", f->summary,
          f->name);
  for (int i = 0; i < N_VERBS; i++) {
    const char* word = second_word(verbs[i], f->name);
    if (word) fprintf(out, "  %-14s  %s\n", word, verbs[i]->summary);
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

static int run_verb(const verb_t* verb, int argc, char** argv) {
  if (!take_environment())
    return assay_cli_usage("", "ASSAY_MEMORY_LIMIT is '%s', no size such as 500M or 16G",
                           getenv("ASSAY_MEMORY_LIMIT"));
  void* args = assay_calloc(1, verb->args_bytes);
  if (!args) return assay_cli_fail(assay_status_no_memory(), ASSAY_EXIT_FAILED);
  int code = ASSAY_EXIT_FAILED;
  if (assay_cli_parse(verb, argc, argv, args, &code)) {
    assay_status_t st = load_operators(verb, args);
    code = st ? assay_cli_fail(st, ASSAY_EXIT_USAGE) : verb->run(args);
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

// argv[0] is the family's name.
static int run_family(const family_t* f, int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "assay: '%s' needs a verb; 'assay %s -h' lists them\n", f->name, f->name);
    return ASSAY_EXIT_USAGE;
  }
  if (is_help(argv[1])) {
    help_family(f, stdout);
    return ASSAY_EXIT_OK;
  }
  for (int i = 0; i < N_VERBS; i++) {
    const char* word = second_word(verbs[i], f->name);
    if (word && strcmp(word, argv[1]) == 0) return run_verb(verbs[i], argc - 2, argv + 2);
  }
  fprintf(stderr, "assay: unknown verb '%s %s'; 'assay %s -h' lists them\n", f->name, argv[1],
          f->name);
  return ASSAY_EXIT_USAGE;
}

int main(int argc, char** argv) {
  assay_cli_use_blas(argv);
  const char* slash = argc ? strrchr(argv[0], '/') : NULL;
  for (int f = 0; argc && f < N_FRONTS; f++)  // by a link of that name
    if (strcmp(fronts[f].name, slash ? slash + 1 : argv[0]) == 0)
      return fronts[f].run(argc - 1, argv + 1);
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
  for (int i = 0; i < N_VERBS; i++)
    if (strcmp(verbs[i]->name, name) == 0) return run_verb(verbs[i], argc - 2, argv + 2);
  for (int f = 0; f < N_FRONTS; f++)
    if (strcmp(fronts[f].name, name) == 0) return fronts[f].run(argc - 2, argv + 2);
  for (int f = 0; f < N_FAMILIES; f++)
    if (strcmp(families[f].name, name) == 0) return run_family(&families[f], argc - 1, argv + 1);
  fprintf(stderr, "assay: unknown verb '%s'; 'assay -h' lists them\n", name);
  return ASSAY_EXIT_USAGE;
}
