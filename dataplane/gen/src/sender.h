/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending engine of send and ping: bursts on a schedule, and counters for every packet that was
 * due.
 */
#ifndef GEN_SENDER_H
#define GEN_SENDER_H

#include "run.h"
#include "schedule.h"

struct sender {
	struct run *run;
	struct schedule schedule;
	uint64_t warmup_left, warmup_sent;
	uint64_t bursts;
	bool measuring, done;
	uint64_t started_ns, ended_ns; /* of the measured part */
	uint64_t scheduled, sent, sent_bytes, unsent, errors, full;
	uint64_t full_since_ns, full_ns; /* since when the port takes nothing, 0: it does; in all */
	struct histogram lateness, lateness_interval;
	struct io_buf bufs[IO_BATCH]; /* of the present batch; sizes that do not change stay */
};

/* The first burst is due at once. NULL: no memory. Freed with free(). */
struct sender *sender_new(struct run *run);

/* When the next burst is due; for packets without a rate, `now`. UINT64_MAX: all is done. */
uint64_t sender_due(struct sender *sender, uint64_t now);

/*
 * Send the burst that is due at *now, or skip it if it is later than the catch-up bound. May wait
 * if the port is full. Sets *now to the last time that it read: mostly when the burst was sent.
 * Returns 0 or -errno.
 */
int sender_burst(struct sender *sender, uint64_t *now);

/*
 * Tell the receiver how many there were: eight end packets, 1, 2, 4 ... 64 ms apart. Tries for 2 s
 * if the port is full.
 */
void sender_finish(struct sender *sender);

/* Fields of the result, and of an interval. */
void sender_write(struct sender *sender, struct json *j);
void sender_write_interval(struct sender *sender, struct json *j);

#endif
