// Sets of nodes of a graph, by their places in it, and how to make them smaller while a test holds.
// Constants are not counted: they go where they are read.
#ifndef ASSAY_EDIT_REDUCE_REDUCE_SETS_H_
#define ASSAY_EDIT_REDUCE_REDUCE_SETS_H_

#include "ir/ir.h"

size_t assay_set_count(const assay_graph_t* g, const bool* nodes);
size_t assay_set_count_all(const assay_graph_t* g);
// Adds to *more the nodes that make what the set reads, or (made false) that read what it makes.
void assay_set_widen(const assay_graph_t* g, const bool* nodes, bool made, bool* more);

// Whether the nodes fail. *out_late: nothing new is to be begun, and nothing was.
typedef struct assay_set_test {
  assay_status_t (*fails)(void* user, const bool* nodes, bool* out_fails, bool* out_late);
  void* user;
} assay_set_test_t;

// Of a graph that fails as a whole: the shortest range of its order that does, found by bisection
// from its end and then from its beginning, as if a range failed where a shorter one does. The
// last one that was seen to fail, or all nodes.
assay_status_t assay_set_bisect(const assay_graph_t* g, const assay_set_test_t* test,
                                bool* nodes) ASSAY_MUST_USE;
// Takes nodes away from a set that fails (ddmin). *out_minimal: none of them can go by itself.
assay_status_t assay_set_minimize(const assay_graph_t* g, const assay_set_test_t* test, bool* nodes,
                                  bool* out_minimal) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_REDUCE_REDUCE_SETS_H_
