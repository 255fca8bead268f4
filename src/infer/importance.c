#include "infer/importance.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/status.h"
#include "data/dataset.h"
#include "infer/particles.h"
#include "infer/weights.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 64 };

dvbf_status dv_importance_init(dv_importance *m, const dvbf_model *model, const dvbf_sequences *s,
                               size_t paths, bool keep_z, dvbf_error *error) {
  int rows = paths < MOST_ROWS ? (int)paths : MOST_ROWS, steps = (int)s->steps;
  size_t all;
  *m = (dv_importance){.model = model, .paths = paths, .most = s->steps};
  m->jacobian = dv_model_log_jacobian(model);
  m->index = dv_calloc((size_t)rows, sizeof *m->index);
  m->key = dv_calloc((size_t)rows, sizeof *m->key);
  m->log_weight = dv_calloc(paths, sizeof *m->log_weight);
  if (keep_z && dv_multiply(paths, m->most, &all)) m->z = dv_calloc(all, (size_t)model->n_z * sizeof *m->z);
  if (!m->index || !m->key || !m->log_weight || (keep_z && !m->z))
    return dv_fail(error, DVBF_MEMORY, "out of memory for %zu weighted paths; fewer need less", paths);
  dvbf_status status = dv_program_record(&m->program, model, steps, rows, steps, dv_gaps_of(s), error);
  if (!status) status = dv_worker_init(&m->worker, model, &m->program, s, error);
  m->worker.run.conditions = &m->conditions;
  m->worker.run.sequence = m->key;
  return status;
}

void dv_importance_clear(dv_importance *m) {
  dv_worker_clear(&m->worker);
  dv_program_clear(&m->program);
  DV_FREE(m->index, m->key, m->log_weight, m->z);
  *m = (dv_importance){0};
}

/* ln p(x, w) - ln q(w) of row r. */
static double log_weight_of(const dv_importance *m, int r) {
  const dvbf_program *p = &m->program;
  const dvbf_real *ln_p = dvbf_at(&m->worker.run, p->ln_p);
  double sum = dv_log_ratio_first(&m->worker, r);
  for (int t = 0; t < p->steps; t++) {
    sum += (double)ln_p[(size_t)t * (size_t)p->rows + (size_t)r] +
           dv_frame_jacobian(&m->worker, m->jacobian, t, r);
    if (t + 1 < p->steps) sum += dv_log_ratio(&m->worker, t, r);
  }
  return sum;
}

static void copy_path(const dv_importance *m, int r, dvbf_real *z /* [most][n_z] */) {
  size_t n = (size_t)m->model->n_z;
  for (int t = 0; t < m->program.steps; t++)
    memcpy(z + (size_t)t * n, dvbf_at(&m->worker.run, dvbf_steps(m->program.z, t, 1)) + (size_t)r * n,
           n * sizeof *z);
}

double dv_importance_run(dv_importance *m, const dvbf_sequences *s, size_t i, uint64_t seed) {
  size_t rows = (size_t)m->program.rows;
  m->conditions = dv_model_conditions(m->model, dv_sequence_seed(seed, i));
  for (size_t r = 0; r < rows; r++) m->index[r] = (uint32_t)i;
  dv_worker_load(&m->worker, s, m->index, (int)rows, m->program.steps);
  for (size_t first = 0; first < m->paths && !dv_interrupted(m->worker.run.interrupt); first += rows) {
    for (size_t r = 0; r < rows; r++) m->key[r] = (uint32_t)(first + r);
    dv_run_forward(&m->worker.run);
    for (size_t r = 0; r < rows && first + r < m->paths; r++) {
      m->log_weight[first + r] = log_weight_of(m, (int)r);
      if (m->z) copy_path(m, (int)r, m->z + (first + r) * m->most * (size_t)m->model->n_z);
    }
  }
  return dv_log_sum_exp(m->log_weight, m->paths) - dv_log((double)m->paths);
}
