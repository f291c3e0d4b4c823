// Float32 values become 16-bit ones, or 16-bit and 64-bit ones float32; what cannot be in the type
// stays, with Casts between.
#include <string.h>

#include "base/alloc.h"
#include "edit/editor.h"
#include "formats/format.h"
#include "ops/infer.h"
#include "passes/mixed.h"

// ---- to 16 bits ---------------------------------------------------------------------------------

static assay_status_t lower(assay_editing_t* e, assay_format_t format) {
  const assay_model_t* m = e->model;
  assay_format_t* formats = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_new_array((size_t)m->n_node_ids, sizeof *formats, &formats));
  for (int i = 0; i < m->n_node_ids; i++) formats[i] = ASSAY_FORMAT_FP32;
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < m->n_graphs; k++)
    for (size_t i = 0; !st && i < m->graphs[k]->n_nodes; i++) {
      const assay_node_t* node = m->graphs[k]->nodes[i];
      if (!assay_editing_wants(e, node)) continue;
      formats[node->id] = format;
      st = assay_editing_rounds(e, node);
      n++;
    }
  e->rounded.format = format;
  if (!st) st = assay_mixed_create(m, formats, &e->out);
  if (!st) assay_editing_did(e, "nodes", n);
  assay_free(formats);
  return st;
}

// ---- to float32 ---------------------------------------------------------------------------------

static bool is_other_float(assay_type_t t) {
  return t == ASSAY_TYPE_FLOAT16 || t == ASSAY_TYPE_BFLOAT16 || t == ASSAY_TYPE_DOUBLE;
}

static assay_status_t raise_tensor(assay_model_t* m, assay_tensor_t** t) {
  assay_tensor_t *wide = NULL, *typed = NULL, *packed = NULL;
  if (!*t || (*t)->kind != ASSAY_KIND_TENSOR || !is_other_float((*t)->type)) return NULL;
  assay_status_t st = assay_tensor_widen(*t, &wide);
  if (!st) st = assay_tensor_retype(wide, ASSAY_TYPE_FLOAT, &typed);
  if (!st) st = assay_tensor_pack(typed, &packed);
  assay_tensor_release(wide);
  assay_tensor_release(typed);
  if (st) return st;
  ASSAY_TRY(assay_model_take_tensor(m, packed));
  *t = packed;
  return NULL;
}

static assay_status_t raise_type(assay_model_t* m, const assay_valtype_t** type) {
  const assay_valtype_t* t = *type;
  if (!t) return NULL;
  if (t->kind != ASSAY_KIND_TENSOR) {
    const assay_valtype_t* of = t->of;
    ASSAY_TRY(raise_type(m, &of));
    return of == t->of ? NULL : assay_valtype_of(m, t->kind, t->elem, of, type);
  }
  if (!is_other_float(t->elem)) return NULL;
  return t->has_shape ? assay_valtype_tensor(m, ASSAY_TYPE_FLOAT, t->rank, t->dims, type)
                      : assay_valtype_unranked(m, ASSAY_TYPE_FLOAT, type);
}

// Attributes that hold a tensor of the type, or say it.
static assay_status_t raise_attrs(assay_model_t* m, assay_node_t* n) {
  static const char* const types[] = {"to", "dtype", "output_dtype", "stash_type"};
  for (size_t a = 0; a < n->n_attrs; a++) {
    assay_attr_t* attr = &n->attrs[a];
    if (attr->type == ASSAY_ATTR_TENSOR) {
      ASSAY_TRY(raise_tensor(m, &attr->u.t));
      attr->wire = (assay_bytes_t){0};
    }
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
      if (attr->type == ASSAY_ATTR_INT && strcmp(attr->name, types[k]) == 0 &&
          is_other_float((assay_type_t)attr->u.i))
        attr->u.i = ASSAY_TYPE_FLOAT;
  }
  return NULL;
}

static assay_status_t raise(assay_editing_t* e) {
  size_t n = 0;
  if (e->requests->nodes.n || e->requests->not_nodes.n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "to fp32 all values are cast: --nodes is for fp16 and bf16");
  ASSAY_TRY(assay_model_clone(e->model, &e->out));
  assay_model_t* m = e->out;
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_inputs; i++) {
      ASSAY_TRY(raise_type(m, &g->inputs[i]->declared));
      g->inputs[i]->open = NULL;
    }
    for (size_t i = 0; i < g->n_initializers; i++) {
      assay_value_t* v = g->initializers[i];
      ASSAY_TRY(raise_tensor(m, &v->constant));
      ASSAY_TRY(raise_type(m, &v->declared));
      v->tensor_extra = (assay_bytes_t){0};
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
      assay_node_t* node = g->nodes[i];
      ASSAY_TRY(raise_attrs(m, node));
      bool had = false;
      for (size_t j = 0; j < node->n_outputs; j++) {
        assay_value_t* v = node->outputs[j];
        if (!v) continue;
        had |= v->type && v->type->kind == ASSAY_KIND_TENSOR && is_other_float(v->type->elem);
        ASSAY_TRY(raise_tensor(m, &v->constant));
        ASSAY_TRY(raise_type(m, &v->declared));
      }
      n += had;
      if (had) ASSAY_TRY(assay_editing_rounds(e, node));
    }
  }
  e->rounded.format = ASSAY_FORMAT_FP32;
  assay_editing_did(e, "nodes", n);
  return NULL;
}

static assay_status_t run(assay_editing_t* e) {
  const char* to = e->requests->format;
  if (!to)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "say what to cast to: --to fp16, bf16 or fp32");
  if (strcmp(to, "fp16") == 0) return lower(e, ASSAY_FORMAT_FP16);
  if (strcmp(to, "bf16") == 0) return lower(e, ASSAY_FORMAT_BF16);
  if (strcmp(to, "fp32") == 0) return raise(e);
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--to '%s': values can be cast to fp16, bf16 and fp32",
                     to);
}

const assay_editor_t assay_editor_cast = {
    .name = "cast",
    .summary = "float32 values become fp16 or bf16, with Casts where they meet others; or back",
    .promise = ASSAY_PROMISE_ROUNDS,
    .stored = true,
    .run = run,
};
