/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second stream of a sender: single packets on a schedule of their own, which are sent while
 * the first stream has nothing due.
 */
#ifndef GEN_BULK_SENDER_H
#define GEN_BULK_SENDER_H

#include "run.h"
#include "schedule.h"

struct bulk_sender {
	struct run *run;
	struct schedule schedule;
	uint64_t retry_ns; /* the port was full: not again before */
	uint64_t all;	   /* packets that were sent, with those of the warm-up */
	/* since the first stream is measured */
	uint64_t scheduled, sent, sent_bytes, errors;
};

/* Its first packet is due at once. Without --bulk it has none. */
struct bulk_sender bulk_sender_begin(struct run *run);

/* When its next packet is due; UINT64_MAX: never. */
uint64_t bulk_sender_due(const struct bulk_sender *bulk);

/*
 * Send one packet, if the port takes it. Skips those that are later than the catch-up bound.
 * measuring: the first stream is in its measured part. Returns 0 or -errno.
 */
int bulk_sender_packet(struct bulk_sender *bulk, bool measuring);

/* Its object in the result. */
void bulk_sender_write(const struct bulk_sender *bulk, struct json *j);

#endif
