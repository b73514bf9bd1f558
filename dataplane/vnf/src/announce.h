/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Announcements: frames with which a worker tells the load balancer at the other end of its link
 * that it is there, or that it is about to leave. The balancer returns the latter unchanged, behind
 * the last packet that it sent to this worker.
 *
 *   bytes 0   MAC addresses; the destination is one that no bridge forwards
 *         12  EtherType 88b5, for local use
 *         14  "drayLB", version 1, enum announcement
 *         22  a number that the worker chose, and zeros
 */
#ifndef VNF_ANNOUNCE_H
#define VNF_ANNOUNCE_H

#include "net.h"
#include "packet.h"

#define ANNOUNCEMENT 60u /* bytes of the frame */

enum announcement { ANNOUNCES_NOTHING, ANNOUNCES_HERE, ANNOUNCES_LEAVING };

void announce_write(uint8_t frame[ANNOUNCEMENT], const uint8_t mac[MAC], enum announcement what,
		    uint64_t number);

/* ANNOUNCES_NOTHING: the packet is something else. */
enum announcement announce_read(const struct packet *p, uint64_t *number);

#endif
