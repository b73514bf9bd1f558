/* SPDX-License-Identifier: Apache-2.0 */
/* The program: a function, its ports, and the threads that work. */
#ifndef VNF_PROGRAM_H
#define VNF_PROGRAM_H

#include <rte_mempool.h>
#include <stdatomic.h>

#include "counters.h"
#include "options.h"
#include "report.h"
#include "routes.h"

#define STAGE_RING 1024u /* packets between two stages */

struct rte_fib;

struct program {
	struct options options;
	struct function function;
	struct report report;
	struct report_port names[PORTS_MAX];
	uint16_t device[PORTS_MAX]; /* port ids of ethdev, in the order of EAL's --vdev */
	unsigned ports;
	unsigned lcores; /* that work */
	struct rte_mempool *pool;
	struct rte_fib *fib; /* l3fwd */
	struct hop *hops;
	uint16_t no_hop;	   /* the table's answer if it has no route */
	struct counters *counters; /* of each working lcore */
	atomic_bool leaving;	   /* session: end as soon as no packet is lost by that */
	atomic_bool stop;
};

/* ports.c: errors are reported on standard error. 0 or -1. */
int ports_find(struct program *p);
int ports_open(struct program *p);
void ports_close(struct program *p);

/* table.c: p->fib from the routes of the options. 0 or -1. */
int fib_open(struct program *p);
void fib_close(struct program *p);

/* loops.c: run until p->stop; loops_lcores returns how many lcores that takes, or -1. */
int loops_lcores(const struct program *p);
int loops_run(struct program *p);

/*
 * links.c: which workers are up, by the links of their ports and what they announce. One thread
 * calls links_watch again when that may have changed.
 */
void links_open(struct program *p);
void links_watch(struct program *p);

/* control.c: block signals before the first thread starts. */
void control_block_signals(void);
int control_start(struct program *p);
void control_end(struct program *p);

#endif
