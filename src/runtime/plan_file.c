// Plan files:
//
//   bytes         what
//   0 to 4095     head_t, and zeros
//   4096 on       a JSON text: layers, nodes' operator versions, names of what was saved
//   then          the model as the passes left it: an ONNX message, without the elements of larger
//                 constants
//   then          the model as it was given, for refit: a message of the same kind
//   then          those elements; what both models hold is there once
//   then          what the backend has saved
//   last 8        XXH3 of all bytes before, in blocks of 1 MiB, each seeded with the last one's
//
// Elements of float32 lie as 16 bits where the layers round them to these anyway (narrowed.h).
// A stripped plan has none of those elements, and of what the backend has saved only the times and
// compiled kernels; its text says what is missing ("stripped", stripped.h).
//
// Each part begins at a multiple of 4096 bytes. Numbers are little-endian, as on all machines that
// Assay runs on; a file of another order fails by its version.
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "exec/choice/accuracy_gate.h"
#include "exec/device/code.h"
#include "exec/targets.h"
#include "formats/format.h"
#include "io/json.h"
#include "onnx/onnx.h"
#include "ops/custom.h"
#include "ops/infer.h"
#include "runtime/engine_internal.h"
#include "runtime/narrowed.h"
#include "runtime/plan_head.h"

enum { VERSION = ASSAY_PLAN_VERSION, PAGE = ASSAY_PLAN_PAGE, BLOCK = ASSAY_PLAN_BLOCK };

typedef assay_plan_part_t part_t;
typedef assay_plan_head_t head_t;

static const char magic[8] = ASSAY_PLAN_MAGIC;

bool assay_engine_is_plan_file(const char* path) {
  assay_mapping_t* m = NULL;
  assay_status_t st = assay_mapping_open(path, &m);
  const bool is = !st && assay_mapping_size(m) >= sizeof magic &&
                  memcmp(assay_mapping_data(m), magic, sizeof magic) == 0;
  assay_status_free(st);
  assay_mapping_release(m);
  return is;
}

assay_status_t assay_engine_plan_version(assay_arena_t* arena, const char* path, const char** out) {
  assay_mapping_t* m = NULL;
  head_t head;
  ASSAY_TRY(assay_mapping_open(path, &m));
  const bool whole = assay_mapping_size(m) >= sizeof head;
  if (whole) memcpy(&head, assay_mapping_data(m), sizeof head);
  assay_mapping_release(m);
  if (!whole || memcmp(head.magic, magic, sizeof magic) != 0)
    return ASSAY_ERROR(ASSAY_CORRUPT, "'%s' is not a plan of Assay's", path);
  return assay_arena_strndup(arena, head.assay, strnlen(head.assay, sizeof head.assay), out);
}

static assay_status_t describe_machine(const assay_backend_t* backend, char* out, size_t capacity) {
  assay_str_t text = {0};
  assay_status_t st = assay_backend_describe_need(backend, &text);
  memset(out, 0, capacity);
  strncpy(out, assay_str_get(&text), capacity - 1);
  assay_str_deinit(&text);
  return st;
}

// ---- the text -----------------------------------------------------------------------------------

// All nodes of a graph and its bodies, depth first, with the operator versions they stand for: a
// rewritten model may hold some that the operator sets it imports do not have. NULL: no memory.
static json_t* add_nodes(const assay_graph_t* g, json_t* list) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    json_t* line = assay_json_push(json_array(), assay_json_text(n->op_type));
    line = assay_json_push(line, json_integer(n->schema ? n->schema->since : 0));
    list = assay_json_push(list, line);
    for (size_t a = 0; a < n->n_attrs; a++) {
      const assay_attr_t* attr = &n->attrs[a];
      if (attr->type == ASSAY_ATTR_GRAPH) list = add_nodes(attr->u.g, list);
      for (size_t k = 0; attr->type == ASSAY_ATTR_GRAPHS && k < attr->n; k++)
        list = add_nodes(attr->u.graphs[k], list);
    }
  }
  return list;
}

// The registered operators of a graph and its bodies, each once, with their revisions.
static json_t* add_operators(const assay_graph_t* g, json_t* list) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    const assay_custom_op_t* op = assay_custom_of(n->op);
    bool listed = !op;
    for (size_t k = 0; !listed && k < json_array_size(list); k++) {
      const json_t* line = json_array_get(list, k);
      listed = strcmp(json_string_value(json_array_get(line, 0)), n->domain) == 0 &&
               strcmp(json_string_value(json_array_get(line, 1)), n->op_type) == 0 &&
               json_integer_value(json_array_get(line, 2)) == op->row.since;
    }
    if (!listed) {
      json_t* line = assay_json_push(json_array(), assay_json_text(n->domain));
      line = assay_json_push(line, assay_json_text(n->op_type));
      line = assay_json_push(line, json_integer(op->row.since));
      list = assay_json_push(list, assay_json_push(line, assay_json_text(op->spec.revision)));
    }
    for (size_t a = 0; a < n->n_attrs; a++) {
      const assay_attr_t* attr = &n->attrs[a];
      if (attr->type == ASSAY_ATTR_GRAPH) list = add_operators(attr->u.g, list);
      for (size_t k = 0; attr->type == ASSAY_ATTR_GRAPHS && k < attr->n; k++)
        list = add_operators(attr->u.graphs[k], list);
    }
  }
  return list;
}

