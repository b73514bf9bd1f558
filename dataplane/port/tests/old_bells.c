/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver has moved to a new generation and sleeps, and the sender has not moved: its packets,
 * and its rings, are those of the old lane. They end a sleep on dray_fd.
 */
#include <poll.h>

#include "test.h"

static struct pair p;

/* Until nothing is left that would end a sleep. */
static void fall_asleep(void)
{
	struct pollfd fd = {.fd = dray_fd(p.b), .events = POLLIN};
	struct dray_pkt none;

	UNTIL(poll(&fd, 1, 10) == 0, {
		CHECK(dray_service(p.b) >= 0);
		CHECK_EQ(dray_rx_burst(p.b, 0, &none, 1), 0);
	});
}

/*
 * Let the receiver alone follow a move, and sleep: the sender answers the offer, and reads nothing
 * more. The receiver listens to the old lane for a second: on a slow machine, try again.
 */
static void move_receiver(void)
{
	uint64_t start;

	do {
		uint32_t before = test_generation(p.b);

		UNTIL(test_generation(p.a) == before, test_service(p.a, p.b));
		start = clock_ns();
		broker_move_shm(p.broker);
		UNTIL(test_generation(p.b) > before, {
			CHECK(dray_service(p.a) >= 0);
			for (unsigned i = 0; i < 100 && test_generation(p.b) == before; i++) {
				CHECK(dray_service(p.b) >= 0);
				usleep(500);
			}
		});
		fall_asleep();
	} while (test_generation(p.a) == test_generation(p.b) || clock_ns() > start + 500000000);
}

int main(void)
{
	struct pollfd sleep;

	p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);
	test_send(p.a, 0, 64, 1);
	test_receive(p.b, 0, 64, 1);
	sleep = (struct pollfd){.fd = dray_fd(p.b), .events = POLLIN};
	for (uint32_t i = 2; i < 6; i++) {
		move_receiver();
		test_send(p.a, 0, 64, i);
		CHECK(test_generation(p.a) < test_generation(p.b));
		CHECK_EQ(poll(&sleep, 1, 10000), 1);
		test_receive(p.b, 0, 64, i);
	}
	UNTIL(test_generation(p.a) == test_generation(p.b), test_service(p.a, p.b));
	test_pair_close(&p);
	return 0;
}
