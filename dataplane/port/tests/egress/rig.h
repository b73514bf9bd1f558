/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduler with packets of its own, in simulated time. */
#ifndef DRAY_EGRESS_RIG_H
#define DRAY_EGRESS_RIG_H

#include "check.h"
#include "egress/scheduler.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

/* What a packet is: it is in `reserved`, which the library does not touch. */
struct stream {
	uint32_t id;
	uint32_t length;
	uint8_t dscp;
	uint8_t ecn;
	uint16_t port; /* of UDP: the flow */
	uint64_t rate; /* bit/s that it offers; 0: none */
	/* of the simulation */
	uint64_t next;
	uint64_t offered, sent, dropped, bytes; /* packets, bytes that were sent */
	uint64_t wait_sum, wait_max, wait_last; /* ns, of packets that were sent */
};

struct rig {
	struct scheduler *scheduler;
	struct stream *streams;
	unsigned count;
	uint64_t now;
	uint64_t *drops; /* times of drops, if a test wants them */
	unsigned drop_count, drop_most;
};

/* A plan of one class. */
struct wire_classes rig_plan(enum class_discipline discipline, uint32_t limit, uint64_t rate,
			     uint32_t burst);

/* The streams get their numbers, from 0. */
void rig_init(struct rig *rig, const struct wire_classes *plan, struct stream *streams,
	      unsigned count);
void rig_free(struct rig *rig);

/* A packet of a stream: Ethernet, IPv4, UDP. */
struct dray_pkt rig_packet(const struct rig *rig, unsigned stream);

/* Hand one packet of a stream over. */
void rig_put(struct rig *rig, unsigned stream);

/* Take what is due now. Returns how many; the stream of the last is *last, unless that is NULL. */
unsigned rig_take(struct rig *rig, unsigned *last);

/* All streams offer their rates until then, and what is due is taken when it is. */
void rig_run(struct rig *rig, uint64_t until);

/* bit/s of a stream in a time */
double rig_rate(const struct stream *stream, uint64_t ns);

/* a is b, within a share */
#define CHECK_NEAR(a, b, share)                                                                    \
	do {                                                                                       \
		double near_ = (double)(a), to_ = (double)(b);                                     \
		if (near_ < to_ * (1 - (share)) || near_ > to_ * (1 + (share))) {                  \
			fprintf(stderr, "%s:%d: %s is %g, not %g (%s)\n", __FILE__, __LINE__, #a,  \
				near_, to_, #b);                                                   \
			test_failed();                                                             \
		}                                                                                  \
	} while (0)

#endif
