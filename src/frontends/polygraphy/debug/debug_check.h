// The check of an iteration: a command that says whether what was made is good.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_CHECK_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_CHECK_H_

#include <regex.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/str.h"

// How a command ended, and what it printed. A NUL in it is a space here.
typedef struct pg_ended {
  int status;  // the exit status; -N: ended by signal N
  assay_str_t out, err;
} pg_ended_t;
void pg_ended_deinit(pg_ended_t* e);

// Runs a command (NULL after its words), found in PATH, without a shell, and waits for its end. It
// reads what this program would.
// Errors: NOT_FOUND there is no such program; DEVICE it could not be started.
assay_status_t pg_command_run(const char* const* words, pg_ended_t* out) ASSAY_MUST_USE;

// What counts as a failure.
typedef struct pg_judge {
  const int* codes;  // of --fail-code or --ignore-fail-code
  size_t n_codes;
  bool ignore;       // `codes` are those that pass
  regex_t* regexes;  // of --fail-regex, compiled
  size_t n_regexes;
} pg_judge_t;
bool pg_judge_passes(const pg_judge_t* j, const pg_ended_t* e);
void pg_judge_deinit(pg_judge_t* j);

// A regular expression as Python's `re` writes it, as a POSIX extended one: \d \w \s \D \W \S (also
// within brackets), (?:...), lazy quantifiers, \n and \t. *out_fold: it began with (?i).
// Errors: UNSUPPORTED what POSIX has not, such as (?=...); INVALID_ARGUMENT a '[' that is not
// closed.
assay_status_t pg_regex_translate(const char* python, assay_str_t* out,
                                  bool* out_fold) ASSAY_MUST_USE;
assay_status_t pg_regex_compile(const char* python, regex_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_CHECK_H_
