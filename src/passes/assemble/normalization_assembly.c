// LayerNormalization and RMSNormalization that a framework wrote out in simpler nodes become ONNX's
// operators. Over axes that are not the last ones (channels of an image) with a Transpose before
// and one after.
//
// Sources: ONNX LayerNormalization 17, RMSNormalization 23.
#include <string.h>

#include "base/alloc.h"
#include "passes/assemble/forms.h"

#define MEAN "m=ReduceMean(x, ...)"
#define APART "d=Sub(x, " MEAN ")"
#define VARIANCE "Add(v=ReduceMean(Square(d), ...), $epsilon)"
#define SQUARES "Add(v=ReduceMean(Square(x), ...), $epsilon)"

// x: what is normalized; m, v: the ReduceMeans; $epsilon; %scale and %bias, or none.
static const struct {
  const char* pattern;
  bool centered;
} forms[] = {
    {"Add?(Mul?(OverRoot(" APART ", " VARIANCE "), %scale), %bias)", true},
    {"Add?(Mul(" APART ", Mul(InverseRoot(" VARIANCE "), %scale)), %bias)", true},
    {"Add?(OverRoot(Mul(" APART ", %scale), " VARIANCE "), %bias)", true},
    // As TensorFlow has it: x k + (bias - mean k)
    {"Add(Mul(x, k=Mul(InverseRoot(Add(v=ReduceMean(Square(d=Sub(x, m)), ...), $epsilon)), "
     "%scale)), Sub(%bias, Mul(" MEAN ", k)))",
     true},
    {"Mul?(OverRoot(x, " SQUARES "), %scale)", false},
    {"Mul(x, Mul(InverseRoot(" SQUARES "), %scale))", false},
    {"OverRoot(Mul(x, %scale), " SQUARES ")", false},
};
enum { MAX_ELEMS = 1 << 20 };

typedef struct site {
  bool centered;
  int rank, n_axes;  // of x; how many are normalized over
  bool axes[ASSAY_MAX_RANK];
  int64_t dims[ASSAY_MAX_RANK];  // of those, in order
  int64_t size;
  double epsilon;
} site_t;

// ---- what holds ---------------------------------------------------------------------------------

// The axes of a ReduceMean that keeps its dimensions.
static bool read_axes(const assay_node_t* n, int rank, bool* axes) {
  return assay_attr_i64(n, "keepdims", 1) && assay_reduced_axes(n, rank, axes);
}

static bool read_sizes(site_t* s, const assay_value_t* x) {
  s->n_axes = 0;
  s->size = 1;
  for (int i = 0; i < s->rank; i++) {
    if (!s->axes[i]) continue;
    const int64_t d = assay_dim_of(x, i);
    if (d < 1 || !assay_mul_i64(s->size, d, &s->size) || s->size > MAX_ELEMS) return false;
    s->dims[s->n_axes++] = d;
  }
  return s->n_axes > 0;
}

// A constant that is one number, or one for each place that is normalized.
static bool parameter_fits(const site_t* s, const assay_value_t* v, assay_type_t type) {
  if (!v) return true;
  const assay_tensor_t* t = v->constant;
  if (t->type != type || t->rank > s->rank || (t->size != 1 && t->size != s->size)) return false;
  for (int i = 0; i < t->rank; i++)
    if (t->dims[i] != 1 && !s->axes[s->rank - t->rank + i]) return false;
  return true;
}

static bool accept(const assay_edit_t* e, size_t form, const assay_match_t* m, void* user) {
  site_t* s = user;
  const assay_value_t *x = assay_match_value(m, "x"), *y = m->nodes[0]->outputs[0];
  const assay_value_t *mean = assay_match_value(m, "m"), *v = assay_match_value(m, "v");
  const assay_type_t type = assay_elem_of(x);
  bool other[ASSAY_MAX_RANK];
  s->centered = forms[form].centered;
  s->rank = assay_rank_of(x);
  if (s->rank < 1 || assay_pass_constant(x) || type != assay_elem_of(y) ||
      !assay_same_static_shape(x, y) || !read_axes(v->producer, s->rank, s->axes))
    return false;
  // The operators compute in float32: not for float64.
  if (type == ASSAY_TYPE_DOUBLE ||
      !assay_edit_allows(e, s->centered ? "LayerNormalization" : "RMSNormalization", x))
    return false;
  if (s->centered && (!read_axes(mean->producer, s->rank, other) ||
                      memcmp(other, s->axes, (size_t)s->rank * sizeof *other) != 0))
    return false;
  if (!assay_match_number(m, "epsilon", &s->epsilon) || !(s->epsilon >= 0) ||
      (double)(float)s->epsilon != s->epsilon)
    return false;
  return read_sizes(s, x) && parameter_fits(s, assay_match_value(m, "scale"), type) &&
         parameter_fits(s, assay_match_value(m, "bias"), type);
}

