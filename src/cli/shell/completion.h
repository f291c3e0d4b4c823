// What completion scripts are written from: the verbs and their options, and those of the other
// programs whose command lines are read (front_t). Each shell has its file, completion_<shell>.c.
#ifndef ASSAY_CLI_SHELL_COMPLETION_H_
#define ASSAY_CLI_SHELL_COMPLETION_H_

#include "base/alloc.h"
#include "cli/verbs.h"

typedef enum complete_takes {
  TAKES_NOTHING,
  TAKES_ONE,
  TAKES_MANY,  // all words up to the next option
} complete_takes_t;

typedef struct complete_option {
  const char* name;  // "--inputs", or "MODEL" for a positional argument
  char letter;       // 'o' for -o; 0: none
  complete_takes_t takes;
  value_kind_t kind;  // of a value
  const char* words;  // of VALUE_WORDS, with ' ' between
  const char* value;  // what the value is called
  const char* help;
  bool again;     // may be given again; a positional argument: takes all that are left
  bool required;  // a positional argument
} complete_option_t;

// A command line: the words that it begins with, and its options.
typedef struct complete_line {
  const char *path, *summary;  // "check", "polygraphy inspect model"
  const complete_option_t* options;
  size_t n;
  bool glued;  // values stand after '=' alone
} complete_line_t;

struct completion {
  assay_arena_t* arena;  // of all texts and options
  complete_line_t* lines;
  size_t n, cap;
  const char** groups;  // what other words follow: "", "debug", "polygraphy", "polygraphy inspect"
  size_t n_groups, cap_groups;
};

// A front adds its lines, in memory of the arena.
assay_status_t complete_add(completion_t* c, const complete_line_t* line) ASSAY_MUST_USE;

// The words of "a|b", with ' ' between.
assay_status_t complete_words(assay_arena_t* arena, const char* choice,
                              const char** out) ASSAY_MUST_USE;

// Calls `append` for each word that may follow a group's, with its summary.
typedef void (*complete_word_fn)(assay_str_t* out, const char* group, const char* word,
                                 const char* summary);
void complete_each_word(const completion_t* c, const char* group, assay_str_t* out,
                        complete_word_fn append);
// The front that a line or group is of; NULL: none.
const front_t* complete_front(const char* path);
// Text for '...' of a shell such as bash: a quote ends it, is written, and begins it anew; newlines
// become spaces.
void complete_quoted(assay_str_t* out, const char* text);

void complete_bash(const completion_t* c, assay_str_t* out);
void complete_zsh(const completion_t* c, assay_str_t* out);
void complete_fish(const completion_t* c, assay_str_t* out);

#endif  // ASSAY_CLI_SHELL_COMPLETION_H_
