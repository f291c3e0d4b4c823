// --save-tactics and --load-tactics: which tactic runs each layer of a plan.
#include "frontends/polygraphy/inspect/tactics.h"

#include <string.h>

#include "base/shown.h"
#include "formats/format.h"

// ---- loading ------------------------------------------------------------------------------------

static assay_status_t read(pg_job_t* j, assay_tactics_t* out) {
  const char* path = pg_text(j->args, PG_FLAG_load_tactics);
  ASSAY_TRY(assay_status_note(assay_tactics_read(j->arena, path, out), "--load-tactics"));
  for (size_t i = 0; i < out->n; i++)
    if (!out->entries[i].name)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "--load-tactics: '%s' was not made by Assay: layer '%s' has a number of "
                         "TensorRT's tactics, which means nothing here; make one with "
                         "--save-tactics",
                         path, out->entries[i].layer);
  return NULL;
}

assay_status_t pg_tactics_load(pg_job_t* j, const char** out_forced) {
  assay_tactics_t t;
  assay_str_t lines = {0};
  *out_forced = NULL;
  if (!pg_text(j->args, PG_FLAG_load_tactics)) return NULL;
  pg_log(PG_INFO, "Loading tactic replay file from %s", pg_text(j->args, PG_FLAG_load_tactics));
  ASSAY_TRY(read(j, &t));
  for (size_t i = 0; i < t.n; i++)
    if (!assay_tactic_is_emulated(t.entries[i].name))  // there was nothing to choose
      assay_str_printf_raw(&lines, "%s %s\n", t.entries[i].name, t.entries[i].layer);
  assay_status_t st = assay_str_status(&lines);
  if (!st) st = assay_arena_strdup(j->arena, assay_str_get(&lines), out_forced);
  assay_str_deinit(&lines);
  return st;
}

static const assay_layer_t* find_layer(const assay_layers_t* layers, const char* name, size_t* at) {
  for (*at = 0; *at < layers->n_layers; ++*at)
    if (strcmp(layers->layers[*at].name, name) == 0) return &layers->layers[*at];
  return NULL;
}

static assay_status_t compare(pg_job_t* j, const assay_layers_t* layers,
                              const char* const* tactics) {
  const char* path = pg_text(j->args, PG_FLAG_load_tactics);
  assay_tactics_t t;
  size_t n_found = 0;
  ASSAY_TRY(read(j, &t));
  for (size_t i = 0; i < t.n; i++) {
    const assay_tactic_entry_t* e = &t.entries[i];
    size_t at;
    if (!find_layer(layers, e->layer, &at)) {
      pg_log(PG_WARNING, "--load-tactics: layer '%s' of '%s' is not in this plan", e->layer, path);
      continue;
    }
    n_found++;
    if (strcmp(tactics[at], e->name) != 0)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "--load-tactics: layer '%s' is to be run by '%s', which does not take it: "
                         "'%s' does; '%s' is of another model or precision",
                         e->layer, e->name, tactics[at], path);
  }
  if (n_found < layers->n_layers)
    pg_log(PG_WARNING, "--load-tactics: '%s' does not have %zu of the %zu layers of this plan",
           path, layers->n_layers - n_found, layers->n_layers);
  return NULL;
}

// ---- saving -------------------------------------------------------------------------------------

static const char* dtype_of(assay_format_t f) {
  switch (f) {
    case ASSAY_FORMAT_FP32:
    case ASSAY_FORMAT_TF32:
      return "DataType.FLOAT";
    case ASSAY_FORMAT_FP16:
      return "DataType.HALF";
    case ASSAY_FORMAT_BF16:
      return "DataType.BF16";
    case ASSAY_FORMAT_INT8:
      return "DataType.INT8";
    case ASSAY_FORMAT_UINT8:
      return "DataType.UINT8";
    case ASSAY_FORMAT_INT32:
      return "DataType.INT32";
    case ASSAY_FORMAT_INT64:
      return "DataType.INT64";
    case ASSAY_FORMAT_BOOL:
      return "DataType.BOOL";
    case ASSAY_FORMAT_FP8E4M3:
      return "DataType.FP8";
    default:
      return "";
  }
}

static assay_tactic_tensor_t tensor_of(const assay_layers_t* layers, const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  assay_tactic_tensor_t out = {.dtype = "", .vectorized_dim = -1, .components = 1};
  if (!t || t->kind != ASSAY_KIND_TENSOR) return out;
  const int at = v->producer ? layers->layer_of_node[v->producer->id] : -1;
  out.dtype = dtype_of(assay_layer_storage(at < 0 ? NULL : &layers->layers[at], t->elem));
  if (!t->has_shape || t->rank > ASSAY_TACTIC_RANK) return out;
  int64_t stride = 1;
  out.rank = t->rank;
  // Of sizes that are open, the strides are those of 1.
  for (int d = t->rank - 1; d >= 0; d--) {
    int64_t size = 1;
    out.strides[d] = stride;
    if (t->dims && !assay_dim_value(t->dims[d], &size)) size = 1;
    if (!assay_mul_i64(stride, size, &stride)) stride = 1;
  }
  return out;
}

