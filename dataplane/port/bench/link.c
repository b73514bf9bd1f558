/* SPDX-License-Identifier: Apache-2.0 */
/* Load on a link, and round trips over it. */
#include "link.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define BURST 32

struct job {
	struct link *link;
	uint64_t packets, sum;
	uint32_t size;
	int all;
	_Atomic int done; /* the receiver has them all */
	struct windows windows;
};

static void must(int condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "bench: %s\n", what);
		exit(1);
	}
}

int link_up(struct dray_port *port)
{
	struct dray_info info = {.size = sizeof(info)};

	dray_service(port);
	return dray_info(port, &info) == 0 && info.state == DRAY_LINK_UP;
}

struct link link_open(const struct broker_options *options, uint32_t mode, uint32_t spin_us)
{
	struct link l = {.broker = broker_start(options)};
	struct dray_options o = {.size = sizeof(o), .directory = broker_directory(l.broker), .mode = mode, .spin_us = spin_us};

	must(dray_open("a", &o, &l.a) == 0 && dray_open("b", &o, &l.b) == 0, "open");
	while (link_up(l.a) + link_up(l.b) < 2)
		;
	return l;
}

void link_close(struct link *l)
{
	dray_close(l->a);
	dray_close(l->b);
	broker_stop(l->broker);
}

static void *receive(void *argument)
{
	struct job *job = argument;
	struct dray_pkt p[BURST];

	bench_pin(1);
	for (uint64_t got = 0; got < job->packets;) {
		unsigned n = dray_rx_burst(job->link->b, 0, p, BURST);

		for (unsigned i = 0; i < n; i++)
			job->sum += job->all ? bench_read64(p[i].data) : ((uint64_t *)p[i].data)[0] + ((uint64_t *)p[i].data)[1];
		dray_release(p, n);
		got += n;
		bench_window(&job->windows, got);
		if (n == 0)
			clock_relax();
	}
	job->done = 1;
	return NULL;
}

static void fill(const struct job *job, struct dray_pkt *p, uint64_t value)
{
	if (job->all)
		bench_write64(p->data, value);
	else
		((uint64_t *)p->data)[0] = ((uint64_t *)p->data)[1] = value;
	p->length = job->size;
}

double link_rate(struct link *link, uint64_t packets, uint32_t size, int all)
{
	struct job job = {.link = link, .packets = packets, .size = size, .all = all};
	struct dray_pkt p[BURST];
	pthread_t receiver;

	bench_pin(0);
	pthread_create(&receiver, NULL, receive, &job);
	for (uint64_t sent = 0; sent < packets;) {
		unsigned n = dray_tx_alloc(link->a, 0, p, packets - sent < BURST ? (unsigned)(packets - sent) : BURST, size);

		for (unsigned i = 0; i < n; i++)
			fill(&job, &p[i], sent + i);
		sent += dray_tx_burst(link->a, 0, p, n);
		if (n == 0)
			clock_relax();
	}
	pthread_join(receiver, NULL);
	bench_keep(job.sum);
	return bench_rate(&job.windows);
}

double link_rate_beyond(struct link *link, uint64_t packets, uint32_t size)
{
	struct job job = {.link = link, .packets = packets, .size = size};
	struct dray_pkt p[BURST];
	pthread_t receiver;

	bench_pin(0);
	pthread_create(&receiver, NULL, receive, &job);
	for (uint64_t sent = 0; !job.done; sent += BURST) {
		unsigned n = dray_tx_alloc(link->a, 0, p, BURST, size);

		for (unsigned i = 0; i < n; i++)
			fill(&job, &p[i], sent + i);
		(void)dray_tx_burst(link->a, 0, p, n);
		if (n == 0)
			clock_relax();
	}
	pthread_join(receiver, NULL);
	bench_keep(job.sum);
	return bench_rate(&job.windows);
}

static void put_one(struct dray_port *port, uint64_t value)
{
	struct dray_pkt p;

	while (dray_tx_alloc(port, 0, &p, 1, 64) == 0)
		;
	bench_write64(p.data, value);
	p.length = 64;
	dray_tx_burst(port, 0, &p, 1);
}

static uint64_t get_one(struct dray_port *port)
{
	struct dray_pkt p;
	uint64_t value;

	while (dray_rx_burst(port, 0, &p, 1) == 0)
		;
	value = bench_read64(p.data);
	dray_release(&p, 1);
	return value;
}

static void *reflect(void *argument)
{
	struct job *job = argument;

	bench_pin(1);
	for (uint64_t i = 0; i < job->packets; i++) {
		job->sum += get_one(job->link->b);
		put_one(job->link->b, i);
	}
	return NULL;
}

void link_round_trips(struct link *link, uint32_t *ns, unsigned n)
{
	struct job job = {.link = link, .packets = n};
	pthread_t reflector;
	uint64_t sum = 0;

	bench_pin(0);
	pthread_create(&reflector, NULL, reflect, &job);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t start = clock_ticks();

		put_one(link->a, i);
		sum += get_one(link->a);
		ns[i] = bench_ns(clock_ticks() - start);
	}
	pthread_join(reflector, NULL);
	bench_keep(sum + job.sum);
}

uint64_t link_alone(struct link *link, uint64_t packets)
{
	struct dray_pkt p[BURST];
	uint64_t sum = 0;

	for (uint64_t sent = 0; sent < packets; sent += BURST) {
		unsigned n = dray_tx_alloc(link->a, 0, p, BURST, 64);

		for (unsigned i = 0; i < n; i++) {
			bench_write64(p[i].data, sent + i);
			p[i].length = 64;
		}
		dray_tx_burst(link->a, 0, p, n);
		n = dray_rx_burst(link->b, 0, p, BURST);
		for (unsigned i = 0; i < n; i++)
			sum += bench_read64(p[i].data);
		dray_release(p, n);
	}
	return sum;
}
