// The command line, read as Polygraphy reads it: names may be shortened, lists end where the next
// flag begins, and words that belong to nothing are gathered.
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"
#include "frontends/polygraphy/flags.h"

typedef struct parser {
  assay_arena_t* arena;
  int argc, at;
  char** argv;
  pg_args_t* out;
  size_t* caps;  // of each flag's words
  size_t cap_positional, cap_unknown;
  pg_flag_id_t flag;  // the last one of the running word; PG_N_FLAGS: none
  bool plain;         // after "--": no word is a flag
  bool help;
  bool misused;
} parser_t;

// Spellings that articles use and Polygraphy itself refuses.
typedef struct alias {
  const char* name;
  pg_flag_id_t flag;
  const char* note;
} alias_t;
static const alias_t aliases[] = {
    {"--stronglyTyped", PG_FLAG_strongly_typed, "--stronglyTyped is spelled --strongly-typed"},
};
enum { N_ALIASES = sizeof aliases / sizeof *aliases };

// Flags of which one line has one at most.
static const pg_flag_id_t exclusive[][2] = {
    {PG_FLAG_load_inputs, PG_FLAG_data_loader_script},
    {PG_FLAG_save_tactics, PG_FLAG_load_tactics},
    {PG_FLAG_fail_code, PG_FLAG_ignore_fail_code},
    {PG_FLAG_no_reduce_inputs, PG_FLAG_no_reduce_outputs},
    {PG_FLAG_show_output, PG_FLAG_hide_fail_output},
};
enum { N_EXCLUSIVE = sizeof exclusive / sizeof *exclusive };

// ---- misuse -------------------------------------------------------------------------------------

