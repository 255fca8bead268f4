/* A recording that makes no sense is refused with a sentence. */
#include "small_model.h"

#include <cmocka.h>

typedef void recording(dvbf_graph *g);

static void wrong_layer(dvbf_graph *g) {
  dvbf_layer l = {.out = dvbf_slab(g, 2, 3), .bias = DVBF_NONE, .n_in = 1};
  l.in[0].x = dvbf_slab(g, 2, 4);
  l.in[0].w = dvbf_parameter(g, "w", 5, 3, (dvbf_first){0});
  dvbf_layer_whole(g, &l);
}

/* Training would have to learn from an input that all rows share. */
static void shared_input(dvbf_graph *g) {
  dvbf_layer l = {.out = dvbf_slab(g, 2, 3), .n_in = 1};
  l.bias = dvbf_parameter(g, "b", 1, 3, (dvbf_first){0});
  l.in[0].x = dvbf_slab_shared_constant(g, 2, 5);
  l.in[0].w = dvbf_parameter(g, "w", 5, 3, (dvbf_first){0});
  dvbf_layer_whole(g, &l);
}

static void layer_without_inputs(dvbf_graph *g) {
  dvbf_layer l = {.out = dvbf_slab(g, 2, 3), .bias = DVBF_NONE};
  dvbf_layer_open(g, &l);
}

static void wrong_mixture(dvbf_graph *g) {
  dvbf_mixture m = {.z = dvbf_slab(g, 2, 3),
                    .u = DVBF_NONE,
                    .w = dvbf_slab(g, 2, 3),
                    .alpha = DVBF_NONE,
                    .v = dvbf_slab_shared(g, 1, 17),
                    .next = dvbf_slab(g, 2, 3),
                    .systems = 1,
                    .parts = dvbf_slab_constant(g, 2, 3)};
  dvbf_mixture_open(g, &m);
}

static void wrong_innovation(dvbf_graph *g) {
  dvbf_innovation i = {.w = dvbf_slab(g, 1, 3),
                       .kl = dvbf_slab(g, 1, 1),
                       .head = dvbf_slab(g, 1, 5),
                       .noise = dvbf_slab_constant(g, 1, 3),
                       .use = DVBF_NONE};
  dvbf_innovation_step(g, &i, -1);
}

static void wrong_state(dvbf_graph *g) {
  dvbf_state s = {.z = dvbf_slab(g, 2, 3),
                  .kl = dvbf_slab(g, 2, 1),
                  .q = dvbf_slab(g, 2, 6),
                  .p = dvbf_slab(g, 2, 5),
                  .noise = dvbf_slab_constant(g, 2, 3),
                  .use = dvbf_slab_constant(g, 2, 1),
                  .seen = 2};
  dvbf_state_kl(g, &s);
}

static void state_not_seen(dvbf_graph *g) {
  dvbf_state s = {.z = dvbf_slab(g, 2, 3),
                  .kl = dvbf_slab(g, 2, 1),
                  .q = dvbf_slab(g, 1, 6),
                  .p = dvbf_slab(g, 2, 6),
                  .noise = dvbf_slab_constant(g, 2, 3),
                  .use = dvbf_slab_constant(g, 2, 1),
                  .seen = 1};
  dvbf_state_sample(g, &s, -1);
}

static void wrong_sum(dvbf_graph *g) {
  dvbf_add(g, dvbf_slab(g, 2, 3), dvbf_slab(g, 2, 3), dvbf_slab(g, 2, 4));
}

static void wrong_sides(dvbf_graph *g) {
  dvbf_side_by_side(g, dvbf_slab(g, 1, 5), dvbf_slab(g, 2, 3));
}

static void wrong_parameter(dvbf_graph *g) {
  dvbf_parameter(g, "w", 2, 3, (dvbf_first){0});
  dvbf_parameter(g, "w", 3, 2, (dvbf_first){0});
}

static void empty_slab(dvbf_graph *g) {
  dvbf_slab(g, 2, 0);
}

/* Two billion rows, or numbers in a row of all: more than ops count. */
static void too_many_rows(dvbf_graph *g) {
  dvbf_slab(g, (1 << 28) + 1, 1);
}

static void too_wide(dvbf_graph *g) {
  dvbf_slab(g, 1, (1 << 28) + 1);
}

static void just_fits(dvbf_graph *g) {
  dvbf_slab(g, 1 << 28, 1);
  dvbf_slab(g, 1, 1 << 28);
  dvbf_refuse(g, "nothing but this");
}

