// Source: Polygraphy 0.53, polygraphy/json/serde.py and polygraphy/comparator/struct.py.
#include <dirent.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/shown.h"
#include "io/base64.h"
#include "io/npy.h"
#include "io/numpy_text.h"
#include "io/polygraphy.h"

// A file that is being written: text that goes out from time to time.
typedef struct out {
  assay_writer_t* writer;
  assay_str_t text;
  assay_str_t* notes;
} out_t;

// A new line of an object or a list, `depth` levels deep.
static void new_line(out_t* o, int depth) { assay_str_printf(&o->text, "\n%*s", 4 * depth, ""); }

static assay_status_t flush(out_t* o) {
  ASSAY_TRY(assay_str_status(&o->text));
  assay_status_t st = assay_writer_write(o->writer, assay_str_get(&o->text), o->text.len);
  o->text.len = 0;
  return st;
}

static void close_class(out_t* o, int depth, const char* name) {
  assay_str_append(&o->text, ",");
  new_line(o, depth + 1);
  assay_str_printf(&o->text, "\"polygraphy_class\": \"%s\"", name);
  new_line(o, depth);
  assay_str_append(&o->text, "}");
}

// The bytes of an npy file in base64: head and body are one text, so groups of three go across.
static assay_status_t put_base64(out_t* o, const assay_npy_image_t* image) {
  enum { CHUNK = 3 << 14 };
  const uint8_t* body = image->body;
  size_t left = image->body_len;
  // The head has a multiple of 64 bytes: what is left of it after groups of three begins the
  // body's.
  uint8_t seam[3];
  const size_t rest = image->head.len % 3, head = image->head.len - rest;
  assay_base64_encode(image->head.text, head, &o->text);
  if (rest) {
    const size_t more = left < 3 - rest ? left : 3 - rest;
    memcpy(seam, image->head.text + head, rest);
    if (more) memcpy(seam + rest, body, more);
    assay_base64_encode(seam, rest + more, &o->text);
    body += more;
    left -= more;
  }
  while (left) {
    const size_t n = left < CHUNK ? left : CHUNK;
    assay_base64_encode(body, n, &o->text);
    body += n;
    left -= n;
    ASSAY_TRY(flush(o));
  }
  return NULL;
}

static assay_status_t put_array(out_t* o, int depth, assay_tensor_t* t) {
  assay_npy_image_t image;
  ASSAY_TRY(assay_npy_image_make(t, &image));
  assay_str_append(&o->text, "{");
  new_line(o, depth + 1);
  assay_str_append(&o->text, "\"array\": \"");
  assay_status_t st = put_base64(o, &image);
  assay_npy_image_deinit(&image);
  assay_str_append(&o->text, "\"");
  close_class(o, depth, "ndarray");
  return st;
}

// Types that are not there in the file are named once for each array.
static void note_type(const out_t* o, const char* name, const assay_tensor_t* t, bool first) {
  const bool kept = assay_type_store(t->type) != ASSAY_STORE_F64 || t->type == ASSAY_TYPE_FLOAT ||
                    t->type == ASSAY_TYPE_DOUBLE || t->type == ASSAY_TYPE_FLOAT16;
  if (o->notes && first && !kept)
    assay_str_printf(o->notes, "note: array '%s' holds %s and is written as float32\n", name,
                     assay_type_name(t->type));
}

// Arrays by name; those of results are wrapped.
static assay_status_t put_set(out_t* o, int depth, const assay_set_t* set, bool wrap, bool first) {
  assay_str_append(&o->text, "{");
  for (size_t i = 0; i < set->n; i++) {
    if (i) assay_str_append(&o->text, ",");
    new_line(o, depth + 1);
    assay_json_quote(set->names[i], &o->text);
    assay_str_append(&o->text, ": ");
    if (wrap) {
      assay_str_append(&o->text, "{");
      new_line(o, depth + 2);
      assay_str_append(&o->text, "\"values\": ");
    }
    note_type(o, set->names[i], set->tensors[i], first);
    ASSAY_TRY(assay_status_note(put_array(o, depth + 1 + wrap, set->tensors[i]), "array '%s'",
                                set->names[i]));
    if (wrap) close_class(o, depth + 1, "LazyArray");
    ASSAY_TRY(flush(o));
  }
  if (set->n) new_line(o, depth);
  assay_str_append(&o->text, "}");
  return NULL;
}

