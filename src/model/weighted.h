/* Bounds of several samples of a sequence. */
#ifndef DV_WEIGHTED_H
#define DV_WEIGHTED_H

#include "model/model.h"

/* That of whole paths, for a program that has z and the emission. */
void dv_record_paths(dvbf_program *p, const dvbf_model *m, int samples);
/* That of a particle filter, for a program that has nothing but its inputs. */
void dv_record_particles(dvbf_program *p, const dvbf_model *m, int samples);

#endif