static json_t* layer_json(const assay_layer_cut_t* cut) {
  json_t* j = json_pack("{s:I, s:s, s:s}", "nodes", (json_int_t)cut->n_nodes, "format",
                        assay_format_info(cut->format)->name, "accumulator",
                        assay_format_info(cut->accumulator)->name);
  return assay_json_put(j, "why", assay_json_text(cut->reason));
}

static assay_status_t add_layers(const assay_plan_t* plan, json_t** list) {
  assay_layer_cut_t* cuts = NULL;
  size_t n;
  ASSAY_TRY(assay_plan_cuts(plan, &cuts, &n));
  for (size_t i = 0; i < n; i++) *list = assay_json_push(*list, layer_json(&cuts[i]));
  assay_free(cuts);
  return NULL;
}

// Entry i of what the backend saves; *key NULL: there are no more.
static assay_status_t saved_entry(const assay_engine_t* e, size_t i, const char** key,
                                  const void** data, size_t* bytes) {
  *key = NULL;
  return e->backend->saved ? e->backend->saved(e->shared, i, key, data, bytes) : NULL;
}

static uint64_t aligned(uint64_t offset) { return (offset + PAGE - 1) / PAGE * PAGE; }

// Whether such an entry is written: of a stripped plan the first one, which holds times, and
// compiled kernels; the others are made of weights.
static bool is_written(const assay_stripped_t* stripped, size_t i, const char* key) {
  return !stripped || !i || assay_code_is(key);
}

// The names of what the backend saves, and where each lies from the beginning of that part.
static assay_status_t add_saved(const assay_engine_t* e, const assay_stripped_t* stripped,
                                json_t** list, uint64_t* out_bytes) {
  const char* key;
  const void* data;
  size_t bytes;
  *out_bytes = 0;
  for (size_t i = 0;; i++) {
    ASSAY_TRY(saved_entry(e, i, &key, &data, &bytes));
    if (!key) return NULL;
    if (!is_written(stripped, i, key)) continue;
    json_t* line = assay_json_push(json_array(), assay_json_text(key));
    line = assay_json_push(line, json_integer((json_int_t)*out_bytes));
    *list = assay_json_push(*list, assay_json_push(line, json_integer((json_int_t)bytes)));
    *out_bytes = aligned(*out_bytes + bytes);
  }
}

static json_t* dims_json(int rank, const int64_t* dims) {
  json_t* list = json_array();
  for (int i = 0; i < rank; i++) list = assay_json_push(list, json_integer(dims[i]));
  return list;
}

static json_t* profiles_json(const assay_engine_t* e) {
  json_t* list = json_array();
  for (size_t i = 0; i < e->n_profiles; i++) {
    const assay_profile_t* p = &e->profiles[i];
    json_t* j = json_object();
    j = assay_json_put(j, "input", assay_json_text(p->input));
    j = assay_json_put(j, "profile", json_integer(p->profile));
    j = assay_json_put(j, "values", json_boolean(p->values));
    j = assay_json_put(j, "min", dims_json(p->rank, p->min));
    j = assay_json_put(j, "opt", dims_json(p->rank, p->opt));
    j = assay_json_put(j, "max", dims_json(p->rank, p->max));
    list = assay_json_push(list, j);
  }
  return list;
}

// The inputs of the model as it was given whose sizes were given, as they were before: a size, a
// name, or null.
static json_t* open_json(const assay_model_t* source) {
  json_t* list = json_array();
  for (size_t i = 0; i < source->graph->n_inputs; i++) {
    const assay_value_t* v = source->graph->inputs[i];
    if (!v->open || v->open->kind != ASSAY_KIND_TENSOR || !v->open->has_shape) continue;
    json_t* dims = json_array();
    for (int d = 0; d < v->open->rank; d++) {
      int64_t size;
      const char* name = v->open->dims[d] ? assay_dim_name(v->open->dims[d]) : NULL;
      dims = assay_json_push(dims, name ? assay_json_text(name)
                                   : assay_dim_value(v->open->dims[d], &size) ? json_integer(size)
                                                                              : json_null());
    }
    json_t* j = assay_json_put(json_object(), "input", assay_json_text(v->name));
    list = assay_json_push(list, assay_json_put(j, "dims", dims));
  }
  return list;
}

static json_t* texts_json(const char* const* texts, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++) list = assay_json_push(list, assay_json_text(texts[i]));
  return list;
}

// What the plan was made by; null: not known.
static json_t* recipe_json(const assay_engine_t* e) {
  const assay_plan_recipe_t* r = assay_plan_recipe(e->plan);
  if (!r) return json_null();
  json_t* j =
      json_pack("{s:b, s:s, s:s}", "fused", r->fused, "format", assay_format_info(r->format)->name,
                "accumulator", assay_format_info(r->accumulator)->name);
  j = assay_json_put(j, "fp32", json_string(assay_fp32_name(r->fp32)));
  j = assay_json_put(j, "rules", assay_json_text(r->rules));
  j = assay_json_put(j, "off", texts_json(r->passes.off, r->passes.n_off));
  if (r->passes.only) j = assay_json_put(j, "only", assay_json_text(r->passes.only));
  return j;
}

