// ModelProto to a model of the IR.
#include <string.h>

#include "base/shown.h"
#include "onnx/file_kind.h"
#include "onnx/onnx.h"
#include "onnx/read.h"

// ---- calls of functions -----------------------------------------------------------------------

// "domain\1name\1overload": what a function is called by.
static assay_status_t call_key(assay_arena_t* arena, const char* domain, const char* name,
                               const char* overload, const char** out) {
  return assay_arena_printf(arena, out, "%s\1%s\1%s", domain, name, overload);
}

typedef struct caller {
  assay_model_t* model;
  assay_map_t functions;  // key -> index
  uint8_t* state;         // by function
  int depth;              // of calls and subgraphs together
} caller_t;

enum { NOT_SEEN = 0, OPEN, DONE };
enum { MAX_CALL_DEPTH = 256 };

static assay_status_t visit_graph(caller_t* c, assay_graph_t* g);

// Goes into a function that `node` calls (NULL: none does), unless that has been done.
static assay_status_t visit_function(caller_t* c, size_t i, const assay_node_t* node) {
  const assay_function_t* f = c->model->functions[i];
  if (c->state[i] == DONE) return NULL;
  if (c->state[i] == OPEN && node)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "function '%s' of domain '%s' calls itself, by way of node '%s' (%s); ONNX "
                       "does not allow recursion",
                       f->name, f->domain, node->label, node->op_type);
  c->state[i] = OPEN;
  ASSAY_TRY(visit_graph(c, f->body));
  c->state[i] = DONE;
  return NULL;
}

// Sets node->function in a graph and below, and goes on into what is called.
static assay_status_t visit_node(caller_t* c, assay_node_t* n, assay_str_t* key) {
  uint64_t found;
  key->len = 0;
  assay_str_printf_raw(key, "%s\1%s\1%s", n->domain, n->op_type, n->overload);
  ASSAY_TRY(assay_str_status(key));
  if (assay_map_get(&c->functions, assay_str_get(key), &found)) {
    n->function = c->model->functions[found];
    ASSAY_TRY(visit_function(c, found, n));
  }
  for (size_t k = 0; k < n->n_attrs; k++) {
    const assay_attr_t* a = &n->attrs[k];
    if (*a->ref) continue;
    if (a->type == ASSAY_ATTR_GRAPH) ASSAY_TRY(visit_graph(c, a->u.g));
    for (size_t i = 0; a->type == ASSAY_ATTR_GRAPHS && i < a->n; i++)
      ASSAY_TRY(visit_graph(c, a->u.graphs[i]));
  }
  return NULL;
}

static assay_status_t visit_graph(caller_t* c, assay_graph_t* g) {
  if (c->depth == MAX_CALL_DEPTH)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "functions and subgraphs are nested more than %d deep",
                       (int)MAX_CALL_DEPTH);
  c->depth++;
  assay_str_t key = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_nodes; i++) st = visit_node(c, g->nodes[i], &key);
  assay_str_deinit(&key);
  c->depth--;
  return st;
}

// Links nodes with the model-local functions that they call; no function may reach itself.
static assay_status_t resolve_calls(assay_model_t* m) {
  caller_t c = {.model = m};
  assay_status_t st = assay_new_array(m->n_functions, 1, &c.state);
  for (size_t i = 0; !st && i < m->n_functions; i++) {
    const assay_function_t* f = m->functions[i];
    const char* key = NULL;
    bool old = false;
    st = call_key(m->arena, f->domain, f->name, f->overload, &key);
    if (!st) st = assay_map_put(&c.functions, key, i, &old);
    if (!st && old)
      st = ASSAY_ERROR(ASSAY_CORRUPT, "function '%s' of domain '%s' is defined twice", f->name,
                       f->domain);
  }
  for (size_t i = 0; !st && i < m->n_functions; i++) st = visit_function(&c, i, NULL);
  if (!st) st = visit_graph(&c, m->graph);
  assay_map_deinit(&c.functions);
  assay_free(c.state);
  return st;
}

// ---- the model --------------------------------------------------------------------------------

static assay_status_t read_opset_imports(onnx_reader_t* r, const Onnx__ModelProto* p) {
  assay_model_t* m = r->model;
  m->n_opsets = p->n_opset_import;
  ASSAY_TRY(onnx_read_opsets(r, p->n_opset_import, p->opset_import, &m->opsets));
  if (m->n_opsets || m->ir_version >= 3) return NULL;
  // Before IR version 3 there was one operator set, which is version 1 now.
  ASSAY_TRY(assay_arena_new(r->arena, 1, sizeof *m->opsets, &m->opsets));
  m->opsets[0] = (assay_opset_t){"", 1};
  m->n_opsets = 1;
  return NULL;
}

