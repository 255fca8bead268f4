#include "format/planned.h"

#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

dv_plan dv_plan_of(const dv_frames *f, int lead) {
  dv_plan p = {.parts = f->u.parts};
  if (!f->u.parts || f->blocks != 1 || f->u.parts > DV_MOST_PARTS) return (dv_plan){0};
  size_t steps = f->u.arrays[0]->dims[lead - 1];
  if (steps <= f->block[0].steps) return (dv_plan){0};
  p.steps = steps;
  for (size_t k = 0; k < p.parts; k++) {
    p.arrays[k] = f->u.arrays[k];
    p.widths[k] = f->u.widths[k];
  }
  return p;
}

/* *values = [count][steps][width], of which the old ones are the beginning of each sequence and the others
 * NaN. */
static dvbf_status lengthen(float **values, const dvbf_sequences *s, size_t steps, size_t width,
                            bool borrowed, dvbf_error *error) {
  size_t size;
  if (!width) return DVBF_OK;
  float *longer = dv_multiply(s->count, steps, &size) && dv_multiply(size, width, &size)
                      ? dv_calloc(size, sizeof *longer)
                      : NULL;
  if (!longer) return dv_fail_memory(error, "reading data");
  for (size_t k = 0; k < size; k++) longer[k] = NAN;
  for (size_t i = 0; i < s->count; i++)
    memcpy(longer + i * steps * width, *values + i * s->steps * width, s->steps * width * sizeof *longer);
  if (!borrowed) dv_free(*values);
  *values = longer;
  return DVBF_OK;
}

static dvbf_status read_plan(dvbf_sequences *s, const dv_plan *p, dv_archive *a, dvbf_error *error) {
  for (size_t k = 0, at = 0; k < p->parts; at += p->widths[k++]) {
    size_t width = p->widths[k], rows = s->count * p->steps;
    float *part = dv_calloc(rows * width, sizeof *part);
    dvbf_status status = part ? dv_archive_read(a, p->arrays[k], 0, rows * width, part, NULL, error)
                              : dv_fail_memory(error, "reading data");
    for (size_t i = 0; i < rows && !status; i++)
      memcpy(s->u + i * s->n_u + at, part + i * width, width * sizeof *part);
    dv_free(part);
    if (status) return status;
  }
  return DVBF_OK;
}

dvbf_status dv_plan_extend(dvbf_sequences *s, const dv_plan *p, dv_archive *a, dvbf_error *error) {
  if (!p->steps) return DVBF_OK;
  if (s->source || s->start || s->length || p->steps > UINT32_MAX)
    return dv_fail(error, DVBF_FORMAT,
                   "%.200s: %.64s has more steps than x, which is for sequences of one length that fit into "
                   "memory; raise memory, or store each recording in a file of its own",
                   a->path, p->arrays[0]->name);
  dvbf_status status = lengthen(&s->x, s, p->steps, s->n_x, s->borrowed & DVBF_BORROWED_X, error);
  if (!status) s->borrowed &= ~(unsigned)DVBF_BORROWED_X;
  if (!status) status = lengthen(&s->u, s, p->steps, s->n_u, s->borrowed & DVBF_BORROWED_U, error);
  if (!status) s->borrowed &= ~(unsigned)DVBF_BORROWED_U;
  if (!status) status = lengthen(&s->state, s, p->steps, s->n_s, s->borrowed & DVBF_BORROWED_STATE, error);
  if (!status) s->borrowed &= ~(unsigned)DVBF_BORROWED_STATE;
  if (status) return status;
  s->steps = p->steps;
  s->gaps = true;
  return read_plan(s, p, a, error);
}
