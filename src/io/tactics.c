// Tactic replays: which tactic each layer of a plan is run by, as a JSON file in Polygraphy's form.
#include "io/tactics.h"

#include <string.h>

#include "base/hash.h"
#include "io/json.h"

enum { INDENT = 4 };

// Small enough for readers that keep numbers as doubles.
int64_t assay_tactic_number(const char* name) {
  return (int64_t)(assay_hash(name, strlen(name), 0) >> 12);
}

// ---- comparing ----------------------------------------------------------------------------------

static bool same_tensors(const assay_tactic_tensor_t* a, size_t n, const assay_tactic_tensor_t* b,
                         size_t m) {
  if (n != m) return false;
  for (size_t i = 0; i < n; i++) {
    if (strcmp(a[i].dtype, b[i].dtype) != 0 || a[i].rank != b[i].rank ||
        a[i].vectorized_dim != b[i].vectorized_dim || a[i].components != b[i].components)
      return false;
    for (int d = 0; d < a[i].rank; d++)
      if (a[i].strides[d] != b[i].strides[d]) return false;
  }
  return true;
}

bool assay_tactic_same(const assay_tactic_entry_t* a, const assay_tactic_entry_t* b) {
  return a->implementation == b->implementation && a->tactic == b->tactic &&
         same_tensors(a->inputs, a->n_inputs, b->inputs, b->n_inputs) &&
         same_tensors(a->outputs, a->n_outputs, b->outputs, b->n_outputs);
}

// ---- reading ------------------------------------------------------------------------------------

// Whether an object is of a class, said in the one way or the other.
static bool is_class(const json_t* j, const char* name) {
  const char* now = json_string_value(json_object_get(j, "polygraphy_class"));
  char old[64] = "__polygraphy_encoded_";
  strncat(old, name, sizeof old - strlen(old) - 1);
  return (now && strcmp(now, name) == 0) || json_object_get(j, old) != NULL;
}

static assay_status_t corrupt(const char* layer, const char* what) {
  return ASSAY_ERROR(ASSAY_CORRUPT, "layer '%s': %s", layer, what);
}

static assay_status_t read_tensor(assay_arena_t* arena, const char* layer, const json_t* j,
                                  assay_tactic_tensor_t* out) {
  const json_t *strides = json_object_get(j, "strides"), *dtype = json_object_get(j, "dtype"),
               *dim = json_object_get(j, "vectorized_dim"),
               *components = json_object_get(j, "components_per_element");
  if (!json_is_object(j)) return corrupt(layer, "a tensor is not an object");
  if (strides && (!json_is_array(strides) || json_array_size(strides) > ASSAY_TACTIC_RANK))
    return corrupt(layer, "the strides of a tensor are no list, or too many");
  for (size_t d = 0; d < json_array_size(strides); d++) {
    if (!json_is_integer(json_array_get(strides, d)))
      return corrupt(layer, "a stride is not a whole number");
    out->strides[d] = json_integer_value(json_array_get(strides, d));
  }
  out->rank = (int)json_array_size(strides);
  out->vectorized_dim = json_is_integer(dim) ? json_integer_value(dim) : -1;
  out->components = json_is_integer(components) ? json_integer_value(components) : 1;
  return assay_arena_strdup(arena, json_is_string(dtype) ? json_string_value(dtype) : "",
                            &out->dtype);
}

static assay_status_t read_tensors(assay_arena_t* arena, const char* layer, const json_t* list,
                                   assay_tactic_tensor_t** out, size_t* out_n) {
  if (list && !json_is_array(list)) return corrupt(layer, "its inputs or outputs are no list");
  *out_n = json_array_size(list);
  ASSAY_TRY(assay_arena_new(arena, *out_n, sizeof **out, out));
  for (size_t i = 0; i < *out_n; i++)
    ASSAY_TRY(read_tensor(arena, layer, json_array_get(list, i), &(*out)[i]));
  return NULL;
}