static void misuse(parser_t* p, const char* format, ...) ASSAY_PRINTF(2, 3);
static void misuse(parser_t* p, const char* format, ...) {
  const pg_command_t* c = &pg_commands[p->out->command];
  va_list args;
  if (p->misused) return;
  p->misused = true;
  fflush(stdout);
  pg_usage(p->out->command, stderr);
  assay_print(stderr, "polygraphy %s%s%s: error: ", c->tool, c->name ? " " : "",
              c->name ? c->name : "");
  va_start(args, format);
  assay_vprint(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
}

// The spellings of a flag with '/' between, for messages.
static const char* spelled(pg_flag_id_t f, char* buffer, size_t n) {
  snprintf(buffer, n, "%s", pg_flags[f].names);
  for (char* c = buffer; *c; c++)
    if (*c == ' ') *c = '/';
  return buffer;
}
#define SPELLED(f) spelled((f), (char[128]){0}, 128)

// ---- finding ------------------------------------------------------------------------------------

// A word that is a number belongs to the list before it, though it begins with '-'.
static bool is_number(const char* word) {
  char* end;
  if (!isdigit((unsigned char)word[1]) && !(word[1] == '.' && isdigit((unsigned char)word[2])))
    return false;
  strtod(word, &end);
  return !*end;
}

static bool is_like_flag(const parser_t* p, const char* word) {
  return !p->plain && word[0] == '-' && word[1] && !is_number(word) && !strchr(word, ' ');
}

static void report_ambiguous(parser_t* p, const char* word, size_t n) {
  assay_str_t names = {0};
  for (int f = 0; f < PG_N_FLAGS; f++) {
    if (!pg_flag_has((pg_flag_id_t)f, p->out->command)) continue;
    for (const char* at = pg_flags[f].names; *at;) {
      const size_t len = strcspn(at, " ");
      if (len > n && strncmp(at, word, n) == 0)
        assay_str_printf(&names, "%s%.*s", names.len ? ", " : "", (int)len, at);
      at += len + (at[len] == ' ');
    }
  }
  misuse(p, "ambiguous option: %.*s could match %s", (int)n, word, assay_str_get(&names));
  assay_str_deinit(&names);
}

// The flag that a word of n characters is, in full or shortened; PG_N_FLAGS: none, or an ambiguous
// one, which is told.
static pg_flag_id_t find(parser_t* p, const char* word, size_t n) {
  const pg_command_id_t command = p->out->command;
  pg_flag_id_t found = PG_N_FLAGS;
  for (int f = 0; f < PG_N_FLAGS; f++)
    if (pg_flag_has((pg_flag_id_t)f, command) && pg_flag_is(&pg_flags[f], word, n))
      return (pg_flag_id_t)f;
  for (int i = 0; i < N_ALIASES; i++) {
    if (strlen(aliases[i].name) != n || strncmp(aliases[i].name, word, n) != 0) continue;
    if (!pg_flag_has(aliases[i].flag, command)) continue;
    p->out->note = aliases[i].note;
    return aliases[i].flag;
  }
  if (strncmp(word, "--", 2) != 0) return PG_N_FLAGS;
  for (int f = 0; f < PG_N_FLAGS; f++) {
    if (!pg_flag_has((pg_flag_id_t)f, command) || !pg_flag_starts(&pg_flags[f], word, n)) continue;
    if (found != PG_N_FLAGS) return report_ambiguous(p, word, n), PG_N_FLAGS;
    found = (pg_flag_id_t)f;
  }
  return found;
}

// ---- values -------------------------------------------------------------------------------------

static assay_status_t add_word(parser_t* p, pg_words_t* to, size_t* cap, const char* word) {
  if (to->n == *cap) {
    const char** grown = NULL;
    ASSAY_TRY(assay_arena_new(p->arena, *cap ? 2 * *cap : 4, sizeof *grown, &grown));
    if (to->n) memcpy(grown, to->items, to->n * sizeof *grown);
    to->items = grown;
    *cap = *cap ? 2 * *cap : 4;
  }
  to->items[to->n++] = word;
  return NULL;
}

static void check_choice(parser_t* p, pg_flag_id_t id, const char* word) {
  const char* choices = pg_flags[id].value;
  assay_str_t list = {0};
  if (pg_is_choice(choices, word)) return;
  for (const char* at = choices; *at;) {
    const size_t n = strcspn(at, "|");
    assay_str_printf(&list, "%s'%.*s'", at == choices ? "" : ", ", (int)n, at);
    at += n + (at[n] == '|');
  }
  misuse(p, "argument %s: invalid choice: '%s' (choose from %s)", SPELLED(id), word,
         assay_str_get(&list));
  assay_str_deinit(&list);
}

static void read_number(parser_t* p, pg_flag_id_t id, const char* text, pg_value_t* v) {
  const bool whole = pg_flags[id].kind == PG_INT;
  char* end;
  errno = 0;
  if (whole)
    v->number = (double)(v->whole = strtoll(text, &end, 10));
  else
    v->number = strtod(text, &end);
  if (!*text || *end || errno || isspace((unsigned char)*text) || !isfinite(v->number))
    misuse(p, "argument %s: invalid %s value: '%s'", SPELLED(id), whole ? "int" : "float", text);
}

static assay_status_t set_one(parser_t* p, pg_flag_id_t id, const char* text, pg_value_t* v) {
  const pg_kind_t kind = pg_flags[id].kind;
  v->text = text;
  if (kind == PG_INT || kind == PG_FLOAT) read_number(p, id, text, v);
  if (kind == PG_CHOICE) check_choice(p, id, text);
  return NULL;
}

// What a list takes: the value after '=', or the words up to the next flag.
static assay_status_t take_list(parser_t* p, pg_flag_id_t id, const char* value, pg_words_t* out,
                                size_t* cap) {
  const pg_kind_t kind = pg_flags[id].kind;
  *out = (pg_words_t){0};
  *cap = 0;
  if (value)
    ASSAY_TRY(add_word(p, out, cap, value));
  else
    while (p->at < p->argc && strcmp(p->argv[p->at], "--") != 0 && !is_like_flag(p, p->argv[p->at]))
      ASSAY_TRY(add_word(p, out, cap, p->argv[p->at++]));
  if (!out->n && kind != PG_LIST0)
    misuse(p, "argument %s: expected at least one argument", SPELLED(id));
  for (size_t i = 0; kind == PG_CHOICES && i < out->n; i++) check_choice(p, id, out->items[i]);
  return NULL;
}

static assay_status_t add_list(parser_t* p, pg_flag_id_t id, const char* value, pg_value_t* v) {
  pg_words_t *lists = NULL, one;
  size_t cap;
  ASSAY_TRY(take_list(p, id, value, &one, &cap));
  ASSAY_TRY(assay_arena_new(p->arena, v->n_lists + 1, sizeof *lists, &lists));
  if (v->n_lists) memcpy(lists, v->lists, v->n_lists * sizeof *lists);
  lists[v->n_lists++] = one;
  v->lists = lists;
  return NULL;
}

static assay_status_t take_rest(parser_t* p, pg_flag_id_t id, const char* value, pg_value_t* v) {
  if (value) ASSAY_TRY(add_word(p, &v->words, &p->caps[id], value));
  while (p->at < p->argc) ASSAY_TRY(add_word(p, &v->words, &p->caps[id], p->argv[p->at++]));
  return NULL;
}

static assay_status_t take_one(parser_t* p, pg_flag_id_t id, const char* value, pg_value_t* v) {
  const bool there = value || (p->at < p->argc && strcmp(p->argv[p->at], "--") != 0 &&
                               !is_like_flag(p, p->argv[p->at]));
  if (!there && pg_flags[id].kind == PG_OPT_TEXT) return v->text = NULL, NULL;
  if (!there) return misuse(p, "argument %s: expected one argument", SPELLED(id)), NULL;
  return set_one(p, id, value ? value : p->argv[p->at++], v);
}

// The runners of the line, in order.
static assay_status_t add_runner(parser_t* p, pg_flag_id_t id) {
  pg_args_t* a = p->out;
  pg_flag_id_t* grown = NULL;
  if (id != PG_FLAG_onnxrt && id != PG_FLAG_trt && id != PG_FLAG_truth) return NULL;
  ASSAY_TRY(assay_arena_new(p->arena, a->n_runners + 1, sizeof *grown, &grown));
  if (a->n_runners) memcpy(grown, a->runners, a->n_runners * sizeof *grown);
  grown[a->n_runners++] = id;
  a->runners = grown;
  return NULL;
}

// A flag was found; p->at is after its word. value: what stands after '='; NULL: nothing.
static assay_status_t take_flag(parser_t* p, pg_flag_id_t id, const char* value) {
  pg_value_t* v = &p->out->at[id];
  const pg_kind_t kind = pg_flags[id].kind;
  p->flag = id;
  v->given = true;
  switch (kind) {
    case PG_SWITCH:
    case PG_COUNT:
      if (value) misuse(p, "argument %s: ignored explicit argument '%s'", SPELLED(id), value);
      if (kind == PG_COUNT) v->whole++;
      return add_runner(p, id);
    case PG_CHOICES:
    case PG_LIST:
    case PG_LIST0:
      return take_list(p, id, value, &v->words, &p->caps[id]);
    case PG_LISTS:
      return add_list(p, id, value, v);
    case PG_REST:
      return take_rest(p, id, value, v);
    case PG_TEXT:
    case PG_OPT_TEXT:
    case PG_OUTPUT:
    case PG_INT:
    case PG_FLOAT:
    case PG_CHOICE:
      return take_one(p, id, value, v);
  }
  return NULL;
}

// ---- words --------------------------------------------------------------------------------------

// "-pfloat32", "-vv", "-vqo FILE": flags of one letter, the last of which may have a value.
static assay_status_t take_letters(parser_t* p, const char* word, bool* out_known) {
  for (const char* at = word + 1; *at; at++) {
    const char letter[] = {'-', *at, 0};
    const pg_flag_id_t id = find(p, letter, 2);
    if (*at == 'h' && id == PG_N_FLAGS)
      p->help = true;
    else if (id == PG_N_FLAGS)
      return *out_known = at != word + 1, NULL;
    else {
      const pg_kind_t kind = pg_flags[id].kind;
      const char* rest = kind == PG_SWITCH || kind == PG_COUNT || !at[1] ? NULL : at + 1;
      ASSAY_TRY(take_flag(p, id, rest && *rest == '=' ? rest + 1 : rest));
      if (rest) break;
    }
  }
  *out_known = true;
  return NULL;
}

static size_t most_positional(pg_command_id_t c) {
  const char* model = pg_commands[c].model;
  return strstr(model, "...") ? SIZE_MAX : *model ? 1 : 0;
}

static assay_status_t take_plain(parser_t* p, const char* word) {
  pg_args_t* a = p->out;
  return a->positional.n < most_positional(a->command)
             ? add_word(p, &a->positional, &p->cap_positional, word)
             : add_word(p, &a->unknown, &p->cap_unknown, word);
}

static assay_status_t take_word(parser_t* p, const char* word) {
  const char* equals = strchr(word, '=');
  const size_t n = equals ? (size_t)(equals - word) : strlen(word);
  bool known = false;
  if (!p->plain && strcmp(word, "--") == 0) return p->plain = true, NULL;
  if (!is_like_flag(p, word) && !(equals && !p->plain && word[0] == '-' && word[1] == '-'))
    return take_plain(p, word);
  if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) return p->help = true, NULL;
  if (word[1] == '-') {
    const pg_flag_id_t id = find(p, word, n);
    if (p->misused) return NULL;
    if (id != PG_N_FLAGS) return take_flag(p, id, equals ? equals + 1 : NULL);
    if (n > 2 && strncmp("--help", word, n) == 0) return p->help = true, NULL;
  } else {
    ASSAY_TRY(take_letters(p, word, &known));
    if (known) return NULL;
  }
  return add_word(p, &p->out->unknown, &p->cap_unknown, word);
}

