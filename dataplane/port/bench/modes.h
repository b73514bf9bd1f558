/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive mode, and how fast a link comes into being. */
#ifndef DRAY_BENCH_MODES_H
#define DRAY_BENCH_MODES_H

#include <stdint.h>

#include "link.h"

enum arrivals { ARRIVALS_REGULAR, ARRIVALS_RANDOM, ARRIVALS_BURSTS };

/* Packets of an adaptive link: one by one, at regular or at random times, or BURST at once. */
struct load {
	enum arrivals arrivals;
	unsigned pps, ms; /* pps 0: none */
};

struct loaded {
	double cpu;	/* of the receiver: % of a core */
	double starved; /* for how many % of the time an end was ready and had no CPU, which no library can help */
	double send_ns; /* of the sender, for a packet: handing it over, and waking the receiver if that sleeps */
};

/* Sends a load. One-way ns of packets, up to n of them, into ns[]. Returns how many. */
unsigned adaptive_load(struct link *link, const struct load *load, struct loaded *loaded, uint32_t *ns, unsigned n);

/* Nanoseconds from sending to receipt of n packets, each after the receiver has gone to sleep: over the link, a futex, a UNIX datagram socket. */
void first_packets(struct link *link, uint32_t *ns, unsigned n);
void first_futex(uint32_t *ns, unsigned n);
void first_socket(uint32_t *ns, unsigned n);

/* Nanoseconds from dray_open of the second end to its first packet, n times. */
void set_ups(const struct broker_options *options, uint32_t *ns, unsigned n);

#endif
