// What a check found, told: the terminal's lines, JSON with everything, a page, notes in the model
// itself.
#ifndef ASSAY_REPORT_REPORT_H_
#define ASSAY_REPORT_REPORT_H_

#include <jansson.h>

#include "base/str.h"
#include "check/check.h"
#include "debug/batch_debug.h"
#include "debug/pass_debug.h"
#include "debug/precision.h"
#include "debug/tactic_debug.h"
#include "tune/tune.h"

typedef struct assay_report_names {
  const char* model;         // as the user gave it
  const char* target;        // "emu"; of other engines the command or the file
  const char* precision;     // "fp16"; "as declared"
  const char* const* files;  // files that the fix was written to
  size_t n_files;
  const char* mended;         // the file with other constants; NULL: not written
  const char* to_write;       // the command that writes them; NULL: they were asked for
  const char* golden;         // NULL: none given
  const char* const* inputs;  // as the user gave them
  size_t n_inputs;
  size_t repairs;            // of the export, made in the first file, if there are files
  bool repairs_hold;         // the repaired model's truth agrees with golden
  const char* repair_error;  // why it cannot be run; NULL: it can, or there is none
} assay_report_names_t;

// A dozen lines, verdict first.
assay_status_t assay_report_text(const assay_check_t* check, const assay_report_names_t* names,
                                 assay_str_t* out) ASSAY_MUST_USE;
// The form "assay.check/1". The caller owns the result.
assay_status_t assay_report_json(const assay_check_t* check, const assay_report_names_t* names,
                                 json_t** out) ASSAY_MUST_USE;

// One HTML page that holds all it needs: everything of the JSON, the graph, and pictures (NULL:
// none).
assay_status_t assay_report_html(const assay_check_t* check, const assay_report_names_t* names,
                                 const assay_pictures_t* pictures, assay_str_t* out) ASSAY_MUST_USE;
// Notes for viewers of ONNX files. Of the model as it is in its file, and of its nodes, in
// metadata_props: keys "assay.*"; of nodes the same once more as the last line of doc_string, for
// old viewers. Values get their types, and with pictures a doc_string such as "max abs 1.2e-3, snr
// 48 dB, range [-3.1, 70123]". Notes of an earlier check are replaced. Metadata of nodes takes
// ir_version 10: a lower one is raised.
typedef struct assay_report_notes {
  const assay_pictures_t* pictures;  // NULL: none
  const char* command;               // the command line; NULL: not told
  const char* page;                  // the report's file; NULL: none
  uint64_t inputs;                   // a hash of what was fed
  bool mark_names;  // "!! " in front of the names of nodes that are to blame: tools that look for
                    // names lose them
} assay_report_notes_t;
assay_status_t assay_report_annotate(const assay_check_t* check, const assay_report_names_t* names,
                                     const assay_report_notes_t* notes,
                                     assay_model_t* model) ASSAY_MUST_USE;

// Constants at fault (mended.c): where it shows, a line (NULL: nothing); the numbers that mend the
// outputs, with the file that has them (NULL: none was written); the same as JSON, null where there
// is nothing.
void assay_report_shown(const assay_lost_constant_t* constant, assay_str_t* out);
void assay_report_mended(const assay_check_t* check, const char* file, assay_str_t* out);
json_t* assay_report_constant_json(const assay_lost_constant_t* constant);
json_t* assay_report_mended_json(const assay_check_t* check, const char* file);

// What came of each requirement on these outputs (NULL: nothing ran): a list. met: what commands
// said, by requirement; NULL: not known, they are left out.
assay_status_t assay_report_requirements_json(const assay_requirements_t* require,
                                              const assay_output_check_t* outputs, size_t n_outputs,
                                              const bool* met, json_t** out) ASSAY_MUST_USE;

