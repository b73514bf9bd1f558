/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive mode, and how fast a link comes into being. */
#ifndef DRAY_BENCH_MODES_H
#define DRAY_BENCH_MODES_H

#include <stdint.h>

#include "link.h"

/*
 * The receiver of an adaptive link at `pps` for `ms`: its CPU use in %; for how many % of the time it was ready and had no CPU, which no library can help;
 * one-way ns of packets, up to n of them, into ns[]. Returns how many.
 */
unsigned adaptive_load(struct link *link, unsigned pps, unsigned ms, double *cpu, double *starved, uint32_t *ns, unsigned n);

/* Nanoseconds from sending to receipt of n packets, each after the receiver has gone to sleep: over the link, a futex, a UNIX datagram socket. */
void first_packets(struct link *link, uint32_t *ns, unsigned n);
void first_futex(uint32_t *ns, unsigned n);
void first_socket(uint32_t *ns, unsigned n);

/* Nanoseconds from dray_open of the second end to its first packet, n times. */
void set_ups(const struct broker_options *options, uint32_t *ns, unsigned n);

#endif
