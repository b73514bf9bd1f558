/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a stream of subframes, over libdray_iq or ZeroMQ. */
#ifndef DRAY_IQ_BENCH_OVER_H
#define DRAY_IQ_BENCH_OVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct over {
	const char *name;
	bool network; /* its ends are in two network namespaces */
	void *(*open)(bool sends, const char *where);
	void (*send)(void *end, const void *samples, size_t bytes);
	void (*receive)(void *end, void *samples, size_t bytes);
	void (*close)(void *end);
};

extern const struct over over_dray, over_zmq_ipc, over_zmq_tcp;

/* Where the ends of over_zmq_tcp meet. */
#define NETWORK_ADDRESS "10.255.77.1"

/* Put this process into a network namespace that a veth link connects to another one. */
void network_make(void);

/* The same, in the other namespace. */
void network_enter_peer(void);

static inline void must(bool condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "dray-iq-probe: %s\n", what);
		exit(1);
	}
}

#endif
