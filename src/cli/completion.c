// Completion scripts for shells, from the tables of verbs and options. What a script knows is in
// it: it does not call the program.
#include <string.h>

#include "cli/verbs.h"

static bool is_positional(const opt_t* o) { return o->name[0] != '-'; }

// Text for '...' of a shell: a quote ends it, is written, and begins it anew; newlines become
// spaces.
static void append_quoted(assay_str_t* out, const char* text) {
  for (const char* p = text; *p; p++) {
    if (*p == '\'')
      assay_str_append(out, "'\\''");
    else
      assay_str_append_n(out, *p == '\n' ? " " : p, 1);
  }
}

// The words that may follow "assay", or a family's name, each with its summary.
typedef void (*word_fn)(assay_str_t* out, const char* word, const char* summary);
static void each_first_word(assay_str_t* out, word_fn append) {
  for (const verb_t* const* v = assay_cli_verbs; *v; v++)
    if (!strchr((*v)->name, ' ')) append(out, (*v)->name, (*v)->summary);
  for (const family_t* f = assay_cli_families; f->name; f++) append(out, f->name, f->summary);
  for (const front_t* f = assay_cli_fronts; f->name; f++) append(out, f->name, f->summary);
}
static void each_second_word(assay_str_t* out, const family_t* family, word_fn append) {
  for (const verb_t* const* v = assay_cli_verbs; *v; v++) {
    const char* word = assay_cli_second_word(*v, family->name);
    if (word) append(out, word, (*v)->summary);
  }
}

// ---- bash
// -----------------------------------------------------------------------------------------

static const char bash_begin[] =
    "# Completion of assay's command line for bash, as 'assay completion bash' prints it.\n"
    "_assay() {\n"
    "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
    "  local verb=${COMP_WORDS[1]} first=2 kind=words words=''\n"
    "  # Of '--name=value' the shell makes three words.\n"
    "  if [[ $current == = ]]; then current=''\n"
    "  elif [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}\n"
    "  fi\n";

static const char bash_end[] =
    "  [[ $kind == any ]] && return\n"
    "  if [[ $kind == files ]]; then\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
    "  else\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
    "  fi\n"
    "}\n"
    "complete -F _assay assay\n";

static void bash_word(assay_str_t* out, const char* word, const char* summary) {
  (void)summary;
  assay_str_printf(out, " %s", word);
}

// "--inputs|-i" as a pattern of case.
static void bash_pattern(assay_str_t* out, const opt_t* o) {
  assay_str_append(out, o->name);
  if (o->letter) assay_str_printf(out, "|-%c", o->letter);
}

// What stands behind an option that takes a value.
static void bash_value(assay_str_t* out, const verb_t* verb, const opt_t* o) {
  assay_str_t words = {0};
  const value_kind_t kind = assay_cli_value_words(verb, o, &words);
  if (kind == VALUE_WORDS)
    assay_str_printf(out, "words='%s'", assay_str_get(&words));
  else
    assay_str_printf(out, "kind=%s", kind == VALUE_FILE ? "files" : "any");
  out->failed |= words.failed;
  assay_str_deinit(&words);
}

static void bash_verb(assay_str_t* out, const verb_t* verb) {
  const opt_t* first = NULL;
  assay_str_printf(out, "    '%s')\n      case $previous in\n", verb->name);
  for (const opt_t* o = verb->options; o->name; o++) {
    if (is_positional(o)) {
      if (!first) first = o;
      continue;
    }
    if (o->kind == OPT_FLAG) continue;
    assay_str_append(out, "        ");
    bash_pattern(out, o);
    assay_str_append(out, ") ");
    bash_value(out, verb, o);
    assay_str_append(out, " ;;\n");
  }
  assay_str_append(out, "        *)\n          if [[ $current == -* ]]; then words='");
  for (const opt_t* o = verb->options; o->name; o++)
    if (!is_positional(o)) assay_str_printf(out, "%s ", o->name);
  assay_str_append(out, "--help'\n");
  assay_str_t words = {0};
  if (first && assay_cli_value_words(verb, first, &words) == VALUE_WORDS)
    assay_str_printf(out, "          elif ((COMP_CWORD == first)); then words='%s'\n",
                     assay_str_get(&words));
  out->failed |= words.failed;
  assay_str_deinit(&words);
  assay_str_append(out, "          else kind=files\n          fi ;;\n      esac ;;\n");
}