// The same, and keeps the words that it took where it is a flag.
static assay_status_t take_part(parser_t* p) {
  pg_args_t* a = p->out;
  char* const* words = &p->argv[p->at];
  p->flag = PG_N_FLAGS;
  ASSAY_TRY(take_word(p, p->argv[p->at++]));
  if (p->flag == PG_N_FLAGS) return NULL;
  if (!a->parts)  // no line has more than it has words
    ASSAY_TRY(assay_arena_new(p->arena, (size_t)p->argc, sizeof *a->parts, &a->parts));
  a->parts[a->n_parts++] = (pg_part_t){p->flag, words, (size_t)(&p->argv[p->at] - words)};
  return NULL;
}

// ---- the line -----------------------------------------------------------------------------------

static assay_status_t set_fallbacks(parser_t* p) {
  ASSAY_TRY(assay_arena_new(p->arena, PG_N_FLAGS, sizeof *p->caps, &p->caps));
  for (int f = 0; f < PG_N_FLAGS; f++) {
    const pg_flag_t* flag = &pg_flags[f];
    pg_value_t* v = &p->out->at[f];
    if (!flag->fallback) continue;
    if (flag->kind == PG_CHOICES || flag->kind == PG_LIST)
      ASSAY_TRY(add_word(p, &v->words, &p->caps[f], flag->fallback));
    else
      ASSAY_TRY(set_one(p, (pg_flag_id_t)f, flag->fallback, v));
  }
  return NULL;
}

