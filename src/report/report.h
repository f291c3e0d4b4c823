// What a check found, told: the terminal's lines, JSON with everything, a page, notes in the model itself.
#ifndef ASSAY_REPORT_REPORT_H_
#define ASSAY_REPORT_REPORT_H_

#include <jansson.h>

#include "accuracy/check.h"
#include "base/str.h"

typedef struct assay_report_names {
  const char* model;             // as the user gave it
  const char* target;            // "emu"; of other engines the command or the file
  const char* precision;         // "fp16"; "as declared"
  const char* const* files;      // files that the fix was written to
  size_t n_files;
  const char* golden;            // NULL: none given
  const char* const* inputs;     // as the user gave them
  size_t n_inputs;
  size_t repairs;                // of the export, made in the first file
  bool repairs_hold;             // the repaired model's truth agrees with golden
} assay_report_names_t;

// A dozen lines, verdict first.
assay_status_t assay_report_text(const assay_check_t* check, const assay_report_names_t* names,
                                 assay_str_t* out) ASSAY_MUST_USE;
// The form "assay.check/1". The caller owns the result.
assay_status_t assay_report_json(const assay_check_t* check, const assay_report_names_t* names,
                                 json_t** out) ASSAY_MUST_USE;

// One HTML page that holds all it needs: everything of the JSON, the graph, and pictures (NULL: none).
assay_status_t assay_report_html(const assay_check_t* check, const assay_report_names_t* names,
                                 const assay_pictures_t* pictures, assay_str_t* out) ASSAY_MUST_USE;
// Adds what was found to metadata_props of the model as it is in its file, and of its nodes: keys "assay.*". Those of an
// earlier check are replaced.
assay_status_t assay_report_annotate(const assay_check_t* check, const assay_report_names_t* names,
                                     assay_model_t* model) ASSAY_MUST_USE;

// The fix as options: Assay's "PATTERN:FORMAT,..." and trtexec's "--layerPrecisions=...".
void assay_report_layer_precision(const assay_fix_t* fix, assay_str_t* out);
void assay_report_trtexec(const assay_fix_t* fix, assay_str_t* out);

#endif  // ASSAY_REPORT_REPORT_H_