static assay_status_t put_iteration(out_t* o, const assay_set_t* set, double seconds,
                                    const char* runner, bool first) {
  enum { DEPTH = 4 };
  assay_str_append(&o->text, "{");
  new_line(o, DEPTH + 1);
  assay_str_append(&o->text, "\"outputs\": ");
  ASSAY_TRY(put_set(o, DEPTH + 1, set, true, first));
  assay_str_append(&o->text, ",");
  new_line(o, DEPTH + 1);
  assay_str_append(&o->text, "\"runtime\": ");
  if (isfinite(seconds))
    assay_numpy_print_float(ASSAY_TYPE_DOUBLE, seconds, &o->text);
  else
    assay_str_append(&o->text, "null");
  assay_str_append(&o->text, ",");
  new_line(o, DEPTH + 1);
  assay_str_append(&o->text, "\"runner_name\": ");
  assay_json_quote(runner, &o->text);
  close_class(o, DEPTH, "IterationResult");
  return NULL;
}

// Iterations of one runner. seconds NULL: not known.
typedef struct part {
  const char* runner;
  const assay_set_t* runs;
  const double* seconds;
  size_t n;
} part_t;

static assay_status_t put_part(out_t* o, const part_t* p, bool first) {
  assay_str_append(&o->text, "[");
  new_line(o, 3);
  assay_json_quote(p->runner, &o->text);
  assay_str_append(&o->text, ",");
  new_line(o, 3);
  assay_str_append(&o->text, "[");
  for (size_t i = 0; i < p->n; i++) {
    if (i) assay_str_append(&o->text, ",");
    new_line(o, 4);
    ASSAY_TRY(put_iteration(o, &p->runs[i], p->seconds ? p->seconds[i] : (double)NAN, p->runner,
                            first && !i));
  }
  if (p->n) new_line(o, 3);
  assay_str_append(&o->text, "]");
  new_line(o, 2);
  assay_str_append(&o->text, "]");
  return NULL;
}

static void open_results(out_t* o) {
  assay_str_append(&o->text, "{");
  new_line(o, 1);
  assay_str_append(&o->text, "\"lst\": [");
}

static void close_results(out_t* o, bool any) {
  if (any) new_line(o, 1);
  assay_str_append(&o->text, "]");
  close_class(o, 0, "RunResults");
}

static assay_status_t put_results(out_t* o, const assay_set_t* runs, size_t n, const char* runner,
                                  bool first) {
  const part_t part = {.runner = runner, .runs = runs, .n = n};
  open_results(o);
  new_line(o, 2);
  ASSAY_TRY(put_part(o, &part, first));
  close_results(o, true);
  return NULL;
}

// The results of all runners; of iteration `at` alone where it is not ALL.
enum { ALL = -1 };
static assay_status_t put_all(out_t* o, const assay_run_results_t* r, int64_t at) {
  bool any = false;
  open_results(o);
  for (size_t i = 0; i < r->n; i++) {
    const assay_runner_results_t* runner = &r->runners[i];
    const size_t from = at == ALL ? 0 : (size_t)at, n = at == ALL ? runner->saved.n : 1;
    if (from + n > runner->saved.n) continue;
    const part_t part = {.runner = runner->name,
                         .runs = runner->saved.runs + from,
                         .seconds = runner->seconds + from,
                         .n = n};
    if (any) assay_str_append(&o->text, ",");
    new_line(o, 2);
    ASSAY_TRY(put_part(o, &part, at <= 0));
    any = true;
  }
  close_results(o, any);
  return NULL;
}

