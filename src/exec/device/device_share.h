// What contexts of an engine share on a device.
#ifndef ASSAY_EXEC_DEVICE_DEVICE_SHARE_H_
#define ASSAY_EXEC_DEVICE_DEVICE_SHARE_H_

#include "exec/device/device_run.h"

typedef struct assay_device_shared {
  const assay_device_kind_t* kind;
  assay_device_t* device;
  assay_resident_t* resident;
  assay_choice_t* choice;
  void* own;
} assay_device_shared_t;

#endif  // ASSAY_EXEC_DEVICE_DEVICE_SHARE_H_
