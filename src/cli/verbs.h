// All verbs of the program, for what goes over them: main, completion, manual.
#ifndef ASSAY_CLI_VERBS_H_
#define ASSAY_CLI_VERBS_H_

#include "cli/cli.h"

// Families of verbs of two words, such as "debug precision".
typedef struct family {
  const char *name, *summary;
} family_t;

// Command lines of other programs, which are read as those read them.
typedef struct completion completion_t;  // completion.h
typedef struct front {
  const char *name, *summary;
  int (*run)(int argc, char** argv);
  assay_status_t (*complete)(completion_t* out);  // adds what completion scripts are to know
} front_t;

extern const verb_t* const assay_cli_verbs[];  // ends with NULL
extern const family_t assay_cli_families[];    // these two end with a row without name
extern const front_t assay_cli_fronts[];       // frontends/fronts.c

// The second word of a verb of this family; NULL: it is of another one, or of none.
const char* assay_cli_second_word(const verb_t* verb, const char* family);
// The verb of this name ("check", "debug precision"); NULL: there is none.
const verb_t* assay_cli_find_verb(const char* name);

// What an argument's value may be: words with ' ' between, appended to *out, or a file.
typedef enum value_kind { VALUE_WORDS, VALUE_FILE, VALUE_ANY } value_kind_t;
value_kind_t assay_cli_value_words(const verb_t* verb, const opt_t* option, assay_str_t* out);

// A row of the table after it; tests hold the rows against the options.
typedef struct value_row {
  const char* verb;    // NULL: any
  const char* option;  // name of an option, or what its value is called
  const char* words;
} value_row_t;
extern const value_row_t assay_cli_value_rows[];  // ends with a row without option

// Appends a completion script for a shell ("bash"). INVALID_ARGUMENT: that shell is not known.
assay_status_t assay_cli_completion(const char* shell, assay_str_t* out) ASSAY_MUST_USE;
// Append a manual page: of the program, or of a verb.
void assay_cli_manual(assay_str_t* out);
void assay_cli_manual_verb(const verb_t* verb, assay_str_t* out);

#endif  // ASSAY_CLI_VERBS_H_
