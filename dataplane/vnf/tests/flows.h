/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of numbered flows, for tests of sessions. */
#ifndef VNF_FLOWS_H
#define VNF_FLOWS_H

#include "flow.h"
#include "net.h"

#define FLOW_FRAME 60u

/* A packet of UDP; back: of the other direction. */
static inline void flow_packet(struct packet *p, unsigned flow, bool back)
{
	static uint8_t frame[FLOW_FRAME];
	uint32_t ends[2] = {0x0a000001, 0x0a000002 + (flow >> 16)}, ports[2] = {flow & 0xffff, 443};

	memset(frame, 0, sizeof(frame));
	put16(frame + 2 * MAC, TYPE_IP4);
	frame[ETHERNET] = 0x45;
	frame[ETHERNET + 9] = PROTOCOL_UDP;
	put32(frame + ETHERNET + 12, ends[back]);
	put32(frame + ETHERNET + 16, ends[!back]);
	put16(frame + ETHERNET + IP4, ports[back]);
	put16(frame + ETHERNET + IP4 + 2, ports[!back]);
	packet_take(p, frame, sizeof(frame), 0, FLOW_SNAPSHOT);
}

#endif
