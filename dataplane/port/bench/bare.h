/* SPDX-License-Identifier: Apache-2.0 */
/* The physical limit of the moment: a cache line that goes to and fro, and the barest ring that carries 64 bytes. */
#ifndef DRAY_BENCH_BARE_H
#define DRAY_BENCH_BARE_H

#include <stdint.h>

/* The reference geometry. It is printed with every result, since it alone moves the rate by up to 3. */
#define BARE_SLOTS 1024u
#define BARE_STRIDE 64u
#define BARE_BURST 32u

/* Packets a second through the bare ring: 64 B written by one thread, and read by the other. */
double bare_ring_rate(uint64_t packets);

/* Packets a second that one thread copies, 64 B each, from one ring's slots to another's. */
double bare_copy_rate(uint64_t packets);

/* Half of them go, half come back. Nanoseconds of each of n round trips of one 64 B slot over two bare rings, into ns[]. */
void bare_ring_round_trips(uint32_t *ns, unsigned n);

/* Nanoseconds per round trip of one word, median of n. */
double bare_line_round_trip(unsigned n);

#endif
