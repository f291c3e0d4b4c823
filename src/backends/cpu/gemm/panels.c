// Weights in panels of CPU_PANEL columns, as cpu_gemm_block() takes them.
#include "backends/cpu/gemm/panels.h"

#include <string.h>

#include "base/alloc.h"
#include "exec/weights.h"

typedef struct packing {
  const cpu_panels_t* p;
  const assay_operand_t* weights;
} packing_t;

int64_t cpu_panels_rows(const cpu_panels_t* p) {
  return p->places * (p->pairs ? (p->k + 1) / 2 : p->k);
}

static size_t bytes_of(const cpu_panels_t* p) {
  return (size_t)(cpu_panel_padded(p->n) * cpu_panels_rows(p)) * sizeof(uint32_t);
}

// Panel by panel: what is written and the columns that are read stay near.
static void pack_panel(const cpu_panels_t* p, const float* from, int64_t columns, uint32_t* to) {
  const int64_t units = cpu_panels_rows(p) / p->places;
  for (int64_t i = 0; i < p->k; i++)
    for (int64_t q = 0; q < p->places; q++) {
      const float* x = from + i * p->k_step + q * p->place_step;
      uint32_t* first = to + q * units * CPU_PANEL;
      for (int64_t j = 0; j < columns; j++) cpu_panel_put(first + j, i, x[j * p->n_step], p->pairs);
    }
}

static assay_status_t pack(void* user, void* to) {
  const packing_t* packing = user;
  const cpu_panels_t* p = packing->p;
  float* from = NULL;
  ASSAY_TRY(assay_operand_floats(packing->weights, &from));
  memset(to, 0, bytes_of(p));
  for (int64_t j = 0; j < p->n; j += CPU_PANEL)
    pack_panel(p, from + j * p->n_step, p->n - j < CPU_PANEL ? p->n - j : CPU_PANEL,
               (uint32_t*)to + j * cpu_panels_rows(p));
  assay_free(from);
  return NULL;
}

assay_status_t cpu_panels_get(const cpu_panels_t* p, const assay_operand_t* weights,
                              assay_str_t* take_key, const uint32_t** out) {
  const packing_t packing = {p, weights};
  const void* packed = NULL;
  assay_status_t st =
      assay_weights_get_by(weights->store, take_key, bytes_of(p), pack, &packing, &packed);
  *out = packed;
  return st;
}