static assay_status_t make_text(const assay_engine_t* e, const assay_model_t* source,
                                const assay_stripped_t* stripped, assay_str_t* out,
                                uint64_t* out_saved) {
  const assay_layers_t* l = assay_plan_layers(e->plan);
  json_t *layers = json_array(), *saved = json_array();
  assay_status_t st = add_layers(e->plan, &layers);
  if (!st) st = add_saved(e, stripped, &saved, out_saved);
  json_t* root = json_pack("{s:s, s:I}", "schema", "assay.plan/1", "seed", (json_int_t)l->seed);
  root = assay_json_put(root, "model", assay_json_text(l->model->path));
  root = assay_json_put(root, "nodes", add_nodes(l->model->graph, json_array()));
  root = assay_json_put(root, "operators", add_operators(l->model->graph, json_array()));
  root = assay_json_put(root, "layers", layers);
  root = assay_json_put(root, "saved", saved);
  root = assay_json_put(root, "profiles", profiles_json(e));
  root = assay_json_put(root, "recipe", recipe_json(e));
  root = assay_json_put(root, "open", open_json(source));
  root = assay_json_put(root, "source_nodes", add_nodes(source->graph, json_array()));
  root = assay_json_put(root, "source_operators", add_operators(source->graph, json_array()));
  if (e->tactic_sources)
    root = assay_json_put(root, "tactic_sources", assay_json_text(e->tactic_sources));
  if (e->forced_tactics)
    root = assay_json_put(root, "forced_tactics", assay_json_text(e->forced_tactics));
  if (e->note) root = assay_json_put(root, "note", assay_json_text(e->note));
  if (e->max_scratch)
    root = assay_json_put(root, "max_scratch", json_integer((json_int_t)e->max_scratch));
  if (e->batch_variant) root = assay_json_put(root, "batch_variant", json_true());
  if (stripped) root = assay_json_put(root, "stripped", assay_stripped_print(stripped));
  if (!st && !root) st = assay_status_no_memory();
  if (!st) assay_json_print(root, 0, out);
  json_decref(root);
  return st ? st : assay_str_status(out);
}

// ---- writing ------------------------------------------------------------------------------------

// What is written goes through a block, so that it can be hashed block by block.
typedef struct output {
  assay_writer_t* w;
  uint8_t* block;
  size_t n;
  uint64_t hash, offset;
} output_t;

static assay_status_t flush(output_t* o) {
  if (!o->n) return NULL;
  o->hash = assay_hash(o->block, o->n, o->hash);
  const size_t n = o->n;
  o->n = 0;
  return assay_writer_write(o->w, o->block, n);
}

static assay_status_t write_bytes(output_t* o, const void* data, uint64_t n) {
  const uint8_t* from = data;
  o->offset += n;
  while (n) {
    const size_t part = n < BLOCK - o->n ? (size_t)n : BLOCK - o->n;
    memcpy(o->block + o->n, from, part);
    o->n += part;
    from += part;
    n -= part;
    if (o->n == BLOCK) ASSAY_TRY(flush(o));
  }
  return NULL;
}

static assay_status_t fill_to(output_t* o, uint64_t offset) {
  static const char zeros[PAGE];
  while (o->offset < offset)
    ASSAY_TRY(write_bytes(o, zeros, offset - o->offset < PAGE ? offset - o->offset : PAGE));
  return NULL;
}

static assay_status_t write_elements(output_t* o, assay_tensor_t* t) {
  assay_tensor_t* packed = NULL;
  int64_t bytes = 0;
  assay_status_t st = t->store == ASSAY_STORE_NARROW ? assay_tensor_narrowed(t, &packed)
                                                     : assay_tensor_pack(t, &packed);
  if (!st && assay_type_packed_bytes(packed->type, packed->size, &bytes))
    st = write_bytes(o, packed->data, (uint64_t)bytes);
  assay_tensor_release(packed);
  return st;
}

static assay_status_t write_saved(output_t* o, const assay_engine_t* e,
                                  const assay_stripped_t* stripped, uint64_t at) {
  const char* key;
  const void* data;
  size_t bytes;
  for (size_t i = 0;; i++) {
    ASSAY_TRY(saved_entry(e, i, &key, &data, &bytes));
    ASSAY_TRY(fill_to(o, at));
    if (!key) return NULL;
    if (!is_written(stripped, i, key)) continue;
    ASSAY_TRY(write_bytes(o, data, bytes));
    at = aligned(at + bytes);
  }
}

static assay_status_t write_parts(output_t* o, const head_t* h, const assay_onnx_parts_t* model) {
  for (size_t i = 0; i < model->n; i++) {
    ASSAY_TRY(fill_to(o, h->data.offset + model->parts[i].offset));
    ASSAY_TRY(write_elements(o, model->parts[i].tensor));
  }
  return NULL;
}

// Both models as they are written.
typedef struct models {
  assay_model_t *compiled_model, *source_model;  // which the parts lie in
  assay_onnx_parts_t compiled, source;
  assay_stripped_t* stripped;  // what is said in the place of elements; NULL: they are there
} models_t;

