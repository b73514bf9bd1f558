/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic classes behind a port: what waits is sent without the application, and nothing is lost.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "egress/egress.h"
#include "test.h"

#define RATE 50000000ull /* bit/s */
#define LENGTH 1000

static struct broker_options options_of(enum class_discipline discipline, uint32_t limit)
{
	struct broker_options o = {.classes = {.classes = 1, .rate = RATE, .burst = 2000},
				   .geometry = {.pkt_slots = 1024, .ring_size = 1024}};

	o.classes.class[0].discipline = (uint8_t)discipline;
	o.classes.class[0].limit = limit;
	return o;
}

/* n packets at once, with seeds from `seed` on. */
static void send_all(struct dray_port *port, unsigned n, uint32_t seed)
{
	struct dray_pkt p[32];

	while (n) {
		unsigned got = dray_tx_alloc(port, 0, p, n < 32 ? n : 32, LENGTH);

		CHECK(got > 0);
		for (unsigned i = 0; i < got; i++)
			test_fill(&p[i], LENGTH, seed++);
		CHECK_EQ(dray_tx_burst(port, 0, p, got), got);
		n -= got;
	}
}

static void change_rate(struct dray_port *port, uint64_t rate)
{
	pthread_mutex_lock(&port->lock);
	port->classes.rate = rate;
	CHECK_EQ(egress_change(port), 0);
	pthread_mutex_unlock(&port->lock);
}

/* The application sends, and calls nothing more: the rest leaves at the rate, in order. */
static void paced(void)
{
	struct broker_options o = options_of(DISCIPLINE_PFIFO, 300);
	struct pair p = test_pair(&o, DRAY_MODE_ADAPTIVE, 0);
	uint64_t began = clock_ns(), took;

	send_all(p.a, 200, 0);
	for (uint32_t i = 0; i < 200; i++)
		test_receive(p.b, 0, LENGTH, i);
	took = clock_ns() - began;
	CHECK(took >= 197ull * LENGTH * 8 * 1000000000 / RATE); /* three packets fill the bucket */
	CHECK_EQ(test_stats(p.a).tx_packets, 200);
	CHECK_EQ(test_stats(p.a).tx_dropped, 0);
	UNTIL(test_stats(p.a).held == 0, usleep(1000));
	test_pair_close(&p);
}

/* An application that polls sends what is due, even if the pacer never gets a CPU. */
static void polled(void)
{
	struct broker_options o = options_of(DISCIPLINE_PFIFO, 300);
	struct pair p = test_pair(&o, DRAY_MODE_BUSY, 0);
	struct egress *e = p.a->egress;
	struct dray_pkt r;

	pthread_mutex_lock(&e->lock);
	e->pacer_until = 0; /* nothing is sooner: it is not woken */
	pthread_mutex_unlock(&e->lock);
	send_all(p.a, 100, 0);
	for (uint32_t i = 0; i < 100; i++) {
		UNTIL(dray_rx_burst(p.b, 0, &r, 1) == 1, CHECK_EQ(dray_rx_burst(p.a, 0, &r, 1), 0));
		test_check(&r, LENGTH, i);
		dray_release(&r, 1);
	}
	test_pair_close(&p);
}

/* What finds the queue full is dropped, counted, and its buffer can be used again. */
static void full(void)
{
	struct broker_options o = options_of(DISCIPLINE_PFIFO, 20);
	struct dray_pkt r[32];
	unsigned got = 0;
	struct pair p;

	o.classes.rate = RATE / 500; /* few leave while the others come */
	p = test_pair(&o, DRAY_MODE_BUSY, 0);

	send_all(p.a, 2000, 0);
	UNTIL(test_stats(p.a).tx_packets + test_stats(p.a).tx_dropped == 2000, {
		unsigned n = dray_rx_burst(p.b, 0, r, 32);

		dray_release(r, n);
		got += n;
	});
	UNTIL(got == test_stats(p.a).tx_packets, {
		unsigned n = dray_rx_burst(p.b, 0, r, 32);

		dray_release(r, n);
		got += n;
	});
	CHECK(test_stats(p.a).tx_dropped > 1500);
	CHECK_EQ(test_stats(p.a).held, 0);
	CHECK_EQ(test_stats(p.a).misuse, 0);
	test_pair_close(&p);
}

