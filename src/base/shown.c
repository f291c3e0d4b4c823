// Text without control characters: what may be shown, how the rest is written, and a printf of it.
#include "base/shown.h"

#include <stdlib.h>
#include <string.h>

// ---- characters ---------------------------------------------------------------------------------

// The character of UTF-8 at s, or its length 0 where the bytes are none.
static size_t decode(const unsigned char* s, size_t n, uint32_t* out) {
  static const uint32_t min[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  if (!length || s[0] > 0xf4 || length > n) return 0;
  uint32_t code = length == 1 ? s[0] : s[0] & (0x7fu >> length);
  for (size_t i = 1; i < length; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    code = code << 6 | (s[i] & 0x3fu);
  }
  if (code < min[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
  *out = code;
  return length;
}

static bool is_hidden(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

size_t assay_char_length(const char* text, size_t n, bool* out_hidden, uint32_t* out_code) {
  uint32_t code = (unsigned char)*text;
  const size_t length = decode((const unsigned char*)text, n, &code);
  *out_hidden = !length || is_hidden(code);
  if (out_code) *out_code = code;
  return length ? length : 1;
}

size_t assay_char_shown(const char* text, size_t n, char out[8]) {
  bool hidden;
  uint32_t code;
  const size_t length = assay_char_length(text, n, &hidden, &code);
  if (hidden)
    snprintf(out, 8, length == 1 ? "\\x%02x" : "\\u%04x", (unsigned)code & 0xffffu);
  else
    snprintf(out, 8, "%.*s", (int)length, text);
  return length;
}

// ---- strings ------------------------------------------------------------------------------------

static bool breaks(char c) { return c == '\n' || c == '\t'; }

static void append(assay_str_t* s, const char* text, size_t n, bool lines) {
  size_t from = 0, length;
  for (size_t at = 0; at < n; at += length) {
    bool hidden;
    char shown[8];
    length = assay_char_length(text + at, n - at, &hidden, NULL);
    if (!hidden || (lines && breaks(text[at]))) continue;
    assay_char_shown(text + at, n - at, shown);
    assay_str_append_n(s, text + from, at - from);
    assay_str_append(s, shown);
    from = at + length;
  }
  assay_str_append_n(s, text + from, n - from);
}

void assay_str_shown_n(assay_str_t* s, const char* text, size_t n) { append(s, text, n, false); }
void assay_str_shown(assay_str_t* s, const char* text) { append(s, text, strlen(text), false); }

// ---- formats ------------------------------------------------------------------------------------

static size_t count_hidden(const char* text, size_t n) {
  size_t count = 0;
  bool hidden;
  for (size_t at = 0; at < n; count += hidden)
    at += assay_char_length(text + at, n - at, &hidden, NULL);
  return count;
}

// One conversion of a format, with its '%': its width and precision (-1: none), how long a number
// it takes and of what kind it is.
typedef struct spec {
  char text[32];
  bool left, lines;
  int width, precision;
  char size;  // 'H' for hh, 'L' for ll, else the letter itself, or 0
  char kind;
} spec_t;

static int take_number(const char** at) {
  char* end;
  const long value = strtol(*at, &end, 10);
  *at = end;
  return (int)value;
}

// The arguments that are left; in a struct, since a va_list that is an array cannot be handed on by
// address from a parameter.
typedef struct rest {
  va_list args;
} rest_t;

static const char* take_spec(const char* at, rest_t* rest, spec_t* out) {
  const char* begin = at++;
  *out = (spec_t){.precision = -1, .lines = strncmp(begin, ASSAY_LINES, strlen(ASSAY_LINES)) == 0};
  for (; *at && strchr("-+ #0", *at); at++) out->left |= *at == '-';
  const size_t flags = (size_t)(at - begin);
  if (*at == '*') {
    out->width = va_arg(rest->args, int);
    at++;
  } else {
    out->width = take_number(&at);
  }
  if (out->width < 0) {
    out->left = true;
    out->width = -out->width;
  }
  if (*at == '.') {
    at++;
    if (*at == '*') {
      out->precision = va_arg(rest->args, int);
      at++;
    } else {
      out->precision = take_number(&at);
    }
  }
  const char* size = at;
  while (*at && strchr("hlLjzt", *at)) at++;
  if (at > size) out->size = *size;
  if (at - size == 2) out->size = *size == 'h' ? 'H' : 'L';
  out->kind = *at;
  // The same conversion with a '*' for each of the two numbers.
  snprintf(out->text, sizeof out->text, "%.*s%s*.*%.*s%c", (int)flags, begin,
           out->left && !memchr(begin, '-', flags) ? "-" : "", (int)(at - size), size, *at);
  return *at ? at + 1 : at;
}

static void put_spaces(assay_str_t* s, int n) {
  if (n > 0) assay_str_printf_raw(s, "%*s", n, "");
}

static void put_string(assay_str_t* s, const spec_t* p, const char* text) {
  if (!text) text = "(null)";
  const size_t n = p->precision < 0 ? strlen(text) : strnlen(text, (size_t)p->precision);
  assay_str_t shown = {0};
  append(&shown, text, n, p->lines);
  const int capacity = shown.len < (size_t)p->width ? p->width - (int)shown.len : 0;
  if (!p->left) put_spaces(s, capacity);
  assay_str_append(s, assay_str_get(&shown));
  if (p->left) put_spaces(s, capacity);
  s->failed |= shown.failed;
  assay_str_deinit(&shown);
}

static void put_number(assay_str_t* s, const spec_t* p, rest_t* rest) {
#define PUT(type) assay_str_printf_raw(s, p->text, p->width, p->precision, va_arg(rest->args, type))
  if (strchr("aAeEfFgG", p->kind)) {
    if (p->size == 'L')
      PUT(long double);
    else
      PUT(double);
    return;
  }
  if (p->kind == 'p') {
    PUT(void*);
    return;
  }
  switch (p->size) {
    case 'l':
      PUT(long);
      return;
    case 'L':
      PUT(long long);
      return;
    case 'j':
      PUT(intmax_t);
      return;
    case 'z':
      PUT(size_t);
      return;
    case 't':
      PUT(ptrdiff_t);
      return;
    default:
      PUT(int);
  }
#undef PUT
}

// Conversion by conversion: only texts with something to hide come here.
static void put_each(assay_str_t* s, const char* format, rest_t* rest) {
  while (*format) {
    const size_t n = strcspn(format, "%");
    assay_str_append_n(s, format, n);
    format += n;
    if (!*format) return;
    spec_t p;
    format = take_spec(format, rest, &p);
    if (p.kind == '%') {
      assay_str_append(s, "%");
    } else if (p.kind == 's') {
      put_string(s, &p, va_arg(rest->args, const char*));
    } else if (p.kind == 'c') {
      const char c = (char)va_arg(rest->args, int);
      assay_str_append_n(s, &c, 1);
    } else {
      put_number(s, &p, rest);
    }
  }
}

void assay_str_vprintf(assay_str_t* s, const char* format, va_list args) {
  rest_t rest;
  va_copy(rest.args, args);
  const size_t before = s->len;
  assay_str_vprintf_raw(s, format, args);
  // The usual case: nothing is hidden but what the format itself holds.
  if (s->len > before &&
      count_hidden(s->text + before, s->len - before) != count_hidden(format, strlen(format))) {
    s->len = before;
    s->text[before] = 0;
    put_each(s, format, &rest);
  }
  va_end(rest.args);
}

void assay_str_printf(assay_str_t* s, const char* format, ...) {
  va_list args;
  va_start(args, format);
  assay_str_vprintf(s, format, args);
  va_end(args);
}

// ---- streams ------------------------------------------------------------------------------------

void assay_vprint(FILE* out, const char* format, va_list args) {
  assay_str_t text = {0};
  assay_str_vprintf(&text, format, args);
  fputs(text.failed ? "(out of memory)\n" : assay_str_get(&text), out);
  assay_str_deinit(&text);
}

void assay_print(FILE* out, const char* format, ...) {
  va_list args;
  va_start(args, format);
  assay_vprint(out, format, args);
  va_end(args);
}
