/* The C file of a model or of a committee, whose members are models with prefixes of their own, PREFIX_1,
 * PREFIX_2, ... */
#include "base/memory.h"
#include "base/status.h"
#include "export/c_file.h"

#include <stdio.h>
#include <string.h>

typedef struct writer {
  const dvbf_model *model;
  const char *prefix;
  const dv_export_settings *settings;
  dv_text bodies, headers, states[2], resets[2], steps[2]; /* without samples, and with */
  bool moves, samples, deviation;
  bool same_row; /* a member has feedthrough */
} writer;

static bool is_exact(const dvbf_model *m) {
  return m->type->exact_system;
}

static void find_abilities(writer *w) {
  w->moves = true;
  w->deviation = w->settings->deviation;
  w->same_row = dv_model_same_row(w->model);
  for (int k = 0; k < dv_model_members(w->model); k++) {
    const dvbf_model *m = dv_model_member(w->model, k);
    w->moves &= m->type->move != NULL;
    w->samples |= w->settings->samples && !is_exact(m);
  }
}

/* The call of a step of member k. Where a member has feedthrough, u comes with its frame, and the others take
 * that of the frame before. */
static void put_call(dv_text *t, const writer *w, int k, const char *name, bool own) {
  const dvbf_model *m = dv_model_member(w->model, k);
  bool late = w->same_row && !dv_model_feeds_through(m);
  dv_text_put(t, "    ready = %s_%s(&s->member_%d, x, %s, missing, out ? &e : 0);\n", name,
              own ? "sampled_step" : "step", k + 1, late ? "before" : "u");
}

/* The statement that takes in what member k expects, where it takes part. */
static void put_pool(dv_text *t, const writer *w, int k, bool std) {
  const dvbf_model *m = dv_model_member(w->model, k);
  bool forecasts = dv_model_takes_part(m, true), predictions = dv_model_takes_part(m, false);
  if (!w->moves || (!forecasts && !predictions)) return;
  dv_text_put(t, "    if (out && ready > 1%s) %s_pool(out->x, %s, e.x, %s, ++pooled);\n",
              forecasts && predictions ? ""
              : forecasts              ? " && !ahead"
                                       : " && ahead",
              w->prefix, std ? "out->x_std" : "0", std ? "e.x_std" : "0");
}

/* The statements of member k in the functions without samples, or with. */
static void put_member(writer *w, int k, bool sampled) {
  const dvbf_model *m = dv_model_member(w->model, k);
  bool own = sampled && !is_exact(m), std = sampled || w->deviation;
  const char *kind = own ? "sampled_" : "", *type = own ? "sampled" : "state";
  char name[96];
  dv_text *steps = &w->steps[sampled];
  snprintf(name, sizeof name, "%s_%d", w->prefix, k + 1);
  dv_text_put(&w->states[sampled], "  %s_%s member_%d;\n", name, type, k + 1);
  dv_text_put(&w->resets[sampled], "  %s_%sreset(&s->member_%d", name, kind, k + 1);
  if (own) dv_text_put(&w->resets[sampled], k ? ", seed + %du" : ", seed", k);
  dv_text_put(&w->resets[sampled], ");\n");
  dv_text_put(steps, "  {\n    %s_%sestimate e;\n", name, kind);
  put_call(steps, w, k, name, own);
  dv_text_put(steps, "    least = ready < least ? ready : least;\n");
  put_pool(steps, w, k, std);
  if (!k) {
    dv_text_put(steps, "    best = ready;\n    for (i = 0; out && ready && i < %s_N_Z; i++) {\n", w->prefix);
    dv_text_put(steps, "      out->z[i] = e.z[i];\n%s    }\n",
                std ? "      out->z_std[i] = e.z_std[i];\n" : "");
  }
  dv_text_put(steps, "  }\n");
}

