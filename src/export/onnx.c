/* The filter without noise as ONNX (target .onnx): one step with an explicit state, and the first state
 * from the first frames, each a file. An exact model has one step that starts from zeros. */
#include "export/onnx_graph.h"

#include "base/error.h"
#include "base/memory.h"

enum { MOST_EXACT = 32 }; /* columns of x of an exact model, whose values are taken in one by one */

static const dv_onnx_name none = {""};

/* ---- Scaled inputs ---- */

static dv_onnx_name scaled(dv_onnx *g, dv_onnx_name a, const float *shift, const float *scale, int n) {
  dv_onnx_name s = dv_onnx_constant(g, shift, 0, (size_t)n, "shift");
  dv_onnx_name by = dv_onnx_constant(g, scale, 0, (size_t)n, "scale");
  return dv_onnx_node(g, "Mul", dv_onnx_node(g, "Sub", a, s, none), by, none);
}

/* Back to the units of the data; a standard deviation has no shift. */
static dv_onnx_name unscaled(dv_onnx *g, dv_onnx_name a, const dvbf_model *m, bool deviation) {
  dv_onnx_name by = dv_onnx_constant(g, m->x.scale, 0, (size_t)m->n_x, "scale");
  dv_onnx_name x = dv_onnx_node(g, "Div", a, by, none);
  if (deviation) return x;
  return dv_onnx_node(g, "Add", x, dv_onnx_constant(g, m->x.shift, 0, (size_t)m->n_x, "shift"), none);
}

/* 1 for observed values, else 0; and x there, else 0. */
static dv_onnx_name clear_gaps(dv_onnx *g, dv_onnx_name a, dv_onnx_name seen) {
  dv_onnx_name zero = dv_onnx_number(g, 0, false);
  return dv_onnx_node(g, "Where", dv_onnx_node(g, "Greater", seen, zero, none), a, zero);
}

static dv_onnx_name as_bits(dv_onnx *g, dv_onnx_name seen) {
  return clear_gaps(g, dv_onnx_number(g, 1, false), seen);
}

static dv_onnx_name control(dv_onnx *g, const dvbf_model *m, const char *name) {
  return scaled(g, dv_onnx_input(g, name, 0, (size_t)m->n_u), m->u.shift, m->u.scale, m->n_u);
}

static dvbf_status add_part(dv_onnx *g, const dv_code_part *from, const dv_onnx_name in[DV_INPUTS],
                            dv_onnx_name *out, dvbf_error *error) {
  dv_code_part part = {0};
  dvbf_status status =
      dv_code_part_derive(&part, from, &(dv_derivation){.quiet = true, .mean_only = true}, error);
  if (!status) status = dv_onnx_part(g, &part, in, out, error);
  dv_code_part_clear(&part);
  return status;
}

/* ---- Graphs ---- */

static dvbf_status write_step(dv_onnx *g, const dv_parts *p, dvbf_error *error) {
  const dvbf_model *m = p->model;
  dv_onnx_name in[DV_INPUTS] = {{""}}, next, predicted, x;
  bool through = m->settings->feedthrough && m->n_u;
  in[DV_SLOT_Z] = dv_onnx_input(g, "z", 0, (size_t)m->n_z);
  dv_onnx_name raw = dv_onnx_input(g, "x", 0, (size_t)m->n_x);
  dv_onnx_name seen = dv_onnx_input(g, "seen", 0, (size_t)m->n_x);
  if (m->n_u) in[DV_SLOT_U] = control(g, m, through ? "u_before" : "u");
  if (through) in[DV_SLOT_NOW] = control(g, m, "u");
  in[DV_SLOT_X] = clear_gaps(g, scaled(g, raw, m->x.shift, m->x.scale, m->n_x), seen);
  in[DV_SLOT_SEEN] = as_bits(g, seen);
  in[DV_SLOT_MASK] = dv_onnx_reduce(g, "ReduceMax", in[DV_SLOT_SEEN]);
  dvbf_status status = add_part(g, &p->advance, in, &next, error);
  if (!status) dv_onnx_output(g, next, "z_next", (size_t)m->n_z);
  if (status || !p->move.code) return status;
  status = add_part(g, &p->move, in, &predicted, error);
  in[DV_SLOT_Z] = predicted;
  if (!status) status = add_part(g, &p->emission, in, &x, error);
  if (!status) dv_onnx_output(g, x, "x_forecast", (size_t)m->n_x);
  return status;
}

static dv_onnx_name masks(dv_onnx *g, dv_onnx_name seen, int frames, int n_x) {
  dv_onnx_name *each = dv_calloc((size_t)frames, sizeof *each), all = none;
  for (int t = 0; each && t < frames; t++)
    each[t] = dv_onnx_reduce(g, "ReduceMax", dv_onnx_slice(g, seen, (size_t)t * (size_t)n_x, (size_t)n_x, 1));
  if (each) all = dv_onnx_concat(g, each, frames);
  dv_free(each);
  return all;
}

