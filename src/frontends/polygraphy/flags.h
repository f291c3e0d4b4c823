// The flags and subcommands of Polygraphy: two tables, and what a command line says of them.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_FLAGS_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_FLAGS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/str.h"

typedef enum pg_kind {
  PG_SWITCH,
  PG_COUNT,     // -v, -vv, -v -v: how often
  PG_TEXT,      // one value
  PG_OPT_TEXT,  // one value or none
  PG_OUTPUT,    // one value: a file or folder that is written, checked before the work
  PG_INT,       // a whole number
  PG_FLOAT,     // a finite number
  PG_CHOICE,    // one of some words
  PG_CHOICES,   // one or more of some words
  PG_LIST,      // one or more values; given again, the last one counts
  PG_LIST0,     // the same, or none
  PG_LISTS,     // one or more values; each time adds a list
  PG_REST,      // all that follows on the line
} pg_kind_t;

typedef enum pg_level {
  PG_WORKS,
  PG_ACCEPT,  // checked; a note says why it has no effect
  PG_REJECT,  // an error says what to use in its place
} pg_level_t;

typedef enum pg_group {
  PG_RUNNING,
  PG_COMPARISON,
  PG_MODELS,
  PG_BUILDING,
  PG_DEBUG,
  PG_SURGEON,
  PG_OTHER,
  PG_LOGGING,
  PG_TENSORFLOW,
  PG_N_GROUPS
} pg_group_t;

typedef struct pg_job pg_job_t;  // job.h

// Numbers of subcommands: PG_CMD_run.
typedef enum pg_command_id {
#define PG_COMMAND(id, ...) PG_CMD_##id,
#include "frontends/polygraphy/commands.inc"
#undef PG_COMMAND
  PG_N_COMMANDS
} pg_command_id_t;

typedef struct pg_command {
  const char *tool, *name;  // name NULL: the tool has no subcommands
  bool framed;              // RUNNING and PASSED lines are printed
  const char* model;        // positional arguments in the usage
  const char* summary;
  assay_status_t (*run)(pg_job_t* j);
} pg_command_t;
extern const pg_command_t pg_commands[PG_N_COMMANDS];

// Numbers of flags: PG_FLAG_onnxrt.
typedef enum pg_flag_id {
#define PG_FLAG(id, ...) PG_FLAG_##id,
#include "frontends/polygraphy/flags.inc"
#undef PG_FLAG
  PG_N_FLAGS
} pg_flag_id_t;

typedef struct pg_flag {
  const char* names;  // spellings, with spaces between
  pg_kind_t kind;
  pg_level_t level;
  pg_group_t group;
  uint32_t commands;  // bit of each subcommand that has it
  const char* value;
  const char* fallback;
  const char* text;
} pg_flag_t;
extern const pg_flag_t pg_flags[PG_N_FLAGS];

typedef struct pg_words {
  const char** items;
  size_t n;
} pg_words_t;

typedef struct pg_value {
  bool given;
  const char* text;   // one value, or the fallback; NULL: neither
  int64_t whole;      // of INT; of COUNT how often
  double number;      // of INT and FLOAT
  pg_words_t words;   // of CHOICES, LIST, LIST0, REST
  pg_words_t* lists;  // of LISTS: one each time
  size_t n_lists;
} pg_value_t;

// A word of the line that is a flag (or several of one letter), and the words that it took.
typedef struct pg_part {
  pg_flag_id_t flag;   // the last one of the word
  char* const* words;  // as they were given
  size_t n;
} pg_part_t;

// A runner that the line names: --onnxrt, --trt, in their order, each as often as given.
typedef struct pg_args {
  pg_command_id_t command;
  pg_value_t at[PG_N_FLAGS];
  pg_words_t positional;
  pg_part_t* parts;
  size_t n_parts;
  pg_flag_id_t* runners;
  size_t n_runners;
  pg_words_t unknown;  // words that are not flags of the subcommand, and what is left over
  const char* note;    // about a spelling; NULL: none
} pg_args_t;

