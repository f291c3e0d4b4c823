// The table of the kinds of edits.
#include "diagnose/edits/row.h"

static const assay_edit_row_t* const rows[] = {
#define ASSAY_EDIT_KIND(NAME, name) &assay_edit_row_##name,
#include "diagnose/edits/edit_kinds.inc"
#undef ASSAY_EDIT_KIND
};

const assay_edit_row_t* assay_edit_row(assay_edit_kind_t kind) { return rows[kind]; }
