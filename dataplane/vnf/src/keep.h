/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of the load balancer: it keeps a session for each flow, and announces that it leaves. */
#ifndef VNF_KEEP_H
#define VNF_KEEP_H

#include "announce.h"
#include "store.h"

struct keep {
	struct track track;
	struct store store;
	uint64_t leaving; /* the number of the announcement that it leaves; 0: it stays */
	bool returned;	  /* it came back: no more packets will come */
};

struct keep_options {
	uint32_t sessions;
	uint64_t lag_ns, idle_ns;
	struct store_address redis;
};

/* NULL: no memory or no random numbers. */
struct keep *keep_open(const struct keep_options *options);
void keep_close(struct keep *k);

/* PASS: the packet was counted. */
enum reason keep_packet(struct keep *k, const struct packet *p);

/* To be called about every millisecond, between packets. `leaving`: store everything at once. */
void keep_turn(struct keep *k, uint64_t now_ns, bool leaving);

#endif
