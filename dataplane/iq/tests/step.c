/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two radios that send and receive in step, on two links, each in one thread that opens its ports
 * in turn. One is killed again and again. The survivor goes on, and the new one's samples are where
 * it gets its own.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "rig.h"

#define ROUNDS 40
#define WORDS 700u /* of a subframe, which takes two messages */
#define BYTES (WORDS * 8)

struct shared {
	_Atomic uint64_t steps; /* of the present peer */
};

struct radio {
	struct broker *broker[2]; /* of the link from the survivor, and of that to it */
	struct shared *shared;
	struct dray_iq *from, *to;
	uint64_t time; /* subframes */
	uint64_t peer; /* time at which the peer's began */
	bool in_gap;
	int64_t lead; /* subframes of zeros to insert; negative: to leave out */
};

/* Each word of a subframe is its time. */
static void send_subframe(struct radio *r)
{
	uint64_t words[WORDS];

	for (unsigned i = 0; i < WORDS; i++)
		words[i] = r->time;
	CHECK_EQ(dray_iq_send(r->from, words, BYTES), 0);
}

/* Returns 0, or -ECONNRESET. */
static int receive_subframe(struct radio *r, uint64_t *time)
{
	uint64_t words[WORDS];
	size_t done = 0;

	while (done < BYTES) {
		ssize_t n = dray_iq_receive(r->to, (uint8_t *)words + done, BYTES - done, 20);

		if (n == -ECONNRESET)
			return (int)n;
		CHECK(n >= 0);
		done += (size_t)n;
	}
	for (unsigned i = 0; i < WORDS; i++)
		CHECK_EQ(words[i], words[0]);
	*time = words[0];
	return 0;
}

/* What the survivor does, as dray_iq.h says. */
static void step(struct radio *r)
{
	uint64_t start, time;

	if (r->in_gap && dray_iq_start(r->from, &start) == 0) {
		r->in_gap = false;
		r->peer = start / BYTES;
		r->lead = (int64_t)(r->peer - r->time);
	}
	if (r->in_gap || r->lead > 0) {
		r->lead -= r->lead > 0;
		return;
	}
	do {
		if (receive_subframe(r, &time) == -ECONNRESET) {
			r->in_gap = true;
			step(r);
			return;
		}
	} while (r->lead++ < 0);
	r->lead = 0;
	CHECK_EQ(time, r->time - r->peer);
}

static void survive(void *argument)
{
	struct radio *r = argument;

	r->from = rig_open(r->broker[0], "a", DRAY_IQ_SEND);
	r->to = rig_open(r->broker[1], "a", DRAY_IQ_RECEIVE);
	for (;; r->time++) {
		send_subframe(r);
		step(r);
	}
}

static void be_killed(void *argument)
{
	struct radio *r = argument;
	uint64_t time, first = 0;

	r->from = rig_open(r->broker[1], "b", DRAY_IQ_SEND);
	r->to = rig_open(r->broker[0], "b", DRAY_IQ_RECEIVE);
	for (;; r->time++) {
		send_subframe(r);
		CHECK_EQ(receive_subframe(r, &time), 0);
		if (r->time == 0)
			first = time;
		CHECK_EQ(time, first + r->time);
		atomic_store(&r->shared->steps, r->time);
	}
}

int main(void)
{
	struct radio r = {.broker = {rig_fork(), rig_fork()}};
	pid_t survivor, peer;

	r.shared = mmap(NULL, sizeof(*r.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	CHECK(r.shared != MAP_FAILED);
	survivor = rig_child(survive, &r);
	for (unsigned i = 0; i < ROUNDS; i++) {
		atomic_store(&r.shared->steps, 0);
		peer = rig_child(be_killed, &r);
		UNTIL(atomic_load(&r.shared->steps) > 50, usleep(100));
		usleep((unsigned)rand() % 3000);
		CHECK_EQ(waitpid(peer, NULL, WNOHANG), 0);
		CHECK_EQ(waitpid(survivor, NULL, WNOHANG), 0);
		rig_kill(peer);
	}
	rig_kill(survivor);
	for (unsigned i = 0; i < 2; i++)
		broker_stop(r.broker[i]);
	return 0;
}
