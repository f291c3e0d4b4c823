// What a quantized model loses against golden of the network before it was quantized, and to which
// quantizers.
//
// Truth without quantizers (ops/quant/quant.h) is run with single ones put back: with all of what a
// quantizer does, with its range alone (clipping) and with its steps alone (rounding). Weights that
// the model stores as integers are moved by half a step at random instead, since what they were
// before is not known. Scales that fit are chosen from what reaches a quantizer in truth on the
// samples; what the outputs lose by them is what the bit width costs, and the measure for the rest.
#ifndef ASSAY_DIAGNOSE_QUANTIZERS_QUANTIZERS_H_
#define ASSAY_DIAGNOSE_QUANTIZERS_QUANTIZERS_H_

#include "account/outputs.h"
#include "data/samples.h"
#include "eval/evaluator.h"

// Scales and zero points of a quantizer: one, or one for each index of an axis.
typedef struct assay_quantizer_scales {
  int axis;  // -1: one
  int64_t n;
  double *scale, *zero;
  const char* how;  // "min-max"; NULL: the model's
} assay_quantizer_scales_t;

// What a part of a quantizer costs, as the largest part of an output's energy.
typedef struct assay_quantizer_loss {
  double weight, clipping, rounding;  // weight: rounding of weights; the others of activations
  double all;                         // all together, measured by itself
  double fitting;                     // all, by the scales that fit
} assay_quantizer_loss_t;

enum { ASSAY_QUANTIZER_WHY = 240, ASSAY_QUANTIZER_AXES = 2 };

// What is the matter with a quantizer's scales.
typedef enum assay_quantizer_pattern {
  ASSAY_QUANTIZER_FITS = 0,
  ASSAY_QUANTIZER_CHANNELS,  // one scale for channels of unlike size
  ASSAY_QUANTIZER_OUTLIER,   // the scale is made for a few values far from the others
  ASSAY_QUANTIZER_LARGE,     // the scale is too large: steps that nothing reaches
  ASSAY_QUANTIZER_SMALL,     // the scale is too small: values are clipped
  ASSAY_QUANTIZER_ZERO,      // the range lies elsewhere
  ASSAY_QUANTIZER_BITS,      // the scale fits, and so few steps lose that much
  ASSAY_QUANTIZER_PAIR,      // it is quantized by other scales than it is dequantized by
  ASSAY_QUANTIZER_AXIS,      // the scales of channels lie along another axis
  ASSAY_QUANTIZER_SIGN,      // bytes with a sign read as bytes without one, or the reverse
  ASSAY_QUANTIZER_PRODUCT,   // a bias in other units than the product that it is added to
  ASSAY_QUANTIZER_ORDER,     // the scales of channels in another order
  ASSAY_QUANTIZER_ANOTHER,   // the scales of stored integers are others
} assay_quantizer_pattern_t;
const char* assay_quantizer_pattern_name(assay_quantizer_pattern_t p);

typedef struct assay_quantizer_site {
  const assay_node_t* node;        // QuantizeLinear; DequantizeLinear of stored integers; Gather
  const assay_node_t* dequantize;  // the first that reads it; the node itself where stored
  const assay_value_t* value;      // what is quantized
  bool weight;                     // a constant
  bool stored;                     // whose integers the model holds
  bool bias;                       // stored integers of 32 bits
  bool book;                       // stored, as places in a table of numbers (ops/quant/book.h)
  bool other_sign;                 // by `fits` stored bytes are read with a sign, or without it
  assay_type_t type;
  double low, high;                // of the type, or of limits of fewer bits
  bool cuts;                       // nothing below 0 comes out: it may stand for a Relu
  assay_quantizer_scales_t has;    // the model's
  assay_quantizer_scales_t reads;  // of what dequantizes it, where they are others; n 0: not
  assay_quantizer_scales_t fits;   // one for all, chosen from samples; not of stored weights
  assay_quantizer_scales_t apart;  // by channel, where these are allowed and unlike; n 0: not
  // What reaches it in truth, over all samples.
  double min, max;
  int64_t elements, outside;  // elements; of them, past the range
  double* drawn;              // some of them
  size_t n_drawn;
  int axes[ASSAY_QUANTIZER_AXES];  // that channels may lie along; -1: none
  int64_t n_peaks[ASSAY_QUANTIZER_AXES];
  double* peaks[ASSAY_QUANTIZER_AXES];  // largest magnitude by index
  assay_quantizer_loss_t loss;
  assay_quantizer_pattern_t pattern;
  char why[ASSAY_QUANTIZER_WHY];
} assay_quantizer_site_t;

