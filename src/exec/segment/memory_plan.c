// Where blocks of memory, each needed for some steps only, lie in one arena.
#include "exec/segment/memory_plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

static int larger_first(const void* a, const void* b) {
  const assay_block_t *x = *(assay_block_t*const*)a, *y = *(assay_block_t*const*)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return (x > y) - (x < y);  // as they were given, whatever the library's sort does
}

static bool meet(const assay_block_t* a, const assay_block_t* b) {
  return a->first <= b->last && b->first <= a->last;
}

static size_t aligned(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

// Puts a block into the lowest gap that is left by those placed, which are in order of offset.
static void place(assay_block_t* b, assay_block_t* const* placed, size_t n, size_t alignment) {
  b->offset = 0;
  for (size_t i = 0; i < n; i++) {
    const assay_block_t* p = placed[i];
    if (!meet(b, p)) continue;
    if (p->offset >= b->offset && p->offset - b->offset >= b->bytes) return;
    if (p->offset + aligned(p->bytes, alignment) > b->offset)
      b->offset = p->offset + aligned(p->bytes, alignment);
  }
}

static void insert(assay_block_t* b, assay_block_t** placed, size_t n) {
  for (; n && placed[n - 1]->offset > b->offset; n--) placed[n] = placed[n - 1];
  placed[n] = b;
}

assay_status_t assay_memory_plan(assay_block_t* blocks, size_t n, size_t alignment,
                                 size_t* out_bytes) {
  assay_block_t **order = NULL, **placed = NULL;
  size_t total = 0, end = 0;
  for (size_t i = 0; i < n; i++) {
    if (blocks[i].bytes > SIZE_MAX / 4 - total) return assay_status_no_memory();
    total += aligned(blocks[i].bytes, alignment);
  }
  ASSAY_TRY(assay_new_array(n, sizeof *order, &order));
  assay_status_t st = assay_new_array(n, sizeof *placed, &placed);
  for (size_t i = 0; i < n; i++) order[i] = &blocks[i];
  if (!st && n) qsort(order, n, sizeof *order, larger_first);
  for (size_t i = 0; !st && i < n; i++) {
    place(order[i], placed, i, alignment);
    insert(order[i], placed, i);
    if (order[i]->offset + aligned(order[i]->bytes, alignment) > end)
      end = order[i]->offset + aligned(order[i]->bytes, alignment);
  }
  assay_free(order);
  assay_free(placed);
  *out_bytes = end;
  return st;
}
