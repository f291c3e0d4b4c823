// A model of the IR to ModelProto. Fields stand in the order of their numbers.
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "formats/format.h"
#include "onnx/build.h"
#include "onnx/onnx.h"

// Tensors that go to the file of external data, or each to one of its own.
typedef struct external_entry {
  assay_tensor_t* tensor;  // borrowed from the model
  int64_t offset;
  char* file;  // its own, beside the model; NULL: data_name
} external_entry_t;

typedef struct export {
  onnx_builder_t b;
  assay_onnx_external_t external;
  int64_t min_bytes;
  const char* data_name;             // location of external data, relative to the model
  bool apart;                        // a file for each tensor
  const char* file;                  // the model's own name, which no tensor's file may have
  const assay_onnx_parts_t* beside;  // elements that lie there already; NULL: none
  const bool* chosen;                // by value id: what goes outside; NULL: as its size says
  bool narrow;                       // what lies in 16 bits goes outside so
  external_entry_t* entries;
  size_t n_entries, cap_entries;
  int64_t data_end;
}
export_t;

static void export_deinit(export_t* e) {
  onnx_builder_deinit(&e->b);
  for (size_t i = 0; i < e->n_entries; i++) assay_free(e->entries[i].file);
  assay_free(e->entries);
}

// ---- types and values -------------------------------------------------------------------------

static void put_dim(onnx_builder_t* b, const assay_dim_t* d, const char* denotation) {
  onnx_mark_t mark = onnx_begin(b, 1);
  int64_t v;
  char text[512];
  if (assay_dim_value(d, &v)) {
    onnx_put_int(b, 1, v);
  } else if (d && strlen(assay_dim_text(d, text, sizeof text)) < sizeof text - 1) {
    onnx_put_text(b, 2, text);
  }
  onnx_put_text(b, 3, denotation);
  onnx_end(b, mark);
}

static void put_type(onnx_builder_t* b, uint32_t number, const assay_valtype_t* t);

static void put_tensor_type(onnx_builder_t* b, const assay_valtype_t* t) {
  onnx_mark_t mark = onnx_begin(b, t->is_sparse ? 8 : 1);
  onnx_put_int(b, 1, t->elem);
  if (t->has_shape) {
    onnx_mark_t shape = onnx_begin(b, 2);
    for (int i = 0; i < t->rank; i++)
      put_dim(b, t->dims[i], t->denotations ? t->denotations[i] : "");
    onnx_end(b, shape);
  }
  onnx_end(b, mark);
}

static void put_type(onnx_builder_t* b, uint32_t number, const assay_valtype_t* t) {
  static const uint32_t numbers[] = {
      [ASSAY_KIND_SEQUENCE] = 4, [ASSAY_KIND_OPTIONAL] = 9, [ASSAY_KIND_MAP] = 5};
  onnx_mark_t mark = onnx_begin(b, number);
  if (t->kind == ASSAY_KIND_TENSOR) {
    put_tensor_type(b, t);
  } else {
    onnx_mark_t inner = onnx_begin(b, numbers[t->kind]);
    if (t->kind == ASSAY_KIND_MAP) onnx_put_int(b, 1, t->elem);
    if (t->of) put_type(b, t->kind == ASSAY_KIND_MAP ? 2 : 1, t->of);
    onnx_end(b, inner);
  }
  onnx_put_text(b, 6, t->denotation ? t->denotation : "");
  onnx_end(b, mark);
}

static void put_props(onnx_builder_t* b, uint32_t number, const assay_prop_t* props, size_t n) {
  for (size_t i = 0; i < n; i++) {
    onnx_mark_t mark = onnx_begin(b, number);
    onnx_put_name(b, 1, props[i].key);
    onnx_put_name(b, 2, props[i].value);
    onnx_end(b, mark);
  }
}

static void put_extra(onnx_builder_t* b, assay_bytes_t extra) {
  onnx_put_bytes(b, extra.data, extra.len);
}

static void put_value(onnx_builder_t* b, uint32_t number, const assay_value_t* v) {
  onnx_mark_t mark = onnx_begin(b, number);
  const assay_valtype_t* type = v->declared ? v->declared : v->type;
  onnx_put_name(b, 1, v->name);
  if (type) put_type(b, 2, type);
  onnx_put_text(b, 3, v->doc);
  put_props(b, 4, v->props, v->n_props);
  put_extra(b, v->extra);
  onnx_end(b, mark);
}

