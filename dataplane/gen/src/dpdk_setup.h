/* SPDX-License-Identifier: Apache-2.0 */
/* A dpdk port, and how its device is found and configured. */
#ifndef GEN_DPDK_SETUP_H
#define GEN_DPDK_SETUP_H

#include <rte_mbuf.h>

#include "io.h"

struct io_dpdk {
	struct io io;
	uint16_t port, queues, next; /* next: the queue to look at first */
	bool configured, started;
	bool has_eal, opened, failed;
	const struct options *options; /* to open it with, if that has to wait */
	int start_error;	       /* of the last try; 0: no try, or started */
	bool calls;		       /* it connects to its peer, but only at its start */
	uint64_t tried_ns;
	struct rte_mempool *pool;
	const char *driver;
	unsigned received;
	uint64_t drops;
	bool up, was_up;
	uint64_t generation, down_ns, patience_ns;
	struct frame_seen seen;
	struct rte_mbuf *tx[IO_BATCH], *rx[IO_BATCH];
};

/* Start EAL if needed, then find and configure the device, which is not started. false: error says
 * why. */
bool dpdk_set_up(struct io_dpdk *port, const struct options *options, const char *name,
		 struct io_error *error);

#endif
