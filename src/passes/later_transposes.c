// Transposes behind what is done to elements, so that it is done where a product has just made
// them:
//
//   Transpose(x) s + Transpose(z)  =  Transpose(x s' + z)
//
// where both have one permutation, `+` is any operator of two tensors of one shape, and s a
// constant of one number, or of one for each place along one dimension. Networks that keep images
// channels first, and do their products over the last dimension, add residuals like that:
// ConvNeXt's blocks. One of the Transposes has to go, so that there are no more of them than
// before.
//
// A convolution's output beside a Transpose that puts channels first is taken for one: as the
// Transpose of its own Transpose, which layouts make a view of where the convolution makes channels
// last. That is one more, but the sums that follow are of two Transposes then.
#include <string.h>

#include "passes/edit.h"

enum { LEFT, RIGHT, SIDES, MAX_SCALES = 2 };

// A side: a Transpose, and what is done to it with constants, the first of them first.
typedef struct side {
  assay_node_t* transpose;  // NULL: x is a convolution's output as it is
  assay_value_t* x;
  assay_node_t* scales[MAX_SCALES];
  int64_t places[MAX_SCALES];  // the dimension of x along which a constant lies
  int constants[MAX_SCALES];   // which input it is
  int n;
} side_t;

typedef struct site {
  assay_node_t* node;
  side_t sides[SIDES];
  int rank;
  int64_t perm[ASSAY_MAX_RANK];
} site_t;

static bool is_pointwise(const assay_node_t* n) {
  static const char* const ops[] = {"Add", "Sub", "Mul", "Div"};
  bool is = false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) is |= assay_is(n, ops[i]);
  return is && n->n_inputs == 2 && n->inputs[LEFT] && n->inputs[RIGHT] && n->outputs[0];
}

// The same dimensions, known or not.
static bool same_shape(const assay_value_t* a, const assay_value_t* b) {
  const int rank = assay_rank_of(a);
  bool same = rank >= 0 && rank == assay_rank_of(b) && assay_elem_of(a) == assay_elem_of(b);
  for (int i = 0; same && i < rank; i++) same = assay_dim_same(a->type->dims[i], b->type->dims[i]);
  return same;
}

// Whether a constant has one number, or one for each place along one dimension of a tensor of that
// rank.
static bool lies_along(const assay_value_t* v, int rank, int* dimension) {
  const assay_tensor_t* t = assay_pass_constant(v);
  int n = 0;
  *dimension = rank - 1;
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->rank > rank || t->size < 1) return false;
  for (int i = 0; i < t->rank; i++)
    if (t->dims[i] != 1) n++, *dimension = rank - t->rank + i;
  return n <= 1;
}

// Whether a value is read by one node alone, so that it need not be made.
static bool is_alone(const assay_edit_t* e, const assay_value_t* v) {
  return !v->is_output && assay_uses_of(&e->uses, v) == 1;
}

static bool read_scale(const assay_edit_t* e, assay_node_t* n, side_t* s) {
  int along = 0;
  if (s->n == MAX_SCALES || !is_alone(e, n->outputs[0])) return false;
  for (int i = 0; i < SIDES; i++) {
    if (!lies_along(assay_edit_value(e, n->inputs[i]), assay_rank_of(n->outputs[0]), &along) ||
        !same_shape(n->outputs[0], assay_edit_value(e, n->inputs[1 - i])))
      continue;
    s->scales[s->n] = n;
    s->places[s->n] = along;
    s->constants[s->n++] = i;
    return true;
  }
  return false;
}

// From the operator's input up to a Transpose.
static bool read_side(const assay_edit_t* e, const site_t* site, int which, side_t* s) {
  assay_value_t* v = assay_edit_value(e, site->node->inputs[which]);
  *s = (side_t){0};
  if (!same_shape(v, site->node->outputs[0])) return false;
  while (v->producer && v->producer->graph == site->node->graph && is_pointwise(v->producer)) {
    assay_node_t* n = v->producer;
    if (!read_scale(e, n, s)) return false;
    v = assay_edit_value(e, n->inputs[1 - s->constants[s->n - 1]]);
  }
  assay_node_t* n = v->producer;
  s->x = v;
  if (!n || n->graph != site->node->graph) return false;
  if (assay_is(n, "Conv")) return s->n == 0;
  if (!assay_is(n, "Transpose") || !n->inputs[0]) return false;
  s->transpose = n;
  s->x = assay_edit_value(e, n->inputs[0]);
  return true;
}

// From channels last to channels first.
static bool puts_channels_first(const site_t* s) {
  bool yes = s->rank > 2 && s->perm[0] == 0 && s->perm[1] == s->rank - 1;
  for (int i = 2; i < s->rank; i++) yes &= s->perm[i] == i - 1;
  return yes;
}

// Whether there is a Transpose, all are of one permutation, and one of them goes.
static bool read_perms(const assay_edit_t* e, site_t* s) {
  int n = 0;
  bool goes = false, same = true;
  for (int i = 0; i < SIDES; i++) {
    const assay_node_t* t = s->sides[i].transpose;
    int64_t perm[ASSAY_MAX_RANK];
    if (!t) continue;
    if (!assay_transpose_perm(t, perm, &s->rank) || s->rank < 2) return false;
    for (int k = 0; n && k < s->rank; k++) same &= perm[k] == s->perm[k];
    memcpy(s->perm, perm, (size_t)s->rank * sizeof *perm);
    goes |= is_alone(e, t->outputs[0]);
    n++;
  }
  return n && same && goes && (n == SIDES || puts_channels_first(s));
}

