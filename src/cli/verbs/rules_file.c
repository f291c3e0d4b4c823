// Files with rules of layers.
#include "cli/verbs/rules_file.h"

#include <ctype.h>
#include <string.h>

#include "base/file.h"
#include "base/shell.h"

static void add_rules(assay_str_t* out, const char* text, size_t n) {
  if (!n) return;
  if (out->len) assay_str_append(out, ",");
  assay_str_append_n(out, text, n);
}

// ---- rules alone --------------------------------------------------------------------------------

// Whether a line ends in a ',' that no \ in front of it makes a part of a name.
static bool ends_in_comma(const char* line, size_t n) {
  size_t escapes = 0;
  if (!n || line[n - 1] != ',') return false;
  while (escapes + 1 < n && line[n - 2 - escapes] == '\\') escapes++;
  return escapes % 2 == 0;
}

// A line without what surrounds its rules: spaces, and a ',' in front of the next line.
static void add_line(assay_str_t* out, const char* line, size_t n) {
  while (n && isspace((unsigned char)*line)) line++, n--;
  while (n && isspace((unsigned char)line[n - 1])) n--;
  if (n && *line == '#') return;
  if (ends_in_comma(line, n)) n--;
  add_rules(out, line, n);
}

static void read_lines(const char* text, assay_str_t* out) {
  for (const char* at = text; *at;) {
    const size_t n = strcspn(at, "\n");
    add_line(out, at, n);
    at += n + (at[n] == '\n');
  }
}

// ---- options ------------------------------------------------------------------------------------

// What trtexec takes beside its list; the list itself may be long, and is not looked into.
static bool is_of_trtexec(const char* word) {
  static const char* const switches[] = {"--fp16", "--bf16", "--fp8", "--int8", "--int4"};
  static const char* const begins[] = {"--precisionConstraints=", "--layerPrecisions="};
  for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
    if (strcmp(word, switches[i]) == 0) return true;
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    if (strncmp(word, begins[i], strlen(begins[i])) == 0) return true;
  return false;
}

// The value of an option: what stands after its '=', or the next word.
static assay_status_t take_value(const char** at, assay_str_t* word, const char* name,
                                 const char** out, bool* out_is) {
  const size_t n = strlen(name);
  bool any;
  *out_is = strncmp(assay_str_get(word), name, n) == 0 &&
            (word->len == n || assay_str_get(word)[n] == '=');
  if (!*out_is) return NULL;
  if (word->len > n) return *out = assay_str_get(word) + n + 1, NULL;
  ASSAY_TRY(assay_shell_next(at, word, &any));
  *out = assay_str_get(word);
  return any ? NULL : ASSAY_ERROR(ASSAY_CORRUPT, "%s has no value", name);
}

// What options are appended to.
typedef struct taken {
  assay_str_t *rules, *precision;
  assay_str_t* trtexec;  // NULL: not wanted
} taken_t;

static assay_status_t take_precision(const taken_t* t, const char* value) {
  const char* before = assay_str_get(t->precision);
  if (!t->precision->len) return assay_str_append(t->precision, value), NULL;
  if (strcmp(before, value) == 0) return NULL;
  return ASSAY_ERROR(ASSAY_CORRUPT, "--precision is both %s and %s", before, value);
}

static assay_status_t take_option(const char** at, assay_str_t* word, const taken_t* t) {
  const char* value;
  bool is;
  ASSAY_TRY(take_value(at, word, "--layer-precision", &value, &is));
  if (is) return add_rules(t->rules, value, strlen(value)), NULL;
  ASSAY_TRY(take_value(at, word, "--precision", &value, &is));
  if (is) return take_precision(t, value);
  if (!is_of_trtexec(assay_str_get(word)))
    return ASSAY_ERROR(
        ASSAY_CORRUPT,
        "'%s' is neither --layer-precision nor --precision, nor one of trtexec's that "
        "stand beside them",
        assay_str_get(word));
  if (t->trtexec) assay_str_append_n(t->trtexec, assay_str_get(word), word->len + 1);
  return NULL;
}

static assay_status_t read_options(const char* text, const taken_t* t) {
  assay_str_t word = {0};
  bool any = true;
  assay_status_t st = NULL;
  while (!st && any) {
    st = assay_shell_next(&text, &word, &any);
    if (!st && any) st = take_option(&text, &word, t);
  }
  assay_str_deinit(&word);
  return st;
}

// ---- files --------------------------------------------------------------------------------------

// Whether what comes first, after comments, begins with "--".
static bool has_options(const char* text) {
  for (;;) {
    text += strspn(text, " \t\r\n");
    if (*text != '#') return strncmp(text, "--", 2) == 0;
    text += strcspn(text, "\n");
  }
}

static assay_status_t read_text(const char* text, const taken_t* t) {
  const size_t before = t->rules->len;
  if (has_options(text))
    ASSAY_TRY(read_options(text, t));
  else
    read_lines(text, t->rules);
  ASSAY_TRY(assay_str_status(t->rules));
  ASSAY_TRY(assay_str_status(t->precision));
  if (t->trtexec && !t->trtexec->len && !t->trtexec->failed)
    return ASSAY_ERROR(ASSAY_CORRUPT, "it has no options for trtexec");
  if (!t->trtexec && t->rules->len == before && !t->precision->len)
    return ASSAY_ERROR(ASSAY_CORRUPT, "no rules are in it: 'PATTERN:FORMAT,...' or options");
  return t->trtexec ? assay_str_status(t->trtexec) : NULL;
}

static assay_status_t read_file(const char* path, const taken_t* t) {
  assay_mapping_t* m = NULL;
  assay_str_t text = {0};
  ASSAY_TRY(assay_mapping_open(path, &m));
  const size_t n = assay_mapping_size(m);
  const bool binary = n && memchr(assay_mapping_data(m), 0, n);
  if (!binary) assay_str_append_n(&text, (const char*)assay_mapping_data(m), n);
  assay_mapping_release(m);
  assay_status_t st =
      binary ? ASSAY_ERROR(ASSAY_CORRUPT, "it is not text") : assay_str_status(&text);
  if (!st) st = read_text(assay_str_get(&text), t);
  assay_str_deinit(&text);
  return assay_status_note(st, "'%s'", path);
}

assay_status_t cli_rules_file_read(const char* path, assay_str_t* rules, assay_str_t* precision) {
  return read_file(path, &(taken_t){rules, precision, NULL});
}

assay_status_t cli_rules_file_trtexec(const char* path, assay_str_t* words) {
  assay_str_t rules = {0}, precision = {0};
  assay_status_t st = read_file(path, &(taken_t){&rules, &precision, words});
  assay_str_deinit(&rules);
  assay_str_deinit(&precision);
  return st;
}
