// Numbers of several nodes, fitted together: an exporter that drops an attribute drops it in every
// node of the kind, each with a value of its own, and no single repair brings golden near.
#ifndef ASSAY_DIAGNOSE_SEARCH_JOINT_H_
#define ASSAY_DIAGNOSE_SEARCH_JOINT_H_

#include "diagnose/search.h"

enum { ASSAY_JOINT_NUMBERS = 12 };

// Repairs of nodes, at most one a node, each with a number that is fitted (`fits`).
typedef struct assay_joint_group {
  assay_repair_t* repairs;
  size_t n;  // at most ASSAY_JOINT_NUMBERS; with ties ASSAY_SEARCH_FAULTS
  // By repair: 1: all have one number; -1: its reciprocal. The first is 1. NULL: each has its own.
  const signed char* ties;
} assay_joint_group_t;

// Fits the numbers of a group by this sample alone. out, *out_n: as of assay_search_joint.
assay_status_t assay_search_joint_fit(const assay_search_t* s, assay_joint_group_t* g, double end,
                                      assay_fault_t* out, size_t* out_n,
                                      size_t* trials) ASSAY_MUST_USE;

// Fits one attribute of all nodes of an operator, operator after operator, until golden is restored
// or the time `end` comes. out: room for ASSAY_SEARCH_FAULTS; *out_n 0: nothing restores golden.
// Nodes whose number stays what it is are not faults. s has no repairs adopted.
assay_status_t assay_search_joint(const assay_search_t* s, double end, assay_fault_t* out,
                                  size_t* out_n, size_t* trials) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_SEARCH_JOINT_H_
