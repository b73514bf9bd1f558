/* SPDX-License-Identifier: Apache-2.0 */
/* libdray under load: both ends in this process, on their own cores. */
#ifndef DRAY_BENCH_LINK_H
#define DRAY_BENCH_LINK_H

#include "broker.h"
#include "dray.h"

struct link {
	struct broker *broker;
	struct dray_port *a, *b;
};

/* spin_us is 0, the default, but for an adaptive link with a fixed time of polling. */
struct link link_open(const struct broker_options *options, uint32_t mode, uint32_t spin_us);
void link_close(struct link *link);

/* Runs dray_service. */
int link_up(struct dray_port *port);

/* Packets a second in one direction, burst 32. `all`: 64 bytes are written and read; else the header's first 16. */
double link_rate(struct link *link, uint64_t packets, uint32_t size, int all);

/* The same, with the sender as fast as it can until the receiver has so many: what the port's classes refuse is dropped. */
double link_rate_beyond(struct link *link, uint64_t packets, uint32_t size);

/* Nanoseconds of n round trips of one 64 B packet. */
void link_round_trips(struct link *link, uint32_t *ns, unsigned n);

/* Both sides in this thread, in turns: for counting instructions. Returns a sum of what was read. */
uint64_t link_alone(struct link *link, uint64_t packets);

#endif