// Flags that a subcommand cannot do without.
static const struct {
  pg_command_id_t command;
  pg_flag_id_t flag;
} required[] = {
    {PG_CMD_surgeon_insert, PG_FLAG_inputs},
    {PG_CMD_surgeon_insert, PG_FLAG_outputs},
    {PG_CMD_surgeon_insert, PG_FLAG_op},
    {PG_CMD_surgeon_insert, PG_FLAG_output},
    {PG_CMD_surgeon_extract, PG_FLAG_output},
    {PG_CMD_surgeon_sanitize, PG_FLAG_output},
    {PG_CMD_surgeon_prune, PG_FLAG_output},
    {PG_CMD_surgeon_weight_strip, PG_FLAG_output},
    {PG_CMD_surgeon_weight_reconstruct, PG_FLAG_output},
    {PG_CMD_debug_reduce, PG_FLAG_output},
    {PG_CMD_debug_build, PG_FLAG_until},
    {PG_CMD_debug_repeat, PG_FLAG_until},
    {PG_CMD_convert, PG_FLAG_output},
    {PG_CMD_data_concat, PG_FLAG_output},
    {PG_CMD_data_merge, PG_FLAG_output},
};
enum { N_REQUIRED = sizeof required / sizeof *required };

static void check_complete(parser_t* p) {
  const pg_args_t* a = p->out;
  const char* model = pg_commands[a->command].model;
  assay_str_t missing = {0};
  for (int i = 0; i < N_REQUIRED; i++) {
    if (required[i].command != a->command || a->at[required[i].flag].given) continue;
    assay_str_append(&missing, missing.len ? ", " : "");
    for (const char* c = pg_flags[required[i].flag].names; *c; c++)
      assay_str_append_n(&missing, *c == ' ' ? "/" : c, 1);
  }
  if (*model && *model != '[' && !a->positional.n)
    assay_str_printf(&missing, "%s%s", missing.len ? ", " : "", model);
  if (missing.len || missing.failed)
    misuse(p, "the following arguments are required: %s", assay_str_get(&missing));
  assay_str_deinit(&missing);
  for (int i = 0; i < N_EXCLUSIVE; i++)
    if (a->at[exclusive[i][0]].given && a->at[exclusive[i][1]].given)
      misuse(p, "argument %s: not allowed with argument %s", SPELLED(exclusive[i][1]),
             SPELLED(exclusive[i][0]));
}

