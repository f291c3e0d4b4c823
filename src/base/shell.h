// Words of a shell's command line: written for a shell that runs them or for people who paste them,
// and read again.
#ifndef ASSAY_BASE_SHELL_H_
#define ASSAY_BASE_SHELL_H_

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"

// Appends text as one word for /bin/sh: in '...', whatever it holds.
void assay_shell_quote(assay_str_t* out, const char* text);

// Appends text as one word that people paste into bash, zsh or ksh: as it is where no character of
// it means anything to a shell, else in '...'. Control characters would reach the terminal first:
// with one of them the word is $'...', with escapes.
void assay_shell_word(assay_str_t* out, const char* text);
// The same, in quotes also where none are needed.
void assay_shell_word_quoted(assay_str_t* out, const char* text);

// Reads the next word at *at, as a shell would: spaces and newlines divide words, '...', "...",
// $'...' and \ quote, and a # at a word's start begins a comment that ends with the line. Nothing
// is expanded. *out_any: whether there was one; out is emptied first. Errors: CORRUPT a quote is
// not closed.
assay_status_t assay_shell_next(const char** at, assay_str_t* out, bool* out_any) ASSAY_MUST_USE;

// A command line: the program and its arguments.
void assay_shell_line(assay_str_t* out, const char* program, int argc, char** argv);

#endif  // ASSAY_BASE_SHELL_H_
