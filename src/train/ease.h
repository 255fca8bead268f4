/* What training changes by itself when it diverges. */
#ifndef DV_EASE_H
#define DV_EASE_H

#include "model/model.h"

/* Steps of shorter windows than those of `steps`: half of them, but a few more than the initial network sees.
 * The same where there are no shorter ones. */
size_t dv_ease_window(const dvbf_model *model, size_t steps);

/* The settings that it changes, and NULL. */
extern const char *const dv_ease_names[];
/* Settings for a start after `times` others have diverged to the end, on top of those of `base`, which are
 * left alone where the user has given them: smaller first systems, shorter gradients, contraction where the
 * model is made of linear systems. 0: those of base. */
dvbf_status dv_ease_settings(dvbf_model *model, const dvbf_settings *base, uint64_t times, dvbf_error *error);
/* They, and half the rate each time, as a sentence's part: "0.5 of the learning rate, contraction = 1". */
void dv_ease_describe(const dvbf_model *model, const dvbf_settings *base, uint64_t times, char *out,
                      size_t size);
/* Factor on the learning rate. */
double dv_ease_rate(uint64_t times);

#endif
