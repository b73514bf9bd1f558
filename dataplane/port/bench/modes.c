/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive mode under little load, waking up, setting up. */
#include "modes.h"

#include <linux/futex.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

#define IDLE_US 1000u /* much longer than a port polls before it sleeps */
#define BURST 32

struct job {
	struct link *link;
	_Atomic int begun, stop;
	struct loaded loaded;
	uint32_t *ns;
	unsigned n, got;
	_Atomic uint32_t word; /* of the futex */
	_Atomic uint64_t sent; /* ticks */
	int socket;
};

static void take_stamps(struct job *job)
{
	struct dray_pkt p[BURST];
	unsigned n = dray_rx_burst(job->link->b, 0, p, BURST);
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
	atomic_store(&job->begun, 1);
	do {
		if (dray_wait(job->link->b, 0, DRAY_WAIT_RX, 100) > 0)
			take_stamps(job);
	} while (!atomic_load(&job->stop));
	job->loaded.cpu = (double)(clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu) * 100 / (double)(clock_ns() - wall);
	job->loaded.starved = (double)(bench_starved_ns() - starved) * 100 / (double)(clock_ns() - wall);
	job->n = 0; /* what is left must not be taken for packets of the next load */
	while (dray_wait(job->link->b, 0, DRAY_WAIT_RX, 10) > 0)
		take_stamps(job);
	return NULL;
}

static void send_stamps(struct dray_port *port, uint64_t stamp, unsigned n)
{
	struct dray_pkt p[BURST];

	n = dray_tx_alloc(port, 0, p, n, 64);
	for (unsigned i = 0; i < n; i++) {
		*(uint64_t *)p[i].data = stamp;
		p[i].length = 64;
	}
	(void)dray_tx_burst(port, 0, p, n);
}

/* How many mean gaps there are before a packet that comes at a random time. The sequence is the same in each run. */
static double random_gap(uint64_t *dice)
{
	*dice ^= *dice << 13;
	*dice ^= *dice >> 7;
	*dice ^= *dice << 17;
	return -log(((double)(*dice >> 11) + 1) / 0x1p53);
}

/*
 * Each packet at its intended time, whose stamp it carries. A sender that is late does not hide it. Returns the mean ns that a packet took the
 * sender.
 */
static double send_paced(struct link *link, const struct load *load)
{
	const unsigned burst = load->arrivals == ARRIVALS_BURSTS ? BURST : 1;
	const double gap = 1e9 / load->pps / bench_ns_per_tick() * burst;
	const uint64_t times = (uint64_t)load->pps * load->ms / 1000 / burst;
	uint64_t start = clock_ticks(), dice = 88172645463325252ull, spent = 0, now;
	double after = 0;

	for (uint64_t i = 0; i < times; i++) {
		uint64_t due = start + (uint64_t)after;

		while ((int64_t)(due - (now = clock_ticks())) > 0)
			clock_relax();
		send_stamps(link->a, due, burst);
		spent += clock_ticks() - now;
		after += load->arrivals == ARRIVALS_RANDOM ? gap * random_gap(&dice) : gap;
	}
	return times ? (double)spent * bench_ns_per_tick() / (double)(times * burst) : 0;
}

unsigned adaptive_load(struct link *link, const struct load *load, struct loaded *loaded, uint32_t *ns, unsigned n)
{
	struct job job = {.link = link, .ns = ns, .n = n};
	pthread_t receiver;
	double send_ns = 0;
	uint64_t starved;

	bench_pin(0);
	pthread_create(&receiver, NULL, receive, &job);
	while (!atomic_load(&job.begun))
		usleep(100);
	starved = bench_starved_ns();
	if (load->pps)
		send_ns = send_paced(link, load);
	else
		usleep(load->ms * 1000);
	starved = bench_starved_ns() - starved;
	atomic_store(&job.stop, 1);
	pthread_join(receiver, NULL);
	*loaded = job.loaded;
	loaded->starved += (double)starved / load->ms / 1e4;
	loaded->send_ns = send_ns;
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
		send_stamps(link->a, clock_ticks(), 1);
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
		send_stamps(a, 0, 1);
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
