// What the subcommands of debug have in common: make something, check it, put files aside by what
// came of it, and go on.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_LOOP_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_LOOP_H_

#include "frontends/polygraphy/debug/debug_check.h"
#include "frontends/polygraphy/debug/debug_replay.h"
#include "frontends/polygraphy/job.h"

enum { PG_MAX_ITERATIONS = 100000 };

// One command's loops: its flags, read, and what it leaves behind.
typedef struct pg_debug {
  pg_job_t* job;
  const char* artifact;  // that each iteration makes; NULL: none
  pg_judge_t judge;
  int* codes;
  pg_replay_t replay;
  char stamp[24];  // "MM-DD-YY_hh-mm-ss", of the start
} pg_debug_t;

// Reads and checks the flags, refuses an intermediate artifact that is there already, and puts
// links of this program first into PATH. artifact: the default of
// --intermediate-artifact; NULL: none.
assay_status_t pg_debug_open(pg_job_t* j, const char* artifact, pg_debug_t* out) ASSAY_MUST_USE;
void pg_debug_close(pg_debug_t* d);

// One iteration, counting from 0.
typedef struct pg_iteration {
  size_t index;
  bool success;
  int64_t n_nodes;  // of the model that was made, for the replay; -1: nothing to say
} pg_iteration_t;

typedef struct pg_loop {
  const char* suffix;  // of keys and of files that are put aside; NULL: none
  bool unrecorded;     // the replay has nothing of it
  size_t about;        // so many iterations are expected; 0: nobody knows
  // Makes the artifact; a failure counts as a failed check, unless `strict`: then it ends the loop.
  // NULL: there is nothing to make.
  assay_status_t (*make)(void* user, pg_iteration_t* i);
  // Takes the result in; *out_stop: that was the last one.
  assay_status_t (*advance)(void* user, const pg_iteration_t* i, bool* out_stop);
  bool strict;
  void* user;
} pg_loop_t;

// Runs a loop until it is told to stop. Errors: of the files around it, and of a check that cannot
// be run; not that of a failed check.
assay_status_t pg_debug_loop(pg_debug_t* d, const pg_loop_t* loop) ASSAY_MUST_USE;

// ---- names and numbers (debug_files.c) ----------------------------------------------------------

// Where a file is put aside: "DIR/good/STEM_STAMP_N3_SUFFIX.ext". suffix may be NULL.
void pg_artifact_name(const char* folder, bool good, const char* path, const char* stamp,
                      size_t index, const char* suffix, assay_str_t* out);
// Moves the files of --artifacts; what is missing is told.
assay_status_t pg_artifacts_move(const pg_debug_t* d, const pg_iteration_t* i,
                                 const char* suffix) ASSAY_MUST_USE;
// A number as Python prints it: the fewest digits that read back the same, at least "1.0".
void pg_put_float(assay_str_t* out, double x);
// Removes a file, or a folder that is empty; one that is not there is fine.
void pg_remove(const char* path);

// ---- the program in the check's PATH (debug_links.c) --------------------------------------------

// A folder with links of these names to this program becomes the first one of PATH, so that a check
// that says "polygraphy run ..." reaches it. command: the check's first word. Removed at the
// program's end.
assay_status_t pg_links_put(const char* program, const char* command) ASSAY_MUST_USE;
void pg_links_remove(void);

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_LOOP_H_
