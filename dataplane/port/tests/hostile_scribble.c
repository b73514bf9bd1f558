/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer process scribbles at random over every shared word, tries to punch and truncate, and
 * floods the bells, while the victim works: it never crashes, never gets a buffer outside its
 * mapping or one that it has, and its calls return.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "port.h"
#include "scribble.h"
#include "test.h"
#include "victim.h"

#define SECONDS 3
#define SEED 88172645463325252ull

/* Where the victim is. */
struct position {
	_Atomic uint32_t head, returned;
};

static struct position *position;

static void attack(const char *directory)
{
	struct rawend e = rawend_join(directory, "b");
	struct scribbler s = {.seed = SEED};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	scribble_at_seals(&e);
	for (;;) {
		s.head = atomic_load(&position->head);
		s.returned = atomic_load(&position->returned);
		scribble(&s, &e);
	}
}

static void tell_position(struct dray_port *port)
{
	struct queue *q = &port->queues[0];

	if (q->rx.owner)
		atomic_store(&position->head, ((struct rx_lane *)q->rx.owner)->head);
	if (q->tx.owner)
		atomic_store(&position->returned, ((struct tx_lane *)q->tx.owner)->returned);
}

/* Whether the victim has received, and has noticed each kind of attack. */
static bool seen_all(const struct victim *v)
{
	struct dray_stats s = test_stats(v->port);

	for (unsigned i = 0; i <= DRAY_BAD_RETURN_FORGED; i++)
		if (s.violations[i] == 0)
			return false;
	return s.violations[DRAY_BAD_BELL] > 0 && v->received > 0;
}

int main(void)
{
	struct broker_options o = {.geometry = {.ring_size = 64,
						.pkt_slots = 60,
						.msg_slots = 2,
						.msg_stride = 128 + 8192,
						.msg_headroom = 128}};
	struct broker *broker = broker_fork(&o);
	struct victim v = {.low = UINTPTR_MAX, .seed = SEED};
	struct dray_stats s;
	uint64_t end;
	pid_t pid;

	position = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(position != MAP_FAILED);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		attack(broker_directory(broker));
	v.port = test_open(broker, "a", DRAY_MODE_SLEEPING, 0);
	UNTIL(test_up(v.port), test_service(v.port, NULL));
	end = clock_ns() + SECONDS * 1000000000ull;
	UNTIL(clock_ns() >= end && seen_all(&v), {
		for (unsigned i = 0; i < 100; i++) {
			victim_work(&v);
			tell_position(v.port);
		}
		CHECK(dray_service(v.port) >= 0);
		CHECK(dray_wait(v.port, 0, DRAY_WAIT_RX, 1) >= 0);
	});
	CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0); /* it did not fail at its own checks */
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	s = test_stats(v.port);
	fprintf(stderr, "received %llu", (unsigned long long)v.received);
	for (unsigned i = 0; i < DRAY_VIOLATIONS; i++)
		fprintf(stderr, " %u:%llu", i, (unsigned long long)s.violations[i]);
	fprintf(stderr, "\n");
	CHECK_EQ(s.misuse, 0);
	CHECK(v.high - v.low < 4u << 20);
	dray_release(v.held, v.n);
	CHECK_EQ(dray_close(v.port), 0);
	broker_stop(broker);
	return 0;
}
