// A plan: a model cut into layers, each with a format.
#ifndef ASSAY_PLAN_PLAN_H_
#define ASSAY_PLAN_PLAN_H_

#include "base/nearest.h"
#include "base/str.h"
#include "passes/pass.h"
#include "plan/layers.h"

// "Which layers in which format": the default and rules, later ones winning.
typedef struct assay_precision_rule {
  const char* pattern;  // shell wildcards, on node labels and output names
  assay_format_t format;
} assay_precision_rule_t;

typedef struct assay_precision {
  assay_format_t format;       // of float32 values; FP32 unless asked otherwise
  assay_format_t accumulator;  // NONE: the format's own (FP32; FP64 for fp64)
  assay_precision_rule_t* rules;
  size_t n_rules, cap_rules;
  char* text;  // what the rules' patterns point into
  // By node id of the model as it was given: these are in `pinned_format`, whatever the rules say.
  // Borrowed; NULL: none.
  const bool* pinned;
  assay_format_t pinned_format;
  // By node id of that model: its format, whatever the rules say; NONE: as they say. Borrowed;
  // NULL: as they say.
  const assay_format_t* given;
  // Types that the model declares say nothing of formats: nodes of a typed model are as `format`
  // says.
  bool undeclared;
} assay_precision_t;

// Parses "PATTERN:FORMAT,PATTERN:FORMAT": FORMAT follows the last ':', `\` escapes , : * ? [ and \.
// Appends to the rules. Errors: INVALID_ARGUMENT with the entry.
assay_status_t assay_precision_parse(assay_precision_t* p, const char* text) ASSAY_MUST_USE;
void assay_precision_deinit(assay_precision_t* p);
// What the public API and the command line ask for. format: NONE as declared; INT8 the same, of a
// model that quantizes. accumulator: NONE the format's own. rules: NULL none.
// Errors: INVALID_ARGUMENT formats that are not floats, rules that make no sense; UNSUPPORTED int8
// of a model without quantizers.
assay_status_t assay_precision_open(const assay_model_t* model, assay_format_t format,
                                    assay_format_t accumulator, const char* rules,
                                    assay_precision_t* out) ASSAY_MUST_USE;
// Whether golden may be of a network whose numbers the model has in few bits: it quantizes, looks
// its weights up in books, or casts to small floats.
bool assay_model_has_few_bits(const assay_model_t* m);
// Whether a model may be asked for in int8: UNSUPPORTED if it has no operators that quantize
// (assay_model_quantizes).
assay_status_t assay_model_want_quantizers(const assay_model_t* m) ASSAY_MUST_USE;
// With text of its own; what is kept stays borrowed.
assay_status_t assay_precision_copy(const assay_precision_t* p,
                                    assay_precision_t* out) ASSAY_MUST_USE;
// Writes rules that give exactly these nodes a format, as such a text: labels with wildcards
// escaped.
void assay_precision_print(const assay_node_t* const* nodes, size_t n, assay_format_t format,
                           assay_str_t* out);

// The labels of nodes and names of their outputs that are near to a pattern that matches none.
assay_nearest_t assay_plan_nearest(const assay_model_t* model, const char* pattern);

typedef struct assay_plan assay_plan_t;

typedef struct assay_plan_options {
  // Run the passes; else every node is a layer and the model stays as it is, but for float16 and
  // bfloat16 values, which become float32 values of layers in that format (passes/float_types.h).
  bool fused;
  assay_pass_options_t passes;
  const assay_recorded_t*
      recorded;        // the layers of an engine that is not ours (cone.h); not with fused
  assay_fp32_t fp32;   // what may serve layers of fp32
  const char* inject;  // for tests: a fault of the engine's, see backends/emu/inject.h; borrowed
  uint64_t draws;      // emu rounds by chance (assay_layers_t); 0: as it says
} assay_plan_options_t;

// Settles whether a plan is fused, of options that the public API has made for the rest of them.
//   target_fuses  what ASSAY_FUSION_TARGET stands for
// Errors: INVALID_ARGUMENT a setting that does not exist, passes to be left out where none run
assay_status_t assay_plan_options_settle(assay_plan_options_t* o, assay_fusion_t fusion,
                                         bool target_fuses) ASSAY_MUST_USE;

// Cuts a prepared model into layers: one a node, or, fused, those that the passes make of it. The
// plan holds a reference to the model. Rules know nodes and outputs by their names in this model,
// also where the passes have made others of them; where the rules ask for several formats within a
// layer, it falls apart into its nodes. options NULL: not fused. Recorded layers have the format
// of the node that they end in. Errors: NOT_FOUND for a rule that matches nothing (with the nearest
// name), or a pass that there is not.
assay_status_t assay_plan_create(assay_model_t* model, const assay_precision_t* precision,
                                 const assay_plan_options_t* options, uint64_t seed,
                                 assay_plan_t** out) ASSAY_MUST_USE;
// What a plan was made by, so that another model is made a plan by the same (refit).
typedef struct assay_plan_recipe {
  bool fused;
  assay_format_t format, accumulator;
  const char* rules;  // as assay_precision_parse reads them; ""
  assay_pass_options_t passes;
  uint64_t seed;
  assay_fp32_t fp32;
} assay_plan_recipe_t;
// NULL: not known, of a plan that was restored without.
const assay_plan_recipe_t* assay_plan_recipe(const assay_plan_t* plan);
assay_status_t assay_plan_create_by(assay_model_t* model, const assay_plan_recipe_t* recipe,
                                    assay_plan_t** out) ASSAY_MUST_USE;
// Copied; what it says of the layers that their cuts do not is set in them, too.
assay_status_t assay_plan_set_recipe(assay_plan_t* plan,
                                     const assay_plan_recipe_t* recipe) ASSAY_MUST_USE;
// The model as it was given; NULL: the plan was restored.
assay_model_t* assay_plan_source(const assay_plan_t* plan);

// How a plan was cut, so that it can be cut so again (plan files).
typedef struct assay_layer_cut {
  size_t n_nodes;
  assay_format_t format, accumulator;
  const char* reason;
} assay_layer_cut_t;
// The cuts of the layers of the top graph, in order, and then of every node of its bodies, depth
// first, each being a layer; *out (assay_free) borrows the reasons.
assay_status_t assay_plan_cuts(const assay_plan_t* plan, assay_layer_cut_t** out,
                               size_t* out_n) ASSAY_MUST_USE;
// A plan of a resolved and inferred model that is cut so. Errors: CORRUPT cuts that do not fit it.
assay_status_t assay_plan_restore(assay_model_t* model, const assay_layer_cut_t* cuts, size_t n,
                                  uint64_t seed, assay_plan_t** out) ASSAY_MUST_USE;
void assay_plan_destroy(assay_plan_t* plan);  // NULL is allowed

// Of all that a run depends on besides its inputs: layers, formats, nodes, constants.
uint64_t assay_plan_checksum(const assay_plan_t* plan);

const assay_layers_t* assay_plan_layers(const assay_plan_t* plan);
// What the passes did; NULL if none ran.
const assay_rewrite_t* assay_plan_rewrite(const assay_plan_t* plan);
// The nodes of the model as it was given that a node of a layer stands for.
assay_origins_t assay_plan_origins(const assay_plan_t* plan, const assay_node_t* const* node);
// Writes the format of every node of that model, by its id; FP32 for those that no layer computes.
void assay_plan_node_formats(const assay_plan_t* plan, assay_format_t* formats);

#endif  // ASSAY_PLAN_PLAN_H_