// What an output loses, as parts of golden's energy.
typedef struct assay_quantizer_output {
  const assay_value_t* value;
  bool known;                   // golden has it, in floats
  double loss;                  // the model's, in truth as written
  double weight;                // of truth without quantizers: the rounding of stored weights
  double fitting;               // with scales that fit
  double allowed;               // what is demanded where the user demands nothing
  assay_slices_found_t slices;  // against golden
  double small_loss;            // of small slices, by the rounding of weights alone
} assay_quantizer_output_t;

// What is changed of a quantizer.
typedef enum assay_quantizer_change {
  ASSAY_QUANTIZER_KEPT = 0,
  ASSAY_QUANTIZER_SCALED,  // another scale and zero point
  ASSAY_QUANTIZER_APART,   // scales by channel
  ASSAY_QUANTIZER_FLOAT,   // taken out
  ASSAY_QUANTIZER_PAIRED,  // what dequantizes it takes its scales
  ASSAY_QUANTIZER_READ,    // it takes the scales of what dequantizes it
} assay_quantizer_change_t;

typedef struct assay_quantizers {
  // The model with operators on quantized numbers written out (write_out.h), of which nodes and
  // values are; owned; NULL: the model as it is.
  assay_model_t* written_out;
  assay_quantizer_site_t* at;  // the costliest first, once split
  size_t n, capacity;
  assay_quantizer_output_t* outputs;  // by graph output
  size_t n_outputs;
  bool measured;         // outputs and sites have their losses
  bool met;              // every output's loss is allowed
  bool suspected;        // found by assay_quantizers_suspect: golden is much nearer with the change
  bool certain;          // golden is brought back, or the pair disagrees: whatever golden is of
  bool exact;            // the scale is what something else in the model says, not a guess
  bool pair;             // that is of a quantizer and its dequantizer which disagree
  double before, after;  // then: the largest part of an output's energy that is off
  double ties;           // the part that ties of float32 may move
  bool cut_short;        // time ran out before all quantizers were measured
  // Nothing mends golden, but moving this one takes the largest part of what it is off by away, on
  // samples that took no part as well; NULL: none does. Rivals take nearly as much.
  const assay_node_t* blamed;
  const assay_node_t* rivals[2];
  size_t n_rivals;
  double explained;  // the part of the energy
  // The fix: by site; n_changed 0: none was found.
  assay_quantizer_change_t* change;
  size_t n_changed;
  bool verified;
  assay_output_check_t* fixed;  // with the changes, against golden
  int runs;
} assay_quantizers_t;

typedef struct assay_quantizers_options {
  const assay_samples_t *inputs, *golden;  // golden of the outputs
  const assay_requirements_t* require;     // NULL or empty: the default
  uint64_t seed;
  double seconds;
  bool no_fix;
  void (*progress)(void* user, const char* what, double fraction);
  void* user;
} assay_quantizers_options_t;

// Measures what the outputs lose; where that is too much, or `split` asks for it, splits it over
// the quantizers; where it is too much, looks for a fix.
assay_status_t assay_quantizers_run(const assay_model_t* model,
                                    const assay_quantizers_options_t* options, bool split,
                                    assay_quantizers_t* out) ASSAY_MUST_USE;
// Quantizers whose scales golden tells to be wrong, of whatever kind it is: of those that clip,
// that leave most of their range unused, or whose scales differ from what dequantizes them, from
// their bias' or from those around a node that only moves elements, others are tried, all
// quantizers running; what brings golden much nearer is at fault. Nothing found: out is empty.
assay_status_t assay_quantizers_suspect(const assay_model_t* model,
                                        const assay_quantizers_options_t* options,
                                        assay_quantizers_t* out) ASSAY_MUST_USE;
void assay_quantizers_deinit(assay_quantizers_t* q);

