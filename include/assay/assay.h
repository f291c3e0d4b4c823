// All of Assay's public API.
#ifndef ASSAY_ASSAY_H_
#define ASSAY_ASSAY_H_

#include <assay/export.h>
#include <assay/status.h>
#include <assay/types.h>

#endif  // ASSAY_ASSAY_H_
