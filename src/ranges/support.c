// Which nodes each backend runs, and which ones TensorRT's parser takes.
#include "ranges/support.h"

#include <stdio.h>
#include <string.h>

#include "backends/cpu/tactic.h"
#include "base/alloc.h"
#include "exec/choice/describe.h"
#include "exec/segment/value_slot.h"

void assay_support_deinit(assay_support_t* s) {
  assay_free(s->nodes);
  *s = (assay_support_t){0};
}

// ---- TensorRT -----------------------------------------------------------------------------------

enum {
  TRT_F32 = 1 << 0,
  TRT_F16 = 1 << 1,
  TRT_F = TRT_F32 | TRT_F16 | 1 << 2,  // bf16, too
  TRT_I32 = 1 << 3,
  TRT_I64 = 1 << 4,
  TRT_I8 = 1 << 5,
  TRT_U8 = 1 << 6,
  TRT_B = 1 << 7,
  TRT_F8 = 1 << 8,
  TRT_I4 = 1 << 9,
  TRT_UNLISTED = 1 << 10,
};

typedef enum limit {
  NONE = 0,
  POOL,
  POOL_INDICES,
  DILATIONS,
  CONSTANT_1,
  CONSTANT_3,
  CONSTANT_KIND,
  ZERO_2,
  RANK_4,
  ONE_OUTPUT,
  RESIZE,
  REDUCTION,
  DEFORM,
  RECURRENT,
  BRANCHES,
  TOP_K,
} limit_t;

typedef struct trt_operator {
  const char *domain, *op;
  int types;
  limit_t limit;
  const char* text;
} trt_operator_t;

#define TRT_OPERATOR(domain, op, types, limit, text) {domain, op, types, limit, text},
static const trt_operator_t trt_operators[] = {
#include "ranges/trt.inc"
};
#undef TRT_OPERATOR

static const trt_operator_t* find_operator(const assay_node_t* n) {
  for (size_t i = 0; i < sizeof trt_operators / sizeof *trt_operators; i++)
    if (!strcmp(trt_operators[i].op, n->op_type) && !strcmp(trt_operators[i].domain, n->domain))
      return &trt_operators[i];
  return NULL;
}

static int trt_type(assay_type_t t) {
  switch (t) {
    case ASSAY_TYPE_FLOAT:
    case ASSAY_TYPE_DOUBLE:  // cut down to float32
      return TRT_F32;
    case ASSAY_TYPE_FLOAT16:
      return TRT_F16;
    case ASSAY_TYPE_BFLOAT16:
      return TRT_F;
    case ASSAY_TYPE_INT32:
      return TRT_I32;
    case ASSAY_TYPE_INT64:
      return TRT_I64;
    case ASSAY_TYPE_INT8:
      return TRT_I8;
    case ASSAY_TYPE_UINT8:
      return TRT_U8;
    case ASSAY_TYPE_BOOL:
      return TRT_B;
    case ASSAY_TYPE_FLOAT8E4M3FN:
      return TRT_F8;
    case ASSAY_TYPE_INT4:
      return TRT_I4;
    default:
      return 0;
  }
}

// Names that its own exporters write, and plugins that it brings.
static bool is_its_own(const assay_node_t* n) {
  static const char* const plugins[] = {"EfficientNMS_TRT",
                                        "BatchedNMS_TRT",
                                        "BatchedNMSDynamic_TRT",
                                        "NMS_TRT",
                                        "ROIAlign_TRT",
                                        "ResizeNearest_TRT",
                                        "GridAnchor_TRT",
                                        "InstanceNormalization_TRT",
                                        "MultiscaleDeformableAttnPlugin_TRT",
                                        "DisentangledAttention_TRT"};
  if (!strncmp(n->op_type, "TRT_", 4)) return true;
  for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
    if (!strcmp(plugins[i], n->op_type)) return true;
  return false;
}

static int rank_of(const assay_value_t* v) {
  return v && v->type && v->type->has_shape ? v->type->rank : -1;
}

// A constant's elements, to be released; NULL: there are none.
static assay_status_t elements_of(const assay_value_t* v, assay_tensor_t** out) {
  assay_tensor_t* t = assay_value_constant(v);
  return t && t->kind == ASSAY_KIND_TENSOR ? assay_tensor_widen(t, out) : NULL;
}