static void bash(assay_str_t* out) {
  assay_str_append(out, bash_begin);
  assay_str_append(out, "  case $verb in\n    ");
  for (const family_t* f = assay_cli_families; f->name; f++)
    assay_str_printf(out, "%s%s", f == assay_cli_families ? "" : "|", f->name);
  assay_str_append(out,
                   ") if ((COMP_CWORD > 2)); then verb+=\" ${COMP_WORDS[2]}\" first=3; fi ;;\n"
                   "  esac\n"
                   "  if ((COMP_CWORD == 1)); then verb=''; fi\n"
                   "  case $verb in\n    '') words='");
  each_first_word(out, bash_word);
  assay_str_append(out, " --help --version' ;;\n");
  for (const family_t* f = assay_cli_families; f->name; f++) {
    assay_str_printf(out, "    %s) words='", f->name);
    each_second_word(out, f, bash_word);
    assay_str_append(out, " --help' ;;\n");
  }
  for (const verb_t* const* v = assay_cli_verbs; *v; v++) bash_verb(out, *v);
  assay_str_append(out, "    *) kind=files ;;\n  esac\n");
  assay_str_append(out, bash_end);
}

// ---- zsh
// ------------------------------------------------------------------------------------------

static void zsh_word(assay_str_t* out, const char* word, const char* summary) {
  assay_str_printf(out, "      '%s:", word);
  append_quoted(out, summary);
  assay_str_append(out, "'\n");
}

// Text within the brackets or between the colons of a specification of _arguments.
static void zsh_text(assay_str_t* out, const char* text) {
  for (const char* p = text; *p; p++) {
    if (strchr("[]:\\", *p)) assay_str_append(out, "\\");
    append_quoted(out, (const char[]){*p, 0});
  }
}

static void zsh_value(assay_str_t* out, const verb_t* verb, const opt_t* o) {
  assay_str_t words = {0};
  const value_kind_t kind = assay_cli_value_words(verb, o, &words);
  assay_str_append(out, ":");
  zsh_text(out, o->value ? o->value : o->name);
  if (kind == VALUE_WORDS)
    assay_str_printf(out, ":(%s)", assay_str_get(&words));
  else
    assay_str_append(out, kind == VALUE_FILE ? ":_files" : ": ");
  out->failed |= words.failed;
  assay_str_deinit(&words);
}

static void zsh_option(assay_str_t* out, const verb_t* verb, const opt_t* o, const char* name) {
  assay_str_printf(out, "        '%s%s%s[", o->kind == OPT_LIST ? "*" : "", name,
                   o->kind == OPT_FLAG || name[1] != '-' ? "" : "=");
  zsh_text(out, o->help);
  assay_str_append(out, "]");
  if (o->kind != OPT_FLAG) zsh_value(out, verb, o);
  assay_str_append(out, "' \\\n");
}

static void zsh_verb(assay_str_t* out, const verb_t* verb) {
  assay_str_printf(out, "    ('%s')\n      _arguments -s \\\n", verb->name);
  for (const opt_t* o = verb->options; o->name; o++) {
    if (is_positional(o)) {
      assay_str_append(out, o->kind == OPT_LIST ? "        '*" : "        '");
      if (!o->required && o->kind != OPT_LIST) assay_str_append(out, ":");
      zsh_value(out, verb, o);
      assay_str_append(out, "' \\\n");
      continue;
    }
    zsh_option(out, verb, o, o->name);
    if (o->letter) zsh_option(out, verb, o, (const char[]){'-', o->letter, 0});
  }
  assay_str_append(out, "        '(- *)'{-h,--help}'[show the options]' ;;\n");
}

