/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of the working lcores: each does everything, or each is one stage. */
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_ring.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "turns.h"

#define IDLE_ROUNDS 32u
#define CLASSIFY 64u /* bytes that identify the user of a packet */

/*
 * Stages, of n lcores: the first receives and gives each packet to the worker of its user; the last
 * transmits for all. Of two lcores the second works and transmits.
 *
 *   receive and balance --> ring --> worker --> ring --> transmit
 *                      \--> ring --> worker --> ring --/
 */
struct stages {
	unsigned workers;
	struct rte_ring *in[RTE_MAX_LCORE], *out[RTE_MAX_LCORE]; /* of each worker */
	atomic_bool received_all;				 /* the first stage has ended */
	atomic_uint workers_done;
};

static struct stages stages;

static bool stopped(const struct program *p)
{
	return atomic_load_explicit(&p->stop, memory_order_relaxed);
}

/* State that a loop keeps between rounds. */
struct rounds {
	struct counters *counters;
	uint64_t began; /* ticks */
	unsigned idle;	/* rounds without packets in a row */
	bool yield;
	long sleep_ns;
};

static struct rounds rounds_begin(const struct program *p, struct counters *counters)
{
	return (struct rounds){.counters = counters,
			       .began = rte_rdtsc(),
			       .yield = p->options.yield,
			       .sleep_ns = (long)p->options.sleep_ns};
}

static void rest(const struct rounds *r)
{
	struct timespec t = {.tv_nsec = r->sleep_ns};

	if (r->sleep_ns)
		nanosleep(&t, NULL);
	else
		sched_yield();
}

/* Only the cycles of rounds with packets count. */
static void round_end(struct rounds *r, uint64_t packets)
{
	uint64_t now = rte_rdtsc();

	if (packets) {
		count(&r->counters->cycles, now - r->began);
		r->idle = 0;
	} else if ((r->yield || r->sleep_ns) && ++r->idle >= IDLE_ROUNDS) {
		rest(r);
		now = rte_rdtsc();
	}
	r->began = now;
}

static unsigned receive(struct worker *w, unsigned port, struct rte_mbuf **m)
{
	unsigned n = rte_eth_rx_burst(w->program->device[port], w->queue, m,
				      (uint16_t)w->program->options.burst);

	if (n)
		count(&w->counters->received[port], n);
	return n;
}

static void run_to_completion(struct program *p, unsigned which)
{
	struct rounds rounds = rounds_begin(p, &p->counters[which]);
	struct turns turns = {0};
	struct worker w;

	work_open(&w, p, &p->counters[which], (uint16_t)which, NULL);
	for (unsigned packets = 0; !stopped(p);) {
		if (p->options.mode == MODE_SESSION)
			turns_round(&turns, &w, p, packets);
		packets = 0;
		for (unsigned port = 0; port < p->ports; port++) {
			struct rte_mbuf *m[BURST_MAX];
			unsigned n = receive(&w, port, m);

			if (n)
				work_handle(&w, port, m, n);
			packets += n;
		}
		if (packets)
			work_flush(&w);
		round_end(&rounds, packets);
	}
}

/*
 * To one worker after the other. The input port is stored in the mbuf, since drivers such as
 * net_ring do not do that.
 */
static void balance(struct worker *w, unsigned port, struct rte_mbuf **m, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned to = 0;

		m[i]->port = (uint16_t)port;
		if (stages.workers > 1) {
			struct packet p;

			packet_take(&p, rte_pktmbuf_mtod(m[i], const uint8_t *), m[i]->data_len,
				    port, CLASSIFY);
			to = function_worker(&w->program->function, &p, stages.workers);
		}
		if (rte_ring_sp_enqueue(stages.in[to], m[i]) < 0)
			work_drop(w, m[i], DROP_RING);
	}
}

static void stage_receive(struct program *p, unsigned which)
{
	struct rounds rounds = rounds_begin(p, &p->counters[which]);
	struct worker w;

	work_open(&w, p, &p->counters[which], 0, NULL);
	while (!stopped(p)) {
		unsigned packets = 0;

		for (unsigned port = 0; port < p->ports; port++) {
			struct rte_mbuf *m[BURST_MAX];
			unsigned n = receive(&w, port, m);

			balance(&w, port, m, n);
			packets += n;
		}
		round_end(&rounds, packets);
	}
	/* acquired in stage_work */
	atomic_store_explicit(&stages.received_all, true, memory_order_release);
}

