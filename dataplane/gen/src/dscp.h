/* SPDX-License-Identifier: Apache-2.0 */
/* The differentiated services code point of a packet (RFC 2474). */
#ifndef GEN_DSCP_H
#define GEN_DSCP_H

#include <stdint.h>

#define DSCP_MAX 63u

/* The octet that has it in its upper six bits, without ECN: IPv4's TOS, IPv6's traffic class. */
static inline uint8_t dscp_octet(uint8_t dscp)
{
	return (uint8_t)(dscp << 2);
}

#endif
