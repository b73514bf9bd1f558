/* SPDX-License-Identifier: Apache-2.0 */
/* Whether there are enough CPUs for the polling threads, by their count and by scheduler
 * statistics. */
#ifndef GEN_CPUS_H
#define GEN_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "json.h"

struct cpus {
	unsigned allowed; /* that this thread may run on */
	unsigned polling; /* threads of this program that never sleep */
	/* such threads of other programs on the same CPUs, from --beside */
	unsigned beside;
	uint64_t began_ns;
	bool knows_waits;   /* the kernel reports how long this thread waited for a CPU */
	uint64_t waited_ns; /* before */
	uint64_t preempted; /* before: times */
};

/* Called by the thread that handles packets, when it begins. */
struct cpus cpus_begin(unsigned polling, unsigned beside);

/* Write what happened since as the object "cpus". Called by the same thread. */
void cpus_write(const struct cpus *cpus, struct json *j);

#endif