// ---- initializers -----------------------------------------------------------------------------

static bool goes_outside(const export_t* e, const assay_value_t* v, int64_t bytes) {
  if (e->chosen) return e->chosen[v->id];
  if (v->constant->type == ASSAY_TYPE_STRING || e->external == ASSAY_ONNX_EXTERNAL_NONE)
    return false;
  if (e->external == ASSAY_ONNX_EXTERNAL_ALL) return bytes >= e->min_bytes;
  return v->external_location != NULL;
}

// Gives a tensor its place in the file of external data.
static int64_t place(export_t* e, assay_tensor_t* t, int64_t bytes) {
  enum { SMALL_ALIGN = 4 << 10, LARGE_ALIGN = 64 << 10, LARGE = 1 << 20 };
  for (size_t i = 0; e->beside && i < e->beside->n; i++) {
    const assay_tensor_t* there = e->beside->parts[i].tensor;
    if (there->data == t->data && there->store == t->store && there->type == t->type &&
        there->size == t->size)
      return (int64_t)e->beside->parts[i].offset;
  }
  int64_t align = bytes > LARGE ? LARGE_ALIGN : SMALL_ALIGN;
  int64_t offset = (e->data_end + align - 1) / align * align;
  if (!e->b.status)
    e->b.status = assay_grow(&e->entries, &e->cap_entries, e->n_entries + 1, sizeof *e->entries);
  if (!e->b.status) e->entries[e->n_entries++] = (external_entry_t){.tensor = t, .offset = offset};
  e->data_end = offset + bytes;
  return offset;
}

static bool is_taken(const export_t* e, const char* file) {
  if (strcmp(file, e->file) == 0) return true;
  for (size_t i = 0; i < e->n_entries; i++)
    if (strcmp(file, e->entries[i].file) == 0) return true;
  return false;
}

static void put_entry(onnx_builder_t* b, const char* key, const char* value) {
  put_props(b, 13, &(assay_prop_t){key, value}, 1);
}

// A tensor's name as far as files can be called so, and ".data"; of those that are equal then, with
// a number.
static assay_status_t name_file(const export_t* e, const char* name, assay_str_t* out) {
  enum { LONGEST = 200 };
  char base[LONGEST + 1];
  size_t n = 0;
  for (const char* c = name; *c && n < LONGEST; c++) {
    const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                       (*c >= '0' && *c <= '9') || *c == '-' ||
                       (*c == '.' && n && base[n - 1] != '.');  // ".." is refused by onnx
    base[n++] = plain ? *c : '_';
  }
  if (n && base[n - 1] == '.') base[n - 1] = '_';
  base[n] = 0;
  assay_str_printf_raw(out, "%s.data", n ? base : "_");
  for (size_t i = 1; !out->failed && is_taken(e, out->text); i++) {
    assay_str_deinit(out);
    assay_str_printf_raw(out, "%s_%zu.data", base, i);
  }
  return assay_str_status(out);
}

// Gives a tensor a file of its own, and says which.
static void place_apart(export_t* e, const char* name, assay_tensor_t* t) {
  assay_str_t file = {0};
  assay_status_t* st = &e->b.status;
  if (!*st) *st = name_file(e, name, &file);
  if (!*st) *st = assay_grow(&e->entries, &e->cap_entries, e->n_entries + 1, sizeof *e->entries);
  if (*st) {
    assay_str_deinit(&file);
    return;
  }
  e->entries[e->n_entries++] = (external_entry_t){.tensor = t, .file = file.text};
  put_entry(&e->b, "location", file.text);
}

static void put_number_entry(onnx_builder_t* b, const char* key, int64_t value) {
  assay_str_t text = {0};
  assay_str_printf_raw(&text, "%lld", (long long)value);
  put_entry(b, key, assay_str_get(&text));
  if (!b->status) b->status = assay_str_status(&text);
  assay_str_deinit(&text);
}