static void models_deinit(models_t* m) {
  assay_onnx_parts_deinit(&m->compiled);
  assay_onnx_parts_deinit(&m->source);
  assay_model_release(m->compiled_model);
  assay_model_release(m->source_model);
  assay_stripped_destroy(m->stripped);
}

static assay_status_t write_all(output_t* o, const assay_engine_t* e, const head_t* h,
                                const assay_str_t* text, const models_t* m) {
  ASSAY_TRY(write_bytes(o, h, sizeof *h));
  ASSAY_TRY(fill_to(o, h->text.offset));
  ASSAY_TRY(write_bytes(o, assay_str_get(text), h->text.bytes));
  ASSAY_TRY(fill_to(o, h->message.offset));
  ASSAY_TRY(write_bytes(o, m->compiled.message, m->compiled.message_bytes));
  ASSAY_TRY(fill_to(o, h->source.offset));
  ASSAY_TRY(write_bytes(o, m->source.message, m->source.message_bytes));
  if (!m->stripped) ASSAY_TRY(write_parts(o, h, &m->compiled));
  if (!m->stripped) ASSAY_TRY(write_parts(o, h, &m->source));
  ASSAY_TRY(fill_to(o, h->saved.offset));
  ASSAY_TRY(write_saved(o, e, m->stripped, h->saved.offset));
  ASSAY_TRY(flush(o));
  return assay_writer_write(o->w, &o->hash, sizeof o->hash);
}

static part_t part_at(uint64_t* end, uint64_t bytes) {
  const part_t p = {aligned(*end), bytes};
  *end = p.offset + bytes;
  return p;
}

static assay_status_t make_head(const assay_engine_t* e, const assay_str_t* text,
                                uint64_t saved_bytes, const models_t* m, head_t* h) {
  uint64_t end = PAGE;
  *h = (head_t){.version = VERSION, .head_bytes = sizeof *h};
  memcpy(h->magic, magic, sizeof magic);
  strncpy(h->assay, ASSAY_VERSION, sizeof h->assay - 1);
  strncpy(h->backend, e->backend->name, sizeof h->backend - 1);
  ASSAY_TRY(describe_machine(e->backend, h->machine, sizeof h->machine));
  h->text = part_at(&end, strlen(assay_str_get(text)));
  h->message = part_at(&end, m->compiled.message_bytes);
  h->source = part_at(&end, m->source.message_bytes);
  h->data = part_at(&end, m->stripped ? 0 : m->source.data_bytes);
  h->saved = part_at(&end, saved_bytes);
  h->file_bytes = end + sizeof(uint64_t);
  return NULL;
}

assay_status_t assay_model_copy_named(const assay_model_t* m, assay_model_t** out) {
  assay_model_t* copy = NULL;
  ASSAY_TRY(assay_model_clone(m, &copy));
  for (size_t g = 0; g < copy->n_graphs; g++)
    for (size_t i = 0; i < copy->graphs[g]->n_nodes; i++)
      copy->graphs[g]->nodes[i]->name = copy->graphs[g]->nodes[i]->label;
  *out = copy;
  return NULL;
}

// Whether anything was made of the engine's weights yet.
static assay_status_t has_packed(const assay_engine_t* e, bool* out) {
  const char* key = NULL;
  const void* data;
  size_t bytes;
  ASSAY_TRY(saved_entry(e, 1, &key, &data, &bytes));
  *out = key != NULL;
  return NULL;
}

// What is said of weights once they are left out.
static assay_status_t describe_missing(const assay_engine_t* e, const assay_model_t* source,
                                       const bool* left_out, assay_stripped_t* s) {
  s->refittable = e->strip.refittable;
  ASSAY_TRY(has_packed(e, &s->packed));
  ASSAY_TRY(assay_stripped_form(e->plan, &s->form));
  return assay_stripped_note(source, left_out, s);
}

// Both messages without the elements of weights. Of a model that has no weights nothing is left
// out.
static assay_status_t split_stripped(const assay_engine_t* e, models_t* m) {
  bool *compiled = NULL, *source = NULL;
  assay_stripped_t* s = NULL;
  assay_status_t st = ASSAY_NEW(&s);
  m->stripped = s;
  if (!st) st = assay_stripped_choose(m->source_model, &source);
  if (!st) st = assay_stripped_choose(m->compiled_model, &compiled);
  if (!st) st = describe_missing(e, m->source_model, source, s);
  const bool any = !st && s->n;
  if (any) st = assay_onnx_split(m->compiled_model, NULL, compiled, &m->compiled);
  if (any && !st) st = assay_onnx_split(m->source_model, &m->compiled, source, &m->source);
  if (any && !st) s->data_bytes = m->source.data_bytes;
  assay_free(compiled);
  assay_free(source);
  if (!st && !any) {
    assay_stripped_destroy(s);
    m->stripped = NULL;
  }
  return st;
}

