/* A model as one C file and its header. */
#ifndef DV_C_FILE_H
#define DV_C_FILE_H

#include "export/c_part.h"

#include <dvbf/dvbf.h>

/* What was written. */
typedef struct dv_c_facts {
  double multiplications; /* of a step without forecast and without samples */
  size_t constants;       /* bytes */
  size_t state;           /* bytes, but for padding */
  size_t stack;           /* bytes of the largest table of results in between */
  int frames;             /* until there is an estimate */
  bool direct;            /* x depends on the control of its own step */
} dv_c_facts;

/* Writes one model, without the beginning of the file; adds to the facts. A committee counts as its best
 * member. */
dvbf_status dv_c_model_write(dv_text *code, dv_text *header, dv_c_facts *facts, const dvbf_model *model,
                             const char *prefix, const dv_export_settings *settings, dvbf_error *error);
/* The whole file and its header, NAME.h. */
dvbf_status dv_c_write(dv_text *code, dv_text *header, dv_c_facts *facts, const dvbf_model *model,
                       const char *prefix, const char *name, const dv_export_settings *settings,
                       dvbf_error *error);

/* A model that is simulated and does not filter: its transition and its observations; writes the file and its
 * header, and the state start [n_z] to begin with. */
dvbf_status dv_c_plant_write(dv_text *code, dv_text *header, dv_c_facts *facts, const dvbf_model *model,
                             const char *prefix, const dv_export_settings *settings, double *start,
                             dvbf_error *error);

/* Templates (templates/NAME.in), embedded when the library is built. */
#define DV_TEMPLATE(name)                                                                                    \
  extern const unsigned char dv_##name[];                                                                    \
  extern const size_t dv_##name##_size;
DV_TEMPLATE(header_h_in)
DV_TEMPLATE(state_h_in)
DV_TEMPLATE(derivatives_h_in)
DV_TEMPLATE(kalman_h_in)
DV_TEMPLATE(filter_c_in)
DV_TEMPLATE(samples_c_in)
DV_TEMPLATE(derivatives_c_in)
DV_TEMPLATE(product_c_in)
DV_TEMPLATE(narrow_c_in)
DV_TEMPLATE(vectors_c_in)
DV_TEMPLATE(kalman_c_in)
DV_TEMPLATE(functions_c_in)
DV_TEMPLATE(committee_h_in)
DV_TEMPLATE(committee_c_in)
DV_TEMPLATE(test_c_in)
DV_TEMPLATE(plant_h_in)
DV_TEMPLATE(plant_c_in)
DV_TEMPLATE(fmu_c_in)
DV_TEMPLATE(control_h_in)
DV_TEMPLATE(control_c_in)
DV_TEMPLATE(control_test_c_in)
/* Fills in a template: dv_put(text, filter_c_in, words). */
#define dv_put(text, name, words) dv_text_template(text, dv_##name, dv_##name##_size, words)

#endif