// The model whose quantizers are looked at: `model`, or, where it has operators on quantized
// numbers, q->written_out, which is made.
assay_status_t assay_quantizers_view(assay_quantizers_t* q, const assay_model_t* model,
                                     const assay_model_t** out) ASSAY_MUST_USE;

// Makes the changes in a model as it was read from its file, with operators on quantized numbers
// written out where they were looked at so. The nodes are found by their labels.
assay_status_t assay_quantizers_put(const assay_quantizers_t* q, assay_model_t* raw) ASSAY_MUST_USE;
// Runs the changed model as it declares, in float32, and tells whether the outputs do. Errors:
// those of running it
assay_status_t assay_quantizers_verify(assay_quantizers_t* q, const assay_model_t* changed,
                                       const assay_samples_t* inputs, const assay_samples_t* golden,
                                       const assay_requirements_t* require,
                                       bool* out_holds) ASSAY_MUST_USE;
// What the fix does to a quantizer, in words.
void assay_quantizer_describe(const assay_quantizer_site_t* s, assay_quantizer_change_t change,
                              char* out, size_t size);

// ---- for the parts -----------------------------------------------------------------------------

// The quantizers of the model's top graph: to integers of at most 16 bits, by constant scales;
// by_golden: those whose scales golden may show to be wrong: of stored ones those of 32 bits, too;
// else what costs something: books, too.
assay_status_t assay_quantizers_find(const assay_model_t* model, bool by_golden,
                                     assay_quantizers_t* out) ASSAY_MUST_USE;
// Whether a node dequantizes what a quantizer gives, through limits of fewer bits at most
// (ops/quant/limits.h).
bool assay_quantizer_is_read_by(const assay_node_t* quantizer, const assay_node_t* n);
// The integers of a site that the model stores, wide; the caller releases them.
assay_status_t assay_quantizer_integers(const assay_quantizer_site_t* s,
                                        assay_tensor_t** out) ASSAY_MUST_USE;
// Of a stored bias: which integers are the largest in magnitude, if not all are; to be freed.
// integers: wide. *out NULL: none.
assay_status_t assay_quantizer_cut_off(const assay_quantizer_site_t* s,
                                       const assay_tensor_t* integers, bool** out) ASSAY_MUST_USE;
// A byte with a sign as one without, or the reverse.
double assay_quantizer_other_sign(double q);
// Adds what reaches them in a run of truth without quantizers that kept all; of `samples` samples.
assay_status_t assay_quantizers_observe(assay_quantizers_t* q, const assay_evaluator_t* truth,
                                        size_t samples) ASSAY_MUST_USE;
// Chooses the scales that fit.
assay_status_t assay_quantizer_choose(assay_quantizer_site_t* s) ASSAY_MUST_USE;
void assay_quantizer_explain(assay_quantizer_site_t* s);
// Whether a quantizer's scale is made for a mask, and far too large for all other numbers: no scale
// fits both.
bool assay_quantizer_is_for_mask(const assay_quantizer_site_t* s);
// The axis of the site whose channels are the most unlike: *out_spread, largest over smallest; -1.
int assay_quantizer_unlike_axis(const assay_quantizer_site_t* s, double* out_spread);
// Which scale element i of a tensor has.
int64_t assay_quantizer_scale_at(const assay_quantizer_scales_t* s, const assay_tensor_t* t,
                                 int64_t i);
void assay_quantizer_scales_deinit(assay_quantizer_scales_t* s);
assay_status_t assay_quantizer_scales_create(int axis, int64_t n,
                                             assay_quantizer_scales_t* out) ASSAY_MUST_USE;

struct assay_states;
// Looks for the fix (mend.c). deadline: of assay_clock_seconds.
assay_status_t assay_quantizers_mend(assay_quantizers_t* q, struct assay_states* states,
                                     const assay_quantizers_options_t* options,
                                     double deadline) ASSAY_MUST_USE;
// The largest loss of an output, or of a part of it, over what is allowed.
double assay_quantizers_worst(const assay_quantizers_t* q, const assay_output_check_t* outputs);
// Whether outputs against golden do.
bool assay_quantizers_hold(const assay_quantizers_t* q, assay_output_check_t* outputs,
                           const assay_requirements_t* require);

#endif  // ASSAY_DIAGNOSE_QUANTIZERS_QUANTIZERS_H_
