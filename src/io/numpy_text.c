// Source: NumPy 2.4, documentation of numpy.set_printoptions, numpy.array2string and
// numpy.format_float_positional; numpy/_core/arrayprint.py for widths and wrapping.
#include "io/numpy_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"
#include "formats/format.h"

// ---- digits of one number -----------------------------------------------------------------------

enum { MAX_DIGITS = 17, PRECISION = 8, SHORT = 64, TEXT = 512 };

// |x| = 0.d0d1d2... * 10^point.
typedef struct digits {
  char at[MAX_DIGITS + 1];
  int n, point;
} digits_t;

static bool reads_back(assay_type_t type, const char* text, double x) {
  if (type == ASSAY_TYPE_DOUBLE) return strtod(text, NULL) == x;
  if (type != ASSAY_TYPE_FLOAT16) return (double)strtof(text, NULL) == x;
  return assay_format_round(ASSAY_FORMAT_FP16, strtod(text, NULL), ASSAY_OVERFLOW_IEEE) == x;
}

// As few as tell a finite number from all others of its type.
static digits_t shortest(assay_type_t type, double x) {
  digits_t d = {.n = 0};
  char text[TEXT];
  x = fabs(x);
  for (int n = 1; n <= MAX_DIGITS; n++) {
    snprintf(text, sizeof text, "%.*e", n - 1, x);
    if (reads_back(type, text, x)) break;
  }
  const char* exponent = strchr(text, 'e');
  for (const char* p = text; p < exponent; p++)
    if (*p != '.') d.at[d.n++] = *p;
  d.point = x == 0 ? 1 : atoi(exponent + 1) + 1;
  while (d.n > 1 && d.at[d.n - 1] == '0') d.n--;
  return d;
}

static void trim_zeros(char* text) {
  size_t n = strlen(text);
  while (n && text[n - 1] == '0') text[--n] = 0;
}

// "12.5", "3.": without trailing zeros, at most `max` digits after the point.
static void positional(assay_type_t type, double x, int max, char* out, size_t size) {
  const digits_t d = shortest(type, x);
  const int behind = d.n > d.point ? d.n - d.point : 0;
  if (behind > max || (behind && d.point <= 0)) {
    snprintf(out, size, "%.*f", behind > max ? max : behind, x);
    trim_zeros(out);
    return;
  }
  size_t n = 0;
  if (signbit(x)) out[n++] = '-';
  for (int i = 0; i < d.point || i < d.n; i++) {
    if (i == d.point) out[n++] = '.';
    out[n++] = i < d.n ? d.at[i] : '0';
  }
  if (d.n <= d.point) out[n++] = '.';
  out[n] = 0;
}

// "1.25e-05", "1.e+20" with `behind` digits after the point and `digits` or more of exponent.
static void scientific(double x, int behind, int digits, char* out, size_t size) {
  char text[SHORT];
  snprintf(text, sizeof text, "%.*e", behind, x);
  char* e = strchr(text, 'e');
  const char sign = e[1], *exponent = e + 2;
  *e = 0;
  snprintf(out, size, "%s%se%c%0*d", text, behind ? "" : ".", sign, digits, atoi(exponent));
}

static const char* unfinite(double x) { return isnan(x) ? "nan" : x < 0 ? "-inf" : "inf"; }

// Digits of the type that are sure: from that power of ten on numbers have exponents.
static double limit_of(assay_type_t type) {
  return type == ASSAY_TYPE_DOUBLE ? 1e8 : type == ASSAY_TYPE_FLOAT16 ? 1e3 : 1e6;
}

void assay_numpy_print_float(assay_type_t type, double x, assay_str_t* out) {
  char text[TEXT];
  const double size = fabs(x), limit = type == ASSAY_TYPE_DOUBLE ? 1e16 : limit_of(type);
  if (!isfinite(x)) {
    assay_str_append(out, unfinite(x));
    return;
  }
  if (size == 0 || (size >= 1e-4 && size < limit)) {
    positional(type, x, TEXT / 2, text, sizeof text);
    assay_str_append(out, text);
    if (text[strlen(text) - 1] == '.') assay_str_append(out, "0");
    return;
  }
  const int n = shortest(type, x).n;
  scientific(x, n - 1, 2, text, sizeof text);
  char* point = n == 1 ? strchr(text, '.') : NULL;
  if (point) memmove(point, point + 1, strlen(point));
  assay_str_append(out, text);
}

void assay_numpy_print_g(double x, int digits, assay_str_t* out) {
  if (isfinite(x))
    assay_str_printf_raw(out, "%.*g", digits, x);
  else
    assay_str_append(out, unfinite(x));
}

