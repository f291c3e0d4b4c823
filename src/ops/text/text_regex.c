// Regular expressions in the syntax of RE2, which is what ONNX's text operators are defined by.
#include "ops/text/text_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "base/str.h"

enum {
  MAX_REPEAT = 1000,       // RE2's own limit
  MAX_NESTING = 250,       // of groups
  MATCH_STEPS = 10000000,  // calls inside one match
  MATCH_HEAP_KIB = 64 << 10,
  WORKSPACE = 1 << 10,  // of the automaton, at first
  MAX_WORKSPACE = 1 << 22,
};

struct assay_regex {
  pcre2_code* code;
  pcre2_match_data* match;
  pcre2_match_context* limits;
  int* workspace;
  size_t n_workspace;
};

// ---- from RE2's syntax to PCRE2's ---------------------------------------------------------------

typedef struct translator {
  const char *p, *end, *start;
  assay_str_t out;
  int depth;
  bool can_repeat;  // something that may be repeated stands before
} translator_t;

static assay_status_t bad(const translator_t* t, const char* what) {
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "pattern '%.*s', position %zu: %s",
                     (int)(t->end - t->start > 200 ? 200 : t->end - t->start), t->start,
                     (size_t)(t->p - t->start), what);
}

static bool looking_at(const translator_t* t, const char* text) {
  size_t n = strlen(text);
  return (size_t)(t->end - t->p) >= n && memcmp(t->p, text, n) == 0;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// \Q...\E: everything in between is meant literally.
static void quoted(translator_t* t) {
  for (t->p += 2; t->p < t->end && !looking_at(t, "\\E"); t->p++) {
    unsigned char ch = (unsigned char)*t->p;
    if (ch < 0x80 && ch > 0x20 && !is_digit(*t->p) && !((ch | 32) >= 'a' && (ch | 32) <= 'z'))
      assay_str_append(&t->out, "\\");
    assay_str_append_n(&t->out, t->p, 1);
  }
  if (t->p < t->end) t->p += 2;
}

// An escape at t->p; in_class: within [...].
static assay_status_t escape(translator_t* t, bool in_class) {
  static const char same[] = "adDwWfnrt";  // one meaning in both
  if (t->end - t->p < 2) return bad(t, "a backslash stands at the end");
  char ch = t->p[1];
  if (ch == 'Q') return quoted(t), NULL;
  if (ch == 's' || ch == 'S') {
    // RE2's \s does not hold the vertical tab.
    const char* set = ch == 's' ? "\\t\\n\\f\\r " : "\\x00-\\x08\\x0b\\x0e-\\x1f!-\\x{10ffff}";
    assay_str_printf_raw(&t->out, in_class ? "%s" : "[%s]", set);
    t->p += 2;
  } else if (ch == 'v') {
    assay_str_append(&t->out, "\\x0b");
    t->p += 2;
  } else if (ch == 'p' || ch == 'P' || ch == 'x') {
    const char* stop = t->p + 2;
    if (stop < t->end && *stop == '{') {
      while (stop < t->end && *stop != '}') stop++;
      if (stop == t->end) return bad(t, "'}' is missing after an escape");
    } else if (ch == 'x') {
      stop++;
    }
    if (stop >= t->end) return bad(t, "an escape is not complete");
    assay_str_append_n(&t->out, t->p, (size_t)(stop + 1 - t->p));
    t->p = stop + 1;
  } else if (is_digit(ch)) {
    // Octal: \0, \01, \012, \123. Other digits would be back references, which RE2 has not.
    size_t n = 1;
    while (n < 3 && t->p + 1 + n < t->end && t->p[1 + n] >= '0' && t->p[1 + n] <= '7') n++;
    if (ch != '0' && (ch > '7' || n < 3)) return bad(t, "back references are not in RE2's syntax");
    int value = 0;
    for (size_t i = 0; i < n; i++) value = value * 8 + (t->p[1 + i] - '0');
    assay_str_printf_raw(&t->out, "\\x{%x}", (unsigned)value);
    t->p += 1 + n;
  } else if (strchr(same, ch) && ch) {
    assay_str_append_n(&t->out, t->p, 2);
    t->p += 2;
  } else if (!in_class && (ch == 'b' || ch == 'B' || ch == 'A' || ch == 'z')) {
    assay_str_append_n(&t->out, t->p, 2);
    t->p += 2;
  } else if ((unsigned char)ch < 0x80 && !((ch | 32) >= 'a' && (ch | 32) <= 'z') && ch != '_') {
    assay_str_append_n(&t->out, t->p, 2);  // punctuation stands for itself
    t->p += 2;
  } else {
    return bad(t, "an escape is not in RE2's syntax");
  }
  return NULL;
}

static assay_status_t class_(translator_t* t) {
  assay_str_append(&t->out, "[");
  t->p++;
  if (t->p < t->end && *t->p == '^') {
    assay_str_append(&t->out, "^");
    t->p++;
  }
  for (bool first = true;; first = false) {
    if (t->p >= t->end) return bad(t, "']' is missing");
    if (*t->p == ']' && !first) break;
    if (*t->p == '\\') {
      ASSAY_TRY(escape(t, true));
    } else if (looking_at(t, "[:")) {
      const char* stop = t->p + 2;
      while (stop + 1 < t->end && !(stop[0] == ':' && stop[1] == ']')) stop++;
      if (stop + 1 >= t->end) return bad(t, "':]' is missing");
      assay_str_append_n(&t->out, t->p, (size_t)(stop + 2 - t->p));
      t->p = stop + 2;
    } else {
      if (*t->p == '[' || *t->p == ']') assay_str_append(&t->out, "\\");
      assay_str_append_n(&t->out, t->p++, 1);
    }
  }
  assay_str_append(&t->out, "]");
  t->p++;
  return NULL;
}

// "(?..." of RE2: (?:  (?P<name>  (?<name>  (?flags)  (?flags:  with flags i m s U and -.
static assay_status_t group(translator_t* t) {
  if (looking_at(t, "(*")) return bad(t, "nothing stands before '*'");
  if (++t->depth > MAX_NESTING) return bad(t, "groups are nested too deeply");
  const char* stop = t->p + 1;
  if (looking_at(t, "(?")) {
    stop = t->p + 2;
    if (looking_at(t, "(?P<") ||
        (looking_at(t, "(?<") && !looking_at(t, "(?<=") && !looking_at(t, "(?<!"))) {
      while (stop < t->end && *stop != '>') stop++;
    } else {
      while (stop < t->end && *stop && strchr("imsU-", *stop)) stop++;
      if (stop < t->end && *stop != ':' && *stop != ')') stop = t->end;
    }
    if (stop >= t->end) return bad(t, "a group '(?' is not in RE2's syntax");
    if (*stop == ')') t->depth--;  // flags up to the end of the group around
    t->can_repeat = false;
    assay_str_append_n(&t->out, t->p, (size_t)(stop + 1 - t->p));
    t->p = stop + 1;
    return NULL;
  }
  t->can_repeat = false;
  assay_str_append_n(&t->out, t->p, 1);
  t->p++;
  return NULL;
}

// The end of a counted repeat {n}, {n,} or {n,m} at t->p; NULL if it is none, and so literal.
static const char* counted(const translator_t* t, int* out_max) {
  const char* p = t->p + 1;
  int n[2] = {-1, -1};
  for (int k = 0; k < 2; k++) {
    for (; p < t->end && is_digit(*p); p++)
      if (n[k] <= MAX_REPEAT) n[k] = (n[k] < 0 ? 0 : n[k]) * 10 + (*p - '0');
    if (p < t->end && *p == ',' && k == 0) {
      p++;
      continue;
    }
    break;
  }
  if (n[0] < 0 || p >= t->end || *p != '}') return NULL;
  *out_max = n[0] > n[1] ? n[0] : n[1];
  return p + 1;
}

static assay_status_t repeat(translator_t* t, const char* stop) {
  if (!t->can_repeat) return bad(t, "nothing stands before a repetition, or another repetition");
  if (stop < t->end && *stop == '?') stop++;
  assay_str_append_n(&t->out, t->p, (size_t)(stop - t->p));
  t->p = stop;
  t->can_repeat = false;
  return NULL;
}

static assay_status_t translate(translator_t* t) {
  while (t->p < t->end) {
    const char* stop = NULL;
    int max = 0;
    switch (*t->p) {
      case '\\':
        ASSAY_TRY(escape(t, false));
        t->can_repeat = true;
        break;
      case '[':
        ASSAY_TRY(class_(t));
        t->can_repeat = true;
        break;
      case '(':
        ASSAY_TRY(group(t));
        break;
      case ')':
        if (--t->depth < 0) return bad(t, "')' without '('");
        assay_str_append_n(&t->out, t->p++, 1);
        t->can_repeat = true;
        break;
      case '|':
        assay_str_append_n(&t->out, t->p++, 1);
        t->can_repeat = false;
        break;
      case '*':
      case '+':
      case '?':
        ASSAY_TRY(repeat(t, t->p + 1));
        break;
      case '{':
        stop = counted(t, &max);
        if (stop) {
          if (max > MAX_REPEAT)
            return bad(t, "a repetition of more than 1000 is not in RE2's syntax");
          ASSAY_TRY(repeat(t, stop));
          break;
        }
        assay_str_append(&t->out, "\\{");
        t->p++;
        t->can_repeat = true;
        break;
      default:
        if (!*t->p) {
          assay_str_append(&t->out, "\\x00");
          t->p++;
        } else {
          // A whole character, so that a repetition after it repeats it all.
          assay_str_append_n(&t->out, t->p++, 1);
          while (t->p < t->end && ((unsigned char)*t->p & 0xC0) == 0x80)
            assay_str_append_n(&t->out, t->p++, 1);
        }
        t->can_repeat = true;
    }
  }
  return t->depth ? bad(t, "')' is missing") : NULL;
}

// ---- compiling and matching --------------------------------------------------------------------

static assay_status_t compile(assay_regex_t* r, const char* pattern, size_t len, const char* given,
                              size_t given_len) {
  int code = 0;
  PCRE2_SIZE where = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(NULL);
  if (!context) return assay_status_no_memory();
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context, MAX_NESTING);
  // $ means the end of the text only; possessive repeats are pointless for the automaton.
  r->code = pcre2_compile(
      (PCRE2_SPTR)pattern, len,
      PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_POSSESS | PCRE2_NEVER_BACKSLASH_C, &code,
      &where, context);
  pcre2_compile_context_free(context);
  if (!r->code) {
    PCRE2_UCHAR text[128] = "";
    pcre2_get_error_message(code, text, sizeof text);
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "pattern '%.*s': %s",
                       (int)(given_len > 200 ? 200 : given_len), given, (char*)text);
  }
  r->match = pcre2_match_data_create(1, NULL);
  r->limits = pcre2_match_context_create(NULL);
  if (!r->match || !r->limits) return assay_status_no_memory();
  pcre2_set_match_limit(r->limits, MATCH_STEPS);
  pcre2_set_heap_limit(r->limits, MATCH_HEAP_KIB);
  r->n_workspace = WORKSPACE;
  return assay_new_array(r->n_workspace, sizeof *r->workspace, &r->workspace);
}

