// Truth of a model with each of its quantizers as it is, off, or changed.
#ifndef ASSAY_DIAGNOSE_QUANTIZERS_STATES_H_
#define ASSAY_DIAGNOSE_QUANTIZERS_STATES_H_

#include "diagnose/quantizers/quantizers.h"

typedef enum assay_quantizer_state {
  ASSAY_STATE_OFF = 0,  // real numbers go through; of stored weights: their integers
  ASSAY_STATE_ON,       // as the model has it
  ASSAY_STATE_CLIPS,    // its range alone
  ASSAY_STATE_ROUNDS,   // its steps alone
  ASSAY_STATE_FITS,     // by the scales that fit
  ASSAY_STATE_APART,    // by scales for each channel
  ASSAY_STATE_DRAWN,    // stored weights: each moved by half a step at random
  ASSAY_STATE_PAIRED,   // dequantized by the scales that it is quantized by
  ASSAY_STATE_READ,     // quantized by the scales that it is dequantized by
  ASSAY_STATE_FINE,     // the same, by the steps that a scale for each channel would have
  ASSAY_STATE_TIES,     // as the model has it, of numbers that arithmetic may have moved
  ASSAY_STATE_AWAY,     // stored integers, each half a step farther from the zero point
  ASSAY_STATE_THROUGH,  // what dequantizes it gives the numbers that reach the quantizer
} assay_quantizer_state_t;

typedef struct assay_states assay_states_t;

// All are borrowed. The samples of golden may be fewer. written: the base is the model as it
// declares, in float32, not truth without quantizers; what states change of it is run alone. States
// are then ON, FITS, PAIRED, READ, TIES, AWAY and THROUGH.
assay_status_t assay_states_create(const assay_model_t* model, assay_quantizers_t* q,
                                   const assay_quantizers_options_t* options, bool written,
                                   assay_states_t** out) ASSAY_MUST_USE;
// The base has these states from now on; of written ones.
void assay_states_rest(assay_states_t* s, const assay_quantizer_state_t* at);
void assay_states_destroy(assay_states_t* s);
// The base of a sample; borrowed, until the next call for another sample.
assay_status_t assay_states_base(assay_states_t* s, size_t sample,
                                 const assay_evaluator_t** out) ASSAY_MUST_USE;
size_t assay_states_samples(const assay_states_t* s);
// Runs are of this sample alone from now on; ASSAY_ALL_SAMPLES: of all.
#define ASSAY_ALL_SAMPLES SIZE_MAX
void assay_states_only(assay_states_t* s, size_t sample);
// What the quantizers get in truth of all samples, and the scales that fit it.
assay_status_t assay_states_observe(assay_states_t* s, assay_quantizers_t* q) ASSAY_MUST_USE;
// All samples with these states, by site. Fills outputs, which are empty: `error` is against truth
// without quantizers (by_itself: none, for what is required of an engine beside truth),
// `engine_golden` against golden, `golden` is truth without quantizers against it.
assay_status_t assay_states_run(assay_states_t* s, const assay_quantizer_state_t* at,
                                bool by_itself, assay_output_check_t* outputs) ASSAY_MUST_USE;

// A number from -0.5 to 0.5, of i alone.
double assay_quantizer_chance(int64_t i);
// Hooks of a written run: what a node of site s gets, which quantizes or dequantizes, and gives.
assay_status_t assay_written_before(const assay_quantizer_site_t* s, assay_quantizer_state_t state,
                                    bool dequantizes, size_t n_in,
                                    assay_tensor_t** in) ASSAY_MUST_USE;
assay_status_t assay_written_after(const assay_quantizer_site_t* s, assay_quantizer_state_t state,
                                   size_t n_out, assay_tensor_t** out) ASSAY_MUST_USE;

// A loss is a part of an output's energy. One of this size, a third of the output in magnitude (10
// dB), is never good enough.
#define ASSAY_LOSS_MOST 0.1
double assay_loss_part(double error2, double size2);
// Of the engine against golden.
double assay_golden_loss(const assay_output_check_t* o);

#endif  // ASSAY_DIAGNOSE_QUANTIZERS_STATES_H_
