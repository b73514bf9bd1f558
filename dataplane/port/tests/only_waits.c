/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers come and go at an end that sends and waits, but does not receive. The end keeps the packets
 * of the last peers and no more memory than that, so the link goes live again each time. If the end
 * does receive, it gets every packet.
 */
#include "still.h"
#include "test.h"

#define PEERS 12 /* more than the generations that a port maps at once */
#define BEHIND 6 /* more than the port keeps for a queue that is not polled */
#define KEPT 4

/* A peer that sends `packets`, and leaves. */
static void peer(struct broker *broker, struct dray_port *a, uint32_t seed, unsigned packets)
{
	struct dray_port *b = test_open(broker, "b", DRAY_MODE_BUSY, 0);

	UNTIL(test_up(a) && test_up(b), test_service(a, b));
	test_send(a, 0, 64, seed);
	CHECK(dray_wait(a, 0, DRAY_WAIT_TX, 0) >= 0);
	for (unsigned i = 0; i < packets; i++)
		test_send(b, 0, 64, seed);
	CHECK_EQ(dray_close(b), 0);
	UNTIL(!test_up(a), test_service(a, NULL));
	CHECK(dray_wait(a, 0, DRAY_WAIT_TX, 0) >= 0);
}

static void until_maps(struct dray_port *a, unsigned most)
{
	UNTIL(test_stats(a).maps <= most, {
		test_service(a, NULL);
		CHECK(dray_wait(a, 0, DRAY_WAIT_TX, 0) >= 0);
	});
}

static void silent_peers(uint32_t mode, uint32_t flags)
{
	struct broker *broker = broker_start(NULL);
	struct dray_port *a = test_open(broker, "a", mode, flags);

	for (uint32_t i = 0; i < PEERS; i++)
		peer(broker, a, i, 0);
	until_maps(a, 0);
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
}

static void talking_peers(uint32_t mode, uint32_t flags)
{
	struct broker *broker = broker_start(NULL);
	struct dray_port *a = test_open(broker, "a", mode, flags);

	for (uint32_t i = 0; i < PEERS; i++)
		peer(broker, a, i, 1);
	until_maps(a, KEPT);
	for (uint32_t i = PEERS - KEPT; i < PEERS; i++)
		test_receive(a, 0, 64, i);
	until_maps(a, 0);
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
}

/* The application receives, and is far behind: no packet is dropped while it keeps polling. */
static void slow_receiver(void)
{
	struct broker *broker = broker_start(NULL);
	struct dray_port *a = test_open(broker, "a", DRAY_MODE_BUSY, 0);
	struct dray_pkt none;

	for (uint32_t i = 0; i < BEHIND; i++) {
		struct dray_port *b = test_open(broker, "b", DRAY_MODE_BUSY, 0);

		UNTIL(test_up(a) && test_up(b), test_service(a, b));
		test_send(b, 0, 64, i);
		CHECK_EQ(dray_rx_burst(a, 0, &none, 0), 0);
		CHECK_EQ(dray_close(b), 0);
		UNTIL(!test_up(a), test_service(a, NULL));
		CHECK_EQ(dray_rx_burst(a, 0, &none, 0), 0);
		CHECK(dray_service(a) >= 0);
		CHECK_EQ(dray_wait(a, 0, DRAY_WAIT_RX, 0), DRAY_WAIT_RX);
	}
	for (uint32_t i = 0; i < BEHIND; i++)
		test_receive(a, 0, 64, i);
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
}

/* The peer stays, and the link moves faster than either end can be sure that the old memory is
 * empty. */
static void moves(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_BUSY, 0);

	for (unsigned i = 0; i < PEERS; i++) {
		uint32_t before = test_generation(p.a);

		test_send(p.a, 0, 64, i);
		broker_move_shm(p.broker);
		UNTIL(test_generation(p.a) > before && test_generation(p.b) > before,
		      test_service(p.a, p.b));
		CHECK(dray_wait(p.a, 0, DRAY_WAIT_TX, 0) >= 0);
		CHECK(dray_wait(p.b, 0, DRAY_WAIT_TX, 0) >= 0);
	}
	until_maps(p.a, KEPT + 1);
	until_maps(p.b, KEPT + 1);
	test_pair_close(&p);
}

int main(void)
{
	static const struct {
		uint32_t mode, flags;
	} kinds[] = {
		{DRAY_MODE_BUSY, 0},
		{DRAY_MODE_SLEEPING, 0},
		{DRAY_MODE_SLEEPING, DRAY_SERVICE_THREAD},
	};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		silent_peers(kinds[i].mode, kinds[i].flags);
		talking_peers(kinds[i].mode, kinds[i].flags);
	}
	moves();
	slow_receiver();
	return 0;
}
