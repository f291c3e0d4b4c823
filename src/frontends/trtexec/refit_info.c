// --dumpRefit: the weights that can be replaced, with what they are to their layers. --directIO:
// whether anything is converted at the ends of a plan.
#include <string.h>

#include "frontends/trtexec/job.h"
#include "frontends/trtexec/log.h"

// ---- weights ------------------------------------------------------------------------------------

// What an input of an operator is; NULL in place of an operator: of any.
static const struct {
  const char* op;
  int input;
  const char* role;
} roles[] = {
    {"Conv", 1, "Kernel"},
    {"Conv", 2, "Bias"},
    {"ConvTranspose", 1, "Kernel"},
    {"ConvTranspose", 2, "Bias"},
    {"Gemm", 1, "Kernel"},
    {"Gemm", 2, "Bias"},
    {"BatchNormalization", 1, "Scale"},
    {"BatchNormalization", 2, "Shift"},
    {"InstanceNormalization", 1, "Scale"},
    {"InstanceNormalization", 2, "Shift"},
    {"LayerNormalization", 1, "Scale"},
    {"LayerNormalization", 2, "Shift"},
    {"GroupNormalization", 1, "Scale"},
    {"GroupNormalization", 2, "Shift"},
    {"LSTM", 1, "Kernel"},
    {"LSTM", 2, "Kernel"},
    {"LSTM", 3, "Bias"},
    {"GRU", 1, "Kernel"},
    {"GRU", 2, "Kernel"},
    {"GRU", 3, "Bias"},
    {"RNN", 1, "Kernel"},
    {"RNN", 2, "Kernel"},
    {"RNN", 3, "Bias"},
    {"QuantizeLinear", 1, "Scale"},
    {"DequantizeLinear", 1, "Scale"},
    {"DequantizeLinear", 0, "Constant"},
};

static const char* role_of(const assay_node_t* n, size_t input) {
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    if (strcmp(roles[i].op, n->op_type) == 0 && (size_t)roles[i].input == input)
      return roles[i].role;
  return strcmp(n->op_type, "MatMul") == 0 ? "Constant" : "Any";
}

assay_status_t trt_dump_refit(const trt_job_t* j) {
  assay_model_t* source = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_engine_source(j->engine, &source));
  for (size_t g = 0; g < source->n_graphs; g++)
    for (size_t i = 0; i < source->graphs[g]->n_nodes; i++) {
      const assay_node_t* node = source->graphs[g]->nodes[i];
      for (size_t k = 0; k < node->n_inputs; k++) {
        const assay_value_t* v = node->inputs[k];
        if (!v || !v->constant || v->producer || !assay_type_is_float(v->constant->type)) continue;
        trt_info("%s %s", node->label, role_of(node, k));
        n++;
      }
    }
  trt_info("%zu weights can be replaced by --refitFromOnnx", n);
  assay_model_release(source);
  return NULL;
}

// ---- the ends -----------------------------------------------------------------------------------

static assay_status_t converted(const assay_value_t* v, const char* which, const assay_layer_t* l) {
  return ASSAY_ERROR(
      ASSAY_UNSUPPORTED,
      "--directIO: %s '%s' is fp32, and layer '%s' has it in %s: it would be "
      "converted; build a model of that type ('assay edit cast'), or leave --directIO "
      "out",
      which, v->name, l->name, assay_format_name(l->format));
}

static bool differs(const assay_layer_t* l, const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  return t && t->kind == ASSAY_KIND_TENSOR && t->elem == ASSAY_TYPE_FLOAT && l->n_nodes &&
         l->format != ASSAY_FORMAT_FP32 && l->format != ASSAY_FORMAT_TF32 &&
         assay_format_info(l->format)->is_float;
}

assay_status_t trt_check_direct(const trt_job_t* j) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(j->engine));
  if (!trt_given(j->options, TRT_FLAG_directIO)) return NULL;
  if (j->io_types.n)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "--directIO: '%s' would be converted, since the model has another type",
                       j->io_types.items[0]);
  for (size_t i = 0; i < layers->n_layers; i++) {
    const assay_layer_t* l = &layers->layers[i];
    for (size_t k = 0; k < l->n_nodes; k++) {
      const assay_node_t* n = l->nodes[k];
      for (size_t a = 0; a < n->n_inputs; a++)
        if (n->inputs[a] && n->inputs[a]->is_input && !n->inputs[a]->constant &&
            differs(l, n->inputs[a]))
          return converted(n->inputs[a], "input", l);
      for (size_t a = 0; a < n->n_outputs; a++)
        if (n->outputs[a] && n->outputs[a]->is_output && differs(l, n->outputs[a]))
          return converted(n->outputs[a], "output", l);
    }
  }
  return NULL;
}
