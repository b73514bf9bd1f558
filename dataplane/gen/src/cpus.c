/* SPDX-License-Identifier: Apache-2.0 */
/* Counting CPUs. */
#include "cpus.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>

#include "clock.h"

/*
 * share of its time that a thread with a CPU of its own waits for one, kernel threads and
 * interrupts included
 */
#define WAITS_AT_MOST 0.05

static unsigned count_allowed(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

/*
 * How long this thread was ready and had no CPU: the second number. false: a kernel without
 * CONFIG_SCHED_INFO.
 */
static bool read_waited(uint64_t *ns)
{
	FILE *f = fopen("/proc/thread-self/schedstat", "re");
	unsigned long long ran, waited;
	int n;

	if (!f)
		return false;
	n = fscanf(f, "%llu %llu", &ran, &waited);
	fclose(f);
	if (n != 2 || ran == 0)
		return false;
	*ns = waited;
	return true;
}

static uint64_t count_preempted(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nivcsw : 0;
}

struct cpus cpus_begin(unsigned polling, unsigned beside)
{
	struct cpus c = {.allowed = count_allowed(), .polling = polling, .beside = beside};

	c.knows_waits = read_waited(&c.waited_ns);
	c.preempted = count_preempted();
	c.began_ns = clock_now();
	return c;
}

void cpus_write(const struct cpus *c, struct json *j)
{
	uint64_t elapsed = clock_now() - c->began_ns, waited = 0;
	bool known = c->knows_waits && read_waited(&waited) && waited >= c->waited_ns;
	bool too_many = c->polling > 0 && c->polling + c->beside > c->allowed;

	waited = known ? waited - c->waited_ns : 0;
	json_open(j, "cpus");
	json_u64(j, "allowed", c->allowed);
	json_u64(j, "polling_threads", c->polling);
	json_u64(j, "polling_beside", c->beside);
	if (known)
		json_u64(j, "waited_ns", waited);
	json_u64(j, "preempted", count_preempted() - c->preempted);
	json_bool(j, "oversubscribed",
		  too_many || (double)waited > WAITS_AT_MOST * (double)elapsed);
	json_close(j);
}
