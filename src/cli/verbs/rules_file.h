// Files with rules of layers: what `--layer-precision @FILE` and `--fix-file FILE` read.
#ifndef ASSAY_CLI_VERBS_RULES_FILE_H_
#define ASSAY_CLI_VERBS_RULES_FILE_H_

#include "base/str.h"

// Reads one of two kinds. Rules: 'PATTERN:FORMAT,...' in one line or several, with comments (#). Or
// options as a shell reads them, the first of which begins with --, such as check and tune write:
// --layer-precision and --precision are taken, those of trtexec passed over.
//   rules      appended to, with ','
//   precision  set, unless it is there already
// Errors: CORRUPT anything else, nothing in it, or another precision than was there; those of
// reading a file.
assay_status_t cli_rules_file_read(const char* path, assay_str_t* rules,
                                   assay_str_t* precision) ASSAY_MUST_USE;

// Of such options those of trtexec: words, each with a NUL after it.
// Errors: CORRUPT it has none, or other options; those of reading a file.
assay_status_t cli_rules_file_trtexec(const char* path, assay_str_t* words) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_VERBS_RULES_FILE_H_
