// Passes that know an operator by the forms in which frameworks write it out.
#ifndef ASSAY_PASSES_ASSEMBLE_FORMS_H_
#define ASSAY_PASSES_ASSEMBLE_FORMS_H_

#include "passes/edit.h"

typedef struct assay_forms {
  size_t n;
  const char* (*pattern)(size_t form);
  // Whether a match is one; what is found out may be kept in `site` for `rewrite`.
  bool (*accept)(const assay_edit_t* e, size_t form, const assay_match_t* m, void* site);
  assay_status_t (*rewrite)(assay_edit_t* e, size_t form, const assay_match_t* m, void* site);
  void* site;
} assay_forms_t;

// Rewrites what has one of the forms; of those that fit a node the first one. The last nodes come
// first, so that a form is found whole before a part of it; nodes that are put in before one that
// is visited are not visited.
assay_status_t assay_forms_run(assay_pass_context_t* c, const assay_forms_t* forms) ASSAY_MUST_USE;

#endif  // ASSAY_PASSES_ASSEMBLE_FORMS_H_
