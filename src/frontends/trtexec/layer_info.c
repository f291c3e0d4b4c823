// --dumpLayerInfo and --exportLayerInfo: the layers of a plan, with a key "Assay" of what TensorRT
// does not tell.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/shown.h"
#include "formats/format.h"
#include "frontends/trtexec/job.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/text.h"

static const assay_layers_t* layers_of(const trt_job_t* j) {
  return assay_plan_layers(assay_engine_plan(j->engine));
}

// The words that tools look for.
static const char* format_word(assay_format_t f) {
  switch (f) {
    case ASSAY_FORMAT_FP32:
    case ASSAY_FORMAT_TF32:
      return "FP32";
    case ASSAY_FORMAT_FP16:
      return "FP16";
    case ASSAY_FORMAT_BF16:
      return "BFloat16";
    case ASSAY_FORMAT_FP64:
      return "FP64";
    case ASSAY_FORMAT_INT8:
      return "Int8";
    case ASSAY_FORMAT_UINT8:
      return "UInt8";
    case ASSAY_FORMAT_INT32:
      return "Int32";
    case ASSAY_FORMAT_INT64:
      return "Int64";
    case ASSAY_FORMAT_BOOL:
      return "Bool";
    case ASSAY_FORMAT_FP8E4M3:
      return "FP8";
    default:
      return f ? assay_format_name(f) : "N/A";
  }
}

// float32 values are stored in the format of the layer that makes them.
static assay_format_t format_of(const assay_layers_t* layers, const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  if (!t || t->kind != ASSAY_KIND_TENSOR) return ASSAY_FORMAT_NONE;
  const int at = v->producer ? layers->layer_of_node[v->producer->id] : -1;
  return assay_layer_storage(at < 0 ? NULL : &layers->layers[at], t->elem);
}

static json_t* text_json(assay_str_t* take_text) {
  json_t* j = assay_json_str(take_text);
  assay_str_deinit(take_text);
  return j;
}

// A buffer of the caller's in a layout of its own is told as it is; everything else lies in rows.
static void put_format(const trt_job_t* j, const assay_value_t* v, assay_str_t* out) {
  const assay_format_t f = format_of(layers_of(j), v);
  const trt_layout_t* l = trt_layouts;
  if (v->is_input) l = trt_ends_find(&j->layouts, v->name, false);
  if (v->is_output && !l->spatial) l = trt_ends_find(&j->layouts, v->name, true);
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  if (f)
    trt_layout_report(out, l, format_word(l->spatial ? assay_type_format(t->elem) : f));
  else
    assay_str_append(out, format_word(f));
}

static json_t* value_json(const trt_job_t* j, const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  json_t* dims = json_array();
  for (int d = 0; t && t->kind == ASSAY_KIND_TENSOR && t->has_shape && d < t->rank; d++) {
    int64_t size;
    dims = assay_json_push(dims, json_integer(assay_dim_value(t->dims[d], &size) ? size : -1));
  }
  assay_str_t format = {0};
  put_format(j, v, &format);
  json_t* o = assay_json_put(json_object(), "Name", assay_json_text(v->name));
  o = assay_json_put(o, "Location", json_string("Host"));
  o = assay_json_put(o, "Dimensions", dims);
  return assay_json_put(o, "Format/Datatype", text_json(&format));
}

static bool is_own(const assay_layers_t* layers, const assay_layer_t* l, const assay_value_t* v) {
  const int at = v->producer ? layers->layer_of_node[v->producer->id] : -1;
  return at >= 0 && &layers->layers[at] == l;
}

// What goes in: values that are not constants and come from other layers, each once.
static json_t* inputs_json(const trt_job_t* j, const assay_layer_t* l) {
  json_t* list = json_array();
  for (size_t k = 0; k < l->n_nodes; k++)
    for (size_t i = 0; i < l->nodes[k]->n_inputs; i++) {
      const assay_value_t* v = l->nodes[k]->inputs[i];
      bool listed = false;
      if (!v || v->constant || is_own(layers_of(j), l, v)) continue;
      for (size_t n = 0; n < json_array_size(list); n++)
        listed |= strcmp(json_string_value(json_object_get(json_array_get(list, n), "Name")),
                         v->name) == 0;
      if (!listed) list = assay_json_push(list, value_json(j, v));
    }
  return list;
}

static json_t* outputs_json(const trt_job_t* j, const assay_layer_t* l) {
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  json_t* list = json_array();
  for (size_t i = 0; i < last->n_outputs; i++)
    if (last->outputs[i]) list = assay_json_push(list, value_json(j, last->outputs[i]));
  return list;
}

// ---- parameters ---------------------------------------------------------------------------------

static json_t* ints_json(const assay_node_t* n, const char* name, size_t from, size_t count,
                         int64_t fallback) {
  const assay_attr_t* a = assay_node_attr(n, name);
  json_t* list = json_array();
  for (size_t i = from; i < from + count; i++)
    list = assay_json_push(list, json_integer(a && i < a->n ? a->u.ints[i] : fallback));
  return list;
}

