/* Parts of a model for export (dv_parts_init): the programs of the online filter (start, step, move,
 * emission) walked over once as statements, with the parameters as constants, folded, pruned and checked. Ops
 * supply their own statements (`emit`), so a new op is not written again for C. */
#include "export/part.h"

#include "base/error.h"
#include "model/density.h"
#include "ops/emit.h"

#include <math.h>
#include <string.h>

/* Slots that every part has in the same way, of steps first .. first + count - 1 of a program. */
static void set_inputs(dv_code_part *part, const dvbf_program *p, int first, int count) {
  part->slot[DV_SLOT_X] = dv_slot_of(dvbf_steps(p->x, first, count));
  part->slot[DV_SLOT_MASK] = dv_slot_of(dvbf_steps(p->mask, first, count));
  if (p->seen.buffer >= 0 && p->seen.buffer != p->mask.buffer)
    part->slot[DV_SLOT_SEEN] = dv_slot_of(dvbf_steps(p->seen, first, count));
}

/* The code of a program for `count` values, the first of which is its result. */
static dvbf_status emit(dv_code_part *part, const char *name, const dvbf_program *p, const dvbf_value *wanted,
                        int count, dvbf_error *error) {
  part->name = name;
  part->code = dv_code_new();
  if (!part->code) return dv_fail_memory(error, "writing a model as code");
  dvbf_status status = dv_graph_emit(p->graph, part->code, wanted, count, error);
  part->slot[DV_SLOT_OUT] = dv_slot_of(wanted[0]);
  if (!status && (part->code->n_noise > 1 || (part->code->n_noise && part->code->noise[0].shared)))
    status =
        dv_fail(error, DVBF_ARGUMENT,
                "the model draws %d kinds of noise per step, but only one that is not shared can be exported",
                part->code->n_noise);
  if (status || !part->code->n_noise) return status;
  part->slot[DV_SLOT_NOISE] = dv_slot_of(part->code->noise[0].value);
  part->noise_number = part->code->noise[0].number;
  return DVBF_OK;
}

typedef struct check {
  const dv_code_part *part;
  bool inside;
} check;

/* Every read of a slot's buffer must lie within one slot. */
static void check_place(void *user, dvbf_place p, size_t by_direction, int rows, int cols) {
  check *c = user;
  size_t last = p.offset + (size_t)(rows - 1) * p.by_row + (size_t)(cols - 1) * p.by_col;
  bool slots = dv_code_part_has_slot(c->part, p.buffer);
  int at = dv_code_part_slot_at(c->part, p.buffer, p.offset);
  c->inside &= !slots || (at >= 0 && dv_code_part_slot_at(c->part, p.buffer, last) == at);
}

static dvbf_status check_places(const dv_code_part *part, dvbf_error *error) {
  check c = {part, true};
  for (int i = 0; i < part->code->n_statements; i++) {
    const dv_statement *s = &part->code->statements[i];
    check_place(&c, s->out, 0, s->rows, dv_statement_width(s));
    dv_statement_reads(part->code, s, check_place, &c);
  }
  if (c.inside) return DVBF_OK;
  return dv_fail(
      error, DVBF_ARGUMENT,
      "the model's %s reads steps that are not available while filtering, so it cannot be exported",
      part->name);
}

static dvbf_status end(dv_code_part *part, dvbf_error *error) {
  dvbf_status status = dv_code_status(part->code, error);
  if (!status) status = dv_code_part_fold(part, error);
  if (!status) status = dv_code_part_prune(part, error);
  if (!status) status = check_places(part, error);
  return status;
}

/* Mean and variance in units of the data. A class with exact inference says the variance itself. */
static void emit_density(dv_code_part *part, const dvbf_program *p, const dvbf_model *m) {
  dvbf_code *c = part->code;
  const dv_density *d = m->density;
  dvbf_value mean = dv_emit_room(c, 1, m->n_x), out = dv_emit_room(c, 1, m->n_x);
  dvbf_expr output = dv_read(c, p->output);
  dv_emit(c, mean, d->emit_mean ? d->emit_mean(c, output) : output);
  dvbf_expr scale = dvbf_code_read(c, dv_code_constant(c, m->x.scale, m->n_x, "x.scale"));
  dvbf_expr shift = dvbf_code_read(c, dv_code_constant(c, m->x.shift, m->n_x, "x.shift"));
  dv_emit(c, out, dv_plus(c, dv_over(c, dv_read(c, mean), scale), shift));
  part->slot[DV_SLOT_OUT] = dv_slot_of(out);
  if (m->type->exact) return;
  /* In a table of its own it is folded where it is constant. */
  dvbf_value spread = dv_emit_room(c, 1, m->n_x), variance = dv_emit_room(c, 1, m->n_x);
  dv_emit(c, spread, dv_over(c, d->emit_variance(c, p, m, dv_read(c, mean)), dv_times(c, scale, scale)));
  dv_emit(c, variance, dv_read(c, spread));
  part->slot[DV_SLOT_VARIANCE] = dv_slot_of(variance);
}

