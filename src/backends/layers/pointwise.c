// The compiler of pointwise nodes: they become instructions, their operands streams.
#include "backends/layers/pointwise.h"

#include <string.h>

#include "backends/layers/pointwise_internal.h"
#include "base/alloc.h"

// ---- nodes --------------------------------------------------------------------------------------

// Versions that align dimensions by an attribute, or that have one shape and no broadcast.
static bool is_legacy(const assay_node_t* n) {
  static const char* const legacy[] = {"Add", "Sub", "Mul", "Div", "Pow", "PRelu"};
  if (!n->schema || n->schema->since >= 7) return false;
  if (assay_attr_i64(n, "broadcast", 0)) return true;
  return strcmp(n->op_type, legacy[5]) == 0;
}

static bool compile_node(pointwise_compiler_t* c, const assay_node_t* n) {
  if (!n->n_outputs || !n->n_inputs || is_legacy(n)) return false;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return false;
  const int at = c->options->integers ? pointwise_int_node(c, n) : pointwise_node(c, n);
  if (at < POINTWISE_STREAMS) return false;
  c->made[at - POINTWISE_STREAMS] = n->outputs[0];
  return true;
}

// Hidden values are float32, which is what instructions leave, bool, or what quantizers make.
static bool type_is_known(const pointwise_compiler_t* c, const assay_node_t* n, bool only) {
  const assay_valtype_t* t = n->outputs[0] ? n->outputs[0]->type : NULL;
  if (!t) return false;
  if (c->options->quantizers &&
      (pointwise_is_float8(t->elem) ||
       (pointwise_is_whole(t->elem) && strcmp(n->op_type, "QuantizeLinear") == 0)))
    return true;
  if (t->elem == ASSAY_TYPE_FLOAT || t->elem == ASSAY_TYPE_BOOL) return true;
  return only && (t->elem == ASSAY_TYPE_FLOAT16 || t->elem == ASSAY_TYPE_BFLOAT16);
}

static bool output_is_known(const assay_sized_layer_t* l, const pointwise_options_t* o) {
  if (l->n_out < 1 || !l->out[0].value) return false;
  for (size_t i = 1; i < l->n_out; i++)
    if (l->out[i].value) return false;
  const assay_type_t t = l->out[0].type;
  if (o->integers)
    return t == ASSAY_TYPE_BOOL || (assay_type_is_integer(t) && assay_type_bits(t) >= 8);
  return assay_type_is_kernel_float(t) || t == ASSAY_TYPE_BOOL ||
         (o->quantizers && (pointwise_is_float8(t) || pointwise_is_whole(t)));
}

// ---- dimensions ---------------------------------------------------------------------------------

static bool is_blocked(const pointwise_compiler_t* c, size_t s, int d) {
  return c->blocks[s] && c->blocked[s] == d;
}

// Dimensions over which every stream runs on, or stands still, become one; those of 1 go. What
// makes up a row of so many columns as are asked for, or as are moved, is joined to nothing before
// it.
static void merge_dims(pointwise_compiler_t* c) {
  pointwise_code_t* p = c->p;
  const int64_t columns = c->moved_columns ? pointwise_moved_row(c) : c->options->columns;
  for (int d = 0; d < c->rank; d++) {
    if (c->dims[d] == 1) continue;
    bool joins = p->rank && !(columns && assay_dims_product(c->dims, d, c->rank) == columns);
    for (size_t s = 0; joins && s < p->n_streams; s++)
      joins = p->walks[s].strides[p->rank - 1] == c->strides[s][d] * c->dims[d] &&
              !is_blocked(c, s, d) && !(p->walks[s].block && p->walks[s].blocked == p->rank - 1);
    if (!joins) p->rank++;
    p->dims[p->rank - 1] = joins ? p->dims[p->rank - 1] * c->dims[d] : c->dims[d];
    for (size_t s = 0; s < p->n_streams; s++) {
      pointwise_walk_t* w = &p->walks[s];
      w->strides[p->rank - 1] = c->strides[s][d];
      if (!is_blocked(c, s, d)) continue;
      w->block = c->blocks[s];
      w->blocked = p->rank - 1;
    }
  }
  // Strides of a dimension of 1 are 0.
  if (!p->rank || (columns == 1 && p->dims[p->rank - 1] != 1)) p->dims[p->rank++] = 1;
  p->columns = p->dims[p->rank - 1];
  p->rows = assay_dims_product(p->dims, 0, p->rank - 1);
}