// Where the elements of a tensor lie that go outside, in its own message.
static void put_outside(export_t* e, const char* name, assay_tensor_t* t, int64_t bytes) {
  onnx_builder_t* b = &e->b;
  if (e->narrow && t->store == ASSAY_STORE_NARROW) {
    put_entry(b, ASSAY_ONNX_NARROW, assay_type_name(t->narrow));
    (void)assay_type_packed_bytes(t->narrow, t->size, &bytes);
  }
  if (e->apart) {
    place_apart(e, name, t);
  } else {
    put_entry(b, "location", e->data_name);
    put_number_entry(b, "offset", place(e, t, bytes));
  }
  put_number_entry(b, "length", bytes);
  onnx_put_int(b, 14, 1);
}

static void put_initializer(export_t* e, const assay_value_t* v) {
  onnx_builder_t* b = &e->b;
  if (v->is_sparse_initializer && v->tensor_extra.len) {
    put_extra(b, v->tensor_extra);
    return;
  }
  assay_tensor_t* t = v->constant;
  int64_t bytes = 0;
  assay_type_packed_bytes(t->type, t->size, &bytes);
  bool outside = !v->is_stripped && goes_outside(e, v, bytes);
  onnx_mark_t mark = onnx_begin(b, 5);
  onnx_put_tensor(b, t, !outside && !v->is_stripped);
  onnx_put_name(b, 8, v->name);
  onnx_put_text(b, 12, v->tensor_doc);
  if (outside) put_outside(e, v->name, t, bytes);
  put_extra(b, v->tensor_extra);
  onnx_end(b, mark);
}

// ---- nodes and graphs -------------------------------------------------------------------------

static void put_graph(export_t* e, uint32_t number, const assay_graph_t* g);

static void put_attr_value(export_t* e, const assay_attr_t* a) {
  onnx_builder_t* b = &e->b;
  switch (a->type) {
    case ASSAY_ATTR_FLOAT:
      onnx_put_float(b, 2, a->u.f);
      break;
    case ASSAY_ATTR_INT:
      onnx_put_int(b, 3, a->u.i);
      break;
    case ASSAY_ATTR_STRING:
      onnx_put_blob(b, 4, a->u.s.text, a->u.s.len);
      break;
    case ASSAY_ATTR_TENSOR:
      onnx_put_tensor_field(b, 5, a->u.t);
      break;
    case ASSAY_ATTR_GRAPH:
      put_graph(e, 6, a->u.g);
      break;
    case ASSAY_ATTR_FLOATS:
      for (size_t i = 0; i < a->n; i++) onnx_put_float(b, 7, a->u.floats[i]);
      break;
    case ASSAY_ATTR_INTS:
      for (size_t i = 0; i < a->n; i++) onnx_put_int(b, 8, a->u.ints[i]);
      break;
    case ASSAY_ATTR_STRINGS:
      for (size_t i = 0; i < a->n; i++)
        onnx_put_blob(b, 9, a->u.strings[i].text, a->u.strings[i].len);
      break;
    case ASSAY_ATTR_TENSORS:
      for (size_t i = 0; i < a->n; i++) onnx_put_tensor_field(b, 10, a->u.tensors[i]);
      break;
    case ASSAY_ATTR_GRAPHS:
      for (size_t i = 0; i < a->n; i++) put_graph(e, 11, a->u.graphs[i]);
      break;
    case ASSAY_ATTR_TYPE_PROTO:
      if (a->u.type) put_type(b, 14, a->u.type);
      break;
    case ASSAY_ATTR_TYPE_PROTOS:
      for (size_t i = 0; i < a->n; i++)
        if (a->u.types[i]) put_type(b, 15, a->u.types[i]);
      break;
    case ASSAY_ATTR_SPARSE_TENSOR:
      onnx_put_sparse_field(b, 22, a->u.t);
      break;
    case ASSAY_ATTR_SPARSE_TENSORS:
      for (size_t i = 0; i < a->n; i++) onnx_put_sparse_field(b, 23, a->u.tensors[i]);
      break;
    case ASSAY_ATTR_UNDEFINED:
      break;
  }
}

static void put_attr(export_t* e, uint32_t number, const assay_attr_t* a) {
  onnx_builder_t* b = &e->b;
  onnx_mark_t mark = onnx_begin(b, number);
  onnx_put_name(b, 1, a->name);
  if (a->wire.len)
    put_extra(b, a->wire);
  else if (!*a->ref)
    put_attr_value(e, a);
  onnx_put_text(b, 13, a->doc);
  onnx_put_int(b, 20, a->type);
  onnx_put_text(b, 21, a->ref);
  put_extra(b, a->extra);
  onnx_end(b, mark);
}

