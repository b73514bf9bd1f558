/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several queues: each keeps its frames; the application may have fewer or more than the link;
 * threads that share a queue of the link lose nothing.
 */
#include <pthread.h>

#include "rig.h"

#define FRAMES 2000

static struct broker *broker;

static void receive_one(uint16_t id, uint16_t queue, uint32_t length, uint32_t seed)
{
	struct rte_mbuf *m = rig_receive(id, queue);

	rig_check(m, length, seed);
	rte_pktmbuf_free(m);
}

static void each_its_own(void)
{
	uint16_t a = rig_probe(broker, "net_dray0", "a", ""),
		 b = rig_probe(broker, "net_dray1", "b", ",rx=copy");

	rig_start(a, &(struct rig_conf){.rx_queues = 4, .tx_queues = 4});
	rig_start(b, &(struct rig_conf){.rx_queues = 4, .tx_queues = 4});
	rig_wait_up(a, b);
	for (uint16_t q = 0; q < 4; q++)
		for (uint32_t i = 0; i < 10; i++) {
			rig_send(a, q, rig_make(rig_source(), 400u + q, i));
			rig_send(b, q, rig_make(rig_source(), 500u + q, i));
		}
	for (uint16_t q = 4; q-- > 0;)
		for (uint32_t i = 0; i < 10; i++) {
			receive_one(b, q, 400u + q, i);
			receive_one(a, q, 500u + q, i);
		}
	rig_close(a);
	rig_close(b);
}

struct sender {
	pthread_t thread;
	uint16_t id, queue;
};

static void *send_many(void *argument)
{
	const struct sender *s = argument;

	for (uint32_t i = 0; i < FRAMES; i++)
		rig_send(s->id, s->queue, rig_make(rig_source(), 100u + s->queue, i));
	return NULL;
}

/* Six threads send on six queues; the peer polls one. The frames of each thread stay in order. */
static void fewer_at_the_peer(void)
{
	uint16_t a = rig_probe(broker, "net_dray0", "a", ""),
		 b = rig_open(broker, "net_dray1", "b", "");
	struct sender senders[6];
	uint32_t next[6] = {0};

	rig_start(a, &(struct rig_conf){.rx_queues = 2, .tx_queues = 6});
	rig_wait_up(a, b);
	for (uint16_t i = 0; i < 6; i++) {
		senders[i] = (struct sender){.id = a, .queue = i};
		CHECK_EQ(pthread_create(&senders[i].thread, NULL, send_many, &senders[i]), 0);
	}
	for (uint32_t n = 0; n < 6 * FRAMES; n++) {
		struct rte_mbuf *m = rig_receive(b, 0);
		uint32_t queue = m->pkt_len - 100;

		CHECK(queue < 6);
		rig_check(m, 100 + queue, next[queue]++);
		rte_pktmbuf_free(m);
	}
	for (uint16_t i = 0; i < 6; i++)
		CHECK_EQ(pthread_join(senders[i].thread, NULL), 0);
	CHECK_EQ(rig_xstat(a, "misuse"), 0);
	rig_close(a);
	rig_close(b);
}

/* The same device with another number of queues is another generation of the link. */
static void reconfigured(void)
{
	uint16_t a = rig_open(broker, "net_dray0", "a", ""),
		 b = rig_open(broker, "net_dray1", "b", "");

	rig_wait_up(a, b);
	rig_pass(a, b, 600, 1);
	CHECK_EQ(rte_eth_dev_stop(a), 0);
	rig_start(a, &(struct rig_conf){.rx_queues = 3, .tx_queues = 1});
	rig_wait_up(a, b);
	rig_pass(b, a, 700, 2);
	CHECK_EQ(rte_eth_dev_stop(a), 0);
	/* more than the port has */
	CHECK(rig_try_start(a, &(struct rig_conf){.rx_queues = 5}) != 0);
	rig_start(a, &(struct rig_conf){0});
	rig_wait_up(a, b);
	rig_pass(a, b, 800, 3);
	rig_close(a);
	rig_close(b);
}

int main(void)
{
	struct broker_options options = {.queues = 4};

	broker = broker_start(&options);
	rig_begin();
	each_its_own();
	fewer_at_the_peer();
	reconfigured();
	broker_stop(broker);
	rig_end();
	return 0;
}