assay_status_t assay_regex_create(const char* pattern, size_t len, assay_regex_t** out) {
  translator_t t = {.p = pattern, .end = pattern + len, .start = pattern};
  assay_regex_t* r = NULL;
  assay_status_t st = translate(&t);
  if (!st) st = assay_str_status(&t.out);
  if (!st) st = ASSAY_NEW(&r);
  if (!st) st = compile(r, assay_str_get(&t.out), t.out.len, pattern, len);
  assay_str_deinit(&t.out);
  if (st) return assay_regex_destroy(r), st;
  *out = r;
  return NULL;
}

void assay_regex_destroy(assay_regex_t* r) {
  if (!r) return;
  pcre2_code_free(r->code);
  pcre2_match_data_free(r->match);
  pcre2_match_context_free(r->limits);
  assay_free(r->workspace);
  assay_free(r);
}

static assay_status_t run(assay_regex_t* r, const char* text, size_t len, size_t from,
                          uint32_t options, bool* out_found) {
  for (;;) {
    int rc = pcre2_dfa_match(r->code, (PCRE2_SPTR)(text ? text : ""), len, from, options, r->match,
                             r->limits, r->workspace, r->n_workspace);
    // 0: more matches of other lengths than fit; the longest is there.
    *out_found = rc >= 0;
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH) return NULL;
    if (rc <= PCRE2_ERROR_UTF8_ERR1 && rc >= PCRE2_ERROR_UTF8_ERR21) return NULL;
    if ((rc == PCRE2_ERROR_DFA_WSSIZE || rc == PCRE2_ERROR_DFA_RECURSE) &&
        r->n_workspace < MAX_WORKSPACE) {
      assay_free(r->workspace);
      r->workspace = NULL;
      ASSAY_TRY(assay_new_array(4 * r->n_workspace, sizeof *r->workspace, &r->workspace));
      r->n_workspace *= 4;
      continue;
    }
    if (rc == PCRE2_ERROR_NOMEMORY) return assay_status_no_memory();
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the regular expression takes too many steps on a text of %zu bytes (PCRE2 "
                       "error %d)",
                       len, rc);
  }
}

assay_status_t assay_regex_full_match(assay_regex_t* r, const char* text, size_t len, bool* out) {
  return run(r, text, len, 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED, out);
}

assay_status_t assay_regex_search(assay_regex_t* r, const char* text, size_t len, size_t from,
                                  bool* out_found, size_t* out_start, size_t* out_end) {
  ASSAY_TRY(run(r, text, len, from, 0, out_found));
  if (!*out_found) return NULL;
  const PCRE2_SIZE* at = pcre2_get_ovector_pointer(r->match);
  *out_start = at[0];
  *out_end = at[1];
  return NULL;
}