static bool is_own(const assay_layers_t* layers, const assay_layer_t* l, const assay_value_t* v) {
  const int at = v->producer ? layers->layer_of_node[v->producer->id] : -1;
  return at >= 0 && &layers->layers[at] == l;
}

static assay_status_t add_inputs(assay_arena_t* arena, const assay_layers_t* layers,
                                 const assay_layer_t* l, assay_tactic_entry_t* e) {
  size_t max = 0;
  for (size_t k = 0; k < l->n_nodes; k++) max += l->nodes[k]->n_inputs;
  ASSAY_TRY(assay_arena_new(arena, max, sizeof *e->inputs, &e->inputs));
  for (size_t k = 0; k < l->n_nodes; k++)
    for (size_t i = 0; i < l->nodes[k]->n_inputs; i++) {
      const assay_value_t* v = l->nodes[k]->inputs[i];
      if (v && !v->constant && !is_own(layers, l, v))
        e->inputs[e->n_inputs++] = tensor_of(layers, v);
    }
  return NULL;
}

static assay_status_t add_outputs(assay_arena_t* arena, const assay_layers_t* layers,
                                  const assay_layer_t* l, assay_tactic_entry_t* e) {
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  ASSAY_TRY(assay_arena_new(arena, last->n_outputs, sizeof *e->outputs, &e->outputs));
  for (size_t i = 0; i < last->n_outputs; i++)
    if (last->outputs[i]) e->outputs[e->n_outputs++] = tensor_of(layers, last->outputs[i]);
  return NULL;
}

static assay_status_t save(pg_job_t* j, const assay_layers_t* layers, const char* const* tactics) {
  const char* path = pg_text(j->args, PG_FLAG_save_tactics);
  assay_arena_t* arena = NULL;
  assay_tactics_t t = {.n = layers->n_layers};
  ASSAY_TRY(assay_arena_create(&arena));
  assay_status_t st = assay_arena_new(arena, t.n, sizeof *t.entries, &t.entries);
  for (size_t i = 0; !st && i < t.n; i++) {
    const assay_layer_t* l = &layers->layers[i];
    assay_tactic_entry_t* e = &t.entries[i];
    *e = (assay_tactic_entry_t){.layer = l->name,
                                .implementation = assay_tactic_number(l->nodes[0]->op_type),
                                .tactic = assay_tactic_number(tactics[i]),
                                .name = tactics[i]};
    st = add_inputs(arena, layers, l, e);
    if (!st) st = add_outputs(arena, layers, l, e);
  }
  if (!st) pg_log(PG_INFO, "Saving tactic replay file to %s", path);
  if (!st) st = assay_tactics_write(path, &t);
  assay_arena_destroy(arena);
  return assay_status_note(st, "--save-tactics");
}

assay_status_t pg_tactics_settle(pg_job_t* j, const assay_engine_t* engine,
                                 const char* const* tactics, size_t n) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(engine));
  if (n != layers->n_layers)
    return ASSAY_ERROR(ASSAY_INTERNAL, "tactics of %zu layers are known, of %zu", n,
                       layers->n_layers);
  if (pg_text(j->args, PG_FLAG_load_tactics)) ASSAY_TRY(compare(j, layers, tactics));
  return pg_text(j->args, PG_FLAG_save_tactics) ? save(j, layers, tactics) : NULL;
}

// ---- telling ------------------------------------------------------------------------------------

static void put_tensors(assay_str_t* out, const char* what, const assay_tactic_tensor_t* tensors,
                        size_t n) {
  assay_str_printf(out, " | %s: (", what);
  for (size_t i = 0; i < n; i++) {
    assay_str_printf(out, "%sTensorInfo(%s, (", i ? ", " : "",
                     *tensors[i].dtype ? tensors[i].dtype : "None");
    for (int d = 0; d < tensors[i].rank; d++)
      assay_str_printf(out, "%s%lld", d ? ", " : "", (long long)tensors[i].strides[d]);
    assay_str_printf(out, "%s), %lld, %lld)", tensors[i].rank == 1 ? "," : "",
                     (long long)tensors[i].vectorized_dim, (long long)tensors[i].components);
  }
  assay_str_append(out, n == 1 ? ",)" : ")");
}

void pg_put_algorithm(assay_str_t* out, const assay_tactic_entry_t* e) {
  assay_str_printf(out, "(Implementation: %lld, Tactic: %lld", (long long)e->implementation,
                   (long long)e->tactic);
  if (e->name) assay_str_printf(out, ", Assay: %s", e->name);
  assay_str_append(out, ")");
  put_tensors(out, "Inputs", e->inputs, e->n_inputs);
  put_tensors(out, "Outputs", e->outputs, e->n_outputs);
}
