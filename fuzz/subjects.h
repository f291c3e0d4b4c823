// What is forged, and what a user does with it: networks of every kind that tests draw
// (tests/backends/random_graph.h), their plans, timing caches and certificates.
#ifndef ASSAY_FUZZ_SUBJECTS_H_
#define ASSAY_FUZZ_SUBJECTS_H_

#include "base/status.h"
#include "forge.h"

typedef struct assay_model assay_model_t;

// Network `number`, prepared; the caller's.
assay_model_t* subject_model(uint64_t number);

// Files of it, as a user's commands write them; the number says precision, target and shapes, too.
// Nothing is made (n is 0) where the build refuses it. `folder`: for what lies on the way.
forged_t subject_plan(uint64_t number, const char* folder);
forged_t subject_plan_of(const assay_model_t* model, uint64_t number, const char* folder);
forged_t subject_cache(uint64_t number, const char* folder);
forged_t subject_certificate(uint64_t number);

// Does with a file what a user does: a plan is read, run, written again and refitted, with its own
// weights or, where it has none, those of network `number`; a network is built and run by a timing
// cache; a run is held against a certificate and the result is printed. Errors: of any kind but
// INTERNAL, which would be our own mistake.
assay_status_t use_plan(uint64_t number, const char* path) ASSAY_MUST_USE;
assay_status_t use_cache(uint64_t number, const char* path) ASSAY_MUST_USE;
assay_status_t use_certificate(uint64_t number, const void* data, size_t n) ASSAY_MUST_USE;

// A file of these bytes.
void subject_write(const char* path, const void* data, size_t n);

#endif  // ASSAY_FUZZ_SUBJECTS_H_
