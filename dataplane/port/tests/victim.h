/* SPDX-License-Identifier: Apache-2.0 */
/* An application whose peer is hostile: it checks all that the library gives it. */
#ifndef DRAY_TEST_VICTIM_H
#define DRAY_TEST_VICTIM_H

#include "dray.h"

#define VICTIM_HOLDS 40

struct victim {
	struct dray_port *port;
	struct dray_pkt held[VICTIM_HOLDS];
	unsigned n;
	uintptr_t low, high; /* where data has been */
	uint64_t sum, received, sent, seed;
};

/* Receive, hold for a while, read all, and send a burst. */
void victim_work(struct victim *v);

#endif
