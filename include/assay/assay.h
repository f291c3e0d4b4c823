// All of Assay's public API.
#ifndef ASSAY_ASSAY_H_
#define ASSAY_ASSAY_H_

#include <assay/audit.h>
#include <assay/cancel.h>
#include <assay/certify.h>
#include <assay/check.h>
#include <assay/compare.h>
#include <assay/context.h>
#include <assay/debug.h>
#include <assay/device_memory.h>
#include <assay/edit.h>
#include <assay/engine.h>
#include <assay/environment.h>
#include <assay/export.h>
#include <assay/golden.h>
#include <assay/memory.h>
#include <assay/model.h>
#include <assay/ops.h>
#include <assay/outputs.h>
#include <assay/report.h>
#include <assay/samples.h>
#include <assay/session.h>
#include <assay/status.h>
#include <assay/tensor.h>
#include <assay/tune.h>
#include <assay/types.h>
#include <assay/version.h>

#endif  // ASSAY_ASSAY_H_
