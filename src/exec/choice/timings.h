// How long kernels took: what the choice between tactics is made of, and the timing cache.
//
// As text, one line a kernel: "MICROSECONDS TACTIC SIGNATURE", after a first line that names the
// format and a second one that names the machine. A cache of another machine is not read.
#ifndef ASSAY_EXEC_CHOICE_TIMINGS_H_
#define ASSAY_EXEC_CHOICE_TIMINGS_H_

#include "base/str.h"

typedef struct assay_timings assay_timings_t;

// machine: what they are of, one line; copied.
assay_status_t assay_timings_create(const char* machine, assay_timings_t** out) ASSAY_MUST_USE;
void assay_timings_destroy(assay_timings_t* t);  // NULL is allowed

// Adds what a text says. *out_fits false: it is of another machine, number of threads or version,
// and nothing was read. out_fits NULL: it is read all the same. Errors: CORRUPT with the line.
assay_status_t assay_timings_parse(assay_timings_t* t, const char* text, size_t n,
                                   bool* out_fits) ASSAY_MUST_USE;
// Sorted by line; only_used: what was looked up or added since the text was read.
assay_status_t assay_timings_print(const assay_timings_t* t, bool only_used,
                                   assay_str_t* out) ASSAY_MUST_USE;

// The next line, from *at on, of a tactic's ways in a layer: of names that begin with the tactic's
// and go on with '/', '=' or '!'. *out_name: out_n characters. False: there are no more.
bool assay_timings_next(assay_timings_t* t, size_t* at, const char* tactic, const char* signature,
                        const char** out_name, size_t* out_n);

// Threads: any.
bool assay_timings_find(assay_timings_t* t, const char* tactic, const char* signature,
                        double* out_microseconds);
assay_status_t assay_timings_add(assay_timings_t* t, const char* tactic, const char* signature,
                                 double microseconds) ASSAY_MUST_USE;

#endif  // ASSAY_EXEC_CHOICE_TIMINGS_H_
