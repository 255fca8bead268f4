/* Writes one gradient computation of DVBF-LL with everything that goes in and comes out, as NPY files, so
 * that a twin in another framework can be shown to compute the same: parameters, a minibatch, the noise; the
 * terms of the bound and the gradient of every parameter. Usage: bench_exchange FOLDER [BATCH [INITIAL [SIDE
 * CHANNELS]]], with the initial network "birnn" or "mlp"; with SIDE, convolutions of such images */
#include "picture_model.h"

#include "model/batches.h"
#include "train/updater.h"

#include <string.h>
#include <sys/stat.h>

/* float32, C order, version 1.0. */
static void write_npy(const char *folder, const char *name, const float *data, int a, int b, int c) {
  char path[512], header[128];
  snprintf(path, sizeof path, "%s/%s.npy", folder, name);
  FILE *f = fopen(path, "wb");
  if (!f) {
    perror(path);
    exit(1);
  }
  int used = snprintf(header, sizeof header,
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }", a, b, c);
  memset(header + used, ' ', sizeof header - (size_t)used);
  header[117] = '\n';
  fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
  fwrite(header, 1, 118, f);
  fwrite(data, sizeof *data, (size_t)a * (size_t)b * (size_t)c, f);
  fclose(f);
}

static void write_value(const char *folder, const char *name, const dvbf_run *run, dvbf_value v) {
  write_npy(folder, name, dvbf_at(run, v), v.steps, v.rows, v.cols);
}

static void write_parameters(const char *folder, const dv_parameters *p, const float *gradient) {
  for (size_t i = 0; i < p->count; i++) {
    char name[96];
    const dv_parameter *at = &p->list[i];
    snprintf(name, sizeof name, "parameter.%s", at->name);
    write_npy(folder, name, p->values + at->offset, 1, at->rows, at->cols);
    snprintf(name, sizeof name, "gradient.%s", at->name);
    write_npy(folder, name, gradient + at->offset, 1, at->rows, at->cols);
  }
}

/* Reconstruction, KL of w, KL of v, in nats per frame. */
static void write_terms(const char *folder, const dvbf_graph *graph, const dvbf_run *run, double scale) {
  static const char *const names[] = {DVBF_RECONSTRUCTION, DVBF_KL_W, DVBF_KL_V};
  float terms[3];
  for (int i = 0; i < 3; i++) terms[i] = (float)(run->terms[dv_graph_term(graph, names[i])] * scale);
  write_npy(folder, "terms", terms, 1, 1, 3);
}

/* Noise, and a model of it: of the pendulum's size, or of images of side x side x channels. */
static dvbf_model *make(dvbf_sequences *data, const char *folder, const char *initial, int batch, int side,
                        int channels) {
  picture_shape shape = {side, channels, 15};
  *data = side ? picture_data(&shape) : bench_data(500, 15, 256);
  if (side) write_npy(folder, "image", (float[]){0, (float)side, (float)channels}, 1, 1, 3);
  return side ? picture_model(data, &shape, initial, batch) : bench_model(data, initial, batch, NULL);
}

int main(int count, char **arguments) {
  if (count < 2) {
    fprintf(stderr, "usage: bench_exchange FOLDER [BATCH [INITIAL [SIDE CHANNELS]]]\n");
    return 2;
  }
  const char *folder = arguments[1], *initial = count > 3 ? arguments[3] : "birnn";
  int batch = count > 2 ? atoi(arguments[2]) : 20;
  if (batch < 1 || batch > (count > 4 ? 100 : 500)) batch = 20;
  mkdir(folder, 0777);
  dvbf_error error;
  dvbf_sequences data;
  dvbf_model *model = make(&data, folder, initial, batch, count > 4 ? atoi(arguments[4]) : 0,
                           count > 5 ? atoi(arguments[5]) : 1);
  dvbf_program program;
  dv_worker worker;
  dvbf_run *run = &worker.run;
  must(dv_program_record(&program, model, 15, batch, 15, true, &error), &error);
  must(dv_worker_init(&worker, model, &program, &data, &error), &error);
  dv_conditions conditions = dv_schedule_at(model->settings, 0, 1);
  dv_conditions_set(&conditions, DVBF_FILTER_DROPOUT, 0);
  dv_conditions_set(&conditions, DVBF_LOG_SIGMA_FLOOR, -4);
  dv_conditions_set(&conditions, DVBF_SEQUENCES, model->sequences);
  conditions.scale = 1.0 / (batch * 15.0);
  uint32_t *index = dv_calloc((size_t)batch, sizeof *index);
  for (int i = 0; i < batch; i++) index[i] = (uint32_t)i;
  run->gradient = dv_calloc_aligned(model->parameters.size, sizeof *run->gradient);
  run->conditions = &conditions;
  run->sequence = index;
  dv_worker_load(&worker, &data, index, batch, 15);
  dv_run_forward(run);
  dv_run_backward(run);
  write_value(folder, "x", run, program.x);
  write_value(folder, "u", run, program.u);
  write_value(folder, "noise.first", run, program.first.noise);
  write_value(folder, "noise.w", run, program.later.noise);
  write_value(folder, "noise.v", run, program.noise_v);
  write_parameters(folder, &model->parameters, run->gradient);
  write_terms(folder, program.graph, run, conditions.scale);
  dv_free(run->gradient);
  dv_free(index);
  dv_worker_clear(&worker);
  dv_program_clear(&program);
  dvbf_model_free(model);
  dvbf_sequences_free(&data);
  return 0;
}
