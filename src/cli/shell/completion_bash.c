// Completion for bash.
#include <string.h>

#include "base/shown.h"
#include "cli/shell/completion.h"

static const char begin[] =
    "# Completion of assay's command line for bash, as 'assay completion bash' prints it.\n"
    "_assay() {\n"
    "  local -a line=(\"${COMP_WORDS[@]}\")\n"
    "  local at=$COMP_CWORD i option='' equals='' verb='' first=1 kind=words words=''\n"
    "  # A link of such a name is called like the verb.\n"
    "  case ${line[0]##*/} in\n"
    "    ";
static const char parse[] =
    ") line=(assay \"${line[0]##*/}\" \"${line[@]:1}\") at=$((at + 1)) ;;\n"
    "  esac\n"
    "  local current=${line[at]} previous=${line[at-1]}\n"
    "  # Of '--name=value' the shell makes three words.\n"
    "  if [[ $current == = ]]; then current='' equals='='\n"
    "  elif [[ $previous == = ]]; then previous=${line[at-2]} equals='='\n"
    "  fi\n"
    "  # The last option before, for those that take several words.\n"
    "  for ((i = at - 1; i > 0; i--)); do\n"
    "    if [[ ${line[i]} == -* ]]; then option=${line[i]}; break; fi\n"
    "  done\n"
    "  if [[ $current == -* && -z $equals ]]; then previous='' option=''; fi\n"
    "  while ((at > first)); do\n"
    "    case $verb in\n"
    "      ";
static const char choose[] =
    ") verb+=${verb:+ }${line[first]} first=$((first + 1)) ;;\n"
    "      *) break ;;\n"
    "    esac\n"
    "  done\n"
    "  case $verb in\n";
static const char end[] =
    "    *) kind=files ;;\n"
    "  esac\n"
    "  [[ $kind == any ]] && return\n"
    "  if [[ $kind == files ]]; then\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
    "  else\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
    "    # A value follows at once.\n"
    "    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
    "  fi\n"
    "  return 0\n"
    "}\n"
    "complete -F _assay assay";

static bool is_positional(const complete_option_t* o) { return o->name[0] != '-'; }

static void append_word(assay_str_t* out, const char* group, const char* word,
                        const char* summary) {
  (void)group, (void)summary;
  assay_str_printf_raw(out, " %s", word);
}

static void append_value(assay_str_t* out, const complete_option_t* o) {
  if (o->kind == VALUE_WORDS)
    assay_str_printf_raw(out, "words='%s'", o->words);
  else
    assay_str_printf_raw(out, "kind=%s", o->kind == VALUE_FILE ? "files" : "any");
}

static bool is_same_value(const complete_option_t* a, const complete_option_t* b) {
  return a->takes == b->takes && a->kind == b->kind &&
         (a->kind != VALUE_WORDS || strcmp(a->words, b->words) == 0);
}

// Those options of a line that take so many values: all of one kind in one pattern, "--inputs|-i".
static void append_values(assay_str_t* out, const complete_line_t* l, complete_takes_t takes,
                          const char* indent) {
  const char* glue = l->glued ? "=" : "";
  for (size_t i = 0; i < l->n; i++) {
    const complete_option_t* o = &l->options[i];
    bool before = is_positional(o) || o->takes != takes;
    for (size_t k = 0; !before && k < i; k++)
      before = !is_positional(&l->options[k]) && is_same_value(o, &l->options[k]);
    if (before) continue;
    assay_str_append(out, indent);
    for (size_t k = i; k < l->n; k++) {
      const complete_option_t* same = &l->options[k];
      if (is_positional(same) || !is_same_value(o, same)) continue;
      assay_str_printf_raw(out, "%s%s%s", k == i ? "" : "|", glue, same->name);
      if (same->letter) assay_str_printf_raw(out, "|%s-%c", glue, same->letter);
    }
    assay_str_append(out, ") ");
    append_value(out, o);
    assay_str_append(out, " ;;\n");
  }
}

// What is neither a value: the options' names, a positional argument.
static void append_rest(assay_str_t* out, const complete_line_t* l) {
  const complete_option_t* first = NULL;
  assay_str_append(out, "if [[ $current == -* ]]; then words='");
  for (size_t i = 0; i < l->n; i++) {
    const complete_option_t* o = &l->options[i];
    if (is_positional(o) && !first) first = o;
    if (!is_positional(o))
      assay_str_printf_raw(out, "%s%s ", o->name, l->glued && o->takes ? "=" : "");
  }
  assay_str_append(out, "--help'\n");
  if (first && first->kind == VALUE_WORDS)
    assay_str_printf_raw(out, "          elif ((at == first)); then words='%s'\n", first->words);
  assay_str_append(out, "          else kind=files\n          fi ;;\n");
}

static void append_line(assay_str_t* out, const complete_line_t* l) {
  bool many = false;
  for (size_t i = 0; i < l->n; i++) many |= l->options[i].takes == TAKES_MANY;
  assay_str_printf_raw(out, "    '%s')\n      case %s$previous in\n", l->path,
                       l->glued ? "$equals" : "");
  append_values(out, l, TAKES_ONE, "        ");
  assay_str_append(out, "        *)\n          ");
  if (many) {
    assay_str_append(out, "case $option in\n");
    append_values(out, l, TAKES_MANY, "            ");
    assay_str_append(out, "            *)\n          ");
  }
  append_rest(out, l);
  if (many) assay_str_append(out, "          esac ;;\n");
  assay_str_append(out, "      esac ;;\n");
}

void complete_bash(const completion_t* c, assay_str_t* out) {
  assay_str_append(out, begin);
  for (const front_t* f = assay_cli_fronts; f->name; f++)
    assay_str_printf_raw(out, "%s%s", f == assay_cli_fronts ? "" : "|", f->name);
  assay_str_append(out, parse);
  for (size_t i = 0; i < c->n_groups; i++)
    assay_str_printf_raw(out, "%s'%s'", i ? "|" : "", c->groups[i]);
  assay_str_append(out, choose);
  for (size_t i = 0; i < c->n_groups; i++) {
    assay_str_printf_raw(out, "    '%s') words='", c->groups[i]);
    complete_each_word(c, c->groups[i], out, append_word);
    assay_str_printf_raw(out, " --help%s' ;;\n", *c->groups[i] ? "" : " --version");
  }
  for (size_t i = 0; i < c->n; i++) append_line(out, &c->lines[i]);
  assay_str_append(out, end);
  for (const front_t* f = assay_cli_fronts; f->name; f++) assay_str_printf_raw(out, " %s", f->name);
  assay_str_append(out, "\n");
}
