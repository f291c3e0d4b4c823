// What include/assay/edit.h calls an edited model, for reports.
#ifndef ASSAY_EDIT_EDIT_PUBLIC_H_
#define ASSAY_EDIT_EDIT_PUBLIC_H_

#include "base/alloc.h"
#include "edit/editor.h"

struct assay_edited {
  assay_edit_result_t result;
  assay_str_t model;  // the path that the model came from
  assay_str_t path;   // where the edited one was written to; "": nowhere yet
};

#endif  // ASSAY_EDIT_EDIT_PUBLIC_H_
