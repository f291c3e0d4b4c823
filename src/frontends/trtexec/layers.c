// --precisionConstraints, --layerPrecisions and --layerOutputTypes.
//
// Names are resolved here, since trtexec knows nodes by their names only, an exact one before a
// wildcard; what comes of that are rules of --layer-precision, of one node each.
#include <string.h>

#include "base/shown.h"
#include "formats/format.h"
#include "frontends/trtexec/job.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/specs.h"

// An element of one of the lists.
typedef struct request {
  const char* name;
  const assay_format_t* formats;  // of --layerOutputTypes: one, or one for each output
  size_t n_formats;
} request_t;

typedef struct lists {
  request_t *compute, *output;
  size_t n_compute, n_output;
} lists_t;

// ---- reading ------------------------------------------------------------------------------------

static assay_status_t read_types(assay_arena_t* arena, const char* flag, const char* text,
                                 bool many, request_t* out) {
  size_t n = 1;
  assay_format_t* formats = NULL;
  for (const char* c = text; *c; c++) n += *c == '+';
  if (n > 1 && !many)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' has one precision, not '%s'", flag,
                       out->name, text);
  ASSAY_TRY(assay_arena_new(arena, n, sizeof *formats, &formats));
  for (size_t i = 0; i < n; i++) {
    const char* word = NULL;
    const size_t len = strcspn(text, "+");
    ASSAY_TRY(assay_arena_strndup(arena, text, len, &word));
    formats[i] = trt_layer_type(word);
    if (!formats[i])
      return ASSAY_ERROR(
          ASSAY_INVALID_ARGUMENT,
          "%s: '%s' of '%s' is not a type: fp32, fp16, bf16, int8, int32, int64, bool, "
          "uint8, fp8 or int4",
          flag, word, out->name);
    text += len + (text[len] == '+');
  }
  out->formats = formats;
  out->n_formats = n;
  return NULL;
}

static assay_status_t read_list(const trt_job_t* j, trt_flag_id_t f, bool many, request_t** out,
                                size_t* out_n) {
  const char* flag = trt_flags[f].name;
  trt_item_t* items = NULL;
  *out_n = 0;
  if (!trt_given(j->options, f)) return NULL;
  ASSAY_TRY(trt_items_parse(j->arena, flag, trt_text(j->options, f), &items, out_n));
  ASSAY_TRY(assay_arena_new(j->arena, *out_n, sizeof **out, out));
  for (size_t i = 0; i < *out_n; i++) {
    (*out)[i].name = items[i].name;
    ASSAY_TRY(trt_name_check(flag, items[i].name));
    ASSAY_TRY(read_types(j->arena, flag, items[i].value, many, &(*out)[i]));
  }
  return NULL;
}

// ---- matching -----------------------------------------------------------------------------------

// A node without a name is "node_of_<its first output>" to TensorRT; here its label does, too.
static bool matches(const char* pattern, const assay_node_t* n) {
  static const char unnamed[] = "node_of_";
  if (trt_name_matches(pattern, n->label)) return true;
  if (*n->name || !n->n_outputs || !n->outputs[0]) return false;
  assay_str_t name = {0};
  assay_str_printf_raw(&name, "%s%s", unnamed, n->outputs[0]->name);
  const bool same = trt_name_matches(pattern, assay_str_get(&name));
  assay_str_deinit(&name);
  return same;
}

static const char of_integers[] = "it computes on integers";

static bool is_float(const assay_value_t* v) {
  const assay_valtype_t* t = v ? (v->type ? v->type : v->declared) : NULL;
  return v && (!t || t->kind != ASSAY_KIND_TENSOR || assay_type_is_float(t->elem) || !t->elem);
}

// Whether nothing that goes in or comes out is a float, or its size only counts: no format of
// floats means anything there.
static bool is_integer(const assay_node_t* n) {
  if (strcmp(n->op_type, "Shape") == 0 || strcmp(n->op_type, "Size") == 0) return true;
  for (size_t i = 0; i < n->n_inputs; i++)
    if (is_float(n->inputs[i])) return false;
  for (size_t i = 0; i < n->n_outputs; i++)
    if (is_float(n->outputs[i])) return false;
  return true;
}

// Why a wildcard skips a node; NULL: it does not.
static const char* skipped(const trt_job_t* j, const assay_node_t* n) {
  if (j->shape_nodes[n->id]) return "it computes a shape";
  return is_integer(n) ? of_integers : NULL;
}

// The request for a node, an exact name before a wildcard, of several the last one; NULL: none.
static const request_t* request_of(const trt_job_t* j, const request_t* list, size_t n,
                                   const assay_node_t* node) {
  const request_t* found = NULL;
  bool exact = false;
  for (size_t i = 0; i < n; i++) {
    const bool wild = trt_has_wildcard(list[i].name);
    if ((exact && wild) || !matches(list[i].name, node)) continue;
    const char* why = wild ? skipped(j, node) : NULL;
    if (why) {
      trt_verbose("Layer %s is skipped by '%s': %s", node->label, list[i].name, why);
      continue;
    }
    found = &list[i];
    exact |= !wild;
  }
  return found;
}

