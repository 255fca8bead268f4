/* What keeps the states of a model from growing, as JSON. */
#include "report/json.h"

#include <math.h>

static json_t *member_json(const dvbf_member_stability *m) {
  return json_pack("{s:b, s:b, s:I, s:s, s:o, s:I, s:o, s:o, s:s}", "contracts", m->contracts, "bounded",
                   m->bounded, "systems", (json_int_t)m->systems, "measure", m->measure, "length",
                   dv_json_number(m->length), "draws", (json_int_t)m->draws, "drawn",
                   dv_json_number(m->drawn), "reach",
                   m->reach ? dv_json_numbers(m->reach, m->n_z) : json_null(), "sentence", m->sentence);
}

bool dv_json_stability(json_t *object, const dvbf_stability *s) {
  json_t *members = json_array();
  bool good = members;
  for (size_t i = 0; good && i < s->n_members; i++)
    good = !json_array_append_new(members, member_json(&s->members[i]));
  if (!good) {
    json_decref(members);
    return false;
  }
  return !json_object_set_new(object, "stability",
                              json_pack("{s:b, s:b, s:o, s:s, s:o}", "contracts", s->contracts, "bounded",
                                        s->bounded, "length", dv_json_number(s->length), "sentence",
                                        s->sentence, "members", members));
}
