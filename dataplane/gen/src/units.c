/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units. */
#include "units.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A non-negative decimal number without exponent; returns what follows it, or NULL. */
static const char *decimal(const char *text, double *value)
{
	size_t digits = strspn(text, "0123456789.");
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	errno = 0;
	*value = strtod(text, &end);
	return errno || end != text + digits ? NULL : end;
}

static double prefix(const char **text)
{
	switch (**text) {
	case 'k':
		(*text)++;
		return 1e3;
	case 'M':
		(*text)++;
		return 1e6;
	case 'G':
		(*text)++;
		return 1e9;
	default:
		return 1;
	}
}

static bool whole(double value, uint64_t *to)
{
	if (value > 9e18)
		return false;
	*to = (uint64_t)(value + 0.5);
	return true;
}

bool units_number(const char *text, uint64_t *value)
{
	size_t digits = strspn(text, "0123456789");
	double number;
	char *end;

	if (digits && text[digits] == '\0') {
		errno = 0;
		*value = strtoull(text, &end, 10);
		return errno == 0;
	}
	text = decimal(text, &number);
	if (!text)
		return false;
	number *= prefix(&text);
	return *text == '\0' && whole(number, value);
}

bool units_between(const char *text, uint32_t low, uint32_t high, uint32_t *value)
{
	uint64_t wide;

	if (!units_number(text, &wide) || wide < low || wide > high)
		return false;
	*value = (uint32_t)wide;
	return true;
}

bool units_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	double number;

	text = decimal(text, &number);
	if (!text)
		return false;
	if (*text == '\0') {
		*ns = 0;
		return number == 0;
	}
	for (unsigned i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(text, units[i].name) == 0)
			return whole(number * units[i].ns, ns);
	return false;
}

bool units_rate(const char *text, struct rate *rate)
{
	double number;

	*rate = (struct rate){0};
	if (strcmp(text, "max") == 0)
		return true;
	text = decimal(text, &number);
	if (!text)
		return false;
	number *= prefix(&text);
	rate->bits = strcmp(text, "bps") == 0;
	return (rate->bits || strcmp(text, "pps") == 0) && whole(number, &rate->per_second) &&
	       rate->per_second > 0;
}
