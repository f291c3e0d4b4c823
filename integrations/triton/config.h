// A model's configuration: JSON that the server gives, completed from the model and held against
// it.
#ifndef ASSAY_TRITON_CONFIG_H_
#define ASSAY_TRITON_CONFIG_H_

#include <jansson.h>

#include "io.h"

// The object that a message holds; {} if it is empty. The caller owns it (json_decref).
TRITONSERVER_Error* config_parse(TRITONSERVER_Message* message, json_t** out);
// A number, also where it is written as a string; `otherwise` if there is none.
int64_t config_integer(const json_t* value, int64_t otherwise);

// Errors: UNSUPPORTED what this backend does not do: sequences, decoupled responses, ragged batches
// with batch inputs, accelerators of others
TRITONSERVER_Error* config_check_features(const json_t* config);

// Fills in what the model tells and the configuration does not: inputs, outputs, max_batch_size
// (where the model takes batches: as many rows as its profiles do, or max_batch), dynamic_batching.
// Sets *out_changed if it did.
TRITONSERVER_Error* config_complete(json_t* config, const io_t* io, int64_t max_batch,
                                    bool* out_changed);

// Whether the configuration is one of this model. out_max_batch: 0 if requests have no batch
// dimension of the server's.
// Errors: INVALID_ARG names, types or shapes that differ; a batch that the model does not take
TRITONSERVER_Error* config_check(const json_t* config, const io_t* io, int64_t* out_max_batch);

#endif  // ASSAY_TRITON_CONFIG_H_