// What a Constant node holds whose elements go outside.
static void put_constant(export_t* e, uint32_t number, const assay_attr_t* a,
                         const assay_value_t* v) {
  onnx_builder_t* b = &e->b;
  int64_t bytes = 0;
  assay_type_packed_bytes(a->u.t->type, a->u.t->size, &bytes);
  onnx_mark_t mark = onnx_begin(b, number);
  onnx_put_name(b, 1, a->name);
  onnx_mark_t tensor = onnx_begin(b, 5);
  onnx_put_tensor(b, a->u.t, false);
  put_outside(e, v->name, a->u.t, bytes);
  onnx_end(b, tensor);
  onnx_put_int(b, 20, a->type);
  onnx_end(b, mark);
}

static bool holds_chosen(const export_t* e, const assay_node_t* n) {
  return e->chosen && n->n_attrs == 1 && n->attrs[0].type == ASSAY_ATTR_TENSOR &&
         n->n_outputs == 1 && n->outputs[0] && n->outputs[0]->constant == n->attrs[0].u.t &&
         e->chosen[n->outputs[0]->id];
}

static void put_node(export_t* e, uint32_t number, const assay_node_t* n) {
  onnx_builder_t* b = &e->b;
  onnx_mark_t mark = onnx_begin(b, number);
  for (size_t i = 0; i < n->n_inputs; i++)
    onnx_put_name(b, 1, n->inputs[i] ? n->inputs[i]->name : "");
  for (size_t i = 0; i < n->n_outputs; i++)
    onnx_put_name(b, 2, n->outputs[i] ? n->outputs[i]->name : "");
  onnx_put_text(b, 3, n->name);
  onnx_put_name(b, 4, n->op_type);
  if (holds_chosen(e, n))
    put_constant(e, 5, n->attrs, n->outputs[0]);
  else
    for (size_t i = 0; i < n->n_attrs; i++) put_attr(e, 5, &n->attrs[i]);
  onnx_put_text(b, 6, n->doc);
  onnx_put_text(b, 7, n->domain);
  onnx_put_text(b, 8, n->overload);
  put_props(b, 9, n->props, n->n_props);
  put_extra(b, n->extra);
  onnx_end(b, mark);
}

static void put_graph(export_t* e, uint32_t number, const assay_graph_t* g) {
  onnx_builder_t* b = &e->b;
  onnx_mark_t mark = onnx_begin(b, number);
  for (size_t i = 0; i < g->n_nodes; i++) put_node(e, 1, g->nodes[i]);
  onnx_put_text(b, 2, g->name);
  for (size_t i = 0; i < g->n_initializers; i++) put_initializer(e, g->initializers[i]);
  onnx_put_text(b, 10, g->doc);
  for (size_t i = 0; i < g->n_inputs; i++) put_value(b, 11, g->inputs[i]);
  for (size_t i = 0; i < g->n_outputs; i++) put_value(b, 12, g->outputs[i]);
  for (size_t i = 0; i < g->n_value_info; i++) put_value(b, 13, g->value_info[i]);
  put_props(b, 16, g->props, g->n_props);
  put_extra(b, g->extra);
  onnx_end(b, mark);
}

// ---- the model --------------------------------------------------------------------------------

static void put_opsets(onnx_builder_t* b, uint32_t number, const assay_opset_t* opsets, size_t n) {
  for (size_t i = 0; i < n; i++) {
    onnx_mark_t mark = onnx_begin(b, number);
    onnx_put_name(b, 1, opsets[i].domain);
    onnx_put_int(b, 2, opsets[i].version);
    onnx_end(b, mark);
  }
}

