// JSON of Polygraphy and trtexec, or plain arrays; a folder of it.

#include <string.h>

#include "data/tensor_formats/tensor_format.h"
#include "io/polygraphy.h"
#include "io/trtexec.h"

// The type of the request's value of that name.
static assay_type_t type_of_name(const void* user, const char* name) {
  const assay_tensor_request_t* r = user;
  for (size_t i = 0; i < r->n_values; i++)
    if (strcmp(r->values[i]->name, name) == 0) {
      const assay_valtype_t* t = r->values[i]->type ? r->values[i]->type : r->values[i]->declared;
      return t && t->kind == ASSAY_KIND_TENSOR ? t->elem : ASSAY_TYPE_UNDEFINED;
    }
  return ASSAY_TYPE_UNDEFINED;
}

static assay_status_t read_json(const assay_tensor_file_t* f, assay_saved_t* out) {
  const assay_saved_types_t types = {type_of_name, f->request};
  return assay_saved_parse_json(f->data, f->size, &types, out);
}

static bool is_json_folder(const assay_tensor_file_t* f) {
  return !f->mapping && assay_saved_is_folder(f->request->path);
}

static assay_status_t read_json_folder(const assay_tensor_file_t* f, assay_saved_t* out) {
  const assay_saved_types_t types = {type_of_name, f->request};
  return assay_saved_read_folder(f->request->path, &types, out);
}

static assay_status_t write_trtexec(const char* path, const assay_saved_t* s, const char* runner,
                                    assay_str_t* notes) {
  (void)runner, (void)notes;
  return assay_trtexec_write(path, &s->runs[0]);
}

const assay_tensor_format_t assay_tensor_format_trtexec = {
    .name = "trtexec's JSON", .endings = {".trtexec.json"}, .write = write_trtexec};

const assay_tensor_format_t assay_tensor_format_json = {
    .name = "JSON of Polygraphy or trtexec, or plain arrays",
    .listed = "JSON (arrays, Polygraphy, trtexec)",
    .endings = {".json"},
    .keeps_runs = true,
    .is = assay_tensor_file_is_json,
    .read = read_json,
    .write = assay_polygraphy_write};

const assay_tensor_format_t assay_tensor_format_json_folder = {.name = "folder of JSON",
                                                               .folder = {"Polygraphy's JSON"},
                                                               .is = is_json_folder,
                                                               .read = read_json_folder};
