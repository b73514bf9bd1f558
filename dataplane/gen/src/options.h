/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: README.md, "Options". */
#ifndef GEN_OPTIONS_H
#define GEN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "bulk.h"
#include "encap.h"
#include "fapi.h"
#include "fronthaul.h"
#include "units.h"

#define BURST_MAX 1024u
#define FRAME_MAX 65535u
#define QUEUES_MAX 64u
#define UDP_BATCH 64u /* datagrams in one system call, at most */

enum role { ROLE_SINK = 1, ROLE_SEND, ROLE_PING, ROLE_LOOP };

struct options {
	enum role role;
	const char *port, *to_text, *rate_text, *layer_text;
	union address to; /* valid if to_text is set */
	uint32_t headers; /* bytes before the payload of a sent frame */
	uint8_t to_mac[6];
	const char *encap_text, *spread_text; /* NULL: not given */
	struct encap encap;		      /* if one of them is given */
	const char *fronthaul_text;
	struct fronthaul fronthaul; /* if it is given */
	const char *fapi_text;
	struct fapi fapi;			    /* if it is given */
	uint64_t packets, duration_ns, interval_ns; /* 0: none */
	uint32_t stream;			    /* sink: 0 is the first stream to arrive */
	uint64_t spin_ns, buffer;
	bool busy, spin_auto, check, strict, hold;
	uint32_t beside; /* polling threads of other programs on the same CPUs */
	uint64_t peer_timeout_ns;

	bool imix;
	uint32_t batch; /* udp ports: datagrams in one system call, at most */
	uint32_t size;	/* of a frame; bytes; 0 while it is not given */
	struct rate rate;
	int32_t layer_bytes; /* that a rate in bit/s counts in addition to the frame */
	uint32_t burst, flows;
	uint32_t dscp;
	const char *bulk_text; /* NULL: not given */
	struct bulk bulk;
	bool granularity_given, catch_up_given;
	uint64_t granularity_ns, catch_up_ns, warmup;
	bool closed;
	uint64_t timeout_ns;

	bool reflect, once;

	/* of loop */
	const char *to_port, *back_to_text;
	bool both, to_mac_given, back_to_mac_given;
	union address back_to; /* valid if back_to_text is set */
	uint8_t back_to_mac[6];
	const char *back_encap_text;
	struct encap back_encap;

	/* of dpdk ports */
	const char *eal;
	uint32_t queues, mtu;
	uint32_t descriptors; /* 0: the driver's preference */
	bool from_given;
	union address from;
};

/*
 * Read argv[1] on. Returns 0; 1: printed --help or --version; -1: wrong usage,
 * reported on stderr.
 */
int options_read(int argc, char **argv, struct options *options);

/* The slots that decide what is sent when; NULL: a rate does. */
static inline const struct slots *options_slots(const struct options *o)
{
	if (o->fronthaul.scs)
		return &o->fronthaul.slots;
	return o->fapi.scs ? &o->fapi.slots : NULL;
}

const char *options_role(enum role role);

#endif
