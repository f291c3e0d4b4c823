// Debug replays: what came of each iteration, as a JSON file that a later call starts from.
#include "frontends/polygraphy/debug/debug_replay.h"

#include <string.h>

enum { INDENT = 4 };

// ---- reading ------------------------------------------------------------------------------------

static assay_status_t check(const char* path, const json_t* j) {
  const char* key;
  json_t* entry;
  if (!json_is_object(j))
    return ASSAY_ERROR(ASSAY_CORRUPT, "'%s' is not a debug replay: it holds no object", path);
  json_object_foreach((json_t*)(uintptr_t)j, key, entry) {
    const json_t* success = json_object_get(entry, "success");
    if (!json_is_object(entry) || !(json_is_boolean(success) || json_is_null(success)))
      return ASSAY_ERROR(
          ASSAY_CORRUPT,
          "'%s' is not a debug replay: its entry '%s' has no \"success\" that is true "
          "or false",
          path, key);
  }
  return NULL;
}

// "replay.json" as "replay_skip_current.json".
static assay_status_t name_beside(assay_arena_t* arena, const char* path, const char** out) {
  const char* slash = strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  const char* dot = strrchr(name, '.');
  if (!dot || dot == name) dot = name + strlen(name);
  return assay_arena_printf(arena, out, "%.*s_skip_current%s", (int)(dot - path), path, dot);
}

assay_status_t pg_replay_open(assay_arena_t* arena, const char* load, const char* save,
                              pg_replay_t* out) {
  pg_replay_t r = {.path = save};
  ASSAY_TRY(name_beside(arena, save, &r.beside));
  if (load) ASSAY_TRY(assay_status_note(assay_json_read(load, &r.loaded), "--load-debug-replay"));
  assay_status_t st = load ? check(load, r.loaded) : NULL;
  r.saved = json_object();
  if (!st && !r.saved) st = assay_status_no_memory();
  if (st) return pg_replay_close(&r), st;
  *out = r;
  return NULL;
}

void pg_replay_close(pg_replay_t* r) {
  json_decref(r->loaded);
  json_decref(r->saved);
  r->loaded = r->saved = NULL;
}

// ---- entries ------------------------------------------------------------------------------------

static assay_status_t key_of(size_t index, const char* suffix, assay_str_t* out) {
  assay_str_printf(out, "_N%zu%s%s", index, suffix ? "_" : "", suffix ? suffix : "");
  return assay_str_status(out);
}

bool pg_replay_find(const pg_replay_t* r, size_t index, const char* suffix, bool* out_success,
                    int64_t* out_n_nodes) {
  assay_str_t key = {0};
  assay_status_t st = key_of(index, suffix, &key);
  const json_t* entry = st ? NULL : json_object_get(r->loaded, assay_str_get(&key));
  const json_t* success = json_object_get(entry, "success");
  const json_t* n_nodes = json_object_get(json_object_get(entry, "state"), "num_nodes");
  assay_status_free(st);  // without memory it is run once more
  assay_str_deinit(&key);
  if (!json_is_boolean(success)) return false;
  *out_success = json_is_true(success);
  *out_n_nodes = json_is_integer(n_nodes) ? json_integer_value(n_nodes) : -1;
  return true;
}

static json_t* entry_json(size_t index, int64_t n_nodes, bool success) {
  json_t* state = json_object();
  if (n_nodes >= 0) state = assay_json_put(state, "num_nodes", json_integer(n_nodes));
  json_t* info = assay_json_put(json_object(), "iteration", json_integer((json_int_t)index));
  json_t* j = assay_json_put(json_object(), "state", state);
  j = assay_json_put(j, "iteration_info", info);
  j = assay_json_put(j, "success", json_boolean(success));
  return assay_json_put(j, "polygraphy_class", json_string("IterationContext"));
}

static assay_status_t put(json_t* all, size_t index, const char* suffix, int64_t n_nodes,
                          bool success) {
  assay_str_t key = {0};
  assay_status_t st = key_of(index, suffix, &key);
  json_t* entry = st ? NULL : entry_json(index, n_nodes, success);
  // json_object_set_new takes the entry, also where it fails.
  if (!st && (!entry || json_object_set_new(all, assay_str_get(&key), entry)))
    st = assay_status_no_memory();
  assay_str_deinit(&key);
  return st;
}

assay_status_t pg_replay_put(pg_replay_t* r, size_t index, const char* suffix, int64_t n_nodes,
                             bool success) {
  return put(r->saved, index, suffix, n_nodes, success);
}

assay_status_t pg_replay_save(const pg_replay_t* r) {
  return assay_status_note(assay_json_write(r->path, r->saved, INDENT), "--save-debug-replay");
}

assay_status_t pg_replay_save_skipping(const pg_replay_t* r, size_t index, const char* suffix,
                                       int64_t n_nodes) {
  json_t* copy = json_copy(r->saved);
  assay_status_t st = copy ? put(copy, index, suffix, n_nodes, false) : assay_status_no_memory();
  if (!st) st = assay_status_note(assay_json_write(r->beside, copy, INDENT), "--save-debug-replay");
  json_decref(copy);
  return st;
}
