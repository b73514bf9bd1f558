/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of l3fwd: read from a file, or made from a seed. */
#ifndef VNF_ROUTES_H
#define VNF_ROUTES_H

#include "l3fwd.h"
#include "lines.h"

#define ROUTES_MAX 1048576u
#define HOPS_MAX 32767u /* a table entry has two bytes, one bit of which belongs to the table */

struct route {
	uint32_t prefix; /* host order */
	uint16_t hop;	 /* index */
	uint8_t bits;
};

struct routes {
	struct route *routes;
	struct hop *hops;
	uint32_t count, hop_count;
	uint32_t room; /* of routes */
};

/*
 * Lines "PREFIX/BITS PORT [MAC]"; the default MAC is the port's next hop. "#" begins a comment.
 * 0, or -1 with the error's text, which names the line.
 */
int routes_read(struct routes *routes, const char *path, const struct port_setup *port,
		unsigned ports, struct lines_error *error);

/*
 * Make `count` different routable prefixes between 1.0.0.0 and 223.255.255.255, spread over the
 * ports. Their lengths are distributed as in the Internet's table (three of five have 24 bits). The
 * same seed makes the same routes. 0, or -1: no memory.
 */
int routes_generate(struct routes *routes, uint32_t count, uint64_t seed,
		    const struct port_setup *port, unsigned ports);

/* One more. 0, or -1: no memory, or too many routes or hops. */
int routes_add(struct routes *routes, uint32_t prefix, uint8_t bits, const struct hop *hop);

void routes_close(struct routes *routes);

#endif
