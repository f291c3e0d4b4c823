// Reading what tools save of their runs: JSON, told apart by content, and folders of it.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/shown.h"
#include "io/json.h"
#include "io/json_arrays.h"
#include "io/polygraphy.h"
#include "io/saved.h"
#include "io/trtexec.h"

// ---- JSON -------------------------------------------------------------------------------------

static assay_status_t read_root(json_t* root, const assay_saved_types_t* types,
                                assay_saved_t* out) {
  if (assay_trtexec_is(root)) return assay_trtexec_read(root, out);
  if (assay_json_arrays_is(root)) return assay_json_arrays_read(root, types, out);
  if (assay_polygraphy_is(root)) return assay_polygraphy_read(root, out);
  return ASSAY_ERROR(
      ASSAY_CORRUPT,
      "it is neither Polygraphy's nor trtexec's JSON, nor an object of arrays such as "
      "{\"x\": [[1, 2], [3, 4]]}");
}

assay_status_t assay_saved_parse_json(const void* data, size_t size,
                                      const assay_saved_types_t* types, assay_saved_t* out) {
  assay_saved_t saved = {0};
  json_t* root = NULL;
  assay_status_t st = assay_json_parse_python(data, size, &root);
  if (!st) st = read_root(root, types, &saved);
  json_decref(root);
  if (st) return assay_saved_deinit(&saved), st;
  *out = saved;
  return NULL;
}

// ---- folders ----------------------------------------------------------------------------------

bool assay_saved_is_folder(const char* path) {
  bool found = false;
  DIR* folder = opendir(path);
  for (const struct dirent* e; !found && folder && (e = readdir(folder));)
    found = assay_json_is_file(e);
  if (folder) closedir(folder);
  return found;
}

// Adds the runs of one file to those before.
static assay_status_t add_file(const char* folder, const char* name,
                               const assay_saved_types_t* types, assay_saved_t* out) {
  assay_str_t path = {0};
  assay_saved_t one = {0};
  assay_mapping_t* m = NULL;
  assay_str_printf_raw(&path, "%s/%s", folder, name);
  assay_status_t st = assay_str_status(&path);
  if (!st) st = assay_mapping_open(assay_str_get(&path), &m);
  if (!st)
    st = assay_status_note(
        assay_saved_parse_json(assay_mapping_data(m), assay_mapping_size(m), types, &one), "'%s'",
        assay_str_get(&path));
  for (size_t i = 0; !st && i < one.n; i++) {
    assay_set_t* run = NULL;
    st = assay_saved_add_run(out, &run);
    if (st) break;
    *run = one.runs[i];
    one.runs[i] = (assay_set_t){0};
  }
  out->results |= one.results;
  assay_saved_deinit(&one);
  assay_mapping_release(m);
  assay_str_deinit(&path);
  return st;
}

assay_status_t assay_saved_read_folder(const char* path, const assay_saved_types_t* types,
                                       assay_saved_t* out) {
  struct dirent** entries = NULL;
  assay_saved_t saved = {0};
  const int n = scandir(path, &entries, assay_json_is_file, alphasort);
  if (n <= 0)
    return free(entries), ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' is not a folder of JSON files", path);
  assay_status_t st = NULL;
  for (int i = 0; i < n; i++) {
    if (!st) st = add_file(path, entries[i]->d_name, types, &saved);
    free(entries[i]);
  }
  free(entries);
  if (st) return assay_saved_deinit(&saved), st;
  *out = saved;
  return NULL;
}