static dvbf_status record(dvbf_program *p, const dv_parts *parts, dv_part_name which, bool simulate,
                          dvbf_error *error) {
  const dvbf_model *m = parts->model;
  switch (which) {
  case DV_FIRST:
    return simulate ? dv_program_record(p, m, dv_model_least_steps(m), 1, 0, 0, error)
                    : dv_program_record_start(p, m, 1, parts->frames, 0, error);
  case DV_ADVANCE: return dv_program_record_step(p, m, 1, 0, 0, error);
  case DV_MOVE: return dv_program_record_move(p, m, 1, DV_DERIVATIVES, error);
  default: return dv_program_record_emission(p, m, 1, 0, error);
  }
}

static void set_slots(dv_code_part *part, const dvbf_program *p, const dv_parts *parts, dv_part_name which,
                      bool simulate) {
  dv_slot *slot = part->slot;
  if (which == DV_FIRST && simulate) return;
  if (which == DV_FIRST) set_inputs(part, p, 0, parts->frames);
  if (which == DV_FIRST) slot[DV_SLOT_U] = dv_slot_of(dvbf_steps(p->u, 0, parts->frames));
  if (which == DV_ADVANCE) set_inputs(part, p, 1, 1);
  if (which == DV_ADVANCE) slot[DV_SLOT_NOW] = dv_slot_of(dvbf_steps(p->u, 1, 1));
  if (which == DV_MOVE) slot[DV_SLOT_NOISE] = dv_slot_of(p->later.noise);
  if (which == DV_ADVANCE || which == DV_MOVE) {
    slot[DV_SLOT_Z] = dv_slot_of(dvbf_steps(p->z, 0, 1));
    slot[DV_SLOT_U] = dv_slot_of(dvbf_steps(p->u, 0, 1));
  } else if (which == DV_EMISSION) {
    slot[DV_SLOT_Z] = dv_slot_of(p->z);
    slot[DV_SLOT_NOW] = dv_slot_of(p->u);
    emit_density(part, p, parts->model);
  }
}

static dvbf_status make_part(dv_parts *parts, dv_part_name which, bool simulate, dvbf_error *error) {
  static const char *const names[] = {"first", "advance", "move", "emission"};
  dv_code_part *part = &parts->all[which];
  dvbf_program p = {0};
  dvbf_status status = record(&p, parts, which, simulate, error);
  if (status) return status;
  const dvbf_value wanted[] = {which == DV_EMISSION ? p.output : dvbf_steps(p.z, which != DV_FIRST, 1),
                               p.shape[0], p.shape[1]};
  status = emit(part, names[which], &p, wanted, which == DV_EMISSION ? 3 : 1, error);
  if (!status) set_slots(part, &p, parts, which, simulate);
  if (!status) status = end(part, error);
  dv_program_clear(&p);
  return status;
}

dvbf_status dv_parts_init(dv_parts *parts, const dvbf_model *m, bool simulate, dvbf_error *error) {
  int asked = dv_model_start_frames(m);
  *parts = (dv_parts){.model = m, .frames = asked ? asked : dv_settings_predict_from(m->settings)};
  dvbf_status status = DVBF_OK;
  bool steps = !m->type->online_step;
  if (simulate && !m->type->move)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the model %s has no transition from one z to the next, so it cannot be simulated",
                   m->type->name);
  if (!simulate) status = dv_model_needs_filter(m, "", error);
  if (!status && m->type->reads_frame)
    status = dv_fail(error, DVBF_ARGUMENT,
                     "the model %s reads each frame twice and imputes missing ones itself, which cannot be "
                     "written as code; filter with the library instead",
                     m->type->name);
  if (!status && !simulate && !steps && !m->type->exact_system)
    status =
        dv_fail(error, DVBF_ARGUMENT,
                "the model %s filters by a custom function, which cannot be written as code", m->type->name);
  const bool has[] = {steps, steps && !simulate, m->type->move, true};
  for (int i = 0; i < DV_PARTS && !status; i++)
    if (has[i]) status = make_part(parts, i, simulate, error);
  return status;
}

void dv_parts_clear(dv_parts *parts) {
  for (int i = 0; i < DV_PARTS; i++) dv_code_part_clear(&parts->all[i]);
}

/* ---- Numbers ---- */

dvbf_status dv_check_finite(const double *values, size_t n, dvbf_error *error) {
  for (size_t i = 0; i < n; i++)
    if (!isfinite(values[i]))
      return dv_fail(
          error, DVBF_FORMAT,
          "the model holds a value that is not finite and cannot be written as code; train it again");
  return DVBF_OK;
}

dvbf_status dv_exact_system_new(dv_state_space *out, const dvbf_model *m, dvbf_error *error) {
  dvbf_status status = dv_system_new(out, m->n_z, m->n_u, m->n_x, error);
  if (!status) m->type->exact_system(m, out);
  return status;
}

dvbf_status dv_parts_start(const dv_parts *parts, double *start, dvbf_error *error) {
  const dvbf_model *m = parts->model;
  const double *const nothing[DV_INPUTS] = {0};
  dv_state_space system = {0};
  dvbf_status status = m->type->exact_system
                           ? dv_exact_system_new(&system, m, error)
                           : dv_code_part_run(&parts->first, nothing, start, NULL, NULL, error);
  if (!status && m->type->exact_system) memcpy(start, system.mean, (size_t)m->n_z * sizeof *start);
  dv_system_clear(&system);
  return status ? status : dv_check_finite(start, (size_t)m->n_z, error);
}