static void put_committee(dv_text *code, dv_text *header, const writer *w, const dv_c_facts *facts) {
  char n_x[16], n_u[16], n_z[16], members[16], frames[16], samples[16], root[48];
  const dvbf_model *m = w->model;
  bool wide = w->settings->real == DV_REAL_DOUBLE, std = w->deviation;
  dv_words words = {.prefix = w->prefix};
  int learned = 0; /* a member with a root of the right type */
  while (learned < w->model->n_others && is_exact(dv_model_member(m, learned))) learned++;
  snprintf(root, sizeof root,
           is_exact(dv_model_member(m, learned)) ? "(@_real)@_%d_double_sqrt" : "@_%d_sqrt", learned + 1);
  snprintf(n_x, sizeof n_x, "%d", m->n_x);
  snprintf(n_u, sizeof n_u, "%d", m->n_u);
  snprintf(n_z, sizeof n_z, "%d", m->n_z);
  snprintf(members, sizeof members, "%d", dv_model_members(m));
  snprintf(frames, sizeof frames, "%d", facts->frames);
  snprintf(samples, sizeof samples, "%d", (int)w->settings->samples);
  const char *const all[][2] = {
      {"n_x", n_x},
      {"n_u", n_u},
      {"n_z", n_z},
      {"members", members},
      {"frames", frames},
      {"real", wide ? "double" : "float"},
      {"members_headers", w->headers.at},
      {"states", w->states[0].at},
      {"resets", w->resets[0].at},
      {"steps", w->steps[0].at},
      {"both", w->moves ? "2" : "1"},
      {"sqrt", w->settings->libm ? (wide ? "sqrt" : "sqrtf") : root},
      {"x_std_argument", std ? ", @_real *x_std" : ""},
      {"u_at", m->n_u ? "u ? u + t * @_N_U : 0" : "u"},
      {"sampled_states", w->states[1].at},
      {"sampled_resets", w->resets[1].at},
      {"sampled_steps", w->steps[1].at},
      {"moves", w->moves ? "" : NULL},
      {"deviation", std ? "" : NULL},
      {"samples", w->samples ? samples : NULL},
      {"same_row", w->same_row ? "" : NULL},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i][1]) dv_words_set(&words, all[i][0], all[i][1]);
  dv_put(header, committee_h_in, &words);
  dv_text_append(code, w->bodies.at, w->bodies.used);
  dv_put(code, committee_c_in, &words);
}

static dvbf_status write_committee(dv_text *code, dv_text *header, dv_c_facts *facts, writer *w,
                                   dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  find_abilities(w);
  for (int k = 0; k < dv_model_members(w->model) && !status; k++) {
    char name[96];
    snprintf(name, sizeof name, "%s_%d", w->prefix, k + 1);
    dv_text_put(&w->bodies, "\n/* ==== Member %d ==== */\n", k + 1);
    status = dv_c_model_write(&w->bodies, &w->headers, facts, dv_model_member(w->model, k), name, w->settings,
                              error);
    put_member(w, k, false);
    if (w->samples) put_member(w, k, true);
  }
  if (!status) put_committee(code, header, w, facts);
  return status;
}

static void clear(writer *w) {
  dv_text_free(&w->bodies);
  dv_text_free(&w->headers);
  for (int i = 0; i < 2; i++) {
    dv_text_free(&w->states[i]);
    dv_text_free(&w->resets[i]);
    dv_text_free(&w->steps[i]);
  }
}

dvbf_status dv_c_write(dv_text *code, dv_text *header, dv_c_facts *facts, const dvbf_model *m,
                       const char *prefix, const char *name, const dv_export_settings *s, dvbf_error *error) {
  writer w = {.model = m, .prefix = prefix, .settings = s};
  *facts = (dv_c_facts){0};
  dv_text_put(code, "#include \"%s.h\"\n%s", name, s->libm ? "\n#include <math.h>\n" : "");
  dvbf_status status = dv_model_members(m) > 1 ? write_committee(code, header, facts, &w, error)
                                               : dv_c_model_write(code, header, facts, m, prefix, s, error);
  bool any = code->failed || header->failed || w.bodies.failed || w.headers.failed;
  for (int i = 0; i < 2; i++) any |= w.states[i].failed || w.resets[i].failed || w.steps[i].failed;
  if (!status && any) status = dv_fail_memory(error, "exporting a model");
  clear(&w);
  return status;
}
