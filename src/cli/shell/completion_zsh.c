// Completion for zsh.
#include <string.h>

#include "base/shown.h"
#include "cli/shell/completion.h"

static bool is_positional(const complete_option_t* o) { return o->name[0] != '-'; }

static void append_word(assay_str_t* out, const char* group, const char* word,
                        const char* summary) {
  (void)group;
  assay_str_printf_raw(out, "        '%s:", word);
  complete_quoted(out, summary);
  assay_str_append(out, "'\n");
}

// Text within the brackets or between the colons of a specification of _arguments.
static void append_text(assay_str_t* out, const char* text) {
  for (const char* p = text; *p; p++) {
    if (strchr("[]:\\", *p)) assay_str_append(out, "\\");
    complete_quoted(out, (const char[]){*p, 0});
  }
}

static void append_value(assay_str_t* out, const complete_option_t* o) {
  assay_str_append(out, o->takes == TAKES_MANY ? "'$many'" : ":");
  append_text(out, o->value);
  if (o->kind == VALUE_WORDS)
    assay_str_printf_raw(out, ":(%s)", o->words);
  else
    assay_str_append(out, o->kind == VALUE_FILE ? ":_files" : ": ");
}

static void append_option(assay_str_t* out, const complete_line_t* l, const complete_option_t* o,
                          const char* name) {
  const char* equals = !o->takes || name[1] != '-' ? ""
                       : o->takes == TAKES_MANY    ? "'$equals'"
                       : l->glued                  ? "=-"
                                                   : "=";
  assay_str_printf_raw(out, "        '%s%s%s[", o->again ? "*" : "", name, equals);
  append_text(out, o->help);
  assay_str_append(out, "]");
  if (o->takes) append_value(out, o);
  assay_str_append(out, "' \\\n");
}

static void append_line(assay_str_t* out, const complete_line_t* l) {
  assay_str_printf_raw(out, "    ('%s')\n      _arguments -s \\\n", l->path);
  for (size_t i = 0; i < l->n; i++) {
    const complete_option_t* o = &l->options[i];
    if (is_positional(o)) {
      assay_str_append(out, o->again ? "        '*" : "        '");
      if (!o->required && !o->again) assay_str_append(out, ":");
      append_value(out, o);
      assay_str_append(out, "' \\\n");
      continue;
    }
    append_option(out, l, o, o->name);
    if (o->letter) append_option(out, l, o, (const char[]){'-', o->letter, 0});
  }
  assay_str_append(out, "        '(- *)'{-h,--help}'[show the options]' ;;\n");
}

static void append_fronts(assay_str_t* out, const char* between) {
  for (const front_t* f = assay_cli_fronts; f->name; f++)
    assay_str_printf_raw(out, "%s%s", f == assay_cli_fronts ? "" : between, f->name);
}

void complete_zsh(const completion_t* c, assay_str_t* out) {
  assay_str_append(out, "#compdef assay ");
  append_fronts(out, " ");
  assay_str_append(
      out,
      "\n# Completion of assay's command line for zsh, as 'assay completion zsh' prints it.\n"
      "_assay() {\n"
      "  local -a verbs\n"
      "  # An option that takes several words ends where the next one begins.\n"
      "  local verb='' many=':*-*:' equals=''\n"
      "  if [[ $words[CURRENT] == -* ]]; then many=':' equals='='; fi\n"
      "  # A link of such a name is called like the verb.\n"
      "  case ${words[1]:t} in\n    (");
  append_fronts(out, "|");
  assay_str_append(out,
                   ") verb=${words[1]:t} ;;\n  esac\n"
                   "  while true; do\n    case $verb in\n");
  for (size_t i = 0; i < c->n_groups; i++) {
    assay_str_printf_raw(out, "    ('%s')\n      verbs=(\n", c->groups[i]);
    complete_each_word(c, c->groups[i], out, append_word);
    assay_str_append(out, "      ) ;;\n");
  }
  assay_str_append(
      out,
      "    (*) break ;;\n    esac\n"
      "    if ((CURRENT == 2)); then\n      _describe verb verbs\n      return\n    fi\n"
      "    verb+=\"${verb:+ }$words[2]\"\n    shift words\n    ((CURRENT--))\n"
      "  done\n  case $verb in\n");
  for (size_t i = 0; i < c->n; i++) append_line(out, &c->lines[i]);
  assay_str_append(
      out,
      "    (*) _files ;;\n  esac\n}\n"
      "if [[ $funcstack[1] == _assay ]]; then _assay \"$@\"; else compdef _assay assay ");
  append_fronts(out, " ");
  assay_str_append(out, "; fi\n");
}