static assay_status_t read_entry(assay_arena_t* arena, const char* layer, const json_t* j,
                                 assay_tactic_entry_t* out) {
  const json_t *implementation = json_object_get(j, "implementation"),
               *tactic = json_object_get(j, "tactic"), *name = json_object_get(j, "assay");
  if (!json_is_object(j) || !json_is_integer(implementation) || !json_is_integer(tactic))
    return corrupt(layer, "it has no \"implementation\" and \"tactic\" that are whole numbers");
  out->implementation = json_integer_value(implementation);
  out->tactic = json_integer_value(tactic);
  ASSAY_TRY(assay_arena_strdup(arena, layer, &out->layer));
  if (json_is_string(name))
    ASSAY_TRY(assay_arena_strdup(arena, json_string_value(name), &out->name));
  ASSAY_TRY(read_tensors(arena, layer, json_object_get(j, "inputs"), &out->inputs, &out->n_inputs));
  return read_tensors(arena, layer, json_object_get(j, "outputs"), &out->outputs, &out->n_outputs);
}

static assay_status_t read_all(assay_arena_t* arena, const json_t* root, assay_tactics_t* out) {
  const json_t* replay = json_object_get(root, "replay");
  const char* layer;
  json_t* entry;
  assay_tactics_t t = {0};
  if (!is_class(root, "TacticReplayData") || !json_is_object(replay))
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "it is not a tactic replay: that is an object with \"replay\", of the class "
                       "TacticReplayData");
  ASSAY_TRY(assay_arena_new(arena, json_object_size(replay), sizeof *t.entries, &t.entries));
  json_object_foreach((json_t*)(uintptr_t)replay, layer, entry)
      ASSAY_TRY(read_entry(arena, layer, entry, &t.entries[t.n++]));
  *out = t;
  return NULL;
}

assay_status_t assay_tactics_read(assay_arena_t* arena, const char* path, assay_tactics_t* out) {
  json_t* root = NULL;
  ASSAY_TRY(assay_json_read(path, &root));
  assay_status_t st = read_all(arena, root, out);
  json_decref(root);
  return assay_status_note(st, "'%s'", path);
}

// ---- writing ------------------------------------------------------------------------------------

static json_t* tensors_json(const assay_tactic_tensor_t* tensors, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++) {
    json_t* strides = json_array();
    for (int d = 0; d < tensors[i].rank; d++)
      strides = assay_json_push(strides, json_integer(tensors[i].strides[d]));
    json_t* j = assay_json_put(json_object(), "dtype", assay_json_text(tensors[i].dtype));
    j = assay_json_put(j, "strides", strides);
    j = assay_json_put(j, "vectorized_dim", json_integer(tensors[i].vectorized_dim));
    j = assay_json_put(j, "components_per_element", json_integer(tensors[i].components));
    list = assay_json_push(list, assay_json_put(j, "polygraphy_class", json_string("TensorInfo")));
  }
  return list;
}

static json_t* entry_json(const assay_tactic_entry_t* e) {
  json_t* j = assay_json_put(json_object(), "implementation", json_integer(e->implementation));
  j = assay_json_put(j, "tactic", json_integer(e->tactic));
  if (e->name) j = assay_json_put(j, "assay", assay_json_text(e->name));
  j = assay_json_put(j, "inputs", tensors_json(e->inputs, e->n_inputs));
  j = assay_json_put(j, "outputs", tensors_json(e->outputs, e->n_outputs));
  return assay_json_put(j, "polygraphy_class", json_string("Algorithm"));
}

assay_status_t assay_tactics_write(const char* path, const assay_tactics_t* t) {
  json_t* replay = json_object();
  for (size_t i = 0; i < t->n; i++)
    replay = assay_json_put(replay, t->entries[i].layer, entry_json(&t->entries[i]));
  json_t* root = assay_json_put(json_object(), "replay", replay);
  root = assay_json_put(root, "polygraphy_class", json_string("TacticReplayData"));
  if (!root) return assay_status_no_memory();
  assay_status_t st = assay_json_write(path, root, INDENT);
  json_decref(root);
  return st;
}
