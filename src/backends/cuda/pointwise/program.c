// Programs of pointwise nodes for kernels.
#include "backends/cuda/pointwise/program.h"

#include <string.h>

#include "backends/cuda/bytes.h"
#include "base/alloc.h"

struct cuda_program {
  pointwise_code_t code;
  int vector;
  assay_type_t out;
  bool short_index;
  assay_str_t text;
  program_args_t args;  // with the addresses of constants
};

static size_t bytes_of(assay_type_t t) { return (size_t)assay_type_bits(t) / 8; }

static bool is_read(const pointwise_stream_t* s) {
  return s->input != POINTWISE_RESULT && s->input != CUDA_PROGRAM_SECOND &&
         !(s->constant && s->n_constant == 1);
}

// Elements at once: 16 bytes of what is narrowest, where all that runs along rows is aligned so.
static int choose_vector(const pointwise_code_t* c, assay_type_t out) {
  size_t narrowest = bytes_of(out);
  for (size_t s = 0; s < c->n_streams; s++)
    if (is_read(&c->streams[s]) && bytes_of(c->streams[s].type) < narrowest)
      narrowest = bytes_of(c->streams[s].type);
  const int vector = narrowest < 4 ? 8 : 4;
  if (c->rank == 1) return vector;
  if (c->columns % vector) return 1;
  for (size_t s = 0; s < c->n_streams; s++) {
    const pointwise_walk_t* w = &c->walks[s];
    const bool blocks = w->block && w->blocked == c->rank - 1;
    if (!is_read(&c->streams[s]) || c->streams[s].cut || blocks || w->strides[c->rank - 1] != 1)
      continue;
    for (int d = 0; d < c->rank - 1; d++)
      if (w->strides[d] % vector) return 1;
  }
  return vector;
}

// Whether 31 bits hold every place of an element, and what counts them in steps of a grid.
static bool is_short(const pointwise_code_t* c) {
  const int64_t most = INT32_MAX;
  if (c->rows && c->columns > most / c->rows) return false;
  for (size_t s = 0; s < c->n_streams; s++) {
    int64_t at = c->streams[s].offset;
    for (int d = 0; d < c->rank; d++) {
      const int64_t stride = c->walks[s].strides[d];
      if (stride && c->dims[d] > most / stride) return false;
      at += stride * c->dims[d];
    }
    if (at > most) return false;
  }
  return true;
}

// ---- what lies on the device
// ----------------------------------------------------------------------

static assay_status_t fill_args(const assay_sized_layer_t* l, cuda_program_t* p) {
  const pointwise_code_t* c = &p->code;
  p->args.columns = c->columns;
  memcpy(p->args.dims, c->dims, sizeof p->args.dims);
  for (size_t s = 0; s < c->n_streams; s++) {
    const pointwise_stream_t* stream = &c->streams[s];
    memcpy(p->args.strides[s], c->walks[s].strides, sizeof p->args.strides[s]);
    if (stream->table.rows) {
      const size_t bytes = (size_t)stream->table.period * sizeof *stream->table.rows;
      ASSAY_TRY(cuda_bytes_share(l, "rows", stream->table.rows, bytes, &p->args.rows[s]));
      p->args.periods[s] = (int32_t)stream->table.period;
    }
    if (!stream->constant) continue;
    if (stream->n_constant == 1) p->args.scalars[s] = stream->constant[0];
    if (stream->n_constant < 2) continue;
    const size_t bytes = (size_t)stream->n_constant * sizeof *stream->constant;
    ASSAY_TRY(cuda_bytes_share(l, "floats", stream->constant, bytes, &p->args.streams[s]));
    p->args.streams[s] += (address_t)stream->offset * sizeof(float);
  }
  return NULL;
}

// ---- halves -------------------------------------------------------------------------------------

// Whether a stream has the elements of rows of 2 * columns from one on that is `offset` further.
static bool is_half(const pointwise_code_t* c, size_t s, int64_t offset) {
  const pointwise_walk_t* w = &c->walks[s];
  int64_t step = 2 * c->columns;
  bool half = c->streams[s].cut && c->streams[s].offset == offset && !w->block &&
              w->access != POINTWISE_MOVED && w->strides[c->rank - 1] == 1;
  for (int d = c->rank - 2; d >= 0; d--) {
    half &= w->strides[d] == step;
    step *= c->dims[d];
  }
  return half;
}