static void find_access(pointwise_code_t* p, pointwise_walk_t* w) {
  int64_t step = 1;
  bool whole = !w->block, outer = false;
  for (int d = p->rank - 1; d >= 0; d--) {
    whole &= w->strides[d] == step || p->dims[d] == 1;
    outer |= d < p->rank - 1 && w->strides[d];
    step *= p->dims[d];
  }
  w->access = whole ? POINTWISE_WHOLE : outer ? POINTWISE_STRIDED : POINTWISE_PERIODIC;
}

static bool finish(pointwise_compiler_t* c) {
  pointwise_code_t* p = c->p;
  merge_dims(c);
  for (size_t s = 0; s < p->n_streams; s++) find_access(p, &p->walks[s]);
  if (!pointwise_moved_finish(c)) return false;
  return !c->options->columns || p->columns == c->options->columns;
}

// ---- layouts ------------------------------------------------------------------------------------

assay_layout_t pointwise_layout(const assay_sized_layer_t* l) {
  for (size_t i = 0; i < l->n_in; i++)
    if (assay_operand_is_channels_last(&l->in[i]) && l->in[i].rank == l->out[0].rank &&
        l->in[i].size >= l->out[0].size)
      return ASSAY_LAYOUT_CHANNELS_LAST;
  return ASSAY_LAYOUT_PLAIN;
}

// ---- entry --------------------------------------------------------------------------------------

static bool compile_nodes(pointwise_compiler_t* c) {
  const assay_layer_t* layer = c->l->layer;
  const size_t first = c->options->first, n = layer->n_nodes;
  size_t computing = 0;
  for (size_t i = 0; i < n; i++)
    computing += i < first ? c->options->result != NULL
                           : !(pointwise_is_cut(layer->nodes[i]) || layer_is_move(layer->nodes[i]));
  for (size_t i = first; i < n; i++) {
    const assay_node_t* node = layer->nodes[i];
    const bool only = computing == 1;
    if (layer_is_move(node)) continue;
    if (pointwise_is_cut(node)) {
      if (!pointwise_cut_node(c, node)) return false;
      continue;
    }
    if (!(c->options->integers ? only : type_is_known(c, node, only))) return false;
    if (!compile_node(c, node)) return false;
  }
  if (first < n) return true;
  const int result = pointwise_value(c, c->options->result, false);
  return pointwise_emit(c, POINTWISE_IDENTITY, 1, &result, NULL, 1) >= 0;
}

assay_status_t pointwise_compile(const assay_sized_layer_t* l, const pointwise_options_t* options,
                                 pointwise_code_t* out, bool* ok) {
  pointwise_compiler_t c = {.l = l, .options = options, .p = out};
  *out = (pointwise_code_t){.integers = options->integers};
  *ok = output_is_known(l, options);
  c.rank = *ok ? l->out[0].rank : 0;
  for (int i = 0; i < c.rank; i++) c.dims[i] = l->out[0].dims[pointwise_memory_order(&c, i)];
  *ok = *ok && compile_nodes(&c) && out->n_code && finish(&c) && !c.status;
  if (!*ok) pointwise_deinit(out);
  return c.status;
}

void pointwise_deinit(pointwise_code_t* c) {
  for (size_t i = 0; i < c->n_streams; i++) {
    assay_free(c->streams[i].constant);
    assay_free(c->streams[i].table.rows);
  }
  *c = (pointwise_code_t){0};
}

// Whether a stream is an input as a whole, of which no other one is a part.
static bool is_whole(const pointwise_code_t* c, size_t s) {
  const pointwise_stream_t* stream = &c->streams[s];
  if (stream->constant || stream->input < 0 || c->walks[s].access != POINTWISE_WHOLE) return false;
  for (size_t i = 0; i < c->n_streams; i++)
    if (c->streams[i].cut && c->streams[i].input == stream->input) return false;
  return true;
}

int pointwise_first_whole(const pointwise_code_t* c) {
  for (size_t i = 0; i < c->n_streams; i++)
    if (is_whole(c, i)) return c->streams[i].input;
  return -1;
}

int pointwise_in_place(const pointwise_code_t* c, assay_type_t type) {
  for (size_t s = 0; s < c->n_streams; s++)
    if (is_whole(c, s) && c->streams[s].type == type) return c->streams[s].input;
  return -1;
}