static void warn_of_unmatched(const trt_job_t* j, const char* flag, const request_t* list,
                              size_t n) {
  for (size_t i = 0; i < n; i++) {
    bool any = false;
    for (size_t g = 0; !any && g < j->model->n_graphs; g++)
      for (size_t k = 0; !any && k < j->model->graphs[g]->n_nodes; k++)
        any = matches(list[i].name, j->model->graphs[g]->nodes[k]);
    if (any) continue;
    const assay_nearest_t near = assay_plan_nearest(j->model, list[i].name);
    trt_warn("%s: '%s' is the name of no layer%s", flag, list[i].name, ASSAY_NEAREST_TEXT(&near));
  }
}

// ---- deciding -----------------------------------------------------------------------------------

// A request that cannot be met: an error with obey, else a warning.
static assay_status_t refuse(const trt_job_t* j, const assay_node_t* n, assay_format_t format,
                             const char* why) {
  if (j->obey)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "layer '%s' cannot be in %s: %s (--precisionConstraints=obey)", n->label,
                       assay_format_name(format), why);
  trt_warn("Layer %s is not in %s: %s", n->label, assay_format_name(format), why);
  return NULL;
}

// Why a node cannot be in a format, whatever the kernels; NULL: it may.
static const char* obstacle(const trt_job_t* j, const assay_node_t* n, assay_format_t f) {
  const trt_options_t* o = j->options;
  const bool best = trt_given(o, TRT_FLAG_best);
  if (f == ASSAY_FORMAT_FP16 && !trt_given(o, TRT_FLAG_fp16) && !best) return "--fp16 is not given";
  if (f == ASSAY_FORMAT_BF16 && !trt_given(o, TRT_FLAG_bf16) && !best) return "--bf16 is not given";
  if (f == ASSAY_FORMAT_INT8 && !trt_given(o, TRT_FLAG_int8) && !best) return "--int8 is not given";
  if (f == ASSAY_FORMAT_FP8E4M3 && !trt_given(o, TRT_FLAG_fp8)) return "--fp8 is not given";
  if (f == ASSAY_FORMAT_INT4 && !trt_given(o, TRT_FLAG_int4)) return "--int4 is not given";
  if (f == ASSAY_FORMAT_INT8 || f == ASSAY_FORMAT_FP8E4M3 || f == ASSAY_FORMAT_INT4)
    return "Assay takes that format where the model's Q/DQ nodes say so";
  if (f != ASSAY_FORMAT_FP32 && f != ASSAY_FORMAT_FP16 && f != ASSAY_FORMAT_BF16)
    return "layers are put into fp32, fp16 or bf16";
  if (is_integer(n)) return of_integers;
  return NULL;
}

// What an output has to be: the widest of the types that are asked for its node's outputs.
static assay_status_t output_format(const trt_job_t* j, const assay_node_t* n, const request_t* r,
                                    assay_format_t* out) {
  if (r->n_formats != 1 && r->n_formats != n->n_outputs)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--layerOutputTypes: '%s' has %zu outputs and %zu types: give one, or one "
                       "for each",
                       n->label, n->n_outputs, r->n_formats);
  for (size_t k = 0; k < n->n_outputs; k++) {
    const assay_value_t* v = n->outputs[k];
    const assay_format_t f = r->formats[r->n_formats == 1 ? 0 : k];
    const assay_valtype_t* t = v ? v->type : NULL;
    if (!v ||
        (t && t->kind == ASSAY_KIND_TENSOR && !is_float(v) && assay_type_format(t->elem) == f))
      continue;
    const char* why = is_float(v) ? obstacle(j, n, f) : "it is of integers";
    if (why) {
      ASSAY_TRY(refuse(j, n, f, why));
      continue;
    }
    trt_info("Set output %zu of layer %s to type %s", k, n->label, assay_format_name(f));
    if (*out && *out != f)
      ASSAY_TRY(refuse(j, n, f, "the outputs of a layer are in one format, the wider one"));
    if (!*out || f == ASSAY_FORMAT_FP32) *out = f;
  }
  return NULL;
}

// A layer computes in the format that it stores: of two different ones, the wider.
static assay_status_t unite(const trt_job_t* j, const assay_node_t* n, const trt_request_t* w,
                            assay_format_t* out) {
  *out = w->compute ? w->compute : w->output;
  if (!w->compute || !w->output || w->compute == w->output) return NULL;
  if (w->output == ASSAY_FORMAT_FP32) *out = w->output;
  return refuse(j, n, *out == w->output ? w->compute : w->output,
                "Assay stores a layer's outputs in the format it computes in, the wider one");
}

// Lists that scripts make name constants of shapes by the hundred: one warning for all of them.
static void skip_integers(trt_job_t* j, const assay_node_t* n) {
  if (!j->n_integer_layers++) j->integer_layer = n->label;
  trt_verbose("Layer %s keeps its type: it computes on integers", n->label);
}