static assay_status_t split_models(const assay_engine_t* e, models_t* m) {
  assay_model_t* given = NULL;
  ASSAY_TRY(assay_engine_source(e, &given));
  assay_status_t st = assay_model_copy_named(given, &m->source_model);
  assay_model_release(given);
  if (!st) st = assay_model_copy_named(assay_plan_layers(e->plan)->model, &m->compiled_model);
  if (!st && e->strip.weights) st = split_stripped(e, m);
  if (st || m->stripped) return st;
  ASSAY_TRY(assay_narrow_models(e->plan, e->backend, m->compiled_model, m->source_model));
  st = assay_onnx_split(m->compiled_model, NULL, NULL, &m->compiled);
  return st ? st : assay_onnx_split(m->source_model, &m->compiled, NULL, &m->source);
}

// What was loaded without its weights cannot have changed.
static assay_status_t copy_file(const assay_engine_t* e, const char* path) {
  const uint8_t* data = assay_mapping_data(e->file);
  assay_status_t st = assay_file_write(path, data, assay_mapping_size(e->file));
  return assay_status_note(st, "writing the plan '%s'", path);
}

assay_status_t assay_engine_save(const assay_engine_t* e, const char* path) {
  if (e->stripped) return copy_file(e, path);
  assay_str_t text = {0};
  models_t m = {0};
  output_t o = {0};
  head_t h;
  uint64_t saved = 0;
  assay_status_t st = split_models(e, &m);
  if (!st) st = make_text(e, m.source_model, m.stripped, &text, &saved);
  if (!st) st = assay_new_array(BLOCK, 1, &o.block);
  if (!st) st = assay_writer_open(path, &o.w);
  if (!st) st = make_head(e, &text, saved, &m, &h);
  if (!st) st = write_all(&o, e, &h, &text, &m);
  if (!st) {
    st = assay_writer_commit_soon(o.w);  // its checksum tells a damaged one
    o.w = NULL;
  }
  assay_writer_abandon(o.w);
  assay_free(o.block);
  models_deinit(&m);
  assay_str_deinit(&text);
  return assay_status_note(st, "writing the plan '%s'", path);
}

// ---- reading ------------------------------------------------------------------------------------

static assay_status_t corrupt(const char* what) {
  return ASSAY_ERROR(ASSAY_CORRUPT, "%s; build the plan again", what);
}

static bool is_text(const char* s, size_t capacity) { return memchr(s, 0, capacity) != NULL; }

static bool is_inside(const part_t* p, uint64_t begin, uint64_t end) {
  return p->offset % PAGE == 0 && p->offset >= begin && p->offset <= end &&
         p->bytes <= end - p->offset;
}

static assay_status_t check_machine(const head_t* h, const assay_backend_t* backend) {
  char machine[sizeof h->machine];
  if (strcmp(h->assay, ASSAY_VERSION) != 0)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the plan was built by Assay %s, and this is %s; build it again", h->assay,
                       ASSAY_VERSION);
  if (!backend)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the plan is for backend '%s', which is not in this build", h->backend);
  ASSAY_TRY(describe_machine(backend, machine, sizeof machine));
  if (strcmp(h->machine, machine) != 0)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the plan was built for another machine (%s; here: %s); build it here",
                       h->machine, machine);
  return NULL;
}

// Block by block, so that a plan larger than what a run needs of it does not fill memory.
static assay_status_t check_hash(const assay_mapping_t* file, uint64_t bytes) {
  const uint8_t* data = assay_mapping_data(file);
  uint64_t hash = 0, kept;
  for (uint64_t at = 0; at < bytes; at += BLOCK) {
    const size_t n = bytes - at < BLOCK ? (size_t)(bytes - at) : BLOCK;
    hash = assay_hash(data + at, n, hash);
    assay_mapping_forget(file, data + at, n);
  }
  memcpy(&kept, data + bytes, sizeof kept);
  return hash == kept ? NULL : corrupt("the plan file is damaged: its checksum does not hold");
}

// The target that the caller names, which is the plan's on one of its devices.
static assay_status_t find_device(const head_t* h, const char* target,
                                  const assay_backend_t** out) {
  ASSAY_TRY(assay_target_find(target, ASSAY_TARGET_BUILD, out));
  if (strcmp((*out)->name, h->backend) == 0) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "the plan was built for target '%s', not for '%s'; build it for that one",
                     h->backend, target);
}

// Copies the head out and holds everything in it against the file.
static assay_status_t read_head(assay_mapping_t* file, const char* target, head_t* h,
                                const assay_backend_t** out_backend) {
  const uint64_t bytes = assay_mapping_size(file);
  const uint8_t* data = assay_mapping_data(file);
  if (bytes < sizeof magic || memcmp(data, magic, sizeof magic) != 0)
    return ASSAY_ERROR(ASSAY_CORRUPT, "this is not a plan file");
  if (bytes < PAGE + sizeof(uint64_t)) return corrupt("the plan file is cut off");
  memcpy(h, data, sizeof *h);
  if (h->version != VERSION || h->head_bytes != sizeof *h)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the plan file has version %u, and this build reads version %d; build the "
                       "plan again",
                       h->version, VERSION);
  if (h->file_bytes != bytes) return corrupt("the plan file is cut off, or has bytes too many");
  const uint64_t end = bytes - sizeof(uint64_t);
  if (!is_inside(&h->text, PAGE, end) || !is_inside(&h->message, PAGE, end) ||
      !is_inside(&h->source, PAGE, end) || !is_inside(&h->data, PAGE, end) ||
      !is_inside(&h->saved, PAGE, end) || !is_text(h->assay, sizeof h->assay) ||
      !is_text(h->backend, sizeof h->backend) || !is_text(h->machine, sizeof h->machine))
    return corrupt("the plan file is damaged: its head makes no sense");
  *out_backend = assay_backend_find(h->backend);
  if (target) ASSAY_TRY(find_device(h, target, out_backend));
  ASSAY_TRY(check_machine(h, *out_backend));
  return check_hash(file, end);
}

