/* SPDX-License-Identifier: Apache-2.0 */
/* The routes in DPDK's DIR-24-8 table: one or two memory accesses for a longest match. */
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_lcore.h>
#include <stdio.h>
#include <stdlib.h>

#include "program.h"

/* of 256 entries for prefixes over 24 bits, that entries of two bytes can number */
#define SMALL_GROUPS 32766u
#define LARGE_GROUPS 8388606u

static int make_routes(struct program *p, struct routes *r)
{
	const struct options *o = &p->options;
	struct lines_error error = {"no memory for the routes"};
	struct hop hop = {.port = (uint8_t)o->default_route};
	int ret;

	if (o->routes_path)
		ret = routes_read(r, o->routes_path, p->function.port, p->ports, &error);
	else
		ret = routes_generate(r, o->routes, o->seed, p->function.port, p->ports);
	if (ret == 0 && o->has_default_route) {
		memcpy(hop.mac, p->function.port[o->default_route].next, MAC);
		ret = routes_add(r, 0, 0, &hop);
	}
	if (ret < 0)
		fprintf(stderr, "dray-vnf: %s\n", error.text);
	return ret;
}

/* Each prefix over 24 bits takes at most one group. */
static uint32_t long_prefixes(const struct routes *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->count; i++)
		n += r->routes[i].bits > 24;
	return n;
}

static int make_fib(struct program *p, const struct routes *r)
{
	static unsigned made; /* table names are unique in a process: the bench has several */
	char name[32];
	uint32_t groups = long_prefixes(r) + 1;
	bool large = groups > SMALL_GROUPS;
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = HOPS_MAX,
		.max_routes = (int)r->count + 1,
		.dir24_8 = {.nh_sz = large ? RTE_FIB_DIR24_8_4B : RTE_FIB_DIR24_8_2B,
			    .num_tbl8 = groups < LARGE_GROUPS ? groups : LARGE_GROUPS}};
	/*
	 * The memory that EAL needs in all: the table, its tree of routes (measured: up to 440
	 * bytes each), packets, and EAL's own.
	 */
	uint32_t bytes_of_group = large ? 1024 : 512;
	uint32_t megabytes =
		(large ? 64 : 32) +
		(uint32_t)((groups * (uint64_t)bytes_of_group + r->count * UINT64_C(440)) >> 20) +
		24;

	p->no_hop = HOPS_MAX;
	snprintf(name, sizeof(name), "dray-vnf-%u", made++);
	p->fib = rte_fib_create(name, (int)rte_socket_id(), &conf);
	if (!p->fib) {
		fprintf(stderr,
			"dray-vnf: no table for %u routes: it takes about %u MB of EAL's memory: "
			"give EAL a larger -m\n",
			r->count, megabytes);
		return -1;
	}
	for (uint32_t i = 0; i < r->count; i++) {
		int ret = rte_fib_add(p->fib, r->routes[i].prefix, r->routes[i].bits,
				      r->routes[i].hop);

		if (ret < 0) {
			fprintf(stderr, "dray-vnf: route %u of %u does not go into the table: %s\n",
				i + 1, r->count, rte_strerror(-ret));
			return -1;
		}
	}
	return 0;
}

int fib_open(struct program *p)
{
	struct routes r = {0};
	int ret = -1;

	if (make_routes(p, &r) == 0)
		ret = make_fib(p, &r);
	p->hops = r.hops;
	r.hops = NULL;
	routes_close(&r);
	return ret;
}

void fib_close(struct program *p)
{
	rte_fib_free(p->fib);
	free(p->hops);
}
