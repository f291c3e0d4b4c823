// Which consecutive layers form row pipelines.
#include "base/alloc.h"
#include "exec/segment/segment_internal.h"

static assay_kernel_t* kernel_of(const builder_t* b, int i) {
  const surveyed_t* x = &b->layers[i - b->s->first];
  return x->n ? x->options[x->chosen].kernel : NULL;
}

static bool works_by_rows(const builder_t* b, int i) {
  const assay_kernel_t* k = kernel_of(b, i);
  return k && k->by_rows.run;
}

static bool is_same(assay_storage_t a, assay_storage_t b) {
  return a.type == b.type && a.layout == b.layout;
}

// Whether layer i + 1 reads by rows what layer i makes, and nothing else reads it.
static assay_status_t hands_on(builder_t* b, int i, bool* out) {
  *out = false;
  if (i + 1 >= b->s->end || !works_by_rows(b, i + 1)) return NULL;
  const assay_kernel_t *from = kernel_of(b, i), *to = kernel_of(b, i + 1);
  const assay_by_rows_t *made = &from->by_rows, *read = &to->by_rows;
  if (!read->in_rows || made->samples != read->samples || made->rows != read->in_rows ||
      made->row_bytes != read->in_bytes || !is_same(from->out[0], to->in[read->input]))
    return NULL;
  assay_sized_layer_t d;
  bool described;
  ASSAY_TRY(segment_describe(b, i, &d, &described));
  const assay_value_t* v = described && d.n_out == 1 ? d.out[0].value : NULL;
  if (!v || v->is_output || b->in->lifetimes->last[v->id] != i + 1) return NULL;
  ASSAY_TRY(segment_describe(b, i + 1, &d, &described));
  *out = described && (size_t)read->input < d.n_in && d.in[read->input].value == v;
  return NULL;
}

// The longest row pipeline that begins with layer i and pays.
static assay_status_t add_pipeline(builder_t* b, int i, int* out_n) {
  assay_segment_t* s = b->s;
  assay_kernel_t* kernels[ASSAY_PIPELINE_KERNELS];
  int n = 1;
  kernels[0] = kernel_of(b, i);
  for (bool more = true; more && n < ASSAY_PIPELINE_KERNELS;) {
    ASSAY_TRY(hands_on(b, i + n - 1, &more));
    if (more) kernels[n] = kernel_of(b, i + n), n++;
  }
  assay_pipeline_t pipeline;
  for (; n > 1; n--) {
    pipeline = (assay_pipeline_t){.first = i, .n = n};
    if (b->in->target->couple(b->in->user, kernels, &pipeline)) break;
  }
  *out_n = n;
  if (n == 1) return NULL;
  ASSAY_TRY(assay_grow(&s->pipelines, &s->cap_pipelines, s->n_pipelines + 1, sizeof *s->pipelines));
  s->pipelines[s->n_pipelines++] = pipeline;
  for (int k = 0; k < n; k++) s->steps[i + k - s->first].pipeline = (int)s->n_pipelines;
  return NULL;
}

assay_status_t segment_find_pipelines(builder_t* b) {
  if (b->in->apart || !b->in->target->couple) return NULL;
  for (int i = b->s->first, n; i < b->s->end; i += n) {
    n = 1;
    if (works_by_rows(b, i)) ASSAY_TRY(add_pipeline(b, i, &n));
  }
  return NULL;
}