// The operators that have to be registered, each in the revision that the plan was built with.
static assay_status_t check_operators(const json_t* list) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t* line = json_array_get(list, i);
    const char* domain = json_string_value(json_array_get(line, 0));
    const char* name = json_string_value(json_array_get(line, 1));
    const json_int_t since = json_integer_value(json_array_get(line, 2));
    const char* revision = json_string_value(json_array_get(line, 3));
    if (!domain || !name || !revision)
      return corrupt("the plan file is damaged: an operator makes no sense");
    const assay_custom_op_t* op = assay_custom_of(assay_op_find(domain, name, since));
    if (!op || op->row.since != since)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "the plan has operator '%s' of domain '%s', version %lld, which is not "
                         "built in; give the library that has it with --ops LIB.so",
                         name, domain, (long long)since);
    if (strcmp(op->spec.revision, revision) != 0)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "the plan was built with revision '%s' of operator '%s' of domain '%s', "
                         "and %s has revision '%s'; build the plan again",
                         revision, name, domain, op->origin, op->spec.revision);
  }
  return NULL;
}

// Holds each node against the standard by the version that is written beside it.
static assay_status_t check_nodes(assay_model_t* m, const json_t* nodes) {
  const size_t n = json_array_size(nodes);
  assay_onnx_version_t* versions = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *versions, &versions));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n; i++) {
    const json_t* line = json_array_get(nodes, i);
    versions[i] = (assay_onnx_version_t){json_string_value(json_array_get(line, 0)),
                                         json_integer_value(json_array_get(line, 1))};
    if (!versions[i].op_type) st = corrupt("the plan file is damaged: a node makes no sense");
  }
  if (!st)
    st = assay_status_note(assay_onnx_check_versions(m, versions, n), "the plan file is damaged");
  assay_free(versions);
  return st;
}

// The elements of both models; zeros where they were left out.
static assay_status_t map_data(assay_mapping_t* file, const part_t* at,
                               const assay_stripped_t* stripped, assay_mapping_t** out) {
  if (stripped) return assay_mapping_zeros((size_t)stripped->data_bytes, out);
  return assay_mapping_part(file, (size_t)at->offset, (size_t)at->bytes, out);
}

// A message with its elements, nodes and operators as the text has them under these keys.
static assay_status_t read_message(assay_mapping_t* file, const part_t* message_at,
                                   const part_t* data_at, const assay_stripped_t* stripped,
                                   const json_t* nodes, const json_t* operators,
                                   assay_model_t** out) {
  assay_mapping_t *message = NULL, *data = NULL;
  assay_model_t* m = NULL;
  assay_status_t st =
      assay_mapping_part(file, (size_t)message_at->offset, (size_t)message_at->bytes, &message);
  if (!st) st = map_data(file, data_at, stripped, &data);
  if (!st) st = assay_onnx_join(message, data, &m);
  assay_mapping_release(message);
  assay_mapping_release(data);
  if (!st) st = check_operators(operators);
  if (!st) st = check_nodes(m, nodes);
  if (!st) st = assay_infer_model(m);
  if (st) return assay_model_release(m), st;
  *out = m;
  return NULL;
}

static assay_status_t read_model(assay_mapping_t* file, const head_t* h, const json_t* text,
                                 const assay_stripped_t* stripped, assay_model_t** out) {
  return read_message(file, &h->message, &h->data, stripped, json_object_get(text, "nodes"),
                      json_object_get(text, "operators"), out);
}

static assay_status_t read_open(assay_model_t* m, const json_t* list) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *j = json_array_get(list, i), *dims = json_object_get(j, "dims");
    const char* name = json_string_value(json_object_get(j, "input"));
    assay_value_t* v = name ? assay_graph_find(m->graph, name) : NULL;
    const assay_dim_t* open[ASSAY_MAX_RANK] = {NULL};
    const assay_valtype_t* t = v && v->is_input ? v->declared : NULL;
    if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape ||
        json_array_size(dims) != (size_t)t->rank)
      return corrupt("the plan file is damaged: the sizes that were given make no sense");
    for (int d = 0; d < t->rank; d++) {
      const json_t* size = json_array_get(dims, (size_t)d);
      if (json_is_string(size) && json_string_length(size))
        open[d] = assay_dim_symbol(m->dims, json_string_value(size));
      else if (json_is_integer(size) && json_integer_value(size) >= 0)
        open[d] = assay_dim_const(m->dims, json_integer_value(size));
      else if (!json_is_null(size))
        return corrupt("the plan file is damaged: the sizes that were given make no sense");
    }
    ASSAY_TRY(assay_valtype_tensor(m, t->elem, t->rank, open, &v->open));
  }
  return assay_dims_status(m->dims);
}

