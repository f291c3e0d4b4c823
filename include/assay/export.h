// How public functions are marked.
#ifndef ASSAY_EXPORT_H_
#define ASSAY_EXPORT_H_

#if defined(__GNUC__)
#define ASSAY_API __attribute__((visibility("default")))
#else
#define ASSAY_API
#endif

#endif  // ASSAY_EXPORT_H_