/* 65536 * 65536 is 0 in 32 bits, and 1000 * 4300000 negative. */
static void huge_image(dvbf_graph *g) {
  dvbf_convolve(g, &(dvbf_convolution){.x = dvbf_slab(g, 1, 4),
                                       .out = dvbf_slab(g, 1, 4),
                                       .w = dvbf_parameter(g, "w", 4, 1, (dvbf_first){0}),
                                       .bias = DVBF_NONE,
                                       .large = {65536, 65536, 1},
                                       .size = 2,
                                       .stride = 32768,
                                       .channels = 1});
}

static void too_many_inputs(dvbf_graph *g) {
  static const dvbf_op_class class = {"greedy", NULL, NULL, NULL};
  dvbf_value in[DVBF_MAX_IN + 1];
  for (int i = 0; i <= DVBF_MAX_IN; i++) in[i] = DVBF_NONE;
  dvbf_record(g, &class, DVBF_MAX_IN + 1, in, 0, NULL, NULL, 0);
}

static void two_refusals(dvbf_graph *g) {
  dvbf_refuse(g, "the first of %d", 2);
  dvbf_refuse(g, "the second");
}

static void refused_recordings_say_why(void **state) {
  (void)state;
  static const struct {
    recording *record;
    const char *sentence; /* a part of it */
  } cases[] = {
      {wrong_layer, "input 0 of a layer is [2][4][4] times [5][3]"},
      {shared_input, "input 0 of a layer is [2][1][5] times [5][3] for an output [2][4][3]"},
      {layer_without_inputs, "1 to 4 inputs, not 0"},
      {wrong_mixture, "mixture of 1 systems do not fit"},
      {wrong_innovation, "a head of 5 outputs cannot give 3 innovations"},
      {wrong_state, "[2][6] and [2][5] cannot give 2 steps of 3 states"},
      {state_not_seen, "q has seen 1 of 2 steps"},
      {wrong_sum, "different shapes cannot be added"},
      {wrong_sides, "2 steps of 3 do not make 5 columns"},
      {wrong_parameter, "parameter w is [2][3] where [3][2] is needed"},
      {empty_slab, "[2][4][0] cannot be recorded"},
      {too_many_rows, "[268435457][4][1] cannot be recorded: steps times rows"},
      {too_wide, "[1][4][268435457] cannot be recorded"},
      {just_fits, "nothing but this"},
      {huge_image, "a convolution of 65536 x 65536 x 1"},
      {too_many_inputs, "greedy has more than"},
      {two_refusals, "the first of 2"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dv_parameters parameters = {0};
    dvbf_error error = {0};
    dvbf_graph *g = dv_graph_new(&parameters, 4, true);
    cases[i].record(g);
    assert_int_equal(dv_graph_plan(g, &error), DVBF_ARGUMENT);
    if (!strstr(error.message, cases[i].sentence))
      fail_msg("\"%s\" lacks \"%s\"", error.message, cases[i].sentence);
    dv_graph_free(g);
    dv_parameters_free(&parameters);
  }
}

static void refused_programs_say_why(void **state) {
  (void)state;
  fixture f;
  dvbf_program p = {0};
  dvbf_error error = {0};
  begin(&f, "");
  assert_int_not_equal(dv_program_record(&p, f.model, 1, 4, 1, true, &error), DVBF_OK);
  assert_non_null(strstr(error.message, "at least 2"));
  assert_int_not_equal(dv_program_record(&p, f.model, STEPS, 4, 2, false, &error), DVBF_OK);
  assert_non_null(strstr(error.message, "initial-frames"));
  assert_null(p.graph);
  /* A complete model gets no new parameters. */
  dvbf_graph *g = dv_graph_new(&f.model->parameters, 4, false);
  dvbf_parameter(g, "unheard-of", 1, 1, (dvbf_first){0});
  assert_int_equal(dv_graph_plan(g, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "unheard-of"));
  dv_graph_free(g);
  end(&f);
}

/* An instruction set that is asked for and not there is refused, not replaced in silence. */
static void unknown_instruction_sets_are_refused(void **state) {
  (void)state;
  static const char *const asked[] = {"", "base", "v9", "V3"};
  for (int i = 0; i < 4; i++) {
    dvbf_error error = {.message = ""};
    dv_parameters parameters = {0};
    dvbf_graph *g = dv_graph_new(&parameters, 4, true);
    dvbf_slab(g, 1, 2);
    setenv("DVBF_ISA", asked[i], 1);
    dvbf_status status = dv_graph_plan(g, &error);
    unsetenv("DVBF_ISA");
    assert_int_equal(status, i < 2 ? DVBF_OK : DVBF_ARGUMENT);
    if (status) assert_non_null(strstr(error.message, asked[i]));
    dv_graph_free(g);
    dv_parameters_free(&parameters);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refused_recordings_say_why),
      cmocka_unit_test(refused_programs_say_why),
      cmocka_unit_test(unknown_instruction_sets_are_refused),
  };
  return cmocka_run_group_tests_name("recording", tests, NULL, NULL);
}