static assay_status_t read_model(onnx_reader_t* r, const Onnx__ModelProto* p) {
  assay_model_t* m = r->model;
  m->ir_version = p->ir_version;
  m->model_version = p->model_version;
  ASSAY_TRY(onnx_text(r, p->producer_name, &m->producer_name));
  ASSAY_TRY(onnx_text(r, p->producer_version, &m->producer_version));
  ASSAY_TRY(onnx_text(r, p->domain, &m->domain));
  ASSAY_TRY(onnx_text(r, p->doc_string, &m->doc));
  ASSAY_TRY(onnx_read_props(r, p->n_metadata_props, p->metadata_props, &m->props, &m->n_props));
  ASSAY_TRY(onnx_carried(r, &p->base, &m->extra));
  ASSAY_TRY(read_opset_imports(r, p));
  if (!p->graph) return ASSAY_ERROR(ASSAY_CORRUPT, "there is no graph in it: not an ONNX model?");
  ASSAY_TRY(onnx_read_graph(r, p->graph, &m->graph));
  m->n_functions = p->n_functions;
  ASSAY_TRY(assay_arena_new(r->arena, m->n_functions, sizeof *m->functions, &m->functions));
  for (size_t i = 0; i < m->n_functions; i++)
    ASSAY_TRY(assay_status_note(onnx_read_function(r, p->functions[i], &m->functions[i]),
                                "function '%s'",
                                p->functions[i]->name ? p->functions[i]->name : ""));
  return resolve_calls(r->model);
}

// take_file: one reference, which the model gets; data_or_null: external data beside it. path: ""
// if the bytes did not come from a file.
static assay_status_t read_mapping(assay_mapping_t* take_file, assay_mapping_t* data_or_null,
                                   const char* path, const char* folder,
                                   const assay_onnx_read_options_t* options, assay_model_t** out) {
  ProtobufCMessage* message = NULL;
  onnx_reader_t r = {.file = take_file};
  if (options) r.options = *options;
  assay_status_t st = assay_model_create(&r.model);
  if (st) return assay_mapping_release(take_file), st;
  r.arena = r.model->arena;
  st = assay_model_take_mapping(r.model, take_file);
  if (!st) st = onnx_text(&r, path, &r.model->path);
  if (!st && folder) st = assay_arena_strdup(r.arena, folder, &r.model->folder);
  if (folder) r.folder = r.model->folder;
  if (!st && data_or_null) st = onnx_give_external(&r, ASSAY_ONNX_BESIDE, data_or_null);
  if (!st && !assay_mapping_size(take_file)) st = ASSAY_ERROR(ASSAY_CORRUPT, "the file is empty");
  if (!st)
    st = onnx_unpack(&onnx__model_proto__descriptor, assay_mapping_data(take_file),
                     assay_mapping_size(take_file), &message);
  if (!st) st = read_model(&r, (const Onnx__ModelProto*)message);
  onnx_free_message(message);
  onnx_reader_deinit(&r);
  if (st) return assay_model_release(r.model), st;
  *out = r.model;
  return NULL;
}

// Where what cannot be read is known to be something else, that is said instead.
static assay_status_t name_kind(assay_status_t st, const assay_mapping_t* file) {
  const bool corrupt = st && assay_status_code(st) == ASSAY_CORRUPT;
  const char* kind =
      corrupt ? assay_file_kind(assay_mapping_data(file), assay_mapping_size(file)) : NULL;
  if (!kind) return st;
  assay_status_free(st);
  return ASSAY_ERROR(ASSAY_CORRUPT, "this is %s", kind);
}

assay_status_t assay_onnx_read(const char* path, assay_model_t** out) {
  return assay_onnx_read_with(path, NULL, out);
}

assay_status_t assay_onnx_read_with(const char* path, const assay_onnx_read_options_t* options,
                                    assay_model_t** out) {
  const assay_onnx_read_options_t o = options ? *options : (assay_onnx_read_options_t){0};
  assay_mapping_t* file = NULL;
  ASSAY_TRY(assay_mapping_open(path, &file));
  const char* slash = strrchr(path, '/');
  assay_str_t folder = {0};
  if (o.folder)
    assay_str_append(&folder, o.folder);
  else if (slash == path)
    assay_str_append(&folder, "/");
  else if (slash)
    assay_str_append_n(&folder, path, (size_t)(slash - path));
  else
    assay_str_append(&folder, ".");
  assay_status_t st = assay_str_status(&folder);
  assay_mapping_retain(file);
  if (st)
    assay_mapping_release(file);
  else
    st = read_mapping(file, NULL, path, assay_str_get(&folder), &o, out);
  st = name_kind(st, file);
  assay_mapping_release(file);
  assay_str_deinit(&folder);
  return assay_status_note(st, "'%s'", path);
}

assay_status_t assay_onnx_read_bytes(const void* data, size_t size, const char* folder,
                                     assay_model_t** out) {
  assay_mapping_t* file = NULL;
  ASSAY_TRY(assay_mapping_copy(data, size, &file));
  return read_mapping(file, NULL, "", folder, NULL, out);
}

assay_status_t assay_onnx_join(assay_mapping_t* message, assay_mapping_t* data,
                               assay_model_t** out) {
  assay_mapping_retain(message);
  return read_mapping(message, data, "", NULL, NULL, out);
}
