/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver has moved to a new generation and sleeps, and the sender has not moved: its packets,
 * and its rings, are those of the old lane. They end a sleep on dray_fd, and in dray_wait.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "still.h"
#include "test.h"

#define LONG_MS (int)(test_patience_ns() / 1000000)

static struct pair p;
static _Thread_local bool unending;
static _Atomic bool asleep;

/* The library's too. A sleep of the thread under test does not end before it is rung. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	struct timespec t;

	if (unending && ms > 0) {
		ms = LONG_MS;
		atomic_store(&asleep, true);
	}
	t = (struct timespec){ms / 1000, ms % 1000 * 1000000L};
	return (int)syscall(SYS_ppoll, fds, n, ms < 0 ? NULL : &t, NULL, 0);
}

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
 * more. If it does, try again.
 */
static void move_receiver(void)
{
	do {
		uint32_t before = test_generation(p.b);

		UNTIL(test_generation(p.a) == before, test_service(p.a, p.b));
		broker_move_shm(p.broker);
		UNTIL(test_generation(p.b) > before, {
			CHECK(dray_service(p.a) >= 0);
			for (unsigned i = 0; i < 100 && test_generation(p.b) == before; i++) {
				CHECK(dray_service(p.b) >= 0);
				usleep(500);
			}
		});
		fall_asleep();
	} while (test_generation(p.a) == test_generation(p.b));
}

static void on_fd(uint32_t seed)
{
	struct pollfd sleep = {.fd = dray_fd(p.b), .events = POLLIN};

	move_receiver();
	test_send(p.a, 0, 64, seed);
	CHECK(test_generation(p.a) < test_generation(p.b));
	CHECK_EQ(poll(&sleep, 1, LONG_MS), 1);
	test_receive(p.b, 0, 64, seed);
}

static void *wait_for_packet(void *unused)
{
	uint64_t start = clock_ns();

	unending = true;
	CHECK_EQ(dray_wait(p.b, 0, DRAY_WAIT_RX, 2 * LONG_MS), DRAY_WAIT_RX);
	unending = false;
	CHECK(clock_ns() - start < LONG_MS * 900000ull);
	return unused;
}

static void in_wait(uint32_t seed)
{
	pthread_t thread;

	move_receiver();
	atomic_store(&asleep, false);
	CHECK_EQ(pthread_create(&thread, NULL, wait_for_packet, NULL), 0);
	UNTIL(atomic_load(&asleep), usleep(100));
	test_send(p.a, 0, 64, seed);
	CHECK(test_generation(p.a) < test_generation(p.b));
	CHECK_EQ(pthread_join(thread, NULL), 0);
	test_receive(p.b, 0, 64, seed);
}

int main(void)
{
	p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);
	test_send(p.a, 0, 64, 1);
	test_receive(p.b, 0, 64, 1);
	for (uint32_t i = 2; i < 8; i += 2) {
		on_fd(i);
		in_wait(i + 1);
	}
	UNTIL(test_generation(p.a) == test_generation(p.b), test_service(p.a, p.b));
	test_pair_close(&p);
	return 0;
}