static void zsh(assay_str_t* out) {
  assay_str_append(
      out,
      "#compdef assay\n"
      "# Completion of assay's command line for zsh, as 'assay completion zsh' prints it.\n"
      "_assay() {\n"
      "  local -a verbs\n"
      "  if ((CURRENT == 2)); then\n    verbs=(\n");
  each_first_word(out, zsh_word);
  assay_str_append(out,
                   "    )\n    _describe verb verbs\n    return\n  fi\n"
                   "  local verb=$words[2]\n  shift words\n  ((CURRENT--))\n  case $verb in\n");
  for (const family_t* f = assay_cli_families; f->name; f++) {
    assay_str_printf(out, "    (%s)\n      verbs=(\n", f->name);
    each_second_word(out, f, zsh_word);
    assay_str_append(out,
                     "      )\n      if ((CURRENT == 2)); then\n        _describe verb verbs\n"
                     "        return\n      fi\n"
                     "      verb+=\" $words[2]\"\n      shift words\n      ((CURRENT--)) ;;\n");
  }
  assay_str_append(out, "  esac\n  case $verb in\n");
  for (const verb_t* const* v = assay_cli_verbs; *v; v++) zsh_verb(out, *v);
  assay_str_append(
      out,
      "    (*) _files ;;\n  esac\n}\n"
      "if [[ $funcstack[1] == _assay ]]; then _assay \"$@\"; else compdef _assay assay; fi\n");
}

// ---- fish
// -----------------------------------------------------------------------------------------

// Of a string in fish's '...' a backslash and a quote are escaped by a backslash.
static void fish_quoted(assay_str_t* out, const char* text) {
  assay_str_append(out, "'");
  for (const char* p = text; *p; p++) {
    if (*p == '\'' || *p == '\\') assay_str_append(out, "\\");
    assay_str_append_n(out, *p == '\n' ? " " : p, 1);
  }
  assay_str_append(out, "'");
}

static void fish_first_word(assay_str_t* out, const char* word, const char* summary) {
  assay_str_printf(out, "complete -c assay -n '__assay_at' -f -a %s -d ", word);
  fish_quoted(out, summary);
  assay_str_append(out, "\n");
}

static void fish_option(assay_str_t* out, const verb_t* verb, const opt_t* o) {
  assay_str_t words = {0};
  assay_str_printf(out, "complete -c assay -n '__assay_in %s'", verb->name);
  if (!is_positional(o)) assay_str_printf(out, " -l %s", o->name + 2);
  if (o->letter) assay_str_printf(out, " -s %c", o->letter);
  if (o->kind != OPT_FLAG) {
    const value_kind_t kind = assay_cli_value_words(verb, o, &words);
    if (!is_positional(o)) assay_str_append(out, kind == VALUE_FILE ? " -r -F" : " -x");
    if (kind == VALUE_WORDS) assay_str_printf(out, " -a '%s'", assay_str_get(&words));
  }
  assay_str_append(out, " -d ");
  fish_quoted(out, o->help);
  assay_str_append(out, "\n");
  out->failed |= words.failed;
  assay_str_deinit(&words);
}

static void fish(assay_str_t* out) {
  assay_str_append(
      out,
      "# Completion of assay's command line for fish, as 'assay completion fish' prints it.\n"
      "# Whether what stands before the cursor is assay with these words, and nothing behind "
      "them.\n"
      "function __assay_at\n"
      "  set -l words (commandline -opc)\n"
      "  test \"$words[2..-1]\" = \"$argv\"\n"
      "end\n"
      "# Whether these words are the verb.\n"
      "function __assay_in\n"
      "  set -l words (commandline -opc)\n"
      "  set -l last (math (count $argv) + 1)\n"
      "  test \"$words[2..$last]\" = \"$argv\"\n"
      "end\n");
  each_first_word(out, fish_first_word);
  for (const family_t* f = assay_cli_families; f->name; f++)
    for (const verb_t* const* v = assay_cli_verbs; *v; v++) {
      const char* word = assay_cli_second_word(*v, f->name);
      if (!word) continue;
      assay_str_printf(out, "complete -c assay -n '__assay_at %s' -f -a %s -d ", f->name, word);
      fish_quoted(out, (*v)->summary);
      assay_str_append(out, "\n");
    }
  for (const verb_t* const* v = assay_cli_verbs; *v; v++)
    for (const opt_t* o = (*v)->options; o->name; o++)
      if (!is_positional(o) || o == (*v)->options) fish_option(out, *v, o);
}

// -------------------------------------------------------------------------------------------------

bool assay_cli_completion(const char* shell, assay_str_t* out) {
  static const struct {
    const char* name;
    void (*write)(assay_str_t* out);
  } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
  for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
    if (strcmp(shells[i].name, shell) == 0) return shells[i].write(out), true;
  return false;
}
