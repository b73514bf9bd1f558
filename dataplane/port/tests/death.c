/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 of one end: what it had published arrives, its successor gets a new generation, nothing
 * leaks; many times over.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "test.h"

#define ROUNDS 30

/* Publish packets without end, and say in shared memory how many there were. */
static void publish_for_ever(struct broker *broker, int report)
{
	struct dray_port *port = test_open(broker, "b", DRAY_MODE_BUSY, 0);
	uint32_t next = 0;

	UNTIL(test_up(port), test_service(port, NULL));
	for (;;) {
		struct dray_pkt p[8];
		unsigned n = dray_tx_alloc(port, 0, p, 8, 200);

		for (unsigned i = 0; i < n; i++)
			test_fill(&p[i], 200, next + i);
		next += dray_tx_burst(port, 0, p, n);
		CHECK(pwrite(report, &next, sizeof(next), 0) == sizeof(next));
	}
}

static pid_t start_publisher(struct broker *broker, int report)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		publish_for_ever(broker, report);
	}
	return pid;
}

static uint32_t receive_all(struct dray_port *port, uint32_t next)
{
	struct dray_pkt p[32];
	unsigned n;

	while ((n = dray_rx_burst(port, 0, p, 32)) > 0) {
		for (unsigned i = 0; i < n; i++)
			test_check(&p[i], 200, next++);
		dray_release(p, n);
	}
	return next;
}

static void round_of(struct broker *broker, struct dray_port *a, int report, uint32_t *generation)
{
	uint32_t next = 0, published = 0, zero = 0;
	struct dray_pkt kept;
	pid_t pid;

	CHECK(pwrite(report, &zero, sizeof(zero), 0) == sizeof(zero));
	pid = start_publisher(broker, report);
	UNTIL(test_up(a), test_service(a, NULL));
	CHECK(test_generation(a) > *generation);
	*generation = test_generation(a);
	UNTIL(next > 1000, next = receive_all(a, next));
	UNTIL(dray_rx_burst(a, 0, &kept, 1) == 1, );
	test_check(&kept, 200, next++);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	UNTIL(!test_up(a), test_service(a, NULL));
	next = receive_all(a, next);
	CHECK(pread(report, &published, sizeof(published), 0) == sizeof(published));
	CHECK(next >= published); /* it may have died between publishing and reporting */
	CHECK(next <= published + 8);
	test_check(&kept, 200, *(uint32_t *)kept.data);
	CHECK_EQ(test_stats(a).maps, 1); /* for the sake of one buffer */
	dray_release(&kept, 1);
	UNTIL(test_stats(a).maps == 0, {
		receive_all(a, next);
		test_service(a, NULL);
	});
}

int main(void)
{
	struct broker *broker = broker_fork(NULL);
	struct dray_port *a = test_open(broker, "a", DRAY_MODE_BUSY, 0);
	char path[] = "/tmp/dray-death-XXXXXX";
	int report = mkstemp(path);
	uint32_t generation = 0;
	struct dray_event e[64];

	CHECK(report >= 0);
	unlink(path);
	for (unsigned i = 0; i < ROUNDS; i++)
		round_of(broker, a, report, &generation);
	CHECK_EQ(dray_events(a, e, 64), 2 * ROUNDS);
	CHECK_EQ(e[0].type, DRAY_EVENT_PEER_UP);
	CHECK_EQ(e[1].type, DRAY_EVENT_PEER_DOWN);
	CHECK_EQ(test_stats(a).held, 0);
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
	return 0;
}
