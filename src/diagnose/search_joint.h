// Numbers of several nodes, fitted together: an exporter that drops an attribute drops it in every
// node of the kind, each with a value of its own, and no single repair brings golden near.
#ifndef ASSAY_DIAGNOSE_SEARCH_JOINT_H_
#define ASSAY_DIAGNOSE_SEARCH_JOINT_H_

#include "diagnose/search.h"

// Fits one attribute of all nodes of an operator, operator after operator, until golden is restored
// or the time `end` comes. out: room for ASSAY_SEARCH_FAULTS; *out_n 0: nothing restores golden.
// Nodes whose number stays what it is are not faults. s has no repairs adopted.
assay_status_t assay_search_joint(const assay_search_t* s, double end, assay_fault_t* out,
                                  size_t* out_n, size_t* trials) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_SEARCH_JOINT_H_