static void put_function(export_t* e, const assay_function_t* f) {
  onnx_builder_t* b = &e->b;
  const assay_graph_t* g = f->body;
  onnx_mark_t mark = onnx_begin(b, 25);
  onnx_put_name(b, 1, f->name);
  for (size_t i = 0; i < f->n_inputs; i++) onnx_put_name(b, 4, f->inputs[i]);
  for (size_t i = 0; i < f->n_outputs; i++) onnx_put_name(b, 5, f->outputs[i]);
  for (size_t i = 0; i < f->n_attr_names; i++) onnx_put_name(b, 6, f->attr_names[i]);
  for (size_t i = 0; i < g->n_nodes; i++) put_node(e, 7, g->nodes[i]);
  onnx_put_text(b, 8, f->doc);
  put_opsets(b, 9, f->opsets, f->n_opsets);
  onnx_put_text(b, 10, f->domain);
  for (size_t i = 0; i < f->n_attr_defaults; i++) put_attr(e, 11, &f->attr_defaults[i]);
  for (size_t i = 0; i < g->n_value_info; i++) put_value(b, 12, g->value_info[i]);
  onnx_put_text(b, 13, f->overload);
  put_props(b, 14, f->props, f->n_props);
  put_extra(b, f->extra);
  onnx_end(b, mark);
}

static void put_model(export_t* e, const assay_model_t* m) {
  onnx_builder_t* b = &e->b;
  if (m->ir_version) onnx_put_int(b, 1, m->ir_version);
  onnx_put_text(b, 2, m->producer_name);
  onnx_put_text(b, 3, m->producer_version);
  onnx_put_text(b, 4, m->domain);
  if (m->model_version) onnx_put_int(b, 5, m->model_version);
  onnx_put_text(b, 6, m->doc);
  put_graph(e, 7, m->graph);
  // Before IR version 3 a file does not say what operator set it is written for.
  if (m->ir_version >= 3) put_opsets(b, 8, m->opsets, m->n_opsets);
  put_props(b, 14, m->props, m->n_props);
  for (size_t i = 0; i < m->n_functions; i++) put_function(e, m->functions[i]);
  put_extra(b, m->extra);
}

// Builds the message; what protobuf cannot hold in one file is put outside if that is allowed.
static assay_status_t build(export_t* e, const assay_model_t* m) {
  put_model(e, m);
  if (!e->b.status && onnx_built_size(&e->b) > INT_MAX && e->external == ASSAY_ONNX_EXTERNAL_KEEP &&
      e->data_name) {
    export_t again = {.external = ASSAY_ONNX_EXTERNAL_ALL,
                      .min_bytes = e->min_bytes,
                      .data_name = e->data_name,
                      .apart = e->apart,
                      .file = e->file};
    export_deinit(e);
    *e = again;
    put_model(e, m);
  }
  assay_status_t st = e->b.status;
  e->b.status = NULL;
  if (!st && onnx_built_size(&e->b) > INT_MAX)
    st = ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "the model takes %llu bytes, and an ONNX file holds at most %d; write its "
                     "weights as external data",
                     (unsigned long long)onnx_built_size(&e->b), INT_MAX);
  return st;
}

static assay_status_t write_data_file(const export_t* e, assay_writer_t* w) {
  static const char zeros[4096];
  for (size_t i = 0; i < e->n_entries; i++) {
    for (uint64_t gap; (gap = (uint64_t)e->entries[i].offset - assay_writer_offset(w)) > 0;)
      ASSAY_TRY(assay_writer_write(w, zeros, gap < sizeof zeros ? (size_t)gap : sizeof zeros));
    ASSAY_TRY(onnx_write_elements(e->entries[i].tensor, w));
  }
  return NULL;
}

// Each file is complete on disk before it takes its place, and all are before the model is.
static assay_status_t write_apart(const export_t* e, const char* folder) {
  for (size_t i = 0; i < e->n_entries; i++) {
    assay_str_t path = {0};
    assay_writer_t* w = NULL;
    assay_str_printf_raw(&path, "%s%s", folder, e->entries[i].file);
    assay_status_t st = assay_str_status(&path);
    if (!st) st = assay_writer_open(path.text, &w);
    if (!st) st = onnx_write_elements(e->entries[i].tensor, w);
    if (!st) {
      st = assay_writer_commit(w);
      w = NULL;
    }
    assay_writer_abandon(w);
    assay_str_deinit(&path);
    if (st) return st;
  }
  return NULL;
}

