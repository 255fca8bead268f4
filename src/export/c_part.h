/* A part as a function of C. */
#ifndef DV_C_PART_H
#define DV_C_PART_H

#include "export/constants.h"
#include "export/part.h"

/* What the functions of a file share. */
typedef struct dv_c_file {
  const char *prefix;
  bool wide;  /* numbers are double */
  bool plain; /* without <math.h> */
  dv_constants constants;
  bool products[3][2];              /* [format][transposed] that are used */
  bool functions[DVBF_SIZE_OF + 1]; /* of dvbf_function that are used */
  size_t most_room;                 /* bytes of the largest table of results in between */
} dv_c_file;

/* Writes `static void PREFIX_NAME(arguments)`. The arguments are the slots that the part uses, in their
 * order. */
void dv_c_part_write(dv_text *text, dv_c_file *file, const dv_code_part *part, const char *name);
/* Writes the call, with the same arguments by the names of the slots: x, u, now, mask, seen, z, noise, out,
 * variance, slopes. */
void dv_c_part_call(dv_text *text, const dv_c_file *file, const dv_code_part *part, const char *name);

/* A number of C. */
void dv_c_number(dv_text *text, const dv_c_file *file, double number);

#endif
