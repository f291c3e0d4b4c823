// Words of a shell's command line.
#include "base/shell.h"

#include <ctype.h>
#include <string.h>

#include "base/shown.h"

// ---- writing ------------------------------------------------------------------------------------

void assay_shell_quote(assay_str_t* out, const char* text) {
  assay_str_append(out, "'");
  for (const char* c = text; *c; c++) {
    if (*c == '\'')
      assay_str_append(out, "'\\''");
    else
      assay_str_append_n(out, c, 1);
  }
  assay_str_append(out, "'");
}

static bool has_hidden(const char* text) {
  const size_t n = strlen(text);
  bool hidden = false;
  for (size_t at = 0; at < n && !hidden;) at += assay_char_length(text + at, n - at, &hidden, NULL);
  return hidden;
}

// Every byte of what may not be shown as \x1b, so that a shell makes the same bytes of it.
static void append_escaped(assay_str_t* out, const char* text) {
  const size_t n = strlen(text);
  assay_str_append(out, "$'");
  for (size_t at = 0, length; at < n; at += length) {
    bool hidden;
    length = assay_char_length(text + at, n - at, &hidden, NULL);
    if (!hidden && (text[at] == '\'' || text[at] == '\\')) assay_str_append(out, "\\");
    for (size_t i = 0; hidden && i < length; i++)
      assay_str_printf_raw(out, "\\x%02x", (unsigned char)text[at + i]);
    if (!hidden) assay_str_append_n(out, text + at, length);
  }
  assay_str_append(out, "'");
}

void assay_shell_word_quoted(assay_str_t* out, const char* text) {
  if (has_hidden(text))
    append_escaped(out, text);
  else
    assay_shell_quote(out, text);
}

void assay_shell_word(assay_str_t* out, const char* text) {
  bool plain = *text && *text != '=';  // zsh takes =NAME for the path of a program
  for (const char* c = text; *c; c++)
    plain &= isalnum((unsigned char)*c) || strchr("_-./=:,+%@", *c);
  if (plain)
    assay_str_append(out, text);
  else
    assay_shell_word_quoted(out, text);
}

// ---- reading ------------------------------------------------------------------------------------

static assay_status_t not_closed(const char* quote) {
  return ASSAY_ERROR(ASSAY_CORRUPT, "a word begins with %s, which nothing ends", quote);
}

// After the first quote; *at is set after the second one.
static assay_status_t take_single(const char** at, assay_str_t* out) {
  const char* end = strchr(*at, '\'');
  if (!end) return not_closed("'");
  assay_str_append_n(out, *at, (size_t)(end - *at));
  *at = end + 1;
  return NULL;
}

static assay_status_t take_double(const char** at, assay_str_t* out) {
  const char* c = *at;
  for (; *c && *c != '"'; c++) {
    if (*c == '\\' && c[1] && strchr("\"\\$`", c[1])) c++;
    assay_str_append_n(out, c, 1);
  }
  if (!*c) return not_closed("\"");
  *at = c + 1;
  return NULL;
}

static int hex_digit(char c) {
  if (!isxdigit((unsigned char)c)) return -1;
  return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

// What stands after a \ of $'...'; returns how many characters it takes.
static size_t take_escape(const char* c, assay_str_t* out) {
  static const char names[] = "abefnrtv", bytes[] = "\a\b\033\f\n\r\t\v";
  const char* name = *c ? strchr(names, *c) : NULL;
  char byte = name ? bytes[name - names] : *c;
  size_t taken = 1;
  if (*c == 'x' && hex_digit(c[1]) >= 0) {
    int value = 0;
    for (; taken < 3 && hex_digit(c[taken]) >= 0; taken++) value = 16 * value + hex_digit(c[taken]);
    byte = (char)value;
  }
  assay_str_append_n(out, &byte, 1);
  return taken;
}

static assay_status_t take_escaped(const char** at, assay_str_t* out) {
  const char* c = *at;
  while (*c && *c != '\'') {
    if (*c == '\\' && c[1]) {
      c += 1 + take_escape(c + 1, out);
    } else {
      assay_str_append_n(out, c++, 1);
    }
  }
  if (!*c) return not_closed("$'");
  *at = c + 1;
  return NULL;
}

static void skip_space(const char** at) {
  while (isspace((unsigned char)**at) || **at == '#') {
    if (**at == '#')
      *at += strcspn(*at, "\n");
    else
      ++*at;
  }
}

assay_status_t assay_shell_next(const char** at, assay_str_t* out, bool* out_any) {
  assay_status_t st = NULL;
  skip_space(at);
  *out_any = **at != 0;
  out->len = 0;
  assay_str_append(out, "");
  while (!st && **at && !isspace((unsigned char)**at)) {
    const char* c = (*at)++;
    if (*c == '\'') {
      st = take_single(at, out);
    } else if (*c == '"') {
      st = take_double(at, out);
    } else if (*c == '$' && c[1] == '\'') {
      ++*at;
      st = take_escaped(at, out);
    } else if (*c == '\\' && c[1]) {
      if (c[1] != '\n') assay_str_append_n(out, c + 1, 1);  // a \ at a line's end joins two lines
      ++*at;
    } else {
      assay_str_append_n(out, c, 1);
    }
  }
  return st ? st : assay_str_status(out);
}

void assay_shell_line(assay_str_t* out, const char* program, int argc, char** argv) {
  assay_str_append(out, program);
  for (int i = 0; i < argc; i++) {
    assay_str_append(out, " ");
    assay_shell_word(out, argv[i]);
  }
}