static inline bool pg_given(const pg_args_t* a, pg_flag_id_t f) { return a->at[f].given; }
static inline const char* pg_text(const pg_args_t* a, pg_flag_id_t f) { return a->at[f].text; }
static inline int64_t pg_int(const pg_args_t* a, pg_flag_id_t f) { return a->at[f].whole; }
static inline double pg_float(const pg_args_t* a, pg_flag_id_t f) { return a->at[f].number; }
static inline const pg_words_t* pg_words(const pg_args_t* a, pg_flag_id_t f) {
  return &a->at[f].words;
}
bool pg_is(const pg_args_t* a, pg_flag_id_t f, const char* word);

typedef enum pg_outcome {
  PG_OUTCOME_RUN,
  PG_OUTCOME_HELP,     // was shown, or the version: exit 0
  PG_OUTCOME_MISUSED,  // told on stderr with the usage: exit 2
  PG_OUTCOME_UNKNOWN,  // unknown flags were told: exit 1
} pg_outcome_t;

// Reads what stands after the program's name (args.c); everything in `out` lives in the arena.
// Misuse is told on stderr, help and version on stdout; unknown flags are in out->unknown.
assay_status_t pg_args_parse(assay_arena_t* arena, int argc, char** argv, pg_args_t* out,
                             pg_outcome_t* out_outcome) ASSAY_MUST_USE;
// Notes of flags without effect; an error for one that is not supported, for values that cannot be
// and for what does not go together (check.c).
assay_status_t pg_args_check(const pg_args_t* a) ASSAY_MUST_USE;

// Whether one of the spellings of a flag is this word of n characters; or starts with it.
bool pg_flag_is(const pg_flag_t* f, const char* word, size_t n);
bool pg_flag_starts(const pg_flag_t* f, const char* word, size_t n);
bool pg_flag_has(pg_flag_id_t f, pg_command_id_t command);
// The spelling that is nearest to an unknown word; NULL: none is near.
const char* pg_flag_nearest(pg_command_id_t command, const char* word);
// Whether a word is among "a|b|c".
bool pg_is_choice(const char* words, const char* value);

// Help (help.c): of the program, of a tool, of a subcommand; usage as before an error.
void pg_help(FILE* out);
void pg_help_tool(const char* tool, FILE* out);
void pg_help_command(pg_command_id_t c, FILE* out);
void pg_usage(pg_command_id_t c, FILE* out);

// One "[name:]value" of a list, split at the last colon (values.c). name: "" where none stands.
typedef struct pg_pair {
  const char *name, *value;
} pg_pair_t;
assay_status_t pg_pair_split(assay_arena_t* arena, const char* word, pg_pair_t* out) ASSAY_MUST_USE;
// The words of a "[a,b,c]" (or of "a": one); INVALID_ARGUMENT names the flag.
assay_status_t pg_list_split(assay_arena_t* arena, const char* flag, const char* value,
                             pg_words_t* out) ASSAY_MUST_USE;
assay_status_t pg_number(const char* flag, const char* text, double* out) ASSAY_MUST_USE;
assay_status_t pg_whole(const char* flag, const char* text, int64_t* out) ASSAY_MUST_USE;
// A shape "[1,3,4]" (or "1x3x4"): -1 stands for words, of which dimensions are symbolic. out_names
// may be NULL; then words are refused. Arrays have room for ASSAY_MAX_RANK.
assay_status_t pg_shape(assay_arena_t* arena, const char* flag, const char* value, int* out_rank,
                        int64_t* out_dims, const char** out_names) ASSAY_MUST_USE;
// The value that a list says for `name`: its own, else one whose name is a pattern that fits, else
// the one without name, else NULL.
assay_status_t pg_pair_find(assay_arena_t* arena, const pg_words_t* words, const char* name,
                            const char** out_value) ASSAY_MUST_USE;
// Whether a name fits a shell pattern (* ? [a-z]).
bool pg_fits(const char* pattern, const char* name);

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_FLAGS_H_
