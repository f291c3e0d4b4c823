// Errors: what went wrong, where, and what to do about it.
//
// Every function that can fail returns assay_status_t. NULL is success. Anything else is owned by
// the caller and consumed once: returned, freed or joined.
#ifndef ASSAY_STATUS_H_
#define ASSAY_STATUS_H_

#include <assay/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_status* assay_status_t;  // NULL: success

typedef enum assay_code {
  ASSAY_OK = 0,
  ASSAY_INVALID_ARGUMENT = 1,  // the caller asked for something that makes no sense
  ASSAY_UNSUPPORTED = 2,       // legal, but Assay cannot do it
  ASSAY_NOT_FOUND = 3,         // a file, node, value or option that is not there
  ASSAY_CORRUPT = 4,           // a file that is not what it should be
  ASSAY_NO_MEMORY = 5,
  ASSAY_DEVICE = 6,    // a device or library failed
  ASSAY_INTERNAL = 7,  // our mistake
  ASSAY_CANCELLED = 8,
} assay_code_t;

// A failure with this message, which is copied: for callbacks that the library calls.
ASSAY_API assay_status_t assay_status_create(assay_code_t code, const char* message);

// The code of a status; ASSAY_OK for NULL.
ASSAY_API assay_code_t assay_status_code(assay_status_t status);

// The message, one line without a final newline; "" for NULL. Valid until the status is consumed.
ASSAY_API const char* assay_status_message(assay_status_t status);

// The end of the message that says what went wrong, without what was put in front on the way up:
// what was being done, outermost first, each with ": " behind it. "" for NULL; valid as the
// message.
ASSAY_API const char* assay_status_cause(assay_status_t status);

// Frees a status; NULL is allowed.
ASSAY_API void assay_status_free(assay_status_t status);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_STATUS_H_
