// Completion for fish.
#include <string.h>

#include "base/shown.h"
#include "cli/shell/completion.h"

static const char begin[] =
    "# Completion of assay's command line for fish, as 'assay completion fish' prints it.\n"
    "# The words before the cursor; a link of such a name is called like the verb.\n"
    "function __assay_words\n"
    "  set -l words (commandline -opc)\n"
    "  set -l name (string replace -r '.*/' '' -- $words[1])\n"
    "  if contains -- $name";
static const char functions[] =
    "\n"
    "    set words assay $name $words[2..-1]\n"
    "  end\n"
    "  printf '%s\\n' $words\n"
    "end\n"
    "# Whether these are the words behind the program's name, and all of them.\n"
    "function __assay_at\n"
    "  set -l words (__assay_words)\n"
    "  test \"$words[2..-1]\" = \"$argv\"\n"
    "end\n"
    "# Whether these words are the verb.\n"
    "function __assay_in\n"
    "  set -l words (__assay_words)\n"
    "  set -l last (math (count $argv) + 1)\n"
    "  test \"$words[2..$last]\" = \"$argv\"\n"
    "end\n"
    "# Whether they are, and these options the last one before: --name ... -- WORDS.\n"
    "function __assay_behind\n"
    "  set -l at (contains -i -- -- $argv)\n"
    "  __assay_in $argv[(math $at + 1)..-1]; or return 1\n"
    "  set -l options (string match -- '-*' (__assay_words))\n"
    "  contains -- \"$options[-1]\" $argv[1..(math $at - 1)]\n"
    "end\n";

static bool is_positional(const complete_option_t* o) { return o->name[0] != '-'; }

// Of a string in fish's '...' a backslash and a quote are escaped by a backslash.
static void append_quoted(assay_str_t* out, const char* text) {
  assay_str_append(out, "'");
  for (const char* p = text; *p; p++) {
    if (*p == '\'' || *p == '\\') assay_str_append(out, "\\");
    assay_str_append_n(out, *p == '\n' ? " " : p, 1);
  }
  assay_str_append(out, "'");
}

// For what programs, and behind which words ("at" them alone, "in" their options).
static void append_where(assay_str_t* out, const char* what, const char* path) {
  const front_t* front = complete_front(path);
  assay_str_append(out, "complete -c assay");
  if (front) assay_str_printf_raw(out, " -c %s", front->name);
  assay_str_printf_raw(out, " -n '__assay_%s%s%s'", what, *path ? " " : "", path);
}

static void append_word(assay_str_t* out, const char* group, const char* word,
                        const char* summary) {
  append_where(out, "at", group);
  assay_str_printf_raw(out, " -f -a %s -d ", word);
  append_quoted(out, summary);
  assay_str_append(out, "\n");
}

// The words behind the first one of an option that takes several.
static void append_more(assay_str_t* out, const complete_line_t* l, const complete_option_t* o) {
  if (o->takes != TAKES_MANY || o->kind != VALUE_WORDS) return;
  assay_str_t words = {0};
  assay_str_printf_raw(&words, "behind %s -- %s", o->name, l->path);
  const front_t* front = complete_front(l->path);
  assay_str_append(out, "complete -c assay");
  if (front) assay_str_printf_raw(out, " -c %s", front->name);
  assay_str_printf_raw(out, " -n '__assay_%s' -f -a '%s'\n", assay_str_get(&words), o->words);
  out->failed |= words.failed;
  assay_str_deinit(&words);
}

static void append_option(assay_str_t* out, const complete_line_t* l, const complete_option_t* o) {
  append_where(out, "in", l->path);
  if (!is_positional(o)) assay_str_printf_raw(out, " -l %s", o->name + 2);
  if (o->letter) assay_str_printf_raw(out, " -s %c", o->letter);
  if (o->takes) {
    if (!is_positional(o)) assay_str_append(out, o->kind == VALUE_FILE ? " -r -F" : " -x");
    if (o->kind == VALUE_WORDS) assay_str_printf_raw(out, " -a '%s'", o->words);
  }
  assay_str_append(out, " -d ");
  append_quoted(out, o->help);
  assay_str_append(out, "\n");
  append_more(out, l, o);
}

void complete_fish(const completion_t* c, assay_str_t* out) {
  assay_str_append(out, begin);
  for (const front_t* f = assay_cli_fronts; f->name; f++) assay_str_printf_raw(out, " %s", f->name);
  assay_str_append(out, functions);
  for (size_t i = 0; i < c->n_groups; i++) complete_each_word(c, c->groups[i], out, append_word);
  for (size_t i = 0; i < c->n; i++)
    for (size_t k = 0; k < c->lines[i].n; k++)
      if (!is_positional(&c->lines[i].options[k]) || !k)
        append_option(out, &c->lines[i], &c->lines[i].options[k]);
}
