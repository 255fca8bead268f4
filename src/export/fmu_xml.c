/* modelDescription.xml of FMI 2.0. */
#include "export/fmu.h"

#include "base/locale.h"

#include <string.h>

/* Text as an attribute. */
static void put_text(dv_text *t, const char *text) {
  for (; *text; text++) {
    switch (*text) {
    case '&': dv_text_append(t, "&amp;", 5); break;
    case '<': dv_text_append(t, "&lt;", 4); break;
    case '>': dv_text_append(t, "&gt;", 4); break;
    case '"': dv_text_append(t, "&quot;", 6); break;
    default: dv_text_append(t, text, 1);
    }
  }
}

static void put_variable(dv_text *t, const dv_variable *v, int number) {
  static const char *const causality[] = {"input", "output", "parameter"};
  dv_text_put(t, "    <ScalarVariable name=\"");
  put_text(t, v->name);
  dv_text_put(t, "\" valueReference=\"%d\" description=\"%s\" causality=\"%s\" variability=\"%s\"", number,
              v->description, causality[v->kind], v->kind == DV_PARAMETER ? "fixed" : "discrete");
  if (v->kind == DV_PARAMETER) dv_text_put(t, " initial=\"exact\"");
  if (v->kind == DV_OUTPUT) dv_text_put(t, " initial=\"calculated\"");
  if (v->kind == DV_OUTPUT)
    dv_text_put(t, ">\n      <Real/>\n    </ScalarVariable>\n");
  else
    dv_text_put(t, ">\n      <Real start=\"%.17g\"/>\n    </ScalarVariable>\n", v->start);
}

static void put_variables(dv_text *t, const dv_fmu *f) {
  dv_text_put(t, "  <ModelVariables>\n");
  for (int i = 0; i < f->count; i++) put_variable(t, &f->variables[i], i);
  if (!f->plant)
    dv_text_put(
        t,
        "    <ScalarVariable name=\"missing\" valueReference=\"%d\" description=\"there is no observation in "
        "this sample\" causality=\"input\" variability=\"discrete\">\n      <Boolean start=\"false\"/>\n    "
        "</ScalarVariable>\n"
        "    <ScalarVariable name=\"ready\" valueReference=\"%d\" description=\"0: no estimate yet, 1: of "
        "the "
        "state, 2: of all\" causality=\"output\" variability=\"discrete\" initial=\"calculated\">\n      "
        "<Integer/>\n    </ScalarVariable>\n",
        f->count, f->count + 1);
  dv_text_put(t, "  </ModelVariables>\n");
}

/* Outputs by their place in the list, from 1 on. */
static void put_unknowns(dv_text *t, const dv_fmu *f, const char *name) {
  dv_text_put(t, "    <%s>\n", name);
  for (int i = 0; i < f->count; i++)
    if (f->variables[i].kind == DV_OUTPUT) dv_text_put(t, "      <Unknown index=\"%d\"/>\n", i + 1);
  if (!f->plant) dv_text_put(t, "      <Unknown index=\"%d\"/>\n", f->count + 2);
  dv_text_put(t, "    </%s>\n", name);
}

void dv_fmu_describe(dv_text *t, const dv_fmu *f, const char *const *sources) {
  DV_PLAIN_NUMBERS;
  dv_text_put(t,
              "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
              "<fmiModelDescription fmiVersion=\"2.0\" modelName=\"%s\" guid=\"%s\" description=\"%s\" "
              "generationTool=\"dvbf %s\" variableNamingConvention=\"flat\">\n",
              f->prefix, f->guid,
              f->plant ? "a learned system: controls in, observations out"
                       : "a learned filter: observations and controls in, states and forecasts out",
              DVBF_VERSION);
  dv_text_put(
      t,
      "  <CoSimulation modelIdentifier=\"%s\" canHandleVariableCommunicationStepSize=\"true\" "
      "canGetAndSetFMUstate=\"true\" canSerializeFMUstate=\"true\" providesDirectionalDerivative=\"true\">\n"
      "    <SourceFiles>\n",
      f->prefix);
  for (; *sources; sources++) dv_text_put(t, "      <File name=\"%s\"/>\n", *sources);
  dv_text_put(
      t, "    </SourceFiles>\n  </CoSimulation>\n  <DefaultExperiment startTime=\"0\" stepSize=\"%.17g\"/>\n",
      f->sample_time);
  put_variables(t, f);
  dv_text_put(t, "  <ModelStructure>\n");
  put_unknowns(t, f, "Outputs");
  put_unknowns(t, f, "InitialUnknowns");
  dv_text_put(t, "  </ModelStructure>\n</fmiModelDescription>\n");
}
