/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 of either end in the middle of a stream, many times. The survivor goes on by itself; what
 * it gets is without a hole, but for the gaps that are reported. A new receiver starts at a block.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "rig.h"

#define ROUNDS 40
#define WORDS 1300u /* of a block: it takes three messages of the four that there are */
#define PIECE 900u
#define ENOUGH 20000u

/* What the processes tell each other. Counts are of words. */
struct shared {
	_Atomic uint64_t received, gaps, first, start;
	_Atomic bool stop;
};

struct end {
	struct broker *broker;
	struct shared *shared;
	uint64_t id; /* of a sender: the upper half of each word */
};

static struct end end_new(void)
{
	struct end e = {.broker = rig_fork()};

	e.shared = mmap(NULL, sizeof(*e.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	CHECK(e.shared != MAP_FAILED);
	return e;
}

static void end_free(struct end *e)
{
	broker_stop(e->broker);
	CHECK_EQ(munmap(e->shared, sizeof(*e->shared)), 0);
}

static void send_for_ever(void *argument)
{
	struct end *e = argument;
	struct dray_iq *stream = rig_open(e->broker, "a", DRAY_IQ_SEND);
	uint64_t block[WORDS], next = e->id << 32, start;

	for (;;) {
		for (unsigned i = 0; i < WORDS; i++)
			block[i] = next++;
		CHECK_EQ(dray_iq_send(stream, block, sizeof(block)), 0);
		if (dray_iq_start(stream, &start) == 0)
			atomic_store(&e->shared->start, start / sizeof(block[0]) + 1);
	}
}

/* Check that words follow each other. The first after a gap begins a block. */
static uint64_t check_words(const uint64_t *words, size_t n, uint64_t next, bool fresh)
{
	if (fresh) {
		CHECK_EQ((uint32_t)words[0] % WORDS, 0);
		next = words[0];
	}
	for (size_t i = 0; i < n; i++, next++)
		CHECK_EQ(words[i], next);
	return next;
}

static void receive_until_stopped(void *argument)
{
	struct end *e = argument;
	struct dray_iq *stream = rig_open(e->broker, "b", DRAY_IQ_RECEIVE);
	uint64_t piece[PIECE], next = 0;
	bool fresh = true;

	while (!atomic_load(&e->shared->stop)) {
		ssize_t n = dray_iq_receive(stream, piece, sizeof(piece), 20);

		if (n == -ECONNRESET) {
			atomic_fetch_add(&e->shared->gaps, 1);
			fresh = true;
			continue;
		}
		CHECK(n >= 0);
		if (n == 0)
			continue;
		if (fresh)
			atomic_store(&e->shared->first, piece[0] + 1);
		next = check_words(piece, (size_t)n / 8, next, fresh);
		fresh = false;
		atomic_fetch_add(&e->shared->received, (uint64_t)n / 8);
	}
	CHECK_EQ(rig_stats(stream).gaps, atomic_load(&e->shared->gaps));
	dray_iq_close(stream);
}

static void until_received_more(struct shared *s)
{
	uint64_t before = atomic_load(&s->received);

	UNTIL(atomic_load(&s->received) > before + ENOUGH, usleep(100));
	usleep((unsigned)rand() % 3000);
}

static void senders_are_killed(void)
{
	struct end e = end_new();
	pid_t survivor = rig_child(receive_until_stopped, &e);
	int status;

	for (e.id = 1; e.id <= ROUNDS; e.id++) {
		pid_t sender = rig_child(send_for_ever, &e);

		until_received_more(e.shared);
		rig_kill(sender);
		CHECK_EQ((atomic_load(&e.shared->first) - 1) >> 32, e.id);
		CHECK_EQ((uint32_t)(atomic_load(&e.shared->first) - 1),
			 0); /* nothing was skipped */
	}
	CHECK_EQ(atomic_load(&e.shared->gaps), ROUNDS - 1);
	atomic_store(&e.shared->stop, true);
	CHECK_EQ(waitpid(survivor, &status, 0), survivor);
	CHECK_EQ(status, 0);
	end_free(&e);
}

static void receivers_are_killed(void)
{
	struct end e = end_new();
	pid_t survivor = rig_child(send_for_ever, &e);
	uint64_t last = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		pid_t receiver = rig_child(receive_until_stopped, &e);

		until_received_more(e.shared);
		/* it began where the sender says, and later than the one before */
		CHECK_EQ(atomic_load(&e.shared->first), atomic_load(&e.shared->start));
		CHECK(atomic_load(&e.shared->first) > last);
		last = atomic_load(&e.shared->first);
		CHECK_EQ(waitpid(receiver, NULL, WNOHANG), 0);
		rig_kill(receiver);
	}
	CHECK_EQ(atomic_load(&e.shared->gaps), 0);
	CHECK_EQ(waitpid(survivor, NULL, WNOHANG), 0);
	rig_kill(survivor);
	end_free(&e);
}

int main(void)
{
	senders_are_killed();
	receivers_are_killed();
	return 0;
}
