/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive mode under little load, waking up, setting up. */
#include "modes.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

#define IDLE_US 1000u /* much longer than a port polls before it sleeps */

struct job {
	struct link *link;
	_Atomic int stop;
	double cpu, starved; /* % of a core; % of the time ready to run, without a CPU */
	uint32_t *ns;
	unsigned n, got;
	_Atomic uint32_t word; /* of the futex */
	_Atomic uint64_t sent; /* ticks */
	int socket;
};

static void take_stamps(struct job *job)
{
	struct dray_pkt p[32];
	unsigned n = dray_rx_burst(job->link->b, 0, p, 32);
	uint64_t now = clock_ticks();

	for (unsigned i = 0; i < n; i++)
		if (job->got < job->n)
			job->ns[job->got++] = bench_ns(now - *(uint64_t *)p[i].data);
	dray_release(p, n);
}

static void *receive(void *argument)
{
	struct job *job = argument;
	uint64_t cpu, wall, starved;

	bench_pin(1);
	starved = bench_starved_ns();
	cpu = clock_of(CLOCK_THREAD_CPUTIME_ID);
	wall = clock_ns();
	while (!atomic_load(&job->stop))
		if (dray_wait(job->link->b, 0, DRAY_WAIT_RX, 100) > 0)
			take_stamps(job);
	job->cpu = (double)(clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu) * 100 / (double)(clock_ns() - wall);
	job->starved = (double)(bench_starved_ns() - starved) * 100 / (double)(clock_ns() - wall);
	job->n = 0; /* what is left must not be taken for packets of the next load */
	while (dray_wait(job->link->b, 0, DRAY_WAIT_RX, 10) > 0)
		take_stamps(job);
	return NULL;
}

static void send_stamp(struct dray_port *port, uint64_t stamp)
{
	struct dray_pkt p;

	if (!dray_tx_alloc(port, 0, &p, 1, 64))
		return;
	*(uint64_t *)p.data = stamp;
	p.length = 64;
	(void)dray_tx_burst(port, 0, &p, 1);
}

/* Each packet at its intended time, whose stamp it carries. A sender that is late does not hide it. */
static void send_paced(struct link *link, unsigned pps, unsigned ms)
{
	uint64_t start = clock_ticks(), ns;
	double period = 1e9 / pps / bench_ns_per_tick();
	uint64_t packets = (uint64_t)pps * ms / 1000;

	for (uint64_t i = 0; i < packets; i++) {
		uint64_t due = start + (uint64_t)((double)i * period);

		for (ns = clock_ticks(); (int64_t)(due - ns) > 0; ns = clock_ticks())
			clock_relax();
		send_stamp(link->a, due);
	}
}

unsigned adaptive_load(struct link *link, unsigned pps, unsigned ms, double *cpu, double *starved, uint32_t *ns, unsigned n)
{
	struct job job = {.link = link, .ns = ns, .n = n};
	pthread_t receiver;

	bench_pin(0);
	pthread_create(&receiver, NULL, receive, &job);
	if (pps)
		send_paced(link, pps, ms);
	else
		usleep(ms * 1000);
	atomic_store(&job.stop, 1);
	pthread_join(receiver, NULL);
	*cpu = job.cpu;
	*starved = job.starved;
	return job.got;
}

void first_packets(struct link *link, uint32_t *ns, unsigned n)
{
	struct job job = {.link = link, .ns = ns, .n = n};
	pthread_t receiver;

	bench_pin(0);
	pthread_create(&receiver, NULL, receive, &job);
	for (unsigned i = 0; i < n; i++) {
		usleep(IDLE_US);
		send_stamp(link->a, clock_ticks());
	}
	usleep(IDLE_US);
	atomic_store(&job.stop, 1);
	pthread_join(receiver, NULL);
	for (; job.got < n; job.got++) /* late by more than a whole turn */
		ns[job.got] = IDLE_US * 1000;
}

static void *sleep_on_futex(void *argument)
{
	struct job *job = argument;

	bench_pin(1);
	for (uint32_t i = 0; i < job->n; i++) {
		while (atomic_load_explicit(&job->word, memory_order_acquire) == i)
			syscall(SYS_futex, &job->word, FUTEX_WAIT_PRIVATE, i, NULL, NULL, 0);
		job->ns[i] = bench_ns(clock_ticks() - atomic_load(&job->sent));
	}
	return NULL;
}

void first_futex(uint32_t *ns, unsigned n)
{
	struct job job = {.ns = ns, .n = n};
	pthread_t sleeper;

	bench_pin(0);
	pthread_create(&sleeper, NULL, sleep_on_futex, &job);
	for (uint32_t i = 0; i < n; i++) {
		usleep(IDLE_US);
		atomic_store(&job.sent, clock_ticks());
		atomic_store_explicit(&job.word, i + 1, memory_order_release);
		syscall(SYS_futex, &job.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	pthread_join(sleeper, NULL);
}

static void *sleep_on_socket(void *argument)
{
	struct job *job = argument;
	uint64_t stamp;

	bench_pin(1);
	for (uint32_t i = 0; i < job->n; i++)
		job->ns[i] = recv(job->socket, &stamp, sizeof(stamp), 0) == sizeof(stamp) ? bench_ns(clock_ticks() - stamp) : UINT32_MAX;
	return NULL;
}

void first_socket(uint32_t *ns, unsigned n)
{
	struct job job = {.ns = ns, .n = n};
	pthread_t sleeper;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	job.socket = ends[1];
	bench_pin(0);
	pthread_create(&sleeper, NULL, sleep_on_socket, &job);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t stamp;

		usleep(IDLE_US);
		stamp = clock_ticks();
		(void)!send(ends[0], &stamp, sizeof(stamp), 0);
	}
	pthread_join(sleeper, NULL);
	close(ends[0]);
	close(ends[1]);
}

static uint32_t set_up(struct dray_port *a, const struct dray_options *o)
{
	struct dray_port *b;
	struct dray_pkt p;
	uint64_t start = clock_ticks();
	uint32_t ns;

	while (dray_open("b", o, &b))
		; /* the broker has not noticed yet that the one before left */
	for (;;) {
		dray_service(a);
		dray_service(b);
		send_stamp(a, 0);
		if (dray_rx_burst(b, 0, &p, 1))
			break;
	}
	ns = bench_ns(clock_ticks() - start);
	dray_release(&p, 1);
	dray_close(b);
	while (link_up(a))
		;
	return ns;
}

void set_ups(const struct broker_options *options, uint32_t *ns, unsigned n)
{
	struct broker *broker = broker_fork(options);
	struct dray_options o = {.size = sizeof(o), .directory = broker_directory(broker)};
	struct dray_port *a;

	if (dray_open("a", &o, &a) == 0) {
		for (unsigned i = 0; i < n; i++)
			ns[i] = set_up(a, &o);
		dray_close(a);
	}
	broker_stop(broker);
}
