/* SPDX-License-Identifier: Apache-2.0 */
/* Results: one JSON object a line, written whole. */
#ifndef VNF_REPORT_H
#define VNF_REPORT_H

#include <stdio.h>

#include "counters.h"
#include "function.h"

struct report_port {
	char name[64]; /* of the device */
};

struct report {
	FILE *out;
	const char *mode;
	unsigned ports, lcores;
	bool stages;
	const struct report_port *port;
	const struct port_setup *setup;
	const struct lb *lb;	 /* NULL in other modes */
	const struct keep *keep; /* NULL in other modes */
};

/* The ports are up. */
void report_ready(const struct report *r);

/* `event`: interval, signal or end; `seconds` since it was ready. Counts begin then, too. */
void report_counts(const struct report *r, const char *event, double seconds,
		   const struct totals *totals);

#endif