// That golden was not computed in float32, and how to get golden that is; nothing otherwise.
void assay_report_arithmetic_lines(const assay_golden_arithmetic_t* a, assay_str_t* out);
// Inner values that differ from golden while all outputs agree.
void assay_report_undone_lines(const assay_undone_t* u, assay_str_t* out);
// What the rounding of weights loses of golden: of which golden is the network before.
void assay_report_rounded_lines(const assay_check_t* c, assay_str_t* out);
json_t* assay_report_undone_json(const assay_undone_t* u);

// The fix as options (fix_options.c): the value of --layer-precision, "PATTERN:FORMAT,...", as it
// is; the others as words that a shell takes.
void assay_report_layer_precision(const assay_fix_t* fix, assay_str_t* out);
void assay_report_rules_option(const char* rules, assay_str_t* out);  // "--layer-precision 'RULES'"
void assay_report_trtexec(const assay_fix_t* fix, assay_str_t* out);
// A name as an element of a list of trtexec's: in quotes where it has a ',', and with a '*' for
// what no quotes help.
void assay_report_trtexec_name(const char* name, assay_str_t* out);
// Appends "NAME:TYPE" to a list of trtexec's, with ',' between.
void assay_report_trtexec_layer(const assay_node_t* node, const char* type, assay_str_t* list);
// "--layerPrecisions=LIST" as a word that a shell takes.
void assay_report_trtexec_list(const char* list, assay_str_t* out);
// The two fixes that `chosen` is one of, where both were looked for: lines, and JSON (null: they
// were not).
void assay_report_front_lines(const assay_fix_front_t* front, const assay_fix_t* chosen,
                              assay_str_t* out);
// Outputs that are wrong with all layers in fp32, too: no set of layers mends them. word: what the
// first line starts with, "fix" where there is none. NULL: not run.
void assay_report_unmended_lines(const assay_output_check_t* wide, size_t n, const char* word,
                                 assay_str_t* out);
// Names of those that are ill-conditioned.
json_t* assay_report_ill_json(const assay_output_check_t* wide, size_t n);
json_t* assay_report_front_json(const assay_fix_front_t* front, const assay_fix_t* chosen,
                                size_t n_outputs);
// The text of the file that --fix-file reads.
void assay_report_fix_file(const assay_fix_t* fix, assay_str_t* out);
// A line of a report: options where they are short, else how many layers they are of and the file
// that has them (NULL: none was written).
void assay_report_option_line(const char* word, const assay_str_t* options, size_t n_layers,
                              const char* file, assay_str_t* out);

// What `debug precision` found: at most 15 lines, and "assay.debug.precision/1".
typedef struct assay_report_precision {
  const char *model, *target, *precision;
  const char* mode;     // "account", "bisect", "linear"
  const char* save;     // the mixed-precision model; NULL: not written
  const char* options;  // the file with the options; NULL: not written
  double seconds;
} assay_report_precision_t;
assay_status_t assay_report_precision_text(const assay_precision_found_t* f,
                                           const assay_report_precision_t* names,
                                           assay_str_t* out) ASSAY_MUST_USE;
assay_status_t assay_report_precision_json(const assay_precision_found_t* f,
                                           const assay_report_precision_t* names,
                                           json_t** out) ASSAY_MUST_USE;

// What `tune` found: at most 15 lines, and "assay.tune/1".
typedef struct assay_report_tune {
  const char *model, *target;
  const char* rules;    // of the user's own; NULL: none
  const char* save;     // the mixed-precision model; NULL: not written
  const char* plan;     // the plan file; NULL: not written
  const char* options;  // the file with the options; NULL: not written
  double seconds;
} assay_report_tune_t;
assay_status_t assay_report_tune_text(const assay_tuned_t* t, const assay_report_tune_t* names,
                                      assay_str_t* out) ASSAY_MUST_USE;
assay_status_t assay_report_tune_json(const assay_tuned_t* t, const assay_report_tune_t* names,
                                      json_t** out) ASSAY_MUST_USE;
