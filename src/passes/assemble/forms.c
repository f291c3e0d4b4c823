// Passes that know an operator by the forms in which frameworks write it out.
#include "passes/assemble/forms.h"

#include "base/alloc.h"

typedef struct trial {
  const assay_edit_t* e;
  const assay_forms_t* forms;
  size_t form;
} trial_t;

static bool accept(const assay_match_t* m, void* user) {
  const trial_t* t = user;
  return t->forms->accept(t->e, t->form, m, t->forms->site);
}

static assay_status_t visit(assay_edit_t* e, const assay_forms_t* forms,
                            assay_pattern_t* const* patterns, assay_node_t* n) {
  assay_match_t m;
  if (assay_edit_is_dead(e, n)) return NULL;
  for (size_t i = 0; i < forms->n; i++) {
    trial_t t = {e, forms, i};
    if (assay_pattern_match(patterns[i], &e->uses, n, accept, &t, &m))
      return forms->rewrite(e, i, &m, forms->site);
  }
  return NULL;
}

assay_status_t assay_forms_run(assay_pass_context_t* c, const assay_forms_t* forms) {
  assay_edit_t e = {0};
  assay_pattern_t** patterns = NULL;
  ASSAY_TRY(assay_new_array(forms->n, sizeof(assay_pattern_t*), &patterns));
  assay_status_t st = assay_edit_begin(c, &e);
  if (st) return assay_free(patterns), st;
  for (size_t i = 0; !st && i < forms->n; i++)
    st = assay_pattern_create(forms->pattern(i), &patterns[i]);
  for (size_t k = 0; !st && k < c->model->n_graphs; k++)
    for (size_t i = c->model->graphs[k]->n_nodes; !st && i-- > 0;)
      st = visit(&e, forms, patterns, c->model->graphs[k]->nodes[i]);
  for (size_t i = 0; i < forms->n; i++) assay_pattern_destroy(patterns[i]);
  assay_free(patterns);
  return assay_edit_end(&e, st);
}
