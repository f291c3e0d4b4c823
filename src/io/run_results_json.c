// Polygraphy's results of several runners, read and written.
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/shown.h"
#include "io/json.h"
#include "io/json_arrays.h"
#include "io/polygraphy.h"
#include "io/run_results.h"
#include "io/trtexec.h"

// Inputs, or outputs of somebody who does not say who.
static assay_status_t read_saved(json_t* root, assay_run_results_t* out) {
  assay_saved_t saved = {0};
  assay_runner_results_t* runner = NULL;
  out->inputs = true;
  ASSAY_TRY(assay_run_results_add(out, "", &runner));
  assay_status_t st =
      assay_trtexec_is(root) ? assay_trtexec_read(root, &saved)
      : assay_json_arrays_is(root)
          ? assay_json_arrays_read(root, NULL, &saved)
          : (assay_polygraphy_is(root)
                 ? assay_polygraphy_read(root, &saved)
                 : ASSAY_ERROR(
                       ASSAY_CORRUPT,
                       "it is neither Polygraphy's nor trtexec's JSON, nor an object of arrays"));
  for (size_t i = 0; !st && i < saved.n; i++)
    st = assay_runner_results_append(runner, &saved.runs[i], (double)NAN);
  assay_saved_deinit(&saved);
  return st;
}

assay_status_t assay_run_results_parse_json(const void* data, size_t size,
                                            assay_run_results_t* out) {
  assay_run_results_t r = {0};
  json_t* root = NULL;
  assay_status_t st = assay_json_parse_python(data, size, &root);
  if (!st)
    st = assay_polygraphy_is_results(root) ? assay_polygraphy_read_results(root, &r)
                                           : read_saved(root, &r);
  json_decref(root);
  if (st) return assay_run_results_deinit(&r), st;
  *out = r;
  return NULL;
}

static assay_status_t read_one(const char* path, assay_run_results_t* out) {
  assay_run_results_t one = {0};
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_mapping_open(path, &m));
  assay_status_t st =
      assay_run_results_parse_json(assay_mapping_data(m), assay_mapping_size(m), &one);
  assay_mapping_release(m);
  if (!st) st = assay_run_results_append(out, &one);
  assay_run_results_deinit(&one);
  return assay_status_note(st, "'%s'", path);
}

assay_status_t assay_run_results_read_folder(const char* path, assay_run_results_t* out) {
  struct dirent** names = NULL;
  assay_run_results_t r = {0};
  assay_status_t st = NULL;
  const int n = scandir(path, &names, assay_json_is_file, alphasort);
  if (n < 1) {
    free(names);
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "folder '%s' holds no files of JSON", path);
  }
  for (int i = 0; i < n; i++) {
    assay_str_t file = {0};
    assay_str_printf_raw(&file, "%s/%s", path, names[i]->d_name);
    if (!st) st = assay_str_status(&file);
    if (!st) st = read_one(file.text, &r);
    assay_str_deinit(&file);
    free(names[i]);
  }
  free(names);
  if (st) return assay_run_results_deinit(&r), st;
  *out = r;
  return NULL;
}

// ---- writing ------------------------------------------------------------------------------------

static bool has_ending(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  const char* dot = strrchr(name, '.');
  return dot && dot != name;
}

assay_status_t assay_run_results_write(const char* path, const assay_run_results_t* r,
                                       assay_str_t* notes) {
  if (!r->inputs)
    return has_ending(path) ? assay_polygraphy_write_results(path, r, notes)
                            : assay_polygraphy_write_results_folder(path, r, notes);
  static const assay_saved_t none = {0};
  const assay_saved_t* saved = r->n ? &r->runners[0].saved : &none;
  return has_ending(path) ? assay_polygraphy_write(path, saved, NULL, notes)
                          : assay_polygraphy_write_folder(path, saved, NULL, notes);
}
