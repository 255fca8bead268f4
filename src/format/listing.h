/* Which files a user means: some files, a folder of them, or a pattern of names with * and ?. */
#ifndef DV_LISTING_H
#define DV_LISTING_H

#include <dvbf/core.h>

typedef struct dv_listing {
  char **paths; /* [count] */
  size_t count, room;
} dv_listing;

/* The files that `given` stand for, in the order given and by name within a folder or pattern, with 9 before
 * 10. Free with dv_listing_free, also after a failure. */
dvbf_status dv_listing_of(dv_listing *out, const char *const *given, size_t count, dvbf_error *error);
void dv_listing_free(dv_listing *listing);

#endif
