/* SPDX-License-Identifier: Apache-2.0 */
/* The functions, each of which turns one packet into another or says why not. No EAL, no mbuf. */
#ifndef VNF_FUNCTION_H
#define VNF_FUNCTION_H

#include "bng.h"
#include "gtpu.h"
#include "l3fwd.h"
#include "lb.h"

enum mode { MODE_NONE, MODE_L2FWD, MODE_L3FWD, MODE_BNG, MODE_GTPU, MODE_LB, MODE_COUNT };

struct function {
	enum mode mode;
	unsigned ports;
	struct port_setup port[PORTS_MAX];
	struct bng bng;	  /* MODE_BNG */
	struct gtpu gtpu; /* MODE_GTPU */
	struct lb lb;	  /* MODE_LB */
};

const char *mode_name(enum mode mode);

/* Bytes of headers that the mode looks at, for packet_take. */
uint32_t function_snapshot(enum mode mode);

/*
 * Decide what becomes of a packet: PASS, and *c says how it leaves; else why it does not. Of l3fwd
 * it is the first half. Any thread, any number at a time.
 */
enum reason function_handle(const struct function *f, const struct packet *p, struct change *c);

/* The port opposite: 0 and 1, 2 and 3; a port that is alone is its own. */
unsigned function_opposite(const struct function *f, unsigned port);

/*
 * Which of n workers gets the packet: all packets of one user, or of one pair of addresses, go to
 * the same.
 */
unsigned function_worker(const struct function *f, const struct packet *p, unsigned n);

#endif
