// Transposes and rolls of rows before pointwise nodes: these read each row where it lies.
#include <string.h>

#include "backends/layers/pointwise_internal.h"

static moved_source_t source_of(const assay_operand_t* o) {
  moved_source_t from = {.value = o->value, .rank = o->rank};
  memcpy(from.dims, o->dims, sizeof from.dims);
  return from;
}

// What is moved has the output's dimensions: other rows than its own would be read.
static int64_t moved_columns(const pointwise_compiler_t* c, const assay_operand_t* o,
                             const assay_value_t* v) {
  const assay_operand_t* y = &c->l->out[0];
  const moved_source_t from = source_of(o);
  int64_t dims[ASSAY_KERNEL_RANK];
  int rank;
  const int64_t columns = layer_moved_columns(c->l, &from, v, &rank, dims);
  bool same = columns && rank == y->rank;
  for (int d = 0; same && d < rank; d++) same = dims[d] == y->dims[d];
  return same ? columns : 0;
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

int pointwise_moved_stream(pointwise_compiler_t* c, const assay_value_t* v) {
  const int input = assay_sized_input_index(c->l, layer_moved_source(c->l, v));
  const size_t at = c->p->n_streams;
  int64_t step = 1;
  for (size_t s = 0; s < at; s++)
    if (c->moved[s] == v) return (int)s;
  // Rows lie in the order of the dimensions.
  if (input < 0 || at == POINTWISE_STREAMS || c->options->columns ||
      c->options->layout != ASSAY_LAYOUT_PLAIN)
    return -1;
  const assay_operand_t* o = &c->l->in[input];
  const int64_t columns = moved_columns(c, o, v);
  if (!columns || !assay_type_is_kernel_float(o->type)) return -1;
  c->moved_columns = common_divisor(columns, c->moved_columns);
  c->moved[at] = v;
  for (int d = c->rank - 1; d >= 0; step *= c->dims[d--])
    c->strides[at][d] = c->dims[d] == 1 ? 0 : step;
  return pointwise_new_stream(
      c, (pointwise_stream_t){
             .input = input, .type = o->type, .layout = ASSAY_LAYOUT_PLAIN, .cut = true});
}

int64_t pointwise_moved_row(const pointwise_compiler_t* c) {
  int64_t n = 1, most = 1;
  for (int d = c->rank - 1; d >= 0 && n < c->moved_columns; d--) {
    n *= c->dims[d];
    if (c->moved_columns % n == 0) most = n;
  }
  return most;
}

bool pointwise_moved_finish(pointwise_compiler_t* c) {
  pointwise_code_t* p = c->p;
  if (!c->moved_columns) return true;
  if (c->moved_columns % p->columns) return false;
  for (size_t s = 0; s < p->n_streams; s++) {
    if (!c->moved[s]) continue;
    const moved_source_t from = source_of(&c->l->in[p->streams[s].input]);
    p->walks[s].access = POINTWISE_MOVED;
    c->status = layer_moved_rows(c->l, &from, c->moved[s], p->columns, &p->streams[s].table);
    if (c->status || !p->streams[s].table.rows) return false;
  }
  return true;
}
