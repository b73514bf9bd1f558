/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load balancer: port 0 has the NIC, each other port a worker. Packets from port 0 go to the worker
 * of their flow, and packets from workers leave by port 0. Workers are chosen by rendezvous
 * hashing (D. G. Thaler, C. V. Ravishankar: Using name-based mappings to increase hit rates,
 * IEEE/ACM Transactions on Networking 6(1), 1998): each worker has a weight for each flow, and the
 * flow goes to the worker with the largest weight among those that are up. If a worker leaves, only
 * its own flows move; a new worker takes an even share from all others. There is no table to
 * rebuild.
 */
#ifndef VNF_LB_H
#define VNF_LB_H

#include <stdatomic.h>
#include <stdbool.h>

#include "port_setup.h"

/* What threads that handle packets tell the one that decides which workers are up. */
struct lb_news {
	_Atomic uint32_t leaving;	   /* a bit for each port whose worker announced that */
	_Atomic uint32_t heard[PORTS_MAX]; /* announcements */
};

struct lb {
	_Atomic uint32_t up;	     /* a bit for each port whose worker is up */
	_Atomic uint64_t rebalances; /* how often it changed since the first time */
	struct lb_news *news;
	bool announced;	     /* a worker is down until it announces itself */
	uint64_t silence_ns; /* so long a worker that announced itself may say nothing */

	/* of the thread that decides */
	uint32_t known;		     /* a bit for each port whose worker announced itself */
	uint32_t counted[PORTS_MAX]; /* announcements, when it last looked */
	uint64_t at[PORTS_MAX];	     /* time of the last one */
};

/* 0, or -1: no memory. */
int lb_open(struct lb *lb, bool announced, uint64_t silence_ns);
void lb_close(struct lb *lb);

/*
 * Which workers are up: those whose port has a link, unless they are leaving or have fallen silent.
 * If all are silent, it is rather this program that did not run, and none is passed over.
 */
uint32_t lb_members(struct lb *lb, uint32_t links, uint64_t now_ns);

/* Set which workers are up. Only one thread may call it; others handle packets meanwhile. */
void lb_first(struct lb *lb, uint32_t up);
void lb_change(struct lb *lb, uint32_t up);

enum reason lb_handle(const struct lb *lb, const struct packet *p, struct change *c);

/* The worker's port; `up` is not 0. */
unsigned lb_pick(uint32_t up, uint64_t hash);

#endif