const char* assay_numpy_type_name(assay_type_t type) {
  return type == ASSAY_TYPE_FLOAT    ? "float32"
         : type == ASSAY_TYPE_DOUBLE ? "float64"
                                     : assay_type_name(type);
}

void assay_numpy_print_shape(int rank, const int64_t* dims, assay_str_t* out) {
  assay_str_append(out, "(");
  for (int i = 0; i < rank; i++) assay_str_printf_raw(out, "%s%" PRId64, i ? ", " : "", dims[i]);
  assay_str_append(out, rank == 1 ? ",)" : ")");
}

// ---- columns of an array ------------------------------------------------------------------------

typedef struct printer {
  const assay_numpy_array_t* a;
  const assay_numpy_style_t* style;
  assay_str_t* out;
  bool is_float, shortened;
  // Of all that is shown: widths, and what follows from them.
  bool exponents;
  int left, right, behind, exponent;  // right: after the point
  double smallest, largest;           // finite, not zero
  bool any_finite, any_other, any_minus_infinity;
  int width;    // of integers
  size_t line;  // where the line begins that is being written
} printer_t;

static void grow(int* width, size_t n) {
  if ((int)n > *width) *width = (int)n;
}

static void survey(printer_t* p, double x) {
  if (!isfinite(x)) {
    p->any_other = true;
    p->any_minus_infinity |= isinf(x) && x < 0;
    return;
  }
  p->any_finite = true;
  if (x == 0) return;
  x = fabs(x);
  if (p->smallest == 0 || x < p->smallest) p->smallest = x;
  if (x > p->largest) p->largest = x;
}

static void measure(printer_t* p, double x) {
  char text[TEXT];
  if (!isfinite(x)) return;
  if (!p->exponents) {
    positional(p->a->type, x, PRECISION, text, sizeof text);
    const char* point = strchr(text, '.');
    grow(&p->left, (size_t)(point - text));
    grow(&p->right, strlen(point + 1));
    return;
  }
  const int n = shortest(p->a->type, x).n - 1;
  scientific(x, n < PRECISION ? n : PRECISION, 2, text, sizeof text);
  char* e = strchr(text, 'e');
  grow(&p->exponent, strlen(e + 2));
  *e = 0;
  char* point = strchr(text, '.');
  trim_zeros(point);
  grow(&p->left, (size_t)(point - text));
  grow(&p->behind, strlen(point + 1));
}

static int integer_text(const printer_t* p, int64_t i, char* out, size_t size) {
  const int64_t x = p->a->i[i];
  if (p->a->type == ASSAY_TYPE_BOOL)
    return snprintf(out, size, "%s", x ? (p->a->rank ? " True" : "True") : "False");
  if (p->a->type == ASSAY_TYPE_UINT64) return snprintf(out, size, "%" PRIu64, (uint64_t)x);
  return snprintf(out, size, "%" PRId64, x);
}

// What is shown of a dimension: all, or both ends.
static int64_t leading(const printer_t* p, int64_t length) {
  return p->shortened && 2 * p->style->edge_items < length ? p->style->edge_items : -1;
}

// Calls `of` for every element that is shown.
static void each(printer_t* p, int axis, int64_t from, void (*of)(printer_t* p, int64_t i)) {
  if (axis == p->a->rank) {
    of(p, from);
    return;
  }
  const int64_t length = p->a->dims[axis], edge = leading(p, length);
  int64_t stride = 1;
  for (int k = axis + 1; k < p->a->rank; k++) stride *= p->a->dims[k];
  for (int64_t i = 0; i < length; i++) {
    if (edge > 0 && i == edge) i = length - edge;  // with no ends all are looked at
    each(p, axis + 1, from + i * stride, of);
  }
}

static void survey_at(printer_t* p, int64_t i) { survey(p, p->a->f[i]); }
static void measure_at(printer_t* p, int64_t i) { measure(p, p->a->f[i]); }
static void measure_integer(printer_t* p, int64_t i) {
  char text[32];
  grow(&p->width, (size_t)integer_text(p, i, text, sizeof text));
}

// Compared in the array's own type.
static bool needs_exponents(const printer_t* p) {
  const assay_type_t type = p->a->type;
  const assay_format_t own = type == ASSAY_TYPE_DOUBLE    ? ASSAY_FORMAT_FP64
                             : type == ASSAY_TYPE_FLOAT16 ? ASSAY_FORMAT_FP16
                                                          : ASSAY_FORMAT_FP32;
  if (p->largest == 0) return false;
  const double low = assay_format_round(own, 0.0001, ASSAY_OVERFLOW_IEEE);
  const double ratio = assay_format_round(own, p->largest / p->smallest, ASSAY_OVERFLOW_IEEE);
  return p->largest >= limit_of(type) || p->smallest < low || ratio > 1000;
}

