// Small sections of one entry: the nodes that make a value from a single other one.
#ifndef ASSAY_DIAGNOSE_CAUSES_SECTIONS_H_
#define ASSAY_DIAGNOSE_CAUSES_SECTIONS_H_

#include "diagnose/causes/surroundings.h"

enum { ASSAY_SECTION_NODES = 5 };

// The last node first. Constants are no entries.
typedef struct assay_section {
  const assay_node_t* nodes[ASSAY_SECTION_NODES];
  size_t n;
  const assay_value_t* entry;  // NULL: the nodes so far read several values
} assay_section_t;

// A section of the node alone. False: it cannot be copied into a chain.
bool assay_section_begin(const assay_surroundings_t* a, const assay_node_t* last,
                         assay_section_t* out);
// Takes in the node before it that stands last in the graph. False: there is none, or it cannot be
// copied, or the section is as large as it may be.
bool assay_section_grow(const assay_surroundings_t* a, assay_section_t* r);

// Steps of a chain that are the section on what step `from` gives, or on a value. *n: of the steps.
// False: there is no room.
bool assay_section_steps(const assay_section_t* r, const assay_chain_operand_t* entry,
                         assay_chain_step_t* steps, size_t* n);

#endif  // ASSAY_DIAGNOSE_CAUSES_SECTIONS_H_
