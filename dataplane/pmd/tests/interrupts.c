/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receive interrupts: who sleeps is woken by what comes, also by what came just before, and no
 * buffer stays behind while he sleeps.
 */
#include <pthread.h>
#include <rte_interrupts.h>

#include "rig.h"

#define LONG 900
#define ROUNDS 300

static struct broker *broker;
static uint16_t a, b;
static _Atomic bool came_up;

/*
 * The driver calls this in EAL's interrupt thread, right after a step of libdray. A link that came
 * up in it is not reported before the driver has its values: until then it uses one queue only.
 */
int __real_dray_events(struct dray_port *port, struct dray_event *events, unsigned n);
int __wrap_dray_events(struct dray_port *port, struct dray_event *events, unsigned n);

int __wrap_dray_events(struct dray_port *port, struct dray_event *events, unsigned n)
{
	struct dray_info info = {.size = sizeof(info)};

	CHECK_EQ(dray_info(port, &info), 0);
	if (!came_up && info.state == DRAY_LINK_UP && strcmp(info.name, "a") == 0) {
		CHECK(!rig_up(a));
		came_up = true;
	}
	return __real_dray_events(port, events, n);
}

/* Sleep until the queue rings; fails after 20 s. */
static void sleep_on(uint16_t queue)
{
	struct rte_epoll_event event;

	CHECK_EQ(rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, 20000), 1);
	CHECK_EQ((uintptr_t)event.epdata.data, queue + 100u);
}

static void listen_to(uint16_t queue)
{
	CHECK_EQ(rte_eth_dev_rx_intr_ctl_q(b, queue, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD,
					   (void *)(uintptr_t)(queue + 100u)),
		 0);
}

static void leave(uint16_t queue)
{
	CHECK_EQ(
		rte_eth_dev_rx_intr_ctl_q(b, queue, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_DEL, NULL),
		0);
}

static struct rte_mbuf *receive_asleep(uint16_t queue)
{
	struct rte_mbuf *m;

	for (;;) {
		if (rte_eth_rx_burst(b, queue, &m, 1) == 1)
			return m;
		CHECK_EQ(rte_eth_dev_rx_intr_enable(b, queue), 0);
		sleep_on(queue);
		CHECK_EQ(rte_eth_dev_rx_intr_disable(b, queue), 0);
	}
}

static void *send_now_and_then(void *argument)
{
	(void)argument;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		usleep(i % 3 ? 0 : 300);
		rig_send(a, 1, rig_make(rig_source(), i % 2 ? LONG : 64, i));
	}
	return NULL;
}

static void woken(void)
{
	struct rte_mbuf *none;
	pthread_t sender;

	listen_to(1);
	CHECK_EQ(pthread_create(&sender, NULL, send_now_and_then, NULL), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct rte_mbuf *m = receive_asleep(1);

		rig_check(m, i % 2 ? LONG : 64, i);
		rte_pktmbuf_free(m);
	}
	CHECK_EQ(pthread_join(sender, NULL), 0);
	/* gives back what was freed since the last */
	CHECK_EQ(rte_eth_rx_burst(b, 1, &none, 1), 0);
	leave(1);
}

static void *free_later(void *argument)
{
	usleep(20000);
	rte_pktmbuf_free(argument);
	return NULL;
}

/*
 * A buffer that another thread gives back goes to the peer, though the owner of the queue sleeps.
 */
static void given_back_meanwhile(void)
{
	struct rte_mbuf *m, *none;
	pthread_t thread;

	listen_to(0);
	rig_send(a, 0, rig_make(rig_source(), LONG, 1));
	m = receive_asleep(0);
	CHECK(RTE_MBUF_HAS_EXTBUF(m));
	CHECK_EQ(rte_eth_rx_burst(b, 0, &none, 1), 0);
	CHECK_EQ(rte_eth_dev_rx_intr_enable(b, 0), 0);
	CHECK_EQ(pthread_create(&thread, NULL, free_later, m), 0);
	sleep_on(0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(rte_eth_dev_rx_intr_disable(b, 0), 0);
	CHECK_EQ(rte_eth_rx_burst(b, 0, &none, 1), 0);
	CHECK_EQ(rig_xstat(b, "held_buffers"), 0);
	/* It stays in the set that this thread sleeps on: stopping the device takes it out. */
}

int main(void)
{
	struct broker_options options = {.queues = 2};

	broker = broker_start(&options);
	rig_begin();
	a = rig_probe(broker, "net_dray0", "a", "");
	b = rig_probe(broker, "net_dray1", "b", "");
	rig_start(a, &(struct rig_conf){.rx_queues = 2, .tx_queues = 2});
	CHECK(rte_eth_dev_rx_intr_enable(a, 0) != 0); /* they were not asked for */
	rig_start(b, &(struct rig_conf){.rx_queues = 2, .tx_queues = 2, .rx_interrupts = true});
	rig_wait_up(a, b);
	CHECK(came_up);
	woken();
	given_back_meanwhile();
	rig_close(b);
	rig_close(a);
	broker_stop(broker);
	rig_end();
	return 0;
}
