/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of DPDK applications on one link, each on a core of its own. */
#ifndef PMD_BENCH_PAIRS_H
#define PMD_BENCH_PAIRS_H

/* Where things are. */
struct place {
	const char *driver;    /* librte_net_dray.so */
	const char *generator; /* draygen-dpdk; NULL: none */
	char directory[64];    /* for sockets and logs; removed at the end */
	int cpus[2];	       /* of the sender, of the receiver */
	double seconds;	       /* that a rate is measured for */
	const char *why;       /* the last pair that failed: why */
};

/* A way to join two applications. {d} in the texts is the directory. */
struct way {
	const char *name;
	const char *sender, *receiver;	 /* --vdev of each, and what else EAL needs */
	const char *application;	 /* further arguments of the sending testpmd */
	int dray;			 /* it takes a broker, and the driver */
	int waits;			 /* the receiver starts only when the sender does */
};

/* Find two CPUs, and make the directory. Exits where that fails. */
void place_begin(struct place *place);

/* A signal handler may call it. */
void place_end(const struct place *place);

/* Packets a second that the receiver counts, of testpmd txonly to rxonly; 0: it failed. */
double pair_rate(struct place *place, const struct way *way, unsigned size);

/* Packets a second of testpmd txonly on the null device, of which nothing gets anywhere. */
double null_rate(struct place *place, unsigned size);

/* Median round trip of one 64 B packet between two generators, in ns; 0: it failed. */
double pair_round_trip(struct place *place, const struct way *way);

#endif
