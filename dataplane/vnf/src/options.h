/* SPDX-License-Identifier: Apache-2.0 */
/* The command line after EAL's arguments. */
#ifndef VNF_OPTIONS_H
#define VNF_OPTIONS_H

#include "function.h"

#define BURST_MAX 64u

struct options {
	enum mode mode;
	bool stages, yield;
	uint32_t queues, burst, descriptors;
	uint64_t interval_ns, duration_ns, packets; /* 0: none, no end */
	uint64_t sleep_ns;			    /* 0: a thread without packets never sleeps */
	uint64_t work_ns;			    /* of a CPU for each packet, besides its own */

	/* By port; *_of has a bit for each that was given. */
	uint8_t next[PORTS_MAX][MAC];
	uint32_t ip[PORTS_MAX], peer[PORTS_MAX], mtu[PORTS_MAX];
	uint32_t next_of, ip_of, peer_of, mtu_of;

	const char *routes_path; /* l3fwd */
	uint32_t routes;
	uint64_t seed;
	bool has_default_route;
	uint32_t default_route;

	uint32_t svlans, svlan_base, cvlan_base, label; /* bng */

	bool gnb, plain; /* gtpu */
	const char *sessions_path;
	bool numbered; /* one of the following was given */
	uint32_t tunnels, teid, ue, qfi;

	bool announced; /* lb */
	uint64_t silence_ns;

	struct keep_options keep; /* session */
};

/* argv[0] is the mode, or --help. 0: go on; 1: printed the help; -1: reported what is wrong.
 */
int options_read(int argc, char **argv, struct options *options);

/* Check the number of ports. NULL, or what is wrong with it, in a static buffer. */
const char *options_check_ports(const struct options *options, unsigned ports);

/* Addresses of the port from the options, or from its number. Its MAC and MTU come from the device.
 */
void options_port(const struct options *options, unsigned port, struct port_setup *setup);

/* Make the mode's tables; f->ports and f->port are set. 0, or -1 after reporting what is wrong. */
int options_function(const struct options *options, struct function *f);

#endif
