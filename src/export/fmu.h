/* Parts of an FMU: names of its variables, and its description. */
#ifndef DV_FMU_H
#define DV_FMU_H

#include "base/settings.h"
#include "export/text.h"
#include "model/model.h"

#include <dvbf/export.h>

enum { DV_VARIABLE_NAME = 80 };

typedef enum dv_variable_kind { DV_INPUT, DV_OUTPUT, DV_PARAMETER } dv_variable_kind;

/* A Real variable, whose value reference is its number. */
typedef struct dv_variable {
  char name[DV_VARIABLE_NAME], description[DV_VARIABLE_NAME + 64];
  dv_variable_kind kind;
  double start; /* of an input or a parameter */
} dv_variable;

typedef struct dv_fmu {
  const dvbf_model *model;
  const dv_export_settings *settings;
  char prefix[64], guid[40];
  double sample_time;
  dv_variable *variables; /* inputs first, parameters last */
  int count, inputs, parameters;
  bool plant, moves, direct;
} dv_fmu;

/* Names the variables by the columns of the data, or by those of the settings of the model, or x1, x2, ...
 * `start` [n_z] is the state that a plant begins with. Free with dv_fmu_clear, also after a failure. */
dvbf_status dv_fmu_variables(dv_fmu *fmu, const dvbf_export_options *options, const double *start,
                             dvbf_error *error);
void dv_fmu_clear(dv_fmu *fmu);
/* modelDescription.xml. */
void dv_fmu_describe(dv_text *text, const dv_fmu *fmu, const char *const *sources);

#endif