// The file was checked when it was loaded.
assay_status_t assay_engine_read_source(const assay_engine_t* e, assay_model_t** out) {
  head_t h;
  json_t* text = NULL;
  if (!e->file)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "the plan does not know the model that it was made of");
  const uint8_t* data = assay_mapping_data(e->file);
  memcpy(&h, data, sizeof h);
  ASSAY_TRY(assay_json_parse(data + h.text.offset, (size_t)h.text.bytes, &text));
  assay_model_t* m = NULL;
  assay_status_t st =
      read_message(e->file, &h.source, &h.data, e->stripped, json_object_get(text, "source_nodes"),
                   json_object_get(text, "source_operators"), &m);
  if (!st) st = read_open(m, json_object_get(text, "open"));
  json_decref(text);
  if (!st)
    *out = m;
  else
    assay_model_release(m);
  return assay_status_note(st, "the model that the plan was made of");
}

static assay_status_t read_texts(const json_t* list, const char*** out, size_t* out_n) {
  const size_t n = json_array_size(list);
  const char** texts = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *texts, &texts));
  for (size_t i = 0; i < n; i++)
    if (!(texts[i] = json_string_value(json_array_get(list, i)))) {
      assay_free(texts);
      return corrupt("the plan file is damaged: what it was made by makes no sense");
    }
  *out = texts;
  *out_n = n;
  return NULL;
}

// "none": the format's own.
static bool is_accumulator(const char* name) {
  const assay_format_t f = name ? assay_format_parse(name) : ASSAY_FORMAT_NONE;
  return assay_format_info(f)->is_float ||
         (name && strcmp(name, assay_format_info(ASSAY_FORMAT_NONE)->name) == 0);
}

static assay_status_t read_recipe(const json_t* j, uint64_t seed, assay_plan_t* plan) {
  if (!json_is_object(j)) return NULL;
  const char* format = json_string_value(json_object_get(j, "format"));
  const char* accumulator = json_string_value(json_object_get(j, "accumulator"));
  const char** off = NULL;
  assay_plan_recipe_t r = {
      .fused = json_is_true(json_object_get(j, "fused")),
      .format = format ? assay_format_parse(format) : ASSAY_FORMAT_NONE,
      .accumulator = accumulator ? assay_format_parse(accumulator) : ASSAY_FORMAT_NONE,
      .rules = json_string_value(json_object_get(j, "rules")),
      .passes.only = json_string_value(json_object_get(j, "only")),
      .seed = seed};
  const char* fp32 = json_string_value(json_object_get(j, "fp32"));
  assay_status_t known = fp32 ? assay_fp32_parse(fp32, &r.fp32) : NULL;
  assay_status_free(known);
  if (!assay_format_info(r.format)->is_float || !is_accumulator(accumulator) || !r.rules || !fp32 ||
      known)
    return corrupt("the plan file is damaged: what it was made by makes no sense");
  assay_status_t st = read_texts(json_object_get(j, "off"), &off, &r.passes.n_off);
  r.passes.off = off;
  if (!st) st = assay_plan_set_recipe(plan, &r);
  assay_free(off);
  return st;
}

static assay_status_t read_cut(const json_t* j, assay_layer_cut_t* out) {
  const char* format = json_string_value(json_object_get(j, "format"));
  const char* accumulator = json_string_value(json_object_get(j, "accumulator"));
  const json_int_t n = json_integer_value(json_object_get(j, "nodes"));
  *out = (assay_layer_cut_t){
      .n_nodes = n > 0 ? (size_t)n : 0,
      .format = format ? assay_format_parse(format) : ASSAY_FORMAT_NONE,
      .accumulator = accumulator ? assay_format_parse(accumulator) : ASSAY_FORMAT_NONE,
      .reason = json_string_value(json_object_get(j, "why"))};
  if (!out->n_nodes || !assay_format_info(out->format)->is_float ||
      !assay_format_info(out->accumulator)->is_float || !out->reason)
    return corrupt("the plan file is damaged: a layer makes no sense");
  return NULL;
}

static assay_status_t read_plan(assay_model_t* m, const json_t* text, assay_plan_t** out) {
  const json_t* list = json_object_get(text, "layers");
  const size_t n = json_array_size(list);
  assay_layer_cut_t* cuts = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *cuts, &cuts));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n; i++) st = read_cut(json_array_get(list, i), &cuts[i]);
  const uint64_t seed = (uint64_t)json_integer_value(json_object_get(text, "seed"));
  assay_plan_t* plan = NULL;
  if (!st) st = assay_plan_restore(m, cuts, n, seed, &plan);
  assay_free(cuts);
  if (!st) st = read_recipe(json_object_get(text, "recipe"), seed, plan);
  if (st) return assay_plan_destroy(plan), st;
  *out = plan;
  return NULL;
}

static bool read_dims(const json_t* list, int rank, int64_t* out) {
  if (json_array_size(list) != (size_t)rank) return false;
  for (int i = 0; i < rank; i++) {
    if (!json_is_integer(json_array_get(list, (size_t)i))) return false;
    out[i] = json_integer_value(json_array_get(list, (size_t)i));
  }
  return true;
}

