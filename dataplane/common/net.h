/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of headers, numbers of protocols, and numbers in network order. */
#ifndef DRAY_NET_H
#define DRAY_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MAC 6u
#define ETHERNET 14u /* bytes: two addresses and a type */
/* bytes of a VLAN tag (IEEE 802.1Q) and of an MPLS label stack entry (RFC 3032) */
#define TAG 4u
#define IP4 20u /* bytes without options */
#define IP4_MAX 60u
#define IP6 40u
#define UDP 8u

#define TYPE_IP4 0x0800u
#define TYPE_ARP 0x0806u
#define TYPE_VLAN 0x8100u /* C-tag */
#define TYPE_IP6 0x86ddu
#define TYPE_MPLS 0x8847u  /* unicast, RFC 3032 section 5 */
#define TYPE_ECPRI 0xaefeu /* without a VLAN tag, or after it */
#define TYPE_SVLAN 0x88a8u /* S-tag, IEEE 802.1ad */

#define PROTOCOL_UDP 17u
#define PROTOCOL_GRE 47u

static inline uint32_t get16(const uint8_t *from)
{
	return (uint32_t)from[0] << 8 | from[1];
}

static inline uint32_t get32(const uint8_t *from)
{
	return get16(from) << 16 | get16(from + 2);
}

static inline void put16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

static inline void put32(uint8_t *to, uint32_t value)
{
	put16(to, value >> 16);
	put16(to + 2, value);
}

/* "02:00:00:00:00:01". False if the text is anything else. */
static inline bool mac_read(const char *text, uint8_t mac[MAC])
{
	unsigned m[MAC];
	int end = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5],
		   &end) != 6 ||
	    text[end] != '\0')
		return false;
	for (unsigned i = 0; i < MAC; i++)
		mac[i] = (uint8_t)m[i];
	return true;
}

#endif
