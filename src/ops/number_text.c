// Numbers as text, as Cast between strings and numbers needs them: independent of the locale.
#include "ops/number_text.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ops/math/pointwise.h"

enum { LONGEST = 1024 };  // digits beyond this do not make a number more exact

// The C locale, whatever the program that embeds Assay has set.
static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static double to_double(const char* text) {
  pthread_once(&once, make_locale);
  return c_locale ? strtod_l(text, NULL, c_locale) : strtod(text, NULL);
}

// ---- printing ----------------------------------------------------------------------------------

// n significant digits of |x|, nonzero and finite, without point; *out_exponent: x = d.ddd * 10^e.
static void digits_of(double x, int n, char* digits, int* out_exponent) {
  char text[64];
  snprintf(text, sizeof text, "%.*e", n - 1, fabs(x));
  int count = 0;
  const char* p = text;
  for (; *p != 'e'; p++)  // the decimal point may be any text
    if (*p >= '0' && *p <= '9' && count < n) digits[count++] = *p;
  digits[count] = 0;
  *out_exponent = (int)strtol(p + 1, NULL, 10);
}

// The shortest digits that are rounded back to x in the format.
static void shortest(assay_format_t format, double x, char* digits, int* out_exponent) {
  for (int n = 1; n <= 17; n++) {
    char text[64];
    digits_of(x, n, digits, out_exponent);
    snprintf(text, sizeof text, "%se%d", digits, *out_exponent - (n - 1));
    double back = assay_format_round(format, to_double(text), ASSAY_OVERFLOW_IEEE);
    if (back == fabs(x)) break;
  }
  // Trailing zeros carry nothing.
  size_t len = strlen(digits);
  while (len > 1 && digits[len - 1] == '0') digits[--len] = 0;
}

void assay_number_print(assay_type_t type, double x, char buffer[ASSAY_NUMBER_TEXT]) {
  if (isnan(x)) {
    strcpy(buffer, "NaN");
    return;
  }
  const char* sign = signbit(x) ? "-" : "";
  if (isinf(x) || x == 0) {
    snprintf(buffer, ASSAY_NUMBER_TEXT, "%s%s", sign, x == 0 ? "0.0" : "INF");
    return;
  }
  char digits[32];
  int exponent, len;
  shortest(assay_type_format(type), x, digits, &exponent);
  len = (int)strlen(digits);
  if (exponent < -4 || exponent >= 16) {
    snprintf(buffer, ASSAY_NUMBER_TEXT, "%s%c%s%se%+03d", sign, digits[0], len > 1 ? "." : "",
             digits + 1, exponent);
  } else if (exponent < 0) {
    snprintf(buffer, ASSAY_NUMBER_TEXT, "%s0.%.*s%s", sign, -exponent - 1, "000", digits);
  } else if (len <= exponent + 1) {
    snprintf(buffer, ASSAY_NUMBER_TEXT, "%s%s%.*s.0", sign, digits, exponent + 1 - len,
             "0000000000000000");
  } else {
    snprintf(buffer, ASSAY_NUMBER_TEXT, "%s%.*s.%s", sign, exponent + 1, digits,
             digits + exponent + 1);
  }
}

// ---- parsing -----------------------------------------------------------------------------------

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static assay_string_t trimmed(assay_string_t s) {
  while (s.len && isspace((unsigned char)s.text[0])) s.text++, s.len--;
  while (s.len && isspace((unsigned char)s.text[s.len - 1])) s.len--;
  return s;
}

static size_t skip_digits(assay_string_t s, size_t i) {
  while (i < s.len && is_digit(s.text[i])) i++;
  return i;
}

// [digits][.digits][e[+-]digits], with a digit before the exponent, from position i to the end.
static bool is_decimal(assay_string_t s, size_t i) {
  size_t first = i, n_digits;
  i = skip_digits(s, i);
  n_digits = i - first;
  if (i < s.len && s.text[i] == '.') {
    first = ++i;
    i = skip_digits(s, i);
    n_digits += i - first;
  }
  if (!n_digits) return false;
  if (i < s.len && (s.text[i] == 'e' || s.text[i] == 'E')) {
    i++;
    if (i < s.len && (s.text[i] == '+' || s.text[i] == '-')) i++;
    first = i;
    i = skip_digits(s, i);
    if (i == first) return false;
  }
  return i == s.len;
}

static bool is_word(assay_string_t s, size_t i, const char* word) {
  return s.len - i == strlen(word) && strncasecmp(s.text + i, word, s.len - i) == 0;
}

bool assay_number_parse(assay_string_t text, double* out) {
  assay_string_t s = trimmed(text);
  if (!s.len) return false;
  bool negative = s.text[0] == '-';
  size_t i = negative || s.text[0] == '+' ? 1 : 0;
  if (is_word(s, i, "inf") || is_word(s, i, "infinity")) {
    *out = negative ? -(double)INFINITY : (double)INFINITY;
    return true;
  }
  if (is_word(s, i, "nan")) {
    *out = (double)NAN;
    return true;
  }
  char copy[LONGEST + 1];
  if (s.len > LONGEST || !is_decimal(s, i)) return false;
  memcpy(copy, s.text, s.len);
  copy[s.len] = 0;
  *out = to_double(copy);
  return true;
}

bool assay_integer_parse(assay_string_t text, int64_t* out) {
  assay_string_t s = trimmed(text);
  if (!s.len) return false;
  bool negative = s.text[0] == '-';
  size_t i = negative || s.text[0] == '+' ? 1 : 0;
  if (i == s.len || skip_digits(s, i) != s.len) return false;
  uint64_t value = 0;
  for (; i < s.len; i++) {
    uint64_t digit = (uint64_t)(s.text[i] - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  if (negative && value > UINT64_C(1) << 63) return false;
  *out = assay_as_i64(negative ? -value : value);
  return true;
}