static bool read_profile(const json_t* j, assay_profile_t* out) {
  const json_t* number = json_object_get(j, "profile");
  const size_t rank = json_array_size(json_object_get(j, "min"));
  const json_int_t profile = json_is_integer(number) ? json_integer_value(number) : -1;
  if (rank > ASSAY_PROFILE_MAX_RANK || profile < 0 || profile >= ASSAY_MAX_PROFILES) return false;
  *out = (assay_profile_t){.input = json_string_value(json_object_get(j, "input")),
                           .rank = (int)rank,
                           .profile = (int)profile,
                           .values = json_is_true(json_object_get(j, "values"))};
  return out->input && read_dims(json_object_get(j, "min"), out->rank, out->min) &&
         read_dims(json_object_get(j, "opt"), out->rank, out->opt) &&
         read_dims(json_object_get(j, "max"), out->rank, out->max);
}

static assay_status_t read_profiles(assay_engine_t* e, const json_t* text) {
  const json_t* list = json_object_get(text, "profiles");
  const size_t n = json_array_size(list);
  assay_profile_t* p = NULL;
  assay_status_t st = NULL;
  // Each input has one range in each profile: more is no plan's, and would be looked through for
  // long.
  if (n > ASSAY_MAX_PROFILES * assay_plan_layers(e->plan)->model->graph->n_inputs)
    return corrupt("the plan file is damaged: it has too many profiles");
  ASSAY_TRY(assay_new_array(n, sizeof *p, &p));
  for (size_t i = 0; !st && i < n; i++)
    if (!read_profile(json_array_get(list, i), &p[i]))
      st = corrupt("the plan file is damaged: a profile makes no sense");
  if (!st) st = assay_engine_set_profiles(e, p, n);
  assay_free(p);
  return st;
}

static assay_status_t restore_saved(const assay_engine_t* e, const head_t* h, const json_t* text) {
  const json_t* list = json_object_get(text, "saved");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t* line = json_array_get(list, i);
    const char* key = json_string_value(json_array_get(line, 0));
    const json_int_t offset = json_integer_value(json_array_get(line, 1));
    const json_int_t bytes = json_integer_value(json_array_get(line, 2));
    // Kernels read what is saved as it lies, in vectors: its alignment is part of what it is.
    if (!key || offset < 0 || offset % PAGE != 0 || bytes < 0 ||
        (uint64_t)offset > h->saved.bytes || (uint64_t)bytes > h->saved.bytes - (uint64_t)offset)
      return corrupt("the plan file is damaged: what is saved is not in it");
    if (e->backend->restore)
      ASSAY_TRY(e->backend->restore(
          e->shared, key, assay_mapping_data(e->file) + h->saved.offset + offset, (size_t)bytes));
  }
  return NULL;
}

static assay_status_t load(assay_mapping_t* file, const char* target, assay_engine_t** out) {
  head_t h;
  const assay_backend_t* backend;
  json_t* text = NULL;
  assay_model_t* m = NULL;
  assay_plan_t* plan = NULL;
  assay_stripped_t* stripped = NULL;
  ASSAY_TRY(read_head(file, target, &h, &backend));
  ASSAY_TRY(
      assay_json_parse(assay_mapping_data(file) + h.text.offset, (size_t)h.text.bytes, &text));
  const json_t* missing = json_object_get(text, "stripped");
  assay_status_t st = missing ? assay_stripped_read(missing, &stripped) : NULL;
  if (!st) st = read_model(file, &h, text, stripped, &m);
  if (!st) st = read_plan(m, text, &plan);
  if (!st) st = assay_narrow_check(plan, backend);
  const json_int_t max_scratch = json_integer_value(json_object_get(text, "max_scratch"));
  if (!st && max_scratch < 0)
    st = corrupt("the plan file is damaged: its limit of workspace makes no sense");
  const assay_backend_options_t options = {
      .tactic_sources = json_string_value(json_object_get(text, "tactic_sources")),
      .forced = json_string_value(json_object_get(text, "forced_tactics")),
      .batch_variant = json_is_true(json_object_get(text, "batch_variant")),
      .max_scratch = (uint64_t)max_scratch};
  if (st)
    assay_plan_destroy(plan);
  else
    st = assay_engine_create(plan, backend, &options, out);
  if (!st) {
    assay_mapping_retain(file);
    (*out)->file = file;
    (*out)->stripped = stripped;
    stripped = NULL;
    st = restore_saved(*out, &h, text);
    if (!st) st = read_profiles(*out, text);
    if (!st) st = assay_engine_set_note(*out, json_string_value(json_object_get(text, "note")));
    if (st) assay_engine_release(*out);
  }
  assay_stripped_destroy(stripped);
  assay_model_release(m);
  json_decref(text);
  return st;
}

assay_status_t assay_engine_load_on(const char* path, const char* target, assay_engine_t** out) {
  assay_mapping_t* file = NULL;
  assay_engine_t* e = NULL;
  ASSAY_TRY(assay_mapping_open(path, &file));
  assay_status_t st = load(file, target, &e);
  assay_mapping_release(file);
  if (st) return assay_status_note(st, "'%s'", path);
  *out = e;
  return NULL;
}

assay_status_t assay_engine_load(const char* path, assay_engine_t** out) {
  return assay_engine_load_on(path, NULL, out);
}
