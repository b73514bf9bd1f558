/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of DPDK applications on one link, each on a core of its own. All are started once, and paused; one at a time is resumed and measured for a moment. So
 * many can be measured in turns in a short time, and none has just been started when it is.
 */
#ifndef PMD_BENCH_PAIRS_H
#define PMD_BENCH_PAIRS_H

#include <stdbool.h>

#include "broker.h"
#include "process.h"

#define START_S 20.0

/* Where things are. */
struct place {
	const char *driver;    /* librte_net_dray.so */
	const char *generator; /* draygen-dpdk; NULL: none */
	const char *vnf;       /* dray-vnf; NULL: none */
	char trips[256];       /* dray-pmd-trips */
	const char *scripts;   /* folder of switch.sh and container.sh */
	char directory[64];    /* for sockets and logs; removed at the end */
	int cpus[2];	       /* of the sender, of the receiver or what is in between */
	double seconds;	       /* of each measurement */
	uint64_t end_ns;       /* nothing is begun later */
	unsigned made;	       /* pairs so far */
};

/* A way to join two applications. {d} in the texts is the pair's directory. */
struct way {
	const char *name;
	const char *sender, *receiver;	 /* --vdev of each, and what else EAL needs */
	const char *application;	 /* further arguments of the sending testpmd */
	int dray;			 /* it takes a broker, and the driver */
	int waits;			 /* the receiver starts only when the sender does */
};

struct pair {
	struct process sender, receiver, between;
	struct broker *broker[2];
	bool container; /* what is between is in one */
	char directory[80];
	unsigned size;	 /* of the frames that the sender is set to */
	const char *why; /* it cannot be measured, or not any more: why */
};

/* Find two CPUs, and make the directory. Exits where that fails. */
void place_begin(struct place *place);

/* No time is left. */
bool place_late(const struct place *place);

/* Remove it. A signal handler may call it. */
void place_end(const struct place *place);

/* Testpmd on either side: txonly to rxonly. A way without receiver: the sender alone. */
void testpmd_start(struct place *place, const struct way *way, struct pair *pair);

/* Packets a second that the receiver counts; that the sender counts, where there is none. 0: it failed. */
double testpmd_rate(const struct place *place, struct pair *pair, unsigned size);

/* One frame to and fro between two dray-pmd-trips, on the devices of testpmd's. */
void trips_start(struct place *place, const struct way *way, struct pair *pair);

/* Median round trip, in ns; 0: it failed. */
double trips_p50(const struct place *place, struct pair *pair);

/* A generator and a sink on libdray's ports, without DPDK. */
void native_start(struct place *place, unsigned size, struct pair *pair);

/* A generator alone, in a role on a null port: what it can do itself. */
void ceiling_start(struct place *place, const char *role, struct pair *pair);

/* A generator with two ports, and Open vSwitch between them on the other core: `kind` is "dray" or "vhost". */
void switch_start(struct place *place, const char *kind, unsigned size, struct pair *pair);

/* The same with dray-vnf l2fwd between; `container`: in one, else a plain process. */
void forward_start(struct place *place, int container, unsigned size, struct pair *pair);

/* Packets a second that the generator receives, or sends if it does nothing else; 0: it failed. */
double generator_rate(const struct place *place, struct pair *pair);

/* The same, and cycles that dray-vnf takes for a packet. */
double forward_rate(const struct place *place, struct pair *pair, double *cycles);

/* Resume all of a pair, receivers first; pause it, senders first. */
void pair_resume(const struct pair *pair);
void pair_pause(const struct pair *pair);

/* Have its container go, if it has one: runc then removes the control groups it has made. A signal handler may call it. */
void pair_end_container(struct pair *pair);

/* End it. */
void pair_end(struct pair *pair);

/* For the sources of this folder: a pair without processes, with so many brokers, each in a directory of its own. */
void pair_begin(struct place *place, struct pair *pair, unsigned brokers);

/* Append text, in which {d} is the pair's directory, {e} that of its second link. */
void pair_text(const struct pair *pair, struct command *command, const char *text);

/* EAL's arguments for an application on one of the two CPUs, and these devices. */
void pair_eal(const struct place *place, const struct pair *pair, int side, const char *devices, int dray, struct command *command);

/* As process_start, with a log of that name. */
struct process pair_run(const struct pair *pair, const struct command *command, const char *name);

/* It has failed: end it, for this reason. Returns 0. */
double pair_failed(struct pair *pair, const char *why);

#endif