// Both files are complete on disk before the first takes its place.
static assay_status_t write_files(const export_t* e, const char* path, const char* data_path) {
  assay_writer_t *model = NULL, *data = NULL;
  assay_status_t st = NULL;
  if (e->n_entries && !e->apart) st = assay_writer_open(data_path, &data);
  if (!st && data) st = write_data_file(e, data);
  if (!st) st = assay_writer_open(path, &model);
  if (!st) st = onnx_built_write(&e->b, model);
  if (!st && data) {
    st = assay_writer_commit(data);
    data = NULL;
  }
  if (!st) {
    st = assay_writer_commit(model);
    model = NULL;
  }
  assay_writer_abandon(data);
  assay_writer_abandon(model);
  return st;
}

assay_status_t assay_onnx_write(const assay_model_t* model, const char* path,
                                const assay_onnx_write_options_t* options) {
  const assay_onnx_write_options_t none = {0};
  if (!options) options = &none;
  const char* slash = strrchr(path, '/');
  const char* file = slash ? slash + 1 : path;
  assay_str_t name = {0}, folder = {0}, data_path = {0};
  if (options->data_name)
    assay_str_append(&name, options->data_name);
  else
    assay_str_printf_raw(&name, "%s.data", file);
  assay_str_append_n(&folder, path, (size_t)(file - path));
  assay_str_printf_raw(&data_path, "%s%s", assay_str_get(&folder), assay_str_get(&name));
  export_t e = {.external = options->external,
                .min_bytes = options->min_bytes ? options->min_bytes : 1024,
                .data_name = assay_str_get(&name),
                .apart = options->apart,
                .file = file};
  assay_status_t st = assay_str_status(&name);
  if (!st) st = assay_str_status(&data_path);
  if (!st && strchr(assay_str_get(&name), '/'))
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "'%s' names a folder; external data stand beside the model",
                     assay_str_get(&name));
  if (!st) st = build(&e, model);
  if (!st) st = assay_str_status(&folder);
  if (!st && e.apart) st = write_apart(&e, assay_str_get(&folder));
  if (!st) st = write_files(&e, path, assay_str_get(&data_path));
  export_deinit(&e);
  assay_str_deinit(&name);
  assay_str_deinit(&folder);
  assay_str_deinit(&data_path);
  return assay_status_note(st, "writing '%s'", path);
}

assay_status_t assay_onnx_split(const assay_model_t* model, const assay_onnx_parts_t* beside,
                                const bool* chosen, assay_onnx_parts_t* out) {
  export_t e = {.external = ASSAY_ONNX_EXTERNAL_ALL,
                .min_bytes = ASSAY_ONNX_BESIDE_BYTES,
                .data_name = ASSAY_ONNX_BESIDE,
                .beside = beside,
                .chosen = chosen,
                .narrow = true,
                .data_end = beside ? (int64_t)beside->data_bytes : 0};
  *out = (assay_onnx_parts_t){0};
  assay_status_t st = build(&e, model);
  out->message_bytes = (size_t)onnx_built_size(&e.b);
  if (!st && !(out->message = assay_malloc(out->message_bytes))) st = assay_status_no_memory();
  if (!st) st = onnx_built_copy(&e.b, out->message);
  if (!st) st = assay_new_array(e.n_entries, sizeof *out->parts, &out->parts);
  for (; !st && out->n < e.n_entries; out->n++)
    out->parts[out->n] =
        (assay_onnx_part_t){e.entries[out->n].tensor, (uint64_t)e.entries[out->n].offset};
  out->data_bytes = (uint64_t)e.data_end;
  export_deinit(&e);
  if (st) assay_onnx_parts_deinit(out);
  return st;
}

void assay_onnx_parts_deinit(assay_onnx_parts_t* p) {
  assay_free(p->message);
  assay_free(p->parts);
  *p = (assay_onnx_parts_t){0};
}

assay_status_t assay_onnx_write_bytes(const assay_model_t* model, uint8_t** out, size_t* out_size) {
  export_t e = {.external = ASSAY_ONNX_EXTERNAL_NONE};
  uint8_t* bytes = NULL;
  assay_status_t st = build(&e, model);
  size_t size = (size_t)onnx_built_size(&e.b);
  if (!st && !(bytes = assay_malloc(size))) st = assay_status_no_memory();
  if (!st) st = onnx_built_copy(&e.b, bytes);
  export_deinit(&e);
  if (st) return assay_free(bytes), st;
  *out = bytes;
  *out_size = size;
  return NULL;
}