// ---- what is made -------------------------------------------------------------------------------

// A scale or bias of the normalized shape: the constant itself where it has it.
static assay_status_t parameter(assay_edit_t* e, const site_t* s, assay_value_t* v,
                                double otherwise, assay_type_t type, assay_graph_t* g,
                                assay_value_t** out) {
  assay_tensor_t *t = NULL, *wide = NULL;
  const bool whole = v && v->constant->size == s->size;
  if (whole && v->constant->rank == s->n_axes &&
      memcmp(v->constant->dims, s->dims, (size_t)s->n_axes * sizeof *s->dims) == 0) {
    *out = v;
    return NULL;
  }
  if (v) ASSAY_TRY(assay_tensor_widen(v->constant, &wide));
  assay_status_t st = assay_tensor_create(type, s->n_axes, s->dims, &t);
  for (int64_t i = 0; !st && i < s->size; i++)
    assay_f64(t)[i] = whole ? assay_f64(wide)[i] : wide ? assay_f64(wide)[0] : otherwise;
  assay_tensor_release(wide);
  return st ? st : assay_edit_constant(e, g, v ? v->name : "normalization_scale", t, out);
}

// The other axes in their order, then the normalized ones.
static void make_perms(const site_t* s, int64_t* there, int64_t* back) {
  int n = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < s->rank; i++)
      if (s->axes[i] == (pass == 1)) there[n++] = i;
  for (int i = 0; i < s->rank; i++) back[there[i]] = i;
}

static assay_status_t permuted(assay_edit_t* e, const assay_value_t* x, const int64_t* perm,
                               const assay_valtype_t** out) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  for (int i = 0; i < x->type->rank; i++) dims[i] = x->type->dims[perm[i]];
  return assay_valtype_tensor(e->c->model, x->type->elem, x->type->rank, dims, out);
}

static assay_status_t attributes(assay_edit_t* e, const site_t* s, assay_node_t* n) {
  ASSAY_TRY(assay_edit_attr_i(e, n, "axis", -s->n_axes));
  return assay_edit_attr_f(e, n, "epsilon", s->epsilon);
}

static assay_status_t rewrite(assay_edit_t* e, size_t form, const assay_match_t* m, void* user) {
  const site_t* s = user;
  const char* op = s->centered ? "LayerNormalization" : "RMSNormalization";
  assay_node_t *n = m->nodes[0], *inner = NULL, *before = NULL;
  assay_value_t* in[3] = {assay_match_value(m, "x")};
  assay_value_t* bias = assay_match_value(m, "bias");
  const assay_type_t type = in[0]->type->elem;
  const size_t n_in = bias ? 3 : 2;
  (void)form;
  bool at_end = true;
  for (int i = 0; i < s->rank; i++) at_end &= s->axes[i] == (i >= s->rank - s->n_axes);
  ASSAY_TRY(assay_edit_join(e, m, "together they are %s%s", op, at_end ? "" : " of other axes"));
  ASSAY_TRY(parameter(e, s, assay_match_value(m, "scale"), 1, type, n->graph, &in[1]));
  if (bias) ASSAY_TRY(parameter(e, s, bias, 0, type, n->graph, &in[2]));
  if (at_end) {
    ASSAY_TRY(assay_edit_become(e, n, op, n_in, in));
    return attributes(e, s, n);
  }
  int64_t there[ASSAY_MAX_RANK], back[ASSAY_MAX_RANK];
  const assay_valtype_t* moved = NULL;
  make_perms(s, there, back);
  ASSAY_TRY(permuted(e, in[0], there, &moved));
  ASSAY_TRY(assay_edit_insert(e, n, "Transpose", 1, in, in[0]->name, moved, &before));
  ASSAY_TRY(assay_edit_attr_ints(e, before, "perm", (size_t)s->rank, there));
  in[0] = before->outputs[0];
  ASSAY_TRY(assay_edit_insert(e, n, op, n_in, in, n->outputs[0]->name, moved, &inner));
  ASSAY_TRY(attributes(e, s, inner));
  ASSAY_TRY(assay_edit_become(e, n, "Transpose", 1, inner->outputs));
  return assay_edit_attr_ints(e, n, "perm", (size_t)s->rank, back);
}

static const char* pattern(size_t form) { return forms[form].pattern; }

static assay_status_t run(assay_pass_context_t* c) {
  site_t site;
  return assay_forms_run(
      c, &(assay_forms_t){sizeof forms / sizeof *forms, pattern, accept, rewrite, &site});
}

const assay_pass_t assay_pass_normalization_assembly = {
    .name = "normalization_assembly",
    .until_fixpoint = true,
    .summary = "LayerNormalization and RMSNormalization in several nodes become one",
    .run = run,
};