static assay_status_t is_not_zero(const assay_value_t* v, bool* out) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(elements_of(v, &wide));
  bool zero = wide != NULL;
  for (int64_t i = 0; wide && i < wide->size; i++)
    zero &= wide->store == ASSAY_STORE_F64
                ? assay_f64(wide)[i] == 0
                : wide->store == ASSAY_STORE_I64 && assay_i64(wide)[i] == 0;
  assay_tensor_release(wide);
  *out = !zero;
  return NULL;
}

static bool wants(const assay_node_t* n, size_t i) { return i < n->n_outputs && n->outputs[i]; }
static bool has(const assay_node_t* n, size_t i) { return i < n->n_inputs && n->inputs[i]; }

static bool is_open(const assay_node_t* n, size_t i) {
  return has(n, i) && !assay_value_constant(n->inputs[i]);
}

static bool is_dilated(const assay_node_t* n) {
  size_t count = 0;
  const int64_t* at = assay_attr_ints(n, "dilations", &count);
  for (size_t i = 0; i < count; i++)
    if (at[i] != 1) return true;
  return false;
}

static bool has_other_pads_behind(const assay_node_t* n) {
  size_t count = 0;
  const int64_t* at = assay_attr_ints(n, "pads", &count);
  for (size_t i = 0; i < count / 2; i++)
    if (at[i] != at[i + count / 2]) return true;
  return false;
}