/* However long the queues may be, the application gets buffers: for a class that sends first, say.
 */
static void spare(void)
{
	struct broker_options o = options_of(DISCIPLINE_PFIFO, 60000);
	struct pair p;

	o.classes.rate = RATE / 500;
	p = test_pair(&o, DRAY_MODE_BUSY, 0);
	send_all(p.a, 1500, 0);
	CHECK(test_stats(p.a).tx_dropped > 300);
	change_rate(p.a, RATE / 250);
	send_all(p.a, 1500, 0); /* drops what waited, then fills the queue again */
	CHECK(test_stats(p.a).tx_dropped > 1500);
	test_pair_close(&p);
}

/* Also if it keeps some itself: packets of the longest queue make room. */
static void makes_room(void)
{
	struct broker_options o = options_of(DISCIPLINE_PFIFO, 60000);
	struct dray_pkt kept[256], more[8];
	struct pair p;

	o.classes.rate = RATE / 20;
	o.classes.scheduler = SCHEDULER_STRICT;
	o.classes.classes = 2;
	o.classes.class[1] = o.classes.class[0];
	o.classes.class[0].dscp = 1;
	p = test_pair(&o, DRAY_MODE_BUSY, 0);
	CHECK_EQ(dray_tx_alloc(p.a, 0, kept, 256, LENGTH), 256);
	send_all(p.a, 1500, 0);
	CHECK_EQ(dray_tx_alloc(p.a, 0, more, 8, LENGTH), 8);
	dray_release(kept, 256);
	dray_release(more, 8);
	CHECK_EQ(test_stats(p.a).misuse, 0);
	test_pair_close(&p);
}

/* A packet that was received, and is sent on, waits in a buffer of its new link. */
static void forwarded(void)
{
	struct broker_options o = options_of(DISCIPLINE_PFIFO, 300);
	struct dray_pkt r;
	struct pair p;

	o.classes.rate = RATE / 100;
	p = test_pair(&o, DRAY_MODE_BUSY, 0);
	for (uint32_t i = 0; i < 50; i++)
		test_send(p.b, 0, LENGTH, i);
	for (uint32_t i = 0; i < 50; i++) {
		UNTIL(dray_rx_burst(p.a, 0, &r, 1) == 1, );
		CHECK_EQ(dray_tx_burst(p.a, 0, &r, 1), 1);
	}
	CHECK(test_stats(p.a).tx_packets < 50);
	for (uint32_t i = 0; i < 50; i++)
		test_receive(p.b, 0, LENGTH, i);
	UNTIL(test_stats(p.a).held == 0, usleep(1000));
	test_pair_close(&p);
}

/* While the pacer sends, buffers of the same side are allocated, waited for and released. */
static void together(void)
{
	struct broker_options o = options_of(DISCIPLINE_SFQ, 100);
	struct pair p = test_pair(&o, DRAY_MODE_ADAPTIVE, DRAY_SERVICE_THREAD);
	uint64_t end = clock_ns() + 300000000;
	struct dray_pkt t[8], r[32];

	while (clock_ns() < end) {
		unsigned n;

		send_all(p.a, 20, 0);
		CHECK(dray_wait(p.a, 0, DRAY_WAIT_TX, 20000) == DRAY_WAIT_TX);
		n = dray_tx_alloc(p.a, 0, t, 8, LENGTH);
		test_release_elsewhere(&t[0]);
		dray_release(&t[1], n - 1);
		n = dray_rx_burst(p.b, 0, r, 32);
		dray_release(r, n);
	}
	CHECK_EQ(test_stats(p.a).misuse, 0);
	test_pair_close(&p);
}

/* The peer goes and comes: what waited for the old link is dropped, and the new one works. */
static void rebound(void)
{
	struct broker_options o = options_of(DISCIPLINE_PFIFO, 300);
	struct pair p;

	o.classes.rate = RATE / 200; /* few leave before the peer does */
	p = test_pair(&o, DRAY_MODE_BUSY, 0);
	send_all(p.a, 200, 0);
	CHECK_EQ(dray_close(p.b), 0);
	UNTIL(!test_up(p.a), test_service(p.a, NULL));
	UNTIL(test_stats(p.a).tx_dropped + test_stats(p.a).tx_packets == 200,
	      test_service(p.a, NULL));
	CHECK(test_stats(p.a).tx_dropped > 100);
	p.b = test_open(p.broker, "b", DRAY_MODE_BUSY, 0);
	UNTIL(test_up(p.a) && test_up(p.b), test_service(p.a, p.b));
	change_rate(p.a, RATE);
	send_all(p.a, 50, 7);
	for (uint32_t i = 0; i < 50; i++)
		test_receive(p.b, 0, LENGTH, 7 + i);
	UNTIL(test_stats(p.a).maps == 1, test_service(p.a, NULL));
	test_pair_close(&p);
}

