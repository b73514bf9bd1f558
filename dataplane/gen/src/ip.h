/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums, and the headers of IPv4 and UDP: inline, since each frame has them. */
#ifndef GEN_IP_H
#define GEN_IP_H

#include <stdint.h>
#include <string.h>

#include "net.h"

#define HOPS 64u

/* In the machine's byte order, which RFC 1071 allows. Only the last byte of all may be odd. */
static inline uint64_t sum_add(uint64_t sum, const uint8_t *from, uint32_t length)
{
	for (; length >= 4; from += 4, length -= 4) {
		uint32_t word;

		memcpy(&word, from, sizeof(word));
		sum += word;
	}
	if (length) {
		uint32_t word = 0;

		memcpy(&word, from, length);
		sum += word;
	}
	return sum;
}

/* The checksum, in the byte order of the packet. */
static inline uint16_t sum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Addresses in network order; tos is the octet with the DSCP. */
static inline void ip4_write(uint8_t *ip, uint8_t tos, const uint8_t *from, const uint8_t *to,
			     uint32_t protocol, uint32_t payload)
{
	uint16_t sum;

	memset(ip, 0, IP4);
	ip[0] = 0x45;
	ip[1] = tos;
	put16(ip + 2, IP4 + payload);
	put16(ip + 6, 0x4000); /* do not fragment */
	ip[8] = HOPS;
	ip[9] = (uint8_t)protocol;
	memcpy(ip + 12, from, 4);
	memcpy(ip + 16, to, 4);
	sum = sum_fold(sum_add(0, ip, IP4));
	memcpy(ip + 10, &sum, sizeof(sum));
}

static inline void udp_write(uint8_t *udp, uint32_t from, uint32_t to, uint32_t payload)
{
	put16(udp, from);
	put16(udp + 2, to);
	put16(udp + 4, UDP + payload);
	put16(udp + 6, 0);
}

/*
 * Bytes after a header without options; 0 if it is another header, a fragment, or of another
 * protocol.
 */
static inline uint32_t ip4_read(const uint8_t *ip, uint32_t protocol)
{
	uint32_t total = get16(ip + 2);

	return ip[0] == 0x45 && ip[9] == protocol && !(get16(ip + 6) & 0x3fff) && total > IP4
		       ? total - IP4
		       : 0;
}

#endif
