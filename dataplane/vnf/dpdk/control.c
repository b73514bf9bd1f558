/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that prints the counters and ends the others. No working thread gets a signal. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "program.h"

#define LOOK_NS 5000000 /* how often to check --packets and the links of workers */

static pthread_t thread;
static cpu_set_t cpus; /* of the process before EAL pinned its first thread */
static uint64_t began;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static sigset_t signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	return set;
}

void control_block_signals(void)
{
	sigset_t set = signals();

	sched_getaffinity(0, sizeof(cpus), &cpus);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); /* the reader of the results may exit */
}

static void print(const struct program *p, const char *event)
{
	struct totals totals;

	counters_total(&totals, p->counters, p->lcores);
	report_counts(&p->report, event, (double)(now_ns() - began) / 1e9, &totals);
}

static bool enough(const struct program *p)
{
	struct totals totals;

	if (!p->options.packets)
		return false;
	counters_total(&totals, p->counters, p->lcores);
	return totals.all_received >= p->options.packets;
}

/* The time of the next task: sleep until then. */
static uint64_t due(const struct program *p, uint64_t next_interval)
{
	uint64_t now = now_ns(), at = now + 3600000000000;

	if (p->options.packets || p->options.mode == MODE_LB || p->options.mode == MODE_SESSION)
		at = now + LOOK_NS;
	if (p->options.interval_ns && next_interval < at)
		at = next_interval;
	if (p->options.duration_ns && began + p->options.duration_ns < at)
		at = began + p->options.duration_ns;
	return at > now ? at - now : 0;
}

/*
 * Whether this thread ends the others. A session leaves first, and ends by itself; a second signal
 * ends it at once.
 */
static bool ends(struct program *p, int caught)
{
	bool signalled = caught == SIGINT || caught == SIGTERM;

	if (!signalled && !enough(p) &&
	    !(p->options.duration_ns && now_ns() >= began + p->options.duration_ns))
		return false;
	if (p->options.mode != MODE_SESSION)
		return true;
	return atomic_exchange_explicit(&p->leaving, true, memory_order_relaxed) && signalled;
}

static void *control(void *argument)
{
	struct program *p = argument;
	uint64_t next = began + p->options.interval_ns;
	sigset_t set = signals();
	int caught = 0;

	while (!ends(p, caught) && !atomic_load_explicit(&p->stop, memory_order_relaxed)) {
		uint64_t ns = due(p, next);
		struct timespec t = {.tv_sec = (time_t)(ns / 1000000000),
				     .tv_nsec = (long)(ns % 1000000000)};

		caught = sigtimedwait(&set, NULL, &t);
		if (p->options.mode == MODE_LB)
			links_watch(p);
		if (caught == SIGUSR1)
			print(p, "signal");
		if (p->options.interval_ns && now_ns() >= next) {
			print(p, "interval");
			next += p->options.interval_ns;
		}
	}
	atomic_store_explicit(&p->stop, true, memory_order_relaxed);
	return NULL;
}

int control_start(struct program *p)
{
	pthread_attr_t attributes;
	int ret;

	began = now_ns();
	report_ready(&p->report);
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus);
	ret = pthread_create(&thread, &attributes, control, p);
	pthread_attr_destroy(&attributes);
	if (ret == 0)
		return 0;
	errno = ret;
	perror("dray-vnf: starting a thread");
	return -1;
}

void control_end(struct program *p)
{
	pthread_join(thread, NULL);
	print(p, "end");
}
