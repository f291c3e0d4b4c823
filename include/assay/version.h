// The version of the library.
#ifndef ASSAY_VERSION_H_
#define ASSAY_VERSION_H_

#include <assay/export.h>

#ifdef __cplusplus
extern "C" {
#endif

// Such as "0.2.0"; lives as long as the library. Plan files and certificates are of one version.
ASSAY_API const char* assay_version(void);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_VERSION_H_
