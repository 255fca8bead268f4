/* Dates, times of day and units of time in text tables (dv_read_date, dv_read_clock, dv_seconds_of): ISO 8601
 * or day.month.year, with a time zone or none. */
#include "io/csv.h"

#include <stdint.h>
#include <strings.h>

/* A whole number of `least` to `most` digits. */
static bool take_digits(dv_cursor *text, int least, int most, int *out) {
  int digits = 0;
  for (*out = 0; digits < most && dv_cursor_at_digit(text); digits++, text->at++)
    *out = 10 * *out + (*text->at - '0');
  return digits >= least && !dv_cursor_at_digit(text);
}

/* Days from 1970-01-01 in the Gregorian calendar. Years begin with March, so that the leap day is last. */
static double days_until(int year, int month, int day) {
  int y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
  int64_t days = 365LL * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
  return (double)(days - 719468);
}

static bool take_day(dv_cursor *text, double *days) {
  dv_cursor start = *text;
  int year = 0, month = 0, day = 0;
  bool first = take_digits(text, 4, 4, &year); /* year first, or day.month.year */
  char between = '.';
  if (first) between = dv_cursor_peek(text) == '/' ? '/' : '-';
  if (!first) *text = start;
  bool good = (first || take_digits(text, 1, 2, &day)) && dv_cursor_take(text, between) &&
              take_digits(text, 1, 2, &month) && dv_cursor_take(text, between) &&
              (first ? take_digits(text, 1, 2, &day) : take_digits(text, 4, 4, &year));
  if (!good || month < 1 || month > 12 || day < 1 || day > 31) return false;
  *days = days_until(year, month, day);
  return true;
}

static bool take_clock(dv_cursor *text, double *seconds) {
  int hour, minute, second = 0;
  if (!take_digits(text, 1, 2, &hour) || !dv_cursor_take(text, ':') || !take_digits(text, 2, 2, &minute))
    return false;
  if (dv_cursor_take(text, ':') && !take_digits(text, 2, 2, &second)) return false;
  if (hour > 24 || minute > 59 || second > 60) return false;
  double value = 3600.0 * hour + 60.0 * minute + second, share = 0.1;
  if (dv_cursor_take(text, '.') || dv_cursor_take(text, ','))
    for (; dv_cursor_at_digit(text); text->at++, share /= 10) value += share * (*text->at - '0');
  *seconds = value;
  return true;
}

/* Z, +01:00, +0100 or +01; *east = seconds that the clock is ahead of UTC. */
static bool take_zone(dv_cursor *text, double *east) {
  int hours, minutes = 0;
  *east = 0;
  if (dv_cursor_take(text, 'Z') || dv_cursor_take(text, 'z') || !dv_cursor_left(text)) return true;
  bool west = dv_cursor_take(text, '-');
  if (!west && !dv_cursor_take(text, '+')) return false;
  dv_cursor rest = *text;
  if (!take_digits(text, 2, 2, &hours)) { /* four digits */
    *text = rest;
    if (!take_digits(text, 4, 4, &hours)) return false;
    minutes = hours % 100;
    hours /= 100;
  } else if (dv_cursor_take(text, ':') && !take_digits(text, 2, 2, &minutes)) {
    return false;
  }
  *east = (west ? -60.0 : 60.0) * (60.0 * hours + minutes);
  return true;
}

bool dv_read_date(dv_cursor text, double *seconds) {
  double days, clock = 0, east = 0;
  if (!take_day(&text, &days)) return false;
  if (dv_cursor_left(&text)) {
    if (!dv_cursor_take(&text, 'T') && !dv_cursor_take(&text, 't') && !dv_cursor_take(&text, ' '))
      return false;
    dv_cursor_skip(&text, " ");
    if (!take_clock(&text, &clock)) return false;
    dv_cursor_skip(&text, " ");
    dv_cursor_take_text(&text, "UTC");
    if (!take_zone(&text, &east)) return false;
  }
  *seconds = 86400 * days + clock - east;
  return !dv_cursor_left(&text);
}

bool dv_read_clock(dv_cursor text, double *seconds) {
  return take_clock(&text, seconds) && !dv_cursor_left(&text);
}

double dv_seconds_of(const char *unit) {
  static const struct {
    const char *name;
    double seconds;
  } known[] = {{"s", 1},       {"sec", 1},          {"secs", 1},         {"second", 1},
               {"seconds", 1}, {"ms", 1e-3},        {"msec", 1e-3},      {"us", 1e-6},
               {"usec", 1e-6}, {"\xc2\xb5s", 1e-6}, {"\xce\xbcs", 1e-6}, {"ns", 1e-9},
               {"min", 60},    {"minute", 60},      {"minutes", 60},     {"h", 3600},
               {"hr", 3600},   {"hour", 3600},      {"hours", 3600},     {"d", 86400},
               {"day", 86400}, {"days", 86400}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcasecmp(unit, known[i].name)) return known[i].seconds;
  return 0;
}

double dv_epoch_unit(double value) {
  const double first = 946684800, last = 4102444800; /* the years 2000 to 2100 */
  static const double units[] = {1, 1e-3, 1e-6, 1e-9};
  for (int i = 0; i < 4; i++)
    if (value * units[i] >= first && value * units[i] <= last) return units[i];
  return 0;
}
