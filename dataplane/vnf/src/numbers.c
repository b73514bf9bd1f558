/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as users write them. */
#include "numbers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool number_read(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, hexadecimal ? 16 : 10);
	return errno == 0 && *end == '\0' && *value >= low && *value <= high;
}

bool number_read32(const char *text, uint32_t low, uint32_t high, uint32_t *value)
{
	uint64_t wide;

	if (!number_read(text, low, high, &wide))
		return false;
	*value = (uint32_t)wide;
	return true;
}

bool number_ip4(const char *text, uint32_t *address)
{
	struct in_addr in;

	if (inet_pton(AF_INET, text, &in) != 1)
		return false;
	*address = ntohl(in.s_addr);
	return true;
}

bool number_prefix(const char *text, uint32_t *address, uint8_t *bits)
{
	const char *slash = strchr(text, '/');
	char copy[INET_ADDRSTRLEN];
	uint32_t length;

	if (!slash || (size_t)(slash - text) >= sizeof(copy) ||
	    !number_read32(slash + 1, 0, 32, &length))
		return false;
	memcpy(copy, text, (size_t)(slash - text));
	copy[slash - text] = '\0';
	*bits = (uint8_t)length;
	return number_ip4(copy, address) && (length == 32 || *address << length == 0);
}

bool number_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	double value;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	value = strtod(text, &end);
	for (unsigned i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(end, units[i].name) != 0 || value * units[i].ns > 1e17)
			continue;
		*ns = (uint64_t)(value * units[i].ns);
		return *ns > 0;
	}
	return false;
}

uint64_t number_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}