static bool is_resized_otherwise(const assay_node_t* n) {
  size_t count = 0;
  const int64_t* axes = assay_attr_ints(n, "axes", &count);
  bool in_order = !axes || (int)count == rank_of(n->inputs[0]);
  for (size_t i = 0; in_order && i < count; i++) in_order = axes[i] == (int64_t)i;
  return !in_order || strstr(assay_attr_str(n, "mode", "nearest"), "cubic") ||
         assay_attr_i64(n, "antialias", 0) ||
         strcmp(assay_attr_str(n, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0 ||
         assay_attr_is(n, "coordinate_transformation_mode", "tf_crop_and_resize") ||
         assay_attr_is(n, "coordinate_transformation_mode", "half_pixel_symmetric");
}

static bool is_other_recurrent(const assay_node_t* n) {
  size_t count = 0;
  const assay_string_t* names = assay_attr_strings(n, "activations", &count);
  for (size_t i = 0; i < count / 2 && assay_attr_is(n, "direction", "bidirectional"); i++)
    if (names[i].len != names[i + count / 2].len ||
        memcmp(names[i].text, names[i + count / 2].text, names[i].len) != 0)
      return true;
  return !strcmp(n->op_type, "LSTM") &&
         (assay_attr_i64(n, "input_forget", 0) || assay_attr_i64(n, "layout", 0));
}

static bool has_other_ranks(const assay_node_t* n) {
  const assay_graph_t *a = assay_attr_graph(n, "then_branch"),
                      *b = assay_attr_graph(n, "else_branch");
  for (size_t i = 0; a && b && i < a->n_outputs && i < b->n_outputs; i++)
    if (rank_of(a->outputs[i]) != rank_of(b->outputs[i])) return true;
  return false;
}

static assay_status_t picks_many(const assay_node_t* n, bool* out) {
  enum { MAX = 3840 };
  assay_tensor_t* wide = NULL;
  if ((*out = !assay_attr_i64(n, "sorted", 1)) || !has(n, 1)) return NULL;
  ASSAY_TRY(elements_of(n->inputs[1], &wide));
  *out = wide && wide->store == ASSAY_STORE_I64 && wide->size == 1 && assay_i64(wide)[0] >= MAX;
  assay_tensor_release(wide);
  return NULL;
}

// Whether a restriction of the list is about this node, as far as its attributes and types tell.
static bool is_reported(const assay_node_t* n, limit_t limit) {
  const int rank = n->n_inputs ? rank_of(n->inputs[0]) : -1;
  switch (limit) {
    case NONE:
    case ZERO_2:
    case TOP_K:
      return false;
    case POOL:
      return (rank > 0 && rank != 4 && rank != 5) || is_dilated(n);
    case POOL_INDICES:
      return (rank > 0 && rank != 4 && rank != 5) || is_dilated(n) || wants(n, 1);
    case DILATIONS:
      return is_dilated(n);
    case CONSTANT_1:
      return is_open(n, 1);
    case CONSTANT_3:
      return is_open(n, 3);
    case CONSTANT_KIND:
      return assay_attr_has(n, "sparse_value") || assay_attr_has(n, "value_string") ||
             assay_attr_has(n, "value_strings");
    case RANK_4:
      return rank > 0 && rank != 4;
    case ONE_OUTPUT:
      return wants(n, 1) || wants(n, 2);
    case RESIZE:
      return is_resized_otherwise(n);
    case REDUCTION:
      return strcmp(assay_attr_str(n, "reduction", "none"), "none") != 0;
    case DEFORM:
      return (rank > 0 && rank != 3 && rank != 4) || has_other_pads_behind(n);
    case RECURRENT:
      return is_other_recurrent(n);
    case BRANCHES:
      return has_other_ranks(n);
  }
  return false;
}

static assay_status_t is_restricted(const assay_node_t* n, limit_t limit, bool* out) {
  *out = is_reported(n, limit);
  if (limit == ZERO_2 && has(n, 2)) return is_not_zero(n->inputs[2], out);
  return limit == TOP_K ? picks_many(n, out) : NULL;
}

static assay_status_t ask_trt(const assay_node_t* n, assay_node_support_t* s) {
  const trt_operator_t* o = find_operator(n);
  if (!o) {
    s->trt = is_its_own(n) ? ASSAY_SUPPORT_YES : ASSAY_SUPPORT_NO;
    if (s->trt == ASSAY_SUPPORT_NO)
      snprintf(s->trt_why, sizeof s->trt_why, "no operator of its list (a plugin would be needed)");
    return NULL;
  }
  if (o->types == TRT_UNLISTED) {
    s->trt = ASSAY_SUPPORT_UNKNOWN;
    snprintf(s->trt_why, sizeof s->trt_why, "newer than its list (10.1)");
    return NULL;
  }
  if (!o->types) {
    s->trt = ASSAY_SUPPORT_NO;
    snprintf(s->trt_why, sizeof s->trt_why, "its list says no");
    return NULL;
  }
  const assay_valtype_t* t = n->n_inputs && n->inputs[0] ? n->inputs[0]->type : NULL;
  if (!t && n->n_outputs && n->outputs[0]) t = n->outputs[0]->type;
  const int type = t && t->kind == ASSAY_KIND_TENSOR ? trt_type(t->elem) : TRT_F;
  if ((type & o->types) != type || !type) {
    s->trt = ASSAY_SUPPORT_NO;
    snprintf(s->trt_why, sizeof s->trt_why, "not for %s",
             t ? assay_type_name(t->elem) : "this type");
    return NULL;
  }
  bool restricted;
  ASSAY_TRY(is_restricted(n, o->limit, &restricted));
  if (restricted) {
    s->trt = ASSAY_SUPPORT_SLOW;
    snprintf(s->trt_why, sizeof s->trt_why, "%s", o->text);
  }
  return NULL;
}

// ---- our own ------------------------------------------------------------------------------------

static bool describe_value(void* user, const assay_value_t* v, assay_operand_t* o) {
  (void)user;
  const assay_valtype_t* t = v->type;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || t->rank > ASSAY_KERNEL_RANK)
    return false;
  o->rank = t->rank;
  for (int i = 0; i < t->rank; i++)
    if (!t->dims[i] || !assay_dim_value(t->dims[i], &o->dims[i])) return false;
  o->constant = assay_value_slot_constant(v);
  o->store = user;
  o->layout = ASSAY_LAYOUT_PLAIN;
  return assay_dims_size(o->rank, o->dims, &o->size);
}

static assay_status_t ask_cpu(const assay_layers_t* layers, size_t i, assay_weights_t* store,
                              assay_node_support_t* s) {
  const assay_layer_t* l = &layers->layers[i];
  const assay_sizes_t sizes = {0};
  assay_sized_layer_t* d = NULL;
  s->cpu = ASSAY_SUPPORT_SLOW;
  if (l->format == ASSAY_FORMAT_TF32 || l->accumulator != ASSAY_FORMAT_FP32) {
    snprintf(s->cpu_why, sizeof s->cpu_why, "no kernels of this format");
    return NULL;
  }
  ASSAY_TRY(ASSAY_NEW(&d));
  assay_status_t st = NULL;
  if (!assay_describe_layer(layers, i, &sizes, describe_value, store, d)) {
    snprintf(s->cpu_why, sizeof s->cpu_why, "emulated: sizes or types that no kernel takes");
  } else {
    for (size_t k = 0; !st && k < cpu_n_tactics && !s->cpu_tactic; k++) {
      assay_kernel_t* kernel = NULL;
      st = cpu_tactics[k]->make(d, &kernel);
      if (!kernel) continue;
      s->cpu_tactic = cpu_tactics[k]->name;
      s->cpu = ASSAY_SUPPORT_YES;
      kernel->destroy(kernel);
    }
    if (!st && !s->cpu_tactic)
      snprintf(s->cpu_why, sizeof s->cpu_why, "emulated: no kernel of its own");
  }
  assay_free(d);
  return st;
}

// What follows from sizes or constants alone is computed once.
static bool is_known(const assay_node_t* n) {
  bool constants = n->n_inputs > 0;
  for (size_t i = 0; i < n->n_inputs; i++) constants &= !n->inputs[i] || n->inputs[i]->constant;
  if (constants) return true;
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    if (!v) continue;
    bool known = v->constant != NULL;
    for (int64_t k = 0; !known && v->content && k < v->content->n; k++)
      if (!v->content->elems[k]) return false;
    if (!known && !v->content) return false;
  }
  return n->n_outputs > 0;
}

