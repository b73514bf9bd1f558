/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load balancer: port 0 has the NIC, each other port a worker. What comes in by port 0 goes to the
 * worker of its flow, and what workers send leaves by port 0. Workers are chosen by rendezvous
 * hashing (D. G. Thaler, C. V. Ravishankar: Using name-based mappings to increase hit rates,
 * IEEE/ACM Transactions on Networking 6(1), 1998): each worker has a weight for each flow, and the
 * one with the largest of those that are up gets it. A worker that goes takes no flow but its own
 * with it, and one that comes takes an even share from all, with no table to be made anew.
 */
#ifndef VNF_LB_H
#define VNF_LB_H

#include <stdatomic.h>

#include "port_setup.h"

#define LB_SNAPSHOT                                                                                \
	136u /* bytes: addresses and ports of IPv6 in GTP-U, behind IPv6 and two tags              \
	      */

struct lb {
	_Atomic uint32_t up;	     /* a bit for each port with a worker that is there */
	_Atomic uint64_t rebalances; /* how often it changed since the first time */
};

/* Who is up now. One thread alone may say so; others handle packets meanwhile. */
void lb_first(struct lb *lb, uint32_t up);
void lb_change(struct lb *lb, uint32_t up);

enum reason lb_handle(const struct lb *lb, const struct packet *p, struct change *c);

/*
 * The flow's hash, the same for both directions: over addresses, protocol, and ports of TCP, UDP
 * and SCTP; of a packet in GTP-U those of the packet inside. Fragments have no ports. What is not
 * IP, or ends within its header: MAC addresses and EtherType. It is not keyed.
 */
uint64_t lb_hash(const struct packet *p);

/* The worker's port; `up` is not 0. */
unsigned lb_pick(uint32_t up, uint64_t hash);

#endif
