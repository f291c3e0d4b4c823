// The tables of verbs and their families; what values may be.
#include "cli/verbs.h"

#include <string.h>

#include "exec/targets.h"
#include "formats/format.h"

const verb_t* const assay_cli_verbs[] = {
#define ASSAY_VERB(name) &assay_verb_##name,
#include "cli/verbs.inc"
#undef ASSAY_VERB
    NULL};

const family_t assay_cli_families[] = {
    {"debug", "find what is to blame for a result, and what mends it"},
    {"edit", "change a model and verify the effect on its outputs"},
    {0}};

const char* assay_cli_second_word(const verb_t* verb, const char* family) {
  const size_t n = strlen(family);
  return strncmp(verb->name, family, n) == 0 && verb->name[n] == ' ' ? verb->name + n + 1 : NULL;
}

const verb_t* assay_cli_find_verb(const char* name) {
  for (const verb_t* const* v = assay_cli_verbs; *v; v++)
    if (strcmp((*v)->name, name) == 0) return *v;
  return NULL;
}

// Options whose values are some words. Those of one verb come before those of any.
const value_row_t assay_cli_value_rows[] = {{"run", "--mode", "truth native plan"},
                                            {"debug precision", "--mode", "account bisect linear"},
                                            {"debug precision", "--direction", "forward reverse"},
                                            {"conformance", "--backend", "native {targets}"},
                                            {"inspect", "WHAT", "model data plan"},
                                            {"completion", "SHELL", "bash zsh fish"},
                                            {"edit cast", "--to", "fp16 bf16 fp32"},
                                            {NULL, "--truth", "unquantized"},
                                            {NULL, "--fix", "fewest best"},
                                            {NULL, "TARGET", "auto {targets}"},
                                            {NULL, "SETTING", "plain tight bound"},
                                            {0}};

static void append_formats(assay_str_t* out) {
  for (int f = ASSAY_FORMAT_NONE + 1; f < ASSAY_FORMAT_COUNT; f++) {
    const assay_format_info_t* info = assay_format_info((assay_format_t)f);
    if (info->is_float && info->bits > 6) assay_str_printf(out, " %s", info->name);
  }
  assay_str_append(out, " int8");
}

// The words of a row; {targets}, the last of them, is the names of the targets.
static void append_words(const char* words, assay_str_t* out) {
  const char* targets = strstr(words, "{targets}");
  assay_str_printf(out, "%.*s", (int)(targets ? targets - words : (ptrdiff_t)strlen(words)), words);
  if (targets) assay_target_names(out, " ");
}

value_kind_t assay_cli_value_words(const verb_t* verb, const opt_t* option, assay_str_t* out) {
  const char* value = option->value ? option->value : "";
  for (const value_row_t* row = assay_cli_value_rows; row->option; row++) {
    if (row->verb && strcmp(row->verb, verb->name) != 0) continue;
    if (strcmp(row->option, option->name) != 0 && strcmp(row->option, value) != 0) continue;
    append_words(row->words, out);
    return VALUE_WORDS;
  }
  if (strcmp(value, "FORMAT") == 0) return append_formats(out), VALUE_WORDS;
  if (option->name[0] != '-') return VALUE_FILE;
  static const char* const files[] = {"FILE", "FILE.npz", "FOLDER", "PLAN", "LIB.so"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (strcmp(value, files[i]) == 0) return VALUE_FILE;
  return VALUE_ANY;
}