// The chosen assignment as options: the format that most nodes have, rules for the others after
// the user's own, and what trtexec is given.
assay_format_t assay_report_tune_base(const assay_tuned_t* t);
void assay_report_tune_rules(const assay_tuned_t* t, const char* rules, assay_str_t* out);
// "--precision FORMAT --layer-precision 'RULES'", and trtexec's, as words that a shell takes.
void assay_report_tune_options(const assay_tuned_t* t, const char* rules, assay_str_t* out);
void assay_report_tune_trtexec(const assay_tuned_t* t, assay_str_t* out);

// What `debug passes` found: at most 15 lines, and "assay.debug.passes/1".
typedef struct assay_report_debug {
  const char *model, *target, *precision;
  const char* layer;  // the pattern that layers were asked for by; NULL: all
  bool all;           // the whole table
  double seconds;
} assay_report_debug_t;
assay_status_t assay_report_passes_text(const assay_pass_blame_t* b,
                                        const assay_report_debug_t* names,
                                        assay_str_t* out) ASSAY_MUST_USE;
assay_status_t assay_report_passes_json(const assay_pass_blame_t* b,
                                        const assay_report_debug_t* names,
                                        json_t** out) ASSAY_MUST_USE;
// What `debug tactics` found, and "assay.debug.tactics/1".
assay_status_t assay_report_tactics_text(const assay_tactic_blame_t* b,
                                         const assay_report_debug_t* names,
                                         assay_str_t* out) ASSAY_MUST_USE;
assay_status_t assay_report_tactics_json(const assay_tactic_blame_t* b,
                                         const assay_report_debug_t* names,
                                         json_t** out) ASSAY_MUST_USE;

// What `debug batch` found, and "assay.debug.batch/1".
assay_status_t assay_report_batch_text(const assay_batch_blame_t* b,
                                       const assay_report_debug_t* names,
                                       assay_str_t* out) ASSAY_MUST_USE;
assay_status_t assay_report_batch_json(const assay_batch_blame_t* b,
                                       const assay_report_debug_t* names,
                                       json_t** out) ASSAY_MUST_USE;

// ---- parts of reports ---------------------------------------------------------------------------

// "196,608", in a buffer of the caller's.
const char* assay_report_grouped(int64_t n, char* buffer, size_t capacity);
#define ASSAY_GROUPED(n) assay_report_grouped((n), (char[48]){0}, 48)
// What, then "70.3 dB" or "exact".
void assay_report_decibels(assay_str_t* out, const char* what, double db);
// "'denoised' is NaN in 196,608 of 196,608 places", "'logits': SNR 70.3 dB, max abs 0.00096".
void assay_report_output(const assay_output_check_t* o, assay_str_t* out);
json_t* assay_report_outputs_json(const assay_output_check_t* o, size_t n);
// An error over all elements; null where it does not apply.
json_t* assay_report_sums_json(const assay_error_sum_t* e, bool applies);
json_t* assay_report_labels_json(const assay_node_t* const* nodes, size_t n);

// What quantizers lose against golden of the network before (check's `quantizers`).
bool assay_report_is_lossy(const assay_check_t* c);
void assay_report_quantizer_lines(const assay_check_t* c, assay_str_t* out);
void assay_report_quantizer_fix(const assay_check_t* c, const assay_report_names_t* n,
                                assay_str_t* out);
// One line about slices that are dead, or small and lost; nothing where there are none.
void assay_report_slices_line(const char* output, const assay_slices_found_t* f, assay_str_t* out);
json_t* assay_report_slices_json(const assay_slices_found_t* f);
json_t* assay_report_quantizers_json(const assay_check_t* c);
json_t* assay_report_quantizer_culprits(const assay_check_t* c, json_t* culprits);
json_t* assay_report_quantizer_fix_json(const assay_check_t* c, const assay_report_names_t* n);

#endif  // ASSAY_REPORT_REPORT_H_
