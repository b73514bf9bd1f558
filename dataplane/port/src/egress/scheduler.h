/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic classes: packets go in, and come out in the order and at the pace of the port's plan. It
 * knows neither threads nor links. Times are ns of CLOCK_MONOTONIC.
 */
#ifndef DRAY_SCHEDULER_H
#define DRAY_SCHEDULER_H

#include "class.h"

/* What happens to a packet that is dropped. */
typedef void drop_fn(void *context, struct dray_pkt *pkt);

struct scheduler {
	struct wire_classes plan;
	const struct sharing *sharing;
	struct bucket root;
	struct class *classes;
	struct item *items;
	uint32_t item_count, free; /* list of free items */
	uint32_t waiting;	   /* packets in all classes */
	uint32_t room;		   /* at most so many */
	uint32_t turn[2]; /* of HTB: the class that is next, by its grant and by borrowing */
	bool borrowed;	  /* beyond its grant: the class that was picked last */
	uint8_t by_dscp[64], by_pcp[8], rest; /* classes; NO_CLASS: none */
	bool by_meta, reads_packets;
	uint64_t turned; /* of HFSC: the virtual time of the class that sent last */
	uint64_t seed;
	drop_fn *drop;
	void *drop_context;
	struct telemetry_class report[CLASSES_MAX]; /* any thread may read it */
};

/* An item for a packet, of which there must be one, and back. */
uint32_t item_new(struct scheduler *s);
void item_free(struct scheduler *s, uint32_t item);

/* Whether a plan is as PROTOCOL.md, section 12, demands. */
bool classes_valid(const struct wire_classes *plan);

/* Error: -EINVAL, -ENOMEM. `seed` keeps others from choosing packets of one flow. */
int scheduler_new(const struct wire_classes *plan, uint64_t seed, drop_fn *drop, void *context,
		  struct scheduler **scheduler);
void scheduler_free(struct scheduler *s);

/* At most so many packets wait from now on: the link has no more buffers to spare. */
void scheduler_set_room(struct scheduler *s, uint32_t packets);

/* Drop up to n packets that wait, if there are several classes. False: none was dropped. */
bool scheduler_shed(struct scheduler *s, unsigned n);

/* Queue n packets, or drop some. */
void scheduler_put(struct scheduler *s, const struct dray_pkt *pkts, unsigned n, uint64_t now);

/*
 * How many of these packets may leave at once, without being queued: nothing waits, and there is
 * one class. They count as sent.
 */
unsigned scheduler_pass(struct scheduler *s, const struct dray_pkt *pkts, unsigned n, uint64_t now);

/* Up to n packets that leave now. */
unsigned scheduler_take(struct scheduler *s, struct dray_pkt *pkts, unsigned n, uint64_t now);

/* When the next packet may leave; UINT64_MAX: none waits. */
uint64_t scheduler_due(struct scheduler *s, uint64_t now);

#endif
