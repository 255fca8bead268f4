/* Macros that turn the lines of settings_*.def into names of choices (DV_LINES 1), fields of structs (2),
 * entries of tables (3) or a list of the tables (4). Define DV_LINES, include this and then the lines;
 * including it again without DV_LINES ends that. */
#undef TABLE
#undef END
#undef CLOSE
#undef ALSO
#undef INT
#undef REAL
#undef SWITCH
#undef TEXT
#undef CHOICE
#undef LISTED
#undef OF
#undef ENTRY
#undef FOR
#undef COMMON
#undef RECIPE
#undef SET
#undef BEGIN

#if DV_LINES == 1 || DV_LINES == 4
#define INT(...)
#define REAL(...)
#define SWITCH(...)
#define TEXT(...)
#define LISTED(...)
#define TABLE(type)
#define CLOSE(type)
#endif

#if DV_LINES == 1
#define END(type, called)
#define ALSO(type, called)
#define CHOICE(field, name, initial, choices, ...) enum { choices };
#define OF(number, text) number,
#endif

#if DV_LINES == 2
#define TABLE(type) typedef struct dv_##type##_settings {
#define CLOSE(type)                                                                                          \
  }                                                                                                          \
  dv_##type##_settings;
#define END(type, called) CLOSE(type) DV_ACCESS(type, called)
#define ALSO(type, called)
#define INT(field, ...) int64_t field;
#define REAL(field, ...) double field;
#define SWITCH(field, ...) int64_t field;
#define TEXT(field, ...) char field[DV_TEXT];
#define LISTED(field, ...) int64_t field;
#define CHOICE(field, ...) int64_t field;
#endif

/* Entries: a dv_setting each, whose value lies in STRUCT, which the file defines, BEGIN bytes behind the
 * first value. The default is kept as text, as help prints it. */
#if DV_LINES == 3
#define TABLE(type) static const dv_setting type##_entries[] = {
#define CLOSE(type)                                                                                          \
  }                                                                                                          \
  ;
#define END(type, called) CLOSE(type)
#define ALSO(type, called)
#define ENTRY(at, ...) {.offset = offsetof(STRUCT, at) + (BEGIN), .of = SET, __VA_ARGS__},
#define INT(field, called, first, least, most, heading, text)                                                \
  ENTRY(field, .kind = DV_KIND_INT, .name = called, .initial = #first, .low = least, .high = most,           \
        .help = text, .group = heading)
#define REAL(field, called, first, least, most, heading, text)                                               \
  ENTRY(field, .kind = DV_KIND_REAL, .name = called, .initial = #first, .low = least, .high = most,          \
        .help = text, .group = heading)
#define SWITCH(field, called, first, heading, text)                                                          \
  ENTRY(field, .kind = DV_KIND_SWITCH, .name = called, .initial = first, .choices = "off|on", .help = text,  \
        .group = heading)
#define TEXT(field, called, first, heading, text)                                                            \
  ENTRY(field, .kind = DV_KIND_TEXT, .name = called, .initial = first, .help = text, .group = heading)
#define CHOICE(field, called, first, list, heading, text)                                                    \
  ENTRY(field, .kind = DV_KIND_CHOICE, .name = called, .initial = first, .choices = &(list)[1],              \
        .help = text, .group = heading)
#define LISTED CHOICE
#define OF(number, text) "|" text
#define FOR(set, heading) heading, .only = set
#define COMMON(heading) heading, .common = true /* short help lists it */
#define RECIPE(heading) heading, .recipe = true /* help does not list it */
#define SET NULL
#define BEGIN 0
#endif

#if DV_LINES == 4
#define CHOICE(...)
#define END ALSO
#define ALSO(type, called)                                                                                   \
  {.name = called,                                                                                           \
   .settings = type##_entries,                                                                               \
   .count = sizeof type##_entries / sizeof *type##_entries,                                                  \
   .size = sizeof(dv_##type##_settings)},
#endif
#undef DV_LINES
