// Help of options with its marks replaced by what the tables of targets and of formats hold.
#include "cli/help_text.h"

#include <string.h>

#include "data/tensor_files.h"
#include "exec/targets.h"

enum { WIDTH = 68 };  // of the column of help, for lists that are put in

static assay_status_t build_targets(assay_str_t* out) {
  assay_target_choice(out, ASSAY_TARGET_BUILD);
  return assay_str_status(out);
}

static assay_status_t inspect_targets(assay_str_t* out) {
  assay_target_choice(out, ASSAY_TARGET_INSPECT);
  return assay_str_status(out);
}

static const struct {
  const char* mark;
  assay_status_t (*list)(assay_str_t* out);
} marks[] = {
    {"{build}", build_targets}, {"{look}", inspect_targets}, {"{formats}", assay_tensor_file_list}};
enum { N_MARKS = sizeof marks / sizeof *marks };

static size_t column_of(const assay_str_t* text) {
  const char* line = text->len ? strrchr(assay_str_get(text), '\n') : NULL;
  return line ? strlen(line + 1) : text->len;
}

// Appends a list that a mark stands for, word by word.
static void append_list(const char* list, assay_str_t* out) {
  for (const char* p = list; *p;) {
    const size_t n = strcspn(p, " "), column = column_of(out);
    const bool begins = p == list;
    if (!begins) assay_str_append(out, column + 1 + n > WIDTH ? "\n" : " ");
    assay_str_append_n(out, p, n);
    p += n;
    p += strspn(p, " ");
  }
}

assay_status_t cli_help_text(const char* help, assay_str_t* out) {
  for (const char* p = help; *p;) {
    size_t i = 0;
    while (i < N_MARKS && strncmp(p, marks[i].mark, strlen(marks[i].mark)) != 0) i++;
    if (i == N_MARKS) {
      assay_str_append_n(out, p++, 1);
      continue;
    }
    assay_str_t list = {0};
    assay_status_t st = marks[i].list(&list);
    if (!st) append_list(assay_str_get(&list), out);
    assay_str_deinit(&list);
    ASSAY_TRY(st);
    p += strlen(marks[i].mark);
  }
  return assay_str_status(out);
}
