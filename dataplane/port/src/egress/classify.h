/* SPDX-License-Identifier: Apache-2.0 */
/* What a packet's headers say: its class, its flow, and whether it may be marked. */
#ifndef DRAY_CLASSIFY_H
#define DRAY_CLASSIFY_H

#include "scheduler.h"

#define NO_CLASS 0xff

/* Fill in the tables by which packets are classified. */
void classify_init(struct scheduler *s);

/* The class of a packet. */
unsigned classify(const struct scheduler *s, const struct dray_pkt *pkt);

/*
 * A hash of the flow: addresses, protocol and ports of IPv4 and IPv6, also behind VLAN tags.
 * Fragments have no ports. Anything else: Ethernet addresses and type.
 */
uint32_t packet_flow(const struct dray_pkt *pkt, uint64_t seed);

/* Mark an ECN-capable packet as having met congestion (RFC 3168). False: it is not capable. */
bool packet_mark(struct dray_pkt *pkt);

#endif
