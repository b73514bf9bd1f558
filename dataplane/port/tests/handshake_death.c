/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An end dies at any moment of its set-up, again and again: the survivor lives, leaks nothing, and
 * works with the next one.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "test.h"

#define ROUNDS 100

static pid_t start_peer(struct broker *broker)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		struct dray_options o = {.size = sizeof(o), .directory = broker_directory(broker)};
		struct dray_port *port;
		struct dray_pkt p;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (dray_open("b", &o, &port))
			usleep(100);
		for (;;) {
			dray_service(port);
			if (dray_rx_burst(port, 0, &p, 1))
				(void)dray_tx_burst(port, 0, &p, 1);
		}
	}
	return pid;
}

static void stop_peer(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void forget_packets(struct dray_port *port)
{
	struct dray_pkt p[32];

	dray_release(p, dray_rx_burst(port, 0, p, 32));
	dray_release(p, dray_tx_alloc(port, 0, p, 1, 64));
	test_service(port, NULL);
}

int main(void)
{
	struct broker *broker = broker_fork(NULL);
	struct dray_port *a = test_open(broker, "a", DRAY_MODE_BUSY, 0);
	unsigned before = test_open_fds();
	struct dray_pkt p;
	pid_t pid;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t end = clock_ns() + i * 40000ull; /* 0 to 4 ms: set-up takes about 1 */

		pid = start_peer(broker);
		while (clock_ns() < end)
			forget_packets(a);
		stop_peer(pid);
	}
	/* An offer that was being answered goes when the broker has noticed. */
	UNTIL(!test_up(a) && test_stats(a).maps == 0 && test_open_fds() == before,
	      forget_packets(a));
	pid = start_peer(broker);
	UNTIL(test_up(a), test_service(a, NULL));
	test_send(a, 0, 64, 1);
	UNTIL(dray_rx_burst(a, 0, &p, 1) == 1, test_service(a, NULL));
	test_check(&p, 64, 1);
	dray_release(&p, 1);
	stop_peer(pid);
	CHECK_EQ(test_stats(a).held, 0);
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
	return 0;
}
