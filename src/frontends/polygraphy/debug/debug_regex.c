// Regular expressions of Python's `re`, as far as POSIX can say the same.
#include <string.h>

#include "base/shown.h"
#include "frontends/polygraphy/debug/debug_check.h"

// What stands for a class of Python's, within brackets; of capital letters, all but that.
static const char* class_of(char letter) {
  switch (letter) {
    case 'd':
    case 'D':
      return "0-9";
    case 'w':
    case 'W':
      return "[:alnum:]_";
    case 's':
    case 'S':
      return "[:space:]";
    default:
      return NULL;
  }
}

static const char* control_of(char letter) {
  return letter == 'n' ? "\n" : letter == 't' ? "\t" : letter == 'r' ? "\r" : NULL;
}

static assay_status_t refuse(const char* python, const char* what) {
  return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "--fail-regex '%s': %s is not there; what is: POSIX extended expressions, and "
                     "\\d \\w \\s \\b (?:...) (?i)",
                     python, what);
}

// A member that is an escape: adds it, *at stands after. ']', '^' and '-' mean themselves only in
// places of their own, which `close` and `hyphen` keep for the end.
static assay_status_t put_escaped_member(const char* python, const char** at, assay_str_t* out,
                                         bool* close, bool* caret, bool* hyphen) {
  const char c = (*at)[1];
  *at += c ? 2 : 1;
  if (class_of(c)) {
    if (c == 'D' || c == 'W' || c == 'S') return refuse(python, "\\D, \\W or \\S within brackets");
    assay_str_append(out, class_of(c));
  } else if (control_of(c)) {
    assay_str_append(out, control_of(c));
  } else if (c == ']') {
    *close = true;
  } else if (c == '^') {
    *caret = true;
  } else if (c == '-') {
    *hyphen = true;
  } else if (c) {
    assay_str_append_n(out, &c, 1);
  }
  return NULL;
}

// "[...]", from its '[' on: in POSIX a '\' within is a member like others; ']' has to come first,
// '-' last.
static assay_status_t put_brackets(const char* python, const char** at, assay_str_t* out) {
  assay_str_t members = {0};
  bool close = false, caret = false, hyphen = false;
  const char* p = *at + 1;
  const bool negated = *p == '^';
  assay_status_t st = NULL;
  p += negated;
  for (bool first = true; !st && *p && (first || *p != ']'); first = false) {
    if (*p == '\\') {
      st = put_escaped_member(python, &p, &members, &close, &caret, &hyphen);
    } else if (*p == ']' || (*p == '^' && !members.len)) {
      close |= *p == ']';
      caret |= *p++ == '^';
    } else if (*p == '[' && p[1] == ':') {  // [[:alpha:]], as POSIX has it
      const char* end = strstr(p, ":]");
      const size_t n = end ? (size_t)(end - p) + 2 : 1;
      assay_str_append_n(&members, p, n);
      p += n;
    } else {
      assay_str_append_n(&members, p++, 1);
    }
  }
  if (!st && !*p)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--fail-regex '%s': a '[' is not closed", python);
  if (!st && !members.len && caret && !close && !hyphen && !negated)
    assay_str_append(out, "\\^");  // "[^]" would be something else
  else if (!st)
    assay_str_printf_raw(out, "[%s%s%s%s%s]", negated ? "^" : "", close ? "]" : "",
                         assay_str_get(&members), caret ? "^" : "", hyphen ? "-" : "");
  *at = *p ? p + 1 : p;
  if (!st) st = assay_str_status(&members);
  assay_str_deinit(&members);
  return st;
}

static assay_status_t put_escape(const char* python, const char** at, assay_str_t* out) {
  const char c = (*at)[1];
  if (!c) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--fail-regex '%s' ends with a '\\'", python);
  *at += 2;
  if (class_of(c))
    assay_str_printf_raw(out, "[%s%s]", c >= 'A' && c <= 'Z' ? "^" : "", class_of(c));
  else if (control_of(c))
    assay_str_append(out, control_of(c));
  else if (c == 'A' || c == 'Z')
    return refuse(python, "\\A or \\Z");
  else if ((c >= 'a' && c <= 'z' && c != 'b') || (c >= 'A' && c <= 'Z' && c != 'B'))
    return refuse(python, "this escape");
  else
    assay_str_printf_raw(out, "\\%c", c);
  return NULL;
}

assay_status_t pg_regex_translate(const char* python, assay_str_t* out, bool* out_fold) {
  const char* p = python;
  *out_fold = strncmp(p, "(?i)", 4) == 0;
  if (*out_fold) p += 4;
  while (*p) {
    if (*p == '\\') {
      ASSAY_TRY(put_escape(python, &p, out));
    } else if (*p == '[') {
      ASSAY_TRY(put_brackets(python, &p, out));
    } else if (p[0] == '(' && p[1] == '?') {
      if (p[2] != ':') return refuse(python, "(?...)");
      assay_str_append(out, "(");
      p += 3;
    } else {
      const char c = *p++;
      assay_str_append_n(out, &c, 1);
      // Lazy or not: what is asked is only whether it matches.
      if (strchr("*+?}", c) && *p == '?') p++;
    }
  }
  return assay_str_status(out);
}

assay_status_t pg_regex_compile(const char* python, regex_t* out) {
  assay_str_t posix = {0};
  bool fold;
  assay_status_t st = pg_regex_translate(python, &posix, &fold);
  if (!st) {
    const int flags = REG_EXTENDED | REG_NOSUB | REG_NEWLINE | (fold ? REG_ICASE : 0);
    const int e = regcomp(out, assay_str_get(&posix), flags);
    char why[128] = "";
    if (e) regerror(e, out, why, sizeof why);
    if (e) st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--fail-regex '%s': %s", python, why);
  }
  assay_str_deinit(&posix);
  return st;
}
