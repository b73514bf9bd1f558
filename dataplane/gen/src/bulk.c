/* SPDX-License-Identifier: Apache-2.0 */
/* The option --bulk, read from the command line. */
#include "bulk.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dscp.h"
#include "options.h"
#include "packet.h"

#define SIZE 1514u /* bytes: a full frame of Ethernet */

enum field { F_SIZE, F_DSCP, F_FLOWS };

static bool read_field(int field, const char *value, struct bulk *b)
{
	uint64_t number;

	if (!units_number(value, &number))
		return false;
	switch (field) {
	case F_SIZE:
		b->size = (uint32_t)number;
		return number <= FRAME_MAX;
	case F_DSCP:
		b->dscp = (uint8_t)number;
		return number <= DSCP_MAX;
	default:
		b->flows = (uint32_t)number;
		return number >= 1 && number < PACKET_FLOWS;
	}
}

const char *bulk_read(const char *text, struct bulk *b)
{
	char *const names[] = {"size", "dscp", "flows", NULL};
	char copy[80], *fields = copy, *rate, *value;

	if (strlen(text) >= sizeof(copy))
		return "is too long";
	strcpy(copy, text);
	*b = (struct bulk){.size = SIZE, .flows = 1};
	rate = strsep(&fields, ",");
	if (!units_rate(rate, &b->rate) || b->rate.per_second == 0)
		return "does not begin with a rate, such as 1000pps or 20Mbps";
	while (fields && *fields) {
		int field = getsubopt(&fields, names, &value);

		if (field < 0)
			return "has a field other than size, dscp and flows";
		if (!value || !read_field(field, value, b))
			return "has an impossible value";
	}
	return NULL;
}
