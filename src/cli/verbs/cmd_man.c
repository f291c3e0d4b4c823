// assay man: manual pages, from the tables of verbs and options.
#include <string.h>

#include "base/file.h"
#include "base/shown.h"
#include "cli/cli.h"
#include "cli/verbs.h"

typedef struct args {
  opt_list_t verb;
  const char* folder;
} args_t;

static assay_status_t write_page(const char* folder, const verb_t* verb) {
  assay_str_t text = {0}, path = {0};
  assay_str_printf_raw(&path, "%s/assay", folder);
  if (verb) assay_str_printf_raw(&path, "-%s", verb->name);
  for (char* p = path.text ? path.text + strlen(folder) : NULL; p && *p; p++)
    if (*p == ' ') *p = '-';
  assay_str_append(&path, ".1");
  if (verb)
    assay_cli_manual_verb(verb, &text);
  else
    assay_cli_manual(&text);
  assay_status_t st = assay_str_status(&text);
  st = assay_status_join(st, assay_str_status(&path));
  if (!st) st = assay_file_write(assay_str_get(&path), assay_str_get(&text), text.len);
  assay_str_deinit(&text);
  assay_str_deinit(&path);
  return st;
}

static assay_status_t write_all(const char* folder) {
  ASSAY_TRY(assay_folder_make(folder));
  ASSAY_TRY(write_page(folder, NULL));
  for (const verb_t* const* v = assay_cli_verbs; *v; v++) ASSAY_TRY(write_page(folder, *v));
  return NULL;
}

// The words of a verb as one name: "debug precision".
static const verb_t* find(const opt_list_t* words) {
  char name[64] = "";
  size_t n = 0;
  for (size_t i = 0; i < words->n; i++) {
    const int more = snprintf(name + n, sizeof name - n, "%s%s", i ? " " : "", words->items[i]);
    if (more < 0 || (size_t)more >= sizeof name - n) return NULL;
    n += (size_t)more;
  }
  return assay_cli_find_verb(name);
}

static int run(void* p) {
  const args_t* a = p;
  if (a->folder && a->verb.n)
    return assay_cli_usage("man", "--output-folder takes the pages of all verbs");
  if (a->folder) {
    assay_status_t st = write_all(a->folder);
    return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
  }
  const verb_t* verb = a->verb.n ? find(&a->verb) : NULL;
  if (a->verb.n && !verb)
    return assay_cli_usage("man", "there is no verb '%s%s%s'", a->verb.items[0],
                           a->verb.n > 1 ? " " : "", a->verb.n > 1 ? a->verb.items[1] : "");
  assay_str_t text = {0};
  if (verb)
    assay_cli_manual_verb(verb, &text);
  else
    assay_cli_manual(&text);
  assay_status_t st = assay_str_status(&text);
  if (!st) fputs(assay_str_get(&text), stdout);
  assay_str_deinit(&text);
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
}

static const opt_t options[] = {
    {"VERB", 0, OPT_LIST, offsetof(args_t, verb), NULL,
     "a verb, such as check or debug precision (default: the\nprogram)", false},
    {"--output-folder", 'o', OPT_OUT_FOLDER, offsetof(args_t, folder), "FOLDER",
     "write the pages of all verbs: assay.1, assay-check.1 ...", false},
    {0}};

const verb_t assay_verb_man = {
    .name = "man",
    .summary = "print manual pages in roff",
    .usage = "[VERB] [options]",
    .examples =
        "  assay man debug precision | man -l -\n"
        "  assay man --output-folder ~/.local/share/man/man1\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