static assay_status_t read_line(parser_t* p, pg_outcome_t* out) {
  ASSAY_TRY(set_fallbacks(p));
  while (p->at < p->argc && !p->misused && !p->help) ASSAY_TRY(take_part(p));
  if (p->help) {
    pg_help_command(p->out->command, stdout);
    return *out = PG_OUTCOME_HELP, NULL;
  }
  if (!p->misused) check_complete(p);
  *out = p->misused ? PG_OUTCOME_MISUSED : p->out->unknown.n ? PG_OUTCOME_UNKNOWN : PG_OUTCOME_RUN;
  return NULL;
}

// ---- the subcommand -----------------------------------------------------------------------------

static bool is_help(const char* word) {
  return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
}

// Tools of Polygraphy that are not here, and why.
static const char* refusal(const char* tool) {
  if (strcmp(tool, "template") == 0) return "it writes Python over TensorRT's API";
  if (strcmp(tool, "plugin") == 0) return "plugins are libraries of TensorRT's";
  if (strcmp(tool, "multi-device") == 0) return "plans run on one device";
  return NULL;
}

static pg_outcome_t report_tool(const char* word) {
  const char* why = refusal(word);
  fputs("usage: polygraphy [-h] [-v] TOOL ...\n", stderr);
  if (why) {
    assay_print(stderr, "polygraphy: error: '%s' is not supported: %s\n", word, why);
    return PG_OUTCOME_MISUSED;
  }
  assay_print(stderr, "polygraphy: error: argument tools: invalid choice: '%s' (choose from ",
              word);
  for (int c = 0; c < PG_N_COMMANDS; c++)
    if (!c || strcmp(pg_commands[c].tool, pg_commands[c - 1].tool) != 0)
      assay_print(stderr, "%s'%s'", c ? ", " : "", pg_commands[c].tool);
  fputs(")\n", stderr);
  return PG_OUTCOME_MISUSED;
}

static pg_outcome_t report_subtool(const char* tool, const char* word) {
  bool any = false;
  assay_print(stderr, "usage: polygraphy %s [-h] SUBTOOL ...\npolygraphy %s: error: ", tool, tool);
  if (!word)
    fputs("the following arguments are required: subtool\n", stderr);
  else
    assay_print(stderr, "argument subtool: invalid choice: '%s' (choose from ", word);
  for (int c = 0; word && c < PG_N_COMMANDS; c++) {
    if (strcmp(pg_commands[c].tool, tool) != 0) continue;
    assay_print(stderr, "%s'%s'", any ? ", " : "", pg_commands[c].name);
    any = true;
  }
  if (word) fputs(")\n", stderr);
  return PG_OUTCOME_MISUSED;
}

static void print_version(void) {
  assay_print(stdout, "Polygraphy | Version: 0.53.6 | its command line in Assay %s\n",
              ASSAY_VERSION);
}

// Finds the subcommand at the line's begin; p->at is after it.
static pg_outcome_t find_command(parser_t* p) {
  if (!p->argc) {
    fputs(
        "usage: polygraphy [-h] [-v] TOOL ...\n"
        "polygraphy: error: the following arguments are required: tools\n",
        stderr);
    return PG_OUTCOME_MISUSED;
  }
  const char *tool = p->argv[0], *word = p->argc > 1 ? p->argv[1] : NULL;
  if (is_help(tool)) return pg_help(stdout), PG_OUTCOME_HELP;
  if (strcmp(tool, "-v") == 0 || strcmp(tool, "--version") == 0)
    return print_version(), PG_OUTCOME_HELP;
  if (word && strcmp(tool, "data") == 0 && strcmp(word, "to-input") == 0) word = "merge";
  bool any = false;
  for (int c = 0; c < PG_N_COMMANDS; c++) {
    const pg_command_t* row = &pg_commands[c];
    if (strcmp(row->tool, tool) != 0) continue;
    any = true;
    if (row->name && (!word || strcmp(row->name, word) != 0)) continue;
    p->out->command = (pg_command_id_t)c;
    p->at = row->name ? 2 : 1;
    return PG_OUTCOME_RUN;
  }
  if (any && word && is_help(word)) return pg_help_tool(tool, stdout), PG_OUTCOME_HELP;
  return any ? report_subtool(tool, word) : report_tool(tool);
}

assay_status_t pg_args_parse(assay_arena_t* arena, int argc, char** argv, pg_args_t* out,
                             pg_outcome_t* out_outcome) {
  parser_t p = {.arena = arena, .argc = argc, .argv = argv, .out = out};
  *out = (pg_args_t){0};
  *out_outcome = find_command(&p);
  return *out_outcome == PG_OUTCOME_RUN ? read_line(&p, out_outcome) : NULL;
}
