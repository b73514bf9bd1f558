/* SPDX-License-Identifier: Apache-2.0 */
/* Routes. */
#include "routes.h"

#include <stdlib.h>

#include "net.h"
#include "numbers.h"
#include "table.h"

static int hop_index(struct routes *r, const struct hop *hop)
{
	struct hop *more;

	/* The last ones first: in a file, routes with the same hop are often neighbours. */
	for (uint32_t i = r->hop_count; i-- > 0;)
		if (r->hops[i].port == hop->port && memcmp(r->hops[i].mac, hop->mac, MAC) == 0)
			return (int)i;
	if (r->hop_count == HOPS_MAX)
		return -1;
	more = reallocarray(r->hops, r->hop_count + 1, sizeof(*more));
	if (!more)
		return -1;
	r->hops = more;
	more[r->hop_count] = *hop;
	return (int)r->hop_count++;
}

static int append(struct routes *r, struct route route)
{
	if (r->count == r->room) {
		uint32_t room = r->room ? 2 * r->room : 256;
		struct route *more = reallocarray(r->routes, room, sizeof(*more));

		if (!more)
			return -1;
		r->routes = more;
		r->room = room;
	}
	r->routes[r->count++] = route;
	return 0;
}

int routes_add(struct routes *r, uint32_t prefix, uint8_t bits, const struct hop *hop)
{
	int index = r->count < ROUTES_MAX ? hop_index(r, hop) : -1;

	if (index < 0)
		return -1;
	return append(r, (struct route){.prefix = prefix, .bits = bits, .hop = (uint16_t)index});
}

struct reader {
	struct routes *routes;
	const struct port_setup *port;
	unsigned ports;
};

static const char *take_route(void *to, char *const *fields, unsigned n)
{
	const struct reader *reader = to;
	uint32_t prefix, number;
	struct hop hop;
	uint8_t bits;

	if (!number_prefix(fields[0], &prefix, &bits))
		return "its prefix is none, or has bits set behind it (want: 10.1.0.0/16)";
	if (n < 2 || !number_read32(fields[1], 0, reader->ports - 1, &number))
		return "after the prefix it lacks the number of a port that is there";
	hop.port = (uint8_t)number;
	memcpy(hop.mac, reader->port[number].next, MAC);
	if (n > 3 || (n == 3 && !mac_read(fields[2], hop.mac)))
		return "after the port there may be one MAC, and nothing else";
	return routes_add(reader->routes, prefix, bits, &hop) < 0
		       ? "it is one route or one next hop too many"
		       : NULL;
}

int routes_read(struct routes *r, const char *path, const struct port_setup *port, unsigned ports,
		struct lines_error *error)
{
	struct reader reader = {.routes = r, .port = port, .ports = ports};

	return lines_read(path, take_route, &reader, error);
}

/* Of a thousand prefixes in the Internet's table, by length from 8 bits on, rounded. */
static uint8_t random_bits(uint64_t random)
{
	static const uint16_t of_1000[] = {1,  1,   1,	 1,   1, 2, 3, 6, 14, 8, 13, 25, 42,
					   50, 110, 100, 600, 4, 4, 3, 3, 3,  3, 1,  1};
	uint32_t at = random % 1000, i = 0;

	while (at >= of_1000[i])
		at -= of_1000[i++];
	return (uint8_t)(8 + i);
}

static bool can_be_routed(uint32_t prefix)
{
	uint32_t first = prefix >> 24;

	return first >= 1 && first <= 223 && first != 127 && prefix >> 16 != 0xa9fe;
}

/*
 * One number for prefix and length: a bit after the prefix marks its end. A prefix of 32 bits has
 * no room for that bit and may collide with one of 31 bits: then one of the two is left out, and
 * another prefix is made instead.
 */
static uint32_t key_of(uint32_t prefix, uint8_t bits)
{
	return bits < 32 ? prefix | 1u << (31 - bits) : prefix;
}

int routes_generate(struct routes *r, uint32_t count, uint64_t seed, const struct port_setup *port,
		    unsigned ports)
{
	struct table seen;
	int ret = table_open(&seen, count);

	while (ret == 0 && r->count < count) {
		uint64_t random = number_random(&seed);
		uint8_t bits = random_bits(random >> 32);
		uint32_t prefix = (uint32_t)random & 0xffffffffu << (32 - bits);
		struct hop hop = {.port = (uint8_t)(r->count % ports)};

		memcpy(hop.mac, port[hop.port].next, MAC);
		if (can_be_routed(prefix) && table_put(&seen, key_of(prefix, bits), 0))
			ret = routes_add(r, prefix, bits, &hop);
	}
	table_close(&seen);
	return ret;
}

void routes_close(struct routes *r)
{
	free(r->routes);
	free(r->hops);
	*r = (struct routes){0};
}
