// Edits: a model in, another one out, and a proof of what truth makes of the difference.
#ifndef ASSAY_EDIT_EDITOR_H_
#define ASSAY_EDIT_EDITOR_H_

#include <assay/edit.h>

#include "data/samples.h"
#include "edit/proof.h"
#include "onnx/load.h"
#include "passes/pass.h"

// A list of texts, borrowed.
typedef struct assay_words {
  const char* const* items;
  size_t n;
} assay_words_t;

// The scale of a value's int8 codes; its range is 127 times that, each way.
typedef struct assay_edit_scale {
  const char* name;
  float scale;
} assay_edit_scale_t;

// What the user asks for; which edit reads what stands after it. Zero: the default.
typedef struct assay_edit_requests {
  assay_words_t nodes, not_nodes;  // patterns of labels: only these, none of these (most edits)
  assay_words_t ops;               // decompose, assemble: these operators; none: all in the table
  assay_words_t from, to;          // extract: names of values
  assay_words_t values, renamed_nodes, dims;  // rename: OLD=NEW
  assay_words_t attrs;                        // set, of `nodes`: NAME=VALUE; NAME= takes it away
  assay_words_t shapes, types;                // set: INPUT=1x3xHxW, INPUT=float16, INPUT=int8*SCALE
  int64_t opset;           // set, assemble: import this operator set; 0: as it is
  const char* format;      // cast: fp16, bf16, fp32; quantize: int8 (default), fp8, int4
  const char* calibrator;  // quantize: minmax, entropy, percentile; NULL: minmax or percentile
  double percentile;       // quantize: of |activation| that is in range; 0: not given
  bool any_data;           // quantize: NaN and infinities are passed over; else an error
  bool per_tensor;         // quantize: one scale for a weight
  bool residuals;          // quantize: what residual sums add to a product, too
  const assay_edit_scale_t* scales;  // quantize: of activations, in place of samples; others stay
  size_t n_scales;                   // 0: samples tell
  bool numbers;                      // broadcasts: constants of one element, too
  bool no_fold, no_dedupe, no_names, no_shapes;  // sanitize
  bool store_codes;                              // sanitize: constants that are quantized
} assay_edit_requests_t;

typedef struct assay_editing {
  const assay_model_t* model;  // prepared; functions inlined unless the row keeps them
  const assay_edit_requests_t* requests;
  const assay_samples_t* samples;  // of `model`, for edits that calibrate
  uint64_t seed;
  assay_model_t* out;       // the edit's: a changed copy; values that stay keep their ids
  size_t n_changed;         // what `done` counts; 0: there was nothing to do
  assay_str_t done;         // "Gelu 12, LayerNormalization 25"
  assay_str_t notes;        // lines: what was left alone, and why
  assay_rounded_t rounded;  // which nodes may round, and to what
} assay_editing_t;

// What an edit says of truth before anything is run.
typedef enum assay_promise {
  ASSAY_PROMISE_SAME = 0,  // nothing moves
  ASSAY_PROMISE_ROUNDS,    // constants are rounded: no more moves than that explains
  ASSAY_PROMISE_NONE,      // what moves is what was asked for: told, not judged
} assay_promise_t;

typedef struct assay_editor {
  const char* name;
  const char* summary;
  assay_promise_t promise;
  bool keeps_functions;  // works on the model with its functions; types are known of its top graph
  bool calibrates;       // needs samples for more than the proof
  // Runs are compared beside truth's: as stored, rounded to the declared types; without quantizers.
  bool stored, unquantized;
  assay_status_t (*run)(assay_editing_t* e);
} assay_editor_t;

size_t assay_editor_count(void);
const assay_editor_t* assay_editor_at(size_t i);            // NULL: after the last
const assay_editor_t* assay_editor_find(const char* name);  // NULL if there is none

typedef struct assay_editor_options {
  const assay_samples_t* given;  // of the model's inputs; NULL: made from the seed
  size_t n_shapes;               // of made inputs
  const assay_input_shape_t* shapes;
  uint64_t seed;
  int n_samples;         // to be made; 0: 1
  bool no_proof, force;  // force: written whatever the proof says
  void (*progress)(void* user, const char* what, double fraction);
  void* user;
} assay_editor_options_t;

typedef struct assay_edit_counts {
  size_t nodes, initializers, inputs, outputs, functions;
} assay_edit_counts_t;

typedef struct assay_edit_result {
  const assay_editor_t* editor;
  assay_edit_verdict_t verdict;
  bool kept_promise;
  bool may_write;  // it did, or is to be written all the same
  bool written;
  assay_model_t* model;  // the edited one, as it is to be written
  size_t n_changed;
  assay_str_t done, notes;
  assay_str_t why_not;  // of NOT_PROVEN
  assay_edit_counts_t before, after;
  assay_proof_t proof;
} assay_edit_result_t;

// Edits a model that was read, and proves what that does.
// Errors: NOT_FOUND a name in the requests; INVALID_ARGUMENT a request that makes no sense;
// UNSUPPORTED what the edit cannot do to this model; CORRUPT the model.
assay_status_t assay_editor_run(const assay_editor_t* editor, assay_model_t* model,
                                const assay_edit_requests_t* requests,
                                const assay_editor_options_t* options,
                                assay_edit_result_t* out) ASSAY_MUST_USE;
// Writes the edited model, if it may be.
assay_status_t assay_edit_result_write(assay_edit_result_t* r, const char* path) ASSAY_MUST_USE;
void assay_edit_result_deinit(assay_edit_result_t* r);

// ---- for edits ----------------------------------------------------------------------------------

// Whether the requests leave a node to the edit, by its label.
bool assay_editing_wants(const assay_editing_t* e, const assay_node_t* n);
// Notes that this node of e->model, or one that stands for it, may round in the proof.
assay_status_t assay_editing_rounds(assay_editing_t* e, const assay_node_t* n) ASSAY_MUST_USE;
// Adds "NAME n" to what was done; n counts as changed.
void assay_editing_did(assay_editing_t* e, const char* name, size_t n);
// Notes that nodes may round which a rewrite says it changed.
assay_status_t assay_editing_changed(assay_editing_t* e, const assay_rewrite_t* r) ASSAY_MUST_USE;
// Runs a pass of the edit's own over the model (or what it became so far), or passes of the table
// (own NULL, options->only or all but off); the result becomes e->out. Nodes that it says it
// changed may round. The pass finds the edit in its context's `user`.
assay_status_t assay_editing_pass(assay_editing_t* e, const assay_pass_t* own,
                                  const assay_pass_options_t* options) ASSAY_MUST_USE;

#define ASSAY_EDITOR(name) extern const assay_editor_t assay_editor_##name;
#include "edit/edits.inc"
#undef ASSAY_EDITOR

#endif  // ASSAY_EDIT_EDITOR_H_
