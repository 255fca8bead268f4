/* Macros that turn the lines of settings_*.def into names of choices, fields of a struct, or entries of a
 * table. Define DV_LINES as 1, 2 or 3, include this and then the lines; including it again without DV_LINES
 * ends that. */
#undef INT
#undef REAL
#undef SWITCH
#undef TEXT
#undef CHOICE
#undef LISTED
#undef OF
#undef ENTRY
#undef FOR
#undef AFTER
#undef COMMON
#undef SET
#undef BEGIN
#undef OPEN
#undef CLOSE

#if DV_LINES == 1
#define INT(...)
#define REAL(...)
#define SWITCH(...)
#define TEXT(...)
#define LISTED(...)
#define CHOICE(field, name, initial, choices, ...) enum { choices };
#define OF(number, text) number,
#define OPEN(type)
#define CLOSE(type)
#endif

#if DV_LINES == 2
#define INT(field, ...) int64_t field;
#define REAL(field, ...) double field;
#define SWITCH(field, ...) int64_t field;
#define TEXT(field, ...) char field[DV_TEXT];
#define LISTED(field, ...) int64_t field;
#define CHOICE(field, ...) int64_t field;
/* The struct of a file with several. */
#define OPEN(type) typedef struct dv_##type##_settings {
#define CLOSE(type)                                                                                          \
  }                                                                                                          \
  dv_##type##_settings;
#endif

/* Entries: a dv_setting each, whose value lies in the struct that its file names, BEGIN bytes behind the
 * first value. The default is kept as text, as help prints it. */
#if DV_LINES == 3
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
#define AFTER(called, heading) heading, .after = called
#define COMMON(heading) heading, .common = true /* short help lists it */
#define OPEN(type) static const dv_setting type##_entries[] = {
#define CLOSE(type)                                                                                          \
  }                                                                                                          \
  ;
#define SET NULL
#define BEGIN 0
#endif
#undef DV_LINES