static void settle(printer_t* p) {
  if (!p->is_float) {
    each(p, 0, 0, measure_integer);
    return;
  }
  each(p, 0, 0, survey_at);
  p->exponents = needs_exponents(p);
  each(p, 0, 0, measure_at);
  if (p->exponents) p->right = p->exponent + 2 + p->behind;
  if (p->any_other) {  // room for "nan", "inf", "-inf"
    const int need = 3 + p->any_minus_infinity - (p->right + 1);
    if (need > p->left) p->left = need;
  }
}

static void element_text(const printer_t* p, int64_t i, char* out, size_t size) {
  char text[TEXT];
  if (!p->is_float) {
    integer_text(p, i, text, sizeof text);
    snprintf(out, size, "%*s", p->width, text);
    return;
  }
  const double x = p->a->f[i];
  if (!isfinite(x)) {
    snprintf(out, size, "%*s", p->left + p->right + 1, unfinite(x));
  } else if (p->exponents) {
    scientific(x, p->behind, p->exponent, text, sizeof text);
    const int front = (int)(strchr(text, '.') - text);
    snprintf(out, size, "%*s%s", p->left > front ? p->left - front : 0, "", text);
  } else {
    positional(p->a->type, x, PRECISION, text, sizeof text);
    const char* point = strchr(text, '.');
    snprintf(out, size, "%*s%s%*s", p->left - (int)(point - text), "", text,
             p->right - (int)strlen(point + 1), "");
  }
}

// ---- lines --------------------------------------------------------------------------------------

// A word of a line: on a new one, under the first, where it would pass the line's width.
static void put_word(printer_t* p, const char* word, int depth, int64_t width) {
  const size_t used = p->out->len - p->line;
  if ((int64_t)(used + strlen(word)) > width && used > (size_t)depth) {
    while (p->out->len && p->out->text[p->out->len - 1] == ' ') p->out->len--;
    assay_str_append(p->out, "\n");
    p->line = p->out->len;
    for (int i = 0; i < depth; i++) assay_str_append(p->out, " ");
  }
  assay_str_append(p->out, word);
}

static void put_row(printer_t* p, int64_t from, int depth, int64_t width) {
  const int64_t length = p->a->dims[p->a->rank - 1], edge = leading(p, length);
  char word[TEXT + 64];
  for (int64_t i = 0; i < length; i++) {
    if (edge >= 0 && i == edge) {
      put_word(p, "...", depth, width);
      assay_str_append(p->out, " ");
      i = length - (edge ? edge : 1);
    }
    element_text(p, from + i, word, sizeof word);
    put_word(p, word, depth, width);
    if (i + 1 < length) assay_str_append(p->out, " ");
  }
}

static void new_line(printer_t* p, int axis, int depth) {
  for (int i = axis; i + 1 < p->a->rank; i++) assay_str_append(p->out, "\n");
  p->line = p->out->len;
  for (int i = 0; i < depth; i++) assay_str_append(p->out, " ");
}

// One bracket; its content is indented by `depth`, brackets before it included.
static void put_axis(printer_t* p, int axis, int64_t from) {
  const int depth = axis + 1;
  assay_str_append(p->out, "[");
  if (axis + 1 == p->a->rank) {
    put_row(p, from, depth, p->style->line_width - depth);
    assay_str_append(p->out, "]");
    return;
  }
  const int64_t length = p->a->dims[axis], edge = leading(p, length);
  int64_t stride = 1;
  for (int k = axis + 1; k < p->a->rank; k++) stride *= p->a->dims[k];
  for (int64_t i = 0; i < length; i++) {
    if (edge >= 0 && i == edge) {
      assay_str_append(p->out, "...");
      new_line(p, axis, depth);
      i = length - (edge ? edge : 1);
    }
    put_axis(p, axis + 1, from + i * stride);
    if (i + 1 < length) new_line(p, axis, depth);
  }
  assay_str_append(p->out, "]");
}

void assay_numpy_print(const assay_numpy_array_t* a, const assay_numpy_style_t* style,
                       assay_str_t* out) {
  char text[32];
  printer_t p = {.a = a, .style = style, .out = out, .is_float = a->f != NULL};
  if (!a->rank && p.is_float) {
    assay_numpy_print_float(a->type, a->f[0], out);
    return;
  }
  if (!a->rank || !a->n) {
    if (a->n) integer_text(&p, 0, text, sizeof text);
    assay_str_append(out, a->n ? text : "[]");
    return;
  }
  p.shortened = a->n > style->threshold;
  p.line = out->len;
  settle(&p);
  put_axis(&p, 0, 0);
}
