// How a model is compiled and run: the `parameters` of its configuration, and before them what
// `--backend-config=assay,NAME=VALUE` says for all models.
#ifndef ASSAY_TRITON_SETTINGS_H_
#define ASSAY_TRITON_SETTINGS_H_

#include <jansson.h>

#include "errors.h"

typedef struct settings {
  assay_engine_options_t build;  // its texts are those below; the target is chosen for an instance
  char* target;                  // NULL: by the kind of the instance group
  char* layer_precision;
  char* timing_cache;  // a whole path
  char* tactic_sources;
  int threads;             // of a context; 0: as many as the machine gives; -1: nobody says
  const char* build_only;  // a parameter of the model that says how to compile; NULL: none
  int64_t max_batch;       // where a configuration is completed; the server's default
} settings_t;

// backend: what TRITONBACKEND_BackendConfig() says, or NULL. config: the model's configuration.
// folder: of the model, where paths that are not absolute begin.
// Errors: INVALID_ARG an unknown parameter, or a value that is none; names in capitals are the
// server's and other tools', and are left alone
TRITONSERVER_Error* settings_init(settings_t* s, const json_t* backend, const json_t* config,
                                  const char* folder);
void settings_deinit(settings_t* s);  // zeroes are allowed

#endif  // ASSAY_TRITON_SETTINGS_H_
