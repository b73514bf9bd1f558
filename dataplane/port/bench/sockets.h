/* SPDX-License-Identifier: Apache-2.0 */
/* What an application would use without libdray, under the same load. */
#ifndef DRAY_BENCH_SOCKETS_H
#define DRAY_BENCH_SOCKETS_H

#include <stdint.h>

/* Two descriptors at each end: what it writes to, what it reads from. */
struct channel {
	int a_out, a_in, b_out, b_in;
	int datagrams; /* 0: a stream of bytes */
};

/* Errors: -errno. */
int channel_pipe(struct channel *channel);
int channel_unix(struct channel *channel);

/* Two datagram sockets that exist already, each connected to the other. */
int channel_of_sockets(struct channel *channel, int a, int b);

/* Packets of 64 B a second that arrive, bursts of 32 each way, for `ms`. */
double channel_rate(const struct channel *channel, unsigned ms);

/* Nanoseconds of n round trips of 64 B. */
void channel_round_trips(const struct channel *channel, uint32_t *ns, unsigned n);

#endif