static json_t* weights_json(const assay_value_t* v) {
  const bool there = v && v->constant;
  const assay_format_t f = there ? assay_type_format(v->constant->type) : ASSAY_FORMAT_FP32;
  json_t* j = assay_json_put(json_object(), "Type", json_string(format_word(f)));
  return assay_json_put(j, "Count", json_integer(there ? v->constant->size : 0));
}

static bool has_node(const assay_layer_t* l, const char* op) {
  for (size_t k = 1; k < l->n_nodes; k++)
    if (strcmp(l->nodes[k]->op_type, op) == 0) return true;
  return false;
}

static json_t* convolution_json(json_t* j, const assay_layer_t* l, const assay_node_t* n) {
  const assay_value_t* w = n->n_inputs > 1 ? n->inputs[1] : NULL;
  const assay_value_t* b = n->n_inputs > 2 ? n->inputs[2] : NULL;
  const assay_attr_t* group = assay_node_attr(n, "group");
  const int rank = w && w->constant ? w->constant->rank : 0;
  const size_t spatial = rank > 2 ? (size_t)rank - 2 : 0;
  const bool deconv = strcmp(n->op_type, "ConvTranspose") == 0, relu = has_node(l, "Relu");
  const int64_t groups = group ? group->u.i : 1;
  json_t* kernel = json_array();
  for (size_t d = 0; d < spatial; d++)
    kernel = assay_json_push(kernel, json_integer(w->constant->dims[2 + d]));
  j = assay_json_put(j, "ParameterType", json_string(deconv ? "Deconvolution" : "Convolution"));
  j = assay_json_put(j, "Kernel", kernel);
  j = assay_json_put(j, "PaddingMode", json_string("kEXPLICIT_ROUND_DOWN"));
  j = assay_json_put(j, "PrePadding", ints_json(n, "pads", 0, spatial, 0));
  j = assay_json_put(j, "PostPadding", ints_json(n, "pads", spatial, spatial, 0));
  j = assay_json_put(j, "Stride", ints_json(n, "strides", 0, spatial, 1));
  j = assay_json_put(j, "Dilation", ints_json(n, "dilations", 0, spatial, 1));
  j = assay_json_put(j, "OutMaps",
                     json_integer(rank < 2 ? 0
                                  : deconv ? w->constant->dims[1] * groups
                                           : w->constant->dims[0]));
  j = assay_json_put(j, "Groups", json_integer(groups));
  j = assay_json_put(j, "Weights", weights_json(w));
  j = assay_json_put(j, "Bias", weights_json(b));
  j = assay_json_put(j, "HasBias", json_integer(b != NULL));
  j = assay_json_put(j, "HasReLU", json_integer(relu));
  j = assay_json_put(j, "HasSparseWeights", json_integer(0));
  return assay_json_put(j, "Activation", json_string(relu ? "RELU" : "NONE"));
}

static json_t* pooling_json(json_t* j, const assay_node_t* n) {
  const assay_attr_t* window = assay_node_attr(n, "kernel_shape");
  const size_t spatial = window ? window->n : 0;
  const bool average = strstr(n->op_type, "Average") != NULL;
  j = assay_json_put(j, "ParameterType", json_string("Pooling"));
  j = assay_json_put(j, "PoolingType", json_string(average ? "AVERAGE" : "MAX"));
  j = assay_json_put(j, "WindowSize", ints_json(n, "kernel_shape", 0, spatial, 1));
  j = assay_json_put(j, "PrePadding", ints_json(n, "pads", 0, spatial, 0));
  j = assay_json_put(j, "PostPadding", ints_json(n, "pads", spatial, spatial, 0));
  return assay_json_put(j, "Stride", ints_json(n, "strides", 0, spatial, 1));
}

static json_t* parameters_json(json_t* j, const assay_layer_t* l) {
  const assay_node_t* n = l->nodes[0];
  if (strcmp(n->op_type, "Conv") == 0 || strcmp(n->op_type, "ConvTranspose") == 0)
    return convolution_json(j, l, n);
  if (strcmp(n->op_type, "MaxPool") == 0 || strcmp(n->op_type, "AveragePool") == 0)
    return pooling_json(j, n);
  if (strcmp(n->op_type, "Cast") == 0 || strcmp(n->op_type, "Transpose") == 0)
    j = assay_json_put(j, "Origin", json_string("CAST"));
  return assay_json_put(j, "ParameterType", assay_json_text(n->op_type));
}

// ---- a layer ------------------------------------------------------------------------------------

// "[ONNX Layer: a]" of each node of the model as it was given.
static void put_metadata(const trt_job_t* j, const assay_layer_t* l, assay_str_t* out) {
  for (size_t k = 0; k < l->n_nodes; k++) {
    const assay_origins_t o = assay_plan_origins(assay_engine_plan(j->engine), &l->nodes[k]);
    for (size_t i = 0; i < o.n; i++)
      assay_str_printf_raw(out, "%s[ONNX Layer: %s]", out->len ? "\x1E" : "", o.nodes[i]->label);
  }
}

