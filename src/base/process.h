// Other programs: a shell command run to its end, or to a time limit.
#ifndef ASSAY_BASE_PROCESS_H_
#define ASSAY_BASE_PROCESS_H_

#include <sys/types.h>

#include "base/status.h"
#include "base/str.h"

// Runs `/bin/sh -c command` and waits for it. Its input is empty; what it prints is read, and the
// last of it goes into the message of an error. It is the leader of a process group of its own,
// which is killed when the time is over, and when this process is told to end (SIGINT, SIGTERM,
// SIGHUP, where the program has no handler of its own).
//   seconds  the time limit; more than 0
// Errors: DEVICE it could not be started, was killed, was too slow, or ended with another code
// than 0.
// Threads: one call at a time in a process.
assay_status_t assay_process_run(const char* command, double seconds) ASSAY_MUST_USE;

// The same for a command that answers by its exit code: codes up to `max` are not errors. What it
// printed last is appended to *out_said.
assay_status_t assay_process_ask(const char* command, double seconds, int max, int* out_code,
                                 assay_str_t* out_said) ASSAY_MUST_USE;

// Starts words[0], found in $PATH, for a caller that reads and waits itself: in such a group, which
// is killed with this process; assay_process_over() says that it has been waited for. out, err:
// what its standard output and error are; -1: this process's. Errors: NOT_FOUND there is no such
// program; DEVICE it could not be started.
assay_status_t assay_process_start(const char* const* words, int out, int err,
                                   pid_t* out_pid) ASSAY_MUST_USE;
void assay_process_over(void);

// Where files that are needed for a while are put; borrowed. NULL: the user does not allow it.
const char* assay_folder_for_temporary(void);
// A new folder for files that are needed for a while: in $TMPDIR, or /tmp. Appends its path. It is
// removed, with all that is in it, where this process is told to end (by those signals) before its
// user has removed it.
assay_status_t assay_folder_make_temporary(assay_str_t* out_path) ASSAY_MUST_USE;
// Removes such a folder with all that is in it, what commands have put there, too. Does nothing to
// any other path.
void assay_folder_remove_temporary(const char* path);
// For a process that is about to end, from any thread: kills the command that runs, starts no
// other, and removes the temporary folders that were made, with all that is in them.
void assay_process_clear(void);
// Waits for the end, if one of those signals has come: nothing is told that follows from it.
void assay_process_hold(void);
// Where such folders are made from now on in this process; NULL: as above. With `refused_by`, the
// option that says so, none is made: asking for one is an error. Both are borrowed until the next
// call. (Files that are written are not meant: see file.h.)
// Threads: before others ask for folders.
void assay_folder_rule_temporary(const char* where, const char* refused_by);

#endif  // ASSAY_BASE_PROCESS_H_
