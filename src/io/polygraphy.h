// Polygraphy's JSON: inputs (--save-inputs) and results (--save-outputs) of its runs.
//
// Read are those of version 0.20 and newer: arrays in base64 or as Latin-1 text, npy, npz or (as it
// keeps bfloat16 and float8) torch tensors; classes under "polygraphy_class" or the older
// "__polygraphy_encoded_<Class>". Of several runners the first one's iterations are taken.
#ifndef ASSAY_IO_POLYGRAPHY_H_
#define ASSAY_IO_POLYGRAPHY_H_

#include "io/json.h"
#include "io/run_results.h"
#include "io/saved.h"

bool assay_polygraphy_is(const json_t* root);
assay_status_t assay_polygraphy_read(json_t* root, assay_saved_t* out) ASSAY_MUST_USE;

// Writes a list of inputs, or the results of a runner of that name (NULL: inputs), as Polygraphy
// does.
//   notes   lines for the user about types that JSON's arrays lack: bfloat16 becomes float32; may
//   be NULL
assay_status_t assay_polygraphy_write(const char* path, const assay_saved_t* s, const char* runner,
                                      assay_str_t* notes) ASSAY_MUST_USE;
// The same as a folder of a file a run: 0000000000.json, ... The folder is made, and must be empty.
assay_status_t assay_polygraphy_write_folder(const char* path, const assay_saved_t* s,
                                             const char* runner, assay_str_t* notes) ASSAY_MUST_USE;

// Results of all runners that a file holds.
bool assay_polygraphy_is_results(const json_t* root);
assay_status_t assay_polygraphy_read_results(const json_t* root,
                                             assay_run_results_t* out) ASSAY_MUST_USE;
assay_status_t assay_polygraphy_write_results(const char* path, const assay_run_results_t* r,
                                              assay_str_t* notes) ASSAY_MUST_USE;
assay_status_t assay_polygraphy_write_results_folder(const char* path, const assay_run_results_t* r,
                                                     assay_str_t* notes) ASSAY_MUST_USE;

#endif  // ASSAY_IO_POLYGRAPHY_H_