/* What is in use, and what was counted, can be read from outside. */
static void reported(void)
{
	struct broker_options o = options_of(DISCIPLINE_PFIFO, 20);
	const struct telemetry_header *h;
	struct pair p;

	o.classes.rate = RATE / 500; /* few leave while the others come */
	p = test_pair(&o, DRAY_MODE_BUSY, 0);
	h = mmap(NULL, LAYOUT_PAGE, PROT_READ, MAP_SHARED, broker_telemetry(p.broker, 0), 0);
	CHECK(h != MAP_FAILED);
	UNTIL(memcmp(&h->classes, &o.classes, sizeof(o.classes)) == 0, test_service(p.a, p.b));
	send_all(p.a, 100, 0);
	UNTIL(h->class[0].packets + h->class[0].dropped == 100, test_service(p.a, p.b));
	CHECK_EQ(h->class[0].dropped, test_stats(p.a).tx_dropped);
	CHECK(h->class[0].dropped > 70 && h->class[0].longest_ns > 1000000);
	CHECK_EQ(h->class[0].queued_most, 20);
	CHECK_EQ(h->class[0].queued, 0);
	change_rate(p.a, RATE); /* while nothing waits */
	UNTIL(h->classes.rate == RATE, test_service(p.a, p.b));
	CHECK_EQ(h->class[0].packets, 0);
	munmap((void *)h, LAYOUT_PAGE);
	test_pair_close(&p);
}

/* Other classes take over while packets wait: these are dropped, and the new rate holds. */
static void changed(void)
{
	struct broker_options o = options_of(DISCIPLINE_PFIFO, 300);
	uint64_t began, took;
	struct dray_pkt r[32];
	unsigned got = 0;
	struct pair p;

	o.classes.rate = RATE / 1000;
	p = test_pair(&o, DRAY_MODE_ADAPTIVE, 0);
	send_all(p.a, 200, 0);
	change_rate(p.a, RATE / 500); /* never used, if the next comes first */
	change_rate(p.a, RATE);
	UNTIL(test_stats(p.a).tx_dropped + test_stats(p.a).tx_packets == 200,
	      test_service(p.a, p.b));
	CHECK(test_stats(p.a).tx_dropped > 150);
	UNTIL(got == test_stats(p.a).tx_packets, {
		unsigned n = dray_rx_burst(p.b, 0, r, 32);

		dray_release(r, n);
		got += n;
	});
	began = clock_ns();
	send_all(p.a, 200, 0);
	for (uint32_t i = 0; i < 200; i++)
		test_receive(p.b, 0, LENGTH, i);
	took = clock_ns() - began;
	CHECK(took >= 197ull * LENGTH * 8 * 1000000000 / RATE);
	CHECK(took < 197ull * LENGTH * 8 * 1000000000 / (RATE / 400));
	UNTIL(test_stats(p.a).held == 0, usleep(1000));
	UNTIL(p.a->telemetry->classes.rate == RATE, test_service(p.a, p.b));
	test_pair_close(&p);
}

/* A port is closed while packets wait, and others classes are to take over. */
static void closed(void)
{
	struct broker_options o = options_of(DISCIPLINE_CODEL, 300);
	unsigned fds = test_open_fds();

	o.classes.class[0].target_ns = o.classes.class[0].interval_ns = 1000;
	for (unsigned i = 0; i < 3; i++) {
		struct pair p = test_pair(&o, DRAY_MODE_BUSY, 0);

		send_all(p.a, 200, 0);
		if (i == 2)
			change_rate(p.a, RATE / 2);
		test_pair_close(&p);
	}
	CHECK_EQ(test_open_fds(), fds);
}

int main(void)
{
	paced();
	polled();
	full();
	spare();
	makes_room();
	forwarded();
	together();
	rebound();
	reported();
	changed();
	closed();
	return 0;
}
