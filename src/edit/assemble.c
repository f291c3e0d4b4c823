// Operators that a framework wrote out in simpler ones put together again, as far as the model's
// operator set has them: activations and normalizations by the passes of those names, and here
// those over the pixels of an image.
#include <string.h>

#include "base/alloc.h"
#include "edit/editor.h"
#include "passes/assemble/forms.h"

// ---- InstanceNormalization, GroupNormalization --------------------------------------------------

#define MEAN "m=ReduceMean(u, ...)"
#define NORMALIZED "OverRoot(d=Sub(u, " MEAN "), Add(v=ReduceMean(Square(d), ...), $epsilon))"
#define GROUPED \
  "OverRoot(d=Sub(u=Reshape(x, %rows), " MEAN "), Add(v=ReduceMean(Square(d), ...), $epsilon))"

static const struct {
  const char* pattern;
  const char* op;
} forms[] = {
    {"Add(Mul(Reshape(" GROUPED ", shape), %scale), %bias)", "GroupNormalization"},
    {"Add(Mul(" NORMALIZED ", %scale), %bias)", "InstanceNormalization"},
};

typedef struct site {
  assay_value_t* x;
  int64_t channels, groups;
  double epsilon;
} site_t;

// Whether a ReduceMean keeps its dimensions and takes the axes from `first` on.
static bool takes_axes(const assay_node_t* n, int rank, int first) {
  int64_t given[ASSAY_MAX_RANK];
  size_t count = 0;
  bool axes[ASSAY_MAX_RANK] = {false};
  const int64_t* a = assay_attr_ints(n, "axes", &count);
  if (!assay_attr_i64(n, "keepdims", 1)) return false;
  if (n->n_inputs > 1 && n->inputs[1]) {
    const int k = assay_ints_of(n->inputs[1], ASSAY_MAX_RANK, given);
    if (k < 0) return false;
    a = given;
    count = (size_t)k;
  }
  for (size_t i = 0; i < count; i++) {
    const int64_t at = a[i] < 0 ? a[i] + rank : a[i];
    if (at < first || at >= rank) return false;
    axes[at] = true;
  }
  for (int i = first; i < rank; i++)
    if (!axes[i]) return false;
  return count > 0;
}

// A constant with a number for each channel: [C, 1, 1], or with ones before.
static bool is_by_channel(const assay_value_t* v, int rank, int64_t channels, assay_type_t type) {
  const assay_tensor_t* t = v->constant;
  if (t->type != type || t->size != channels || t->rank > rank || t->rank < rank - 1) return false;
  return t->dims[t->rank - (rank - 1)] == channels;
}

static bool accept(const assay_edit_t* e, size_t form, const assay_match_t* m, void* user) {
  site_t* s = user;
  const bool grouped = form == 0;
  assay_value_t *u = assay_match_value(m, "u"), *y = m->nodes[0]->outputs[0];
  s->x = grouped ? assay_match_value(m, "x") : u;
  const int rank = assay_rank_of(s->x), inner = assay_rank_of(u);
  const assay_type_t type = assay_elem_of(s->x);
  s->channels = assay_dim_of(s->x, 1);
  if (rank < 3 || inner < 3 || s->channels < 1 || type != ASSAY_TYPE_FLOAT ||
      assay_pass_constant(s->x) || !assay_same_static_shape(s->x, y) ||
      !assay_edit_allows(e, forms[form].op, s->x))
    return false;
  s->groups = grouped ? assay_dim_of(u, 1) : 0;
  if (grouped && (inner != 3 || s->groups < 1 || s->channels % s->groups != 0 ||
                  !assay_dim_same(u->type->dims[0], s->x->type->dims[0])))
    return false;
  if (!takes_axes(assay_match_value(m, "m")->producer, inner, 2) ||
      !takes_axes(assay_match_value(m, "v")->producer, inner, 2))
    return false;
  if (!assay_match_number(m, "epsilon", &s->epsilon) || !(s->epsilon >= 0) ||
      (double)(float)s->epsilon != s->epsilon)
    return false;
  // GroupNormalization-18 has a scale for a group.
  if (grouped && assay_model_opset(e->c->model, "") < 21) return false;
  return is_by_channel(assay_match_value(m, "scale"), rank, s->channels, type) &&
         is_by_channel(assay_match_value(m, "bias"), rank, s->channels, type);
}

