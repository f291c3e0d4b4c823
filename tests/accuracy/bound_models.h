// Models of one node for bound_cases.c: operators that have no test among ONNX's, and sizes that
// those tests do not have (long sums). Contents of float inputs are made there; what stands here
// shows the shapes. Inputs that must stay as they are (sizes, scales of quantization) come as
// integers, or are refused with other contents.
#ifndef ASSAY_TESTS_ACCURACY_BOUND_MODELS_H_
#define ASSAY_TESTS_ACCURACY_BOUND_MODELS_H_

#include "ops/op_case.h"

static const op_case_t bound_models[] = {
    // long sums
    {"MatMul", 13, NULL, {"float[4,700] iota", "float[700,8] iota"}, {"?"}, NULL},
    {"MatMul", 13, NULL, {"float[2,5000] iota", "float[5000,3] iota"}, {"?"}, NULL},
    {"Gemm",
     13,
     "transB=1",
     {"float[3,900] iota", "float[5,900] iota", "float[5] iota"},
     {"?"},
     NULL},
    {"Conv",
     22,
     NULL,
     {"float[1,96,7,7] iota", "float[8,96,3,3] iota", "float[8] iota"},
     {"?"},
     NULL},
    {"ReduceSum", 13, NULL, {"float[3,3000] iota", "int64[1] 1"}, {"?"}, NULL},
    {"ReduceMean", 18, NULL, {"float[3,3000] iota", "int64[1] 1"}, {"?"}, NULL},
    {"ReduceL2", 18, NULL, {"float[3,3000] iota", "int64[1] 1"}, {"?"}, NULL},
    {"ReduceLogSumExp", 18, NULL, {"float[3,2000] iota", "int64[1] 1"}, {"?"}, NULL},
    {"CumSum", 14, NULL, {"float[2,1500] iota", "int64[] 1"}, {"?"}, NULL},
    {"Softmax", 13, NULL, {"float[3,2000] iota"}, {"?"}, NULL},
    {"LogSoftmax", 13, NULL, {"float[3,2000] iota"}, {"?"}, NULL},
    {"LayerNormalization",
     17,
     NULL,
     {"float[3,768] iota", "float[768] iota", "float[768] iota"},
     {"?"},
     NULL},
    {"RMSNormalization", 23, NULL, {"float[3,768] iota", "float[768] iota"}, {"?"}, NULL},
    {"InstanceNormalization",
     6,
     NULL,
     {"float[2,3,20,20] iota", "float[3] iota", "float[3] iota"},
     {"?"},
     NULL},
    {"AveragePool", 22, "kernel_shape=7,7", {"float[1,4,14,14] iota"}, {"?"}, NULL},
    {"GlobalAveragePool", 22, NULL, {"float[1,4,30,30] iota"}, {"?"}, NULL},
};

// The name of model i; NULL: there are no more.
static inline const char* bound_model_name(size_t i) {
  static char names[sizeof bound_models / sizeof *bound_models][96];
  if (i >= sizeof bound_models / sizeof *bound_models) return NULL;
  snprintf(names[i], sizeof names[i], "model %zu: %s", i, bound_models[i].op);
  return names[i];
}

// Makes the model of a name, and its inputs by graph input.
static inline assay_status_t bound_model_create(const char* name, assay_model_t** out,
                                                assay_tensor_t*** out_in) {
  const op_case_t* row = &bound_models[strtoull(name + strlen("model "), NULL, 10)];
  assay_tensor_t *in[OP_CASE_VALUES] = {NULL}, **by_input = NULL;
  assay_value_t* values[OP_CASE_VALUES] = {NULL};
  const size_t n = op_case_count(row->in);
  for (size_t i = 0; i < n; i++)
    if (strcmp(row->in[i], "-") != 0) in[i] = op_case_tensor(row->in[i]);
  assay_model_t* m = op_case_model(row, OP_CASE_STATIC, in, values);
  assay_status_t st = assay_infer_model(m);
  if (!st) st = assay_new_array(m->graph->n_inputs, sizeof *by_input, &by_input);
  for (size_t i = 0, k = 0; i < n; i++) {
    if (!st && values[i])
      by_input[k++] = in[i];
    else
      assay_tensor_release(in[i]);
  }
  if (st) return assay_model_release(m), st;
  *out = m;
  *out_in = by_input;
  return NULL;
}

#endif  // ASSAY_TESTS_ACCURACY_BOUND_MODELS_H_
