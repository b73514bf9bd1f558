/* SPDX-License-Identifier: Apache-2.0 */
/* The functions. Each turns one packet into another, or returns the reason to drop it. No EAL, no
 * mbuf. */
#ifndef VNF_FUNCTION_H
#define VNF_FUNCTION_H

#include "bng.h"
#include "gtpu.h"
#include "keep.h"
#include "l3fwd.h"
#include "lb.h"

enum mode {
	MODE_NONE,
	MODE_L2FWD,
	MODE_L3FWD,
	MODE_BNG,
	MODE_GTPU,
	MODE_LB,
	MODE_SESSION,
	MODE_COUNT
};

struct function {
	enum mode mode;
	unsigned ports;
	struct port_setup port[PORTS_MAX];
	struct bng bng;	   /* MODE_BNG */
	struct gtpu gtpu;  /* MODE_GTPU */
	struct lb lb;	   /* MODE_LB */
	struct keep *keep; /* MODE_SESSION; used by one thread */
};

const char *mode_name(enum mode mode);

/* Bytes of headers that the mode looks at, for packet_take. */
uint32_t function_snapshot(enum mode mode);

/*
 * Decide about a packet. PASS: *c describes how it leaves; otherwise the reason to drop it. In
 * l3fwd this is the first half. Any number of threads may call it at a time, of a session only
 * one.
 */
enum reason function_handle(const struct function *f, const struct packet *p, struct change *c);

/* The port opposite: 0 and 1, 2 and 3; a port without a partner is its own opposite. */
unsigned function_opposite(const struct function *f, unsigned port);

/*
 * Which of n workers gets the packet: all packets of one user, or of one pair of addresses, go to
 * the same.
 */
unsigned function_worker(const struct function *f, const struct packet *p, unsigned n);

#endif
