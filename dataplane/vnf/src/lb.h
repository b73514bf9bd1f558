/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load balancer: port 0 has the NIC, each other port a worker. Packets from port 0 go to the worker
 * of their flow, and packets from workers leave by port 0. Workers are chosen by rendezvous
 * hashing (D. G. Thaler, C. V. Ravishankar: Using name-based mappings to increase hit rates,
 * IEEE/ACM Transactions on Networking 6(1), 1998): each worker has a weight for each flow, and the
 * flow goes to the worker with the largest weight among those that are up. If a worker leaves, only
 * its own flows move; a new worker takes an even share from all others. There is no table to
 * rebuild.
 */
#ifndef VNF_LB_H
#define VNF_LB_H

#include <stdatomic.h>

#include "port_setup.h"

/* bytes: addresses and ports of IPv6 in GTP-U, after IPv6 and two tags */
#define LB_SNAPSHOT 136u

struct lb {
	_Atomic uint32_t up;	     /* a bit for each port whose worker is up */
	_Atomic uint64_t rebalances; /* how often it changed since the first time */
};

/* Set which workers are up. Only one thread may call it; others handle packets meanwhile. */
void lb_first(struct lb *lb, uint32_t up);
void lb_change(struct lb *lb, uint32_t up);

enum reason lb_handle(const struct lb *lb, const struct packet *p, struct change *c);

/*
 * The flow's hash, the same for both directions: over addresses, protocol, and ports of TCP, UDP
 * and SCTP; for a packet in GTP-U, those of the inner packet. Fragments have no ports. If a frame
 * is not IP, or ends within its header: over MAC addresses and EtherType. The hash has no key.
 */
uint64_t lb_hash(const struct packet *p);

/* The worker's port; `up` is not 0. */
unsigned lb_pick(uint32_t up, uint64_t hash);

#endif
