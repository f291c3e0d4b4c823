// Files with rules of layers.
#include "cli/rules_file.h"

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

// A line without what surrounds its rules: spaces, and a ',' in front of the next line.
static void add_line(assay_str_t* out, const char* line, size_t n) {
  while (n && isspace((unsigned char)*line)) line++, n--;
  while (n && isspace((unsigned char)line[n - 1])) n--;
  if (n && *line == '#') return;
  if (n && line[n - 1] == ',' && !(n > 1 && line[n - 2] == '\\')) n--;
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

// The value of an option: what stands behind its '=', or the next word.
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

static assay_status_t take_option(const char** at, assay_str_t* word, assay_str_t* rules,
                                  assay_str_t* precision) {
  const char* value;
  bool is;
  ASSAY_TRY(take_value(at, word, "--layer-precision", &value, &is));
  if (is) return add_rules(rules, value, strlen(value)), NULL;
  ASSAY_TRY(take_value(at, word, "--precision", &value, &is));
  if (is && precision->len && strcmp(assay_str_get(precision), value) != 0)
    return ASSAY_ERROR(ASSAY_CORRUPT, "--precision is both %s and %s", assay_str_get(precision),
                       value);
  if (is) return precision->len ? NULL : (assay_str_append(precision, value), NULL);
  if (is_of_trtexec(assay_str_get(word))) return NULL;
  return ASSAY_ERROR(ASSAY_CORRUPT,
                     "'%s' is neither --layer-precision nor --precision, nor one of trtexec's that "
                     "stand beside them",
                     assay_str_get(word));
}

static assay_status_t read_options(const char* text, assay_str_t* rules, assay_str_t* precision) {
  assay_str_t word = {0};
  bool any = true;
  assay_status_t st = NULL;
  while (!st && any) {
    st = assay_shell_next(&text, &word, &any);
    if (!st && any) st = take_option(&text, &word, rules, precision);
  }
  assay_str_deinit(&word);
  return st;
}

// ---- files --------------------------------------------------------------------------------------

// Whether what comes first, behind comments, begins with "--".
static bool has_options(const char* text) {
  for (;;) {
    text += strspn(text, " \t\r\n");
    if (*text != '#') return strncmp(text, "--", 2) == 0;
    text += strcspn(text, "\n");
  }
}

static assay_status_t read_text(const char* text, assay_str_t* rules, assay_str_t* precision) {
  const size_t before = rules->len;
  if (has_options(text))
    ASSAY_TRY(read_options(text, rules, precision));
  else
    read_lines(text, rules);
  ASSAY_TRY(assay_str_status(rules));
  if (rules->len == before && !precision->len)
    return ASSAY_ERROR(ASSAY_CORRUPT, "no rules are in it: 'PATTERN:FORMAT,...' or options");
  return assay_str_status(precision);
}

assay_status_t cli_rules_file_read(const char* path, assay_str_t* rules, assay_str_t* precision) {
  assay_mapping_t* m = NULL;
  assay_str_t text = {0};
  ASSAY_TRY(assay_mapping_open(path, &m));
  const size_t n = assay_mapping_size(m);
  const bool binary = n && memchr(assay_mapping_data(m), 0, n);
  if (!binary) assay_str_append_n(&text, (const char*)assay_mapping_data(m), n);
  assay_mapping_release(m);
  assay_status_t st =
      binary ? ASSAY_ERROR(ASSAY_CORRUPT, "it is no text") : assay_str_status(&text);
  if (!st) st = read_text(assay_str_get(&text), rules, precision);
  assay_str_deinit(&text);
  return assay_status_note(st, "'%s'", path);
}