static assay_status_t ask(const assay_layers_t* layers, const assay_node_t* n,
                          assay_weights_t* store, assay_node_support_t* s) {
  *s = (assay_node_support_t){.node = n};
  s->emu = n->op && n->op->eval ? ASSAY_SUPPORT_YES : ASSAY_SUPPORT_NO;
  ASSAY_TRY(ask_trt(n, s));
  const int at = layers->layer_of_node[n->id];
  if (is_known(n) || !n->n_inputs) {
    s->cpu_tactic = "folded";
    return NULL;
  }
  if (s->emu == ASSAY_SUPPORT_NO) {
    s->cpu = ASSAY_SUPPORT_NO;
    snprintf(s->cpu_why, sizeof s->cpu_why, "Assay cannot evaluate it");
    return NULL;
  }
  if (at < 0 || n->op->flags & ASSAY_OP_CONTROL || n->graph->outer) {
    s->cpu = n->op->flags & ASSAY_OP_CONTROL ? ASSAY_SUPPORT_YES : ASSAY_SUPPORT_SLOW;
    if (n->graph->outer) snprintf(s->cpu_why, sizeof s->cpu_why, "emulated: bodies are");
    return NULL;
  }
  return ask_cpu(layers, (size_t)at, store, s);
}

assay_status_t assay_support_find(const assay_plan_t* plan, assay_support_t* out) {
  const assay_layers_t* layers = assay_plan_layers(plan);
  const assay_model_t* m = layers->model;
  assay_support_t s = {0};
  assay_weights_t* store = NULL;
  size_t n = 0;
  for (size_t g = 0; g < m->n_graphs; g++) n += m->graphs[g]->n_nodes;
  ASSAY_TRY(assay_new_array(n, sizeof *s.nodes, &s.nodes));
  assay_status_t st = assay_weights_create(&store);
  for (size_t g = 0; !st && g < m->n_graphs; g++)
    for (size_t i = 0; !st && i < m->graphs[g]->n_nodes; i++) {
      assay_node_support_t* to = &s.nodes[s.n++];
      st = ask(layers, m->graphs[g]->nodes[i], store, to);
      s.emu_without += to->emu != ASSAY_SUPPORT_YES;
      s.cpu_without += to->cpu != ASSAY_SUPPORT_YES;
      s.trt_without += to->trt == ASSAY_SUPPORT_NO || to->trt == ASSAY_SUPPORT_UNKNOWN;
      s.trt_restricted += to->trt == ASSAY_SUPPORT_SLOW;
    }
  assay_weights_destroy(store);
  if (st) return assay_support_deinit(&s), st;
  *out = s;
  return NULL;
}