static assay_status_t put_inputs(out_t* o, const assay_set_t* runs, size_t n) {
  assay_str_append(&o->text, "[");
  for (size_t i = 0; i < n; i++) {
    if (i) assay_str_append(&o->text, ",");
    new_line(o, 1);
    ASSAY_TRY(put_set(o, 1, &runs[i], false, !i));
  }
  if (n) new_line(o, 0);
  assay_str_append(&o->text, "]");
  return NULL;
}

// alone: of inputs one object in place of a list, as in the files of a folder.
static assay_status_t write_runs(const char* path, const assay_set_t* runs, size_t n,
                                 const char* runner, bool alone, bool first, assay_str_t* notes) {
  out_t o = {.notes = notes};
  ASSAY_TRY(assay_writer_open(path, &o.writer));
  assay_status_t st = runner  ? put_results(&o, runs, n, runner, first)
                      : alone ? put_set(&o, 0, runs, false, first)
                              : put_inputs(&o, runs, n);
  if (!st) st = flush(&o);
  if (!st && notes) st = assay_str_status(notes);
  assay_str_deinit(&o.text);
  if (st) return assay_writer_abandon(o.writer), st;
  return assay_writer_commit(o.writer);
}

assay_status_t assay_polygraphy_write(const char* path, const assay_saved_t* s, const char* runner,
                                      assay_str_t* notes) {
  return write_runs(path, s->runs, s->n, runner, false, true, notes);
}

static assay_status_t write_all(const char* path, const assay_run_results_t* r, int64_t at,
                                assay_str_t* notes) {
  out_t o = {.notes = notes};
  ASSAY_TRY(assay_writer_open(path, &o.writer));
  assay_status_t st = put_all(&o, r, at);
  if (!st) st = flush(&o);
  if (!st && notes) st = assay_str_status(notes);
  assay_str_deinit(&o.text);
  if (st) return assay_writer_abandon(o.writer), st;
  return assay_writer_commit(o.writer);
}

assay_status_t assay_polygraphy_write_results(const char* path, const assay_run_results_t* r,
                                              assay_str_t* notes) {
  return write_all(path, r, ALL, notes);
}

static bool is_empty(const char* path) {
  size_t n = 0;
  DIR* folder = opendir(path);
  while (folder && readdir(folder)) n++;
  if (folder) closedir(folder);
  return n <= 2;  // "." and ".."
}

static assay_status_t make_empty(const char* path) {
  ASSAY_TRY(assay_folder_make(path));
  if (is_empty(path)) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "folder '%s' is not empty; name a new one, or a file that ends in .json",
                     path);
}

assay_status_t assay_polygraphy_write_folder(const char* path, const assay_saved_t* s,
                                             const char* runner, assay_str_t* notes) {
  assay_status_t st = make_empty(path);
  for (size_t i = 0; !st && i < s->n; i++) {
    assay_str_t file = {0};
    assay_str_printf_raw(&file, "%s/%010zu.json", path, i);
    st = assay_str_status(&file);
    if (!st) st = write_runs(assay_str_get(&file), &s->runs[i], 1, runner, true, !i, notes);
    assay_str_deinit(&file);
  }
  return st;
}

assay_status_t assay_polygraphy_write_results_folder(const char* path, const assay_run_results_t* r,
                                                     assay_str_t* notes) {
  size_t n = 0;
  assay_status_t st = make_empty(path);
  for (size_t i = 0; i < r->n; i++)
    if (r->runners[i].saved.n > n) n = r->runners[i].saved.n;
  for (size_t i = 0; !st && i < n; i++) {
    assay_str_t file = {0};
    assay_str_printf_raw(&file, "%s/%010zu.json", path, i);
    st = assay_str_status(&file);
    if (!st) st = write_all(assay_str_get(&file), r, (int64_t)i, notes);
    assay_str_deinit(&file);
  }
  return st;
}