static dvbf_status write_start(dv_onnx *g, const dv_parts *p, dvbf_error *error) {
  const dvbf_model *m = p->model;
  size_t frames = (size_t)p->frames;
  dv_onnx_name in[DV_INPUTS] = {{""}}, z;
  dv_onnx_name raw = dv_onnx_input(g, "x", frames, (size_t)m->n_x);
  dv_onnx_name seen = dv_onnx_input(g, "seen", frames, (size_t)m->n_x);
  if (m->n_u)
    in[DV_SLOT_U] = dv_onnx_flat(
        g, scaled(g, dv_onnx_input(g, "u", frames, (size_t)m->n_u), m->u.shift, m->u.scale, m->n_u));
  in[DV_SLOT_X] = dv_onnx_flat(g, clear_gaps(g, scaled(g, raw, m->x.shift, m->x.scale, m->n_x), seen));
  in[DV_SLOT_SEEN] = dv_onnx_flat(g, as_bits(g, seen));
  in[DV_SLOT_MASK] = masks(g, in[DV_SLOT_SEEN], p->frames, m->n_x);
  if (!*in[DV_SLOT_MASK].text) return dv_fail_memory(error, "exporting a model");
  dvbf_status status = add_part(g, &p->first, in, &z, error);
  if (!status) dv_onnx_output(g, z, "z", (size_t)m->n_z);
  return status;
}

static dv_onnx_name root(dv_onnx *g, dv_onnx_name a) {
  return dv_onnx_node(g, "Sqrt", dv_onnx_node(g, "Max", a, dv_onnx_number(g, 0, false), none), none, none);
}

static dvbf_status write_exact(dv_onnx *g, const dvbf_model *m, dvbf_error *error) {
  dv_state_space system = {0};
  dv_code_part part = {0};
  dv_onnx_name in[DV_INPUTS] = {{""}}, all;
  size_t n_z = (size_t)m->n_z, n_x = (size_t)m->n_x, n = dv_kalman_part_state(m->n_z);
  if (m->n_x > MOST_EXACT)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the model %s has %d columns of x, too many for ONNX, which processes them one by one: at "
                   "most %d; C takes any number",
                   m->type->name, m->n_x, MOST_EXACT);
  dvbf_status status = dv_exact_system_new(&system, m, error);
  if (status) return status;
  status = dv_kalman_part(&part, &system, dv_model_feeds_through(m), dv_model_range(m), error);
  in[DV_SLOT_Z] = dv_onnx_input(g, "state", 0, n);
  dv_onnx_name raw = dv_onnx_input(g, "x", 0, n_x), seen = dv_onnx_input(g, "seen", 0, n_x);
  if (m->n_u) in[DV_SLOT_U] = control(g, m, "u");
  in[DV_SLOT_X] = clear_gaps(g, scaled(g, raw, m->x.shift, m->x.scale, m->n_x), seen);
  in[DV_SLOT_SEEN] = as_bits(g, seen);
  if (!status) status = dv_onnx_part(g, &part, in, &all, error);
  if (!status) {
    dv_onnx_output(g, dv_onnx_slice(g, all, 0, n, 1), "state_next", n);
    dv_onnx_output(g, dv_onnx_slice(g, all, n, n_z, 1), "z", n_z);
    dv_onnx_output(g, root(g, dv_onnx_slice(g, all, n + n_z, n_z, 1)), "z_std", n_z);
    dv_onnx_name mean = dv_onnx_slice(g, all, n + 2 * n_z, n_x, 1);
    dv_onnx_name variance = dv_onnx_slice(g, all, n + 2 * n_z + n_x, n_x, 1);
    dv_onnx_output(g, unscaled(g, mean, m, false), "x_forecast", n_x);
    dv_onnx_output(g, unscaled(g, root(g, variance), m, true), "x_forecast_std", n_x);
  }
  dv_code_part_clear(&part);
  dv_system_clear(&system);
  return status;
}

/* ---- Files ---- */

static dvbf_status write_file(const char *path, const dv_export *e, bool start, dvbf_error *error) {
  const dvbf_model *m = e->model;
  dv_onnx g = {0};
  dv_parts parts = {0};
  dv_text about = {0}, file = {0};
  dvbf_status status = dv_parts_init(&parts, m, false, error);
  if (!status) status = dv_file_header(&about, e, "", error);
  if (!status)
    status = m->type->exact_system ? write_exact(&g, m, error)
             : start               ? write_start(&g, &parts, error)
                                   : write_step(&g, &parts, error);
  if (!status) {
    dv_onnx_file(&file, &g, e->name, about.at ? about.at : "");
    status = dv_text_write(&file, path, error);
  }
  dv_onnx_clear(&g);
  dv_parts_clear(&parts);
  DV_TEXT_FREE(&about, &file);
  return status;
}

DV_TARGET(onnx) {
  dv_path first;
  bool starts = !e->model->type->exact_system;
  dvbf_status status = dv_refuse_existing(e->path, e->options->force, error);
  if (!status && starts) status = dv_export_path(first, e, "_start.onnx", error);
  if (!status) status = write_file(e->path, e, false, error);
  if (!status && starts) status = write_file(first, e, true, error);
  return status;
}