static assay_status_t resolve_node(trt_job_t* j, const lists_t* l, const assay_node_t* n) {
  const request_t* compute = request_of(j, l->compute, l->n_compute, n);
  const request_t* output = request_of(j, l->output, l->n_output, n);
  trt_request_t* w = &j->requests[n->id];
  assay_format_t format;
  if (compute) {
    const char* why = obstacle(j, n, compute->formats[0]);
    if (why == of_integers && !j->obey)
      skip_integers(j, n);
    else if (why)
      ASSAY_TRY(refuse(j, n, compute->formats[0], why));
    else
      w->compute = compute->formats[0];
  }
  if (w->compute) trt_info("Set layer %s to precision %s", n->label, assay_format_name(w->compute));
  if (output) ASSAY_TRY(output_format(j, n, output, &w->output));
  ASSAY_TRY(unite(j, n, w, &format));
  w->compute = format;
  if (!format) return NULL;
  ASSAY_TRY(assay_map_put(&j->wished, n->label, (uint64_t)n->id, NULL));
  if (j->rules.len) assay_str_append(&j->rules, ",");
  assay_precision_print(&n, 1, format, &j->rules);
  return NULL;
}

assay_status_t trt_resolve_layers(trt_job_t* j) {
  const trt_options_t* o = j->options;
  const bool given =
      trt_given(o, TRT_FLAG_layerPrecisions) || trt_given(o, TRT_FLAG_layerOutputTypes);
  lists_t l = {0};
  j->obey = trt_is(o, TRT_FLAG_precisionConstraints, "obey");
  ASSAY_TRY(read_list(j, TRT_FLAG_layerPrecisions, false, &l.compute, &l.n_compute));
  ASSAY_TRY(read_list(j, TRT_FLAG_layerOutputTypes, true, &l.output, &l.n_output));
  if (!trt_is(o, TRT_FLAG_precisionConstraints, "none") && !given)
    trt_warn(
        "--precisionConstraints=%s has no effect: neither --layerPrecisions nor "
        "--layerOutputTypes is given",
        trt_text(o, TRT_FLAG_precisionConstraints));
  if (!given) return NULL;
  if (trt_given(o, TRT_FLAG_stronglyTyped))
    return trt_warn(
               "--layerPrecisions and --layerOutputTypes have no effect with --stronglyTyped: "
               "formats are the model's own"),
           NULL;
  if (trt_is(o, TRT_FLAG_precisionConstraints, "none"))
    return trt_warn(
               "--layerPrecisions and --layerOutputTypes have no effect without "
               "--precisionConstraints=prefer or obey"),
           NULL;
  ASSAY_TRY(
      assay_arena_new(j->arena, (size_t)j->model->n_node_ids, sizeof *j->requests, &j->requests));
  ASSAY_TRY(assay_arena_new(j->arena, (size_t)j->model->n_node_ids, sizeof *j->warned, &j->warned));
  bool* shape_nodes = NULL;
  ASSAY_TRY(trt_shape_nodes(j->arena, j->model, &shape_nodes));
  j->shape_nodes = shape_nodes;
  warn_of_unmatched(j, "--layerPrecisions", l.compute, l.n_compute);
  warn_of_unmatched(j, "--layerOutputTypes", l.output, l.n_output);
  for (size_t g = 0; g < j->model->n_graphs; g++)
    for (size_t i = 0; i < j->model->graphs[g]->n_nodes; i++)
      ASSAY_TRY(resolve_node(j, &l, j->model->graphs[g]->nodes[i]));
  if (j->n_integer_layers)
    trt_warn(
        "%zu layers that are named keep their types, since they compute on integers, such as %s "
        "(--verbose lists them)",
        j->n_integer_layers, j->integer_layer);
  ASSAY_TRY(assay_str_status(&j->rules));
  if (j->rules.len) j->native.layer_precision = assay_str_get(&j->rules);
  return NULL;
}

// ---- what came of it ----------------------------------------------------------------------------

static assay_status_t check_layer(trt_job_t* j, const assay_plan_t* plan, const assay_layer_t* l,
                                  assay_format_t executed) {
  const assay_layers_t* layers = assay_plan_layers(plan);
  for (size_t k = 0; k < l->n_nodes; k++) {
    const assay_origins_t o = assay_plan_origins(plan, &l->nodes[k]);
    for (size_t i = 0; i < o.n; i++) {
      // The engine's model is another one, with its sizes closed: nodes are known by their labels.
      uint64_t id;
      if (!assay_map_get(&j->wished, o.nodes[i]->label, &id) || j->warned[id]) continue;
      const assay_format_t f = j->requests[id].compute;
      if (l->format == f && assay_layer_computes(layers, l, executed)) continue;
      j->warned[id] = true;
      ASSAY_TRY(refuse(j, o.nodes[i], f,
                       l->format == f ? "it is stored so, but the kernel computes in another format"
                                      : "the layer that it became part of is in another format"));
    }
  }
  return NULL;
}

assay_status_t trt_check_layers(trt_job_t* j, const assay_layers_t* layers) {
  const assay_plan_t* plan = assay_engine_plan(j->engine);
  for (size_t i = 0; j->requests && i < layers->n_layers; i++)
    ASSAY_TRY(check_layer(j, plan, &layers->layers[i], j->facts[i].executed));
  return NULL;
}
