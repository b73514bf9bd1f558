/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The downlink of an O-RAN fronthaul (O-RAN.WG4.CUS): which message is due when, its frame, and
 * when its symbol is on air.
 */
#ifndef GEN_FRONTHAUL_H
#define GEN_FRONTHAUL_H

#include <stdbool.h>
#include <stdint.h>

#include "slots.h"

#define FRONTHAUL_SYMBOLS 14u
#define FRONTHAUL_GROUPS                                                                           \
	(FRONTHAUL_SYMBOLS + 1) /* of messages due at once: symbols and C-plane                    \
				 */
#define FRONTHAUL_C_FRAME 60u	/* bytes of a C-plane message's frame, padded */

enum fronthaul_plane { FRONTHAUL_C, FRONTHAUL_U, FRONTHAUL_PLANES };

/* How long before its symbol is on air a message may be sent, or may arrive. */
struct fronthaul_window {
	uint64_t least_ns, most_ns;
};

/* Messages due at the same time, one of each layer. */
struct fronthaul_group {
	enum fronthaul_plane plane;
	uint32_t symbol;
	uint32_t before;    /* groups of the same plane in the same period before it */
	uint64_t offset_ns; /* when they are due, in a period of a slot's length */
	uint64_t ahead;	    /* so many slots after the period, the one they belong to begins */
};

struct fronthaul {
	uint32_t scs; /* kHz; 0: there is no fronthaul */
	uint32_t prb, layers, vlan;
	struct fronthaul_window t1a[FRONTHAUL_PLANES], t2a[FRONTHAUL_PLANES];
	struct slots slots;
	struct fronthaul_group groups[FRONTHAUL_GROUPS]; /* in the order in which they are due */
};

/* A place in time on the air. */
struct fronthaul_symbol {
	enum fronthaul_plane plane;
	uint64_t slot;
	uint32_t symbol;
};

/*
 * Read "scs=30[,prb=273][,layers=4][,vlan=1]" and the windows "t1a-cp=285-429", "t1a-up=96-196",
 * "t2a-cp=285-429" and "t2a-up=71-428", in us. Returns NULL, or what is wrong.
 */
const char *fronthaul_read(const char *text, struct fronthaul *fronthaul);

/* When a symbol is on air. */
uint64_t fronthaul_air(const struct fronthaul *fronthaul, const struct fronthaul_symbol *symbol);

struct frame_address;

/* As frame_write, to an address that has a fronthaul. */
void fronthaul_write(uint8_t *frame, const struct frame_address *address, uint32_t payload,
		     uint64_t number);

/* As frame_payload, for a frame of at least FRAME_HEADERS bytes with a VLAN tag. */
uint32_t fronthaul_payload(const uint8_t *frame, uint32_t length);

/* Which symbol a received message is for: the one nearest to `ns`. false: for none. */
bool fronthaul_symbol(const struct fronthaul *fronthaul, const uint8_t *frame, uint64_t ns,
		      struct fronthaul_symbol *symbol);

/* Its receive window; the kind is its plane. false: it has none. */
bool fronthaul_window(const struct fronthaul *fronthaul, const uint8_t *frame, uint64_t ns,
		      struct slots_window *window);

#endif
