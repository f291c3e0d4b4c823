// The flags of trtexec: one table, and what a command line says of them.
#ifndef ASSAY_FRONTENDS_TRTEXEC_FLAGS_H_
#define ASSAY_FRONTENDS_TRTEXEC_FLAGS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

typedef enum trt_kind {
  TRT_SWITCH,   // on where it is given; a value is ignored, with a warning
  TRT_TEXT,     // not empty
  TRT_OUTPUT,   // the same: a file that is written, checked before the work
  TRT_CACHE,    // the same: a file that is read and, where it has to be, written
  TRT_INT,      // a whole number
  TRT_FLOAT,    // a finite number
  TRT_CHOICE,   // one of some words
  TRT_WORDS,    // text; may be given again
  TRT_PROFILE,  // a whole number; starts a group of SHAPES
  TRT_SHAPES,   // text; once, or once in each group
  TRT_PAIR,     // a whole number; starts a group of PAIRED
  TRT_PAIRED,   // text; once, or once in each such group
} trt_kind_t;

typedef enum trt_level {
  TRT_WORKS,
  TRT_ACCEPT,  // checked; a note says why it has no effect
  TRT_REJECT,  // an error says what to use in its place
} trt_level_t;

typedef enum trt_block {
  TRT_MODEL,
  TRT_BUILD,
  TRT_SYSTEM,
  TRT_INFERENCE,
  TRT_REPORTING,
  TRT_N_BLOCKS
} trt_block_t;
extern const char* const trt_block_names[TRT_N_BLOCKS];

// Numbers of flags: TRT_FLAG_onnx.
typedef enum trt_flag_id {
#define TRT_FLAG(id, ...) TRT_FLAG_##id,
#include "frontends/trtexec/flags.inc"
#undef TRT_FLAG
  TRT_N_FLAGS
} trt_flag_id_t;

typedef struct trt_flag {
  const char* name;  // with its two dashes
  trt_kind_t kind;
  trt_level_t level;
  trt_block_t block;
  const char* value;
  const char* fallback;
  const char* text;
} trt_flag_t;
extern const trt_flag_t trt_flags[TRT_N_FLAGS];

// Other names of flags.
typedef struct trt_alias {
  const char* name;
  trt_flag_id_t flag;
  const char* note;  // a warning; NULL: none
} trt_alias_t;
extern const trt_alias_t trt_aliases[];  // ends with a row without name

typedef struct trt_value {
  bool given;
  const char* text;  // as given, or the fallback; NULL: neither
  double number;     // of INT and FLOAT
} trt_value_t;

// The shapes of a profile; NULL: not given.
typedef struct trt_profile_text {
  int64_t index;
  const char *min, *opt, *max;
} trt_profile_text_t;

// The files of a --refPair; NULL: not given.
typedef struct trt_pair_text {
  int64_t index;
  const char *inputs, *outputs;
} trt_pair_text_t;

typedef struct trt_options {
  trt_value_t at[TRT_N_FLAGS];
  trt_profile_text_t* profiles;  // one for shapes without --profile, too
  size_t n_profiles, cap_profiles;
  trt_pair_text_t* pairs;
  size_t n_pairs, cap_pairs;
  assay_str_t fix;      // words of --fix-file, to which values point
  assay_str_t unknown;  // lines "--name value (why)"
} trt_options_t;

typedef enum trt_outcome {
  TRT_OUTCOME_RUN,
  TRT_OUTCOME_HELP,     // asked for, or nothing was said at all
  TRT_OUTCOME_UNKNOWN,  // see `unknown`
} trt_outcome_t;

// Reads what stands after the program's name. Warnings are printed (log.h). Errors:
// INVALID_ARGUMENT, of which the message names the flag.
assay_status_t trt_options_parse(int argc, char** argv, trt_options_t* out,
                                 trt_outcome_t* out_outcome) ASSAY_MUST_USE;
void trt_options_deinit(trt_options_t* o);
// Adds the flags in the file of --fix-file: what the line says itself goes before, but for the
// list, which is an error twice.
assay_status_t trt_options_take_fix(trt_options_t* o) ASSAY_MUST_USE;
// Warns of flags that were given and have no effect, before trt_options_check() sets some.
void trt_options_note(const trt_options_t* o);
// What does not go together, and what values cannot be (check.c).
assay_status_t trt_options_check(trt_options_t* o) ASSAY_MUST_USE;
// Whether the files that the flags have written can be (output_paths.h). Errors: DEVICE.
assay_status_t trt_options_check_outputs(const trt_options_t* o) ASSAY_MUST_USE;
// --tempdir and --tempfileControls: checks them, and has folders for temporary files made by them
// from now on, for as long as the options are there (temporary.c).
assay_status_t trt_rule_temporary(const trt_options_t* o) ASSAY_MUST_USE;

static inline bool trt_given(const trt_options_t* o, trt_flag_id_t f) { return o->at[f].given; }
static inline const char* trt_text(const trt_options_t* o, trt_flag_id_t f) {
  return o->at[f].text;
}
static inline double trt_number(const trt_options_t* o, trt_flag_id_t f) { return o->at[f].number; }
bool trt_is(const trt_options_t* o, trt_flag_id_t f, const char* word);

// The help, and the options in use, in trtexec's shape (help.c).
void trt_print_help(FILE* out);
void trt_print_options(const trt_options_t* o);

#endif  // ASSAY_FRONTENDS_TRTEXEC_FLAGS_H_
