// How text that others chose (names, paths, options) is shown: with no control character in it.
//
// Names come from files. One that holds an escape sequence or a line break could clear what a
// terminal shows or print a verdict of its own, so assay_str_printf() and assay_print() write each
// string that they are given as assay_str_shown() does. Bytes that have to stay what they are (a
// path, a key, a name that a model gets) are put together with assay_str_printf_raw().
#ifndef ASSAY_BASE_SHOWN_H_
#define ASSAY_BASE_SHOWN_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

// In a format of the functions below and of assay_str_printf(): lines that were put together by
// them before. Their line breaks and tabs stay; anywhere else %s shows them as \x0a and \x09.
#define ASSAY_LINES "%-s"

// The length of the character that begins a text of n > 0 bytes. *out_hidden: whether it may not be
// shown: C0, DEL, C1 (U+0080 to U+009F), U+2028, U+2029, what turns the direction of text (U+202A
// to U+202E, U+2066 to U+2069), or a byte that is not UTF-8 (of length 1). out_code may be NULL.
size_t assay_char_length(const char* text, size_t n, bool* out_hidden, uint32_t* out_code);

// Writes the character as it is shown, with a NUL; returns its length in the text. n > 0.
size_t assay_char_shown(const char* text, size_t n, char out[8]);

// Appends a text with such characters as \x1b or \u202e. What was shown so shows as itself again.
void assay_str_shown(assay_str_t* s, const char* text);
void assay_str_shown_n(assay_str_t* s, const char* text, size_t n);

// assay_str_printf() with a list of arguments.
void assay_str_vprintf(assay_str_t* s, const char* format, va_list args) ASSAY_PRINTF(2, 0);
// As printf() would: strings stay what they are.
void assay_str_printf_raw(assay_str_t* s, const char* format, ...) ASSAY_PRINTF(2, 3);
void assay_str_vprintf_raw(assay_str_t* s, const char* format, va_list args) ASSAY_PRINTF(2, 0);

// To a stream, as assay_str_printf() writes.
void assay_print(FILE* out, const char* format, ...) ASSAY_PRINTF(2, 3);
void assay_vprint(FILE* out, const char* format, va_list args) ASSAY_PRINTF(2, 0);

#endif  // ASSAY_BASE_SHOWN_H_