// What is read of an input becomes halves of the result; false: it is something else.
static bool take_halves(int input, pointwise_code_t* c) {
  bool any = false, all = true;
  for (size_t s = 0; s < c->n_streams; s++) {
    if (c->streams[s].input != input) continue;
    const bool first = is_half(c, s, 0);
    all &= first || is_half(c, s, c->columns);
    any |= !first;
    c->streams[s].input = first ? POINTWISE_RESULT : CUDA_PROGRAM_SECOND;
  }
  return any && all && !c->integers;
}

// ---- entry --------------------------------------------------------------------------------------

// input: of which halves are read; -1: none.
static assay_status_t make(const assay_sized_layer_t* l, const pointwise_options_t* options,
                           int input, cuda_program_t** out) {
  pointwise_options_t o = *options;
  cuda_program_t* p = NULL;
  bool ok = false;
  o.max_copied = 1;
  *out = NULL;
  ASSAY_TRY(ASSAY_NEW(&p));
  assay_status_t st = pointwise_compile(l, &o, &p->code, &ok);
  if (!st && ok && input >= 0)
    ok = p->code.columns == options->columns && take_halves(input, &p->code);
  if (st || !ok) return cuda_program_destroy(p), st;
  p->vector = choose_vector(&p->code, l->out[0].type);
  p->out = l->out[0].type;
  p->short_index = is_short(&p->code);
  const cuda_program_way_t way = {p->out, p->vector, p->short_index};
  cuda_program_print(&p->code, &way, &p->text);
  st = assay_str_status(&p->text);
  if (!st) st = fill_args(l, p);
  if (st) return cuda_program_destroy(p), st;
  *out = p;
  return NULL;
}

assay_status_t cuda_program_make(const assay_sized_layer_t* l, const pointwise_options_t* options,
                                 cuda_program_t** out) {
  return make(l, options, -1, out);
}

assay_status_t cuda_program_make_of_halves(const assay_sized_layer_t* l,
                                           const pointwise_options_t* options, int input,
                                           cuda_program_t** out) {
  return make(l, options, input, out);
}

void cuda_program_destroy(cuda_program_t* p) {
  if (!p) return;
  pointwise_deinit(&p->code);
  assay_str_deinit(&p->text);
  assay_free(p);
}

const pointwise_code_t* cuda_program_code(const cuda_program_t* p) { return &p->code; }
const char* cuda_program_text(const cuda_program_t* p) { return assay_str_get(&p->text); }
int cuda_program_vector(const cuda_program_t* p) { return p->vector; }

bool cuda_program_text_with(const cuda_program_t* p, const cuda_program_t* before,
                            assay_str_t* out) {
  if (p->code.integers || before->code.integers || p->out != before->out ||
      p->short_index != before->short_index)
    return false;
  assay_str_append(out, cuda_program_text(p));
  cuda_program_print_before(&before->code, before->out, out);
  return true;
}

bool cuda_program_forms(const cuda_program_t* p, assay_kernel_t* k) {
  for (size_t i = 0; i < p->code.n_streams; i++) {
    const pointwise_stream_t* s = &p->code.streams[i];
    if (s->constant || s->input < 0) continue;
    bool again = false;  // parts of an input are read in one form
    for (size_t j = 0; j < i; j++) again |= p->code.streams[j].input == s->input;
    if (!again && k->in[s->input].type) return false;
    k->in[s->input] = (assay_storage_t){s->type, s->layout};
  }
  return true;
}

void cuda_program_fill(const cuda_program_t* p, const assay_device_ptr_t* in, program_args_t* out) {
  *out = p->args;
  for (size_t i = 0; i < p->code.n_streams; i++) {
    const pointwise_stream_t* s = &p->code.streams[i];
    if (s->constant || s->input < 0) continue;
    out->streams[i] = in[s->input] + (address_t)s->offset * bytes_of(s->type);
  }
}
