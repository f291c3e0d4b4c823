// The user's own judge of outputs: a command that reads them and says yes or no.
#ifndef ASSAY_DATA_SCRIPT_H_
#define ASSAY_DATA_SCRIPT_H_

#include "base/str.h"
#include "data/samples.h"

// What the command may read, each as one npz file under the model's names. Several samples are
// joined along their first dimension, as they would be given; numbers become a list of n; what
// differs in shape stands as NAME.0, NAME.1 ...
typedef struct assay_script_data {
  const assay_model_t* model;
  const assay_samples_t *inputs, *golden;  // golden NULL: none
  assay_tensor_t **engine, **truth;        // [sample * outputs + output]
} assay_script_data_t;

// Whether a text is a command: it has {outputs} in it.
bool assay_script_is_command(const char* text);

// Runs the command with {outputs} (the engine's), {truth}, {golden} and {inputs} put in, quoted.
// Exit code 0: they will do; 1: they will not, and what it printed last is appended to *why.
// Errors: DEVICE any other end, or more than `seconds`; INVALID_ARGUMENT {golden} without golden.
assay_status_t assay_script_ask(const char* command, double seconds,
                                const assay_script_data_t* data, bool* out_yes,
                                assay_str_t* why) ASSAY_MUST_USE;

#endif  // ASSAY_DATA_SCRIPT_H_
