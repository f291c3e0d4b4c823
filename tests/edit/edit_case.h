// One edit of a small model, through a file and back.
#ifndef ASSAY_TESTS_EDIT_EDIT_CASE_H_
#define ASSAY_TESTS_EDIT_EDIT_CASE_H_

#include <unistd.h>

#include "edit/editor.h"
#include "passes/graph_case.h"

typedef struct edit_case {
  const char* edit;
  const char* requests[6];  // "op=Gelu", "from=x", "format=fp16", "numbers"
  const char* after;        // operators of the top graph of the written model, in order
  assay_edit_verdict_t verdict;
  graph_case_t graph;
} edit_case_t;

typedef struct edit_requests {
  assay_edit_requests_t w;
  const char* items[10][6];
} edit_requests_t;

// Texts of a case as the library takes them; out holds the lists.
static inline void edit_request(edit_requests_t* out, const char* const* texts) {
  static const struct {
    const char* name;
    size_t offset;
  } lists[] = {{"nodes", offsetof(assay_edit_requests_t, nodes)},
               {"not", offsetof(assay_edit_requests_t, not_nodes)},
               {"op", offsetof(assay_edit_requests_t, ops)},
               {"from", offsetof(assay_edit_requests_t, from)},
               {"to", offsetof(assay_edit_requests_t, to)},
               {"value", offsetof(assay_edit_requests_t, values)},
               {"node", offsetof(assay_edit_requests_t, renamed_nodes)},
               {"dim", offsetof(assay_edit_requests_t, dims)},
               {"attr", offsetof(assay_edit_requests_t, attrs)},
               {"shape", offsetof(assay_edit_requests_t, shapes)},
               {"type", offsetof(assay_edit_requests_t, types)}};
  *out = (edit_requests_t){0};
  for (size_t i = 0; i < 6 && texts[i]; i++) {
    const char* equals = strchr(texts[i], '=');
    const size_t n = equals ? (size_t)(equals - texts[i]) : strlen(texts[i]);
    bool known = false;
    for (size_t k = 0; equals && k < sizeof lists / sizeof *lists; k++) {
      if (strlen(lists[k].name) != n || strncmp(lists[k].name, texts[i], n) != 0) continue;
      assay_words_t* list = (assay_words_t*)(void*)((char*)&out->w + lists[k].offset);
      out->items[k % 10][list->n] = equals + 1;
      *list = (assay_words_t){out->items[k % 10], list->n + 1};
      known = true;
    }
    if (strncmp(texts[i], "format=", 7) == 0) out->w.format = equals + 1, known = true;
    if (strncmp(texts[i], "opset=", 6) == 0) out->w.opset = atoi(equals + 1), known = true;
    if (strncmp(texts[i], "calibrator=", 11) == 0) out->w.calibrator = equals + 1, known = true;
    if (strcmp(texts[i], "numbers") == 0) out->w.numbers = known = true;
    if (strcmp(texts[i], "per_tensor") == 0) out->w.per_tensor = known = true;
    if (strcmp(texts[i], "residuals") == 0) out->w.residuals = known = true;
    if (strcmp(texts[i], "store_codes") == 0) out->w.store_codes = known = true;
    if (strcmp(texts[i], "no_shapes") == 0) out->w.no_shapes = known = true;
    if (!known) fail_msg("unknown request '%s'", texts[i]);
  }
}

static inline void edit_path(char path[64], int k) {
  snprintf(path, 64, "/tmp/assay_edit_%d_%d.onnx", (int)getpid(), k);
}

static inline void edit_operators(const assay_model_t* m, char text[1024]) {
  text[0] = 0;
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    if (i) strcat(text, " ");
    assert_true(strlen(text) + strlen(m->graph->nodes[i]->op_type) < 1000);
    strcat(text, m->graph->nodes[i]->op_type);
  }
}

// Edits a model, and reads what was written; NULL if nothing was.
static inline assay_status_t edit_run(const char* edit, assay_model_t* m,
                                      const char* const* requests, assay_edit_result_t* r,
                                      assay_model_t** out) {
  char path[64];
  edit_requests_t w;
  edit_path(path, 0);
  edit_request(&w, requests);
  const assay_editor_options_t options = {.seed = 3};
  *out = NULL;
  assay_status_t st = assay_editor_run(assay_editor_find(edit), m, &w.w, &options, r);
  if (!st) st = assay_edit_result_write(r, path);
  if (!st && r->written) {
    st = assay_onnx_read(path, out);
    unlink(path);
  }
  return st;
}

#endif  // ASSAY_TESTS_EDIT_EDIT_CASE_H_
