// Parsing of arguments and help, from the tables.
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/process.h"
#include "base/shell.h"
#include "base/shown.h"
#include "cli/cli.h"
#include "cli/help_text.h"
#include "cli/timeout.h"
#include "cli/verbs/rules_file.h"

int assay_cli_fail(assay_status_t status, int code) {
  assay_code_t c = assay_status_code(status);
  cli_timeout_hold();
  assay_process_hold();
  fflush(stdout);
  assay_print(stderr, "assay: %s\n", assay_status_message(status));
  assay_status_free(status);
  return c == ASSAY_NO_MEMORY || c == ASSAY_INTERNAL || c == ASSAY_DEVICE ? ASSAY_EXIT_FAILED
                                                                          : code;
}

int assay_cli_usage(const char* verb, const char* format, ...) {
  va_list args;
  va_start(args, format);
  fputs("assay: ", stderr);
  assay_vprint(stderr, format, args);
  assay_print(stderr, "; see 'assay %s%s-h'\n", verb, *verb ? " " : "");
  va_end(args);
  return ASSAY_EXIT_USAGE;
}

bool assay_cli_json_to_stdout(const char* path) { return path && strcmp(path, "-") == 0; }

assay_status_t assay_cli_write_json(const char* path, const json_t* j) {
  if (!assay_cli_json_to_stdout(path)) return assay_json_write(path, j, 1);
  assay_str_t text = {0};
  assay_json_print(j, 1, &text);
  assay_status_t st = assay_str_status(&text);
  if (!st) fputs(assay_str_get(&text), stdout);
  assay_str_deinit(&text);
  return st;
}

// Columns of the terminal.
static int terminal_width(void) {
  enum { USUAL = 80, LEAST = 40 };
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < LEAST) return USUAL;
  return size.ws_col;
}

// Bytes of whole characters at the front, no more than there are columns.
static int first_columns(const char* text, int columns) {
  const size_t n = strlen(text);
  size_t length = 0;
  bool hidden;
  while (length < n) {
    const size_t next = length + assay_char_length(text + length, n - length, &hidden, NULL);
    if (next > (size_t)columns) break;
    length = next;
  }
  return (int)length;
}

// One line, which the next one takes the place of: what is being done, as much of it as there is
// room for, and how much is.
void assay_cli_progress(const char* what, double fraction) {
  enum { WIDTH = 30, LEAST = 8, PERCENT = 9 };  // of the bar; " [", "] 100%" and the cursor
  cli_timeout_doing(fraction < 1 ? what : "");
  if (!isatty(STDERR_FILENO)) return;
  if (fraction >= 1) {
    fputs("\r\033[K", stderr);
    return;
  }
  const int room = terminal_width() - PERCENT;
  assay_str_t text = {0};
  assay_str_shown(&text, what);
  const int length = first_columns(assay_str_get(&text), room);
  const int bar = room - length < WIDTH ? room - length : WIDTH;
  const int full = (int)(fraction * bar);
  fprintf(stderr, "\r\033[K%.*s", length, assay_str_get(&text));
  if (bar >= LEAST)
    fprintf(stderr, " [%.*s%*s]", full, "##############################", bar - full, "");
  fprintf(stderr, " %3d%%", (int)(fraction * 100));
  fflush(stderr);
  assay_str_deinit(&text);
}

// A newline in the text continues under its own column.
static void print_help(const char* help, FILE* out) {
  assay_str_t text = {0};
  assay_status_t st = cli_help_text(help, &text);
  for (const char* p = st ? help : assay_str_get(&text); *p; p++) {
    fputc(*p, out);
    if (*p == '\n') fprintf(out, "  %-26s  ", "");
  }
  assay_status_free(st);
  assay_str_deinit(&text);
}

static bool is_positional(const opt_t* o) { return o->name[0] != '-'; }