/* Runs of packets of one port. */
static void handle_runs(void (*handle)(struct worker *, unsigned, struct rte_mbuf **, unsigned),
			struct worker *w, struct rte_mbuf **m, unsigned n)
{
	for (unsigned i = 0, k; i < n; i = k) {
		unsigned port = m[i]->port;

		for (k = i + 1; k < n && m[k]->port == port; k++)
			;
		handle(w, port, m + i, k - i);
	}
}

/* Read the flag before the ring: a ring that is empty afterwards stays empty. */
static void stage_work(struct program *p, unsigned which)
{
	unsigned me = which - 1;
	struct rounds rounds = rounds_begin(p, &p->counters[which]);
	struct worker w;
	bool ending;

	work_open(&w, p, &p->counters[which], 0, stages.out[me]);
	for (;;) {
		struct rte_mbuf *m[BURST_MAX];
		unsigned n;

		/* released in stage_receive */
		ending = atomic_load_explicit(&stages.received_all, memory_order_acquire);
		n = rte_ring_sc_dequeue_burst(stages.in[me], (void **)m, p->options.burst, NULL);
		if (n) {
			handle_runs(work_handle, &w, m, n);
			work_flush(&w);
		} else if (ending) {
			break;
		}
		round_end(&rounds, n);
	}
	/* acquired in stage_transmit */
	atomic_fetch_add_explicit(&stages.workers_done, 1, memory_order_release);
}

static void stage_transmit(struct program *p, unsigned which)
{
	struct rounds rounds = rounds_begin(p, &p->counters[which]);
	struct worker w;
	bool ending;

	work_open(&w, p, &p->counters[which], 0, NULL);
	for (;;) {
		unsigned packets = 0;

		/* released in stage_work */
		ending = atomic_load_explicit(&stages.workers_done, memory_order_acquire) ==
			 stages.workers;
		for (unsigned i = 0; i < stages.workers; i++) {
			struct rte_mbuf *m[BURST_MAX];
			unsigned n = rte_ring_sc_dequeue_burst(stages.out[i], (void **)m,
							       p->options.burst, NULL);

			handle_runs(work_transmit, &w, m, n);
			packets += n;
		}
		if (ending && packets == 0)
			break;
		round_end(&rounds, packets);
	}
}

/* The index of a working lcore, the main one first. */
static unsigned number_of_this(void)
{
	unsigned main_index = (unsigned)rte_lcore_index((int)rte_get_main_lcore()),
		 index = (unsigned)rte_lcore_index(-1);

	return index == main_index ? 0 : index < main_index ? index + 1 : index;
}

static int run(void *argument)
{
	struct program *p = argument;
	unsigned which = number_of_this();

	if (which >= p->lcores)
		return 0;
	if (!p->options.stages)
		run_to_completion(p, which);
	else if (which == 0)
		stage_receive(p, which);
	else if (which <= stages.workers)
		stage_work(p, which);
	else
		stage_transmit(p, which);
	return 0;
}

int loops_lcores(const struct program *p)
{
	unsigned there = rte_lcore_count();

	if (p->options.stages && there < 2) {
		fputs("dray-vnf: --stages needs 2 lcores or more: give EAL -l or --lcores\n",
		      stderr);
		return -1;
	}
	if (p->options.stages)
		return (int)there;
	if (there < p->options.queues) {
		fprintf(stderr,
			"dray-vnf: %u queues take as many lcores, and there are %u: give EAL -l or "
			"--lcores\n",
			p->options.queues, there);
		return -1;
	}
	return (int)p->options.queues;
}

static struct rte_ring *make_ring(const char *kind, unsigned worker)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "dray-vnf-%s-%u", kind, worker);
	return rte_ring_create(name, STAGE_RING, (int)rte_socket_id(),
			       RING_F_SP_ENQ | RING_F_SC_DEQ);
}

static int make_stages(struct program *p)
{
	bool transmits = p->lcores > 2;

	stages.workers = transmits ? p->lcores - 2 : 1;
	for (unsigned i = 0; i < stages.workers; i++) {
		stages.in[i] = make_ring("in", i);
		if (transmits)
			stages.out[i] = make_ring("out", i);
		if (!stages.in[i] || (transmits && !stages.out[i])) {
			fprintf(stderr,
				"dray-vnf: no memory for rings between stages (%s): give EAL a "
				"larger -m\n",
				rte_strerror(rte_errno));
			return -1;
		}
	}
	return 0;
}

int loops_run(struct program *p)
{
	int ret = p->options.stages ? make_stages(p) : 0;

	if (ret == 0)
		ret = rte_eal_mp_remote_launch(run, p, CALL_MAIN);
	rte_eal_mp_wait_lcore();
	for (unsigned i = 0; i < stages.workers; i++) {
		rte_ring_free(stages.in[i]);
		rte_ring_free(stages.out[i]);
	}
	return ret;
}