static json_t* own_json(const assay_layers_t* layers, const assay_layer_t* l, const trt_fact_t* f) {
  json_t *nodes = json_array(), *hidden = json_array();
  for (size_t k = 0; k < l->n_nodes; k++) {
    nodes = assay_json_push(nodes, assay_json_text(l->nodes[k]->label));
    for (size_t i = 0; i < l->nodes[k]->n_outputs; i++) {
      const assay_value_t* v = l->nodes[k]->outputs[i];
      if (v && layers->hidden_value[v->id])
        hidden = assay_json_push(hidden, assay_json_text(v->name));
    }
  }
  json_t* j = assay_json_put(json_object(), "nodes", nodes);
  j = assay_json_put(j, "hidden", hidden);
  j = assay_json_put(j, "inputs",
                     json_string(assay_format_name(f->executed ? f->executed : l->format)));
  j = assay_json_put(j, "accumulation", json_string(assay_format_name(l->accumulator)));
  j = assay_json_put(j, "output", json_string(assay_format_name(l->format)));
  return assay_json_put(j, "why", assay_json_text(l->reason));
}

static json_t* name_json(const trt_job_t* j, const assay_layer_t* l) {
  assay_str_t name = {0};
  trt_put_layer_name(&name, l, (int)trt_number(j->options, TRT_FLAG_useProfile));
  return text_json(&name);
}

static json_t* layer_json(const trt_job_t* j, const assay_layer_t* l, const trt_fact_t* f) {
  const assay_layers_t* layers = layers_of(j);
  assay_str_t metadata = {0};
  char value[24];
  put_metadata(j, l, &metadata);
  snprintf(value, sizeof value, "0x%016llx",
           (unsigned long long)assay_hash(f->tactic, strlen(f->tactic), 0));
  json_t* o = assay_json_put(json_object(), "Name", name_json(j, l));
  o = assay_json_put(o, "LayerType", assay_json_text(l->nodes[0]->op_type));
  o = assay_json_put(o, "Inputs", inputs_json(j, l));
  o = assay_json_put(o, "Outputs", outputs_json(j, l));
  o = parameters_json(o, l);
  o = assay_json_put(o, "TacticName", json_string(f->tactic));
  o = assay_json_put(o, "TacticValue", json_string(value));
  o = assay_json_put(o, "StreamId", json_integer(0));
  o = assay_json_put(o, "Metadata", text_json(&metadata));
  return assay_json_put(o, "Assay", own_json(layers, l, f));
}

// ---- all of them --------------------------------------------------------------------------------

static json_t* bindings_json(const trt_job_t* j) {
  json_t* list = json_array();
  for (size_t i = 0; i < assay_engine_input_count(j->engine); i++)
    list = assay_json_push(list, assay_json_text(assay_io_name(assay_engine_input(j->engine, i))));
  for (size_t i = 0; i < trt_output_count(j); i++)
    list = assay_json_push(list, assay_json_text(assay_io_name(assay_engine_output(j->engine, i))));
  return list;
}

static assay_status_t dump(const json_t* layers) {
  assay_status_t st = NULL;
  trt_info("Layer Information:");
  trt_info("Layers:");
  for (size_t i = 0; !st && i < json_array_size(layers); i++) {
    char* line = json_dumps(json_array_get(layers, i), JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    if (line && *line == '"')
      trt_info("%s", json_string_value(json_array_get(layers, i)));
    else if (line)
      trt_info("%s", line);
    else
      st = assay_status_no_memory();
    free(line);
  }
  return st;
}

assay_status_t trt_report_layers(const trt_job_t* j) {
  const trt_options_t* o = j->options;
  const assay_layers_t* layers = layers_of(j);
  const bool none = strcmp(j->verbosity, "none") == 0;
  const bool detailed = strcmp(j->verbosity, "detailed") == 0;
  json_t* list = json_array();
  for (size_t i = 0; !none && i < layers->n_layers && i < j->n_facts; i++)
    list = assay_json_push(list, detailed ? layer_json(j, &layers->layers[i], &j->facts[i])
                                          : name_json(j, &layers->layers[i]));
  if (!list) return assay_status_no_memory();
  if (none) trt_info("--profilingVerbosity=none: no layers are told");
  assay_status_t st = trt_given(o, TRT_FLAG_dumpLayerInfo) ? dump(list) : NULL;
  json_t* all = assay_json_put(json_object(), "Layers", list);
  all = assay_json_put(all, "Bindings", bindings_json(j));
  if (!st && !all) st = assay_status_no_memory();
  if (!st && trt_given(o, TRT_FLAG_exportLayerInfo))
    st = assay_status_note(assay_json_write(trt_text(o, TRT_FLAG_exportLayerInfo), all, 1),
                           "--exportLayerInfo");
  json_decref(all);
  return st;
}