static bool read_site(const assay_edit_t* e, assay_node_t* n, site_t* s) {
  *s = (site_t){.node = n};
  return is_pointwise(n) && read_side(e, s, LEFT, &s->sides[LEFT]) &&
         read_side(e, s, RIGHT, &s->sides[RIGHT]) && read_perms(e, s);
}

// ---- rewriting ----------------------------------------------------------------------------------

// The constant of a node, along the dimension that its places have before the Transpose.
static assay_status_t move_constant(assay_edit_t* e, const site_t* s, const assay_value_t* v,
                                    int64_t along, assay_value_t** out) {
  assay_tensor_t *t = assay_pass_constant(v), *view = NULL;
  const int64_t to = t->size == 1 ? s->rank - 1 : s->perm[along];
  int64_t dims[ASSAY_MAX_RANK];
  const int rank = s->rank - (int)to;  // dimensions of one element before it are left out
  for (int i = 0; i < rank; i++) dims[i] = 1;
  dims[0] = t->size;
  ASSAY_TRY(assay_tensor_view(t, rank, dims, &view));
  return assay_edit_constant(e, s->node->graph, v->name, view, out);
}

// What a convolution makes, transposed the other way; type: of what that becomes.
static assay_status_t turn_back(assay_edit_t* e, const site_t* s, assay_value_t* x,
                                const assay_valtype_t* type, assay_value_t** out) {
  int64_t back[ASSAY_MAX_RANK];
  assay_node_t* made = NULL;
  for (int i = 0; i < s->rank; i++) back[s->perm[i]] = i;
  ASSAY_TRY(assay_edit_insert(e, s->node, "Transpose", 1, &x, x->name, type, &made));
  *out = made->outputs[0];
  return assay_edit_attr_ints(e, made, "perm", (size_t)s->rank, back);
}

// What a side is before its Transpose.
static assay_status_t make_side(assay_edit_t* e, const site_t* s, const side_t* side,
                                assay_value_t** out) {
  const side_t* other = &s->sides[side == &s->sides[LEFT]];
  if (!side->transpose) return turn_back(e, s, side->x, other->x->type, out);
  *out = side->x;
  for (int i = side->n - 1; i >= 0; i--) {
    const assay_node_t* n = side->scales[i];
    assay_value_t* inputs[SIDES];
    assay_node_t* made = NULL;
    inputs[1 - side->constants[i]] = *out;
    ASSAY_TRY(move_constant(e, s, assay_edit_value(e, n->inputs[side->constants[i]]),
                            side->places[i], &inputs[side->constants[i]]));
    ASSAY_TRY(assay_edit_insert(e, s->node, n->op_type, SIDES, inputs, n->outputs[0]->name,
                                (*out)->type, &made));
    *out = made->outputs[0];
  }
  return NULL;
}

// The nodes of a side that nobody else reads go.
static assay_status_t leave(assay_edit_t* e, const site_t* s, const side_t* side) {
  const bool alone = side->transpose && is_alone(e, side->transpose->outputs[0]);
  for (int i = 0; i < side->n; i++) {
    ASSAY_TRY(assay_pass_absorb(e->c, side->scales[i], s->node));
    assay_edit_kill(e, side->scales[i]);
  }
  if (!alone || assay_edit_is_dead(e, side->transpose)) return NULL;
  ASSAY_TRY(assay_pass_absorb(e->c, side->transpose, s->node));
  assay_edit_kill(e, side->transpose);
  return NULL;
}

static assay_status_t rewrite(assay_edit_t* e, const site_t* s) {
  assay_node_t* n = s->node;
  const assay_node_t* nodes[1 + SIDES] = {n};
  assay_value_t* inputs[SIDES];
  assay_node_t* made = NULL;
  size_t n_nodes = 1;
  for (int i = 0; i < SIDES; i++)
    if (s->sides[i].transpose && nodes[n_nodes - 1] != s->sides[i].transpose)
      nodes[n_nodes++] = s->sides[i].transpose;
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, nodes, n_nodes,
                              "what it does to both is transposed behind it"));
  for (int i = 0; i < SIDES; i++) ASSAY_TRY(make_side(e, s, &s->sides[i], &inputs[i]));
  ASSAY_TRY(assay_edit_insert(e, n, n->op_type, SIDES, inputs, n->outputs[0]->name,
                              inputs[LEFT]->type, &made));
  for (int i = 0; i < SIDES; i++) ASSAY_TRY(leave(e, s, &s->sides[i]));
  ASSAY_TRY(assay_edit_become(e, n, "Transpose", 1, &made->outputs[0]));
  return assay_edit_attr_ints(e, n, "perm", (size_t)s->rank, s->perm);
}

static assay_status_t visit(assay_edit_t* e, assay_node_t* n) {
  site_t s;
  return read_site(e, n, &s) ? rewrite(e, &s) : NULL;
}

static assay_status_t run(assay_pass_context_t* c) {
  // Operators of two tensors broadcast by themselves since version 7.
  return assay_model_opset(c->model, "") < 7 ? NULL : assay_edit_each(c, visit);
}

const assay_pass_t assay_pass_later_transposes = {
    .name = "later_transposes",
    .summary = "Transposes move behind sums of what they transpose",
    .until_fixpoint = true,
    .run = run,
};
