// ONNX operator tests in their standard layout: finding them, running one.
#ifndef ASSAY_CHECK_CONFORMANCE_H_
#define ASSAY_CHECK_CONFORMANCE_H_

#include "base/str.h"

typedef struct assay_case_list {
  char** names;  // of the cases' folders, relative to the root, sorted
  size_t n, capacity;
} assay_case_list_t;

// All folders below `root` that hold model.onnx and test_data_set_0.
assay_status_t assay_conformance_find(const char* root, assay_case_list_t* out) ASSAY_MUST_USE;
void assay_case_list_deinit(assay_case_list_t* list);

// Runs one case: FOLDER/model.onnx on each FOLDER/test_data_set_K (input_J.pb, output_J.pb), with
// the tolerances of FOLDER/data.json (rtol 1e-3, atol 1e-7 without). Appends to *why in what it
// failed; nothing if it passed. A model that cannot be read or run is a failed case as well, its
// message in *why. backend: the name of one, with formats as declared; NULL: the evaluator in
// native mode.
assay_status_t assay_conformance_run(const char* folder, const char* backend,
                                     assay_str_t* why) ASSAY_MUST_USE;

#endif  // ASSAY_CHECK_CONFORMANCE_H_