static assay_status_t parameter(assay_edit_t* e, const site_t* s, assay_value_t* v,
                                assay_graph_t* g, assay_value_t** out) {
  assay_tensor_t* view = NULL;
  ASSAY_TRY(assay_tensor_view(v->constant, 1, &s->channels, &view));
  return assay_edit_constant(e, g, v->name, view, out);
}

static assay_status_t rewrite(assay_edit_t* e, size_t form, const assay_match_t* m, void* user) {
  const site_t* s = user;
  assay_node_t* n = m->nodes[0];
  assay_value_t* in[3] = {s->x, assay_match_value(m, "scale"), assay_match_value(m, "bias")};
  ASSAY_TRY(assay_edit_join(e, m, "together they are %s", forms[form].op));
  for (int i = 1; i < 3; i++) ASSAY_TRY(parameter(e, s, in[i], n->graph, &in[i]));
  ASSAY_TRY(assay_edit_become(e, n, forms[form].op, 3, in));
  if (s->groups) ASSAY_TRY(assay_edit_attr_i(e, n, "num_groups", s->groups));
  return assay_edit_attr_f(e, n, "epsilon", s->epsilon);
}

static const char* pattern(size_t form) { return forms[form].pattern; }

static assay_status_t run_pass(assay_pass_context_t* c) {
  site_t site;
  return assay_forms_run(
      c, &(assay_forms_t){sizeof forms / sizeof *forms, pattern, accept, rewrite, &site});
}

static const assay_pass_t pass = {
    .name = "image_normalization_assembly", .until_fixpoint = true, .run = run_pass};

// ---- the edit -----------------------------------------------------------------------------------

static const char* const made[] = {"Gelu",
                                   "Swish",
                                   "Mish",
                                   "HardSwish",
                                   "Elu",
                                   "LayerNormalization",
                                   "RMSNormalization",
                                   "InstanceNormalization",
                                   "GroupNormalization"};
enum { N_MADE = sizeof made / sizeof *made };

static size_t count(const assay_model_t* m, const char* op) {
  size_t n = 0;
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++)
      n += !*m->graphs[k]->nodes[i]->domain && strcmp(m->graphs[k]->nodes[i]->op_type, op) == 0;
  return n;
}

static assay_status_t check_ops(const assay_words_t* ops) {
  for (size_t i = 0; i < ops->n; i++) {
    bool known = false;
    for (size_t k = 0; k < N_MADE; k++) known |= strcmp(made[k], ops->items[i]) == 0;
    if (!known)
      return ASSAY_ERROR(
          ASSAY_NOT_FOUND,
          "--op: '%s' cannot be put together; there are Gelu, Swish, Mish, HardSwish, Elu, "
          "LayerNormalization, RMSNormalization, InstanceNormalization and GroupNormalization",
          ops->items[i]);
  }
  return NULL;
}

static assay_status_t run(assay_editing_t* e) {
  static const char* const passes[] = {"normalization_assembly", "activation_assembly"};
  const assay_words_t* ops = &e->requests->ops;
  const int64_t opset = assay_model_opset(e->model, "");
  assay_pass_options_t options = {.made_ops = ops->items, .n_made_ops = ops->n};
  ASSAY_TRY(check_ops(ops));
  ASSAY_TRY(assay_editing_pass(e, &pass, &options));
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
    options.only = passes[i];
    ASSAY_TRY(assay_editing_pass(e, NULL, &options));
  }
  for (size_t i = 0; i < N_MADE; i++) {
    const size_t was = count(e->model, made[i]), is = count(e->out, made[i]);
    if (is > was) assay_editing_did(e, made[i], is - was);
    if (!assay_op_find("", made[i], opset))
      assay_str_printf(&e->notes, "the model's operator set %lld has no %s\n", (long long)opset,
                       made[i]);
  }
  return assay_str_status(&e->notes);
}

const assay_editor_t assay_editor_assemble = {
    .name = "assemble",
    .summary = "operators that were written out become one again, as the operator set has them",
    .promise = ASSAY_PROMISE_ROUNDS,
    .run = run,
};