void assay_cli_help(const verb_t* verb, FILE* out) {
  fprintf(out, "%s\n\nUsage: assay %s %s\n", verb->summary, verb->name, verb->usage);
  for (int positional = 1; positional >= 0; positional--) {
    bool any = !positional;  // of options there is always -h
    if (any) fputs("\nOptions:\n", out);
    for (const opt_t* o = verb->options; o->name; o++) {
      if (is_positional(o) != (bool)positional) continue;
      if (!any) fputs("\nArguments:\n", out);
      any = true;
      char left[80];
      if (positional)
        snprintf(left, sizeof left, "%s", o->name);
      else if (o->letter)
        snprintf(left, sizeof left, "-%c, %s%s%s", o->letter, o->name, o->value ? " " : "",
                 o->value ? o->value : "");
      else
        snprintf(left, sizeof left, "%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
      if (strlen(left) > 26)
        fprintf(out, "  %s\n  %-26s  ", left, "");
      else
        fprintf(out, "  %-26s  ", left);
      print_help(o->help, out);
      fputc('\n', out);
    }
  }
  fprintf(out, "  %-26s  %s\n", "-h, --help", "show this text");
  if (verb->examples) fprintf(out, "\nExamples:\n%s", verb->examples);
}

assay_status_t opt_list_add(opt_list_t* list, const char* text) {
  ASSAY_TRY(assay_grow(&list->items, &list->capacity, list->n + 1, sizeof *list->items));
  list->items[list->n++] = text;
  return NULL;
}

// Stores a value into the field of an option. False: it is not what the kind wants.
static bool store(const opt_t* o, void* args, const char* value) {
  char* field = (char*)args + o->offset;
  char* end = NULL;
  errno = 0;
  switch (o->kind) {
    case OPT_FLAG: {
      bool yes = true;
      memcpy(field, &yes, sizeof yes);
      return true;
    }
    case OPT_STRING:
    case OPT_OUT_FILE:
    case OPT_OUT_FOLDER:
    case OPT_OUT_EITHER:
    case OPT_OUT_CACHE:
      memcpy(field, &value, sizeof value);
      return true;
    case OPT_INT: {
      int64_t i = strtoll(value, &end, 10);
      memcpy(field, &i, sizeof i);
      return *value && !*end && !errno;
    }
    case OPT_FLOAT: {
      double x = strtod(value, &end);
      memcpy(field, &x, sizeof x);
      return *value && !*end && !errno;
    }
    case OPT_BYTES: {
      uint64_t bytes;
      if (!assay_bytes_parse(value, &bytes)) return false;
      memcpy(field, &bytes, sizeof bytes);
      return true;
    }
    case OPT_LIST: {
      opt_list_t* list = (opt_list_t*)(void*)field;
      assay_status_t st = opt_list_add(list, value);
      assay_status_free(st);
      return !st;
    }
    case OPT_RULES:
    case OPT_FIX:
      break;  // add_rules
  }
  return false;
}

// ---- rules of layers ----------------------------------------------------------------------------

// Texts that arguments point to and that stand in no argv, until they are freed.
static char** kept;
static size_t n_kept, kept_capacity;

static assay_status_t keep(assay_str_t* text, const char** out) {
  ASSAY_TRY(assay_str_status(text));
  ASSAY_TRY(assay_grow(&kept, &kept_capacity, n_kept + 1, sizeof *kept));
  assay_str_append(text, "");
  ASSAY_TRY(assay_str_status(text));
  *out = kept[n_kept++] = text->text;
  *text = (assay_str_t){0};
  return NULL;
}

static void free_kept(void) {
  for (size_t i = 0; i < n_kept; i++) assay_free(kept[i]);
  assay_free(kept);
  kept = NULL;
  n_kept = kept_capacity = 0;
}

// Puts rules after those that were given before; *precision: what files give beside them.
static assay_status_t add_rules(const opt_t* o, void* args, const char* value,
                                assay_str_t* precision) {
  char* field = (char*)args + o->offset;
  const bool file = o->kind == OPT_FIX || *value == '@';
  const char* before = NULL;
  assay_str_t text = {0};
  assay_status_t st = NULL;
  memcpy(&before, field, sizeof before);
  if (before) assay_str_append(&text, before);
  if (file) {
    st = cli_rules_file_read(value + (o->kind != OPT_FIX), &text, precision);
  } else {
    if (before) assay_str_append(&text, ",");
    assay_str_append(&text, value);
  }
  // A file may have a precision only: then there are still no rules.
  if (!st && (text.len || !file)) st = keep(&text, &before);
  if (!st) memcpy(field, &before, sizeof before);
  assay_str_deinit(&text);
  return assay_status_note(st, "%s", o->name);
}

// ---- finding options ----------------------------------------------------------------------------

static const opt_t* find_long(const verb_t* verb, const char* arg, size_t n) {
  for (const opt_t* o = verb->options; o->name; o++)
    if (!is_positional(o) && strlen(o->name) == n && strncmp(o->name, arg, n) == 0) return o;
  return NULL;
}

static const opt_t* find_letter(const verb_t* verb, char letter) {
  for (const opt_t* o = verb->options; o->name; o++)
    if (o->letter && o->letter == letter) return o;
  return NULL;
}

// The positional option number k; a list takes all that are left.
static const opt_t* find_positional(const verb_t* verb, int k) {
  for (const opt_t* o = verb->options; o->name; o++)
    if (is_positional(o) && (k-- == 0 || o->kind == OPT_LIST)) return o;
  return NULL;
}

static const char* nearest(const verb_t* verb, const char* arg) {
  char name[64];
  const size_t n = strcspn(arg, "=");
  if (n >= sizeof name) return NULL;
  memcpy(name, arg, n);
  name[n] = 0;
  assay_nearest_t near = {.wanted = name};
  for (const opt_t* o = verb->options; o->name; o++)
    if (!is_positional(o)) assay_nearest_offer(&near, o->name);
  return assay_nearest_best(&near);
}

// What was parsed last.
static const verb_t* command_verb;
static int command_words;
static char** command_argv;

void assay_cli_command(assay_str_t* out) { assay_cli_command_with(NULL, out); }

void assay_cli_command_with(const char* option, assay_str_t* out) {
  assay_str_printf(out, "assay %s", command_verb ? command_verb->name : "");
  for (int i = 0; i < command_words; i++) {
    if (option && strcmp(command_argv[i], "--") == 0) {  // after it no word is an option
      assay_str_printf(out, " %s", option);
      option = NULL;
    }
    assay_str_append(out, " ");
    assay_shell_word(out, command_argv[i]);
  }
  if (option) assay_str_printf(out, " %s", option);
}

// Gives --precision what files with rules have of it.
static assay_status_t settle_precision(const verb_t* verb, void* args, assay_str_t* precision) {
  const opt_t* o = find_long(verb, "--precision", strlen("--precision"));
  const char *given = NULL, *text = NULL;
  if (!precision->len) return NULL;
  if (!o) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'assay %s' has no --precision", verb->name);
  char* field = (char*)args + o->offset;
  memcpy(&given, field, sizeof given);
  if (given && strcmp(given, assay_str_get(precision)) != 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--precision is %s, and %s in the file with rules, which is for that one: "
                       "leave it out",
                       given, assay_str_get(precision));
  ASSAY_TRY(keep(precision, &text));
  memcpy(field, &text, sizeof text);
  return NULL;
}

static bool parse(const verb_t* verb, int argc, char** argv, void* args, assay_str_t* precision,
                  int* out_exit) {
  int positional = 0;
  bool only_positional = false;
  for (int i = 0; i < argc; i++) {
    const char* arg = argv[i];
    const opt_t* o = NULL;
    const char* value = NULL;
    if (!only_positional && (strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0)) {
      assay_cli_help(verb, stdout);
      *out_exit = ASSAY_EXIT_OK;
      return false;
    }
    if (!only_positional && strcmp(arg, "--") == 0) {
      only_positional = true;
      continue;
    }
    if (only_positional || arg[0] != '-' || !arg[1]) {
      o = find_positional(verb, positional++);
      value = arg;
    } else if (arg[1] == '-') {
      const char* equals = strchr(arg, '=');
      o = find_long(verb, arg, equals ? (size_t)(equals - arg) : strlen(arg));
      value = equals ? equals + 1 : NULL;
      if (o && o->kind == OPT_FLAG && value)
        return *out_exit = assay_cli_usage(verb->name, "%s takes no value", o->name), false;
    } else {
      o = find_letter(verb, arg[1]);
      value = arg[2] ? arg + 2 : NULL;
    }
    if (!o) {
      const char* near = arg[0] == '-' ? nearest(verb, arg) : NULL;
      *out_exit =
          near ? assay_cli_usage(verb->name, "unknown option '%s'; did you mean %s?", arg, near)
               : assay_cli_usage(verb->name, "%s '%s'",
                                 arg[0] == '-' ? "unknown option" : "unexpected argument", arg);
      return false;
    }
    if (o->kind != OPT_FLAG && !value) {
      if (i + 1 == argc)
        return *out_exit = assay_cli_usage(verb->name, "%s needs a value", arg), false;
      value = argv[++i];
    }
    if (o->kind == OPT_RULES || o->kind == OPT_FIX) {
      assay_status_t st = add_rules(o, args, value, precision);
      if (st) return *out_exit = assay_cli_fail(st, ASSAY_EXIT_INPUT), false;
      continue;
    }
    if (!store(o, args, value))
      return *out_exit =
                 assay_cli_usage(verb->name, "'%s' is not a %s, as %s needs", value,
                                 o->kind == OPT_BYTES ? "size (500M, 16G)" : "number", o->name),
             false;
  }
  for (const opt_t* o = verb->options; o->name; o++)
    if (is_positional(o) && positional-- <= 0 && o->required)
      return *out_exit = assay_cli_usage(verb->name, "%s is missing", o->name), false;
  return true;
}

bool assay_cli_parse(const verb_t* verb, int argc, char** argv, void* args, int* out_exit) {
  assay_str_t precision = {0};
  command_verb = verb;
  command_words = argc;
  command_argv = argv;
  bool ok = parse(verb, argc, argv, args, &precision, out_exit);
  assay_status_t st = ok ? settle_precision(verb, args, &precision) : NULL;
  if (st) *out_exit = assay_cli_fail(st, ASSAY_EXIT_USAGE);
  assay_str_deinit(&precision);
  return ok && !st;
}

void assay_cli_free_args(const verb_t* verb, void* args) {
  for (const opt_t* o = verb->options; o->name; o++) {
    if (o->kind != OPT_LIST) continue;
    opt_list_t* list = (opt_list_t*)(void*)((char*)args + o->offset);
    assay_free(list->items);
  }
  free_kept();
}
